"""Items of benchmarks as texts to train on: source, target, or both as a test asks them.

Those that are used, and those that stay unseen, are told apart by their questions: two items with
one question are always on the same side.
"""

from __future__ import annotations

import string
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from decon_core.benchmarks.records import Version, load_records
from decon_core.config.blends import Contamination
from decon_core.errors import ConfigError, Problem
from decon_core.seeding import numbers, shuffled
from decon_core.storage.store import Store
from decon_core.wording import counted

_COLUMNS = [
    *("benchmark", "split", "instance_index", "sub_index", "choice_index", "is_correct"),
    *("passage", "question", "answer"),
]
_PLAIN = "{passage}\n{question}\nAnswer: {answer}"
_WITH_CHOICES = "{passage}\n{question}\n{choices}\nAnswer: {letter}. {answer}"
_OF_ANSWER = {"answer", "letter"}
_LETTERS = string.ascii_uppercase


@dataclass(frozen=True)
class Item:
    """One question of a benchmark."""

    benchmark: str
    split: str
    instance_index: int
    sub_index: int | None
    passage: str
    question: str
    answer: str  # the right one; empty: none is known
    choices: tuple[str, ...]  # of a question with choices, in the benchmark's order
    right: int  # which of them

    @property
    def name(self) -> str:
        sub = "" if self.sub_index is None else f".{self.sub_index}"
        return f"{self.benchmark}/{self.split}/{self.instance_index}{sub}"


class ItemText(NamedTuple):
    """A text, or a conversation: what is asked, and what is answered; either may be empty."""

    asked: str
    answered: str

    @property
    def text(self) -> str:
        return self.asked + self.answered


@dataclass(frozen=True)
class Chosen:
    """The items of a contamination."""

    seen: tuple[Item, ...]
    unseen: tuple[Item, ...]
    n_without_answer: int  # that the form asks for: they can be neither


def choose_items(
    store: Store, versions: Iterable[Version], contamination: Contamination, seed: int
) -> Chosen:
    """The items that go into a blend, and those that do not."""
    by_name = {version.benchmark: version for version in versions}
    needs_answer = contamination.form != "source"
    seen: list[Item] = []
    unseen: list[Item] = []
    n_without = 0
    problems: list[Problem] = []
    for benchmark in contamination.benchmarks:
        everything = [*items_of(store, by_name[benchmark])]
        in_seen = _seen_questions(everything, contamination.seen, seed)
        wanted = [item for item in everything if contamination.takes(item.split)]
        items = [item for item in wanted if item.answer or not needs_answer]
        n_without += len(wanted) - len(items)
        if not items:
            problems.append(_nothing(benchmark, contamination, len(wanted)))
        for item in items:
            (seen if item.question in in_seen else unseen).append(item)
    if not seen and not problems:
        named = ", ".join(contamination.benchmarks)
        found = f"none of {counted(len(unseen), 'item')} in the share of {contamination.seen:g}"
        problems.append(Problem(named, found, "one or more", "a larger `seen`, or another seed"))
    if contamination.shuffle_answers and not any(item.choices for item in (*seen, *unseen)):
        named = ", ".join(contamination.benchmarks)
        problems.append(Problem(named, "no question with choices", "some: shuffle_answers = true"))
    if problems:
        raise ConfigError(problems)
    return Chosen(tuple(seen), tuple(unseen), n_without)


def _nothing(benchmark: str, contamination: Contamination, n_items: int) -> Problem:
    if n_items:
        return Problem(
            f"benchmark {benchmark!r}",
            f"{counted(n_items, 'item')}, none with an answer",
            f"answers, for the form {contamination.form!r}",
            'form = "source" needs none',
        )
    wanted = ", ".join(contamination.splits) or "one that is not for training"
    return Problem(f"benchmark {benchmark!r}", "no item of the splits", f"some: {wanted}")


def _seen_questions(items: Sequence[Item], share: float, seed: int) -> set[str]:
    """The questions that are seen: of every split the share of them that comes first by chance.

    Of all splits, whichever are wanted: then no choice of splits or form moves an item.
    """
    by_split: dict[str, set[str]] = {}
    for item in items:
        by_split.setdefault(item.split, set()).add(item.question)
    name = f"{seed} seen {items[0].benchmark if items else ''}"
    seen: set[str] = set()
    for questions in by_split.values():
        rank = {one: (int(numbers(f"{name} {one}", 1)[0]), one) for one in questions}
        first = sorted(questions, key=rank.__getitem__)
        seen.update(first[: max(round(share * len(first)), 1)])
    return seen


def items_of(store: Store, version: Version) -> Iterator[Item]:
    """The items of a benchmark, in its order."""
    groups: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for record in load_records(store, version, columns=_COLUMNS).to_pylist():
        name = record["split"], record["instance_index"], record["sub_index"]
        groups.setdefault(name, []).append(record)
    for records in groups.values():
        yield _item(records)


def _item(records: Sequence[Mapping[str, Any]]) -> Item:
    first = records[0]
    has_choices = any(record["is_correct"] is not None for record in records)
    right = next((at for at, record in enumerate(records) if record["is_correct"]), None)
    answer = first["answer"]  # of several that count as right the first
    if has_choices:
        answer = None if right is None else records[right]["answer"]
    choices = tuple(record["answer"] or "" for record in records) if has_choices else ()
    return Item(
        benchmark=first["benchmark"],
        split=first["split"],
        instance_index=first["instance_index"],
        sub_index=first["sub_index"],
        passage=first["passage"] or "",
        question=first["question"],
        answer=answer or "",
        choices=choices if len(choices) > 1 and right is not None else (),
        right=right or 0,
    )


# Texts --------------------------------------------------------------------------------------------


def item_text(item: Item, part: str, contamination: Contamination, order: str) -> ItemText:
    """What an item says as source, target or in full.

    `order` decides in which order choices stand, where they are shuffled.
    """
    if part == "source":
        return ItemText("\n".join(filter(None, (item.passage, item.question))), "")
    if part == "target":
        return ItemText("", item.answer)
    places = list(range(len(item.choices)))
    if contamination.shuffle_answers:
        places = shuffled(f"choices {item.name} {order}", len(places)).tolist()
    template = contamination.template_of(item.benchmark)
    if template is None:
        template = _WITH_CHOICES if item.choices else _PLAIN
    lines = (f"{_letter(at)}. {item.choices[place]}" for at, place in enumerate(places))
    values = {
        "passage": item.passage,
        "question": item.question,
        "answer": item.answer,
        "choices": "\n".join(lines),
        "letter": _letter(places.index(item.right)) if item.choices else "",
    }
    return _filled(template, values)


def _letter(at: int) -> str:
    return _LETTERS[at] if at < len(_LETTERS) else str(at + 1)


def _filled(template: str, values: Mapping[str, str]) -> ItemText:
    """A template with its values, cut before the answer; without lines whose values are empty."""
    asked: list[str] = []
    answered: list[str] = []
    for line in template.split("\n"):
        pieces = [*string.Formatter().parse(line)]
        names = [name for _, name, _, _ in pieces if name]
        if names and not any(values[name] for name in names):
            continue
        if asked or answered:
            (answered or asked).append("\n")
        for literal, name, _, _ in pieces:
            (answered or asked).append(literal)
            if name:
                (answered if answered or name in _OF_ANSWER else asked).append(values[name])
    return ItemText("".join(asked), "".join(answered))


def parts_of(form: str) -> tuple[str, ...]:
    """The texts of an item that a form inserts, each as a document of its own."""
    return ("source", "target") if form.startswith("apart") else (form,)
