"""How commands describe the leaks that a mixture counts."""

import pytest

from decon_assets.terminal.products import described
from decon_core.config.mixtures import Leaks


@pytest.mark.parametrize(
    ("leaks", "expected"),
    [
        (Leaks(), "a, b, c (all benchmarks)"),
        (Leaks(benchmarks=("b",)), "b (1 of 3 benchmarks)"),
        (
            Leaks(benchmarks=("a", "c"), splits=("test",), least_score=0.9, detectors=("exact",)),
            "a, c (2 of 3 benchmarks; splits test; by exact; score at least 0.9)",
        ),
        (
            Leaks(min_probability=0.9, min_judged=40),
            "a, b, c (all benchmarks; probability at least 0.9, from 40 or more judged pairs)",
        ),
        (Leaks(benchmarks=("gone",)), "no benchmark (0 of 3 benchmarks)"),
    ],
    ids=["all", "one", "limits", "probability", "none"],
)
def test_leaks_are_described_by_the_names_of_their_benchmarks(leaks, expected):
    assert described(leaks, ["a", "b", "c"]) == expected


def test_of_many_benchmarks_the_first_are_named_and_the_others_counted():
    text = described(Leaks(), [f"b{number}" for number in range(20)])
    assert text.endswith("b7 and 12 more (all benchmarks)")
