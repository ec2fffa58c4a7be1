"""Other names of persons, and other numbers, the same one wherever an old one stands.

With other names an item asks the same. With other numbers it is another item of the same template,
and its answer would be wrong: it is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cache

from decon_core.features.rewriting.item_texts import ItemTexts, Shuffle, listed
from decon_core.text import segments

_WORD = re.compile(r"\w+")  # matches the name alone in "Ann's"
_CAPITALIZED = re.compile(r"\b[A-Z][a-z]+\b")
# "Ann, Zubin and Bob": in a list of names all are names.
_LIST = re.compile(r"\b[A-Z][a-z]+(?:, [A-Z][a-z]+)*,? (?:and|or) [A-Z][a-z]+\b")


@cache
def _after(list_name: str) -> re.Pattern[str]:
    """Return a pattern of the names after one of these words."""
    words = "|".join(listed("names", list_name))
    return re.compile(rf"\b(?:{words})[.,]? ([A-Z][a-z]+)\b")


def persons_in(texts: Iterable[str]) -> list[str]:
    """Return the names of persons, as they come; none if one may be a person of the world.

    A given name with a surname, or after a title ("Queen Mary"), is more than a placeholder.
    """
    whole = "\n".join(texts)
    known = {*listed("names", "known"), *listed("names", "new")}
    others = {*listed("names", "others")}
    names = {name for name in _CAPITALIZED.findall(whole) if name in known}
    names |= {*_after("before_persons").findall(whole)} - others
    # All names of a list with a person are persons, and so are those listed with one of them.
    lists = [{*_CAPITALIZED.findall(text)} - others for text in _LIST.findall(whole)]
    n = -1
    while len(names) != n:
        n = len(names)
        overlapping = [together for together in lists if together & names]
        names = names.union(*overlapping)
    # Another word in capitals behind a name: "Ann Smith", "Ann Arbor".
    surname = rf"\b(?:{'|'.join(sorted(names)) or '$^'}) (?:[A-Z]\. )?[A-Z][a-z]+\b"
    if names & {*_after("before_famous").findall(whole)} or re.search(surname, whole):
        return []
    return [name for name in dict.fromkeys(_CAPITALIZED.findall(whole)) if name in names]


def names_replaced(item: ItemTexts, shuffle: Shuffle) -> ItemTexts | None:
    """Replace every name of a person; None if there is none."""
    old = persons_in(item)
    used = {word for text in item for word in _WORD.findall(text)}
    free = [name for name in listed("names", "new") if name not in used]
    if not old or len(old) > len(free):
        return None
    new = [free[at] for at in shuffle(len(free))[: len(old)]]
    return item.changed(lambda text: with_names(text, dict(zip(old, new, strict=True))))


def with_names(text: str, names: Mapping[str, str]) -> str:
    """Replace names, in capitals as well; "'s" stays."""
    both = {**names, **{old.upper(): new.upper() for old, new in names.items()}}
    spans = segments.owners(text, segments.word_spans(text))
    changes = ((span, both.get(text[slice(*span)])) for span in spans)
    return segments.spliced(text, [(span, name) for span, name in changes if name])


def names_and_numbers_replaced(item: ItemTexts, shuffle: Shuffle) -> ItemTexts | None:
    """Replace the names of persons, if any, and every number; leave the answer out.

    None if the question has no number, or a passage: its words would make it the same item.
    """
    if item.passage or not segments.numbers(item.question):
        return None
    renamed = names_replaced(item, shuffle) or item
    new: dict[str, str] = {}

    def change(text: str) -> str:
        changes = []
        for span in segments.numbers(text):
            old = text[slice(*span)]
            if old not in new:
                new[old] = another_number(old, shuffle)
            changes.append((span, new[old]))
        return segments.spliced(text, changes)

    return replace(renamed, choices=(), answer="").changed(change)


def another_number(old: str, shuffle: Shuffle) -> str:
    """Return another number of equal length, with the same points and commas."""
    if old.lower() in segments.NUMBER_WORDS:
        others = [word for word in segments.NUMBER_WORDS if word != old.lower()]
        word = others[shuffle(len(others))[0]]
        return word.capitalize() if old[0].isupper() else word
    while True:
        new = "".join(str(shuffle(10)[0]) if sign.isdigit() else sign for sign in old)
        if new != old and (new[0] != "0" or old[0] == "0"):
            return new
