"""The `code` detector: programs in other names, layout or order, or in another language.

The fingerprints of a program are the runs of its tokens, in a form without names, and, of Python,
what its operations take from each other. The score is the share of them, weighted by idf over the
programs of the benchmark, that a document has in one place, in any order.

What a translation into another programming language keeps is names. A place is nominated if it has
a name of several words that few programs of the benchmark have; the score then is the share of the
words in the program's names, or in all of its text, that stand around it. Such a match is of a
kind of its own.
"""

from __future__ import annotations

import math
import re
import sys
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from decon_core.benchmarks.records import StoredRecords
from decon_core.config.detector_registry import Kind, Reads, Threshold, register
from decon_core.config.policy import Policy
from decon_core.config.rounding import reaches
from decon_core.detectors.batch_texts import BatchTexts
from decon_core.detectors.detector import Detector, Finding, Indexes, Nominations, Search, Span
from decon_core.detectors.visibility import RecordTexts, Unmet, first_unmet
from decon_core.kernels.arrays import Bytes, Integers, Words64, read_only
from decon_core.kernels.code import names, windows
from decon_core.kernels.code.lexer import mark_code
from decon_core.kernels.hashing import Numbered, enter_numbered
from decon_core.text.code_form import (
    ProgramText,
    fingerprints,
    function_around,
    names_table,
    program_of,
)
from decon_core.text.python_flow import features
from decon_core.text.word_cache import edges_of

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

# How much less a function counts that does more than the program: without it, half as many MBPP
# duplicates are found at the same number of false alarms; 0.2 to 0.4 make no difference.
_SIZE_EXPONENT = 0.25

_INITIAL_EVENTS = 1 << 14

# The kind of matches by the names of a program.
NAMES = "names"
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_NAME = re.compile(r"\b[A-Za-z_]+\b")
_FEWEST_LETTERS, _FEWEST_DIGITS, _SHORTEST_NAME = 3, 2, 6
_NO_STATEMENT = re.compile(r'("""|\'\'\').*?\1|(?:#|//).*?$|/\*.*?\*/', re.DOTALL | re.MULTILINE)
_MOST_PROGRAMS = 8  # a name in more programs nominates none of them
_TRANSLATED = 1.5  # length of a translation, of the program's
_FEWEST_WORDS, _HALF_COUNT = 3, 2  # below these a score is 0; so many words halve it
_SIGNATURE = re.compile(r"\bdef\s+(\w+)\s*\([^)]*\)")


@register
class Code(Detector):
    name = "code"
    summary = "programs, regardless of names, comments, layout and order of statements"
    reads = Reads.ORIGINAL
    threshold = Threshold(setting="code_threshold", floor="code_lowest_recorded", of=(None, NAMES))
    kinds = (Kind(NAMES, "only the names in the program were found", is_apart=True),)
    scan_settings = ("code_ngram_size", "code_min_tokens", "code_lowest_recorded")
    finds_other_names = True
    # The version of Python decides which programs parse.
    versions = (("code_form", 1), ("code_names", 1), ("code_python", sys.version_info.minor))
    advice = (
        "**For programming benchmarks, use `code`.** It compares programs regardless of names, "
        "comments, layout and the order of statements. It cannot find items that are not programs. "
        "Programs translated into another programming language need review if they keep the names."
    )

    def search(self, indexes: Indexes) -> Search:
        return _CodeSearch(indexes.records, indexes.policy)

    def visibility(self, texts: RecordTexts, policy: Policy) -> Unmet:
        programs = _programs_of(texts.stored, policy.code_ngram_size)
        n_tokens = np.zeros(texts.records.num_rows, np.int64)
        has_program, is_informative = np.zeros((2, n_tokens.size), np.bool_)
        for program in programs:
            rows = [*program.records]
            has_program[rows], n_tokens[rows] = True, program.n_tokens
            is_informative[rows] = program.tokens.total > 0
        short = "program too short"
        requirements = {
            "no program": has_program,
            short: n_tokens >= policy.code_min_tokens,
            "only code that most programs have": is_informative,
        }
        return first_unmet(requirements).note_tokens(n_tokens, {short: policy.code_min_tokens})


# Programs of benchmarks ---------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Weighted:
    """The informative fingerprints of a program, of one kind, by weight."""

    weights: Mapping[Any, int]
    total: int

    def weight_of(self, found: Iterable[Any]) -> int:
        """Return the weight of those that were found."""
        return sum(self.weights.get(fingerprint, 0) for fingerprint in found)


@dataclass(frozen=True, eq=False)
class Program:
    """A program of a benchmark."""

    text: ProgramText
    records: tuple[int, ...]  # records that have it
    n_tokens: int
    tokens: _Weighted
    flow: _Weighted | None  # data flow of a Python program
    n_flow: int  # all of its features, also those that are boilerplate
    names: frozenset[str]  # joined names of several words that few programs have
    # Words of signatures, of names, and of all of its text.
    words: tuple[_Weighted, _Weighted, _Weighted]


@lru_cache(maxsize=64)
def _programs_of(stored: StoredRecords, size: int) -> tuple[Program, ...]:
    """Return the programs of a benchmark, each once, in order of their first records."""
    columns = stored.table(["question", "answer", "is_correct"]).to_pydict()
    records: dict[ProgramText, list[int]] = {}
    for row, (question, answer, is_correct) in enumerate(zip(*columns.values(), strict=True)):
        # A wrong choice is not an answer.
        program = program_of(question, None if is_correct is False else answer)
        if program:
            records.setdefault(program, []).append(row)
    return weighted_programs([*records.items()], size)


def weighted_programs(
    texts: Sequence[tuple[ProgramText, Sequence[int]]], size: int
) -> tuple[Program, ...]:
    """Return the programs of a benchmark from their texts, each with its records."""
    tokens = [fingerprints(program.text, size) for program, _ in texts]
    flows = [features(program.text) for program, _ in texts]
    by_tokens = _weighted([digests.tolist() for digests, _ in tokens])
    by_flow = iter(_weighted([flow for flow in flows if flow is not None]))
    statements = [_NO_STATEMENT.sub(" ", program.text) for program, _ in texts]
    signatures = [" ".join(found[0] for found in _SIGNATURE.finditer(text)) for text in statements]
    words = zip(
        _weighted([*map(_words_in, signatures)]),
        _weighted([*map(_words_in, statements)]),
        _weighted([_words_in(program.text) for program, _ in texts]),
        strict=True,
    )
    named = [_names_in(statement) for statement in statements]
    n_programs = Counter(name for own in named for name in own)
    most = min(_MOST_PROGRAMS, max(_COMMON_PROGRAMS, _COMMON_SHARE * len(texts)))
    return tuple(
        Program(
            text,
            tuple(rows),
            n,
            weighted,
            None if flow is None else next(by_flow),
            len(flow or ()),
            frozenset(name for name in own if n_programs[name] <= most),
            of_words,
        )
        for (text, rows), (_, n), weighted, flow, own, of_words in zip(
            texts, tokens, by_tokens, flows, named, words, strict=True
        )
    )


def _words_in(text: str) -> set[str]:
    """Return the words of names, comments and strings, and numbers of several digits."""
    return {
        word.lower()
        for word in _WORD.findall(text)
        if len(word) >= (_FEWEST_DIGITS if word[0].isdigit() else _FEWEST_LETTERS)
    }


def _names_in(text: str) -> set[str]:
    """Return the names of several words, joined and in lower case."""
    return {
        joined
        for name in _NAME.findall(text)
        if len(joined := name.replace("_", "").lower()) >= _SHORTEST_NAME
        and len(_WORD.findall(name)) > 1
    }


def _weighted(programs: Sequence[Iterable[Any]]) -> list[_Weighted]:
    """Weight the fingerprints of programs by idf, without those of many programs."""
    n_programs = Counter(fingerprint for program in programs for fingerprint in program)
    most = max(_COMMON_PROGRAMS, _COMMON_SHARE * len(programs))
    weights = {
        fingerprint: round(math.log((len(programs) + 1) / n) * _UNIT)
        for fingerprint, n in n_programs.items()
        if n <= most
    }
    kept = [
        {fingerprint: weights[fingerprint] for fingerprint in program if fingerprint in weights}
        for program in programs
    ]
    return [_Weighted(of_program, sum(of_program.values())) for of_program in kept]


@dataclass(frozen=True, eq=False)
class _Programs:
    """The programs of all benchmarks of a scan, numbered."""

    parts: tuple[int, ...]  # benchmark of each program
    programs: tuple[Program, ...]
    index: windows.Index


@lru_cache(maxsize=2)
def _index_of(records: tuple[StoredRecords, ...], size: int, min_tokens: int) -> _Programs:
    """Build the index of all programs that are searched."""
    numbered = [
        (part, program)
        for part, stored in enumerate(records)
        for program in _programs_of(stored, size)
        if program.n_tokens >= min_tokens and program.tokens.total > 0
    ]
    programs = tuple(program for _, program in numbered)
    return _Programs(tuple(part for part, _ in numbered), programs, arrays_of(programs))


def arrays_of(programs: Sequence[Program]) -> windows.Index:
    """Build the arrays that kernels search in."""
    rows = [
        (digest, number, weight)
        for number, program in enumerate(programs)
        for digest, weight in program.tokens.weights.items()
    ]
    every = np.array([digest for digest, _, _ in rows], np.uint64)
    digests, numbers = np.unique(every, return_inverse=True)
    order = np.argsort(numbers, kind="stable")
    return windows.Index(
        names=names_table(),
        numbered=_numbered(digests),
        posting_offsets=edges_of(np.bincount(numbers, minlength=digests.size)),
        posting_programs=np.array([number for _, number, _ in rows], np.int32)[order],
        posting_weights=np.array([weight for _, _, weight in rows], np.int64)[order],
        totals=np.array([program.tokens.total for program in programs], np.int64),
        spans=np.array(
            [int(_STRETCH * program.n_tokens) + _SLACK for program in programs], np.int64
        ),
    )


def _numbered(digests: Words64) -> Numbered:
    in_filter = np.zeros(digests.size // 4 + 1, np.uint64)
    numbered = Numbered(in_filter, np.zeros(2 * digests.size + 2, np.uint32), digests)
    enter_numbered(numbered)
    return numbered


class NamedPrograms:
    """Search for programs by their names, in one thread."""

    def __init__(self, programs: Sequence[Program]) -> None:
        self._programs = programs
        numbers: dict[str, list[int]] = {}
        for number, program in enumerate(programs):
            for name in sorted(program.names):
                numbers.setdefault(name, []).append(number)
        self._with_name = [
            [(number, self._words_by(name, programs[number])) for number in with_name]
            for name, with_name in numbers.items()
        ]
        digests = np.array(
            [names.digest_of_name(np.frombuffer(name.encode(), np.uint8)) for name in numbers],
            np.uint64,
        )
        self._index = _numbered(digests)
        self._found = np.empty((_INITIAL_EVENTS, 2), np.int64)

    @staticmethod
    def _words_by(name: str, program: Program) -> tuple[_Weighted, ...]:
        """Return what is compared where a name is: signatures where a function is named."""
        is_function = name in _names_in(" ".join(_SIGNATURE.findall(program.text.text)))
        return program.words if is_function else program.words[1:]

    def find(self, content: Bytes) -> dict[int, tuple[float, int, Span]]:
        """Return by program the best score, number of words, and place."""
        data = read_only(content)
        while (n := names.find_names(data, self._index, self._found)) > len(self._found):
            self._found = np.empty((2 * n, 2), np.int64)
        best: dict[int, tuple[float, int, Span]] = {}
        # End of what was compared, by program and kind of comparison.
        compared: dict[tuple[int, int], int] = {}
        for name, at in self._found[:n].tolist():
            for number, words in self._with_name[name]:
                length = int(_TRANSLATED * len(self._programs[number].text.text.encode()))
                if at >= compared.get((number, len(words)), 0):
                    compared[number, len(words)] = at + length // 2
                    place = max(0, at - length // 2), min(content.size, at + length)
                    found = _compare_words(words, content[slice(*place)].tobytes(), place)
                    best[number] = max(best.get(number, found), found)
        return best


def _compare_words(
    expected: Sequence[_Weighted], window: bytes, place: Span
) -> tuple[float, int, Span]:
    """Return the best score, the number of words, and the place."""
    there = _words_in(window.decode(errors="replace"))
    found = []
    for words in expected:
        both = there.intersection(words.weights)
        share = words.weight_of(both) / max(words.total, 1) * (len(both) >= _FEWEST_WORDS)
        found.append((share * len(both) / (len(both) + _HALF_COUNT), len(both), place))
    return max(found)


# Documents ----------------------------------------------------------------------------------------


class WindowSearch:
    """Search for programs by the runs of their tokens, in one thread."""

    def __init__(self, index: windows.Index, size: int, floor: float) -> None:
        self._index, self._size, self._floor = index, size, floor
        n = index.totals.size
        self._scratch = windows.Scratch(
            weights=np.zeros(n, np.int64),
            n_events=np.zeros(n, np.int64),
            touched=np.zeros(n, np.int64),
            offsets=np.zeros(n, np.int64),
            is_seen=np.zeros(index.numbered.digests.size, np.uint8),
            n_inside=np.zeros(index.posting_weights.size, np.int32),
        )
        self._windows = np.zeros((n + 1, 5), np.int64)
        self._events = np.empty((_INITIAL_EVENTS, 4), np.int64)

    def windows_in(self, content: Bytes) -> Integers:
        """Return the best window of each program down to the floor; columns as in `windows`."""
        while (n := self._events_in(content)) > len(self._events):
            self._events = np.empty((2 * n, 4), np.int64)
        n_found = windows.find_windows(
            self._events, n, self._floor, self._index, self._scratch, self._windows
        )
        return self._windows[:n_found]

    def _events_in(self, content: Bytes) -> int:
        return windows.find_events(
            read_only(content), 0, content.size, self._size, self._index, self._events
        )


class _CodeSearch(Search):
    def __init__(self, records: tuple[StoredRecords, ...], policy: Policy) -> None:
        self._programs = _index_of(records, policy.code_ngram_size, policy.code_min_tokens)
        self._floor = policy.code_lowest_recorded
        self._named = NamedPrograms(self._programs.programs)
        self._search = WindowSearch(
            self._programs.index, policy.code_ngram_size, self._floor * _SCREENED_SHARE
        )

    def nominate(self, texts: BatchTexts) -> Nominations:
        """Return the programs that a document has, each at its best place."""
        batch = texts.batch
        has_code = np.zeros(batch.starts.size, np.uint8)
        if self._programs.programs:
            mark_code(batch.text, batch.starts, batch.stops, has_code)
        return Nominations.of(
            finding
            for number in np.flatnonzero(has_code).tolist()
            for finding in self._in_document(
                number, batch.text[batch.starts[number] : batch.stops[number]]
            )
        )

    def _in_document(self, number: int, content: Bytes) -> Iterator[Finding]:
        found = self._search.windows_in(content)
        document = DocumentScores(content.tobytes() if len(found) else b"")
        by_names = self._named.find(content)
        for program, weight, n_matched, first, last in found.tolist():
            compared = self._programs.programs[program]
            score, place = document.compare(compared, weight, (first, last))
            if reaches(score, self._floor):
                by_names.pop(program, None)
                yield from self._findings(number, program, score, n_matched, place, None)
        for program, (score, n_matched, place) in by_names.items():
            if reaches(score, self._floor):
                yield from self._findings(number, program, score, n_matched, place, NAMES)

    def _findings(
        self, number: int, program: int, score: float, n_matched: int, place: Span, kind: str | None
    ) -> Iterator[Finding]:
        searched = self._programs.programs[program]
        has_question, has_answer = searched.text.has_question, searched.text.has_answer
        for record in searched.records:
            yield Finding(
                document=number,
                part=self._programs.parts[program],
                record=record,
                score=score,
                question_overlap=score if has_question else None,
                answer_overlap=score if has_answer else None,
                n_matched=n_matched,
                question_tokens=searched.n_tokens,
                kind=kind,
                question_place=place if has_question else None,
                answer_place=place if has_answer else None,
            )

    def compile(self, documents: object) -> None:
        del documents
        nothing, places = np.zeros(1, np.uint8), np.zeros(1, np.int64)
        mark_code(nothing, places, places, nothing)
        self._search.windows_in(nothing)
        self._named.find(nothing)


class DocumentScores:
    """Scores of programs in a document; each of its functions is parsed once."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._flows: dict[Span, frozenset[str] | None] = {}

    def compare(self, program: Program, weight: int, window: Span) -> tuple[float, Span]:
        """Return score and place of a program whose tokens have this weight in a window."""
        total = program.tokens.total
        if program.flow is None or (around := function_around(self._content, *window)) is None:
            return weight / total, window
        if around not in self._flows:
            function = self._content[slice(*around)].decode(errors="replace")
            self._flows[around] = features(textwrap.dedent(function))
        flow = self._flows[around]
        if flow is None:
            return weight / total, window
        share = (weight + program.flow.weight_of(flow)) / (total + program.flow.total)
        of_size: float = min(1.0, program.n_flow / max(len(flow), 1)) ** _SIZE_EXPONENT
        return share * of_size, around
