"""Advice on which detector to choose, written by hand from the tables and printed below them.

What concerns one detector is in its own file.

It contains no numbers of a single run. It holds for GSM8K and AGIEval with every detector at its
default settings and others (`docs/scorecard.md` is from these). Check it after changing a detector
or a default.
"""

from __future__ import annotations

from collections.abc import Sequence

from decon_core.config.detectors import find

_ABOUT = (
    "These are properties of the detectors, written by hand from the numbers for GSM8K and "
    "AGIEval. If the tables on this page differ for your benchmarks, trust the tables."
)

_TOGETHER = (
    "**Several at once.** Detectors miss different items; the numbers in brackets below are items "
    "found by only one. `decon` and `ratcliff` together cover most kinds of leak: remove what "
    "`decon` flags, and review what `ratcliff` adds."
)
_NONE = (
    "**What none of them finds**: paraphrases, translations that keep no formula, and items that "
    "are too short to search for."
)


def advice(detectors: Sequence[str]) -> str:
    """Return the advice for the detectors of a scorecard, in Markdown."""
    items = [known.advice for known in map(find, detectors) if known and known.advice]
    if {"decon", "ratcliff"} <= {*detectors}:
        items.append(_TOGETHER)
    items.append(_NONE)
    return "\n".join([f"{_ABOUT}\n", *(f"- {item}" for item in items)])
