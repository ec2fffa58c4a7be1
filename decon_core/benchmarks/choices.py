"""Read multiple-choice answers in all published formats, and find the correct choice."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from decon_core.benchmarks.fields import (
    AbsentFieldError,
    FieldError,
    Row,
    describe,
    is_empty,
    text_of,
    value_at,
)
from decon_core.benchmarks.recipe import ChoicesAnswer, PrefixAnswer
from decon_core.benchmarks.transforms import apply_label_transform, apply_transforms

# `option_a`, `sol2`, but not `answer_info` or `options`.
_SUFFIX = re.compile(r"[A-Za-z]|\d+")
_LABEL_KEYS = ("label", "key")
_TEXT_KEYS = ("text", "value")


@dataclass(frozen=True)
class Candidate:
    """An answer text; `is_correct` is None if unknown."""

    text: str
    is_correct: bool | None = None


@dataclass(frozen=True)
class Choices:
    """Choices with their labels, if they have any; a choice may be empty (None)."""

    texts: list[str | None]
    labels: list[str] | None
    field: str

    def position_of(self, label: object, field: str, transform: str | None) -> int | None:
        """Return the position of the labelled choice; None if the label is hidden."""
        if is_hidden(label):
            return None
        name = apply_label_transform(label_text(label, field), transform, field)
        position = self._by_label(name)
        if position is None and self._may_be_position(label):
            position = self._by_position(name)
        if position is None or self.texts[position] is None:
            raise FieldError(
                field,
                found=describe(label) if name == str(label) else f"{describe(label)} ({name!r})",
                expected=f"the label of one of the {len(self.texts)} choices in {self.field!r} "
                f"({self._names()})",
            )
        return position

    def _by_label(self, name: str) -> int | None:
        labels = self.labels or []
        if name in labels:
            return labels.index(name)
        folded = [label.casefold() for label in labels]
        return folded.index(name.casefold()) if folded.count(name.casefold()) == 1 else None

    def _may_be_position(self, label: object) -> bool:
        """Return whether a label may be a position: never if labels are numbers (sol1, sol2).

        It would then be right for half of the rows and silently wrong for the others.
        """
        if self.labels is None:
            return True
        has_numbers = any(name.isdecimal() for name in self.labels)
        return isinstance(label, int | float) and not has_numbers

    def _by_position(self, name: str) -> int | None:
        """Return the position for a number from 0 or a letter from A."""
        if name.isdecimal():
            position = int(name)
        elif len(name) == 1 and name.isascii() and name.isalpha():
            position = ord(name.upper()) - ord("A")
        else:
            return None
        return position if position < len(self.texts) else None

    def _names(self) -> str:
        if self.labels is not None:
            return ", ".join(self.labels)
        return "a number from 0, or a letter from A"


def is_hidden(label: object) -> bool:
    """Return whether a label is null, blank or -1, as published for splits with hidden labels."""
    return is_empty(label) or label in (-1, "-1")


def label_text(label: object, field: str) -> str:
    if isinstance(label, float) and label.is_integer():
        label = int(label)  # pandas turns an integer column with a null into floats
    if isinstance(label, str | int) and not isinstance(label, bool):
        return str(label).strip()
    raise FieldError(field, found=describe(label), expected="a number, a letter or a label")


def expand_choices(
    row: Row, answer: ChoicesAnswer | PrefixAnswer, *, has_answers: bool
) -> list[Candidate]:
    try:
        choices = _choices_in(row, answer)
    except AbsentFieldError:
        if has_answers:
            raise
        return []
    flags = _correct_flags(row, answer, choices) if has_answers else None
    return [
        Candidate(text, flags[i] if flags else None)
        for i, text in enumerate(choices.texts)
        if text is not None
    ]


def _choices_in(row: Row, answer: ChoicesAnswer | PrefixAnswer) -> Choices:
    if isinstance(answer, PrefixAnswer):
        return _choices_by_prefix(row, answer.prefix)
    if answer.field is None:
        texts = [text_of(value_at(row, field), field) for field in answer.fields]
        return Choices(texts, list(answer.fields), ", ".join(answer.fields))
    value = apply_transforms(value_at(row, answer.field), answer.transforms, answer.field)
    return choices_of(value, answer.field, labels_beside(row, answer.field))


def _choices_by_prefix(row: Row, prefix: str) -> Choices:
    suffixes = [
        name[len(prefix) :]
        for name in row
        if name.startswith(prefix) and _SUFFIX.fullmatch(name[len(prefix) :])
    ]
    suffixes.sort(key=lambda suffix: (int(suffix) if suffix.isdecimal() else -1, suffix))
    if not suffixes:
        raise AbsentFieldError(
            prefix,
            found=f"no field that starts with {prefix!r}, followed by a letter or a number",
            expected=f"fields such as {prefix}A or {prefix}1",
        )
    return Choices([text_of(row[prefix + s], prefix + s) for s in suffixes], suffixes, prefix)


def choices_of(value: object, field: str, labels: list[str] | None) -> Choices:
    """Parse choices: a list of texts or of objects, an object of arrays, or label -> text."""
    if is_empty(value):
        return Choices([], None, field)
    if isinstance(value, list | tuple):
        if any(isinstance(item, Mapping) for item in value):
            return _choices_of_objects(value, field)
        texts = [text_of(item, field) for item in value]
        fits = labels is not None and len(labels) == len(texts)
        return Choices(texts, labels if fits else None, field)
    if isinstance(value, Mapping):
        texts_value = _first_of(value, _TEXT_KEYS)
        if isinstance(texts_value, list | tuple):
            return choices_of(texts_value, field, _labels_of(_first_of(value, _LABEL_KEYS)))
        texts = [text_of(item, f"{field}.{key}") for key, item in value.items()]
        return Choices(texts, [str(key) for key in value], field)
    raise FieldError(
        field, found=describe(value), expected="choices (a list, or an object of label: text)"
    )


def _choices_of_objects(items: Sequence[object], field: str) -> Choices:
    texts: list[str | None] = []
    labels: list[object] = []
    for item in items:
        if not isinstance(item, Mapping) or not any(key in item for key in _TEXT_KEYS):
            raise FieldError(field, found=describe(item), expected="a choice with text and label")
        texts.append(text_of(_first_of(item, _TEXT_KEYS), field))
        labels.append(_first_of(item, _LABEL_KEYS))
    return Choices(texts, _labels_of(labels), field)


def _first_of(value: Mapping[str, object], keys: Sequence[str]) -> object:
    return next((value[key] for key in keys if key in value), None)


def _labels_of(value: object) -> list[str] | None:
    if not isinstance(value, list | tuple) or any(is_empty(label) for label in value):
        return None
    return [str(label).strip() for label in value]


def labels_beside(row: Row, field: str) -> list[str] | None:
    """Return the labels beside a field: `choices.label` for `choices.text`, as in ARC."""
    parent, _, leaf = field.rpartition(".")
    if not parent or leaf not in _TEXT_KEYS:
        return None
    for key in _LABEL_KEYS:
        try:
            return _labels_of(value_at(row, f"{parent}.{key}"))
        except FieldError:
            continue
    return None


def _correct_flags(
    row: Row, answer: ChoicesAnswer | PrefixAnswer, choices: Choices
) -> list[bool] | None:
    if isinstance(answer, PrefixAnswer):
        label_field = answer.suffix_match_field
    elif answer.correct_text is not None:
        return _flags_by_text(row, answer.correct_text, choices)
    elif answer.correct_flags is not None:
        return _flags_by_array(row, answer.correct_flags, choices)
    else:
        label_field = answer.correct_index
    if label_field is None or not choices.texts:
        return None
    label = value_at(row, label_field)
    position = choices.position_of(label, label_field, answer.label_transform)
    return None if position is None else [i == position for i in range(len(choices.texts))]


def _flags_by_text(row: Row, field: str, choices: Choices) -> list[bool] | None:
    correct = text_of(value_at(row, field), field)
    if correct is None:
        return None
    flags = [text is not None and text.strip() == correct.strip() for text in choices.texts]
    if not any(flags):
        raise FieldError(
            field, found=describe(correct), expected=f"the text of a choice in {choices.field!r}"
        )
    return flags


def _flags_by_array(row: Row, field: str, choices: Choices) -> list[bool] | None:
    values = value_at(row, field)
    if values is None:
        return None
    is_fitting = (
        isinstance(values, list | tuple)
        and len(values) == len(choices.texts)
        and all(value in (0, 1) for value in values)
    )
    if not is_fitting or not isinstance(values, list | tuple):
        raise FieldError(
            field,
            found=describe(values),
            expected=f"a list of {len(choices.texts)} flags (0/1 or true/false), one per choice",
        )
    return [bool(value) for value in values]
