"""Pack pairs and documents for the page: columns for the lists, and texts in chunks.

50,000 pairs have 100 MB of text. So the list contains only the beginning of each question, and the
browser inflates the texts of a few hundred pairs when one of them is opened. It inflates the
documents when their table is opened.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any

import pyarrow as pa

from decon_core.report.html.gather import MOST_PAIRS_OF_DOCUMENT, MOST_PAIRS_OF_DOCUMENTS, Facts
from decon_core.report.html.labels import beginning

PAIRS_PER_CHUNK = 256
_HEAD_CHARACTERS = 140
_DECIMALS = 4

# Columns with few distinct values are stored as dictionaries.
_NAMES = (
    "benchmark",
    "config",
    "split",
    "detectors",
    "source",
    "shard_name",
    "kind",
    "text_part",
    "why_no_text",
    "probability",
)
_PLAIN = (
    "pair",
    "fingerprint",
    "instance_index",
    "row",
    "doc_id",
    "n_documents",
    "n_matches",
    "verdict",
    "verdict_note",
    "verdict_by",
    "verdict_at",
    "judgement",
    "text_start",
)
_SCORES = ("score", "question_overlap", "answer_overlap", "passage_overlap")
_FLAGS = {
    "is_leak": "is_contaminated",
    "is_no_answer": "is_no_answer",
    "needs_review": "needs_review",
    "is_by_score": "is_by_score",
}

_PLACE = ("source", "shard_name", "row", "doc_id")
_TEXTS = ("question", "answer", "passage", "text")
_PARTS = ("question", "answer", "passage")

_COUNTS = ("n_leaked_items", "n_no_answer_items", "n_review_items", "n_found_items")
_CALLS = {"is_contaminated": "leak", "is_no_answer": "no-answer", "needs_review": "review"}


def columns(facts: Facts) -> dict[str, Any]:
    """Return the columns of the list of pairs."""
    pairs = facts.pairs
    return {
        "n": pairs.num_rows,
        "n_all": facts.totals["n_pairs"],
        "n_all_leaks": facts.totals["n_leak_pairs"],
        "n_listed_documents": facts.documents.num_rows,
        "has_snippets": facts.has_snippets,
        "pairs_per_chunk": PAIRS_PER_CHUNK,
        "thresholds": {name: facts.score_threshold(name) for name in facts.thresholds},
        "own_thresholds": {
            name: dict(facts.own_thresholds(name))
            for name in facts.thresholds
            if not facts.has_length_threshold(name)  # scores 1 at its full length
        },
        "names": {name: dictionary(pairs[name].to_pylist()) for name in _NAMES},
        "plain": {name: pairs[name].to_pylist() for name in _PLAIN},
        "scores": {name: rounded(pairs[name].to_pylist()) for name in _SCORES},
        **{
            flag: [int(bool(value)) for value in pairs[name].to_pylist()]
            for flag, name in _FLAGS.items()
        },
        "head": [beginning(text, _HEAD_CHARACTERS) for text in pairs["question"].to_pylist()],
        "doubt": rounded(doubts(facts)),
    }


def doubts(facts: Facts) -> list[float | None]:
    """Return the distance of each score to the nearest threshold of its detectors.

    The thresholds are those of the pair's benchmark; None if none is known.
    """

    def doubt(detectors: str | None, score: float, benchmark: str | None) -> float | None:
        names = filter(None, (detectors or "").split(", "))
        thresholds = (facts.score_threshold(name, benchmark) for name in names)
        return min(
            (abs(score - threshold) for threshold in thresholds if threshold is not None),
            default=None,
        )

    columns = (facts.pairs[name].to_pylist() for name in ("detectors", "score", "benchmark"))
    return [doubt(*pair) for pair in zip(*columns, strict=True)]


def chunks(facts: Facts) -> Iterator[list[list[Any]]]:
    """Yield the texts of `PAIRS_PER_CHUNK` pairs at a time, in the order of `columns`.

    With snippets off, no text of a document is included, even if the report contains it.
    """
    pairs = facts.pairs
    if not facts.has_snippets:
        for name in ("text", "text_marks", "agreement"):
            at = pairs.column_names.index(name)
            empty = pa.nulls(pairs.num_rows, pairs.schema.field(name).type)
            pairs = pairs.set_column(at, pairs.schema.field(name), empty)
    pairs = pairs.select([*_TEXTS, *(f"{name}_marks" for name in _TEXTS), "agreement", "pair"])
    for start in range(0, pairs.num_rows, PAIRS_PER_CHUNK):
        yield [
            [
                *(row[name] for name in _TEXTS),
                *(_flat(row[f"{name}_marks"]) for name in _TEXTS),
                row["agreement"],
                [[place[name] for name in _PLACE] for place in facts.places.get(row["pair"], ())],
            ]
            for row in pairs.slice(start, PAIRS_PER_CHUNK).to_pylist()
        ]


def _flat(marks: Sequence[Mapping[str, Any]] | None) -> list[int]:
    """Return start, stop and part of each mark in one flat list."""
    flat = []
    for mark in marks or ():
        flat += [mark["start"], mark["stop"], _PARTS.index(mark["part"])]
    return flat


def documents(facts: Facts) -> dict[str, Any]:
    """Return the columns of the table of documents.

    `pairs` has the pairs of all documents one after the other; those of a document lie between its
    start and the start of the next one. A document may have more pairs (`n_pairs`) than the page.
    """
    rows = facts.documents
    numbers = {pair: at for at, pair in enumerate(facts.pairs["pair"].to_pylist())}
    pairs: list[list[int]] = []
    left = MOST_PAIRS_OF_DOCUMENTS
    for keys in rows["pairs"].to_pylist():
        known = sorted(numbers[pair] for pair in keys or () if pair in numbers)
        pairs.append(known[: min(MOST_PAIRS_OF_DOCUMENT, left)])
        left -= len(pairs[-1])
    names = {name: rows[name].to_pylist() for name in ("source", "shard_name", "shard")}
    names["benchmarks"] = [tuple(benchmarks or ()) for benchmarks in rows["benchmarks"].to_pylist()]
    names["call"] = [
        next((call for flag, call in _CALLS.items() if row[flag]), "near")
        for row in rows.select([*_CALLS]).to_pylist()
    ]
    return {
        "n": rows.num_rows,
        "n_all": facts.totals["n_found_documents"],
        "names": {name: dictionary(values) for name, values in names.items()},
        "plain": {name: rows[name].to_pylist() for name in ("row", "doc_id", "n_pairs", *_COUNTS)},
        "best_score": rounded(rows["best_score"].to_pylist()),
        "starts": [0, *accumulate(map(len, pairs))],
        "pairs": [number for numbers_of_document in pairs for number in numbers_of_document],
    }


def dictionary(values: Sequence[Any]) -> dict[str, Any]:
    """Return the sorted distinct values, and for each row the index of its value; -1 for null."""
    distinct = sorted({value for value in values if value is not None})
    index = {value: at for at, value in enumerate(distinct)}
    return {"values": distinct, "at": [index.get(value, -1) for value in values]}


def rounded(values: Sequence[float | None]) -> list[float | None]:
    return [None if value is None else round(value, _DECIMALS) for value in values]
