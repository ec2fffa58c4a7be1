"""Draw documents of the corpus by a seed, whatever the order of shards or the number of workers.

Every document has a random number, determined by seed, shard and row. The documents with the lowest
numbers of all sources are set aside to train scorers on; the haystack are the next of the chosen
sources. So no scorer is trained on what it ranks, and a larger haystack contains a smaller one.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from decon_core.config.seeding import numbers_at
from decon_core.config.sources import Source
from decon_core.corpus.documents import Document, document_of, field_value, not_a_document
from decon_core.corpus.packs import Pack, Shard
from decon_core.corpus.shards import read_blocks, values_of
from decon_core.errors import CorpusError, MissingError, Problem
from decon_core.execution.jobs import results_of, run_jobs, useful_workers
from decon_core.execution.progress import advance
from decon_core.features.haystack.settings import Haystack
from decon_core.wording import size

MOST_TRAINING = 2000  # documents set aside
_TRAINING_SHARE = 0.2  # and not more than this share of all
_MOST_PLACES = 20  # places of unreadable rows that are listed
_SECONDS_BETWEEN_LINES = 10.0

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class HaystackDocument:
    """A document of the corpus, and the numbers in its row that scorers ask for."""

    source: str
    shard: str
    row: int
    text: str
    is_conversation: bool
    values: Mapping[str, float | None] = field(default_factory=dict)  # None: no number


@dataclass(frozen=True)
class SourceCount:
    """A source with its number of documents, and how many were drawn."""

    source: str
    n_documents: int
    n_unreadable: int  # rows that are no documents
    n_training: int
    n_haystack: int


@dataclass(frozen=True)
class DrawnDocuments:
    """The haystack, and the documents to train on."""

    haystack: tuple[HaystackDocument, ...]
    training: tuple[HaystackDocument, ...]
    counts: tuple[SourceCount, ...]
    unreadable: tuple[str, ...]  # the first of the unreadable rows, with place and reason


@dataclass(frozen=True)
class _Job:
    """A shard to number, or some of its rows to read."""

    number: int  # number of the shard
    shard: Shard
    source: Source
    seed: int
    most: int = 0  # how many of the lowest numbers are kept
    rows: tuple[int, ...] = ()
    columns: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Count:
    n_documents: int
    n_unreadable: int
    unreadable: tuple[str, ...]


_Places = list[tuple[int, int]]  # number of a job, and row of its shard
_POOL = pl.Schema({"number": pl.UInt64, "job": pl.Int64, "row": pl.Int64})


def draw_documents(
    packs: Sequence[Pack], settings: Haystack, *, workers: int = 1
) -> DrawnDocuments:
    """Draw the haystack, and the documents to train on.

    Raises CorpusError for all shards that could not be read, MissingError without any document.
    """
    shards = sorted(
        ((pack.source, shard) for pack in packs for shard in pack.shards),
        key=lambda place: (place[0].name, place[1].name),
    )
    most = settings.documents + MOST_TRAINING
    jobs = [
        _Job(number, shard, source, settings.seed, most)
        for number, (source, shard) in enumerate(shards)
    ]
    chosen = set(settings.sources) or {source.name for source, _ in shards}
    order, counts = _number_all(jobs, chosen, workers)
    n_all = sum(count.n_documents for count in counts)
    n_training = min(MOST_TRAINING, int(n_all * _TRAINING_SHARE))
    training, rest = order[:n_training], order[n_training:]
    haystack = [place for place in rest if jobs[place[0]].source.name in chosen]
    haystack = haystack[: settings.documents]
    if not haystack:
        raise MissingError(Problem("the corpus", "no documents", "documents to plant items among"))
    columns = dict.fromkeys(
        scorer.target.partition("=")[0]
        for scorer in settings.scorer_names
        if scorer.kind == "column"
    )
    texts = _read(jobs, [*training, *haystack], tuple(columns), workers)
    unreadable = tuple(place for count in counts for place in count.unreadable)[:_MOST_PLACES]
    return DrawnDocuments(
        haystack=tuple(texts[place] for place in haystack),
        training=tuple(texts[place] for place in training),
        counts=_source_counts(jobs, counts, training, haystack),
        unreadable=unreadable,
    )


def _source_counts(
    jobs: Sequence[_Job], counts: Sequence[_Count], training: _Places, haystack: _Places
) -> tuple[SourceCount, ...]:
    n_documents, n_unreadable = Counter[str](), Counter[str]()
    for job, count in zip(jobs, counts, strict=True):
        n_documents[job.source.name] += count.n_documents
        n_unreadable[job.source.name] += count.n_unreadable
    n_training = Counter(jobs[number].source.name for number, _ in training)
    n_haystack = Counter(jobs[number].source.name for number, _ in haystack)
    return tuple(
        SourceCount(name, n, n_unreadable[name], n_training[name], n_haystack[name])
        for name, n in n_documents.items()
    )


def _run(
    act: Callable[[_Job], Any], jobs: Sequence[_Job], what: str, workers: int
) -> Iterator[tuple[_Job, Any]]:
    """Do all jobs; yield each with its result when it ends.

    Raises CorpusError for all shards that could not be read, after the others are done.
    """
    sizes = [job.shard.n_bytes for job in jobs]
    logged_at = time.monotonic()

    def log_progress(n_bytes: int) -> None:
        nonlocal logged_at
        if time.monotonic() - logged_at >= _SECONDS_BETWEEN_LINES:
            logged_at = time.monotonic()
            _log.info(f"{size(n_bytes)} of {size(sum(sizes))} of shards {what}")

    done = run_jobs(
        act,
        jobs,
        workers=useful_workers(workers, sizes),
        on_advance=log_progress,
        name_of=lambda job: job.shard.path,
    )
    yield from results_of(done)


def _number_all(
    jobs: Sequence[_Job], chosen: Collection[str], workers: int
) -> tuple[_Places, list[_Count]]:
    """Return the places with the lowest numbers, in order, and what each shard has.

    Equal numbers, as those of a shard that is there twice, are in the order of the shards.
    """
    pools = dict.fromkeys((True, False), pl.DataFrame(schema=_POOL))
    counts: dict[int, _Count] = {}
    for job, (lowest, count) in _run(_number, jobs, "numbered", workers):
        is_chosen = job.source.name in chosen
        pools[is_chosen] = with_lowest(pools[is_chosen], lowest, job.number, job.most)
        counts[job.number] = count
    places = pl.concat(pools.values()).sort("number", "job", "row").select("job", "row").rows()
    return places, [counts[job.number] for job in jobs]


def with_lowest(pool: pl.DataFrame, lowest: pl.DataFrame, job: int, most: int) -> pl.DataFrame:
    """Add the lowest numbers of a shard; drop high ones, as a corpus may have many shards."""
    added = lowest.with_columns(job=pl.lit(job, pl.Int64)).select(_POOL.names())
    pool = pool.vstack(added)
    if pool.height <= 2 * most:
        return pool
    # Equal numbers stay together, so that the order of the shards makes no difference.
    return pool.filter(pl.col("number") <= pl.col("number").bottom_k(most).max())


def _number(job: _Job) -> tuple[pl.DataFrame, _Count]:
    """Return the lowest numbers of a shard's documents, and what it has."""
    name = f"haystack {job.seed} {job.shard.fingerprint}"
    numbers, rows = [np.zeros(0, np.uint64)], [np.zeros(0, np.int64)]
    unreadable: list[str] = []
    n_unreadable = 0
    for block in read_blocks(job.shard, job.source):
        batch = block.read()
        n_unreadable += len(batch.unreadable)
        unreadable += [
            f"{job.shard.path}: row {row.row}: {row.reason} ({row.detail})"
            for row in batch.unreadable[: _MOST_PLACES - len(unreadable)]
        ]
        numbers.append(numbers_at(name, batch.document_rows))
        rows.append(batch.document_rows)
    every = pl.DataFrame({"number": np.concatenate(numbers), "row": np.concatenate(rows)})
    advance(job.shard.n_bytes)
    count = _Count(every.height, n_unreadable, tuple(unreadable))
    return every.sort("number", maintain_order=True).head(job.most), count


def _read(
    jobs: Sequence[_Job], places: _Places, columns: tuple[str, ...], workers: int
) -> dict[tuple[int, int], HaystackDocument]:
    rows: dict[int, list[int]] = {}
    for number, row in places:
        rows.setdefault(number, []).append(row)
    with_rows = [
        replace(jobs[number], rows=tuple(sorted(in_shard)), columns=columns)
        for number, in_shard in rows.items()
    ]
    return {
        (job.number, document.row): document
        for job, documents in _run(_documents, with_rows, "read", workers)
        for document in documents
    }


def _documents(job: _Job) -> list[HaystackDocument]:
    """Read rows of a shard with their text and columns."""
    source = job.source
    documents = []
    for row, value in values_of(job.shard, source, job.rows):
        document = document_of(value, row, source)
        if not isinstance(document, Document):
            raise CorpusError(not_a_document(Path(job.shard.path), row, document.reason))
        documents.append(
            HaystackDocument(
                source=source.name,
                shard=job.shard.name,
                row=row,
                text=document.visible,
                is_conversation=bool(source.messages),
                values={name: _number_in(field_value(value, name)) for name in job.columns},
            )
        )
    advance(job.shard.n_bytes)
    return documents


def _number_in(value: object) -> float | None:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return float(value) if is_number and isfinite(value) else None  # type: ignore[arg-type]
