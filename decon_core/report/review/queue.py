"""Select and sort the pairs that are shown to a reviewer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from decon_core.config.policy import Policy
from decon_core.decisions.verdicts import Verdicts
from decon_core.report.review.found import Call, PairSummary

Order = Literal["doubt", "score", "documents"]


def sort_pairs(pairs: Iterable[PairSummary], order: Order, policy: Policy) -> list[PairSummary]:
    """Sort pairs; `doubt` puts those with scores closest to a threshold first."""
    match order:
        case "doubt":
            return sorted(
                pairs, key=lambda pair: (doubt(pair, policy), -pair.n_documents, pair.pair)
            )
        case "score":
            return sorted(pairs, key=lambda pair: (-pair.score, -pair.n_documents, pair.pair))
        case "documents":
            return sorted(pairs, key=lambda pair: (-pair.n_documents, -pair.score, pair.pair))


def doubt(pair: PairSummary, policy: Policy) -> float:
    """Return the distance of the score to the nearest threshold of the pair's detectors."""
    names = filter(None, pair.detectors.split(", "))
    limits = policy.for_benchmark(pair.benchmark)
    # Rounded: differences beyond a few digits are rounding errors and would break ties.
    return min((round(abs(pair.score - limits.threshold_of(name)), 9) for name in names), default=1)


def without_verdict(pairs: Iterable[PairSummary], verdicts: Verdicts) -> list[PairSummary]:
    return [pair for pair in pairs if pair.pair not in verdicts.by_pair]


def pairs_of_calls(pairs: Iterable[PairSummary], calls: Sequence[Call]) -> list[PairSummary]:
    """Return the pairs of the calls, each once, in the order of the calls."""
    known = {pair.pair: pair for pair in pairs}
    return [known[pair] for pair in dict.fromkeys(call.pair for call in calls) if pair in known]
