"""The page has every number, and the picture is one that parsers accept."""

from random import Random
from xml.etree import ElementTree as ET

import polars as pl
import pytest

from decon_core.features.scorecard.marks import FINDINGS, mark
from decon_core.features.scorecard.negatives import HARD_NEGATIVES
from decon_core.features.scorecard.page import markdown, svg
from decon_core.features.scorecard.plan import plan
from decon_core.features.scorecard.planted_shards import TRUTH, read_truth, write_planted_corpus

THRESHOLDS = {"decon": 0.8, "longest_match": 0.7, "a<b&c": 0.5}


@pytest.fixture(scope="module")
def planned(records):
    return plan(records, per_transformation=4, seed=1)


@pytest.fixture(scope="module")
def marked(planned, tmp_path_factory):
    out = tmp_path_factory.mktemp("world") / "planted"
    write_planted_corpus(planned, [], out)
    rng = Random(1)
    rows = []
    truth = read_truth(out)
    for row in truth.iter_rows(named=True):
        place = [row[name] for name in ("shard", "row", "benchmark", "split", "instance_index")]
        for detector, threshold in THRESHOLDS.items():
            score = rng.random()
            rows.append((detector, *place, score, score >= threshold, False))
    findings = pl.DataFrame(rows, schema=FINDINGS, orient="row")
    return mark(truth, findings, thresholds=THRESHOLDS, n_background=5)


@pytest.fixture(scope="module")
def empty():
    return mark(
        pl.DataFrame(schema=TRUTH), pl.DataFrame(schema=FINDINGS), thresholds={"decon": 0.8}
    )


def tables_of(page):
    blocks = [block.split("\n") for block in page.strip().split("\n\n") if block.startswith("|")]
    return [[line.strip("|").split("|") for line in block] for block in blocks]


def test_tables_are_as_wide_as_their_heads(marked, planned, empty):
    for page in (markdown(marked), markdown(marked, tallies=planned.tallies), markdown(empty)):
        tables = tables_of(page)
        assert len(tables) == 6
        for table in tables:
            assert {len(row) for row in table} == {len(table[0])}


def test_every_grade_has_a_row(marked):
    totals, recall, negatives, *_ = tables_of(markdown(marked))
    assert len(recall) == 2 + marked.recall.height / 3
    assert len(negatives) == 2 + len(HARD_NEGATIVES)
    assert len(totals) == 2 + 3


def test_a_page_says_how_it_came_to_be(marked, planned):
    page = markdown(marked, about={"seed": "1"}, image="card.svg", tallies=planned.tallies)
    assert page.startswith("# Scorecard\n\n- **seed**: 1\n")
    assert "](card.svg)" in page
    assert "not applicable" in page


def test_the_picture_parses_and_has_a_cell_for_each_number(marked, empty):
    root = ET.fromstring(svg(marked))
    cells = [e for e in root.iter("{http://www.w3.org/2000/svg}rect") if e.get("class") == "empty"]
    assert len(cells) == marked.recall.height + marked.negatives.height
    assert len(list(root.iter("{http://www.w3.org/2000/svg}polyline"))) == 9
    assert "a<b&c" in [e.text for e in root.iter("{http://www.w3.org/2000/svg}text")]
    ET.fromstring(svg(empty))


def test_everything_stands_within_the_picture(marked):
    root = ET.fromstring(svg(marked))
    width, height = float(root.get("width")), float(root.get("height"))
    for element in root.iter():
        if element.get("x"):
            assert 0 <= float(element.get("x")) <= width
            assert 0 <= float(element.get("y")) <= height
        for point in (element.get("points") or "").split():
            x, y = map(float, point.split(","))
            assert width / 2 < x < width
            assert 90 < y < height


def test_the_picture_can_be_shown_smaller(marked):
    whole, small = ET.fromstring(svg(marked)), ET.fromstring(svg(marked, shown_width=500))
    assert small.get("width") == "500"
    assert small.get("viewBox") == whole.get("viewBox")


def test_the_same_marks_give_the_same_picture(marked):
    assert svg(marked) == svg(marked)
    assert "http" not in svg(marked).replace("http://www.w3.org/2000/svg", "")
