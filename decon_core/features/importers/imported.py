"""Import the benchmarks of a registry: `import_recipes`.

A registry has many tasks over the same rows: they become one recipe of a dataset.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import yaml

from decon_core.benchmarks.parse import parse_recipes
from decon_core.errors import InputError, Problem, RecipeError
from decon_core.features.importers.benchmark import Files, ImportedBenchmark, Status
from decon_core.features.importers.harness import harness_tasks
from decon_core.features.importers.hub_eval import hub_benchmarks
from decon_core.features.importers.lighteval import lighteval_tasks

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
        expected = "eval.yaml of datasets, task files of lm-evaluation-harness or lighteval"
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


_RANKS = [*Status]
_SYNTAX = {"fields", "separator", "array", " "}
_ORDER = {
    name: number
    for number, name in enumerate(["train", "validation", "valid", "val", "dev", "test"])
}
_WHERE = ("hf_path", "hf_config", "hf_revision", "splits")


def merged(tasks: Iterable[ImportedBenchmark]) -> list[ImportedBenchmark]:
    """Return one benchmark for the tasks that ask about the same columns of the same rows.

    Of several recipes for them, the best declared is kept, then the one with answers, then the one
    that most tasks share. Configs with the same fields become one benchmark. Refused tasks are
    merged if they share dataset and reason.
    """
    by_rows: dict[str, list[ImportedBenchmark]] = defaultdict(list)
    refused: dict[str, list[ImportedBenchmark]] = defaultdict(list)
    for task in tasks:
        if task.recipe is None:
            refused[f"{task.data_set or task.origin.file} {task.why}"].append(task)
        else:
            keys = [task.recipe.get(key) for key in _WHERE[:-1]]
            by_rows[json.dumps(keys)].append(task)
    by_fields: dict[str, list[ImportedBenchmark]] = defaultdict(list)
    for best in (best for group in by_rows.values() for best in _best_of(group)):
        recipe = {key: value for key, value in (best.recipe or {}).items() if key != "hf_config"}
        by_fields[json.dumps([best.status, recipe], sort_keys=True)].append(best)
    groups = [*by_fields.values(), *refused.values()]
    return _named([_united(group) for group in groups])


def _best_of(tasks: Sequence[ImportedBenchmark]) -> Iterator[ImportedBenchmark]:
    """Yield the best recipe for each question of the same rows, with the tasks that ask it."""
    votes = Counter(_fields(task) for task in tasks)

    def rank(task: ImportedBenchmark) -> tuple[object, ...]:
        fields = _fields(task)
        known = sum(key in fields for key in ('"answers"', '"target"', '"tests"'))
        return _RANKS.index(task.status), -known, -votes[fields], fields, task.name

    groups: list[tuple[set[str], list[ImportedBenchmark]]] = []
    for task in sorted(tasks, key=rank):
        asked = _asked(task.recipe or {})
        same = next((members for columns, members in groups if columns & asked), None)
        if same is None:
            groups.append((asked, [task]))
        else:
            same.append(task)
    for _, members in groups:
        splits = {split for member in members for split in (member.recipe or {})["splits"]}
        ordered = sorted(splits, key=lambda split: (_ORDER.get(split, len(_ORDER)), split))
        best = _united(members)
        yield replace(best, recipe={**(best.recipe or {}), "splits": ordered})


def _asked(recipe: Mapping[str, Any]) -> set[str]:
    """Return the columns of a question and its passage."""
    if "source" in recipe:
        return {json.dumps(sorted(json.dumps(recipe[key]) for key in ("source", "target")))}
    keys = ("prompt", "prompts", "passage")
    return {*re.findall(r'"([^"]+)"', json.dumps([recipe.get(key) for key in keys]))} - _SYNTAX


def _fields(task: ImportedBenchmark) -> str:
    recipe = task.recipe or {}
    return json.dumps({key: recipe[key] for key in recipe if key not in _WHERE}, sort_keys=True)


def _united(group: Sequence[ImportedBenchmark]) -> ImportedBenchmark:
    """Return the first of several benchmarks, with the configs and tasks of all."""
    first = group[0]
    tasks = dict.fromkeys(name for member in group for name in member.origin.tasks)
    origin = replace(first.origin, tasks=tuple(tasks))
    name = _common_name([*tasks] or [first.name], first)
    if first.recipe is None:
        return replace(first, origin=origin, name=name)
    recipe: dict[str, Any] = dict(first.recipe)
    configs = dict.fromkeys(
        config for member in group for config in _listed((member.recipe or {}).get("hf_config"))
    )
    if len(configs) > 1 and all((member.recipe or {}).get("hf_config") for member in group):
        recipe["hf_config"] = [*configs]
    return replace(first, origin=origin, name=name, recipe=recipe)


def _listed(config: object) -> Sequence[str]:
    return [config] if isinstance(config, str) else config if isinstance(config, list) else []


def _common_name(tasks: Sequence[str], first: ImportedBenchmark) -> str:
    """Return the words with which all names of tasks begin, or else the name of the dataset."""
    words = [re.findall(r"[^\W_]+", task.lower()) for task in tasks]
    common = []
    for column in zip(*words, strict=False):
        if len({*column}) > 1:
            break
        common.append(column[0])
    shared = "_".join(common)
    if len(tasks) > 1 and len(shared) < 3:
        shared = first.data_set.rpartition("/")[2].lower()
    return re.sub(r"[^A-Za-z0-9_-]+", "_", shared).strip("_") or "benchmark"


def _order(benchmark: ImportedBenchmark) -> tuple[int, str, str, str, str]:
    status = _RANKS.index(benchmark.status)
    return status, benchmark.name, benchmark.data_set, benchmark.reason, benchmark.detail


def _named(benchmarks: Sequence[ImportedBenchmark]) -> list[ImportedBenchmark]:
    """Return the benchmarks with a different name each, sorted by name."""
    taken: set[str] = set()
    named = []
    for benchmark in sorted(benchmarks, key=_order):
        owner = benchmark.data_set.rpartition("/")[2].lower()
        config = (benchmark.recipe or {}).get("hf_config")
        endings = [str(config), owner] if isinstance(config, str) else [owner]
        longer = (f"{benchmark.name}_{ending.lower()}" for ending in endings)
        candidates = [benchmark.name, *(re.sub(r"[^a-z0-9_-]+", "_", name) for name in longer)]
        numbered = (f"{benchmark.name}_{number}" for number in count(2))
        name = next((name for name in candidates if name not in taken), None) or next(
            name for name in numbered if name not in taken
        )
        taken.add(name)
        named.append(replace(benchmark, name=name))
    return named
