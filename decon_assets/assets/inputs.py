"""What comes from outside: benchmark files and training shards, and the list of what there is."""

from dagster import (
    AllPartitionMapping,
    AssetDep,
    AssetExecutionContext,
    AssetSpec,
    Config,
    asset,
)
from pydantic import Field

from decon_assets.assets.metadata import OWNERS
from decon_assets.failures import dagster_failures
from decon_assets.partitions import benchmarks, packs
from decon_assets.resources import Decon

GROUP = "inputs"

benchmark_files = AssetSpec(
    "benchmark_files",
    group_name=GROUP,
    owners=OWNERS,
    kinds={"file"},
    code_version="1",
    partitions_def=benchmarks,
    description="Raw benchmark files, read through their recipe in `evals.yaml`. They come from "
    "outside: nothing here is materialized.",
)

corpus = AssetSpec(
    "corpus",
    group_name=GROUP,
    owners=OWNERS,
    kinds={"file"},
    code_version="1",
    partitions_def=packs,
    description="Shards of training text, grouped into packs that never change their members. They "
    "come from outside: nothing here is materialized.",
)


class InventoryConfig(Config):
    """Run configuration of `inventory`."""

    retire: bool = Field(
        default=False,
        description="Go on although most registered shards are gone: their packs and mixtures go, "
        "too.",
    )


# After the files, which it lists. Were it before the others, every look at unchanged files would
# make the UI call all of them outdated.
@asset(
    deps=[
        AssetDep(benchmark_files, partition_mapping=AllPartitionMapping()),
        AssetDep(corpus, partition_mapping=AllPartitionMapping()),
    ],
    group_name=GROUP,
    owners=OWNERS,
    kinds={"python"},
    code_version="1",
)
def inventory(context: AssetExecutionContext, decon: Decon, config: InventoryConfig) -> None:
    """Which benchmarks, packs, mixtures and blends there are: the partitions of everything else.

    Materialize it after files were added, changed or removed, or decon.toml was edited. New
    benchmarks are tried first; one that cannot be read is refused, and nothing changes.
    """
    from decon_assets.assets.registration import register

    with dagster_failures():
        registered = register(
            decon.path(), context.instance, may_retire=config.retire, echo=context.log.info
        )
        context.add_asset_metadata(registered.told)
