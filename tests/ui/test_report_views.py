"""Links to what a page shows, the table of documents, and CSV files of what is shown."""

import csv
import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from decon_core.report.html.build import write_page
from tests.core.report.report_worlds import RUN
from tests.core.report.reports import write_report
from tests.ui.report_pages import BEST_FIRST, ask, field, found, names, rows

pytestmark = pytest.mark.browser

MISSING = "This page does not have everything that the link refers to. Missing: "


def saved(page: Page, button: str) -> tuple[str, list[dict[str, str]]]:
    """The name of a CSV file and its rows, as another program reads them."""
    with page.expect_download() as download:
        page.locator(button).click()
    raw = Path(download.value.path()).read_bytes().decode()
    assert raw.count("\r\n") >= 1
    lines = csv.DictReader(raw.splitlines(keepends=True), strict=True)
    return download.value.suggested_filename, [*lines]


# Links --------------------------------------------------------------------------------------------


def test_a_link_holds_the_view_of_a_section_and_its_unfolded_tables(at):
    page = at("#overview")
    page.locator("#sweep").get_by_role("combobox").select_option("ledger_math")
    assert page.url.endswith("#sweep?of=ledger_math")
    page.locator("#heat summary").click()
    expect(page).to_have_url(re.compile(r"#heat\?open=cells$"))
    page.reload()
    expect(page.locator("#heat table").last).to_be_visible()
    at("#sweep?of=ledger_math")
    expect(page.locator("#sweep").get_by_role("combobox")).to_have_value("ledger_math")
    at("#sweep")  # the same section, as it is at first
    expect(page.locator("#sweep").get_by_role("combobox")).to_have_value("all benchmarks")
    expect(page.locator("#missing")).to_be_hidden()


@pytest.mark.parametrize(
    ("link", "missing"),
    [
        ("#nowhere", "section “nowhere”."),
        ("#sweep?of=gone&open=lost", "view “gone”; table “lost”."),
        ("#texts?benchmark=gone&colour=red", "setting “colour”; benchmark “gone”."),
        ("#texts?least=high&sort=age", "minimum score “high”; sort by “age”."),
        ("#texts?text=ffff", "text “ffff”."),
        ("#documents?outcome=gone", "show “gone”."),
        ("#documents?document=web/s-9.jsonl/1", "document “web/s-9.jsonl/1”."),
        ("#documents?document=web/s-0.jsonl/0&of=other", "document “web/s-0.jsonl/0”."),
    ],
)
def test_what_a_link_names_and_is_not_there_is_said(at, link, missing):
    page = at(link)
    expect(page.locator("#missing")).to_have_text(MISSING + missing)
    at("#texts")
    expect(page.locator("#missing")).to_be_hidden()


def test_a_filter_by_what_is_gone_shows_nothing_instead_of_everything(at):
    page = at("#texts?source=gone")
    assert found(page) == 0
    expect(page.get_by_text("No text matches.")).to_be_visible()
    at("#documents?benchmark=gone")
    assert found(page, "#d-found") == 0
    assert page.url.endswith("#documents?benchmark=gone")  # good for a report that has it


def test_a_text_that_does_not_pass_the_filter_of_its_link_is_told_from_one_that_is_gone(at, report):
    matched, source = ask(
        report, "SELECT text_id, source FROM matched_texts WHERE source <> 'web' LIMIT 1"
    )[0]
    page = at(f"#texts?source=web&text={matched}")
    expect(page.locator("#missing")).to_contain_text("A filter in this link hides")
    at(f"#texts?source={source}&text={matched}")
    expect(page.locator("#missing")).to_be_hidden()
    expect(page.locator("#detail")).to_have_attribute("data-text", matched)


# Documents ----------------------------------------------------------------------------------------

HOSTILE = '=1+1,"quoted"\r\nsecond <b>line</b> ; \u2028'


def three_documents(path: Path, *, shard: str = "f1", earlier: bool = False) -> Path:
    """Two texts in one document, one of them in another, too; and a document with a near miss."""
    matched_texts = [
        {"text_id": "aa", "benchmark": "quiz", "instance_index": 1, "score": 0.9, "row": 1}
        | {"is_contaminated": True, "is_by_score": True, "n_documents": 2, "answer": HOSTILE},
        {"text_id": "bb", "benchmark": "exam", "instance_index": 2, "score": 0.85, "row": 1}
        | {"is_contaminated": True, "is_by_score": True, "n_documents": 1, "answer": ""},
        {"text_id": "cc", "benchmark": "quiz", "instance_index": 3, "score": 0.5, "row": 3}
        | {"is_contaminated": False, "n_documents": 1},
    ]
    if earlier:
        matched_texts.append(
            {**matched_texts[0], "text_id": "00", "instance_index": 9, "score": 1.0, "row": 0}
        )
    common = {"detectors": "decon", "split": "test", "source": "web", "shard_name": "s.jsonl"}
    places = [("aa", 1, "d-1"), ("aa", 2, None), ("bb", 1, "d-1"), ("cc", 3, HOSTILE)]
    by_id = {matched["text_id"]: matched for matched in matched_texts}
    shared = ("benchmark", "instance_index", "score", "is_contaminated")
    matches = [
        {name: by_id[matched][name] for name in shared}
        | {"text_id": matched, "row": row, "doc_id": doc_id, "split": "test", "detector": "decon"}
        | {"source": "web", "shard_name": "s.jsonl", "pack": "p"}
        for matched, row, doc_id in [*places, *([("00", 0, "d-0")] if earlier else [])]
    ]
    return write_report(
        path,
        runs=[RUN],
        matched_texts=[{**common, **matched} for matched in matched_texts],
        matches=matches,
        shards=[{"source": "web", "pack": "p", "shard_name": "s.jsonl", "shard": shard}],
    )


def lines(page: Page) -> list[str]:
    expect(page.locator("#lines .line").first).to_be_visible()
    return page.locator("#lines .line .name").all_inner_texts()


def test_a_document_unfolds_to_all_of_its_texts_by_keys(show, tmp_path):
    page = show(three_documents(tmp_path / "r.duckdb"), "#documents")
    assert [line[1:] for line in lines(page)][:2] == ["d-1", "s.jsonl · row 2"]
    for key in ("ArrowDown", "ArrowRight"):
        page.keyboard.press(key)
    assert lines(page)[1:3] == ["quiz · test · 1", "exam · test · 2"]
    first = page.get_by_role("row", name=re.compile("d-1"))
    expect(first).to_have_attribute("aria-expanded", "true")
    assert page.url.endswith("#documents?document=web%2Fs.jsonl%2F1&of=f1")
    for key in ("j", "j", "Enter"):
        page.keyboard.press(key)
    expect(page.locator("#detail")).to_have_attribute("data-text", "bb")
    page.get_by_role("link", name="all matched texts of this document").click()
    expect(page.get_by_role("row", selected=True)).to_contain_text("d-1")
    page.keyboard.press("ArrowLeft")
    assert len(lines(page)) == 3
    field(page, "Benchmark").select_option("exam")
    assert found(page, "#d-found") == 1
    field(page, "Benchmark").select_option("")
    field(page, "Search").fill("row 2")
    assert found(page, "#d-found") == 0
    field(page, "Search").fill("D-1")
    assert found(page, "#d-found") == 1


def test_links_hold_in_a_report_with_more_data_and_never_open_another_document(show, tmp_path):
    page = show(three_documents(tmp_path / "r.duckdb"), "#texts?text=bb&sort=score")
    expect(page.locator("#detail")).to_have_attribute("data-text", "bb")
    before = names(page)
    three_documents(tmp_path / "r.duckdb", earlier=True)
    write_page(tmp_path / "r.duckdb", tmp_path / "report.html")
    page.reload()
    expect(page.locator("#detail")).to_have_attribute("data-text", "bb")
    assert names(page) == ["quiz · test · 9", *before]
    link = f"{page.url.split('#')[0]}#documents?document=web/s.jsonl/1&of=f1"
    page.goto(link)
    expect(page.get_by_role("row", selected=True)).to_contain_text("d-1")
    three_documents(tmp_path / "r.duckdb", shard="f2")
    write_page(tmp_path / "r.duckdb", tmp_path / "report.html")
    page.goto(link)
    page.reload()
    expect(page.locator("#missing")).to_have_text(f"{MISSING}document “web/s.jsonl/1”.")
    expect(page.locator("#lines .is-text")).to_have_count(0)


def test_of_texts_that_the_page_lacks_a_document_says_how_many(show, tmp_path, monkeypatch):
    monkeypatch.setattr("decon_core.report.html.matched_texts.MOST_TEXTS_OF_DOCUMENT", 1)
    report = three_documents(tmp_path / "r.duckdb")
    page = show(report, "#documents?document=web/s.jsonl/1")
    rest = page.locator("#lines .is-rest")
    expect(rest).to_contain_text("1 more matched text is in the report")
    query = re.search(r'--query "(.*)"', rest.inner_text())[1]
    assert len(ask(report, query)) == 2


# CSV ----------------------------------------------------------------------------------------------


def test_csv_has_the_texts_that_pass_the_filter_with_all_columns(at, report):
    page = at("#texts?benchmark=strait_mt&sort=score")
    name, got = saved(page, "#csv")
    assert name == "texts_benchmark=strait_mt_sort=score.csv"
    columns = "text_id, source, shard_name, row, doc_id, question, answer, text, question_overlap"
    query = f"SELECT {columns} FROM matched_texts WHERE benchmark = 'strait_mt'"
    expected = ask(report, f"{query} ORDER BY score DESC, {BEST_FIRST}")
    wanted = columns.split(", ")
    texts = [tuple("" if value is None else str(value) for value in row) for row in expected]
    assert [tuple(row[column] for column in wanted) for row in got] == [
        (*row[:-1], f"{float(row[-1]):g}") for row in texts
    ]
    stored = {
        column for (column,) in ask(report, "SELECT column_name FROM (DESCRIBE matched_texts)")
    }
    left_out = {f"{name}_marks" for name in ("question", "answer", "passage", "text")}
    # The first is `is_leak`, the others are of the report, not of the matched text.
    left_out |= {"is_contaminated", "evidence", "priority"}
    assert stored - {*got[0]} == left_out
    expect(page.locator("#said")).to_have_text(f"Saved {len(got)} rows as {name}")


def test_csv_keeps_every_character_and_the_verdict_of_this_browser(show, tmp_path):
    page = show(three_documents(tmp_path / "r.duckdb"), "#texts")
    expect(rows(page).first).to_be_visible()
    for key in ("j", "t", "e"):
        page.keyboard.press(key)
    _, matched_texts = saved(page, "#csv")
    assert [(row["text_id"], row["verdict"]) for row in matched_texts] == [
        *[("aa", "template"), ("bb", ""), ("cc", "")]
    ]
    assert matched_texts[0]["verdict_at"].startswith("20")
    assert [row["answer"] for row in matched_texts] == [f"'{HOSTILE}", "", ""]
    page.keyboard.press("d")
    expect(page.locator("#lines .line").first).to_be_visible()
    name, documents = saved(page, "#d-csv")
    assert name == "documents.csv"
    kept = ("source", "shard_name", "row", "n_texts", "best_score", "benchmarks", "text_ids")
    kept += ("doc_id",)
    assert [tuple(row[column] for column in kept) for row in documents] == [
        ("web", "s.jsonl", "1", "2", "0.9", "exam quiz", "aa bb", "d-1"),
        ("web", "s.jsonl", "2", "1", "0.9", "quiz", "aa", ""),
        ("web", "s.jsonl", "3", "1", "0.5", "quiz", "cc", f"'{HOSTILE}"),
    ]


def test_csv_of_a_table_has_its_numbers(at, report):
    name, got = saved(at("#heat"), "#heat .csv >> nth=0")
    assert name == "heat_table=sources.csv"
    query = "SELECT source, contaminated_share FROM by_source ORDER BY source"
    assert [(row["source"], float(row["share"])) for row in got] == ask(report, query)
