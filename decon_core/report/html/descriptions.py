"""Describe figures in sentences, for readers who do not see them: what is drawn, and its extremes.

Each function takes what the function of the same name in charts.py draws.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter

from decon_core.report.html.gather import Row, Rows
from decon_core.report.html.labels import count, share, shown
from decon_core.wording import counted


def rates(rows: Rows) -> str:
    """Describe leak rates: the highest and the lowest."""
    n_no_answer = sum(row["n_no_answer"] or 0 for row in rows)
    sentences = [f"{counted(len(rows), 'dot')}, one for each benchmark and split."]
    ranked = sorted(rows, key=itemgetter("leak_rate"))
    if ranked:
        highest, lowest = ranked[-1], ranked[0]
        sentences.append(f"Highest: {_rate(highest)}.")
        if highest["leak_rate"] > lowest["leak_rate"]:
            sentences.append(f"Lowest: {_rate(lowest)}.")
    if n_no_answer:
        sentences.append(f"{_items(n_no_answer)} found without the answer.")
    return " ".join(sentences)


def _rate(row: Row) -> str:
    name = f"{shown(row['benchmark'])} {shown(row['split'])}"
    rate, low, high = (share(row[column], 1) for column in ("leak_rate", "low", "high"))
    return f"{name} with {rate}, interval {low} to {high}"


def stacked(labels: Sequence[str], bars: Iterable[tuple[str, Sequence[int]]], noun: str) -> str:
    """Describe stacked bars: the sum of each colour, and the longest bar."""
    named = [(name, [*lengths]) for name, lengths in bars]
    sums = "; ".join(f"{name}: {count(sum(lengths))}" for name, lengths in named)
    text = f"{counted(len(labels), 'bar')}. {sums or 'All are empty'}."
    rows = [lengths for _, lengths in named]
    totals = [sum(column) for column in zip(*rows, strict=True)]
    if len(totals) > 1:
        longest = max(range(len(totals)), key=totals.__getitem__)
        text += f" Longest: {shown(labels[longest])} with {count(totals[longest])} {noun}."
    return text


def flow(sizes: Mapping[str, int], links: Iterable[tuple[str, str]]) -> str:
    """Describe a diagram of flows: every part with its whole."""
    parts = [
        f"{count(sizes[part])} of {count(sizes[whole])} {whole}: {part}" for whole, part in links
    ]
    return f"{'; '.join(parts)}." if parts else "No items."


def heat(
    names: Sequence[str], sources: Sequence[str], n_leaked: Mapping[tuple[str, str], int]
) -> str:
    """Describe squares: how many have leaks, and which has most."""
    squares = {(name, source): n_leaked[name, source] for name in names for source in sources}
    n_with = sum(n > 0 for n in squares.values())
    text = f"{counted(len(names), 'benchmark')} by {counted(len(sources), 'source')}: "
    text += f"{n_with} of {counted(len(squares), 'square')} with a leak."
    if n_with:
        (name, source), n = max(squares.items(), key=itemgetter(1))
        text += f" Most: {shown(name)} in {shown(source)} with {_items(n)}."
    return text


def scores(bins: Iterable[tuple[str, Sequence[int]]], threshold: float | None) -> str:
    """Describe a histogram: the sum of each class, the range, and the threshold."""
    named = [(name, [*heights]) for name, heights in bins]
    rows = [heights for _, heights in named]
    columns = [sum(column) for column in zip(*rows, strict=True)]
    used = [at for at, height in enumerate(columns) if height]
    sums = "; ".join(f"{name}: {count(sum(heights))}" for name, heights in named)
    text = f"Matches by class: {sums}."
    if used:
        first, end = used[0] / len(columns), (used[-1] + 1) / len(columns)
        text += f" Scores from {first:.2f} to {end:.2f}."
    return text if threshold is None else f"{text} Threshold: {threshold:g}."


def sweep(thresholds: Sequence[float], n_leaked: Sequence[int], threshold: float | None) -> str:
    """Describe a falling line: its ends, and its height at the threshold."""
    text = f"From {_items(n_leaked[0])} at {thresholds[0]:.2f} to {_items(n_leaked[-1])} at "
    text += f"{thresholds[-1]:.2f}."
    if threshold is None:
        return text
    at_threshold = next(
        (n for at, n in zip(thresholds, n_leaked, strict=True) if at >= threshold), 0
    )
    return f"{text} {_items(at_threshold)} at the threshold of {threshold:g}."


def calibration(rows: Rows) -> str:
    """Describe steps: each one with its interval."""
    steps = [
        f"{share(row['probability'], 1)} ({share(row['low'], 1)} to {share(row['high'], 1)}) "
        f"from a score of {row['score_from']:.3f}"
        for row in rows
    ]
    return f"{counted(len(rows), 'step')}: {'; '.join(steps)}."


def removed(numbers: Mapping[tuple[str, str], int], n_in: Mapping[str, int]) -> str:
    """Describe what each mixture left out or cut, by reason."""
    parts = [
        f"{shown(name)}: {share(n, n_in[name])} ({count(n)}), reason: {shown(why)}"
        for (why, name), n in sorted(numbers.items(), key=lambda part: part[0][::-1])
    ]
    return f"Share of documents removed from {counted(len(n_in), 'mixture')}. {'; '.join(parts)}."


def positions(n_with_leak: Mapping[str, int], most: int, source: str, ends: range) -> str:
    """Describe a strip of squares per source: its documents, and the square with the most."""
    sums = "; ".join(f"{shown(name)}: {count(n)}" for name, n in n_with_leak.items())
    where = f"{ends.start} % to {ends.stop} % of {shown(source)}"
    return f"Documents with a leak by source: {sums}. Most: {count(most)}, at {where}."


def documents_per_item(bars: Mapping[str, int]) -> str:
    """Describe bars: the leaked items by their number of documents."""
    parts = [f"{_items(n)} in {documents}" for documents, n in bars.items() if n]
    return f"Documents per leaked item: {'; '.join(parts)}."


def concentration(n_documents: int, n_all_documents: int, n_items: int) -> str:
    """Describe a rising line: the documents that hold half of the items, and all."""
    half, whole = counted(n_documents, "document"), counted(n_all_documents, "document")
    return f"Half of the {_items(n_items)} are in the first {half}, all in the first {whole}."


def _items(n: int) -> str:
    return counted(n, "item")
