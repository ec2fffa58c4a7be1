"""Show a solved game: a table, a picture of it, and the best levels of many games as CSV."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from decon_core.features.game.model import Floats, Game, Solution, best_levels, solve
from decon_core.storage.files import atomic_path, write_plain_json
from decon_core.storage.store import Store
from decon_core.text_tables import as_csv
from decon_core.wording import percent, render

PICTURE = "game.svg"

HEADS = ("best level", "case", "detected", "advantage", "payoff if all do", "deterring penalty")

CASES = {
    "no net gain": "the net gain is not positive, so the best level is 0 at any penalty",
    "kept out by costs": "the best level above 0 costs more than it gains",
    "inner level": "one more unit of contamination would cost as much as it gains",
    "everything": "detection does not outweigh the net gain at any level",
}

_NEVER = "none is enough"

_N_PENALTIES, _N_GAINS = 36, 24
_N_POINTS = 200  # points of the curve
_BEYOND = 2.5  # the picture's penalties and gains go up to this multiple of the game's


@dataclass(frozen=True)
class Levels:
    """The best levels of games with other gains (rows) and penalties (columns)."""

    gains: Floats
    penalties: Floats
    levels: Floats


def levels_around(game: Game) -> Levels:
    """Return the best levels for gains and penalties from 0 to some way beyond those of a game."""
    penalties = np.linspace(0.0, _BEYOND * max(game.penalty, game.net_gain, 0.1), _N_PENALTIES)
    gains = np.linspace(0.0, _BEYOND * max(game.gain, 0.1), _N_GAINS)
    return Levels(gains, penalties, best_levels(game, gains, penalties))


def line(solution: Solution) -> tuple[str, ...]:
    """Format a solution as a row under HEADS."""
    penalty = solution.deterring_penalty
    deterring = "none needed"
    if penalty is not None:
        deterring = f"{penalty:.3f}" if np.isfinite(penalty) else _NEVER
    return (
        f"{solution.level:.3f}",
        solution.case,
        percent(solution.detection),
        f"{solution.advantage:+.3f}",
        f"{solution.payoff + 0.0:+.3f}",
        deterring,
    )


def write(game: Game, folder: Path) -> None:
    """Write game.json, game.csv and game.svg."""
    solution, around = solve(game), levels_around(game)
    content = {"game": asdict(game), "solution": asdict(solution)}
    if solution.deterring_penalty == np.inf:
        content["solution"]["deterring_penalty"] = _NEVER
    write_plain_json(folder / "game.json", content)
    rows = [
        {"gain": f"{gain:.6g}", "penalty": f"{penalty:.6g}", "best_level": f"{level:.6g}"}
        for gain, levels in zip(around.gains, around.levels, strict=True)
        for penalty, level in zip(around.penalties, levels, strict=True)
    ]
    for name, text in {"game.csv": as_csv(rows), PICTURE: svg(game, solution, around)}.items():
        with atomic_path(folder / name) as draft:
            draft.write_text(text, encoding="utf-8")


_PANEL = {"left": 64, "top": 92, "width": 300, "height": 240}
_BETWEEN = 96
_SCALE = 88  # room on the right for the scale of colours


def svg(game: Game, solution: Solution, around: Levels) -> str:
    """Draw the payoff by level, and the best level by penalty and gain."""
    curve = dict(_PANEL)
    cells = curve | {"left": curve["left"] + curve["width"] + _BETWEEN}
    return render(
        "features/game/picture.svg.j2",
        game=game,
        solution=solution,
        case=CASES[solution.case],
        width=cells["left"] + cells["width"] + _SCALE,
        height=curve["top"] + curve["height"] + 64,
        curve=curve | _curve(game, solution),
        cells=cells | _cells(game, around),
    )


def _curve(game: Game, solution: Solution) -> dict[str, object]:
    """Return the points of the payoff by level, in pixels."""
    at = np.linspace(0.0, 1.0, _N_POINTS + 1)[1:]
    advantages = game.advantage(at)
    low, high = min(float(advantages.min()), 0.0), max(float(advantages.max()), 0.0)
    span = (high - low) or 1.0

    def place(level: float, advantage: float) -> tuple[float, float]:
        x = _PANEL["left"] + level * _PANEL["width"]
        return x, _PANEL["top"] + (high - advantage) / span * _PANEL["height"]

    return {
        "points": [place(*point) for point in zip(at, advantages, strict=True)],
        "best": place(solution.level, solution.advantage),
        "zero": place(0.0, 0.0)[1],
        "low": low,
        "high": high,
    }


def _cells(game: Game, around: Levels) -> dict[str, object]:
    """Return the cells of the heat map, in pixels below and right of the panel's corner."""
    width = _PANEL["width"] / len(around.penalties)
    height = _PANEL["height"] / len(around.gains)
    rectangles = [
        (column * width, _PANEL["height"] - (row + 1) * height, float(level))
        for row, levels in enumerate(around.levels)
        for column, level in enumerate(levels)
        if level > 0
    ]
    most_penalty, most_gain = float(around.penalties[-1]), float(around.gains[-1])
    return {
        "rectangles": rectangles,
        "cell": (width, height),
        "most_penalty": most_penalty,
        "most_gain": most_gain,
        "point": (
            game.penalty / most_penalty * _PANEL["width"],
            _PANEL["height"] * (1 - game.gain / most_gain),
        ),
    }


def demonstrate(store: Store, program: str, _config: Path) -> Iterator[str]:
    """Solve and draw the game with its default parameters."""
    folder = store.root / "game"
    write(Game(), folder)
    yield f"game: {folder / PICTURE}  (print its table: {program} game)"
