"""Figures for features, and the same figures as files."""

import re
import xml.etree.ElementTree as ET

import pytest

from decon_core.report.html.charts import MOST_LINES
from decon_core.report.html.figures import Named, Point, boxes, curves, intervals, pairs
from decon_core.report.html.still import svg

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
}


@pytest.mark.parametrize("name", CHARTS)
def test_a_figure_as_a_file_has_every_name_and_stays_within_its_edges(name):
    drawing = svg(CHARTS[name])
    root = ET.fromstring(drawing)
    width, height = (float(root.get(side)) for side in ("width", "height"))
    said = {element.text for element in root.iter("{http://www.w3.org/2000/svg}tspan")}
    names = {"curves": {"Scores <b>", "a & b", "c", "0", "100"}, "pairs": {"clean", "leaked"}}
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
