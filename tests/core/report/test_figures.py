"""Figures for features, and the same figures as files."""

import re
import xml.etree.ElementTree as ET

import pytest

from decon_core.report.html.charts import MOST_LINES, calibration, rates, scores
from decon_core.report.html.figures import Named, Point, boxes, curves, intervals, pairs
from decon_core.report.html.still import svg

BIN = {"bin": 35, "n_matches": 8, "n_contaminated": 0, "n_no_answer": 2, "n_review": 1}
STEP = {"score_from": 0.6, "score_to": 0.7, "probability": 0.6, "low": 0.4, "high": 0.8} | {
    "n_sd": 12,
    "n_judged": 20,
}
RATE = {"benchmark": "x", "split": "test", "leak_rate": 0.2, "low": 0.1, "high": 0.4} | {
    "n_items": 10,
    "n_checkable": 10,
    "n_leaked_checkable": 2,
    "n_no_answer": 0,
    "no_answer_rate": 0.2,
}
CHARTS = {
    "curves": curves(
        "Scores <b>",
        {"a & b": [Point(0, 0.2), Point(3, 0.7, 0.5, 0.9)], "c": [Point(1, -2.0)]},
        ("dose", "score"),
        ticks={0: "0", 3: "100"},
    ),
    "intervals": intervals("Effects", [Named("x", 0.1, -0.2, 0.4), Named("y <i>", 5)], "effect"),
    "boxes": boxes("Differences", {"x": [1, 2, 9], "y": [4] * 100}, "difference"),
    "pairs": pairs("Gaps", {"x": (0.5, 0.9), "y": (1, 1)}, ("clean", "leaked"), "score"),
    "scores": scores([BIN, BIN | {"bin": 49, "n_contaminated": 30_000, "n_matches": 30_000}], 0.8),
    "calibration": calibration([STEP, STEP | {"score_from": 0.8, "score_to": 1.0, "high": 1.0}]),
    "rates": rates([RATE, RATE | {"n_no_answer": 2}]),
}


@pytest.mark.parametrize("name", CHARTS)
def test_a_figure_as_a_file_has_every_name_and_stays_within_its_edges(name):
    drawing = svg(CHARTS[name])
    root = ET.fromstring(drawing)
    width, height = (float(root.get(side)) for side in ("width", "height"))
    said = {element.text for element in root.iter("{http://www.w3.org/2000/svg}tspan")}
    names = {
        "curves": {"Scores <b>", "a & b", "c", "0", "100"},
        "pairs": {"clean", "leaked"},
        "scores": {"leaks", "no answer", "needs review", "near misses", "threshold 0.8", "30,000"},
        "calibration": {"12 of 20"},
        "rates": {"x · test", "leaked", "question found, no answer (of all items)"},
    }
    assert names.get(name, {"x"}) <= said
    for x, y in re.findall(
        r"(-?[\d.]+),(-?[\d.]+)", " ".join(re.findall('points="([^"]+)"', drawing))
    ):
        assert 0 <= float(x) <= width
        assert 0 <= float(y) <= height
    for x, y in re.findall(r"[ML](-?[\d.]+) (-?[\d.]+)", drawing):
        assert 0 <= float(x) <= width
        assert 0 <= float(y) <= height
    assert "prefers-color-scheme: dark" in drawing
    assert svg(CHARTS[name]) == drawing


def test_a_name_may_have_a_dot_for_each_of_several_sides():
    joined, *sides = pairs("Shares", {"x": (1, 2, 4), "y": (3, 0, 5)}, ("a", "b", "c"), "%").data
    assert [*zip(joined["x"], joined["y"], strict=True)] == [
        *((1, 0), (2, 0), (4, 0), (None, None), (3, 1), (0, 1), (5, 1), (None, None)),
    ]
    assert [(side["name"], side["x"]) for side in sides] == [
        *(("a", [1, 3]), ("b", [2, 0]), ("c", [4, 5])),
    ]
    assert len({side["marker"]["symbol"] for side in sides}) == 3


def test_bars_stand_on_each_other_and_a_band_lies_between_its_bounds():
    def shapes(chart):
        paths = re.findall(r'd="(M[^"]*Z)" fill="var\((--c-\w+)\)"', svg(chart))
        return {colour: [*map(float, re.findall(r"-?[\d.]+", path))] for path, colour in paths}

    bars = shapes(scores([BIN], 0.8))
    feet, tops = ([bar[at] for bar in bars.values()] for at in (1, 2))
    assert [*bars] == ["--c-question", "--c-soft", "--c-clean"]
    assert tops[:-1] == feet[1:]
    heights = [foot - top for foot, top in zip(feet, tops, strict=True)]
    assert heights == pytest.approx([2 * heights[1], heights[1], 5 * heights[1]], abs=0.3)
    band = shapes(CHARTS["calibration"])["--c-link"]
    assert len({*band[1::2]}) == 3  # 40, 80 and 100 %


def test_labels_of_steps_that_would_meet_are_on_other_sides_or_left_out():
    starts = [0.94, 0.92, 0.9, 0.2]
    steps = [STEP | {"score_from": start, "score_to": start + 0.01} for start in starts[::-1]]
    labels = calibration(steps).data[-1]
    assert labels["textposition"] == ("top center", "bottom center", "top center", "top center")
    assert labels["text"] == ("12 of 20", "12 of 20", "", "12 of 20")


def test_names_are_escaped_for_the_page():
    (trace, _) = CHARTS["curves"].data
    assert trace["name"] == "a &amp; b"
    assert CHARTS["intervals"].layout["yaxis"]["ticktext"][1] == "y &lt;i&gt;"


def test_the_title_says_how_many_rows_and_curves_are_drawn():
    rows = [Named(str(number), number) for number in range(MOST_LINES + 5)]
    assert intervals("Effects", rows, "effect").title == "Effects (60 of 65 drawn)"
    many = {str(number): [Point(0, 1)] for number in range(8)}
    assert curves("Scores", many, ("step", "score")).title == "Scores (6 of 8 drawn)"


def test_many_values_are_drawn_as_a_box_without_dots():
    dots = CHARTS["boxes"].data[2]
    assert dots["x"] == [1, 2, 9]
    assert "median 4.000" in CHARTS["boxes"].description
