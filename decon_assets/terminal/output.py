"""The output of commands: lines, tables and warnings.

Control characters are replaced in all of it, as names and texts come from files and may hold any. A
pipe gets plain text; a terminal gets tables that fit its width.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import textwrap
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest

Say = Callable[[str], None]  # prints a line

_CONTROL_CHARACTERS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_WIDTH = 60  # widest column
_GAP = "  "  # space between columns
_LONGEST_INTERVAL = 24
_DIGIT = re.compile(r"\d")
_NUMBER = re.compile(r"[-+<~ ]*[\d.,]+(e-?\d+)?( %)?|–|")
# Colours of cells that are neither empty nor zero, by the head of their column.
_TONES = {
    "leaked": "bad",
    "with a leak": "bad",
    "false alarms": "bad",
    "no answer": "open",
    "review": "open",
}
_COLOURS = {"bad": 31, "open": 33, "good": 32, "soft": 2}


def say(line: object = "", tone: str = "") -> None:
    """Print a line at once, in a colour if it has a tone: bad, open, good or soft."""
    _write(toned(without_control(line), tone))


def _write(line: str) -> None:
    """Print a line; without effect after the reader closed the pipe."""
    try:
        sys.stdout.write(f"{line}\n")
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
    left_out: list[str] = []
    if sys.stdout.isatty():
        columns, left_out = _fitted(columns, spare, shutil.get_terminal_size().columns)
    for line in _lines(columns):
        _write(line)
    if left_out:
        say(f"not shown (terminal too narrow): {', '.join(left_out)}", tone="soft")


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
    """A column of a table: its texts, and how they are shown."""

    def __init__(self, head: str, values: Sequence[object], *, is_raw: bool) -> None:
        self.head = head
        self.cells = [without_control(_plain(value, is_raw=is_raw)) for value in values]
        self.is_number = all(map(_NUMBER.fullmatch, self.cells))
        self.tones = [_TONES.get(head, "") if _is_something(value) else "" for value in values]
        # Only texts wrap, at spaces: never "4 of 24", nor an interval.
        short = [cell for cell in self.cells if _width(cell) <= _LONGEST_INTERVAL]
        may_wrap = not any(map(_DIGIT.search, short))
        words = [word for cell in self.cells for word in cell.split()] if may_wrap else self.cells
        self.least_width = max(map(_width, (*head.split(), *words)), default=0)
        self.width = max(map(_width, (head, *self.cells)))

    def wrapped(self, text: str) -> list[str]:
        return textwrap.wrap(text, self.width) if _width(text) > self.width else [text]

    def filled(self, text: str) -> str:
        space = " " * (self.width - _width(text))
        return f"{space}{text}" if self.is_number else f"{text}{space}"


def _fitted(
    columns: Sequence[_Column], spare: Sequence[str], width: int
) -> tuple[list[_Column], list[str]]:
    """Return the columns that fit a width, narrowed if need be, and the names of the others."""
    shown, left_out = list(columns), []
    order = [*spare, *(column.head for column in reversed(columns) if column.head not in spare)]
    for head in order:
        if len(shown) == 1 or _sum(column.least_width for column in shown) <= width:
            break
        if any(column.head == head for column in shown):
            shown = [column for column in shown if column.head != head]
            left_out.append(head)
    while _sum(column.width for column in shown) > width:
        widest = max(shown, key=lambda column: column.width - column.least_width)
        if widest.width == widest.least_width:
            break
        widest.width -= 1
    return shown, left_out


def _sum(widths: Iterable[int]) -> int:
    return sum(width + len(_GAP) for width in widths) - len(_GAP)


def _lines(columns: Sequence[_Column]) -> Iterator[str]:
    yield from _row([(column.head, "") for column in columns], columns)
    yield _GAP.join("─" * column.width for column in columns)
    for number in range(len(columns[0].cells)):
        cells = [(column.cells[number], column.tones[number]) for column in columns]
        yield from _row(cells, columns)


def _row(cells: Sequence[tuple[str, str]], columns: Sequence[_Column]) -> Iterator[str]:
    """Yield the lines of a row, more than one if a cell wraps."""
    wrapped = [column.wrapped(text) for (text, _), column in zip(cells, columns, strict=True)]
    for line in zip_longest(*wrapped, fillvalue=""):
        texts = [
            toned(column.filled(text), tone)
            for text, (_, tone), column in zip(line, cells, columns, strict=True)
        ]
        yield _GAP.join(texts).rstrip()


def toned(text: str, tone: str) -> str:
    """Return a text in a colour, if standard output is a terminal that shows colours."""
    has_colours = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    if not tone or not has_colours or os.environ.get("TERM") == "dumb":
        return text
    return f"\x1b[{_COLOURS[tone]}m{text}\x1b[0m"


def _width(text: str) -> int:
    """Return the number of places of a text in a terminal: two for wide characters."""
    if text.isascii():
        return len(text)
    return sum(1 + (unicodedata.east_asian_width(character) in "WF") for character in text)


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
