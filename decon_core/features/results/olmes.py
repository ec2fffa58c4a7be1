"""Read OLMES predictions: `task-<number>-<task>-predictions.jsonl`.

One row per item, with its scores under `metrics`. The items themselves are in `...-requests.jsonl`
(written with `--save-raw-requests`), names and split in `...-metrics.json`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from decon_core.benchmarks.fields import Row
from decon_core.errors import Problem
from decon_core.features.results import per_item

NAME = "OLMES predictions"

_FILE = re.compile(r"task-\d+-(?P<task>.+)-predictions")
# Numbers under `metrics` that are not scores.
NO_SCORES = re.compile(r"predicted_index.*|correct_choice|num_.*|.*_count")


def fits(row: Row) -> bool:
    has_item = "doc_id" in row and ("native_id" in row or "model_output" in row)
    return has_item and isinstance(row.get("metrics"), Mapping)


def is_request(row: Row) -> bool:
    """Whether this is a row of `...-requests.jsonl`, which is read with the predictions."""
    return "request_type" in row and "doc_id" in row


def read(path: Path) -> list[per_item.Results]:
    """Read the predictions of a file: one task of one model."""
    start = path.name.split("predictions.jsonl")[0]
    summary_path = path.with_name(f"{start}metrics.json")
    summary = per_item.companion(summary_path)
    named = _FILE.match(path.name)
    task = named["task"] if named else path.name.split(".")[0]
    results = per_item.Results(
        path=path,
        format=NAME,
        model=per_item.text_at(per_item.mapping_in(summary, "model_config"), "model")
        or path.resolve().parent.name,
        task=per_item.text_at(summary, "task_name") or task,
        split=per_item.text_at(per_item.mapping_in(summary, "task_config"), "split"),
        beside=[summary_path] if summary else [],
    )
    docs = _docs(path, start, results)
    per_item.add_samples(results, partial(_sample, docs))
    return [results]


def _sample(docs: Mapping[int | None, Row], place: str, row: Row) -> per_item.Sample:
    scores = per_item.numbers_in(row.get("metrics"))
    index = per_item.index_of(row.get("doc_id"))
    return per_item.Sample(
        place=place,
        scores={name: scores[name] for name in scores if not NO_SCORES.fullmatch(name)},
        index=index,
        doc=docs.get(index, {}),
        texts=_texts(row),
    )


def _texts(row: Row) -> per_item.Texts:
    """Return the model's continuation, and the label."""
    outputs = row.get("model_output")
    first = outputs[0] if isinstance(outputs, list) and outputs else {}
    prediction = first.get("continuation") if isinstance(first, Mapping) else None
    return per_item.Texts(per_item.first_text(prediction), per_item.listed_texts(row.get("label")))


def _docs(path: Path, start: str, results: per_item.Results) -> dict[int | None, Row]:
    """Read the requested items by `doc_id`; an item has one row per choice."""
    docs: dict[int | None, Row] = {}
    for ending in ("requests.jsonl", "requests.jsonl.gz", "requests.jsonl.zst"):
        requests = path.with_name(f"{start}{ending}")
        if not requests.is_file():
            continue
        results.beside.append(requests)
        for _, row in per_item.rows_of(requests):
            if isinstance(row, Problem):
                results.problems.append(row)
                continue
            docs.setdefault(per_item.index_of(row.get("doc_id")), per_item.doc_of(row))
    return docs
