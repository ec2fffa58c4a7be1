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
_WIDTH = 60  # of one column
_GAP = 3  # between columns that rich draws
_DIGIT = re.compile(r"\d")
# Colours of cells that are neither empty nor zero, by the head of their column.
_TONES = {
    "leaked": "red",
    "with a leak": "red",
    "no answer": "yellow",
    "review": "yellow",
    "problems": "red",
}


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


def say_table(
    heads: Sequence[str],
    rows: Sequence[Sequence[object]],
    *,
    spare: Sequence[str] = (),
    is_raw: bool = False,
) -> None:
    """Print a table: texts left-aligned, numbers right-aligned; "(nothing)" without rows.

    `spare`: columns that are left out where all their cells are empty or zero, the least important
    first. A terminal that is too narrow for the rest leaves out more of them, then the last
    columns, and names them below the table. `is_raw`: without thousands separators.
    """
    if not rows:
        say("(nothing)")
        return
    columns = [
        _Column(head, values, is_raw=is_raw)
        for head, *values in zip(heads, *rows, strict=True)
        if head not in spare or any(map(_is_something, values))
    ]
    if sys.stdout.isatty():
        _draw(columns, spare)
    else:
        say(_aligned(columns))


def say_rows(rows: Sequence[Mapping[str, object]], *, spare: Sequence[str] = ()) -> None:
    """Print a table of rows that have the same heads; `spare` as of `say_table`."""
    say_table([*rows[0]] if rows else (), [[*row.values()] for row in rows], spare=spare)


def say_filled(heads: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print a table without its empty columns."""
    say_table(heads, rows, spare=heads[::-1])


def say_next(*steps: str) -> None:
    """Print the last line of a command: what to do next."""
    for number, step in enumerate(steps):
        say(f"      {step}" if number else f"\nnext: {step}")


def without_control(text: object) -> str:
    """Replace control characters, except tabs and line ends, by U+FFFD."""
    return _CONTROL_CHARACTERS.sub("\N{REPLACEMENT CHARACTER}", str(text))


def silence_stdout() -> None:
    """Discard what is still printed, after the reader closed the pipe as `| head` does."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class _Column:
    """The cells of a column as text, and how they are shown."""

    def __init__(self, head: str, values: Sequence[object], *, is_raw: bool) -> None:
        self.head = head
        self.cells = [_plain(value, is_raw=is_raw) for value in values]
        self.is_number = isinstance(values[0], int | float)
        self.tones = [_TONES.get(head, "") if _is_something(value) else "" for value in values]
        # Only texts wrap, at spaces: never "4 of 24", nor an interval.
        self.may_wrap = any(cell.count(" ") and not _DIGIT.search(cell) for cell in self.cells)

    @property
    def least_width(self) -> int:
        words = [word for text in (self.head, *self.cells) for word in text.split()]
        return max(map(len, words if self.may_wrap else [*self.head.split(), *self.cells]))

    @property
    def width(self) -> int:
        return max(map(len, (self.head, *self.cells)))


def _draw(columns: Sequence[_Column], spare: Sequence[str]) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console()
    shown, left_out = _fitting(columns, spare, console.width)
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for column in shown:
        table.add_column(
            Text(column.head),
            justify="right" if column.is_number else "left",
            min_width=min(column.least_width, console.width),
            overflow="fold",
        )
    for number in range(len(columns[0].cells)):
        # Text, unlike a string, is not read as rich's markup.
        cells = [(without_control(column.cells[number]), column.tones[number]) for column in shown]
        table.add_row(*(Text(text, style=tone) for text, tone in cells))
    console.print(table)
    if left_out:
        console.print(Text(f"not shown at this width: {', '.join(left_out)}", style="dim"))


def _fitting(
    columns: Sequence[_Column], spare: Sequence[str], width: int
) -> tuple[list[_Column], list[str]]:
    """Return the columns that fit a width, and the names of the others."""
    shown = list(columns)
    order = [*spare, *(column.head for column in reversed(columns) if column.head not in spare)]
    left_out = []
    for head in order:
        if sum(column.least_width + _GAP for column in shown) - _GAP <= width or len(shown) == 1:
            break
        if kept := [column for column in shown if column.head != head]:
            left_out += [head] if len(kept) < len(shown) else []
            shown = kept
    return shown, left_out


def _aligned(columns: Sequence[_Column]) -> str:
    lines = ["  ".join("─" * column.width for column in columns)]
    texts = [[column.head, *column.cells] for column in columns]
    for row in zip(*texts, strict=True):
        cells = (
            text.rjust(column.width) if column.is_number else text.ljust(column.width)
            for text, column in zip(row, columns, strict=True)
        )
        lines.append("  ".join(cells).rstrip())
    lines[0], lines[1] = lines[1], lines[0]
    return "\n".join(lines)


def _is_something(value: object) -> bool:
    return value not in ("", "0", "0 %", "–", None) and value != 0


def _plain(value: object, *, is_raw: bool) -> str:
    if isinstance(value, float):
        text = f"{value:.4g}"
    elif isinstance(value, int) and not isinstance(value, bool) and not is_raw:
        text = f"{value:,}"
    else:
        text = "" if value is None else str(value)
    text = " ".join(text.split())
    return text if len(text) <= _WIDTH else f"{text[: _WIDTH - 1]}…"
