"""Map task names to benchmarks: `gsm8k_cot` is gsm8k, `mmlu_anatomy` a config of mmlu."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from decon_core.errors import InputError, Problem
from decon_core.features.results.items import Items

_SEPARATOR = re.compile(r"[^a-z0-9]+")


@dataclass(frozen=True)
class TaskMapping:
    """A `--task NAME=BENCHMARK[:SPLIT]` option; `*` in NAME matches anything."""

    pattern: str
    benchmark: str
    split: str | None


@dataclass(frozen=True)
class Task:
    """The benchmark, config and split that a task evaluates."""

    benchmark: str
    config: str | None
    split: str | None
    setting: str  # the task name without the config: configs with one setting are one benchmark run


def parse_task_mappings(texts: Sequence[str], benchmarks: Mapping[str, Items]) -> list[TaskMapping]:
    """Parse `--task` options; raise `InputError` for benchmarks or splits not in the report."""
    mappings: list[TaskMapping] = []
    problems: list[Problem] = []
    for text in texts:
        pattern, equals, target = text.partition("=")
        benchmark, _, split = target.partition(":")
        where = f"--task {text}"
        if not (pattern and equals and benchmark):
            form = "NAME=BENCHMARK or NAME=BENCHMARK:SPLIT"
            remedy = "Example: gsm8k_cot=gsm8k:test."
            problems.append(Problem(where, repr(text), form, remedy))
        elif benchmark not in benchmarks:
            known = f"one of {', '.join(sorted(benchmarks))}"
            problems.append(Problem(where, f"no benchmark {benchmark!r} in the report", known))
        elif split and split not in benchmarks[benchmark].splits:
            known = f"one of {', '.join(benchmarks[benchmark].splits)}"
            problems.append(Problem(where, f"no split {split!r} of {benchmark}", known))
        else:
            mappings.append(TaskMapping(pattern, benchmark, split or None))
    InputError.raise_for(problems)
    return mappings


def task_of(
    name: str, mappings: Sequence[TaskMapping], benchmarks: Mapping[str, Items]
) -> Task | None:
    """Find the benchmark of a task by `--task`, else the one that the task name begins with.

    None if there is no such benchmark.
    """
    core = _core(name)
    for mapping in mappings:
        if fnmatchcase(name, mapping.pattern) or fnmatchcase(core, mapping.pattern):
            config, setting = _part(core, benchmarks[mapping.benchmark])
            return Task(mapping.benchmark, config, mapping.split, setting)
    slug = f"{_slug(core)}_"
    names = [name for name in benchmarks if _slug(name) and slug.startswith(f"{_slug(name)}_")]
    if not names:
        return None
    benchmark = max(names, key=len)
    config, setting = _part(core, benchmarks[benchmark])
    return Task(benchmark, config, None, setting)


def _core(name: str) -> str:
    """Return the task of lighteval's suite|task|shots; some versions add a count or omit suite."""
    parts = [part for part in name.split("|") if part]
    words = [part for part in parts if not part.isdecimal()]
    return words[-1] if len(parts) > 1 and words else name


def _slug(name: str) -> str:
    return _SEPARATOR.sub("_", name.lower()).strip("_")


def _part(core: str, items: Items) -> tuple[str | None, str]:
    """Return the config that ends the task name, and the name without it."""
    slug = _slug(core)
    configs = {_slug(item.config): item.config for item in items.all if item.config}
    ending = [known for known in configs if known and slug.endswith(f"_{known}")]
    if not ending:
        return None, core
    chosen = max(ending, key=len)
    return configs[chosen], slug.removesuffix(f"_{chosen}")
