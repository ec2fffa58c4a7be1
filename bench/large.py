"""Makes a store like that of a large scan, with made-up matches.

The sizes exceed those of any available corpus. The cost of a report depends on the numbers of scan
results, items and matches, not on the content of texts, so the store has no texts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from decon_core.benchmarks.records import Version, save_records
from decon_core.config.policy import Policy
from decon_core.config.sources import Source
from decon_core.corpus.packs import Pack, Shard
from decon_core.execution.jobs import run_jobs, usable_cores
from decon_core.index.parts import build_part
from decon_core.index.term_weights import freeze
from decon_core.scan.coverage import scan_fingerprint
from decon_core.scan.join import join_scan_results, write_unjoined
from decon_core.schemas import DOCUMENTS, GRAM_COUNTS, MATCHES, RECORDS
from decon_core.storage.files import write_json
from decon_core.storage.store import Store
from decon_core.storage.tables import no_rows, write_parquet

Integers = npt.NDArray[np.int64]

_BENCHMARKS = 4
_SOURCES = ("web", "chat", "code", "books")
_SHARDS_PER_PACK = 64
_DOCUMENTS_PER_SHARD = 100_000
_WORDS_PER_QUESTION = 25
_FORMS_OF_ITEM = 3  # different passages in which an item stands: so many matched texts at most


@dataclass(frozen=True)
class Sizes:
    """The sizes of the store."""

    n_matches: int = 1_000_000
    n_items: int = 100_000
    n_shards: int = 10_000


def make_store(root: Path, sizes: Sizes) -> None:
    """Make real records, idf and index, and generated scan results and ledgers as of a scan."""
    store, policy = Store(root), Policy()
    versions = [_records(store, number, sizes) for number in range(_BENCHMARKS)]
    snapshot = freeze(store, versions, policy)
    for version in versions:
        build_part(store, version, snapshot, policy)
    scan = scan_fingerprint(store, policy)
    jobs = [_Job(root, tuple(versions), scan, sizes, pack) for pack in packs_of(sizes)]
    for _, future in run_jobs(_write, jobs, workers=usable_cores(), on_advance=lambda _: None):
        future.result()


def _records(store: Store, number: int, sizes: Sizes) -> Version:
    rng = np.random.default_rng(number)
    n_items = sizes.n_items // _BENCHMARKS
    vocabulary = np.array([f"word{n}" for n in range(5_000)])
    words = vocabulary[rng.integers(0, vocabulary.size, (n_items, _WORDS_PER_QUESTION))]
    rows = [
        {
            "benchmark": f"bench_{number}",
            "split": "test",
            "instance_index": at,
            "question": " ".join(question),
            "answer": " ".join(question[:3]),
            "fingerprint": f"{number:04x}{at:012x}",
        }
        for at, question in enumerate(words)
    ]
    name = f"bench_{number}"
    return save_records(store, name, pa.Table.from_pylist(rows, schema=RECORDS))


def packs_of(sizes: Sizes) -> Iterator[Pack]:
    """Return the packs of a corpus whose shards do not exist."""
    per_source = -(-sizes.n_shards // len(_SOURCES))
    for number, name in enumerate(_SOURCES):
        source = Source(name=name, path=f"{name}/*.jsonl", text="text")
        own = range(number * per_source, min((number + 1) * per_source, sizes.n_shards))
        for at in range(0, len(own), _SHARDS_PER_PACK):
            shards = tuple(_shard(name, n) for n in own[at : at + _SHARDS_PER_PACK])
            pack = f"{name}-{at // _SHARDS_PER_PACK:04}"
            yield Pack(name=pack, source=source, shards=shards)


def _shard(source: str, number: int) -> Shard:
    name = f"{source}/shard-{number:05}.jsonl"
    return Shard(
        source=source,
        name=name,
        path=f"/nowhere/{name}",
        content=_fingerprint(number),
        fingerprint=_fingerprint(number),
        n_bytes=0,
        modified_ns=0,
    )


def _fingerprint(shard: int) -> str:
    return f"{shard:016x}"


@dataclass(frozen=True)
class _Job:
    """A pack whose scan results and ledgers are to be written."""

    root: Path
    versions: tuple[Version, ...]
    scan: str
    sizes: Sizes
    pack: Pack


def _write(job: _Job) -> None:
    numbers = [int(shard.fingerprint, 16) for shard in job.pack.shards]
    store, rng = Store(job.root), np.random.default_rng(numbers[0])
    per_scan_result = job.sizes.n_matches / job.sizes.n_shards / len(job.versions)
    for shard in numbers:
        results = {
            version.fingerprint: (
                _scan_result(rng, int(rng.poisson(per_scan_result)), shard, number, job),
                no_rows(GRAM_COUNTS),
            )
            for number, version in enumerate(job.versions)
        }
        write_unjoined(store, job.scan, _fingerprint(shard), results)
        columns = {name: [0] * _DOCUMENTS_PER_SHARD for name in DOCUMENTS.names}
        documents = pa.table(columns, DOCUMENTS)
        write_parquet(store.unjoined_documents(job.scan, _fingerprint(shard)), documents)
        write_json(store.unjoined_ledger(job.scan, _fingerprint(shard)), _ledger(shard))
    versions = [version.fingerprint for version in job.versions]
    join_scan_results(store, job.scan, [shard.fingerprint for shard in job.pack.shards], versions)


def _ledger(shard: int) -> dict[str, object]:
    n = _DOCUMENTS_PER_SHARD
    counts = {"n_rows": n, "n_documents": n, "n_characters": 2_000 * n, "n_bytes": 2_000 * n}
    names = ("unreadable", "invalid_utf8", "unread", "origins")
    nothing: dict[str, list[object]] = {name: [] for name in names}
    zero = {"n_too_short": 0, "n_without_text": 0}
    return {"shard": _fingerprint(shard), **counts, **zero, **nothing}


def _scan_result(rng: np.random.Generator, n: int, shard: int, number: int, job: _Job) -> pa.Table:
    """Generate the matches of one benchmark in a shard: few items are frequent, most are rare."""
    n_items = job.versions[number].n_items
    item = (rng.zipf(1.3, n) * 7_919 % n_items).astype(np.int64)
    form = rng.integers(0, _FORMS_OF_ITEM, n)
    overlap = 1 - rng.beta(1.2, 4, n) * 0.4
    start = rng.integers(0, 5_000, n)
    columns = {
        "shard": [_fingerprint(shard)] * n,
        "row": np.sort(rng.integers(0, _DOCUMENTS_PER_SHARD, n)),
        "doc_id": [f"{shard}-{at}" for at in range(n)],
        "detector": ["decon"] * n,
        "detector_fingerprint": [job.scan] * n,
        "slot_kind": ["visible"] * n,
        "benchmark": [job.versions[number].benchmark] * n,
        "split": ["test"] * n,
        "instance_index": item,
        "record": item,
        "fingerprint": [f"{number:04x}{at:012x}" for at in item.tolist()],
        "text_id": [f"{number:02x}{at:012x}{of:02x}" for at, of in zip(item, form, strict=True)],
        "base_score": overlap,
        "question_overlap": overlap,
        "answer_overlap": rng.integers(0, 2, n).astype(np.float64),
        "n_matched": np.full(n, 20),
        "matched": [b"\x07\xff\xff"] * n,
        "n_grams": np.full(n, _WORDS_PER_QUESTION - 4),
        "question_tokens": np.full(n, 2 * _WORDS_PER_QUESTION),
        "total_tokens": np.full(n, 2 * _WORDS_PER_QUESTION + 6),
        "question_start": start,
        "question_stop": start + 2 * _WORDS_PER_QUESTION,
        "question_char_start": 6 * start,
        "question_char_stop": 6 * start + 12 * _WORDS_PER_QUESTION,
    }
    arrays = [
        pa.array(columns[field.name], field.type)
        if field.name in columns
        else pa.nulls(n, field.type)
        for field in MATCHES
    ]
    return pa.table(arrays, schema=MATCHES)
