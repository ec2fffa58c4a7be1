"""Format effects by exposure as rows of tables."""

from __future__ import annotations

from decon_core.features.study.exposure.effects import Effect
from decon_core.text_tables import interval, number, p_value, signed

HEADS = (
    "arm", "benchmark", "metric", "filter", "exposure", "planted as", "items", "score",
    "baseline", "difference", "95 % interval", "p", "remark",
)  # fmt: skip


def line(effect: Effect) -> tuple[str, ...]:
    """Format an effect as a row under HEADS."""
    names = effect.arm, effect.benchmark, effect.metric, effect.filter, effect.label.exposure
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
