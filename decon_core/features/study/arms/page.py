"""Format the comparison of arms as tables, Markdown and CSV."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict

from decon_core.features.study.arms.differences import Comparison, Difference
from decon_core.text_tables import interval, number, p_value, rounded, signed
from decon_core.wording import counted

HEADS = (
    *("arm", "benchmark", "metric", "filter", "items", "score", "baseline", "difference"),
    *("95 % interval", "p", "relative", "compared on"),
)
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
        interval(one.low, one.high),
        p_value(one.p),
        "" if one.relative is None else f"{one.relative:+.1%}",
        one.compared_on,
    )


def _of(one: Difference) -> str:
    if one.n_benchmarks is not None:
        return counted(one.n_benchmarks, "benchmark")
    return "–" if one.n is None else f"{one.n:,}"


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
        metrics, filters = {other[1] for other in others}, {other[2] for other in others}
        parts = [column[1]] if len(metrics) > 1 else []
        parts += [column[2] or "no filter"] if len(filters) > 1 else []
        named[column] = f"{column[0]} ({', '.join(parts)})" if parts else column[0]
    return named


def rows_of(found: Comparison) -> Iterator[dict[str, object]]:
    """Yield the differences as flat rows."""
    for one in (*found.benchmarks, *found.averages):
        row = {**asdict(one), "relative": one.relative}
        yield {name: rounded(row[name]) for name in COLUMNS}
