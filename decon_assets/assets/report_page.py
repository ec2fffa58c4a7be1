"""The asset `report_page`: the report and the study as a page, and what is published of them."""

import dagster as dg

from decon_assets.assets.metadata import Metadata
from decon_assets.assets.products import GROUP, report
from decon_assets.assets.report_server import link_to
from decon_assets.assets.stage import stage
from decon_assets.assets.study import study
from decon_core import missing
from decon_core.config.load import Config
from decon_core.storage.store import Store


@stage(missing=missing.needs_page, priority=1, deps=[report, study], group=GROUP, kind="html")
def report_page(context: dg.AssetExecutionContext, config: Config, store: Store) -> Metadata:
    """The report and the study as an HTML page, a dataset card section and a JSON summary."""
    from decon_core.report.html.build import write_page
    from decon_core.report.publish.card import CARD, SUMMARY, write_published
    from decon_core.report.publish.summary import summary_of
    from decon_core.studies.on_page import study_on_page

    folder = store.report.parent
    added = study_on_page(store) if config.study else None
    write_page(store.report, store.report_page, study=added)
    write_published(summary_of(store.report), folder)
    context.log.info(f"{store.report_page.name}, {CARD}, {SUMMARY}")
    return {
        "page": dg.MetadataValue.path(store.report_page),
        "link": dg.MetadataValue.url(link_to(store.report_page)),
        "card": dg.MetadataValue.md((folder / CARD).read_text(encoding="utf-8")),
        "summary": dg.MetadataValue.path(folder / SUMMARY),
    }
