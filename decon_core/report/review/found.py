"""Read a report for review: its matched texts, in which order, and its leaks by score.

Also the lines of verdicts on matched texts, and the merge of those of another file.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, Literal, TypeVar

import duckdb

from decon_core.config.detector_registry import near_kinds
from decon_core.config.policy import Policy
from decon_core.decisions.candidates import Candidate
from decon_core.decisions.verdicts import TAKEN_BACK, Verdict, Verdicts, time_of
from decon_core.errors import MissingError, Problem
from decon_core.report.open import Coverage, coverage_in, opened, queries_in, rows_of
from decon_core.wording import first_of

_QUERIES = queries_in(Path(__file__).with_suffix(".sql"))

Order = Literal["doubt", "score", "documents"]

MOST_DOCUMENTS = 1_000  # per matched text


@dataclass(frozen=True)
class Place:
    """A document that contains a matched text."""

    source: str
    shard_name: str
    row: int
    doc_id: str | None

    def __str__(self) -> str:
        name = f" ({self.doc_id})" if self.doc_id else ""
        return f"{self.source}/{self.shard_name} row {self.row}{name}"


@dataclass(frozen=True, kw_only=True)
class ReportFinding:
    """A document and an item that is a leak in it by score."""

    source: str
    shard_name: str
    row: int
    benchmark: str
    config: str | None
    split: str
    instance_index: int
    text_id: str
    score: float

    @property
    def item(self) -> str:
        return f"{self.benchmark} {self.split} {self.instance_index}"


@dataclass(frozen=True, kw_only=True)
class MatchedText(ReportFinding):
    """The words of a record that were found, with a document, without the texts that are shown."""

    fingerprint: str
    detectors: str
    is_by_score: bool
    is_contaminated: bool
    is_no_answer: bool | None  # None: the report was made by another program
    needs_review: bool | None  # None: likewise
    verdict: str | None  # the one in the report
    n_documents: int
    kind: str | None

    @property
    def called(self) -> str:
        """The class of the matched text in the report, in the words of its page."""
        if self.is_contaminated:
            return "leak"
        if self.is_no_answer:
            return "no answer"
        if self.needs_review:
            return "review"
        is_found = self.needs_review is not None and self.is_by_score and not self.verdict
        return "item found by another match" if is_found else "near miss"


@dataclass(frozen=True)
class ReviewFilter:
    """Which matched texts and findings of a report to return; an empty field does not filter."""

    benchmarks: Sequence[str] = ()
    sources: Sequence[str] = ()
    documents: Sequence[str] = ()  # values of doc_id
    detectors: Sequence[str] = ()


_Row = TypeVar("_Row", MatchedText, ReportFinding)


class Report:
    """A report's database, open for reading."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, path: Path) -> None:
        self.connection, self._path = connection, path

    def coverage(self) -> Coverage:
        return coverage_in(self.connection)

    def policy(self) -> Policy:
        (run,) = rows_of(self.connection, "SELECT policy FROM runs")
        return Policy.from_mapping(json.loads(run["policy"]), where=f"{self._path}: runs")

    def matched_texts(self, filters: ReviewFilter) -> list[MatchedText]:
        """Return the matched texts that pass the filter, sorted by key."""
        return self._filtered("matched_texts", filters, MatchedText)

    def findings(self, filters: ReviewFilter) -> list[ReportFinding]:
        """Return the findings that are leaks by score, whatever their verdicts.

        They are not filtered by `documents`.
        """
        return self._filtered("findings", filters, ReportFinding)

    def _filtered(self, query: str, filters: ReviewFilter, kind: type[_Row]) -> list[_Row]:
        names = [field.name for field in fields(kind)]
        wanted = vars(filters)
        values = {name: list(wanted[name]) for name in wanted if f"${name}" in _QUERIES[query]}
        rows = rows_of(self.connection, _QUERIES[query], values)
        return [kind(**{name: row[name] for name in names}) for row in rows]

    def matched_text(self, text_id: str) -> dict[str, Any]:
        """Return every column of one matched text, its probability and its documents.

        Raise `MissingError` if the report has no such matched text.
        """
        joined = "matched_texts LEFT JOIN probabilities_in_words USING (text_id)"
        rows = rows_of(self.connection, f"FROM {joined} WHERE text_id = ?", [text_id])
        if not rows:
            expected = "the id of a matched text; list them with `decon-assets review --list`"
            raise MissingError(Problem(f"id {text_id!r}", f"not in {self._path}", expected))
        documents, also_in = self.documents(text_id), self.also_in(text_id)
        return {**rows[0], "documents": documents, "also_in": also_in}

    def documents(self, text_id: str, *, most: int = MOST_DOCUMENTS) -> list[Place]:
        """Return the first `most` documents that contain a matched text."""
        values = {"text_id": text_id, "most": most}
        return [Place(**row) for row in rows_of(self.connection, _QUERIES["documents"], values)]

    @cached_property
    def other_items(self) -> dict[str, list[dict[str, Any]]]:
        """The items of each matched text that has several, without the one that it shows."""
        found: dict[str, list[dict[str, Any]]] = {}
        for row in rows_of(self.connection, _QUERIES["other_items"]):
            found.setdefault(row["text_id"], []).append(row)
        return found

    def also_in(self, text_id: str) -> str:
        """Name the other items of a matched text: "; also exam test 3"; "" if it has none."""
        names = ("benchmark", "split", "instance_index")
        items = [
            " ".join(str(row[name]) for name in names) for row in self.other_items.get(text_id, ())
        ]
        return f"; also {first_of(items)}" if items else ""

    def texts_at(self, line: Mapping[str, Any]) -> list[str]:
        """Return the ids of what is now found of a verdict's item in the verdict's document."""
        names = ("benchmark", "split", "instance_index", "shard", "row")
        values = {name: str(line.get(name)) for name in names}
        rows = rows_of(self.connection, _QUERIES["texts_at"], values)
        return [row["text_id"] for row in rows]

    def candidates(
        self, benchmarks: Sequence[str], detectors: Sequence[str]
    ) -> list[dict[str, Any]]:
        """Return each matched text once for every detector that found it, with its score."""
        values = {"benchmarks": [*benchmarks], "detectors": [*detectors]}
        return rows_of(self.connection, _QUERIES["candidates"], values)

    def texts(self, text_ids: Sequence[str]) -> dict[str, dict[str, Any]]:
        """Return the texts of record and document of these matched texts."""
        rows = rows_of(self.connection, _QUERIES["texts"], {"text_ids": [*text_ids]})
        return {row["text_id"]: row for row in rows}

    def ids_starting_with(self, start: str) -> list[str]:
        """Return the first five ids of matched texts that start with `start`."""
        query = "FROM matched_texts SELECT text_id WHERE starts_with(text_id, ?) ORDER BY 1 LIMIT 5"
        return [row["text_id"] for row in rows_of(self.connection, query, [start])]

    def names(self, column: str) -> list[str]:
        """Return the different values of `benchmark` or `source` in the findings."""
        rows = rows_of(self.connection, f"SELECT DISTINCT {column} FROM findings ORDER BY 1")
        return [row[column] for row in rows]


@contextmanager
def open_report(path: Path) -> Iterator[Report]:
    with opened(path) as connection:
        yield Report(connection, path)


def sort_texts(texts: Iterable[MatchedText], order: Order, policy: Policy) -> list[MatchedText]:
    """Sort matched texts; `doubt` puts those with scores closest to a threshold first.

    Before them come texts that need review, and behind them those whose score decides nothing.
    """
    apart = set(near_kinds())

    def by_doubt(text: MatchedText) -> tuple[int, float, int, str]:
        group = 0 if text.needs_review else 1 + (text.kind in apart)
        return group, doubt(text, policy), -text.n_documents, text.text_id

    match order:
        case "doubt":
            return sorted(texts, key=by_doubt)
        case "score":
            return sorted(texts, key=lambda text: (-text.score, -text.n_documents, text.text_id))
        case "documents":
            return sorted(texts, key=lambda text: (-text.n_documents, -text.score, text.text_id))


def doubt(text: MatchedText, policy: Policy) -> float:
    """Return the distance of the score to the nearest threshold of the matched text's detectors."""
    names = filter(None, text.detectors.split(", "))
    limits = policy.for_benchmark(text.benchmark)
    # Rounded: differences beyond a few digits are rounding errors and would break ties.
    return min((round(abs(text.score - limits.threshold_of(name)), 9) for name in names), default=1)


def without_verdict(texts: Iterable[MatchedText], verdicts: Verdicts) -> list[MatchedText]:
    return [text for text in texts if text.text_id not in verdicts.by_text]


def texts_of_findings(
    texts: Iterable[MatchedText], findings: Sequence[ReportFinding]
) -> list[MatchedText]:
    """Return the matched texts of the findings, each once, in the order of the findings."""
    known = {text.text_id: text for text in texts}
    return [
        known[text_id]
        for text_id in dict.fromkeys(finding.text_id for finding in findings)
        if text_id in known
    ]


_PAIRS_AT_ONCE = 500  # whose texts are in memory


def candidates_in(
    report: Report, *, benchmarks: Sequence[str] = (), detectors: Sequence[str] = ()
) -> list[Candidate]:
    """Return the matched texts that these detectors found (default: all), without their texts."""
    return [
        Candidate(
            pair=row["text_id"],
            fingerprint=row["fingerprint"],
            benchmark=row["benchmark"],
            item=f"{row['split']} {row['instance_index']}",
            detector=row["detector"],
            score=row["score"],
        )
        for row in report.candidates(benchmarks, detectors)
    ]


def with_texts(
    report: Report | None, pairs: Iterable[Sequence[Candidate]]
) -> Iterator[list[Candidate]]:
    """Yield the candidates of each pair, those of the report with their texts."""
    rest = iter(pairs)
    while batch := [*islice(rest, _PAIRS_AT_ONCE)]:
        # Candidates of files have their texts already.
        keys = [member.pair for members in batch for member in members if not member.item_text]
        texts = report.texts(keys) if report and keys else {}
        for members in batch:
            yield [
                _filled(member, texts[member.pair]) if member.pair in texts else member
                for member in members
            ]


def _filled(candidate: Candidate, row: Mapping[str, Any]) -> Candidate:
    parts = [row["passage"], row["question"], row["answer"] and f"Answer: {row['answer']}"]
    return replace(
        candidate,
        item_text="\n\n".join(filter(None, parts)),
        text=row["text"],
        why_no_text=row["why_no_text"] or "the report has no text for it",
    )


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
