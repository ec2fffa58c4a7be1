"""A datatrove block that drops documents containing benchmark items.

    python examples/datatrove_block.py evals.yaml shards/ clean/

Needs the package `datatrove`. Reads JSON Lines files from shards/ (field `text`). Writes the
documents that it keeps to clean/kept/, and the removed ones, with the reason, to clean/removed/.
"""

from __future__ import annotations

import sys
from pathlib import Path

from datatrove.data import Document
from datatrove.executor import LocalPipelineExecutor
from datatrove.pipeline.filters.base_filter import BaseFilter
from datatrove.pipeline.readers import JsonlReader
from datatrove.pipeline.writers import JsonlWriter

import decon_core as dc

Decision = bool | tuple[bool, str]


class BenchmarkFilter(BaseFilter):
    """Drops documents that contain items of an index; the reason names the item's benchmark.

    `index` is the index's folder: each worker of the pipeline opens the index itself.
    """

    name = "benchmark leaks"

    def __init__(self, index: str, exclusion_writer: JsonlWriter | None = None) -> None:
        super().__init__(exclusion_writer, batch_size=1_000)
        self.folder = index
        self._index: dc.Index | None = None

    def filter(self, doc: Document) -> Decision:
        return self.filter_batch([doc])[0]

    def filter_batch(self, batch: list[Document]) -> list[Decision]:
        if self._index is None:
            self._index = dc.open_index(self.folder)
        texts = (doc.text for doc in batch)
        # Pipelines run one worker per core, so one thread per worker is enough.
        return [_decision(found) for found in self._index.check_all(texts, threads=1)]


def _decision(found: dc.Findings) -> Decision:
    if found.is_kept:
        return True
    first = next(one for one in found if one.is_leak or one.is_no_answer)
    return False, f"{first.outcome}: {first.benchmark} {first.split}"


def main(evals: str, shards: str, clean: str) -> None:
    index = dc.build_index(evals, folder=Path(clean) / "index")
    removed = JsonlWriter(f"{clean}/removed", compression=None)
    executor = LocalPipelineExecutor(
        pipeline=[
            JsonlReader(shards),
            BenchmarkFilter(str(index.folder), exclusion_writer=removed),
            JsonlWriter(f"{clean}/kept", compression=None),
        ],
        logging_dir=f"{clean}/logs",
    )
    executor.run()


if __name__ == "__main__":
    main(*sys.argv[1:])
