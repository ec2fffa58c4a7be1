"""Figures in sentences: extremes and sums of what is drawn."""

from collections import Counter

from decon_core.report.html import charts, descriptions


def rate(benchmark, n_leaked, n_no_answer=0):
    return {
        "benchmark": benchmark,
        "split": "test",
        "n_items": 10,
        "n_leaked": n_leaked,
        "leak_rate": n_leaked / 10,
        "low": n_leaked / 20,
        "high": min(1, n_leaked / 5),
        "n_no_answer": n_no_answer,
        "no_answer_rate": n_no_answer / 10,
        "n_checkable": 10,
        "n_leaked_checkable": n_leaked,
    }


def test_rates_name_the_highest_and_the_lowest():
    text = descriptions.rates([rate("a", 1), rate("b", 4, 1), rate("c", 2)])
    assert "Highest: b test with 40.0 %, interval 20.0 % to 80.0 %." in text
    assert "Lowest: a test with 10.0 %" in text
    assert text.endswith("1 item found without the answer.")


def test_equal_rates_have_no_lowest():
    assert "Lowest" not in descriptions.rates([rate("a", 1), rate("b", 1)])


def test_names_are_shown_as_they_are_and_not_as_markup():
    chart = charts.rates([rate("<b>a</b>", 1), rate("b", 2)])
    assert "<b>a</b> test" in chart.description
    assert "&lt;b&gt;a" in chart.data[0]["hovertext"][0]


def test_bars_have_the_sum_of_each_colour_and_the_longest_bar():
    text = descriptions.stacked(["x", "y"], [("both", [1, 2]), ("one", [0, 3])], "items")
    assert text == "2 bars. both: 3; one: 3. Longest: y with 5 items."


def test_a_flow_has_every_number():
    sizes = {"items": 1200, "leaked": 3, "clean": 1197}
    text = descriptions.flow(sizes, [("items", "leaked"), ("items", "clean")])
    assert text == "3 of 1,200 items: leaked; 1,197 of 1,200 items: clean."


def test_squares_without_a_leak_are_counted():
    text = descriptions.heat(["a", "b"], ["web"], Counter({("b", "web"): 2}))
    assert text.endswith("1 of 2 squares with a leak. Most: b in web with 2 items.")
    nothing = descriptions.heat(["a"], ["web"], Counter())
    assert nothing.endswith("0 of 1 square with a leak.")


def test_scores_have_their_range_and_threshold():
    text = descriptions.scores([("leaks", [0, 0, 2, 1]), ("near misses", [0, 1, 0, 0])], 0.5)
    expected = "leaks: 3; near misses: 1. Scores from 0.25 to 1.00. Threshold: 0.5."
    assert text == f"Matches by class: {expected}"


def test_a_threshold_between_steps_counts_what_the_next_step_holds():
    thresholds, n_leaked = [0.3, 0.7, 0.9], [9, 5, 2]
    assert "5 items at the threshold of 0.5." in descriptions.sweep(thresholds, n_leaked, 0.5)
    assert "0 items at the threshold of 0.95." in descriptions.sweep(thresholds, n_leaked, 0.95)
    assert "threshold" not in descriptions.sweep(thresholds, n_leaked, None)


def test_calibration_has_every_step():
    step = {"probability": 0.5, "low": 0.25, "high": 0.75, "score_from": 0.6}
    text = descriptions.calibration([step, step | {"probability": 1, "score_from": 0.8}])
    assert text.startswith("2 steps: 50.0 % (25.0 % to 75.0 %) from a score of 0.600; ")
