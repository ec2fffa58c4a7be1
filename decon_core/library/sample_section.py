"""The estimates from a sample as figures, and as a section of the scan's page."""

from __future__ import annotations

from collections.abc import Sequence

from decon_core.library.estimates import ALL, Rate
from decon_core.library.page import FIGURE_FILES
from decon_core.report.html.charts import Chart
from decon_core.report.html.figures import Named, intervals
from decon_core.report.html.labels import shown
from decon_core.report.html.sections import ALL as ALL_BENCHMARKS
from decon_core.report.html.sections import Choice, Section, Table
from decon_core.wording import bounds

_TITLES = {
    "documents": "Documents with a leak, estimated from the sample",
    "items": "Leaked items, estimated from the sample",
}
_AXES = {
    "documents": "documents, in % of all documents of the source",
    "items": "leaked items, in % of those that can be found",
}
_HEADS = {
    **dict.fromkeys(("of", "source", "benchmark"), "short"),
    **dict.fromkeys(("in the sample", "estimate", "from", "to", "of all"), "number"),
    "share": "short",
}


def sample_figures(rates: Sequence[Rate]) -> dict[str, Chart]:
    """Return the figures by the names of their files: documents with a leak, and leaked items."""
    charts = {}
    for name, (kind, title) in zip(FIGURE_FILES, _TITLES.items(), strict=True):
        rows = [
            Named(_name(rate), 100 * rate.rate, 100 * rate.rate_low, 100 * rate.rate_high)
            for rate in rates
            if rate.of == kind
            if rate.rate is not None and rate.rate_low is not None and rate.rate_high is not None
        ]
        if rows:
            charts[name] = intervals(title, rows, _AXES[kind])
    return charts


def _name(rate: Rate) -> str:
    names = [name for name in (rate.source, rate.benchmark) if name != ALL]
    return ", ".join(names) or "any benchmark"


def sample_section(rates: Sequence[Rate]) -> Section:
    """Return the estimates as a section of the page."""
    about = (
        "These are estimates for the whole corpus, with 95 % intervals. docs/studies/sampling.md "
        "explains what they mean."
    )
    rows = [
        [
            *map(shown, (rate.of, rate.source, rate.benchmark)),
            rate.n_found,
            None if rate.estimate is None else round(rate.estimate),
            rate.low,
            rate.high,
            rate.n,
            bounds(rate.rate_low, rate.rate_high),
        ]
        for rate in rates
    ]
    columns = [{"name": head, "kind": kind} for head, kind in _HEADS.items()]
    table = Table("sample", "Estimates", columns, rows, (), is_folded=False)
    choices = [Choice(ALL_BENCHMARKS, [*sample_figures(rates).values()])]
    return Section("sample", "Estimates from the sample", [about], choices, [table])
