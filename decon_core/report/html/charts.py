"""Plotly figures as plain data.

Colours are names of CSS variables in page.css, so a figure fits the light and the dark theme.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby
from typing import Any

from decon_core.report.html.gather import Row, Rows
from decon_core.report.html.labels import count, label, n_lines, share, shown, whole_label, wrapped

# With more lines, the table below is easier to read than a figure.
MOST_LINES = 60
_LINE_PIXELS = 26
_NEXT_LINE_PIXELS = 15  # for each further line of a label
_FRAME_PIXELS = 96
_BINS = 50  # of the view score_histogram

_SHARES = [
    ("n_with_answer", "leaked with its answer", "--c-both", ""),
    ("n_with_part_of_answer", "with part of its answer", "--c-part", "."),
    ("n_without_answer", "without its answer", "--c-alone", "x"),
    ("n_leaked_without_having_one", "the item has no answer", "--c-soft", "+"),
    ("n_question_only", "question-only, not leaked", "--c-question", "/"),
]
_REASONS = {
    "leak": ("--c-both", ""),
    "question only": ("--c-part", "."),
    "license": ("--c-question", "/"),
    "control": ("--c-alone", "x"),
    "no leak": ("--c-clean", "."),
    "unreadable": ("--c-blind", "-"),
}


@dataclass(frozen=True)
class Chart:
    """A figure and its title.

    `opens`: filters of the pairs that a click sets to the custom data of the point;
    `least_width`: the smallest readable width in pixels.
    """

    title: str
    data: Sequence[Mapping[str, Any]]
    layout: Mapping[str, Any]
    opens: tuple[str, ...] = ()
    least_width: int = 0


def rates(benchmarks: Rows) -> Chart:
    """Draw the leak rate of every benchmark and split with its interval."""
    rows = benchmarks[:MOST_LINES]
    dots = {
        "type": "scatter",
        "mode": "markers",
        "name": "leaked",
        "x": [100 * row["leak_rate"] for row in rows],
        "y": [*range(len(rows))],
        "error_x": {
            "type": "data",
            "symmetric": False,
            "array": [100 * max(0.0, row["high"] - row["leak_rate"]) for row in rows],
            "arrayminus": [100 * max(0.0, row["leak_rate"] - row["low"]) for row in rows],
            "color": "--c-soft",
            "thickness": 1.5,
            "width": 4,
        },
        "marker": {"color": "--c-both", "size": 9},
        "customdata": [[row["benchmark"], row["split"]] for row in rows],
        "hovertext": [_rate_text(row) for row in rows],
        "hoverinfo": "text",
    }
    questions = _question_only_dots(rows)
    tops = [100 * max(row["high"], row["question_only_rate"]) for row in rows]
    top = max(tops, default=1.0)
    layout = _lines(len(rows), _split_labels(rows))
    layout["xaxis"] |= {"title": {"text": "items, %"}, "range": [-top / 50, top * 1.04]}
    if questions:
        layout |= _legend()
        layout["height"] += 34
    title = "Share of items that leaked"
    return Chart(title, [dots, *questions], layout, ("benchmark", "split"))


def _question_only_dots(rows: Rows) -> list[dict[str, Any]]:
    """Return dots for the question-only rates, if there are any."""
    chosen = [(at, row) for at, row in enumerate(rows) if row["n_question_only"]]
    if not chosen:
        return []
    hovertext = [
        f"{whole_label(row['benchmark'])} · {whole_label(row['split'])}<br>"
        f"{count(row['n_question_only'])} of {count(row['n_items'])} question-only"
        for _, row in chosen
    ]
    return [
        {
            "type": "scatter",
            "mode": "markers",
            "name": "question-only, not leaked",
            "x": [100 * row["question_only_rate"] for _, row in chosen],
            "y": [at for at, _ in chosen],
            "marker": {"color": "--c-question", "size": 10, "symbol": "diamond-open"},
            "customdata": [[row["benchmark"], row["split"]] for _, row in chosen],
            "hovertext": hovertext,
            "hoverinfo": "text",
        }
    ]


def _rate_text(row: Row) -> str:
    low, high = share(row["low"], 1), share(row["high"], 1)
    return (
        f"{whole_label(row['benchmark'])} · {whole_label(row['split'])}<br>"
        f"{count(row['n_leaked'])} of {count(row['n_items'])}: {share(row['leak_rate'], 1)}"
        f" ({low} to {high})"
    )


def _split_labels(rows: Rows) -> list[str]:
    return [wrapped(f"{shown(row['benchmark'])} · {shown(row['split'])}") for row in rows]


def parts(benchmarks: Rows) -> Chart:
    """Draw leaked items by what leaked, and question-only items, per benchmark."""
    rows = [row for row in benchmarks if row["n_leaked"] or row["n_question_only"]][:MOST_LINES]
    bars = [
        {
            **_bar(name, colour, pattern),
            "orientation": "h",
            "x": [row[key] for row in rows],
            "y": [*range(len(rows))],
            "customdata": [[row["benchmark"], row["split"]] for row in rows],
            "hovertext": [
                f"{whole_label(row['benchmark'])}: {count(row[key])} {name}" for row in rows
            ],
            "hoverinfo": "text",
        }
        for key, name, colour, pattern in _SHARES
        if any(row[key] for row in rows)
    ]
    layout = _lines(len(rows), _split_labels(rows)) | {"barmode": "stack", "bargap": 0.45}
    layout["xaxis"] |= _counts("items", _longest(bars))
    layout["height"] += 34
    return Chart("What was found of the items", bars, layout | _legend(), ("benchmark", "split"))


def flow(rows: Rows) -> Chart:
    """Draw a Sankey diagram from all items to what was found of them."""
    sums = {key: sum(row[key] for row in rows) for key in _FLOW_KEYS}
    leaked = sums["n_leaked"]
    ends = [
        (0, 1, leaked),
        (0, 2, sums["n_question_only"]),
        (0, 3, sums["n_clean"]),
        (0, 4, sums["n_not_indexable"]),
        (1, 5, sums["n_with_answer"]),
        (1, 6, sums["n_with_part_of_answer"]),
        (1, 7, sums["n_without_answer"]),
        (1, 8, sums["n_leaked_without_having_one"]),
        (0, 9, sums["n_not_fully_scanned"]),
    ]
    names = ["items", "leaked", "question-only", "clean", "not indexable"]
    names += ["with answer", "part of answer", "without answer", "has no answer"]
    names += ["not fully scanned"]
    sizes = [sums["n_items"], leaked, *(n for _, _, n in ends[1:])]
    return Chart(
        "From all items to what was found of them", [_sankey(names, sizes, ends)], _frame(320)
    )


_FLOW_KEYS = (
    *("n_items", "n_leaked", "n_question_only", "n_clean", "n_not_indexable"),
    *("n_with_answer", "n_with_part_of_answer", "n_without_answer"),
    *("n_leaked_without_having_one", "n_not_fully_scanned"),
)
_FLOW_COLOURS = [
    *("--c-soft", "--c-both", "--c-question", "--c-clean", "--c-blind"),
    *("--c-both", "--c-part", "--c-alone", "--c-soft", "--c-blind"),
]


def _sankey(
    names: Sequence[str], sizes: Sequence[int], ends: Sequence[tuple[int, int, int]]
) -> dict[str, Any]:
    """Build a Sankey trace; empty nodes are left out because Plotly piles them up in a corner."""
    shown_nodes = [number for number, size in enumerate(sizes) if size]
    place = {number: at for at, number in enumerate(shown_nodes)}
    links = [(place[a], place[b], n) for a, b, n in ends if n]
    return {
        "type": "sankey",
        "arrangement": "snap",
        "node": {
            "label": [f"{names[number]}: {count(sizes[number])}" for number in shown_nodes],
            "color": [_FLOW_COLOURS[number] for number in shown_nodes],
            "pad": 26,
            "thickness": 14,
            "line": {"width": 0},
            "hoverinfo": "none",
        },
        "link": {
            "source": [a for a, _, _ in links],
            "target": [b for _, b, _ in links],
            "value": [n for _, _, n in links],
            "color": "--c-link",
            "hoverinfo": "none",
        },
    }


def heat(cells: Rows, benchmarks: Rows, sources: Sequence[str]) -> Chart:
    """Draw leaked items by benchmark and source; squares without a leak have no colour."""
    n_items: Counter[str] = Counter()
    for row in benchmarks:
        n_items[row["benchmark"]] += row["n_items"] or 0
    n_leaked = Counter({(row["benchmark"], row["source"]): row["n_leaked"] for row in cells})
    names = sorted(n_items, key=lambda name: (-sum(n_leaked[name, one] for one in sources), name))
    names = names[:MOST_LINES]
    shares = [100 * n / max(1, n_items[name]) for (name, _), n in n_leaked.items()]
    squares = {
        "type": "heatmap",
        "x": [*range(len(sources))],
        "y": [*range(len(names))],
        **_by_square(lambda name, source: n_leaked[name, source], n_items, names, sources),
        "texttemplate": "%{text}",
        "hoverinfo": "text",
        "hoverongaps": True,
        "colorscale": [[0, "--c-low"], [1, "--c-high"]],
        "showscale": False,
        "zmin": 0,
        "zmax": max(shares, default=1),
        "xgap": 2,
        "ygap": 2,
    }
    layout = _squares(names, sources)
    opens = ("benchmark", "source")
    width = _NAME_PIXELS + _SQUARE_PIXELS * len(sources)
    return Chart("Leaked items by benchmark and source", [squares], layout, opens, width)


# Width of a count and a share; on narrow screens the figure scrolls.
_SQUARE_PIXELS = 56
_SOURCE_CHARACTERS = 14  # per line above a column
_NAME_PIXELS = 190


def _squares(names: Sequence[str], sources: Sequence[str]) -> dict[str, Any]:
    layout = _lines(len(names), [wrapped(name) for name in names], least_lines=2)
    layout["xaxis"] |= {
        "side": "top",
        "showgrid": False,
        "tickvals": [*range(len(sources))],
        "ticktext": [wrapped(source, _SOURCE_CHARACTERS) for source in sources],
        "range": [-0.5, len(sources) - 0.5],
    }
    layout["yaxis"] |= {"showgrid": False}
    return layout


def _by_square(
    n_leaked: Callable[[str, str], int],
    n_items: Mapping[str, int],
    names: Sequence[str],
    sources: Sequence[str],
) -> dict[str, Any]:
    """Return colour value, text, hover text and custom data of every square, row by row."""

    def hover_text(name: str, source: str) -> str:
        n = n_leaked(name, source)
        return (
            f"{whole_label(name)} in {whole_label(source)}<br>"
            f"{count(n)} items, {share(n, n_items[name])} of the benchmark"
        )

    values: Mapping[str, Callable[[str, str], Any]] = {
        "z": lambda name, source: 100 * n_leaked(name, source) / max(1, n_items[name]) or None,
        "text": lambda name, source: _count_and_share(n_leaked(name, source), n_items[name]),
        "hovertext": hover_text,
        "customdata": lambda name, source: [name, source],
    }
    return {
        key: [[value(name, source) for source in sources] for name in names]
        for key, value in values.items()
    }


def _count_and_share(n: int, whole: int) -> str:
    """Return count and share on two lines; empty for 0, without a share if the total is unknown."""
    return "<br>".join([count(n), *([share(n, whole)] if whole else [])]) if n else ""


def scores(rows: Rows, threshold: float | None) -> Chart:
    """Draw a histogram of one detector's scores: leaks, question-only and near misses."""
    leaks, questions, others = ([0] * _BINS for _ in range(3))
    for row in rows:
        leaks[row["bin"]] += row["n_contaminated"]
        questions[row["bin"]] += row["n_question_only"]
        others[row["bin"]] += row["n_matches"] - row["n_contaminated"] - row["n_question_only"]
    x = [(number + 0.5) / _BINS for number in range(_BINS)]
    bars = [
        {**_bar(name, colour, pattern), "x": x, "y": heights, "width": 1 / _BINS}
        | {"hovertemplate": "%{y:,} at a score of about %{x:.2f}<extra>" + name + "</extra>"}
        for name, colour, pattern, heights in (
            ("leaks", "--c-both", "", leaks),
            ("question-only", "--c-question", "x", questions),
            ("near misses", "--c-clean", "/", others),
        )
        if any(heights)
    ]
    first = min(min(row["bin"] for row in rows) / _BINS, 1.0 if threshold is None else threshold)
    layout = _frame(240) | {"barmode": "stack", "bargap": 0.06} | _legend()
    layout["xaxis"] = {"title": {"text": "score"}, "range": [first - 0.02, 1.01]}
    layout["yaxis"] = _counts("matches", max(map(sum, zip(leaks, questions, others, strict=True))))
    return Chart("Matches by score", bars, layout | _threshold_line(threshold, (first, 1.0)))


def sweep(rows: Rows, threshold: float | None) -> Chart:
    """Draw how many items would count as leaked at each threshold, by score only.

    The number at a step applies to all thresholds above the previous step.
    """
    steps = _still_leaked(rows)
    line = {
        "type": "scatter",
        "mode": "lines+markers" if len(steps) < 30 else "lines",
        "x": [at for at, _ in steps],
        "y": [n for _, n in steps],
        "line": {"shape": "vh", "color": "--c-both", "width": 2},
        "marker": {"size": 4, "color": "--c-both"},
        "hovertemplate": "%{y:,} items at %{x}<extra></extra>",
    }
    layout = _frame(240)
    layout["xaxis"] = {"title": {"text": "threshold"}}
    layout["yaxis"] = _counts("items that leak", steps[0][1])
    drawn = _threshold_line(threshold, (steps[0][0], steps[-1][0]))
    return Chart("Items by threshold", [line], layout | drawn)


def _still_leaked(rows: Rows) -> list[tuple[float, int]]:
    """Return thresholds with the number of items that leak at them."""
    ending: dict[float, int] = {}
    for row in rows:
        ending[row["holds_to"]] = ending.get(row["holds_to"], 0) + row["n_items"]
    steps = sorted(ending)
    numbers = accumulate(ending[at] for at in reversed(steps))
    return list(zip(steps, reversed(list(numbers)), strict=True))


def agreement(rows: Rows) -> Chart:
    """Draw, for every two detectors, the items that both or only one of them call leaked."""
    kinds = [
        ("n_rule_only", "only the first", "--c-question", "/"),
        ("n_both", "both", "--c-both", ""),
        ("n_other_only", "only the second", "--c-alone", "x"),
    ]
    bars = [
        {
            **_bar(name, colour, pattern),
            "orientation": "h",
            "x": [row[key] for row in rows],
            "y": [*range(len(rows))],
            "hovertemplate": "%{x:,} items<extra>" + name + "</extra>",
        }
        for key, name, colour, pattern in kinds
        if any(row[key] for row in rows)
    ]
    labels = [wrapped(f"{shown(row['rule'])} – {shown(row['other'])}") for row in rows]
    layout = _lines(len(rows), labels) | {"barmode": "stack", "bargap": 0.45} | _legend()
    layout["xaxis"] |= _counts("items that leaked", _longest(bars))
    layout["height"] += 34
    return Chart("Agreement between detectors", bars, layout)


def removed(rows: Rows, mixtures: Sequence[str]) -> Chart:
    """Draw the documents that each mixture left out or cut, by reason."""
    reasons = sorted({row["why"] for row in rows})
    numbers: dict[tuple[str, str], int] = {}
    for row in rows:
        key = (row["mixture"], row["why"])
        numbers[key] = numbers.get(key, 0) + row["n_documents"]
    bars = [
        {
            **_bar(label(why), *_REASONS.get(why, ("--c-soft", "+"))),
            "orientation": "h",
            "x": [numbers.get((mixture, why), 0) for mixture in mixtures],
            "y": [*range(len(mixtures))],
            "hovertemplate": "%{x:,} documents<extra>" + label(why) + "</extra>",
        }
        for why in reasons
    ]
    layout = _lines(len(mixtures), [wrapped(name) for name in mixtures])
    layout |= {"barmode": "stack", "bargap": 0.45} | _legend()
    layout["xaxis"] |= _counts("documents left out or cut", _longest(bars))
    layout["height"] += 34
    return Chart("Documents that mixtures left out or cut", bars, layout)


def by_detector(rows: Rows) -> Iterable[tuple[str, Rows]]:
    """Group rows by detector."""
    ordered = sorted(rows, key=lambda row: row["rule"])
    for detector, group in groupby(ordered, key=lambda row: row["rule"]):
        yield detector, list(group)


def _bar(name: str, colour: str, pattern: str) -> dict[str, Any]:
    """Return a bar trace; the pattern distinguishes it without colour."""
    marker: dict[str, Any] = {"color": colour, "line": {"width": 0}}
    if pattern:
        marker["pattern"] = {"shape": pattern, "fgcolor": "--c-paper", "fillmode": "overlay"}
        marker["pattern"] |= {"size": 6, "solidity": 0.25}
    return {"type": "bar", "name": name, "marker": marker}


def _frame(height: int) -> dict[str, Any]:
    return {"height": height, "showlegend": False}


def _lines(n: int, labels: Sequence[str], *, least_lines: int = 1) -> dict[str, Any]:
    """Return a layout with one row per label, the first on top. Labels may be equal.

    `least_lines`: lines of text for which every row has room.
    """
    most = max([least_lines, *map(n_lines, labels)])
    pixels = _LINE_PIXELS + _NEXT_LINE_PIXELS * (most - 1)
    return {
        **_frame(_FRAME_PIXELS + pixels * max(1, n)),
        "xaxis": {"zeroline": False},
        "yaxis": {
            "tickvals": [*range(n)],
            "ticktext": [*labels],
            "range": [n - 0.5, -0.5],
            "zeroline": False,
        },
    }


def _counts(title: str, highest: int) -> dict[str, Any]:
    """Return an axis of integers that starts at 0."""
    axis = {"title": {"text": title}, "rangemode": "tozero"}
    return axis | ({"dtick": 1} if highest < _FEW else {})


_FEW = 10  # with a tick at every integer, more would overlap


def _longest(bars: Sequence[Mapping[str, Any]]) -> int:
    """Return the length of the longest stacked bar."""
    return max(map(sum, zip(*(bar["x"] for bar in bars), strict=True)), default=0)


def _legend() -> dict[str, Any]:
    legend = {"orientation": "h", "x": 0, "y": 1, "yanchor": "bottom", "traceorder": "normal"}
    return {"showlegend": True, "legend": legend}


def _threshold_line(threshold: float | None, ends: tuple[float, float]) -> dict[str, Any]:
    """Return a vertical line, labelled on the side with more room."""
    if threshold is None:
        return {}
    is_late = threshold > sum(ends) / 2
    line = {"color": "--c-ink", "width": 1.5, "dash": "dash"}
    return {
        "shapes": [
            {"type": "line", "yref": "paper", "y0": 0, "y1": 1, "x0": threshold, "x1": threshold}
            | {"line": line}
        ],
        "annotations": [
            {"text": f"threshold {threshold:g}", "x": threshold, "y": 1, "yref": "paper"}
            | {"xanchor": "right" if is_late else "left", "xshift": -4 if is_late else 4}
            | {"showarrow": False, "yanchor": "top", "bgcolor": "--c-paper"}
        ],
    }
