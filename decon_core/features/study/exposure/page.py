"""Format effects by exposure as rows of tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from decon_core.features.study.exposure.effects import Effect
from decon_core.text_tables import interval, number, p_value, rounded, signed

HEADS = (
    "arm", "benchmark", "metric", "filter", "exposure", "planted as", "items", "score",
    "baseline", "difference", "95 % interval", "p", "remark",
)  # fmt: skip
COLUMNS = (
    "arm", "benchmark", "metric", "filter", "exposure", "form", "copies", "when", "n",
    "score", "baseline", "difference", "low", "high", "p", "remark",
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


def rows_of(found: Sequence[Effect]) -> Iterator[dict[str, object]]:
    for effect in found:
        row = {**vars(effect), **effect.label._asdict()}
        yield {name: rounded(row[name]) for name in COLUMNS}
