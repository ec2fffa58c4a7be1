"""Leak rates in tables of the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from decon_assets.terminal.output import say, say_filled
from decon_core.report.categories.rates import CATEGORY, HEADS, Rate, rate_lines

MOST_SUBSETS = 40


def of_checkable(n_leaked: int | None, n_checkable: int | None, *, n_items: int | None) -> str:
    """Return "3 of 24"; empty if that says no more than the numbers of all items."""
    if n_checkable is None or n_checkable == n_items:
        return ""
    return f"{n_leaked or 0:,} of {n_checkable:,}"


def say_rates(rates: Sequence[Rate]) -> None:
    """Print leak rates by category; of very many categories only the averages."""
    n_categories = sum(rate.kind == CATEGORY for rate in rates)
    is_short = n_categories <= MOST_SUBSETS
    shown = [rate for rate in rates if is_short or rate.kind != CATEGORY]
    say_filled(HEADS, [*rate_lines(shown)])
    if len(shown) < len(rates):
        say(f"\n{n_categories} rows for categories are not shown; they are in the files written")
