"""The turns of conversations: which a string is in, and which go with a turn that is removed.

What is left of a conversation can be trained on: every turn of the user has its answer, and every
call of a tool its results.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from decon_core.config.layouts import turn_names
from decon_core.corpus.documents import Part
from decon_core.corpus.row_texts import Keys
from decon_core.mixtures.edit_rows import opened, value_at
from decon_core.mixtures.references import parts_from_media, refers_to
from decon_core.mixtures.turns import ASSISTANT, NO_TURN, SYSTEM, TOOL, USER, kind_of

NO_ANSWER_LEFT = "no question with its answer would be left of the conversation"
REFERENCE = "another field has a label, a score or the place of an element, and would be wrong"
MEDIA = "its pictures or other media would belong to other turns"
NOT_ALONE = "a prompt, a completion or a side of a preference pair is not cut alone"

_STEP = re.compile("A*T+")  # calls of tools and their results
_EXCHANGE = re.compile("(U+)([^U-]*)")

_CONTENT, _SIDES, _PROMPTS, _CALLS = map(turn_names, ("content", "sides", "prompts", "calls"))
_ENDS = {"input", "output"}
_PAIR = 2


def turns_to_remove(value: Any, parts: Sequence[Part], emptied: Collection[Part]) -> set[Keys]:
    """Return the turns of which nothing is left, and those of which a part is gone that they need.

    Pairs and records need all of their strings, a call of a tool its arguments.
    """
    places = (keys for part in parts if part not in emptied for keys in part.places)
    left = {keys[:size] for keys in places for size in range(len(keys) + 1)}
    turns = {*filter(None, turns_of(value, emptied))}
    holders = {keys[:-1] for part in emptied for keys in part.places}
    halved = {turn for turn in turns & holders if _needs_all_strings(value_at(value, turn))}
    calls = {turn for turn in turns if kind_of(value_at(value, turn)) == ASSISTANT}
    halved |= {turn for turn in calls for part in emptied if _is_argument(part, turn)}
    return halved | {turn for turn in turns if left.isdisjoint(_places_of_text(value, turn))}


def _is_argument(part: Part, turn: Keys) -> bool:
    """Return whether a string is an argument of a tool that a turn calls."""
    size = len(turn)
    inside = (keys[size:] for keys in part.places if keys[:size] == turn)
    return any(not _CALLS.isdisjoint(keys) for keys in inside)


def _needs_all_strings(element: Any) -> bool:
    """Return whether an element of a list is a question with its answer, or another record."""
    element = opened(element)
    is_pair = isinstance(element, list) and len(element) == _PAIR
    return is_pair or (isinstance(element, dict) and kind_of(element) is None)


def _places_of_text(value: Any, turn: Keys) -> list[Keys]:
    """Return where a turn has the text without which it is empty.

    That is anywhere, but only the content of the user's turns and of results: beside it are names,
    places and states.
    """
    held = opened(value_at(value, turn))
    names = _CONTENT & held.keys() if kind_of(held) in {USER, TOOL} else ()
    return [(*turn, name) for name in names] or [turn]


def turns_of(value: Any, parts: Iterable[Part]) -> set[Keys | None]:
    """Return the turns that these strings are in; None: one of them is in no turn."""
    return {_turn_at(value, keys) for part in parts for keys in part.places}


def is_within(keys: Keys, turns: Collection[Keys]) -> bool:
    return any(keys[:size] in turns for size in range(len(keys) + 1))


def with_dependent(
    value: Any, turns: Collection[Keys], gone: Collection[Keys] = ()
) -> set[Keys] | str:
    """Return turns and all that go with them; or why the row goes.

    `gone`: turns that were removed before, and are still in the row.
    """
    turns, removed = {*turns}.difference(gone), {*gone}
    if any(_is_side(value, turn) for turn in turns):
        return NOT_ALONE
    done: set[Keys] = set()  # lists
    while holders := {turn[:-1] for turn in turns} - done:
        holder = max(holders, key=len)
        done.add(holder)
        siblings = opened(value_at(value, holder))
        of_all = "".join(kind_of(sibling) or NO_TURN for sibling in siblings)
        if refers_to(value, holder, of_all):
            return REFERENCE
        places = [(*holder, at) for at in range(len(siblings)) if (*holder, at) not in gone]
        kinds = "".join(of_all[int(place[-1])] for place in places)
        first = {at for at, place in enumerate(places) if place in turns}
        of_list = _with_dependent(kinds, first)
        left = {kind for at, kind in enumerate(kinds) if at not in of_list}
        if not {ASSISTANT, USER}.intersection(kinds) <= left:
            return NO_ANSWER_LEFT
        removed |= {places[at] for at in of_list}
        if parts_from_media(value, holder, removed):
            return MEDIA
        if not left and (record := _record_around(value, holder)):
            turns.add(record)
    return removed


def _with_dependent(kinds: str, first: Collection[int]) -> set[int]:
    """Return the turns that go with the first ones.

    Calls of tools go with their results, and a turn of the user with all up to the next one. A
    question goes if what is left of its answer ends otherwise, as with a call, or is nothing.
    """
    gone = {*first}
    for step in _STEP.finditer(kinds):
        if not gone.isdisjoint(places := range(*step.span())):
            gone.update(places)
    for exchange in _EXCHANGE.finditer(kinds):
        if exchange.end(1) - 1 in gone:
            gone.update(range(*exchange.span(2)))
        places = range(*exchange.span())
        left = "".join(kinds[at] for at in places if at not in gone)
        if _last_of(left) != _last_of(exchange.group()):
            gone.update(places)
    return gone


def _last_of(kinds: str) -> str:
    return kinds.rstrip(SYSTEM)[-1:]


def _is_side(value: Any, turn: Keys) -> bool:
    """Return whether a turn is in a field whose other part would no longer fit."""
    for key in turn:
        value = opened(value)
        if isinstance(value, dict):
            fields = {name for name, held in value.items() if _is_filled(held)}
            if key in _PROMPTS or fields & _SIDES or (key in _ENDS and fields >= _ENDS):
                return True
        value = value[key]
    return False


def _is_filled(held: Any) -> bool:
    return isinstance(held, str | list | dict) and bool(held)


def _turn_at(value: Any, keys: Keys) -> Keys | None:
    """Return the keys of the turn around a string; if it is in none, of the record around it.

    None: the string is in no list.
    """
    elements = _elements(keys)
    turns = (element for element in elements if kind_of(value_at(value, element)) is not None)
    return next(turns, _record_around(value, keys) or (elements[0] if elements else None))


def _record_around(value: Any, keys: Keys) -> Keys | None:
    """Return the keys of the innermost element of a list around a place that has fields."""
    for element in reversed(_elements(keys)):
        if isinstance(opened(value_at(value, element)), dict):
            return element
    return None


def _elements(keys: Keys) -> list[Keys]:
    """Return the keys of the elements of lists around a place, the outermost first."""
    return [keys[:at] for at, key in enumerate(keys, start=1) if isinstance(key, int)]
