"""What holds for every table of records, whatever the recipe."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from decon_core.benchmarks.normalize import normalize, normalize_rows
from decon_core.benchmarks.normalized import fingerprint_of
from decon_core.benchmarks.recipe import Recipe
from decon_core.errors import Problem, RecordError
from decon_core.schemas import RECORDS
from tests.core.benchmarks.conftest import write_lines

RecipeOf = Callable[..., Recipe]

# A list of its own takes the place of the profile's, so the profile's check is named here as well.
SHARED_FIXTURES = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]

LINES = """
prompt: q
answers:
- expand_choices: {field: c, correct_index: k}
"""


def rows(n_rows: int) -> list[dict[str, Any]]:
    return [{"q": f"Q{n}", "c": ["x", f"y{n}"], "k": n % 2} for n in range(n_rows)]


def test_importing_the_package_loads_nothing_heavy() -> None:
    heavy = ("datasets", "polars", "pandas", "pyarrow.parquet")
    code = f"import sys, decon_core.benchmarks; print([m for m in {heavy} if m in sys.modules])"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "[]"


def test_the_table_has_the_declared_schema_even_without_rows(recipe_of: RecipeOf) -> None:
    table = normalize_rows(recipe_of(LINES), [], split="test", origin="rows")
    assert table.schema == RECORDS
    assert table.num_rows == 0


def test_splits_come_as_listed_and_rows_as_in_the_files(
    tmp_path: Path, recipe_of: RecipeOf
) -> None:
    for split, n_rows in (("train", 3), ("test", 2)):
        write_lines(tmp_path / f"{split}.jsonl", rows(n_rows))
    recipe = recipe_of(LINES, source="local_path: '{split}.jsonl'", splits="[test, train]")
    table = normalize(recipe, base=tmp_path)
    places = list(
        zip(
            *(table[name].to_pylist() for name in ("split", "instance_index", "choice_index")),
            strict=True,
        )
    )
    assert places == [("test", n, c) for n in range(2) for c in range(2)] + [
        ("train", n, c) for n in range(3) for c in range(2)
    ]


def test_the_same_files_give_the_same_table(tmp_path: Path, recipe_of: RecipeOf) -> None:
    write_lines(tmp_path / "x.jsonl", rows(50))
    recipe = recipe_of(LINES, source="local_path: x.jsonl")
    assert normalize(recipe, base=tmp_path).equals(normalize(recipe, base=tmp_path))


def test_a_limit_holds_for_every_split(tmp_path: Path, recipe_of: RecipeOf) -> None:
    for name in ("test-1", "test-2", "train-1"):
        write_lines(tmp_path / f"{name}.jsonl", rows(3))
    recipe = recipe_of(LINES, source="local_path: .", splits="[test, train]")
    table = normalize(recipe, base=tmp_path, limit=4)
    assert table["split"].to_pylist() == ["test"] * 8 + ["train"] * 6
    whole = normalize(recipe, base=tmp_path)
    assert table.equals(whole.filter([i < 4 for i in whole["instance_index"].to_pylist()]))


def test_problems_of_all_files_are_reported_together(tmp_path: Path, recipe_of: RecipeOf) -> None:
    for split in ("train", "test"):
        write_lines(tmp_path / f"{split}.jsonl", [{"q": "Q", "c": ["x"], "k": 3}])
    recipe = recipe_of(LINES, source="local_path: '{split}.jsonl'", splits="[test, train]")
    with pytest.raises(RecordError) as error:
        normalize(recipe, base=tmp_path)
    assert [Path(problem.where.split(" ")[0]).name for problem in error.value.problems] == [
        "test.jsonl",
        "train.jsonl",
    ]


def test_a_reader_may_hand_in_a_row_that_it_could_not_read(recipe_of: RecipeOf) -> None:
    bad = Problem("somewhere", "nonsense", "sense")
    with pytest.raises(RecordError, match="somewhere: found nonsense; expected sense"):
        normalize_rows(recipe_of("prompt: q"), [{"q": "Q"}, bad], split="test", origin="rows")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abk", max_size=2), inner),
    max_leaves=6,
)


@settings(suppress_health_check=SHARED_FIXTURES)
@given(row=st.dictionaries(st.sampled_from(["q", "c", "k", "p"]), JSON))
def test_prop_any_row_gives_good_records_or_a_record_error(
    recipe_of: RecipeOf, row: dict[str, Any]
) -> None:
    recipe = recipe_of(LINES + "passage: p")
    try:
        table = normalize_rows(recipe, [row], split="test", origin="rows")
    except RecordError:
        return
    for record in table.to_pylist():
        texts = (record["passage"], record["question"], record["answer"])
        assert record["fingerprint"] == fingerprint_of(*texts)
        assert record["answer"] is None or record["answer"].strip()
    answers = [a for a in table["answer"].to_pylist() if a is not None]
    assert len(answers) == len(set(answers))


@settings(suppress_health_check=SHARED_FIXTURES)
@given(cuts=st.lists(st.integers(0, 20), max_size=4))
def test_prop_how_rows_are_cut_into_files_does_not_matter(
    tmp_path: Path, recipe_of: RecipeOf, cuts: list[int]
) -> None:
    everything = rows(20)
    edges = [0, *sorted(cuts), 20]
    names = []
    for number, (start, stop) in enumerate(pairwise(edges)):
        names.append(f"part-{number}.jsonl")
        write_lines(tmp_path / names[-1], everything[start:stop])
    parts = recipe_of(LINES, source=f"local_path: {{test: {orjson.dumps(names).decode()}}}")
    whole = recipe_of(LINES)
    expected = normalize_rows(whole, everything, split="test", origin="rows")
    assert normalize(parts, base=tmp_path).equals(expected)
