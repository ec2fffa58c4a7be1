"""Inputs: benchmark files, training shards, and the inventory that registers them."""

from functools import partial

import dagster as dg
from pydantic import Field

from decon_assets.assets.metadata import OWNERS
from decon_assets.failures import dagster_failures
from decon_assets.partitions import all_of, benchmarks, packs
from decon_assets.resources import Decon

GROUP = "inputs"

_files = partial(dg.AssetSpec, group_name=GROUP, owners=OWNERS, kinds={"file"}, code_version="1")

benchmark_files = _files(
    "benchmark_files",
    partitions_def=benchmarks,
    description="Raw benchmark files, read with the benchmark's recipe in `evals.yaml`. External: "
    "Dagster does not materialize them.",
)

corpus = _files(
    "corpus",
    partitions_def=packs,
    description="Shards of training text, grouped into packs with fixed members. External: Dagster "
    "does not materialize them.",
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
    first reads some rows of every benchmark; if one cannot be read, it fails and changes nothing.
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
