"""Draw the percentiles of planted items as strips of dots, and amplification by cut, as SVG."""

from __future__ import annotations

from collections.abc import Sequence
from math import log
from typing import Any

from decon_core.features.haystack.run import Placing, Scored, Study
from decon_core.wording import render

_AT = {
    "margin": 24,
    "top": 104,
    "strip": 24 + 170,  # place of percentile 0
    "strip_width": 480,
    "row": 36,
    "subject_row": 22,
    "head": 30,  # heading of a scorer's strips
    "panel": 24 + 170 + 480 + 130,
    "panel_width": 300,
    "panel_height": 300,
}
_RADIUS = 3.0
_SLOT = 5.0  # two dots nearer than this are stacked
_LONGEST_NAME = 24  # has room beside a strip
_COLOURS = 6
_FLOOR = 0.1  # lowest amplification that is drawn in its place; 0 is below it
_TICKS = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)


def svg(study: Study) -> str:
    at = _AT
    strips, y = [], at["top"]
    for number, scored in enumerate(study.scored):
        strips.append(_strip(scored, number, y))
        y += at["head"] + sum(map(_height, scored.placings[1:])) + 10
    cuts = study.settings.cuts
    panel = _Panel(cuts)
    legend = at["top"] + at["panel_height"] + 60 + 18 * len(study.scored)
    return render(
        "features/haystack/picture.svg.j2",
        at=at,
        width=at["panel"] + at["panel_width"] + at["margin"],
        height=max(y + 44, legend + 44),
        below=y,
        n_planted=len(study.planted),
        n_documents=study.n_documents,
        strips=strips,
        cuts=[{"x": _x(100 * (1 - cut)), "label": f"{100 * cut:g}"} for cut in cuts],
        ticks=[{"x": _x(value), "label": f"{value}"} for value in (0, 25, 50, 75, 100)],
        panel=panel.content(study.scored),
    )


def _x(percentile: float) -> float:
    return _AT["strip"] + percentile / 100 * _AT["strip_width"]


def _strip(scored: Scored, number: int, y: int) -> dict[str, Any]:
    """Return the rows of a scorer: a dot for each planted item, and the median."""
    rows, top = [], y + _AT["head"]
    for placing in scored.placings[1:]:
        height = _height(placing)
        middle = top + height / 2
        top += height
        places = [
            place
            for place in scored.places
            if place.item.benchmark == placing.benchmark
            and placing.subject in (None, place.item.subject)
        ]
        dots = _dots([place.percentile for place in places], middle, height)
        rows.append(
            {
                "name": _short(placing.subject or placing.benchmark or ""),
                "style": "soft small end" if placing.subject else "end",
                "middle": middle,
                "half": height / 2 - 2,
                "dots": [
                    (x, dot, f"{place.item.item}: {place.percentile:.1f}")
                    for (x, dot), place in zip(dots, places, strict=True)
                ],
                "median_x": _x(placing.median),
                "median": f"{placing.median:.1f}",
            }
        )
    return {"name": _short(scored.name), "colour": number % _COLOURS, "y": y, "rows": rows}


def _height(placing: Placing) -> int:
    return _AT["subject_row"] if placing.subject else _AT["row"]


def _short(name: str) -> str:
    return name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}…"


def _dots(percentiles: Sequence[float], middle: float, height: float) -> list[tuple[float, float]]:
    """Return a place for each dot; near ones alternate above and below the middle."""
    slots: dict[int, int] = {}
    levels = []
    for percentile in percentiles:
        slot = int(_x(percentile) / _SLOT)
        slots[slot] = slots.get(slot, 0) + 1
        level = slots[slot] // 2
        levels.append(level if slots[slot] % 2 else -level)
    most = max(map(abs, levels), default=0)
    step = min(2 * _RADIUS - 0.5, (height / 2 - 5) / most) if most else 0.0
    return [
        (_x(percentile), middle + step * level)
        for percentile, level in zip(percentiles, levels, strict=True)
    ]


class _Panel:
    """Amplification by cut, both on logarithmic axes."""

    def __init__(self, cuts: Sequence[float]) -> None:
        self._cuts = cuts
        self._least = min(cuts[0], 0.5)
        self._most = 1.25 / cuts[0]

    def content(self, scored: Sequence[Scored]) -> dict[str, Any]:
        lines: list[dict[str, Any]] = []
        for number, scorer in enumerate(scored):
            aside = 4.0 * (number - (len(scored) - 1) / 2)  # intervals do not hide each other
            marks: list[dict[str, Any]] = [
                {
                    "x": self.x(kept.cut) + aside,
                    "y": self.y(kept.amplification),
                    "low": self.y(kept.low),
                    "high": self.y(kept.high),
                    "words": f"top {100 * kept.cut:g} %: {kept.amplification:.1f}",
                }
                for kept in scorer.placings[0].amplifications
            ]
            points = _points([(mark["x"], mark["y"]) for mark in marks])
            line = {"name": _short(scorer.name), "colour": number % _COLOURS}
            lines.append({**line, "points": points, "marks": marks})
        ticks = [tick for tick in _TICKS if tick <= self._most]
        return {
            "ticks": [{"y": self.y(tick), "label": f"{tick:g}"} for tick in ticks],
            "zero": self.y(0),
            "one": self.y(1),
            "cuts": [{"x": self.x(cut), "label": f"{100 * cut:g}"} for cut in self._cuts],
            "limit": _points([(self.x(cut), self.y(1 / cut)) for cut in (self._least, 1.0)]),
            "lines": lines,
        }

    def x(self, cut: float) -> float:
        share = log(cut / self._least) / log(1 / self._least)
        return _AT["panel"] + 12 + share * (_AT["panel_width"] - 24)

    def y(self, amplification: float) -> float:
        lowest = _AT["top"] + _AT["panel_height"] - 28  # below it is 0
        if amplification < _FLOOR:
            return lowest + 18
        share = log(amplification / _FLOOR) / log(self._most / _FLOOR)
        return lowest - share * (lowest - _AT["top"])


def _points(places: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
