"""Pairs, packed: columns for the list, and texts in chunks that are read when they are asked for.

Fifty thousand pairs have a hundred megabytes of text. So the list has only the beginning of every
question, and the texts of a few hundred pairs at a time are inflated when one of them is opened.
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

# Few different values: kept once, and as numbers into them.
_NAMES = (
    "benchmark",
    "config",
    "split",
    "rules",
    "source",
    "shard_name",
    "text_part",
    "why_no_text",
)
_PLAIN = (
    *("pair", "fingerprint", "instance_index", "row", "doc_id", "n_documents", "n_matches"),
    *("verdict", "verdict_note", "verdict_by", "verdict_at", "text_start"),
)
_SCORES = ("score", "question_overlap", "answer_overlap", "passage_overlap")

_PLACE = ("source", "shard_name", "row", "doc_id")
_TEXTS = ("question", "answer", "passage", "text")
_PARTS = ("question", "answer", "passage")


def columns(facts: Facts) -> dict[str, Any]:
    """All that the list of pairs needs, column by column."""
    pairs = facts.pairs
    return {
        "n": pairs.num_rows,
        "n_all": facts.totals["n_pairs"],
        "n_all_leaks": facts.totals["n_leak_pairs"],
        "has_snippets": facts.has_snippets,
        "pairs_per_chunk": PAIRS_PER_CHUNK,
        "thresholds": {rule: facts.score_threshold(rule) for rule in facts.thresholds},
        "own_thresholds": {
            rule: dict(facts.own_thresholds(rule))
            for rule in facts.thresholds
            if rule != "ngram_any"  # it scores 1 at its full length, whatever that is
        },
        "names": {name: _dictionary(pairs[name]) for name in _NAMES},
        "plain": {name: pairs[name].to_pylist() for name in _PLAIN},
        "scores": {name: _rounded(pairs[name].to_pylist()) for name in _SCORES},
        "is_leak": [int(bool(value)) for value in pairs["is_contaminated"].to_pylist()],
        "is_question_only": [int(bool(one)) for one in pairs["is_question_only"].to_pylist()],
        "is_by_score": [int(bool(value)) for value in pairs["is_by_score"].to_pylist()],
        "head": [beginning(text, _HEAD_CHARACTERS) for text in pairs["question"].to_pylist()],
        "doubt": _rounded(doubts(facts)),
    }


def doubts(facts: Facts) -> list[float | None]:
    """How far each score is from the nearest threshold of its rules: less is more doubtful.

    The thresholds are those that apply to the pair's benchmark.
    """
    names = ("rules", "score", "benchmark")
    columns = (facts.pairs[name].to_pylist() for name in names)
    return [_doubt(facts, *pair) for pair in zip(*columns, strict=True)]


def _doubt(facts: Facts, rules: str, score: float, benchmark: str | None) -> float | None:
    lines = [facts.score_threshold(rule, benchmark) for rule in (rules or "").split(", ")]
    return min((abs(score - line) for line in lines if line is not None), default=None)


def chunks(facts: Facts) -> Iterator[list[list[Any]]]:
    """Texts, marks and places of some hundred pairs at a time, in the order of the columns.

    Without snippets nothing of a document goes out, whatever the report holds.
    """
    pairs = facts.pairs if facts.has_snippets else without_documents(facts.pairs)
    chosen = [*_TEXTS, *(f"{name}_marks" for name in _TEXTS)]
    for start in range(0, pairs.num_rows, PAIRS_PER_CHUNK):
        rows = pairs.slice(start, PAIRS_PER_CHUNK).select([*chosen, "pair"]).to_pylist()
        yield [
            [
                *(row[name] for name in _TEXTS),
                *(_flat(row[f"{name}_marks"]) for name in _TEXTS),
                [[one[name] for name in _PLACE] for one in facts.places.get(row["pair"], ())],
            ]
            for row in rows
        ]


def without_documents(pairs: pa.Table) -> pa.Table:
    for name in ("text", "text_marks"):
        at = pairs.column_names.index(name)
        empty = pa.nulls(pairs.num_rows, pairs.schema.field(name).type)
        pairs = pairs.set_column(at, pairs.schema.field(name), empty)
    return pairs


def _flat(marks: Sequence[Mapping[str, Any]] | None) -> list[int]:
    """Start, stop and part of each mark, one after the other."""
    flat = []
    for mark in marks or ():
        flat += [mark["start"], mark["stop"], _PARTS.index(mark["part"])]
    return flat


def _dictionary(column: pa.ChunkedArray) -> dict[str, Any]:
    """Its different values, in order, and for each row the place of its own; -1: null."""
    values = column.to_pylist()
    different = sorted({value for value in values if value is not None})
    place = {value: at for at, value in enumerate(different)}
    return {"values": different, "at": [place.get(value, -1) for value in values]}


def _rounded(values: Sequence[float | None]) -> list[float | None]:
    return [None if value is None else round(value, _DECIMALS) for value in values]
