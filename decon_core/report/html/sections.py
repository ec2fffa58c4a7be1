"""Build the overview of the report page: headlines, notes, and sections of figures and tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from decon_core.config.policy import LEAST_ANSWER_OVERLAP, QUESTIONS_LEFT_OUT
from decon_core.report.html import charts
from decon_core.report.html.charts import Chart, by_detector
from decon_core.report.html.gather import Facts, Row, Rows
from decon_core.report.html.labels import beginning, count, share, shown, things

ALL = "all benchmarks"
_QUESTION_CHARACTERS = 160
_MOST_SOURCES_NAMED = 12
_MOST_BENCHMARKS_NAMED = 20


@dataclass(frozen=True)
class Column:
    """A column of a table: heading, key of the value in a row, and how the value is shown.

    Kinds: name (one line), text (wrapped), code (a hash); number, share and score (right-aligned).
    """

    name: str
    kind: str
    key: str


@dataclass(frozen=True)
class Table:
    """A table; `opens` has, for each row, the filter of the pairs that its link opens."""

    title: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[object]]
    opens: Sequence[Mapping[str, str]] = ()
    is_folded: bool = False


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
    choices: Sequence[Choice] = ()
    tables: Sequence[Table] = ()


@dataclass(frozen=True)
class Headline:
    value: str
    name: str
    note: str = ""


@dataclass(frozen=True)
class Overview:
    headlines: Sequence[Headline]
    words: Sequence[str]
    notes: Sequence[str]
    about: Sequence[tuple[str, str]] = ()  # corpus, benchmarks, date, program
    corpus: str = ""
    sections: Sequence[Section] = field(default_factory=list)
    notice: str = ""  # shown on every view of an incomplete report


def overview(facts: Facts) -> Overview:
    return Overview(
        headlines(facts),
        scope(facts),
        notes(facts),
        [*about(facts)],
        corpus(facts),
        [section(facts) for section in SECTIONS],
        facts.notice,
    )


def headlines(facts: Facts) -> list[Headline]:
    totals = facts.totals
    n_items, n_leaked = totals["n_items"], totals["n_leaked"]
    n_with_answer = facts.total("n_with_answer")
    n_with_part = facts.total("n_with_part_of_answer")
    n_not_indexable = facts.total("n_not_indexable")
    n_documents, n_contaminated = totals["n_documents"], totals["n_contaminated_documents"]
    n_question_only = totals["n_question_only_documents"]
    part = f"; {count(n_with_part)} with part of it" if n_with_part else ""
    return [
        Headline(count(n_leaked), "items leaked", _of(n_leaked, n_items)),
        Headline(
            count(n_with_answer), "of them with their answer", _of(n_with_answer, n_leaked) + part
        ),
        Headline(count(n_contaminated), "documents hold a leak", _of(n_contaminated, n_documents)),
        Headline(
            count(n_question_only),
            "more hold a question without its answer",
            f"question-only: {_of(n_question_only, n_documents)}",
        ),
        Headline(
            "–" if n_items is None else count(n_not_indexable),
            "items that no detector can find",
            _of(n_not_indexable, n_items),
        ),
    ]


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
    totals = facts.totals
    detectors = ", ".join(_thresholds(facts, detector) for detector in facts.thresholds)
    if totals["n_documents"] is None:
        documents = "An unknown number of documents"
    else:
        documents = things(totals["n_documents"], "document", "documents")
    n_items = totals["n_items"]
    items = "items" if n_items is None else things(n_items, "item", "items")
    searched = (
        f"{documents} in "
        f"{things(totals['n_shards'], 'shard', 'shards')} of "
        f"{things(totals['n_sources'], 'source', 'sources')} were searched for "
        f"{items} of "
        f"{things(totals['n_benchmarks'], 'benchmark', 'benchmarks')}."
    )
    if not detectors:
        return [searched, "The detectors are unknown."]
    return [searched, f"Detectors and thresholds: {detectors}."]


def _thresholds(facts: Facts, detector: str) -> str:
    """Return a detector with its threshold, and those of benchmarks with another one."""
    others = [f"{shown(name)}: {one:g}" for name, one in facts.own_thresholds(detector).items()]
    text = f"{shown(detector)} {facts.thresholds[detector]:g}"
    return f"{text} ({', '.join(others)})" if others else text


def _of(part: int, whole: int | None) -> str:
    if whole is None:
        return "total unknown"
    return f"{share(part, whole)} of {count(whole)}" if whole else "of none"


def notes(facts: Facts) -> list[str]:
    """Return what limits the numbers of this report."""
    return [note for note in _possible_notes(facts) if note]


def _possible_notes(facts: Facts) -> Iterable[str]:
    totals = facts.totals
    yield _if_any(
        things(totals["n_unreadable"] or 0, "row", "rows"),
        "of the corpus could not be read. Their content is unknown and not part of any number.",
    )
    yield _if_any(
        things(totals["n_question_only_documents"], "document holds", "documents hold"),
        "the question of an item, verbatim or nearly so, without its answer (question-only): not a "
        "leak, but not clean either.",
    )
    if not facts.run.get("keeps_question_only", True):
        yield f"Question-only: {QUESTIONS_LEFT_OUT}."
    yield _if_any(
        things(facts.total("n_not_indexable"), "item is", "items are"),
        "not detectable with the chosen detectors, mostly too short or too common: neither leaked "
        "nor clean.",
    )
    yield _if_any(
        things(totals["n_too_short"], "document has", "documents have"),
        "too little text to be judged.",
    )
    if not facts.has_snippets:
        yield "Snippets are off: no text of the training data is in this file."
    if facts.pairs.num_rows < totals["n_pairs"]:
        yield (
            f"This page has the first {count(facts.pairs.num_rows)} of {count(totals['n_pairs'])} "
            "pairs: leaks, then question-only, then near misses, each by score. The database has "
            "all of them."
        )
    yield _if_any(
        things(totals["n_verdicts_not_found"], "verdict is", "verdicts are"),
        "on pairs that this scan no longer found.",
    )
    if old := [shown(row["mixture"]) for row in facts["mixtures"] if not row["is_current"]]:
        yield f"Built from other inputs than this report and not shown: mixture {', '.join(old)}."


def _if_any(subject: str, rest: str) -> str:
    return "" if subject.startswith("0 ") else f"{subject} {rest}"


# Sections -----------------------------------------------------------------------------------------


def leak_rates(facts: Facts) -> Section:
    rows = facts["benchmarks"]
    if not rows:
        return Section("rates", "Leak rates", ["The report has no benchmark."])
    counted = facts.with_known_total
    words = []
    if counted:
        words.append("Each dot is a benchmark and split, the line its 95 % Wilson interval.")
    if len(counted) < len(rows):
        words.append("Without a known number of items there is no share.")
    if len(counted) > charts.MOST_LINES:
        words.append(
            f"The figure shows the highest {charts.MOST_LINES} of {len(counted)}; the table all."
        )
    columns = [
        *(_name("benchmark"), _name("split"), _number("items"), _number("leaked")),
        *(_share("rate", "leak_rate"), _share("from", "low"), _share("to", "high")),
        *(_number("with answer"), _number("with part of answer"), _number("without answer")),
        _number("has no answer", "n_leaked_without_having_one"),
        _number("question-only", "n_question_only"),
        _share("question-only rate", "question_only_rate"),
        _number("not indexable"),
    ]
    opens = ("benchmark", "split")
    table = _table("Benchmarks and splits", columns, rows, opens=opens, is_folded=True)
    drawn = [Choice(ALL, [charts.rates(counted)])] if counted else []
    return Section("rates", "Leak rates", words, drawn, [table])


def what_leaked(facts: Facts) -> Section:
    title = "From question to answer"
    rows, counted = facts["benchmarks"], facts.with_known_total
    leaked = [row for row in counted if row["n_leaked"] or row["n_question_only"]]
    if not any(row["n_leaked"] or row["n_question_only"] for row in rows):
        return Section("flow", title, ["No item leaked, and none is question-only."])
    with_answer = (
        f"An item leaked with its answer if at least {LEAST_ANSWER_OVERLAP:.0%} of the answer was "
        "found in a document in which it leaked, with part of it if less was found."
    )
    question_only = (
        "A question-only item did not leak, but its question was found, verbatim or nearly so, "
        "without its answer. It is neither leaked nor clean."
    )
    words = [with_answer, question_only]
    flows = [charts.flow(counted)] if counted else []
    all_benchmarks = Choice(ALL, [*flows, charts.parts(rows)])
    by_benchmark = [Choice(name, [charts.flow(group)]) for name, group in _by_benchmark(leaked)]
    return Section("flow", title, words, [all_benchmarks, *by_benchmark])


def heat_map(facts: Facts) -> Section:
    title = "Benchmarks by source"
    cells = facts["cells"]
    if not cells:
        return Section("heat", title, ["Nothing leaked from any source."])
    words = [
        "Items leaked from each source; the colour is their share of the benchmark.",
        "Click a square to see its pairs.",
    ]
    sources = [row["source"] for row in facts["sources"]]
    chart = charts.heat(cells, facts["benchmarks"], sources)
    columns = [
        *(_name("benchmark"), _name("source"), _number("leaked items", "n_leaked")),
        *(_share("of its items", "item_share"), _number("documents")),
        _share("of the source", "document_share"),
        _number("question-only", "n_question_only"),
        _number("question-only documents", "n_question_only_documents"),
    ]
    opens = ("benchmark", "source")
    rows = _with_shares(facts, cells)
    table = _table("Benchmarks and sources", columns, rows, opens=opens, is_folded=True)
    return Section("heat", title, words, [Choice(ALL, [chart])], [_sources(facts), table])


def _with_shares(facts: Facts, cells: Rows) -> list[Row]:
    """Add shares to counts by benchmark and source; None if the total is unknown."""
    n_items = {row["benchmark"]: row["n_items"] for row in facts["versions"]}
    n_documents = {row["source"]: row["n_documents"] for row in facts["sources"]}
    return [
        {
            **row,
            "item_share": _quotient(row["n_leaked"], n_items.get(row["benchmark"])),
            "document_share": _quotient(row["n_documents"], n_documents.get(row["source"])),
        }
        for row in cells
    ]


def _quotient(part: int, whole: int | None) -> float | None:
    return part / whole if whole else None


def score_histograms(facts: Facts) -> Section:
    title = "Scores"
    rows = facts["scores"]
    if not rows:
        return Section("scores", title, ["Nothing was found, not even below a threshold."])
    words = [
        "All matches down to the evidence floor.",
        "If many lie close to the line, check the threshold.",
    ]
    choices = _per_detector(rows, charts.scores, facts.score_threshold)
    return Section("scores", title, words, choices)


def threshold_sweep(facts: Facts) -> Section:
    title = "Other thresholds"
    rows = facts["sweep"]
    if not rows:
        return Section("sweep", title, ["No item would leak at any threshold."])
    words = ["Items that would count as leaked at other thresholds, by score only."]
    return Section("sweep", title, words, _per_detector(rows, charts.sweep, facts.threshold))


def detectors(facts: Facts) -> Section:
    title = "Agreement between detectors"
    if len(facts["rules"]) < 2:
        return Section("rules", title, ["Only one detector was used."])
    words = ["Items that two detectors both call leaked, and items that only one of them does."]
    columns = [_name("detector", "rule"), _number("leaked items", "n_leaked"), _number("documents")]
    columns.append(_number("items that only this detector finds", "n_leaked_by_it_alone"))
    table = _table("Detectors", columns, facts["rules"], opens=("rule",))
    choices = [Choice(ALL, [charts.agreement(facts["agreement"])])] if facts["agreement"] else []
    return Section("rules", title, words, choices, [table])


def mixtures(facts: Facts) -> Section:
    title = "What the mixtures removed"
    current = [row for row in facts["mixtures"] if row["is_current"]]
    if not current:
        return Section("mixtures", title, ["No mixture was built from the inputs of this report."])
    columns = [
        *(_name("mixture"), _number("documents in"), _number("documents out"), _number("cut")),
        *(_number("unreadable, left out", "n_unreadable_left_out"), _number("tokens in")),
        _number("tokens out"),
    ]
    account = _table("Mixtures", columns, current)
    removed = facts["removed"]
    if not removed:
        return Section("mixtures", title, ["Nothing was removed."], tables=[account])
    chart = charts.removed(removed, [row["mixture"] for row in current])
    columns = [_name("mixture"), _name("what was removed", "what"), _name("why")]
    columns += [_number("documents"), _number("tokens")]
    reasons = _table("Reasons", columns, removed, is_folded=True)
    words = ["A document with several reasons counts under each of them."]
    return Section("mixtures", title, words, [Choice(ALL, [chart])], [account, reasons])


def top_items(facts: Facts) -> Section:
    title = "Items found in the most documents"
    rows = [_with_item(row) for row in facts["items"]]
    questions = _question_only_items(facts)
    if not rows:
        return Section("items", title, ["No item leaked."], tables=questions)
    columns = [
        *(_name("item"), _number("documents"), _score("best score"), _name("what leaked")),
        *(_name("detectors", "found_by"), _text("question")),
    ]
    name = f"{len(rows)} of {things(facts.totals['n_leaked'], 'item', 'items')}"
    opens = ("benchmark", "split", "instance_index")
    table = _table(name, columns, rows, opens=opens)
    return Section("items", title, [], tables=[table, *questions])


def _question_only_items(facts: Facts) -> list[Table]:
    rows = [_with_item(row) for row in facts["question_only_items"]]
    if not rows:
        return []
    columns = [_name("item"), _number("documents"), _text("question")]
    n = things(facts.totals["n_question_only"], "question-only item", "question-only items")
    opens = ("benchmark", "split", "instance_index")
    return [_table(f"{len(rows)} of {n}", columns, rows, opens=opens)]


def _with_item(row: Row) -> Row:
    item = f"{row['benchmark']} · {row['split']} · {row['instance_index']}"
    return {**row, "item": item, "question": beginning(row["question"], _QUESTION_CHARACTERS)}


def crowded_documents(facts: Facts) -> Section:
    title = "Documents with many items"
    rows = facts["documents"]
    if not rows:
        return Section("documents", title, ["No document has more than one leaked item."])
    words = ["Often copies of a benchmark, exercise books or answer keys: one explains many leaks."]
    columns = [
        *(_name("source"), _name("shard", "shard_name"), _number("row", "row")),
        *(_code("id", "doc_id"), _number("leaked items"), _number("benchmarks")),
        _score("best score"),
    ]
    name = f"{len(rows)} of {things(facts.totals['n_crowded_documents'], 'document', 'documents')}"
    return Section("documents", title, words, tables=[_table(name, columns, rows)])


def not_scanned(facts: Facts) -> Section:
    title = "Shards that were not scanned"
    rows = facts["not_scanned"]
    if not rows:
        return Section("not-scanned", title, ["Every shard was scanned against all benchmarks."])
    columns = [_name("source"), _name("shard", "shard_name"), _text("reason"), _text("remedy")]
    table = _table("All of them", [*columns, _text("benchmarks")], rows)
    return Section("not-scanned", title, [facts.notice], tables=[table])


def unreadable(facts: Facts) -> Section:
    title = "Rows that could not be read"
    n = facts.totals["n_unreadable"]
    if n is None:
        return Section("unreadable", title, ["Unknown: the report does not contain this number."])
    invalid = _invalid_utf8(facts)
    if not n:
        return Section("unreadable", title, ["Every row was read."], tables=invalid)
    columns = [_name("source"), _name("reason"), _number("rows")]
    reasons = _table("Reasons", columns, facts["unreadable_reasons"])
    rows = facts["unreadable"]
    columns = [_name("source"), _name("shard", "shard_name"), _number("row", "row")]
    columns.append(_name("reason"))
    if facts.has_snippets:  # a detail may quote the row
        columns.append(_text("detail"))
    name = f"The first {len(rows)} of {count(n)}" if n > len(rows) else "All of them"
    places = _table(name, columns, rows, is_folded=True)
    return Section("unreadable", title, [], tables=[reasons, places, *invalid])


def _invalid_utf8(facts: Facts) -> list[Table]:
    """Return a table of the documents scanned with replacement characters, if there are any."""
    n, rows = facts.totals["n_invalid_utf8"], facts["invalid_utf8"]
    if not n:
        return []
    name = f"Documents with bytes that are not UTF-8, scanned as U+FFFD: {count(n)}"
    if n > len(rows):
        name += f" (the first {len(rows)})"
    columns = [_name("source"), _name("shard", "shard_name"), _number("row", "row")]
    columns += [_number("byte", "offset"), _text("detail")]
    return [_table(name, columns, rows, is_folded=True)]


def scanned(facts: Facts) -> Section:
    tables = [
        *(_scanned_sources(facts), _versions(facts), _not_indexed(facts), _invisible(facts)),
        _made(facts.run),
    ]
    return Section("scanned", "What was scanned", scope(facts), tables=tables)


def _sources(facts: Facts) -> Table:
    """Return counts and rates by source."""
    n_items = facts.totals["n_items"]
    rows = [
        {**row, "item_share": _quotient(row["n_leaked_items"], n_items)} for row in facts["sources"]
    ]
    columns = [
        *(_name("source"), _number("documents")),
        _number("with a leak", "n_contaminated_documents"),
        *(_share("share", "contaminated_share"), _share("from", "low"), _share("to", "high")),
        _number("question-only", "n_question_only_documents"),
        _share("question-only share", "question_only_share"),
        _number("leaked items", "n_leaked_items"),
        _share("of all items", "item_share"),
    ]
    return _table("Leaks by source", columns, rows, opens=("source",))


def _scanned_sources(facts: Facts) -> Table:
    columns = [
        *(_name("source"), _number("shards"), _number("documents"), _number("characters")),
        *(_number("too short"), _number("unreadable")),
    ]
    return _table("Sources", columns, facts["sources"], opens=("source",))


def _versions(facts: Facts) -> Table:
    columns = [_name("benchmark"), _code("version"), _number("items"), _number("records")]
    return _table("Benchmarks and their versions", columns, facts["versions"], is_folded=True)


def _not_indexed(facts: Facts) -> Table:
    columns = [_name("benchmark"), _text("reason"), _number("items")]
    rows = facts["why_not_indexed"]
    return _table("Items that no detector can find, by reason", columns, rows, is_folded=True)


def _invisible(facts: Facts) -> Table:
    rows = [_with_item(row) for row in facts["invisible"]]
    columns = [_name("item"), _text("reason"), _text("question")]
    n = things(facts.totals["n_invisible"], "item", "items")
    name = f"Names of the items that no detector can find: {len(rows)} of {n}"
    return _table(name, columns, rows, is_folded=True)


def _made(run: Row) -> Table:
    named = {
        "made by": "made_by",
        "made at": "made_at",
        "report": "state",
        "scan": "scan_fingerprint",
        "frozen idf": "idf_snapshot",
    }
    rows = [{"what": name, "which": run[key]} for name, key in named.items() if run.get(key)]
    columns = [_name("what"), _code("value", "which")]
    return _table("How this report was made", columns, rows, is_folded=True)


SECTIONS = (
    *(leak_rates, what_leaked, heat_map, score_histograms, threshold_sweep, detectors),
    *(mixtures, top_items, crowded_documents, not_scanned, unreadable, scanned),
)


# Tables and choices -------------------------------------------------------------------------------


def _table(
    title: str,
    columns: Sequence[Column],
    rows: Rows,
    *,
    opens: Sequence[str] = (),
    is_folded: bool = False,
) -> Table:
    """Build a table; `opens`: the keys of a row that select its pairs."""
    cells = [[_cell(row[column.key]) for column in columns] for row in rows]
    filters = [{name: str(row[name]) for name in opens} for row in rows] if opens else []
    return Table(title, columns, cells, filters, is_folded)


def _cell(value: object) -> object:
    return shown(value) if isinstance(value, str) else value


def _name(name: str, key: str = "") -> Column:
    return Column(name, "name", key or name.replace(" ", "_"))


def _text(name: str) -> Column:
    return Column(name, "text", name)


def _code(name: str, key: str = "") -> Column:
    return Column(name, "code", key or name)


def _number(name: str, key: str = "") -> Column:
    return Column(name, "number", key or f"n_{name.replace(' ', '_')}")


def _share(name: str, key: str) -> Column:
    return Column(name, "share", key)


def _score(name: str) -> Column:
    return Column(name, "score", name.replace(" ", "_"))


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
