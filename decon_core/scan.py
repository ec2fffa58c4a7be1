"""Documents and index parts to tiles: the matches of one shard with one benchmark version.

A tile that is present says "scanned"; an empty one says "scanned, nothing found"; an absent one
says nothing. So a scan looks up which tiles are missing, reads each shard that misses any exactly
once, for all benchmarks that it misses, and writes whole tiles. How the work was cut into runs,
and on how many processes, leaves no trace in them.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import islice
from multiprocessing import get_context, parent_process
from multiprocessing.connection import wait
from pathlib import Path
from threading import Thread
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from decon_core.config import Source
from decon_core.corpus import Document, Pack, Shard, Unreadable, count_reasons, read_shard
from decon_core.errors import CorpusError, DeconError, MissingError
from decon_core.idf import current_snapshot_fingerprint
from decon_core.index import Target, has_part, load_target, missing_part
from decon_core.policy import Policy
from decon_core.records import Version
from decon_core.reference import Found, Match, detect, question_grams, total_length
from decon_core.schemas import MATCHES
from decon_core.store import Store, read_json, write_json, write_parquet
from decon_core.text import clean, clean_with_offsets
from decon_core.tokens import Tokenizer, load_tokenizer

DETECTOR = "decon"
_BATCH = 256  # documents tokenized together
# A worker takes about 2 s to start, and gets through some 0.2 MB of compressed shards in that time.
_BYTES_PER_WORKER = 200_000


@dataclass(frozen=True)
class ShardScan:
    """What reading one shard came to."""

    shard: str
    n_rows: int
    n_documents: int
    n_characters: int
    n_too_short: int
    unreadable: dict[str, int]  # by reason
    n_matches: dict[str, int]  # by benchmark


@dataclass
class ScanSummary:
    """What a scan did, and what it found already done."""

    shards: list[ShardScan] = field(default_factory=list)
    n_tiles_written: int = 0
    n_tiles_present: int = 0
    n_bytes: int = 0
    seconds: float = 0.0


Progress = Callable[[int, int, int, float], None]  # shards done, of, bytes read, seconds


def scan_fingerprint(store: Store, policy: Policy) -> str:
    """What today's tiles are named by."""
    return policy.scan_fingerprint(
        tokenizer=load_tokenizer(policy.tokenizer_str).fingerprint,
        snapshot=current_snapshot_fingerprint(store),
    )


def missing_tiles(
    store: Store, packs: Iterable[Pack], versions: Sequence[Version], scan: str
) -> list[tuple[Pack, Shard, list[Version]]]:
    """Each shard that was not scanned against every version yet, with those that it misses."""
    missing = []
    for pack in packs:
        for shard in pack.shards:
            lacking = [
                version
                for version in versions
                if not store.tile(scan, shard.fingerprint, version.fingerprint).is_file()
            ]
            if lacking or not store.ledger(scan, shard.fingerprint).is_file():
                missing.append((pack, shard, lacking))
    return missing


@dataclass(frozen=True)
class CellCounts:
    """What one pack and one benchmark version came to, whichever run scanned them."""

    n_documents: int
    n_unreadable: int
    n_matches: int


def count_cell(store: Store, pack: Pack, version: Version, policy: Policy) -> CellCounts:
    """Read off the ledgers and tiles of a scanned cell."""
    scan = scan_fingerprint(store, policy)
    ledgers = [read_json(store.ledger(scan, shard.fingerprint)) for shard in pack.shards]
    tiles = [store.tile(scan, shard.fingerprint, version.fingerprint) for shard in pack.shards]
    return CellCounts(
        sum(ledger["n_documents"] for ledger in ledgers),
        sum(len(ledger["unreadable"]) for ledger in ledgers),
        sum(pq.read_metadata(tile).num_rows for tile in tiles),
    )


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

    missing = missing_tiles(store, packs, versions, scan)
    n_tiles = sum(len(pack.shards) for pack in packs) * len(versions)
    n_lacking = sum(len(lacking) for _, _, lacking in missing)
    summary = ScanSummary(n_tiles_written=0, n_tiles_present=n_tiles - n_lacking)
    failures: list[DeconError] = []
    started = time.monotonic()
    with _executor(_useful_workers(workers, [shard for _, shard, _ in missing])) as executor:
        jobs: dict[Future[ShardScan], tuple[Shard, int]] = {}
        for pack, shard, lacking in missing:
            job = executor.submit(
                scan_shard,
                store.root,
                shard,
                pack.source,
                tuple(lacking),
                policy,
                index=index,
                scan=scan,
            )
            jobs[job] = (shard, len(lacking))
        for done, job in enumerate(as_completed(jobs), start=1):
            shard, n_written = jobs[job]
            try:
                summary.shards.append(job.result())
                summary.n_tiles_written += n_written
            except CorpusError as error:
                failures.append(error)
            summary.n_bytes += shard.n_bytes
            summary.seconds = time.monotonic() - started
            if on_progress:
                on_progress(done, len(jobs), summary.n_bytes, summary.seconds)
    if failures:
        problems_of_all = sorted(
            (problem for error in failures for problem in error.problems), key=str
        )
        raise CorpusError(problems_of_all)
    summary.shards.sort(key=lambda shard: shard.shard)
    return summary


def _useful_workers(workers: int, shards: Sequence[Shard]) -> int:
    n_bytes = sum(shard.n_bytes for shard in shards)
    return min(workers, len(shards), n_bytes // _BYTES_PER_WORKER)


@contextmanager
def _executor(workers: int) -> Iterator[Executor]:
    if workers <= 1:
        yield _InThisProcess()
        return
    # Spawned, not forked: Dagster and Arrow hold threads, which a fork would leave half-dead.
    context = get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=context, initializer=_live_with_parent) as pool:
        try:
            yield pool
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)  # or a Ctrl-C would wait for every shard
            raise


def _live_with_parent() -> None:
    """In a worker: leave Ctrl-C to the parent, and end when it does, even if it was killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = parent_process()
    if parent is not None:
        Thread(target=_end_with, args=(parent.sentinel,), daemon=True).start()


def _end_with(sentinel: int) -> None:
    wait([sentinel])
    os._exit(1)


class _InThisProcess(Executor):
    """Runs a job at once: no start-up cost, plain tracebacks."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except CorpusError as error:
            future.set_exception(error)
        return future


@lru_cache(maxsize=256)
def _target(root: Path, version: Version, policy: Policy, index: str) -> Target:
    """One per process."""
    return load_target(Store(root), version, policy, index=index)


def scan_shard(
    root: Path,
    shard: Shard,
    source: Source,
    versions: tuple[Version, ...],
    policy: Policy,
    *,
    index: str,
    scan: str,
) -> ShardScan:
    """Read a shard once and write its tiles for these benchmark versions, then its ledger.

    Takes paths and small values only, so that it runs in any process on any machine that sees the
    store and the corpus.
    """
    store = Store(root)
    # Matches are kept down to the evidence floor; the threshold is applied to them later.
    floor = replace(policy, contamination_score_threshold=policy.evidence_floor)
    targets = [_target(root, version, floor, index) for version in versions]
    tokenizer = load_tokenizer(policy.tokenizer_str)
    punctuation = policy.punctuation_chars
    rows: dict[str, list[dict[str, Any]]] = {version.benchmark: [] for version in versions}
    unreadable: list[Unreadable] = []
    n_documents = n_characters = n_too_short = 0
    for batch in _batches(read_shard(shard, source)):
        documents = [item for item in batch if isinstance(item, Document)]
        unreadable += [item for item in batch if isinstance(item, Unreadable)]
        cleaned = [clean(document.text, punctuation=punctuation) for document in documents]
        encoded = tokenizer.encode([f" {text}" for text in cleaned])
        for document, tokens in zip(documents, encoded, strict=True):
            n_documents += 1
            n_characters += len(document.text)
            n_too_short += len(tokens) < 2 * policy.ngram_size
            for target in targets:
                found = detect(tuple(tokens), target.index)
                if found:
                    rows[target.version.benchmark] += _rows(
                        document,
                        found,
                        target,
                        shard=shard,
                        scan=scan,
                        policy=floor,
                        tokenizer=tokenizer,
                    )
    result = ShardScan(
        shard=shard.fingerprint,
        n_rows=n_documents + len(unreadable),
        n_documents=n_documents,
        n_characters=n_characters,
        n_too_short=n_too_short,
        unreadable=count_reasons(unreadable),
        n_matches={benchmark: len(found) for benchmark, found in sorted(rows.items())},
    )
    for version in versions:
        tile = pa.Table.from_pylist(rows[version.benchmark], schema=MATCHES)
        write_parquet(store.tile(scan, shard.fingerprint, version.fingerprint), tile)
    write_json(store.ledger(scan, shard.fingerprint), _ledger(result, unreadable))
    return result


def _batches(
    items: Iterator[Document | Unreadable],
) -> Iterator[list[Document | Unreadable]]:
    while batch := list(islice(items, _BATCH)):
        yield batch


def _ledger(result: ShardScan, unreadable: Sequence[Unreadable]) -> dict[str, Any]:
    """What was read and what was not. Nothing about benchmarks: every scan of a shard writes it."""
    return {
        "shard": result.shard,
        "n_rows": result.n_rows,
        "n_documents": result.n_documents,
        "n_characters": result.n_characters,
        "n_too_short": result.n_too_short,
        "unreadable": [
            {"row": row.row, "offset": row.offset, "reason": row.reason, "detail": row.detail}
            for row in unreadable
        ],
    }


def _rows(
    document: Document,
    found: Sequence[Match],
    target: Target,
    *,
    shard: Shard,
    scan: str,
    policy: Policy,
    tokenizer: Tokenizer,
) -> list[dict[str, Any]]:
    place = _Place(document.text, policy, tokenizer)
    rows = []
    for match in found:
        row = target.rows[match.number]
        record = target.records.slice(row, 1).to_pylist()[0]
        entry = target.index.entries[match.number]
        question = (match.start, match.end + policy.ngram_size)
        if question[0] < match.answer.start < question[1]:
            question = (question[0], match.answer.start)  # the cluster ran into the answer
        rows.append(
            {
                "shard": shard.fingerprint,
                "row": document.row,
                "doc_id": document.id,
                "detector": DETECTOR,
                "detector_fingerprint": scan,
                "benchmark": record["benchmark"],
                "config": record["config"],
                "split": record["split"],
                "instance_index": record["instance_index"],
                "record": row,
                "fingerprint": record["fingerprint"],
                "is_correct": record["is_correct"],
                "base_score": match.base_score,
                "question_overlap": match.question_overlap,
                "answer_overlap": match.answer.overlap if entry.answer else None,
                "passage_overlap": match.passage.overlap if entry.passage else None,
                "n_matched": match.n_matched,
                "n_grams": len(question_grams(entry, policy)),
                "question_tokens": len(entry.question),
                "total_tokens": total_length(entry),
                **place.columns("question", question),
                **place.columns("answer", _span(match.answer)),
                **place.columns("passage", _span(match.passage)),
            }
        )
    return rows


def _span(found: Found) -> tuple[int, int] | None:
    return None if found.start < 0 else (found.start, found.stop)


class _Place:
    """Token ranges of one document, with the original characters behind them."""

    def __init__(self, text: str, policy: Policy, tokenizer: Tokenizer) -> None:
        self._canonical = clean_with_offsets(text, punctuation=policy.punctuation_chars)
        self._spans = tokenizer.spans(" " + self._canonical.text)

    def columns(self, name: str, tokens: tuple[int, int] | None) -> dict[str, int | None]:
        start, stop = tokens or (None, None)
        char_start, char_stop = self._characters(*tokens) if tokens else (None, None)
        return {
            f"{name}_start": start,
            f"{name}_stop": stop,
            f"{name}_char_start": char_start,
            f"{name}_char_stop": char_stop,
        }

    def _characters(self, start: int, stop: int) -> tuple[int, int]:
        # One off for the space in front of the text; a word's own leading space is not part of it.
        first = max(self._spans[start][0] - 1, 0)
        last = self._spans[stop - 1][1] - 1
        if self._canonical.text[first] == " ":
            first += 1
        return self._canonical.original(first, max(last, first + 1))
