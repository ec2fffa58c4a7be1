"""Build the Arrow table of records."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from operator import attrgetter

import pyarrow as pa

from decon_core.schemas import RECORDS


def fingerprint_of(passage: str | None, question: str | None, answer: str | None) -> str:
    """Return the first 16 hex digits of the SHA-256 of the concatenated texts."""
    text = (passage or "") + (question or "") + (answer or "")
    return hashlib.sha256(text.encode()).hexdigest()[:16]


@dataclass(frozen=True, kw_only=True)
class Record:
    """A row of `schemas.RECORDS`, with fields in the order of the columns."""

    benchmark: str
    config: str | None
    split: str
    instance_index: int
    sub_index: int | None
    choice_index: int | None
    is_correct: bool | None
    passage: str | None
    question: str
    answer: str | None
    fingerprint: str
    extras: str | None


def extras_text(extras: Mapping[str, object]) -> str | None:
    return json.dumps(extras, ensure_ascii=False, sort_keys=True) if extras else None


def table_of(records: list[Record]) -> pa.Table:
    names = [field.name for field in fields(Record)]
    columns = {name: list(map(attrgetter(name), records)) for name in names}
    return pa.table(columns, schema=RECORDS)
