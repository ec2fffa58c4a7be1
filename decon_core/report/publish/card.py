"""A contamination section for a dataset card, in Markdown for the Hugging Face hub.

It contains numbers and names only, no text of the corpus or of a benchmark.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

from decon_core.config.detectors import get
from decon_core.config.policy import QUESTIONS_LEFT_OUT, Policy
from decon_core.report.open import incomplete_notice
from decon_core.report.publish.summary import Summary, keeps_question_only, summary_of
from decon_core.wording import counted, hold

TITLE = "## Benchmark contamination"

_UNKNOWN = "unknown"


def card_of(report: Path) -> str:
    """Return the section for a report."""
    return card_from(summary_of(report))


def card_from(summary: Summary) -> str:
    """Return the section for a summary."""
    sections = [
        TITLE,
        _incomplete(summary),
        _opening(summary),
        "### What was searched for",
        _benchmarks(summary),
        "### How",
        _detectors(summary),
        "### What was found",
        _found(summary),
        _by_source(summary),
        *_removed(summary),
        "### What cannot be found",
        _bullets(_not_detectable(summary)),
        "### How to reproduce it",
        _reproduce(summary),
    ]
    return "\n\n".join(section for section in sections if section) + "\n"


def _opening(summary: Summary) -> str:
    benchmarks, corpus = summary["benchmarks"], summary["corpus"]
    if not benchmarks or not corpus["n_shards"]:
        return "**Nothing was searched:** this report has no benchmark or no shard."
    names = counted(len(benchmarks), "benchmark")
    files = counted(corpus["n_shards"], "file")
    n, rate = corpus["n_documents"], corpus["document_rate"]
    read = files if n is None else f"{counted(n, 'document')} in {files}"
    of_all = "" if rate is None else f" ({percent(rate)} of all)"
    leaked = sum(one["n_leaked"] for one in benchmarks)
    documents = counted(corpus["n_contaminated_documents"], "document")
    return (
        f"This dataset was searched for the items of {names}: {read}. "
        f"{counted(leaked, 'item')} leaked into {documents}{of_all}, before any removal. "
        f"{_question_only(corpus, summary['policy'])}"
    )


def _question_only(corpus: Summary, policy: Summary) -> str:
    """Always reported: a document with only a question is not a leak, but not clean either."""
    n, rate = corpus["n_question_only_documents"], corpus["question_only_rate"]
    of_all = f" ({percent(rate)} of all)" if rate else ""
    left_out = "" if keeps_question_only(policy) else f" Note: {QUESTIONS_LEFT_OUT}."
    return (
        f"{counted(n, 'document')}{of_all} {hold(n)} no leak, but the question of an item "
        f"(verbatim or nearly so) without its answer: question-only.{left_out}"
    )


def _incomplete(summary: Summary) -> str:
    """Return the notice of an incomplete report; empty for a complete one."""
    notice = incomplete_notice(len(summary["not_scanned"]), summary["n_shards_in_corpus"])
    return f"> **{notice}**" if notice else ""


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
    heads = ("benchmark", "splits", "version", "items", "detectable items")
    return table(heads, rows, n_text=3)


def _detectors(summary: Summary) -> str:
    rows = [
        (code(one["rule"]), get(one["rule"]).summary, _threshold(one)) for one in summary["rules"]
    ]
    text = "An item counts as leaked if the score of a detector reaches its threshold"
    if verdicts := ", ".join(f"{_plain(name)} {n:,}" for name, n in summary["verdicts"].items()):
        text += f", or if a reviewer called it a leak. Verdicts of reviewers: {verdicts}"
    return f"{table(('detector', 'what it compares', 'threshold'), rows, n_text=2)}\n\n{text}."


def _threshold(detector: Summary) -> str:
    """Return the threshold, followed by those of benchmarks with another one."""
    others = (f"; {code(name)}: {value:g}" for name, value in detector["of_benchmarks"].items())
    return f"{detector['threshold']:g}{''.join(others)}"


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
        "An item leaked *with its answer* if at least "
        f"{summary['least_answer_overlap']:.0%} of the answer was found in a document in which "
        "it leaked, *with part of it* if less was found. An item is *question-only* if its "
        "question was found without its answer and it did not leak."
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
        *("source", "documents", "with a leak", "share", "95 % interval", "items leaked"),
        *("question-only", "question-only share"),
    )
    return table(heads, rows)


def _removed(summary: Summary) -> Iterator[str]:
    """Yield the mixtures built from the inputs of this report, and the names of the others."""
    mixtures = [one for one in summary["mixtures"] if one["is_current"]]
    others = [code(one["mixture"]) for one in summary["mixtures"] if not one["is_current"]]
    if mixtures or others:
        yield "### What was removed"
    if others:
        yield f"Built from other inputs than this report, so not counted: {', '.join(others)}."
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
    heads = ("mixture", "documents", "kept", "tokens", "kept", "documents removed or cut")
    yield table(heads, rows)


def _reasons(mixture: Summary) -> str:
    reasons = (f"{one['why']} ({one['what']}) {one['n_documents']:,}" for one in mixture["removed"])
    return "; ".join(reasons) or "none"


def _not_detectable(summary: Summary) -> Iterator[str]:
    for one in summary["not_scanned"]:
        against = ", ".join(map(code, one["benchmarks"]))
        where = f"Shard {code(one['shard'])} of {code(one['source'])}"
        yield f"{where} was not scanned against {against}: {_plain(one['reason'] or _UNKNOWN)}."
    for one in summary["benchmarks"]:
        if one["n_items"] is None:
            yield f"Number of items of {code(one['benchmark'])}: unknown."
        for reason in one["not_indexable"]:
            n = counted(reason["n_items"], "item")
            yield f"{n} of {code(one['benchmark'])}: {_plain(reason['reason'] or _UNKNOWN)}."
    corpus = summary["corpus"]
    if corpus["n_unreadable"] is None:
        yield "Number of unreadable rows: unknown."
    for one in summary["unreadable"]:
        n = counted(one["n_rows"], "row")
        yield f"{n} of {code(one['source'])} could not be read: {_plain(one['reason'])}."
    if corpus.get("n_too_short"):
        yield f"{counted(corpus['n_too_short'], 'document')} too short to contain an item."
    if corpus.get("n_invalid_utf8"):
        n_invalid = counted(corpus["n_invalid_utf8"], "document")
        yield f"{n_invalid} with bytes that are not UTF-8, scanned as U+FFFD."
    yield (
        "Paraphrased or translated items, items of benchmarks not named above, and matches that "
        "score below the thresholds."
    )


def _reproduce(summary: Summary) -> str:
    made_by = code(summary["made_by"]) if summary["made_by"] else "an unknown program"
    fingerprints = [
        f"{name} {code(summary[key])}"
        for name, key in (("scan settings", "scan_fingerprint"), ("idf", "idf_snapshot"))
        if summary[key]
    ]
    origin = f"Made by {made_by}" + (f"; {', '.join(fingerprints)}" if fingerprints else "") + "."
    if not summary["policy"]:
        return origin
    return (
        f"{origin} With these settings in `decon.toml` and the benchmark versions above, "
        f"`decon-assets run` gives the same result:\n\n```toml\n{_settings(summary['policy'])}\n```"
    )


def _settings(policy: Summary) -> str:
    """Return the settings that are not the default, and the most important ones, as TOML."""
    defaults = json.loads(json.dumps(asdict(Policy())))
    always = ("detectors", "contamination_score_threshold")
    lines = [
        f"{name} = {_toml(value)}"
        for name, value in sorted(policy.items())
        if name != "benchmark" and (name in always or defaults.get(name) != value)
    ]
    for benchmark, settings in sorted(policy.get("benchmark", {}).items()):
        # TOML: keys after a table's header belong to that table, so tables come last.
        lines += ["", f"[policy.benchmark.{_toml_key(benchmark)}]"]
        lines += [f"{name} = {_toml(value)}" for name, value in sorted(settings.items())]
    return "\n".join(["[policy]", *lines])


def _toml(value: object) -> str:
    """Format a string, number, boolean or list: as JSON, except for the character U+007F."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _toml_key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _toml(name)


# Cells --------------------------------------------------------------------------------------------


def table(heads: Sequence[str], rows: Iterable[Sequence[str]], *, n_text: int = 1) -> str:
    """Return a Markdown table; the first `n_text` columns are left-aligned, the others right."""
    lines = [*rows]
    if not lines:
        return "None."
    alignment = ["---" if at < n_text else "---:" for at in range(len(heads))]
    return "\n".join(f"| {' | '.join(line)} |" for line in (heads, alignment, *lines))


def code(name: str) -> str:
    """Return a name as code, so that it cannot form a table cell, a tag or a link."""
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
    """Format a share as percent with two significant digits below 1 %."""
    if share is None:
        return _UNKNOWN
    return f"{share:.2%}" if share >= 0.01 or share == 0 else f"{100 * share:.2g}%"


def _interval(row: Summary) -> str:
    if row["low"] is None:
        return "–"
    return f"{percent(row['low'])} to {percent(row['high'])}"
