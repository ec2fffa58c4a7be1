"""Format the comparison of arms as rows of tables."""

from __future__ import annotations

from decon_core.features.study.arms.differences import Comparison, Difference
from decon_core.text_tables import interval, number, p_value, signed
from decon_core.wording import counted

HEADS = (
    "arm", "benchmark", "metric", "filter", "items", "score", "baseline", "difference",
    "95 % interval", "p", "relative", "compared on",
)  # fmt: skip


def line(row: Difference) -> tuple[str, ...]:
    """Format a difference as a row under HEADS."""
    n_items = "–" if row.n is None else f"{row.n:,}"
    return (
        row.arm,
        *_column(row),
        n_items if row.n_benchmarks is None else counted(row.n_benchmarks, "benchmark"),
        number(row.score),
        number(row.baseline) if row.difference is not None or row.remark else "",
        signed(row.difference),
        interval(row.low, row.high),
        p_value(row.p),
        "" if row.relative is None else f"{row.relative:+.1%}",
        row.compared_on,
    )


def wide(found: Comparison) -> tuple[list[str], list[list[str]]]:
    """Return a table with a row for each arm, and a column for each benchmark and average."""
    every = [*found.benchmarks, *found.averages]
    columns = list(dict.fromkeys(map(_column, every)))
    scores = {(row.arm, _column(row)): row.score for row in every}
    rows = [
        [arm, *(number(scores.get((arm, column))) for column in columns)]
        for arm in dict.fromkeys(row.arm for row in every)
    ]
    # A column is named by its benchmark, and by metric and filter where it has several.
    heads = ["arm"]
    for benchmark, metric, filter_name in columns:
        same = [column for column in columns if column[0] == benchmark]
        parts = [metric] if len({column[1] for column in same}) > 1 else []
        parts += [filter_name or "no filter"] if len({column[2] for column in same}) > 1 else []
        heads.append(f"{benchmark} ({', '.join(parts)})" if parts else benchmark)
    return heads, rows


def _column(row: Difference) -> tuple[str, str, str]:
    return row.benchmark, row.metric, row.filter
