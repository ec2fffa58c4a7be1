"""The conditions of a puzzle in another order.

All conditions of a list hold at once, so their order decides nothing. Only texts that announce
them ("the following conditions:", "Clues:") are changed, and only if none refers to another.
"""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise

from decon_core.features.rewriting.item_texts import ItemTexts, Shuffle
from decon_core.text import segments

_ANNOUNCED = re.compile(
    r"\b(?:conditions?|requirements?|constraints?|restrictions?|rules|clues)\b[^.:?\n]*[:?]\s*",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"(?:^|(?<=\s)|(?<=[.;:?]))\(?\d{1,2}[.)](?!\d)\s*")
# "A is before B. C is first": a single letter is no abbreviation here.
_CLUE_END = re.compile(r"(?<!Dr)(?<!Mr)(?<!Mrs)(?<!Ms)(?<!St)(?<!No)[.;]\s+(?=[A-Z])")
_END = re.compile(r"[;.,\s]*$")
# Such a clue needs another one before it.
_NEEDS_ANOTHER = re.compile(
    r"(?:it|they|this|these|that|those|he|she|however|otherwise|also|then|but|and|if so|in that"
    r"|in this|the other|the latter|the former|similarly|likewise|both of)\b"
    r"|.*\b(?:above|preceding|previous) (?:condition|clue|rule)|.*\((?:\d|i+)\)"
    r"|.*\b(?:condition|clue|rule)s? \(?\d",
    re.IGNORECASE | re.DOTALL,
)
_FEWEST = 2
_FEWEST_WORDS = 3


def clues_shuffled(item: ItemTexts, shuffle: Shuffle) -> ItemTexts | None:
    """Shuffle the conditions of the passage, or of the question before its last sentence."""
    if made := _shuffled(item.passage, shuffle):
        return replace(item, passage=made)
    *_, last = segments.sentences(item.question) or [""]
    start = item.question.rfind(last)
    clues = item.question[:start].rstrip()
    made = _shuffled(clues, shuffle)
    return replace(item, question=made + item.question[len(clues) :]) if made else None


def _shuffled(text: str, shuffle: Shuffle) -> str | None:
    """Return a text with its conditions in another order; None if it has no list of them."""
    spans = clue_spans(text)
    clues = [text[start:stop] for start, stop in spans]
    is_independent = all(
        len(segments.words(clue)) >= _FEWEST_WORDS and not _NEEDS_ANOTHER.match(clue)
        for clue in clues
    )
    if len(set(clues)) < _FEWEST or not is_independent:
        return None
    order = shuffle(len(clues))
    if [clues[at] for at in order] == clues:  # also in another order, if some are equal
        order = [*order[1:], order[0]]
    changes = [(span, clues[at]) for span, at in zip(spans, order, strict=True)]
    made = segments.spliced(text, changes)
    return made if made != text else None


def clue_spans(text: str) -> list[segments.Span]:
    """Return the conditions of an announced list, without numbers and final signs."""
    announcement = _ANNOUNCED.search(text)
    if not announcement:
        return []
    start = announcement.end()
    numbers = list(_NUMBER.finditer(text, start))
    if len(numbers) >= _FEWEST and not text[start : numbers[0].start()].strip():
        edges = [*(number.start() for number in numbers), len(text)]
        spans = [
            (number.end(), stop) for number, (_, stop) in zip(numbers, pairwise(edges), strict=True)
        ]
    else:
        edges = [start, *(end.end() for end in _CLUE_END.finditer(text, start)), len(text)]
        spans = [*pairwise(edges)]
    trimmed = ((start, start + len(_END.sub("", text[start:stop]))) for start, stop in spans)
    return [(start, stop) for start, stop in trimmed if start < stop]
