"""Scans the blocks of a shard, one scanner per thread."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from queue import Queue
from threading import Timer
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from decon_core.benchmarks.records import StoredRecords, Version, load_records
from decon_core.config.detector_registry import Reads
from decon_core.config.policy import Policy
from decon_core.config.sources import Source
from decon_core.corpus.batches import Batch, Block
from decon_core.corpus.documents import InvalidUtf8, Unreadable
from decon_core.corpus.formats.json_lines import compile_line_reader
from decon_core.corpus.origins import Origins
from decon_core.corpus.packs import Shard
from decon_core.corpus.shard_file import changed
from decon_core.corpus.shards import read_blocks, read_places
from decon_core.detectors.detector import Indexes, detector
from decon_core.errors import CorpusError
from decon_core.execution.jobs import in_subprocess, in_threads, one_ahead, usable_cores
from decon_core.index.joined_index import open_own_index, open_search
from decon_core.kernels import word_table
from decon_core.kernels.jit import are_compiled_at_once, compiled_at_once, is_new
from decon_core.scan.alike import Items, items_of, without_alike
from decon_core.scan.detect import DetectorSet
from decon_core.scan.matches import LABELS, Columns, scan_result_of
from decon_core.schemas import DOCUMENTS
from decon_core.storage.store import Store
from decon_core.text.markup import compile_markup
from decon_core.text.tokenizers import load_tokenizer
from decon_core.text.word_cache import Encoder, FixedVocabulary, Ragged

if TYPE_CHECKING:
    from decon_core.corpus.sketch.shard_sketch import PartSketch

_log = logging.getLogger(__name__)

# Loading compiled kernels takes less time; after this they are being compiled.
_LOADING_SECONDS = 3.0
# Compressed. Reading and judging so little in plain Python takes less time than compiling it.
_LITTLE_BYTES = 8_000_000


@dataclass(frozen=True)
class NewSketch:
    """The sketch that is written while a shard is scanned."""

    fingerprint: str
    bits: int  # per n-gram
    is_joined: bool = False  # the sketch of the pack has the filters already


@dataclass(frozen=True)
class SomeBlocks:
    """The blocks of a shard that may contain a match, by its sketch."""

    sketch: str  # fingerprint
    blocks: tuple[int, ...]
    n_blocks: int  # blocks of the shard


@dataclass(frozen=True)
class ShardJob:
    """One shard and the benchmark versions for which it has no scan results.

    Holds only paths and small values, so that it can run in any process on any machine that can
    read the store and the corpus.
    """

    root: Path
    shard: Shard
    source: Source
    versions: tuple[Version, ...]
    policy: Policy
    index: str  # fingerprint of the index parts
    scan: str  # fingerprint that names the scan results and the union of index parts
    threads: int = 1
    is_read_ahead: bool = False  # one thread only: another one reads the next block
    new_sketch: NewSketch | None = None  # None: no sketch is written
    some: SomeBlocks | None = None  # None: all blocks are read
    # What there is already; the store of a node does not have it (`node_store.py`).
    is_read: bool = False  # ledger and documents
    joined: frozenset[str] = frozenset()  # versions with joined scan results

    @property
    def n_bytes_to_read(self) -> int:
        """About how much of the shard is read."""
        if not self.some:
            return self.shard.n_bytes
        return round(self.shard.n_bytes * len(self.some.blocks) / max(self.some.n_blocks, 1))


@dataclass
class ScannedBlock:
    """Documents, matches and unreadable rows of one block."""

    position: int
    documents: pa.Table
    counts: Mapping[str, int]  # counts that a ledger adds up
    unreadable: list[Unreadable]
    invalid: list[InvalidUtf8]
    unread: Mapping[str, Sequence[int]]  # texts that are not read, by path: number and bytes
    origins: Origins
    matches: list[Columns]
    sketch: PartSketch | None


_SAMPLE = Batch.of_texts(["two words"])


class Scanner:
    """Scans blocks in one thread; scanners share the index but not word tables and scratch."""

    def __init__(
        self,
        store: Store,
        versions: Sequence[Version],
        policy: Policy,
        index: str,
        scan: str,
        is_sketching: bool = False,
    ) -> None:
        self._store = store
        self._scan = scan
        self._ngram_size = policy.ngram_size
        self._strips_markup = policy.strip_markup
        indexes = open_indexes(store, versions, policy, index=index, scan=scan)
        self.search = indexes.grams
        tokenizer = load_tokenizer(policy.tokenizer_str)
        self.detectors = DetectorSet(indexes, tokenizer)
        make_encoder = partial(
            Encoder,
            tokenizer,
            form=policy.form,
            table_mb=policy.word_table_mb,
            terms=self.detectors.terms,
        )
        self._numberings = None
        if is_sketching:
            from decon_core.corpus.sketch.shard_sketch import TwoNumberings

            self._numberings = TwoNumberings(tokenizer, self.search.ids, make_encoder)
            self.encoder = self._numberings.encoder
        else:
            self.encoder = make_encoder(FixedVocabulary(self.search.ids))
        self._labels: dict[int, pa.Table] = {}
        self._items: dict[int, Items] = {}

    def scan(self, block: Block) -> ScannedBlock:
        return self.scan_batch(block.read(), block)

    def scan_batch(self, batch: Batch, block: Block) -> ScannedBlock:
        """Scan the documents that were read of a block."""
        tokens, stable = self._encode(batch)
        sketch = None
        if stable is not None:
            from decon_core.corpus.sketch.shard_sketch import PartSketch

            sketch = PartSketch.of(block.place, batch, stable, ngram_size=self._ngram_size)
        found = self.detectors.find(batch, tokens, self.encoder)
        matches = [without_alike(columns, self._items_of) for columns in found]
        n_bytes = batch.per_document(batch.stops - batch.starts)
        n_tokens = batch.per_document(tokens.lengths)
        documents = pa.table([batch.document_rows, n_bytes, n_tokens], schema=DOCUMENTS)
        return ScannedBlock(
            position=block.position,
            documents=documents,
            counts={
                "n_rows": documents.num_rows + len(batch.unreadable) + batch.n_left_out,
                "n_documents": documents.num_rows,
                "n_characters": batch.n_characters,
                "n_bytes": int(n_bytes.sum()),
                "n_too_short": int((n_tokens < 2 * self._ngram_size).sum()),
                "n_without_text": len(batch.without_text),
                "n_left_out": batch.n_left_out,
                "n_left_out_without_text": batch.n_left_out_without_text,
                "n_rows_with_blank": block.place.n_rows,
            },
            unreadable=batch.unreadable,
            invalid=batch.invalid,
            unread=batch.unread,
            origins=batch.origins,
            matches=matches,
            sketch=sketch,
        )

    def _encode(self, batch: Batch) -> tuple[Ragged, Ragged | None]:
        """Return tokens as numbered in the index, and for a sketch with stable numbers too."""
        if self._numberings:
            return self._numberings.encode(batch)
        return self.encoder.encode(batch.text, batch.starts, batch.stops), None

    def compile_words(self) -> Ragged:
        """Compile the kernels that tokenize text, and return the tokens of a sample."""
        tokens, _ = self._encode(_SAMPLE)
        self.encoder.places(0, "two words")
        if self._strips_markup:
            compile_markup()
        return tokens

    def compile(self) -> None:
        """Compile or load all kernels, so that no later scan waits for a kernel."""
        tokens = self.compile_words()
        self.detectors.compile(_SAMPLE, tokens, self.encoder)

    def scan_result(self, matches: Sequence[Columns], number: int, shard: str) -> pa.Table:
        """Return the scan result of a shard and a benchmark, given by its number in the union."""
        labels = partial(self._labels_of, number)
        return scan_result_of(matches, number, labels=labels, shard=shard, scan=self._scan)

    def _items_of(self, number: int) -> Items:
        if number not in self._items:
            self._items[number] = items_of(self._labels_of(number))
        return self._items[number]

    def _labels_of(self, number: int) -> pa.Table:
        if number not in self._labels:
            version = self.search.versions[number]
            self._labels[number] = load_records(self._store, version, columns=LABELS)
        return self._labels[number]


def open_indexes(
    store: Store, versions: Sequence[Version], policy: Policy, *, index: str, scan: str
) -> Indexes:
    """Memory-map all indexes that the chosen detectors read."""
    grams = open_search(store, versions, policy.at_floor, index=index, scan=scan)
    verbatim = None
    if policy.needs_texts:
        from decon_core.index.text_index import open_verbatim

        verbatim = open_verbatim(store, versions, grams.ids, policy, scan=scan)
    own = open_own_indexes(store, versions, policy, scan=scan)
    records = tuple(StoredRecords(store, version) for version in grams.versions)
    return Indexes(grams, verbatim, policy, own=own, records=records)


def open_own_indexes(
    store: Store, versions: Sequence[Version], policy: Policy, *, scan: str
) -> dict[str, dict[str, Any]]:
    """Memory-map the indexes that chosen detectors have of their own; build missing ones first."""
    return {
        chosen.name: open_own_index(
            store,
            versions,
            chosen.name,
            partial(chosen.own_index, policy=policy),
            columns=chosen.own_columns,
            scan=scan,
        )
        for chosen in map(detector, policy.detectors)
        if chosen.reads is Reads.OWN
    }


def scanners_for(job: ShardJob) -> list[Scanner]:
    """Return a scanner for each thread of a job."""
    arguments = (job.versions, job.policy, job.index, job.scan, job.new_sketch is not None)
    kept = kept_scanners(job.root, *arguments)
    while len(kept) < job.threads:
        kept.append(Scanner(Store(job.root), *arguments))
    return kept[: job.threads]


@lru_cache(maxsize=1)
def kept_scanners(
    _root: Path,
    _versions: tuple[Version, ...],
    _policy: Policy,
    _index: str,
    _scan: str,
    _is_sketching: bool,
) -> list[Scanner]:
    """Return the scanners of a union of benchmarks, kept between shards for their word tables.

    `kept_scanners.cache_clear()` frees them: the tables take most of the memory.
    """
    return []


def scan_blocks(job: ShardJob) -> Iterator[ScannedBlock]:
    """Scan the blocks of a shard in several threads and yield the results in order."""
    blocks = _read_some(job, job.some) if job.some else read_blocks(job.shard, job.source)
    scanners = scanners_for(job)
    if len(scanners) == 1:
        read = ((block.read(), block) for block in blocks)
        # Closed here: after an error the traceback would keep the reading thread and the file.
        with closing(one_ahead(read) if job.is_read_ahead else read) as batches:
            yield from (scanners[0].scan_batch(*each) for each in batches)
        return
    free: Queue[Scanner] = Queue()
    for scanner in scanners:
        free.put(scanner)

    def scan(block: Block) -> ScannedBlock:
        scanner = free.get()
        try:
            return scanner.scan(block)
        finally:
            free.put(scanner)

    yield from in_threads(scan, blocks, threads=len(scanners))


def _read_some(job: ShardJob, some: SomeBlocks) -> Iterator[Block]:
    """Yield the parts of chosen blocks; reading one raises `CorpusError` if its text changed."""
    from decon_core.corpus.sketch.shard_sketch import digest_of_texts, open_blocks

    store, shard = Store(job.root), job.shard.fingerprint
    blocks = open_blocks(store, some.sketch, shard)
    places, digests = zip(*blocks.parts(some.blocks), strict=True)
    parts = read_places(job.shard, job.source, places)
    for block, digest in zip(parts, digests, strict=True):

        def read(block: Block = block, digest: bytes = digest) -> Batch:
            batch = block.read()
            if digest_of_texts(batch) != digest:
                raise CorpusError(changed(Path(job.shard.path)))
            return batch

        yield replace(block, read=read)


@contextmanager
def compilation_notice(level: int = logging.INFO) -> Iterator[None]:
    """Log that kernels are being compiled, if the block takes longer than loading them."""
    notice = Timer(
        _LOADING_SECONDS,
        lambda: _log.log(level, "compiling the kernels (up to a minute, once per machine)"),
    )
    notice.start()
    try:
        yield
    finally:
        notice.cancel()


def compile_kernels(job: ShardJob, *, n_bytes: int | None = None) -> None:
    """Compile all kernels before workers start; otherwise each worker would compile them.

    With little to scan (`n_bytes`, compressed), only those that a scan of anything needs.
    """
    is_little = n_bytes is not None and n_bytes <= _LITTLE_BYTES and not are_compiled_at_once()
    with compilation_notice(), nullcontext() if is_little else compiled_at_once():
        scanner = scanners_for(job)[0]
        tokens = scanner.compile_words()
        is_cached = not is_new(word_table.look_up) or scanner.detectors.is_ready_to_judge
        if not (is_cached or is_little):
            with in_subprocess(_compile_judging, job) if usable_cores() > 1 else nullcontext():
                compile_line_reader(job.source)
                scanner.detectors.compile_all_but_judging(tokens)
        compile_line_reader(job.source)
        scanner.compile()


def _compile_judging(job: ShardJob) -> None:
    """Compile about half of the kernels, in a subprocess in parallel with the rest."""
    tokens = Ragged(np.zeros(2, np.uint32), np.array([0, 2]))
    with compiled_at_once():
        scanners_for(job)[0].detectors.compile_judging(tokens)
