"""A reading: the keys of a recipe that say which fields are question, passage and answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import yaml

from decon_core.benchmarks.fields import Row
from decon_core.benchmarks.normalize import normalize_rows
from decon_core.benchmarks.parse import parse_recipe
from decon_core.errors import DeconError

_WIDE = 1_000_000  # characters: no line is wrapped
ANSWERS = ("answers", "answer", "solution")  # the keys of a recipe for answers


@dataclass(frozen=True)
class Reading:
    """The keys of a recipe, why they were chosen, and what about them is doubtful."""

    keys: Mapping[str, object]
    why: tuple[str, ...]
    doubts: tuple[str, ...] = ()

    @property
    def has_answer(self) -> bool:
        return any(key in self.keys for key in (*ANSWERS, "target"))

    def lines(self) -> list[str]:
        return [f"{key}: {flow(value)}" for key, value in self.keys.items()]


@dataclass(frozen=True)
class OpenChoice:
    """Rows in which no field is a convincing question, with the fields that may be the question."""

    candidates: tuple[str, ...]
    why: tuple[str, ...]


def flow(value: object) -> str:
    text = yaml.safe_dump(
        value, default_flow_style=True, width=_WIDE, allow_unicode=True, sort_keys=False
    )
    return text.removesuffix("...\n").strip()


def records_of(keys: Mapping[str, object], rows: Sequence[Row]) -> list[dict[str, object]]:
    """Return the records that a recipe makes of rows; none if it does not fit one of them."""
    try:
        recipe = parse_recipe("rows", keys, where="rows")
        records = normalize_rows(recipe, rows, split="test", origin="rows").to_pylist()
    except DeconError:
        return []
    n_questions = sum(bool(str(record["question"]).strip()) for record in records)
    return records if 2 * n_questions > len(records) else []


def field_names(value: object, *, optional: bool = True) -> Iterator[str]:
    """Yield the fields that a value of a recipe names, without those named by a prefix."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from field_names(item, optional=optional)
    elif isinstance(value, Mapping) and (optional or not value.get("optional")):
        for key, item in value.items():
            if key not in _NO_FIELDS:
                yield from field_names(item, optional=optional)


def prefixes(value: object) -> Iterator[str]:
    """Yield the prefixes of choices that a value of a recipe names."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from [str(item)] if key == "prefix" else prefixes(item)
    elif isinstance(value, list):
        for item in value:
            yield from prefixes(item)


_NO_FIELDS = {
    "transform",
    "label_transform",
    "separator",
    "roles",
    "min_words",
    "is_correct",
    "content_field",
    "optional",
    "prefix",
}
