"""Turn what a task prints into the fields of a recipe: question, passage, choices and answers."""

from __future__ import annotations

import re
import string
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

from decon_core.benchmarks.languages import language_in
from decon_core.benchmarks.recipe import LANGUAGE_KEYS
from decon_core.features.importers.column_names import (
    is_about,
    is_choice,
    is_choices,
    is_label,
    is_passage,
    is_test,
)
from decon_core.features.importers.values import (
    COUNTER,
    Chosen,
    Column,
    Computed,
    Constant,
    Items,
    Joined,
    Part,
    Position,
    Value,
    bare,
    columns_of,
    computed_by,
    is_blank,
)

_LABEL = re.compile(r"(?:^|[\s(\[\"'*])(\w)\s?[).:：．、*]{0,3}\s*$")
_ONLY_LABEL = re.compile(r"[^\w]*\w[^\w]*")
_ALPHABETS = (string.ascii_uppercase, string.ascii_lowercase, "123456789", "0123456789")
_CODE = re.compile(r"(.*_)([a-z]{3}_[A-Z][a-z]{3})")  # sentence_ace_Arab
_SUFFIXED = re.compile(r"(.*?)([A-Za-z]|\d+)")


@dataclass
class Draft:
    """The fields of a recipe, what a person has to confirm, and why there are none."""

    fields: dict[str, Any] = field(default_factory=dict)
    doubts: list[tuple[str, str]] = field(default_factory=list)
    refusal: str = ""


@dataclass(frozen=True)
class Choices:
    """A column with a list of choices, or a column for each."""

    field: str = ""
    fields: tuple[str, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        return self.fields or (self.field,)


def draft(
    question: Value,
    target: Value | None,
    choices: Value | None = None,
    query: Value | None = None,
) -> Draft:
    """Return the fields of a recipe for what a task prints.

    `query` is the text that the task names for a search in training data.
    """
    done = Draft()
    if isinstance(choices, Items) and len(choices.items) == 1:
        target, choices = choices.items[0], None  # the only choice is the answer
    question, target = bare(question), None if target is None else bare(target)
    options = _choices(question, choices, done, columns_of(question) + columns_of(query))
    by = computed_by(question)
    if by and query is not None and columns_of(query) and not computed_by(query):
        question, by = query, ""
    if by:
        done.doubts.append(("the question is computed", by))
    printed = _questions_of(question, options, target)
    if not printed and query is not None:
        printed = _questions_of(query, options, target)
    if not printed and options is None and isinstance(choices, Items):
        printed = _questions_of(choices, None, None)  # each choice is the question in other words
    if not printed and options is not None:
        texts = options.fields
        done.fields = {"prompts": [*texts] if texts else {"array": options.field}}
    elif not printed:
        done.refusal = "the template prints no column"
        return done
    else:
        _set_question(done, printed, question)
        _set_answers(done, printed, options, target, choices)
    if tests := [path for path in columns_of(target) if is_test(path)]:
        done.fields["tests"] = tests if len(tests) > 1 else tests[0]
    return done


def _choices(
    question: Value, choices: Value | None, done: Draft, asked: Collection[str]
) -> Choices | None:
    """Return the columns of the choices, as declared or as printed behind A, B, C."""
    if by := computed_by(choices):
        done.doubts.append(("the choices are computed", by))
    match Constant("") if choices is None else bare(choices):
        case Column(path) | Part(Column(path)) if not is_label(path):
            return Choices(path)
        case Items(items) if all(isinstance(_column(item), str) for item in items):
            return Choices(fields=tuple(_column(item) or "" for item in items))
        case other if all(map(is_label, columns_of(other))) and not computed_by(other):
            pass  # only labels, whose texts are in the question
        case Items(items) if len({columns_of(item) for item in items}) == 1:
            return None  # the same columns with other words: only a class label
        case other:
            if not by:
                done.doubts.append(("the choices are computed", "a template"))
            columns = tuple(path for path in columns_of(other) if path not in asked)
            if columns:
                return Choices(columns[0]) if len(columns) == 1 else Choices(fields=columns)
            return None
    return _labelled(question)


def _column(value: Value) -> str | None:
    match bare(value):
        case Column(path) | Part(Column(path)) | Computed(_, [path]):
            return path
    return None


def _labelled(question: Value) -> Choices | None:
    """Return the columns that a question prints behind A, B, C or 1, 2, 3, or named as choices."""
    before, labels = "", ""
    paths: list[str] = []
    for part in question.parts if isinstance(question, Joined) else ():
        if isinstance(part, Constant):
            before = str(part.value)
            continue
        label, path = _LABEL.search(before), _column(part)
        if label is not None and path is not None:
            is_next = not labels or _ONLY_LABEL.fullmatch(before)
            labels, paths = (labels + label[1], [*paths, path]) if is_next else (label[1], [path])
        before = ""
        if len(labels) > 1 and not _is_run(labels):
            labels, paths = labels[-1], paths[-1:]
    if len(labels) > 1:
        return _listed(paths)
    return _named_as_choices(columns_of(question))


def _is_run(labels: str) -> bool:
    return any(alphabet.startswith(labels) for alphabet in _ALPHABETS)


def _named_as_choices(columns: Sequence[str]) -> Choices | None:
    """Return `choices`, or `option1`, `option2`, of the columns that a question prints."""
    for path in columns:
        if is_choices(path):
            return Choices(re.sub(r"(\.\d+)+$", "", path))
    numbered: dict[str, list[str]] = {}
    for path in columns:
        if (parts := _SUFFIXED.fullmatch(path)) and is_choice(parts[1]):
            numbered.setdefault(parts[1], []).append(path)
    for paths in numbered.values():
        if len(paths) > 1 and _suffixed(paths)[1]:
            return Choices(fields=tuple(paths))
    return None


def _listed(paths: Sequence[str]) -> Choices:
    """Return `choices.0`, `choices.1` as the list `choices`."""
    parents = {path.rpartition(".")[0] for path in paths}
    if len(parents) == 1 and [path.rpartition(".")[2] for path in paths] == [
        str(number) for number in range(len(paths))
    ]:
        return Choices(parents.pop())
    return Choices(fields=tuple(dict.fromkeys(paths)))


def _questions_of(value: Value, options: Choices | None, target: Value | None) -> list[str]:
    """Return the columns of a text that are no choices, tests or notes on the row."""
    chosen = [] if options is None else [*options.columns]
    if options is not None and "." in options.field:  # `choices.label` beside `choices.text`
        chosen.append(options.field.rpartition(".")[0])
    columns = [
        path
        for path in columns_of(value)
        if not any(path == column or path.startswith(f"{column}.") for column in chosen)
        and not (is_test(path) and path in columns_of(target))
    ]
    if isinstance(value, Joined):
        shown = [path for path in columns if not is_about(path)]
        return shown or columns
    return columns


def _set_question(done: Draft, printed: Sequence[str], question: Value) -> None:
    passages = [path for path in printed if is_passage(path, printed)]
    if len(passages) == len(printed):
        passages = []
    texts = [path for path in printed if path not in passages]
    done.fields["prompt"] = as_text(texts, _separator(question))
    if passages:
        done.fields["passage"] = as_text(passages)


def as_text(paths: Sequence[str], separator: str = "\n") -> str | dict[str, Any]:
    """Return the text of a recipe: a column, or several that are joined."""
    if len(paths) == 1:
        return paths[0]
    joined: dict[str, Any] = {"fields": [*paths]}
    return joined | ({} if separator == "\n" else {"separator": separator})


def _separator(question: Value) -> str:
    """Return a space if only that is between the columns of a question, else a line break."""
    if not isinstance(question, Joined):
        return " "
    between = [
        part
        for part in question.parts[1:-1]
        if isinstance(part, Constant) and len(question.parts) > 2
    ]
    shown = [str(part.value) for part in between]
    return " " if all(text.isspace() and "\n" not in text for text in shown) else "\n"


def _set_answers(
    done: Draft,
    printed: Sequence[str],
    options: Choices | None,
    target: Value | None,
    choices: Value | None,
) -> None:
    if isinstance(target, Computed) or (target is not None and computed_by(target)):
        done.doubts.append(("the answer is computed", computed_by(target)))
    if options is not None and (target == COUNTER or len(options.fields) == 1):
        done.fields["answers"] = [*options.columns]  # every choice is correct
        return
    if options is not None:
        if (answers := _choice_answers(done, printed, options, target, choices)) is not None:
            done.fields["answers"] = answers
        return
    prompt = done.fields.get("prompt")
    if choices is not None and not isinstance(target, Joined):  # a class label beside any text
        answers = [path for path in columns_of(choices) if path not in printed]
    else:
        answers = [answer for answer in _plain_answers(target, printed) if answer != prompt]
    if len(answers) == 1 and isinstance(answers[0], str) and isinstance(prompt, str):
        pair = _translation(prompt, answers[0])
        if pair:
            del done.fields["prompt"]
            done.fields |= pair
            return
    if answers:
        done.fields["answers"] = answers


def _translation(source: str, target: str) -> dict[str, Any]:
    """Return the fields of a translation if both columns name a language, else none."""
    pair = {"source": source, "target": target, "both_directions": True}
    named = [language_in(source), language_in(target)]
    if len({tag.language for tag in named if tag is not None}) == 2:
        return pair
    codes = [_CODE.fullmatch(source), _CODE.fullmatch(target)]
    if all(codes) and len({code[1] for code in codes if code}) == 1:
        languages = [code[2] for code in codes if code]
        return pair | dict(zip(LANGUAGE_KEYS, languages, strict=True))
    return {}


def _plain_answers(target: Value | None, asked: Collection[str] = ()) -> list[Any]:
    """Return the entries of `answers` for a target without choices."""
    match target:
        case None | Constant() | Position():
            return []
        case Chosen(Column(path), key) if (name := _column(key)) is not None:
            return [{"indexed": {"field": path, "key_field": name}}]
        case Chosen():
            return []
        case Items(items):
            return [entry for item in items for entry in _plain_answers(bare(item), asked)]
    columns = [path for path in columns_of(target) if path not in asked] or columns_of(target)
    paths = [path.removesuffix(".0") for path in columns if not is_test(path)]
    if not paths or any(map(is_test, columns_of(target))):
        return []
    return [as_text(paths, " ")]


@dataclass(frozen=True)
class _Key:
    """The column that names the correct choice, and how: "0", "1": from there; "A": letters."""

    column: str
    counts_from: str = ""
    is_text: bool = False


def _choice_answers(
    done: Draft,
    printed: Sequence[str],
    options: Choices,
    target: Value | None,
    choices: Value | None,
) -> list[Any] | None:
    if target is None or is_blank(target):
        return [_expanded(options, {"correct_index": None})]
    if isinstance(target, Constant):
        number = str(target.value).strip()
        return _always(options, int(number)) if number.isdecimal() else None
    key = _key(target, options, choices)
    if key is None or key.column in printed:
        done.doubts.append(
            ("no plain field names the correct choice", ", ".join(columns_of(target)))
        )
        return [_expanded(options, {"correct_index": None})]
    if key.is_text:
        return [_expanded(options, {"correct_text": key.column})]
    return [_by_index(done, options, key)]


def _always(options: Choices, number: int) -> list[Any] | None:
    """Return the answers if the choice of this number is correct in every row."""
    if number < len(options.fields):
        return [_expanded(options, {"correct_text": options.fields[number]})]
    if options.fields:
        return None
    first = {"field": f"{options.field}.{number}", "is_correct": True}
    return [first, {"field": options.field, "is_correct": False}]


def _expanded(options: Choices, correct: dict[str, Any]) -> dict[str, Any]:
    named = {"fields": [*options.fields]} if options.fields else {"field": options.field}
    return {"expand_choices": named | correct}


def _key(target: Value, options: Choices, choices: Value | None) -> _Key | None:
    match target:
        case Column(path) | Part(Column(path)):
            return _Key(path, is_text=path in options.columns)
        case Joined(parts) if len(shown := [part for part in parts if columns_of(part)]) == 1:
            return _key(shown[0], options, choices)
        case Chosen(among, key) if _is_list_of_choices(among, options, choices):
            return _key(key, options, choices)
        case Position(inner, None, offset) if (name := _column(inner)) and offset in (0, -1):
            return _Key(name, "1" if offset else "0")
        case Position(inner, Items() | Computed()) if _column(inner) in options.columns:
            return _Key(str(_column(inner)), is_text=True)
        case Position(inner, Constant() | Items() as among, 0) if name := _column(inner):
            labels = _labels(among)
            if labels and _is_run(labels):
                return _Key(name, "A" if labels[0].isalpha() else labels[0])
        case Position(inner, Column(path), 0) if name := _column(inner):
            if path == options.field:
                return _Key(name, is_text=True)
            if path.rpartition(".")[0] == options.field.rpartition(".")[0]:
                return _Key(name, "labels")
        case Computed(_, [name]):
            return _Key(name, is_text=name in options.columns)
    return None


def _labels(among: Constant | Items) -> str:
    if isinstance(among, Constant):
        return str(among.value)
    texts = [str(item.value) for item in among.items if isinstance(item, Constant)]
    marks = [text.strip("(). ") for text in texts]
    return "".join(marks) if all(len(mark) == 1 for mark in marks) else ""


def _is_list_of_choices(among: Value, options: Choices, choices: Value | None) -> bool:
    if isinstance(among, Column):
        return among.path == options.field
    return among == choices or isinstance(among, Items | Constant)


def _by_index(done: Draft, options: Choices, key: _Key) -> dict[str, Any]:
    """Return the answers whose correct choice a column names by number or letter."""
    prefix, suffixes = _suffixed(options.fields)
    if not prefix:
        transform = "subtract_one" if key.counts_from == "1" and not options.fields else ""
        if key.counts_from == "1" and suffixes:
            transform = "numbers_to_letters"
        elif options.fields and not suffixes and key.counts_from != "0":
            done.doubts.append(("the correct choice must be a number counted from 0", key.column))
        named = {"label_transform": transform} if transform else {}
        return _expanded(options, {"correct_index": key.column} | named)
    by_suffix = _suffix_transform(suffixes, key)
    if by_suffix is None:
        done.doubts.append(("the correct choice does not match the columns", key.column))
    entry = {"prefix": prefix, "suffix_match_field": key.column}
    return {"expand_prefix": entry | ({"label_transform": by_suffix} if by_suffix else {})}


def _suffixed(fields: Sequence[str]) -> tuple[str, str]:
    """Return the common prefix of `sol1`, `sol2` or `option_a`, `option_b`, and their suffixes.

    A recipe finds columns by a prefix only at the top of a row.
    """
    parts = [_SUFFIXED.fullmatch(name) for name in fields]
    found = [part for part in parts if part is not None]
    suffixes = "".join(part[2] for part in found)
    prefixes = {part[1] for part in found}
    if (
        not found
        or len(found) < len(fields)
        or len(prefixes) > 1
        or not _is_run(suffixes)
        or "." in fields[0]
    ):
        return "", ""
    return found[0][1], suffixes


def _suffix_transform(suffixes: str, key: _Key) -> str | None:
    """Return the transform of a label to the suffix of a column; None if there is none."""
    if suffixes[0].isalpha():
        return {"1": "numbers_to_letters", "A": "lower" if suffixes[0] == "a" else ""}.get(
            key.counts_from, ""
        )
    if key.counts_from == "A":
        return None
    starts = key.counts_from or "0"
    return "" if starts == suffixes[0] else "add_one" if starts < suffixes[0] else "subtract_one"
