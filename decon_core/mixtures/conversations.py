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

NO_ANSWER_LEFT = "no question with its answer would be left of the conversation"
PARALLEL = "another list has a label or score for each element, and would no longer match"
NOT_ALONE = "a prompt, a completion or a side of a preference pair is not cut alone"

# Kinds of turns, as letters, so that expressions find what belongs together.
_USER, _ASSISTANT, _TOOL, _SYSTEM, _NO_TURN = "UATS-"
_KINDS = {
    role: kind
    for kind, name in ((_ASSISTANT, "assistant"), (_TOOL, "tool"), (_SYSTEM, "system"))
    for role in turn_names(name)
}
_SOURCES = {name: _KINDS.get(name, _USER) for name in ("user", "agent", "system", "environment")}
_STEP = re.compile("A*T+")  # calls of tools and their results
_EXCHANGE = re.compile("(U+)([^U-]*)")

_CONTENT, _RESULTS, _SIDES, _PROMPTS = map(turn_names, ("content", "results", "sides", "prompts"))
_ENDS = {"input", "output"}
_LEAST_PARALLEL = 2  # elements of lists
_PAIR = 2


def turns_to_remove(value: Any, parts: Sequence[Part], emptied: Collection[Part]) -> set[Keys]:
    """Return the turns of which nothing is left, and pairs and records of which a part is gone."""
    places = (keys for part in parts if part not in emptied for keys in part.places)
    left = {keys[:size] for keys in places for size in range(len(keys) + 1)}
    turns = {*filter(None, turns_of(value, emptied))}
    holders = {keys[:-1] for part in emptied for keys in part.places}
    halved = {turn for turn in turns & holders if _needs_all_strings(value_at(value, turn))}
    return halved | {turn for turn in turns if left.isdisjoint(_places_of_text(value, turn))}


def _needs_all_strings(element: Any) -> bool:
    """Return whether an element of a list is a question with its answer, or another record."""
    element = opened(element)
    is_pair = isinstance(element, list) and len(element) == _PAIR
    return is_pair or (isinstance(element, dict) and _kind_of(element) is None)


def _places_of_text(value: Any, turn: Keys) -> list[Keys]:
    """Return where a turn has the text without which it is empty.

    That is anywhere, but only the content of the user's turns and of results: beside it are names,
    places and states.
    """
    held = opened(value_at(value, turn))
    names = _CONTENT & held.keys() if _kind_of(held) in {_USER, _TOOL} else ()
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
    for holder in {turn[:-1] for turn in turns}:
        siblings = opened(value_at(value, holder))
        places = [(*holder, at) for at in range(len(siblings)) if (*holder, at) not in gone]
        kinds = "".join(_kind_of(siblings[int(place[-1])]) or _NO_TURN for place in places)
        # Names beside turns may be as many by chance.
        labels = (int, float) if kinds.strip(_NO_TURN) else (int, float, str)
        if _has_parallel(value, holder, len(siblings), labels):
            return PARALLEL
        first = {at for at, place in enumerate(places) if place in turns}
        of_list = _with_dependent(kinds, first)
        left = {kind for at, kind in enumerate(kinds) if at not in of_list}
        if not {_ASSISTANT, _USER}.intersection(kinds) <= left:
            return NO_ANSWER_LEFT
        removed |= {places[at] for at in of_list}
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
    return kinds.rstrip(_SYSTEM)[-1:]


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


def _has_parallel(value: Any, holder: Keys, size: int, labels: tuple[type, ...]) -> bool:
    """Return whether a list beside a list of this size has one label or score per element."""
    beside = opened(value_at(value, holder[:-1]))
    if not holder or not isinstance(beside, dict) or size < _LEAST_PARALLEL:
        return False
    others = (held for name, held in beside.items() if name != holder[-1])
    return any(
        isinstance(held, list)
        and len(held) == size
        and all(isinstance(label, labels) for label in held)
        for held in others
    )


def _is_filled(held: Any) -> bool:
    return isinstance(held, str | list | dict) and bool(held)


def _turn_at(value: Any, keys: Keys) -> Keys | None:
    """Return the keys of the element of a list around a string that is a turn, or of any."""
    elements = [keys[:at] for at, key in enumerate(keys, start=1) if isinstance(key, int)]
    turns = (element for element in elements if _kind_of(value_at(value, element)) is not None)
    return next(turns, elements[0] if elements else None)


def _kind_of(turn: Any) -> str | None:
    """Return the kind of a turn; None: it is none. A role of no other kind is the user's."""
    turn = opened(turn)
    if not isinstance(turn, dict):
        return None
    roles = (turn.get(name) for name in ("role", "from"))
    role = next((role for role in roles if role is not None), None)
    if not isinstance(role, str):
        return _kind_of_event(turn) or _kind_of_item(turn)
    kind = _KINDS.get(role.lower(), _USER)
    return _TOOL if kind == _USER and _holds_results(turn) else kind


def _kind_of_event(event: dict[str, Any]) -> str | None:
    """Return the kind of a step of ATIF, or of an event of OpenHands."""
    source = event.get("source")
    is_event = any(event.get(name) is not None for name in ("message", "action", "observation"))
    if not (is_event and isinstance(source, str) and source in _SOURCES):
        return None
    # ATIF has the results of a step as an object in the step.
    return _TOOL if isinstance(event.get("observation"), str) else _SOURCES[source]


def _kind_of_item(item: dict[str, Any]) -> str | None:
    """Return the kind of an item of OpenAI's Responses that has no role."""
    kind = item.get("type")
    if not isinstance(kind, str):
        return None
    if kind.endswith("_call_output"):
        return _TOOL
    return _ASSISTANT if kind == "reasoning" or kind.endswith("_call") else None


def _holds_results(turn: dict[str, Any]) -> bool:
    """Return whether a turn of the role "user" holds results of tools, in Anthropic's form."""
    blocks = opened(turn.get("content", turn.get("parts")))
    return isinstance(blocks, list) and any(
        isinstance(block, dict) and (block.get("type") in _RESULTS or _RESULTS & block.keys())
        for block in blocks
    )
