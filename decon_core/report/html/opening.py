"""How the page opens: what was found in a sentence, benchmarks by leak rate, and next steps."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from decon_core.report.html.gather import Facts
from decon_core.report.html.labels import count, share, shown
from decon_core.report.open import NOT_DRAWN, ONLY_SAMPLE
from decon_core.storage.paths import is_url
from decon_core.wording import counted

_CHECK = "In CI, fail if more than 1 % of a benchmark leaked"
_MOST_RANKED = 12  # benchmarks; the section of leak rates has all


@dataclass(frozen=True)
class Scanned:
    """The `decon-assets scan` that made a report: its folder, the database, and its inputs."""

    folder: Path
    database: Path
    corpus: str
    evals: Path


def opening(facts: Facts, scanned: Scanned | None = None) -> dict[str, Any]:
    """Return the verdict and its tone, the ranked benchmarks, and the next steps.

    `scanned`: given if a `decon-assets scan` made the report; it has no decon.toml to work with.
    """
    ranked = facts["ranked"]
    verdict = _verdict(facts)
    steps = _after_scan(facts, scanned) if scanned else _next_steps(facts)
    n_left = max(0, len(ranked) - _MOST_RANKED)
    return {
        "tone": _tone(facts),
        "verdict": f"{verdict} Not everything was scanned." if facts.notice else verdict,
        "ranked": [
            {
                **{name: row[name] for name in ("rate", "low", "high")},
                "benchmark": shown(row["benchmark"]),
                "filter": {"benchmark": row["benchmark"]},
                "leaked": _leaked_of(
                    row["n_leaked_checkable"], row["n_checkable"], row["n_leaked"]
                ),
                "change": _change(row),
                "source": _place(row, facts.totals["n_sources"]),
                "open": row["n_no_answer"] + row["n_review"],
            }
            for row in ranked[:_MOST_RANKED]
        ],
        "since": next((day for row in ranked if (day := (row["made_before"] or "")[:10])), ""),
        "left_out": f"{counted(n_left, 'more benchmark')}" if n_left else "",
        "next": [*steps],
    }


def _place(row: Mapping[str, Any], n_sources: int) -> str:
    """Return where the leaked items are: in one place most of them, or in how many places."""
    if not row["place"]:
        return "–"
    n_there, n = row["n_in_place"], row["n_leaked"]
    there = f"{count(n_there)} of {count(n)} in {shown(row['place'])}"
    if _has_most(row):
        return there
    return f"{_places(row, n_sources)}, {there}" if n_there > 1 else _places(row, n_sources)


def _has_most(row: Mapping[str, Any]) -> bool:
    return bool(2 * row["n_in_place"] > row["n_leaked"])


def _places(row: Mapping[str, Any], n_sources: int) -> str:
    return counted(row["n_places"], "source" if n_sources > 1 else "shard")


def _change(row: Mapping[str, Any]) -> str:
    """Return by how many percentage points the rate changed since the last report."""
    if row["rate"] is None or row["rate_before"] is None:
        return "–"
    points = f"{100 * (row['rate'] - row['rate_before']):+.1f}"
    return "same" if points in ("+0.0", "-0.0") else points.replace("-", "−")


# Counts that leave open whether something leaked.
_UNKNOWN = ("n_no_answer", "n_review", "n_unreadable", "n_not_read")


def _tone(facts: Facts) -> str:
    totals = facts.totals
    if totals["n_leaked"]:
        return "leaked"
    is_nothing = not totals["n_checkable"] or totals["n_documents"] == 0
    is_open = facts.notice or is_nothing or any(totals[name] for name in _UNKNOWN)
    return "open" if is_open else "clean"


def _verdict(facts: Facts) -> str:
    totals = facts.totals
    n_open, n_no_answer = totals["n_review"], totals["n_no_answer"]
    items = counted(n_open, "more item" if totals["n_leaked"] else "item")
    waiting = f"{items} {'needs' if n_open == 1 else 'need'} review." if n_open else ""
    if totals["n_leaked"]:
        worst = _worst(facts)
        return " ".join(filter(None, [_leaked(facts), worst, waiting]))
    if n_open or n_no_answer:
        questions = f"{counted(n_no_answer, 'question')} found without the answer."
        said = ["No leak is confirmed.", waiting, questions if n_no_answer else ""]
        return " ".join(filter(None, said))
    if totals["n_documents"] == 0:
        return "No document was scanned."
    if not totals["n_checkable"]:
        return "No leak was found."
    return f"No leak: none of the {_items(facts)} was found."


def _leaked(facts: Facts) -> str:
    n_leaked, n_checkable = facts.totals["n_leaked"], facts.totals["n_checkable"]
    n = facts.totals["n_leaked_checkable"]
    if not n_checkable or not n:
        return f"{counted(n_leaked, 'item')} leaked."
    leaked = f"{count(n)} of {_items(facts)} leaked ({share(n, n_checkable)})."
    # A person or a judge may call an item leaked that no chosen detector can find.
    n_others = n_leaked - n
    return f"{leaked} {counted(n_others, 'other item')} also leaked." if n_others else leaked


def _items(facts: Facts) -> str:
    n_checkable, n_items = facts.totals["n_checkable"], facts.totals["n_items"]
    items = counted(n_checkable, "item")
    return items if n_checkable == n_items else counted(n_checkable, "checkable item")


def _worst(facts: Facts) -> str:
    """Name the benchmark with the highest rate, and the place with most of its leaks."""
    ranked = facts["ranked"]
    worst, n = ranked[0], ranked[0]["n_leaked"]
    most, source = _from(worst, facts.totals["n_sources"]) if worst["place"] else ("", "")
    if len(ranked) == 1 or not worst["rate"]:
        them = "It is" if n == 1 else f"{most or 'They'} are"
        return f"{them} {source}." if source else ""
    leaked = _leaked_of(worst["n_leaked_checkable"], worst["n_checkable"], n)
    parts = [f"Highest rate: {shown(worst['benchmark'])}", leaked, f"{most} {source}".strip()]
    return f"{', '.join(filter(None, parts))}."


def _from(row: Mapping[str, Any], n_sources: int) -> tuple[str, str]:
    """Return how many leaks are from one place, empty if all are or none has most; and the place.

    Without such a place, it is how many places there are.
    """
    if not _has_most(row):
        return "", f"spread over {_places(row, n_sources)}"
    n_there = row["n_in_place"]
    most = f"{count(n_there)} of them" if n_there < row["n_leaked"] else ""
    return most, f"from {shown(row['place'])}"


def _leaked_of(n: int | None, n_checkable: int | None, n_leaked: int) -> str:
    if n_checkable is None:
        return count(n_leaked)
    return f"{count(n or 0)} of {count(n_checkable)}" if n_checkable else "none can be checked"


def _next_steps(facts: Facts) -> Iterator[dict[str, Any]]:
    """Yield what to do: a sentence, and the command for it."""
    if facts.notice:
        text = "Scan what is missing"
        text += ", which also builds the clean data" if facts["mixtures"] else ""
        yield {"text": text, "command": "decon-assets run"}
    if n := facts.totals["n_review_texts"]:
        text = f"Review {counted(n, 'matched text')}"
        yield {
            "text": text,
            "filter": {"outcome": "review"},
            "command": "decon-assets review --needs-review",
        }
    for mixture in [] if facts.notice else facts["clean_mixtures"][:1]:
        kept, whole = mixture["n_documents_out"], mixture["n_documents_in"]
        name = shown(mixture["mixture"])
        documents = f"{count(kept)} of {counted(whole, 'document')}"
        if n_cut := mixture["n_cut"]:
            documents += f", leaks cut out of {count(n_cut)}"
        text = f"Verify the files in mixtures/{name} ({documents}), then train on them"
        yield {"text": text, "command": f"decon-assets mixture verify {name}"}
    if facts.totals["n_leaked"] and not facts["mixtures"]:
        text = "Remove the leaks: add a [[mixture]] to decon.toml"
        yield {"text": text, "command": "decon-assets run"}
    yield {"text": _CHECK, "command": "decon-assets check --max-rate 0.01"}


def _what_is_missing(facts: Facts) -> str:
    """Return how an incomplete scan becomes complete."""
    reasons = [row["reason"] or "" for row in facts["not_scanned"]]
    if any(not reason.startswith((ONLY_SAMPLE, NOT_DRAWN)) for reason in reasons):
        return "Replace the files listed under “Shards that were not scanned”, and scan again"
    if reasons:
        return "Scan the other documents: repeat the scan without --sample"
    return "Provide the benchmarks that could not be downloaded, and scan again"


def _after_scan(facts: Facts, scanned: Scanned) -> Iterator[dict[str, Any]]:
    folder, database = (shlex.quote(str(path)) for path in (scanned.folder, scanned.database))
    if facts.notice:
        yield {"text": _what_is_missing(facts)}
    if n := facts.totals["n_review_texts"]:
        text = f"Review {counted(n, 'matched text')}"
        command = f"decon-assets review --needs-review --report {database}"
        command += " --verdicts verdicts.jsonl"
        yield {"text": text, "filter": {"outcome": "review"}, "command": command}
    if facts.totals["n_leaked"] and not is_url(scanned.corpus):  # init reads local files
        paths = f"--corpus {shlex.quote(scanned.corpus)} --evals {shlex.quote(str(scanned.evals))}"
        command = f"decon-assets init {paths} && decon-assets run"
        text = "Set up a project, and build a copy of the corpus without the leaks"
        yield {"text": text, "command": command}
    command = f"decon-assets check --report {folder} --max-rate 0.01"
    yield {"text": _CHECK, "command": command}
