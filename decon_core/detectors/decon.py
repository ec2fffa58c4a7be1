"""The `decon` detector, the default: run its kernels over batches of documents."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from decon_core.config.policy import Policy
from decon_core.index.union import Search, thresholds_of
from decon_core.kernels import clusters, sampled
from decon_core.kernels.jit import is_ready
from decon_core.text.word_cache import Ragged

_INITIAL_RUNS = 1 << 12
_INITIAL_MATCHES = 1 << 10
_MAX_SERIAL = 1 << 31


@dataclass(frozen=True, eq=False)
class Matches:
    """The matches of a batch: one row per document, entry and position, in that order."""

    whole: npt.NDArray[np.int64]  # columns: `clusters.DOCUMENT` to `clusters.PASSAGE_STOP`
    scores: npt.NDArray[np.float64]  # columns: `clusters.BASE` to `clusters.SCORE`
    matched: list[bytes]  # one bit per distinct question n-gram, in order of first occurrence

    def __len__(self) -> int:
        return int(self.whole.shape[0])


class Detector:
    """Find matches down to the policy's evidence floor. One per thread: it holds scratch arrays."""

    def __init__(self, search: Search, policy: Policy) -> None:
        self._index = search.index
        self._entry_question = search.entry_question
        self._thresholds = thresholds_of(policy)
        self._is_exhaustive = policy.sampling == "exhaustive"
        kind: type[Any] = np.float64 if self._is_exhaustive else np.int64
        self._scratch: npt.NDArray[Any] = np.zeros(search.n_questions, kind)
        self._runs = np.empty((_INITIAL_RUNS, 3), np.int64)
        # The distinct n-grams of each document, counted on the way to find common n-grams.
        self._last_seen = np.zeros(search.index.gram_at.size, np.uint32)
        self._serial = 1
        self._seen = np.empty(0, np.uint32)
        self._seen_batches: list[npt.NDArray[np.uint32]] = []
        self._alloc_outputs(_INITIAL_MATCHES)

    def _alloc_outputs(self, n: int) -> None:
        self._whole = np.empty((n, clusters.N_WHOLE), np.int64)
        self._scores = np.empty((n, clusters.N_SCORES))

    def compile(self, documents: Ragged) -> None:
        """Compile all kernels, whatever the documents contain."""
        self.compile_finding(documents)
        self.compile_judging(documents)

    def compile_finding(self, documents: Ragged) -> None:
        """Compile all kernels but the judging one, which takes as long as the others together."""
        self._find_runs(documents, 0)
        self._matched(documents, self._whole[:0])

    def compile_judging(self, documents: Ragged) -> None:
        self._judge(documents, self._runs[:0], [], [])

    @property
    def is_ready_to_judge(self) -> bool:
        return is_ready(self._judging)

    def detect(self, documents: Ragged) -> Matches:
        """Return all matches in documents whose tokens are numbered as in the index."""
        whole = [np.empty((0, clusters.N_WHOLE), np.int64)]
        scores = [np.empty((0, clusters.N_SCORES))]
        document = 0
        self._reserve_serials(len(documents))
        while document < len(documents):
            document_before = document
            n, document, n_seen = self._find_runs(documents, document)
            self._seen_batches.append(self._seen[:n_seen].copy())
            if document == document_before:
                self._runs = np.empty((2 * self._runs.shape[0], 3), np.int64)
            self._judge(documents, self._runs[:n], whole, scores)
        self._serial += len(documents)
        ordered = _sorted_unique(np.concatenate(whole), np.concatenate(scores))
        return Matches(*ordered, self._matched(documents, ordered[0]))

    def _find_runs(self, documents: Ragged, document: int) -> tuple[int, int, int]:
        """Find n-gram runs from `document` on; return n_runs, the next document, n_seen."""
        if self._seen.size < documents.values.size:
            self._seen = np.empty(documents.values.size, np.uint32)
        return clusters.find_runs(
            documents.values,
            documents.offsets,
            document,
            self._index,
            self._thresholds,
            self._runs,
            self._last_seen,
            self._serial,
            self._seen,
        )

    def _matched(self, documents: Ragged, whole: npt.NDArray[np.int64]) -> list[bytes]:
        index = self._index
        questions = self._entry_question[whole[:, clusters.ENTRY]].astype(np.int64)
        n_grams = np.diff(index.question_gram_offsets)[questions]
        edges = np.concatenate([np.zeros(1, np.int64), np.cumsum(n_grams)])
        bits = np.zeros(edges[-1], np.uint8)
        clusters.mark_matched(
            documents.values,
            documents.offsets,
            whole,
            questions,
            index,
            self._thresholds,
            edges,
            bits,
        )
        return [np.packbits(bits[start:stop]).tobytes() for start, stop in pairwise(edges.tolist())]

    def _reserve_serials(self, n: int) -> None:
        if self._serial + n > _MAX_SERIAL:
            self._last_seen[:] = 0
            self._serial = 1

    def take_counts(self) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.int64]]:
        """Return the n-grams seen since the last call, and the number of documents with each."""
        seen_batches, self._seen_batches = self._seen_batches, []
        grams, counts = np.unique(
            np.concatenate([np.empty(0, np.uint32), *seen_batches]), return_counts=True
        )
        return grams, counts

    @property
    def _judging(self) -> Callable[..., tuple[int, int]]:
        return clusters.judge_exhaustive if self._is_exhaustive else sampled.judge_sampled

    def _judge(
        self,
        documents: Ragged,
        runs: npt.NDArray[np.int64],
        whole: list[npt.NDArray[np.int64]],
        scores: list[npt.NDArray[np.float64]],
    ) -> None:
        run = 0
        while True:
            run_before = run
            n, run = self._judging(
                documents.values,
                documents.offsets,
                runs,
                run,
                self._index,
                self._thresholds,
                self._scratch,
                self._whole,
                self._scores,
            )
            whole.append(self._whole[:n].copy())
            scores.append(self._scores[:n].copy())
            if run == runs.shape[0]:
                return
            if run == run_before:
                self._alloc_outputs(2 * self._whole.shape[0])


def _sorted_unique(
    whole: npt.NDArray[np.int64], scores: npt.NDArray[np.float64]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Sort by document, position and entry; of clusters with equal bounds keep the best score."""
    keys = [clusters.END, clusters.ENTRY, clusters.START, clusters.DOCUMENT]
    order = np.lexsort([-scores[:, clusters.SCORE], *(whole[:, key] for key in keys)])
    whole, scores = whole[order], scores[order]
    key_columns = whole[:, keys]
    is_first = np.ones(order.size, np.bool_)
    is_first[1:] = (key_columns[1:] != key_columns[:-1]).any(axis=1)
    return whole[is_first], scores[is_first]
