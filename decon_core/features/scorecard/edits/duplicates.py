"""Duplicates: the same task with other names or in another order (`features/rewriting`)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from decon_core.features.rewriting.item_texts import ItemTexts
from decon_core.features.rewriting.rewritings import OTHER_ITEM, REWRITINGS, Rewriting
from decon_core.features.scorecard.edits.edit import Edit, Material, graded
from decon_core.features.scorecard.items import Choice, as_text


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


EDITS: Iterable[Edit] = graded(
    "duplicate",
    rewritten,
    {
        name.replace("_", " "): rewriting
        for name, rewriting in REWRITINGS.items()
        if name != OTHER_ITEM
    },
)


def other_item(m: Material) -> str | None:
    """Write another item of the same template: other names, other numbers, no answer."""
    return rewritten(REWRITINGS[OTHER_ITEM], m)
