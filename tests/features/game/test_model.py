"""The contamination game: the closed form against a grid of levels, and the cases of its text."""

import csv
import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from decon_core.errors import InputError
from decon_core.features.game.model import Game, deterring_penalty, game_from, solve
from decon_core.features.game.page import (
    levels_around,
    levels_by_penalty,
    line,
    payoffs,
    write,
)

N_LEVELS = 10_001
DOCS = Path(__file__).parents[3] / "docs"

amounts = st.floats(0.0, 3.0, allow_subnormal=False)
games = st.builds(
    Game,
    gain=amounts,
    cost=amounts,
    entry_cost=amounts,
    penalty=amounts,
    steepness=st.one_of(st.just(1.0), st.floats(0.2, 8.0)),
)


def solve_by_grid(game):
    """Return the best of evenly spaced levels; of equal ones the highest."""
    levels = np.linspace(0.0, 1.0, N_LEVELS)
    advantages = game.advantage(levels)
    return float(levels[np.flatnonzero(advantages >= advantages.max() - 1e-12)[-1]])


@given(game=games)
def test_prop_no_level_of_a_grid_pays_more_than_the_best_one(game):
    solution = solve(game)
    best = float(game.advantage(np.array(solution.level)))
    assert best == pytest.approx(solution.advantage)
    levels = np.linspace(0.0, 1.0, N_LEVELS)
    assert game.advantage(levels).max() <= best + 1e-9


@given(game=games)
def test_prop_the_best_level_of_a_grid_is_the_next_to_the_best_one(game):
    solution, found = solve(game), solve_by_grid(game)
    loss = solution.advantage - float(game.advantage(np.array(found)))
    assert abs(loss) < 1e-3  # near an entry cost that is just paid, 0 is as good
    if abs(found - solution.level) > 2e-2:
        assert loss < 1e-3
        assert abs(solution.advantage) < 1e-3 or game.penalty < 1e-2


@given(game=games, others=st.floats(0.0, 1.0))
def test_prop_what_others_do_shifts_all_levels_alike(game, others):
    levels = np.linspace(0.0, 1.0, 11)
    payoffs = np.array([game.payoff(level, others) for level in levels])
    assert payoffs - payoffs[0] == pytest.approx(game.advantage(levels), abs=1e-9)


@given(game=games)
def test_prop_a_penalty_deters_from_the_one_that_is_named_on(game):
    penalty = deterring_penalty(game)
    if penalty is None:
        assert solve(Game(**{**vars(game), "penalty": 0.0})).advantage == pytest.approx(0, abs=1e-9)
    elif math.isfinite(penalty) and penalty < 1e9:
        assert solve(Game(**{**vars(game), "penalty": penalty * 1.001 + 1e-6})).level == 0
        less = penalty * 0.999 - 1e-6
        assert less < 0 or solve(Game(**{**vars(game), "penalty": less})).level > 0


def test_no_contamination_is_best_where_its_cost_exceeds_its_gain():
    for gain, cost in ((0.2, 0.3), (0.3, 0.3)):
        for penalty in (0.0, 1.0, 100.0):
            for steepness in (0.5, 1.0, 3.0):
                game = Game(gain=gain, cost=cost, penalty=penalty, steepness=steepness)
                assert (solve(game).level, solve(game).case) == (0.0, "no net gain")


def test_the_inner_level_satisfies_the_first_order_condition():
    game = Game(gain=1.0, cost=0.2, entry_cost=0.05, penalty=2.0, steepness=3.0)
    solution = solve(game)
    assert solution.case == "inner level"
    slope = game.penalty * game.steepness * solution.level ** (game.steepness - 1)
    assert slope == pytest.approx(game.net_gain)
    assert game.net_gain * solution.level - game.penalty * solution.level**3 >= game.entry_cost
    assert solution.payoff < 0  # all contaminate, and none is ahead


def test_an_entry_cost_above_what_the_inner_level_gains_keeps_everybody_out():
    game = Game(gain=1.0, cost=0.2, penalty=2.0, steepness=3.0)
    gained = solve(Game(**{**vars(game), "entry_cost": 0.0})).advantage
    for entry_cost in (gained, gained + 1e-6):  # at the first, it pays exactly its costs
        found = solve(Game(**{**vars(game), "entry_cost": entry_cost}))
        assert (found.level, found.case, found.payoff) == (0.0, "kept out by costs", 0.0)
    below = solve(Game(**{**vars(game), "entry_cost": gained - 1e-6}))
    assert below.case == "inner level"


@pytest.mark.parametrize(
    "settings",
    [
        ["steepness=1", "penalty=0.65"],  # rounding makes the payoff a little more or less than 0
        ["steepness=1", "penalty=0.7", "entry_cost=0"],
        ["steepness=0.5", "penalty=0.65"],
        ["steepness=1", "penalty=650", "gain=1000.3", "cost=300.3", "entry_cost=50"],
    ],
)
def test_at_the_deterring_penalty_nobody_contaminates(settings):
    solution = solve(game_from(settings))
    assert (solution.level, solution.case, solution.payoff) == (0.0, "kept out by costs", 0.0)


def test_numbers_of_the_table_are_short_and_no_zero_is_negative():
    assert line(solve(game_from(["gain=0.2"])))[3:5] == ("+0.000", "+0.000")
    assert line(solve(game_from(["steepness=50"])))[-1].endswith(("e+53", "e+54"))


def test_everything_is_taken_where_detection_is_too_cheap_for_an_inner_level():
    # The text leaves this corner out: its condition has no solution below 1.
    game = Game(gain=1.0, cost=0.2, entry_cost=0.05, penalty=0.3, steepness=2.0)
    assert (solve(game).level, solve(game).case) == (1.0, "everything")
    # Where the probability of detection rises fastest at first, its solution is the worst level.
    early = Game(gain=1.0, cost=0.2, entry_cost=0.05, penalty=0.5, steepness=0.5)
    assert solve(early).level == 1.0
    worst = (early.penalty * 0.5 / early.net_gain) ** 2
    assert early.advantage(np.array(worst)) < 0 < early.advantage(np.array(1.0))


def test_files_show_the_solution_and_are_the_same_every_time(tmp_path):
    game = Game(penalty=2.0)
    for name in ("one", "two"):
        write(game, tmp_path / name)
    for name in ("game.json", "game.csv", "game.svg", "game_by_penalty.svg"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
    found = json.loads((tmp_path / "one/game.json").read_text())
    assert found["solution"]["level"] == solve(game).level
    rows = [*csv.DictReader((tmp_path / "one/game.csv").read_text().splitlines())]
    assert len(rows) == sum(map(len, levels_around(game).values()))
    assert "best at 0.175 (inner level)" in (tmp_path / "one/game.svg").read_text()
    write(Game(entry_cost=0.0), tmp_path / "free")
    solution = json.loads((tmp_path / "free/game.json").read_text())["solution"]
    assert solution["deterring_penalty"] == "none is enough"


def test_the_figures_show_the_best_level_at_the_penalty_of_the_game():
    game = game_from(["penalty=3", "steepness=4"])
    solution = solve(game)
    (payoff,) = payoffs(game, solution).data
    assert max(payoff["y"]) <= solution.advantage
    assert payoff["y"][0] == 0
    chart = levels_by_penalty(game, levels_around(game))
    (curve,) = (curve for curve in chart.data if curve["name"] == "gain 1")
    (line,) = chart.layout["shapes"]
    assert curve["y"][curve["x"].index(line["x0"])] == pytest.approx(solution.level)


def test_the_pictures_of_the_docs_are_those_that_the_command_draws(tmp_path):
    write(game_from(["penalty=3", "steepness=4"]), tmp_path)
    for name in ("game", "game-by-penalty"):
        drawn = tmp_path / f"{name.replace('-', '_')}.svg"
        assert drawn.read_text() == (DOCS / f"images/{name}.svg").read_text()


def test_all_wrong_settings_are_named_at_once():
    assert game_from(["gain=2", "entry-cost=0"]) == Game(gain=2.0, entry_cost=0.0)
    with pytest.raises(InputError) as caught:
        game_from(["gian=1", "cost=much", "penalty=-1", "steepness=0", "gain"])
    said = str(caught.value)
    assert "5 problems" in said
    assert "Did you mean 'gain'?" in said
    assert "--set cost: found 'much'; expected a number of 0 or more" in said
    assert "--set steepness: found '0'; expected a number of 0.1 or more" in said
