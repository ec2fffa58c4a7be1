"""The `scorecard` asset with its job: how many planted leaks each detector finds in this corpus."""

from dataclasses import replace
from typing import TYPE_CHECKING

import dagster as dg
from pydantic import Field

from decon_assets.assets.benchmarks import records
from decon_assets.assets.inputs import corpus
from decon_assets.assets.metadata import OWNERS, Metadata, picture, preview
from decon_assets.assets.products import GROUP
from decon_assets.assets.stage import KEY_PREFIX_TAG, Gates, require_unblocked
from decon_assets.failures import dagster_failures
from decon_assets.partitions import all_of
from decon_assets.resources import Decon
from decon_core.config.detector_registry import BUILT_IN
from decon_core.features.scorecard import FEATURE

if TYPE_CHECKING:
    from decon_core.features.scorecard.marks import Marks

_DIALOG_WIDTH = 940  # width of the UI's Markdown dialog, which does not scale images


class ScorecardConfig(dg.Config):
    """Run configuration of `scorecard`."""

    detectors: list[str] = Field(
        default=list(BUILT_IN),
        description="The detectors to compare, independent of the policy's choice.",
    )
    per_transformation: int = Field(
        default=8,
        description="Number of plantings per transformation and per hard negative.",
    )
    background: int = Field(default=100, description="Number of documents left unchanged.")
    seed: int = Field(default=0, description="Seed for the choice of items and places.")


# An external asset: otherwise "Materialize all" would include it, although nothing depends on it
# and `decon-assets run` leaves it out. The job of the same name makes it.
scorecard = dg.AssetSpec(
    "scorecard",
    deps=[all_of(records), all_of(corpus)],
    group_name=GROUP,
    owners=OWNERS,
    kinds={"csv"},
    code_version="1",
    description="Recall and false alarms of each detector on leaks planted on purpose. Items of "
    "the registered benchmarks, transformed in some forty ways, are inserted into documents of the "
    "registered corpus, and every detector scans these documents. Nothing depends on this asset, "
    'so "Materialize all" leaves it out: run the job `scorecard` to build it.',
)


@dg.op
def plant_and_scan(
    context: dg.OpExecutionContext,
    decon: Decon,
    gates: dg.ResourceParam[Gates],
    config: ScorecardConfig,
) -> None:
    """Plant transformed benchmark items into documents of the corpus and scan with all detectors.

    Records recall and false alarms of each detector as the `scorecard` asset.
    """
    from decon_core.benchmarks.records import load_records
    from decon_core.features.scorecard.corpora import hosts_of_packs
    from decon_core.features.scorecard.page import recall_table
    from decon_core.features.scorecard.run import run_scorecard
    from decon_core.planner import Plan

    with dagster_failures(), decon.writable_store() as (settings, store):
        require_unblocked(context.instance, gates["scorecard"], settings, store)
        plan = Plan(settings, store)
        folder = store.root / FEATURE.name
        card = run_scorecard(
            {version.benchmark: load_records(store, version) for version in plan.current_versions},
            hosts_of_packs(plan.packs),
            replace(settings.policy, detectors=tuple(config.detectors)),
            folder,
            per_transformation=config.per_transformation,
            n_background=config.background,
            seed=config.seed,
            about={"made by": "the `scorecard` asset", "texts": "the registered corpus"},
            on_step=context.log.info,
        )
        metadata: Metadata = {
            "detectors": _totals(card.marks),
            "recall": dg.MetadataValue.md(recall_table(card.marks)),
            "plot": picture("scorecard", card.picture(shown_width=_DIALOG_WIDTH)),
            "planted": card.corpus.n_documents - card.corpus.n_background,
            "background": card.corpus.n_background,
            "folder": dg.MetadataValue.path(folder),
        }
        path = filter(None, [context.get_tag(KEY_PREFIX_TAG), "scorecard"])
        key = dg.AssetKey.from_user_string("/".join(path))
        context.log_event(dg.AssetMaterialization(key, metadata=metadata))


@dg.job(name="scorecard", description="Build the `scorecard` asset.")
def scorecard_job() -> None:
    plant_and_scan()


def _totals(marks: "Marks") -> dg.MetadataValue:
    return preview(
        [
            {
                "detector": row["detector"],
                "recall": row["recall"],
                "precision": row["precision"],
                "false alarms": f"{row['n_false_alarms']} of {row['n_negatives']}",
                "background flagged": f"{row['n_background_flagged']} of {row['n_background']}",
            }
            for row in marks.totals.iter_rows(named=True)
        ]
    )
