"""What a person sees who opens the Dagster UI after a run, and the pictures for the README."""

import re
import socket
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
from dagster import DagsterInstance
from playwright.sync_api import Locator, Page, expect

from decon_assets.assets.registration import register
from decon_core.benchmarks.records import current_version
from decon_core.corpus.registration import list_packs
from decon_core.features.blends.schemas import blend_manifest
from decon_core.features.blends.settings import declared_blends
from decon_core.scan.coverage import scan_fingerprint
from decon_core.scan.scan_results import ScanResults
from decon_core.storage.files import read_json

pytestmark = pytest.mark.browser

GROUPS = {
    "inputs": ["inventory", "benchmark_files", "corpus"],
    "benchmarks": ["records", "term_weights", "index"],
    "scan": ["sketch", "scan", "common_ngrams", "neighbours"],
    "products": [
        "mixture",
        "blend",
        "clean_benchmark",
        "haystack",
        "report",
        "report_page",
        "scorecard",
        "study",
    ],
}
NOT_BUILT = {"benchmark_files", "corpus", "scorecard"}  # files of others, and what a run leaves out
OFF = {"neighbours", "sketch"}  # not configured
BENCHMARKS = ["harbor_mc", "ledger_math", "almanac_rc", "strait_mt"]
PACKS = [
    *(f"shelf-000{n}" for n in range(5)),
    *(f"parlor-000{n}" for n in range(3)),
    "agents-0000",
]
N_PARTITIONS = len(BENCHMARKS) * len(PACKS)
LATER = "orchard_code"
GREEN = re.compile("accent-green")
GREY = re.compile("accent-gray")


def test_the_code_location_is_loaded(page, site):
    page.goto("/deployment/locations")
    expect(page.get_by_text("1 code location")).to_be_visible()
    expect(page.get_by_role("link", name="decon_assets.definitions")).to_be_visible()
    expect(page.get_by_text("Loaded", exact=True)).to_be_visible()
    assert "Traceback" not in site.log.read_text()


def test_the_graph_shows_every_asset_in_its_group_and_what_is_materialized_in_green(page, keep):
    open_whole_graph(page)
    for group, assets in GROUPS.items():
        box = page.locator("foreignObject.group").filter(has_text=exactly(group))
        for asset in assets:
            expect(node(page, asset)).to_be_visible()
            assert is_inside(node(page, asset), box), (asset, group)
            if asset not in NOT_BUILT | OFF:
                border = node(page, asset).locator("[style*='--minimal-border']")
                expect(border).to_have_attribute("style", GREEN)
    expect(page.locator("foreignObject.group")).to_have_count(len(GROUPS))
    keep(page, "asset-graph.png")


def test_materialize_all_leaves_out_the_scorecard_and_files_of_others(page):
    n_materialized = sum(map(len, GROUPS.values())) - len(NOT_BUILT)
    page.goto("/asset-groups")
    page.get_by_text(f"Materialize all ({n_materialized})").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_text(f"materialize {n_materialized} assets")).to_be_visible()
    dialog.get_by_role("button", name="Cancel").click()


def test_the_overview_shows_a_run_of_the_command_line_and_the_runs_of_its_assets(page):
    page.goto("/")
    expect(page.get_by_role("link", name="everything_missing")).to_be_visible()
    expect(page.get_by_role("link", name="stage_records")).to_be_visible()
    expect(page.get_by_text("Jobless asset materializations")).to_have_count(0)


def test_the_sensors_say_what_they_do(page):
    page.goto("/automation")
    expect(page.get_by_role("link", name="fail_stage_runs")).to_be_visible()
    expect(page.get_by_role("link", name="keep_up")).to_be_visible()
    page.locator("[aria-label=info]").last.hover()
    expect(page.get_by_role("tooltip")).to_contain_text("Keeps everything up to date")


@pytest.fixture
def later_benchmark(site) -> Iterator[str]:
    """A fifth benchmark, registered as its README says while the UI runs; and taken out again."""
    before = site.config_path.read_text()
    after = before.replace('["evals.yaml"]', '["evals.yaml", "later/evals.yaml"]')
    assert after != before
    with DagsterInstance.from_config(str(site.home)) as instance:
        site.config_path.write_text(after)
        register(site.config_path, instance)
        yield LATER
        site.config_path.write_text(before)
        register(site.config_path, instance)


def test_every_partition_of_the_scan_is_materialized(page):
    page.goto("/assets/scan?view=partitions")
    expect(page.get_by_text(f"Materialized ({N_PARTITIONS})")).to_be_visible()
    expect(page.get_by_text("Missing (0)")).to_be_visible()
    for key in BENCHMARKS + PACKS:
        expect(dot(page, key)).to_have_attribute("style", GREEN)


def test_a_benchmark_added_later_is_a_missing_column_of_the_scan(page, later_benchmark, keep):
    page.goto("/assets/scan?view=partitions")
    expect(page.get_by_text(f"Materialized ({N_PARTITIONS})")).to_be_visible()
    expect(page.get_by_text(f"Missing ({len(PACKS)})")).to_be_visible()
    for key in BENCHMARKS:
        expect(dot(page, key)).to_have_attribute("style", GREEN)
    expect(dot(page, later_benchmark)).to_have_attribute("style", GREY)
    page.locator(f"[title='{later_benchmark}']").click()
    for key in PACKS:
        expect(dot(page, key)).to_have_attribute("style", GREY)
    keep(page, "scan-grid.png")


def test_every_declared_variant_of_every_pack_is_built(page, site, keep):
    page.goto("/assets/mixture?view=partitions")
    names = [mixture.name for mixture in site.config.mixtures]
    expect(page.get_by_text(f"Materialized ({len(names) * len(PACKS)})")).to_be_visible()
    expect(page.get_by_text("Missing (0)")).to_be_visible()
    for key in names + PACKS:
        expect(dot(page, key)).to_have_attribute("style", GREEN)
    keep(page, "mixture-grid.png")


def test_every_declared_blend_is_built_and_says_how_much_of_it_are_test_items(page, site, keep):
    names = [blend.name for blend in declared_blends(site.config)]
    page.goto("/assets/blend?view=partitions&partition=garlic")
    expect(page.get_by_text(f"Materialized ({len(names)})")).to_be_visible()
    expect(page.get_by_text("Missing (0)")).to_be_visible()
    manifest = read_json(blend_manifest(site.store, "garlic"))
    n_texts = manifest["totals"]["n_test_texts"]
    expect(value(page, "test_items")).to_have_text(str(n_texts))
    keep(page, "blends.png")


def test_a_materialization_says_which_version_it_is_and_how_many_rows_it_has(page, site, keep):
    version = current_version(site.store, "harbor_mc")
    page.goto("/assets/records?view=partitions&partition=harbor_mc")
    expect(value(page, "version")).to_have_text(version.fingerprint)
    expect(value(page, "dagster/row_count")).to_have_text(str(version.n_records))
    expect(value(page, "items")).to_have_text(str(version.n_items))
    keep(page, "materialization.png")
    page.get_by_text("[Show Markdown]").click()
    expect(page.get_by_role("columnheader", name="question")).to_be_visible()

    page.goto(f"/assets/scan?view=partitions&partition=harbor_mc%7C{PACKS[0]}")
    (pack,) = [pack for pack in list_packs(site.store) if pack.name == PACKS[0]]
    scan = scan_fingerprint(site.store, site.config.policy)
    results = ScanResults(site.store, scan)
    ledgers = [results.ledger(shard.fingerprint) for shard in pack.shards]
    n_documents = sum(ledger["n_documents"] for ledger in ledgers)
    expect(value(page, "documents")).to_have_text(str(n_documents))
    expect(page.get_by_text("blocks_excluded_by_sketch")).to_have_count(0)


def test_the_pages_of_an_asset_of_each_group_open_without_an_error(page, site):
    for asset in ("corpus", "records", "scan", "report", "study"):
        page.goto(f"/assets/{asset}")
        expect(page.get_by_role("button", name="Description")).to_be_visible()
        expect(page.get_by_text("No description")).to_have_count(0)
    for path, content in {
        "/runs": "Success",
        "/assets/scan?view=checks": "every_row_was_read",
        "/assets/report?view=checks": "coverage_is_complete",
        "/assets/report?view=events": "leaked_items",
        "/assets/scan?view=lineage": "mixture",
    }.items():
        page.goto(path)
        expect(page.get_by_text(content).first).to_be_visible()
        for trouble in ("Traceback", "PythonError", "GraphQL error"):
            expect(page.get_by_text(trouble)).to_have_count(0)
    assert "Traceback" not in site.log.read_text()


def test_the_ui_is_on_loopback_only_and_neither_welcomes_nor_reports(page, site):
    port = urlsplit(site.url).port
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.2", port), timeout=5).close()
    with DagsterInstance.from_config(str(site.home)) as instance:
        assert not instance.telemetry_enabled
        assert not instance.nux_enabled
    open_whole_graph(page)
    expect(page.get_by_role("dialog")).to_have_count(0)
    node(page, "scan").click(trial=True)


def open_whole_graph(page: Page) -> None:
    """The graph with its groups open.

    The UI fits it to the width of the window, and does not draw what lies above or below: the
    window is as high as the graph.
    """
    page.set_viewport_size({"width": 1700, "height": 1500})
    page.goto("/asset-groups")
    expect(page.locator("foreignObject").filter(has_text="products")).to_be_visible()
    page.locator("button:has([aria-label=panel_show_right])").click()
    page.locator("button:has([aria-label=settings])").last.click()
    page.get_by_role("menuitem", name="Expand all groups").click()
    page.keyboard.press("Escape")
    expect(page.locator("foreignObject").filter(has_text="term_weights")).to_be_visible()
    node(page, "report").click(trial=True)  # waits until it stands still, and nothing covers it


def node(page: Page, asset: str) -> Locator:
    return page.locator("foreignObject:not(.group)").filter(has_text=exactly(asset))


def exactly(text: str) -> re.Pattern[str]:
    return re.compile(rf"^\s*{re.escape(text)}\s*$")


def is_inside(inner: Locator, outer: Locator) -> bool:
    """Asked of the page in one go, for the graph may be moving."""
    return inner.evaluate(
        """(inner, outer) => {
            const [a, b] = [inner.getBoundingClientRect(), outer.getBoundingClientRect()];
            return b.left <= a.left && a.right <= b.right && b.top <= a.top && a.bottom <= b.bottom;
        }""",
        outer.element_handle(),
    )


def dot(page: Page, key: str) -> Locator:
    """The coloured dot beside a partition."""
    is_dot = "contains(@style, 'border-radius: 100%')"
    return page.locator(f"//*[@title='{key}']/ancestor::*[descendant::*[{is_dot}]][1]//*[{is_dot}]")


def value(page: Page, name: str) -> Locator:
    """What stands beside a name in the table of metadata."""
    row = page.get_by_role("row").filter(has=page.get_by_text(name, exact=True))
    return row.locator("td").nth(1)
