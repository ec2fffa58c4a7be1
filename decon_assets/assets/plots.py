"""Small SVG plots for asset metadata, embedded in Markdown.

No charting library: importing one would take longer than importing all assets.
"""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from dagster import MetadataValue

from decon_assets.assets.metadata import picture
from decon_core.wording import percent

_WIDTH = 900  # width of the UI's Markdown dialog, which does not scale images
_MOST_BENCHMARKS = 30
_BAR, _GAP, _LEFT, _RIGHT = 16, 6, 190, 210
_HEIGHT, _FOOT, _TOP = 170, 40, 22
_BIN = 0.02  # width of a score bin, as in the report's view `score_histogram`
_LEAK, _REST, _INK, _LINE = "#c4473a", "#7d94ad", "#3b4754", "#a9b4c0"


def leak_rates(rows: Sequence[Mapping[str, Any]]) -> MetadataValue:
    """Plot a bar with its 95 % interval for each benchmark, highest leak rates first.

    Rows have `benchmark`, `n_checkable`, `n_leaked_checkable`, `leak_rate`, `low`, `high`, as in a
    summary.
    """
    known = sorted(
        (row for row in rows if row["leak_rate"] is not None),
        key=lambda row: (-row["leak_rate"], row["benchmark"]),
    )
    if not known:
        return MetadataValue.md("*no benchmark has a known leak rate*")
    shown = known[:_MOST_BENCHMARKS]
    most = max([row["high"] for row in shown]) or 1.0
    scale = (_WIDTH - _LEFT - _RIGHT) / most
    parts: list[str] = []
    for number, row in enumerate(shown):
        y = _TOP + number * (_BAR + _GAP)
        rate, low, high = (_LEFT + scale * row[name] for name in ("leak_rate", "low", "high"))
        name = row["benchmark"]
        of_items = f"{row['n_leaked_checkable']:,} of {row['n_checkable']:,}"
        label = f"{percent(row['leak_rate'])}  ({of_items})"
        parts += [
            _text(_LEFT - 8, y + 12, name if len(name) <= 26 else f"{name[:25]}…", anchor="end"),
            _bar(_LEFT, y, rate - _LEFT, _BAR, _LEAK),
            _line(low, y + _BAR / 2, high, y + _BAR / 2, _INK),
            _text(max(rate, high) + 8, y + 12, label),
        ]
    left_out = len(known) - len(shown)
    height = _TOP + len(shown) * (_BAR + _GAP)
    if left_out:
        parts.append(_text(_LEFT, height + 12, f"and {left_out} more with lower rates"))
    return _picture("leak rates by benchmark, among items that can be found", parts, height + 20)


def scores(bins: Sequence[Mapping[str, Any]], thresholds: Mapping[str, float]) -> MetadataValue:
    """Plot a histogram of match scores for each detector, with its threshold; leaks are red.

    Bins have `detector`, `score_from`, `n_matches` and `n_contaminated`.
    """
    detectors = [name for name in thresholds if any(row["detector"] == name for row in bins)]
    if not detectors:
        return MetadataValue.md("*no matches*")
    parts: list[str] = []
    for number, name in enumerate(detectors):
        of_detector = sorted(
            (row for row in bins if row["detector"] == name), key=lambda row: row["score_from"]
        )
        top = _TOP + number * (_HEIGHT + _FOOT + _TOP)
        parts += _histogram(name, of_detector, thresholds[name], top)
    return _picture("scores", parts, len(detectors) * (_HEIGHT + _FOOT + _TOP))


def _histogram(
    detector: str, bins: Sequence[Mapping[str, Any]], threshold: float, top: float
) -> list[str]:
    first = min(float(bins[0]["score_from"]), threshold)
    scale = (_WIDTH - 60) / max(1 - first, _BIN)
    most = max(row["n_matches"] for row in bins)
    foot = top + _HEIGHT

    def x(score: float) -> float:
        return 30 + scale * (score - first)

    parts = [_text(30, top - 6, f"{detector}: at most {most:,} matches per bin")]
    for row in bins:
        left = x(row["score_from"])
        for count, colour in (("n_matches", _REST), ("n_contaminated", _LEAK)):
            height = _HEIGHT * row[count] / most
            parts.append(_bar(left, foot - height, scale * _BIN - 1, height, colour))
    return [
        *parts,
        _line(x(threshold), top, x(threshold), foot + 6, _INK),
        _text(x(threshold), foot + 32, f"threshold {threshold:g}", anchor="middle"),
        _line(30, foot, _WIDTH - 30, foot, _LINE),
        _text(30, foot + 18, f"{first:g}"),
        _text(_WIDTH - 30, foot + 18, "1", anchor="end"),
    ]


def _picture(title: str, parts: Sequence[str], height: float) -> MetadataValue:
    drawing = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height:.0f}" '
        f'font-family="sans-serif" font-size="12"><title>{escape(title)}</title>'
        f'<rect width="100%" height="100%" fill="#ffffff"/>{"".join(parts)}</svg>'
    )
    return picture(title, drawing)


def _bar(x: float, y: float, width: float, height: float, colour: str) -> str:
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(width, 0):.1f}" height="{height:.1f}" '
        f'fill="{colour}"/>'
    )


def _line(x1: float, y1: float, x2: float, y2: float, colour: str) -> str:
    return (
        f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" '
        f'stroke="{colour}" stroke-width="1.5"/>'
    )


def _text(x: float, y: float, text: str, *, anchor: str = "start") -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{_INK}">{escape(text)}</text>'
    )
