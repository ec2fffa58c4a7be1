"""JSON Lines files that are only appended to, by people and by programs.

A file is read as a whole, with all its problems. A line is on disk when `append_objects` returns.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from decon_core.errors import InputError, Problem

Check = Callable[[str, Mapping[str, Any]], Iterator[Problem]]  # place and value of a line

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"  # some editors write it
_MERGE_MARKS = ("<<<<<<<", "=======", ">>>>>>>", "|||||||")
_MERGE_REMEDY = (
    "git could not merge the file: remove the conflict markers and keep the lines of both sides; "
    "of several lines about the same thing, the last one counts"
)
_CUT_OFF_REMEDY = (
    "a program was stopped while writing it: add a newline if the line is complete, or delete it"
)


def read_objects(
    path: Path, what: str, check: Check, *, drops_torn_line: bool = False
) -> list[dict[str, Any]]:
    """Read and check the lines of a file; raise InputError with all problems.

    `drops_torn_line`: leave out a last line without a newline, which a killed program left.
    """
    try:
        with path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH)  # avoids reading a line while it is written
            content = file.read()
    except OSError as error:
        raise InputError(Problem(str(path), error.strerror or str(error), what)) from None
    lines = content.removeprefix(_BYTE_ORDER_MARK).split(b"\n")
    problems: list[Problem] = []
    values = []
    if lines[-1] and not drops_torn_line:
        where, found = f"{path}: line {len(lines)}", "no newline at its end"
        problems.append(Problem(where, found, "a complete line", _CUT_OFF_REMEDY))
    for number, line in enumerate(lines[:-1], 1):
        where = f"{path}: line {number}"
        value = _parse(where, line, problems)
        if value is None:
            continue
        problems += check(where, value)
        values.append(value)
    InputError.raise_for(problems)
    return values


def _parse(where: str, line: bytes, problems: list[Problem]) -> dict[str, Any] | None:
    """Return the object of a line; None if it is empty or invalid, which adds a problem."""
    try:
        text = line.decode("utf-8").strip()
        if not text:
            return None
        value = json.loads(text)
        if "\\ud" in text.lower():  # perhaps half a character, which no product could hold
            whole = json.dumps(value, ensure_ascii=False).encode("utf-16", "surrogatepass")
            value = json.loads(whole.decode("utf-16", "replace"))
    except ValueError as error:
        mark = line[:7].decode("ascii", "replace")
        remedy = _MERGE_REMEDY if mark in _MERGE_MARKS else ""
        found = (
            f"a merge conflict marker ({mark})" if remedy else f"invalid JSON or UTF-8 ({error})"
        )
        problems.append(Problem(where, found, "a JSON object", remedy))
        return None
    if not isinstance(value, dict):
        problems.append(Problem(where, f"JSON, but {value!r:.60}", "a JSON object"))
        return None
    return value


def append_objects(
    path: Path, lines: Iterable[Mapping[str, Any]], check: Check, *, drops_torn_line: bool = False
) -> None:
    """Append lines to a file, synced to disk when this returns.

    Raises InputError and writes nothing if a line is invalid or the file ends within a line.
    `drops_torn_line`: remove such an end instead.
    """
    values = [*lines]
    problems = [problem for value in values for problem in check(f"{path}: a new line", value)]
    InputError.raise_for(problems)
    text = "".join(json.dumps(value, ensure_ascii=False) + "\n" for value in values)
    content = text.encode("utf-8", "backslashreplace")  # lone surrogates become JSON escapes
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab+", buffering=0) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        if n_torn := _length_of_torn_line(file):
            if not drops_torn_line:
                found = "a last line without a newline"
                raise InputError(Problem(str(path), found, "complete lines", _CUT_OFF_REMEDY))
            file.truncate(file.seek(0, os.SEEK_END) - n_torn)
        # A single call: a process that is killed has written everything or nothing.
        if file.write(content) < len(content):
            raise OSError(errno.ENOSPC, "no space left for a complete line", str(path))
        os.fsync(file.fileno())


def _length_of_torn_line(file: IO[bytes]) -> int:
    """Return how many bytes follow the last newline: the next line would be lost with them."""
    size = file.seek(0, os.SEEK_END)
    tail, at = b"", size
    while at and b"\n" not in tail:
        at = max(0, at - 4096)
        file.seek(at)
        tail = file.read(size - at)
    return len(tail) - (tail.rfind(b"\n") + 1)
