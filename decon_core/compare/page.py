"""Format a comparison as tables: for the terminal, and as one self-contained HTML file.

page.toml has the titles and heads of the tables.
"""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from decon_core.compare import differences
from decon_core.wording import counted, percent, render

Cell = str | int | float | None
Row = Mapping[str, Any]

SIDES = ("first", "second")

_NOT_COMPARABLE = "not comparable"
_PLACE = ("source", "shard_name", "row", "benchmark", "split", "instance_index")
_TABLES = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))


@dataclass(frozen=True)
class Section:
    """A table with a title, and the number of rows not shown."""

    title: str
    about: str
    heads: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    n_more: int = 0


_NOUNS = {"no answer": "no-answer finding", "review": "unreviewed finding"}


def _others(n: int, kind: str) -> str:
    """Return a count of findings that are a leak in neither report, such as "2 ... in both"."""
    finding = next(name for name in _NOUNS if kind.startswith(name))
    return f"{counted(n, _NOUNS[finding])}{kind.removeprefix(finding)}"


def headline(comparison: differences.Comparison) -> str:
    """Return the counts of the comparison as one line."""
    n = Counter[str](comparison["n_findings"])
    if comparison["is_same"]:
        also = [_others(n[kind], kind) for kind in differences.IN_BOTH if n[kind]]
        return ", ".join([f"the same: {counted(n['same'], 'leak')} in both", *also])
    n_items = sum(status["n"] for status in comparison["statuses"])
    parts = [
        f"{counted(n['same'], 'leak')} unchanged",
        *(f"{counted(n[kind], 'leak')} {kind}" for kind in differences.KINDS),
        f"{n[_NOT_COMPARABLE]:,} {_NOT_COMPARABLE}",
        *(_others(n[kind], kind) for kind in differences.OTHER_KINDS if n[kind]),
        f"{counted(n_items, 'item')} with a different status",
    ]
    return "; ".join(parts)


def sections(comparison: differences.Comparison, *, most: int) -> Iterator[Section]:
    """Yield the tables that are not empty, each with its first `most` rows."""
    n_shards, statuses = comparison["n_shards"], comparison["statuses"]
    standings = ", ".join(f"{count:,} {standing}" for standing, count in n_shards.items())
    n = Counter[str](comparison["n_findings"])
    rows: dict[str, Iterable[Sequence[Cell]]] = {
        "settings": _settings(comparison),
        "shards": [tuple(row.values()) for row in comparison["shards"][:most]],
        "rates": map(_rate, comparison["benchmarks"]),
        "statuses": [
            (*_statuses(row), row["n"], row["n"] - row["n_comparable"]) for row in statuses
        ],
        "items": map(_item, comparison["items"][:most]),
        "others": [(kind, n[kind]) for kind in differences.OTHER_KINDS if n[kind]],
        **{kind: map(_finding, comparison["findings"][kind][:most]) for kind in differences.KINDS},
        "not_comparable": [tuple(row.values()) for row in comparison["not_comparable"]],
    }
    # The number of all rows, where only the first ones are shown.
    n_rows = {kind: n[kind] for kind in differences.KINDS}
    n_rows["shards"] = sum(n_shards.values()) - n_shards.get("in both", 0)
    n_rows["items"] = sum(status["n"] for status in statuses)
    for name, table in _TABLES.items():
        shown = list(rows[name])
        about = table.get("about", "").format(standings=standings)
        n_more = n_rows.get(name, len(shown)) - len(shown)
        if shown:
            yield Section(table["title"], about, table["heads"], shown, n_more)


def _settings(comparison: differences.Comparison) -> Iterator[tuple[Cell, ...]]:
    for row in comparison["settings"]:
        yield row["setting"], _plain(row["first"]), _plain(row["second"])
    for row in comparison["benchmarks"]:
        first, second = row["version_of_first"], row["version_of_second"]
        if first != second:
            yield f"version of {row['benchmark']}", _or_dash(first), _or_dash(second)


def _rate(row: Row) -> tuple[Cell, ...]:
    counts = [
        (row[f"n_leaked_checkable_of_{side}"], row[f"n_checkable_of_{side}"]) for side in SIDES
    ]
    return (
        row["benchmark"],
        _both(row, "n_items"),
        *(_plain(row[f"n_leaked_of_{side}"]) for side in SIDES),
        *("–" if n is None else f"{n_leaked:,} of {n:,}" for n_leaked, n in counts),
        *(_percent(row[f"rate_of_{side}"]) for side in SIDES),
        _percent(row["difference"], sign="+"),
        *(_plain(row[f"n_shared_of_{side}"]) for side in SIDES),
        _both(row, "n_no_answer"),
    )


def _item(row: Row) -> tuple[Cell, ...]:
    place = (row["benchmark"], row["split"], row["instance_index"])
    return (*place, *_statuses(row), "" if row["is_comparable"] else "elsewhere")


def _statuses(row: Row) -> Iterator[str]:
    return (row[f"status_of_{side}"] or "not listed" for side in SIDES)


def _finding(row: Row) -> tuple[Cell, ...]:
    scores = (row[f"score_of_{side}"] for side in SIDES)
    return (
        *(row[name] for name in _PLACE),
        *("–" if score is None else f"{score:.3f}" for score in scores),
        *(", ".join(row[f"detectors_of_{side}"] or ()) for side in SIDES),
        _both(row, "verdict"),
        _both(row, "class"),
    )


def _both(row: Row, name: str) -> str:
    """Format a value of both reports, or two that differ."""
    first, second = (row[f"{name}_of_{side}"] for side in SIDES)
    return _plain(first) if first == second else f"{_or_dash(first)} | {_or_dash(second)}"


def _or_dash(value: object) -> str:
    return _plain(value) or "–"


def _plain(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return "" if value is None else f"{value:,}" if type(value) is int else str(value)


def _percent(share: float | None, *, sign: str = "-") -> str:
    return "–" if share is None else percent(share, sign=sign)


def as_html(comparison: differences.Comparison, *, most: int) -> str:
    """Return the comparison as one HTML file without scripts; all values are escaped."""
    return render(
        "compare/page.html.j2",
        sides={side: comparison[side] for side in SIDES},
        notes=comparison.get("notes", ()),
        headline=headline(comparison),
        sections=sections(comparison, most=most),
        plain=_plain,
    )
