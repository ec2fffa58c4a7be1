"""Format a comparison as tables: for the terminal, and as one self-contained HTML file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from decon_core.compare.differences import (
    KINDS,
    QUESTION_ONLY_IN_BOTH,
    QUESTION_ONLY_KINDS,
    Comparison,
)
from decon_core.wording import counted, render

Cell = str | int | float | None
Row = Mapping[str, Any]

SIDES = ("first", "second")

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
    n_shards, statuses = comparison["n_shards"], comparison["statuses"]
    standings = ", ".join(f"{n:,} {standing}" for standing, n in n_shards.items())
    tables = (
        _section("Settings", "", _SETTING_HEADS, _settings(comparison)),
        _section(
            "Shards",
            f"{standings}.",
            ("source", "shard", "where"),
            [tuple(one.values()) for one in comparison["shards"][:most]],
            sum(n_shards.values()) - n_shards.get("in both", 0),
        ),
        _section("Leak rates", _ABOUT_RATES, _RATE_HEADS, map(_rate, comparison["benchmarks"])),
        _section("Items with another status", _ABOUT_ITEMS, _STATUS_HEADS, map(_status, statuses)),
        _section(
            "List of these items",
            "",
            _ITEM_HEADS,
            map(_item, comparison["items"][:most]),
            sum(one["n"] for one in statuses),
        ),
        _section(
            "Question-only",
            _ABOUT_QUESTION_ONLY,
            ("where", "documents and items"),
            [(kind, n) for kind in QUESTION_ONLY_KINDS if (n := _n_calls(comparison, kind))],
        ),
        *(
            _section(
                f"Leaks {kind}",
                _ABOUT_CALLS[kind],
                _CALL_HEADS,
                map(_call, comparison["calls"][kind][:most]),
                _n_calls(comparison, kind),
            )
            for kind in KINDS
        ),
        _section(
            "Not comparable",
            _ABOUT_NOT_COMPARABLE,
            ("why", "leaks of first", "leaks of second"),
            [tuple(one.values()) for one in comparison["not_comparable"]],
        ),
    )
    return (one for one in tables if one.rows)


def _section(
    title: str,
    about: str,
    heads: Sequence[str],
    rows: Iterable[Sequence[Cell]],
    n_all: int | None = None,
) -> Section:
    """Return a table; `n_all`: the number of its rows, if only the first are passed."""
    shown = list(rows)
    return Section(title, about, heads, shown, 0 if n_all is None else n_all - len(shown))


def _n_calls(comparison: Comparison, kind: str) -> int:
    return int(comparison["n_calls"].get(kind, 0))


_SETTING_HEADS = ("setting", "first", "second")


def _settings(comparison: Comparison) -> Iterator[tuple[Cell, ...]]:
    for one in comparison["settings"]:
        yield one["setting"], _plain(one["first"]), _plain(one["second"])
    for one in comparison["benchmarks"]:
        versions = one["version_of_first"], one["version_of_second"]
        if versions[0] != versions[1]:
            yield f"version of {one['benchmark']}", *map(_or_dash, versions)


_RATE_HEADS = (
    *("benchmark", "items", "leaked in first", "in second", "rate of first", "of second"),
    *("difference", "where both looked", "second there", "question-only"),
)


def _rate(one: Row) -> tuple[Cell, ...]:
    return (
        one["benchmark"],
        _both(one, "n_items"),
        *(_plain(one[f"n_leaked_of_{side}"]) for side in SIDES),
        *(_percent(one[f"rate_of_{side}"]) for side in SIDES),
        _percent(one["difference"], sign="+"),
        *(_plain(one[f"n_shared_of_{side}"]) for side in SIDES),
        _both(one, "n_question_only"),
    )


_STATUS_HEADS = ("in first", "in second", "items", "of them elsewhere")
_ITEM_HEADS = ("benchmark", "split", "item", "in first", "in second", "where")


def _status(one: Row) -> tuple[Cell, ...]:
    return (*_statuses(one), one["n"], one["n"] - one["n_comparable"])


def _item(one: Row) -> tuple[Cell, ...]:
    place = (one["benchmark"], one["split"], one["instance_index"])
    return (*place, *_statuses(one), "" if one["is_comparable"] else "elsewhere")


def _statuses(one: Row) -> Iterator[str]:
    return (one[f"status_of_{side}"] or "not listed" for side in SIDES)


_CALL_HEADS = (
    *("source", "shard", "row", "benchmark", "split", "item"),
    *("score in first", "in second", "detectors of first", "of second", "verdicts", "class"),
)
_PLACE = ("source", "shard_name", "row", "benchmark", "split", "instance_index")


def _call(one: Row) -> tuple[Cell, ...]:
    scores = (one[f"score_of_{side}"] for side in SIDES)
    return (
        *(one[name] for name in _PLACE),
        *("–" if score is None else f"{score:.3f}" for score in scores),
        *(", ".join(one[f"detectors_of_{side}"] or ()) for side in SIDES),
        _both(one, "verdict"),
        _both(one, "class"),
    )


def _both(row: Row, name: str) -> str:
    """Format a value of both reports, or two that differ."""
    one, two = (row[f"{name}_of_{side}"] for side in SIDES)
    return _plain(one) if one == two else f"{_or_dash(one)} | {_or_dash(two)}"


def _or_dash(value: object) -> str:
    return _plain(value) or "–"


def _plain(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return "" if value is None else f"{value:,}" if type(value) is int else str(value)


def _percent(share: float | None, *, sign: str = "-") -> str:
    # Adding 0 turns -0.0 into 0.0, which would be shown with the wrong sign.
    return "–" if share is None else f"{round(100 * share, 2) + 0.0:{sign}.2f}%"


def as_html(comparison: Comparison, *, most: int) -> str:
    """Return the comparison as one HTML file without scripts; all values are escaped."""
    return render(
        "compare/page.html.j2",
        sides={side: comparison[side] for side in SIDES},
        notes=comparison.get("notes", ()),
        headline=headline(comparison),
        sections=sections(comparison, most=most),
        plain=_plain,
    )
