"""What people said of single findings: a file of lines that only ever grows, and what it comes to.

    {"pair": "4f0c…", "fingerprint": "91ab…", "verdict": "template", "note": "a form letter"}

One JSON object a line. `pair` names what was found (schemas.py), wherever it stands, so a verdict
outlives scans; `fingerprint` is that of the record. Both and `verdict` have to be there. Beside
them may stand `note`, `by`, `at`, the place where the pair was seen, and anything else: no call
depends on those. Of several lines about a pair the last one counts; "none" takes a verdict back.
"""

from __future__ import annotations

import difflib
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

from decon_core.config.verdicts import CLEARING, LEAK, TAKEN_BACK, VERDICTS
from decon_core.errors import InputError, Problem

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"  # which some editors write
_KEY = re.compile(r"[0-9a-f]{16}")
_MERGE_MARKS = ("<<<<<<<", "=======", ">>>>>>>", "|||||||")
_MERGE_REMEDY = (
    "git could not merge two sides: remove the lines of marks and keep the others, of both sides; "
    "of several lines about a pair the last one counts"
)
_CUT_OFF_REMEDY = (
    "a program was stopped while it wrote: add the newline if the line is whole, else remove it"
)


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What stands of one pair."""

    pair: str
    fingerprint: str
    verdict: str
    note: str = ""
    by: str = ""
    at: str = ""


@dataclass(frozen=True)
class Verdicts:
    """All that stands, by pair, and which verdicts clear a match that reaches the threshold."""

    by_pair: Mapping[str, Verdict] = field(default_factory=dict)
    clears: tuple[str, ...] = CLEARING

    def __bool__(self) -> bool:
        return bool(self.by_pair)

    @cached_property
    def decisive(self) -> dict[str, bool]:
        """Per pair of which a person decided: whether it is a leak."""
        deciding = {LEAK, *self.clears}
        return {
            pair: one.verdict == LEAK
            for pair, one in sorted(self.by_pair.items())
            if one.verdict in deciding
        }

    def digest_of(self, pairs: Iterable[str]) -> str | None:
        """Of all that decides about these pairs; nothing, where nobody did. Doubts do not."""
        decided = {pair: self.decisive[pair] for pair in pairs if pair in self.decisive}
        return _digest(decided) if decided else None

    @property
    def digest(self) -> str:
        """Of all that stands, whether or not it decides: a report shows it with its notes."""
        return _digest([self.decisive, {pair: asdict(one) for pair, one in self.by_pair.items()}])


NO_VERDICTS = Verdicts()


def _digest(value: object) -> str:
    return sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]


def read_verdicts(path: Path, *, clears: Sequence[str] = CLEARING) -> Verdicts:
    """What stands in a file; nothing, if there is none. All that is wrong is said in one error."""
    standing: dict[str, Verdict] = {}
    for line in read_lines(path) if path.exists() else ():
        standing.pop(line["pair"], None)
        if line["verdict"] != TAKEN_BACK:
            standing[line["pair"]] = _verdict(line)
    return Verdicts(standing, tuple(clears))


def _verdict(line: Mapping[str, Any]) -> Verdict:
    texts = {
        field.name: line[field.name]
        for field in fields(Verdict)
        if isinstance(line.get(field.name), str)
    }
    return Verdict(**texts)


def read_lines(path: Path) -> list[dict[str, Any]]:
    """The lines of a file of verdicts, each checked; raises what is wrong with any of them."""
    lines = _content(path).removeprefix(_BYTE_ORDER_MARK).split(b"\n")
    problems: list[Problem] = []
    found = []
    if lines[-1]:
        where = f"{path}: line {len(lines)}"
        end = "no newline at its end"
        problems.append(Problem(where, end, "a whole line", _CUT_OFF_REMEDY))
    for number, line in enumerate(lines[:-1], 1):
        where = f"{path}: line {number}"
        value = _parsed(where, line, problems)
        if value is None:
            continue
        wrong = [*_wrong(where, value)]
        problems += wrong
        if not wrong:
            found.append(value)
    if problems:
        raise InputError(problems)
    return found


def _content(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH)  # or it may be seen with half a line
            return file.read()
    except OSError as error:
        found = error.strerror or str(error)
        raise InputError(Problem(str(path), found, "a file of verdicts")) from None


def _parsed(where: str, line: bytes, problems: list[Problem]) -> dict[str, Any] | None:
    """The object of a line; None where there is none, which may be a problem."""
    try:
        text = line.decode("utf-8").strip()
        if not text:
            return None
        value = json.loads(text)
    except ValueError as error:
        mark = line[:7].decode("ascii", "replace")
        remedy = _MERGE_REMEDY if mark in _MERGE_MARKS else ""
        told = f"a mark of a merge ({mark})" if remedy else f"no JSON in UTF-8 ({error})"
        problems.append(Problem(where, told, "a JSON object", remedy))
        return None
    if not isinstance(value, dict):
        problems.append(Problem(where, f"JSON, but {value!r:.60}", "a JSON object"))
        return None
    return value


def _wrong(where: str, value: Mapping[str, Any]) -> Iterator[Problem]:
    for name in ("pair", "fingerprint"):
        key = value.get(name)
        if not isinstance(key, str) or not _KEY.fullmatch(key):
            yield Problem(f"{where}: {name}", _shown(key), "16 hex digits, as in the report")
    known = (*VERDICTS, TAKEN_BACK)
    said = value.get("verdict")
    if said not in known:
        close = difflib.get_close_matches(str(said), known, n=1)
        remedy = f"did you mean {close[0]!r}?" if close else ""
        yield Problem(f"{where}: verdict", _shown(said), f"one of {', '.join(known)}", remedy)


def _shown(value: object) -> str:
    return "nothing" if value is None else f"{value!r:.60}"


def append_verdicts(path: Path, lines: Iterable[Mapping[str, Any]]) -> None:
    """Put lines at the end of a file of verdicts, whole and on the disk when this returns.

    Raises, and writes nothing, where a line is wrong or the last one of the file is cut off.
    """
    values = [*lines]
    problems = [one for value in values for one in _wrong(f"{path}: a new line", value)]
    if problems:
        raise InputError(problems)
    text = "".join(json.dumps(value, ensure_ascii=False) + "\n" for value in values)
    content = text.encode("utf-8", "backslashreplace")  # of half a character: an escape of JSON
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab+", buffering=0) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        _require_whole(file, path)
        # In one call: who is killed meanwhile has written all of it or nothing.
        if file.write(content) < len(content):
            raise OSError(errno.ENOSPC, "no space left for a whole line", str(path))
        os.fsync(file.fileno())


def _require_whole(file: IO[bytes], path: Path) -> None:
    """Raise where a file ends within a line: what is put behind it would be lost with it."""
    if not file.seek(0, os.SEEK_END):
        return
    file.seek(-1, os.SEEK_END)
    if file.read(1) != b"\n":
        found = "a last line without a newline"
        raise InputError(Problem(str(path), found, "whole lines", _CUT_OFF_REMEDY))
