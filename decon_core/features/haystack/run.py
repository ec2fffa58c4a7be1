"""Run the study: draw documents and items, score them, rank the items, and count what filters keep.

The result depends on the corpus, the benchmarks and the settings alone; `haystack_key` names them.

Each item is ranked among the documents of the corpus alone, so its place does not depend on which
other items are planted. Rank 1 is above all documents; among documents with the same score it is in
the middle. The percentile is the share of the documents below, with half of the equal ones.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from decon_core.benchmarks.records import Version
from decon_core.corpus.packs import Pack
from decon_core.decisions.calibration import wilson
from decon_core.decisions.statistics import Floats
from decon_core.features.blends.items import Item
from decon_core.features.haystack.documents import DrawnDocuments, HaystackDocument, draw_documents
from decon_core.features.haystack.planted import PlantedItem, Planting, choose_items
from decon_core.features.haystack.product import fingerprints_of
from decon_core.features.haystack.scorers import Scorer, load_scorers
from decon_core.features.haystack.settings import Haystack
from decon_core.features.haystack.trained import features_of
from decon_core.storage.store import Store
from decon_core.text_tables import rounded


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


_FEWEST_OF_SUBJECT = 2  # planted items of a subject that has separate rows

Placing = Mapping[str, Any]  # as RESULT has it

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Scored:
    """What a scorer made of documents and planted items."""

    name: str
    about: str
    n_without_score: int  # documents, which are not ranked
    scores: Floats  # one for each planted item
    ranking: Ranking
    placings: Sequence[Placing]  # all benchmarks together, then each, followed by its subjects


@dataclass(frozen=True)
class Study:
    settings: Haystack
    drawn: DrawnDocuments
    planting: Planting
    scored: tuple[Scored, ...]


def run_haystack(
    store: Store,
    packs: Sequence[Pack],
    versions: Sequence[Version],
    settings: Haystack,
    *,
    workers: int = 1,
) -> Study:
    """Plant items among documents, and rank them by every scorer."""
    planting = choose_items(store, versions, settings)
    fingerprints_of(settings)  # a file that is missing is named before shards are read
    drawn = draw_documents(packs, settings, workers=workers)
    scored = []
    for scorer in load_scorers(settings, planting, drawn.training):
        _log.info(f"{scorer.name}: {scorer.about}")
        scored.append(score(scorer, drawn.haystack, planting.planted, settings.cuts))
    features_of.cache_clear()
    return Study(settings, drawn, planting, tuple(scored))


def score(
    scorer: Scorer,
    documents: Sequence[HaystackDocument],
    planted: Sequence[PlantedItem],
    cuts: Sequence[float],
) -> Scored:
    of_documents, of_planted = scorer.of_documents(documents), scorer.of_planted(planted)
    has_score = np.isfinite(of_documents)
    ranking = rank(of_documents[has_score], of_planted)
    return Scored(
        name=scorer.name,
        about=scorer.about,
        n_without_score=int((~has_score).sum()),
        scores=of_planted,
        ranking=ranking,
        placings=[*_placings(ranking, [each.item for each in planted], cuts)],
    )


def _placings(ranking: Ranking, items: Sequence[Item], cuts: Sequence[float]) -> Iterator[Placing]:
    """Yield the places of all items, of a benchmark, or of a subject, and what each cut keeps."""
    for benchmark, subject in _groups(items):
        chosen = np.array(
            [
                benchmark in (None, item.benchmark) and subject in (None, item.config)
                for item in items
            ]
        )
        percentiles = ranking.percentiles[chosen]
        kept = [vars(amplification(ranking, cut, chosen)) for cut in cuts]
        yield {
            "benchmark": benchmark,  # None: of all benchmarks
            "subject": subject,  # None: of all subjects
            "n": percentiles.size,
            "median_percentile": rounded(float(np.median(percentiles))),
            "lowest_percentile": rounded(float(percentiles.min())),
            "highest_percentile": rounded(float(percentiles.max())),
            "amplification": [{key: rounded(row[key]) for key in row} for row in kept],
        }


def _groups(items: Sequence[Item]) -> Iterator[tuple[str | None, str | None]]:
    """Yield all benchmarks as one group, then each with its subjects.

    Subjects with fewer items are left out: the median of one item says nothing of a subject.
    """
    yield None, None
    for benchmark in dict.fromkeys(item.benchmark for item in items):
        yield benchmark, None
        subjects = Counter(item.config for item in items if item.benchmark == benchmark)
        if len(subjects) > 1:
            names = (name for name in subjects if name and subjects[name] >= _FEWEST_OF_SUBJECT)
            yield from ((benchmark, name) for name in sorted(names))
