"""Read the first rows of a benchmark file, and name the columns of a table that does not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import pyarrow as pa

from decon_core.benchmarks.fields import Row
from decon_core.benchmarks.readers import first_cells, read_rows
from decon_core.corpus.formats.delimited import is_number
from decon_core.discovery.columns import Column
from decon_core.errors import InputError, Problem
from decon_core.storage.paths import cause_of, remedy_for

MOST_ROWS = 500  # read per file
_LETTERS = "ABCDEFGHIJ"
_FEW = 12  # different values of a column with labels


@dataclass(frozen=True)
class FirstRows:
    """The first rows of a file; `columns` are given if the file does not name its own."""

    rows: tuple[Row, ...]
    columns: tuple[str, ...] = ()


def first_rows(path: Path) -> FirstRows:
    """Read the first rows of a file; raise `InputError` if none can be read."""
    try:
        columns = _columns_of_headless(first_cells(path, MOST_ROWS))
        read = [*islice(read_rows(path, columns=columns), MOST_ROWS)]
    except (OSError, pa.ArrowException) as error:
        found, remedy = f"the file cannot be read ({cause_of(error)})", remedy_for(error)
        raise InputError(Problem(str(path), found, remedy=remedy)) from None
    rows = tuple(row for row in read if not isinstance(row, Problem))
    if not rows:
        broken = [problem for problem in read if isinstance(problem, Problem)][:1]
        raise InputError(broken or Problem(str(path), "the file has no rows"))
    return FirstRows(rows, columns)


def _columns_of_headless(lines: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """Return names for the columns of a table whose first line is a row already, otherwise none."""
    if not lines or not _is_row(lines[0], lines[1:]):
        return ()
    n_columns = len(lines[0])
    last = Column("", tuple(line[-1] for line in lines if line), len(lines))
    if n_columns == 2:
        return ("question", "answer")
    # The form in which MMLU was first published.
    if last.has_labels and 2 <= n_columns - 2 <= len(_LETTERS):
        return ("question", *_LETTERS[: n_columns - 2], "answer")
    return tuple(f"column_{number}" for number in range(1, n_columns + 1))


def _is_row(first: Sequence[str], others: Sequence[Sequence[str]]) -> bool:
    """Return whether cells hold values: prose, a number, or a label of the cells below."""
    if len({*first}) < len(first):
        return True
    for at, cell in enumerate(first):
        below = [line[at] for line in others if at < len(line)]
        is_label = cell in below and len({*below}) <= _FEW
        is_prose = Column("", (cell,), 1).is_asking or len(cell.split()) > 6
        if cell and (is_label or is_prose or is_number(cell.replace(",", ""))):
            return True
    return False
