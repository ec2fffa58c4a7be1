"""The default rule over batches of documents: its kernels, and the arrays that they write to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from decon_core.kernels import clusters
from decon_core.policy import Policy
from decon_core.search import Search, rules_of
from decon_core.words import Ragged

_ROOM_RUNS = 1 << 12
_ROOM_MATCHES = 1 << 10


@dataclass(frozen=True, eq=False)
class Matches:
    """What was found in a batch: one row per document, entry and place, in that order."""

    whole: npt.NDArray[np.int64]  # columns: `clusters.DOCUMENT` to `clusters.PASSAGE_STOP`
    scores: npt.NDArray[np.float64]  # columns: `clusters.BASE` to `clusters.SCORE`

    def __len__(self) -> int:
        return int(self.whole.shape[0])


class Detector:
    """Finds matches down to the policy's threshold. One per thread: it holds scratch arrays."""

    def __init__(self, search: Search, policy: Policy) -> None:
        self._index = search.index
        self._rules = rules_of(policy)
        self._is_exhaustive = policy.sampling == "exhaustive"
        kind: type[Any] = np.float64 if self._is_exhaustive else np.int64
        self._scratch: npt.NDArray[Any] = np.zeros(search.n_questions, kind)
        self._runs = np.empty((_ROOM_RUNS, 3), np.int64)
        self._new_room(_ROOM_MATCHES)

    def _new_room(self, n: int) -> None:
        self._whole = np.empty((n, clusters.N_WHOLE), np.int64)
        self._scores = np.empty((n, clusters.N_SCORES))

    def compile(self, documents: Ragged) -> None:
        """Have the kernels compiled, whatever the documents hold."""
        self.detect(documents)
        self._judge(documents, self._runs[:0], [], [])

    def detect(self, documents: Ragged) -> Matches:
        """All matches in these documents, given as the index numbers their tokens."""
        whole = [np.empty((0, clusters.N_WHOLE), np.int64)]
        scores = [np.empty((0, clusters.N_SCORES))]
        document = 0
        while document < len(documents):
            n, document_before = 0, document
            n, document = clusters.find_runs(
                documents.values, documents.offsets, document, self._index, self._rules, self._runs
            )
            if document == document_before:
                self._runs = np.empty((2 * self._runs.shape[0], 3), np.int64)
            self._judge(documents, self._runs[:n], whole, scores)
        return _in_order(np.concatenate(whole), np.concatenate(scores))

    def _judge(
        self,
        documents: Ragged,
        runs: npt.NDArray[np.int64],
        whole: list[npt.NDArray[np.int64]],
        scores: list[npt.NDArray[np.float64]],
    ) -> None:
        judge = clusters.judge_exhaustive if self._is_exhaustive else clusters.judge_sampled
        run = 0
        while True:
            run_before = run
            n, run = judge(
                documents.values,
                documents.offsets,
                runs,
                run,
                self._index,
                self._rules,
                self._scratch,
                self._whole,
                self._scores,
            )
            whole.append(self._whole[:n].copy())
            scores.append(self._scores[:n].copy())
            if run == runs.shape[0]:
                return
            if run == run_before:
                self._new_room(2 * self._whole.shape[0])


def _in_order(whole: npt.NDArray[np.int64], scores: npt.NDArray[np.float64]) -> Matches:
    """By document, place and entry. Of clusters with the same bounds the best, else the first."""
    keys = [clusters.END, clusters.ENTRY, clusters.START, clusters.DOCUMENT]
    order = np.lexsort([-scores[:, clusters.SCORE], *(whole[:, key] for key in keys)])
    whole, scores = whole[order], scores[order]
    named = whole[:, keys]
    is_first = np.ones(order.size, np.bool_)
    is_first[1:] = (named[1:] != named[:-1]).any(axis=1)
    return Matches(whole[is_first], scores[is_first])
