"""The page of a report for everyone: axe's rules, figures, the order of the Tab key, shortcuts."""

import re

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from tests.ui.figure_text import faint_texts
from tests.ui.report_pages import ask, field, found, go, rows

pytestmark = pytest.mark.browser

FOCUSED = """() => {
    const node = document.activeElement;
    const { outlineStyle, outlineWidth } = getComputedStyle(node);
    const name = node.id || node.textContent;
    return [name, outlineStyle !== 'none' && outlineWidth !== '0px'];
}"""


def violations(page: Page, state: str, rules: dict[str, object]) -> list[str]:
    result = Axe().run(page, options={"resultTypes": ["violations"], **rules})
    return [
        f"{state}: {broken['id']} at {node['target']}: {node['failureSummary']}"
        for broken in result.response["violations"]
        for node in broken["nodes"]
    ]


# All of axe's rules: WCAG 2 A and AA, and best practices. Only contrast depends on the theme.
ALL_RULES: dict[str, object] = {}
CONTRAST: dict[str, object] = {"runOnly": ["color-contrast"]}


def test_no_view_and_theme_has_a_violation_of_axe_or_a_faint_text_in_a_figure(show, report):
    page = show(report, reduced_motion="reduce")
    for chart in page.locator(".chart").all():
        chart.scroll_into_view_if_needed()
        expect(chart.locator("svg.main-svg").first).to_be_visible(timeout=60_000)
    page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true; })")
    matched = ask(
        report, "SELECT text_id FROM matched_texts WHERE len(answer_marks) > 0 ORDER BY text_id"
    )[0][0]
    broken = []
    for theme, rules in (("light", ALL_RULES), ("dark", CONTRAST)):
        if theme == "dark":
            page.get_by_role("button", name="Switch between light and dark").click()
        expect(page.locator("html")).to_have_css("color-scheme", theme)
        go(page, "#overview")
        broken += violations(page, f"overview, {theme}", rules)
        broken += [f"overview, {theme}: {text}" for text in faint_texts(page)]
        go(page, f"#texts?text={matched}&unknown=1")
        expect(page.locator("#missing")).to_be_visible()
        expect(page.locator("#detail mark.of-answer").first).to_be_visible()
        broken += violations(page, f"a matched text, {theme}", rules)
        page.keyboard.press("?")
        broken += violations(page, f"shortcuts, {theme}", rules)
        page.keyboard.press("Escape")
        page.get_by_role("button", name="Verdicts").click()
        broken += violations(page, f"verdicts, {theme}", rules)
        page.keyboard.press("Escape")
        go(page, "#documents?q=doc-1")
        expect(page.locator("#lines .line").first).to_be_visible()
        for key in ("Home", "ArrowRight", "ArrowRight"):
            page.keyboard.press(key)
        expect(page.locator("#lines .is-text[aria-selected=true]")).to_be_visible()
        broken += violations(page, f"documents, {theme}", rules)
    assert broken == []


def test_every_figure_has_a_name_and_a_description(at):
    page = at("#overview")
    charts = page.locator(".chart")
    expect(charts).not_to_have_count(0)
    for chart in charts.all():
        name = chart.get_attribute("aria-label")
        expect(chart).to_have_accessible_name(name)
        expect(chart).to_have_accessible_description(re.compile(r"\d.*\.$"))


def test_the_points_of_a_figure_are_reached_and_opened_by_keyboard(at, report):
    page = at("#heat")
    points = page.locator("#heat").get_by_role("listbox")
    current = points.get_by_role("option")
    shown = page.locator("#heat .hovertext")
    points.focus()
    expect(shown).to_be_visible(timeout=60_000)
    page.keyboard.press("End")
    expect(current).to_have_attribute("aria-posinset", current.get_attribute("aria-setsize"))
    last = current.inner_text()
    page.keyboard.press("ArrowLeft")
    expect(current).not_to_have_text(last)
    page.keyboard.press("ArrowDown")
    expect(current).to_have_text(last)
    benchmark, source, n = re.fullmatch(r"(\S+) in (\S+), (\d+) items?, .*", last).groups()
    expect(shown).to_contain_text(f"{benchmark} in {source}")
    expect(page.locator("#heat .chart")).not_to_have_css("outline-style", "none")
    page.keyboard.press("Escape")
    expect(shown).to_have_count(0)
    page.keyboard.press("Enter")
    expect(page.locator("#texts-view")).to_be_visible()
    assert field(page, "Benchmark").input_value() == benchmark
    assert field(page, "Source").input_value() == source
    place = f"(benchmark, source) = ('{benchmark}', '{source}')"
    query = f"SELECT count(*) FROM matched_texts WHERE {place}"
    assert found(page) == ask(report, query)[0][0] >= int(n)


def test_a_point_says_what_the_mouse_shows(at):
    page = at("#sweep")
    points = page.locator("#sweep").get_by_role("listbox").first
    points.focus()
    shown = page.locator("#sweep .hovertext").first
    expect(shown).to_be_visible(timeout=60_000)
    page.keyboard.press("End")
    expect(shown).to_have_text(points.get_by_role("option").inner_text())


def test_tab_goes_through_the_page_in_the_order_of_reading_and_shows_where_it_is(show, report):
    page = show(report, "#documents")
    expect(page.locator("#lines .line").first).to_be_visible()
    places = []
    for _ in range(16):
        page.keyboard.press("Tab")
        places.append(page.evaluate(FOCUSED))
    assert [name for name, _ in places] == [
        *("Skip to content", "to-overview", "to-texts", "to-documents"),
        *("export", "theme", "help"),
        *("d-q", "d-outcome", "d-benchmark", "d-source", "d-least", "d-sort", "d-clear"),
        *("d-csv", "grid"),
    ]
    assert [name for name, is_visible in places if not is_visible] == []
    page.locator(".skip").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("treegrid")).to_be_focused()
    assert page.url.endswith("#documents")


def test_the_list_of_shortcuts_keeps_the_focus_and_gives_it_back(at):
    page = at("#texts")
    page.locator("#list").focus()
    page.keyboard.press("?")
    dialog = page.get_by_role("dialog", name="Keyboard shortcuts")
    expect(dialog.get_by_role("button", name="Close")).to_be_focused()
    inside = "['keys', 'letters'].includes((document.activeElement.closest('dialog') ?? {}).id)"
    for _ in range(5):
        page.keyboard.press("Tab")
        assert page.evaluate(f"{inside} || document.activeElement === document.body")
    page.keyboard.press("j")  # does nothing behind the dialog
    page.keyboard.press("Escape")
    expect(page.locator("#list")).to_be_focused()
    expect(page.locator("#list [aria-selected=true]")).to_have_count(0)
    page.locator("#help").click()
    expect(dialog).to_contain_text("save the documents shown as CSV")
    dialog.get_by_role("button", name="Close").click()
    expect(page.locator("#help")).to_be_focused()


def test_letters_can_be_switched_off_and_other_keys_stay(at):
    page = at("#texts")
    chosen = page.locator("#list [aria-selected=true]")
    page.locator("#help").click()
    page.get_by_label("Use letters and symbols as shortcuts").uncheck()
    page.keyboard.press("Escape")
    page.reload()
    expect(rows(page).first).to_be_visible()
    page.keyboard.press("j")
    page.keyboard.press("d")
    expect(chosen).to_have_count(0)
    page.keyboard.press("ArrowDown")
    expect(chosen).to_have_count(1)
    page.locator("#help").click()
    page.get_by_label("Use letters and symbols as shortcuts").check()
    page.keyboard.press("Escape")
    page.keyboard.press("d")
    expect(page.get_by_role("treegrid")).to_be_focused()
