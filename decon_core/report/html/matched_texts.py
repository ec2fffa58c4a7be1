"""Pack matched texts and documents for the page: columns for the lists, and texts in chunks.

With their context, 50,000 of them have 100 MB. So the list contains only the beginning of each
question, and the browser inflates a few hundred when one of them is opened. It inflates the
documents when their table is opened.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any

import pyarrow as pa

from decon_core.report.html.gather import MOST_TEXTS_OF_DOCUMENT, MOST_TEXTS_OF_DOCUMENTS, Facts
from decon_core.report.html.labels import beginning

TEXTS_PER_CHUNK = 256
_HEAD_CHARACTERS = 140
_DECIMALS = 4

# Columns with few distinct values are stored as dictionaries.
_NAMES = (
    "benchmark",
    "benchmarks",
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
    "text_id",
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
_OUTCOMES = {"is_contaminated": "leak", "is_no_answer": "no-answer", "needs_review": "review"}


def columns(facts: Facts) -> dict[str, Any]:
    """Return the columns of the list of matched texts."""
    texts = facts.matched_texts
    return {
        "n": texts.num_rows,
        "n_all": facts.totals["n_texts"],
        "n_all_leaks": facts.totals["n_leak_texts"],
        "n_listed_documents": facts.documents.num_rows,
        "has_snippets": facts.has_snippets,
        "texts_per_chunk": TEXTS_PER_CHUNK,
        "thresholds": {name: facts.score_threshold(name) for name in facts.thresholds},
        "own_thresholds": {
            name: dict(facts.own_thresholds(name))
            for name in facts.thresholds
            if not facts.has_length_threshold(name)  # scores 1 at its full length
        },
        "names": {name: dictionary(texts[name].to_pylist()) for name in _NAMES},
        "plain": {name: texts[name].to_pylist() for name in _PLAIN},
        "scores": {name: rounded(texts[name].to_pylist()) for name in _SCORES},
        **{
            flag: [int(bool(value)) for value in texts[name].to_pylist()]
            for flag, name in _FLAGS.items()
        },
        "head": [beginning(text, _HEAD_CHARACTERS) for text in texts["question"].to_pylist()],
        "doubt": rounded(doubts(facts)),
    }


def doubts(facts: Facts) -> list[float | None]:
    """Return the distance of each score to the nearest threshold of its detectors.

    The thresholds are those of the matched text's benchmark; None if none is known.
    """

    def doubt(detectors: str | None, score: float, benchmark: str | None) -> float | None:
        names = filter(None, (detectors or "").split(", "))
        thresholds = (facts.score_threshold(name, benchmark) for name in names)
        return min(
            (abs(score - threshold) for threshold in thresholds if threshold is not None),
            default=None,
        )

    texts = facts.matched_texts
    columns = (texts[name].to_pylist() for name in ("detectors", "score", "benchmark"))
    return [doubt(*values) for values in zip(*columns, strict=True)]


def chunks(facts: Facts) -> Iterator[list[list[Any]]]:
    """Yield the texts of `TEXTS_PER_CHUNK` matched texts at a time, in the order of `columns`.

    With snippets off, no text of a document is included, even if the report contains it.
    """
    texts = facts.matched_texts
    if not facts.has_snippets:
        for name in ("text", "text_marks", "agreement"):
            at = texts.column_names.index(name)
            empty = pa.nulls(texts.num_rows, texts.schema.field(name).type)
            texts = texts.set_column(at, texts.schema.field(name), empty)
    texts = texts.select([*_TEXTS, *(f"{name}_marks" for name in _TEXTS), "agreement", "text_id"])
    for start in range(0, texts.num_rows, TEXTS_PER_CHUNK):
        yield [
            [
                *(row[name] for name in _TEXTS),
                *(_flat(row[f"{name}_marks"]) for name in _TEXTS),
                row["agreement"],
                [[at[name] for name in _PLACE] for at in facts.places.get(row["text_id"], ())],
            ]
            for row in texts.slice(start, TEXTS_PER_CHUNK).to_pylist()
        ]


def _flat(marks: Sequence[Mapping[str, Any]] | None) -> list[int]:
    """Return start, stop and part of each mark in one flat list."""
    flat = []
    for mark in marks or ():
        flat += [mark["start"], mark["stop"], _PARTS.index(mark["part"])]
    return flat


def documents(facts: Facts) -> dict[str, Any]:
    """Return the columns of the table of documents.

    `texts` has the numbers of the matched texts of all documents, one document after the other:
    those of a document lie between its start and the next start. A document may have
    more (`n_texts`) than the page.
    """
    rows = facts.documents
    numbers = {text_id: at for at, text_id in enumerate(facts.matched_texts["text_id"].to_pylist())}
    texts: list[list[int]] = []
    left = MOST_TEXTS_OF_DOCUMENTS
    for keys in rows["text_ids"].to_pylist():
        known = sorted(numbers[text_id] for text_id in keys or () if text_id in numbers)
        texts.append(known[: min(MOST_TEXTS_OF_DOCUMENT, left)])
        left -= len(texts[-1])
    names = {name: rows[name].to_pylist() for name in ("source", "shard_name", "shard")}
    names["benchmarks"] = [tuple(benchmarks or ()) for benchmarks in rows["benchmarks"].to_pylist()]
    names["outcome"] = [
        next((outcome for flag, outcome in _OUTCOMES.items() if row[flag]), "near")
        for row in rows.select([*_OUTCOMES]).to_pylist()
    ]
    return {
        "n": rows.num_rows,
        "n_all": facts.totals["n_found_documents"],
        "names": {name: dictionary(values) for name, values in names.items()},
        "plain": {name: rows[name].to_pylist() for name in ("row", "doc_id", "n_texts", *_COUNTS)},
        "best_score": rounded(rows["best_score"].to_pylist()),
        "starts": [0, *accumulate(map(len, texts))],
        "texts": [number for numbers_of_document in texts for number in numbers_of_document],
    }


def dictionary(values: Sequence[Any]) -> dict[str, Any]:
    """Return the sorted distinct values, and for each row the index of its value; -1 for null."""
    distinct = sorted({value for value in values if value is not None})
    index = {value: at for at, value in enumerate(distinct)}
    return {"values": distinct, "at": [index.get(value, -1) for value in values]}


def rounded(values: Sequence[float | None]) -> list[float | None]:
    return [None if value is None else round(value, _DECIMALS) for value in values]
