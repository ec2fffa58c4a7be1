"""Cut leaks out of documents: the matched spans, or the conversation turns that contain them.

A cut document is scanned again with the same detectors, and new matches are cut as well. A document
that still leaks after some rounds, or that is empty, is removed as a whole. A mixture of loss masks
cuts nothing out of the rows: it masks what the same mixture in another layout would cut out.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from decon_core.benchmarks.records import Version
from decon_core.config.mixtures import Mixture
from decon_core.config.sources import Source
from decon_core.corpus.batches import Batch, Block, Place
from decon_core.corpus.documents import Document, Part, document_of, not_a_document
from decon_core.corpus.row_texts import Keys, WholeRow
from decon_core.decisions.match_reader import MatchReader
from decon_core.errors import CorpusError
from decon_core.index.parts import index_fingerprint
from decon_core.mixtures.choice import Reason, RowActions, counted_leaks, reason_of
from decon_core.mixtures.conversations import (
    is_within,
    turns_of,
    turns_to_remove,
    with_dependent,
)
from decon_core.mixtures.edit_rows import (
    NotExactError,
    RowReader,
    Value,
    is_empty,
    replaced,
    without_elements,
    without_spans,
)
from decon_core.mixtures.masks import MaskedText
from decon_core.scan.blocks import Scanner
from decon_core.scan.plan import build_search_files, sort_versions
from decon_core.schemas import ENTRIES
from decon_core.storage.paths import parse_path

_MOST_ROUNDS = 5
_SHARD = "in memory"  # name of the shard in scan results that are never stored
_TEXTS = ("question", "answer", "passage")

Entry = Mapping[str, Any]


NO_TURN, NOTHING_LEFT = "the leaked text is outside the turns", "nothing was left of it"
NOTHING_LEFT_OF_FIELD = "one of its fields would be empty"
WHOLE = "an agent log is kept or dropped as a whole"
NOT_EXACT = "the leaked text is in JSON inside a string that cannot be written back unchanged"


@dataclass(frozen=True, eq=False)
class CutRow:
    """A row with the spans, or turns, cut out of its fields."""

    value: Value
    document: Document
    source: Source
    mixture: Mixture
    masked: Sequence[tuple[int, int]] = ()

    def without(self, entries: Sequence[Entry]) -> CutRow | str:
        """Return what is left without the spans of these entries; or why that is no document."""
        value = excised(self.value, self.document, entries, self.mixture)
        if isinstance(value, str):
            return value
        document = document_of(value, self.document.row, self.source)
        if not isinstance(document, Document) or is_empty(document.visible, self.mixture.mask):
            return NOTHING_LEFT
        return replace(self, value=value, document=document)


@dataclass(frozen=True, eq=False)
class MaskedRow:
    """A row that stays whole, and the characters of its text that are masked."""

    value: Value
    text: MaskedText
    mixture: Mixture
    gone: frozenset[Keys] = frozenset()  # turns that are masked as a whole

    @property
    def document(self) -> Document:
        return self.text.remainder

    @property
    def masked(self) -> Sequence[tuple[int, int]]:
        return self.text.spans

    def without(self, entries: Sequence[Entry]) -> MaskedRow | str:
        """Return what is left without the spans of these entries; or why that is no document."""
        spans, text = merged(entries, self.document.text), self.text
        if self.mixture.cut == "turns":
            turns = turns_of(self.value, text.parts_with(spans))
            if None in turns:
                return NO_TURN
            leaked = {*filter(None, turns)}
        else:
            text = text.with_spans(spans)
            emptied = text.emptied()
            if None in turns_of(self.value, emptied) and len(text.whole.parts) > 1:
                return NOTHING_LEFT_OF_FIELD
            leaked = turns_to_remove(self.value, text.whole.parts, emptied)
        gone = with_dependent(self.value, leaked, self.gone)
        if isinstance(gone, str):
            return gone
        text = text.without_turns(gone)
        if is_empty(text.remainder.visible, self.mixture.mask):
            return NOTHING_LEFT
        return replace(self, text=text, gone=frozenset(gone))


Remainder = CutRow | MaskedRow  # what is left of a document, at least one character of it


@dataclass(frozen=True, eq=False)
class Cut:
    """A row after its leaks were cut out or masked."""

    value: Value
    n_bytes: int  # bytes of what is left
    n_tokens: int
    reasons: list[Reason]
    masked: Sequence[tuple[int, int]]  # characters of its text


def cut_out(
    choice: RowActions, rows: Sequence[int], row_reader: RowReader, mixture: Mixture, rescan: Rescan
) -> dict[int, Cut]:
    """Cut the leaks out of these rows, or mask them. Rows for which that fails are dropped."""
    pending = {row: choice.cut[row] for row in rows}
    reasons = {row: [reason_of(entry) for entry in entries] for row, entries in pending.items()}
    left: dict[int, Remainder] = dict(_whole(rows, row_reader, mixture))
    sizes: dict[int, tuple[int, int]] = {}

    def drop(row: int, remark: str) -> None:
        for reason in reasons[row]:
            choice.drop(row, {**reason, "detail": remark})
        del left[row]

    for _ in range(_MOST_ROUNDS):
        for row, entries in pending.items():
            remainder = left[row].without(entries)
            if isinstance(remainder, str):
                drop(row, remainder)
            else:
                left[row] = remainder
        found, new_sizes = rescan.scan([left[row].document for row in pending if row in left])
        sizes |= new_sizes
        pending = {}
        for entry in counted_leaks(found, mixture, rescan.calibration):
            pending.setdefault(entry["row"], []).append(entry)
            reasons[entry["row"]].append(reason_of(entry))
        if not pending:
            break
    for row in pending:
        drop(row, "still found after repeated cuts")
    return {
        row: Cut(kept.value, *sizes[row], reasons[row], kept.masked) for row, kept in left.items()
    }


def _whole(
    rows: Sequence[int], row_reader: RowReader, mixture: Mixture
) -> Iterator[tuple[int, Remainder]]:
    path, source = parse_path(row_reader.shard.path), row_reader.source
    for row, value in row_reader.values(rows):
        document = document_of(value, row, source)
        if not isinstance(document, Document):
            raise CorpusError(not_a_document(path, row, f"{document.reason} ({document.detail})"))
        if mixture.write == "mask":
            yield row, MaskedRow(value, MaskedText.of(document), mixture)
        else:
            yield row, CutRow(value, document, source, mixture)


def excised(
    value: Value, document: Document, entries: Sequence[Entry], mixture: Mixture
) -> Value | str:
    """Return the row without the spans of these entries, or why that is no row to keep."""
    if isinstance(value, WholeRow):
        return WHOLE
    spans = merged(entries, document.text)
    touched = [part for part in document.parts if _spans_in(part, spans)]
    emptied: set[Part] = set()
    try:
        if mixture.cut == "turns":
            turns = turns_of(value, touched)
            if None in turns:
                return NO_TURN
            leaked = {*filter(None, turns)}
        else:
            left: dict[Part, str] = {}
            for part in touched:
                text = document.text[part.start : part.stop]
                left[part] = without_spans(text, _spans_in(part, spans), mixture.mask)
                if is_empty(left[part], mixture.mask) and left[part] != text:
                    emptied.add(part)
            if None in turns_of(value, emptied) and len(document.parts) > 1:
                return NOTHING_LEFT_OF_FIELD
            for part, text in left.items():
                for keys in part.places:
                    value = replaced(value, keys, text)
            leaked = turns_to_remove(value, document.parts, emptied)
        gone = with_dependent(value, leaked)
        if isinstance(gone, str):
            return gone
        row: Value = without_elements(value, gone)
    except NotExactError:
        return NOT_EXACT
    return row if _is_visible_left(document, emptied, gone) else NOTHING_LEFT


def _is_visible_left(document: Document, emptied: Collection[Part], gone: Collection[Keys]) -> bool:
    """Return whether a row that has visible text keeps any of it.

    The row that is left does not tell: without its conversation, metadata is all of its text.
    """
    visible = [part for part in document.parts if not part.is_hidden]
    return not visible or any(
        part not in emptied and not all(is_within(keys, gone) for keys in part.places)
        for part in visible
    )


def _spans_in(part: Part, spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the spans that touch a part, as characters of its text."""
    return [
        (max(start, part.start) - part.start, min(stop, part.stop) - part.start)
        for start, stop in spans
        if start < part.stop and stop > part.start
    ]


def merged(entries: Sequence[Entry], text: str) -> list[tuple[int, int]]:
    """Return the spans of entries, joined if only white space and punctuation are between them."""
    edges = [(f"{part}_char_start", f"{part}_char_stop") for part in _TEXTS]
    spans = [(entry[start], entry[stop]) for entry in entries for start, stop in edges]
    merged: list[tuple[int, int]] = []
    for start, stop in sorted(span for span in spans if None not in span):
        if merged and not any(map(str.isalnum, text[merged[-1][1] : start])):
            merged[-1] = merged[-1][0], max(merged[-1][1], stop)
        else:
            merged.append((start, stop))
    return merged


class Rescan:
    """Runs the detectors of a policy on a few documents. Adds nothing to the scan's counts."""

    def __init__(self, reader: MatchReader, versions: Sequence[Version], *, source: str) -> None:
        self._reader, self._source = reader, source
        self.calibration = reader.calibration
        self._versions = sort_versions(versions)
        store, policy, scan = reader.store, reader.policy, reader.scan
        index = index_fingerprint(store, policy)
        build_search_files(store, self._versions, policy, index=index, scan=scan)
        self._scanner = Scanner(store, self._versions, policy, index, scan)

    def scan(self, documents: Sequence[Document]) -> tuple[pa.Table, dict[int, tuple[int, int]]]:
        """Scan documents, in ascending order of rows.

        Return the entries, with the documents' own rows; bytes and canonical tokens by row.
        """
        if not documents:
            return ENTRIES.empty_table(), {}
        scanned = self._scanner.scan(
            Block(lambda: Batch.of(documents), 0, Place(0, len(documents)))
        )
        self._scanner.detectors.take_counts()
        rows, *sizes = (column.to_pylist() for column in scanned.documents.columns)
        by_row = dict(zip(rows, zip(*sizes, strict=True), strict=True))
        numbers = {number for columns in scanned.matches for number in columns["part"].tolist()}
        results = (
            (self._versions[number], self._scanner.scan_result(scanned.matches, number, _SHARD))
            for number in sorted(numbers)
        )
        return self._reader.decide(results, source=self._source), by_row
