"""The asset of blends, and its check."""

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

import dagster as dg

from decon_assets.assets.benchmarks import records
from decon_assets.assets.check_results import (
    Inspected,
    report_before_failure,
    result_of_inspection,
)
from decon_assets.assets.metadata import ITEM, PartitionReporter, picture, same
from decon_assets.assets.products import mixture
from decon_assets.assets.stage import stage
from decon_assets.partitions import all_of, sorted_keys
from decon_assets.resources import Decon
from decon_core.errors import DeconError, IncompleteError, Problem
from decon_core.features.blends.schemas import BLENDED
from decon_core.wording import counted

if TYPE_CHECKING:
    from decon_core.config.load import Config
    from decon_core.storage.store import Store

partitions = dg.DynamicPartitionsDefinition(name="blend")


@stage(
    deps=[
        all_of(mixture),
        all_of(records),  # source of the inserted test items
    ],
    partitions_def=partitions,
    group="products",
    kind="file",
    schema=BLENDED,
    origins=same("records", *ITEM, "sub_index"),
    table="[[blend]]",
)
def blend(context: dg.AssetExecutionContext, config: "Config", store: "Store") -> None:
    """Weighted streams of documents drawn from the mixtures, with test items if requested.

    A blend fixes the order of the documents, how often each is repeated, and where test items are
    inserted. It is not built if its mixture is missing for a pack, or if the test items do not fit;
    the other blends of the run are still built.
    """
    from decon_core.execution.choice import open_engine
    from decon_core.execution.jobs import wanted_workers
    from decon_core.features.blends.on_page import composition_figure
    from decon_core.features.blends.product import blender_of
    from decon_core.features.blends.settings import blend_named
    from decon_core.features.blends.verify import inspect_changed_blends
    from decon_core.planner import Plan
    from decon_core.report.html.still import svg

    blender = blender_of(config, Plan(config, store).builder)
    chosen = [blend_named(blender.blends, name) for name in sorted_keys(context)]
    problems: list[Problem] = []
    total, n_blends = Counter[str](), 0
    reporter = PartitionReporter(context)
    engine = open_engine(config.tables, store)
    for declared in chosen:
        try:
            result = blender.build(declared, workers=wanted_workers(), engine=engine)
        except DeconError as error:
            problems += [
                replace(problem, where=f"blend {declared.name!r}: {problem.where}")
                for problem in error.problems
            ]
            continue
        n = result.counts
        total += n
        n_blends += 1
        most_passes = max(source["passes"] for source in result.manifest["sources"])
        size = f"{counted(n['n_documents'], 'document')}, {counted(n['n_tokens'], 'token')}"
        context.log.debug(
            f"{declared.name}: {size}, {n['n_test_texts']} test items; "
            f"at most {most_passes:g} passes over a source"
        )
        metadata = {
            "dagster/row_count": n["n_documents"],
            "tokens": n["n_tokens"],
            "test_items": n["n_test_texts"],
            "test_tokens": n["n_test_tokens"],
            "most_passes": most_passes,
            "parts": len(result.manifest["parts"]),
            "was_there_already": result.was_there,
            "folder": dg.MetadataValue.path(result.folder),
            "composition": picture(
                "composition", svg(composition_figure(result.manifest, blender.builder.labels))
            ),
        }
        reporter.report(declared.name, metadata)
    size = f"{counted(total['n_documents'], 'document')}, {counted(total['n_tokens'], 'token')}"
    n_items = f"{total['n_test_texts']:,} test items"
    context.log.info(f"{counted(n_blends, 'blend')}, {size}, {n_items}")
    if problems:
        inspection = inspect_changed_blends(store, blender.blends)
        inspected = Inspected(result_of_inspection(inspection), {})
        report_before_failure(context, (), blend_adds_up=inspected)
        raise IncompleteError(dict.fromkeys(problems))


@dg.asset_check(asset=blend, blocking=True)
def blend_adds_up(decon: Decon) -> dg.AssetCheckResult:
    """The texts written are the documents drawn, minus those replaced, plus the test items.

    No file has changed since it was written.
    """
    from decon_core.features.blends.settings import declared_blends
    from decon_core.features.blends.verify import inspect_changed_blends

    with decon.writable_store() as (config, store):
        return result_of_inspection(inspect_changed_blends(store, declared_blends(config)))
