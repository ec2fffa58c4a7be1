"""Places that were given twice, or that lie in one another."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

from decon_core.errors import Problem


def named_twice(places: Sequence[tuple[str, Collection[Path]]]) -> list[Problem]:
    """A problem for each place with files that a place before it has as well."""
    problems = []
    for at, (place, files) in enumerate(places):
        own = {path.resolve() for path in files}
        for other, others in places[:at]:
            shared = own.intersection(path.resolve() for path in others)
            if shared and Path(place) == Path(other):
                problems.append(_problem(place, "the same place a second time"))
            elif shared:
                told = "a file" if len(shared) == 1 else f"{len(shared):,} files"
                problems.append(_problem(place, f"{told} of {other}, given too"))
    return problems


def _problem(place: str, found: str) -> Problem:
    return Problem(place, found, "places that share no file", "give each file once")
