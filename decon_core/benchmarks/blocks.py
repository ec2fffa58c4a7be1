"""Typed access to the mappings of a recipe file; collects all problems."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

from decon_core.benchmarks.fields import describe
from decon_core.benchmarks.yaml_source import Place, YamlSource
from decon_core.errors import Problem, RecipeError

_Kind = TypeVar("_Kind")


class Report:
    """Collects the problems of one file with their line numbers."""

    def __init__(self, path: Path, source: YamlSource) -> None:
        self._path = path
        self._lines = source.lines
        self.problems = source.problems

    def add(self, place: Place, found: str, expected: str, remedy: str = "") -> None:
        self.problems.append(Problem(self.where(place), found, expected, remedy))

    def where(self, place: Place) -> str:
        line = next(
            (self._lines[place[:n]] for n in range(len(place), -1, -1) if place[:n] in self._lines),
            1,
        )
        name = ".".join(str(part) for part in place[1:])
        return f"{self._path}:{line}: {name}" if name else f"{self._path}:{line}"

    def block(self, value: object, place: Place) -> Block | None:
        if isinstance(value, Mapping):
            return Block(value, place, self)
        self.add(place, describe(value), "an object (`key: value` lines)")
        return None

    def raise_all(self) -> None:
        if self.problems:
            raise RecipeError(self.problems)


class Block:
    """A mapping that returns values by type; `close` reports the keys that were never read."""

    def __init__(self, mapping: Mapping[object, object], place: Place, report: Report) -> None:
        self.mapping = mapping
        self.place = place
        self.report = report
        self._read_keys: set[str] = set()

    def __contains__(self, key: str) -> bool:
        self._read_keys.add(key)
        return key in self.mapping

    def get(self, key: object) -> object:
        self._read_keys.add(str(key))
        return self.mapping.get(key)

    def at(self, key: str) -> Place:
        return (*self.place, key)

    def wrong(self, key: str, expected: str, remedy: str = "") -> None:
        self.report.add(self.at(key), describe(self.get(key)), expected, remedy)

    def text(self, key: str) -> str | None:
        return self._typed(key, str, "text")

    def flag(self, key: str) -> bool | None:
        return self._typed(key, bool, "true or false")

    def count(self, key: str) -> int | None:
        value = self._typed(key, int, "a whole number")
        if isinstance(value, bool) or (value is not None and value < 0):
            self.wrong(key, "a whole number from 0 up")
            return None
        return value

    def _typed(self, key: str, kind: type[_Kind], expected: str) -> _Kind | None:
        value = self.get(key)
        if value is None or (isinstance(value, kind) and value != ""):
            return value
        remedy = "Write it in quotes." if isinstance(value, int | float) else ""
        self.wrong(key, expected, remedy if kind is str else "")
        return None

    def texts(self, key: str) -> tuple[str, ...]:
        texts: list[str] = []
        for item, place in self.entries(key) if self.get(key) is not None else []:
            if not isinstance(item, str) or not item:
                quotes = "Write it in quotes." if isinstance(item, int | float) else ""
                self.report.add(place, describe(item), "text", quotes)
            elif item in texts:
                self.report.add(place, f"{item!r} a second time", "every entry once")
            else:
                texts.append(item)
        return tuple(texts)

    def entries(self, key: str) -> list[tuple[object, Place]]:
        """Return the elements of a list, or a single value as a list, with their places."""
        value = self.get(key)
        if not isinstance(value, list):
            return [(value, self.at(key))]
        return [(item, (*self.at(key), position)) for position, item in enumerate(value)]

    def required_text(self, key: str, expected: str) -> str:
        """Return the text; if missing, report it and return "" (no recipe is built then)."""
        if self.get(key) is None:
            self.report.add(self.place, f"no {key!r}", f"{key}: {expected}")
        return self.text(key) or ""

    def close(self) -> None:
        for key in self.mapping:
            if str(key) in self._read_keys:
                continue
            close = difflib.get_close_matches(str(key), sorted(self._read_keys), n=1)
            self.report.add(
                (*self.place, str(key)),
                f"the unknown key {key!r}",
                f"one of {', '.join(sorted(self._read_keys))}",
                f"Did you mean {close[0]!r}?" if close else "",
            )
