"""A comparison as tables: for the terminal, and as one HTML file that needs nothing else."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from decon_core.compare.differences import (
    KINDS,
    QUESTION_ONLY_IN_BOTH,
    QUESTION_ONLY_KINDS,
    Comparison,
)
from decon_core.wording import counted

Cell = str | int | float | None

_LOST = "not comparable"

_ABOUT_RATES = (
    "Share of each benchmark's items that leaked. Then come those that leaked "
    "where both looked: in shards, rows and items that both of them have."
)
_ABOUT_LOST = (
    "Leaks of one side where the other did not look, or looked at something else. They are in none "
    "of the other tables."
)
_ABOUT_QUESTION_ONLY = (
    "Documents that hold the question of an item without its answer, and the item: no leak in "
    "either."
)
_ABOUT_ITEMS = (
    "Items that one side calls leaked, question-only, clean or not indexable, and the other does "
    "not. Elsewhere: "
    "the change comes of shards or rows that only one side saw."
)
_ABOUT_CALLS = {
    "only in first": "Leaks that the second does not call one; its score is that of what it found.",
    "only in second": "Leaks that the first does not call one; its score is that of what it found.",
    "changed": "Leaks of both, with other scores, by other rules or with other verdicts.",
}


@dataclass(frozen=True)
class Section:
    """A table under a title, and how many rows of it are not shown."""

    title: str
    about: str
    heads: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    n_more: int = 0


def headline(found: Comparison) -> str:
    """What it comes to, in a line."""
    if found["is_same"]:
        n = _n_calls(found, QUESTION_ONLY_IN_BOTH)
        also = f", {n:,} {QUESTION_ONLY_IN_BOTH}" if n else ""
        return f"the same: {_n_calls(found, 'same'):,} leaks in both{also}"
    told = [f"{_n_calls(found, kind):,} leaks {kind}" for kind in KINDS]
    lost = f"{_n_calls(found, _LOST):,} {_LOST}"
    n_items = sum(one["n"] for one in found["statuses"])
    same = f"{_n_calls(found, 'same'):,} the same"
    of_questions = [
        f"{_n_calls(found, kind):,} {kind}" for kind in QUESTION_ONLY_KINDS if _n_calls(found, kind)
    ]
    parts = "; ".join([same, *told, lost, *of_questions])
    return f"{parts}; {counted(n_items, 'item')} of another status"


def sections(found: Comparison, *, most: int) -> Iterator[Section]:
    """The tables that have something to say; of long ones the first rows."""
    tables = (
        Section("Settings", "", ("setting", "first", "second"), _settings(found)),
        _shards(found, most),
        Section("Leak rates", _ABOUT_RATES, _RATE_HEADS, _rates(found)),
        _statuses(found),
        _items(found, most),
        _question_only(found),
        *(_calls(found, kind, most) for kind in KINDS),
        Section(
            "Not comparable",
            _ABOUT_LOST,
            ("why", "leaks of first", "leaks of second"),
            [(one["why_not"], one["n_in_first"], one["n_in_second"]) for one in lost_of(found)],
        ),
    )
    return (one for one in tables if one.rows)


def _question_only(found: Comparison) -> Section:
    rows = [(kind, n) for kind in QUESTION_ONLY_KINDS if (n := _n_calls(found, kind))]
    heads = ("where", "documents and items")
    return Section("Question-only", _ABOUT_QUESTION_ONLY, heads, rows)


def lost_of(found: Comparison) -> Sequence[Mapping[str, Any]]:
    rows: Sequence[Mapping[str, Any]] = found["not_comparable"]
    return rows


def _n_calls(found: Comparison, kind: str) -> int:
    return int(found["n_calls"].get(kind, 0))


def _settings(found: Comparison) -> list[tuple[Cell, ...]]:
    rows = [
        (one["setting"], *map(_plain, (one["first"], one["second"]))) for one in found["settings"]
    ]
    versions = [
        (
            f"version of {one['benchmark']}",
            _told(one["version_of_first"]),
            _told(one["version_of_second"]),
        )
        for one in found["benchmarks"]
        if one["version_of_first"] != one["version_of_second"]
    ]
    return [*rows, *versions]


def _shards(found: Comparison, most: int) -> Section:
    counts = ", ".join(f"{n:,} {standing}" for standing, n in found["n_shards"].items())
    rows = [(one["source"], one["shard_name"], one["standing"]) for one in found["shards"]]
    n = sum(found["n_shards"].values()) - found["n_shards"].get("in both", 0)
    heads = ("source", "shard", "where")
    return Section("Shards", f"{counts}.", heads, rows[:most], n - len(rows[:most]))


_RATE_HEADS = (
    *("benchmark", "items", "leaked in first", "in second", "rate of first", "of second"),
    *("difference", "where both looked", "second there", "question-only"),
)


def _rates(found: Comparison) -> list[tuple[Cell, ...]]:
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
        for one in found["benchmarks"]
    ]


def _statuses(found: Comparison) -> Section:
    rows = [
        (
            one["status_of_first"] or "not found",
            one["status_of_second"] or "not found",
            one["n"],
            one["n"] - one["n_comparable"],
        )
        for one in found["statuses"]
    ]
    heads = ("in first", "in second", "items", "of them elsewhere")
    return Section("Items of another status", _ABOUT_ITEMS, heads, rows)


def _items(found: Comparison, most: int) -> Section:
    rows = [
        (
            one["benchmark"],
            one["split"],
            one["instance_index"],
            one["status_of_first"] or "not found",
            one["status_of_second"] or "not found",
            "" if one["is_comparable"] else "elsewhere",
        )
        for one in found["items"][:most]
    ]
    n = sum(one["n"] for one in found["statuses"])
    heads = ("benchmark", "split", "item", "in first", "in second", "where")
    return Section("These items", "", heads, rows, n - len(rows))


_CALL_HEADS = (
    *("source", "shard", "row", "benchmark", "split", "item"),
    *("score in first", "in second", "rules of first", "of second", "verdicts", "class"),
)


def _calls(found: Comparison, kind: str, most: int) -> Section:
    rows = [_call(one) for one in found["calls"][kind][:most]]
    n = _n_calls(found, kind)
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
    """One value, or two that differ."""
    if one == two:
        return _plain(one)
    return f"{_told(one)} | {_told(two)}"


def _told(value: object) -> str:
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
    # Adding 0 makes 0 of -0, which would be a change in the wrong direction.
    return "–" if share is None else f"{round(100 * share, 2) + 0.0:{sign}.2f}%"


# The page -----------------------------------------------------------------------------------------

_STYLE = """
:root { color-scheme: light dark; --line: #8884; --quiet: #777; }
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 75rem; padding: 0 1rem; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
p, dl { max-width: 50rem; } dt { font-weight: 600; } .more { color: var(--quiet); }
div { overflow-x: auto; } table { border-collapse: collapse; }
th, td { padding: .25rem .7rem; border-bottom: 1px solid var(--line); text-align: left; }
td.n { text-align: right; font-variant-numeric: tabular-nums; }
"""


def as_html(found: Comparison, *, most: int) -> str:
    """One file. What others wrote is text in it and nothing else; it has no script at all."""
    parts = [_html_of(one) for one in sections(found, most=most)]
    names = "".join(
        f"<dt>{side}</dt><dd>{escape(str(found[side]))}</dd>" for side in ("first", "second")
    )
    notes = "".join(f"<p>{escape(note)}</p>\n" for note in found.get("notes", ()))
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    return (
        '<!doctype html>\n<html lang="en"><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>Two reports compared</title><style>{_STYLE}</style>\n"
        f"<h1>Two reports compared</h1>\n<dl>{names}</dl>\n{notes}"
        f"<p><strong>{escape(headline(found))}</strong></p>\n" + "\n".join(parts) + "\n</html>\n"
    )


def _html_of(section: Section) -> str:
    heads = "".join(f"<th>{escape(head)}</th>" for head in section.heads)
    rows = "\n".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in section.rows)
    about = f"<p>{escape(section.about)}</p>" if section.about else ""
    more = f'<p class="more">… and {section.n_more:,} more</p>' if section.n_more else ""
    table = f"<div><table><tr>{heads}</tr>\n{rows}</table></div>"
    return f"<h2>{escape(section.title)}</h2>\n{about}\n{table}{more}"


def _cell(value: Cell) -> str:
    text = f"{value:,}" if type(value) is int else "" if value is None else str(value)
    is_number = text[:1].isdigit() or text[:1] in "+-–"
    return f'<td class="n">{escape(text)}</td>' if is_number else f"<td>{escape(text)}</td>"
