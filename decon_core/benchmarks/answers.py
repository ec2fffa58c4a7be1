"""Look up a recipe's `answers` in a row, and which of them are correct."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from decon_core.benchmarks.choices import (
    Candidate,
    choices_of,
    expand_choices,
    is_hidden,
    label_text,
    labels_beside,
)
from decon_core.benchmarks.fields import FieldError, Row, describe, texts_of, value_at
from decon_core.benchmarks.prompts import name_of, value_in
from decon_core.benchmarks.recipe import (
    Answer,
    ArrayAnswer,
    ChoicesAnswer,
    IndexedAnswer,
    PlainAnswer,
    PrefixAnswer,
)
from decon_core.benchmarks.transforms import apply_label_transform


def candidates_in(
    row: Row, answers: Sequence[Answer], *, has_answers: bool, position: int | None = None
) -> list[Candidate]:
    """Return the distinct answers of a row to one question.

    `position` is the question's position in its array, if it has one. For a split without answers
    (`has_answers` False) the choices are returned without `is_correct`; answer fields are not read,
    because they contain placeholders ("<unk>", -1).
    """
    candidates: list[Candidate] = []
    for answer in answers:
        match answer:
            case ChoicesAnswer() | PrefixAnswer():
                candidates += expand_choices(row, answer, has_answers=has_answers)
            case PlainAnswer() if has_answers:
                texts = texts_of(value_in(row, answer.text), name_of(answer.text))
                candidates += [Candidate(text, answer.is_correct) for text in texts]
            case IndexedAnswer() if has_answers:
                candidates += _indexed(row, answer)
            case ArrayAnswer() if has_answers:
                candidates += _array_element(row, answer, position or 0)
    return _distinct(candidates)


def _distinct(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Merge candidates with equal texts; the result is correct if any of them is."""
    by_text: dict[str, Candidate] = {}
    for candidate in candidates:
        known = by_text.setdefault(candidate.text, candidate)
        if candidate.is_correct or known.is_correct is None:
            by_text[candidate.text] = replace(known, is_correct=candidate.is_correct)
    return list(by_text.values())


def _indexed(row: Row, answer: IndexedAnswer) -> list[Candidate]:
    label = value_at(row, answer.key_field)
    if is_hidden(label):
        return []
    if answer.prefix is not None:
        name = label_text(label, answer.key_field)
        name = apply_label_transform(name, answer.label_transform, answer.key_field)
        field = answer.prefix + name
        return [Candidate(text) for text in texts_of(value_at(row, field), field)]
    field = answer.field or ""
    choices = choices_of(value_at(row, field), field, labels_beside(row, field))
    position = choices.position_of(label, answer.key_field, answer.label_transform)
    text = None if position is None else choices.texts[position]
    return [] if text is None else [Candidate(text)]


def _array_element(row: Row, answer: ArrayAnswer, position: int) -> list[Candidate]:
    values = value_at(row, answer.array)
    if values is None:
        return []
    if not isinstance(values, list | tuple):
        raise FieldError(answer.array, found=describe(values), expected="a list, one per question")
    return [Candidate(text) for text in texts_of(values[position], answer.array)]
