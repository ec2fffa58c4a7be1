"""Read rows that are already records: JSONL of AI2's decon, or this project's tables."""

from __future__ import annotations

import json
from dataclasses import dataclass

from decon_core.benchmarks.fields import (
    FieldError,
    Row,
    describe,
    is_empty,
    plain,
    text_of,
    value_at,
)
from decon_core.benchmarks.record_table import fingerprint_of

# Fields of decon's records or ours that have their own columns.
_KNOWN = frozenset(
    {"eval_key", "benchmark", "eval_instance_index", "instance_index", "sub_index", "choice_index"}
    | {"split", "config", "passage", "question", "answer", "is_correct", "fingerprint", "extras"}
    | {"doc_id"}  # a running number over all benchmarks downloaded together
)
_INDEX_KEYS = ("instance_index", "eval_instance_index")
_NAME_KEYS = ("eval_key", "benchmark")
# A row with a name, a split, a question and one of these is a record, not a raw row.
_MARKS = ("fingerprint", "is_correct", "eval_instance_index", "choice_index")


@dataclass(frozen=True)
class Normalized:
    """A validated record."""

    split: str | None
    config: str | None
    instance: int | None
    sub_index: int | None
    choice_index: int | None
    is_correct: bool | None
    passage: str | None
    question: str
    answer: str | None
    extras: dict[str, object]


def is_record(row: Row) -> bool:
    """Return whether a row is a record of AI2's decon or of this project."""
    return (
        "question" in row
        and "split" in row
        and any(key in row for key in _NAME_KEYS)
        and any(key in row for key in _MARKS)
    )


def benchmark_of(row: Row) -> object:
    """Return the benchmark that a record names, or None."""
    return next((row[key] for key in _NAME_KEYS if row.get(key) is not None), None)


def read_normalized(row: Row, *, requires_split: bool = False) -> Normalized:
    """Validate a record. Raises `FieldError`."""
    if requires_split and is_empty(row.get("split")):
        raise FieldError(
            "split",
            found=describe(row.get("split")),
            expected="the split of the row, as the file contains several",
        )
    question = text_of(value_at(row, "question"), "question") or ""
    passage = text_of(row.get("passage"), "passage")
    answer = text_of(row.get("answer"), "answer")
    _check_fingerprint(row, passage, question, answer)
    return Normalized(
        split=text_of(row.get("split"), "split"),
        config=text_of(row.get("config"), "config"),
        instance=next((_index(row, key) for key in _INDEX_KEYS if row.get(key) is not None), None),
        sub_index=_index(row, "sub_index"),
        choice_index=_index(row, "choice_index"),
        is_correct=_flag(row, "is_correct"),
        passage=passage,
        question=question,
        answer=answer,
        extras=_extras(row),
    )


def _index(row: Row, key: str) -> int | None:
    value = row.get(key)
    if value is None or (isinstance(value, int) and not isinstance(value, bool) and value >= 0):
        return value
    raise FieldError(key, found=describe(value), expected="a whole number from 0 up, or null")


def _flag(row: Row, key: str) -> bool | None:
    value = row.get(key)
    if value is None or isinstance(value, bool):
        return value
    raise FieldError(key, found=describe(value), expected="true, false or null")


def _check_fingerprint(row: Row, passage: str | None, question: str, answer: str | None) -> None:
    """Raise `FieldError` if the fingerprint is wrong, with or without blank texts."""
    given = row.get("fingerprint")
    texts = [row.get(key) for key in ("passage", "question", "answer")]
    as_written = fingerprint_of(*(text if isinstance(text, str) else None for text in texts))
    if given is not None and given not in (as_written, fingerprint_of(passage, question, answer)):
        raise FieldError(
            "fingerprint",
            found=describe(given),
            expected=f"{as_written!r}, computed from the texts of the row",
            remedy="If the texts were edited on purpose, remove the field.",
        )


def _extras(row: Row) -> dict[str, object]:
    extras = {key: plain(value, key) for key, value in row.items() if key not in _KNOWN}
    ours = row.get("extras")
    if isinstance(ours, str):
        try:
            ours = json.loads(ours)
        except json.JSONDecodeError:
            ours = row.get("extras")
    if ours is None:
        return extras
    if not isinstance(ours, dict):
        raise FieldError("extras", found=describe(ours), expected="a JSON object, or null")
    return extras | ours
