"""Leak rates by category, as a table in the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from decon_assets.terminal.output import say, say_filled
from decon_core.report.categories.rates import CATEGORY, HEADS, Rate, rate_lines

MOST_SUBSETS = 40


def say_rates(rates: Sequence[Rate]) -> None:
    """Print leak rates by category; of very many categories only the averages."""
    n_categories = sum(rate.kind == CATEGORY for rate in rates)
    is_short = n_categories <= MOST_SUBSETS
    shown = [rate for rate in rates if is_short or rate.kind != CATEGORY]
    say_filled(HEADS, [*rate_lines(shown)])
    if len(shown) < len(rates):
        say(f"\n{n_categories} category rows are not shown; --rates or --out writes them to a file")
