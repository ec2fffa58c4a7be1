"""Read lighteval details: details/<model>/<date>/details_<suite>|<task>|<shots>_<date>.parquet.

The earlier form has `example` (the question without the shots), `metrics` and `gold`; values that
did not fit Arrow are Python literals as text. The later form has `doc` (with `query`, `id`,
`task_name`), `metric` and `model_response`. Rows are shuffled, so the row number is not an index.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from decon_core.benchmarks.fields import Row
from decon_core.features.results import per_item

NAME = "lighteval details"

_FILE = re.compile(r"details_(?P<task>.+?)_(?P<run>\d{4}-\d\d-\d\dT[\d.-]+)")
_ITEM = ("query", "original_query", "choices", "specific")


def fits(row: Row) -> bool:
    is_new = "doc" in row and "metric" in row
    return is_new or ("metrics" in row and ("example" in row or "full_prompt" in row))


def read(path: Path) -> list[per_item.Results]:
    """Read the details of a file: one task of one model."""
    named = _FILE.fullmatch(path.name.removesuffix(".parquet"))
    results = per_item.Results(
        path=path,
        format=NAME,
        model=_model(path),
        task=named["task"] if named else path.stem.removeprefix("details_"),
        run=named["run"] if named else "",
    )
    per_item.add_samples(results, _sample)
    return [results]


def _model(path: Path) -> str:
    """Return the folders between `details` and the date, or the folder above the date."""
    folders = path.resolve().parent.parts
    if "details" in folders:
        between = folders[len(folders) - folders[::-1].index("details") : -1]
        if between:
            return "/".join(between)
    return folders[-2] if len(folders) > 1 else folders[-1]


def _sample(place: str, row: Row) -> per_item.Sample:
    metrics = per_item.literal(row.get("metric") if "metric" in row else row.get("metrics"))
    scores, doc = per_item.numbers_in(metrics), per_item.literal(row.get("doc"))
    if not isinstance(doc, Mapping):  # the earlier form
        specifics = per_item.literal(row.get("specifics"))
        item = {
            "query": per_item.text_at(row, "example"),
            "choices": per_item.literal(row.get("choices")),
            "specific": specifics if isinstance(specifics, Mapping) else {},
        }
        prediction = per_item.first_text(_listed(row.get("predictions")))
        golds = per_item.listed_texts(_listed(row.get("golds", row.get("gold"))))
        texts = per_item.Texts(prediction, golds)
        return per_item.Sample(place=place, scores=scores, doc=item, texts=texts)
    return per_item.Sample(
        place=place,
        scores=scores,
        index=per_item.index_of(doc.get("id")),
        doc={name: per_item.literal(doc.get(name)) for name in _ITEM},
        texts=_texts(row, doc),
    )


def _texts(row: Row, doc: Row) -> per_item.Texts:
    """Return the first prediction and the gold answers, in the later form."""
    response = per_item.literal(row.get("model_response"))
    output = response.get("text") if isinstance(response, Mapping) else None
    choices = per_item.listed_texts(per_item.literal(doc.get("choices")))
    gold = per_item.literal(doc.get("gold_index"))
    chosen = gold if isinstance(gold, list) else [gold]
    golds = [choices[at] for at in chosen if isinstance(at, int) and 0 <= at < len(choices)]
    return per_item.Texts(per_item.first_text(output), tuple(golds))


def _listed(value: object) -> object:
    """Parse a printed list of texts; a text that is none stays as it is."""
    parsed = per_item.literal(value)
    return parsed if isinstance(parsed, list) else value
