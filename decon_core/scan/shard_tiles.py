"""Writes the tiles of one shard, from a scan of all its blocks or of those that a sketch left."""

from __future__ import annotations

from collections import Counter
from contextlib import nullcontext
from dataclasses import asdict

from decon_core.corpus.documents import InvalidUtf8, Unreadable
from decon_core.corpus.sketch.shard_sketch import writing_sketch
from decon_core.errors import CorpusError
from decon_core.execution.progress import advance
from decon_core.scan.blocks import ShardJob, SomeBlocks, scan_blocks, scanners_for
from decon_core.scan.coverage import missing_of_shard, write_refusal
from decon_core.scan.gram_counts import gram_counts
from decon_core.scan.matches import Columns
from decon_core.schemas import DOCUMENTS, MATCHES
from decon_core.storage.drafts import remove
from decon_core.storage.store import (
    Store,
    copy_file,
    growing_parquet,
    no_rows,
    write_json,
    write_tile,
)

_COUNTS_READ = ("n_rows", "n_documents", "n_characters", "n_too_short")
_OF_UNREADABLE = ("row", "offset", "reason", "detail")


def scan_shard(job: ShardJob) -> bool:
    """Read a shard once and write its tiles for these benchmark versions, then its ledger.

    Returns False without reading if another run has written all of them in the meantime.
    """
    store = Store(job.root)
    with store.locked_shard(job.scan, job.shard.fingerprint):
        needs_counts = job.policy.leave_out_common
        missing = missing_of_shard(
            store, job.shard, job.versions, job.scan, needs_counts=needs_counts
        )
        if not missing and not job.new_sketch:
            advance(job.shard.n_bytes)
            return False
        try:
            if job.some:
                _answer_locked(store, job, job.some)
            else:
                _scan_locked(store, job)
        except CorpusError as error:
            write_refusal(store, job.shard, error)
            raise
        remove(store.refusal(job.shard.fingerprint))
        return True


def _scan_locked(store: Store, job: ShardJob) -> None:
    read = Counter[str]()
    unreadable, invalid = list[Unreadable](), list[InvalidUtf8]()
    matches: list[Columns] = []
    position = 0
    scanners = scanners_for(job)
    for each in scanners:
        each.detectors.take_counts()  # drop the counts of a shard whose scan failed
    names = job.scan, job.shard.fingerprint
    new = job.new_sketch
    sketching = (
        writing_sketch(store, new.fingerprint, job.shard.fingerprint, bits=new.bits)
        if new
        else nullcontext()
    )
    with sketching as sketcher:
        # One row per document, written while reading, so that memory does not grow with the shard.
        with growing_parquet(store.documents(*names), DOCUMENTS) as write:
            for scanned in scan_blocks(job):
                n, n_unreadable = scanned.documents.num_rows, len(scanned.unreadable)
                read.update(n_rows=n + n_unreadable, n_documents=n)
                read.update(n_characters=scanned.n_characters, n_too_short=scanned.n_too_short)
                unreadable += scanned.unreadable
                invalid += scanned.invalid
                write(scanned.documents)
                if sketcher and scanned.sketch:
                    sketcher.add(scanned.sketch)
                ahead = min(max(scanned.position, position), job.shard.n_bytes)
                advance(ahead - position)
                position = ahead
                matches += scanned.matches
        scanner = scanners[0]
        taken = [each.detectors.take_counts() for each in scanners]
        counts = gram_counts(taken, scanner.search, job.policy)
        for number, version in enumerate(job.versions):
            write_tile(store.gram_counts(*names, version.fingerprint), counts[number])
            tile = scanner.tile(matches, number, job.shard.fingerprint)
            write_tile(store.tile(*names, version.fingerprint), tile)
            remove(store.sketch_answer(*names, version.fingerprint))
        # It has nothing about benchmarks, so every scan writes the same one. `invalid_utf8` are
        # documents, with replacement characters.
        ledger = {
            "shard": job.shard.fingerprint,
            **{name: read[name] for name in _COUNTS_READ},
            "unreadable": [
                {name: getattr(row, name) for name in _OF_UNREADABLE} for row in unreadable
            ],
            "invalid_utf8": [asdict(row) for row in invalid],
        }
        if new:
            write_json(store.sketch_ledger(new.fingerprint, job.shard.fingerprint), ledger)
            kept = store.sketch_documents(new.fingerprint, job.shard.fingerprint)
            copy_file(store.documents(*names), kept)
    # The ledger is written last: it marks a complete scan.
    write_json(store.ledger(*names), ledger)
    advance(job.shard.n_bytes - position)


def _answer_locked(store: Store, job: ShardJob, some: SomeBlocks) -> None:
    """Write the tiles of a shard of which only some blocks may contain a match."""
    matches: list[Columns] = []
    for scanned in scan_blocks(job) if some.blocks else ():
        matches += scanned.matches
    names = job.scan, job.shard.fingerprint
    about = {"sketch": some.sketch, "n_blocks": some.n_blocks, "blocks_read": some.blocks}
    for number, version in enumerate(job.versions):
        if some.blocks:
            tile = scanners_for(job)[0].tile(matches, number, job.shard.fingerprint)
        else:
            tile = no_rows(MATCHES)
        write_json(store.sketch_answer(*names, version.fingerprint), about)
        write_tile(store.tile(*names, version.fingerprint), tile)
    if not store.documents(*names).is_file():
        kept = store.sketch_documents(some.sketch, job.shard.fingerprint)
        copy_file(kept, store.documents(*names))
    if not store.ledger(*names).is_file():
        copy_file(store.sketch_ledger(some.sketch, job.shard.fingerprint), store.ledger(*names))
    advance(job.shard.n_bytes)
