"""The page of a report: what is in the file, and what is not."""

import gzip
import html
import json
import operator
import re
from base64 import b64decode, b64encode
from hashlib import sha256
from itertools import pairwise, product
from pathlib import Path
from unicodedata import category

import duckdb
import plotly.graph_objects as go
import pytest
from hypothesis import given
from hypothesis import strategies as st
from plotly.offline import get_plotlyjs

from decon_core.decisions.not_read import NotRead
from decon_core.errors import MissingError, StaleError
from decon_core.report import html as page_package
from decon_core.report.blind_spots import QUESTIONS_LEFT_OUT
from decon_core.report.html import charts, labels, matched_texts, sections
from decon_core.report.html import gather as gathering
from decon_core.report.html.build import write_page
from decon_core.report.html.gather import MOST_PLACES_OF_TEXT, gather
from tests.core.report.pages import data_of, outside_of_data, packed_in
from tests.core.report.report_worlds import RUN, write_world
from tests.core.report.reports import write_report

STYLE = (Path(page_package.__file__).parent / "page.css").read_text()
HOSTILE = '</script><script>window.hacked=1</script><img src=x onerror="window.hacked=1">'
MARKER = "plum-velvet-marker"


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    return write_world(tmp_path_factory.mktemp("world") / "report.duckdb")


@pytest.fixture(scope="module")
def page(report):
    path = report.with_name("report.html")
    write_page(report, path)
    return path


def figures(overview):
    for section in overview["sections"]:
        for choice in section["choices"]:
            yield from choice["charts"]


# The file -----------------------------------------------------------------------------------------


def test_the_same_report_gives_the_same_bytes(report, page, tmp_path):
    write_page(report, tmp_path / "again.html")
    assert (tmp_path / "again.html").read_bytes() == page.read_bytes()


def test_a_page_runs_its_own_scripts_and_nothing_else(page):
    markup = outside_of_data(page)
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', markup)[1]
    allowed = dict(part.split(" ", 1) for part in policy.split("; "))
    scripts = [*re.findall(r"<script>(.*?)</script>", markup, re.DOTALL)]
    assert len(scripts) == 1
    scripts.append(packed_in(page)["charting"])
    hashes = [b64encode(sha256(script.encode()).digest()).decode() for script in scripts]
    assert allowed["script-src"].split() == [f"'sha256-{one}'" for one in hashes]
    assert allowed["default-src"] == "'none'"
    assert "connect-src" not in allowed


def test_a_page_names_no_other_file(page):
    markup = outside_of_data(page)
    assert re.findall(r'(?:src|srcset|action)=|@import|url\(|<link|href="(?!#)', markup) == []


def test_data_cannot_end_a_script(tmp_path):
    report = write_world(tmp_path / "r.duckdb", benchmarks=[HOSTILE], sources=[HOSTILE])
    write_page(report, tmp_path / "r.html")
    assert "window.hacked" not in (tmp_path / "r.html").read_text()
    assert (
        HOSTILE
        in json.loads(packed_in(tmp_path / "r.html")["columns"])["names"]["source"]["values"]
    )


def test_without_a_report_a_person_is_told_how_to_make_one(tmp_path):
    with pytest.raises(MissingError, match="decon-assets run"):
        write_page(tmp_path / "none.duckdb", tmp_path / "p.html")
    (tmp_path / "torn.duckdb").write_bytes(b"no database")
    with pytest.raises(StaleError, match="not a database"):
        write_page(tmp_path / "torn.duckdb", tmp_path / "p.html")
    assert not (tmp_path / "p.html").exists()


# Numbers ------------------------------------------------------------------------------------------


def test_classes_are_what_the_database_says(report, page):
    with duckdb.connect(str(report), read_only=True) as connection:
        expected = connection.execute("""
            SELECT count(*), count(*) FILTER (status = 'leaked'),
                   count(*) FILTER (status = 'no answer'), count(*) FILTER (status = 'review'),
                   count(*) FILTER (status = 'clean'),
                   count(*) FILTER (status = 'cannot be checked')
            FROM item_status
        """).fetchone()
        n_leaks = connection.execute("SELECT count(*) FROM documents WHERE is_contaminated")
        (n_leaks,) = n_leaks.fetchone()
    told = data_of(page, "overview")["classes"]
    assert told["heads"][1:] == [
        *("all", "leak", "no answer", "needs review", "clean", "cannot be checked")
    ]
    (_, *items), (_, n_documents, leaks, *others, _) = told["rows"]
    assert items == [f"{n:,}" for n in expected]
    assert sum(expected[1:]) == expected[0]
    assert leaks.startswith(f"{n_leaks:,} (")
    of_class = [int(n.replace(",", "")) for n in (n_documents, *others)]
    assert of_class[0] == n_leaks + sum(of_class[1:])


def test_an_item_that_cannot_be_checked_and_was_found_is_in_one_class(tmp_path):
    place = {"benchmark": "quiz", "split": "test"}
    items = [{**place, "instance_index": n, "is_indexed": n == 0} for n in range(3)]
    found = {**place, "instance_index": 1, "source": "web", "shard_name": "a", "row": 0}
    report = write_report(
        tmp_path / "r.duckdb",
        benchmarks=[{"benchmark": "quiz", "n_items": 3}],
        items=items,
        matches=[{**found, "score": 0.9, "is_no_answer": True}],
        shards=[{"source": "web", "shard_name": "a", "n_documents": 5}],
    )
    assert sections.classes(gather(report))["rows"] == [
        ["items", "3", "0", "1", "0", "1", "1"],
        ["documents", "5", "0", "1", "0", "4", "–"],
    ]


def test_what_could_not_be_read_or_seen_is_said_first(page):
    told = " ".join(data_of(page, "overview")["notes"])
    assert "could not be read: 1 not JSON." in told
    assert "10 items cannot be found by the chosen detectors" in told
    assert "27 documents are too short" in told
    assert "Snippets" not in told


def test_files_and_shards_without_text_are_named(tmp_path):
    rows = [
        NotRead("file", None, "book.txt", None, "no format of shards", 1, 1, 9),
        NotRead("no text", "web", "a", "input_ids", "no text", 3, 5, 90),
    ]
    report = write_report(
        tmp_path / "r.duckdb",
        benchmarks=[{"benchmark": "quiz", "n_items": 3}],
        shards=[{"source": "web", "shard_name": "a", "n_documents": 5, "n_bytes": 0}],
        not_read=[row._asdict() for row in rows],
    )
    write_page(report, tmp_path / "r.html")
    overview = data_of(tmp_path / "r.html", "overview")
    told = " ".join(overview["notes"])
    assert "1 file or folder was not read: book.txt (no format of shards)" in told
    assert "no text in 3 of 5 rows in 1 shard of source web (a), only input_ids" in told
    facts = gather(report)
    (table,) = sections.section("not-read", facts).tables
    assert [row[:5] for row in table.rows] == [
        ["no text", "web", "a", "input_ids", "no text"],
        ["file", None, "book.txt", None, "no format of shards"],
    ]


def test_items_that_no_rule_sees_are_counted_by_reason(page):
    sections = data_of(page, "overview")["sections"]
    scanned = next(section for section in sections if section["key"] == "scanned")
    rows = next(one["rows"] for one in scanned["tables"] if one["title"].startswith("Items that"))
    assert {reason for _, reason, _ in rows} == {"too short"}
    assert sum(n for _, _, n in rows) == 10


def test_items_that_no_rule_sees_are_named(report, page):
    sections = data_of(page, "overview")["sections"]
    scanned = next(section for section in sections if section["key"] == "scanned")
    (table,) = [one for one in scanned["tables"] if one["title"].startswith("Names of the items")]
    with duckdb.connect(str(report), read_only=True) as connection:
        rows = connection.execute(
            "SELECT benchmark || ' · ' || split || ' · ' || instance_index, why_not_indexed "
            "FROM items WHERE NOT is_indexed ORDER BY benchmark, split, instance_index"
        ).fetchall()
    assert [tuple(row[:2]) for row in table["rows"]] == rows
    assert table["title"].endswith("10 of 10 items")


def test_the_head_of_the_page_has_corpus_versions_date_and_program(page):
    overview = data_of(page, "overview")
    told = dict(overview["about"])
    assert told["Corpus"] == overview["corpus"] == "parlor, shelf, web"
    assert "almanac_rc (v-almanac_rc), harbor_mc (v-harbor_mc)" in told["Benchmarks"]
    assert told["Date"] == "2026-01-02 03:04:05 UTC"
    assert told["Made by"] == "decon-assets 0.1.0"
    assert told["Term weights"] == RUN["term_weights"]


def test_rates_stand_beside_counts_by_source(report, page):
    sections = data_of(page, "overview")["sections"]
    heat = next(section for section in sections if section["key"] == "heat")
    sources, cells = heat["tables"]
    with duckdb.connect(str(report), read_only=True) as connection:
        rows = connection.execute(
            "SELECT source, n_contaminated_documents, contaminated_share, low, high FROM by_source"
        ).fetchall()
    assert [(row[0], row[2], row[3], row[4], row[5]) for row in sources["rows"]] == rows
    assert not sources["is_folded"]
    for _, _, n_leaked, share, *_ in cells["rows"]:
        assert share == n_leaked / 40


def test_every_document_of_a_text_is_in_the_page(report, page):
    columns = data_of(page, "columns")
    chunk = data_of(page, "texts-0")
    many = [at for at, n in enumerate(columns["plain"]["n_documents"]) if n > 1]
    assert max(columns["plain"]["n_documents"]) == 12
    with duckdb.connect(str(report), read_only=True) as connection:
        for at in many:
            matched = columns["plain"]["text_id"][at]
            query = "SELECT source, shard_name, row, doc_id FROM text_documents WHERE text_id = ?"
            rows = connection.execute(f"{query} ORDER BY ALL", [matched]).fetchall()
            assert [tuple(place) for place in chunk[at][-1]] == rows
            assert len(rows) == columns["plain"]["n_documents"][at]


def test_of_a_text_in_very_many_documents_the_page_has_the_first(tmp_path):
    found = {"text_id": "p", "detectors": "decon", "score": 0.9, "is_contaminated": True}
    place = {"text_id": "p", "detector": "decon", "benchmark": "b", "source": "web"}
    place |= {"shard_name": "s.jsonl", "score": 0.9, "is_contaminated": True}
    n = MOST_PLACES_OF_TEXT + 50
    report = write_report(
        tmp_path / "r.duckdb",
        runs=[RUN],
        matched_texts=[{**found, "n_documents": n}],
        matches=[{**place, "row": row, "doc_id": f"d{row}"} for row in range(n)],
    )
    write_page(report, tmp_path / "r.html")
    ((*_, places),) = data_of(tmp_path / "r.html", "texts-0")
    assert [row for _, _, row, _ in places] == [*range(MOST_PLACES_OF_TEXT)]


def test_every_document_of_the_report_is_in_the_page_with_its_texts(report, page):
    documents, matched_texts = (
        data_of(page, "documents"),
        data_of(page, "columns")["plain"]["text_id"],
    )
    with duckdb.connect(str(report), read_only=True) as connection:
        rows = connection.execute("""
            SELECT d.source, d.shard_name, s.shard, d.row, d.doc_id, d.n_found_items, d.best_score,
                   list_sort(list(DISTINCT m.text_id)), list_sort(list(DISTINCT m.benchmark))
            FROM documents d
            JOIN matches m USING (source, shard_name, row)
            JOIN shards s USING (source, shard_name)
            GROUP BY ALL
        """).fetchall()
    names = {
        name: [column["values"][at] for at in column["at"]]
        for name, column in documents["names"].items()
    }
    starts = documents["starts"]
    got = zip(
        *(names[name] for name in ("source", "shard_name", "shard")),
        *(documents["plain"][name] for name in ("row", "doc_id", "n_found_items")),
        documents["best_score"],
        (
            sorted(matched_texts[number] for number in documents["texts"][start:stop])
            for start, stop in pairwise(starts)
        ),
        names["benchmarks"],
        strict=True,
    )
    assert sorted(got) == sorted(rows)
    assert documents["n"] == documents["n_all"] == len(rows)
    outcomes = [
        ("leak", "no-answer", "review", "near").index(outcome) for outcome in names["outcome"]
    ]
    assert outcomes == sorted(outcomes)  # leaks first


def test_of_documents_and_texts_beyond_its_limits_the_page_has_the_first_and_all_counts(
    tmp_path, monkeypatch
):
    match = {"detector": "decon", "benchmark": "b", "source": "web", "shard_name": "s.jsonl"}
    match |= {"score": 0.9, "is_contaminated": True}
    report = write_report(
        tmp_path / "r.duckdb",
        runs=[RUN],
        matched_texts=[
            {"text_id": f"p{n}", "score": 1 - n / 10, "is_contaminated": True} for n in range(4)
        ],
        matches=[
            {**match, "text_id": f"p{n}", "row": row, "instance_index": n}
            for row in range(3)
            for n in range(4 - row)
        ],
    )
    monkeypatch.setattr(gathering, "MOST_DOCUMENTS", 2)
    monkeypatch.setattr(matched_texts, "MOST_TEXTS_OF_DOCUMENT", 2)
    monkeypatch.setattr(matched_texts, "MOST_TEXTS_OF_DOCUMENTS", 3)
    write_page(report, tmp_path / "r.html")
    documents = data_of(tmp_path / "r.html", "documents")
    assert (documents["n"], documents["n_all"]) == (2, 3)
    assert documents["plain"]["n_texts"] == [4, 3]
    assert (documents["starts"], documents["texts"]) == ([0, 2, 3], [0, 1, 0])


def test_where_all_is_well_nothing_is_warned_of(tmp_path):
    report = write_report(tmp_path / "r.duckdb", runs=[RUN])
    write_page(report, tmp_path / "r.html")
    assert data_of(tmp_path / "r.html", "overview")["notes"] == []


def test_a_page_that_lacks_texts_says_so_and_has_the_first_by_priority(tmp_path):
    matched_texts = [
        {
            "text_id": f"{n:016x}",
            "score": n / 10,
            "is_contaminated": n > 4,
            "priority": (7 * n) % 10,
        }
        for n in range(10)
    ]
    report = write_report(tmp_path / "r.duckdb", runs=[RUN], matched_texts=matched_texts)
    write_page(report, tmp_path / "p.html", most_texts=4)
    columns = data_of(tmp_path / "p.html", "columns")
    kept = sorted(
        (one for one in matched_texts if one["priority"] < 4), key=lambda one: -one["score"]
    )
    assert columns["plain"]["text_id"] == [one["text_id"] for one in kept]
    assert (columns["n"], columns["n_all"]) == (4, 10)
    notes = " ".join(data_of(tmp_path / "p.html", "overview")["notes"])
    assert "This page has 4 of 10 matched texts" in notes


def test_rows_that_name_a_held_out_split_of_a_benchmark_are_noted_and_listed(tmp_path):
    row = {"source": "web", "shard_name": "a.jsonl", "field": "dataset", "value": "me/<quiz>"}
    row |= {"split": "test", "n_rows": 1234, "benchmark": "quiz", "is_held_out": True}
    others = {**row, "value": None, "split": None, "benchmark": None, "is_held_out": False}
    path = write_report(tmp_path / "r.duckdb", row_origins=[row, others])
    write_page(path, tmp_path / "p.html")
    overview = data_of(tmp_path / "p.html", "overview")
    said = "1,234 rows of a.jsonl say that they are me/<quiz>, split test (benchmark quiz). "
    assert any(note.startswith(said) for note in overview["notes"])
    (scanned,) = (each for each in overview["sections"] if each["key"] == "scanned")
    (table,) = (each for each in scanned["tables"] if each["name"] == "origins")
    assert [row[2:5] for row in table["rows"]] == [
        ["me/<quiz>", "test", "quiz"],
        ["other values", None, None],
    ]


def test_a_mixture_of_other_inputs_is_named_and_not_counted(tmp_path):
    mixtures = [
        {"mixture": "old", "is_current": False, "n_documents_in": 9, "n_documents_out": 5},
        {"mixture": "new", "is_current": True, "n_documents_in": 9, "n_documents_out": 8},
    ]
    report = write_world(tmp_path / "r.duckdb", mixtures=mixtures)
    write_page(report, tmp_path / "r.html")
    overview = data_of(tmp_path / "r.html", "overview")
    assert "mixture old" in " ".join(overview["notes"])
    section = next(one for one in overview["sections"] if one["key"] == "mixtures")
    assert [row[0] for row in section["tables"][0]["rows"]] == ["new"]


@given(st.lists(st.integers(0, 20), min_size=1, max_size=30))
def test_prop_the_sweep_counts_items_that_hold_at_least_so_far(holds_to):
    rows = [{"holds_to": at / 20, "n_items": 1} for at in holds_to]
    chart = charts.sweep(rows, 0.5)
    drawn = dict(zip(chart.data[0]["x"], chart.data[0]["y"], strict=True))
    expected = {at / 20: sum(other >= at for other in holds_to) for at in set(holds_to)}
    if min(holds_to) > 10:  # the curve begins at the threshold in use
        expected[0.5] = len(holds_to)
    assert drawn == expected


def test_doubt_is_the_way_to_the_nearest_threshold_of_the_rules_that_found_it(tmp_path):
    thresholds = json.dumps({"decon": 0.8, "ratcliff": 0.5, "ngram_any": 30})
    found = [("decon", 0.9, 0.1), ("decon, ratcliff", 0.6, 0.1), ("ngram_any", 0.75, 0.25)]
    found.append(("unheard of", 0.5, None))
    rows = [
        {"text_id": str(at), "detectors": own, "score": score}
        for at, (own, score, _) in enumerate(found)
    ]
    runs = [{**RUN, "thresholds": thresholds}]
    facts = gather(write_report(tmp_path / "r.duckdb", runs=runs, matched_texts=rows))
    by_text = dict(
        zip(facts.matched_texts["text_id"].to_pylist(), matched_texts.doubts(facts), strict=True)
    )
    for at, (_, _, expected) in enumerate(found):
        assert by_text[str(at)] == (None if expected is None else pytest.approx(expected))


def test_thresholds_of_single_benchmarks_are_on_the_page(tmp_path):
    """In the text, as the lines of their own charts, for each matched text and in its doubt."""
    names = ("gsm8k", "quiz")
    found = {"source": "web", "shard_name": "a", "detector": "decon", "split": "test"}
    report = write_report(
        tmp_path / "r.duckdb",
        runs=[{**RUN, "thresholds": '{"decon": 0.8}'}],
        benchmarks=[
            {"benchmark": "gsm8k", "n_items": 1, "thresholds": '{"decon": 0.62}'},
            {"benchmark": "quiz", "n_items": 1, "thresholds": '{"decon": 0.8}'},
        ],
        items=[{"benchmark": name, "split": "test", "instance_index": 0} for name in names],
        matches=[
            {**found, "benchmark": name, "instance_index": 0, "row": 1, "score": 0.7}
            for name in names
        ],
        matched_texts=[
            {"text_id": name, "benchmark": name, "detectors": "decon", "score": 0.7}
            for name in names
        ],
    )
    facts = gather(report)
    scope = sections.sentences("scope", facts)
    assert "Detector: decon (threshold 0.8; gsm8k: 0.62)." in scope
    (every, gsm8k, quiz) = sections.section("scores", facts).choices
    lines = [one.charts[0].layout["shapes"][0]["x0"] for one in (every, gsm8k, quiz)]
    assert lines == [0.8, 0.62, 0.8]
    assert matched_texts.columns(facts)["own_thresholds"] == {"decon": {"gsm8k": 0.62}}
    doubt = dict(
        zip(facts.matched_texts["text_id"].to_pylist(), matched_texts.doubts(facts), strict=True)
    )
    assert doubt == pytest.approx({"gsm8k": 0.08, "quiz": 0.1})


# Matched texts ------------------------------------------------------------------------------------


def test_every_text_finds_its_texts_and_marks_in_its_chunk(tmp_path):
    report = write_world(tmp_path / "r.duckdb", n_items=300, share=0.6)
    write_page(report, tmp_path / "r.html")
    columns = data_of(tmp_path / "r.html", "columns")
    size = columns["texts_per_chunk"]
    assert columns["n"] > 2 * size
    chunks = [
        json.loads(text)
        for name, text in packed_in(tmp_path / "r.html").items()
        if name.startswith("texts-")
    ]
    rows = {row["text_id"]: row for row in gather(report).matched_texts.to_pylist()}
    for number, matched in enumerate(columns["plain"]["text_id"]):
        question, answer, _, text, *marks = chunks[number // size][number % size]
        row = rows[matched]
        assert (question, answer, text) == (row["question"], row["answer"], row["text"])
        marked = [text[marks[3][at] : marks[3][at + 1]] for at in range(0, len(marks[3]), 3)]
        assert marked == [question, answer][: len(marked)]
        assert marked


def test_without_snippets_no_text_of_the_corpus_is_in_the_file(tmp_path):
    facts = {
        "matched_texts": [
            {
                "text_id": "p",
                "detectors": "decon",
                "score": 0.9,
                "is_contaminated": True,
                "question": "asked",
                "text": f"before {MARKER} after",
                "text_start": 3,
                "text_marks": [{"start": 0, "stop": 6, "part": "question"}],
            }
        ],
        "unreadable": [{"source": "s", "shard_name": "n", "reason": "not JSON", "detail": MARKER}],
    }
    for snippets in (True, False):
        run = {"snippets": snippets}
        report = write_world(tmp_path / "r.duckdb", run=run, **facts)
        write_page(report, tmp_path / "r.html")
        everything = (tmp_path / "r.html").read_text() + "".join(
            packed_in(tmp_path / "r.html").values()
        )
        assert (MARKER in everything) == snippets
        notes = " ".join(data_of(tmp_path / "r.html", "overview")["notes"])
        assert ("Snippets are off" in notes) != snippets


@pytest.mark.parametrize("keeps", [True, False])
def test_the_page_says_that_questions_without_answers_were_left_out(tmp_path, keeps):
    run = {"policy": json.dumps({"keep_no_answer": keeps})}
    write_page(write_world(tmp_path / "r.duckdb", run=run), tmp_path / "r.html")
    notes = " ".join(data_of(tmp_path / "r.html", "overview")["notes"])
    assert (QUESTIONS_LEFT_OUT in notes) != keeps


def test_what_people_said_is_shown_with_who_and_when(tmp_path):
    said = {"text_id": "p", "verdict": "template", "note": "a form"}
    said |= {"said_by": "Ada", "said_at": "2026-01-02", "is_found": True}
    report = write_report(
        tmp_path / "r.duckdb",
        runs=[RUN],
        matched_texts=[{"text_id": "p", "detectors": "decon", "score": 0.9}],
        verdicts=[said],
    )
    write_page(report, tmp_path / "r.html")
    plain = data_of(tmp_path / "r.html", "columns")["plain"]
    names = ("verdict", "verdict_note", "verdict_by", "verdict_at")
    assert [plain[name] for name in names] == [["template"], ["a form"], ["Ada"], ["2026-01-02"]]


# Figures ------------------------------------------------------------------------------------------

COLOUR = re.compile(r"--c-[a-z]+")


def with_colours(value):
    """As the page fills them in."""
    return json.loads(COLOUR.sub("#123456", json.dumps(value)))


def test_the_script_of_plotly_is_that_of_the_locked_package():
    packed, digest = page_package.build._charting()
    script = gzip.decompress(b64decode(packed))
    assert script.decode() == get_plotlyjs(), "another version is installed: `make charting`"
    assert digest == page_package.build._digest(script)


@pytest.mark.parametrize(
    "world",
    [
        {},
        {"benchmarks": ["only"]},
        {"benchmarks": [f"bench_{n}" for n in range(40)], "n_items": 8},
        {"share": 0.0},
        {"detectors": ["decon"]},
        {"sources": [f"source {n}" for n in range(20)]},
        {
            "benchmarks": [HOSTILE],
            "sources": [HOSTILE, "<b>bold</b>"],
            "detectors": ["<i>", "decon"],
        },
    ],
    ids=["some", "one", "forty", "none found", "one detector", "many sources", "hostile"],
)
def test_every_figure_is_one_that_plotly_takes_and_obeys_no_name(tmp_path, world):
    write_page(write_world(tmp_path / "r.duckdb", **world), tmp_path / "r.html")
    drawn = [*figures(data_of(tmp_path / "r.html", "overview"))]
    assert drawn
    for figure in drawn:
        go.Figure(with_colours({"data": figure["data"], "layout": figure["layout"]}))
        for text in texts_of({"data": figure["data"], "layout": figure["layout"]}):
            assert re.findall(r"<(?!br>|extra>|/extra>)", text) == []


def texts_of(value, key=""):
    """All that Plotly may read as its markup; custom data it hands back as it is."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, one in value.items():
            if name != "customdata":
                yield from texts_of(one, name)
    elif isinstance(value, list):
        for one in value:
            yield from texts_of(one, key)


def test_every_colour_of_a_figure_has_a_value_in_both_themes(page):
    used = {
        name
        for figure in figures(data_of(page, "overview"))
        for name in COLOUR.findall(json.dumps(figure))
    }
    assert len(used) > 5
    for name in used:
        assert len(re.findall(rf"{name}: ", STYLE)) == 3, name  # light, dark outside, dark chosen


def luminance(colour):
    channels = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_texts_stand_out_from_what_is_behind_them_in_both_themes():
    themes = re.findall(r"\{([^{}]*--c-paper: [^{}]*)\}", STYLE)
    assert len(themes) == 3
    for theme in themes:
        values = dict(re.findall(r"(--[a-z]-[a-z]+): (#[0-9a-f]{6})", theme))
        seen = [*product(("--c-ink", "--c-soft", "--c-both"), ("--c-paper", "--c-panel"))]
        seen += [("--c-ink", f"--m-{part}") for part in ("question", "answer", "passage")]
        for front, back in seen:
            light, dark = sorted((luminance(values[front]), luminance(values[back])), reverse=True)
            assert (light + 0.05) / (dark + 0.05) >= 4.5, (front, back)


# Labels -------------------------------------------------------------------------------------------


@given(st.text())
def test_prop_a_label_is_one_visible_line_that_plotly_reads_as_it_is(text):
    label = labels.label(text, 20)
    assert not set("<>") & set(label)
    read = html.unescape(label)
    assert read == labels.shortened(labels.shown(text), 20)
    assert len(read) <= 20
    hidden = {character for character in read if category(character) in {"Cc", "Cf", "Zl", "Zp"}}
    assert hidden <= set("\u200c\u200d")


@given(st.text(max_size=120), st.integers(4, 40))
def test_prop_a_wrapped_label_has_all_of_the_name_on_lines_that_are_not_too_long(text, width):
    label = labels.wrapped(text, width)
    lines = [html.unescape(line) for line in label.split("<br>")]
    assert all(len(line) <= width for line in lines)
    assert labels.n_lines(label) == len(lines)
    assert "".join("".join(lines).split()) == "".join(labels.shown(text).split())
    assert not set("<>") & set(label.replace("<br>", ""))


def test_no_name_of_a_chart_is_cut(tmp_path):
    name = "ledger_math_word_problems_with_a_name_that_takes_two_lines"
    source = "web-crawl-2024-33-filtered-and-deduplicated"
    write_page(
        write_world(tmp_path / "r.duckdb", benchmarks=[name], sources=[source]),
        tmp_path / "r.html",
    )
    ticks = [
        tick.replace("<br>", "")
        for figure in figures(data_of(tmp_path / "r.html", "overview"))
        for axis in ("xaxis", "yaxis")
        for tick in figure["layout"].get(axis, {}).get("ticktext", ())
    ]
    assert any(name in tick for tick in ticks)
    assert source in ticks
    assert not any("…" in tick for tick in ticks)


def test_what_hides_in_a_name_is_shown_as_its_number():
    assert labels.shown("a\x00b\u202ec\x1b[31m\u2028d") == "a⟨U+0000⟩b⟨U+202E⟩c⟨U+001B⟩[31m d"
    assert labels.shown("می‌خواهم 👩‍🚀") == "می‌خواهم 👩‍🚀"


def test_a_small_share_is_not_told_as_none():
    assert [labels.share(part, 100_000) for part in (0, 3, 50, 12_345)] == [
        *("0 %", "0.0030 %", "0.050 %", "12.3 %"),
    ]


def _luminance(colour):
    channels = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [one / 12.92 if one <= 0.04045 else ((one + 0.055) / 1.055) ** 2.4 for one in channels]
    return sum(map(operator.mul, (0.2126, 0.7152, 0.0722), linear))


def test_the_edges_of_bars_stand_out_from_the_page_in_both_themes():
    """At least 3:1, as WCAG asks of what is needed to understand a figure (1.4.11)."""
    themes = [
        dict(re.findall(r"--c-(\w+): (#[0-9a-f]{6});", rule))
        for rule in re.findall(r"\{([^{}]*--c-paper:[^{}]*)\}", STYLE)
    ]
    assert len(themes) == 3  # dark by choice and by the system
    for theme in themes:
        for ground in ("paper", "panel"):
            light, dark = sorted((_luminance(theme["edge"]), _luminance(theme[ground])))[::-1]
            assert (light + 0.05) / (dark + 0.05) >= 3
