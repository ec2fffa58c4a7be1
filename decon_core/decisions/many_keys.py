"""One path for the fields of an object with many keys, which are data such as names of users."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from decon_core.config.layouts import EVERYTHING
from decon_core.corpus.text_values import REASONS

_MOST_KEYS = 20  # of an object that are named
_MOST_COLUMNS = 200  # of a row that are named


def grouped_paths(paths: Iterable[str]) -> Mapping[str, str]:
    """Return the path under which each of these is listed: `m.*` in place of many below `m`."""
    split = {path: _split(path) for path in paths}
    keys: dict[tuple[str, ...], set[str]] = {}
    for steps, _ in split.values():
        for at, key in enumerate(steps):
            keys.setdefault(steps[:at], set()).add(key)
    many = {
        above
        for above, below in keys.items()
        if len(below) > (_MOST_KEYS if above else _MOST_COLUMNS)
    }
    return {path: _grouped(*parts, many) for path, parts in split.items()} if many else {}


def _split(path: str) -> tuple[tuple[str, ...], list[str]]:
    """Return the keys of a path, and its ending if it is of encoded text."""
    keys = path.split(".")
    n_endings = keys[-1] in REASONS
    return tuple(keys[: len(keys) - n_endings]), keys[len(keys) - n_endings :]


def _grouped(steps: tuple[str, ...], ending: list[str], many: set[tuple[str, ...]]) -> str:
    for at in range(len(steps)):
        if steps[:at] in many:
            steps = (*steps[:at], EVERYTHING)
            break
    return ".".join([*steps, *ending])


def path_to_ignore(path: str) -> str:
    """Return the shortest setting that leaves unread what is listed under a path: `m` for `m.*`."""
    steps, _ = _split(path)
    is_of_many = len(steps) > 1 and steps[-1] == EVERYTHING
    return ".".join(steps[:-1]) if is_of_many else path
