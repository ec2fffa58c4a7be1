"""The registry of published row layouts (`layouts.toml`), and paths of fields."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any

EVERYTHING = "*"  # a path that names every field
_TURNS = "turns"  # a table that is no layout


@dataclass(frozen=True)
class Layout:
    """How rows of a published layout are recognized, and which parts of their text a model sees."""

    name: str
    marks: tuple[str, ...]
    visible: tuple[str, ...] = (EVERYTHING,)
    hidden: tuple[str, ...] = ()
    is_closed: bool = False
    placeholder: str | None = None

    @property
    def alternatives(self) -> list[list[str]]:
        """The marks as lists of paths that have to hold text."""
        return [mark.split(" + ") for mark in self.marks]

    def is_visible(self, path: str) -> bool:
        """Return whether a model sees the text at a path."""
        return covers_any(self.visible, path) and not covers_any(self.hidden, path)

    def names(self, path: str) -> bool:
        """Return whether the layout says anything about a path."""
        return covers_any((*self.visible, *self.hidden), path)


UNKNOWN = Layout("unknown", marks=())  # every text of the row is visible


@cache
def _tables() -> dict[str, dict[str, Any]]:
    return tomllib.loads(files(__package__).joinpath("layouts.toml").read_text(encoding="utf-8"))


def turn_names(what: str) -> frozenset[str]:
    """Return the roles of a kind of turns, or names of fields: a list of the table `turns`."""
    return frozenset(_tables()[_TURNS][what])


@cache
def known_layouts() -> dict[str, Layout]:
    """Return all layouts by name, in the order in which they are tried."""
    layouts = {}
    for name, table in _tables().items():
        if name == _TURNS:
            continue
        lists = {key: tuple(value) for key, value in table.items() if isinstance(value, list)}
        layouts[name] = Layout(**{"name": name, **table, **lists})
    return layouts


def covers_any(patterns: Iterable[str], path: str) -> bool:
    return any(covers(pattern, path) for pattern in patterns)


def covers(pattern: str, path: str) -> bool:
    """Return whether a path is named by a pattern, or lies below what it names."""
    if EVERYTHING in pattern:
        return bool(_expression(pattern).match(path))
    return path.startswith(pattern) and path[len(pattern) : len(pattern) + 1] in ("", ".", "[")


def leads_to(path: str, pattern: str) -> bool:
    """Return whether what a pattern names may lie below a path."""
    keys, pattern_keys = path.split("."), pattern.split(".")
    return EVERYTHING in pattern or (
        len(keys) <= len(pattern_keys) and all(map(covers, keys, pattern_keys))
    )


@lru_cache(maxsize=1024)
def _expression(pattern: str) -> re.Pattern[str]:
    if pattern == EVERYTHING:
        return re.compile("")
    any_key = re.escape(pattern).replace(re.escape(EVERYTHING), r"[^.\[]+")
    return re.compile(rf"{any_key}(?=$|[.\[])")
