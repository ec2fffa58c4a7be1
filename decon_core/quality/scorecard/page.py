"""Format the results as a Markdown page of tables and one SVG picture."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape

import polars as pl

from decon_core.config.detectors import get
from decon_core.quality.scorecard.advice import advice
from decon_core.quality.scorecard.edits import TRANSFORMATIONS
from decon_core.quality.scorecard.marks import Marks
from decon_core.quality.scorecard.negatives import HARD_NEGATIVES
from decon_core.quality.scorecard.plan import Tally

# The page -----------------------------------------------------------------------------------------

_ABOUT_TOTALS = (
    "False alarms are flagged hard negatives: texts that look like a leak but are not. Precision "
    "depends on the shares of planted items and hard negatives here: use it to compare detectors, "
    "not as an estimate for a corpus. Average precision is the area under a detector's curve, "
    "independent of its threshold. Background is unchanged text of the corpus; what is "
    "flagged there may be a real leak. Question-only: found without its answer, not counted as a "
    "leak; numbers of planted items, hard negatives and background."
)
_ABOUT_RECALL = (
    "Planted items found, in percent, with the 95 % interval (Wilson). All transformations use "
    "the same items where they apply, and others for the rest."
)
_ABOUT_AGREEMENT = (
    "Planted items found by both, by only one, by neither. Jaccard: found by both / found by "
    "either. Kappa: 0 if two detectors agree as by chance, 1 if they always agree."
)


def markdown(
    marks: Marks,
    *,
    title: str = "Scorecard",
    about: Mapping[str, str] | None = None,
    image: str | None = None,
    tallies: Sequence[Tally] = (),
) -> str:
    """Return the page. `about`: corpus, benchmarks, seed, command and the like."""
    parts = [f"# {title}"]
    if about:
        parts.append("\n".join(f"- **{name}**: {value}" for name, value in about.items()))
    parts += [
        "## At the thresholds",
        totals_table(marks),
        _ABOUT_TOTALS,
    ]
    if image:
        parts.append(
            f"![Recall of each detector by transformation, and precision by recall]({image})"
        )
    parts += [
        "## What to choose when",
        advice(marks.detectors),
        "## Recall",
        _ABOUT_RECALL,
        recall_table(marks),
        "## False alarms",
        "Hard negatives with any item flagged in their document.",
        _negatives(marks),
        "## Agreement",
        _ABOUT_AGREEMENT,
        _agreement(marks),
        "## Found by each and by all",
        _found(marks),
        "## What was planted",
        _meanings(tallies),
    ]
    return "\n\n".join(parts) + "\n"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]], *, n_text: int = 1) -> str:
    """Return a Markdown table; the first `n_text` columns are left-aligned, others right."""
    separator = ["---" if at < n_text else "---:" for at in range(len(head))]
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, separator, *rows))


def _percent(share: float | None, digits: int = 0) -> str:
    return "–" if share is None else f"{100 * share:.{digits}f}"


def _interval(row: Mapping[str, float], digits: int = 0) -> str:
    return f"<sub>{_percent(row['low'], digits)}–{_percent(row['high'], digits)}</sub>"


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def _code(name: str) -> str:
    return f"`{name}`"


_QUESTION_ONLY = ("n_question_only", "n_negatives_question_only", "n_background_question_only")


def totals_table(marks: Marks) -> str:
    head = ["detector", "threshold", "found", "recall %", "false alarms", "precision %"]
    head += ["average precision", "background flagged", "question-only"]
    return _table(
        head,
        (
            [
                _code(row["rule"]),
                f"{row['threshold']:g}",
                f"{row['n_found']:,} of {row['n_planted']:,}",
                _percent(row["recall"]),
                f"{row['n_false_alarms']:,} of {row['n_negatives']:,}",
                f"{_percent(row['precision'], 1)} {_interval(row, 1)}",
                _number(row["average_precision"]),
                f"{row['n_background_flagged']:,} of {row['n_background']:,}",
                " + ".join(f"{row[name]:,}" for name in _QUESTION_ONLY),
            ]
            for row in marks.totals.iter_rows(named=True)
        ),
    )


_Row = Mapping[str, float]


def recall_table(marks: Marks, *, has_intervals: bool = True) -> str:
    rows, last = [], ""
    for (group, grade), by_detector in _by(marks.recall, "transformation", "grade"):
        shown = [
            _percent(by_detector[detector]["recall"])
            + (f" {_interval(by_detector[detector])}" if has_intervals else "")
            for detector in marks.detectors
        ]
        n = next(iter(by_detector.values()))["n"]
        questions = _found_as_question_only(by_detector)
        rows.append(["" if group == last else group, grade, str(n), *shown, questions])
        last = group
    head = ["transformation", "grade", "n", *map(_code, marks.detectors), "found as question-only"]
    return _table(head, rows, n_text=2)


def _found_as_question_only(by_detector: Mapping[str, _Row]) -> str:
    """Return the percentage found as question-only by the detector that has this class."""
    with_class = (row for name, row in by_detector.items() if get(name).finds_question_only)
    row = next(with_class, None)
    if row is None:
        return "–"
    return _percent(row["n_question_only"] / row["n"]) if row["n_question_only"] else ""


def _negatives(marks: Marks) -> str:
    rows = [
        [
            name,
            *(
                f"{by_detector[detector]['n_flagged']} of {by_detector[detector]['n']}"
                for detector in marks.detectors
            ),
            _found_as_question_only(by_detector),
        ]
        for (name,), by_detector in _by(marks.negatives, "negative")
    ]
    return _table(
        ["hard negative", *map(_code, marks.detectors), "flagged as question-only %"], rows
    )


def _by(frame: pl.DataFrame, *names: str) -> list[tuple[tuple[str, ...], dict[str, _Row]]]:
    """Group rows by the named columns, then by detector, in the order of the table."""
    groups: dict[tuple[str, ...], dict[str, _Row]] = {}
    for row in frame.iter_rows(named=True):
        groups.setdefault(tuple(row[name] for name in names), {})[row["rule"]] = row
    return list(groups.items())


def _agreement(marks: Marks) -> str:
    head = ["first", "second", "both", "only first", "only second", "neither", "Jaccard", "kappa"]
    counts = ("n_both", "n_only_first", "n_only_second", "n_neither")
    return _table(
        head,
        (
            [
                *(_code(row[name]) for name in ("first", "second")),
                *(str(row[name]) for name in counts),
                *(_number(row[name]) for name in ("jaccard", "kappa")),
            ]
            for row in marks.agreement.iter_rows(named=True)
        ),
        n_text=2,
    )


def _found(marks: Marks) -> str:
    sums = marks.found.group_by("rule", maintain_order=True).agg(pl.exclude("benchmark").sum())
    total = sums.with_columns(pl.lit("**all**").alias("benchmark")).select(marks.found.columns)
    rows = []
    for (benchmark,), by_detector in _by(pl.concat([marks.found, total]), "benchmark"):
        first = next(iter(by_detector.values()))
        by_each = (
            f"{by_detector[detector]['n_found']} ({by_detector[detector]['n_found_alone']})"
            for detector in marks.detectors
        )
        ends = (str(first[name]) for name in ("n_found_by_all", "n_found_by_none"))
        rows.append([benchmark, str(first["n_planted"]), *by_each, *ends])
    head = ["benchmark", "planted", *map(_code, marks.detectors), "by all", "by none"]
    return _table(head, rows) + "\n\nIn brackets: found by no other detector."


def _meanings(tallies: Sequence[Tally]) -> str:
    kinds = [
        *(("plant", way.group, way.grade, way.meaning) for way in TRANSFORMATIONS),
        *(("hard_negative", way.name, "", way.meaning) for way in HARD_NEGATIVES),
    ]
    rows = []
    for kind, name, grade, meaning in kinds:
        of_kind = [
            tally
            for tally in tallies
            if (tally.kind, tally.transformation, tally.grade) == (kind, name, grade)
        ]
        n_planted = sum(tally.n_planted for tally in of_kind)
        n_not = sum(tally.n_not_applicable for tally in of_kind)
        counts = [str(n_planted), str(n_not)] if tallies else []
        rows.append([name, grade, meaning, *counts])
    head = ["transformation or negative", "grade", "change"]
    if tallies:
        head += ["planted", "not applicable"]
    return _table(head, rows, n_text=3)


# The picture --------------------------------------------------------------------------------------

# Blue and orange are distinguishable with every kind of colour vision, and each cell shows its
# number. Text is white where the cell is dark.
_STYLE = """
svg { --paper: #ffffff; --ink: #1b1f24; --soft: #5b636c; --line: #d5dae0; --faint: #f1f3f5;
  --hit: #0b61a4; --alarm: #b34700; --on: #ffffff;
  font: 12px system-ui, -apple-system, "Segoe UI", Helvetica, Arial, sans-serif; }
@media (prefers-color-scheme: dark) {
  svg { --paper: #0d1117; --ink: #e6edf3; --soft: #9aa4af; --line: #343b44; --faint: #161b22;
    --hit: #2878b8; --alarm: #b8561a; --on: #ffffff; } }
.paper { fill: var(--paper); } .empty { fill: var(--faint); }
.hit { fill: var(--hit); } .alarm { fill: var(--alarm); }
text { fill: var(--ink); } .soft { fill: var(--soft); } .on { fill: var(--on); }
.title { font-size: 16px; font-weight: 600; } .head { font-weight: 600; }
.middle { text-anchor: middle; } .end { text-anchor: end; } .small { font-size: 10px; }
.line { stroke: var(--line); fill: none; } .curve { stroke: var(--hit); stroke-width: 2.2;
  fill: none; stroke-linejoin: round; } .other { stroke: var(--soft); stroke-opacity: 0.3;
  fill: none; } .point { fill: var(--paper); stroke: var(--alarm); stroke-width: 2.2; }
"""

_MARGIN = 24
_ROW, _GAP = 20, 8
_GROUP_WIDTH, _GRADE_WIDTH, _N_WIDTH = 156, 100, 38
_CELL = 100
_DARK = 0.8  # from here on, white text is more readable
_PANEL, _PANEL_HEIGHT = 190, 150
_PANEL_GAP = 62
_FLOORS = (0.95, 0.9, 0.8, 0.5, 0.0)  # lower ends of the panels: spreads precise curves
_MAX_POINTS = 150


def svg(
    marks: Marks, *, title: str = "What each detector finds", shown_width: int | None = None
) -> str:
    """Draw recall by transformation as a heat map, and each detector's precision by recall.

    `shown_width` scales the picture, for pages that do not fit pictures themselves.
    """
    cells, height = _heat_map(marks, top=96)
    left = _MARGIN + _GROUP_WIDTH + _GRADE_WIDTH + _N_WIDTH + len(marks.detectors) * _CELL + 64
    panels, panel_height = _panels(marks, left=left, top=96)
    width, height = left + _PANEL + _MARGIN, max(height, panel_height) + _MARGIN
    scale = shown_width / width if shown_width else 1.0
    shown = f'width="{width * scale:.0f}" height="{height * scale:.0f}"'
    size = f'viewBox="0 0 {width} {height}" {shown}'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" role="img" {size}>',
            f"<title>{escape(title)}</title>",
            f"<desc>{escape(_description(marks))}</desc>",
            f"<style>{_STYLE}</style>",
            f'<rect class="paper" width="{width}" height="{height}"/>',
            _text(_MARGIN, 36, title, "title"),
            _text(_MARGIN, 56, "Planted items found, in percent", "soft"),
            _text(left, 56, "Precision by recall, in percent", "soft"),
            *cells,
            *panels,
            "</svg>\n",
        ]
    )


def _description(marks: Marks) -> str:
    """Return the text alternative of the picture."""
    sentences = (
        f"{row['rule']} finds {_percent(row['recall'])} percent of the planted items with "
        f"{_percent(row['precision'])} percent precision"
        for row in marks.totals.iter_rows(named=True)
    )
    return "; ".join(sentences) + "."


def _text(x: float, y: float, text: str, style: str = "") -> str:
    return f'<text x="{x:g}" y="{y:g}" class="{style}">{escape(text)}</text>'


def _heat_map(marks: Marks, *, top: int) -> tuple[list[str], int]:
    """Return the elements of the heat map, and its lower end."""
    first = _MARGIN + _GROUP_WIDTH + _GRADE_WIDTH
    elements = [_text(first + 12, top - 10, "n", "soft middle")]
    centres = [first + _N_WIDTH + _CELL * (at + 0.5) for at in range(len(marks.detectors))]
    elements += [
        _text(centre, top - 10, detector, "head middle")
        for centre, detector in zip(centres, marks.detectors, strict=True)
    ]
    y, last = top, None
    for (group, grade), by_detector in _by(marks.recall, "transformation", "grade"):
        if group != last:
            y += 0 if last is None else _GAP
            elements.append(_text(_MARGIN, y + 14, group))
        last = group
        elements.append(_text(_MARGIN + _GROUP_WIDTH, y + 14, grade, "soft"))
        elements += _cells(marks.detectors, by_detector, y, "recall", "hit")
        y += _ROW
    if marks.negatives.height:
        y += 40
        elements.append(_text(_MARGIN, y - 8, "Hard negatives flagged, in percent", "soft"))
    for (name,), by_detector in _by(marks.negatives, "negative"):
        elements.append(_text(_MARGIN, y + 14, name))
        elements += _cells(marks.detectors, by_detector, y, "false_alarm_rate", "alarm")
        y += _ROW
    return elements, y


def _cells(
    detectors: Sequence[str], by_detector: Mapping[str, _Row], y: int, share: str, style: str
) -> list[str]:
    x = _MARGIN + _GROUP_WIDTH + _GRADE_WIDTH
    elements = [
        _text(x + 12, y + 14, str(next(iter(by_detector.values()))["n"]), "soft small middle")
    ]
    for at, detector in enumerate(detectors):
        value = by_detector[detector][share]
        left = x + _N_WIDTH + at * _CELL
        place = f'x="{left + 1}" y="{y + 1}" width="{_CELL - 2}" height="{_ROW - 2}" rx="3"'
        elements.append(f'<rect class="empty" {place}/>')
        if value:
            elements.append(f'<rect class="{style}" fill-opacity="{value:.3f}" {place}/>')
        ink = "on middle" if value >= _DARK else "middle"
        elements.append(_text(left + _CELL / 2, y + 14, _percent(value), ink))
    return elements


def _panels(marks: Marks, *, left: int, top: int) -> tuple[list[str], int]:
    """Return a panel per detector with its curve, and the other curves faint behind it."""
    elements = []
    curves = {detector: marks.curves.filter(rule=detector) for detector in marks.detectors}
    lowest = float(marks.curves["precision"].min() or 0.0)  # type: ignore[arg-type] # a number
    floor = next(floor for floor in _FLOORS if floor <= lowest)
    y = top
    for row in marks.totals.iter_rows(named=True):
        detector, panel = row["rule"], _Panel(left, y, floor)
        elements.append(_text(left, y - 10, detector, "head"))
        average = f"average {_number(row['average_precision'])}"
        elements.append(_text(left + _PANEL, y - 10, average, "soft small end"))
        elements += _axes(panel)
        elements += [
            _polyline(curve, panel, "other") for other, curve in curves.items() if other != detector
        ]
        elements.append(_polyline(curves[detector], panel, "curve"))
        if row["precision"] is not None and row["recall"] is not None:
            x, down = panel.place(row["recall"], row["precision"])
            elements.append(
                f'<circle class="point" cx="{x:.1f}" cy="{down:.1f}" r="4">'
                f"<title>at the threshold {row['threshold']:g}</title></circle>"
            )
        y += _PANEL_HEIGHT + _PANEL_GAP
    elements.append(_text(left, y - _PANEL_GAP + 36, "circle: at the threshold", "soft small"))
    return elements, y - _PANEL_GAP + 40


@dataclass(frozen=True)
class _Panel:
    left: int
    top: int
    floor: float  # the precision at its bottom

    def place(self, recall: float, precision: float) -> tuple[float, float]:
        down = (1 - precision) / (1 - self.floor)
        return self.left + recall * _PANEL, self.top + down * _PANEL_HEIGHT


def _axes(panel: _Panel) -> list[str]:
    left, top = panel.left, panel.top
    elements = [
        f'<rect class="line" x="{left}" y="{top}" width="{_PANEL}" height="{_PANEL_HEIGHT}"/>'
    ]
    for share in (0.0, 0.5, 1.0):
        precision = panel.floor + share * (1 - panel.floor)
        x, y = panel.place(share, precision)
        if share == 0.5:
            lines = f"M{left} {y:g}H{left + _PANEL}M{x:g} {top}V{top + _PANEL_HEIGHT}"
            elements.append(f'<path class="line" d="{lines}"/>')
        elements.append(_text(x, top + _PANEL_HEIGHT + 14, _percent(share), "soft small middle"))
        elements.append(_text(left - 6, y + 4, f"{100 * precision:g}", "soft small end"))
    return elements


def _polyline(curve: pl.DataFrame, panel: _Panel, style: str) -> str:
    """Return a curve, thinned to about `_MAX_POINTS` points."""
    step = max(1, curve.height // _MAX_POINTS)
    points = list(zip(curve["recall"], curve["precision"], strict=True))
    thinned = [*points[:-1:step], *points[-1:]]
    places = (panel.place(recall, precision) for recall, precision in thinned)
    return f'<polyline class="{style}" points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in places)}"/>'
