"""Places that were given twice, or that lie in one another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from pathlib import Path

from decon_core.errors import Problem


def named_twice(places: Sequence[tuple[str, Collection[Path]]]) -> list[Problem]:
    """A problem for each place with files that a place before it has as well."""
    first: dict[Path, str] = {}  # the place that each file was found in
    problems = []
    for place, files in places:
        own = {path.resolve() for path in files}
        shared = Counter(first[path] for path in own if path in first)
        problems += [_problem(place, other, n) for other, n in sorted(shared.items())]
        first |= dict.fromkeys(own - first.keys(), place)
    return problems


def _problem(place: str, other: str, n_shared: int) -> Problem:
    told = "a file" if n_shared == 1 else f"{n_shared:,} files"
    is_same = Path(place) == Path(other)
    found = "the same place a second time" if is_same else f"{told} of {other}, given too"
    return Problem(place, found, "places that share no file", "give each file once")
