"""Figures of how leaks are spread over the corpus: positions, documents per item, concentration."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from decon_core.report.html import descriptions
from decon_core.report.html.charts import MOST_LINES, TRACES, Chart, counts, frame, lines
from decon_core.report.html.gather import Facts, Rows
from decon_core.report.html.labels import count, share, whole_label, wrapped
from decon_core.wording import counted

_PARTS = 50  # the query `positions` divides a source into so many


def spread(facts: Facts) -> list[Chart]:
    """Return the figures.

    A report that was imported from another program may not list documents or items; then their
    figures are left out.
    """
    return [
        *_positions(facts["positions"]),
        *_documents_per_item(facts["documents_per_item"]),
        _concentration(facts["concentration"]),
    ]


def _positions(rows: Rows) -> Iterator[Chart]:
    """Yield squares for the documents with a leak: a line per source, from first to last."""
    of_source: Counter[str] = Counter()
    for row in rows:
        of_source[row["source"]] += row["n_documents"]
    if not of_source:
        return
    sources = [source for source, _ in of_source.most_common(MOST_LINES)]
    n = Counter({(row["source"], row["part"]): row["n_documents"] for row in rows})
    parts = range(_PARTS)
    step = 100 // _PARTS
    trace = TRACES["heat"] | {
        "x": [step * part + step / 2 for part in parts],
        "y": [*range(len(sources))],
        "z": [[n[source, part] or None for part in parts] for source in sources],
        "customdata": [[[source]] * _PARTS for source in sources],
        "texttemplate": "",
        "hovertext": [
            [
                f"{whole_label(source)}, {step * part} to {step * (part + 1)} %<br>"
                f"{counted(n[source, part], 'document')} with a leak"
                for part in parts
            ]
            for source in sources
        ],
        "zmax": max(n.values()),
        "colorbar": TRACES["heat"]["colorbar"]
        | {"ticksuffix": "", "tickformat": ",d", "title": {"text": "documents", "side": "top"}},
    }
    layout = lines([*map(wrapped, sources)])
    # The colour bar needs the height of five lines.
    layout["height"] = max(layout["height"], 230)
    title = {"text": "position in the source, in % of its documents"}
    layout["xaxis"] |= {"title": title, "range": [0, 100], "showgrid": False}
    layout["yaxis"] |= {"showgrid": False}
    (source, part), most = max(n.items(), key=lambda square: square[1])
    ends = range(step * part, step * (part + 1))
    description = descriptions.positions(of_source, most, source, ends)
    yield Chart("Positions of documents with a leak", [trace], layout, description, ("source",))


def _documents_per_item(rows: Rows) -> Iterator[Chart]:
    """Yield leaked items by the number of documents they are in; a bar has up to twice the last."""
    if not rows:
        return
    items: Counter[int] = Counter()
    for row in rows:
        items[(row["n_documents"] - 1).bit_length()] += row["n_items"]
    bars = {_range(power): items[power] for power in range(max(items) + 1)}
    trace = {
        "type": "bar",
        "x": [*bars],
        "y": [*bars.values()],
        "text": [count(n) if n else "" for n in bars.values()],
        "textposition": "outside",
        "cliponaxis": False,
        "marker": {"color": "--c-both", "line": {"width": 1, "color": "--c-edge"}},
        "hovertemplate": "documents: %{x}<br>items: %{y:,}<extra></extra>",
    }
    layout = frame(260)
    layout["xaxis"] = {"title": {"text": "documents that contain the item"}, "type": "category"}
    layout["yaxis"] = counts("leaked items", max(bars.values()))
    description = descriptions.documents_per_item(bars)
    yield Chart("Documents per leaked item", [trace], layout, description)


def _range(power: int) -> str:
    """Return the numbers from above half of a power of two up to it: 1, 2, 3–4, 5–8."""
    first, last = 2**power // 2 + 1, 2**power
    return count(last) if power < 2 else f"{count(first)}–{count(last)}"


def _concentration(rows: Rows) -> Chart:
    """Draw the share of leaked items that the documents with the most of them hold."""
    n_all, n_documents = rows[0]["n_all"], rows[-1]["n_documents"]
    points = [(0, 0), *((row["n_documents"], row["n_items"]) for row in rows)]
    trace = TRACES["steps"] | {
        "mode": "lines",
        "line": {"shape": "hv", "color": "--c-both", "width": 2},
        "x": [documents for documents, _ in points],
        "y": [100 * items / n_all for _, items in points],
        "hovertext": [
            f"{counted(documents, 'document')}: {count(items)} of {counted(n_all, 'item')} "
            f"({share(items, n_all)})"
            for documents, items in points
        ],
        "hoverinfo": "text",
        "hovertemplate": None,
    }
    layout = frame(260)
    layout["xaxis"] = counts("documents, most leaked items first", n_documents)
    layout["yaxis"] = {"title": {"text": "leaked items, in %"}, "range": [0, 104]}
    half = next(row["n_documents"] for row in rows if 2 * row["n_items"] >= n_all)
    description = descriptions.concentration(half, n_documents, n_all)
    return Chart("Concentration of leaked items in documents", [trace], layout, description)
