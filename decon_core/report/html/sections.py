"""Build the overview of the report page: headlines, notes, and sections of figures and tables."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from decon_core.config.policy import LEAST_ANSWER_OVERLAP, QUESTIONS_LEFT_OUT
from decon_core.report.html import charts
from decon_core.report.html.charts import Chart, by_detector
from decon_core.report.html.gather import Facts, Row, Rows
from decon_core.report.html.labels import beginning, count, share, shown
from decon_core.wording import counted, render

ALL = "all benchmarks"
_QUESTION_CHARACTERS = 160
_MOST_SOURCES_NAMED = 12
_MOST_BENCHMARKS_NAMED = 20

_LAYOUT = tomllib.loads(Path(__file__).with_name("overview.toml").read_text(encoding="utf-8"))


@dataclass(frozen=True)
class Column:
    """A column of a table: heading, kind (see overview.toml), and key of the value in a row."""

    name: str
    kind: str
    key: str


@dataclass(frozen=True)
class Table:
    """A table; `opens` has, for each row, the filter of the pairs that its link opens."""

    title: str
    columns: Sequence[Column]
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


@dataclass(frozen=True)
class Headline:
    value: str
    name: str
    note: str


@dataclass(frozen=True)
class Overview:
    headlines: Sequence[Headline]
    words: Sequence[str]
    notes: Sequence[str]
    about: Sequence[tuple[str, str]]  # corpus, benchmarks, date, program
    corpus: str
    sections: Sequence[Section]
    notice: str  # shown on every view of an incomplete report


def overview(facts: Facts) -> Overview:
    return Overview(
        headlines(facts),
        scope(facts),
        _sentences("notes", facts),
        [*about(facts)],
        corpus(facts),
        [build(facts) for build in SECTIONS],
        facts.notice,
    )


def headlines(facts: Facts) -> list[Headline]:
    totals = facts.totals
    n_items, n_leaked, n_documents = totals["n_items"], totals["n_leaked"], totals["n_documents"]
    n_with_answer, n_with_part = facts.total("n_with_answer"), facts.total("n_with_part_of_answer")
    n_not_indexable = facts.total("n_not_indexable")
    n_contaminated = totals["n_contaminated_documents"]
    n_question_only = totals["n_question_only_documents"]
    part = f"; {count(n_with_part)} with part of it" if n_with_part else ""
    rows = (
        (count(n_leaked), "items leaked", _of(n_leaked, n_items)),
        (count(n_with_answer), "of them with their answer", _of(n_with_answer, n_leaked) + part),
        (count(n_contaminated), "documents hold a leak", _of(n_contaminated, n_documents)),
        (
            count(n_question_only),
            "more hold a question without its answer",
            f"question-only: {_of(n_question_only, n_documents)}",
        ),
        (
            "–" if n_items is None else count(n_not_indexable),
            "items that no detector can find",
            _of(n_not_indexable, n_items),
        ),
    )
    return [Headline(*row) for row in rows]


def corpus(facts: Facts) -> str:
    """Return the names of the sources."""
    return _named([row["source"] for row in facts["sources"]], _MOST_SOURCES_NAMED)


def about(facts: Facts) -> Iterable[tuple[str, str]]:
    """Yield names and values: corpus, benchmarks with versions, date, program, frozen idf."""
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
    if snapshot := facts.run.get("idf_snapshot"):
        yield "Frozen idf", shown(snapshot)


def _named(names: Sequence[str], most: int) -> str:
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(map(shown, names[:most])) + more


def scope(facts: Facts) -> list[str]:
    """Return sentences on what was searched, for which items, with which detectors."""
    return _sentences("scope", facts)


def _sentences(name: str, facts: Facts) -> list[str]:
    text = render(
        f"report/html/{name}.txt.j2",
        facts=facts,
        totals=facts.totals,
        left_out=QUESTIONS_LEFT_OUT,
        shown=shown,
    )
    return [line for line in text.split("\n") if line]


def _of(part: int, whole: int | None) -> str:
    if whole is None:
        return "total unknown"
    return f"{share(part, whole)} of {count(whole)}" if whole else "of none"


# Sections -----------------------------------------------------------------------------------------


def leak_rates(facts: Facts) -> Section:
    rows, counted_rows = facts["benchmarks"], facts.with_known_total
    if not rows:
        return _nothing("rates")
    words = []
    if counted_rows:
        words.append("Each dot is a benchmark and split, the line its 95 % Wilson interval.")
    if len(counted_rows) < len(rows):
        words.append("Without a known number of items there is no share.")
    if (n := len(counted_rows)) > charts.MOST_LINES:
        words.append(f"The figure shows the highest {charts.MOST_LINES} of {n}; the table all.")
    drawn = [Choice(ALL, [charts.rates(counted_rows)])] if counted_rows else []
    return _section("rates", words, drawn, [_table("rates", rows)])


def what_leaked(facts: Facts) -> Section:
    rows, counted_rows = facts["benchmarks"], facts.with_known_total
    if not any(map(_is_found, rows)):
        return _nothing("flow")
    with_answer = (
        f"An item leaked with its answer if at least {LEAST_ANSWER_OVERLAP:.0%} of the answer was "
        "found in a document in which it leaked, with part of it if less was found."
    )
    question_only = (
        "A question-only item did not leak, but its question was found, verbatim or nearly so, "
        "without its answer. It is neither leaked nor clean."
    )
    flows = [charts.flow(counted_rows)] if counted_rows else []
    by_benchmark = _by_benchmark([row for row in counted_rows if _is_found(row)])
    choices = [Choice(name, [charts.flow(group)]) for name, group in by_benchmark]
    choices.insert(0, Choice(ALL, [*flows, charts.parts(rows)]))
    return _section("flow", [with_answer, question_only], choices)


def _is_found(row: Row) -> bool:
    return bool(row["n_leaked"] or row["n_question_only"])


def heat_map(facts: Facts) -> Section:
    cells = facts["cells"]
    if not cells:
        return _nothing("heat")
    chart = charts.heat(cells, facts["benchmarks"], [row["source"] for row in facts["sources"]])
    tables = [_table("sources", facts["sources"]), _table("cells", cells)]
    return _section("heat", choices=[Choice(ALL, [chart])], tables=tables)


def score_histograms(facts: Facts) -> Section:
    rows = facts["scores"]
    if not rows:
        return _nothing("scores")
    choices = _per_detector(rows, charts.scores, facts.score_threshold)
    return _section("scores", choices=choices)


def threshold_sweep(facts: Facts) -> Section:
    rows = facts["sweep"]
    if not rows:
        return _nothing("sweep")
    return _section("sweep", choices=_per_detector(rows, charts.sweep, facts.threshold))


def detectors(facts: Facts) -> Section:
    if len(facts["detectors"]) < 2:
        return _nothing("detectors")
    choices = [Choice(ALL, [charts.agreement(facts["agreement"])])] if facts["agreement"] else []
    return _section("detectors", choices=choices, tables=[_table("detectors", facts["detectors"])])


def mixtures(facts: Facts) -> Section:
    current = [row for row in facts["mixtures"] if row["is_current"]]
    if not current:
        return _nothing("mixtures")
    account, removed = _table("mixtures", current), facts["removed"]
    if not removed:
        return _section("mixtures", ["Nothing was removed."], tables=[account])
    chart = charts.removed(removed, [row["mixture"] for row in current])
    tables = [account, _table("removed", removed)]
    return _section("mixtures", choices=[Choice(ALL, [chart])], tables=tables)


def top_items(facts: Facts) -> Section:
    tables = []
    for name, total, noun in (
        ("items", "n_leaked", "item"),
        ("question_only_items", "n_question_only", "question-only item"),
    ):
        rows = [_with_item(row) for row in facts[name]]
        title = f"{len(rows)} of {counted(facts.totals[total], noun)}"
        tables += [_table(name, rows, title)] if rows else []
    return _section("items", tables=tables) if facts["items"] else _nothing("items", tables)


def _with_item(row: Row) -> Row:
    item = f"{row['benchmark']} · {row['split']} · {row['instance_index']}"
    return {**row, "item": item, "question": beginning(row["question"], _QUESTION_CHARACTERS)}


def crowded_documents(facts: Facts) -> Section:
    rows = facts["documents"]
    if not rows:
        return _nothing("documents")
    title = f"{len(rows)} of {counted(facts.totals['n_crowded_documents'], 'document')}"
    return _section("documents", tables=[_table("documents", rows, title)])


def not_scanned(facts: Facts) -> Section:
    rows = facts["not_scanned"]
    if not rows:
        return _nothing("not-scanned")
    return _section("not-scanned", [facts.notice], tables=[_table("not_scanned", rows)])


def unreadable(facts: Facts) -> Section:
    n, rows = facts.totals["n_unreadable"], facts["unreadable"]
    if n is None:
        return _section("unreadable", ["Unknown: the report does not contain this number."])
    invalid = _invalid_utf8(facts)
    if not n:
        return _nothing("unreadable", tables=invalid)
    title = f"The first {len(rows)} of {count(n)}" if n > len(rows) else "All of them"
    places = _table("unreadable", rows, title)
    if not facts.has_snippets:  # a detail may quote the row
        places = replace(
            places, columns=places.columns[:-1], rows=[row[:-1] for row in places.rows]
        )
    reasons = _table("unreadable_reasons", facts["unreadable_reasons"])
    return _section("unreadable", tables=[reasons, places, *invalid])


def _invalid_utf8(facts: Facts) -> list[Table]:
    """Return a table of the documents scanned with replacement characters, if there are any."""
    n, rows = facts.totals["n_invalid_utf8"], facts["invalid_utf8"]
    if not n:
        return []
    title = f"Documents with bytes that are not UTF-8, scanned as U+FFFD: {count(n)}"
    title += f" (the first {len(rows)})" if n > len(rows) else ""
    return [_table("invalid_utf8", rows, title)]


def scanned(facts: Facts) -> Section:
    invisible = [_with_item(row) for row in facts["invisible"]]
    n = counted(facts.totals["n_invisible"], "item")
    title = f"Names of the items that no detector can find: {len(invisible)} of {n}"
    made = {
        "made by": "made_by",
        "made at": "made_at",
        "report": "state",
        "scan": "scan_fingerprint",
        "frozen idf": "idf_snapshot",
    }
    made_rows = [
        {"what": name, "value": facts.run[key]} for name, key in made.items() if facts.run.get(key)
    ]
    tables = [
        _table("scanned_sources", facts["sources"]),
        _table("versions", facts["versions"]),
        _table("why_not_indexed", facts["why_not_indexed"]),
        _table("invisible", invisible, title),
        _table("made", made_rows),
    ]
    return _section("scanned", scope(facts), tables=tables)


SECTIONS = (
    *(leak_rates, what_leaked, heat_map, score_histograms, threshold_sweep, detectors),
    *(mixtures, top_items, crowded_documents, not_scanned, unreadable, scanned),
)


# Tables and choices -------------------------------------------------------------------------------


def _section(
    key: str,
    words: Sequence[str] | None = None,
    choices: Sequence[Choice] = (),
    tables: Sequence[Table] = (),
) -> Section:
    """Return a section; without `words` it says what the layout does."""
    layout = _LAYOUT["sections"][key]
    said = layout.get("words", []) if words is None else words
    return Section(key, layout["title"], said, choices, tables)


def _nothing(key: str, tables: Sequence[Table] = ()) -> Section:
    return _section(key, [_LAYOUT["sections"][key]["none"]], tables=tables)


def _table(name: str, rows: Rows, title: str = "") -> Table:
    """Fill a table of the layout; without a title it has the one of the layout."""
    layout: Mapping[str, Any] = _LAYOUT["tables"][name]
    columns = [_column(one) for one in layout["columns"]]
    cells = [[_cell(row[column.key]) for column in columns] for row in rows]
    keys = layout.get("opens", ())
    opens = [{key: str(row[key]) for key in keys} for row in rows] if keys else []
    return Table(title or layout["title"], columns, cells, opens, layout.get("is_folded", False))


def _column(declared: str) -> Column:
    kind, _, rest = declared.partition(" ")
    name, _, key = rest.partition(" = ")
    plain = name.replace(" ", "_")
    return Column(name, kind, key or (f"n_{plain}" if kind == "number" else plain))


def _cell(value: object) -> object:
    return shown(value) if isinstance(value, str) else value


def _by_benchmark(rows: Rows) -> list[tuple[str, list[Row]]]:
    """Group rows by benchmark; empty for a single benchmark, which equals the view of all."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(row["benchmark"], []).append(row)
    return [(shown(name), groups[name]) for name in sorted(groups)] if len(groups) > 1 else []


def _per_detector(
    rows: Rows,
    draw: Callable[[Rows, float | None], Chart],
    threshold: Callable[[str, str | None], float | None],
) -> list[Choice]:
    """Build a figure per detector, for all benchmarks and for each, with the threshold."""

    def drawn(detector: str, group: Rows) -> Chart:
        thresholds = {threshold(detector, row["benchmark"]) for row in group}
        # If the benchmarks have different thresholds, the default is drawn.
        line = thresholds.pop() if len(thresholds) == 1 else threshold(detector, None)
        chart = draw(group, line)
        return replace(chart, title=f"{chart.title}: {shown(detector)}")

    return [
        Choice(name, [drawn(*one) for one in by_detector(group)])
        for name, group in [(ALL, rows), *_by_benchmark(rows)]
    ]
