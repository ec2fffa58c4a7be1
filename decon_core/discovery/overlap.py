"""Check that the given folders, files and globs share no file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from pathlib import Path

from decon_core.errors import Problem


def overlaps(places: Sequence[tuple[str, Collection[Path]]]) -> list[Problem]:
    """Return a problem for each place that shares files with an earlier one."""
    first: dict[Path, str] = {}  # by file: the first place that contains it
    problems = []
    for place, files in places:
        resolved = {path.resolve() for path in files}
        shared = Counter(first[path] for path in resolved if path in first)
        problems += [_problem(place, other, n) for other, n in sorted(shared.items())]
        first |= dict.fromkeys(resolved - first.keys(), place)
    return problems


def _problem(place: str, other: str, n_shared: int) -> Problem:
    files = "a file" if n_shared == 1 else f"{n_shared:,} files"
    is_same = Path(place) == Path(other)
    found = "the same place a second time" if is_same else f"{files} that {other} contains, too"
    return Problem(place, found, "places that share no file", "give each file once")
