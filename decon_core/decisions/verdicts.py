"""Reads and appends the verdicts file: decisions of reviewers on single pairs.

    {"pair": "4f0c…", "fingerprint": "91ab…", "verdict": "template", "note": "a form letter"}

One JSON object per line; lines are only appended. `pair` is the name of a record and the words
found of it (schemas.py), independent of the document, so a verdict stays valid after new scans;
`fingerprint` is that of the record. These two and `verdict` are required. Optional are `note`,
`by`, `at`, the place where the pair was seen, and any other key; no decision depends on them. The
last line about a pair counts; the verdict "none" withdraws an earlier one.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import IO, Any

from decon_core.config.validation import did_you_mean
from decon_core.config.verdicts import CLEARING, LEAK, TAKEN_BACK, VERDICTS
from decon_core.errors import InputError, Problem

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"  # some editors write it
_KEY = re.compile(r"[0-9a-f]{16}")
_MERGE_MARKS = ("<<<<<<<", "=======", ">>>>>>>", "|||||||")
_MERGE_REMEDY = (
    "git could not merge the file: remove the conflict markers and keep the lines of both sides; "
    "the last line about a pair counts"
)
_CUT_OFF_REMEDY = (
    "a program was stopped while writing: add the newline if the line is complete, else remove it"
)


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """The current verdict on one pair."""

    pair: str
    fingerprint: str
    verdict: str
    note: str = ""
    by: str = ""
    at: str = ""


@dataclass(frozen=True)
class Verdicts:
    """The current verdicts by pair; `clears` lists those that clear a match above the threshold."""

    by_pair: Mapping[str, Verdict] = field(default_factory=dict)
    clears: tuple[str, ...] = CLEARING

    def __bool__(self) -> bool:
        return bool(self.by_pair)

    @cached_property
    def decisive(self) -> dict[str, bool]:
        """Whether a pair is a leak, for each pair with a deciding verdict."""
        deciding = {LEAK, *self.clears}
        return {
            pair: one.verdict == LEAK
            for pair, one in sorted(self.by_pair.items())
            if one.verdict in deciding
        }

    def digest_of(self, pairs: Iterable[str]) -> str | None:
        """Return a digest of the deciding verdicts on these pairs; None if there are none."""
        decided = {pair: self.decisive[pair] for pair in pairs if pair in self.decisive}
        return _digest(decided) if decided else None

    @property
    def digest(self) -> str:
        """Digest of all verdicts with their notes, deciding or not, as a report shows them all."""
        return _digest([self.decisive, {pair: asdict(one) for pair, one in self.by_pair.items()}])


NO_VERDICTS = Verdicts()


def _digest(value: object) -> str:
    return sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]


def read_verdicts(path: Path, *, clears: Sequence[str] = CLEARING) -> Verdicts:
    """Read the current verdicts of a file, which may be missing.

    Raises InputError with all problems of the file.
    """
    current: dict[str, Verdict] = {}
    names = [field.name for field in fields(Verdict)]
    for line in read_lines(path) if path.exists() else ():
        current.pop(line["pair"], None)
        if line["verdict"] != TAKEN_BACK:
            texts = {name: line[name] for name in names if isinstance(line.get(name), str)}
            current[line["pair"]] = Verdict(**texts)
    return Verdicts(current, tuple(clears))


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Read and validate the lines of a verdicts file; raise InputError with all problems."""
    try:
        with path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH)  # avoids reading a line while it is written
            content = file.read()
    except OSError as error:
        found = error.strerror or str(error)
        raise InputError(Problem(str(path), found, "a verdicts file")) from None
    lines = content.removeprefix(_BYTE_ORDER_MARK).split(b"\n")
    problems: list[Problem] = []
    values = []
    if lines[-1]:
        where = f"{path}: line {len(lines)}"
        found = "no newline at its end"
        problems.append(Problem(where, found, "a complete line", _CUT_OFF_REMEDY))
    for number, line in enumerate(lines[:-1], 1):
        where = f"{path}: line {number}"
        value = _parse(where, line, problems)
        if value is None:
            continue
        invalid = [*_problems_of(where, value)]
        problems += invalid
        if not invalid:
            values.append(value)
    if problems:
        raise InputError(problems)
    return values


def _parse(where: str, line: bytes, problems: list[Problem]) -> dict[str, Any] | None:
    """Return the object of a line; None if it is empty or invalid, which adds a problem."""
    try:
        text = line.decode("utf-8").strip()
        if not text:
            return None
        value = json.loads(text)
    except ValueError as error:
        mark = line[:7].decode("ascii", "replace")
        remedy = _MERGE_REMEDY if mark in _MERGE_MARKS else ""
        found = f"a merge conflict marker ({mark})" if remedy else f"no JSON in UTF-8 ({error})"
        problems.append(Problem(where, found, "a JSON object", remedy))
        return None
    if not isinstance(value, dict):
        problems.append(Problem(where, f"JSON, but {value!r:.60}", "a JSON object"))
        return None
    return value


def _problems_of(where: str, value: Mapping[str, Any]) -> Iterator[Problem]:
    for name in ("pair", "fingerprint"):
        key = value.get(name)
        if not isinstance(key, str) or not _KEY.fullmatch(key):
            yield Problem(f"{where}: {name}", _format(key), "16 hex digits, as in the report")
    known = (*VERDICTS, TAKEN_BACK)
    verdict = value.get("verdict")
    if verdict not in known:
        expected, remedy = f"one of {', '.join(known)}", did_you_mean(verdict, known)
        yield Problem(f"{where}: verdict", _format(verdict), expected, remedy)


def _format(value: object) -> str:
    return "nothing" if value is None else f"{value!r:.60}"


def append_verdicts(path: Path, lines: Iterable[Mapping[str, Any]]) -> None:
    """Append lines to a verdicts file, synced to disk when this returns.

    Raises InputError and writes nothing if a line is invalid or the file ends within a line.
    """
    values = [*lines]
    problems = [one for value in values for one in _problems_of(f"{path}: a new line", value)]
    if problems:
        raise InputError(problems)
    text = "".join(json.dumps(value, ensure_ascii=False) + "\n" for value in values)
    content = text.encode("utf-8", "backslashreplace")  # lone surrogates become JSON escapes
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab+", buffering=0) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        _require_complete(file, path)
        # A single call: a process that is killed has written everything or nothing.
        if file.write(content) < len(content):
            raise OSError(errno.ENOSPC, "no space left for a complete line", str(path))
        os.fsync(file.fileno())


def _require_complete(file: IO[bytes], path: Path) -> None:
    """Raise InputError if the file ends within a line: the next line would be lost with it."""
    if not file.seek(0, os.SEEK_END):
        return
    file.seek(-1, os.SEEK_END)
    if file.read(1) != b"\n":
        found = "a last line without a newline"
        raise InputError(Problem(str(path), found, "complete lines", _CUT_OFF_REMEDY))
