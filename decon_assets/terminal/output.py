"""The output of commands: lines, tables and warnings.

Control characters are replaced in all of it, as names and texts come from files and may hold any. A
pipe gets plain text; a terminal gets tables that fit its width.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence

Say = Callable[[str], None]  # prints a line

_CONTROL_CHARACTERS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_WIDTH = 60  # width of one column
_GAP = 3  # between columns that rich draws


def say(line: object = "") -> None:
    """Print a line at once; without effect after the reader closed the pipe."""
    try:
        sys.stdout.write(f"{without_control(line)}\n")
        sys.stdout.flush()  # show progress at once
    except BrokenPipeError:
        silence_stdout()  # the reader is gone, but the work goes on


def warn(line: object) -> None:
    """Print a line to standard error."""
    sys.stderr.write(f"{without_control(line)}\n")


def say_table(heads: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print a table: texts left-aligned, numbers right-aligned; "(nothing)" without rows."""
    if not rows:
        say("(nothing)")
        return
    cells = [[_plain(value) for value in row] for row in (heads, *rows)]
    are_numbers = [isinstance(value, int | float) for value in rows[0]]
    if sys.stdout.isatty():
        _draw(cells, are_numbers)
    else:
        say(_aligned(cells, are_numbers))


def say_rows(rows: Sequence[Mapping[str, object]]) -> None:
    """Print a table of rows that have the same heads."""
    say_table([*rows[0]] if rows else (), [[*row.values()] for row in rows])


def say_filled(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table without its empty columns."""
    kept = [at for at in range(len(heads)) if any(row[at] for row in rows)]
    say_table([heads[at] for at in kept], [[row[at] for at in kept] for row in rows])


def without_control(text: object) -> str:
    """Replace control characters, except tabs and line ends, by U+FFFD."""
    return _CONTROL_CHARACTERS.sub("\N{REPLACEMENT CHARACTER}", str(text))


def silence_stdout() -> None:
    """Discard what is still printed, after the reader closed the pipe as `| head` does."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _draw(cells: Sequence[Sequence[str]], are_numbers: Sequence[bool]) -> None:
    """Draw a table; where it has no room, a line for each cell."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console()
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    least_width = -_GAP
    for is_number, column in zip(are_numbers, zip(*cells, strict=True), strict=True):
        widths = [max(map(len, cell.split()), default=0) for cell in column]
        least_width += max(widths) + _GAP
        table.add_column(
            Text(column[0]),
            justify="right" if is_number else "left",
            no_wrap=max(widths) == max(map(len, column)),  # only texts of several words wrap
            overflow="fold",
        )
    for row in cells[1:]:
        # Text, unlike a string, is not read as rich's markup.
        table.add_row(*(Text(without_control(cell)) for cell in row))
    if least_width <= console.width:
        console.print(table)
        return
    for row in cells[1:]:
        for head, cell in zip(cells[0], row, strict=True):
            say(f"{head}: {cell}" if head else cell)
        say()


def _aligned(cells: Sequence[Sequence[str]], are_numbers: Sequence[bool]) -> str:
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    aligns = [str.rjust if is_number else str.ljust for is_number in are_numbers]
    lines = [
        "  ".join(
            align(text, width) for text, width, align in zip(row, widths, aligns, strict=True)
        ).rstrip()
        for row in cells
    ]
    lines.insert(1, "  ".join("─" * width for width in widths))
    return "\n".join(lines)


def _plain(value: object) -> str:
    text = f"{value:.4g}" if isinstance(value, float) else "" if value is None else str(value)
    text = " ".join(text.split())
    return text if len(text) <= _WIDTH else f"{text[: _WIDTH - 1]}…"
