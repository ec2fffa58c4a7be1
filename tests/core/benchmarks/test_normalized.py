"""Files of records: the reference tool's bundled form, and our own table written out again."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyarrow import parquet

from decon_core.benchmarks.normalize import normalize
from decon_core.benchmarks.normalized import fingerprint_of
from decon_core.benchmarks.recipe import Recipe
from decon_core.errors import RecordError
from tests.core.benchmarks.conftest import write_lines

RecipeOf = Callable[..., Recipe]


def row(instance: int, answer: str, **fields: Any) -> dict[str, Any]:
    question = f"Question {instance}?"
    return {
        "eval_key": "other",
        "eval_instance_index": instance,
        "split": "test",
        "question": question,
        "answer": answer,
        "config": "main",
        "doc_id": 5,
        "fingerprint": fingerprint_of(fields.get("passage"), question, answer),
    } | fields


def test_the_fingerprint_is_the_published_one() -> None:
    assert fingerprint_of(None, "", None) == "e3b0c44298fc1c14"
    assert fingerprint_of("ab", "c", "d") == fingerprint_of(None, "abc", "d")


def test_bundled_records_are_taken_as_they_are(tmp_path: Path, recipe_of: RecipeOf) -> None:
    rows = [
        row(0, "x", is_correct=True, passage="P"),
        row(0, "y", is_correct=None, passage="P"),
        row(1, "z", level=3),
    ]
    write_lines(tmp_path / "in/bench_test-1.jsonl", rows)
    recipe = recipe_of("", source="local_path: in/bench_")
    records = normalize(recipe, base=tmp_path).to_pylist()
    found = [
        (r["benchmark"], r["config"], r["instance_index"], r["answer"], r["is_correct"])
        for r in records
    ]
    assert found == [
        ("bench", "main", 0, "x", True),
        ("bench", "main", 0, "y", None),
        ("bench", "main", 1, "z", None),
    ]
    assert [r["passage"] for r in records] == ["P", "P", None]
    assert [r["extras"] for r in records] == [None, None, '{"level": 3}']
    assert [r["fingerprint"] for r in records] == [r["fingerprint"] for r in rows]


def test_instances_of_several_files_and_configs_get_numbers_of_their_own(
    tmp_path: Path, recipe_of: RecipeOf
) -> None:
    """The bundled AGIEval counts from 0 in each of its parts; an instance is one row of a split."""
    first = [row(0, "a"), row(1, "b"), row(0, "c", config="extra")]
    write_lines(tmp_path / "in/bench_test-1.jsonl", first)
    write_lines(tmp_path / "in/bench_test-2.jsonl", [row(0, "d", config="third")])
    recipe = recipe_of("", source="local_path: in/bench_")
    records = normalize(recipe, base=tmp_path).to_pylist()
    assert [r["instance_index"] for r in records] == [0, 1, 2, 3]
    originals = [json.loads(r["extras"] or "{}").get("eval_instance_index") for r in records]
    assert originals == [None, None, 0, 0]


def test_one_file_may_hold_several_splits_if_its_rows_say_so(
    tmp_path: Path, recipe_of: RecipeOf
) -> None:
    rows = [row(0, "a"), row(0, "b", split="train"), row(1, "c"), row(9, "d", split="dev")]
    write_lines(tmp_path / "x.jsonl", rows)
    recipe = recipe_of("", source="local_path: x.jsonl", splits="[train, test]")
    records = normalize(recipe, base=tmp_path).to_pylist()
    assert [(r["split"], r["answer"]) for r in records] == [
        ("train", "b"),
        ("test", "a"),
        ("test", "c"),
    ]


def test_rows_without_a_split_in_a_file_of_several_are_refused(
    tmp_path: Path, recipe_of: RecipeOf
) -> None:
    write_lines(tmp_path / "x.jsonl", [row(0, "a", split=None)])
    recipe = recipe_of("", source="local_path: x.jsonl", splits="[train, test]")
    with pytest.raises(RecordError, match="field 'split': found null; expected the split of the"):
        normalize(recipe, base=tmp_path)


def test_our_own_table_written_out_and_read_again_is_the_same(
    tmp_path: Path, recipe_of: RecipeOf
) -> None:
    lines = """
    prompt: q
    passage: p
    extra_fields: [id]
    answers:
    - expand_choices: {field: c, correct_index: k}
    """
    rows = [{"q": f"Q{n}", "p": "P", "c": ["x", "y"], "k": n % 2, "id": n} for n in range(5)]
    write_lines(tmp_path / "raw.jsonl", rows)
    first = normalize(recipe_of(lines, source="local_path: raw.jsonl"), base=tmp_path)
    parquet.write_table(first, tmp_path / "x.parquet")
    write_lines(tmp_path / "x.jsonl", first.to_pylist())
    for name in ("x.parquet", "x.jsonl"):
        again = normalize(recipe_of("", source=f"local_path: {name}"), base=tmp_path)
        assert again.equals(first)


def test_rows_need_no_more_than_a_question(tmp_path: Path, recipe_of: RecipeOf) -> None:
    write_lines(tmp_path / "x.jsonl", [{"question": "a"}, {"question": None}, {"question": "b"}])
    recipe = recipe_of("", source="local_path: x.jsonl\n  hf_config: mine")
    records = normalize(recipe, base=tmp_path).to_pylist()
    assert [(r["instance_index"], r["question"], r["config"]) for r in records] == [
        (0, "a", "mine"),
        (1, "", "mine"),
        (2, "b", "mine"),
    ]


def test_a_limit_counts_instances_not_records(tmp_path: Path, recipe_of: RecipeOf) -> None:
    rows = [row(n, answer) for n in range(5) for answer in "xy"]
    write_lines(tmp_path / "x.jsonl", rows)
    recipe = recipe_of("", source="local_path: x.jsonl")
    assert normalize(recipe, base=tmp_path, limit=2).num_rows == 4


def test_the_last_item_within_a_limit_is_whole(tmp_path: Path, recipe_of: RecipeOf) -> None:
    write_lines(tmp_path / "in/bench_test-1.jsonl", [row(0, "a"), row(1, "b"), row(1, "c")])
    write_lines(tmp_path / "in/bench_test-2.jsonl", [row(1, "d"), row(2, "e"), row(3, "f")])
    write_lines(tmp_path / "in/bench_test-3.jsonl", [row(2, "g")])
    recipe = recipe_of("", source="local_path: in/bench_")
    answers = normalize(recipe, base=tmp_path, limit=2)["answer"].to_pylist()
    assert answers == ["a", "b", "c", "d"]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"question": "edited"}, "'fingerprint': found '[0-9a-f]{16}'; expected '[0-9a-f]{16}'"),
        ({"question": "edited"}, "If you edited the texts on purpose, remove the field."),
        ({"is_correct": "yes"}, "field 'is_correct': found 'yes'; expected true, false or null"),
        ({"eval_instance_index": -1}, "found the number -1; expected a whole number, at least 0"),
        ({"extras": "x"}, "field 'extras': found 'x'; expected a JSON object, or null"),
        ({"extras": [1]}, "field 'extras': found a list of 1; expected a JSON object, or null"),
        ({"answer": ["x"], "fingerprint": None}, "field 'answer': found a list of 1; expected te"),
    ],
)
def test_a_row_that_is_no_record_is_refused(
    tmp_path: Path, recipe_of: RecipeOf, fields: dict[str, object], message: str
) -> None:
    write_lines(tmp_path / "x.jsonl", [row(0, "a"), row(1, "b") | fields])
    recipe = recipe_of("", source="local_path: x.jsonl")
    with pytest.raises(RecordError, match=message) as error:
        normalize(recipe, base=tmp_path)
    assert "x.jsonl row 2, field" in str(error.value)


def test_a_row_without_a_question_is_refused(tmp_path: Path, recipe_of: RecipeOf) -> None:
    write_lines(tmp_path / "x.jsonl", [{"text": "a"}])
    recipe = recipe_of("", source="local_path: x.jsonl")
    with pytest.raises(RecordError, match="field 'question': no 'question' among 'text'"):
        normalize(recipe, base=tmp_path)
