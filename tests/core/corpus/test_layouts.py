"""Sentences in every slot of published and of random layouts are read, and as what they are.

The rows come from `tests/oracle/layouts.py`, which shares nothing with the product's layouts.
"""

from collections import Counter

import pytest

from decon_core.config.layouts import known_layouts
from decon_core.config.sources import Source
from decon_core.corpus.documents import Document
from decon_core.corpus.fields import field_tree
from decon_core.corpus.packs import find_shards
from decon_core.corpus.row_texts import text_of_row
from decon_core.corpus.shards import read_blocks, read_shard
from tests.oracle.layout_files import write_rows
from tests.oracle.layouts import Sentences, layouts, rows_of, unknown_layout

EVERYTHING = Source(name="rows", path="")
FORMS = ("jsonl", "parquet", "json_columns")
FILES = [
    (name, form) for name, layout in layouts().items() for form in layout.files if form in FORMS
]
# Every second file has the keys of its rows in another order.
CASES = [(name, form, number % 2 == 1) for number, (name, form) in enumerate(FILES)]


def documents_of(folder, form, rows):
    """Return the documents of a file with these rows, which both readers find."""
    file = write_rows(folder, form, rows)
    (shard,) = find_shards(Source(name="rows", path=file.name), folder=folder, known={})
    documents = [*read_shard(shard, EVERYTHING)]
    assert all(isinstance(one, Document) for one in documents), documents
    batches = [block.read() for block in read_blocks(shard, EVERYTHING)]
    texts = [
        (row, batch.text[start:stop].tobytes().decode())
        for batch in batches
        for row, start, stop in zip(batch.rows, batch.starts, batch.stops, strict=True)
    ]
    assert texts == [(one.row, text) for one in documents for text, _ in one.stretches]
    return documents


def kinds_of(documents, slots):
    """Count sentences by whether they should be visible, and how they were read."""
    by_text = {}
    for slot in slots:
        by_text.setdefault((slot.row, slot.text), []).append(slot.is_visible)
    return Counter(
        (any(is_visible), _kind(documents[min(row, len(documents) - 1)], text))
        for (row, text), is_visible in by_text.items()
    )


def _kind(document, text):
    if text in document.visible:
        return "visible"
    return "hidden" if text in document.text else "missed"


@pytest.mark.parametrize(("name", "form", "shuffles"), CASES)
def test_every_sentence_of_a_published_layout_is_read_as_what_it_is(tmp_path, name, form, shuffles):
    rows, slots = rows_of(layouts()[name], 1, Sentences(1), shuffles_keys=shuffles)
    kinds = kinds_of(documents_of(tmp_path / "rows", form, rows), slots)
    assert kinds[True, "missed"] == kinds[False, "missed"] == 0
    assert kinds[True, "hidden"] <= 0.02 * kinds[True, "visible"]
    assert kinds[False, "visible"] == 0


@pytest.mark.parametrize("first", range(0, 200, 50))
def test_every_sentence_of_layouts_that_nobody_published_is_read(tmp_path, first):
    sentence = Sentences(first)
    for seed in range(first, first + 50):
        rows, slots = rows_of(unknown_layout(seed), seed, sentence)
        kinds = kinds_of(documents_of(tmp_path / f"{seed}", "jsonl", rows), slots)
        assert kinds[True, "missed"] == 0, seed


@pytest.mark.parametrize("name", layouts())
def test_a_layout_that_is_named_is_read_as_if_it_was_recognised(name):
    rows, _ = rows_of(layouts()[name], 2, Sentences(2))
    for row in rows:
        if isinstance(row, dict):  # not a line of a dump of lists
            found = text_of_row(row, field_tree(EVERYTHING))
            if found.layout.name in known_layouts():
                source = Source(name="rows", path="", layout=found.layout.name)
                assert text_of_row(row, field_tree(source)) == found


def test_every_layout_is_recognised_from_published_rows():
    tree, sentence = field_tree(EVERYTHING), Sentences(3)
    rows = [row for layout in layouts().values() for row in rows_of(layout, 3, sentence)[0]]
    names = {text_of_row(row, tree).layout.name for row in rows if isinstance(row, dict)}
    assert known_layouts().keys() - names <= {"agent_log"}  # of files, not of rows
