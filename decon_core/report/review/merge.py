"""What a person says of a pair, as a line of the file; and lines that come from elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from decon_core.config.verdicts import TAKEN_BACK
from decon_core.decisions.verdicts import Verdicts
from decon_core.report.review.found import About

Line = Mapping[str, Any]


def verdict_line(pair: About, verdict: str, *, note: str = "", by: str = "", at: str = "") -> Line:
    """A line about a pair; what nobody said is not in it."""
    told = {"note": note, "by": by, "at": at}
    return {
        "pair": pair.pair,
        "fingerprint": pair.fingerprint,
        "verdict": verdict,
        **{name: value for name, value in told.items() if value},
        "benchmark": pair.benchmark,
        "split": pair.split,
        "instance_index": pair.instance_index,
        "shard": pair.shard_name,
        "row": pair.row,
    }


@dataclass
class Merged:
    """What lines from elsewhere come to beside the verdicts that stand."""

    lines: list[Line] = field(default_factory=list)  # that say something else than what stands
    n_new: int = 0
    n_changed: int = 0
    n_same: int = 0
    n_older: int = 0  # said before what stands: left out
    n_unknown: int = 0  # of those: of pairs that the report does not have


def merge_verdicts(lines: Sequence[Line], standing: Verdicts, known: Iterable[str]) -> Merged:
    """Of lines about one pair the last one counts, here as in any file of verdicts."""
    found = Merged()
    pairs = {*known}
    for pair, line in {line["pair"]: line for line in lines}.items():
        before = standing.by_pair.get(pair)
        said = (before.verdict, before.note) if before else (TAKEN_BACK, "")
        if said == _said(line):
            found.n_same += 1
        elif before and _is_before(line.get("at"), before.at):
            found.n_older += 1
        else:
            found.n_changed += before is not None
            found.n_new += before is None
            found.lines.append(line)
        found.n_unknown += pair not in pairs
    return found


def _is_before(at: object, other: str) -> bool:
    """Whether one time is known to be before another one."""
    first, second = _time(at), _time(other)
    return first is not None and second is not None and first < second


def _time(told: object) -> datetime | None:
    if not isinstance(told, str):
        return None
    try:
        time = datetime.fromisoformat(told)
    except ValueError:
        return None
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def _said(line: Line) -> tuple[str, str]:
    note = line.get("note")
    is_noted = isinstance(note, str) and line["verdict"] != TAKEN_BACK
    return line["verdict"], note if is_noted and note else ""
