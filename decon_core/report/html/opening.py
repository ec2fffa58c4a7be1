"""How the page opens: what was found in a sentence, benchmarks by leak rate, and what to do next."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

from decon_core.report.html.gather import Facts, Row
from decon_core.report.html.labels import count, share, shown
from decon_core.wording import counted

_MOST_RANKED = 12  # benchmarks; the section of leak rates has all


def opening(facts: Facts) -> dict[str, Any]:
    """Return the verdict and its tone, the ranked benchmarks, and the next steps."""
    ranked = facts["ranked"]
    verdict = _verdict(facts)
    n_left = max(0, len(ranked) - _MOST_RANKED)
    return {
        "tone": _tone(facts),
        "verdict": f"{verdict} Not everything was scanned." if facts.notice else verdict,
        "ranked": [
            {
                **{name: row[name] for name in ("rate", "low", "high")},
                "benchmark": shown(row["benchmark"]),
                "filter": {"benchmark": row["benchmark"]},
                "leaked": _leaked_of(row["n_leaked_findable"], row["n_findable"], row["n_leaked"]),
                "source": shown(row["source"]) if row["source"] else "–",
                "open": row["n_question_only"] + row["n_candidates"],
            }
            for row in ranked[:_MOST_RANKED]
        ],
        "left_out": f"{counted(n_left, 'more benchmark')} below." if n_left else "",
        "next": [*_next_steps(facts)],
    }


def _tone(facts: Facts) -> str:
    totals = facts.totals
    if totals["n_leaked"]:
        return "leaked"
    unknown = ("n_question_only", "n_candidates", "n_bytes_unread", "n_unreadable")
    is_open = facts.notice or not totals["n_findable"] or any(totals[name] for name in unknown)
    return "open" if is_open else "clean"


def _verdict(facts: Facts) -> str:
    totals = facts.totals
    n_open = totals["n_candidates"]
    waiting = f"{counted(n_open, 'item')} may have leaked, as changed or partial text was found"
    if totals["n_leaked"]:
        leaked = f"{_leaked(facts)}{_worst(facts['ranked'])}."
        return f"{leaked} {waiting}: to be reviewed." if n_open else leaked
    n_question_only = totals["n_question_only"]
    questions = f"{counted(n_question_only, 'question')} found without its answer."
    if n_open:
        said = f"No leak is confirmed, but {waiting}: to be reviewed."
    elif n_question_only:
        said = "No item leaked with its answer."
    elif totals["n_findable"]:
        n_documents = totals["n_documents"]
        place = "the corpus" if n_documents is None else counted(n_documents, "document")
        return f"No leak: none of the {count(totals['n_findable'])} items is in {place}."
    else:
        return "No leak was found."
    return f"{said} {questions}" if n_question_only else said


def _leaked(facts: Facts) -> str:
    n_leaked, n_findable = facts.totals["n_leaked"], facts.totals["n_findable"]
    if not n_findable:
        return f"{counted(n_leaked, 'item')} leaked"
    n = facts.totals["n_leaked_findable"]
    return f"{count(n)} of {counted(n_findable, 'item')} leaked ({share(n, n_findable)})"


def _worst(ranked: list[Row]) -> str:
    """Name the benchmark with the highest rate, and the source that most of it is in."""
    worst = ranked[0]
    said = ""
    if len(ranked) > 1 and worst["rate"]:
        n, n_findable = worst["n_leaked_findable"], worst["n_findable"]
        said = f", most of {shown(worst['benchmark'])} ({share(n, n_findable)})"
    return f"{said}, mainly from {shown(worst['source'])}" if worst["source"] else said


def _leaked_of(n: int | None, n_findable: int | None, n_leaked: int) -> str:
    if n_findable is None:
        return count(n_leaked)
    return f"{count(n or 0)} of {count(n_findable)}" if n_findable else "none can be checked"


def _next_steps(facts: Facts) -> Iterator[dict[str, Any]]:
    """Yield what to do: a sentence, and the command or the link for it."""
    if facts.notice:
        yield {"text": "Scan what is missing", "command": "decon-assets run"}
    if n := facts.totals["n_candidate_pairs"]:
        text = f"Review {counted(n, 'doubtful finding')}"
        yield {"text": text, "filter": {"call": "candidate"}, "command": "decon-assets review"}
    for mixture in facts["current_mixtures"][:1]:
        kept, whole = mixture["n_documents_out"], mixture["n_documents_in"]
        name = mixture["mixture"]
        text = f"Train on the clean data, {count(kept)} of {counted(whole, 'document')}"
        href = f"../mixtures/{quote(name)}/"
        yield {"text": text, "href": href, "link": f"mixtures/{shown(name)}"}
    if facts.totals["n_leaked"] and not facts["mixtures"]:
        yield {"text": "Remove the leaks: add a [[mixture]]", "command": "decon-assets run"}
    text = "Fail a build above a leak rate"
    yield {"text": text, "command": "decon-assets check --max-rate 0.01"}
