"""Duplicates: the same task with other names or in another order (`features/rewriting`)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from decon_core.features.rewriting.item_texts import ItemTexts
from decon_core.features.rewriting.rewritings import OTHER_ITEM, REWRITINGS, Rewriting
from decon_core.features.scorecard.edits.edit import Edit, Material, graded
from decon_core.features.scorecard.items import Choice, Item, as_text


def rewritten(rewriting: Rewriting, m: Material) -> str | None:
    item = m.item
    texts = ItemTexts(
        passage=item.passage or "",
        question=item.question,
        choices=tuple(choice.text for choice in item.choices),
        answer=item.answer or "",
    )
    made = rewriting(texts, lambda n: m.rng.sample(range(n), n))
    return None if made is None else as_text(_with_texts(item, made))


def _with_texts(item: Item, texts: ItemTexts) -> Item:
    """Return an item with other texts; one without choices has no right one."""
    labels = (choice.label for choice in item.choices)
    choices = tuple(map(Choice, labels, texts.choices))
    return replace(
        item,
        passage=texts.passage or None,
        question=texts.question,
        choices=choices,
        answer=texts.answer or None,
        correct=item.correct if choices else None,
    )


_GRADES = {
    name.replace("_", " "): rewriting
    for name, rewriting in REWRITINGS.items()
    if name != OTHER_ITEM
}
EDITS: Iterable[Edit] = graded("duplicate", rewritten, _GRADES)


def other_item(m: Material) -> str | None:
    """Write another item of the same template: other names, other numbers, no answer."""
    return rewritten(REWRITINGS[OTHER_ITEM], m)
