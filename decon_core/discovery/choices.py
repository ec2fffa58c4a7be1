"""Which fields of a benchmark hold the choices of a question, and what may point to a choice."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from decon_core.discovery.columns import Column
from decon_core.discovery.field_words import ANSWERS, CHOICES, NO_TEXT, PAIRED, WRONG

_LABEL_TRANSFORMS = ("add_one", "numbers_to_letters", "index_to_letter", "letter_to_index")
_MAX_CHOICES = 26


@dataclass(frozen=True)
class Choices:
    """Fields with the choices of a question, and the answer of a recipe that expands them."""

    columns: tuple[str, ...]
    answer: Mapping[str, object]  # `field` or `fields` of expand_choices, or `prefix`
    is_named: bool

    def expanded(self, key: str | None, kind: str, transform: str | None) -> dict[str, object]:
        """Return the answer of a recipe in which the `key` field names the correct choice."""
        is_prefix = "prefix" in self.answer
        how = "suffix_match_field" if is_prefix else kind
        table = {**self.answer, **({how: key} if key or not is_prefix else {})}
        table |= {"label_transform": transform} if transform else {}
        return {"expand_prefix" if is_prefix else "expand_choices": table}


def choices_among(columns: Sequence[Column]) -> Iterator[Choices]:
    """Yield fields or groups of fields that may be the choices, those with such a name first."""
    fields = [column for column in columns if _is_list_of_choices(column)]
    named = [field for field in fields if field.is_called(CHOICES)]
    yield from (_listed_choices(column, is_named=True) for column in named)
    for prefix, group in numbered_groups(columns).items():
        words = {word for column in group for word in column.words}
        names = tuple(column.name for column in group)
        if not words & (PAIRED | WRONG):
            yield Choices(names, {"prefix": prefix} if prefix else {"fields": [*names]}, True)
    for column in fields:
        if column not in named and not column.is_called(ANSWERS - {"answer"}):
            yield _listed_choices(column, is_named=False)


def _listed_choices(column: Column, *, is_named: bool) -> Choices:
    answer = {"field": column.name} | ({"transform": column.parser} if column.parser else {})
    return Choices((column.name,), answer, is_named)


def _is_list_of_choices(column: Column) -> bool:
    if column.is_called(NO_TEXT | WRONG):
        return False
    if column.kind.startswith("list of"):
        lengths = {len(value) for value in column.values if isinstance(value, list)}
        return all(2 <= length <= _MAX_CHOICES for length in lengths)
    return column.kind == "object" or column.parser is not None


def numbered_groups(columns: Sequence[Column]) -> dict[str, list[Column]]:
    """Return groups of fields that differ only in a final letter or number: A, B; option1, …"""
    groups: defaultdict[str, dict[str, Column]] = defaultdict(dict)
    for column in columns:
        if parts := re.fullmatch(r"(.*?)([A-Za-z]|\d{1,2})", column.name):
            prefix, suffix = parts.groups()
            if column.kind in ("text", "number", "mixed") and not (not prefix and suffix.isdigit()):
                groups[prefix][suffix.lower()] = column
    rows_of = ("abcdefghijklmnopqrstuvwxyz", "0123456789", "123456789")
    return {
        prefix: [*group.values()]
        for prefix, group in groups.items()
        if len(group) > 1 and any({*letters[: len(group)]} == {*group} for letters in rows_of)
    }


def ways_to_point(column: Column, choices: Choices) -> Iterator[tuple[str, str | None]]:
    """Yield the ways in which a field may name the correct choice."""
    is_prefix = "prefix" in choices.answer
    named = column.is_called(ANSWERS)
    if column.is_called(NO_TEXT - {"num", "index", "idx"}) or column.is_called(WRONG):
        return
    if column.kind == "text" and choices.is_named and not is_prefix and not column.has_labels:
        yield "correct_text", None
    if column.kind in ("list of number", "list of boolean") and not is_prefix:
        yield "correct_flags", None
    if column.has_labels or named:
        yield "correct_index", None
    if column.has_labels:
        yield from (("correct_index", name) for name in _LABEL_TRANSFORMS)


def label_path(column: Column) -> str:
    """Return the path of a label, which may be the only element of a list."""
    is_listed = column.has_labels and column.kind.startswith("list of")
    return f"{column.name}.0" if is_listed else column.name
