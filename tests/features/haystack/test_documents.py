"""Documents are drawn by seed alone, and those to train on are none of the haystack."""

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from decon_core.config.sources import Source
from decon_core.errors import CorpusError, MissingError
from decon_core.features.haystack.documents import draw_documents, with_lowest
from decon_core.features.haystack.settings import Haystack

COLUMN = "column:metadata.quality=scores.jsonl"


def places(documents):
    return [(one.source, one.shard, one.row) for one in documents]


def test_the_documents_to_train_on_are_no_part_of_the_haystack(place):
    drawn = draw_documents(place.packs(), Haystack(documents=60))
    assert len(drawn.haystack) == 60
    assert len(drawn.training) == 30  # a fifth of 150
    assert not set(places(drawn.haystack)) & set(places(drawn.training))


def test_neither_the_order_of_shards_nor_packs_moves_a_document(place):
    packs = place.packs()
    backwards = [pack.__class__(**{**vars(pack), "shards": pack.shards[::-1]}) for pack in packs]
    assert draw_documents(backwards[::-1], Haystack()) == draw_documents(packs, Haystack())


def test_a_larger_haystack_contains_a_smaller_one(place):
    few = draw_documents(place.packs(), Haystack(documents=20))
    many = draw_documents(place.packs(), Haystack(documents=50))
    assert many.haystack[:20] == few.haystack
    assert many.training == few.training


def test_another_seed_draws_other_documents(place):
    one, other = (draw_documents(place.packs(), Haystack(documents=20, seed=s)) for s in (0, 1))
    assert places(one.haystack) != places(other.haystack)


NUMBERS = st.lists(st.lists(st.integers(0, 9), max_size=9).map(sorted), max_size=9)


@given(NUMBERS, st.integers(1, 6), st.randoms())
def test_the_lowest_numbers_are_kept_whatever_the_order_of_the_shards(numbers, most, rng):
    shards = [*enumerate(numbers)]
    rng.shuffle(shards)
    pool = pl.DataFrame(schema={"number": pl.UInt64, "job": pl.Int64, "row": pl.Int64})
    for job, found in shards:
        columns = {"number": np.array(found, np.uint64), "row": np.arange(len(found))}
        pool = with_lowest(pool, pl.DataFrame(columns), job, most)
    kept = pool.sort("number", "job", "row").rows()
    every = sorted((n, job, row) for job, some in enumerate(numbers) for row, n in enumerate(some))
    assert kept[:most] == every[:most]


def test_other_sources_are_only_trained_on(place):
    drawn = draw_documents(place.packs(), Haystack(sources=("pages",)))
    assert {one.source for one in drawn.haystack} == {"pages"}
    assert {one.source for one in drawn.training} == {"pages", "chats"}
    assert sum(one.is_conversation for one in drawn.training) > 0
    chats, pages = drawn.counts
    assert (chats.n_documents, chats.n_haystack) == (30, 0)
    assert pages.n_haystack == len(drawn.haystack) == 120 - pages.n_training


def test_a_field_of_the_rows_is_read_with_the_text(place):
    place.write_shard("pages-0.jsonl", [{"text": "no such field"}, {"text": "a", "metadata": 1}])
    drawn = draw_documents(place.packs(), Haystack(scorers=(COLUMN,)))
    values = {one.text: one.values["metadata.quality"] for one in drawn.haystack + drawn.training}
    assert values[place.page(4)["text"]] == 0.4
    assert values["no such field"] is None
    assert values["a"] is None


def test_a_field_of_a_table_is_read_too(place, tmp_path):
    rows = [{"text": f"row {n}", "metadata": {"quality": n}, "score": n / 2} for n in range(20)]
    pq.write_table(pa.Table.from_pylist(rows), place.folder / "table-0.parquet")
    source = Source(name="table", path="table*.parquet", text="text")
    settings = Haystack(scorers=(COLUMN, "column:score=scores.jsonl"))
    drawn = draw_documents(place.packs(sources=(source,)), settings)
    assert {one.text: one.values for one in drawn.haystack}["row 7"] == {
        "metadata.quality": 7.0,
        "score": 3.5,
    }


def test_unreadable_rows_are_counted_and_listed(place):
    place.write_shard("pages-1.jsonl", [place.page(1), "{broken", {"text": 3}])
    drawn = draw_documents(place.packs(), Haystack())
    assert [one.n_unreadable for one in drawn.counts] == [0, 2]
    assert "pages-1.jsonl: row 1" in drawn.unreadable[0]
    assert "field is not text" in drawn.unreadable[1]


def test_changed_shards_are_named_together(place):
    packs = place.packs()
    for name in ("pages-0.jsonl", "pages-2.jsonl"):
        place.write_shard(name, [{"text": "another"}])
    with pytest.raises(CorpusError) as error:
        draw_documents(packs, Haystack())
    assert len(error.value.problems) == 2


def test_a_corpus_without_documents_is_refused(place):
    for shard in range(3):
        place.write_shard(f"pages-{shard}.jsonl", [])
    with pytest.raises(MissingError, match="no document"):
        draw_documents(place.packs(), Haystack(sources=("pages",)))
