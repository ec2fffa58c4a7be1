"""A stratified sample of documents: of each source a number or a share, and their paragraphs.

Every document has a random number, determined by seed, shard and row. The sample of a source are
its documents below a cut: the share asked for, or the cut that gives the size asked for (which is
what reservoir sampling draws). So it does not depend on workers or order, and a larger sample
contains a smaller one. Each shard's part is a separate file, found again after a kill.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from decon_core.config.seeding import numbers_at
from decon_core.config.sources import Source
from decon_core.corpus.documents import Document
from decon_core.corpus.packs import Pack, Shard
from decon_core.corpus.shards import read_blocks
from decon_core.execution.engine import Engine
from decon_core.execution.jobs import Job, results_of, run_jobs
from decon_core.execution.local import LOCAL
from decon_core.execution.progress import advance
from decon_core.features.neighbours.paragraphs import paragraphs
from decon_core.features.neighbours.schemas import PARAGRAPHS
from decon_core.features.neighbours.settings import Neighbours
from decon_core.schemas import schema_of
from decon_core.storage.checksums import is_whole
from decon_core.storage.store import Store
from decon_core.storage.tables import read_parquet, write_parquet
from decon_core.text.tokenizers import Tokenizer, load_tokenizer

# Changes whenever the same settings would give another sample or other paragraphs.
_VERSION = 1
_LOWEST = pa.schema([pa.field("number", pa.uint64(), nullable=False)])
_ABOUT = b"about"  # counts, in the metadata of a shard's file


@dataclass(frozen=True)
class Workers:
    """Where jobs run, and who hears of their progress."""

    n: int = 1  # processes of this machine
    engine: Engine = field(default_factory=lambda: LOCAL)
    # Gets what is done, how many, and of how many.
    on_progress: Callable[[str, int, int], None] = lambda *_: None

    def at_most(self, n_jobs: int) -> int:
        return min(self.engine.most_workers(self.n), n_jobs)

    def run(
        self,
        act: Callable[[Job], None],
        jobs: Sequence[Job],
        *,
        what: str,
        total: int,
        name_of: Callable[[Job], str],
    ) -> None:
        """Do all jobs; raise CorpusError for all shards that could not be read, at the end."""
        done = run_jobs(
            act,
            jobs,
            workers=self.at_most(len(jobs)),
            engine=self.engine,
            on_advance=lambda n_done: self.on_progress(what, n_done, total),
            name_of=name_of,
        )
        for _ in results_of(done):
            pass


@dataclass(frozen=True)
class Stratum:
    """The sample of a source, and what it stands for."""

    source: str
    n_documents: int
    n_sampled: int
    n_paragraphs: int
    n_without_paragraph: int  # sampled documents that are too short for one
    n_unreadable: int  # rows of the source that are no documents

    @property
    def weight(self) -> float:
        """Return how many documents of the source a sampled one stands for."""
        return self.n_documents / self.n_sampled if self.n_sampled else 0.0


@dataclass(frozen=True)
class SampledShard:
    """A shard with the file of its sampled paragraphs."""

    shard: Shard
    source: str
    path: Path
    n_paragraphs: int

    def paragraphs(self, columns: Sequence[str] | None = None) -> pa.Table:
        return read_parquet(self.path, columns=columns)


@dataclass(frozen=True)
class _Job:
    """One shard to count or to sample."""

    folder: Path
    shard: Shard
    source: Source
    settings: Neighbours
    tokenizer: str
    size: int = 0
    cut: int = 0  # documents with a number below it are sampled; 0: none

    @cached_property
    def lowest(self) -> Path:
        return self.folder / f"{self.shard.fingerprint}-{self.settings.seed}-{self.size}.parquet"

    @cached_property
    def path(self) -> Path:
        settings = self.settings
        key = [_VERSION, settings.seed, str(self.cut), settings.min_tokens, settings.max_tokens]
        key.append(load_tokenizer(self.tokenizer).fingerprint)
        digest = sha256(json.dumps(key).encode()).hexdigest()[:16]
        return self.folder / f"{self.shard.fingerprint}-{digest}.parquet"


def draw_sample(
    store: Store,
    packs: Sequence[Pack],
    settings: Neighbours,
    *,
    tokenizer: str,
    workers: Workers,
) -> tuple[list[SampledShard], list[Stratum]]:
    """Draw what is missing of the sample; return all shards and the strata, by source.

    Raises CorpusError for all shards that could not be read, after the others are done.
    """
    folder = store.root / "neighbours/samples"
    folder.mkdir(parents=True, exist_ok=True)
    shards = sorted(
        ((pack.source, shard) for pack in packs for shard in pack.shards),
        key=lambda place: (place[0].name, place[1].name),
    )
    jobs = [
        _Job(folder, shard, source, settings, tokenizer, settings.of_source(source.name).size or 0)
        for source, shard in shards
    ]
    _run(_count, [job for job in jobs if job.size], "counted", workers)
    cuts = _cuts(jobs, settings)
    jobs = [replace(job, cut=cuts[job.source.name]) for job in jobs]
    _run(_sample, jobs, "sampled", workers)
    sampled: list[SampledShard] = []
    totals: dict[str, Counter[str]] = {}
    for job in jobs:
        table, source = read_parquet(job.path, columns=["row"]), job.source.name
        sampled.append(SampledShard(job.shard, source, job.path, table.num_rows))
        counts = json.loads(table.schema.metadata[_ABOUT])
        totals.setdefault(source, Counter()).update(counts, n_paragraphs=table.num_rows)
    return sampled, [Stratum(source, **total) for source, total in sorted(totals.items())]


def _run(act: Callable[[_Job], None], jobs: Sequence[_Job], what: str, workers: Workers) -> None:
    """Do a job for each shard whose file is missing."""
    by_path = {(job.lowest if act is _count else job.path): job for job in jobs}
    missing = [job for path, job in by_path.items() if not is_whole(path)]
    total = sum(job.shard.n_bytes for job in missing)
    what = f"bytes of shards {what}"
    workers.run(act, missing, what=what, total=total, name_of=lambda job: job.shard.path)


def _numbers(job: _Job, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.uint64]:
    return numbers_at(f"neighbours {job.settings.seed} {job.shard.fingerprint}", rows)


def _count(job: _Job) -> None:
    """Write the lowest numbers of a shard's documents, as many as are asked for of its source."""
    parts = [_numbers(job, block.read().rows) for block in read_blocks(job.shard, job.source)]
    numbers = np.sort(np.concatenate([np.zeros(0, np.uint64), *parts]))[: job.size + 1]
    write_parquet(job.lowest, pa.table({"number": numbers}, schema=_LOWEST))
    advance(job.shard.n_bytes)


_EVERY = 1 << 64


def _cuts(jobs: Sequence[_Job], settings: Neighbours) -> dict[str, int]:
    """Return the cut of each source: as many documents are below it as are asked for."""
    lowest: dict[str, list[Any]] = {}
    for job in jobs:
        lowest.setdefault(job.source.name, [])
        if job.size:
            lowest[job.source.name].append(read_parquet(job.lowest)["number"].to_numpy())
    cuts = {}
    for source, parts in lowest.items():
        asked = settings.of_source(source)
        if asked.size:
            numbers = np.sort(np.concatenate(parts))
            cuts[source] = int(numbers[asked.size]) if numbers.size > asked.size else _EVERY
        else:
            cuts[source] = min(int((asked.share or 0) * _EVERY), _EVERY)
    return cuts


def _sample(job: _Job) -> None:
    """Write the paragraphs of a shard's sampled documents."""
    rows: list[tuple[Any, ...]] = []  # same columns as `PARAGRAPHS`
    n = dict.fromkeys(("n_documents", "n_sampled", "n_without_paragraph", "n_unreadable"), 0)
    tokenizer, settings = load_tokenizer(job.tokenizer), job.settings
    for block in read_blocks(job.shard, job.source):
        batch = block.read()
        n["n_documents"] += batch.n_documents
        n["n_unreadable"] += len(batch.unreadable)
        sampled = batch.document_rows
        if job.cut < _EVERY:
            sampled = sampled[np.uint64(job.cut) > _numbers(job, sampled)]
        for row in sampled.tolist():
            document = cast("Document", batch.reread(row)).without_hidden
            text, starts = document.text, _token_starts(document.text, tokenizer)
            parts = paragraphs(text, starts, least=settings.min_tokens, most=settings.max_tokens)
            n["n_sampled"] += 1
            n["n_without_paragraph"] += not parts
            rows += [
                (document.row, document.id, part.start, part.stop, text[part.start : part.stop])
                for part in parts
            ]
    columns = zip(*rows, strict=True) if rows else [()] * len(PARAGRAPHS)
    table = pa.table([*map(list, columns)], schema=schema_of(PARAGRAPHS))
    write_parquet(job.path, table.replace_schema_metadata({_ABOUT: json.dumps(n)}))
    advance(job.shard.n_bytes)


def _token_starts(text: str, tokenizer: Tokenizer) -> list[int]:
    """Return the character in which each token of an unchanged text begins."""
    starts = tokenizer.pieces(text).starts
    if not text.isascii():
        content = np.frombuffer(text.encode(), np.uint8)
        starts = (np.cumsum((content & 0xC0) != 0x80) - 1)[starts]
    result: list[int] = starts.tolist()
    return result
