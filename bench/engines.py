"""`python -m bench.engines`: compare one node with two nodes, on Slurm and on Ray.

    python -m bench.engines --evals ../shared/data/evals --texts ../shared/data/text --work DIR

Starts the clusters of the tests on this machine; each node has one worker with one core. Each line
of the table is a scan of the same corpus into a new store. All stores are compared, file by file.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from bench.corpus import make_corpus
from bench.sketch import World, make_world
from decon_core.execution.engine import Engine
from decon_core.execution.local import LocalEngine
from decon_core.features.clusters.ray_cluster import RayEngine
from decon_core.features.clusters.settings import Ray, Slurm
from decon_core.features.clusters.slurm import SlurmEngine
from decon_core.scan.scanner import scan_packs
from decon_core.storage.store import Store

_SHARDS = 36
_MB = 800.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--evals", type=Path, required=True, help="folder of benchmarks")
    parser.add_argument("--texts", type=Path, required=True, help="folder of text")
    parser.add_argument("--work", type=Path, required=True, help="a new folder")
    parser.add_argument("--mb", type=float, default=_MB, help=f"of text (default {_MB:.0f})")
    options = parser.parse_args(arguments)
    corpus, first = options.work / "corpus", Store(options.work / "first")
    made = make_corpus(corpus, texts=options.texts, evals=options.evals, mb=options.mb,
                       n_shards=_SHARDS)  # fmt: skip
    world = make_world(first, corpus, made.n_text_bytes, options.evals)
    scan_packs(world.store, [], [*world.versions.values()], world.policy)
    print("| engine | nodes | seconds | until the first progress | MB/s after it |")
    print("|---|---:|---:|---:|---:|")
    expected: dict[str, bytes] = {}
    for name, n_nodes, open_engine in _ENGINES:
        store = Store(options.work / f"{name}-{n_nodes}")
        shutil.copytree(first.root, store.root)
        with open_engine(n_nodes, store) as engine:
            seconds, before, rate = _scan(replace(world, store=store), engine)
        print(f"| {name} | {n_nodes} | {seconds:.1f} | {before:.1f} | {rate:.1f} |", flush=True)
        files = _files(store.root)
        expected = expected or files
        if files != expected:
            print(f"{name} on {n_nodes}: other files than in the first line")
            return 1
    return 0


def _scan(world: World, engine: Engine) -> tuple[float, float, float]:
    """Scan; return the seconds in all and until the first progress, and the MB/s of text since."""
    progress: list[tuple[float, int]] = []
    started = time.monotonic()

    def note(n_done: int, n_shards: int, n_bytes: int, n_bytes_total: int, seconds: float) -> None:  # noqa: ARG001 - see Progress
        if n_bytes:
            progress.append((time.monotonic() - started, n_bytes))

    scan_packs(
        world.store,
        [world.pack],
        [*world.versions.values()],
        world.policy,
        engine=engine,
        on_progress=note,
    )
    seconds = time.monotonic() - started
    (before, n_before), (_, n_bytes) = progress[0], progress[-1]
    text_share = world.n_text_bytes / n_bytes
    return seconds, before, (n_bytes - n_before) * text_share / 1e6 / (seconds - before)


@contextmanager
def _local(_: int, __: Store) -> Iterator[Engine]:
    yield LocalEngine()


@contextmanager
def _slurm(n_nodes: int, store: Store) -> Iterator[Engine]:
    from tests.features.clusters.slurm_cluster import slurm_cluster

    with slurm_cluster(store.root.with_name(f"{store.root.name}-cluster")) as cluster:
        os.environ.update(cluster.environment)
        settings = Slurm(array_size=n_nodes, options=("--exclusive",))
        yield SlurmEngine(settings, store.drafts, store.root / "logs")


@contextmanager
def _ray(n_nodes: int, _: Store) -> Iterator[Engine]:
    from tests.features.clusters.ray_nodes import ray_cluster

    with ray_cluster(n_nodes) as cluster:
        yield RayEngine(Ray(address=cluster.address))


_ENGINES = (
    ("local", 1, _local),
    ("slurm", 1, _slurm),
    ("slurm", 2, _slurm),
    ("ray", 1, _ray),
    ("ray", 2, _ray),
)


def _files(root: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file() and path.relative_to(root).parts[0] not in ("drafts", "logs")
    }


if __name__ == "__main__":
    sys.exit(main())
