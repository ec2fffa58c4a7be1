"""Grids, tables and series of numbers: which detectors find them, and that the others say so."""

from functools import cache

import pytest

from bench.grids import DETECTORS, KINDS, Draw, measure
from decon_core.config.policy import Policy
from decon_core.decisions.visibility import visibility_table

N = 8
POLICY = Policy(detectors=DETECTORS)


@cache
def measured(kind):
    return measure(KINDS[kind], N, POLICY)


@pytest.mark.parametrize(
    ("kind", "finders"),
    [
        ("houses in a table (as ZebraLogic)", {"decon", "longest_match", "exact"}),
        ("sudoku, `5 3 4 …`", {"decon"}),
        ("sudoku on one line", {"ngram_any"}),
        ("ten sums", {*DETECTORS}),
    ],
)
def test_a_puzzle_is_found_and_others_of_its_kind_are_not_taken_for_it(kind, finders):
    found = measured(kind)
    assert finders <= {name for name, counts in found.items() if counts == (N, 0)}


def test_longer_runs_tell_grids_of_digits_apart():
    policy = Policy(detectors=("ngram_any",), ngram_any_size=26)
    assert measured("sudoku, `5 3 4 …`")["ngram_any"] != (N, 0)
    assert measure(KINDS["sudoku, `5 3 4 …`"], N, policy)["ngram_any"] == (N, 0)


def test_what_no_detector_finds_is_called_not_visible(bench):
    bench.policy = POLICY
    puzzles = [KINDS[kind](Draw("x")) for kind in ("nonogram, `#..#`", "four numbers")]
    versions = bench.prepare({"b": [(puzzle, None, None) for puzzle in puzzles]})
    rows = visibility_table(bench.store, versions, bench.policy).to_pylist()
    assert not any(row["is_visible"] for row in rows)
    assert {row["detector"]: row["reason"] for row in rows if row["instance_index"] == 0} == {
        "decon": "too few tokens",
        "ratcliff": "no words to search for",
        "longest_match": "no words to search for",
        "exact": "no words to search for",
        "ngram_any": "empty question",
    }
