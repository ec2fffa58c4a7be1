"""Inputs: benchmark files, training shards, and the inventory that registers them.

The files have a data version per partition. Where it differs from the version that a partition of
another asset was made from, Dagster shows that partition as outdated.
"""

import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

import dagster as dg
from pydantic import Field

from decon_assets.assets.metadata import OWNERS
from decon_assets.failures import dagster_failures
from decon_assets.partitions import all_of, benchmarks, packs
from decon_assets.resources import Decon

if TYPE_CHECKING:
    from decon_core.planner import Plan

GROUP = "inputs"
DATA_VERSION = "dagster/data_version"  # tag of an observation


def changed_versions(
    instance: dg.DagsterInstance, asset: dg.AssetKey, versions: Mapping[str, str]
) -> Iterator[dg.AssetObservation]:
    """Yield an observation of each partition whose version is not the last that was observed."""
    observed = instance.event_log_storage.get_latest_tags_by_partition(
        asset, dg.DagsterEventType.ASSET_OBSERVATION, [DATA_VERSION]
    )
    for partition, version in versions.items():
        if observed.get(partition, {}).get(DATA_VERSION) != version:
            tags = {DATA_VERSION: version}
            yield dg.AssetObservation(asset, partition=partition, tags=tags)


def observable(spec: dg.AssetSpec, observe: Callable[..., object]) -> dg.AssetsDefinition:
    """Return an asset that Dagster can observe, but not materialize."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dg.BetaWarning)  # the decorator is in beta
        # `can_subset`: otherwise Dagster expects an output, and observes all partitions at once.
        declare = dg.multi_observable_source_asset(
            name=spec.key.to_python_identifier(), specs=[spec], can_subset=True
        )
        asset: dg.AssetsDefinition = declare(observe)
        return asset


def _files(
    name: str,
    partitions: dg.DynamicPartitionsDefinition,
    versions: "Callable[[Plan], Mapping[str, str]]",
    about: str,
) -> dg.AssetsDefinition:
    """Return an asset of files. Observing it records the partitions whose files changed."""

    def observe(context: dg.AssetExecutionContext, decon: Decon) -> Iterator[dg.AssetObservation]:
        from decon_core.planner import Plan

        with dagster_failures():
            current = versions(Plan(*decon.open_store()))
        instance, declared = context.instance, context.assets_def.partitions_def
        registered = declared.get_partition_keys(dynamic_partitions_store=instance)
        known = {name: current[name] for name in registered if name in current}
        yield from changed_versions(instance, context.asset_key, known)

    spec = dg.AssetSpec(
        name,
        description=about,
        partitions_def=partitions,
        group_name=GROUP,
        owners=OWNERS,
        kinds={"file"},
        code_version="1",
    )
    return observable(spec, observe)


benchmark_files = _files(
    "benchmark_files",
    benchmarks,
    lambda plan: {name: benchmark.origin() for name, benchmark in plan.benchmarks.items()},
    "Raw benchmark files, read with the recipe in `evals.yaml`. Dagster does not materialize them. "
    "The data version of a partition is a digest of its recipe and files.",
)

corpus = _files(
    "corpus",
    packs,
    lambda plan: plan.changes.versions,
    "Shards of training text, grouped into packs with fixed members. Dagster does not materialize "
    "them. The data version of a partition is a digest of its shards; only new and changed shards "
    "are read.",
)


class InventoryConfig(dg.Config):
    """Run configuration of `inventory`."""

    retire: bool = Field(
        default=False,
        description="Continue even if most registered shards are gone, and remove their packs "
        "and mixtures.",
    )


# Downstream of the files that it lists and upstream of nothing: otherwise every materialization
# without changes would mark all other assets as outdated in the UI.
@dg.asset(
    deps=[all_of(benchmark_files), all_of(corpus)],
    group_name=GROUP,
    owners=OWNERS,
    kinds={"python"},
    code_version="1",
)
def inventory(context: dg.AssetExecutionContext, decon: Decon, config: InventoryConfig) -> None:
    """Registers benchmarks, packs, mixtures and blends as the partitions of all other assets.

    Materialize it after input files were added, changed or removed, or decon.toml was edited. It
    first reads some rows of every benchmark. If a benchmark cannot be read, the run fails and
    changes nothing.
    """
    from decon_assets.assets.registration import register

    with dagster_failures():
        registered = register(
            decon.path(),
            context.instance,
            may_retire=config.retire,
            echo=context.log.info,
            key_prefix=context.asset_key.path[:-1],
        )
        context.add_asset_metadata(registered.metadata)
