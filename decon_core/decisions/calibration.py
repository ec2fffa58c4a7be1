"""The probability that a pair is a semantic duplicate, by its score, from judged pairs.

Scores of one detector are cut into bins of about equally many judged pairs, from the highest down.
Where the share of duplicates falls although the score rises, bins are pooled until it does not
(isotonic regression of the bins). Each step has Wilson's 95 % interval. docs/judge.md says why.
"""

from __future__ import annotations

import math
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

_Z = 1.959963984540054  # 95 %
# A bin holds a tenth of the pairs, of many pairs fewer: a wide bin says little about its edges.
_N_BINS = 10
_OF_ROOT = 1.5  # times the root of the number of pairs
LEAST_JUDGED = 20  # pairs in a bin: a probability of fewer says nothing
_N_FOLDS = 5
_DECIMALS = 9  # decimals of scores: further ones are rounding errors

ALL = ""  # the key of a curve of all benchmarks


class Point(NamedTuple):
    """A judged pair as one detector found it."""

    detector: str  # detector name, with the kind of the match if that is judged apart
    benchmark: str
    pair: str
    item: str  # the fingerprint of its record: pairs of one item are in one fold
    score: float
    is_sd: bool


@dataclass(frozen=True)
class Step:
    """Scores from `score_from` up to the next step, all with the same probability."""

    score_from: float  # the lowest score of a judged pair in it
    score_to: float  # the highest one
    n_judged: int
    n_sd: int
    low: float
    high: float

    @property
    def probability(self) -> float:
        return self.n_sd / self.n_judged


@dataclass(frozen=True)
class Fit:
    """How well curves from other items predict the judgements."""

    brier: float  # mean squared error of the probability
    brier_of_share: float  # the same for a curve that is flat
    error: float  # expected calibration error


@dataclass(frozen=True)
class Curve:
    """The probability by score of one detector: a function that never falls."""

    steps: tuple[Step, ...]
    fit: Fit | None = None  # None: too few items

    @property
    def n_judged(self) -> int:
        return sum(step.n_judged for step in self.steps)

    @property
    def n_sd(self) -> int:
        return sum(step.n_sd for step in self.steps)

    def step_at(self, score: float) -> Step | None:
        """Return the step of a score; None below all judged ones, of which nothing is known."""
        score = round(score, _DECIMALS)
        return next((step for step in reversed(self.steps) if step.score_from <= score), None)


@dataclass(frozen=True)
class Calibration:
    """The curves of all detectors: of each benchmark with judged pairs, and of all together."""

    curves: Mapping[tuple[str, str], Curve] = field(default_factory=dict)

    def curve_for(self, detector: str, benchmark: str, least: int) -> Curve | None:
        """Return the curve of a benchmark, or with fewer than `least` pairs that of all.

        None if there are fewer in all, or fewer than say anything.
        """
        least = max(least, LEAST_JUDGED)
        for name in (benchmark, ALL):
            curve = self.curves.get((detector, name))
            if curve and curve.n_judged >= least:
                return curve
        return None

    def probability(
        self, detector: str, benchmark: str, score: float, *, least: int
    ) -> float | None:
        """Return the probability of a duplicate; None if too little is known of such a score."""
        curve = self.curve_for(detector, benchmark, least)
        step = curve.step_at(score) if curve else None
        return step.probability if step else None

    def n_judged(self, detector: str) -> int:
        curve = self.curves.get((detector, ALL))
        return curve.n_judged if curve else 0

    def to_json(self) -> list[dict[str, Any]]:
        return [
            {"detector": detector, "benchmark": benchmark, **asdict(curve)}
            for (detector, benchmark), curve in sorted(self.curves.items())
        ]

    @classmethod
    def from_json(cls, value: Iterable[Mapping[str, Any]]) -> Calibration:
        curves = {}
        for curve in value:
            steps = tuple(Step(**step) for step in curve["steps"])
            fit = Fit(**curve["fit"]) if curve["fit"] else None
            curves[curve["detector"], curve["benchmark"]] = Curve(steps, fit)
        return cls(curves)


NO_CALIBRATION = Calibration()


@cache
def planted_steps() -> tuple[dict[str, Any], ...]:
    """Return the steps of what detectors reported of planted benchmarks, by detector and kind.

    They come from no judgement of the user's text: a report shows them, and nothing acts on them.
    """
    path = Path(__file__).with_name("planted.toml")
    return tuple(tomllib.loads(path.read_text(encoding="utf-8"))["steps"])


def planted_step(detector: str, kind: str | None, score: float) -> dict[str, Any] | None:
    """Return the step of planted benchmarks for a score; None if nothing is known of it."""
    of_kind = [
        step for step in planted_steps() if (step["detector"], step["kind"]) == (detector, kind)
    ]
    below = [step for step in of_kind if step["score_from"] <= round(score, _DECIMALS)]
    return below[-1] if below else None


def calibrate(points: Iterable[Point]) -> Calibration:
    """Return the curves of judged pairs. Their order makes no difference."""
    groups: dict[tuple[str, str], list[Point]] = defaultdict(list)
    pooled: dict[tuple[str, str], Point] = {}  # a text of two benchmarks is one pair
    for point in sorted(points):
        groups[point.detector, point.benchmark].append(point)
        pooled[point.detector, point.pair] = point
    for point in pooled.values():
        groups[point.detector, ALL].append(point)
    curves = {}
    for key, members in sorted(groups.items()):
        steps = fit_steps((point.score, point.is_sd) for point in members)
        curves[key] = Curve(steps, cross_validated(members))
    return Calibration(curves)


def fit_steps(judged: Iterable[tuple[float, bool]]) -> tuple[Step, ...]:
    """Return the steps of a curve from scores and judgements, lowest first."""
    pooled: list[_Bin] = []
    for scores in _bins(judged):
        pooled.append(scores)
        # Compared as products: shares are fractions, which rounding could make unequal.
        while len(pooled) > 1 and pooled[-2].exceeds(pooled[-1]):
            pooled[-2:] = [pooled[-2].joined(pooled[-1])]
    intervals = [wilson(scores.n_sd / scores.n, scores.n) for scores in pooled]
    # The probability never falls, so a bound of one step holds for those beyond it.
    lows = [max(low for low, _ in intervals[: at + 1]) for at in range(len(pooled))]
    highs = [min(high for _, high in intervals[at:]) for at in range(len(pooled))]
    return tuple(
        Step(scores.first, scores.last, scores.n, scores.n_sd, low, high)
        for scores, low, high in zip(pooled, lows, highs, strict=True)
    )


class _Bin(NamedTuple):
    """Judged pairs of neighbouring scores."""

    first: float
    last: float
    n: int
    n_sd: int

    def exceeds(self, other: _Bin) -> bool:
        return self.n_sd * other.n > other.n_sd * self.n

    def joined(self, higher: _Bin) -> _Bin:
        return _Bin(self.first, higher.last, self.n + higher.n, self.n_sd + higher.n_sd)


def _bins(judged: Iterable[tuple[float, bool]]) -> list[_Bin]:
    """Return bins of about equally many pairs, lowest first; equal scores are in one bin.

    They are filled from the highest score down: the lowest bin takes what is left over.
    """
    by_score: dict[float, _Bin] = {}
    for raw, is_sd in judged:
        score = round(raw, _DECIMALS)
        known = by_score.get(score, _Bin(score, score, 0, 0))
        by_score[score] = known.joined(_Bin(score, score, 1, is_sd))
    n = sum(scores.n for scores in by_score.values())
    size = max(LEAST_JUDGED, math.ceil(min(n / _N_BINS, _OF_ROOT * math.sqrt(n))))
    bins: list[_Bin] = []
    for _, scores in sorted(by_score.items(), reverse=True):
        if bins and bins[-1].n < size:
            bins[-1] = scores.joined(bins[-1])
        else:
            bins.append(scores)
    if len(bins) > 1 and bins[-1].n < size:
        bins[-2:] = [bins[-1].joined(bins[-2])]
    return bins[::-1]


def cross_validated(points: Sequence[Point]) -> Fit | None:
    """Predict the judgement of each pair from those of other items; None without other items."""
    folds = [int(sha256(point.item.encode()).hexdigest(), 16) % _N_FOLDS for point in points]
    predicted: list[tuple[float, float, bool]] = []
    for fold in sorted({*folds}):
        others = [point for point, number in zip(points, folds, strict=True) if number != fold]
        if not others:
            return None
        curve = Curve(fit_steps([(other.score, other.is_sd) for other in others]))
        share = curve.n_sd / curve.n_judged
        for point, number in zip(points, folds, strict=True):
            if number == fold:
                step = curve.step_at(point.score) or curve.steps[0]
                predicted.append((step.probability, share, point.is_sd))
    return fit_of(predicted)


def fit_of(predicted: Sequence[tuple[float, float, bool]]) -> Fit:
    """Return how well others predict: probability by a curve, by the share alone, judgement."""
    n = len(predicted)
    brier = math.fsum((by_curve - is_sd) ** 2 for by_curve, _, is_sd in predicted) / n
    flat = math.fsum((share - is_sd) ** 2 for _, share, is_sd in predicted) / n
    # The gaps of prediction and judgement, by tenths of the predicted probability.
    tenths: dict[int, list[float]] = defaultdict(list)
    for by_curve, _, is_sd in predicted:
        tenths[min(int(by_curve * 10), 9)].append(by_curve - is_sd)
    error = math.fsum(abs(math.fsum(gaps)) for gaps in tenths.values()) / n
    return Fit(brier, flat, error)


def wilson(share: float, n: float) -> tuple[float, float]:
    """Return Wilson's 95 % score interval for a share of `n` draws; without draws, 0 to 1."""
    if not n:
        return 0.0, 1.0
    squared = _Z * _Z
    centre = (share + squared / (2 * n)) / (1 + squared / n)
    half = _Z / (1 + squared / n) * math.sqrt(share * (1 - share) / n + squared / (4 * n * n))
    # Rounding must not put the share outside its interval.
    return max(0.0, min(centre - half, share)), min(1.0, max(centre + half, share))
