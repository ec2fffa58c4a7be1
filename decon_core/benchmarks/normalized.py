"""Read rows that are already records: JSONL of AI2's decon, or this project's tables."""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress
from typing import Any

from decon_core.benchmarks.fields import (
    FieldError,
    Row,
    describe,
    is_empty,
    plain,
    text_of,
    value_at,
)

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


def fingerprint_of(passage: str | None, question: str | None, answer: str | None) -> str:
    """Return the first 16 hex digits of the SHA-256 of the concatenated texts."""
    text = (passage or "") + (question or "") + (answer or "")
    return hashlib.sha256(text.encode()).hexdigest()[:16]


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


def read_normalized(row: Row, *, requires_split: bool = False) -> dict[str, Any]:
    """Validate a record; return its columns, and `extras` as an object. Raises `FieldError`."""
    if requires_split and is_empty(row.get("split")):
        expected = "the split of the row, because the file contains several splits"
        raise FieldError("split", describe(row.get("split")), expected)
    question = text_of(value_at(row, "question"), "question") or ""
    passage = text_of(row.get("passage"), "passage")
    answer = text_of(row.get("answer"), "answer")
    _check_fingerprint(row, passage, question, answer)
    split, config = text_of(row.get("split"), "split"), text_of(row.get("config"), "config")
    instances = (_index(row, key) for key in _INDEX_KEYS if row.get(key) is not None)
    return {
        "split": split,
        "config": config,
        "instance_index": next(instances, None),
        "sub_index": _index(row, "sub_index"),
        "choice_index": _index(row, "choice_index"),
        "is_correct": _flag(row, "is_correct"),
        "passage": passage,
        "question": question,
        "answer": answer,
        "extras": _extras(row),
    }


def _index(row: Row, key: str) -> int | None:
    value = row.get(key)
    if value is None or (isinstance(value, int) and not isinstance(value, bool) and value >= 0):
        return value
    raise FieldError(key, describe(value), "a whole number, at least 0, or null")


def _flag(row: Row, key: str) -> bool | None:
    value = row.get(key)
    if value is None or isinstance(value, bool):
        return value
    raise FieldError(key, describe(value), "true, false or null")


def _check_fingerprint(row: Row, *texts: str | None) -> None:
    """Raise `FieldError` if the fingerprint is wrong, with or without blank texts."""
    given = row.get("fingerprint")
    raw = [row.get(key) for key in ("passage", "question", "answer")]
    strings = [text if isinstance(text, str) else None for text in raw]
    as_written = fingerprint_of(*strings)
    if given is not None and given not in (as_written, fingerprint_of(*texts)):
        expected = f"{as_written!r}, computed from the texts of the row"
        remedy = "If you edited the texts on purpose, remove the field."
        raise FieldError("fingerprint", describe(given), expected, remedy)


def _extras(row: Row) -> dict[str, object]:
    extras = {key: plain(value, key) for key, value in row.items() if key not in _KNOWN}
    ours = row.get("extras")
    if isinstance(ours, str):
        with suppress(json.JSONDecodeError):
            ours = json.loads(ours)
    if ours is not None and not isinstance(ours, dict):
        raise FieldError("extras", describe(ours), "a JSON object, or null")
    return extras | (ours or {})
