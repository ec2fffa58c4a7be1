"""[report] of decon.toml."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pydantic.dataclasses import dataclass as model

from decon_core.config.validation import TABLE, Count, Share


@model(frozen=True, kw_only=True, config=TABLE)
class Report:
    """[report]: how much text a report shows, and what it warns of."""

    snippets: Literal["on", "off"] = "on"
    """With "off", database and pages have no corpus text."""
    context: Count = 300
    """Characters shown before and after a match."""
    most_pairs: Count = 50_000
    """Pairs of item and passage whose texts are kept."""
    drift: Share = 0.05
    """The check `leak_rate_is_steady` warns if a benchmark's leak rate differs by more than this
    from the previous report."""


@dataclass(frozen=True)
class Showing:
    """How much text of the corpus a report may contain."""

    snippets: bool = True
    context: int = Report.context
    most_pairs: int = Report.most_pairs  # leaks first, the highest scores first
