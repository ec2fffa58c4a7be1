"""Read lm-evaluation-harness samples, which `--log_samples` writes.

`samples_<task>_<date>.jsonl` in a folder named after the model, beside `results_<date>.json`. One
row per item and filter; scores are top-level fields, listed in `metrics`. Rows of earlier versions,
such as those of the Open LLM Leaderboard, have no `metrics` and no filter name.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import partial
from pathlib import Path

from decon_core.benchmarks.fields import Row
from decon_core.features.results import per_item

NAME = "lm-evaluation-harness samples"

_FILE = re.compile(r"samples_(?P<task>.+?)(?:_(?P<run>\d{4}-\d\d-\d\dT[\d.-]+))?$")
_UNNAMED = "none"  # the harness's name for no filter
_NO_SCORES = frozenset(
    (
        "doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter", "metrics",
        "doc_hash", "prompt_hash", "target_hash", "schema_version", "extra_fields",
    )
)  # fmt: skip


def fits(row: Row) -> bool:
    return "doc_id" in row and "filtered_resps" in row


def read(path: Path) -> list[per_item.Results]:
    """Read the samples of a file: one task of one model."""
    stem = path.name.split(".json")[0]
    named = _FILE.fullmatch(stem)
    task, run = (named["task"], named["run"] or "") if named else (stem, "")
    summary_path = path.with_name(f"results_{run}.json")
    summary = per_item.companion(summary_path)
    config = per_item.mapping_in(summary, "configs", task)
    results = per_item.Results(
        path=path,
        format=NAME,
        model=per_item.text_at(summary, "model_name") or path.resolve().parent.name,
        task=task,
        run=run,
        split=per_item.text_at(config, "test_split")
        or per_item.text_at(config, "validation_split"),
        beside=[summary_path] if summary else [],
    )
    not_numbers: Counter[str] = Counter()
    texts_of: Counter[str] = Counter()  # metrics of whole test sets
    per_item.add_samples(results, partial(_sample, not_numbers, texts_of))
    results.problems += per_item.ignored_metrics(path, not_numbers)
    results.without_scores += per_item.ignored_metrics(path, texts_of)
    return [results]


def _texts(row: Row) -> per_item.Texts:
    """Return what a filter took from the output, and the target."""
    prediction = per_item.first_text(row.get("filtered_resps"))
    if prediction is None:
        prediction = per_item.first_text(row.get("resps"))
    return per_item.Texts(prediction, per_item.listed_texts(row.get("target")))


def _sample(
    not_numbers: Counter[str], texts_of: Counter[str], place: str, row: Row
) -> per_item.Sample:
    listed, texts = row.get("metrics"), _texts(row)
    names = listed if isinstance(listed, list) else [name for name in row if name not in _NO_SCORES]
    scores = per_item.numbers_in({name: row[name] for name in names if name in row})
    for name in names:
        if name in row and name not in scores:
            # BLEU, chrF and TER are of whole test sets: here they are the reference and the output.
            is_texts = isinstance(row[name], list) and texts.are_complete
            (texts_of if is_texts else not_numbers)[str(name)] += 1
    name = per_item.text_at(row, "filter") or _UNNAMED
    return per_item.Sample(
        place=place,
        scores=scores,
        filter=per_item.NO_FILTER if name == _UNNAMED else name,
        index=per_item.index_of(row.get("doc_id")),
        doc=per_item.doc_of(row),
        prompt=row.get("arguments"),
        texts=texts,
    )
