"""Edits that write an item in a markup language."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from decon_core.features.scorecard.edits.edit import DATA, Material, graded
from decon_core.features.scorecard.items import together
from decon_core.text.segments import formulas, plain_words, spliced

_Markup = Mapping[str, Any]


def marked_up(markup: _Markup, m: Material) -> str | None:
    item = m.item
    parts = [markup["passage"].format(_marked(markup, m, item.passage)) if item.passage else ""]
    parts.append(markup["question"].format(_marked(markup, m, item.question)))
    if item.choices:
        listed = [
            markup["choice"].format(_marked(markup, m, str(choice))) for choice in item.choices
        ]
        parts.append("\n".join(listed).join(markup["around_choices"]))
    answer = item.answer if item.correct is None else str(item.choices[item.correct])
    if answer:
        parts.append(markup["answer"].format(_marked(markup, m, answer)))
    return together(parts)


def _marked(markup: _Markup, m: Material, text: str) -> str:
    """Escape all but formulas, and emphasise one word in 25, at least one."""
    spans = plain_words(text)
    chosen = m.rng.sample(spans, min(len(spans), max(1, len(spans) // 25)))
    cuts = sorted([*chosen, *formulas(text)])
    starts = [0, *(stop for _, stop in cuts)]
    stops = [*(start for start, _ in cuts), len(text)]
    rest = [(start, stop) for start, stop in zip(starts, stops, strict=True) if start < stop]
    changes = []
    for start, stop in rest:
        escaped = text[start:stop]
        for sign, replacement in markup["escape"]:
            escaped = re.sub(sign, replacement, escaped)
        changes.append(((start, stop), escaped))
    for start, stop in chosen:
        pattern, word = m.rng.choice(markup["emphasis"]), text[start:stop]
        changes.append(((start, stop), pattern.format(*[word] * pattern.count("{}"))))
    return spliced(text, changes).replace("\n", markup["line"])


EDITS = (*graded("mark-up", marked_up, DATA["markup"]),)
