"""Small ways to write a recipe and its rows into a folder."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson
import pytest

from decon_core.benchmarks.normalize import normalize_rows
from decon_core.benchmarks.parse import load_recipes
from decon_core.benchmarks.recipe import Recipe

Rows = Sequence[Mapping[str, Any]]
Record = dict[str, Any]


@pytest.fixture
def load(tmp_path: Path) -> Callable[[str], dict[str, Recipe]]:
    """Recipes from the text below `evals:`."""

    def load_text(text: str) -> dict[str, Recipe]:
        path = tmp_path / "evals.yaml"
        body = textwrap.indent(textwrap.dedent(text), "  ")
        path.write_text(f"evals:\n{body}", encoding="utf-8")
        return load_recipes(path)

    return load_text


@pytest.fixture
def recipe_of(load: Callable[[str], dict[str, Recipe]]) -> Callable[[str], Recipe]:
    """One recipe named `bench` with the split `test`, from the lines that say how to read a row."""

    def one(lines: str, *, source: str = "hf_path: some/where", splits: str = "[test]") -> Recipe:
        body = textwrap.indent(textwrap.dedent(lines), "  ")
        return load(f"bench:\n  {source}\n  splits: {splits}\n{body}")["bench"]

    return one


@pytest.fixture
def records_of(recipe_of: Callable[..., Recipe]) -> Callable[..., list[Record]]:
    """The records that these lines of a recipe make of these rows."""

    def records(lines: str, *rows: Mapping[str, Any], **options: str) -> list[Record]:
        recipe = recipe_of(lines, **options)
        split = recipe.splits[0]
        table = normalize_rows(recipe, rows, split=split, origin="rows.jsonl")
        found: list[Record] = table.to_pylist()
        return found

    return records


def write_lines(path: Path, rows: Rows) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
    return path


def answers_of(records: list[Record]) -> list[tuple[object, object]]:
    return [(record["answer"], record["is_correct"]) for record in records]
