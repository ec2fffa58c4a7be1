"""Rows that name their dataset and split are counted by both, in every shard format."""

import json
from collections import Counter

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from decon_core.config.sources import Source
from decon_core.corpus import fields
from decon_core.corpus.formats import format_of
from decon_core.corpus.origins import MOST_NAMES, Origin, shortest, total
from decon_core.corpus.packs import find_shards
from decon_core.corpus.shards import open_shard


def verl_row(number, *, split="test", source="openai/gsm8k"):
    return {
        "data_source": source,
        "prompt": [{"role": "user", "content": f"How many apples do {number} trees have?"}],
        "reward_model": {"style": "rule", "ground_truth": "17"},
        "extra_info": {"split": split, "index": number, "question": "How many apples are there?"},
    }


def origins_in(path, **settings):
    fields.field_tree.cache_clear()
    source = Source(name="rows", path=path.name, **settings)
    (shard,) = find_shards(source, folder=path.parent, known={})
    with open_shard(shard, source) as file:
        parts = format_of(path).parts(file, source, part_bytes=1 << 12)
        return dict(total(part.batch(source).origins for part in parts))


def written(folder, rows, suffix):
    path = folder / f"rows{suffix}"
    if suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
    elif suffix == ".json":
        path.write_text(json.dumps(rows))
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.mark.parametrize("suffix", [".jsonl", ".parquet", ".json"])
def test_rows_are_counted_by_the_data_set_and_split_that_they_name(tmp_path, suffix):
    rows = [
        *(verl_row(number) for number in range(60)),
        *(verl_row(number, split="train") for number in range(5)),
        *(verl_row(number, source="math/amc", split=None) for number in range(2)),
    ]
    assert origins_in(written(tmp_path, rows, suffix)) == {
        Origin("data_source", "openai/gsm8k", "test"): 60,
        Origin("data_source", "openai/gsm8k", "train"): 5,
        Origin("data_source", "math/amc", None): 2,
    }


TEXT = "A text of nine words is no name of anything."
ROWS = {
    "a field in an object": ({"metadata": {"dataset": "mmlu"}}, ["metadata.dataset", "mmlu", None]),
    "JSON in a string": ({"metadata": '{"dataset": "mmlu"}'}, ["metadata.dataset", "mmlu", None]),
    "with an escape": ({"dataset": 'm"mlu', "split": "té"}, ["dataset", 'm"mlu', "té"]),
    "a field that is read even if it is short": ({"task": "arc"}, ["task", "arc", None]),
    "another field for its split": ({"task": "arc", "dataset_split": "a"}, ["task", "arc", "a"]),
    "a split far below": (
        {"task": "arc", "a": {"b": {"split": "a"}}},
        ["task", "arc", None],
    ),
    "two levels below": ({"a": {"b": {"dataset": "mmlu"}}}, None),
    "in a list": ({"messages": [{"role": "user", "content": TEXT, "dataset": "mmlu"}]}, None),
    "a list": ({"dataset": ["mmlu"]}, None),
    "a number": ({"dataset": 5, "source": None}, None),
    "a text": ({"source": "a b c d e f g h"}, None),
    "a long value": ({"source": "a" * 65}, None),
    "a split alone": ({"split": "test"}, None),
}


@pytest.mark.parametrize("case", ROWS)
def test_only_a_short_value_of_a_known_field_is_a_name(tmp_path, case):
    row, expected = ROWS[case]
    path = written(tmp_path, [{"text": TEXT, **row}], ".jsonl")
    assert origins_in(path) == ({Origin(*expected): 1} if expected else {})


def test_every_field_of_a_row_counts_on_its_own(tmp_path):
    row = {"text": TEXT, "dataset": "mmlu", "subset": "astronomy", "split": "test"}
    assert origins_in(written(tmp_path, [row, {**row, "subset": "law"}], ".jsonl")) == {
        Origin("dataset", "mmlu", "test"): 2,
        Origin("subset", "astronomy", "test"): 1,
        Origin("subset", "law", "test"): 1,
    }


def test_fields_that_are_not_looked_at_name_nothing(tmp_path):
    rows = [{"text": TEXT, "dataset": "mmlu"}]
    for suffix in (".jsonl", ".parquet"):
        path = written(tmp_path, rows, suffix)
        assert origins_in(path, text="text") == {Origin("dataset", "mmlu", None): 1}
        assert origins_in(path, text="text", ignore=("*",)) == {}


def test_unreadable_rows_name_nothing(tmp_path):
    rows = [{"body": TEXT, "dataset": "mmlu"}, {"text": TEXT, "dataset": "arc"}]
    path = written(tmp_path, rows, ".jsonl")
    assert origins_in(path, text="text") == {Origin("dataset", "arc", None): 1}


def test_the_shortest_names_of_a_field_are_kept_and_other_rows_are_counted(tmp_path):
    """However many rows are counted at once."""
    names = [f"https://example.org/{number * 7919 % 1000}" for number in range(1000)]
    rows = [{"text": TEXT, "source": name, "dataset": "mmlu"} for name in (*names, "arc", "arc")]
    counted = origins_in(written(tmp_path, rows, ".jsonl"))
    kept = shortest(counted)
    assert kept == shortest(Counter(Origin("source", row["source"], None) for row in rows)) | {
        Origin("dataset", "mmlu", None): 1002
    }
    assert kept[Origin("dataset", "mmlu", None)] == 1002
    assert kept[Origin("source", "arc", None)] == 2
    assert kept[Origin("source", None, None)] == 1002 - 2 - (MOST_NAMES - 1)
    assert len(kept) == 1 + MOST_NAMES + 1
    step_by_step = Counter()
    for origin, n_rows in counted.items():
        step_by_step = shortest(total([step_by_step, {origin: n_rows}]))
    assert step_by_step == kept
    assert [*step_by_step] == [*kept]
