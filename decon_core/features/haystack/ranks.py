"""Ranks of planted items among documents, and by how much a filter amplifies them.

Each item is ranked among the documents of the corpus alone, so its place does not depend on which
other items are planted. Rank 1 is above all documents; among documents with the same score it is in
the middle. The percentile is the share of the documents below, with half of the equal ones.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from decon_core.decisions.calibration import wilson
from decon_core.decisions.statistics import Floats


@dataclass(frozen=True)
class Ranking:
    """The places of the planted items, an element each."""

    n: int  # documents
    n_above: Floats  # documents with a higher score
    n_equal: Floats  # documents with the same score

    @property
    def ranks(self) -> Floats:
        return 1 + self.n_above + self.n_equal / 2

    @property
    def percentiles(self) -> Floats:
        return 100 * (1 - (self.n_above + self.n_equal / 2) / self.n)


def rank(documents: Floats, planted: Floats) -> Ranking:
    """Rank planted items among documents, by their scores."""
    ascending = np.sort(documents)
    right = np.searchsorted(ascending, planted, side="right")
    n_equal = right - np.searchsorted(ascending, planted, side="left")
    return Ranking(ascending.size, (ascending.size - right).astype(float), n_equal.astype(float))


@dataclass(frozen=True)
class Amplification:
    """What a filter that keeps the highest scores does to the share of planted items."""

    cut: float  # share of the documents to keep
    n_kept: int  # documents
    n_planted: int
    # Planted items kept; equal scores at the cut count as many as expected by chance.
    planted_kept: float
    share: float  # share of the planted items that are kept
    amplification: float  # this share over the share of the documents that are kept
    low: float  # low end of the amplification: Wilson's 95 % interval of the share
    high: float


def amplification(
    ranking: Ranking, cut: float, chosen: npt.NDArray[np.bool_] | None = None
) -> Amplification:
    """Return the amplification of all planted items, or of the chosen, at a cut.

    An item is kept if fewer documents than the filter keeps are above it; of items that are equal
    to documents, the same share is kept as of these documents. A cut of 1 keeps everything.
    """
    above, equal = ranking.n_above, ranking.n_equal
    if chosen is not None:
        above, equal = above[chosen], equal[chosen]
    n_kept = max(int(cut * ranking.n + 0.5), 1)
    is_kept = np.clip((n_kept - above) / np.maximum(equal, 1), 0, 1)
    kept = float(is_kept.sum()) if n_kept < ranking.n else float(above.size)
    share, of_all = kept / above.size, n_kept / ranking.n
    low, high = wilson(share, above.size)
    return Amplification(
        cut, n_kept, above.size, kept, share, share / of_all, low / of_all, high / of_all
    )
