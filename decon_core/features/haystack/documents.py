"""Draw documents of the corpus by a seed, whatever the order of shards or the number of workers.

Every document has a random number, determined by seed, shard and row. The documents with the lowest
numbers of all sources are set aside to train scorers on; the haystack are the next of the chosen
sources. So no scorer is trained on what it ranks, and a larger haystack contains a smaller one.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from decon_core.config.seeding import numbers_at
from decon_core.config.sources import Source
from decon_core.corpus.documents import Document, document_of, field_value, not_a_document
from decon_core.corpus.packs import Pack, Shard
from decon_core.corpus.shards import read_blocks, values_of
from decon_core.errors import CorpusError, MissingError, Problem
from decon_core.execution.jobs import run_jobs, useful_workers
from decon_core.execution.progress import advance
from decon_core.features.haystack.settings import Haystack
from decon_core.wording import size

MOST_TRAINING = 2000  # documents set aside
_TRAINING_SHARE = 0.2  # and not more than this share of all
_MOST_PLACES = 20  # of unreadable rows that are listed
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

    shard: Shard
    source: Source
    seed: int
    most: int = 0  # of the lowest numbers
    rows: tuple[int, ...] = ()
    columns: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Count:
    """What a shard has."""

    n_documents: int
    n_unreadable: int
    unreadable: tuple[str, ...]


@dataclass(frozen=True)
class _Numbered:
    """The documents of a shard with the lowest numbers."""

    numbers: npt.NDArray[np.uint64]
    rows: npt.NDArray[np.int64]
    count: _Count


_Places = list[tuple[int, int]]  # number of a job, and row of its shard


def draw_documents(
    packs: Sequence[Pack], settings: Haystack, *, workers: int = 1
) -> DrawnDocuments:
    """Draw the haystack, and the documents to train on.

    Raises CorpusError for all shards that could not be read, MissingError without any document.
    """
    jobs = _jobs(packs, settings)
    chosen = set(settings.sources) or {job.source.name for job in jobs}
    order, counts = _number_all(jobs, chosen, workers)
    n_all = sum(count.n_documents for count in counts)
    training = order[: min(MOST_TRAINING, int(n_all * _TRAINING_SHARE))]
    rest = order[len(training) :]
    haystack = [one for one in rest if jobs[one[0]].source.name in chosen][: settings.documents]
    if not haystack:
        raise MissingError(Problem("the corpus", "no document", "documents to plant items among"))
    columns = tuple(dict.fromkeys(column_names(settings)))
    found = _read(jobs, [*training, *haystack], columns, workers)
    unreadable = tuple(place for count in counts for place in count.unreadable)[:_MOST_PLACES]
    documents = tuple(found[one] for one in (*training, *haystack))
    n = len(training)
    of_sources = _of_sources(jobs, counts, training, haystack)
    return DrawnDocuments(documents[n:], documents[:n], of_sources, unreadable)


def column_names(settings: Haystack) -> Iterator[str]:
    """Yield the columns of the corpus that scorers read."""
    for one in settings.scorer_names:
        if one.kind == "column":
            yield one.target.partition("=")[0]


def _jobs(packs: Sequence[Pack], settings: Haystack) -> list[_Job]:
    most = settings.documents + MOST_TRAINING
    shards = sorted(
        ((pack.source, shard) for pack in packs for shard in pack.shards),
        key=lambda one: (one[0].name, one[1].name),
    )
    return [_Job(shard, source, settings.seed, most) for source, shard in shards]


def _run(
    act: Callable[[_Job], Any], jobs: Sequence[_Job], what: str, workers: int
) -> Iterator[tuple[int, Any]]:
    """Do all jobs; yield the number of each with its result when it ends.

    Raises CorpusError for all shards that could not be read, after the others are done.
    """
    sizes = [job.shard.n_bytes for job in jobs]
    numbers = {id(job): at for at, job in enumerate(jobs)}
    problems: list[Problem] = []
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
    for job, future in done:
        error = future.exception()
        if isinstance(error, CorpusError):
            problems += error.problems
        elif error:
            raise error
        else:
            yield numbers[id(job)], future.result()
    if problems:
        raise CorpusError(dict.fromkeys(problems))


@dataclass
class _Lowest:
    """The places with the lowest numbers, of all shards so far: a corpus may have many shards."""

    most: int
    numbers: npt.NDArray[np.uint64] = field(default_factory=lambda: np.zeros(0, np.uint64))
    jobs: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    rows: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))

    def add(self, job: int, found: _Numbered) -> None:
        self.numbers = np.concatenate([self.numbers, found.numbers])
        self.jobs = np.concatenate([self.jobs, np.full(found.rows.size, job)])
        self.rows = np.concatenate([self.rows, found.rows])
        if self.numbers.size > 2 * self.most:
            # Equal numbers stay together, so that the order of the shards makes no difference.
            cut = np.partition(self.numbers, self.most - 1)[self.most - 1]
            is_low = self.numbers <= cut
            self.numbers, self.jobs = self.numbers[is_low], self.jobs[is_low]
            self.rows = self.rows[is_low]


def _number_all(
    jobs: Sequence[_Job], chosen: Collection[str], workers: int
) -> tuple[_Places, list[_Count]]:
    """Return the places with the lowest numbers, in order, and what each shard has.

    Equal numbers, as those of a shard that is there twice, are in the order of the shards.
    """
    pools = {is_chosen: _Lowest(jobs[0].most if jobs else 1) for is_chosen in (True, False)}
    counts: dict[int, _Count] = {}
    for at, found in _run(_number, jobs, "numbered", workers):
        pools[jobs[at].source.name in chosen].add(at, found)
        counts[at] = found.count
    one, other = pools.values()
    of_job = np.concatenate([one.jobs, other.jobs])
    rows = np.concatenate([one.rows, other.rows])
    order = np.lexsort((rows, of_job, np.concatenate([one.numbers, other.numbers])))
    places = [*zip(of_job[order].tolist(), rows[order].tolist(), strict=True)]
    return places, [counts[at] for at in range(len(jobs))]


def _number(job: _Job) -> _Numbered:
    """Return the lowest numbers of a shard's documents."""
    name = f"haystack {job.seed} {job.shard.fingerprint}"
    numbers, rows = [np.zeros(0, np.uint64)], [np.zeros(0, np.int64)]
    unreadable: list[str] = []
    n_unreadable = 0
    for block in read_blocks(job.shard, job.source):
        batch = block.read()
        n_unreadable += len(batch.unreadable)
        unreadable += [
            f"{job.shard.path}: row {one.row}: {one.reason} ({one.detail})"
            for one in batch.unreadable[: _MOST_PLACES - len(unreadable)]
        ]
        numbers.append(numbers_at(name, batch.document_rows))
        rows.append(batch.document_rows)
    every, every_row = np.concatenate(numbers), np.concatenate(rows)
    lowest = np.argsort(every, kind="stable")[: job.most]
    advance(job.shard.n_bytes)
    count = _Count(every.size, n_unreadable, tuple(unreadable))
    return _Numbered(every[lowest], every_row[lowest], count)


def _read(
    jobs: Sequence[_Job], wanted: _Places, columns: tuple[str, ...], workers: int
) -> dict[tuple[int, int], HaystackDocument]:
    """Read the documents at these places."""
    rows: dict[int, list[int]] = {}
    for at, row in wanted:
        rows.setdefault(at, []).append(row)
    numbers = [*rows]
    with_rows = [
        replace(jobs[at], rows=tuple(sorted(some)), columns=columns) for at, some in rows.items()
    ]
    return {
        (numbers[at], document.row): document
        for at, documents in _run(_documents, with_rows, "read", workers)
        for document in documents
    }


def _documents(job: _Job) -> list[HaystackDocument]:
    """Read rows of a shard with their text and columns."""
    source = job.source
    found = []
    for row, value in values_of(job.shard, source, job.rows):
        document = document_of(value, row, source)
        if not isinstance(document, Document):
            raise CorpusError(not_a_document(Path(job.shard.path), row, document.reason))
        values = {name: _number_in(field_value(value, name)) for name in job.columns}
        names = source.name, job.shard.name, row
        found.append(HaystackDocument(*names, document.visible, bool(source.messages), values))
    advance(job.shard.n_bytes)
    return found


def _number_in(value: object) -> float | None:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return float(value) if is_number and isfinite(value) else None  # type: ignore[arg-type]


def _of_sources(
    jobs: Sequence[_Job], counts: Sequence[_Count], training: _Places, haystack: _Places
) -> tuple[SourceCount, ...]:
    totals: dict[str, list[int]] = {}
    for job, count in zip(jobs, counts, strict=True):
        total = totals.setdefault(job.source.name, [0, 0, 0, 0])
        total[0] += count.n_documents
        total[1] += count.n_unreadable
    for at, places in ((2, training), (3, haystack)):
        for number, _ in places:
            totals[jobs[number].source.name][at] += 1
    return tuple(SourceCount(name, *total) for name, total in totals.items())
