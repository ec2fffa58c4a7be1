"""What people take away: the mixture, and the report."""

from dagster import (
    AllPartitionMapping,
    AssetDep,
    AssetExecutionContext,
    BackfillPolicy,
    MetadataValue,
    MultiToSingleDimensionPartitionMapping,
    asset,
)

from decon_assets.assets.inputs import corpus
from decon_assets.assets.scanning import common_ngrams, scan
from decon_assets.failures import permanent_failures
from decon_assets.partitions import PACK, packs
from decon_assets.resources import Decon
from decon_core.mixture import DECONTAMINATED, build_mixture
from decon_core.registry import current_versions, list_packs, packs_of
from decon_core.report import build_report

GROUP = "products"


@asset(
    deps=[
        AssetDep(scan, partition_mapping=MultiToSingleDimensionPartitionMapping(PACK)),
        common_ngrams,
        corpus,
    ],
    partitions_def=packs,
    backfill_policy=BackfillPolicy.single_run(),
    group_name=GROUP,
    kinds={"file"},
    code_version="1",
)
def mixture(context: AssetExecutionContext, decon: Decon) -> None:
    """The corpus without the documents that leaked, and a manifest that accounts for every row.

    Refuses to be built while any shard was not scanned against every benchmark, or rows of it could
    not be read.
    """
    with permanent_failures():
        config = decon.config()
        store = decon.store_of(config)
        versions = current_versions(config, store)
        for pack in packs_of(store, context.partition_keys):
            summary = build_mixture(store, pack, versions, config.policy)
            context.log.info(
                f"{pack.name}: {summary.n_removed} of {summary.n_documents_in} removed"
            )
            context.add_asset_metadata(
                {
                    "dagster/row_count": summary.n_documents_out,
                    "documents_in": summary.n_documents_in,
                    "documents_removed": summary.n_removed,
                    "unreadable_left_out": summary.n_unreadable,
                    "was_there_already": summary.was_there,
                    "folder": MetadataValue.path(store.mixture(DECONTAMINATED, pack.name)),
                },
                partition_key=pack.name,
            )


@asset(
    deps=[
        AssetDep(scan, partition_mapping=AllPartitionMapping()),
        AssetDep(mixture, partition_mapping=AllPartitionMapping()),
    ],
    group_name=GROUP,
    kinds={"duckdb"},
    code_version="1",
)
def report(context: AssetExecutionContext, decon: Decon) -> None:
    """Everything found, decided and removed, in one DuckDB file."""
    with permanent_failures():
        config = decon.config()
        store = decon.store_of(config)
        versions = current_versions(config, store)
        summary = build_report(store, list_packs(store), versions, config.policy)
        context.add_asset_metadata(
            {
                "database": MetadataValue.path(store.report),
                "items": summary.n_items,
                "leaked_items": summary.n_leaked,
                "contaminated_documents": summary.n_contaminated_documents,
                "leaks": summary.n_matches,
                "unreadable_rows": summary.n_unreadable,
                "shards_without_mixture": summary.n_shards_without_mixture,
            }
        )
