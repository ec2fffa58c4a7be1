"""Documents that are at hand to what is found in them, as a scan of a shard would find it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from decon_core.batches import Batch, Block
from decon_core.corpus import Document
from decon_core.index import index_fingerprint
from decon_core.leaks import entries_of
from decon_core.policy import Policy
from decon_core.records import Version
from decon_core.scan import Scanner, in_order, prepare
from decon_core.store import Store

_SHARD = "at hand"


class Rescan:
    """The rules of a policy over a few documents; what it reads is counted nowhere."""

    def __init__(
        self, store: Store, versions: Sequence[Version], policy: Policy, scan: str, *, source: str
    ) -> None:
        self._store, self._policy, self._scan, self._source = store, policy, scan, source
        self._versions = in_order(versions)
        index = index_fingerprint(store, policy)
        prepare(store, self._versions, policy, index=index, scan=scan)
        self._scanner = Scanner(store, self._versions, policy, index, scan)

    def entries(self, documents: Sequence[Document]) -> pa.Table:
        """What is found, with the documents' own rows: ascending."""
        batch = _batch(documents)
        found = self._scanner.scan(Block(lambda: batch, 0)).matches
        self._scanner.take_counts()
        tables = [
            (version, self._scanner.tile(found, number, _SHARD))
            for number, version in enumerate(self._versions)
        ]
        return entries_of(self._store, tables, self._policy, self._scan, source=self._source)

    def sizes(self, documents: Sequence[Document]) -> tuple[npt.NDArray[np.int64], ...]:
        """Bytes and canonical tokens of each."""
        table = self._scanner.scan(Block(lambda: _batch(documents), 0)).documents
        self._scanner.take_counts()
        return table["n_bytes"].to_numpy(), table["n_tokens"].to_numpy()


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
