"""What a detector is: its declaration, its search, its decisions, and what it can see.

Each other file or folder here that is named like a detector holds one, complete: a subclass of
`Detector`, registered under its name (`BUILT_IN` in `config/detector_registry.py`). A subclass
states the attributes of `Declaration` and implements `search` and `visibility`; the rest has a
default. docs/detectors.md shows how to add a detector.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from decon_core.config import detector_registry as registry
from decon_core.config.detector_registry import Declaration
from decon_core.config.policy import Policy
from decon_core.config.rounding import exceeds, reaches
from decon_core.detectors.visibility import RecordTexts, Unmet
from decon_core.kernels.arrays import Bools, Floats, Integers, Numbers

if TYPE_CHECKING:  # a detector can be asked for its words before pyarrow is loaded
    import pyarrow as pa

    from decon_core.benchmarks.records import StoredRecords
    from decon_core.corpus.sketch.pack_sketch import PackSketch, Possible
    from decon_core.detectors.batch_texts import BatchTexts
    from decon_core.index.joined_index import Search as GramIndex
    from decon_core.index.text_index import Verbatim
    from decon_core.storage.tables import Array
    from decon_core.text.tokenizers import Words
    from decon_core.text.word_cache import Ragged

Span = tuple[int, int]

ABSENT = -1  # missing value in arrays
FOR_REVIEW = "near in meaning"  # `kind` of a place that waits for a person or a judge


@dataclass(frozen=True, eq=False)
class Indexes:
    """What a scan searches for."""

    grams: GramIndex
    verbatim: Verbatim | None  # None if no chosen detector reads texts
    policy: Policy
    own: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # arrays of each detector
    records: tuple[StoredRecords, ...] = ()  # records of each benchmark, by its number

    @property
    def texts(self) -> Verbatim:
        if self.verbatim is None:
            raise RuntimeError("no index of texts: the detector reads only the n-gram index")
        return self.verbatim


class Finding(NamedTuple):
    """One record found in one document.

    Spans are in tokens, places in the unit in which the detector reads documents.
    """

    document: int  # number in the batch
    part: int  # number of the benchmark
    record: int
    score: float
    question_overlap: float | None
    n_matched: int
    question_tokens: int
    answer_overlap: float | None = None
    passage_overlap: float | None = None
    question: Span | None = None
    answer: Span | None = None
    question_place: Span | None = None
    answer_place: Span | None = None
    passage_place: Span | None = None
    kind: str | None = None  # one of the `kinds` of its declaration
    searched_text: str | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class Nominations:
    """Records that were found in documents of a batch, as columns, sorted by document.

    `ABSENT` is what they lack, in all rows if a column is left out.
    """

    document: Integers
    part: npt.NDArray[np.signedinteger[Any]]
    record: npt.NDArray[np.signedinteger[Any]]
    score: Floats
    question_overlap: Floats
    n_matched: Integers
    question_tokens: Integers
    tokens: Integers  # start and stop of the question, then of the answer and of the passage
    places: Integers  # the same in the unit in which the detector reads documents
    answer_overlap: Floats | float = float(ABSENT)
    passage_overlap: Floats | float = float(ABSENT)
    total_tokens: Integers | None = None  # default: those of the question
    n_grams: Integers | None = None  # likewise
    kind: npt.NDArray[np.object_] | None = None
    searched_text: npt.NDArray[np.object_] | None = None
    matched: Sequence[bytes] | None = None  # one bit for each of `n_grams`

    def __len__(self) -> int:
        return self.document.size

    @staticmethod
    def of(findings: Iterable[Finding]) -> Nominations:
        """Return findings as columns, sorted stably by document, benchmark and record.

        Text numbers run through all benchmarks of a scan, so the order within a scan result must
        not depend on them.
        """
        findings = sorted(findings, key=attrgetter("document", "part", "record"))
        names = [column.name for column in fields(Nominations) if column.name in Finding._fields]
        values: Any = {name: _column(findings, name) for name in names}
        values["tokens"] = _spans(findings, "question", "answer")
        values["places"] = _spans(findings, "question_place", "answer_place", "passage_place")
        return Nominations(**values)

    @staticmethod
    def joined(tables: Iterable[Nominations]) -> Nominations:
        """Return several tables of the same columns, which are in order, as a single table."""
        filled = [vars(table) for table in tables if len(table)]
        if not filled:
            return Nominations.of([])
        values: Any = {
            name: np.concatenate([columns[name] for columns in filled])
            for name, column in filled[0].items()
            if isinstance(column, np.ndarray)
        }
        return Nominations(**values)


def _column(findings: Sequence[Finding], name: str) -> npt.NDArray[Any]:
    values = [getattr(finding, name) for finding in findings]
    if name in ("kind", "searched_text"):
        return np.array([*values, None], object)[:-1]
    dtype = np.float64 if name == "score" or name.endswith("_overlap") else np.int64
    return np.array([ABSENT if value is None else value for value in values], dtype)


def _spans(findings: Sequence[Finding], *names: str) -> Integers:
    absent = (ABSENT, ABSENT)
    spans = [getattr(finding, name) or absent for finding in findings for name in names]
    return np.array(spans, np.int64).reshape(-1, 2 * len(names))


class Search:
    """A detector at work in one thread: it may hold scratch arrays."""

    # Numbers the words of texts, if the search needs that; the encoder of a scan then does so, too.
    terms: Words | None = None

    def nominate(self, texts: BatchTexts) -> Nominations:
        """Return the records that may be in the documents of a batch."""
        raise NotImplementedError

    def compile(self, documents: Ragged) -> None:
        """Compile the kernels that run only for some documents, except the kernel that judges."""

    def compile_judging(self, documents: Ragged) -> None:
        """Compile the kernel that takes longest, in a separate process."""

    @property
    def is_ready_to_judge(self) -> bool:
        """Whether that kernel is compiled."""
        return True

    def take_counts(self) -> tuple[Numbers, Integers]:
        """Return indexed n-grams and their document counts since the last call, and reset them."""
        return np.empty(0, np.uint32), np.empty(0, np.int64)


class Ruled(NamedTuple):
    """What the rule of a detector says of each match, whatever its kind and its verdict."""

    score: Floats
    reaches: Bools
    is_no_answer: Bools  # never together with `reaches`


class Detector(Declaration):
    """A detector: one instance for each name."""

    def search(self, indexes: Indexes) -> Search:
        """Return a search for use in one thread."""
        raise NotImplementedError

    def own_index(self, records: Iterable[pa.Table], policy: Policy) -> Mapping[str, Array]:
        """Return the arrays of the detector's index over the records of each benchmark.

        Called if it reads `Reads.OWN`. The arrays are stored, and are in `Indexes.own` of a search.
        """
        raise NotImplementedError

    def is_bounded(self, policy: Policy) -> bool:
        """Whether `possible_blocks` can exclude blocks: with a sketch, they need not be read."""
        del policy  # some settings may have no bound
        return False

    def possible_blocks(self, indexes: Indexes, sketch: PackSketch) -> Possible:
        """Return the blocks of a pack that may contain a match; all others contain none.

        Called if `is_bounded`.
        """
        raise NotImplementedError

    def visibility(self, texts: RecordTexts, policy: Policy) -> Unmet:
        """Return why the detector cannot find the records of a benchmark, whatever the documents.

        It can find a record if a document with its unchanged texts would be a leak at the policy's
        threshold.
        """
        raise NotImplementedError

    def rule(self, matches: pa.Table, policy: Policy, threshold: float) -> Ruled:
        """Score matches of this detector, and say which reach a threshold."""
        del policy  # needed by rules with further settings
        scores = column(matches, "base_score")
        if self.threshold.is_length:
            scores, threshold = np.minimum(column(matches, "n_matched") / threshold, 1.0), 1.0
        return Ruled(scores, self.reaches_threshold(scores, threshold), np.zeros(len(scores), bool))

    def reaches_threshold(self, scores: Floats, threshold: float) -> Bools:
        is_enough: Bools = (exceeds if self.threshold.is_exclusive else reaches)(scores, threshold)
        return is_enough

    def unmet_gates(self, entry: Mapping[str, Any], policy: Policy) -> Iterator[str]:
        """Yield what an entry lacks by its rule, whatever its score."""
        del entry, policy
        yield from ()


class Nominator(Detector):
    """Stands for a detector where places are found outside the scan: no score of it is a proof."""

    summary = "places found outside the scan"
    threshold = registry.Threshold(setting="", of=())  # no score of it decides
    kinds = (
        registry.Kind(
            FOR_REVIEW, "its score alone does not prove a leak; a person or a judge decides"
        ),
    )
    finds_every_place = True


@cache
def nominator(name: str) -> Nominator:
    """Return what stands for a detector of this name."""
    kind: type[Nominator] = type("Nominator", (Nominator,), {"name": name})
    return kind()


def detector(name: str) -> Detector:
    """Return a detector; raise InputError with the known names if there is none of this name."""
    found = registry.get(name)
    if not isinstance(found, Detector):
        raise TypeError(f"{name} is registered, but is not a Detector: {type(found).__qualname__}")
    return found


def column(matches: pa.Table, name: str) -> Floats:
    return np.asarray(matches[name].to_numpy(zero_copy_only=False), dtype=np.float64)


def firsts(keys: Integers) -> Integers:
    """Return the first of the rows that are equal, which follow one another."""
    return np.flatnonzero(np.append(True, (keys[1:] != keys[:-1]).any(axis=1))[: len(keys)])


def of_needed(value: float, needed: float, more: str = "") -> str:
    """Format a value and the needed one, with enough decimals to differ."""
    decimals = next((n for n in (2, 3, 4) if f"{value:.{n}f}" != f"{needed:.{n}f}"), 6)
    return f"{value:.{decimals}f} (needed: {more}{needed:.{decimals}f})"
