"""Format effects by exposure as rows of tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from decon_core.features.study.exposure.effects import Effect
from decon_core.text_tables import interval, number, p_value, rounded, signed

HEADS = (
    *("arm", "benchmark", "metric", "filter", "exposure", "planted as", "items", "score"),
    *("baseline", "difference", "95 % interval", "p", "remark"),
)
COLUMNS = (
    *("arm", "benchmark", "metric", "filter", "exposure", "form", "copies", "when", "n"),
    *("score", "baseline", "difference", "low", "high", "p", "remark"),
)


def line(one: Effect) -> tuple[str, ...]:
    """Format an effect as a row under HEADS."""
    return (
        *(one.arm, one.benchmark, one.metric, one.filter, one.label.exposure),
        ", ".join(filter(None, one.label[1:])),
        f"{one.n:,}",
        "" if one.score is None else number(one.score),
        "" if one.baseline is None else number(one.baseline),
        signed(one.difference),
        interval(one.low, one.high),
        p_value(one.p),
        one.remark,
    )


def rows_of(found: Sequence[Effect]) -> Iterator[dict[str, object]]:
    """Yield effects as flat rows."""
    for one in found:
        row = {**vars(one), **one.label._asdict()}
        yield {name: rounded(row[name]) for name in COLUMNS}
