"""Texts of many documents as one byte array, as scans take them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import cast

import numpy as np

from decon_core.corpus.documents import Document, InvalidUtf8, Unreadable
from decon_core.corpus.origins import Origins, total
from decon_core.kernels.arrays import Bytes, Integers, distinct

Reread = Callable[[int], Document | Unreadable | None]


@dataclass(frozen=True, eq=False)
class Batch:
    """Texts of documents as one byte array, and the unreadable rows between them."""

    text: Bytes  # UTF-8; the texts are slices of it
    starts: Integers  # start of each text
    stops: Integers
    # Row number of each text in the shard, ascending. A row has a text, or one that a model sees
    # and a hidden text.
    rows: Integers
    n_characters: int
    unreadable: list[Unreadable]
    reread: Reread  # read a row again, by its number
    invalid: list[InvalidUtf8] = field(default_factory=list)  # invalid bytes of the documents
    # Values and bytes by path, summed over documents.
    unread: Mapping[str, Sequence[int]] = field(default_factory=dict)
    origins: Origins = field(default_factory=dict)
    without_text: Sequence[int] = ()  # rows of documents that hold something else instead
    n_left_out: int = 0  # documents that are not in the sample
    n_left_out_without_text: int = 0  # those of them that hold something else instead
    # The path of a row that is one string; None if that is not known without reading it again.
    only_path: Callable[[int], str | None] = lambda _row: None
    _reread: dict[int, Document] = field(default_factory=dict, init=False, repr=False)
    _texts: dict[int, str] = field(default_factory=dict, init=False, repr=False)

    @classmethod
    def of(cls, documents: Sequence[Document]) -> Batch:
        """Return documents that are in memory as a batch."""
        by_row = {document.row: document for document in documents}
        return cls.of_rows(documents, by_row.__getitem__)

    @classmethod
    def of_rows(cls, rows: Iterable[Document | Unreadable], reread: Reread) -> Batch:
        """Return rows that were parsed singly as a batch."""
        none = np.empty(0, np.int64)
        return cls(np.empty(0, np.uint8), none, none, none, 0, [], reread).with_rows(rows)

    @classmethod
    def of_texts(cls, texts: Sequence[str]) -> Batch:
        """Return texts that are no documents of a shard as a batch."""
        return cls.of([Document(row, None, text, None) for row, text in enumerate(texts)])

    def document(self, at: int) -> Document:
        """Read the document of a text again, with all its fields; once for all detectors."""
        row = int(self.rows[at])
        if row not in self._reread:
            self._reread[row] = cast("Document", self.reread(row))
        return self._reread[row]

    def text_at(self, at: int) -> str:
        """Return a text of a document; decoded once for all detectors."""
        if at not in self._texts:
            self._texts[at] = self.text[self.starts[at] : self.stops[at]].tobytes().decode()
        return self._texts[at]

    def is_second(self, at: int) -> bool:
        """Return whether a text is the second one of its row: what is hidden in it."""
        return at > 0 and bool(self.rows[at] == self.rows[at - 1])

    @property
    def n_documents(self) -> int:
        return int(distinct(self.rows).size)

    def per_document(self, numbers: Integers) -> Integers:
        """Return the sum of a number of each text for each document."""
        return np.add.reduceat(numbers, self._first_texts) if numbers.size else numbers

    @property
    def document_rows(self) -> Integers:
        """The row of each document, ascending."""
        return self.rows[self._first_texts]

    @property
    def _first_texts(self) -> Integers:
        return np.flatnonzero(np.diff(self.rows, prepend=-1))

    def with_rows(self, rows: Iterable[Document | Unreadable | None]) -> Batch:
        """Add rows that were parsed singly."""
        parsed = [*rows]
        documents = [row for row in parsed if isinstance(row, Document)]
        unreadable = [row for row in parsed if isinstance(row, Unreadable)]
        if not documents:
            return replace(self, unreadable=unreadable)
        stretches = [(row.row, text) for row in documents for text, _ in row.stretches]
        texts = [text.encode() for _, text in stretches]
        bounds = self.text.size + np.cumsum([0, *map(len, texts)], dtype=np.int64)
        numbers = np.concatenate([self.rows, np.array([row for row, _ in stretches], np.int64)])
        order = np.argsort(numbers, kind="stable")
        return replace(
            self,
            text=np.concatenate([self.text, np.frombuffer(b"".join(texts), np.uint8)]),
            starts=np.concatenate([self.starts, bounds[:-1]])[order],
            stops=np.concatenate([self.stops, bounds[1:]])[order],
            rows=numbers[order],
            n_characters=self.n_characters + sum(len(text) for _, text in stretches),
            unreadable=unreadable,
            invalid=[document.invalid for document in documents if document.invalid],
            unread=summed([self.unread, *(document.unread for document in documents)]),
            without_text=[
                document.row
                for document in documents
                if not all(n for n, _ in document.unread.values())
            ],
            origins=total([self.origins, *(document.origins for document in documents)]),
        )


def summed(counts: Iterable[Mapping[str, Sequence[int]]]) -> dict[str, list[int]]:
    """Return the sums of counts by path."""
    sums: dict[str, list[int]] = {}
    for path, numbers in chain.from_iterable(by_path.items() for by_path in counts):
        before = sums.setdefault(path, [0] * len(numbers))
        sums[path] = [a + b for a, b in zip(before, numbers, strict=True)]
    return sums


@dataclass(frozen=True)
class Place:
    """Where a part lies in its shard."""

    row: int  # its first row
    n_rows: int
    offset: int = 0  # first byte in the uncompressed shard; 0 in tables
    n_bytes: int = 0  # uncompressed; 0 in tables


@dataclass(frozen=True, eq=False)
class Block:
    """An unparsed part of a shard; may be parsed in another thread."""

    read: Callable[[], Batch]
    position: int  # approximate progress: offset in the compressed file
    place: Place
