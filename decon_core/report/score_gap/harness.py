"""lm-evaluation-harness: what `--log_samples` writes.

`samples_<task>_<date>.jsonl` in a folder named after the model, beside `results_<date>.json`. One
row for each item and filter; scores stand at the top of a row, and a list `metrics` says which they
are. Earlier versions have no such list and do not name the filter, and the first of them wrote one
JSON list into `<model arguments>_<task>.jsonl`, beside `results.json`.
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
    index_of,
    mapping_in,
    number_of,
    scored_rows,
    text_at,
)
from decon_core.wording import counted

NAME = "lm-evaluation-harness samples"

_FILE = re.compile(r"samples_(?P<task>.+?)(?:_(?P<run>\d{4}-\d\d-\d\dT[\d.-]+))?$")
_UNNAMED = "none"  # what the harness calls it when nothing is filtered
_NO_SCORES = frozenset(
    {
        *("doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter", "metrics"),
        *("doc_hash", "prompt_hash", "target_hash", "schema_version", "extra_fields"),
    }
)


def fits(row: Row) -> bool:
    return "doc_id" in row and "filtered_resps" in row


def read(path: Path) -> list[Results]:
    """The samples of a file: one task of one model."""
    stem = path.name.split(".jsonl")[0].split(".json")[0]
    beside, named = _beside(path, stem)
    results = Results(
        path=path,
        format=NAME,
        model=_model(beside) or path.resolve().parent.name,
        task=_task(stem, beside),
        run=named["run"] or "" if named else "",
        split=None,
    )
    results.split = _split(mapping_in(beside, "configs", results.task))
    not_scores: Counter[str] = Counter()
    for place, row, scores in scored_rows(results, lambda row: _scores(row, not_scores)):
        results.samples.append(_sample(place, row, scores))
    results.problems += _untold(path, not_scores)
    results.samples = _with_filters(results.samples)
    return [results]


def _beside(path: Path, stem: str) -> tuple[Mapping[str, object], re.Match[str] | None]:
    named = _FILE.fullmatch(stem)
    name = f"results_{named['run']}.json" if named and named["run"] else "results.json"
    return companion(path.with_name(name)), named


def _model(beside: Mapping[str, object]) -> str | None:
    name = text_at(beside, "model_name")
    if name is None:
        arguments = str(mapping_in(beside, "config").get("model_args") or "")
        given = re.search(r"(?:pretrained|model)=([^,]+)", arguments)
        name = given[1] if given else None
    return name


def _task(stem: str, beside: Mapping[str, object]) -> str:
    if named := _FILE.fullmatch(stem):
        return named["task"]
    tasks = [str(task) for task in mapping_in(beside, "configs")]
    ends = [task for task in tasks if stem == task or stem.endswith(f"_{task}")]
    return max(ends, key=len, default=stem)


def _split(config: Mapping[str, object]) -> str | None:
    return text_at(config, "test_split") or text_at(config, "validation_split")


def _scores(row: Row, not_scores: Counter[str]) -> Iterator[tuple[str, float]]:
    listed = row.get("metrics")
    names = listed if isinstance(listed, list) else [name for name in row if name not in _NO_SCORES]
    for name in names:
        value = number_of(row.get(name))
        if value is not None:
            yield str(name), value
        elif name in row:
            not_scores[str(name)] += 1


def _untold(path: Path, not_scores: Counter[str]) -> Iterator[Problem]:
    for name, n in sorted(not_scores.items()):
        expected = "one number for each item"
        remedy = "It has no share in the comparison."
        yield Problem(
            f"{path}, metric {name!r}", f"no number in {counted(n, 'row')}", expected, remedy
        )


def _sample(place: str, row: Row, scores: Mapping[str, float]) -> Sample:
    doc = row.get("doc")
    return Sample(
        place=place,
        scores=scores,
        filter=_filter(row),
        index=index_of(row.get("doc_id")),
        doc=doc if isinstance(doc, Mapping) else {"text": doc},
        doc_hash=text_at(row, "doc_hash"),
    )


def _filter(row: Row) -> str:
    named = text_at(row, "filter")
    return NO_FILTER if named is None or named == _UNNAMED else named


def _with_filters(samples: list[Sample]) -> list[Sample]:
    """Rows that name no filter: the second of an item is that of a second filter, and so on.

    So it is only where every item has as many of them. Otherwise an item stands there twice.
    """
    if any(sample.filter for sample in samples):
        return samples
    times = Counter(sample.index for sample in samples)
    (n_filters,) = set(times.values()) if len(set(times.values())) == 1 else (1,)
    if n_filters == 1 or any(index is None for index in times):
        return samples
    seen: Counter[int | None] = Counter()
    told = []
    for sample in samples:
        seen[sample.index] += 1
        told.append(replace(sample, filter=f"unnamed {seen[sample.index]}"))
    return told
