"""Build the overview of the report page: counts, notes, and sections of figures and tables.

overview.toml has the order of the sections, their words, and the columns of the tables.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

from decon_core.config.policy import LEAST_ANSWER_OVERLAP
from decon_core.decisions.calibration import LEAST_JUDGED
from decon_core.feature import feature_files
from decon_core.report.blind_spots import QUESTIONS_LEFT_OUT, blind_spots
from decon_core.report.html import charts
from decon_core.report.html.charts import Chart
from decon_core.report.html.gather import Facts, Rows
from decon_core.report.html.labels import beginning, count, share, shown
from decon_core.report.html.opening import Scanned, opening
from decon_core.report.html.spread import over_time, spread
from decon_core.wording import counted, render

ALL = "all benchmarks"
_QUESTION_CHARACTERS = 160
_MOST_SOURCES_NAMED = 12
_MOST_BENCHMARKS_NAMED = 20
_CLASSES = (
    "all",
    "leak",
    "no answer",
    "needs review",
    "clean",
    "cannot be checked",
    "not fully scanned",
)


def _layout() -> Mapping[str, dict[str, Any]]:
    """Return sections and tables by name: those of the core, then those of features."""
    layout: dict[str, dict[str, Any]] = {"sections": {}, "tables": {}}
    for file in (Path(__file__).with_name("overview.toml"), *feature_files("overview.toml")):
        for kind, entries in tomllib.loads(file.read_text(encoding="utf-8")).items():
            layout[kind] |= entries
    return layout


_LAYOUT = _layout()


@dataclass(frozen=True)
class Table:
    """A table; `opens` has, for each row, the filter of the matched texts that its link opens.

    `name` stands in links and file names, so it is the same in every report.
    """

    name: str
    title: str
    columns: Sequence[Mapping[str, str]]  # heading, kind (see overview.toml), key of the value
    rows: Sequence[Sequence[object]]
    opens: Sequence[Mapping[str, str]]
    is_folded: bool


@dataclass(frozen=True)
class Choice:
    """One of several views of a section, chosen in a menu."""

    name: str
    charts: Sequence[Chart]


@dataclass(frozen=True)
class Section:
    key: str
    title: str
    words: Sequence[str]  # sentences above figures and tables
    choices: Sequence[Choice]
    tables: Sequence[Table]


def overview(
    facts: Facts, of_features: Sequence[Section] = (), *, scanned: Scanned | None = None
) -> dict[str, Any]:
    """Return the overview; the sections of features come last. `scanned`: as of `write_page`."""
    sections = [*(section(key, facts) for key in _LAYOUT["sections"]), *of_features]
    shown_sections = [each for each in sections if each.choices or any(t.rows for t in each.tables)]
    empty = [each for each in sections if each not in shown_sections]
    return {
        "opening": opening(facts, scanned),
        "classes": classes(facts),
        "words": sentences("scope", facts),
        "notes": sentences("notes", facts),
        "about": [*about(facts)],
        "corpus": corpus(facts),
        "sections": [*map(asdict, shown_sections)],
        "empty": [{"key": each.key, "title": each.title, "words": each.words} for each in empty],
        "notice": facts.notice,  # shown on every view of an incomplete report
    }


def classes(facts: Facts) -> dict[str, Sequence[object]]:
    """Return a table of all items and all documents by class; an unknown number is a dash."""
    totals = facts.totals
    n_documents = totals["n_documents"]
    kinds = ("n_contaminated_documents", "n_no_answer_documents", "n_review_documents")
    n_found = [totals[name] for name in kinds]
    n_clean = None if n_documents is None else n_documents - sum(n_found)
    is_known = totals["n_items"] is not None
    items = (
        totals["n_items"],
        *(totals[name] for name in ("n_leaked", "n_no_answer", "n_review")),
        *(facts.total(name) if is_known else None for name in ("n_clean", "n_not_checkable")),
        facts.total("n_not_fully_scanned"),
    )
    heads = [*_CLASSES] if items[-1] else [*_CLASSES[:-1]]
    shown_items = ["–" if n is None else count(n) for n in items[: len(heads)]]
    documents = (n_documents, *n_found, n_clean, None, None)
    shown_documents = ["–" if n is None else count(n) for n in documents[: len(heads)]]
    if n_documents and n_found[0]:
        shown_documents[1] += f" ({share(n_found[0], n_documents)})"
    return {
        "heads": ["count", *heads],
        "rows": [["items", *shown_items], ["documents", *shown_documents]],
    }


def corpus(facts: Facts) -> str:
    return _named([row["source"] for row in facts["sources"]], _MOST_SOURCES_NAMED)


def about(facts: Facts) -> Iterable[tuple[str, str]]:
    """Yield names and values: corpus, benchmarks with versions, date, program, term weights."""
    if facts["sources"]:
        yield "Corpus", corpus(facts)
    versions = [
        f"{row['benchmark']} ({row['version'] or 'version unknown'})" for row in facts["versions"]
    ]
    if versions:
        yield "Benchmarks", _named(versions, _MOST_BENCHMARKS_NAMED)
    made_at = (facts.run.get("made_at") or "").replace("T", " ").replace("+00:00", " UTC")
    yield "Date", made_at or "unknown"
    yield "Made by", shown(facts.run.get("made_by")) or "unknown"
    if snapshot := facts.run.get("term_weights"):
        yield "Term weights", shown(snapshot)


def _named(names: Sequence[str], most: int) -> str:
    rest = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(map(shown, names[:most])) + rest


def sentences(name: str, facts: Facts) -> list[str]:
    """Return `notes`, or `scope`: what was searched, for which items, with which detectors."""
    text = render(
        f"report/html/{name}.txt.j2",
        facts=facts,
        totals=facts.totals,
        left_out=QUESTIONS_LEFT_OUT,
        blind_spots=blind_spots(facts.thresholds, facts.n_unknown),
        not_read_lines=[line.text for line in facts.not_read.lines(shown=shown)],
        shown=shown,
    )
    return [line for line in text.split("\n") if line]


def section(key: str, facts: Facts) -> Section:
    """Build a section; without rows of the query that it needs, it says that there are none."""
    layout = _LAYOUT["sections"][key]
    values = {
        "least_answer": f"{100 * LEAST_ANSWER_OVERLAP:.0f} %",
        "notice": facts.notice,
        "least_judged": LEAST_JUDGED,
        "n_judged": counted(facts.totals["n_judged"], "pair"),
    }
    words = [sentence.format_map(values) for sentence in layout.get("words", ())]
    blank = Section(key, layout["title"], words, (), ())
    if "needs" in layout and not facts[layout["needs"]]:
        return replace(blank, words=[layout["none"].format_map(values)])
    built = replace(blank, tables=[_table(name, facts) for name in layout.get("tables", ())])
    if key in _FIGURES:
        return replace(built, choices=_FIGURES[key](facts))
    return _COMPLETE[key](built, facts) if key in _COMPLETE else built


def _nothing(built: Section, tables: Sequence[Table] = ()) -> Section:
    return replace(built, words=[_LAYOUT["sections"][built.key]["none"]], tables=tables)


def _leak_rates(built: Section, facts: Facts) -> Section:
    rows = facts.with_known_rate
    words = []
    if rows:
        words.append(
            "Each dot is the share of a benchmark split's items that leaked, and the line is its "
            "95 % Wilson interval. Items that no chosen detector can find are not counted."
        )
    if facts.n_unknown:
        words.append(
            "Items that cannot be checked may or may not have leaked. The last two columns of the "
            "table give the leaked share of all items: at least, if none of these items leaked, "
            "and at most, if all of them did."
        )
    if len(rows) < len(facts["benchmarks"]):
        words.append("No share is given where the number of checkable items is unknown.")
    if (n := len(rows)) > charts.MOST_LINES:
        words.append(
            f"The figure shows the {charts.MOST_LINES} highest of {n} rates; the table has all."
        )
    figures = [charts.rates(rows)] if rows else []
    if history := facts["rates_by_report"]:
        words.append(
            "Open points are earlier reports with different settings, other benchmark versions or "
            "fewer shards."
        )
        figures.append(over_time(history, facts["ranked"]))
    return replace(built, words=words, choices=[Choice(ALL, figures)] if figures else [])


def _what_leaked(built: Section, facts: Facts) -> Section:
    rows, counted_rows = facts["benchmarks"], facts.with_known_total
    if not any(map(charts.is_found, rows)):
        return _nothing(built)
    flows = [charts.flow(counted_rows)] if counted_rows else []
    by_benchmark = _by_benchmark([row for row in counted_rows if charts.is_found(row)])
    choices = [Choice(ALL, [*flows, charts.parts(rows)])]
    choices += [Choice(name, [charts.flow(group)]) for name, group in by_benchmark]
    return replace(built, choices=choices)


def _detectors(built: Section, facts: Facts) -> Section:
    if len(facts["detectors"]) < 2:
        return _nothing(built)
    rows = facts["agreement"]
    return replace(built, choices=[Choice(ALL, [charts.agreement(rows)])] if rows else [])


def _mixtures(built: Section, facts: Facts) -> Section:
    if not facts["removed"]:
        return replace(built, words=["Nothing was removed."], tables=built.tables[:1])
    mixtures = facts["current_mixtures"]
    names = {row["mixture"] for row in mixtures}
    # A mixture that is built of other inputs in part is not drawn: its documents are not known.
    removed = [row for row in facts["removed"] if row["mixture"] in names]
    return replace(
        built, choices=[Choice(ALL, [charts.removed(removed, mixtures)])] if removed else []
    )


def _top_items(built: Section, facts: Facts) -> Section:
    tables = [table for table in built.tables if table.rows]
    return replace(built, tables=tables) if facts["items"] else _nothing(built, tables)


def _unreadable(built: Section, facts: Facts) -> Section:
    n, n_invalid = facts.totals["n_unreadable"], facts.totals["n_invalid_utf8"]
    if n is None:
        words = ["The number of unreadable rows is unknown: the report does not contain it."]
        return replace(built, words=words, tables=())
    reasons, places, invalid = built.tables
    title = f"{invalid.title}: {count(n_invalid or 0)}"
    title += f" (the first {len(invalid.rows)})" if (n_invalid or 0) > len(invalid.rows) else ""
    of_invalid = [replace(invalid, title=title)] if n_invalid else []
    if not n:
        return _nothing(built, of_invalid)
    n_shown = len(places.rows)
    title = f"The first {n_shown} of {count(n)}" if n > n_shown else "All of them"
    places = replace(places, title=title)
    if not facts.has_snippets:  # a detail may quote the row
        rows = [row[:-1] for row in places.rows]
        places = replace(places, columns=places.columns[:-1], rows=rows)
    return replace(built, tables=[reasons, places, *of_invalid])


_COMPLETE: Mapping[str, Callable[[Section, Facts], Section]] = {
    "rates": _leak_rates,
    "flow": _what_leaked,
    "detectors": _detectors,
    "mixtures": _mixtures,
    "items": _top_items,
    "unreadable": _unreadable,
    "scanned": lambda built, facts: replace(built, words=sentences("scope", facts)),
}
_FIGURES: Mapping[str, Callable[[Facts], Sequence[Choice]]] = {
    "heat": lambda facts: [
        Choice(ALL, [charts.heat(facts["cells"], facts["benchmarks"], facts["sources"])])
    ],
    "spread": lambda facts: [Choice(ALL, spread(facts))],
    "scores": lambda facts: _with_threshold(facts["scores"], charts.scores, facts.score_threshold),
    "sweep": lambda facts: _with_threshold(facts["sweep"], charts.sweep, facts.threshold),
    "calibration": lambda facts: _per_detector(
        [row for row in facts["calibration"] if row["is_all"]],
        [row for row in facts["calibration"] if not row["is_all"]],
        lambda _, group: charts.calibration(group),
    ),
}


def _table(name: str, facts: Facts) -> Table:
    """Fill a table of the layout from its query."""
    layout: Mapping[str, Any] = _LAYOUT["tables"][name]
    rows = facts[layout.get("query", name)]
    if rows and "question" in rows[0]:
        rows = [
            {
                **row,
                "item": f"{row['benchmark']} · {row['split']} · {row['instance_index']}",
                "question": beginning(row["question"], _QUESTION_CHARACTERS),
            }
            for row in rows
        ]
    columns = [_column(declared) for declared in layout["columns"]]
    values = [[row[column["key"]] for column in columns] for row in rows]
    cells = [[shown(value) if isinstance(value, str) else value for value in row] for row in values]
    keys = layout.get("opens", ())
    opens = [{key: str(row[key]) for key in keys} for row in rows] if keys else []
    title = layout.get("title", "")
    if "total" in layout:
        total = counted(facts.totals[layout["total"]], layout["noun"])
        title += f"{len(rows)} of {total}"
    return Table(name, title, columns, cells, opens, layout.get("is_folded", False))


def _column(declared: str) -> dict[str, str]:
    kind, _, rest = declared.partition(" ")
    name, _, key = rest.partition(" = ")
    plain = name.replace(" ", "_")
    return {"name": name, "kind": kind, "key": key or (f"n_{plain}" if kind == "number" else plain)}


def _by_benchmark(rows: Rows) -> list[tuple[str, Rows]]:
    """Group rows by benchmark; empty for a single benchmark, which equals the view of all."""
    groups = [(shown(name), group) for name, group in _grouped(rows, "benchmark")]
    return groups if len(groups) > 1 else []


def _grouped(rows: Rows, column: str) -> Iterable[tuple[str, Rows]]:
    name = itemgetter(column)
    return ((key, [*group]) for key, group in groupby(sorted(rows, key=name), key=name))


def _with_threshold(
    rows: Rows,
    draw: Callable[[Rows, float | None], Chart],
    threshold: Callable[[str, str | None], float | None],
) -> list[Choice]:
    def drawn(detector: str, group: Rows) -> Chart:
        thresholds = {threshold(detector, row["benchmark"]) for row in group}
        # If the benchmarks have different thresholds, the default is drawn.
        line = thresholds.pop() if len(thresholds) == 1 else threshold(detector, None)
        return draw(group, line)

    return _per_detector(rows, rows, drawn)


def _per_detector(together: Rows, apart: Rows, draw: Callable[[str, Rows], Chart]) -> list[Choice]:
    """Build a figure per detector, for all benchmarks together and for each."""
    choices = []
    for name, rows in [(ALL, together), *_by_benchmark(apart)]:
        drawn = [
            (detector, draw(detector, group)) for detector, group in _grouped(rows, "detector")
        ]
        titled = [replace(chart, title=f"{chart.title}: {shown(by)}") for by, chart in drawn]
        choices.append(Choice(name, titled))
    return choices
