"""Show a solved game: a table, two figures, and the best levels of many games as CSV."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np

from decon_core.features.game.model import Game, Solution, solve
from decon_core.report.html.charts import LAYOUTS, Chart
from decon_core.report.html.figures import Point, curves
from decon_core.report.html.still import svg
from decon_core.storage.files import write_plain_json, write_text
from decon_core.text_tables import as_csv, signed
from decon_core.wording import percent

PICTURE, LEVELS_PICTURE = "game.svg", "game_by_penalty.svg"

HEADS = ("best level", "case", "detected", "advantage", "payoff if all do", "deterring penalty")

CASES = {
    "no net gain": "the net gain is not positive, so the best level is 0 at any penalty",
    "kept out by costs": "the best level above 0 gains no more than it costs",
    "inner level": "a little more contamination would cost as much as it gains",
    "everything": "detection does not outweigh the net gain at any level",
}

_NEVER = "none is enough"
_LONG = 1e9  # numbers from here on are shown as powers of ten

_STEPS = 20  # number of levels, penalties and gains
_BEYOND = 2  # penalties and gains go up to this multiple of the game's


def levels_around(game: Game) -> dict[float, list[Point]]:
    """Return the best levels by penalty for each gain: both go beyond those of the game."""
    penalties = np.linspace(0.0, _BEYOND * max(game.penalty, game.net_gain, 0.1), _STEPS + 1)
    gains = np.linspace(0.0, _BEYOND * max(game.gain, 0.1), _STEPS + 1).tolist()
    return {
        gain: [
            Point(penalty, solve(replace(game, gain=gain, penalty=penalty)).level)
            for penalty in penalties.tolist()
        ]
        for gain in gains
    }


def line(solution: Solution) -> tuple[str, ...]:
    """Format a solution as a row under HEADS."""
    penalty = solution.deterring_penalty
    deterring = "none needed"
    if penalty is not None:
        deterring = _amount(penalty) if np.isfinite(penalty) else _NEVER
    return (
        f"{solution.level:.3f}",
        solution.case,
        percent(solution.detection),
        signed(solution.advantage),
        signed(solution.payoff),
        deterring,
    )


def _amount(value: float) -> str:
    """Format a number with three decimals, or as a power of ten if it would be long."""
    return f"{value:,.3f}" if value < _LONG else f"{value:.3e}"


def write(game: Game, folder: Path) -> None:
    """Write game.json, game.csv and the figures."""
    solution, around = solve(game), levels_around(game)
    content = {"game": asdict(game), "solution": asdict(solution)}
    if solution.deterring_penalty == np.inf:
        content["solution"]["deterring_penalty"] = _NEVER
    write_plain_json(folder / "game.json", content)
    rows = [
        {"gain": f"{gain:.6g}", "penalty": f"{point.x:.6g}", "best_level": f"{point.value:.6g}"}
        for gain, points in around.items()
        for point in points
    ]
    texts = {
        "game.csv": as_csv(rows),
        PICTURE: svg(payoffs(game, solution)),
        LEVELS_PICTURE: svg(levels_by_penalty(game, around)),
    }
    for name, text in texts.items():
        write_text(folder / name, text)


def payoffs(game: Game, solution: Solution) -> Chart:
    """Draw the payoff by level, with a line at the best level."""
    levels = np.linspace(0.0, 1.0, _STEPS + 1)
    points = [*map(Point, levels.tolist(), game.advantage(levels).tolist())]
    title = f"Payoff by level, best at {solution.level:.3f} ({solution.case})"
    axes = "level of contamination", "payoff over no contamination"
    return _with_line(curves(title, {"payoff": points}, axes), solution.level)


def levels_by_penalty(game: Game, around: Mapping[float, Sequence[Point]]) -> Chart:
    """Draw the best level by penalty for a few gains, with a line at the penalty of the game."""
    drawn = [*around.items()][:: -_STEPS // 4][:-1]
    by_name = {f"gain {gain:,.6g}": points for gain, points in drawn}
    title = f"Best level by gain and penalty (line: penalty {game.penalty:g})"
    axes = "penalty of detection", "best level of contamination"
    return _with_line(curves(title, by_name, axes), game.penalty)


def _with_line(chart: Chart, x: float) -> Chart:
    line = LAYOUTS["threshold"] | {"x0": x, "x1": x}
    return replace(chart, layout={**chart.layout, "shapes": [line]})
