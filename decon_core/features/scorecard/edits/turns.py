"""Edits that plant an item as a conversation."""

from __future__ import annotations

from decon_core.features.scorecard.edits.edit import Edit, Material, Turn
from decon_core.features.scorecard.items import answer_line, body, together
from decon_core.text.segments import begins_sentence, formulas, outside, word_spans

_GO_ON = ("Go on.", "I see. And then?", "Understood, what is the question?", "Yes?")


def asked_and_answered(m: Material) -> tuple[Turn, ...] | None:
    asked = together([body(m.item), *map(str, m.item.choices)])
    answer = answer_line(m.item)
    return (Turn("user", asked), Turn("assistant", answer)) if answer else None


def split_in_the_question(m: Material) -> tuple[Turn, ...] | None:
    """Split the question near its middle, at the end of a sentence if there is one."""
    text = m.item.question
    spans = word_spans(text)
    if len(spans) < 4:
        return None
    middle = spans[len(spans) // 2][0]
    starts = [start for start, _ in outside(spans[1:], formulas(text))]
    if not starts:
        return None
    ends = [start for start in starts if begins_sentence(text, start)]
    cut = min(ends or starts, key=lambda end: abs(end - middle))
    first = "\n\n".join(filter(None, [m.item.passage, text[:cut].strip()]))
    turns = [Turn("user", first), Turn("assistant", m.rng.choice(_GO_ON))]
    turns.append(Turn("user", together([text[cut:].strip(), *map(str, m.item.choices)])))
    answer = answer_line(m.item)
    return (*turns, Turn("assistant", answer)) if answer else tuple(turns)


EDITS = (
    Edit("chat turns", "at the answer", asked_and_answered),
    Edit("chat turns", "in the question", split_in_the_question),
)
