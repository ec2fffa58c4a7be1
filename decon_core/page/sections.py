"""What is to be seen, in order, and in words: sections of figures and tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from decon_core.page import charts
from decon_core.page.charts import Chart
from decon_core.page.gather import MOST_UNREADABLE, Facts, Row, Rows
from decon_core.page.labels import beginning, count, label, share, shown, things

ALL = "all benchmarks"
_QUESTION_CHARACTERS = 160


@dataclass(frozen=True)
class Column:
    """A column of a table: `number` stands right, `share` as percent, `text` and `name` as they are."""

    name: str
    kind: str = "name"


@dataclass(frozen=True)
class Table:
    """Rows under heads; `opens`: of each row, the filter of the pairs that it stands for."""

    title: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[object]]
    opens: Sequence[dict[str, str] | None] = ()
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
    words: Sequence[str]
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
    notes: Sequence[str]
    sections: Sequence[Section] = field(default_factory=list)


def overview(facts: Facts) -> Overview:
    return Overview(headlines(facts), notes(facts), [make(facts) for make in SECTIONS])


def headlines(facts: Facts) -> list[Headline]:
    totals = facts.totals
    n_items, n_leaked = totals["n_items"], totals["n_leaked"]
    n_both = sum(row["n_question_and_answer"] for row in facts["benchmarks"])
    n_blind = sum(row["n_not_indexable"] for row in facts["benchmarks"])
    n_documents, n_held = totals["n_documents"], totals["n_contaminated_documents"]
    return [
        Headline(
            count(n_leaked), "items leaked", f"{share(n_leaked, n_items)} of {count(n_items)}"
        ),
        Headline(count(n_both), "with their answer", f"{share(n_both, n_leaked)} of those"),
        Headline(
            count(n_held),
            "documents hold a leak",
            f"{share(n_held, n_documents)} of {count(n_documents)}",
        ),
        Headline(
            count(n_blind),
            "items no rule can see",
            f"{share(n_blind, n_items)} of {count(n_items)}",
        ),
    ]


def notes(facts: Facts) -> list[str]:
    """What a reader must know before any number."""
    totals = facts.totals
    told = []
    if n_unreadable := totals["n_unreadable"]:
        told.append(
            f"{things(n_unreadable, 'row', 'rows')} of the corpus could not be read. "
            "What stands in them is not known, and no number here speaks of them."
        )
    if n_blind := sum(row["n_not_indexable"] for row in facts["benchmarks"]):
        told.append(
            f"{things(n_blind, 'item is', 'items are')} too short or too common for every chosen "
            "rule. They are neither clean nor leaked: nobody looked."
        )
    if n_short := totals["n_too_short"]:
        told.append(
            f"{things(n_short, 'document has', 'documents have')} too little text to say anything of."
        )
    if not facts.has_snippets:
        told.append("Snippets are off: no text of the training data is in this file.")
    shown_pairs = facts.pairs.num_rows
    if shown_pairs < totals["n_pairs"]:
        told.append(
            f"This page has {count(shown_pairs)} of {count(totals['n_pairs'])} pairs, leaks first "
            "and the best first. The database has all of them."
        )
    if gone := totals["n_verdicts_not_found"]:
        told.append(
            f"{things(gone, 'verdict is', 'verdicts are')} of pairs that this scan did not find any more."
        )
    old = [row["mixture"] for row in facts["mixtures"] if not row["is_current"]]
    if old:
        names = ", ".join(shown(name) for name in old)
        told.append(
            f"Made from other inputs than this report, and counted nowhere: mixture {names}."
        )
    return told


def scanned(facts: Facts) -> Section:
    totals, run = facts.totals, facts.run
    rules = ", ".join(f"{shown(rule)} from {value:g}" for rule, value in facts.thresholds.items())
    words = [
        f"{things(totals['n_documents'], 'document', 'documents')} in "
        f"{things(totals['n_shards'], 'shard', 'shards')} of "
        f"{things(totals['n_sources'], 'source', 'sources')} were searched for "
        f"{things(totals['n_items'], 'item', 'items')} of "
        f"{things(totals['n_benchmarks'], 'benchmark', 'benchmarks')}.",
        f"Rules and their thresholds: {rules}." if rules else "The report names no rules.",
    ]
    sources = Table(
        "Sources",
        [Column("source")]
        + _numbers("shards", "documents", "characters", "too short", "unreadable")
        + [
            *_numbers("documents with a leak"),
            Column("share", "share"),
            *_numbers("items leaked from here"),
        ],
        [
            [shown(row["source"]), row["n_shards"], row["n_documents"], row["n_characters"]]
            + [row["n_too_short"], row["n_unreadable"], row["n_contaminated_documents"]]
            + [row["contaminated_share"], row["n_leaked_items"]]
            for row in facts["sources"]
        ],
        [{"source": row["source"]} for row in facts["sources"]],
    )
    versions = Table(
        "Benchmarks and their versions",
        [Column("benchmark"), Column("version", "code"), *_numbers("items", "records")],
        [
            [shown(row["benchmark"]), shown(row["version"]), row["n_items"], row["n_records"]]
            for row in facts["versions"]
        ],
        is_folded=True,
    )
    return Section("scanned", "What was scanned", words, tables=[sources, versions, _made(run)])


def _made(run: Row) -> Table:
    rows = [
        [name, shown(run.get(key))]
        for name, key in (
            ("made by", "made_by"),
            ("report", "state"),
            ("scan", "scan_fingerprint"),
            ("frozen idf", "idf_snapshot"),
        )
        if run.get(key)
    ]
    return Table(
        "How this report was made", [Column("what"), Column("which", "code")], rows, is_folded=True
    )


def leak_rates(facts: Facts) -> Section:
    rows = facts["benchmarks"]
    words = [
        "Each dot is a benchmark and split; the line is its 95 % interval (Wilson). "
        "A dot opens its pairs."
    ]
    if len(rows) > charts.MOST_LINES:
        words.append(f"Drawn: the {charts.MOST_LINES} highest of {len(rows)}; the table has all.")
    table = Table(
        "Benchmarks and splits",
        [Column("benchmark"), Column("split"), *_numbers("items", "leaked")]
        + [Column("rate", "share"), Column("from", "share"), Column("to", "share")]
        + _numbers("question + answer", "question only", "no answer to leak", "not indexable"),
        [
            [shown(row["benchmark"]), shown(row["split"]), row["n_items"], row["n_leaked"]]
            + [row["leak_rate"], row["low"], row["high"], row["n_question_and_answer"]]
            + [row["n_question_only"], row["n_leaked_without_answer"], row["n_not_indexable"]]
            for row in rows
        ],
        [_opens(row, "benchmark", "split") if row["n_leaked"] else None for row in rows],
        is_folded=True,
    )
    if not rows:
        return Section("rates", "Leak rates", ["The report has no benchmark."])
    return Section("rates", "Leak rates", words, [Choice(ALL, [charts.rates(rows)])], [table])


def what_leaked(facts: Facts) -> Section:
    rows = facts["benchmarks"]
    title = "From question to answer"
    if not any(row["n_leaked"] for row in rows):
        return Section("flow", title, ["No item leaked."])
    words = [
        "An item leaks by its question. It counts as question + answer where anything of its "
        "answer stands in a document, too."
    ]
    charts_of = [(ALL, rows), *_by_benchmark([row for row in rows if row["n_leaked"]])]
    choices = [
        Choice(name, [charts.flow(own), *([charts.parts(own)] if name == ALL else [])])
        for name, own in charts_of
    ]
    return Section("flow", title, words, choices)


def heat_map(facts: Facts) -> Section:
    title = "Benchmarks by source"
    sources = [row["source"] for row in facts["sources"]]
    if not facts["cells"]:
        return Section("heat", title, ["Nothing leaked from any source."])
    words = [
        "How many items leaked from where; the colour is the share of the benchmark. A square opens its pairs."
    ]
    chart = charts.heat(facts["cells"], facts["benchmarks"], sources)
    table = Table(
        "Benchmarks and sources",
        [Column("benchmark"), Column("source"), *_numbers("leaked items", "documents")],
        [
            [shown(row["benchmark"]), shown(row["source"]), row["n_leaked"], row["n_documents"]]
            for row in facts["cells"]
        ],
        [_opens(row, "benchmark", "source") for row in facts["cells"]],
        is_folded=True,
    )
    return Section("heat", title, words, [Choice(ALL, [chart])], [table])


def score_histograms(facts: Facts) -> Section:
    title = "Scores"
    rows = facts["scores"]
    if not rows:
        return Section("scores", title, ["Nothing was found, not even below a threshold."])
    words = [
        "All matches down to the evidence floor. Where many stand just left of the line, "
        "the threshold is worth a second look."
    ]
    return Section("scores", title, words, _per_rule(rows, charts.scores, facts.score_threshold))


def threshold_sweep(facts: Facts) -> Section:
    title = "Other thresholds"
    rows = facts["sweep"]
    if not rows:
        return Section("sweep", title, ["Nothing was found that would leak at any threshold."])
    words = ["How many items would count as leaked at other thresholds, by score alone."]
    return Section("sweep", title, words, _per_rule(rows, charts.sweep, facts.thresholds.get))


def _per_rule(
    rows: Rows,
    draw: Callable[[Rows, float | None], Chart],
    threshold: Callable[[str], float | None],
) -> list[Choice]:
    return [
        Choice(
            name,
            [_named(draw(group, threshold(rule)), rule) for rule, group in charts.by_rule(own)],
        )
        for name, own in [(ALL, rows), *_by_benchmark(rows)]
    ]


def _named(chart: Chart, rule: str) -> Chart:
    return Chart(f"{chart.title}: {shown(rule)}", chart.data, chart.layout, chart.opens)


def rules(facts: Facts) -> Section:
    title = "Agreement between rules"
    if len(facts["rules"]) < 2:
        return Section("rules", title, ["One rule was used, so there is nothing to compare."])
    words = ["Which items two rules both call leaked, and which only one of them does."]
    table = Table(
        "Rules",
        [Column("rule"), *_numbers("leaked items", "documents", "items only this rule finds")],
        [
            [shown(row["rule"]), row["n_leaked"], row["n_documents"], row["n_leaked_by_it_alone"]]
            for row in facts["rules"]
        ],
        [_opens(row, "rule") for row in facts["rules"]],
    )
    choices = [Choice(ALL, [charts.agreement(facts["agreement"])])] if facts["agreement"] else []
    return Section("rules", title, words, choices, [table])


def mixtures(facts: Facts) -> Section:
    title = "What the mixtures removed"
    current = [row for row in facts["mixtures"] if row["is_current"]]
    if not current:
        return Section("mixtures", title, ["The report knows no mixture of today's inputs."])
    words = ["A document with several reasons counts under each of them."]
    names = [row["mixture"] for row in current]
    account = Table(
        "Mixtures",
        [Column("mixture"), *_numbers("documents in", "documents out", "cut")]
        + _numbers("unreadable, left out", "tokens in", "tokens out"),
        [
            [shown(row["mixture"]), row["n_documents_in"], row["n_documents_out"], row["n_cut"]]
            + [row["n_unreadable_left_out"], row["n_tokens_in"], row["n_tokens_out"]]
            for row in current
        ],
    )
    reasons = Table(
        "Reasons",
        [Column("mixture"), Column("what went"), Column("why"), *_numbers("documents", "tokens")],
        [
            [shown(row["mixture"]), shown(row["what"]), shown(row["why"])]
            + [row["n_documents"], row["n_tokens"]]
            for row in facts["removed"]
        ],
        is_folded=True,
    )
    if not facts["removed"]:
        return Section("mixtures", title, ["Nothing was removed."], tables=[account])
    chart = charts.removed(facts["removed"], names)
    return Section("mixtures", title, words, [Choice(ALL, [chart])], [account, reasons])


def top_items(facts: Facts) -> Section:
    title = "Items in most documents"
    rows = facts["items"]
    if not rows:
        return Section("items", title, ["No item leaked."])
    table = Table(
        f"{len(rows)} of {things(facts.totals['n_leaked'], 'item', 'items')}",
        [Column("item"), *_numbers("documents"), Column("score", "score"), Column("what leaked")]
        + [Column("rules"), Column("question", "text")],
        [
            [f"{shown(row['benchmark'])} · {shown(row['split'])} · {row['instance_index']}"]
            + [row["n_documents"], row["best_score"], row["what_leaked"], shown(row["found_by"])]
            + [beginning(row["question"], _QUESTION_CHARACTERS)]
            for row in rows
        ],
        [_opens(row, "benchmark", "split", "instance_index") for row in rows],
    )
    return Section("items", title, [], tables=[table])


def crowded_documents(facts: Facts) -> Section:
    title = "Documents that hold many items"
    rows = facts["documents"]
    if not rows:
        return Section("documents", title, ["No document holds more than one leaked item."])
    words = ["Copies of a benchmark, exercise books, answer keys: one of them explains many leaks."]
    table = Table(
        f"{len(rows)} of {things(facts.totals['n_crowded_documents'], 'document', 'documents')}",
        [Column("source"), Column("shard"), *_numbers("row"), Column("id", "code")]
        + [*_numbers("leaked items", "benchmarks"), Column("best score", "score")],
        [
            [shown(row["source"]), shown(row["shard_name"]), row["row"], shown(row["doc_id"])]
            + [row["n_leaked_items"], row["n_benchmarks"], row["best_score"]]
            for row in rows
        ],
    )
    return Section("documents", title, words, tables=[table])


def unreadable(facts: Facts) -> Section:
    title = "Rows that could not be read"
    n = facts.totals["n_unreadable"]
    if not n:
        return Section("unreadable", title, ["Every row was read."])
    reasons = Table(
        "Reasons",
        [Column("source"), Column("reason"), *_numbers("rows")],
        [
            [shown(row["source"]), shown(row["reason"]), row["n_rows"]]
            for row in facts["unreadable_reasons"]
        ],
    )
    rows = facts["unreadable"]
    # The detail may quote the row.
    details = [Column("detail", "text")] if facts.has_snippets else []
    places = Table(
        f"The first {MOST_UNREADABLE} of {count(n)}" if n > len(rows) else "All of them",
        [Column("source"), Column("shard"), *_numbers("row"), Column("reason"), *details],
        [
            [shown(row["source"]), shown(row["shard_name"]), row["row"], shown(row["reason"])]
            + ([shown(row["detail"])] if details else [])
            for row in rows
        ],
        is_folded=True,
    )
    return Section("unreadable", title, [], tables=[reasons, places])


SECTIONS = (
    *(leak_rates, what_leaked, heat_map, score_histograms, threshold_sweep, rules),
    *(mixtures, top_items, crowded_documents, unreadable, scanned),
)


def _numbers(*names: str) -> list[Column]:
    return [Column(name, "number") for name in names]


def _opens(row: Row, *names: str) -> dict[str, str]:
    return {name: str(row[name]) for name in names}


def _by_benchmark(rows: Rows) -> list[tuple[str, list[Row]]]:
    """Rows in groups of one benchmark, by name; a single one is the same as all."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(row["benchmark"], []).append(row)
    return [(shown(name), groups[name]) for name in sorted(groups)] if len(groups) > 1 else []
