"""Which pairs a person is shown, and in which order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from decon_core.config.policy import RULES, Policy
from decon_core.decisions.verdicts import Verdicts
from decon_core.report.review.found import About, Call

Order = Literal["doubt", "score", "documents"]


def in_order(pairs: Iterable[About], order: Order, policy: Policy) -> list[About]:
    """Doubt: those whose score is closest to where leaks begin come first."""
    match order:
        case "doubt":
            return sorted(pairs, key=lambda one: (doubt(one, policy), -one.n_documents, one.pair))
        case "score":
            return sorted(pairs, key=lambda one: (-one.score, -one.n_documents, one.pair))
        case "documents":
            return sorted(pairs, key=lambda one: (-one.n_documents, -one.score, one.pair))


def doubt(pair: About, policy: Policy) -> float:
    """How far its score is from the threshold; of several rules, from the closest."""
    rules = [rule for rule in pair.rules.split(", ") if rule in RULES]
    own = policy.for_benchmark(pair.benchmark)
    # Scores are fractions of few digits; what they differ in behind those says nothing.
    return min((round(abs(pair.score - own.threshold_of(rule)), 9) for rule in rules), default=1)


def without_verdict(pairs: Iterable[About], verdicts: Verdicts) -> list[About]:
    return [one for one in pairs if one.pair not in verdicts.by_pair]


def of_calls(pairs: Iterable[About], calls: Sequence[Call]) -> list[About]:
    """The pairs of calls, each once, in the order of the calls."""
    known = {one.pair: one for one in pairs}
    return [known[pair] for pair in dict.fromkeys(call.pair for call in calls) if pair in known]
