"""What the name of a column says about its content, and a recipe proposed from names alone."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Any

_PASSAGES = re.compile(
    r"(.*_)?(context|passage|article|paragraph|story|document|support|background|narrative"
    r"|document_str|ctxs)s?",
)
_CHOICES = re.compile(r"choices|options|endings|candidates|references", re.IGNORECASE)
_CHOICE = re.compile(r"|(.*[_ ])?(choice|option|ending|candidate|sol|solution|ans|answer|op)[_ ]?")
_TESTS = re.compile(r"(base_|private_|public_)?tests?(_list|_cases|_patch)?")
_ABOUT = re.compile(r"(sub)?(subject|category|topic|language|lang|domain|level|subfield)s?(_en)?")

# The preferred names come first. A dataset never has two names that differ only in case.
QUESTIONS = (
    "question", "problem", "problem_statement", "question_content", "prompt", "query",
    "instruction", "input",
)  # fmt: skip
ANSWERS = (
    "answer", "expected_answer", "short answer", "solution", "target", "output", "gold",
    "reference",
)  # fmt: skip
CORRECT = (
    "answer_index", "answer_idx", "answerkey", "correct", "cop", "label", "gold", "answer",
)  # fmt: skip
_PREFIXES = ("option_", "choice_", "op", "choice", "option", "")


def _leaf(path: str) -> str:
    names = [
        name for name in path.split(".") if not name.isdecimal() and name not in ("text", "value")
    ]
    return (names or [path])[-1].casefold()


def is_passage(path: str, beside: Sequence[str]) -> bool:
    """Return whether a column is the text that a question in another column is about."""
    name = _leaf(path)
    others = {_leaf(other) for other in beside if other != path}
    if name == "premise":
        return "hypothesis" in others
    return bool(_PASSAGES.fullmatch(name)) or (name == "text" and "question" in others)


def is_choices(path: str) -> bool:
    """Return whether a column has a list of choices."""
    return bool(_CHOICES.fullmatch(_leaf(path)))


def is_label(path: str) -> bool:
    """Return whether a column has the labels of choices, which lie beside their texts."""
    return "." in path and path.rpartition(".")[2] in ("label", "labels", "key")


def is_choice(prefix: str) -> bool:
    """Return whether columns with this name and a letter or number are choices."""
    return bool(_CHOICE.fullmatch(prefix.casefold()))


def is_test(path: str) -> bool:
    """Return whether a column has the tests of a program."""
    return bool(_TESTS.fullmatch(_leaf(path)))


def is_about(path: str) -> bool:
    """Return whether a column says what a row is about, as its subject."""
    return bool(_ABOUT.fullmatch(_leaf(path)))


def proposed_fields(columns: Collection[str]) -> dict[str, Any] | None:
    """Return the fields of a recipe for columns of known names; None if none is a question."""
    names = {column.casefold(): column for column in columns}
    question = next((names[name] for name in QUESTIONS if name in names), None)
    if question is None:
        return None
    fields: dict[str, Any] = {"prompt": question}
    passages = [column for column in columns if is_passage(column, [*columns])]
    if passages:
        fields["passage"] = passages[0]
    choices = _choice_entry(columns, names)
    answer = next((names[name] for name in ANSWERS if name in names), None)
    if choices is not None:
        fields["answers"] = [choices]
    elif question.casefold() == "problem_statement" and "patch" in names:
        fields |= {"solution": names["patch"]}
        if "test_patch" in names:
            fields["tests"] = names["test_patch"]
    elif answer is not None:
        fields["answers"] = [answer]
    return fields


def _choice_entry(columns: Collection[str], names: dict[str, str]) -> dict[str, Any] | None:
    correct = next((names[name] for name in CORRECT if name in names), None)
    listed = next((column for column in columns if is_choices(column)), None)
    if listed is not None:
        return {"expand_choices": {"field": listed, "correct_index": correct}}
    for prefix in _PREFIXES:
        fields = [names[prefix + label] for label in "abcdefghij" if prefix + label in names]
        if len(fields) > 1 and prefix == "":
            return {"expand_choices": {"fields": fields, "correct_index": correct}}
        if len(fields) > 1:
            entry = {"prefix": fields[0][:-1], "label_transform": "lower"}
            return {"expand_prefix": entry | ({"suffix_match_field": correct} if correct else {})}
    return None
