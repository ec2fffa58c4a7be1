"""Pack the pairs for the page: columns for the list, and texts in chunks read on demand.

50,000 pairs have 100 MB of text. So the list contains only the beginning of each question, and the
browser inflates the texts of a few hundred pairs when one of them is opened.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from decon_core.report.html.gather import Facts
from decon_core.report.html.labels import beginning

PAIRS_PER_CHUNK = 256
_HEAD_CHARACTERS = 140
_DECIMALS = 4

# Columns with few distinct values are stored as dictionaries.
_NAMES = (
    *("benchmark", "config", "split", "detectors", "source", "shard_name"),
    *("text_part", "why_no_text"),
)
_PLAIN = (
    *("pair", "fingerprint", "instance_index", "row", "doc_id", "n_documents", "n_matches"),
    *("verdict", "verdict_note", "verdict_by", "verdict_at", "judgement", "probability"),
    "text_start",
)
_SCORES = ("score", "question_overlap", "answer_overlap", "passage_overlap")
_FLAGS = {
    "is_leak": "is_contaminated",
    "is_question_only": "is_question_only",
    "is_candidate": "is_candidate",
    "is_by_score": "is_by_score",
}

_PLACE = ("source", "shard_name", "row", "doc_id")
_TEXTS = ("question", "answer", "passage", "text")
_PARTS = ("question", "answer", "passage")


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
    pairs = facts.pairs if facts.has_snippets else without_documents(facts.pairs)
    chosen = [*_TEXTS, *(f"{name}_marks" for name in _TEXTS)]
    for start in range(0, pairs.num_rows, PAIRS_PER_CHUNK):
        rows = (
            pairs.slice(start, PAIRS_PER_CHUNK).select([*chosen, "agreement", "pair"]).to_pylist()
        )
        yield [
            [
                *(row[name] for name in _TEXTS),
                *(_flat(row[f"{name}_marks"]) for name in _TEXTS),
                row["agreement"],
                [[one[name] for name in _PLACE] for one in facts.places.get(row["pair"], ())],
            ]
            for row in rows
        ]


def without_documents(pairs: pa.Table) -> pa.Table:
    for name in ("text", "text_marks", "agreement"):
        at = pairs.column_names.index(name)
        empty = pa.nulls(pairs.num_rows, pairs.schema.field(name).type)
        pairs = pairs.set_column(at, pairs.schema.field(name), empty)
    return pairs


def _flat(marks: Sequence[Mapping[str, Any]] | None) -> list[int]:
    """Return start, stop and part of each mark in one flat list."""
    flat = []
    for mark in marks or ():
        flat += [mark["start"], mark["stop"], _PARTS.index(mark["part"])]
    return flat


def dictionary(values: Sequence[Any]) -> dict[str, Any]:
    """Return the sorted distinct values, and for each row the index of its value; -1 for null."""
    distinct = sorted({value for value in values if value is not None})
    index = {value: at for at, value in enumerate(distinct)}
    return {"values": distinct, "at": [index.get(value, -1) for value in values]}


def rounded(values: Sequence[float | None]) -> list[float | None]:
    return [None if value is None else round(value, _DECIMALS) for value in values]
