"""The catalog: recipes of public benchmarks, named sets, and benchmarks that cannot be had.

The files beside this one have the recipes by kind; `sets.yaml` has the sets, and `refused.yaml` the
benchmarks whose items are private, each with the reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from decon_core.benchmarks.parse import YAML_LOADER, expanded, load_recipes
from decon_core.benchmarks.recipe import Recipe
from decon_core.config.validation import did_you_mean
from decon_core.errors import InputError, Problem

FOLDER = Path(__file__).parent
SET_MARK = "@"
LIKENESS = 0.75  # of a name to one of the catalog, to be suggested

Sets = Mapping[str, Iterable[str]]  # names, patterns and other sets (`@math`), by name of the set


def catalog() -> dict[str, Recipe]:
    """Return the recipes of the catalog by name."""
    return {name: recipe for path in _files() for name, recipe in load_recipes(path).items()}


@lru_cache(maxsize=1)
def entries_by_key() -> Mapping[str, dict[str, Any]]:
    """Return the entries as they are written; `quiz_{config}` stands for a recipe per config."""
    return {key: entry for path in _files() for key, entry in _read(path)["evals"].items()}


@lru_cache(maxsize=1)
def entries() -> Mapping[str, dict[str, Any]]:
    """Return the recipes of the catalog as they are written, by name."""
    return {name: entry for name, _, entry in expanded(entries_by_key())}


@lru_cache(maxsize=1)
def sets() -> Mapping[str, list[str]]:
    """Return the named sets of the catalog."""
    return dict(_read(FOLDER / "sets.yaml")["sets"])


@lru_cache(maxsize=1)
def refused() -> Mapping[str, str]:
    """Return the benchmarks that are not available to anyone, and why."""
    return dict(_read(FOLDER / "refused.yaml")["refused"])


class Selection(NamedTuple):
    """Benchmarks that were chosen: names of recipes, and those that cannot be had, with reasons."""

    names: tuple[str, ...]
    refused: Mapping[str, str]


def select(chosen: Iterable[str], *, own: Sets | None = None) -> Selection:
    """Return what `@math`, `gsm8k` or `global_mmlu_*` name; `own`: further sets, by name."""
    if not (chosen := [*chosen]):
        return Selection((), {})  # reading the catalog takes 0.05 s
    known = {**dict.fromkeys(entries()), **dict.fromkeys(refused())}
    all_sets = {**sets(), **(own or {})}
    names = [*dict.fromkeys(name for text in chosen for name in _members(text, all_sets, known))]
    return Selection(
        tuple(name for name in names if name not in refused()),
        {name: refused()[name] for name in names if name in refused()},
    )


def _members(
    text: str, all_sets: Sets, known: Iterable[str], within: tuple[str, ...] = ()
) -> Iterator[str]:
    """Yield the benchmarks that a set, a pattern or a name stands for."""
    name = text.removeprefix(SET_MARK)
    if text.startswith(SET_MARK) and name in all_sets:
        if name in within:
            found = f"a set that contains itself ({' in '.join((text, *within[::-1]))})"
            raise InputError(Problem(text, found, "names, patterns and other sets"))
        for member in all_sets[name]:
            yield from _members(member, all_sets, known, (*within, name))
        return
    matching = [benchmark for benchmark in known if fnmatchcase(benchmark, name)]
    if not matching:
        marked = [f"{SET_MARK}{set_name}" for set_name in all_sets]
        names = marked if text.startswith(SET_MARK) else [*known, *marked]
        remedy = did_you_mean(text, names, likeness=LIKENESS)
        expected = f"a benchmark of the catalog, or one of {', '.join(marked)}"
        remedy = remedy or "`decon-assets catalog` lists all."
        raise InputError(Problem("benchmarks", repr(text), expected, remedy))
    yield from matching


def as_recipe_file(selection: Selection) -> str:
    """Return chosen benchmarks as a recipe file, with the refused ones beside the recipes."""
    written = entries()
    content: dict[str, object] = {}
    if selection.refused:
        content["refused"] = dict(selection.refused)
    content["evals"] = {name: written[name] for name in selection.names}
    return yaml.safe_dump(content, sort_keys=False, allow_unicode=True)


def pinned(recipe_file: str, revisions: Mapping[str, str]) -> str:
    """Return a recipe file whose datasets of the hub are read at these revisions, by benchmark."""
    content = yaml.load(recipe_file, Loader=YAML_LOADER)  # noqa: S506 - a safe loader
    for name, revision in revisions.items():
        if "hf_path" in (entry := content["evals"][name]):
            entry["hf_revision"] = revision
    return yaml.safe_dump(content, sort_keys=False, allow_unicode=True)


def _files() -> list[Path]:
    without_recipes = ("sets.yaml", "refused.yaml")
    return [path for path in sorted(FOLDER.glob("*.yaml")) if path.name not in without_recipes]


def _read(path: Path) -> dict[str, Any]:
    content: dict[str, Any] = yaml.load(path.read_bytes(), Loader=YAML_LOADER)  # noqa: S506 - a safe loader
    return content
