"""Advice on which detector to choose, printed below the tables; advice.md.j2 has the words.

What concerns one detector is in its own file.
"""

from __future__ import annotations

from collections.abc import Sequence

from decon_core.config.detectors import find
from decon_core.wording import render


def advice(names: Sequence[str]) -> str:
    """Return the advice for the detectors of a scorecard, in Markdown."""
    template = "quality/scorecard/advice.md.j2"
    return render(template, names=names, detectors=[find(name) for name in names])
