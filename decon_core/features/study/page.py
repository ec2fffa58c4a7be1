"""Format the comparison of training runs, and effects by exposure, as tables."""

from __future__ import annotations

from collections.abc import Sequence

from decon_core.features.study.exposure.effects import Effect
from decon_core.features.study.training_runs.differences import Comparison, Difference
from decon_core.text_tables import interval, number, p_value, signed
from decon_core.wording import counted, percent

HEADS = (
    "training run", "benchmark", "metric", "filter", "items", "score", "baseline", "difference",
    "95 % interval", "p", "relative", "compared on",
)  # fmt: skip
EFFECT_HEADS = (
    "training run", "benchmark", "metric", "filter", "exposure", "planted as", "items", "score",
    "baseline", "difference", "95 % interval", "p", "remark",
)  # fmt: skip

Table = tuple[Sequence[str], Sequence[Sequence[str]]]  # heads and rows


def tables(found: Comparison, effects: Sequence[Effect], baseline: str) -> dict[str, Table]:
    """Return the scores by training run, the differences from the baseline, and the effects."""
    compared = (*found.benchmarks, *found.averages)
    return {
        "wide": wide(found),
        "differences": (HEADS, [line(row) for row in compared if row.training_run != baseline]),
        "effects": (EFFECT_HEADS, [effect_line(effect) for effect in effects]),
    }


def line(row: Difference) -> tuple[str, ...]:
    """Format a difference as a row under HEADS."""
    n_items = "–" if row.n is None else f"{row.n:,}"
    return (
        row.training_run,
        *_column(row),
        n_items if row.n_benchmarks is None else counted(row.n_benchmarks, "benchmark"),
        number(row.score),
        number(row.baseline) if row.difference is not None or row.remark else "",
        signed(row.difference),
        interval(row.low, row.high),
        p_value(row.p),
        "" if row.relative is None else percent(row.relative, sign="+"),
        row.compared_on,
    )


def wide(found: Comparison) -> tuple[list[str], list[list[str]]]:
    """Return a table with a row for each training run, and columns for benchmarks and averages."""
    every = [*found.benchmarks, *found.averages]
    columns = list(dict.fromkeys(map(_column, every)))
    scores = {(row.training_run, _column(row)): row.score for row in every}
    rows = [
        [training_run, *(number(scores.get((training_run, column))) for column in columns)]
        for training_run in dict.fromkeys(row.training_run for row in every)
    ]
    # A column is named by its benchmark, and by metric and filter where it has several.
    heads = ["training run"]
    for benchmark, metric, filter_name in columns:
        same = [column for column in columns if column[0] == benchmark]
        parts = [metric] if len({column[1] for column in same}) > 1 else []
        parts += [filter_name or "no filter"] if len({column[2] for column in same}) > 1 else []
        heads.append(f"{benchmark} ({', '.join(parts)})" if parts else benchmark)
    return heads, rows


def _column(row: Difference) -> tuple[str, str, str]:
    return row.benchmark, row.metric, row.filter


def effect_line(effect: Effect) -> tuple[str, ...]:
    """Format an effect as a row under EFFECT_HEADS."""
    names = (
        effect.training_run,
        effect.benchmark,
        effect.metric,
        effect.filter,
        effect.label.exposure,
    )
    return (
        *names,
        ", ".join(filter(None, effect.label[1:])),
        f"{effect.n:,}",
        "" if effect.score is None else number(effect.score),
        "" if effect.baseline is None else number(effect.baseline),
        signed(effect.difference),
        interval(effect.low, effect.high),
        p_value(effect.p),
        effect.remark,
    )
