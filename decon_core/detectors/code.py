"""The `code` detector: programs whose names, comments, layout or order of statements differ.

The fingerprints of a program are the runs of its tokens, in a form without names, and, of Python,
what its operations take from each other. The score is the share of them, weighted by idf over the
programs of the benchmark, that a document has in one place, in any order.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from decon_core.benchmarks.records import StoredRecords
from decon_core.config.detector_registry import Reads, Threshold, register
from decon_core.config.policy import Policy
from decon_core.config.rounding import reaches
from decon_core.detectors.detector import Detector, Indexes, Search
from decon_core.detectors.finding import Finding, sort_findings
from decon_core.detectors.shared_runs import BatchTexts
from decon_core.detectors.visibility import RecordTexts, Unmet, first_unmet
from decon_core.index.query_texts import edges_of
from decon_core.kernels.code import windows
from decon_core.kernels.code.lexer import mark_code
from decon_core.text.code_form import (
    Program,
    fingerprints,
    function_around,
    names_table,
    program_of,
)
from decon_core.text.python_flow import features

Integers = npt.NDArray[np.int64]

# A fingerprint in more than this share of a benchmark's programs, and in more than so many, is
# boilerplate. Measured: without them recall is as high, and the scan twice as fast.
_COMMON_SHARE = 0.1
_COMMON_PROGRAMS = 3

# Weights are whole numbers of this unit, so that sums do not depend on the order.
_UNIT = 1 << 20

# The tokens of a window: a rewritten program is longer, but not arbitrarily.
_STRETCH, _SLACK = 2.5, 40

# Runs of tokens alone must reach this share of the floor before a function is parsed.
_SCREENED_SHARE = 0.6

_INITIAL_EVENTS = 1 << 14


@register
class Code(Detector):
    name = "code"
    summary = "programs in other names, comments, layout and order"
    reads = Reads.ORIGINAL
    threshold = Threshold(setting="code_threshold", floor="code_floor")
    scan_settings = ("code_ngram_size", "code_min_tokens", "code_floor")
    versions = (("code_form", 1),)
    advice = (
        "**For benchmarks of programs, `code`.** It compares programs without their names, "
        "comments and layout, in any order of statements, and nothing else: items that are no "
        "programs are not visible to it."
    )

    def search(self, indexes: Indexes) -> Search:
        return _CodeSearch(indexes.records, indexes.policy)

    def visibility(self, texts: RecordTexts, policy: Policy) -> Unmet:
        programs = _programs_of(texts.stored, policy.code_ngram_size)
        n_tokens = np.zeros(texts.records.num_rows, np.int64)
        has_program, is_informative = np.zeros((2, n_tokens.size), np.bool_)
        for one in programs:
            rows = [*one.records]
            has_program[rows], n_tokens[rows] = True, one.n_tokens
            is_informative[rows] = one.tokens.total > 0
        short = "program too short"
        requirements = {
            "no program": has_program,
            short: n_tokens >= policy.code_min_tokens,
            "only what most programs have": is_informative,
        }
        return first_unmet(requirements).note_tokens(n_tokens, {short: policy.code_min_tokens})


# Programs of benchmarks ---------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Weighted:
    """The informative fingerprints of a program, of one kind, by weight."""

    weights: Mapping[Any, int]
    total: int

    def share_of(self, found: Iterable[Any]) -> int:
        """Return the weight of those that were found."""
        return sum(self.weights.get(one, 0) for one in found)


@dataclass(frozen=True, eq=False)
class _Indexed:
    """A program of a benchmark."""

    program: Program
    records: tuple[int, ...]  # that have it
    n_tokens: int
    tokens: _Weighted
    flow: _Weighted | None  # of Python only


@lru_cache(maxsize=64)
def _programs_of(stored: StoredRecords, size: int) -> tuple[_Indexed, ...]:
    """Return the programs of a benchmark, each once, in order of their first records."""
    columns = stored.table(["question", "answer", "is_correct"]).to_pydict()
    records: dict[Program, list[int]] = {}
    for row, (question, answer, is_correct) in enumerate(zip(*columns.values(), strict=True)):
        # A wrong choice is not an answer.
        found = program_of(question, None if is_correct is False else answer)
        if found:
            records.setdefault(found, []).append(row)
    tokens = [fingerprints(one.text, size) for one in records]
    flows = [features(one.text) for one in records]
    by_tokens = _weighted([one.tolist() for one, _ in tokens])
    by_flow = iter(_weighted([one for one in flows if one is not None]))
    return tuple(
        _Indexed(program, tuple(rows), n, weighted, None if flow is None else next(by_flow))
        for (program, rows), (_, n), weighted, flow in zip(
            records.items(), tokens, by_tokens, flows, strict=True
        )
    )


def _weighted(programs: Sequence[Iterable[Any]]) -> list[_Weighted]:
    """Weight the fingerprints of programs by idf, without those of many programs."""
    n_programs = Counter(one for program in programs for one in program)
    most = max(_COMMON_PROGRAMS, _COMMON_SHARE * len(programs))
    weights = {
        one: round(math.log((len(programs) + 1) / n) * _UNIT)
        for one, n in n_programs.items()
        if n <= most
    }
    kept = [{one: weights[one] for one in program if one in weights} for program in programs]
    return [_Weighted(one, sum(one.values())) for one in kept]


@dataclass(frozen=True, eq=False)
class _Programs:
    """The programs of all benchmarks of a scan, numbered."""

    parts: tuple[int, ...]  # benchmark of each program
    programs: tuple[_Indexed, ...]
    index: windows.Index


@lru_cache(maxsize=2)
def _index_of(records: tuple[StoredRecords, ...], size: int, min_tokens: int) -> _Programs:
    """Build the index of all programs that are searched."""
    numbered = [
        (part, one)
        for part, stored in enumerate(records)
        for one in _programs_of(stored, size)
        if one.n_tokens >= min_tokens and one.tokens.total > 0
    ]
    programs = tuple(one for _, one in numbered)
    return _Programs(tuple(part for part, _ in numbered), programs, _arrays(programs))


def _arrays(programs: Sequence[_Indexed]) -> windows.Index:
    rows = [
        (digest, number, weight)
        for number, one in enumerate(programs)
        for digest, weight in one.tokens.weights.items()
    ]
    every = np.array([digest for digest, _, _ in rows], np.uint64)
    digests, numbers = np.unique(every, return_inverse=True)
    order = np.argsort(numbers, kind="stable")
    slots = np.zeros(2 * digests.size + 2, np.uint32)
    in_filter = np.zeros(digests.size // 4 + 1, np.uint64)
    windows.enter_fingerprints(digests, slots, in_filter)
    return windows.Index(
        names=names_table(),
        filter=in_filter,
        slots=slots,
        digests=digests,
        posting_offsets=edges_of(np.bincount(numbers, minlength=digests.size)),
        posting_programs=np.array([number for _, number, _ in rows], np.int32)[order],
        posting_weights=np.array([weight for _, _, weight in rows], np.int64)[order],
        totals=np.array([one.tokens.total for one in programs], np.int64),
        spans=np.array([int(_STRETCH * one.n_tokens) + _SLACK for one in programs], np.int64),
    )


# Documents ----------------------------------------------------------------------------------------


class _CodeSearch(Search):
    def __init__(self, records: tuple[StoredRecords, ...], policy: Policy) -> None:
        self._programs = _index_of(records, policy.code_ngram_size, policy.code_min_tokens)
        self._size, self._floor = policy.code_ngram_size, policy.code_floor
        n, index = len(self._programs.programs), self._programs.index
        self._scratch = windows.Scratch(
            *np.zeros((4, n), np.int64),
            is_seen=np.zeros(index.digests.size, np.uint8),
            n_inside=np.zeros(index.posting_weights.size, np.int32),
        )
        self._windows = np.zeros((n + 1, 5), np.int64)
        self._events = np.empty((_INITIAL_EVENTS, 4), np.int64)

    def find(self, texts: BatchTexts) -> list[Finding]:
        """Return the programs that a document has, each at its best place."""
        batch = texts.batch
        has_code = np.zeros(batch.starts.size, np.uint8)
        if self._programs.programs:
            mark_code(batch.text, batch.starts, batch.stops, has_code)
        return sort_findings(
            finding
            for number in np.flatnonzero(has_code).tolist()
            for finding in self._in_document(
                number, batch.text[batch.starts[number] : batch.stops[number]]
            )
        )

    def _in_document(self, number: int, content: npt.NDArray[np.uint8]) -> Iterator[Finding]:
        found = self._windows_in(content)
        if not len(found):
            return
        document = content.tobytes()
        flows: dict[tuple[int, int], frozenset[str] | None] = {}
        for program, weight, n_matched, first, last in found.tolist():
            one = self._programs.programs[program]
            matched, total, place = weight, one.tokens.total, (first, last)
            around = function_around(document, first, last) if one.flow else None
            if around and one.flow:
                if around not in flows:
                    flows[around] = _flow_of(document[slice(*around)])
                if (flow := flows[around]) is not None:
                    matched += one.flow.share_of(flow)
                    total += one.flow.total
                    place = around
            if reaches(matched / total, self._floor):
                part = self._programs.parts[program]
                yield from _findings(number, part, one, matched / total, n_matched, place)

    def _windows_in(self, content: npt.NDArray[np.uint8]) -> Integers:
        n = self._events_in(content)
        if n > len(self._events):
            self._events = np.empty((2 * n, 4), np.int64)
            n = self._events_in(content)
        n_found = windows.find_windows(
            self._events,
            n,
            self._floor * _SCREENED_SHARE,
            self._programs.index,
            self._scratch,
            self._windows,
        )
        return self._windows[:n_found]

    def _events_in(self, content: npt.NDArray[np.uint8]) -> int:
        return windows.find_events(
            content, 0, content.size, self._size, self._programs.index, self._events
        )

    def compile(self, documents: object) -> None:
        del documents
        mark_code(*np.zeros((1, 1), np.uint8), *np.zeros((2, 1), np.int64), np.zeros(1, np.uint8))
        self._windows_in(np.zeros(1, np.uint8))


def _flow_of(content: bytes) -> frozenset[str] | None:
    import textwrap

    return features(textwrap.dedent(content.decode()))


def _findings(
    number: int, part: int, one: _Indexed, score: float, n_matched: int, place: tuple[int, int]
) -> Iterator[Finding]:
    has_question, has_answer = one.program.has_question, one.program.has_answer
    for record in one.records:
        yield Finding(
            document=number,
            part=part,
            record=record,
            score=score,
            question_overlap=score if has_question else None,
            answer_overlap=score if has_answer else None,
            n_matched=n_matched,
            question_tokens=one.n_tokens,
            total_tokens=one.n_tokens,
            question_bytes=place if has_question else None,
            answer_bytes=place if has_answer else None,
            looked_for="program",
        )
