"""Read lm-evaluation-harness samples, which `--log_samples` writes.

`samples_<task>_<date>.jsonl` in a folder named after the model, beside `results_<date>.json`. One
row per item and filter; scores are top-level fields, listed in `metrics`. Earlier versions have no
`metrics` and no filter name; the first ones wrote one JSON list to
`<model arguments>_<task>.jsonl`, beside `results.json`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from decon_core.benchmarks.fields import Row
from decon_core.errors import Problem
from decon_core.report.score_gap.results import (
    NO_FILTER,
    Results,
    Sample,
    companion,
    doc_of,
    index_of,
    mapping_in,
    number_of,
    scored_rows,
    text_at,
)
from decon_core.wording import counted

NAME = "lm-evaluation-harness samples"

_FILE = re.compile(r"samples_(?P<task>.+?)(?:_(?P<run>\d{4}-\d\d-\d\dT[\d.-]+))?$")
_UNNAMED = "none"  # the harness's name for no filter
_NO_SCORES = frozenset(
    {
        *("doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter", "metrics"),
        *("doc_hash", "prompt_hash", "target_hash", "schema_version", "extra_fields"),
    }
)


def fits(row: Row) -> bool:
    return "doc_id" in row and "filtered_resps" in row


def read(path: Path) -> list[Results]:
    """Read the samples of a file: one task of one model."""
    stem = path.name.split(".jsonl")[0].split(".json")[0]
    named = _FILE.fullmatch(stem)
    run = named["run"] or "" if named else ""
    summary = companion(path.with_name(f"results_{run}.json" if run else "results.json"))
    task = named["task"] if named else _task(stem, summary)
    results = Results(
        path=path,
        format=NAME,
        model=_model(summary) or path.resolve().parent.name,
        task=task,
        run=run,
        split=_split(mapping_in(summary, "configs", task)),
    )
    not_numbers: Counter[str] = Counter()
    for place, row, scores in scored_rows(results, lambda row: _scores(row, not_numbers)):
        name = text_at(row, "filter") or _UNNAMED
        results.samples.append(
            Sample(
                place=place,
                scores=scores,
                filter=NO_FILTER if name == _UNNAMED else name,
                index=index_of(row.get("doc_id")),
                doc=doc_of(row),
            )
        )
    results.problems += _ignored_metrics(path, not_numbers)
    results.samples = _number_filters(results.samples)
    return [results]


def _model(summary: Mapping[str, object]) -> str | None:
    name = text_at(summary, "model_name")
    if name is None:
        arguments = str(mapping_in(summary, "config").get("model_args") or "")
        given = re.search(r"(?:pretrained|model)=([^,]+)", arguments)
        name = given[1] if given else None
    return name


def _task(stem: str, summary: Mapping[str, object]) -> str:
    """Return the task whose name ends the file name of an early version."""
    tasks = [str(task) for task in mapping_in(summary, "configs")]
    ends = [task for task in tasks if stem == task or stem.endswith(f"_{task}")]
    return max(ends, key=len, default=stem)


def _split(config: Mapping[str, object]) -> str | None:
    return text_at(config, "test_split") or text_at(config, "validation_split")


def _scores(row: Row, not_numbers: Counter[str]) -> Iterator[tuple[str, float]]:
    listed = row.get("metrics")
    names = listed if isinstance(listed, list) else [name for name in row if name not in _NO_SCORES]
    for name in names:
        value = number_of(row.get(name))
        if value is not None:
            yield str(name), value
        elif name in row:
            not_numbers[str(name)] += 1


def _ignored_metrics(path: Path, not_numbers: Counter[str]) -> Iterator[Problem]:
    for name, n in sorted(not_numbers.items()):
        expected = "one number for each item"
        remedy = "These rows do not count for this metric."
        yield Problem(
            f"{path}, metric {name!r}", f"no number in {counted(n, 'row')}", expected, remedy
        )


def _number_filters(samples: list[Sample]) -> list[Sample]:
    """Number the filters of rows that do not name one: the n-th row of an item is filter n.

    Only if every item has the same number of rows; otherwise some items are duplicates.
    """
    if any(sample.filter for sample in samples):
        return samples
    times = Counter(sample.index for sample in samples)
    (n_filters,) = set(times.values()) if len(set(times.values())) == 1 else (1,)
    if n_filters == 1 or any(index is None for index in times):
        return samples
    seen: Counter[int | None] = Counter()
    numbered = []
    for sample in samples:
        seen[sample.index] += 1
        numbered.append(replace(sample, filter=f"unnamed {seen[sample.index]}"))
    return numbered
