"""Plots in metadata: pictures that are well formed and say what the numbers say."""

from base64 import b64decode
from xml.etree import ElementTree as ET

import pytest

from decon_assets.assets.plots import leak_rates, scores

SVG = "{http://www.w3.org/2000/svg}"


def drawn(metadata):
    """The picture behind a Markdown image."""
    head, _, packed = metadata.value.rpartition(",")
    assert head.endswith("](data:image/svg+xml;base64")
    return ET.fromstring(b64decode(packed.removesuffix(")")))


def texts(picture):
    return [element.text for element in picture.iter(f"{SVG}text")]


def bars(picture, colour):
    return [
        {name: float(one.get(name)) for name in ("x", "y", "width", "height")}
        for one in picture.iter(f"{SVG}rect")
        if one.get("fill") == colour
    ]


def rate(benchmark, n_leaked, n_items=100):
    share = n_leaked / n_items if n_items else None
    ends = {"low": share and share / 2, "high": share and share * 2}
    return {
        "benchmark": benchmark,
        "n_checkable": n_items,
        "n_leaked_checkable": n_leaked,
        "leak_rate": share,
        **ends,
    }


def test_the_highest_rate_comes_first_and_bars_are_as_long_as_rates_are_high():
    picture = drawn(leak_rates([rate("few", 10), rate("<many>", 40), rate("unknown", 0, 0)]))
    said = texts(picture)
    assert said == ["<many>", "40.0 %  (40 of 100)", "few", "10.0 %  (10 of 100)"]
    first, second = bars(picture, "#c4473a")
    assert first["width"] == pytest.approx(4 * second["width"], abs=0.2)


def test_of_very_many_benchmarks_the_rest_is_counted():
    picture = drawn(leak_rates([rate(f"b{n:03}", n) for n in range(1, 41)]))
    assert texts(picture)[-1] == "and 10 more with lower rates"
    assert "b040" in texts(picture)


def test_benchmarks_of_which_nothing_leaked_have_bars_without_length():
    (bar,) = bars(drawn(leak_rates([{**rate("clean", 0), "low": 0.0, "high": 0.0}])), "#c4473a")
    assert bar["width"] == 0


def test_scores_are_drawn_rule_by_rule_with_the_threshold_where_it_is():
    bins = [
        {"detector": "decon", "score_from": 0.6, "n_matches": 8, "n_contaminated": 0},
        {"detector": "decon", "score_from": 0.98, "n_matches": 4, "n_contaminated": 4},
        {"detector": "exact", "score_from": 0.5, "n_matches": 1, "n_contaminated": 1},
    ]
    picture = drawn(scores(bins, {"decon": 0.8, "ratcliff": 0.5, "exact": 0.5}))
    assert [text for text in texts(picture) if "matches" in text] == [
        "decon: at most 8 matches per bin",
        "exact: at most 1 matches per bin",
    ]
    all_of_decon = bars(picture, "#7d94ad")[:2]
    leaks = bars(picture, "#c4473a")[:2]
    assert all_of_decon[0]["height"] == 2 * all_of_decon[1]["height"] > 0
    assert [bar["height"] for bar in leaks] == [0, all_of_decon[1]["height"]]
    (line,) = (
        float(one.get("x1"))
        for one in picture.iter(f"{SVG}line")
        if one.get("x1") == one.get("x2") and float(one.get("y1")) < 100
    )
    middle = (all_of_decon[0]["x"] + all_of_decon[1]["x"] + all_of_decon[1]["width"]) / 2
    assert line == pytest.approx(middle, abs=2)


def test_without_anything_to_draw_it_says_so():
    assert leak_rates([rate("unknown", 0, 0)]).value == "*no benchmark has a known leak rate*"
    assert scores([], {"decon": 0.8}).value == "*no matches*"
