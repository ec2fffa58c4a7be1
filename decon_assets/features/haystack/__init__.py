"""The asset `haystack` and its check: planted items ranked by quality scorers."""

from typing import TYPE_CHECKING

import dagster as dg

from decon_assets.assets.benchmarks import records
from decon_assets.assets.check_results import result_of
from decon_assets.assets.inputs import corpus
from decon_assets.assets.metadata import Metadata, picture, preview
from decon_assets.assets.products import GROUP
from decon_assets.assets.stage import stage
from decon_assets.partitions import all_of
from decon_assets.resources import Decon
from decon_core.wording import counted

if TYPE_CHECKING:
    from decon_core.config.load import Config
    from decon_core.storage.store import Store

_MOST_ROWS = 40


@stage(deps=[all_of(records), all_of(corpus)], group=GROUP, kind="csv")
def haystack(context: dg.AssetExecutionContext, config: "Config", store: "Store") -> Metadata:
    """Percentiles of test items among documents of the corpus, as ranked by quality scorers.

    Built if decon.toml has a [haystack] table. Benchmark items are planted among randomly drawn
    documents, and every scorer ranks them. This shows whether a quality filter keeps leaked items
    more often than other documents.
    """
    from decon_core.execution.jobs import wanted_workers
    from decon_core.features.haystack import page
    from decon_core.features.haystack.product import TABLES, haystack_folder, haystack_key
    from decon_core.features.haystack.run import run_haystack
    from decon_core.features.haystack.settings import Haystack
    from decon_core.planner import Plan

    settings = config.table(Haystack)
    if settings is None:  # "Materialize all" includes it
        return {"haystack": "off: decon.toml has no [haystack] table"}
    plan = Plan(config, store)
    packs, versions = plan.packs, plan.current_versions
    key = haystack_key(packs, versions, settings)
    study = run_haystack(store, packs, versions, settings, workers=wanted_workers())
    folder = haystack_folder(store)
    page.write(study, folder, key=key)
    n_planted, n_documents = len(study.planting.planted), len(study.drawn.haystack)
    among = counted(n_documents, "document")
    context.log.info(f"{counted(n_planted, 'item')} planted among {among}")
    tables = {
        name: preview([dict(zip(heads, row, strict=True)) for row in cells], most=_MOST_ROWS)
        for name, (heads, cells) in page.tables(page.as_json(study)).items()
    }
    return {
        **tables,
        "planted": n_planted,
        "documents": n_documents,
        "unreadable_rows": sum(source.n_unreadable for source in study.drawn.counts),
        **{
            f"{name}_figure": picture(name, (folder / f"{name}.svg").read_text(encoding="utf-8"))
            for name in TABLES
        },
        "folder": dg.MetadataValue.path(folder),
    }


@dg.asset_check(asset=haystack)
def haystack_is_whole(decon: Decon) -> dg.AssetCheckResult:
    """No file of the haystack was changed since it was written."""
    from decon_core.features.haystack.product import faults_of_haystack, haystack_folder

    _, store = decon.open_store()
    return result_of([*faults_of_haystack(haystack_folder(store))])
