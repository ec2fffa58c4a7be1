"""Look up a recipe's texts and answers in a row, in all published formats."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import repeat
from typing import NamedTuple

from decon_core.benchmarks import recipe
from decon_core.benchmarks.fields import (
    AbsentFieldError,
    FieldError,
    Row,
    describe,
    is_empty,
    text_of,
    texts_of,
    value_at,
)
from decon_core.benchmarks.transforms import CANARY, Steps, apply_label_transform, apply_transforms

# The two published chat formats, and the role names of the second format.
_ROLE_KEYS = ("role", "from")
_CONTENT_KEYS = ("content", "value")
_ROLE_ALIASES = {"human": "user", "gpt": "assistant"}
# `option_a`, `sol2`, but not `answer_info` or `options`.
_SUFFIX = re.compile(r"[A-Za-z]|\d+")
_SEVERAL_LETTERS = re.compile(r"[A-Z](?:[\s,;&]*[A-Z])+")
_LABEL_KEYS = ("label", "key")
_TEXT_KEYS = ("text", "value")


def text_in(row: Row, source: recipe.Text) -> str | None:
    """Return a text of a row, or None if its field is empty."""
    return text_of(value_in(row, source), name_of(source))


def value_in(row: Row, source: recipe.Text) -> object:
    """Return the transformed value of a text source; may be a list."""
    match source:
        case recipe.FieldText():
            value = _value_at(row, source.field, is_optional=source.is_optional)
            steps = source.transforms and _with_passwords(row, source)
            return apply_transforms(value, steps, source.field)
        case recipe.JoinedText():
            texts = (text_of(value_at(row, field), field) for field in source.fields)
            return source.separator.join(text for text in texts if text is not None)
        case recipe.MessagesText():
            return _messages_text(row, source)
        case recipe.LastParagraph():
            value = value_at(row, source.field)
            paragraphs = value.split("\n\n") if isinstance(value, str) else value
            flat = [*_flattened(paragraphs, source.field)]
            long_enough = (text for text in flat[::-1] if len(text.split()) >= source.min_words)
            return next(long_enough, None)


def _value_at(row: Row, field: str, *, is_optional: bool) -> object:
    """Return the value of a field; None if the row lacks an optional one."""
    try:
        return value_at(row, field)
    except AbsentFieldError:
        if is_optional:
            return None
        raise


def _with_passwords(row: Row, source: recipe.FieldText) -> Steps:
    """Return the transforms; `decrypt` has the password of the row in place of its field."""
    return tuple(
        (name, text_of(value_at(row, field or CANARY), field or CANARY))
        if name == "decrypt"
        else (name, field)
        for name, field in source.transforms
    )


def name_of(source: recipe.Text) -> str:
    return " + ".join(source.fields) if isinstance(source, recipe.JoinedText) else source.field


def _messages_text(row: Row, source: recipe.MessagesText) -> str:
    messages = value_at(row, source.field)
    if isinstance(messages, str) and messages.startswith("["):  # published as text
        messages = apply_transforms(messages, (("parse_json", None),), source.field)
    if not isinstance(messages, list | tuple | None):
        raise FieldError(source.field, describe(messages), "a list of messages")
    roles = {_role_name(role) for role in source.roles}
    texts = []
    for position, message in enumerate(messages or ()):
        if not isinstance(message, Mapping):
            expected = "a message (an object with role and content, or from and value)"
            raise FieldError(f"{source.field}.{position}", describe(message), expected)
        if not roles or _role_of(message, source.field) in roles:
            texts.append(_content_of(message, source))
    if source.append_field is not None:
        texts.append(text_of(value_at(row, source.append_field), source.append_field))
    return "\n".join(text for text in texts if text is not None)


def _role_name(role: str) -> str:
    return _ROLE_ALIASES.get(role.lower(), role.lower())


def _role_of(message: Mapping[str, object], field: str) -> str:
    for key in _ROLE_KEYS:
        if isinstance(role := message.get(key), str):
            return _role_name(role)
    raise FieldError(field, describe(message), "a message with a role")


def _content_of(message: Mapping[str, object], source: recipe.MessagesText) -> str | None:
    """Return the content of a message: text, or a list of parts, some with text."""
    keys = (source.content_field,) if source.content_field else _CONTENT_KEYS
    key = next((key for key in keys if key in message), None)
    if key is None:
        expected = f"a message with {' or '.join(keys)}"
        raise AbsentFieldError(source.field, describe(message), expected)
    content = message[key]
    if not isinstance(content, list | tuple):
        return text_of(content, source.field)
    parts = [part.get("text") if isinstance(part, Mapping) else part for part in content]
    texts = [text_of(part, source.field) for part in parts]
    return "\n".join(text for text in texts if text is not None) or None


def _flattened(value: object, field: str) -> Iterator[str]:
    """Yield the texts in nested lists; papers are published as sections of paragraphs."""
    if isinstance(value, list | tuple):
        for item in value:
            yield from _flattened(item, field)
    elif not is_empty(value):
        yield text_of(value, field) or ""


# Answers ------------------------------------------------------------------------------------------


# The distinct answers to a question, each with whether it is correct; None: unknown.
Answers = dict[str, bool | None]


def answers_in(
    row: Row, answers: Sequence[recipe.Answer], *, has_answers: bool, position: int | None = None
) -> Answers:
    """Return the answers of a row to one question. Any of equal texts may be correct.

    `position` is the question's position in its array, None without an array. For a split without
    answers (`has_answers` False) the choices are returned without `is_correct`; answer fields are
    not read, because they contain placeholders ("<unk>", -1).
    """
    by_text: Answers = {}
    for answer in answers:
        flags: Iterable[bool | None] = repeat(None)
        texts: Sequence[str | None] = ()
        match answer:
            case recipe.ChoicesAnswer() | recipe.PrefixAnswer():
                texts, flags = _expand_choices(row, answer, has_answers=has_answers)
            case recipe.PlainAnswer() if has_answers:
                texts = texts_of(value_in(row, answer.text), name_of(answer.text))
                flags = repeat(answer.is_correct)
            case recipe.IndexedAnswer() if has_answers:
                texts = _indexed(row, answer)
            case recipe.ArrayAnswer(choices=str()):
                texts, flags = _choices_at(row, answer, position or 0, has_answers=has_answers)
            case recipe.ArrayAnswer() if has_answers:
                values = array_at(row, answer.array, is_optional=answer.is_optional)
                value = None if values is None else values[position or 0]
                texts = texts_of(value, answer.array)
        for text, is_correct in zip(texts, flags, strict=False):
            if text is not None and (is_correct or by_text.get(text) is None):
                by_text[text] = is_correct
    return by_text


def array_at(row: Row, field: str, *, is_optional: bool) -> Sequence[object] | None:
    """Return a list with an element for each question of a row; None if there is none."""
    values = _value_at(row, field, is_optional=is_optional)
    if not isinstance(values, list | tuple | None):
        raise FieldError(field, describe(values), "a list, one per question")
    return values


def _choices_at(
    row: Row, answer: recipe.ArrayAnswer, position: int, *, has_answers: bool
) -> tuple[Sequence[str | None], Iterable[bool | None]]:
    """Return the choices of the question at a position, and whether each is correct."""
    field = answer.choices or ""
    listed = array_at(row, field, is_optional=answer.is_optional) or ()
    choices = _choices_of(listed[position] if position < len(listed) else None, field, None)
    flags = None
    if has_answers and choices.texts:
        labels = array_at(row, answer.array, is_optional=answer.is_optional) or ()
        label = labels[position] if position < len(labels) else None
        flags = choices.flags(label, answer.array, answer.label_transform)
    return choices.texts, flags or repeat(None)


def _indexed(row: Row, answer: recipe.IndexedAnswer) -> list[str]:
    label = value_at(row, answer.key_field)
    if _is_hidden(label):
        return []
    if answer.prefix is not None:
        name = _label_text(label, answer.key_field)
        name = apply_label_transform(name, answer.label_transform, answer.key_field)
        field = answer.prefix + name
        return texts_of(value_at(row, field), field)
    field = answer.field or ""
    choices = _choices_of(value_at(row, field), field, _labels_beside(row, field))
    positions = choices.positions_of(label, answer.key_field, answer.label_transform)
    return [text for position in positions if (text := choices.texts[position]) is not None]


def _is_hidden(label: object) -> bool:
    """Return whether a label is null, blank or -1, as published for splits with hidden labels."""
    return is_empty(label) or label in (-1, "-1")


def _label_text(label: object, field: str) -> str:
    if isinstance(label, float) and label.is_integer():
        label = int(label)  # pandas turns an integer column with a null into floats
    if isinstance(label, (str, int)) and not isinstance(label, bool):
        return str(label).strip()
    raise FieldError(field, describe(label), "a number, a letter or a label")


class _Choices(NamedTuple):
    """Choices with their labels, if they have any; a choice may be empty (None)."""

    texts: list[str | None]
    labels: list[str] | None
    field: str

    def flags(self, label: object, field: str, transform: str | None) -> list[bool] | None:
        """Return whether each choice is correct; None if the label is hidden."""
        positions = self.positions_of(label, field, transform)
        return [at in positions for at in range(len(self.texts))] if positions else None

    def positions_of(self, label: object, field: str, transform: str | None) -> list[int]:
        """Return the positions of the labelled choices; none if the label is hidden.

        Several choices are labelled by a list of labels, or by several letters in one text, such as
        "AC" or "A, C": in ascending order, as other texts of such letters are words.
        """
        if (
            type(label) is int
            and self.labels is None
            and transform is None
            and 0 <= label < len(self.texts)
            and self.texts[label] is not None
        ):
            return [label]  # most labels, in a tenth of the time
        if isinstance(label, list | tuple):
            if len({*map(_is_hidden, label)}) > 1:
                raise FieldError(field, describe(label), "a list of labels without null or -1")
            several = (self.positions_of(name, field, transform) for name in label)
            return [position for positions in several for position in positions]
        if _is_hidden(label):
            return []
        name = apply_label_transform(_label_text(label, field), transform, field)
        positions = [self._position(name, label)]
        if positions == [None] and _SEVERAL_LETTERS.fullmatch(name):
            letters = re.findall("[A-Z]", name)
            if letters == sorted({*letters}):
                positions = [self._position(letter, letter) for letter in letters]
        known = [at for at in positions if at is not None and self.texts[at] is not None]
        if len(known) < len(positions):
            found = describe(label) if name == str(label) else f"{describe(label)} ({name!r})"
            names = ["a number from 0, or a letter from A"] if self.labels is None else self.labels
            choices = f"the {len(self.texts)} choices in {self.field!r}"
            raise FieldError(field, found, f"the label of one of {choices} ({', '.join(names)})")
        return known

    def _position(self, name: str, label: object) -> int | None:
        position = self._by_label(name)
        if position is None and self._may_be_position(label):
            position = self._by_position(name)
        return position

    def _by_label(self, name: str) -> int | None:
        labels = self.labels
        if labels is None:
            return None
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


def _expand_choices(
    row: Row, answer: recipe.ChoicesAnswer | recipe.PrefixAnswer, *, has_answers: bool
) -> tuple[Sequence[str | None], Iterable[bool | None]]:
    """Return the choices, and whether each is correct."""
    try:
        choices = _choices_in(row, answer)
    except AbsentFieldError:
        if has_answers:
            raise
        return (), ()
    flags = _correct_flags(row, answer, choices) if has_answers else None
    return choices.texts, flags or repeat(None)


def _choices_in(row: Row, answer: recipe.ChoicesAnswer | recipe.PrefixAnswer) -> _Choices:
    if isinstance(answer, recipe.ChoicesAnswer) and answer.field is not None:
        try:
            value = value_at(row, answer.field)
        except AbsentFieldError as error:
            raise _naming_prefix(row, answer, error) from None
        value = apply_transforms(value, answer.transforms, answer.field)
        return _choices_of(value, answer.field, _labels_beside(row, answer.field))
    if isinstance(answer, recipe.ChoicesAnswer):
        texts = [text_of(value_at(row, field), field) for field in answer.fields]
        return _Choices(texts, [*answer.fields], ", ".join(answer.fields))
    prefix = answer.prefix
    names = [name.removeprefix(prefix) for name in row if name.startswith(prefix)]
    suffixes = [name for name in names if _SUFFIX.fullmatch(name)]
    suffixes.sort(key=lambda suffix: (int(suffix) if suffix.isdecimal() else -1, suffix))
    if not suffixes:
        found = f"no field named {prefix!r} plus a letter or a number"
        raise AbsentFieldError(prefix, found, f"fields such as {prefix}A or {prefix}1")
    return _Choices([text_of(row[prefix + s], prefix + s) for s in suffixes], suffixes, prefix)


def _naming_prefix(
    row: Row, answer: recipe.ChoicesAnswer, error: AbsentFieldError
) -> AbsentFieldError:
    """Return the error with a better remedy, if the choices are in fields such as choice0."""
    stem = error.field.casefold()
    stems = (stem, stem.removesuffix("s"))
    choices = []
    for name in row:
        parts = re.fullmatch(r"(.+?)([A-Za-z]|\d+)", name)
        if parts and parts[1].rstrip(" _-").casefold() in stems:
            choices.append((name, parts[1]))
    if len(choices) < 2:
        return error
    correct = f", suffix_match_field: {answer.correct_index}" if answer.correct_index else ""
    table = f"`expand_prefix: {{prefix: {choices[0][1]!r}{correct}}}`"
    shown = ", ".join(name for name, _ in choices[:3])
    remedy = f"The choices are in {shown}, …: write {table} instead of `expand_choices`."
    return AbsentFieldError(error.field, error.found, error.expected, remedy)


def _choices_of(value: object, field: str, labels: list[str] | None) -> _Choices:
    """Parse choices: a list of texts or of objects, an object of arrays, or label -> text."""
    if isinstance(value, (list, tuple)):
        kinds = {*map(type, value)}  # one, as a rule; a check of each choice takes twice as long
        if kinds == {str}:
            texts = [None if not text or text.isspace() else text for text in value]
        elif any(issubclass(kind, Mapping) for kind in kinds):
            texts = [_text_of_choice(item, field) for item in value]
            labels = _labels_of([_first_of(item, _LABEL_KEYS) for item in value])
        else:
            texts = [text_of(item, field) for item in value]
        fits = labels is not None and len(labels) == len(texts)
        return _Choices(texts, labels if fits else None, field)
    if is_empty(value):
        return _Choices([], None, field)
    if isinstance(value, Mapping):
        texts_value = _first_of(value, _TEXT_KEYS)
        if isinstance(texts_value, list | tuple):
            return _choices_of(texts_value, field, _labels_of(_first_of(value, _LABEL_KEYS)))
        texts = [text_of(item, f"{field}.{key}") for key, item in value.items()]
        return _Choices(texts, [str(key) for key in value], field)
    raise FieldError(field, describe(value), "choices (a list, or an object of label: text)")


def _text_of_choice(choice: object, field: str) -> str | None:
    if isinstance(choice, Mapping) and {*_TEXT_KEYS} & choice.keys():
        return text_of(_first_of(choice, _TEXT_KEYS), field)
    raise FieldError(field, describe(choice), "a choice with text and label")


def _first_of(value: Mapping[str, object], keys: Sequence[str]) -> object:
    return next((value[key] for key in keys if key in value), None)


def _labels_of(value: object) -> list[str] | None:
    if not isinstance(value, list | tuple) or any(is_empty(label) for label in value):
        return None
    return [str(label).strip() for label in value]


def _labels_beside(row: Row, field: str) -> list[str] | None:
    """Return the labels beside a field: `choices.label` for `choices.text`, as in ARC."""
    parent, _, leaf = field.rpartition(".")
    if not parent or leaf not in _TEXT_KEYS:
        return None
    for key in _LABEL_KEYS:
        with suppress(FieldError):
            return _labels_of(value_at(row, f"{parent}.{key}"))
    return None


def _correct_flags(
    row: Row, answer: recipe.ChoicesAnswer | recipe.PrefixAnswer, choices: _Choices
) -> list[bool] | None:
    """Return whether each choice is correct, by its label, its text or its flag."""
    n = len(choices.texts)
    if isinstance(answer, recipe.PrefixAnswer):
        label_field = answer.suffix_match_field
    elif (field := answer.correct_text) is not None:
        correct = text_of(value_at(row, field), field)
        if correct is None:
            return None
        flags = [text is not None and text.strip() == correct.strip() for text in choices.texts]
        if not any(flags):
            expected = f"the text of a choice in {choices.field!r}"
            raise FieldError(field, describe(correct), expected)
        return flags
    elif (field := answer.correct_flags) is not None:
        values = value_at(row, field)
        if values is None:
            return None
        if (
            isinstance(values, list | tuple)
            and len(values) == n
            and all(v in (0, 1) for v in values)
        ):
            return [bool(value) for value in values]
        expected = f"a list of {n} flags (0/1 or true/false), one per choice"
        raise FieldError(field, describe(values), expected)
    else:
        label_field = answer.correct_index
    if label_field is None or not choices.texts:
        return None
    return choices.flags(value_at(row, label_field), label_field, answer.label_transform)
