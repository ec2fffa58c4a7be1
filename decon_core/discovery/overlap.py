"""Check that the given folders, files and globs share no file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from pathlib import Path

from decon_core.errors import Problem


def overlaps(places: Sequence[tuple[str, Collection[Path]]]) -> list[Problem]:
    """Return a problem for each place that shares files with an earlier place."""
    first: dict[Path, str] = {}  # first place that contains each file
    problems = []
    for place, files in places:
        resolved = {path.resolve() for path in files}
        shared = Counter(first[path] for path in resolved if path in first)
        for other, n_shared in sorted(shared.items()):
            files_of_both = "a file" if n_shared == 1 else f"{n_shared:,} files"
            found = f"{files_of_both} in it {'is' if n_shared == 1 else 'are'} also in {other}"
            if Path(place) == Path(other):
                found = "the path was given twice"
            problems.append(Problem(place, found, remedy="give each file once"))
        first |= dict.fromkeys(resolved - first.keys(), place)
    return problems
