"""Documents and index parts to tiles: the matches of one shard with one benchmark version.

A tile that is present says "scanned"; an empty one says "scanned, nothing found"; an absent one
says nothing. So a scan looks up which tiles are missing, reads each shard that misses any exactly
once, for all benchmarks that it misses, and writes whole tiles. How the work was cut into runs,
and on how many processes, leaves no trace in them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import as_completed
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa

from decon_core.config import Source
from decon_core.corpus import Document, Pack, Shard, Unreadable, read_shard
from decon_core.errors import CorpusError, MissingError, Problem
from decon_core.idf import current_snapshot_fingerprint
from decon_core.index import Target, has_part, load_target, missing_part
from decon_core.matches import match_rows
from decon_core.policy import Policy
from decon_core.records import Version
from decon_core.reference import detect
from decon_core.schemas import MATCHES
from decon_core.store import Store, write_json, write_parquet
from decon_core.text import clean
from decon_core.tiles import missing_tiles
from decon_core.tokens import load_tokenizer
from decon_core.workers import executor, useful_workers

_BATCH = 256  # documents tokenized together


@dataclass(frozen=True)
class ShardJob:
    """One shard and the benchmark versions that it lacks tiles for.

    Holds paths and small values only, so that it runs in any process on any machine that sees the
    store and the corpus.
    """

    root: Path
    shard: Shard
    source: Source
    versions: tuple[Version, ...]
    policy: Policy
    index: str  # fingerprints: which index parts to use, and what the tiles are named by
    scan: str


@dataclass
class ShardScan:
    """What reading one shard came to."""

    shard: str
    n_documents: int = 0
    n_characters: int = 0
    n_too_short: int = 0
    unreadable: list[Unreadable] = field(default_factory=list)

    def ledger(self) -> dict[str, Any]:
        """Nothing about benchmarks in it: every scan of a shard writes the same."""
        return {
            "shard": self.shard,
            "n_rows": self.n_documents + len(self.unreadable),
            "n_documents": self.n_documents,
            "n_characters": self.n_characters,
            "n_too_short": self.n_too_short,
            "unreadable": [
                {"row": row.row, "offset": row.offset, "reason": row.reason, "detail": row.detail}
                for row in self.unreadable
            ],
        }


@dataclass
class ScanSummary:
    """What a scan did, and what it found already done."""

    n_shards_read: int = 0
    n_tiles_written: int = 0
    n_tiles_present: int = 0
    n_bytes: int = 0
    seconds: float = 0.0


Progress = Callable[[int, int, int, float], None]  # shards done, of, bytes read, seconds


def scan_packs(
    store: Store,
    packs: Sequence[Pack],
    versions: Sequence[Version],
    policy: Policy,
    *,
    workers: int = 1,
    on_progress: Progress | None = None,
) -> ScanSummary:
    """Write every tile that these packs and benchmark versions still lack.

    A shard that cannot be read does not stop the others; all such are reported at the end.
    """
    todo = _jobs(store, packs, versions, policy)
    n_tiles = sum(len(pack.shards) for pack in packs) * len(versions)
    summary = ScanSummary(n_tiles_present=n_tiles - sum(len(job.versions) for job in todo))
    problems: list[Problem] = []
    started = time.monotonic()
    with executor(useful_workers(workers, [job.shard for job in todo])) as pool:
        running = {pool.submit(scan_shard, job): job for job in todo}
        for done, future in enumerate(as_completed(running), start=1):
            job = running[future]
            try:
                future.result()
                summary.n_shards_read += 1
                summary.n_tiles_written += len(job.versions)
            except CorpusError as error:
                problems += error.problems
            summary.n_bytes += job.shard.n_bytes
            summary.seconds = time.monotonic() - started
            if on_progress:
                on_progress(done, len(running), summary.n_bytes, summary.seconds)
    if problems:
        raise CorpusError(sorted(problems, key=str))
    return summary


def _jobs(
    store: Store, packs: Sequence[Pack], versions: Sequence[Version], policy: Policy
) -> list[ShardJob]:
    """A job per shard that lacks a tile. Refuses when an index part that is needed is missing."""
    # The snapshot's pointer is read once: all shards of a scan are named and weighed by one.
    snapshot = current_snapshot_fingerprint(store)
    tokenizer = load_tokenizer(policy.tokenizer_str).fingerprint
    index = policy.index_fingerprint(tokenizer=tokenizer, snapshot=snapshot)
    scan = policy.scan_fingerprint(tokenizer=tokenizer, snapshot=snapshot)
    absent = [version.benchmark for version in versions if not has_part(store, version, index)]
    if absent:
        raise MissingError(
            missing_part(name, str(store.index_part(index, name, "*"))) for name in absent
        )
    return [
        ShardJob(store.root, shard, pack.source, tuple(lacking), policy, index, scan)
        for pack, shard, lacking in missing_tiles(store, packs, versions, scan)
    ]


def scan_shard(job: ShardJob) -> ShardScan:
    """Read a shard once and write its tiles for these benchmark versions, then its ledger."""
    # Matches are kept down to the evidence floor; the threshold is applied to them later.
    floor = replace(job.policy, contamination_score_threshold=job.policy.evidence_floor)
    targets = [_target(job.root, version, floor, job.index) for version in job.versions]
    rows: dict[str, list[dict[str, Any]]] = {version.fingerprint: [] for version in job.versions}
    seen = ShardScan(job.shard.fingerprint)
    for document, tokens in _tokenized(job, seen):
        for target in targets:
            found = detect(tokens, target.index)
            if found:
                rows[target.version.fingerprint] += match_rows(
                    document, found, target, shard=job.shard, scan=job.scan, policy=floor
                )
    store = Store(job.root)
    for version, found_rows in rows.items():
        tile = pa.Table.from_pylist(found_rows, schema=MATCHES)
        write_parquet(store.tile(job.scan, job.shard.fingerprint, version), tile)
    write_json(store.ledger(job.scan, job.shard.fingerprint), seen.ledger())
    return seen


@lru_cache(maxsize=256)
def _target(root: Path, version: Version, policy: Policy, index: str) -> Target:
    """One per process."""
    return load_target(Store(root), version, policy, index=index)


def _tokenized(job: ShardJob, seen: ShardScan) -> Iterator[tuple[Document, tuple[int, ...]]]:
    """The documents of a shard with their tokens; `seen` takes account of every row."""
    policy, punctuation = job.policy, job.policy.punctuation_chars
    tokenizer = load_tokenizer(policy.tokenizer_str)
    rows = read_shard(job.shard, job.source)
    while batch := list(islice(rows, _BATCH)):
        documents = [row for row in batch if isinstance(row, Document)]
        seen.unreadable += [row for row in batch if isinstance(row, Unreadable)]
        texts = [clean(document.text, punctuation=punctuation) for document in documents]
        encoded = tokenizer.encode([f" {text}" for text in texts])
        for document, tokens in zip(documents, encoded, strict=True):
            seen.n_documents += 1
            seen.n_characters += len(document.text)
            seen.n_too_short += len(tokens) < 2 * policy.ngram_size
            yield document, tuple(tokens)
