"""Filter a Hugging Face dataset: drop rows that contain benchmark items, and label the other rows.

    python examples/huggingface_filter.py evals.yaml rows.jsonl clean.jsonl

Needs the package `datasets` (`pip install decon-assets[hub]`). All columns of the
JSON Lines file are checked: `text`, `messages` including tool calls, or any others. The output has
an additional column `weak_matches`: the number of matches that are not leaks.
"""

from __future__ import annotations

import sys

import datasets
import pyarrow as pa

import decon_core as dc


def main(evals: str, rows: str, clean: str) -> None:
    index = dc.build_index(evals)
    dataset = datasets.load_dataset("json", data_files=rows, split="train")

    # With batched=True, each call checks a thousand rows, which is far faster than row by row.
    kept = dataset.with_format("arrow").filter(index.keep_all, batched=True)

    def label(table: pa.Table) -> pa.Table:
        n_matches = [len(found) for found in index.check_all(table)]
        return table.append_column("weak_matches", pa.array(n_matches, pa.int64()))

    labelled = kept.map(label, batched=True).with_format(None)
    labelled.to_json(clean)
    print(f"{len(labelled):,} of {len(dataset):,} rows kept")


if __name__ == "__main__":
    main(*sys.argv[1:])
