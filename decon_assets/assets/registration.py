"""Registers the benchmarks, packs and mixtures of the configuration with Dagster."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dagster import AssetKey, AssetMaterialization, DagsterInstance, DynamicPartitionsDefinition

from decon_assets.assets.inputs import changed_versions
from decon_assets.assets.metadata import preview
from decon_assets.partitions import BENCHMARK, MIXTURE, PACK, align, registered_as
from decon_core.errors import Problem, RecordError, collecting
from decon_core.feature import feature_objects

if TYPE_CHECKING:
    from decon_core.config.load import Config
    from decon_core.corpus.packs import Pack
    from decon_core.storage.listing import Skipped
    from decon_core.storage.store import Store

Echo = Callable[[str], None]

# Enough rows to see whether a recipe fits its file; all are read when records are materialized.
_ROWS_TRIED = 50


@dataclass(frozen=True)
class Registration:
    """The benchmarks and packs that were registered, with their configuration and store."""

    config: Config
    store: Store
    benchmarks: tuple[str, ...]
    packs: tuple[Pack, ...]
    skipped: tuple[Skipped, ...]  # what lies beside the shards

    @property
    def metadata(self) -> dict[str, Any]:
        """Counts and a preview, as metadata of `inventory`."""
        shards = [shard for pack in self.packs for shard in pack.shards]
        rows = [
            {"pack": pack.name, "source": pack.source.name, "shards": len(pack.shards)}
            for pack in self.packs
        ]
        return {
            "benchmarks": len(self.benchmarks),
            "packs": len(self.packs),
            "shards": len(shards),
            "skipped": len(self.skipped),
            "megabytes": round(sum(shard.n_bytes for shard in shards) / 1e6, 3),
            "preview": preview(rows),
        }


def record_inventory(
    registered: Registration, instance: DagsterInstance, key_prefix: Sequence[str] = ()
) -> None:
    """Record a materialization of `inventory` for the UI, after a registration without a run."""
    # Recorded even without changes: the sensor waits for it after its own `inventory` failed.
    key = AssetKey([*key_prefix, "inventory"])
    event = AssetMaterialization(key, metadata=registered.metadata)
    instance.report_runless_asset_event(event)


def register(
    config_path: Path,
    instance: DagsterInstance,
    *,
    may_retire: bool = False,
    echo: Echo = print,
    key_prefix: Sequence[str] = (),
) -> Registration:
    """Bring Dagster's partitions and the packs in the store in line with the configuration.

    Raises RecordError if the first rows of any benchmark cannot be read: once registered, it would
    fail every run that covers it.
    """
    from decon_core.benchmarks.configured import benchmarks_of
    from decon_core.config.load import load_config
    from decon_core.config.open_store import writable_store
    from decon_core.corpus.registration import grid_warning, register_packs
    from decon_core.planner import Plan
    from decon_core.text.tokenizers import load_tokenizer

    config = load_config(config_path)
    load_tokenizer(config.policy.tokenizer_str)
    problems: list[Problem] = []
    by_name = benchmarks_of(config)
    for benchmark in by_name.values():
        with collecting(problems):
            benchmark.normalized(limit=_ROWS_TRIED)
    RecordError.raise_for(problems)
    with writable_store(config) as store:
        store.sweep_drafts()
        changes = Plan(config, store).changes
        without_pack = register_packs(changes, store, may_retire=may_retire)
    for pack in changes.retired:
        echo(f"{pack.name}: {changes.why_retired(pack)}; removed the pack and its mixtures")
    for folder in without_pack:
        echo(f"{folder}: belongs to no registered pack; removed")
    for old, new in changes.renamed:
        echo(f"{old}: renamed to {new}; keeping its pack and matches")
    if warning := grid_warning(changes.current, len(by_name)):
        echo(f"warning: {warning}")
    partitions = {
        BENCHMARK: list(by_name),
        PACK: [pack.name for pack in changes.current],
        MIXTURE: [mixture.name for mixture in config.mixtures],
        **{product: names(config) for product, names in feature_objects("partitions").items()},
    }
    for dimension, keys in partitions.items():
        name = registered_as(key_prefix, dimension)
        align(instance, DynamicPartitionsDefinition(name=name), keys)
    versions = {
        "benchmark_files": {name: benchmark.origin() for name, benchmark in by_name.items()},
        "corpus": {pack.name: changes.versions[pack.name] for pack in changes.current},
    }
    for asset, current in versions.items():
        for event in changed_versions(instance, AssetKey([*key_prefix, asset]), current):
            instance.report_runless_asset_event(event)
    skipped = tuple(changes.skipped)
    return Registration(config, store, tuple(by_name), tuple(changes.current), skipped)
