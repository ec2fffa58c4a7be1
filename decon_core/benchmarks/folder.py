"""Read the records of all benchmarks at a path given on the command line.

The path is a recipe file, or a file or folder of normalized records in the JSONL format of AI2's
decon. A record names its benchmark (`eval_key`) and split, and a file may contain several.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from decon_core.benchmarks.benchmark import Benchmark
from decon_core.benchmarks.download import (
    Remote,
    cache_folder,
    is_remote,
    last_downloaded,
    pinned_commit,
)
from decon_core.benchmarks.files import part_order
from decon_core.benchmarks.normalize import normalize_files
from decon_core.benchmarks.normalized import benchmark_of
from decon_core.benchmarks.parse import load_recipes, refused_in
from decon_core.benchmarks.readers import is_readable, known_endings, read_rows
from decon_core.benchmarks.recipe import LocalSource, Recipe
from decon_core.benchmarks.records import (
    NotCovered,
    Version,
    current_version,
    fingerprint_of_records,
    recorded_revision,
    save_records,
)
from decon_core.config.validation import check_names
from decon_core.errors import DamagedError, InputError, Problem, RecipeError, RecordError, sentence
from decon_core.schemas import RECORDS
from decon_core.storage.paths import UnreachableError, is_hidden
from decon_core.storage.store import Store
from decon_core.storage.tables import read_parquet
from decon_core.wording import counted

_RECIPES = (".yaml", ".yml")
_FIELDS = "a record with eval_key, split, question, and optionally answer and passage"
_REMEDY = "For raw rows, write a recipe: docs/recipes.md"


def records_in(path: Path) -> dict[str, pa.Table]:
    """Return the records of each benchmark at a path, by name."""
    if _is_recipe_file(path):
        recipes = load_recipes(path)
        return {name: Benchmark(r, path.parent).fetched()[0] for name, r in recipes.items()}
    return _records_in_rows(path)


def saved_records(
    store: Store,
    path: Path,
    *,
    not_covered: list[NotCovered] | None = None,
    on_step: Callable[[str], None] = lambda _: None,
) -> tuple[Version, ...]:
    """Save the records of each benchmark at a path, and return their versions.

    The records of a recipe are normalized again only if the recipe or its data changed. A
    benchmark that cannot be downloaded is added to `not_covered`, if there is such a list and
    another benchmark can be read.
    """
    if _is_recipe_file(path):
        recipes = load_recipes(path).values()
        versions = _saved(store, path, [*recipes], not_covered, on_step)
        if not_covered is not None:
            not_covered += [NotCovered(*entry, is_refused=True) for entry in refused_in(path)]
        return versions
    tables = _records_in_rows(path)
    return tuple(save_records(store, name, table) for name, table in tables.items())


def _saved(
    store: Store,
    path: Path,
    recipes: Sequence[Recipe],
    not_covered: list[NotCovered] | None,
    on_step: Callable[[str], None],
) -> tuple[Version, ...]:
    versions: list[Version] = []
    failed: dict[str, RecipeError | RecordError | UnreachableError] = {}
    unreachable: dict[str, UnreachableError] = {}
    changed: list[str] = []
    n_cached = 0
    for recipe in recipes:
        remote = None
        try:
            if is_remote(recipe):
                is_offline = bool(unreachable or n_cached)
                remote = Remote.of(recipe, path.parent, is_offline=is_offline)
                n_cached += remote.is_offline
            said = f"{recipe.name}: {remote.words}" if remote else ""
            now = remote.revision if remote else ""
            before, records_before = _before(store, remote) if remote else ("", "")
            versions.append(Benchmark(recipe, path.parent).saved(store, remote))
            if said:
                on_step(said)
            if before not in ("", now) and records_before != versions[-1].fingerprint:
                changed.append(f"{recipe.name} (revision {now[:12]}, before {before[:12]})")
        except (RecipeError, RecordError, UnreachableError) as error:
            if isinstance(error, UnreachableError) and error.is_no_answer:
                unreachable[recipe.name] = error
            elif not_covered is not None and is_remote(recipe):
                failed[recipe.name] = error
            else:
                raise
    if unreachable:
        raise _no_answer(path, len(recipes), unreachable, on_step)
    if failed and not versions:
        raise RecipeError(Problem(name, _reason(error, path)) for name, error in failed.items())
    if n_cached:
        on_step(f"the network does not answer: {counted(n_cached, 'benchmark')} from the cache")
    if changed:
        on_step(f"different items than before: {', '.join(changed)}")
    if not_covered is not None:
        not_covered += [NotCovered(name, _reason(error, path)) for name, error in failed.items()]
    return tuple(versions)


def _no_answer(
    path: Path,
    n_recipes: int,
    unreachable: Mapping[str, UnreachableError],
    on_step: Callable[[str], None],
) -> UnreachableError:
    """Name the benchmarks that are not in the cache; return the error for all of them."""
    first = next(iter(unreachable.values()))
    if n_recipes == 1:
        return first
    on_step(f"not in the cache {cache_folder()}: {', '.join(unreachable)}")
    n = f"{len(unreachable):,} of {counted(n_recipes, 'benchmark')}"
    what = f"could not download {n}, which the cache does not contain"
    return UnreachableError(first.errno, f"{path}: {what}. The first: {first}")


def _before(store: Store, remote: Remote) -> tuple[str, str]:
    """Return the revision that was used before and the fingerprint of its records; or empty ones.

    It is the one in this store, or else the one that was downloaded last. A recipe that pins a
    commit has none.
    """
    name = remote.recipe.name
    if pinned_commit(remote.recipe):
        return "", ""
    if revision := recorded_revision(store, name):
        return revision, current_version(store, name).fingerprint
    cached = last_downloaded(remote.recipe)
    if cached and cached.stem != remote.revision:  # hashing its records takes time
        with suppress(DamagedError):
            return cached.stem, fingerprint_of_records(read_parquet(cached, schema=RECORDS))
    return "", ""


def _reason(error: RecipeError | RecordError | UnreachableError, path: Path) -> str:
    """Return why a benchmark was not downloaded; `path` is the file with its recipe."""
    if isinstance(error, UnreachableError):
        return str(error)
    first, *others = error.problems
    text = f"{first.found}. {sentence(first.remedy)}".strip()
    if isinstance(error, RecordError):  # rows are not as the recipe says
        text = f"{text} Correct the recipe in {path}."
    return f"{text} ({counted(len(others), 'more problem')})" if others else text


def _is_recipe_file(path: Path) -> bool:
    return path.suffix.lower() in _RECIPES and path.is_file()


def _records_in_rows(path: Path) -> dict[str, pa.Table]:
    """Return the records in files of rows that name their benchmarks."""
    try:
        places = places_of_records(_files(path))
    except RecordError as error:
        # The recipe files of a folder may be meant where it was given.
        candidates = sorted(file for file in path.glob("*") if file.suffix.lower() in _RECIPES)
        beside = [
            str(file)
            for file in candidates
            if file.is_file() and "evals:" in file.read_text(encoding="utf-8", errors="replace")
        ]
        if not beside:
            raise
        remedy = f"For raw rows, give the recipe file itself: {', '.join(beside)}"
        raise RecordError(replace(problem, remedy=remedy) for problem in error.problems) from None
    check_names(places, what=f"{path}: benchmark")
    tables = {}
    for name, by_split in sorted(places.items()):
        recipe = Recipe(name=name, source=LocalSource(), splits=tuple(by_split), eval_key=name)
        tables[name] = normalize_files(recipe, by_split)
    return tables


def _files(path: Path) -> list[Path]:
    if path.is_file() and is_readable(path):
        return [path]
    files = [file for file in path.rglob("*") if file.is_file() and is_readable(file)]
    files = [file for file in files if not is_hidden(file.relative_to(path).parts)]
    if not files:
        found = "no such file or folder" if not path.exists() else "no benchmark file"
        expected = f"a recipe file (.yaml), or records in files that end in {known_endings()}"
        raise InputError(Problem(str(path), found, expected))
    return sorted(files, key=part_order)


Places = dict[str, dict[str, list[Path]]]  # the files with rows, by benchmark and split


def places_of_records(files: Sequence[Path]) -> Places:
    """Return the benchmarks and splits in these files, as named by their rows."""
    places: Places = {}
    problems: list[Problem] = []
    for file in files:
        lacking: dict[str, list[int]] = {}  # rows, by the field that they lack
        for number, row in enumerate(read_rows(file), start=1):
            if isinstance(row, Problem):
                problems.append(row)
                continue
            name, split = benchmark_of(row), row.get("split")
            if not isinstance(name, str) or not isinstance(split, str):
                missing = "'split'" if isinstance(name, str) else "'eval_key'"
                lacking.setdefault(missing, []).append(number)
                continue
            files_of_split = places.setdefault(name, {}).setdefault(split, [])
            if file not in files_of_split[-1:]:
                files_of_split.append(file)
        for field, rows in lacking.items():
            later = f", also in {counted(len(rows) - 1, 'later row')}" if len(rows) > 1 else ""
            problems.append(
                Problem(f"{file} row {rows[0]}", f"no {field}{later}", _FIELDS, _REMEDY)
            )
    RecordError.raise_for(problems)
    return places
