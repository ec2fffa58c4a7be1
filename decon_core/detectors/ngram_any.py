"""The `ngram_any` detector (GPT-3): one question n-gram in a document makes a leak.

Tokens are canonical. The longest common run is stored, so one scan serves sizes 8 and 13.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from decon_core.config.policy import Policy
from decon_core.detectors.finding import Finding, sort_findings
from decon_core.index.verbatim import QUESTION, Verbatim
from decon_core.kernels import runs
from decon_core.kernels.grams import screen_runs
from decon_core.text.word_cache import Ragged


class NgramAny:
    """Find matches in batches of documents. One per thread: it holds scratch arrays."""

    def __init__(self, verbatim: Verbatim, policy: Policy) -> None:
        self._verbatim = verbatim
        self._size = policy.ngram_any_floor
        self._best = np.zeros(verbatim.n_rows, np.int64)
        self._place = np.zeros((verbatim.n_rows, 2), np.int64)
        self._touched = np.empty(verbatim.n_rows, np.int64)

    def find(self, documents: Ragged) -> list[Finding]:
        """Return all questions that share a run with a document."""
        return sort_findings(self._findings(documents))

    def _findings(self, documents: Ragged) -> Iterator[Finding]:
        verbatim, texts = self._verbatim, self._verbatim.canonical
        shares = np.zeros(len(documents), np.uint8)
        screen_runs(
            documents.values,
            documents.offsets,
            self._size,
            verbatim.canonical_pairs,
            verbatim.canonical_filter,
            shares,
        )
        for number in np.flatnonzero(shares).tolist():
            start, stop = documents.offsets[number], documents.offsets[number + 1]
            n = self._longest_runs(documents, start, stop)
            for text in np.sort(self._touched[:n]).tolist():
                run = int(self._best[text])
                first = int(self._place[text, runs.DOCUMENT] - start)
                self._best[text] = 0
                length = int(texts.offsets[text + 1] - texts.offsets[text])
                yield from self._findings_of_text(number, text, run, first, length)

    def _longest_runs(self, documents: Ragged, start: int, stop: int) -> int:
        return runs.longest_runs(
            documents.values,
            start,
            stop,
            self._verbatim.canonical,
            self._size,
            self._best,
            self._place,
            self._touched,
        )

    def compile(self, documents: Ragged) -> None:
        """Compile the kernels that run only for documents with a shared run."""
        self._longest_runs(documents, 0, 0)

    def _findings_of_text(
        self, number: int, text: int, run: int, first: int, length: int
    ) -> Iterator[Finding]:
        for use in self._verbatim.uses(text, (QUESTION,)):
            yield Finding(
                document=number,
                part=use.part,
                record=use.record,
                score=run / length,
                question_overlap=run / length,
                n_matched=run,
                question_tokens=length,
                total_tokens=length,
                question=(first, first + run),
            )
