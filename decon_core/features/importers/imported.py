"""Import the benchmarks of a registry: `import_recipes`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from textwrap import shorten

import yaml

from decon_core.benchmarks.download import first_records
from decon_core.benchmarks.parse import parse_recipes
from decon_core.errors import InputError, Problem, RecipeError, RecordError
from decon_core.features.importers.benchmark import ImportedBenchmark, Status
from decon_core.features.importers.files import Files
from decon_core.features.importers.harness import harness_tasks
from decon_core.features.importers.hub_eval import hub_benchmarks
from decon_core.features.importers.lighteval import lighteval_tasks
from decon_core.features.importers.merge import merged
from decon_core.storage.paths import UnreachableError

_SHOWN = ("passage", "question", "answer", "is_correct")
_MAX_ROW_CHARS = 300  # characters of a field in a comment

_REGISTRIES: tuple[Callable[[Files], Iterator[ImportedBenchmark]], ...] = (
    hub_benchmarks,
    harness_tasks,
    lighteval_tasks,
)


def import_recipes(path: Path) -> list[ImportedBenchmark]:
    """Return the benchmarks that registries declare at a path: a file, a folder or a wheel."""
    files = Files.at(path)
    tasks = [task for registry in _REGISTRIES for task in registry(files)]
    if not tasks:
        found = "no file that declares a benchmark"
        expected = "eval.yaml of data sets, task files of lm-evaluation-harness or lighteval"
        raise InputError(Problem(str(path), found, expected))
    return [_validated(benchmark) for benchmark in merged(tasks)]


def _validated(benchmark: ImportedBenchmark) -> ImportedBenchmark:
    """Refuse a benchmark whose recipe could not be loaded."""
    if benchmark.recipe is None:
        return benchmark
    try:
        parse_recipes(recipe_file([benchmark]), where=benchmark.origin.file)
    except RecipeError as error:
        reason = "the fields do not form a valid recipe"
        return replace(
            benchmark, status=Status.REFUSED, recipe=None, reason=reason, detail=str(error)
        )
    return benchmark


def recipe_file(benchmarks: Sequence[ImportedBenchmark], *, n_rows: int = 0) -> str:
    """Return a recipe file of benchmarks. A comment says what a person has to confirm.

    `n_rows`: so many rows of each data set are read, and their records are comments, too.
    """
    lines = ["evals:"]
    for benchmark in benchmarks:
        if benchmark.status is Status.PROPOSED:
            lines.append(f"  # unconfirmed: {benchmark.why}")
        lines += [f"  # {line}" for line in _records(benchmark, n_rows)] if n_rows else []
        entry = yaml.safe_dump(
            {benchmark.name: dict(benchmark.recipe or {})}, sort_keys=False, allow_unicode=True
        )
        lines += [f"  {line}" for line in entry.splitlines()]
    return "\n".join([*lines, ""])


def _records(benchmark: ImportedBenchmark, n_rows: int) -> Iterator[str]:
    """Yield the fields of the first records, or why there are none."""
    (recipe,) = parse_recipes(recipe_file([benchmark]), where=benchmark.origin.file).values()
    try:
        records = first_records(recipe, Path(), limit=n_rows).to_pylist()
    except (RecipeError, RecordError, UnreachableError) as error:
        yield f"no rows: {shorten(str(error), _MAX_ROW_CHARS)}"
        return
    for record in records:
        yield f"row {record['instance_index'] + 1} of {record['split']}:"
        for field in _SHOWN:
            if record[field] is not None:
                yield f"  {field}: {shorten(str(record[field]), _MAX_ROW_CHARS)}"
