"""`python -m bench.cliffs`: the cost of planted items of a benchmark with many similar items.

    python -m bench.cliffs --seeds 1 2 --sizes 0:5 300:5 600:10 --detectors decon,ratcliff decon

Items of `like_mmlu` (../shared/tools) are planted verbatim in the given number of MB of natural
text. One item in 16 shares its template with 999 others. Scan and report run in separate processes
on one core. Times are CPU times after kernels were loaded, with an existing index.
"""

from __future__ import annotations

import argparse
import gc
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import cycle
from pathlib import Path
from random import Random
from typing import Any

import duckdb

from bench.peers import peak_bytes
from decon_assets.cli.program import MORE_OBJECTS
from decon_core.benchmarks.folder import saved_records
from decon_core.benchmarks.records import current_version
from decon_core.config.load import Report
from decon_core.config.policy import Policy
from decon_core.config.sources import Source
from decon_core.features.scorecard.corpora import hosts_below
from decon_core.kernels.jit import compiled_at_once
from decon_core.library.scan import pack_of
from decon_core.library.stored_index import index_records
from decon_core.mixtures.builder import Builder
from decon_core.report.build import build_report
from decon_core.scan.scanner import scan_packs
from decon_core.storage.drafts import remove
from decon_core.storage.store import Store

_PUBLISHED = "ratcliff,longest_match,ngram_any,exact"
_BENCHMARK = "like_mmlu"
_SHARD_MB = 20  # of text in a shard
_FIRST_PAGES = 300  # in a shard without plants: it loads kernels and words, and does not count

_COUNTS = """
    SELECT count(*),
           count(DISTINCT (shard_name, row, benchmark, split, instance_index))
               FILTER (is_contaminated OR is_no_answer OR needs_review)
    FROM matches
"""
_STAGES = ("scan", "report")
# The memory is the peak of the process.
_HEAD = (
    "| seed | detectors | plants | MB | scan: s | memory: MB | report: s | memory: MB | rows "
    "| items per plant |"
)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2])
    parser.add_argument(
        "--sizes", nargs="+", default=["0:5", "300:5", "600:10"], metavar="PLANTS:MB"
    )
    parser.add_argument(
        "--detectors", nargs="+", default=[_PUBLISHED, "decon"], metavar="NAME,NAME"
    )
    parser.add_argument("--texts", type=Path, default=Path("../shared/data/text"))
    parser.add_argument("--tool", type=Path, default=Path("../shared/tools/like_mmlu"))
    parser.add_argument("--work", type=Path, help="keep indexes, shards and reports here")
    given = parser.parse_args()
    print(f"{_HEAD}\n|---:|---|{'---:|' * 8}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for line in _measured(given, (given.work or Path(folder)).absolute()):
            print(line, flush=True)


def _measured(given: argparse.Namespace, work: Path) -> Iterator[str]:
    pages = [*hosts_below(given.texts)]
    for seed in given.seeds:
        items = work / f"items-{seed}"
        if not items.exists():
            made = [sys.executable, str(given.tool), str(seed), str(items)]
            subprocess.run(made, check=True, stdout=subprocess.DEVNULL)
        for size in given.sizes:
            n_plants, n_mb = map(int, size.split(":"))
            corpus = work / f"corpus-{seed}-{n_plants}-{n_mb}"
            if not corpus.exists():
                _write_corpus(corpus, items / "items.jsonl", pages, n_plants, n_mb, seed)
            for detectors in given.detectors:
                store = work / f"store-{seed}-{detectors}"
                job = {"items": str(items), "corpus": str(corpus), "store": str(store)}
                job["detectors"] = detectors
                _in_process({**job, "stage": "index"})
                scan, report = (_in_process({**job, "stage": stage}) for stage in _STAGES)
                cells = [f"{one[name]:,.1f}" for one in (scan, report) for name in ("s", "mb")]
                per_plant = f"{report['n_items'] / n_plants:,.2f}" if n_plants else ""
                names = detectors.replace(",", ", ")
                yield (
                    f"| {seed} | {names} | {n_plants:,} | {n_mb} | {' | '.join(cells)} "
                    f"| {report['n_rows']:,} | {per_plant} |"
                )


def _write_corpus(
    folder: Path, items: Path, pages: Sequence[str], n_plants: int, n_mb: int, seed: int
) -> None:
    """Write shards of natural text, the plants evenly spread between pages."""
    rng = Random(seed)  # noqa: S311
    rows = [json.loads(line) for line in items.read_text(encoding="utf-8").splitlines()]
    plants = [
        f"{row['question']}\n{row['choices'][row['answer']]}" for row in rng.sample(rows, n_plants)
    ]
    mixed = rng.sample(pages, len(pages))
    texts: list[str] = []
    size = 0
    for page in cycle(mixed):
        if size > n_mb * 1_000_000:
            break
        texts.append(page)
        size += len(page.encode())
    for number, plant in enumerate(plants):
        at = number * len(texts) // n_plants
        texts[at] = f"{texts[at]}\n\n{plant}\n"
    folder.mkdir(parents=True)
    n_shards = -(-n_mb // _SHARD_MB)
    shards = [mixed[:_FIRST_PAGES], *(texts[number::n_shards] for number in range(n_shards))]
    for number, shard in enumerate(shards):
        lines = (json.dumps({"text": text}) + "\n" for text in shard)
        (folder / f"{number:03}.jsonl").write_text("".join(lines), encoding="utf-8")


def _in_process(job: dict[str, str]) -> dict[str, Any]:
    """Run one stage in a process of its own: memory of another one would count."""
    command = [sys.executable, "-m", "bench.cliffs", json.dumps(job)]
    found: dict[str, Any] = json.loads(
        subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout
    )
    return found


# Stages -------------------------------------------------------------------------------------------


def _run(job: dict[str, str]) -> dict[str, Any]:
    gc.set_threshold(MORE_OBJECTS, *gc.get_threshold()[1:])  # as the command line does
    store, policy = Store(Path(job["store"])), Policy(detectors=tuple(job["detectors"].split(",")))
    if job["stage"] == "index":
        index_records(store, saved_records(store, Path(job["items"], "recipes.yaml")), policy)
    versions = (current_version(store, _BENCHMARK),)
    source = Source(name="text", path=job["corpus"], text="text")
    pack, _ = pack_of(source, out=store.root, known={})
    first, *others = sorted(pack.shards, key=lambda shard: shard.name)
    if job["stage"] in ("index", "scan"):
        remove(store.root / "scan_results")
        scan_packs(store, [replace(pack, shards=(first,))], versions, policy)
    if job["stage"] == "index":
        return {}
    rest = replace(pack, shards=tuple(others))
    started = time.process_time()
    if job["stage"] == "scan":
        scan_packs(store, [rest], versions, policy)
        return {"s": time.process_time() - started, "mb": peak_bytes() / 1e6}
    remove(store.report)  # whose texts would be used again
    build_report(Builder(store, (rest,), versions, policy, ()), Report())
    found = {"s": time.process_time() - started, "mb": peak_bytes() / 1e6}
    with duckdb.connect(str(store.report), read_only=True) as connection:
        n_rows, n_items = connection.execute(_COUNTS).fetchone() or (0, 0)
    return {**found, "n_rows": n_rows, "n_items": n_items}


if __name__ == "__main__":
    if len(sys.argv) == 2 and sys.argv[1].startswith("{"):
        with compiled_at_once():
            print(json.dumps(_run(json.loads(sys.argv[1]))))
    else:
        main()
