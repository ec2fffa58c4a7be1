"""Choose the items that a contamination inserts, and render them as texts.

Seen and unseen items are separated by question: two items with the same question are always on the
same side.
"""

from __future__ import annotations

import string
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any, NamedTuple

import orjson

from decon_core.benchmarks.recipe import LANGUAGE_KEYS
from decon_core.benchmarks.records import Version, load_records
from decon_core.config.seeding import numbers, shuffled
from decon_core.errors import ConfigError, Problem
from decon_core.features.blends.rewordings import NO_REWORDINGS, ItemWords, Rewordings
from decon_core.features.blends.settings import LANGUAGE_PLACEHOLDERS, REWORDED, Contamination
from decon_core.features.rewriting.item_texts import ItemTexts
from decon_core.features.rewriting.rewritings import OTHER_ITEM, REWRITINGS
from decon_core.storage.store import Store
from decon_core.wording import counted

ITEM_KEY = ("benchmark", "split", "instance_index", "sub_index")
_COLUMNS = [
    *ITEM_KEY,
    "config",
    "choice_index",
    "is_correct",
    "passage",
    "question",
    "answer",
    "extras",
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
    answer: str  # the correct answer; empty if unknown
    choices: tuple[str, ...]  # the benchmark's order; empty if the question has none
    right: int  # index of the correct choice
    config: str | None = None  # part of the benchmark, such as a subject
    # Those of a translation by placeholder; empty unless both are known.
    languages: Mapping[str, str] = field(default_factory=dict, hash=False)
    rewordings: tuple[ItemWords, ...] = ()  # used by the form that inserts them

    @property
    def words(self) -> ItemWords:
        return ItemWords(self.passage, self.question)

    @property
    def name(self) -> str:
        sub = "" if self.sub_index is None else f".{self.sub_index}"
        return f"{self.benchmark}/{self.split}/{self.instance_index}{sub}"


class ItemText(NamedTuple):
    """The text of an item in two halves: question and answer. Either may be empty."""

    asked: str
    answered: str

    @property
    def text(self) -> str:
        return self.asked + self.answered


@dataclass(frozen=True)
class ChosenItems:
    """The items of a contamination."""

    seen: tuple[Item, ...]
    unseen: tuple[Item, ...]
    n_without_answer: int  # left out, as the form needs an answer
    n_not_rewritten: int  # left out, as the form finds nothing to change in them


def choose_items(
    store: Store,
    versions: Iterable[Version],
    contamination: Contamination,
    seed: int,
    rewordings: Rewordings | None = NO_REWORDINGS,
) -> ChosenItems:
    """Split the items of a contamination into seen and unseen; raise `ConfigError` if none fits.

    `rewordings`: those known; None: to be asked for, so items without one are not left out.
    """
    by_name = {version.benchmark: version for version in versions}
    form, named = contamination.form, ", ".join(contamination.benchmarks)
    needs_answer = form not in ("source", OTHER_ITEM)
    seen: list[Item] = []
    unseen: list[Item] = []
    n_without, n_not_rewritten, problems = 0, 0, list[Problem]()
    for benchmark in contamination.benchmarks:
        all_items = [*items_of(store, by_name[benchmark])]
        seen_questions = _seen_questions(all_items, contamination.seen, seed)
        in_splits = [item for item in all_items if contamination.takes(item.split)]
        answered = [item for item in in_splits if item.answer or not needs_answer]
        items = [item for item in answered if form not in REWRITINGS or rewritten(item, form, "0")]
        n_without += len(in_splits) - len(answered)
        n_not_rewritten += len(answered) - len(items)
        if not items:
            problems.append(_no_items(benchmark, contamination, len(in_splits), len(answered)))
        if n_unknown := sum(not item.languages for item in items):
            problems += _no_languages(benchmark, contamination, n_unknown)
        for item in items:
            (seen if item.question in seen_questions else unseen).append(item)
    if form == REWORDED and rewordings is not None:
        reworded = [
            replace(item, rewordings=tuple(known.values()))
            for item in seen
            if (known := rewordings.by_variant(item.words))
        ]
        if seen and not reworded:
            problems.append(_not_reworded(named, len(seen)))
        n_not_rewritten += len(seen) - len(reworded)
        seen = reworded
    if not seen and not problems:
        found = f"seen = {contamination.seen:g} selects none of {counted(len(unseen), 'item')}"
        problems.append(Problem(named, found, remedy="use a larger `seen` or another seed"))
    if contamination.shuffle_answers and not any(item.choices for item in (*seen, *unseen)):
        found = "shuffle_answers = true has no effect, because no question has choices"
        problems.append(Problem(named, found))
    ConfigError.raise_for(problems)
    return ChosenItems(tuple(seen), tuple(unseen), n_without, n_not_rewritten)


def _no_items(
    benchmark: str, contamination: Contamination, n_items: int, n_answered: int
) -> Problem:
    if n_answered:
        items = counted(n_answered, "item")
        found = f"the form {contamination.form!r} can change none of its {items}"
        remedy = "docs/blends.md lists the forms"
        return Problem(f"benchmark {benchmark!r}", found, remedy=remedy)
    if n_items:
        return Problem(
            f"benchmark {benchmark!r}",
            f"the form {contamination.form!r} needs answers, but none of its "
            f"{counted(n_items, 'item')} has one",
            remedy='use form = "source", which needs no answers',
        )
    splits = ", ".join(contamination.splits) or "any split that is not for training"
    return Problem(f"benchmark {benchmark!r}", "no items in the splits", f"items in {splits}")


def _no_languages(benchmark: str, contamination: Contamination, n_items: int) -> Iterator[Problem]:
    """Yield a problem if a template shows the languages of items that name none."""
    template = contamination.template_of(benchmark) or ""
    if any(name in LANGUAGE_KEYS for _, name, _, _ in string.Formatter().parse(template)):
        found = (
            f"the template has {LANGUAGE_PLACEHOLDERS}, but {counted(n_items, 'item')} "
            f"{'has' if n_items == 1 else 'have'} no languages"
        )
        remedy = f"Set {' and '.join(LANGUAGE_KEYS)} in the recipe."
        yield Problem(f"benchmark {benchmark!r}", found, remedy=remedy)


def _not_reworded(benchmarks: str, n_seen: int) -> Problem:
    found = f"form = 'reworded', but none of the {counted(n_seen, 'seen item')} is reworded yet"
    remedy = "run `decon-assets blend reword`, which requests rewordings from the endpoint"
    return Problem(f"contamination with {benchmarks}", found, remedy=remedy)


def _seen_questions(items: Sequence[Item], share: float, seed: int) -> set[str]:
    """Return a random share of the questions of every split.

    Unwanted splits are included, so that the choice of splits or form never moves an item.
    """
    by_split: dict[str, set[str]] = {}
    for item in items:
        by_split.setdefault(item.split, set()).add(item.question)
    name = f"{seed} seen {items[0].benchmark if items else ''}"
    seen: set[str] = set()
    for questions in by_split.values():
        rank = {
            question: (int(numbers(f"{name} {question}", 1)[0]), question) for question in questions
        }
        first = sorted(questions, key=rank.__getitem__)
        seen.update(first[: max(round(share * len(first)), 1)])
    return seen


def items_of(store: Store, version: Version) -> Iterator[Item]:
    """Yield the items of a benchmark, in its order."""
    groups: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for record in load_records(store, version, columns=_COLUMNS).to_pylist():
        name = record["split"], record["instance_index"], record["sub_index"]
        groups.setdefault(name, []).append(record)
    yield from map(_item, groups.values())


def _item(records: Sequence[Mapping[str, Any]]) -> Item:
    first = records[0]
    has_choices = any(record["is_correct"] is not None for record in records)
    right = next((at for at, record in enumerate(records) if record["is_correct"]), None)
    answer = first["answer"]  # the first of several accepted answers
    if has_choices:
        answer = None if right is None else records[right]["answer"]
    choices = tuple(record["answer"] or "" for record in records) if has_choices else ()
    extras = orjson.loads(first["extras"]) if first["extras"] else {}
    languages = {key: extras[key] for key in LANGUAGE_KEYS if isinstance(extras.get(key), str)}
    return Item(
        **{name: first[name] for name in ITEM_KEY},
        passage=first["passage"] or "",
        question=first["question"],
        answer=answer or "",
        choices=choices if len(choices) > 1 and right is not None else (),
        right=right or 0,
        config=first["config"],
        languages=languages if len(languages) == len(LANGUAGE_KEYS) else {},
    )


def item_text(item: Item, part: str, contamination: Contamination, order: str) -> ItemText:
    """Render an item in a form. `order` seeds the shuffling of choices, and rewriting."""
    if part == "source":
        return ItemText("\n".join(filter(None, (item.passage, item.question))), "")
    if part == "target":
        return ItemText("", item.answer)
    if part in REWRITINGS:
        item = rewritten(item, part, order) or item
    elif part == REWORDED:
        item = replace(item, **item.rewordings[int(order) % len(item.rewordings)]._asdict())
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
        **(item.languages or dict.fromkeys(LANGUAGE_KEYS, "")),
    }
    return _fill(template, values)


def rewritten(item: Item, form: str, order: str) -> Item | None:
    """Return a duplicate of an item, another for each `order`; None if nothing can be changed."""
    calls = count()
    texts = ItemTexts(
        passage=item.passage,
        question=item.question,
        choices=item.choices,
        answer="" if item.choices else item.answer,
    )
    made = REWRITINGS[form](
        texts, lambda n: shuffled(f"{form} {item.name} {order} {next(calls)}", n).tolist()
    )
    if made is None:
        return None
    answer = made.choices[item.right] if made.choices else made.answer
    return replace(
        item, passage=made.passage, question=made.question, choices=made.choices, answer=answer
    )


def _letter(at: int) -> str:
    return _LETTERS[at] if at < len(_LETTERS) else str(at + 1)


def _fill(template: str, values: Mapping[str, str]) -> ItemText:
    """Fill a template, split before the answer. Lines whose values are all empty are left out."""
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
    """Return the texts of an item that a form inserts, each as a separate document."""
    return ("source", "target") if form.startswith("apart") else (form,)
