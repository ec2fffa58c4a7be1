"""Format a comparison as tables: for the terminal, and as one self-contained HTML file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from decon_core.compare.differences import (
    KINDS,
    QUESTION_ONLY_IN_BOTH,
    QUESTION_ONLY_KINDS,
    Comparison,
)
from decon_core.templates import render
from decon_core.wording import counted

Cell = str | int | float | None

_NOT_COMPARABLE = "not comparable"

_ABOUT_RATES = (
    "Share of each benchmark's items that leaked. The columns from 'where both looked' on count "
    "leaks in the shards, rows and items that both reports cover."
)
_ABOUT_NOT_COMPARABLE = (
    "Leaks in one report where the other scanned nothing or something else. They are not in the "
    "other tables."
)
_ABOUT_QUESTION_ONLY = (
    "Pairs of a document and an item whose question it contains without the answer; a leak in "
    "neither report."
)
_ABOUT_ITEMS = (
    "Items with different statuses (leaked, question-only, clean, not indexable) in the two "
    "reports. Elsewhere: the change comes from shards or rows that only one report covers."
)
_ABOUT_CALLS = {
    "only in first": "Leaks in the first report only. The second score is that of its best match.",
    "only in second": "Leaks in the second report only. The first score is that of its best match.",
    "changed": "Leaks in both reports, with different scores, detectors or verdicts.",
}


@dataclass(frozen=True)
class Section:
    """A table with a title, and the number of rows not shown."""

    title: str
    about: str
    heads: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    n_more: int = 0


def headline(comparison: Comparison) -> str:
    """Return the counts of the comparison as one line."""
    if comparison["is_same"]:
        n = _n_calls(comparison, QUESTION_ONLY_IN_BOTH)
        also = f", {n:,} {QUESTION_ONLY_IN_BOTH}" if n else ""
        return f"the same: {_n_calls(comparison, 'same'):,} leaks in both{also}"
    n_items = sum(one["n"] for one in comparison["statuses"])
    parts = [
        f"{_n_calls(comparison, 'same'):,} the same",
        *(f"{_n_calls(comparison, kind):,} leaks {kind}" for kind in KINDS),
        f"{_n_calls(comparison, _NOT_COMPARABLE):,} {_NOT_COMPARABLE}",
        *(f"{n:,} {kind}" for kind in QUESTION_ONLY_KINDS if (n := _n_calls(comparison, kind))),
        f"{counted(n_items, 'item')} with another status",
    ]
    return "; ".join(parts)


def sections(comparison: Comparison, *, most: int) -> Iterator[Section]:
    """Yield the tables that are not empty, each with its first `most` rows."""
    tables = (
        Section("Settings", "", ("setting", "first", "second"), _settings(comparison)),
        _shards(comparison, most),
        Section("Leak rates", _ABOUT_RATES, _RATE_HEADS, _rates(comparison)),
        _statuses(comparison),
        _items(comparison, most),
        _question_only(comparison),
        *(_calls(comparison, kind, most) for kind in KINDS),
        Section(
            "Not comparable",
            _ABOUT_NOT_COMPARABLE,
            ("why", "leaks of first", "leaks of second"),
            [
                (one["why_not"], one["n_in_first"], one["n_in_second"])
                for one in comparison["not_comparable"]
            ],
        ),
    )
    return (one for one in tables if one.rows)


def _question_only(comparison: Comparison) -> Section:
    rows = [(kind, n) for kind in QUESTION_ONLY_KINDS if (n := _n_calls(comparison, kind))]
    heads = ("where", "documents and items")
    return Section("Question-only", _ABOUT_QUESTION_ONLY, heads, rows)


def _n_calls(comparison: Comparison, kind: str) -> int:
    return int(comparison["n_calls"].get(kind, 0))


def _settings(comparison: Comparison) -> list[tuple[Cell, ...]]:
    rows = [
        (one["setting"], *map(_plain, (one["first"], one["second"])))
        for one in comparison["settings"]
    ]
    versions = [
        (
            f"version of {one['benchmark']}",
            _or_dash(one["version_of_first"]),
            _or_dash(one["version_of_second"]),
        )
        for one in comparison["benchmarks"]
        if one["version_of_first"] != one["version_of_second"]
    ]
    return [*rows, *versions]


def _shards(comparison: Comparison, most: int) -> Section:
    counts = ", ".join(f"{n:,} {standing}" for standing, n in comparison["n_shards"].items())
    rows = [(one["source"], one["shard_name"], one["standing"]) for one in comparison["shards"]]
    n = sum(comparison["n_shards"].values()) - comparison["n_shards"].get("in both", 0)
    heads = ("source", "shard", "where")
    return Section("Shards", f"{counts}.", heads, rows[:most], n - len(rows[:most]))


_RATE_HEADS = (
    *("benchmark", "items", "leaked in first", "in second", "rate of first", "of second"),
    *("difference", "where both looked", "second there", "question-only"),
)


def _rates(comparison: Comparison) -> list[tuple[Cell, ...]]:
    return [
        (
            one["benchmark"],
            _both(one["n_items_of_first"], one["n_items_of_second"]),
            _count(one["n_leaked_of_first"]),
            _count(one["n_leaked_of_second"]),
            _percent(one["rate_of_first"]),
            _percent(one["rate_of_second"]),
            _percent(one["difference"], sign="+"),
            _count(one["n_shared_of_first"]),
            _count(one["n_shared_of_second"]),
            _both(one["n_question_only_of_first"], one["n_question_only_of_second"]),
        )
        for one in comparison["benchmarks"]
    ]


def _statuses(comparison: Comparison) -> Section:
    rows = [
        (
            one["status_of_first"] or "not comparison",
            one["status_of_second"] or "not comparison",
            one["n"],
            one["n"] - one["n_comparable"],
        )
        for one in comparison["statuses"]
    ]
    heads = ("in first", "in second", "items", "of them elsewhere")
    return Section("Items with another status", _ABOUT_ITEMS, heads, rows)


def _items(comparison: Comparison, most: int) -> Section:
    rows = [
        (
            one["benchmark"],
            one["split"],
            one["instance_index"],
            one["status_of_first"] or "not comparison",
            one["status_of_second"] or "not comparison",
            "" if one["is_comparable"] else "elsewhere",
        )
        for one in comparison["items"][:most]
    ]
    n = sum(one["n"] for one in comparison["statuses"])
    heads = ("benchmark", "split", "item", "in first", "in second", "where")
    return Section("List of these items", "", heads, rows, n - len(rows))


_CALL_HEADS = (
    *("source", "shard", "row", "benchmark", "split", "item"),
    *("score in first", "in second", "detectors of first", "of second", "verdicts", "class"),
)


def _calls(comparison: Comparison, kind: str, most: int) -> Section:
    rows = [_call(one) for one in comparison["calls"][kind][:most]]
    n = _n_calls(comparison, kind)
    return Section(f"Leaks {kind}", _ABOUT_CALLS[kind], _CALL_HEADS, rows, n - len(rows))


def _call(one: Mapping[str, Any]) -> tuple[Cell, ...]:
    return (
        one["source"],
        one["shard_name"],
        one["row"],
        one["benchmark"],
        one["split"],
        one["instance_index"],
        _score(one["score_of_first"]),
        _score(one["score_of_second"]),
        ", ".join(one["rules_of_first"] or ()),
        ", ".join(one["rules_of_second"] or ()),
        _both(one["verdict_of_first"], one["verdict_of_second"]),
        _both(one["class_of_first"], one["class_of_second"]),
    )


def _both(one: object, two: object) -> str:
    """Format one value, or two that differ."""
    if one == two:
        return _plain(one)
    return f"{_or_dash(one)} | {_or_dash(two)}"


def _or_dash(value: object) -> str:
    return _plain(value) or "–"


def _plain(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return "" if value is None else f"{value:,}" if type(value) is int else str(value)


def _count(n: int | None) -> str:
    return "" if n is None else f"{n:,}"


def _score(score: float | None) -> str:
    return "–" if score is None else f"{score:.3f}"


def _percent(share: float | None, *, sign: str = "-") -> str:
    # Adding 0 turns -0.0 into 0.0, which would be shown with the wrong sign.
    return "–" if share is None else f"{round(100 * share, 2) + 0.0:{sign}.2f}%"


def as_html(comparison: Comparison, *, most: int) -> str:
    """Return the comparison as one HTML file without scripts; all values are escaped."""
    return render(
        "compare/page.html.j2",
        sides={side: comparison[side] for side in ("first", "second")},
        notes=comparison.get("notes", ()),
        headline=headline(comparison),
        sections=sections(comparison, most=most),
        plain=_plain,
    )
