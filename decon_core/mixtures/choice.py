"""Choose which documents of a shard a mixture removes or cuts, and record why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from decon_core.config.mixtures import Licenses, Mixture
from decon_core.corpus.packs import Shard
from decon_core.decisions.calibration import Calibration
from decon_core.decisions.decide import counts, is_probable, probability_of, would_count
from decon_core.decisions.match_reader import MatchReader
from decon_core.decisions.verdicts import LEAK
from decon_core.kernels.arrays import Integers
from decon_core.mixtures.edit_rows import RowReader
from decon_core.mixtures.licenses import may_be_taken, names_license

if TYPE_CHECKING:
    from decon_core.mixtures.excise import Cut

Reason = dict[str, Any]  # fields of `REMOVED` from `why` on

_OF_LEAK = ("detector", "benchmark", "split", "instance_index", "score")

# Values of `REMOVED.why` that come from a scan.
LEAKED, NO_ANSWER, REVIEW = FOUND = "leak", "no answer", "review"
HIDDEN = "hidden"  # value of `slot_kind`: the row goes whole, as its reference answer cannot be cut


@dataclass(frozen=True, eq=False)
class Sizes:
    """The documents of a shard and their lengths. Arrays have one element per document."""

    rows: Integers
    n_bytes: Integers
    n_tokens: Integers

    @staticmethod
    def of(documents: pa.Table) -> Sizes:
        return Sizes(*(column.to_numpy() for column in documents.columns))

    def within(self, rows: range) -> list[int]:
        """Return the rows of a range that are documents."""
        first, last = np.searchsorted(self.rows, [rows.start, rows.stop])
        documents: list[int] = self.rows[first:last].tolist()
        return documents

    def at(self, rows: Sequence[int]) -> Integers:
        """Return the positions of these rows in the arrays."""
        return np.searchsorted(self.rows, np.array(rows, np.int64))


@dataclass
class RowActions:
    """What a mixture does with the rows of a shard. Rows that are not named stay unchanged.

    Licenses and what is left after cuts are added while the shard is written.
    """

    sizes: Sizes
    gone: dict[int, list[Reason]] = field(default_factory=dict)
    cut: dict[int, list[dict[str, Any]]] = field(default_factory=dict)  # entries to cut out
    left: dict[int, Cut] = field(default_factory=dict)  # what is left of rows without them
    leaks: dict[int, list[dict[str, Any]]] = field(default_factory=dict)  # entries, by row
    # Documents with a leak, with questions alone, and with matches to review alone.
    n_found: Counter[str] = field(default_factory=Counter)
    # Rows in which replacement characters take the place of bytes that are not UTF-8.
    replaced: set[int] = field(default_factory=set)
    unreadable: set[int] = field(default_factory=set)  # rows that are no documents

    @property
    def rows(self) -> range:
        return range(max([*self.gone, *self.sizes.rows[-1:].tolist()], default=-1) + 1)

    def drop(self, row: int, reason: Reason) -> None:
        self.gone.setdefault(row, []).append(reason)

    def refuse(self, row: int, name: str) -> None:
        """Remove a row because of its license: the first of its reasons. Nothing is cut from it."""
        others = self.gone.pop(row, [])
        leaked = [reason_of(entry) for entry in self.cut.pop(row, ())]
        self.gone[row] = [{"why": "license", "detail": name}, *others, *leaked]


def leaks_of(
    reader: MatchReader, shard: Shard, mixture: Mixture, *, source: str
) -> dict[int, list[dict[str, Any]]]:
    """Return the entries that the mixture counts as leaks, by row; in each row leaks come first."""
    entries = reader.entries(shard, reader.needed_by(mixture), source=source)
    return _by_row(counted_leaks(entries, mixture, reader.calibration))


def _by_row(entries: Iterable[dict[str, Any]]) -> dict[int, list[dict[str, Any]]]:
    by_row: dict[int, list[dict[str, Any]]] = {}
    for entry in sorted(entries, key=lambda entry: entry["is_no_answer"]):
        by_row.setdefault(entry["row"], []).append(entry)
    return dict(sorted(by_row.items()))


def counted_leaks(
    entries: pa.Table, mixture: Mixture, calibration: Calibration
) -> list[dict[str, Any]]:
    """Return the entries that the mixture counts as leaks or as `no answer`, in their order."""
    import pyarrow.compute as pc

    # Not an expression: a filter by that takes twice as long for the few entries of a shard.
    is_found = pc.or_(entries["is_contaminated"], entries["is_no_answer"])
    is_found = pc.or_(is_found, entries["needs_review"])
    if mixture.hidden == "keep":
        is_found = pc.and_(is_found, pc.not_equal(entries["slot_kind"], HIDDEN))
    found = entries.filter(is_found).to_pylist()
    counted = [entry for entry in found if counts(entry, mixture.leaks, calibration)]
    for entry in counted:
        if entry["needs_review"]:
            entry["probability"] = probability_of(entry, mixture.leaks, calibration)
            entry["is_unproven"] = not is_probable(entry, mixture.leaks, calibration)
    return counted


def _class_of(entries: Sequence[dict[str, Any]]) -> str:
    """Return the class of a document with these entries, as it is counted."""
    whys = {_why(entry) for entry in entries}
    if LEAKED in whys:
        return LEAKED
    return NO_ANSWER if NO_ANSWER in whys else REVIEW


def _why(entry: Mapping[str, Any]) -> str:
    if entry["is_no_answer"]:
        return NO_ANSWER
    return REVIEW if entry.get("is_unproven") else LEAKED


def is_only_questions(entries: Iterable[Mapping[str, Any]]) -> bool:
    """Return whether all entries of a document lack the answer."""
    return all(entry["is_no_answer"] for entry in entries)


def choose_rows(
    reader: MatchReader, shard: Shard, source: str, mixture: Mixture, *, drawn: Sequence[int] = ()
) -> RowActions:
    """Choose what a mixture does with the rows of a shard, from the results of its scan.

    Licenses are not checked here: they need the rows themselves (`drop_unlicensed`). `drawn`: the
    rows that a control leaves out.
    """
    choice = RowActions(Sizes.of(reader.documents(shard)))
    ledger = reader.ledger(shard)
    for row in ledger["unreadable"]:
        detail = f"{row['reason']} ({row['detail']})"
        choice.unreadable.add(row["row"])
        choice.drop(row["row"], {"why": "unreadable", "detail": detail})
    for row in ledger["invalid_utf8"]:
        if reader.policy.invalid_utf8 == "drop":
            choice.drop(row["row"], {"why": "invalid_utf8", "detail": row["detail"]})
        else:
            choice.replaced.add(row["row"])
    for row in drawn:
        choice.drop(row, {"why": "control"})
    if mixture.take in ("clean", "leaks"):
        entries = reader.entries(shard, reader.needed_by(mixture), source=source)
        leaks = _by_row(counted_leaks(entries, mixture, reader.calibration))
        choice.n_found = Counter(map(_class_of, leaks.values()))
        # Documents without any, but with what the mixture would count if it were proven.
        to_review = entries.filter(entries["needs_review"]).to_pylist()
        rows = {entry["row"] for entry in to_review if would_count(entry, mixture.leaks)}
        if n_review := len(rows.difference(leaks)):
            choice.n_found[REVIEW] += n_review
        _choose_by_leaks(choice, leaks, mixture)
    return choice


def drop_unlicensed(
    choice: RowActions, rows: Sequence[int], row_reader: RowReader, licenses: Licenses | None
) -> None:
    """Remove those of these documents whose license is not allowed.

    Fields are tried in order. A value that is not a string, or that says "unknown", counts as no
    license.
    """
    if not licenses:
        return
    names: dict[int, str] = {}
    for field_name in licenses.fields:
        # Checked by name, of which there are few, not by row.
        is_license = {name: names_license(name) for name in {*names.values(), ""}}
        if all(is_license[names.get(row, "")] for row in rows):
            break
        texts = dict(row_reader.texts(field_name))
        known = {row: name for row, name in names.items() if is_license[name] or row not in texts}
        names = texts | known
    is_taken = {name: may_be_taken(name, licenses) for name in {*names.values(), ""}}
    for row in rows:
        if not is_taken[name := names.get(row, "")]:
            choice.refuse(row, name.strip() or "no license given as text")


def _choose_by_leaks(
    choice: RowActions, leaks: dict[int, list[dict[str, Any]]], mixture: Mixture
) -> None:
    if mixture.take == "leaks":
        for row in choice.sizes.rows.tolist():
            if row not in leaks:
                choice.drop(row, {"why": "no leak"})
        return
    choice.leaks = leaks
    for row, entries in leaks.items():
        is_hidden = any(entry["slot_kind"] == HIDDEN for entry in entries)
        if mixture.cut != "documents" and row not in choice.gone and not is_hidden:
            choice.cut[row] = entries
            continue
        for entry in entries:
            choice.drop(row, reason_of(entry))


def reason_of(entry: dict[str, Any]) -> Reason:
    """Return why a row was removed or cut."""
    details = [entry["kind"] or "", entry["searched_text"] or ""]
    if entry["verdict"] == LEAK:
        details.append("a person called it a leak")
    if entry["is_judged_duplicate"]:
        details.append("a judge called it a duplicate")
    if (probability := entry.get("probability")) is not None:
        details.append(f"probability {probability:.3f} from judged pairs")
    if entry["slot_kind"] == HIDDEN:
        details.append(f"in {entry['question_part'] or entry['answer_part']}, a hidden field")
    named = {name: entry[name] for name in _OF_LEAK}
    return {"why": _why(entry), **named, "detail": "; ".join(filter(None, details)) or None}
