"""Scan documents in memory, with the same results as a scan of a shard."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from decon_core.benchmarks.records import Version
from decon_core.corpus.batches import Batch, Block
from decon_core.corpus.documents import Document
from decon_core.decisions.match_reader import MatchReader
from decon_core.index.parts import index_fingerprint
from decon_core.scan.blocks import Scanner
from decon_core.scan.matches import Columns
from decon_core.scan.scanner import build_search_files, sort_versions
from decon_core.schemas import ENTRIES

_SHARD = "in memory"  # name of the shard in tiles that are never stored


class Rescan:
    """Runs the detectors of a policy on a few documents. Adds nothing to the scan's counts."""

    def __init__(self, reader: MatchReader, versions: Sequence[Version], *, source: str) -> None:
        self._reader, self._source = reader, source
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
        scanned = self._scanner.scan(Block(lambda: _batch(documents), 0))
        self._scanner.detectors.take_counts()
        rows, *sizes = (column.to_pylist() for column in scanned.documents.columns)
        by_row = dict(zip(rows, zip(*sizes, strict=True), strict=True))
        return self._entries(scanned.matches), by_row

    def _entries(self, matches: Sequence[Columns]) -> pa.Table:
        """Return the entries of the benchmarks with matches; most scans find none."""
        numbers = {number for columns in matches for number in columns["part"].tolist()}
        if not numbers:
            return ENTRIES.empty_table()
        tiles = (
            (self._versions[number], self._scanner.tile(matches, number, _SHARD))
            for number in sorted(numbers)
        )
        return self._reader.decide(tiles, source=self._source)


def _batch(documents: Sequence[Document]) -> Batch:
    texts = [document.text.encode() for document in documents]
    edges = np.cumsum([0, *map(len, texts)], dtype=np.int64)
    by_row = {document.row: document for document in documents}
    return Batch(
        text=np.frombuffer(b"".join(texts), np.uint8).copy(),
        starts=edges[:-1],
        stops=edges[1:],
        rows=np.array([document.row for document in documents], np.int64),
        n_characters=sum(len(document.text) for document in documents),
        unreadable=[],
        reread=lambda row: by_row[row],
    )
