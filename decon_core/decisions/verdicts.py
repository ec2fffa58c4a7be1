"""Reads and appends the verdicts file: decisions of reviewers on single matched texts.

    {"pair": "4f0c…", "fingerprint": "91ab…", "verdict": "template", "note": "a form letter"}

One JSON object per line; lines are only appended. `pair` is the `text_id` of a matched text
(schemas.py), and keeps this name in files so that those of every release can be read. It does not
depend on the document, so a verdict stays valid after new scans; `fingerprint` is that of the
record. These two and `verdict` are required. Optional are `note`, `by`, `at`, `match_type` and
`confidence` (annotations.py), the place where the text was seen, and any other key; no decision
depends on them. The last line about a text counts; the verdict "none" withdraws an earlier one.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import UTC, datetime
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

from decon_core.config.validation import did_you_mean
from decon_core.decisions.annotations import (
    KEYS,
    Annotation,
    Annotations,
    judgement_problems,
    key_problems,
    labels_of,
    shown,
)
from decon_core.errors import Problem
from decon_core.storage.line_log import append_objects, read_objects

LEAK = "leak"
CLEARING = ("template", "common source")  # may mark a match as no leak
VERDICTS = (LEAK, *CLEARING, "unsure")
TAKEN_BACK = "none"

Judged = Literal["leak", "review"]  # what a duplicate is that only a file or a model judged


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """The current verdict on one matched text."""

    pair: str  # named as in the file: the id of the matched text
    fingerprint: str
    verdict: str
    note: str = ""
    by: str = ""
    at: str = ""
    match_type: str = ""
    confidence: float | None = None

    @property
    def label(self) -> Annotation:
        """The verdict as an annotation: a leak is a semantic duplicate; unsure is unjudged."""
        is_unsure = self.verdict not in (LEAK, *CLEARING)
        return Annotation(
            pair=self.pair,
            fingerprint=self.fingerprint,
            is_sd=None if is_unsure else self.verdict == LEAK,
            kind="person",
            by=self.by,
            at=self.at,
            match_type=self.match_type,
            confidence=self.confidence,
            reasoning=self.note,
            unjudged="a person is unsure" if is_unsure else "",
        )


@dataclass(frozen=True)
class Verdicts:
    """The current verdicts by `text_id`; `clears`: those that clear a match above the threshold.

    A judgement of a file or a model decides about what no score proves, if no person decided.
    """

    by_text: Mapping[str, Verdict] = field(default_factory=dict)
    clears: tuple[str, ...] = CLEARING
    judged: Mapping[str, bool] = field(default_factory=dict)  # whether a text is a duplicate
    judged_is: Judged = "leak"

    def __bool__(self) -> bool:
        return bool(self.by_text or self.judged)

    def with_judgements(self, annotations: Annotations, judged_is: Judged) -> Verdicts:
        """Return them with the judgements of all matched texts about which no person is sure."""
        said = labels_of({}, annotations)
        judged = {
            text_id: label.is_sd
            for text_id, label in said.items()
            if label.is_sd is not None
            and (text_id not in self.by_text or self.by_text[text_id].label.is_sd is None)
        }
        return replace(self, judged=judged, judged_is=judged_is)

    @cached_property
    def decisive(self) -> dict[str, bool]:
        """Whether a matched text is a leak, for each one with a deciding verdict."""
        deciding = {LEAK, *self.clears}
        return {
            text_id: latest.verdict == LEAK
            for text_id, latest in sorted(self.by_text.items())
            if latest.verdict in deciding
        }

    @property
    def labels(self) -> dict[str, Annotation]:
        """What people say of matched texts, as annotations."""
        return {text_id: verdict.label for text_id, verdict in self.by_text.items()}

    def may_decide(self, *, never_for_review: bool = False) -> set[str]:
        """Return the matched texts with a verdict or a judgement that may decide about them.

        `never_for_review`: as no match of them needs review, no judgement clears it.
        """
        clears = self.judged_is == "leak" and not never_for_review
        judged = {text_id for text_id, is_sd in self.judged.items() if is_sd or clears}
        return judged.union(self.decisive)

    def digest_of(self, text_ids: Iterable[str]) -> str | None:
        """Return a digest of what is decided about these matched texts; None if that is nothing."""
        said = {text_id: f"{self.judged_is}: {is_sd}" for text_id, is_sd in self.judged.items()}
        every: dict[str, object] = {**said, **self.decisive}
        decided = {text_id: every[text_id] for text_id in text_ids if text_id in every}
        return _digest(decided) if decided else None

    @property
    def digest(self) -> str:
        """Digest of all verdicts with their notes, deciding or not, as a report shows them all."""
        said = {text_id: asdict(verdict) for text_id, verdict in self.by_text.items()}
        return _digest([self.decisive, said, self.judged_is if self.judged else None])


NO_VERDICTS = Verdicts()


def _digest(value: object) -> str:
    return sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]


def read_verdicts(path: Path, *, clears: Sequence[str] = CLEARING) -> Verdicts:
    """Read the verdicts of a file, which may be missing; raise InputError with all problems."""
    current: dict[str, Verdict] = {}
    names = [field.name for field in fields(Verdict)]
    for line in read_lines(path) if path.exists() else ():
        current.pop(line["pair"], None)
        if line["verdict"] != TAKEN_BACK:
            texts = {name: line[name] for name in names if isinstance(line.get(name), str)}
            current[line["pair"]] = Verdict(**texts, confidence=line.get("confidence"))
    return Verdicts(current, tuple(clears))


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Read and validate the lines of a verdicts file; raise InputError with all problems."""
    return read_objects(path, "a verdicts file", _problems_of)


def _problems_of(where: str, value: Mapping[str, Any]) -> Iterator[Problem]:
    yield from key_problems(where, {name: value.get(name) for name in KEYS})
    if value.get("at", "") != "" and time_of(value["at"]) is None:
        expected = "a date and time, such as 2026-11-22T04:38:21+00:00"
        yield Problem(f"{where}: at", shown(value["at"]), expected)
    known = (*VERDICTS, TAKEN_BACK)
    verdict = value.get("verdict")
    if verdict not in known:
        expected, remedy = f"one of {', '.join(known)}", did_you_mean(verdict, known)
        yield Problem(f"{where}: verdict", shown(verdict), expected, remedy)
    elif "match_type" in value or "confidence" in value:
        match_type = value.get("match_type", "related")
        is_sd = verdict == LEAK or (verdict not in CLEARING and match_type != "unrelated")
        judgement = {**value, "match_type": match_type, "is_sd": is_sd}
        yield from judgement_problems(where, judgement, f"the verdict {verdict}")


def time_of(text: object) -> datetime | None:
    """Return the date and time of a verdict, in UTC if it names no time zone; None if unknown."""
    if not isinstance(text, str):
        return None
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return None
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def fits(match_type: str, verdict: str) -> bool:
    """Return whether a kind of match does not contradict a verdict; "" is none."""
    line = {"pair": "0" * 16, "fingerprint": "0" * 16, "verdict": verdict}
    return not match_type or not [*_problems_of("", {**line, "match_type": match_type})]


def append_verdicts(path: Path, lines: Iterable[Mapping[str, Any]]) -> None:
    """Append lines to a verdicts file, synced to disk when this returns.

    Raises InputError and writes nothing if a line is invalid or the file ends within a line.
    """
    append_objects(path, lines, _problems_of)
