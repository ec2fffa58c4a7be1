"""The benchmarks that a configuration selects: recipes with the folders of their files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from decon_core.benchmarks.benchmark import Benchmark
from decon_core.benchmarks.catalog import Selection, catalog, select
from decon_core.benchmarks.files import files_by_split, local_paths
from decon_core.benchmarks.parse import load_recipes, refused_in
from decon_core.benchmarks.recipe import Recipe
from decon_core.benchmarks.records import NotCovered
from decon_core.config.load import Config
from decon_core.config.mixtures import unknown_names
from decon_core.config.policy import unknown_benchmarks
from decon_core.config.validation import did_you_mean
from decon_core.errors import ConfigError, InputError, Problem, RecipeError
from decon_core.storage.paths import is_same_system, scheme_of


def benchmarks_of(config: Config) -> dict[str, Benchmark]:
    """Return the benchmarks that the configuration selects, by name, in the order of the files.

    Raises ConfigError for duplicate names, and for settings that name unknown benchmarks or
    storage options without a path.
    """
    declared: dict[str, Benchmark] = {}
    problems: list[Problem] = []
    for path in config.recipes:
        for name, recipe in load_recipes(path).items():
            if name in declared:
                where = f"{path}: evals.{name}"
                problems.append(Problem(where, "a duplicate name", "a name used once"))
            declared[name] = Benchmark(recipe, path.parent)
    for name in _selected(config).names:
        if name in declared:
            where = f"evals.catalog: {name}"
            problems.append(Problem(where, "a duplicate name", "a name used once"))
        declared[name] = Benchmark(catalog()[name], config.folder)
    chosen = config.evals.benchmarks
    selected = tuple(declared) if chosen is None else chosen
    problems += _unknown("evals.benchmarks", selected, tuple(declared))
    problems += _unknown("term_weights.benchmarks", config.term_weights.benchmarks or (), selected)
    problems += _unknown("evals.required", config.evals.required, selected)
    for table, settings in config.tables.items():
        problems += _unknown(f"{table}.benchmarks", settings.named_benchmarks, selected)
    recipes = {name: declared[name].recipe for name in selected if name in declared}
    splits = {name: recipe.splits for name, recipe in recipes.items()}
    problems += unknown_names(config.mixtures, splits)
    problems += unknown_benchmarks(config.policy, splits)
    for settings in config.tables.values():
        problems += settings.problems_with(recipes)
    problems += _unused_options(config, declared.values())
    ConfigError.raise_for(problems)
    return {name: declared[name] for name in selected}


def refused_of(config: Config) -> tuple[NotCovered, ...]:
    """Return the benchmarks that a configuration asks for, and that are not available to anyone."""
    refused = [entry for path in config.recipes for entry in refused_in(path)]
    refused += _selected(config).refused.items()
    return tuple(NotCovered(name, why, is_refused=True) for name, why in refused)


def _selected(config: Config) -> Selection:
    """Return the benchmarks of the catalog that a configuration names."""
    try:
        return select(config.evals.catalog, own=config.evals.sets)
    except InputError as error:
        problems = (replace(problem, where="evals.catalog") for problem in error.problems)
        raise ConfigError(problems) from None


def _unknown(setting: str, names: Iterable[str], known: Sequence[str]) -> list[Problem]:
    expected = f"one of {', '.join(known)}"
    return [
        Problem(setting, repr(name), expected, did_you_mean(name, known))
        for name in names
        if name not in known
    ]


def _unused_options(config: Config, benchmarks: Iterable[Benchmark]) -> list[Problem]:
    """Return storage options of file systems that no path of the configuration or recipes uses."""
    if not config.storage:
        return []
    paths = [source.path for source in config.corpus.sources]
    paths += [*map(str, config.recipes), str(config.kept or "")]
    paths += [path for benchmark in benchmarks for path in local_paths(benchmark.recipe)]
    used = sorted({scheme_of(path) for path in paths} - {""})
    return [
        Problem(
            f"storage.{scheme}",
            "options of a file system that no path uses",
            f"a scheme in use: {', '.join(used)}"
            if used
            else "no options, because no path is a URL",
            did_you_mean(scheme.lower(), used),
        )
        for scheme in config.storage
        if not any(is_same_system(scheme, other) for other in used)
    ]


def benchmark_of(config: Config, name: str) -> Benchmark:
    """Return a benchmark by name; raise ConfigError if unknown, as for a mistyped partition key."""
    benchmarks = benchmarks_of(config)
    if name not in benchmarks:
        expected = f"one of {', '.join(benchmarks)}"
        remedy = "Add it to the recipes, or delete the partition"
        found = "no recipe with this name in the configuration"
        raise ConfigError(Problem(f"benchmark {name!r}", found, expected, remedy))
    return benchmarks[name]


def benchmark_files(config: Config) -> Iterator[Path]:
    """Yield the files of all recipes; only recipe files are opened.

    A recipe that is invalid or lacks a file has none: reading it later raises the error.
    """
    for path in config.recipes:
        recipes: Iterable[Recipe] = ()
        with suppress(RecipeError):
            recipes = load_recipes(path).values()
        for recipe in recipes:
            with suppress(RecipeError):
                for files in files_by_split(recipe, base=path.parent).values():
                    yield from files
