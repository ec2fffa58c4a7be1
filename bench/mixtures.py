"""Measures how long mixtures take to build, compared with a plain copy of the same shards.

The copy rewrites the shards without changes: it decompresses and compresses blocks with the same
functions. A ratio above one is therefore the cost of choosing, checking, cutting and accounting.
The copy and the mixtures alternate in one process, round by round, so that a slow phase of the
machine affects all of them.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from decon_core.benchmarks.records import Version
from decon_core.config.mixtures import Licenses, Mixture
from decon_core.config.policy import Policy
from decon_core.corpus.formats import Changes
from decon_core.corpus.packs import Pack
from decon_core.corpus.shards import rewrite_shard
from decon_core.mixtures.build import build_shares
from decon_core.mixtures.builder import Builder
from decon_core.storage.drafts import remove
from decon_core.storage.store import Store

VARIANTS = {
    "without documents that leaked": Mixture(name="clean"),
    "a control for that mixture": Mixture(name="control", take="control", control_of="clean"),
    "with leaked spans cut out": Mixture(name="cut", cut="spans"),
    "with the license of every row checked": Mixture(
        name="licensed", licenses=Licenses(fields=("metadata.license",), deny=("GPL-*",))
    ),
}


@dataclass(frozen=True)
class Timed:
    """The seconds of every round."""

    copy: list[float]
    builds: dict[str, list[float]]

    def ratio(self, variant: str) -> float:
        """Return the median of build time over copy time."""
        pairs = zip(self.builds[variant], self.copy, strict=True)
        return statistics.median(build / copy for build, copy in pairs)


def timed(store: Store, versions: Sequence[Version], pack: Pack, *, rounds: int) -> Timed:
    """Copy a scanned pack and build every variant of it, alternately."""
    builder = Builder(store, (pack,), tuple(versions), Policy(), tuple(VARIANTS.values()))
    found = Timed([], {name: [] for name in VARIANTS})
    for number in range(rounds + 1):
        copy = _seconds(partial(_copy, pack, store.root / "copy"))
        builds = {name: _build(builder, mixture, pack) for name, mixture in VARIANTS.items()}
        if not number:
            continue  # kernels, tokenizer and the system's cache of files are warm from here on
        found.copy.append(copy)
        for name, seconds in builds.items():
            found.builds[name].append(seconds)
    return found


def _seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def _copy(pack: Pack, folder: Path) -> None:
    none = Changes(frozenset(), {})
    for shard in pack.shards:
        rewrite_shard(shard, pack.source, folder / shard.name, lambda _: none)


def _build(builder: Builder, mixture: Mixture, pack: Pack) -> float:
    """Build a mixture from nothing: an existing one would only be verified, and a draw be read."""
    store = builder.store
    made = store.mixture_manifests(mixture.name), store.mixtures(mixture.name)
    for folder in (*made, store.draw("any").parent):
        remove(folder)
    shares = build_shares(builder, [(mixture, pack)])
    return _seconds(lambda: [share.result() for *_, share in shares])
