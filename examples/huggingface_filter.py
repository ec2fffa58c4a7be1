"""Filter a Hugging Face data set: drop the rows that hold items of benchmarks, label the others.

    python examples/huggingface_filter.py evals.yaml texts.jsonl clean.jsonl

Needs the package `datasets` (`pip install decon-assets[hub]`). The texts are the column `text` of
the JSON lines. What is written has a column `weak_matches`: matches that are no leak by the default
thresholds.
"""

from __future__ import annotations

import sys

import datasets

import decon_core as dc


def main(evals: str, texts: str, clean: str) -> None:
    index = dc.build_index(evals)
    dataset = datasets.load_dataset("json", data_files=texts, split="train")

    # With batched=True one call compares a thousand rows; row by row would take far longer.
    kept = dataset.filter(lambda rows: index.keep_all(rows["text"]), batched=True)

    def label(rows: dict[str, list[str]]) -> dict[str, list[int]]:
        return {"weak_matches": [len(found) for found in index.check_all(rows["text"])]}

    labelled = kept.map(label, batched=True)
    labelled.to_json(clean)
    print(f"{len(labelled):,} of {len(dataset):,} rows kept")


if __name__ == "__main__":
    main(*sys.argv[1:])
