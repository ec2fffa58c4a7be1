"""What the configuration names today, made known to Dagster as partitions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dagster import AssetMaterialization, DagsterInstance

from decon_assets.assets.metadata import preview
from decon_assets.partitions import align, benchmarks, blends, mixtures, packs
from decon_core.config.load import Config, load_config
from decon_core.config.open_store import writable_store
from decon_core.corpus.packs import Pack
from decon_core.errors import DeconError, Problem, RecordError
from decon_core.inventory import benchmarks_of, grid_warning, register_packs
from decon_core.storage.store import Store
from decon_core.text.tokenizers import load_tokenizer

Echo = Callable[[str], None]

# Enough rows to see that a recipe fits its file; the rest is read when records are materialized.
_ROWS_TRIED = 50


@dataclass(frozen=True)
class Registration:
    """What the configuration names today, known to Dagster from now on."""

    config: Config
    store: Store
    benchmarks: tuple[str, ...]
    packs: tuple[Pack, ...]

    @property
    def told(self) -> dict[str, Any]:
        """What the UI shows of it."""
        shards = [shard for pack in self.packs for shard in pack.shards]
        rows = [
            {"pack": pack.name, "source": pack.source.name, "shards": len(pack.shards)}
            for pack in self.packs
        ]
        return {
            "benchmarks": len(self.benchmarks),
            "packs": len(self.packs),
            "shards": len(shards),
            "megabytes": round(sum(shard.n_bytes for shard in shards) / 1e6, 3),
            "preview": preview(rows),
        }


def register_outside(
    config_path: Path,
    instance: DagsterInstance,
    *,
    may_retire: bool = False,
    echo: Echo = print,
) -> Registration:
    """The same as a run of the asset `inventory`, without one; the UI shows it as such."""
    registered = register(config_path, instance, may_retire=may_retire, echo=echo)
    # Also where it is what it was: the sensor waits for one where its own was refused.
    event = AssetMaterialization("inventory", metadata=registered.told)
    instance.report_runless_asset_event(event)
    return registered


def register(
    config_path: Path,
    instance: DagsterInstance,
    *,
    may_retire: bool = False,
    echo: Echo = print,
) -> Registration:
    """Tell Dagster which benchmarks and packs there are.

    A benchmark is tried first: once registered, a bad one would fail every run that covers it.
    """
    config = load_config(config_path)
    load_tokenizer(config.policy.tokenizer_str)
    found = benchmarks_of(config)
    problems: list[Problem] = []
    for benchmark in found.values():
        try:
            benchmark.normalized(limit=_ROWS_TRIED)
        except DeconError as error:
            problems += error.problems
    if problems:
        raise RecordError(problems)
    with writable_store(config) as store:
        store.sweep_drafts()
        plan = register_packs(config, store, may_retire=may_retire)
    for pack in plan.retired:
        echo(f"{pack.name}: shards are gone or changed; the pack and its mixture are removed")
    for old, new in plan.renamed:
        echo(f"{old}: renamed to {new}; its pack and what was found in it stay")
    if warning := grid_warning(config, plan.current):
        echo(f"warning: {warning}")
    align(instance, benchmarks, list(found))
    align(instance, packs, [pack.name for pack in plan.current])
    align(instance, mixtures, [mixture.name for mixture in config.mixtures])
    align(instance, blends, [blend.name for blend in config.blends])
    return Registration(config, store, tuple(found), tuple(plan.current))
