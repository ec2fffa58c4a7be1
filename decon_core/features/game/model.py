"""The contamination game: the level of contamination that pays best for a model developer.

A developer takes benchmark data into training to the level `c`, from 0 to 1. The payoff is

    m (c - mean of the others) - alpha c - beta p(c) - gamma [c > 0]

with the gain in scores m, a linear cost alpha, an entry cost gamma, and a penalty beta that is paid
with the probability of detection p(c) = c^k. The others shift the payoff of every level by the same
amount, so the best level does not depend on them: if every developer takes it, that is the only
Nash equilibrium (GAPERON, appendix G).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
from pydantic import Field
from pydantic.dataclasses import dataclass as model

from decon_core.config.validation import TABLE, dotted, expects, validated
from decon_core.decisions.statistics import Floats
from decon_core.errors import InputError, Problem

Amount = Annotated[float, Field(ge=0), expects("a number of 0 or more")]
Steepness = Annotated[float, Field(ge=0.1), expects("a number of 0.1 or more")]
Case = Literal["no net gain", "kept out by costs", "inner level", "everything"]


@model(frozen=True, kw_only=True, config=TABLE)
class Game:
    """The parameters of the game; all players have the same."""

    gain: Amount = 1.0  # m: of scores, per unit of contamination
    cost: Amount = 0.3  # alpha: of other capabilities, per unit
    entry_cost: Amount = 0.05  # gamma: of any contamination
    penalty: Amount = 1.0  # beta: of detection
    steepness: Steepness = 2.0  # k: detection begins late if it is large

    @property
    def net_gain(self) -> float:
        """What one more unit of contamination gains, before detection: kappa."""
        return self.gain - self.cost

    def detection(self, level: Floats) -> Floats:
        """Return the probability that contamination is detected."""
        return np.asarray(level**self.steepness)

    def advantage(self, level: Floats) -> Floats:
        """Return the payoff of levels over that of no contamination, whatever the others do."""
        costs = self.penalty * self.detection(level) + self.entry_cost * (level > 0)
        return np.asarray(self.net_gain * level - costs)

    def payoff(self, level: float, others: float) -> float:
        """Return the payoff if the others take the level `others` on average."""
        return float(self.advantage(np.array(level))) - self.gain * others + 0.0


@dataclass(frozen=True)
class Solution:
    """The best level of contamination, and why it is."""

    level: float
    case: Case
    advantage: float  # over no contamination, for one who contaminates alone
    payoff: float  # if all players take this level; 0 if none does
    detection: float  # probability
    deterring_penalty: float | None  # the least that keeps everybody out; None: none is needed


def solve(game: Game) -> Solution:
    """Return the best level in closed form; no contamination is as good where it pays its costs."""
    level, case = _best_level(game)
    return Solution(
        level=level,
        case=case,
        advantage=float(game.advantage(np.array(level))) + 0.0,  # -0.0 becomes 0.0
        payoff=game.payoff(level, level),
        detection=float(game.detection(np.array(level))),
        deterring_penalty=deterring_penalty(game),
    )


# Relative tolerance: where contamination pays exactly its costs, rounding must not decide.
_ROUNDING = 1e-12


def _best_level(game: Game) -> tuple[float, Case]:
    """Return the best level, and why it is.

    Detection that begins early (k <= 1) makes the payoff convex: then the best level above 0 is 1,
    else the level where one more unit costs what it gains.
    """
    if game.net_gain <= 0:
        return 0.0, "no net gain"
    k, level = game.steepness, 1.0
    if k > 1 and game.penalty * k > game.net_gain * (1 + _ROUNDING):
        level = float((game.net_gain / (game.penalty * k)) ** (1 / (k - 1)))
    gained = game.net_gain * level
    if game.advantage(np.array(level)) <= gained * _ROUNDING:
        return 0.0, "kept out by costs"
    return level, "everything" if level == 1 else "inner level"


def deterring_penalty(game: Game) -> float | None:
    """Return the penalty from which on no contamination is best; None if it is without any."""
    kappa, gamma, k = game.net_gain, game.entry_cost, game.steepness
    if kappa <= gamma * (1 + _ROUNDING) or kappa <= 0:
        return None  # all costs of the best level, 1 without a penalty, exceed its gain
    if k <= 1:
        return kappa - gamma
    # The curve of costs touches the line of gains, at a level that the entry cost decides.
    touching = gamma * k / (kappa * (k - 1))
    if touching >= 1:
        return kappa - gamma
    slope = k * touching ** (k - 1)  # slope of the probability of detection at that level
    return kappa / slope if slope else float("inf")  # without an entry cost a little always pays


def game_from(settings: Sequence[str]) -> Game:
    """Return the game of settings such as "penalty=2"; raise InputError with all problems."""
    parts = [setting.partition("=") for setting in settings]
    given = {name.strip().replace("-", "_"): text for name, _, text in parts}
    problems: list[Problem] = []
    game = validated(Game, given, problems=problems, place=lambda path: f"--set {dotted(path)}")
    if game is None:
        raise InputError(problems)
    return game
