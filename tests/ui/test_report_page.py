"""What a person sees and does who opens the page of a report, from a file and with no network."""

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest
from playwright.sync_api import Page, expect

from decon_assets.instance.home import ensure_home
from decon_core.config.load import load_config
from decon_core.decisions.verdicts import read_lines
from decon_core.report.html.build import write_page
from decon_core.storage.store import Store
from tests.core.report.report_worlds import RUN, write_world
from tests.core.report.reports import write_report
from tests.finished_world import copy_finished_world, keep_one_mixture
from tests.long_runs import IS_LONG
from tests.ui.report_pages import BEST_FIRST, ask, field, found, names, rows

pytestmark = pytest.mark.browser

HOSTILE = "</script><script>window.hacked=1</script><img src=x onerror=window.hacked=1>"
LINK = '<a href="javascript:window.hacked=1">here</a>'
HIDDEN = "\u2028 \u202egnihton\u202c \x00 \x1b[31m <b>bold</b> &lt;i&gt;"
DATA = Path(__file__).parents[2] / "data"

# Overview -----------------------------------------------------------------------------------------


def test_the_probability_by_score_is_drawn_and_a_judgement_is_unfolded(show, tmp_path):
    named = {"pair": "p", "detector": "decon", "benchmark": "quiz"}
    judged = {**named, "score": 0.9, "is_sd": False, "judge": "model", "judged_by": HOSTILE}
    steps = [
        {**named, "benchmark": benchmark, "step": n, "score_from": n / 2, "score_to": 0.4 + n / 2}
        | {"n_judged": 9, "n_sd": n, "probability": n / 9, "low": 0.0, "high": 0.5}
        for benchmark in (None, "quiz")
        for n in range(2)
    ]
    report = write_report(
        tmp_path / "r.duckdb",
        runs=[RUN],
        matched_texts=[{"text_id": "p", "detectors": "decon", "score": 0.9}],
        judged_pairs=[{**judged, "match_type": "related", "reasoning": LINK}],
        calibration=[{key: one[key] for key in one if key != "pair"} for one in steps],
    )
    page = show(report)
    page.locator("#calibration").scroll_into_view_if_needed()
    expect(page.locator("#calibration svg.main-svg").first).to_be_visible(timeout=60_000)
    listed = show(report, "#texts")
    listed.keyboard.press("j")
    expect(listed.get_by_text("not a duplicate · related")).to_be_hidden()
    listed.get_by_text("by a model or a file").click()
    expect(listed.get_by_text("not a duplicate · related")).to_be_visible()
    assert listed.evaluate("window.hacked") is None
    assert page.evaluate("window.hacked") is None


def test_the_overview_says_what_was_found_and_draws_every_figure(at, report):
    page = at("#overview")
    expect(page.locator("#classes thead")).to_contain_text("needs review")
    figures = page.locator(".chart")
    for number in range(figures.count()):
        figures.nth(number).scroll_into_view_if_needed()
        expect(figures.nth(number).locator("svg.main-svg").first).to_be_visible(timeout=60_000)
    assert figures.count() >= 8
    page.locator("#heat").scroll_into_view_if_needed()


def test_the_title_names_the_corpus_and_says_that_a_report_is_incomplete(show, tmp_path):
    shard = {"source": "web", "pack": "p-0", "shard_name": "s-9.jsonl", "benchmarks": ["quiz"]}
    incomplete = write_world(
        tmp_path / "r.duckdb", run={"n_shards_not_scanned": 1}, not_scanned=[shard]
    )
    corpus = "Contamination report: parlor, shelf, web"
    expect(show(incomplete)).to_have_title(f"Incomplete: {corpus}")
    expect(show(write_world(tmp_path / "r.duckdb"))).to_have_title(corpus)


def test_every_section_is_reached_from_the_contents(at, report):
    page = at("#overview")
    links = page.get_by_role("navigation", name="Sections").get_by_role("link")
    n_empty = page.locator("#empty li").count()
    assert links.count() == page.locator("#sections > section:not(#empty)").count() == 18 - n_empty
    assert n_empty
    links.filter(has_text="What was scanned").click()
    expect(page.get_by_role("heading", name="What was scanned")).to_be_in_viewport()


def test_one_benchmark_can_be_looked_at_alone(at, report):
    page = at("#overview")
    section = page.locator("#scores")
    section.scroll_into_view_if_needed()
    heights = "node => node.data.map(({ y }) => y.reduce((a, b) => a + b)).reduce((a, b) => a + b)"
    drawn = section.locator(".chart").first
    expect(drawn.locator("svg.main-svg").first).to_be_visible(timeout=60_000)
    total = drawn.evaluate(heights)
    section.get_by_role("combobox").select_option("harbor_mc")
    expect(drawn.locator("svg.main-svg").first).to_be_visible(timeout=60_000)
    query = "SELECT sum(n_matches)::BIGINT FROM score_histogram WHERE detector = 'decon' "
    assert total == ask(report, query)[0][0]
    assert drawn.evaluate(heights) == ask(report, query + "AND benchmark = 'harbor_mc'")[0][0]


def test_a_square_of_the_heat_map_opens_its_texts(at, report):
    page = at("#overview")
    page.locator("#heat").scroll_into_view_if_needed()
    squares = page.locator("#heat .chart .nsewdrag")
    expect(squares).to_be_visible(timeout=60_000)
    box = squares.bounding_box()
    squares.click(position={"x": box["width"] / 6, "y": box["height"] / 8})  # the first of 3 by 4
    expect(page.locator("#texts-view")).to_be_visible()
    benchmark = field(page, "Benchmark").input_value()
    source = field(page, "Source").input_value()
    assert source == "parlor"
    place = f"(benchmark, source) = ('{benchmark}', '{source}')"
    query = f"SELECT count(*) FROM matched_texts WHERE {place}"
    assert found(page) == ask(report, query)[0][0] > 0


def test_an_item_in_a_table_opens_its_texts(at, report):
    page = at("#overview")
    link = page.locator("#items tbody a").first
    item = link.inner_text()
    link.click()
    expect(rows(page)).to_have_count(1)
    assert names(page) == [item]
    page.locator("#item-chip").click()
    assert found(page) > 1


# Matched texts ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("label", "value", "condition"),
    [
        ("Show", "leak", "is_contaminated"),
        ("Show", "no-answer", "is_no_answer"),
        ("Show", "near", "NOT is_contaminated AND NOT is_no_answer"),
        ("Benchmark", "ledger_math", "benchmark = 'ledger_math'"),
        ("Split", "train", "split = 'train'"),
        ("Source", "web", "source = 'web'"),
        ("Detector", "ratcliff", "detectors LIKE '%ratcliff%'"),
        ("Verdict", "none yet", "true"),
        ("Verdict", "leak", "false"),
    ],
)
def test_a_filter_leaves_what_it_says(at, report, label, value, condition):
    page = at("#texts")
    field(page, label).select_option(value)
    assert found(page) == ask(report, f"SELECT count(*) FROM matched_texts WHERE {condition}")[0][0]


def test_filters_join_and_stand_in_the_address(at, report):
    page = at("#texts")
    field(page, "Benchmark").select_option("strait_mt")
    field(page, "Minimum score").fill("0.8")
    condition = "benchmark = 'strait_mt' AND score >= 0.8"
    n = ask(report, f"SELECT count(*) FROM matched_texts WHERE {condition}")[0][0]
    assert found(page) == n
    page.reload()
    assert found(page) == n
    page.get_by_role("button", name="Clear").click()
    assert found(page) == ask(report, "SELECT count(*) FROM matched_texts")[0][0]


@pytest.mark.parametrize(
    ("sort", "by"),
    [
        ("", BEST_FIRST),
        ("score", "score DESC"),
        ("documents", "n_documents DESC"),
        (
            "doubt",
            "least(abs(score - 0.8), if(detectors LIKE '%ratcliff%', abs(score - 0.5), 1))",
        ),
        ("benchmark", "benchmark, split, instance_index"),
    ],
)
def test_texts_are_sorted_as_they_are_asked_for(at, report, sort, by):
    page = at("#texts")
    field(page, "Sort by").select_option(sort)
    page.wait_for_timeout(100)
    query = "SELECT benchmark || ' · ' || split || ' · ' || instance_index FROM matched_texts"
    best = ask(report, f"{query} ORDER BY {by}, {BEST_FIRST} LIMIT 10")
    assert names(page)[:10] == [name for (name,) in best]


def test_search_finds_ids_and_words_anywhere_in_both_texts(at, report):
    page = at("#texts")
    matched, answer, text = ask(
        report, "SELECT text_id, answer, text FROM matched_texts WHERE len(answer_marks) > 0"
    )[0]
    for words, condition in (
        (matched, "text_id = $words"),
        (
            answer.upper(),
            "lower(concat(question, '|', answer, '|', text)) LIKE '%' || lower($words) || '%'",
        ),
        (
            text[:25],
            "lower(concat(question, '|', answer, '|', text)) LIKE '%' || lower($words) || '%'",
        ),
        ("no such words", "false AND $words = ''"),
    ):
        page.keyboard.press("/")
        page.keyboard.type(words)
        with duckdb.connect(str(report), read_only=True) as connection:
            query = f"SELECT count(*) FROM matched_texts WHERE {condition}"
            n = connection.execute(query, {"words": words}).fetchone()[0]
        expect(page.locator("#n-found")).to_have_text(re.compile(rf"^{n} of "))
        page.keyboard.press("Escape")
    expect(page.get_by_text("No text matches.")).to_be_visible()


def test_a_text_is_opened_and_left_by_keys(at, report):
    page = at("#texts")
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("k")
    expect(rows(page).nth(1)).to_have_attribute("aria-selected", "true")
    matched, question = ask(
        report, f"SELECT text_id, question FROM matched_texts ORDER BY {BEST_FIRST}"
    )[1]
    detail = page.get_by_role("article", name="The matched text")
    expect(detail).to_have_attribute("data-text", matched)
    assert f"text={matched}" in page.url
    page.keyboard.press("Enter")
    expect(detail).to_be_focused()
    training = page.get_by_role("region", name="Training document")
    expect(training.locator("mark.of-question")).to_have_text(question)
    page.keyboard.press("Escape")
    expect(page.get_by_role("listbox")).to_be_focused()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keyboard shortcuts")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog", name="Keyboard shortcuts")).to_be_hidden()


def test_a_link_opens_the_text_that_it_names(at, report):
    matched = ask(report, "SELECT text_id FROM matched_texts ORDER BY text_id")[5][0]
    page = at(f"#texts?text={matched}")
    expect(page.locator("#detail")).to_have_attribute("data-text", matched)
    words = ask(report, f"SELECT text FROM matched_texts WHERE text_id = '{matched}'")[0][0][3:20]
    page = at(f"#texts?q={words}&text={matched}")
    expect(page.locator("#detail")).to_have_attribute("data-text", matched)


def test_marks_stand_on_the_original_characters_beyond_the_basic_plane(show, tmp_path):
    text = "🧮🧮 é\r\nWhat is 𝟚 + 𝟚? It is 𝟜. — the end"
    question, answer = "What is 𝟚 + 𝟚?", "It is 𝟜."
    marks = [
        {"start": text.index(part), "stop": text.index(part) + len(part), "part": name}
        for name, part in (("question", question), ("answer", answer), ("passage", "+"))
    ]
    matched = {
        "text_id": "p",
        "detectors": "decon",
        "score": 0.9,
        "is_contaminated": True,
        "text": text,
    }
    matched |= {"question": question, "answer": answer, "text_marks": marks}
    page = show(
        write_report(tmp_path / "r.duckdb", runs=[RUN], matched_texts=[matched]), "#texts?text=p"
    )
    training = page.get_by_role("region", name="Training document")
    assert training.locator("mark.of-question").all_inner_texts() == ["What is 𝟚 ", "+", " 𝟚?"]
    assert training.locator("mark.of-passage").all_inner_texts() == ["+"]
    assert training.locator("mark.of-answer").all_inner_texts() == [answer]
    lines = training.locator("mark").evaluate_all(
        "marks => marks.map(mark => getComputedStyle(mark).textDecorationStyle)"
    )
    assert set(lines) == {"solid", "double", "dotted"}  # told apart without colour


def test_a_text_lists_all_of_its_documents_and_any_of_their_ids_finds_it(show, tmp_path):
    """One is shown; the others have ids of their own."""
    matched = {
        "text_id": "p",
        "detectors": "decon",
        "score": 0.9,
        "is_contaminated": True,
        "n_documents": 55,
    }
    matched |= {"question": "asked", "text": "asked and told", "doc_id": "d-0", "source": "web"}
    other = {**matched, "text_id": "q", "n_documents": 1, "doc_id": "x"}
    match = {"text_id": "p", "source": "web", "shard_name": "s.jsonl", "detector": "decon"}
    match |= {"benchmark": "quiz", "score": 0.9, "is_contaminated": True}
    matches = [{**match, "row": row, "doc_id": f"d-{row}-end"} for row in range(55)]
    report = write_report(
        tmp_path / "r.duckdb", runs=[RUN], matched_texts=[matched, other], matches=matches
    )
    page = show(report, "#texts?text=p")
    places = page.locator("#detail .places")
    expect(places.locator("li")).to_have_count(55)
    expect(places.locator("li").nth(54)).to_have_text("web · s.jsonl · row 54 d-54-end")
    page.keyboard.press("/")
    page.keyboard.type("D-37-end")
    expect(page.locator("#n-found")).to_have_text(re.compile(r"^1 of 2 "))


def test_of_very_many_documents_the_page_says_where_the_others_are(show, tmp_path):
    matched = {"text_id": "p", "detectors": "decon", "score": 0.9, "is_contaminated": True}
    match = {"text_id": "p", "source": "web", "shard_name": "s.jsonl", "detector": "decon"}
    report = write_report(
        tmp_path / "r.duckdb",
        runs=[RUN],
        matched_texts=[{**matched, "n_documents": 3_000}],
        matches=[{**match, "row": row, "doc_id": f"d-{row}"} for row in range(3_000)],
    )
    page = show(report, "#texts?text=p")
    places = page.locator("#detail .places")
    expect(places.locator("li")).to_have_count(200)
    expect(places).to_contain_text("This page lists 200 of them; 2,800 more are in the report")
    query = re.search(r'--query "(.*)"', places.locator("p code").text_content())[1]
    assert len(ask(report, query)) == 3_000


def test_a_question_without_its_answer_is_neither_a_leak_nor_a_near_miss(show, report):
    (matched,) = ask(report, "SELECT min(text_id) FROM matched_texts WHERE is_no_answer")[0]
    page = show(report, f"#texts?text={matched}&outcome=no-answer")
    detail = page.locator("#detail")
    expect(detail).to_contain_text("no answer")
    expect(detail).to_contain_text("neither a leak nor clean")
    expect(rows(page).first.locator(".kind")).to_have_text("no answer")
    page.goto(page.url.split("#")[0])
    n = ask(report, "SELECT count(*) FROM documents WHERE is_no_answer")[0][0]
    expect(page.locator("#classes tbody tr").last.locator("td").nth(2)).to_have_text(f"{n:,}")


def wait_until(page: Page, condition: str) -> None:
    """Waits for a condition in JavaScript.

    Playwright's own `wait_for_function` calls `eval` in the page, which the page forbids.
    """
    for _ in range(600):
        if page.evaluate(condition):
            return
        page.wait_for_timeout(100)
    pytest.fail(f"never true: {condition}")


# A sheet of A4 with a margin of 1 cm.
SHEET = {"width": 794 - 76, "height": 1123 - 76}


def test_on_paper_no_chart_is_wider_or_taller_than_the_sheet(show, tmp_path):
    sources = [f"a source with a long name, number {n}" for n in range(20)]
    benchmarks = [f"benchmark_with_a_name_of_its_own_{n}" for n in range(40)]
    report = write_world(
        tmp_path / "r.duckdb", sources=sources, benchmarks=benchmarks, n_items=8, share=0.6
    )
    page = show(report)
    # The library for charts is loaded when the page is idle, before any figure is in reader.
    wait_until(page, "Boolean(window.Plotly)")
    page.set_viewport_size(SHEET)
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    boxes = page.evaluate(
        "[...document.querySelectorAll('.chart')].map(chart => {"
        " const drawn = chart.querySelector('svg.main-svg').getBoundingClientRect();"
        " return [drawn.left, drawn.right, drawn.height]; })"
    )
    assert len(boxes) >= 8
    for left, right, height in boxes:
        assert left >= 0
        assert right <= SHEET["width"]
        assert 0 < height <= SHEET["height"]
    page.emulate_media(media="screen")
    page.set_viewport_size({"width": 1280, "height": 800})
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    first = "document.querySelector('.chart svg.main-svg')"
    wait_until(page, f"{first}.getBoundingClientRect().width > {SHEET['width']}")


# Verdicts -----------------------------------------------------------------------------------------


def exported(page: Page) -> Path:
    """The file that a person saves."""
    page.get_by_role("button", name="Verdicts").click()
    page.get_by_label("Your name").fill("Ada L.")
    with page.expect_download() as download:
        page.get_by_role("button", name="Save verdicts.jsonl").click()
    assert download.value.suggested_filename == "verdicts.jsonl"
    page.get_by_role("button", name="Close").click()
    return Path(download.value.path())


def test_a_verdict_is_kept_and_comes_out_as_a_line_that_can_be_imported(show, report):
    page = show(report, "#texts")
    expect(page.locator("#detail .verdicts")).to_be_visible()
    for key in ("j", "t", "n"):
        page.keyboard.press(key)
    page.keyboard.type("a form\u2028letter")
    page.keyboard.press("Enter")
    page.keyboard.press("j")
    page.keyboard.press("l")
    expect(rows(page).nth(0).locator(".verdict")).to_have_text("template")
    page.reload()
    expect(rows(page).nth(0).locator(".verdict")).to_have_text("template")
    expect(rows(page).nth(1).locator(".verdict")).to_have_text("leak")
    expect(page.get_by_role("button", name="l leak")).to_have_attribute("aria-pressed", "true")
    field(page, "Verdict").select_option("any")
    assert found(page) == 2
    names = "text_id, fingerprint, benchmark, split, instance_index, shard_name, row"
    query = f"SELECT {names} FROM matched_texts ORDER BY {BEST_FIRST} LIMIT 2"
    keys = ("pair", "fingerprint", "benchmark", "split", "instance_index", "shard", "row")
    lines = read_lines(exported(page))
    assert [tuple(line[key] for key in keys) for line in lines] == ask(report, query)
    assert [(line["verdict"], line["note"]) for line in lines] == [
        ("template", "a form\u2028letter"),
        ("leak", ""),
    ]
    assert {line["by"] for line in lines} == {"Ada L."}
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT[\d:.]+Z", line["at"]) for line in lines)
    assert {*lines[0]} == {*keys, "verdict", "note", "by", "at"}


def test_after_a_verdict_on_the_first_text_the_next_one_is_the_second(show, report):
    page = show(report, "#texts")
    expect(page.locator("#detail .verdicts")).to_be_visible()
    for key in ("l", "j", "t"):
        page.keyboard.press(key)
    for number, verdict in enumerate(("leak", "template")):
        expect(rows(page).nth(number).locator(".verdict")).to_have_text(verdict)


def test_the_same_verdict_again_takes_it_back(show, report):
    page = show(report, "#texts")
    for key in ("j", "u", "u"):
        page.keyboard.press(key)
    expect(rows(page).nth(0).locator(".verdict")).to_have_count(0)
    page.get_by_role("button", name="Verdicts").click()
    expect(page.get_by_role("button", name="Save verdicts.jsonl")).to_be_disabled()


def test_verdicts_of_the_report_are_shown_and_can_be_taken_back(show, tmp_path):
    key = "a1" * 8
    matched = {"text_id": key, "fingerprint": "f1" * 8, "detectors": "decon", "score": 0.9}
    said = {"text_id": key, "verdict": "common source", "note": "a law", "is_found": True}
    said |= {"said_by": "Bo", "said_at": "2026-01-02"}
    report = write_report(
        tmp_path / "r.duckdb", runs=[RUN], matched_texts=[matched], verdicts=[said]
    )
    page = show(report, f"#texts?text={key}")
    expect(page.get_by_text("in the report: common source, Bo, 2026-01-02")).to_be_visible()
    expect(page.get_by_label("Note", exact=True)).to_have_value("a law")
    page.get_by_role("button", name="common source").click()  # the dialog is dismissed
    page.get_by_role("button", name="Verdicts").click()
    expect(page.get_by_role("button", name="Save verdicts.jsonl")).to_be_disabled()
    page.get_by_role("button", name="Close").click()
    page.once("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="common source").click()
    assert [(line["verdict"], line["note"]) for line in read_lines(exported(page))] == [
        ("none", "a law")
    ]


# Whatever stands in it ----------------------------------------------------------------------------


def test_hostile_text_is_shown_and_does_nothing(show, tmp_path):
    bad = HOSTILE + LINK + HIDDEN
    matched = {
        "text_id": bad,
        "fingerprint": bad,
        "benchmark": bad,
        "config": bad,
        "split": bad,
        "detectors": bad,
        "score": 0.9,
        "is_contaminated": True,
        "source": bad,
        "n_documents": 3,
        "shard_name": bad,
        "doc_id": bad,
        "question": bad,
        "answer": bad,
        "passage": bad,
        "text": bad,
        "text_part": bad,
        "verdict": bad,
        "text_marks": [{"start": 3, "stop": len(bad) + 50, "part": "question"}],
        "question_marks": [{"start": 0, "stop": 12, "part": "answer"}],
    }
    said = [{"text_id": bad, "verdict": bad, "note": bad, "said_by": bad, "said_at": bad}]
    report = write_world(
        tmp_path / "r.duckdb",
        benchmarks=[bad, f"{bad}2"],
        sources=[bad],
        detectors=[bad, "decon"],
        run={"made_by": bad, "state": bad, "thresholds": json.dumps({bad: 0.7, "decon": 0.8})},
        matched_texts=[matched],
        verdicts=said,
    )
    page = show(report)
    figures = page.locator(".chart")
    for number in range(figures.count()):
        figures.nth(number).scroll_into_view_if_needed()
        expect(figures.nth(number).locator("svg.main-svg").first).to_be_visible(timeout=60_000)
    for summary in page.locator("summary").all():
        summary.click()
    page.get_by_role("link", name="Matched texts").click()
    rows(page).first.click()
    expect(page.locator("#detail .sides .of-question").first).to_contain_text("script>")
    expect(page.locator("#detail .hidden-character", has_text="U+202E").first).to_be_visible()
    expect(page.locator("#detail .hidden-character", has_text="U+0000").first).to_be_visible()
    page.keyboard.press("l")
    line = json.loads(exported(page).read_text())
    assert {line[key] for key in ("pair", "benchmark", "shard", "note")} == {bad}
    assert page.evaluate("window.hacked") is None
    assert page.locator("a[href^=javascript], img, #sections script, svg a").count() == 0


def test_without_snippets_the_page_says_where_instead_of_what(show, tmp_path):
    page = show(write_world(tmp_path / "r.duckdb", run={"snippets": False}))
    expect(page.locator("#notes")).to_contain_text("Snippets are off")
    page.get_by_role("link", name="Matched texts").click()
    expect(rows(page).first).to_be_visible()
    page.keyboard.press("j")
    training = page.get_by_role("region", name="Training document")
    expect(training).to_contain_text("this file contains no training data")
    assert training.locator("mark").count() == 0


def test_where_nothing_was_found_the_page_says_so(show, tmp_path):
    page = show(write_world(tmp_path / "r.duckdb", share=0.0))
    expect(page.locator("#flow")).to_have_text(
        "Items by outcome: No item leaked, and none needs review."
    )
    expect(page.locator("#scores")).to_contain_text("Nothing was found")
    page.get_by_role("link", name="Matched texts").click()
    expect(page.get_by_text("Nothing was found.")).to_be_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_theme_is_the_readers_and_can_be_switched(show, report, scheme):
    page = show(report, "#rates", color_scheme=scheme)
    behind = "getComputedStyle(document.body).backgroundColor"
    dot = page.locator("#rates .chart path.point").first
    expect(dot).to_be_visible(timeout=60_000)
    before, colour = page.evaluate(behind), dot.evaluate("node => node.style.fill")
    page.get_by_role("button", name="Switch between light and dark").click()
    expect(dot).not_to_have_css("fill", colour)
    switched = page.evaluate(behind)
    assert switched != before
    page.reload()
    assert page.evaluate(behind) == switched


def test_on_a_phone_nothing_stands_over_the_edge(show, tmp_path):
    names = [f"a_benchmark_with_quite_a_long_name_{n}" for n in range(40)]
    report = write_world(tmp_path / "r.duckdb", benchmarks=names, n_items=8)
    page = show(report, viewport={"width": 360, "height": 740}, has_touch=True)
    too_wide = "document.documentElement.scrollWidth > innerWidth"
    figures = page.locator(".chart")
    for number in range(figures.count()):
        figures.nth(number).scroll_into_view_if_needed()
        expect(figures.nth(number).locator("svg.main-svg").first).to_be_visible(timeout=60_000)
    assert not page.evaluate(too_wide)
    expect(page.locator("#classes-note")).to_contain_text("Needs review")
    notes = "[...document.querySelectorAll('#overview-view :is(p, li, dd, h2)')]"
    over = "node => node.getBoundingClientRect().right > innerWidth"
    assert page.evaluate(f"{notes}.filter({over}).map(node => node.textContent)") == []
    axes = "[...document.querySelectorAll('.chart .xtitle')]"
    assert page.evaluate(f"{axes}.filter({over}).map(node => node.textContent)") == []
    page.get_by_role("link", name="Matched texts").click()
    expect(field(page, "Benchmark")).to_be_hidden()
    page.get_by_role("button", name="Filters").click()
    expect(field(page, "Benchmark")).to_be_visible()
    assert not page.evaluate(too_wide)
    items = "[...document.querySelectorAll('#list .item')]"
    right = "getBoundingClientRect().right"
    cut = f"node => node.lastChild.{right} > node.{right}"
    assert page.evaluate(f"{items}.length")
    assert page.evaluate(f"{items}.filter({cut}).map(node => node.textContent)") == []
    rows(page).first.click()
    expect(page.get_by_role("button", name="Back to the list")).to_be_visible()
    assert not page.evaluate(too_wide)
    page.get_by_role("button", name="Back to the list").click()
    expect(page.locator("#detail")).to_be_hidden()


def test_paper_is_light_and_has_every_figure_and_no_buttons(show, report):
    page = show(report, color_scheme="dark")
    behind = "getComputedStyle(document.body).backgroundColor"
    dark = page.evaluate(behind)
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    for figure in page.locator(".chart").all():
        expect(figure.locator("svg.main-svg").first).to_be_attached(timeout=60_000)
    assert page.evaluate(behind) == "rgb(255, 255, 255)"
    assert page.get_by_role("button").count() == 0
    page.emulate_media(media="screen")
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.evaluate(behind) == dark


def test_the_open_text_can_be_printed(show, report):
    page = show(report, "#texts", viewport={"width": 720, "height": 1000})
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.emulate_media(media="print")
    expect(page.get_by_role("region", name="Training document")).to_be_visible()
    expect(page.get_by_role("listbox")).to_be_hidden()


# Fifty thousand -----------------------------------------------------------------------------------

MOST_HEAP_MIB = 400


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """50,000 texts of a kilobyte each and 100,000 documents, and one thousand more."""
    path = write_report(tmp_path_factory.mktemp("large") / "report.duckdb", runs=[RUN])
    word = "chr(97 + (hash(n * 97 + k) % 26)::INT) || 'o' || k % 7"
    with duckdb.connect(str(path)) as connection:
        connection.execute(f"""
            INSERT INTO matched_texts BY NAME
            SELECT lower(hex(hash(n))) AS text_id, 'f' || n AS fingerprint,
                   'bench ' || n % 23 AS benchmark, 'test' AS split, n AS instance_index,
                   'source ' || n % 9 AS source, 'shard ' || n % 400 AS shard_name, n AS row,
                   'doc ' || n AS doc_id, 'decon' AS detectors,
                   0.6 + (hash(n) % 4000) / 10000 AS score, score >= 0.8 AS is_by_score,
                   is_by_score AS is_contaminated, 1 + hash(n) % 40 AS n_documents,
                   1 AS n_matches, score AS question_overlap,
                   array_to_string([{word} for k in range(90)], ' ') AS question,
                   'mark' || n || ' ' || question || ' ' || question AS text,
                   [{{'start': 5, 'stop': 90, 'part': 'question'}}] AS text_marks,
                   [{{'start': 0, 'stop': 85, 'part': 'question'}}] AS question_marks
            FROM range(51000) t(n)
        """)
        connection.execute("""
            INSERT INTO documents BY NAME
            SELECT 'source ' || n % 9 AS source, 'shard ' || n % 400 AS shard_name, n AS row,
                   'doc ' || n AS doc_id, 1 AS n_leaked_items, 0.6 + n % 40 / 100 AS best_score,
                   n % 2 = 0 AS is_contaminated
            FROM range(101000) t(n)
        """)
        connection.execute("""
            INSERT INTO matches BY NAME
            SELECT lower(hex(hash((n + k) % 51000))) AS text_id, 'source ' || n % 9 AS source,
                   'shard ' || n % 400 AS shard_name, n AS row, 'bench ' || n % 23 AS benchmark,
                   'decon' AS detector, 0.9 AS score
            FROM range(101000) t(n), range(2) s(k)
        """)
    return path


def seconds(act: Callable[[], object]) -> float:
    started = time.perf_counter()
    act()
    return time.perf_counter() - started


def test_of_fifty_thousand_texts_a_bounded_number_of_rows_is_drawn(show, large):
    """What takes time with many texts is drawing rows: their number does not grow with the texts.

    Seconds are printed, not asserted: they say how busy the machine is.
    """
    page = show(large)
    opened = page.evaluate("performance.now()") / 1000
    expect(page.locator("#notes")).to_contain_text("This page has 50,000 of 51,000 matched texts")
    page.get_by_role("link", name="Matched texts").click()
    assert found(page) == 50_000
    assert rows(page).count() < 60

    taken = {}
    for label, value in (
        *[("Benchmark", "bench 3"), ("Show", "near"), ("Show", ""), ("Benchmark", "")],
        *[("Sort by", sort) for sort in ("score", "documents", "doubt", "benchmark")],
    ):
        choose = field(page, label)
        script = """(node, value) => {
            const started = performance.now();
            node.value = value;
            node.dispatchEvent(new Event('input'));
            document.body.getBoundingClientRect();
            return performance.now() - started;
        }"""
        taken[f"{label} {value}"] = choose.evaluate(script, value) / 1000
        assert rows(page).count() < 60

    scroll = """node => new Promise(done => {
        const times = [];
        let last = performance.now(), n = 0;
        const step = () => {
            const now = performance.now();
            times.push(now - last);
            last = now;
            node.scrollTop = node.scrollHeight * Math.random();
            if (++n < 40) requestAnimationFrame(step); else done(Math.max(...times.slice(1)));
        };
        requestAnimationFrame(step);
    })"""
    scrolling = page.get_by_role("listbox").evaluate(scroll) / 1000
    assert rows(page).count() < 60

    number = ask(
        large, "SELECT instance_index FROM matched_texts WHERE is_contaminated ORDER BY text_id"
    )[0][0]
    page.keyboard.press("/")
    page.keyboard.type(f"mark{number} ")
    searching = seconds(
        lambda: expect(page.locator("#n-found")).to_have_text(re.compile("^1 of "), timeout=60_000)
    )
    page.keyboard.press("Enter")
    page.keyboard.press("j")
    expect(page.get_by_role("region", name="Training document")).to_contain_text(f"mark{number} ")

    page.keyboard.press("d")
    told = page.locator("#d-found")
    expect(told).to_have_text(re.compile("^100,000 of 100,000 documents; the report has 101,000"))
    for key in ("j", "ArrowRight", "End", "ArrowRight"):
        page.keyboard.press(key)
    expect(page.locator("#lines [aria-level='2']").last).to_be_visible()
    assert 10 < page.locator("#lines .line").count() < 60
    field(page, "Sort by").select_option("place")
    assert 10 < page.locator("#lines .line").count() < 60
    heap = page.evaluate("performance.memory.usedJSHeapSize") / 2**20
    assert heap < MOST_HEAP_MIB
    print(
        f"open {opened:.2f} s, search {searching:.2f} s, frame {scrolling:.2f} s, "
        f"heap {heap:.0f} MiB, {taken}"
    )


# From a scan to a verdict and back ----------------------------------------------------------------


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The configuration of the sample world, after a run."""
    return copy_finished_world(tmp_path_factory.mktemp("sample"))


def command(name: str, config: Path, *more: str) -> str:
    """What a command says, in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", _MAIN, *name.split(), *more, "--config", str(config)],
        env={**os.environ, "DAGSTER_HOME": str(dagster_home(config))},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


_MAIN = "import sys; from decon_assets.cli.main import main; sys.exit(main())"


def dagster_home(config: Path) -> Path:
    return ensure_home(config.parent.parent / "home")


def test_the_table_of_the_study_is_no_wider_than_the_page(browser, sample):
    page = browser.new_page(viewport={"width": 1300, "height": 900})
    page.goto(Store(load_config(sample).store).report_page.as_uri())
    table = page.locator("#study .scrolls")
    expect(table).to_have_count(1)
    assert not table.evaluate("one => one.scrollWidth > one.clientWidth")
    page.close()


def test_a_verdict_of_the_page_holds_in_the_next_report_and_mixture(show, sample, keep):
    store = Store(load_config(sample).store)
    page = show(store.report)
    expect(page.locator("#summary")).to_contain_text("48 of 251 items leaked")
    expect(page.locator("#ranked tbody tr")).to_have_count(4)
    keep(page, "report-summary.png")
    page.locator("#heat").scroll_into_view_if_needed()
    expect(page.locator("#heat svg.main-svg").first).to_be_visible(timeout=60_000)
    keep(page, "report-sources.png")
    page = show(store.report, "#texts")
    field(page, "Benchmark").select_option("ledger_math")
    field(page, "Show").select_option("leak")
    field(page, "Sort by").select_option("doubt")
    for key in ("j", "t"):
        page.keyboard.press(key)
    matched = page.locator("#detail").get_attribute("data-text")
    keep(page, "report-texts.png")
    line = read_lines(exported(page))[0]
    assert (line["pair"], line["verdict"]) == (matched, "template")
    before = ask(
        store.report, f"SELECT is_contaminated FROM matched_texts WHERE text_id = '{matched}'"
    )
    assert "1 new" in command("review import", sample, str(exported(page)))
    if not IS_LONG:  # the pictures are of the whole world
        keep_one_mixture(sample)
    command("run", sample)
    after = ask(
        store.report,
        f"SELECT is_contaminated, verdict FROM matched_texts WHERE text_id = '{matched}'",
    )
    assert (before, after) == ([(True,)], [(False, "template")])
    shard, row = line["shard"], line["row"]
    removed = f"SELECT count(*) FROM removed WHERE shard_name = '{shard}' AND row = {row}"
    assert ask(store.report, f"{removed} AND mixture = 'decontaminated'") == [(0,)]
    page = show(store.report, f"#texts?text={matched}", color_scheme="dark")
    expect(page.get_by_text("in the report: template, Ada L.")).to_be_visible()
    keep(page, "report-dark.png")


def test_what_was_said_outlives_the_report_it_was_said_of(show, tmp_path):
    key = "a1" * 8
    matched = {"text_id": key, "fingerprint": "f1" * 8, "detectors": "decon", "score": 0.9}
    page = show(write_report(tmp_path / "r.duckdb", runs=[RUN], matched_texts=[matched]), "#texts")
    expect(rows(page).first).to_be_visible()
    for pressed in ("j", "t"):
        page.keyboard.press(pressed)
    expect(page.locator("#n-verdicts")).to_have_text("1")
    said = {"text_id": key, "verdict": "template", "note": "", "is_found": True}
    for verdicts, n_to_save in (([], "1"), ([said], "0")):
        run = {**RUN, "state": f"another, with {n_to_save}"}
        made = write_report(
            tmp_path / "r.duckdb", runs=[run], matched_texts=[matched], verdicts=verdicts
        )
        write_page(made, tmp_path / "report.html")
        page.reload()
        expect(page.locator("body.is-ready")).to_be_attached(timeout=60_000)
        expect(rows(page).nth(0)).to_be_visible()
        expect(page.locator("#n-verdicts")).to_have_text(n_to_save)
