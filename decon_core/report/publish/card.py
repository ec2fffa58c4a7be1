"""A section for a dataset's card: what was looked for, what was found, what nobody could see.

Markdown as the Hugging Face hub shows it. Numbers and names only: no text of the corpus or of a
benchmark stands in it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

from decon_core.config.policy import QUESTIONS_LEFT_OUT, Policy
from decon_core.report.open import incomplete_notice
from decon_core.report.publish.summary import Summary, keeps_question_only, summary_of

TITLE = "## Benchmark contamination"

_UNKNOWN = "not known"
_MEANINGS = {
    "decon": "idf-weighted overlap of question, answer and passage n-grams",
    "ratcliff": "similarity of strings, by Ratcliff and Obershelp",
    "longest_match": "share of a field that stands in a document in one piece",
    "exact": "the text itself, where it is telling enough",
    "ngram_any": "any run of so many tokens of the benchmark",
}


def card_of(report: Path) -> str:
    """The section for a report."""
    return card_from(summary_of(report))


def card_from(summary: Summary) -> str:
    """The same from a summary that is at hand."""
    sections = [
        TITLE,
        _incomplete(summary),
        _opening(summary),
        "### What was looked for",
        _benchmarks(summary),
        "### How",
        _rules(summary),
        "### What was found",
        _found(summary),
        _by_source(summary),
        *_removed(summary),
        "### What could not be seen",
        _bullets(_unseen(summary)),
        "### How to repeat it",
        _repeat(summary),
    ]
    return "\n\n".join(section for section in sections if section) + "\n"


def _opening(summary: Summary) -> str:
    benchmarks, corpus = summary["benchmarks"], summary["corpus"]
    if not benchmarks or not corpus["n_shards"]:
        return "**Nothing was looked for:** this report has no benchmark, or no text to look in."
    names = _some_of("benchmark", len(benchmarks))
    files = _some_of("file", corpus["n_shards"])
    n, rate = corpus["n_documents"], corpus["document_rate"]
    read = files if n is None else f"{_some_of('document', n)} in {files}"
    of_all = "" if rate is None else f" ({percent(rate)} of all)"
    leaked = sum(one["n_leaked"] for one in benchmarks)
    documents = _some_of("document", corpus["n_contaminated_documents"])
    return (
        f"These data were searched for the items of {names}: {read}. "
        f"{_some_of('item', leaked)} leaked into {documents}{of_all}, before anything was taken "
        f"out. {_question_only(corpus, summary['policy'])}"
    )


def _question_only(corpus: Summary, policy: Summary) -> str:
    """Said in any case: a document with a question is not clean because it is no leak."""
    n, rate = corpus["n_question_only_documents"], corpus["question_only_rate"]
    of_all = f" ({percent(rate)} of all)" if rate else ""
    hold = "holds" if n == 1 else "hold"
    left_out = "" if keeps_question_only(policy) else f" Of these {QUESTIONS_LEFT_OUT}."
    return (
        f"{_some_of('document', n)}{of_all} {hold} no leak, but the question of an item, verbatim "
        f"or nearly so, without its answer (question-only).{left_out}"
    )


def _incomplete(summary: Summary) -> str:
    """A warning before anything else; nothing where all was scanned."""
    notice = incomplete_notice(len(summary["not_scanned"]), summary["n_shards_in_corpus"])
    return f"> **{notice}**" if notice else ""


def _some_of(what: str, n: int) -> str:
    return f"{n:,} {what}{'' if n == 1 else 's'}"


def _benchmarks(summary: Summary) -> str:
    rows = [
        (
            code(one["benchmark"]),
            ", ".join(code(part["split"]) for part in one["splits"]) or "–",
            code(one["version"]) if one["version"] else _UNKNOWN,
            _count(one["n_items"]),
            _count(None if one["n_items"] is None else one["n_items"] - one["n_not_indexable"]),
        )
        for one in summary["benchmarks"]
    ]
    heads = ("benchmark", "splits", "version", "items", "of them searchable")
    return table(heads, rows, n_text=3)


def _rules(summary: Summary) -> str:
    rows = [
        (code(one["rule"]), _MEANINGS.get(one["rule"], ""), _threshold(one))
        for one in summary["rules"]
    ]
    what = "An item counts as leaked where a rule's score reaches its threshold"
    more = (
        ", or where a person who looked at the place said so. Of the findings that people judged:"
    )
    verdicts = ", ".join(f"{_plain(name)} {n:,}" for name, n in summary["verdicts"].items())
    told = f"{what}{more} {verdicts}." if verdicts else f"{what}."
    return f"{table(('rule', 'what it compares', 'threshold'), rows, n_text=2)}\n\n{told}"


def _threshold(rule: Summary) -> str:
    """The threshold, and those of single benchmarks that have another."""
    own = (f"; {code(name)}: {value:g} instead" for name, value in rule["of_benchmarks"].items())
    return f"{rule['threshold']:g}{''.join(own)}"


def _found(summary: Summary) -> str:
    rows = [
        (
            code(one["benchmark"]),
            f"{one['n_leaked']:,}",
            _share(one, "leak_rate"),
            _interval(one),
            f"{one['n_with_answer']:,}",
            f"{one['n_with_part_of_answer']:,}",
            f"{one['n_documents']:,}",
            f"{one['n_question_only']:,}",
            f"{one['n_question_only_documents']:,}",
        )
        for one in summary["benchmarks"]
    ]
    heads = (
        *("benchmark", "items leaked", "share", "95 % interval", "with their answer"),
        *("with part of it", "documents", "question-only items", "question-only documents"),
    )
    about = (
        "An item leaked *with its answer* where at least "
        f"{summary['least_answer_overlap']:.0%} of the answer was found in a document in which "
        "it leaked, *with part of it* where something less was. An item is *question-only* where "
        "its question was found without its answer, and it leaked nowhere."
    )
    return f"{table(heads, rows)}\n\n{about}"


def _by_source(summary: Summary) -> str:
    rows = [
        (
            code(one["source"]),
            _count(one["n_documents"]),
            f"{one['n_contaminated_documents']:,}",
            _share(one),
            _interval(one),
            f"{one['n_leaked_items']:,}",
            f"{one['n_question_only_documents']:,}",
            percent(one["question_only_rate"]),
        )
        for one in summary["sources"]
    ]
    heads = (
        *("source", "documents", "with a leak", "share", "95 % interval", "items leaked there"),
        *("question-only", "question-only share"),
    )
    return table(heads, rows)


def _removed(summary: Summary) -> Iterator[str]:
    """Only what was built from these inputs; of all others nobody can say anything."""
    mixtures = [one for one in summary["mixtures"] if one["is_current"]]
    others = [code(one["mixture"]) for one in summary["mixtures"] if not one["is_current"]]
    if mixtures or others:
        yield "### What was taken out"
    if others:
        yield f"Not made from what was searched here, so not counted: {', '.join(others)}."
    if not mixtures:
        return
    rows = [
        (
            code(one["mixture"]),
            f"{one['n_documents_in']:,}",
            f"{one['n_documents_out']:,}",
            _count(one["n_tokens_in"]),
            _count(one["n_tokens_out"]),
            _plain(_reasons(one)),
        )
        for one in mixtures
    ]
    heads = ("mixture", "documents", "left", "tokens", "left", "documents that went or were cut")
    yield table(heads, rows)


def _reasons(mixture: Summary) -> str:
    told = [f"{one['why']} ({one['what']}) {one['n_documents']:,}" for one in mixture["removed"]]
    return "; ".join(told) or "none"


def _unseen(summary: Summary) -> Iterator[str]:
    for one in summary["not_scanned"]:
        against = ", ".join(map(code, one["benchmarks"]))
        where = f"Shard {code(one['shard'])} of {code(one['source'])}"
        yield f"{where} was not scanned against {against}: {_plain(one['reason'] or _UNKNOWN)}."
    for one in summary["benchmarks"]:
        if one["n_items"] is None:
            yield f"How many items {code(one['benchmark'])} has: the report holds those found only."
        for reason in one["not_indexable"]:
            n = _some_of("item", reason["n_items"])
            yield f"{n} of {code(one['benchmark'])}: {_plain(reason['reason'] or _UNKNOWN)}."
    corpus = summary["corpus"]
    if corpus["n_unreadable"] is None:
        yield "Whether there were rows that could not be read: the report does not say."
    for one in summary["unreadable"]:
        n = _some_of("row", one["n_rows"])
        yield f"{n} of {code(one['source'])} that could not be read: {_plain(one['reason'])}."
    if corpus.get("n_too_short"):
        yield f"{_some_of('document', corpus['n_too_short'])} with too little text to hold an item."
    if corpus.get("n_invalid_utf8"):
        n_invalid = _some_of("document", corpus["n_invalid_utf8"])
        yield f"{n_invalid} with bytes that are not UTF-8: scanned with U+FFFD in their place."
    yield (
        "Items in other words or another language, items of benchmarks not named above, and "
        "whatever scores below the thresholds."
    )


def _repeat(summary: Summary) -> str:
    made_by = code(summary["made_by"]) if summary["made_by"] else "a program that left no name"
    marks = [
        f"{name} {code(summary[key])}"
        for name, key in (("scan settings", "scan_fingerprint"), ("idf", "idf_snapshot"))
        if summary[key]
    ]
    told = f"Made by {made_by}" + (f"; {', '.join(marks)}" if marks else "") + "."
    if not summary["policy"]:
        return told
    return (
        f"{told} With these settings in `decon.toml`, and the benchmark versions above, "
        f"`decon-assets run` finds the same:\n\n```toml\n{_settings(summary['policy'])}\n```"
    )


def _settings(policy: Summary) -> str:
    """The settings that are not the default, and those that say the most, as TOML."""
    usual = json.loads(json.dumps(asdict(Policy())))
    told = ("detectors", "contamination_score_threshold")
    lines = [
        f"{name} = {_toml(value)}"
        for name, value in sorted(policy.items())
        if name != "benchmark" and (name in told or usual.get(name) != value)
    ]
    for benchmark, own in sorted(policy.get("benchmark", {}).items()):
        # A table ends the settings before it, so these come last.
        lines += ["", f"[policy.benchmark.{_toml_key(benchmark)}]"]
        lines += [f"{name} = {_toml(value)}" for name, value in sorted(own.items())]
    return "\n".join(["[policy]", *lines])


def _toml(value: object) -> str:
    """A string, number, boolean or list: JSON is TOML here, but for the character U+007F."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _toml_key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _toml(name)


# Cells --------------------------------------------------------------------------------------------


def table(heads: Sequence[str], rows: Iterable[Sequence[str]], *, n_text: int = 1) -> str:
    """Columns of text to the left, those of numbers behind them to the right."""
    lines = [*rows]
    if not lines:
        return "None."
    rule = ["---" if at < n_text else "---:" for at in range(len(heads))]
    return "\n".join(f"| {' | '.join(line)} |" for line in (heads, rule, *lines))


def code(name: str) -> str:
    """A name that a person chose, which must not become a column, a tag or a link of the page."""
    plain = " ".join(name.split()).replace("`", "'").replace("|", "\\|")
    return f"`{plain}`" if plain else "–"


def _plain(text: str) -> str:
    plain = " ".join(text.split())
    for sign, instead in (("&", "&amp;"), ("<", "&lt;"), ("|", "\\|"), ("[", "\\["), ("`", "\\`")):
        plain = plain.replace(sign, instead)
    return plain


def _bullets(lines: Iterable[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)


def _count(n: int | None) -> str:
    return _UNKNOWN if n is None else f"{n:,}"


def _share(row: Summary, name: str = "document_rate") -> str:
    return percent(row.get(name))


def percent(share: float | None) -> str:
    """Two digits that say something, for what is worth telling may be one in a million."""
    if share is None:
        return _UNKNOWN
    return f"{share:.2%}" if share >= 0.01 or share == 0 else f"{100 * share:.2g}%"


def _interval(row: Summary) -> str:
    if row["low"] is None:
        return "–"
    return f"{percent(row['low'])} to {percent(row['high'])}"
