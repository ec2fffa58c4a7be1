"""The asset `report_page`: the report as an HTML page, and the files published from it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import dagster as dg

from decon_assets.assets.metadata import Metadata, pictures
from decon_assets.assets.products import GROUP, report
from decon_assets.assets.report_server import link_to
from decon_assets.assets.stage import stage
from decon_core.feature import all_features

if TYPE_CHECKING:
    from decon_core.config.load import Config
    from decon_core.storage.store import Store

# Assets of features with a section of the page.
_ADDED = [name for feature in all_features() if feature.page for name in feature.products]


@stage(
    missing="decon_core.planner:needs_page",
    priority=1,
    deps=[report, *_ADDED],
    group=GROUP,
    kind="html",
)
def report_page(context: dg.AssetExecutionContext, config: Config, store: Store) -> Metadata:
    """The report as an HTML page, figures, a dataset card section and a JSON summary."""
    from decon_core.report.html.build import additions_of, write_page
    from decon_core.report.publish.card import CARD, SUMMARY, write_published
    from decon_core.report.publish.figures import figures, write_figures
    from decon_core.report.publish.summary import summary_of

    folder = store.report.parent
    facts = write_page(store.report, store.report_page, additions=additions_of(config, store))
    drawn = figures(facts)
    write_figures(drawn, store.report_figures)
    write_published(summary_of(store.report), folder)
    context.log.info(f"{store.report_page.name}, {CARD}, {SUMMARY}, {store.report_figures.name}/")
    return {
        **{name: pictures(charts) for name, charts in drawn.items()},
        "figures": dg.MetadataValue.path(store.report_figures),
        "page": dg.MetadataValue.path(store.report_page),
        "link": dg.MetadataValue.url(link_to(store.report_page)),
        "card": dg.MetadataValue.md((folder / CARD).read_text(encoding="utf-8")),
        "summary": dg.MetadataValue.path(folder / SUMMARY),
    }
