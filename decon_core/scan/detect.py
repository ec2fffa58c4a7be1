"""Runs the chosen detectors on a batch; they share its tokens and its screening."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from decon_core.config.policy import Policy
from decon_core.corpus.batches import Batch
from decon_core.detectors.decon import Detector
from decon_core.detectors.exact import count
from decon_core.detectors.finding import Finding, Span
from decon_core.detectors.longest_match import measure
from decon_core.detectors.ngram_any import NgramAny
from decon_core.detectors.ratcliff import align
from decon_core.detectors.sharing import Screened, Sharing
from decon_core.index.union import Search
from decon_core.index.verbatim import Verbatim
from decon_core.scan.matches import Columns, Locate, finding_columns, match_columns
from decon_core.text.tokenizers import Tokenizer
from decon_core.text.word_cache import Encoder, Ragged


class DetectorSet:
    """The chosen detectors, for use in one thread: it holds scratch arrays."""

    def __init__(
        self, search: Search, verbatim: Verbatim | None, policy: Policy, tokenizer: Tokenizer
    ) -> None:
        self._search, self._policy = search, policy
        self._decon = Detector(search, policy.at_floor) if "decon" in policy.detectors else None
        self._verbatim, self._sharing, self._ngram_any = verbatim, None, None
        if verbatim is None:
            return
        if {"ratcliff", "longest_match", "exact"} & {*policy.detectors}:
            self._sharing = Sharing(verbatim, policy, tokenizer)
        if "ngram_any" in policy.detectors:
            self._ngram_any = NgramAny(verbatim, policy)

    def find(self, batch: Batch, tokens: Ragged, encoder: Encoder) -> list[Columns]:
        """Return the matches of each detector in document order; `tokens` are canonical tokens."""
        tables = []
        if self._decon:
            matches = self._decon.detect(tokens)
            if len(matches):
                tables.append(match_columns(batch, matches, self._search, encoder, self._policy))
        if self._sharing:
            tables += self._compare(batch, self._sharing)
        if self._ngram_any:
            findings = [*self._ngram_any.find(tokens)]
            tables += self._table(batch, findings, "ngram_any", _TokenLocator(encoder).locate)
        return tables

    def _compare(self, batch: Batch, sharing: Sharing) -> list[Columns]:
        verbatim, policy = self._verbatim, self._policy
        if verbatim is None:
            return []
        screened = sharing.look(batch)
        findings: dict[str, list[Finding]] = {"ratcliff": [], "longest_match": [], "exact": []}
        for document in sharing.shared(screened) if policy.compares_tokens else ():
            if "ratcliff" in policy.detectors:
                findings["ratcliff"] += align(document, verbatim, policy)
            if "longest_match" in policy.detectors:
                findings["longest_match"] += measure(document, verbatim, policy)
        if "exact" in policy.detectors:
            findings["exact"] += count(screened, verbatim)
        locate = _ByteLocator(sharing, screened).locate
        return [
            table
            for detector, rows in findings.items()
            for table in self._table(batch, rows, detector, locate)
        ]

    def _table(
        self, batch: Batch, findings: Sequence[Finding], detector: str, locate: Locate
    ) -> Iterable[Columns]:
        if not findings:
            return []
        return [finding_columns(batch, findings, detector, locate, self._policy.form)]

    def take_counts(self) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.int64]]:
        """Return indexed n-grams and their document counts since the last call, and reset them."""
        if self._decon:
            return self._decon.take_counts()
        return np.empty(0, np.uint32), np.empty(0, np.int64)

    def compile(self, batch: Batch, documents: Ragged, encoder: Encoder) -> None:
        """Compile all kernels, independent of what the documents contain."""
        self.compile_all_but_judging(documents)
        self.compile_judging(documents)
        self.find(batch, documents, encoder)
        self.take_counts()

    def compile_all_but_judging(self, documents: Ragged) -> None:
        if self._decon:
            self._decon.compile_finding(documents)
        if self._sharing:
            self._sharing.compile()
        if self._ngram_any:
            self._ngram_any.compile(documents)

    def compile_judging(self, documents: Ragged) -> None:
        if self._decon:
            self._decon.compile_judging(documents)

    @property
    def is_ready_to_judge(self) -> bool:
        return self._decon is None or self._decon.is_ready_to_judge


class _TokenLocator:
    """Maps canonical tokens of a document to its characters."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder

    def locate(
        self, number: int, text: str, rows: Sequence[Finding]
    ) -> list[tuple[Span | None, Span | None]]:
        places = self._encoder.places(number, text)
        return [(places.characters(*row.question) if row.question else None, None) for row in rows]


class _ByteLocator:
    """Maps bytes of the form in which a document was compared to its characters."""

    def __init__(self, sharing: Sharing, screened: Screened) -> None:
        self._sharing, self._screened = sharing, screened

    def locate(
        self, number: int, text: str, rows: Sequence[Finding]
    ) -> list[tuple[Span | None, Span | None]]:
        content = self._screened.content(number)
        spans = [span for row in rows for span in (row.question_bytes, row.answer_bytes)]
        places = iter(
            self._sharing.characters(text, content, [span for span in spans if span is not None])
        )
        return [
            (
                next(places) if row.question_bytes else None,
                next(places) if row.answer_bytes else None,
            )
            for row in rows
        ]
