"""Compares the speed of the library with a scan of the same texts: `python -m bench.library`.

Makes a corpus as `python -m bench` does, scans its shards and decides their matches, and checks the
same texts in memory with `Index.check_all`, from a list of strings and from an Arrow array. The
measurements alternate in one process with one thread each, after a warm-up round. Times are CPU
times; ratios are computed within a round, and medians are printed. All must report the same
findings.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

import decon_core as dc
from bench.corpus import make_corpus
from bench.stages import pack_texts
from bench.table import machine
from decon_core.config.policy import Policy
from decon_core.config.sources import Source
from decon_core.corpus.packs import Pack
from decon_core.decisions.match_reader import MatchReader
from decon_core.library.scan import pack_of
from decon_core.library.stored_index import open_folder
from decon_core.scan.blocks import kept_scanners
from decon_core.scan.scanner import scan_packs
from decon_core.storage.drafts import remove

SCAN, STRINGS, ARROW, ONE_BY_ONE = "scan", "list of strings", "Arrow array", "one by one"
_ONE_BY_ONE_BYTES = 20_000_000


@dataclass(frozen=True)
class World:
    """A corpus, its texts in memory, and an index of the benchmarks hidden in it."""

    pack: Pack
    texts: Sequence[str]
    index: dc.Index

    @property
    def n_bytes(self) -> int:
        return sum(len(text.encode()) for text in self.texts)


def make_world(work: Path, *, evals: Path, texts: Path, mb: float, policy: Policy) -> World:
    """Write a corpus with hidden items, and index the benchmarks."""
    corpus = work / "corpus"
    make_corpus(corpus, texts=texts, evals=evals, mb=mb, n_shards=4)
    index = dc.build_index(evals, policy=policy, folder=work / "index")
    source = Source(name="bench", path=str(corpus), text="text", id="id")
    pack, _ = pack_of(source, out=work / "out", known={})
    texts_of_pack = pack_texts({"corpus": str(corpus), "store": str(work / "out")})
    return World(pack, [*texts_of_pack], index)


def scanned(world: World) -> int:
    """Scan all shards, decide their matches, and return how many are leaks."""
    folder = open_folder(world.index.folder)
    remove(folder.store.root / "scan_results")
    scan_packs(folder.store, [world.pack], folder.versions, folder.policy)
    reader = MatchReader(folder.store, folder.versions, folder.policy, folder.scan)
    tables = (reader.entries(one, folder.versions, source="bench") for one in world.pack.shards)
    return sum(sum(table["is_contaminated"].to_pylist()) for table in tables)


def checked(found: Iterator[dc.Findings]) -> int:
    """Return how many findings are leaks."""
    return sum(finding.is_leak for findings in found for finding in findings)


def turns(world: World, rounds: int) -> dict[str, list[float]]:
    """Return seconds of the processor by way to compare; the first turn does not count."""
    column = pa.array(world.texts, pa.large_string())
    ways: dict[str, Callable[[], int]] = {
        SCAN: lambda: scanned(world),
        STRINGS: lambda: checked(world.index.check_all(world.texts, threads=1)),
        ARROW: lambda: checked(world.index.check_all(column, threads=1)),
    }
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(rounds + 1):
        counts = set()
        for name, way in ways.items():
            started = time.process_time()
            counts.add(way())
            if number:
                seconds[name].append(time.process_time() - started)
        if len(counts) > 1:
            raise RuntimeError(f"scan and library found different numbers of leaks: {counts}")
    kept_scanners.cache_clear()
    return seconds


def one_by_one(world: World) -> tuple[float, int]:
    """Check single texts; return seconds of the processor and bytes."""
    n_bytes, started = 0, time.process_time()
    for text in world.texts:
        world.index.check(text)
        n_bytes += len(text.encode())
        if n_bytes > _ONE_BY_ONE_BYTES:
            break
    return time.process_time() - started, n_bytes


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench.library",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--evals", type=Path, default=Path("data/evals.yaml"), help="recipes or records")
    add("--texts", type=Path, default=Path("data/corpus"), help="what a corpus is made from")
    add("--mb", type=float, default=200, help="size of the corpus (default 200)")
    add("--rounds", type=int, default=5, help="turns that count (default 5)")
    add("--detectors", default="decon", help="with commas (default decon)")
    options = parser.parse_args(arguments)
    policy = Policy(detectors=tuple(options.detectors.split(",")))
    with tempfile.TemporaryDirectory(prefix="decon-bench-") as work:
        inputs = {"evals": options.evals, "texts": options.texts, "mb": options.mb}
        world = make_world(Path(work), **inputs, policy=policy)
        seconds, n_mb = turns(world, options.rounds), world.n_bytes / 1e6
        alone, n_alone = one_by_one(world)
    print(f"{machine({})}\n\n{len(world.texts):,} texts, {n_mb:.0f} MB\n")
    print("| way | MB per second of the processor | over the scan |\n|---|---|---|")
    for name, of_way in seconds.items():
        pairs = zip(seconds[SCAN], of_way, strict=True)
        ratio = statistics.median(scan / own for scan, own in pairs)
        print(f"| {name} | {n_mb / statistics.median(of_way):.0f} | {ratio:.2f} |")
    rate = n_alone / 1e6 / alone
    print(f"| {ONE_BY_ONE} | {rate:.0f} | {rate * statistics.median(seconds[SCAN]) / n_mb:.2f} |")


if __name__ == "__main__":
    main()
