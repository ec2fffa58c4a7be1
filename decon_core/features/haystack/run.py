"""Run the study: draw documents and items, score them, rank the items, and count what filters keep.

The result depends on the corpus, the benchmarks and the settings alone; `haystack_key` names them.
"""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256

import numpy as np

from decon_core.benchmarks.records import Version
from decon_core.corpus.packs import Pack
from decon_core.features.haystack.documents import HaystackDocument, SourceCount, draw_documents
from decon_core.features.haystack.planted import BenchmarkCount, PlantedItem, choose_items
from decon_core.features.haystack.ranks import Amplification, Ranking, amplification, rank
from decon_core.features.haystack.scorers import Scorer, fingerprints_of, load_scorers
from decon_core.features.haystack.settings import Haystack
from decon_core.features.haystack.trained import features_of
from decon_core.storage.store import Store

# Changes whenever the same inputs would give other results.
_VERSION = 2
_FEWEST_OF_SUBJECT = 2  # planted items of a subject that has rows of its own
_LEFT_OUT = frozenset({"scorers", "model", "key_env"})  # settings that are not in the key

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Place:
    """A planted item in the ranking of a scorer."""

    item: PlantedItem
    score: float
    rank: float  # among the documents; 1 is above all of them
    percentile: float


@dataclass(frozen=True)
class Placing:
    """The places of the items of a benchmark, or of one of its subjects, by a scorer."""

    benchmark: str | None  # None: of all benchmarks
    subject: str | None  # None: of all subjects
    n: int
    median: float  # percentile
    low: float  # lowest percentile
    high: float
    amplifications: tuple[Amplification, ...]  # one for each cut


@dataclass(frozen=True)
class Scored:
    """What a scorer made of documents and planted items."""

    name: str
    about: str
    n_ranked: int  # documents
    n_without_score: int  # documents, which are not ranked
    places: tuple[Place, ...]
    placings: tuple[Placing, ...]  # of all benchmarks, then of each and of its subjects


@dataclass(frozen=True)
class Study:
    settings: Haystack
    n_documents: int  # documents of the corpus in the haystack
    sources: tuple[SourceCount, ...]
    benchmarks: tuple[BenchmarkCount, ...]
    planted: tuple[PlantedItem, ...]
    scored: tuple[Scored, ...]
    unreadable: tuple[str, ...]


def haystack_key(packs: Sequence[Pack], versions: Sequence[Version], settings: Haystack) -> str:
    """Return a digest of all inputs. Raises InputError if the file of a scorer cannot be found."""
    shards = [
        [pack.source.name, shard.name, shard.fingerprint] for pack in packs for shard in pack.shards
    ]
    inputs = [
        _VERSION,
        {name: value for name, value in asdict(settings).items() if name not in _LEFT_OUT},
        fingerprints_of(settings),
        sorted(shards),
        [[version.benchmark, version.fingerprint] for version in versions],
    ]
    return sha256(json.dumps(inputs).encode()).hexdigest()[:16]


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
    return Study(
        settings=settings,
        n_documents=len(drawn.haystack),
        sources=drawn.counts,
        benchmarks=planting.counts,
        planted=planting.planted,
        scored=tuple(scored),
        unreadable=drawn.unreadable,
    )


def score(
    scorer: Scorer,
    documents: Sequence[HaystackDocument],
    planted: Sequence[PlantedItem],
    cuts: Sequence[float],
) -> Scored:
    of_documents, of_planted = scorer.of_documents(documents), scorer.of_planted(planted)
    has_score = np.isfinite(of_documents)
    ranking = rank(of_documents[has_score], of_planted)
    columns = (array.tolist() for array in (of_planted, ranking.ranks, ranking.percentiles))
    return Scored(
        name=scorer.name,
        about=scorer.about,
        n_ranked=ranking.n,
        n_without_score=int((~has_score).sum()),
        places=tuple(Place(*values) for values in zip(planted, *columns, strict=True)),
        placings=tuple(_placings(ranking, planted, cuts)),
    )


def _placings(
    ranking: Ranking, planted: Sequence[PlantedItem], cuts: Sequence[float]
) -> Iterator[Placing]:
    for benchmark, subject in _groups(planted):
        chosen = np.array(
            [
                benchmark in (None, one.benchmark) and subject in (None, one.subject)
                for one in planted
            ]
        )
        percentiles = ranking.percentiles[chosen]
        yield Placing(
            benchmark=benchmark,
            subject=subject,
            n=percentiles.size,
            median=float(np.median(percentiles)),
            low=float(percentiles.min()),
            high=float(percentiles.max()),
            amplifications=tuple(amplification(ranking, cut, chosen) for cut in cuts),
        )


def _groups(planted: Sequence[PlantedItem]) -> Iterator[tuple[str | None, str | None]]:
    """Yield all benchmarks as one group, then each with its subjects.

    Subjects with fewer items are left out: the median of one item says nothing of a subject.
    """
    yield None, None
    for benchmark in dict.fromkeys(item.benchmark for item in planted):
        yield benchmark, None
        subjects = Counter(item.subject for item in planted if item.benchmark == benchmark)
        if len(subjects) > 1:
            names = (name for name in subjects if name and subjects[name] >= _FEWEST_OF_SUBJECT)
            yield from ((benchmark, name) for name in sorted(names))
