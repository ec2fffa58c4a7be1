"""`decon-assets catalog --from`: recipes that registries of benchmarks declare."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from fnmatch import fnmatchcase
from pathlib import Path

from decon_assets.terminal.output import say, say_filled, say_next, warn
from decon_core.features.importers.benchmark import ImportedBenchmark, Status
from decon_core.features.importers.imported import import_recipes, recipe_file
from decon_core.wording import counted

_MAX_REFUSED = 5  # lines


def print_recipes(path: Path, names: Sequence[str], as_json: bool) -> int:
    """Print how many recipes a registry declares, or those of some names as YAML."""
    benchmarks = import_recipes(path)
    if names:
        chosen = [
            benchmark
            for benchmark in benchmarks
            if any(fnmatchcase(benchmark.name, name) for name in names)
        ]
        if not chosen:
            warn(f"no benchmark of {path} has the name {', '.join(names)}")
            return 2
        benchmarks = chosen
    if as_json:
        say(
            json.dumps(
                [asdict(benchmark) for benchmark in benchmarks], ensure_ascii=False, indent=1
            )
        )
    elif names:
        return _say_recipes(benchmarks)
    else:
        _say_counts(benchmarks)
    return 0


def _say_recipes(benchmarks: Sequence[ImportedBenchmark]) -> int:
    """Print recipes as YAML, and why benchmarks have none; the code is 1 if all are refused."""
    with_recipe = [benchmark for benchmark in benchmarks if benchmark.recipe is not None]
    refused = [benchmark for benchmark in benchmarks if benchmark.recipe is None]
    for benchmark in refused[:_MAX_REFUSED]:
        warn(f"{benchmark.name}: refused: {benchmark.why}")
    if len(refused) > _MAX_REFUSED:
        warn(f"and {len(refused) - _MAX_REFUSED:,} more refused benchmarks: --json lists all")
    if not with_recipe:
        return 1
    say(recipe_file(with_recipe).rstrip("\n"))
    n_proposed = sum(benchmark.status is Status.PROPOSED for benchmark in with_recipe)
    if n_proposed:
        unconfirmed = f"{counted(n_proposed, 'recipe')} unconfirmed"
        warn(f"{unconfirmed}: `decon-assets normalize FILE --show 3` prints what recipes read")
    return 0


def _say_counts(benchmarks: Sequence[ImportedBenchmark]) -> None:
    covered: set[str] = set()
    rows = []
    for status in Status:
        members = [benchmark for benchmark in benchmarks if benchmark.status is status]
        data_sets = {benchmark.data_set for benchmark in members} - covered - {""}
        covered |= data_sets
        rows.append([status, *_counts(members, data_sets), f"{len(members):,}"])
    say_filled(["", "tasks", "datasets", "benchmarks"], rows)
    for status in (Status.PROPOSED, Status.REFUSED):
        members = [benchmark for benchmark in benchmarks if benchmark.status is status]
        if members:
            say(f"\n{status}, because")
            lines = []
            for reason, _ in Counter(benchmark.reason for benchmark in members).most_common():
                of_reason = [benchmark for benchmark in members if benchmark.reason == reason]
                data_sets = {benchmark.data_set for benchmark in of_reason} - {""}
                lines.append([reason, *_counts(of_reason, data_sets), of_reason[0].name])
            say_filled(["reason", "tasks", "datasets", "for example"], lines)
    say_next('add names of benchmarks ("*": all) to print recipes, or --json to see every reason')


def _counts(benchmarks: Iterable[ImportedBenchmark], data_sets: set[str]) -> list[str]:
    n_tasks = sum(max(len(benchmark.origin.tasks), 1) for benchmark in benchmarks)
    return [f"{n_tasks:,}", f"{len(data_sets):,}"]
