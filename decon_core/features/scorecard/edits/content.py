"""Edits of the content: other choices, numbers, names, order, or language; two items in one.

Also duplicates, the same task with other names or in another order (`features/rewriting`), and
conversations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import chain, zip_longest
from random import Random

from decon_core.features.rewriting import names
from decon_core.features.rewriting.item_texts import ItemTexts
from decon_core.features.rewriting.rewritings import OTHER_ITEM, REWRITINGS, Rewriting
from decon_core.features.scorecard.edits.edit import DATA, Edit, Material, Turn, graded
from decon_core.features.scorecard.items import (
    Choice,
    Item,
    answer_line,
    as_text,
    body,
    ending,
    together,
)
from decon_core.features.scorecard.lexicon import Lexicon, is_name_like
from decon_core.text import segments

_LABELS = {"1. 2. 3.": "{}. ", "bullets": "• "}


def choices_shuffled(m: Material) -> str | None:
    item = m.item
    texts = [choice.text for choice in item.choices]
    if len(set(texts)) < 2:
        return None
    order = list(range(len(texts)))
    while [texts[at] for at in order] == texts:
        m.rng.shuffle(order)
    pairs = zip(item.choices, order, strict=True)
    choices = tuple(Choice(choice.label, texts[at]) for choice, at in pairs)
    correct = None if item.correct is None else order.index(item.correct)
    return as_text(replace(item, choices=choices, correct=correct))


def choices_relabelled(label: str, m: Material) -> str | None:
    numbered = enumerate(m.item.choices, 1)
    choices = tuple(Choice(label.format(number), choice.text) for number, choice in numbered)
    return None if choices == m.item.choices else as_text(replace(m.item, choices=choices))


def everywhere(item: Item, change: Callable[[str], str]) -> Item:
    """Change all texts of an item."""
    return replace(
        item,
        question=change(item.question),
        passage=item.passage and change(item.passage),
        answer=item.answer and change(item.answer),
        choices=tuple(Choice(choice.label, change(choice.text)) for choice in item.choices),
    )


def numbers_changed(has_all: bool, m: Material) -> str | None:
    """Replace one or all numbers of the question, consistently within the item."""
    numbers = [m.item.question[slice(*span)] for span in segments.numbers(m.item.question)]
    if not numbers:
        return None
    chosen = None if has_all else m.rng.choice(numbers)
    new: dict[str, str] = {}

    def change(text: str) -> str:
        changes = []
        for span in segments.numbers(text):
            old = text[slice(*span)]
            if chosen in (None, old):
                new.setdefault(old, another_number(old, m.rng))
                changes.append((span, new[old]))
        return segments.spliced(text, changes)

    return as_text(everywhere(m.item, change))


def another_number(old: str, rng: Random) -> str:
    """Return another number of equal length, with the same points and commas."""
    return names.another_number(old, lambda n: rng.sample(range(n), n))


def names_substituted(m: Material) -> str | None:
    """Replace every name of the question, consistently within the item."""
    new: dict[str, str] = {}
    for span in name_spans(m.item.question, m.lexicon):
        name = m.item.question[slice(*span)]
        for _ in range(20):  # the same name for two people would change the text
            other = m.lexicon.another_name(name, m.rng)
            if other not in new.values():
                break
        new.setdefault(name, other)
    if not new:
        return None

    def change(text: str) -> str:
        named = [
            (span, new.get(text[slice(*span)]))
            for span in segments.owners(text, segments.word_spans(text))
        ]
        return segments.spliced(text, [(span, name) for span, name in named if name])

    return as_text(everywhere(m.item, change))


def name_spans(text: str, lexicon: Lexicon) -> list[segments.Span]:
    """Return the capitalised words inside sentences, and known names anywhere."""
    return [
        (start, stop)
        for start, stop in segments.owners(text, segments.plain_words(text))
        if text[start:stop] in lexicon.all_names
        or (
            is_name_like(text[start:stop])
            and not segments.begins_sentence(text, start)
            and text[start:stop].casefold() not in lexicon.template
        )
    ]


def clues_shuffled(m: Material) -> str | None:
    """Shuffle the sentences of the passage, and of the question except its last sentence."""
    question = segments.sentences(m.item.question)
    clues = _shuffled(question[:-1], m.rng)
    passage = _shuffled(segments.sentences(m.item.passage or ""), m.rng)
    if clues is None and passage is None:
        return None
    changed = m.item
    if clues:
        changed = replace(changed, question=" ".join([*clues, question[-1]]))
    if passage:
        changed = replace(changed, passage=" ".join(passage))
    return as_text(changed)


def _shuffled(ordered: Sequence[str], rng: Random) -> list[str] | None:
    if len(set(ordered)) < 2:
        return None
    shuffled = list(ordered)
    while shuffled == list(ordered):
        rng.shuffle(shuffled)
    return shuffled


def interleaved(m: Material) -> str | None:
    if m.partner is None:
        return None
    both = [segments.sentences(body(item)) for item in (m.item, m.partner)]
    if min(map(len, both)) < 2:
        return None
    mixed = chain.from_iterable(zip_longest(*both, fillvalue=""))
    return together([" ".join(filter(None, mixed)), ending(m.item), ending(m.partner)])


# An item is not recognizable by "8 * 7" alone.
_LEAST_FORMULA = 16  # characters
_FORMULA_SHARE = 0.25


def instruction_translated(phrases: Sequence[Sequence[str]], m: Material) -> str | None:
    """Replace the words of the question by fixed phrases of another language, not a translation.

    Formulas keep their order; choices and answers that are formulas or numbers are kept. Passages,
    and choices and answers in words, are left out.
    """
    first, inner, last = phrases
    text = m.item.question
    spans = segments.formulas(text)
    n_formula = sum(stop - start for start, stop in spans)
    is_enough = n_formula >= max(_LEAST_FORMULA, _FORMULA_SHARE * len(text))
    if not is_enough or not segments.outside(segments.plain_words(text), spans):
        return None
    chosen = [m.rng.choice(first), *(m.rng.choice(inner) for _ in spans[1:]), m.rng.choice(last)]
    kept = [text[slice(*span)] for span in spans]
    mixed = " ".join(filter(None, chain.from_iterable(zip_longest(chosen, kept, fillvalue=""))))
    item = replace(m.item, question=mixed, passage=None)
    answers = [item.answer or "", *(choice.text for choice in item.choices)]
    if any(stop - start > 2 for text in answers for start, stop in segments.plain_words(text)):
        return item.question
    return as_text(replace(item, correct=None))  # "Answer:" is English


# Duplicates ---------------------------------------------------------------------------------------


def rewritten(rewriting: Rewriting, m: Material) -> str | None:
    item = m.item
    texts = ItemTexts(
        passage=item.passage or "",
        question=item.question,
        choices=tuple(choice.text for choice in item.choices),
        answer=item.answer or "",
    )
    made = rewriting(texts, lambda n: m.rng.sample(range(n), n))
    if made is None:
        return None
    labels = (choice.label for choice in item.choices)
    choices = tuple(map(Choice, labels, made.choices))
    changed = replace(
        item,
        passage=made.passage or None,
        question=made.question,
        choices=choices,
        answer=made.answer or None,
        correct=item.correct if choices else None,
    )
    return as_text(changed)


def other_item(m: Material) -> str | None:
    """Write another item of the same template: other names, other numbers, no answer."""
    return rewritten(REWRITINGS[OTHER_ITEM], m)


# Conversations ------------------------------------------------------------------------------------

_GO_ON = ("Go on.", "I see. And then?", "Understood, what is the question?", "Yes?")


def asked_and_answered(m: Material) -> tuple[Turn, ...] | None:
    asked = together([body(m.item), *map(str, m.item.choices)])
    answer = answer_line(m.item)
    return (Turn("user", asked), Turn("assistant", answer)) if answer else None


def split_in_the_question(m: Material) -> tuple[Turn, ...] | None:
    """Split the question near its middle, at the end of a sentence if there is one."""
    text = m.item.question
    spans = segments.word_spans(text)
    if len(spans) < 4:
        return None
    middle = spans[len(spans) // 2][0]
    starts = [start for start, _ in segments.outside(spans[1:], segments.formulas(text))]
    if not starts:
        return None
    ends = [start for start in starts if segments.begins_sentence(text, start)]
    cut = min(ends or starts, key=lambda end: abs(end - middle))
    first = "\n\n".join(filter(None, [m.item.passage, text[:cut].strip()]))
    turns = [Turn("user", first), Turn("assistant", m.rng.choice(_GO_ON))]
    turns.append(Turn("user", together([text[cut:].strip(), *map(str, m.item.choices)])))
    answer = answer_line(m.item)
    return (*turns, Turn("assistant", answer)) if answer else tuple(turns)


EDITS = (
    Edit("choices shuffled", "", choices_shuffled),
    *graded("choices relabelled", choices_relabelled, _LABELS),
    *graded("numbers changed", numbers_changed, {"one": False, "all": True}),
    Edit("clues shuffled", "", clues_shuffled),
    Edit("names substituted", "", names_substituted),
    *graded("instruction translated", instruction_translated, DATA["instructions"]),
    Edit("two interleaved", "", interleaved, has_partner=True),
    *graded(
        "duplicate",
        rewritten,
        {
            name.replace("_", " "): rewriting
            for name, rewriting in REWRITINGS.items()
            if name != OTHER_ITEM
        },
    ),
    Edit("chat turns", "at the answer", asked_and_answered),
    Edit("chat turns", "in the question", split_in_the_question),
)
