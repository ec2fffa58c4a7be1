"""What is to be seen, in order, and in words: sections of figures and tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from decon_core.config.policy import LEAST_ANSWER_OVERLAP, QUESTIONS_LEFT_OUT
from decon_core.report.html import charts
from decon_core.report.html.charts import Chart, by_rule
from decon_core.report.html.gather import MOST_UNREADABLE, Facts, Row, Rows
from decon_core.report.html.labels import beginning, count, share, shown, things

ALL = "all benchmarks"
_QUESTION_CHARACTERS = 160
_MOST_SOURCES_NAMED = 12
_MOST_BENCHMARKS_NAMED = 20


@dataclass(frozen=True)
class Column:
    """A column of a table, which value of a row stands in it, and how that is shown.

    name: on one line; text: on several; code: a hash; number, share, score: to the right.
    """

    name: str
    kind: str
    key: str


@dataclass(frozen=True)
class Table:
    """Rows under heads; `opens`: of each row, the filter of the pairs that it stands for."""

    title: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[object]]
    opens: Sequence[Mapping[str, str]] = ()
    is_folded: bool = False


@dataclass(frozen=True)
class Choice:
    """One of several views of the same thing."""

    name: str
    charts: Sequence[Chart]


@dataclass(frozen=True)
class Section:
    key: str
    title: str
    words: Sequence[str]  # sentences
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
    about: Sequence[tuple[str, str]] = ()  # what was looked at, with what, when
    corpus: str = ""
    sections: Sequence[Section] = field(default_factory=list)
    notice: str = ""  # above every view: that the report is incomplete


def overview(facts: Facts) -> Overview:
    return Overview(
        headlines(facts),
        asked(facts),
        notes(facts),
        [*about(facts)],
        corpus(facts),
        [section(facts) for section in SECTIONS],
        facts.notice,
    )


def headlines(facts: Facts) -> list[Headline]:
    totals = facts.totals
    n_items, n_leaked = totals["n_items"], totals["n_leaked"]
    n_both, n_part = facts.of_items("n_with_answer"), facts.of_items("n_with_part_of_answer")
    n_blind = facts.of_items("n_not_indexable")
    n_documents, n_held = totals["n_documents"], totals["n_contaminated_documents"]
    n_asked = totals["n_question_only_documents"]
    part = f"; {count(n_part)} with part of it" if n_part else ""
    return [
        Headline(count(n_leaked), "items leaked", _of(n_leaked, n_items)),
        Headline(count(n_both), "of them with their answer", _of(n_both, n_leaked) + part),
        Headline(count(n_held), "documents hold a leak", _of(n_held, n_documents)),
        Headline(
            count(n_asked),
            "more hold a question without its answer",
            f"question-only: {_of(n_asked, n_documents)}",
        ),
        Headline(
            "–" if n_items is None else count(n_blind),
            "items that no rule can see",
            _of(n_blind, n_items),
        ),
    ]


def corpus(facts: Facts) -> str:
    """The corpus by the names of its sources."""
    return _named([row["source"] for row in facts["sources"]], _MOST_SOURCES_NAMED)


def about(facts: Facts) -> Iterable[tuple[str, str]]:
    """Which corpus was searched for which versions of which benchmarks, when, and by what."""
    if facts["sources"]:
        yield "Corpus", corpus(facts)
    versions = [
        f"{row['benchmark']} ({row['version'] or 'version not known'})" for row in facts["versions"]
    ]
    if versions:
        yield "Benchmarks", _named(versions, _MOST_BENCHMARKS_NAMED)
    made_at = (facts.run.get("made_at") or "").replace("T", " ").replace("+00:00", " UTC")
    yield "Date", made_at or "not known"
    yield "Made by", shown(facts.run.get("made_by")) or "not known"
    if snapshot := facts.run.get("idf_snapshot"):
        yield "Frozen idf", shown(snapshot)


def _named(names: Sequence[str], most: int) -> str:
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(map(shown, names[:most])) + more


def asked(facts: Facts) -> list[str]:
    """What was looked for, where, and how."""
    totals = facts.totals
    rules = ", ".join(_thresholds(facts, rule) for rule in facts.thresholds)
    if totals["n_documents"] is None:
        documents = "Documents, nobody counted how many,"
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
    by_rules = f"Rules and their thresholds: {rules}." if rules else "The report names no rules."
    return [searched, by_rules]


def _thresholds(facts: Facts, rule: str) -> str:
    """A rule with its threshold, and those of single benchmarks that have another."""
    own = [f"{shown(name)}: {one:g} instead" for name, one in facts.own_thresholds(rule).items()]
    told = f"{shown(rule)} {facts.thresholds[rule]:g}"
    return f"{told} ({', '.join(own)})" if own else told


def _of(part: int, whole: int | None) -> str:
    if whole is None:
        return "of how many is not known"
    return f"{share(part, whole)} of {count(whole)}" if whole else "of none"


def notes(facts: Facts) -> list[str]:
    """What a reader must know before any number."""
    return [note for note in _possible_notes(facts) if note]


def _possible_notes(facts: Facts) -> Iterable[str]:
    totals = facts.totals
    yield _if_any(
        things(totals["n_unreadable"] or 0, "row", "rows"),
        "of the corpus could not be read. What stands there is not known, and no number here "
        "speaks of it.",
    )
    yield _if_any(
        things(totals["n_question_only_documents"], "document holds", "documents hold"),
        "the question of an item, verbatim or nearly so, without its answer (question-only). That "
        "is not a leak, and such a document is not clean.",
    )
    if not facts.run.get("keeps_question_only", True):
        yield f"Of questions without their answer {QUESTIONS_LEFT_OUT}."
    yield _if_any(
        things(facts.of_items("n_not_indexable"), "item is", "items are"),
        "detectable by no chosen rule, mostly too short or too common: neither clean nor leaked.",
    )
    yield _if_any(
        things(totals["n_too_short"], "document has", "documents have"),
        "too little text to say anything of.",
    )
    if not facts.has_snippets:
        yield "Snippets are off: no text of the training data is in this file."
    if facts.pairs.num_rows < totals["n_pairs"]:
        yield (
            f"This page has the first {count(facts.pairs.num_rows)} of {count(totals['n_pairs'])} "
            "pairs: leaks, then question-only, then near misses, and of each the best first. The "
            "database has all of them."
        )
    yield _if_any(
        things(totals["n_verdicts_not_found"], "verdict is", "verdicts are"),
        "of pairs that this scan did not find any more.",
    )
    if old := [shown(row["mixture"]) for row in facts["mixtures"] if not row["is_current"]]:
        yield f"Made from other inputs than this report, and not shown: mixture {', '.join(old)}."


def _if_any(subject: str, rest: str) -> str:
    return "" if subject.startswith("0 ") else f"{subject} {rest}"


# Sections -----------------------------------------------------------------------------------------


def leak_rates(facts: Facts) -> Section:
    rows = facts["benchmarks"]
    if not rows:
        return Section("rates", "Leak rates", ["The report has no benchmark."])
    counted = facts.counted
    words = []
    if counted:
        words.append("A dot is a benchmark and split, the line its 95 % interval (Wilson's).")
    if len(counted) < len(rows):
        words.append("Where it is not known how many items there are, there is no share.")
    if len(counted) > charts.MOST_LINES:
        words.append(
            f"Drawn are the {charts.MOST_LINES} highest of {len(counted)}; the table has all."
        )
    columns = [
        *(_name("benchmark"), _name("split"), _number("items"), _number("leaked")),
        *(_share("rate", "leak_rate"), _share("from", "low"), _share("to", "high")),
        *(_number("with answer"), _number("with part of answer"), _number("without answer")),
        _number("has no answer", "n_leaked_without_having_one"),
        *(_number("question-only", "n_question_only"), _share("rate of it", "question_only_rate")),
        _number("not indexable"),
    ]
    opens = ("benchmark", "split")
    table = _table("Benchmarks and splits", columns, rows, opens=opens, is_folded=True)
    drawn = [Choice(ALL, [charts.rates(counted)])] if counted else []
    return Section("rates", "Leak rates", words, drawn, [table])


def what_leaked(facts: Facts) -> Section:
    title = "From question to answer"
    rows, counted = facts["benchmarks"], facts.counted
    leaked = [row for row in counted if row["n_leaked"] or row["n_question_only"]]
    if not any(row["n_leaked"] or row["n_question_only"] for row in rows):
        return Section("flow", title, ["No item leaked, and none is question-only."])
    with_answer = (
        f"An item leaked with its answer where at least {LEAST_ANSWER_OVERLAP:.0%} of the answer "
        "was found in a document in which it leaked, with part of it where something less was."
    )
    question_only = (
        "A question-only item leaked nowhere: its question was found, verbatim or nearly so, "
        "without its answer. It is neither leaked nor clean."
    )
    words = [with_answer, question_only]
    flows = [charts.flow(counted)] if counted else []
    every = Choice(ALL, [*flows, charts.parts(rows)])
    own = [Choice(name, [charts.flow(group)]) for name, group in _by_benchmark(leaked)]
    return Section("flow", title, words, [every, *own])


def heat_map(facts: Facts) -> Section:
    title = "Benchmarks by source"
    cells = facts["cells"]
    if not cells:
        return Section("heat", title, ["Nothing leaked from any source."])
    words = [
        "How many items leaked from where, and which share of the benchmark that is: the colour.",
        "A click on a square shows its pairs.",
    ]
    sources = [row["source"] for row in facts["sources"]]
    chart = charts.heat(cells, facts["benchmarks"], sources)
    columns = [
        *(_name("benchmark"), _name("source"), _number("leaked items", "n_leaked")),
        *(_share("of its items", "item_share"), _number("documents")),
        _share("of the source", "document_share"),
        _number("question-only", "n_question_only"),
        _number("documents of these", "n_question_only_documents"),
    ]
    opens = ("benchmark", "source")
    rows = _with_shares(facts, cells)
    table = _table("Benchmarks and sources", columns, rows, opens=opens, is_folded=True)
    return Section("heat", title, words, [Choice(ALL, [chart])], [_sources(facts), table])


def _with_shares(facts: Facts, cells: Rows) -> list[Row]:
    """Counts by benchmark and source with the shares that they are, where wholes are known."""
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
        "Where many stand just beside the line, the threshold is worth a second look.",
    ]
    return Section("scores", title, words, _per_rule(rows, charts.scores, facts.score_threshold))


def threshold_sweep(facts: Facts) -> Section:
    title = "Other thresholds"
    rows = facts["sweep"]
    if not rows:
        return Section("sweep", title, ["Nothing was found that would leak at any threshold."])
    words = ["How many items would count as leaked at other thresholds, by score alone."]
    return Section("sweep", title, words, _per_rule(rows, charts.sweep, facts.threshold))


def rules(facts: Facts) -> Section:
    title = "Agreement between rules"
    if len(facts["rules"]) < 2:
        return Section("rules", title, ["Only one rule was used: there is nothing to compare."])
    words = ["Which items two rules both call leaked, and which only one of them does."]
    columns = [_name("rule"), _number("leaked items", "n_leaked"), _number("documents")]
    columns.append(_number("items that only this rule finds", "n_leaked_by_it_alone"))
    table = _table("Rules", columns, facts["rules"], opens=("rule",))
    choices = [Choice(ALL, [charts.agreement(facts["agreement"])])] if facts["agreement"] else []
    return Section("rules", title, words, choices, [table])


def mixtures(facts: Facts) -> Section:
    title = "What the mixtures removed"
    current = [row for row in facts["mixtures"] if row["is_current"]]
    if not current:
        return Section("mixtures", title, ["The report knows no mixture of today's inputs."])
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
    columns = [_name("mixture"), _name("what went", "what"), _name("why")]
    columns += [_number("documents"), _number("tokens")]
    reasons = _table("Reasons", columns, removed, is_folded=True)
    words = ["A document with several reasons counts under each of them."]
    return Section("mixtures", title, words, [Choice(ALL, [chart])], [account, reasons])


def top_items(facts: Facts) -> Section:
    title = "Items in most documents"
    rows = [_with_item(row) for row in facts["items"]]
    questions = _question_only_items(facts)
    if not rows:
        return Section("items", title, ["No item leaked."], tables=questions)
    columns = [
        *(_name("item"), _number("documents"), _score("best score"), _name("what leaked")),
        *(_name("rules", "found_by"), _text("question")),
    ]
    told = f"{len(rows)} of {things(facts.totals['n_leaked'], 'item', 'items')}"
    opens = ("benchmark", "split", "instance_index")
    table = _table(told, columns, rows, opens=opens)
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
    title = "Documents that hold many items"
    rows = facts["documents"]
    if not rows:
        return Section("documents", title, ["No document holds more than one leaked item."])
    words = ["Copies of a benchmark, exercise books, answer keys: one of them explains many leaks."]
    columns = [
        *(_name("source"), _name("shard", "shard_name"), _number("row", "row")),
        *(_code("id", "doc_id"), _number("leaked items"), _number("benchmarks")),
        _score("best score"),
    ]
    told = f"{len(rows)} of {things(facts.totals['n_crowded_documents'], 'document', 'documents')}"
    return Section("documents", title, words, tables=[_table(told, columns, rows)])


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
        return Section("unreadable", title, ["The report does not say whether there were any."])
    invalid = _invalid_utf8(facts)
    if not n:
        return Section("unreadable", title, ["Every row was read."], tables=invalid)
    columns = [_name("source"), _name("reason"), _number("rows")]
    reasons = _table("Reasons", columns, facts["unreadable_reasons"])
    rows = facts["unreadable"]
    columns = [_name("source"), _name("shard", "shard_name"), _number("row", "row")]
    columns.append(_name("reason"))
    if facts.has_snippets:  # it may quote the row
        columns.append(_text("detail"))
    told = f"The first {MOST_UNREADABLE} of {count(n)}" if n > len(rows) else "All of them"
    places = _table(told, columns, rows, is_folded=True)
    return Section("unreadable", title, [], tables=[reasons, places, *invalid])


def _invalid_utf8(facts: Facts) -> list[Table]:
    """Documents that were scanned with replacement characters in place of some of their bytes."""
    n, rows = facts.totals["n_invalid_utf8"], facts["invalid_utf8"]
    if not n:
        return []
    told = f"Documents with bytes that are not UTF-8, scanned as U+FFFD: {count(n)}"
    if n > len(rows):
        told += f", of which the first {MOST_UNREADABLE}"
    columns = [_name("source"), _name("shard", "shard_name"), _number("row", "row")]
    columns += [_number("byte", "offset"), _text("detail")]
    return [_table(told, columns, rows, is_folded=True)]


def scanned(facts: Facts) -> Section:
    tables = [
        *(_scanned_sources(facts), _versions(facts), _not_indexed(facts), _invisible(facts)),
        _made(facts.run),
    ]
    return Section("scanned", "What was scanned", asked(facts), tables=tables)


def _sources(facts: Facts) -> Table:
    """Rates beside counts, by source."""
    n_items = facts.totals["n_items"]
    rows = [
        {**row, "item_share": _quotient(row["n_leaked_items"], n_items)} for row in facts["sources"]
    ]
    columns = [
        *(_name("source"), _number("documents")),
        _number("with a leak", "n_contaminated_documents"),
        *(_share("share", "contaminated_share"), _share("from", "low"), _share("to", "high")),
        _number("question-only", "n_question_only_documents"),
        _share("share of these", "question_only_share"),
        _number("items leaked from here", "n_leaked_items"),
        _share("of all items", "item_share"),
    ]
    return _table("Sources: documents and items, with shares", columns, rows, opens=("source",))


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
    return _table("Items that no rule can see, by reason", columns, rows, is_folded=True)


def _invisible(facts: Facts) -> Table:
    rows = [_with_item(row) for row in facts["invisible"]]
    columns = [_name("item"), _text("reason"), _text("question")]
    n = things(facts.totals["n_invisible"], "item", "items")
    told = f"Names of the items that no rule can see: {len(rows)} of {n}"
    return _table(told, columns, rows, is_folded=True)


def _made(run: Row) -> Table:
    named = {
        "made by": "made_by",
        "made at": "made_at",
        "report": "state",
        "scan": "scan_fingerprint",
        "frozen idf": "idf_snapshot",
    }
    rows = [{"what": name, "which": run[key]} for name, key in named.items() if run.get(key)]
    columns = [_name("what"), _code("which")]
    return _table("How this report was made", columns, rows, is_folded=True)


SECTIONS = (
    *(leak_rates, what_leaked, heat_map, score_histograms, threshold_sweep, rules),
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
    """`opens`: what of a row tells its pairs from others."""
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
    """Rows in groups of one benchmark, by name; a single one is the same as all."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(row["benchmark"], []).append(row)
    return [(shown(name), groups[name]) for name in sorted(groups)] if len(groups) > 1 else []


def _per_rule(
    rows: Rows,
    draw: Callable[[Rows, float | None], Chart],
    threshold: Callable[[str, str | None], float | None],
) -> list[Choice]:
    """A figure for each rule, of all benchmarks and of each, with the threshold that applies."""

    def drawn(rule: str, own: Rows) -> Chart:
        lines = {threshold(rule, row["benchmark"]) for row in own}
        # Benchmarks with different thresholds in one figure: the line is that of all the others.
        line = lines.pop() if len(lines) == 1 else threshold(rule, None)
        return _of_rule(rule, draw(own, line))

    return [
        Choice(name, [drawn(rule, own) for rule, own in by_rule(group)])
        for name, group in [(ALL, rows), *_by_benchmark(rows)]
    ]


def _of_rule(rule: str, chart: Chart) -> Chart:
    return replace(chart, title=f"{chart.title}: {shown(rule)}")
