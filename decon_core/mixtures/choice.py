"""Which documents of a shard a mixture leaves out, of which it cuts parts out, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from decon_core.config.load import Source
from decon_core.config.mixtures import Mixture
from decon_core.config.verdicts import LEAK
from decon_core.corpus.packs import Shard
from decon_core.decisions.match_reader import MatchReader
from decon_core.mixtures.licenses import refused
from decon_core.mixtures.rows import Rows
from decon_core.schemas import DOCUMENTS
from decon_core.storage.store import Store, read_json, read_parquet

Reason = dict[str, Any]  # fields of `REMOVED` from `why` on
Integers = npt.NDArray[np.int64]

_SAID = "a person called it a leak"
_OF_LEAK = ("detector", "benchmark", "split", "instance_index", "score")

LEAKED, QUESTION_ONLY = "leak", "question only"  # reasons of `REMOVED` that come of a scan
FOUND = (LEAKED, QUESTION_ONLY)


@dataclass(frozen=True, eq=False)
class Sizes:
    """The documents of a shard, and how long they are."""

    rows: Integers
    n_bytes: Integers
    n_tokens: Integers

    @staticmethod
    def of(store: Store, shard: Shard, scan: str) -> Sizes:
        table = read_parquet(store.documents(scan, shard.fingerprint), schema=DOCUMENTS)
        return Sizes(*(column.to_numpy() for column in table.columns))

    def within(self, rows: range) -> list[int]:
        """Those of a stretch that are documents."""
        first, last = np.searchsorted(self.rows, [rows.start, rows.stop])
        found: list[int] = self.rows[first:last].tolist()
        return found

    def at(self, rows: Sequence[int]) -> Integers:
        """The numbers of these rows among the documents."""
        return np.searchsorted(self.rows, np.array(rows, np.int64))


@dataclass
class RowActions:
    """What becomes of the rows of a shard; those that it does not name stay as they are."""

    gone: dict[int, list[Reason]] = field(default_factory=dict)
    cut: dict[int, list[dict[str, Any]]] = field(default_factory=dict)  # entries whose spans go
    leaks: dict[int, list[dict[str, Any]]] = field(default_factory=dict)  # that are the reason
    # Documents with a leak, and those of which something is question-only and nothing leaked.
    n_found: Counter[str] = field(default_factory=Counter)
    # Written with replacement characters in place of bytes that are not UTF-8, unless they go.
    replaced: set[int] = field(default_factory=set)

    def drop(self, row: int, reason: Reason) -> None:
        self.gone.setdefault(row, []).append(reason)

    def refuse(self, row: int, name: str) -> None:
        """Leave a row out for its license, the first of its reasons: then nothing is cut of it."""
        others = self.gone.pop(row, [])
        leaked = [reason_of(entry) for entry in self.cut.pop(row, ())]
        self.gone[row] = [{"why": "license", "detail": name}, *others, *leaked]


def leaks_of(
    reader: MatchReader, shard: Shard, mixture: Mixture, *, source: str
) -> dict[int, list[dict[str, Any]]]:
    """The entries that count as leaks, or go with them, by row; of each row leaks first."""
    versions = reader.needed_by(mixture)
    entries = counted_leaks(reader.entries(shard, versions, source=source), mixture)
    found: dict[int, list[dict[str, Any]]] = {}
    for entry in sorted(entries, key=lambda entry: entry["is_question_only"]):
        found.setdefault(entry["row"], []).append(entry)
    return dict(sorted(found.items()))


def counted_leaks(entries: pa.Table, mixture: Mixture) -> list[dict[str, Any]]:
    """The entries that count as leaks, or go with them, in their order."""
    is_called = pc.field("is_contaminated") | pc.field("is_question_only")
    called = entries.filter(is_called).to_pylist()
    return [entry for entry in called if mixture.leaks.counts(entry)]


def is_only_questions(entries: Iterable[Mapping[str, Any]]) -> bool:
    """Whether none of what was found in a document is a leak."""
    return all(entry["is_question_only"] for entry in entries)


def choose_rows(
    reader: MatchReader,
    shard: Shard,
    source: Source,
    mixture: Mixture,
    sizes: Sizes,
    *,
    drawn: Sequence[int] = (),
) -> RowActions:
    """What a mixture does to a shard, as far as a scan can tell. Licenses stand in the rows.

    `drawn`: the rows that a control leaves out.
    """
    choice = RowActions()
    ledger = read_json(reader.store.ledger(reader.scan, shard.fingerprint))
    for row in ledger["unreadable"]:
        detail = f"{row['reason']} ({row['detail']})"
        choice.drop(row["row"], {"why": "unreadable", "detail": detail})
    for row in ledger["invalid_utf8"]:
        if reader.policy.invalid_utf8 == "drop":
            choice.drop(row["row"], {"why": "invalid_utf8", "detail": row["detail"]})
        else:
            choice.replaced.add(row["row"])
    for row in drawn:
        choice.drop(row, {"why": "control"})
    if mixture.take in ("clean", "leaks"):
        leaks = leaks_of(reader, shard, mixture, source=source.name)
        choice.n_found = Counter(
            QUESTION_ONLY if is_only_questions(entries) else LEAKED for entries in leaks.values()
        )
        _choose_by_leaks(choice, leaks, sizes, mixture)
    return choice


def drop_unlicensed(
    choice: RowActions, rows: Sequence[int], at_hand: Rows, mixture: Mixture
) -> None:
    """Leave out, of these documents, what stands under a license that the mixture does not take."""
    if mixture.licenses:
        for row, name in refused(at_hand, mixture.licenses, rows).items():
            choice.refuse(row, name)


def _choose_by_leaks(
    choice: RowActions, leaks: dict[int, list[dict[str, Any]]], sizes: Sizes, mixture: Mixture
) -> None:
    if mixture.take == "leaks":
        for row in sizes.rows.tolist():
            if row not in leaks:
                choice.drop(row, {"why": "no leak"})
        return
    choice.leaks = leaks
    for row, entries in leaks.items():
        if mixture.cut != "documents" and row not in choice.gone:
            choice.cut[row] = entries
            continue
        for entry in entries:
            choice.drop(row, reason_of(entry))


def reason_of(entry: dict[str, Any]) -> Reason:
    named = {name: entry[name] for name in _OF_LEAK}
    told = [entry["looked_for"], _SAID if entry["verdict"] == LEAK else None]
    why = QUESTION_ONLY if entry["is_question_only"] else LEAKED
    return {"why": why, **named, "detail": "; ".join(filter(None, told)) or None}
