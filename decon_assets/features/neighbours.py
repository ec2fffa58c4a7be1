"""The `neighbours` asset: paragraphs of a sample of the corpus that are nearest to each item."""

import time
from dataclasses import asdict
from typing import TYPE_CHECKING

import dagster as dg

from decon_assets.assets.benchmarks import records
from decon_assets.assets.check_results import result_of
from decon_assets.assets.inputs import corpus
from decon_assets.assets.metadata import ITEM, Metadata, preview, same
from decon_assets.assets.scanning import GROUP
from decon_assets.assets.stage import stage
from decon_assets.partitions import all_of
from decon_assets.resources import Decon
from decon_core.features.neighbours.schemas import NEIGHBOURS
from decon_core.wording import counted

if TYPE_CHECKING:
    from decon_core.config.load import Config
    from decon_core.storage.store import Store

_SECONDS_BETWEEN_LOG_LINES = 10.0


@stage(
    deps=[all_of(records), all_of(corpus)],
    pool="scan",  # it uses all cores
    group=GROUP,
    kind="parquet",
    schema=NEIGHBOURS,
    origins=same("records", *ITEM),
)
def neighbours(context: dg.AssetExecutionContext, config: "Config", store: "Store") -> Metadata:
    """The paragraphs in a sample of the corpus whose embeddings are nearest to each benchmark item.

    Built if decon.toml has a [neighbours] table. The sample and the embeddings are stored in
    blocks, so a stopped run resumes where it left off.
    """
    from decon_core.execution.choice import open_engine
    from decon_core.execution.jobs import wanted_workers
    from decon_core.features.neighbours.build import build_neighbours
    from decon_core.features.neighbours.sample import Workers
    from decon_core.features.neighbours.settings import Neighbours
    from decon_core.planner import Plan

    settings = config.table(Neighbours)
    if settings is None:  # "Materialize all" includes it; the report is made without it
        return {"neighbours": "off: decon.toml has no [neighbours] table"}
    engine = open_engine(config.tables, store)
    logged_at = time.monotonic()

    def log_progress(what: str, n_done: int, n: int) -> None:
        nonlocal logged_at
        if time.monotonic() - logged_at >= _SECONDS_BETWEEN_LOG_LINES:
            logged_at = time.monotonic()
            states = f"; {engine.counts}" if engine.is_remote and engine.counts.n_jobs else ""
            context.log.debug(f"{what}: {n_done:,} of {n:,}{states}")

    plan = Plan(config, store)
    results, strata, n_neighbours = build_neighbours(
        store,
        plan.packs,
        plan.current_versions,
        settings,
        tokenizer=config.policy.tokenizer_str,
        workers=Workers(wanted_workers(), engine, log_progress),
    )
    n_paragraphs = sum(stratum.n_paragraphs for stratum in strata)
    n_documents = sum(stratum.n_sampled for stratum in strata)
    found = f"{counted(n_paragraphs, 'paragraph')} from {counted(n_documents, 'sampled document')}"
    context.log.info(f"{found}, {counted(n_neighbours, 'neighbour')}")
    return {
        "dagster/row_count": n_neighbours,
        "paragraphs": n_paragraphs,
        "sampled_documents": n_documents,
        "sample": preview([asdict(stratum) for stratum in strata]),
        "embedder": settings.embedder,
        "folder": dg.MetadataValue.path(results.folder),
    }


@dg.asset_check(asset=neighbours)
def neighbours_are_of_items(decon: Decon) -> dg.AssetCheckResult:
    """Neighbours belong to benchmark items, no item has more than `top`, no cosine exceeds 1."""
    from decon_core.features.neighbours.product import current_results, faults_of_neighbours
    from decon_core.features.neighbours.settings import Neighbours
    from decon_core.planner import Plan

    plan = Plan(*decon.open_store())
    settings = plan.config.table(Neighbours)
    if settings is None:
        return result_of([])
    results, versions = current_results(plan), plan.current_versions
    return result_of([*faults_of_neighbours(results, versions, settings.top)] if results else [])
