"""Records to an index part: all that a scan needs of one benchmark version.

A part is content-addressed by its records, the indexing settings and the idf snapshot, saved once
and mapped into memory by every worker. It holds tokens and document frequencies, not weights: a
weight is `ln(N / df)`, and the two integers are the same on every machine.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa

from decon_core.errors import MissingError, Problem
from decon_core.idf import Snapshot, current_snapshot_fingerprint
from decon_core.policy import Policy
from decon_core.records import Version, load_records, records_of
from decon_core.reference import (
    EXACT_REPEAT,
    Entry,
    Frequencies,
    Index,
    Record,
    answer_grams,
    build_index,
    count,
    entry_of,
    has_short_answer,
    passage_grams,
    question_grams,
    why_dropped,
)
from decon_core.schemas import INDEX
from decon_core.store import Store, read_arrow, write_arrow
from decon_core.tokens import load_tokenizer

_N_RECORDS = b"n_records"  # N of idf = ln(N / df), in the part's schema metadata


@dataclass(frozen=True)
class IndexSummary:
    """What became of a benchmark's records."""

    n_indexed: int
    dropped: dict[str, int]  # by reason


def index_fingerprint(store: Store, policy: Policy) -> str:
    """What today's index parts are named by."""
    return policy.index_fingerprint(
        tokenizer=load_tokenizer(policy.tokenizer_str).fingerprint,
        snapshot=current_snapshot_fingerprint(store),
    )


def build_part(store: Store, version: Version, snapshot: Snapshot, policy: Policy) -> IndexSummary:
    """Index a benchmark version and save the part."""
    tokenizer = load_tokenizer(policy.tokenizer_str)
    records = records_of(load_records(store, version))
    seen: set[tuple[str, str]] = set()
    reasons = [why_dropped(record, policy, tokenizer, seen) for record in records]
    entries = [
        None if reason else entry_of(record, policy, tokenizer)
        for record, reason in zip(records, reasons, strict=True)
    ]
    own = count([entry for entry in entries if entry], policy)
    frequencies = snapshot.frequencies_for(version, own)
    rows = [
        {"record": row, "dropped": reason, **_fields(entry, frequencies, policy)}
        for row, (reason, entry) in enumerate(zip(reasons, entries, strict=True))
    ]
    schema = INDEX.with_metadata({_N_RECORDS: str(frequencies.n_records)})
    part = pa.Table.from_pylist(rows, schema=schema)
    name = policy.index_fingerprint(tokenizer=tokenizer.fingerprint, snapshot=snapshot.fingerprint)
    write_arrow(store.index_part(name, version.benchmark, version.fingerprint), part)
    dropped = Counter(reason for reason in reasons if reason)
    return IndexSummary(own.n_records, dict(sorted(dropped.items())))


def _fields(entry: Entry | None, frequencies: Frequencies, policy: Policy) -> dict[str, list[int]]:
    if entry is None:
        return {field.name: [] for field in INDEX if pa.types.is_list(field.type)}
    if has_short_answer(entry, policy):
        answer_df = [frequencies.token[token] for token in dict.fromkeys(entry.answer)]
    else:
        answer_df = [frequencies.answer[gram] for gram in answer_grams(entry, policy)]
    return {
        "question": list(entry.question),
        "answer": list(entry.answer),
        "passage": list(entry.passage),
        "question_df": [frequencies.question[gram] for gram in question_grams(entry, policy)],
        "answer_df": answer_df,
        "passage_df": [frequencies.passage[gram] for gram in passage_grams(entry, policy)],
    }


@dataclass(frozen=True)
class Target:
    """A benchmark version, ready to be searched for."""

    version: Version
    index: Index
    records: pa.Table
    rows: tuple[int, ...]  # of each entry, in the record table


@lru_cache(maxsize=256)
def twins_of(root: Path, version: Version, index: str) -> Mapping[int, list[dict[str, Any]]]:
    """Records left out as exact repeats, by the row of the record that they repeat.

    What is found of the first was found of all of them, in whichever split they stand.
    """
    store = Store(root)
    dropped = open_part(store, version, index)["dropped"]
    first: dict[str, int] = {}
    twins: dict[int, list[dict[str, Any]]] = {}
    records = load_records(store, version).to_pylist()
    for row, (record, reason) in enumerate(zip(records, dropped.to_pylist(), strict=True)):
        if reason is None:
            first.setdefault(record["fingerprint"], row)
        elif reason == EXACT_REPEAT and record["fingerprint"] in first:
            names = ("config", "split", "instance_index", "is_correct")
            twin = {"record": row, **{name: record[name] for name in names}}
            twins.setdefault(first[record["fingerprint"]], []).append(twin)
    return twins


def has_part(store: Store, version: Version, index: str) -> bool:
    return store.index_part(index, version.benchmark, version.fingerprint).is_file()


def open_part(store: Store, version: Version, index: str) -> pa.Table:
    """A saved part. A missing one is an error: a benchmark that is not searched is not clean."""
    path = store.index_part(index, version.benchmark, version.fingerprint)
    if not path.is_file():
        raise MissingError(missing_part(version.benchmark, str(path)))
    return read_arrow(path)


def load_target(store: Store, version: Version, policy: Policy, *, index: str) -> Target:
    """A part made ready for a scan."""
    part = open_part(store, version, index)
    table = load_records(store, version)
    records = records_of(table)
    kept = [row for row in part.to_pylist() if row["dropped"] is None]
    entries = [_entry(row, records[row["record"]]) for row in kept]
    n_records = int(part.schema.metadata[_N_RECORDS])
    frequencies = _frequencies(n_records, entries, kept, policy)
    return Target(
        version,
        build_index(entries, policy, frequencies),
        table,
        tuple(row["record"] for row in kept),
    )


def missing_part(benchmark: str, path: str) -> Problem:
    return Problem(
        f"benchmark {benchmark!r}",
        "no index for its current records, policy and idf snapshot",
        path,
        "materialize the asset `index` for this benchmark first",
    )


def _entry(row: dict[str, list[int]], record: Record) -> Entry:
    return Entry(record, tuple(row["question"]), tuple(row["answer"]), tuple(row["passage"]))


def _frequencies(
    n_records: int, entries: list[Entry], rows: list[dict[str, list[int]]], policy: Policy
) -> Frequencies:
    """The part's document frequencies, by n-gram."""
    question: dict[tuple[int, ...], int] = {}
    answer: dict[tuple[int, ...], int] = {}
    passage: dict[tuple[int, ...], int] = {}
    token: dict[int, int] = {}
    for entry, row in zip(entries, rows, strict=True):
        question.update(zip(question_grams(entry, policy), row["question_df"], strict=True))
        passage.update(zip(passage_grams(entry, policy), row["passage_df"], strict=True))
        if has_short_answer(entry, policy):
            token.update(zip(dict.fromkeys(entry.answer), row["answer_df"], strict=True))
        else:
            answer.update(zip(answer_grams(entry, policy), row["answer_df"], strict=True))
    return Frequencies(n_records, question, answer, passage, token)
