"""Measures the speed and memory of a worker with several detectors, compared with `decon` alone.

Each measurement is a separate process on one core. It first scans a shard that does not count, so
that kernels are loaded and words are known, and then scans the other shards. The two measurements
alternate. Times are CPU times, so that other programs on the machine do not affect them.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from bench.peers import peak_bytes
from bench.table import Line
from decon_core.benchmarks.records import Version
from decon_core.config import detector_registry as registry
from decon_core.config.policy import Policy
from decon_core.corpus.packs import Pack
from decon_core.errors import InputError, Problem
from decon_core.scan.scanner import scan_packs
from decon_core.storage.drafts import remove
from decon_core.storage.store import Store

ALONE = ("decon",)
INTRODUCTION = """\
Made by `python -m bench --detectors`. MB/s are millions of bytes of UTF-8 text per second of CPU
time on one core, from shards to scan results. Each measurement is a separate process, in which the
first shard does not count. The two measurements alternate, for {rounds} rounds after a warm-up
round; numbers are medians. Peak memory is that of the entire process, including start-up."""


def chosen_detectors(names: str) -> list[str]:
    """Split names at commas; raise InputError for one that there is not."""
    return [registry.get(name).name for name in names.split(",")]


def scan_at_work(
    store: Store, versions: Sequence[Version], pack: Pack, detectors: Sequence[str]
) -> dict[str, float]:
    """Scan a pack in this process; return the time of all but the first shard, and the memory."""
    if len(pack.shards) < 2:
        expected = "two shards or more: the first one does not count"
        raise InputError(Problem(pack.source.name, f"{len(pack.shards)} shards", expected))
    remove(store.root / "scan_results")
    policy = Policy(detectors=tuple(detectors))
    first, others = (replace(pack, shards=part) for part in (pack.shards[:1], pack.shards[1:]))
    scan_packs(store, [first], versions, policy)
    started = time.process_time()
    scan_packs(store, [others], versions, policy)
    seconds = time.process_time() - started
    share = sum(one.n_bytes for one in others.shards) / sum(one.n_bytes for one in pack.shards)
    return {"seconds": seconds, "share": share, "peak_bytes": peak_bytes()}


def measure_rates(
    run: Callable[[dict[str, Any]], dict[str, Any]],
    jobs: Sequence[dict[str, Any]],
    n_bytes: int,
    rounds: int,
) -> tuple[list[Line], float]:
    """Run jobs with other detectors in turn; return lines, and their ratio of times."""
    found = [[run(job) for job in jobs] for _ in range(rounds + 1)][1:]
    lines = []
    for job, of_rounds in zip(jobs, zip(*found, strict=True), strict=True):
        seconds = statistics.median(measured["seconds"] for measured in of_rounds)
        peak = statistics.median(measured["peak_bytes"] for measured in of_rounds)
        rate = n_bytes * of_rounds[0]["share"] / 1e6 / seconds
        line = Line(
            name=", ".join(job["detectors"]),
            mb_per_second=rate,
            seconds=seconds,
            peak_mb=peak / 1e6,
        )
        lines.append(line)
    ratios = (of_round[-1]["seconds"] / of_round[0]["seconds"] for of_round in found)
    return lines, statistics.median(ratios)
