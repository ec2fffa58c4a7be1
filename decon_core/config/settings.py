"""Parsed TOML to settings: what decon.toml and its mixtures have in common when they are read.

Takes nothing for granted, and collects all that is wrong, so that a person mends it in one go.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence

from decon_core.config.names import check_names
from decon_core.errors import KeyNameError, Problem


class SettingsReader:
    """Checks values of one file, and keeps what is wrong with them."""

    def __init__(self, where: str) -> None:
        self._file = where
        self.problems: list[Problem] = []

    def wrong(self, where: str, found: object, expected: str, remedy: str = "") -> None:
        text = found if isinstance(found, str) else "nothing" if found is None else repr(found)
        self.problems.append(Problem(f"{self._file}: {where}", text, expected, remedy))

    def unknown(self, where: str, found: Iterable[str], known: Iterable[str]) -> None:
        """Keys that nobody reads."""
        for key in sorted(set(found) - set(known)):
            remedy = did_you_mean(key, sorted(known))
            self.wrong(where or "top level", f"unknown key {key!r}", "a known key", remedy)

    def choice(self, where: str, value: object, known: Sequence[str]) -> None:
        if value not in known:
            self.wrong(where, value, f"one of {', '.join(known)}", did_you_mean(value, known))

    def names(
        self, where: str, value: object, *, required: bool = False, known: Sequence[str] = ()
    ) -> tuple[str, ...] | None:
        """A list of names, each once; of those that are known, if any are."""
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
        """A list of some of what there is to choose from, each once."""
        names = self.names(where, value, required=True) or ()
        for name in names:
            self.choice(where, name, known)
        return names

    def named_tables(self, where: str, names: Sequence[str], *, what: str) -> None:
        """Names that become partition keys, one for each table."""
        self._once(where, names, "a name of its own for each")
        self._differ_in_any_case(where, names)
        try:
            check_names(names, what=f"{self._file}: {what}")
        except KeyNameError as error:
            self.problems.extend(error.problems)

    def _differ_in_any_case(self, where: str, names: Sequence[str]) -> None:
        """Folders are called by them, and some file systems take "A" for "a"."""
        spelled: dict[str, set[str]] = {}
        for name in names:
            spelled.setdefault(name.casefold(), set()).add(name)
        for same in spelled.values():
            if len(same) > 1:
                found = f"{' and '.join(map(repr, sorted(same)))}, which differ in case only"
                self.wrong(where, found, "names that a file system cannot mix up")

    def _once(self, where: str, names: Sequence[str], expected: str) -> None:
        for name in sorted({name for name in names if names.count(name) > 1}):
            self.wrong(where, f"{name!r} more than once", expected)


def did_you_mean(found: object, known: Sequence[str]) -> str:
    """What to say of a name that nobody knows, where it is close to one that somebody does."""
    close = difflib.get_close_matches(str(found), known, n=1)
    return f"did you mean {close[0]!r}?" if close else ""
