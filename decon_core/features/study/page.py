"""Format the comparisons of training runs, and effects by exposure, as tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from decon_core.features.study.by_dose import OfDose
from decon_core.features.study.differences import Difference
from decon_core.features.study.exposure import Effect
from decon_core.features.study.figures import amount
from decon_core.features.study.through_training import Change
from decon_core.text_tables import interval, number, p_value, signed
from decon_core.wording import counted, percent

if TYPE_CHECKING:
    from decon_core.features.study.build import Found

HEADS = (
    "training run", "benchmark", "metric", "filter", "items", "score", "baseline", "difference",
    "95 % interval", "p", "relative", "compared on",
)  # fmt: skip
CHANGE_HEADS = (
    "training run", "benchmark", "metric", "filter", "change", "steps", "at the first",
    "at the second", "difference", "95 % interval", "p", "compared on",
)  # fmt: skip
DOSE_HEADS = ("series", "dose", "training runs", *HEADS[1:])
EFFECT_HEADS = (
    "training run", "benchmark", "metric", "filter", "exposure", "planted as", "items", "score",
    "baseline", "difference", "95 % interval", "p", "remark",
)  # fmt: skip

Table = tuple[Sequence[str], Sequence[Sequence[str]]]  # heads and rows


def tables(found: Found, baseline: str) -> dict[str, Table]:
    """Return scores by training run, differences, changes, differences by dose, and effects.

    Steps and doses have no rows if results have none. Of benchmarks, doses are left out if there
    are averages: by_dose.csv has them.
    """
    compared = found.comparison.all
    averages = [row for row in found.by_dose if row.difference.n_benchmarks is not None]
    return {
        "wide": wide(compared),
        "differences": (HEADS, [line(row) for row in compared if row.training_run != baseline]),
        "by_step": wide(found.training.by_step, with_step=True),
        "changes": (CHANGE_HEADS, [change_line(change) for change in found.training.changes]),
        "by_dose": (DOSE_HEADS, [dose_line(row) for row in averages or found.by_dose]),
        "effects": (EFFECT_HEADS, [effect_line(effect) for effect in found.effects]),
    }


def change_line(change: Change) -> tuple[str, ...]:
    """Format a change as a row under CHANGE_HEADS."""
    row = change.difference
    return (
        row.training_run,
        *row.what,
        change.change,
        f"{amount(change.step)} - {amount(change.other_step)}",
        signed(row.score),
        signed(row.baseline),
        signed(row.difference),
        interval(row.low, row.high),
        p_value(row.p),
        row.compared_on,
    )


def dose_line(row: OfDose) -> tuple[str, ...]:
    """Format the difference of a dose as a row under DOSE_HEADS."""
    return (row.series, amount(row.dose), f"{row.n_training_runs:,}", *line(row.difference)[1:])


def line(row: Difference) -> tuple[str, ...]:
    """Format a difference as a row under HEADS."""
    n_items = "–" if row.n is None else f"{row.n:,}"
    return (
        row.training_run,
        *row.what,
        n_items if row.n_benchmarks is None else counted(row.n_benchmarks, "benchmark"),
        number(row.score),
        number(row.baseline) if row.difference is not None or row.remark else "",
        signed(row.difference),
        interval(row.low, row.high),
        p_value(row.p),
        "" if row.relative is None else percent(row.relative, sign="+"),
        row.compared_on,
    )


def wide(every: Sequence[Difference], *, with_step: bool = False) -> Table:
    """Return a table with a row for each training run, and columns for benchmarks and averages.

    `with_step`: with a row for each of its steps.
    """
    columns = list(dict.fromkeys(row.what for row in every))
    keys = {row: (row.training_run, row.step if with_step else None) for row in every}
    scores = {(keys[row], row.what): row.score for row in every}
    order = dict.fromkeys(row.training_run for row in every)
    rows = [
        [key[0], *(["" if key[1] is None else amount(key[1])] if with_step else [])]
        + [number(scores.get((key, column))) for column in columns]
        for training_run in order
        for key in dict.fromkeys(keys.values())
        if key[0] == training_run
    ]
    # A column is named by its benchmark, and by metric and filter where it has several.
    heads = ["training run", "step"] if with_step else ["training run"]
    for benchmark, metric, filter_name in columns:
        same = [column for column in columns if column[0] == benchmark]
        parts = [metric] if len({column[1] for column in same}) > 1 else []
        parts += [filter_name or "no filter"] if len({column[2] for column in same}) > 1 else []
        heads.append(f"{benchmark} ({', '.join(parts)})" if parts else benchmark)
    return heads, rows


def effect_line(effect: Effect) -> tuple[str, ...]:
    """Format an effect as a row under EFFECT_HEADS."""
    return (
        effect.training_run,
        effect.benchmark,
        effect.metric,
        effect.filter,
        effect.label.exposure,
        ", ".join(filter(None, effect.label[1:])),
        f"{effect.n:,}",
        "" if effect.score is None else number(effect.score),
        "" if effect.baseline is None else number(effect.baseline),
        signed(effect.difference),
        interval(effect.low, effect.high),
        p_value(effect.p),
        effect.remark,
    )
