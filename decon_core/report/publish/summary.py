"""A report as one JSON object, and as a section for a dataset card.

The object has benchmarks, settings, findings, and what could not be detected; docs/publishing.md
describes its keys. `SCHEMA` is incremented when a reader of the old form could misread the new
meaning. An unknown number is null, never 0. The section is Markdown for the Hugging Face hub. Both
contain numbers and names only, no text of the corpus or of a benchmark.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from decon_core.config.detector_registry import find
from decon_core.config.policy import LEAST_ANSWER_OVERLAP, Policy
from decon_core.decisions.not_read import Account
from decon_core.report.blind_spots import QUESTIONS_LEFT_OUT, blind_spots
from decon_core.report.open import Coverage, coverage_in, opened, queries_in, rows_of
from decon_core.storage.checksums import note_in_database, sealed_page
from decon_core.storage.files import atomic_path, write_json
from decon_core.wording import contain, counted, have, render, said_by_rows

if TYPE_CHECKING:
    import duckdb

SCHEMA = "decon-assets/summary/5"

Summary = dict[str, Any]

_DECIMALS = 9
_MOST_SHARDS_NAMED = 3

_OF_BENCHMARK = ("splits", "detectors", "not_checkable", "checkable_by_others")

_QUERIES = queries_in(Path(__file__).with_suffix(".sql"))


def summary_of(report: Path) -> Summary:
    """Return the summary of a report; the same report gives the same object."""
    with opened(report) as connection:
        rows = {name: _rows(connection, query) for name, query in _QUERIES.items()}
        coverage = coverage_in(connection)
    *sources, corpus = rows["sources"]
    if not corpus["n_shards"]:  # unknown in a report without shards
        corpus = {**dict.fromkeys(corpus), "n_shards": 0, "n_leaked_items": 0}
    return {
        "schema": SCHEMA,
        "least_answer_overlap": LEAST_ANSWER_OVERLAP,
        **_run(rows["run"][0], rows["thresholds"]),
        "is_complete": coverage.is_complete,
        "n_shards_in_corpus": coverage.n_shards,
        "not_scanned": [_without(row, "path") for row in coverage.not_scanned],
        "not_covered": coverage.not_covered,
        "benchmarks": [
            {**row, **{name: _of(rows[name], "benchmark", row) for name in _OF_BENCHMARK}}
            for row in rows["benchmarks"]
        ],
        "corpus": _without(corpus, "source"),
        "sources": sources,
        "not_read": rows["not_read"],
        "origins": rows["origins"],
        "mixtures": [
            {**row, "removed": _of(rows["removed"], "mixture", row)} for row in rows["mixtures"]
        ],
        "verdicts": {row["verdict"]: row["n"] for row in rows["verdicts"]},
    }


def _of(rows: Sequence[Summary], key: str, whole: Summary) -> list[Summary]:
    """Return the rows of one benchmark or mixture, without its name."""
    return [_without(row, key) for row in rows if row[key] == whole[key]]


def _without(row: Mapping[str, Any], *keys: str) -> Summary:
    return {name: value for name, value in row.items() if name not in keys}


def account_in(summary: Summary) -> Account:
    """Return the account of what was not read of the shards that were scanned, and of files."""
    return Account.stored(summary["not_read"], summary["sources"])


def not_scanned_by_reason(summary: Summary) -> list[Summary]:
    """Return the shards that were not scanned, joined in one row if they differ only in `shard`.

    A row names the first shards and counts the others, which the summary lists.
    """
    groups: dict[str, list[Summary]] = {}
    for row in summary["not_scanned"]:
        groups.setdefault(str(_without(row, "pack", "shard")), []).append(row)
    return [
        {
            **rows[0],
            "shards": [row["shard"] for row in rows[:_MOST_SHARDS_NAMED]],
            "n_more": max(0, len(rows) - _MOST_SHARDS_NAMED),
        }
        for rows in groups.values()
    ]


def n_unknown_in(summary: Summary) -> int | None:
    """Return the number of items that cannot be found and were not; None if it is unknown."""
    counts = [row["n_unknown"] for row in summary["benchmarks"]]
    return None if None in counts else sum(counts)


def read_headline(connection: duckdb.DuckDBPyConnection) -> Summary:
    """Return the numbers of `format_headline`, which are kept in the note of a report."""
    (counts,) = rows_of(connection, _QUERIES["documents"])
    return {"counts": counts, "origins": rows_of(connection, _QUERIES["origins"])}


def format_headline(report: Path) -> str:
    """Return the numbers of documents by class, and what the report does not cover."""
    headline = note_in_database(report).get("headline")
    if headline is None:  # of an earlier version, or changed
        with opened(report) as connection:
            headline = read_headline(connection)
    counts, origins = headline["counts"], headline["origins"]
    n_leaks, n_questions = counts["n_leaks"], counts["n_no_answer"]
    documents = counted(n_leaks, "document")
    if (n := counts["n_documents"]) is not None:
        documents = f"{n_leaks:,} of {counted(n, 'document')}"
    policy = json.loads(counts["policy"] or "{}")
    left_out = "" if keeps_no_answer(policy) else f"; {QUESTIONS_LEFT_OUT}"
    questions = f"; {n_questions:,} more {contain(n_questions)} a question without its answer"
    lines = [f"{documents} {contain(n_leaks)} a leak{questions if n_questions else ''}{left_out}"]
    if n_review := counts["n_review"]:
        lines.append(
            f"{n_review:,} more {contain(n_review)} only similar text that nobody has reviewed "
            "yet: decon-assets review"
        )
    if n_invalid := counts["n_invalid_utf8"]:
        lines.append(
            f"{counted(n_invalid, 'document')} {have(n_invalid)} bytes that are not UTF-8 "
            "(scanned as U+FFFD): decon-assets report --query 'FROM invalid_utf8'"
        )
    lines += map(said_by_rows, origins)
    lines.append(blind_spots(policy.get("detectors", ()), counts["n_unknown"]))
    return "\n".join(lines)


def keeps_no_answer(policy: Summary) -> bool:
    """Return whether the scan kept questions without an answer below the lowest recorded score."""
    return bool(policy.get("keep_no_answer", True))


def _run(run: Summary, benchmarks: Sequence[Summary]) -> Summary:
    thresholds = json.loads(run["thresholds"] or "{}")
    own = {benchmark["benchmark"]: json.loads(benchmark["thresholds"]) for benchmark in benchmarks}
    detectors = [
        {
            "detector": detector,
            "threshold": value,
            "of_benchmarks": {
                benchmark: of_benchmark[detector]
                for benchmark, of_benchmark in own.items()
                if of_benchmark.get(detector, value) != value
            },
        }
        for detector, value in sorted(thresholds.items())
    ]
    policy = json.loads(run["policy"] or "{}")
    if tokenizer := policy.get("tokenizer_str"):
        policy["tokenizer_str"] = Path(tokenizer).name  # without its path: a summary is published
    return {**_without(run, "thresholds", "policy"), "detectors": detectors, "policy": policy}


def _rows(connection: duckdb.DuckDBPyConnection, query: str) -> list[Summary]:
    """Return the rows of a query; the last digits of a quotient differ between processors."""
    rows = rows_of(connection, query)
    for row in rows:
        floats = {name: value for name, value in row.items() if isinstance(value, float)}
        row |= {name: round(value, _DECIMALS) + 0.0 for name, value in floats.items()}
    return rows


CARD = "card.md"
SUMMARY = "summary.json"


def write_published(summary: Summary, folder: Path) -> None:
    """Write card.md and summary.json."""
    write_json(folder / SUMMARY, summary)
    write_card(summary, folder / CARD)


def write_card(summary: Summary, path: Path) -> None:
    """Write the section for a dataset card."""
    with atomic_path(path) as draft:
        draft.write_bytes(sealed_page(card_from(summary)))


def notice_of(summary: Summary) -> str:
    """Return the sentence that marks the summary of an incomplete report, or nothing."""
    not_scanned, not_covered = summary["not_scanned"], summary["not_covered"]
    n_benchmarks = len(summary["benchmarks"]) + len(not_covered)
    return Coverage(not_scanned, summary["n_shards_in_corpus"], not_covered, n_benchmarks).notice


def card_from(summary: Summary) -> str:
    """Return the section for a summary."""
    policy = summary["policy"]
    known = {row["detector"]: find(row["detector"]) for row in summary["detectors"]}
    leak = policy.get("leak", Policy.leak)
    return render(
        "report/publish/card.md.j2",
        **summary,
        notice=notice_of(summary),
        not_scanned_by_reason=not_scanned_by_reason(summary),
        not_read_lines=[line.text for line in account_in(summary).lines()],
        left_out="" if keeps_no_answer(policy) else QUESTIONS_LEFT_OUT,
        meanings={name: found.summary if found else "" for name, found in known.items()},
        without_proof=[name for name, found in known.items() if found and not found.acts(leak)],
        blind_spots=blind_spots(known, n_unknown_in(summary)),
        settings=_settings(policy) if policy else "",
    )


def _settings(policy: Summary) -> str:
    """Return the settings that are not the default, and the detectors' thresholds, as TOML."""
    defaults = json.loads(json.dumps(asdict(Policy())))
    chosen = filter(None, map(find, policy.get("detectors", ())))
    always = {"detectors", *(detector.threshold.setting for detector in chosen)}
    lines = [
        f"{name} = {_toml(value)}"
        for name, value in sorted(policy.items())
        if name != "benchmark" and (name in always or defaults.get(name) != value)
    ]
    for benchmark, settings in sorted(policy.get("benchmark", {}).items()):
        # TOML: keys after a table's header belong to that table, so tables come last.
        is_bare = re.fullmatch(r"[A-Za-z0-9_-]+", benchmark)
        lines += ["", f"[policy.benchmark.{benchmark if is_bare else _toml(benchmark)}]"]
        lines += [f"{name} = {_toml(value)}" for name, value in sorted(settings.items())]
    return "\n".join(["[policy]", *lines])


def _toml(value: object) -> str:
    """Format a string, number, boolean or list: as JSON, except for the character U+007F."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
