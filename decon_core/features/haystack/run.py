"""Run the study: draw documents and items, score them, rank the items, and count what filters keep.

The result depends on the corpus, the benchmarks and the settings alone; `haystack_key` names them.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from decon_core.benchmarks.records import Version
from decon_core.corpus.packs import Pack
from decon_core.decisions.statistics import Floats
from decon_core.features.blends.items import Item
from decon_core.features.haystack.documents import DrawnDocuments, HaystackDocument, draw_documents
from decon_core.features.haystack.files import fingerprints_of
from decon_core.features.haystack.planted import PlantedItem, Planting, choose_items
from decon_core.features.haystack.ranks import Amplification, Ranking, amplification, rank
from decon_core.features.haystack.scorers import Scorer, load_scorers
from decon_core.features.haystack.settings import Haystack
from decon_core.features.haystack.trained import features_of
from decon_core.storage.store import Store

_FEWEST_OF_SUBJECT = 2  # planted items of a subject that has separate rows

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Placing:
    """The places of the items of a benchmark, or of one of its subjects, by a scorer."""

    benchmark: str | None  # None: of all benchmarks
    subject: str | None  # None: of all subjects
    n: int
    median_percentile: float
    lowest_percentile: float
    highest_percentile: float
    amplification: tuple[Amplification, ...]  # one for each cut


@dataclass(frozen=True)
class Scored:
    """What a scorer made of documents and planted items."""

    name: str
    about: str
    n_without_score: int  # documents, which are not ranked
    scores: Floats  # one for each planted item
    ranking: Ranking
    placings: tuple[Placing, ...]  # all benchmarks together, then each, followed by its subjects


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
        placings=tuple(_placings(ranking, [each.item for each in planted], cuts)),
    )


def _placings(ranking: Ranking, items: Sequence[Item], cuts: Sequence[float]) -> Iterator[Placing]:
    for benchmark, subject in _groups(items):
        chosen = np.array(
            [
                benchmark in (None, item.benchmark) and subject in (None, item.config)
                for item in items
            ]
        )
        percentiles = ranking.percentiles[chosen]
        yield Placing(
            benchmark=benchmark,
            subject=subject,
            n=percentiles.size,
            median_percentile=float(np.median(percentiles)),
            lowest_percentile=float(percentiles.min()),
            highest_percentile=float(percentiles.max()),
            amplification=tuple(amplification(ranking, cut, chosen) for cut in cuts),
        )


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
