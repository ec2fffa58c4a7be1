"""Validation of parsed TOML values, shared by all sections of decon.toml.

All problems of a file are collected, so that they can be fixed at once.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence

from decon_core.config.names import check_names
from decon_core.errors import KeyNameError, Problem


class SettingsReader:
    """Validates values of one file and collects the problems."""

    def __init__(self, where: str) -> None:
        self._file = where
        self.problems: list[Problem] = []

    def wrong(self, where: str, found: object, expected: str, remedy: str = "") -> None:
        text = found if isinstance(found, str) else "nothing" if found is None else repr(found)
        self.problems.append(Problem(f"{self._file}: {where}", text, expected, remedy))

    def unknown(self, where: str, found: Iterable[str], known: Iterable[str]) -> None:
        """Add a problem for each unknown key."""
        for key in sorted(set(found) - set(known)):
            remedy = did_you_mean(key, sorted(known))
            self.wrong(where or "top level", f"unknown key {key!r}", "a known key", remedy)

    def choice(self, where: str, value: object, known: Sequence[str]) -> None:
        if value not in known:
            self.wrong(where, value, f"one of {', '.join(known)}", did_you_mean(value, known))

    def names(
        self, where: str, value: object, *, required: bool = False, known: Sequence[str] = ()
    ) -> tuple[str, ...] | None:
        """Return a list of distinct names, each one of `known` if that is not empty."""
        if value is None and not required:
            return None
        is_list = isinstance(value, list) and all(isinstance(one, str) and one for one in value)
        if not is_list or not value:
            self.wrong(where, value, "a list of one or more names in quotes")
            return None
        names = tuple(value) if isinstance(value, list) else ()
        self._once(where, names, "each name once")
        for name in names if known else ():
            if name not in known:
                self.wrong(where, repr(name), f"one of {', '.join(known)}")
        return names

    def named_choices(self, where: str, value: object, known: Sequence[str]) -> tuple[str, ...]:
        """Return a list of distinct names, each one of `known`."""
        names = self.names(where, value, required=True) or ()
        for name in names:
            self.choice(where, name, known)
        return names

    def named_tables(self, where: str, names: Sequence[str], *, what: str) -> None:
        """Check the names of tables, which become partition keys."""
        self._once(where, names, "a different name for each")
        self._differ_ignoring_case(where, names)
        try:
            check_names(names, what=f"{self._file}: {what}")
        except KeyNameError as error:
            self.problems.extend(error.problems)

    def _differ_ignoring_case(self, where: str, names: Sequence[str]) -> None:
        """Names are also folders, and some file systems ignore case."""
        spellings: dict[str, set[str]] = {}
        for name in names:
            spellings.setdefault(name.casefold(), set()).add(name)
        for same in spellings.values():
            if len(same) > 1:
                found = f"{' and '.join(map(repr, sorted(same)))}, which differ in case only"
                self.wrong(where, found, "names that differ on case-insensitive file systems")

    def _once(self, where: str, names: Sequence[str], expected: str) -> None:
        for name in sorted({name for name in names if names.count(name) > 1}):
            self.wrong(where, f"{name!r} more than once", expected)


def did_you_mean(found: object, known: Sequence[str]) -> str:
    """Suggest the closest known name; empty if none is close."""
    close = difflib.get_close_matches(str(found), known, n=1)
    return f"did you mean {close[0]!r}?" if close else ""
