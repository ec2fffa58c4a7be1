"""The tree of fields of a source."""

import json
from itertools import product

import numpy as np

from decon_core.config.sources import Source
from decon_core.corpus import fields as fields_module
from decon_core.corpus.fields import LABELS, field_tree
from decon_core.corpus.formats.json_lines import JsonBlock
from decon_core.corpus.formats.lines import blocks_of
from decon_core.corpus.formats.shard_format import Part
from decon_core.corpus.row_texts import text_of_row
from decon_core.kernels.jit import compiled_at_once


def test_keys_that_are_data_do_not_fill_the_memory_and_are_read_all_the_same(monkeypatch):
    monkeypatch.setattr(fields_module, "MOST_FIELDS", 40)
    field_tree.cache_clear()
    source = Source(name="users", path="*", layout="openai_chat")
    said = [f"What user {n} said about the weather of that day in long words" for n in range(300)]
    rows = [{"said": {f"user-{n}": [text]}, "id": f"{n}"} for n, text in enumerate(said)]
    lines = "".join(json.dumps(row) + "\n" for row in rows).encode()
    with compiled_at_once():
        (block,) = blocks_of(lines, JsonBlock)
        batch, plain = block.batch(source), Part.batch(block, source)
    assert len(field_tree(source).fields) == 40
    texts = [
        batch.text[a:b].tobytes().decode() for a, b in zip(batch.starts, batch.stops, strict=True)
    ]
    assert [text for text in texts if text] == said
    assert np.array_equal(batch.rows, plain.rows)
    field_tree.cache_clear()


def test_a_label_is_read_only_if_it_is_a_text_or_in_a_list():
    values = (
        ("seven words are no text of any", []),
        ("eight words are a text in any field", ["eight words are a text in any field"]),
        (["half of", "a text"], ["half of", "a text"]),
        ('["in JSON", "too"]', ["in JSON", "too"]),
    )
    for key, (value, texts) in product(sorted(LABELS), values):
        read = text_of_row({key: value}, field_tree(Source(name="labels", path="")))
        assert [slot.text for slot in read.visible] == texts, key
