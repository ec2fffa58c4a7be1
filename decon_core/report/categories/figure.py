"""A figure of leak rates by category."""

from __future__ import annotations

from collections.abc import Sequence

from decon_core.report.categories.rates import CATEGORY, MICRO, Rate
from decon_core.report.html.charts import Chart
from decon_core.report.html.figures import Named, intervals


def rates_figure(rates: Sequence[Rate]) -> Chart | None:
    """Draw the rate of each category and of all of them, with intervals; None without a rate."""
    rows = [
        Named(
            ", ".join(filter(None, (rate.benchmark, rate.split)))
            + f": {rate.by} {rate.category or '(all)'}",
            100 * rate.leak_rate,
            None if rate.low is None else 100 * rate.low,
            None if rate.high is None else 100 * rate.high,
        )
        for rate in rates
        if rate.leak_rate is not None and rate.kind in (CATEGORY, MICRO)
    ]
    axis = "leaked items, in % of those that can be checked"
    return intervals("Leak rates by category", rows, axis) if rows else None
