"""Read lighteval details: details/<model>/<date>/details_<suite>|<task>|<shots>_<date>.parquet.

The earlier form has `example` (the question without the shots), `metrics` and `gold`; values that
did not fit Arrow are Python literals as text. The later form has `doc` (with `query`, `id`,
`task_name`), `metric` and `model_response`. Rows are shuffled, so the row number is not an index.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from decon_core.benchmarks.fields import Row
from decon_core.report.score_gap.results import (
    Results,
    Sample,
    index_of,
    literal,
    mapping_in,
    number_of,
    scored_rows,
    text_at,
)

NAME = "lighteval details"

_FILE = re.compile(r"details_(?P<task>.+?)_(?P<run>\d{4}-\d\d-\d\dT[\d.-]+)")
_ITEM = ("query", "original_query", "choices", "specific")


def fits(row: Row) -> bool:
    is_new = "doc" in row and "metric" in row
    return is_new or ("metrics" in row and ("example" in row or "full_prompt" in row))


def read(path: Path) -> list[Results]:
    """Read the details of a file: one task of one model."""
    named = _FILE.fullmatch(path.name.removesuffix(".parquet"))
    results = Results(
        path=path,
        format=NAME,
        model=_model(path),
        task=named["task"] if named else path.stem.removeprefix("details_"),
        run=named["run"] if named else "",
    )
    for place, row, scores in scored_rows(results, _scores):
        results.samples.append(_sample(place, row, scores))
    return [results]


def _model(path: Path) -> str:
    """Return the folders between `details` and the date, or the folder above the date."""
    folders = path.resolve().parent.parts
    start = len(folders) - folders[::-1].index("details") if "details" in folders else -1
    return "/".join(folders[start:-1]) or folders[max(-2, -len(folders))]


def _scores(row: Row) -> Iterator[tuple[str, float]]:
    metrics = literal(row.get("metric") if "metric" in row else row.get("metrics"))
    for name, value in metrics.items() if isinstance(metrics, Mapping) else ():
        score = number_of(value)
        if score is not None:
            yield str(name), score


def _sample(place: str, row: Row, scores: Mapping[str, float]) -> Sample:
    doc = literal(row.get("doc"))
    if isinstance(doc, Mapping):
        item = {name: literal(doc.get(name)) for name in _ITEM}
        index = index_of(doc.get("id"))
        return Sample(place=place, scores=scores, index=index, doc=item)
    item = {
        "query": text_at(row, "example"),
        "choices": literal(row.get("choices")),
        "specific": mapping_in({"in": literal(row.get("specifics"))}, "in"),
    }
    return Sample(place=place, scores=scores, doc=item)
