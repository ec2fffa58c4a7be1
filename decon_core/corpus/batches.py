"""Texts of many documents as one byte array, as scans take them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import cast

import numpy as np
import numpy.typing as npt

from decon_core.corpus.documents import Document, InvalidUtf8, Unreadable

Reread = Callable[[int], Document | Unreadable | None]


@dataclass(frozen=True, eq=False)
class Batch:
    """Texts of documents as one byte array, and the unreadable rows between them."""

    text: npt.NDArray[np.uint8]  # UTF-8; the documents are slices of it
    starts: npt.NDArray[np.int64]  # of each document within the text
    stops: npt.NDArray[np.int64]
    rows: npt.NDArray[np.int64]  # row number of each document in the shard, ascending
    n_characters: int
    unreadable: list[Unreadable]
    reread: Reread  # read a row again, by its number
    invalid: list[InvalidUtf8] = field(default_factory=list)  # of the documents
    n_left_out: int = 0  # documents that are not in the sample

    @classmethod
    def of(cls, documents: Sequence[Document]) -> Batch:
        """Return documents that are in memory as a batch."""
        texts = [document.text.encode() for document in documents]
        edges = np.cumsum([0, *map(len, texts)], dtype=np.int64)
        by_row = {document.row: document for document in documents}
        return cls(
            text=np.frombuffer(bytearray(b"".join(texts)), np.uint8),
            starts=edges[:-1],
            stops=edges[1:],
            rows=np.array([*by_row], np.int64),
            n_characters=sum(len(document.text) for document in documents),
            unreadable=[],
            reread=by_row.__getitem__,
        )

    @classmethod
    def of_texts(cls, texts: Sequence[str]) -> Batch:
        """Return texts that are no documents of a shard as a batch."""
        return cls.of([Document(row, None, text, None) for row, text in enumerate(texts)])

    def document(self, at: int) -> Document:
        """Read the document at a position again, with all its fields."""
        return cast("Document", self.reread(int(self.rows[at])))

    def with_rows(self, rows: Iterable[Document | Unreadable | None]) -> Batch:
        """Add rows that were parsed one by one."""
        parsed = [*rows]
        documents = [row for row in parsed if isinstance(row, Document)]
        unreadable = [row for row in parsed if isinstance(row, Unreadable)]
        if not documents:
            return replace(self, unreadable=unreadable)
        texts = [document.text.encode() for document in documents]
        bounds = self.text.size + np.cumsum([0, *map(len, texts)], dtype=np.int64)
        numbers = np.concatenate([self.rows, np.array([row.row for row in documents], np.int64)])
        order = np.argsort(numbers)
        return replace(
            self,
            text=np.concatenate([self.text, np.frombuffer(b"".join(texts), np.uint8)]),
            starts=np.concatenate([self.starts, bounds[:-1]])[order],
            stops=np.concatenate([self.stops, bounds[1:]])[order],
            rows=numbers[order],
            n_characters=self.n_characters + sum(len(one.text) for one in documents),
            unreadable=unreadable,
            invalid=[document.invalid for document in documents if document.invalid],
        )


@dataclass(frozen=True)
class Place:
    """Where a part lies in its shard."""

    row: int  # its first row
    n_rows: int
    offset: int = 0  # of its first byte in the uncompressed shard; 0 in tables
    n_bytes: int = 0  # uncompressed; 0 in tables


@dataclass(frozen=True, eq=False)
class Block:
    """An unparsed part of a shard; may be parsed in another thread."""

    read: Callable[[], Batch]
    position: int  # approximate progress: offset in the compressed file
    place: Place
