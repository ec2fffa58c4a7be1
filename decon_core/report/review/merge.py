"""Verdict lines, one per matched text, and the merge of those of another file into the current."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from decon_core.decisions.verdicts import TAKEN_BACK, Verdict, Verdicts, time_of
from decon_core.errors import Problem
from decon_core.report.review.found import MatchedText

Line = Mapping[str, Any]


def verdict_line(matched: MatchedText, verdict: str, **said: object) -> Line:
    """Return the line for a verdict. `said`: note, by, at, match_type, confidence."""
    return {
        "pair": matched.text_id,
        "fingerprint": matched.fingerprint,
        "verdict": verdict,
        **{name: value for name, value in said.items() if value not in ("", None)},
        "benchmark": matched.benchmark,
        "split": matched.split,
        "instance_index": matched.instance_index,
        "shard": matched.shard_name,
        "row": matched.row,
    }


@dataclass
class Merged:
    """The lines to append, and counts of all imported lines."""

    lines: list[Line] = field(default_factory=list)  # new or changed verdicts
    n_new: int = 0
    n_changed: int = 0
    n_same: int = 0
    older: list[tuple[Line, Verdict]] = field(default_factory=list)  # left out; current verdicts
    overruled: list[tuple[Line, Verdict]] = field(default_factory=list)  # with the earlier verdicts
    n_unknown: int = 0  # matched texts that the report does not have


def merge_verdicts(lines: Sequence[Line], current: Verdicts, known: Iterable[str]) -> Merged:
    """Compare imported lines with the current verdicts; the last line of a matched text counts."""
    merged = Merged()
    text_ids = {*known}
    for text_id, line in {line["pair"]: line for line in lines}.items():
        before = current.by_text.get(text_id)
        verdict = (before.verdict, before.note) if before else (TAKEN_BACK, "")
        note = line.get("note")
        is_noted = isinstance(note, str) and line["verdict"] != TAKEN_BACK
        at, at_before = time_of(line.get("at")), time_of(before.at) if before else None
        if verdict == (line["verdict"], note if is_noted else ""):
            merged.n_same += 1
        elif before and at and at_before and at < at_before:
            merged.older.append((line, before))
        else:
            if before and before.verdict != line["verdict"]:
                merged.overruled.append((line, before))
            merged.n_changed += before is not None
            merged.n_new += before is None
            merged.lines.append(line)
        merged.n_unknown += text_id not in text_ids
    return merged


def future_dates(file: Path, lines: Iterable[Line]) -> Iterator[Problem]:
    """Yield the lines with a date after tomorrow, which no later verdict could replace."""
    limit = datetime.now(UTC) + timedelta(days=1)  # clocks and time zones differ
    for line in lines:
        if (at := time_of(line.get("at"))) and at > limit:
            where = f"{file}: at of {line['pair']}"
            yield Problem(where, line["at"], "a date that is not in the future", "Correct the date")
