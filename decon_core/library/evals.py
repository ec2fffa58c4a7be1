"""Read benchmarks that are given as a path or as rows in memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa

from decon_core.benchmarks.fields import Row, describe
from decon_core.benchmarks.folder import records_in
from decon_core.benchmarks.normalize import normalize_rows
from decon_core.benchmarks.normalized import benchmark_of
from decon_core.benchmarks.parse import IN_MEMORY, parse_recipe
from decon_core.benchmarks.recipe import LocalSource, Recipe
from decon_core.config.validation import check_names, did_you_mean
from decon_core.errors import InputError, Problem, RecordError

# A path, rows, or a table of rows (Arrow, polars, a dataset of the Hugging Face library).
Evals: TypeAlias = "str | PathLike[str] | Iterable[Mapping[str, Any]] | Any"

_LIKENESS = 0.8  # likeness of a misspelt field; `message` and `passage` are less alike
_FIELDS = ("question", "answer", "passage")
_EXPECTED = "a path, a list of dictionaries, or a table with a row for each item"


def records_of(
    evals: Evals, *, name: str = "evals", recipe: Mapping[str, Any] | None = None
) -> dict[str, pa.Table]:
    """Return the records of each benchmark, by name.

    `name` is the benchmark of rows that name none, and of all rows if there is a recipe.
    """
    if isinstance(evals, str | PathLike):
        if recipe is not None:
            expected = "only the path: pass a recipe file (.yaml), which names its data files"
            raise InputError(Problem("recipe", "a recipe and a path", expected))
        tables = records_in(Path(evals))
        require_records(str(evals), sum(table.num_rows for table in tables.values()))
    else:
        rows = _rows(evals)
        if recipe is not None:
            check_names([name], what="benchmark")
            parsed = parse_recipe(name, recipe, where="recipe")
            tables = {name: normalize_rows(parsed, rows, split=IN_MEMORY, origin="evals")}
        else:
            tables = _by_name(rows, name)
        if not any(table.num_rows for table in tables.values()):
            raise InputError(Problem("evals", "no item", "at least one"))
    return tables


def require_records(where: str, n_records: int) -> None:
    """Raise `InputError` if benchmark files have no record at all."""
    if not n_records:
        raise InputError(Problem(where, "no record in any file", "at least one"))


def _rows(evals: Any) -> list[Row]:
    """Return the rows of a list or table; raise `RecordError` for what is not a row."""
    values: Iterable[object]
    if isinstance(evals, Mapping):
        raise InputError(Problem("evals", "one dictionary", _EXPECTED, "Put it into a list."))
    if hasattr(evals, "__arrow_c_stream__"):
        values = pa.table(evals).to_pylist()
    elif isinstance(evals, Iterable):
        values = evals
    else:
        raise InputError(Problem("evals", describe(evals), _EXPECTED))
    rows: list[Row] = []
    problems = []
    for number, value in enumerate(values, start=1):
        if isinstance(value, Mapping):
            rows.append(value)
        else:
            expected = "a dictionary with the fields of one item"
            problems.append(Problem(f"evals row {number}", describe(value), expected))
    RecordError.raise_for(problems)
    return rows


def _by_name(rows: list[Row], name: str) -> dict[str, pa.Table]:
    """Return the records of rows with question, answer and passage, by benchmark and split."""
    _require_no_misspelt_field(rows)
    places: dict[str, dict[str, list[Row]]] = {}
    for row in rows:
        benchmark, split = benchmark_of(row), row.get("split")
        by_split = places.setdefault(name if benchmark is None else str(benchmark), {})
        by_split.setdefault(IN_MEMORY if split is None else str(split), []).append(row)
    check_names(places, what="benchmark")
    return {
        benchmark: pa.concat_tables(
            normalize_rows(
                Recipe(name=benchmark, source=LocalSource(), splits=(split,)),
                of_split,
                split=split,
                origin="evals",
            )
            for split, of_split in by_split.items()
        ).combine_chunks()
        for benchmark, by_split in sorted(places.items())
    }


def _require_no_misspelt_field(rows: Iterable[Row]) -> None:
    """Raise `RecordError` if a field that no row has is spelled almost like one of theirs."""
    names = sorted({str(name) for row in rows for name in row})
    lacking = {*_FIELDS} - {*names}
    RecordError.raise_for(
        Problem(
            "evals",
            f"the field {name!r}",
            f"one of {', '.join(_FIELDS)}",
            f"{hint} A recipe can name other fields.",
        )
        for name in names
        if name not in _FIELDS and (hint := did_you_mean(name, lacking, likeness=_LIKENESS))
    )
