"""Runs one measurement of this project in a separate process: `python -m bench.stages JOB`.

Separate processes keep the memory and the warm tables of one measurement from affecting the next.
Prints one JSON object.
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

from bench.peers import peak_bytes
from decon_core.benchmarks.records import Version, current_version
from decon_core.config.policy import Policy
from decon_core.config.sources import Source
from decon_core.corpus.documents import Document
from decon_core.corpus.packs import Pack
from decon_core.corpus.shards import read_shard
from decon_core.index.parts import index_fingerprint
from decon_core.kernels.jit import compiled_at_once
from decon_core.library.results import STORE_FOLDER
from decon_core.library.scan import pack_of
from decon_core.scan.coverage import scan_fingerprint
from decon_core.scan.scanner import scan_packs
from decon_core.storage.drafts import remove
from decon_core.storage.store import Store

Job = dict[str, Any]
Result = dict[str, Any]


def index(job: Job) -> Result:
    """Build the index of all benchmarks from nothing."""
    from decon_core.benchmarks.folder import records_in
    from decon_core.benchmarks.records import save_records
    from decon_core.index.joined_index import build_search, search_name
    from decon_core.index.parts import build_part, index_fingerprint
    from decon_core.index.term_weights import freeze

    store, policy = Store(Path(job["store"])), Policy()
    if store.root.exists():
        remove(store.root)
    started = time.perf_counter()
    tables = records_in(Path(job["evals"]))
    versions = [save_records(store, name, table) for name, table in tables.items()]
    read_seconds = time.perf_counter() - started
    started = time.perf_counter()
    snapshot = freeze(store, versions, policy)
    for version in versions:
        build_part(store, version, snapshot, policy)
    scan_name = scan_fingerprint(store, policy)
    name = index_fingerprint(store, policy)
    build_search(store, versions, policy.at_floor, index=name, scan=scan_name)
    seconds = time.perf_counter() - started
    parts = [store.index_part(name, version.benchmark, version.fingerprint) for version in versions]
    files = [*parts, store.search(scan_name, search_name(versions))]
    return {
        "seconds": seconds,
        "read_seconds": read_seconds,
        "n_records": sum(version.n_records for version in versions),
        "benchmarks": [version.benchmark for version in versions],
        "size_bytes": sum(file.stat().st_size for file in files),
        "peak_bytes": peak_bytes(),
    }


def stages(job: Job) -> Result:
    """Measure reading, words and search separately, block by block, on the same documents."""
    from decon_core.corpus.shards import read_blocks
    from decon_core.detectors.decon import ClusterSearch
    from decon_core.index.joined_index import open_search
    from decon_core.text.tokenizers import load_tokenizer
    from decon_core.text.word_cache import Encoder, FixedVocabulary

    policy = Policy()
    store, versions = _prepared(job)
    # Before the clock starts: names hold the tokenizer's fingerprint, and loading it takes longer.
    index, scan = index_fingerprint(store, policy), scan_fingerprint(store, policy)
    started = time.perf_counter()
    search = open_search(store, versions, policy.at_floor, index=index, scan=scan)
    map_seconds = time.perf_counter() - started
    encoder = Encoder(
        load_tokenizer(policy.tokenizer_str),
        FixedVocabulary(search.ids),
        form=policy.form,
        table_mb=policy.word_table_mb,
    )
    detector = ClusterSearch(search, policy.at_floor)
    pack = _pack(job)
    seconds = dict.fromkeys(("read", "words", "search"), 0.0)
    n_bytes = 0
    # Compiled kernels are loaded when they are first called, and the first words are all new.
    first = next(read_blocks(pack.shards[0], pack.source)).read()
    tokens = encoder.encode(first.text, first.starts, first.stops)
    detector.detect(tokens, search.hits(tokens))
    for shard in pack.shards:
        blocks = read_blocks(shard, pack.source)
        while True:
            clock = [time.perf_counter()]
            block = next(blocks, None)
            if block is None:
                break
            batch = block.read()
            clock.append(time.perf_counter())
            tokens = encoder.encode(batch.text, batch.starts, batch.stops)
            clock.append(time.perf_counter())
            detector.detect(tokens, search.hits(tokens))
            clock.append(time.perf_counter())
            for name, (begin, end) in zip(seconds, pairwise(clock), strict=True):
                seconds[name] += end - begin
            n_bytes += int((batch.stops - batch.starts).sum())
    return {
        "seconds": seconds,
        "map_seconds": map_seconds,
        "n_text_bytes": n_bytes,
        "peak_bytes": peak_bytes(),
    }


def read(job: Job) -> Result:
    """Read shards to documents, and nothing else."""
    from decon_core.corpus.shards import read_blocks

    pack = _pack(job)
    for shard in pack.shards[:1]:  # compiled kernels are loaded when they are first called
        next(read_blocks(shard, pack.source)).read()
    n_documents = n_bytes = 0
    started = time.perf_counter()
    for shard in pack.shards:
        for block in read_blocks(shard, pack.source):
            batch = block.read()
            n_documents += batch.rows.size
            n_bytes += int((batch.stops - batch.starts).sum())
    return {
        "seconds": time.perf_counter() - started,
        "n_documents": n_documents,
        "n_text_bytes": n_bytes,
        "peak_bytes": peak_bytes(),
    }


def scan(job: Job) -> Result:
    """Run a whole scan, from shards to scan results."""
    store, versions = _prepared(job)
    remove(store.root / "scan_results")
    pack = _pack(job)
    done: dict[int, tuple[float, int]] = {}

    def note(n_done: int, _: int, n_bytes: int, __: int, seconds: float) -> None:
        done.setdefault(n_done, (seconds, n_bytes))

    started = time.perf_counter()
    policy = Policy(detectors=tuple(job.get("detectors", Policy().detectors)))
    scan_packs(store, [pack], versions, policy, workers=job["workers"], on_progress=note)
    seconds = time.perf_counter() - started
    children = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    return {
        "seconds": seconds,
        **_at_work(done, job["workers"]),
        "peak_bytes": max(peak_bytes(), children),
    }


def scan_at_work(job: Job) -> Result:
    """Scan with some detectors; what one worker needs after its start."""
    from bench import detector_rates

    store, versions = _prepared(job)
    return detector_rates.scan_at_work(store, versions, _pack(job), job["detectors"])


def command(job: Job) -> Result:
    """Run `decon-assets scan` on some shards, joined to one, when the index exists."""
    shard, out = Path(job["shard"]), Path(job["out"])
    with shard.open("wb") as joined:  # of what compressors write, one after the other is a whole
        for part in job["parts"]:
            joined.write(Path(part).read_bytes())
    program = str(Path(sys.executable).with_name("decon-assets"))
    given = ["--evals", job["evals"], str(shard), "--out", str(out), "--workers", "1"]
    for _ in range(2):
        remove(out / STORE_FOLDER / "scan_results")
        started = time.perf_counter()
        pid = os.posix_spawn(program, [program, "scan", *given], os.environ, file_actions=_SILENT)
        _, status, used = os.wait4(pid, 0)
        seconds = time.perf_counter() - started
        if os.waitstatus_to_exitcode(status):
            raise RuntimeError(f"{program} scan: {os.waitstatus_to_exitcode(status)}")
    remove(shard)
    return {"seconds": seconds, "peak_bytes": used.ru_maxrss * 1024}


_SILENT = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]


def _at_work(done: dict[int, tuple[float, int]], workers: int) -> Result:
    """Return time and share of the corpus after as many shards as workers were done.

    `done`: seconds and bytes read when each number of shards was first reported as done.
    """
    seconds, n_bytes = done[max(done)]
    later = [when for n_done, when in done.items() if n_done >= workers]
    since, n_bytes_before = min(later)
    return {
        "running_seconds": seconds - since,
        "running_share": (n_bytes - n_bytes_before) / n_bytes,
    }


def mixtures(job: Job) -> Result:
    """Build mixtures of a scanned corpus, and compare with a plain copy."""
    from bench.mixtures import timed

    store, versions = _prepared(job)
    found = timed(store, versions, _pack(job), rounds=job["rounds"])
    return {
        "copy_seconds": statistics.median(found.copy),
        "variants": {
            name: {"seconds": statistics.median(seconds), "ratio": found.ratio(name)}
            for name, seconds in found.builds.items()
        },
    }


def large_store(job: Job) -> Result:
    """Make a store as after a large scan."""
    from bench.large import Sizes, make_store

    started = time.perf_counter()
    make_store(Path(job["store"]), Sizes(**job["sizes"]))
    return {"seconds": time.perf_counter() - started}


def report(job: Job) -> Result:
    """Build the report of such a store, and query each of its views."""
    import duckdb

    from bench.large import Sizes, packs_of
    from decon_core.config.load import Report
    from decon_core.mixtures.builder import Builder
    from decon_core.report.build import build_report
    from decon_core.report.html.build import write_page

    store = Store(Path(job["store"]))
    names = sorted(path.name for path in store.records("any", "any").parent.parent.iterdir())
    versions = [current_version(store, name) for name in names]
    started = time.perf_counter()
    packs = [*packs_of(Sizes(**job["sizes"]))]
    builder = Builder(store, tuple(packs), tuple(versions), Policy(), ())
    summary = build_report(builder, Report(snippets="off"))
    seconds = time.perf_counter() - started
    views = {}
    with duckdb.connect(str(store.report), read_only=True) as connection:
        (n_texts,) = connection.execute("SELECT count(*) FROM matched_texts").fetchone() or (0,)
        (n_findings,) = connection.execute("SELECT count(*) FROM findings").fetchone() or (0,)
        for (name,) in connection.execute(_VIEWS).fetchall():
            started = time.perf_counter()
            connection.execute(f"FROM {name}").fetchall()
            views[name] = time.perf_counter() - started
    peak, size = peak_bytes(), store.report.stat().st_size
    _add_texts(store.report)
    started = time.perf_counter()
    write_page(store.report, store.report_page)
    return {
        "seconds": seconds,
        "peak_bytes": peak,
        "size_bytes": size,
        "page_seconds": time.perf_counter() - started,
        "page_bytes": store.report_page.stat().st_size,
        "page": str(store.report_page),
        "views": views,
        "n_texts": n_texts,
        "n_findings": n_findings,
        "n_leaked": summary.counts["leaked_items"],
    }


def _add_texts(report: Path) -> None:
    """Write texts of the usual length: the documents of such a store do not exist."""
    import duckdb

    from decon_core.storage.checksums import seal_database

    with duckdb.connect(str(report)) as connection:
        connection.execute("UPDATE runs SET snippets = true")
        connection.execute(
            "UPDATE matched_texts SET text = ("
            "    SELECT string_agg('word' || hash(text_id, n) % 5000, ' ') FROM range(150) t(n)"
            ") WHERE priority <= 50000"
        )
    seal_database(report)


_VIEWS = "SELECT view_name FROM duckdb_views() WHERE NOT internal ORDER BY view_name"


def _prepared(job: Job) -> tuple[Store, list[Version]]:
    store = Store(Path(job["store"]))
    return store, [current_version(store, name) for name in job["benchmarks"]]


def _pack(job: Job) -> Pack:
    fields = job.get("source", {"text": "text", "id": "id"})
    source = Source(**{"name": "bench", "path": job["corpus"], **fields})
    pack, _ = pack_of(source, out=Path(job["store"]), known={})
    return pack


def pack_texts(job: Job) -> Iterator[str]:
    """Yield the documents of a corpus, for programs that cannot read shards."""
    return _texts(_pack(job))


def _texts(pack: Pack) -> Iterator[str]:
    for shard in pack.shards:
        for row in read_shard(shard, pack.source):
            if isinstance(row, Document):
                yield row.text


JOBS: dict[str, Callable[[Job], Result]] = {
    "index": index,
    "read": read,
    "stages": stages,
    "scan": scan,
    "scan at work": scan_at_work,
    "command": command,
    "mixtures": mixtures,
    "large store": large_store,
    "report": report,
}


def main(argument: str) -> None:
    job: Job = json.loads(argument)
    if hasattr(os, "sched_setaffinity"):  # "one core" must not mean a thread on each
        first = job.get("first_core", 0)
        there = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, there[first : first + job["cores"]] or there)
    with compiled_at_once():  # what is measured is the rate of work that is worth compiling for
        found = JOBS[job["job"]](job)
    sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
