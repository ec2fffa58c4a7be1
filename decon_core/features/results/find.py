"""Find files of per-item results; the format is recognized by the fields of the rows.

Inspect logs are no rows, and recognized by their ending or first fields.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType

from decon_core.benchmarks.readers import is_readable, known_endings
from decon_core.errors import DeconError, InputError, Problem
from decon_core.features.results import harness, inspect_logs, lighteval, olmes, plain
from decon_core.features.results.per_item import ItemKey, Results, rows_of
from decon_core.storage.files import files_below
from decon_core.wording import counted

# Each has a NAME, tells by `fits` whether a row is of its form, and reads a file.
FORMATS = (harness, olmes, lighteval, plain)
_KNOWN = ", ".join(form.NAME for form in (*FORMATS, inspect_logs))


@dataclass
class ResultFiles:
    """The results that were read, and the files that were not."""

    results: list[Results] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    others: list[str] = field(default_factory=list)  # files without results, in folders
    earlier: list[str] = field(default_factory=list)  # files of runs before the latest


def find_results(
    paths: Sequence[Path],
    *,
    but: Collection[Path] = frozenset(),
    is_wanted: Callable[[str], bool] = lambda _: False,
) -> ResultFiles:
    """Read the results in files and below folders.

    `but`: files that are read otherwise. `is_wanted`: the tasks whose texts count also without a
    score. Raises `InputError` for a named file or a folder without results.
    """
    read = ResultFiles()
    errors: list[Problem] = []
    for path in dict.fromkeys(path.resolve() for path in paths):
        if not path.exists():
            errors.append(Problem(str(path), "no such file or folder", "per-item results"))
            continue
        files = files_below(path) if path.is_dir() else [path]
        left = [file for file in files if file not in but]
        n_before, n_problems_before = len(read.results), len(read.problems)
        problems = [_read(file, read, is_named=not path.is_dir()) for file in left]
        errors += filter(None, problems)
        if path.is_dir() and len(read.results) == n_before and len(left) == len(files):
            errors += read.problems[n_problems_before:]
            errors.append(Problem(str(path), "no per-item results", f"files of {_KNOWN}"))
    InputError.raise_for(errors)
    used = {str(file) for result in read.results for file in result.beside}
    read.others = [file for file in read.others if file not in used]
    _keep_latest(read)
    for result in read.results:
        if not is_wanted(result.task):
            result.keep_scored()
    return read


def _read(file: Path, read: ResultFiles, *, is_named: bool) -> Problem | None:
    """Add a file's results; return a problem if a named file has none."""
    if any(file == results.path for results in read.results):
        return None
    is_other = not is_readable(file) or (not is_named and file.suffix == ".json")
    if is_other and not inspect_logs.is_log(file):
        read.others.append(str(file))
        return _no_results(file, "another kind of file") if is_named else None
    try:
        chosen = _format_of(file)
        if not isinstance(chosen, Problem):
            read.results += chosen.read(file)
            return None
    except DeconError as error:
        read.problems += error.problems
        return None
    if is_named:
        return chosen
    if chosen.found.startswith((_REQUESTS, _FIELDS)):
        read.others.append(str(file))
    else:
        read.problems.append(chosen)
    return None


_REQUESTS, _FIELDS = "OLMES requests", "rows with the fields"


def _format_of(file: Path) -> ModuleType | Problem:
    """Return the format of a file; a problem if none of its rows can be read, or if it has none."""
    if inspect_logs.is_log(file):
        return inspect_logs
    first: Problem | None = None
    for _, row in rows_of(file):
        if isinstance(row, Problem):
            first = first or row
            continue
        if olmes.is_request(row):
            return _no_results(file, "OLMES requests (...-requests.jsonl)")
        for form in FORMATS:
            if form.fits(row):
                return form
        names = ", ".join(map(repr, list(row)[:12]))
        return _no_results(file, f"rows with the fields {names}")
    return first or _no_results(file, "no rows at all")


def _no_results(file: Path, what: str) -> Problem:
    expected = f"per-item results ({_KNOWN}) in files that end in .eval, {known_endings()}"
    return Problem(str(file), what, expected, "see docs/score-gap.md for an example of each.")


def _keep_latest(read: ResultFiles) -> None:
    """Keep only the latest of several runs of a model on a task, or items would count twice."""

    def key(result: Results) -> tuple[str, str, str, str | None, float | None]:
        return result.format, result.model, result.task, result.split, result.step

    latest: dict[tuple[str, str, str, str | None, float | None], str] = {}
    for result in read.results:
        latest[key(result)] = max(latest.get(key(result), ""), result.run)
    earlier = [result for result in read.results if result.run != latest[key(result)]]
    read.earlier = sorted({str(result.path) for result in earlier})
    read.results = [result for result in read.results if result.run == latest[key(result)]]
    asked: dict[object, set[ItemKey]] = defaultdict(set)
    for result in read.results:
        asked[key(result)] |= {*map(result.key_of, result.samples)}
    for result in earlier:
        n = len({*map(result.key_of, result.samples)} - asked[key(result)])
        if n:
            found = f"the latest run lacks {counted(n, 'item')} that this earlier run has"
            remedy = "Only the latest run counts. To use another run, pass only that run."
            read.problems.append(Problem(str(result.path), found, remedy=remedy))
