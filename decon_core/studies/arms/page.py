"""Format the comparison of arms as tables, Markdown and CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict

from decon_core.studies.arms.differences import Comparison, Difference
from decon_core.wording import counted

HEADS = (
    *("arm", "benchmark", "metric", "filter", "items", "score", "baseline", "difference"),
    *("95 % interval", "p", "relative", "compared on"),
)
_DECIMALS = 6
_NUMBERS = ("score", "baseline", "difference", "low", "high", "p", "stderr", "relative")
COLUMNS = (
    *("arm", "benchmark", "metric", "filter", "n_benchmarks", "n", *_NUMBERS, "basis", "remark"),
)


def line(one: Difference) -> tuple[str, ...]:
    """Format a difference as a row under HEADS."""
    return (
        *(one.arm, one.benchmark, one.metric, one.filter),
        _of(one),
        number(one.score),
        number(one.baseline) if one.difference is not None or one.remark else "",
        signed(one.difference),
        span(one.low, one.high),
        p(one.p),
        "" if one.relative is None else f"{one.relative:+.1%}",
        one.basis or one.remark,
    )


def _of(one: Difference) -> str:
    if one.n_benchmarks is not None:
        return counted(one.n_benchmarks, "benchmark")
    return "–" if one.n is None else f"{one.n:,}"


def number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def signed(value: float | None) -> str:
    # Adding 0 turns -0.0 into 0.0, which would be shown with the wrong sign.
    return "" if value is None else f"{round(value, 3) + 0:+.3f}"


def span(low: float | None, high: float | None) -> str:
    return "" if low is None or high is None else f"{signed(low)} to {signed(high)}"


def p(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:.3f}" if value >= 0.001 else "< 0.001"


def wide(found: Comparison) -> tuple[list[str], list[list[str]]]:
    """Return a table with a row for each arm, and a column for each benchmark and average."""
    every = [*found.benchmarks, *found.averages]
    columns = list(dict.fromkeys(_column(one) for one in every))
    scores = {(one.arm, _column(one)): one.score for one in every}
    rows = [
        [arm, *(number(scores.get((arm, column))) for column in columns)]
        for arm in dict.fromkeys(one.arm for one in every)
    ]
    return ["arm", *map(_headings(columns).__getitem__, columns)], rows


_Column = tuple[str, str, str]


def _column(one: Difference) -> _Column:
    return one.benchmark, one.metric, one.filter


def _headings(columns: Iterable[_Column]) -> Mapping[_Column, str]:
    """Name each column by its benchmark, and by metric and filter where it has several."""
    listed = [*columns]
    named: dict[_Column, str] = {}
    for column in listed:
        others = [one for one in listed if one[0] == column[0]]
        metrics, filters = {one[1] for one in others}, {one[2] for one in others}
        parts = [column[1]] if len(metrics) > 1 else []
        parts += [column[2] or "no filter"] if len(filters) > 1 else []
        named[column] = f"{column[0]} ({', '.join(parts)})" if parts else column[0]
    return named


def rows_of(found: Comparison) -> Iterator[dict[str, object]]:
    """Yield the differences as flat rows."""
    for one in (*found.benchmarks, *found.averages):
        row = {**asdict(one), "relative": one.relative}
        yield {name: rounded(row[name]) for name in COLUMNS}


def rounded(value: object) -> object:
    """Round: the last digits of a sum depend on the processor."""
    return round(value, _DECIMALS) + 0.0 if isinstance(value, float) else value


def as_csv(columns: Sequence[str], rows: Iterable[Mapping[str, object]]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()
