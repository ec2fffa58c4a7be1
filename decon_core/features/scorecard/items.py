"""Group benchmark records into items, and format an item as text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import count, groupby
from operator import itemgetter
from string import ascii_uppercase
from typing import Any, NamedTuple

import pyarrow as pa


class ItemKey(NamedTuple):
    """The key of an item in truth and findings."""

    benchmark: str
    split: str
    instance_index: int


@dataclass(frozen=True)
class Choice:
    """An answer choice with its label."""

    label: str
    text: str

    def __str__(self) -> str:
        return self.label + self.text


@dataclass(frozen=True, kw_only=True)
class Item:
    """A question with its passage, choices and answer; of a row with several, the first."""

    key: ItemKey
    question: str
    answer: str | None = None  # if it is not one of the choices
    passage: str | None = None
    choices: tuple[Choice, ...] = ()
    correct: int | None = None  # position of the right choice, if known


_Row = Mapping[str, Any]

_LABEL = re.compile(r"\(?([A-Za-z]|\d{1,2})[).:]\s*")
_COLUMNS = [
    "benchmark", "split", "instance_index", "sub_index", "choice_index", "is_correct",
    "passage", "question", "answer",
]  # fmt: skip


def items_of(records: pa.Table) -> list[Item]:
    """Return all items with a question, sorted by key, in any order of the records."""
    key = itemgetter(*ItemKey._fields)

    def order(row: _Row) -> tuple[Any, ...]:
        counted = [-1 if row[name] is None else row[name] for name in ("sub_index", "choice_index")]
        texts = [row[name] or "" for name in ("answer", "question", "passage")]
        return (*key(row), *counted, *texts, row["is_correct"] or False)

    rows = sorted(records.select(_COLUMNS).to_pylist(), key=order)
    items = (_item(ItemKey(*names), list(group)) for names, group in groupby(rows, key=key))
    return [item for item in items if item.question.strip()]


def _item(key: ItemKey, rows: list[_Row]) -> Item:
    first = rows[0]
    names = ("sub_index", "question")
    same = [row for row in rows if all(row[name] == first[name] for name in names)]
    offered, others = _offered([row for row in same if row["answer"]])
    correct = [at for at, row in enumerate(offered) if row["is_correct"]]
    is_free = not correct and others
    return Item(
        key=key,
        question=first["question"],
        answer=others[0]["answer"] if is_free else None,
        passage=first["passage"] or None,
        choices=_choices([row["answer"] for row in offered]),
        correct=correct[0] if correct else None,
    )


def _offered(rows: list[_Row]) -> tuple[list[_Row], list[_Row]]:
    """Split records into choices and free answers; several may be right."""
    offered = [row for row in rows if row["is_correct"] is not None]
    if not offered and all(_LABEL.match(row["answer"]) for row in rows):
        offered = rows
    # A duplicate choice counts once, as the right one if either is.
    by_text: dict[str, _Row] = {}
    for row in offered:
        if row["answer"] not in by_text or row["is_correct"]:
            by_text[row["answer"]] = row
    if len(by_text) < 2:
        return [], rows
    return list(by_text.values()), [row for row in rows if row["answer"] not in by_text]


def _choices(texts: list[str]) -> tuple[Choice, ...]:
    labels = [label for text in texts if (label := _LABEL.match(text))]
    if len({label.group(1) for label in labels}) == len(texts):  # the texts contain labels
        return tuple(Choice(label.group(), label.string[label.end() :]) for label in labels)
    letters = (ascii_uppercase[at] if at < 26 else f"A{at}" for at in count())
    return tuple(Choice(f"{letter}. ", text) for letter, text in zip(letters, texts, strict=False))


def as_text(item: Item) -> str:
    """Format passage, question, choices and answer as one text."""
    return together([body(item), ending(item)])


def body(item: Item) -> str:
    return "\n\n".join(part for part in (item.passage, item.question) if part)


def ending(item: Item) -> str:
    """Format what follows the question: the choices, and the answer if known."""
    return together([*map(str, item.choices), answer_line(item)])


def answer_line(item: Item) -> str:
    if item.correct is not None:
        return f"Answer: {item.choices[item.correct]}"
    return item.answer or ""


def together(parts: Iterable[str]) -> str:
    return "\n".join(part for part in parts if part)
