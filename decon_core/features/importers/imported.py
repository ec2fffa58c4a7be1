"""Import the benchmarks of a registry: `import_recipes`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import yaml

from decon_core.benchmarks.parse import parse_recipes
from decon_core.errors import InputError, Problem, RecipeError
from decon_core.features.importers.benchmark import ImportedBenchmark, Status
from decon_core.features.importers.files import Files
from decon_core.features.importers.harness import harness_tasks
from decon_core.features.importers.hub_eval import hub_benchmarks
from decon_core.features.importers.lighteval import lighteval_tasks
from decon_core.features.importers.merge import merged

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


def recipe_file(benchmarks: Sequence[ImportedBenchmark]) -> str:
    """Return a recipe file of benchmarks. A comment says what a person has to confirm."""
    lines = ["evals:"]
    for benchmark in benchmarks:
        if benchmark.status is Status.PROPOSED:
            lines.append(f"  # unconfirmed: {benchmark.why}")
        entry = yaml.safe_dump(
            {benchmark.name: dict(benchmark.recipe or {})}, sort_keys=False, allow_unicode=True
        )
        lines += [f"  {line}" for line in entry.splitlines()]
    return "\n".join([*lines, ""])
