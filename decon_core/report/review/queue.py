"""Select and sort the matched texts that are shown to a reviewer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from decon_core.config.policy import Policy
from decon_core.decisions.verdicts import Verdicts
from decon_core.report.review.found import MatchedText, ReportFinding

Order = Literal["doubt", "score", "documents"]


def sort_texts(texts: Iterable[MatchedText], order: Order, policy: Policy) -> list[MatchedText]:
    """Sort matched texts; `doubt` puts those with scores closest to a threshold first."""
    match order:
        case "doubt":
            return sorted(
                texts, key=lambda text: (doubt(text, policy), -text.n_documents, text.text_id)
            )
        case "score":
            return sorted(texts, key=lambda text: (-text.score, -text.n_documents, text.text_id))
        case "documents":
            return sorted(texts, key=lambda text: (-text.n_documents, -text.score, text.text_id))


def doubt(text: MatchedText, policy: Policy) -> float:
    """Return the distance of the score to the nearest threshold of the matched text's detectors."""
    names = filter(None, text.detectors.split(", "))
    limits = policy.for_benchmark(text.benchmark)
    # Rounded: differences beyond a few digits are rounding errors and would break ties.
    return min((round(abs(text.score - limits.threshold_of(name)), 9) for name in names), default=1)


def without_verdict(texts: Iterable[MatchedText], verdicts: Verdicts) -> list[MatchedText]:
    return [text for text in texts if text.text_id not in verdicts.by_text]


def texts_of_findings(
    texts: Iterable[MatchedText], findings: Sequence[ReportFinding]
) -> list[MatchedText]:
    """Return the matched texts of the findings, each once, in the order of the findings."""
    known = {text.text_id: text for text in texts}
    return [
        known[text_id]
        for text_id in dict.fromkeys(finding.text_id for finding in findings)
        if text_id in known
    ]
