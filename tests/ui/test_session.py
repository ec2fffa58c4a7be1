"""A person who has never seen this, from an empty store to the report, with the mouse alone.

Some eight minutes, most of which Dagster's daemon waits: it looks for work every half minute, and a
backfill goes through the graph level by level.
"""

import os
import re
import time
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.ui.conftest import Site, copy_of_the_world, served

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(
        not os.environ.get("DECON_WHOLE_SESSION"),
        reason="takes eight minutes, most of them waiting for Dagster's daemon: "
        "set DECON_WHOLE_SESSION=1 (`make screenshots` does)",
    ),
]

_MINUTES = 60_000

_SHORT = """\
[evals]
recipes = ["*.yaml"]

[corpus]
pack_shards = 1

[[corpus.source]]
name = "shelf"
path = "corpus/shelf*"
text = "text"
id = "id"

[[corpus.source]]
name = "parlor"
path = "corpus/parlor*"
messages = "messages"
id = "id"

[term_weights]
benchmarks = ["harbor_mc", "ledger_math", "almanac_rc", "strait_mt"]

[[mixture]]
name = "decontaminated"
"""

BENCHMARKS = ["harbor_mc", "ledger_math", "almanac_rc", "strait_mt"]
LATER = "orchard_code"


@pytest.fixture(scope="module")
def site(chromium: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A world of which nothing was made yet, behind the UI."""
    folder = tmp_path_factory.mktemp("session")
    config_path = copy_of_the_world(folder)
    config_path.write_text(_SHORT)
    with served(folder, config_path) as running:
        yield running


def test_from_an_empty_store_to_the_report_of_a_benchmark_that_joined(
    page: Page, site: Site, keep: Callable[[Page, str], None]
) -> None:
    take_inventory(page)
    materialize_all(page, keep)
    look_at_the_lineage(page, keep)
    add_a_benchmark(site)
    switch_the_sensor_on(page, keep)
    watch_the_column_fill(page, keep)
    open_the_report(page, keep)


def take_inventory(page: Page) -> None:
    page.goto("/assets/inventory")
    page.get_by_role("button", name="Materialize").first.click()
    # The page tells of a run that ended, but not, before it is loaded again, of its metadata.
    for _ in range(30):
        if page.get_by_text("megabytes", exact=True).count():
            break
        time.sleep(5)
        page.reload()
        expect(page.get_by_text("Latest materialization")).to_be_visible()
        time.sleep(2)
    expect(page.get_by_text("megabytes", exact=True)).to_be_visible()


def materialize_all(page: Page, keep: Callable[[Page, str], None]) -> None:
    page.goto("/asset-groups")
    page.get_by_role("button", name="Materialize all").click()
    expect(page.get_by_text("All partitions", exact=True)).to_be_visible()
    keep(page, "session-1-materialize-all.png")
    page.get_by_role("button", name="Launch backfill").click()
    page.goto("/overview/backfills")
    expect(page.get_by_text("Success", exact=True)).to_be_visible(timeout=15 * _MINUTES)


def look_at_the_lineage(page: Page, keep: Callable[[Page, str], None]) -> None:
    page.goto("/assets/report?view=lineage")
    expect(page.get_by_text("mixture", exact=True).first).to_be_visible()
    keep(page, "session-2-lineage.png")
    page.goto("/assets/scan?view=partitions")
    expect(page.get_by_text("Materialized (32)")).to_be_visible()


def add_a_benchmark(site: Site) -> None:
    """What the person does in a file manager: a benchmark's file and its recipe."""
    folder = site.config_path.parent
    for file in (folder / "later").rglob("*"):
        if file.is_file() and file.suffix != ".yaml":
            target = folder / file.relative_to(folder / "later")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(file.read_bytes())
    (folder / "orchard.yaml").write_bytes((folder / "later" / "evals.yaml").read_bytes())


def switch_the_sensor_on(page: Page, keep: Callable[[Page, str], None]) -> None:
    page.goto("/automation")
    expect(page.get_by_text("keep_up", exact=True)).to_be_visible()
    switch = page.locator("label[class*=formatSwitch]").last
    expect(switch.locator("input")).to_be_enabled()
    switch.click()
    expect(switch.locator("input")).to_be_checked()
    time.sleep(2)  # the switch moves
    keep(page, "session-3-sensor.png")


def watch_the_column_fill(page: Page, keep: Callable[[Page, str], None]) -> None:
    page.goto("/assets/scan?view=partitions")
    expect(page.locator(f"[title='{LATER}']")).to_be_visible(timeout=5 * _MINUTES)
    expect(page.get_by_text("Missing (8)")).to_be_visible(timeout=5 * _MINUTES)
    keep(page, "session-4-missing-column.png")
    expect(page.get_by_text("Materialized (40)")).to_be_visible(timeout=10 * _MINUTES)
    keep(page, "session-5-filled-column.png")


def open_the_report(page: Page, keep: Callable[[Page, str], None]) -> None:
    """The link in the metadata, once the sensor has had the report made anew."""
    for _ in range(40):
        page.goto("/assets/report_page")
        link = page.get_by_role("link", name=re.compile("report.html$")).last
        expect(link).to_be_visible()
        with page.context.expect_page() as opened:
            link.click()
        report = opened.value
        report.wait_for_load_state()
        if report.get_by_text(LATER).count():
            break
        report.close()
        time.sleep(15)
    expect(report.get_by_text(LATER).first).to_be_attached()
    keep(report, "session-6-report.png")
