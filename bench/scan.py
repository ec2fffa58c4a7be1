"""How fast each part of a scan is, on the sample world: `make bench`.

Prints megabytes of text per second on one core, and the median of several rounds: on a shared
machine single timings mean little.
"""

import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from decon_core.config import load_config
from decon_core.corpus import Document, read_shard
from decon_core.idf import freeze
from decon_core.index import build_part, index_fingerprint, load_target
from decon_core.records import save_records
from decon_core.reference import detect
from decon_core.registry import benchmarks_of, register_packs
from decon_core.scan import scan_packs
from decon_core.store import Store
from decon_core.text import clean
from decon_core.tokens import load_tokenizer

ROUNDS = 5
DATA = Path(__file__).parents[1] / "data"


def median_seconds(work: Callable[[], object]) -> float:
    times = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def main() -> None:
    config = load_config(DATA / "decon.toml")
    policy = config.policy
    tokenizer = load_tokenizer(policy.tokenizer_str)
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder))
        found = benchmarks_of(config)
        versions = [save_records(store, name, b.normalized()) for name, b in found.items()]
        snapshot = freeze(store, versions, policy)
        for version in versions:
            build_part(store, version, snapshot, policy)
        packs, _ = register_packs(config, store)
        floor = replace(policy, contamination_score_threshold=policy.evidence_floor)
        index = index_fingerprint(store, policy)
        targets = [load_target(store, version, floor, index=index) for version in versions]

        def read() -> list[str]:
            return [
                row.text
                for pack in packs
                for shard in pack.shards
                for row in read_shard(shard, pack.source)
                if isinstance(row, Document)
            ]

        texts = read()
        cleaned = [" " + clean(text, punctuation=policy.punctuation_chars) for text in texts]
        tokens = [tuple(ids) for ids in tokenizer.encode(cleaned)]
        steps: dict[str, Callable[[], object]] = {
            "read": read,
            "clean": lambda: [clean(text, punctuation=policy.punctuation_chars) for text in texts],
            "tokenize": lambda: tokenizer.encode(cleaned),
            "detect": lambda: [detect(ids, target.index) for target in targets for ids in tokens],
        }
        n_bytes = sum(len(text.encode()) for text in texts)
        print(f"{len(texts)} documents, {n_bytes / 1e6:.1f} MB of text, {len(targets)} benchmarks")
        for name, work in steps.items():
            print(f"  {name:10} {n_bytes / 1e6 / median_seconds(work):7.1f} MB/s")
        start = time.perf_counter()
        scan_packs(store, packs, versions, policy)
        rate = n_bytes / 1e6 / (time.perf_counter() - start)
        print(f"  whole scan {rate:7.1f} MB/s (one process, tiles written)")


if __name__ == "__main__":
    main()
