"""What in a row refers to the elements of a list by their place, and would be wrong after a cut.

Examples are a label or score for each element, the place of the best one, and pictures in the
order of their placeholders. Names of fields tell little: in doubt, a field counts as a reference.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import Any

from decon_core.config.layouts import turn_names
from decon_core.corpus.row_texts import Keys
from decon_core.mixtures.edit_rows import opened, value_at
from decon_core.mixtures.turns import NO_TURN, kind_of

_LEAST_PARALLEL = 2  # elements of lists
_PLACE = re.compile(r"(?:^|_)(?:idx|index|indices|indexes|positions?)(?:_|$)")
_PLACE_OF_TURN = re.compile(r"(?:^|_)(?:turns?|messages?|steps?)(?:_|$)")
_NO_PLACE = re.compile("id|turns|steps|(?:n|num|number|max|min|total)_.*|.*_(?:id|count|number)")
_DEFINITIONS = frozenset(("tools", "functions"))  # beside a chat, but not about its turns
_MEDIA, _MEDIA_TYPES = map(turn_names, ("media", "media_types"))
_PLACEHOLDER = re.compile(r"<(?:image|img|video|audio)\b[^<>]*>", re.IGNORECASE)
_LETTER = re.compile("[A-Z]")


def refers_to(value: Any, holder: Keys, kinds: str) -> bool:
    """Return whether fields around a list refer to its elements by place, or label each of them.

    `kinds`: those of its elements, `NO_TURN` if they are no turns of a conversation.
    """
    size, turns = len(kinds), kinds.replace(NO_TURN, "")
    if turns:
        sizes = {size, *map(turns.count, turns)}
        return any(
            _labels_turns(name, held, sizes, size) or _is_place(_PLACE_OF_TURN, name, held, size)
            for name, held in _around(value, holder)
        )
    return any(
        _is_parallel(held, size)
        or _is_element(name, held, size)
        or any(_is_place(_PLACE, *inner, size) for inner in _inside(name, held))
        for name, held in _around(value, holder)
    )


def _around(value: Any, holder: Keys) -> Iterator[tuple[str, Any]]:
    """Yield names and values of the fields around a list, and of objects beside it.

    Ends at the list around that.
    """
    for size in range(len(holder) - 1, -1, -1):
        around = opened(value_at(value, holder[:size]))
        if not isinstance(around, dict):
            return
        for name, held in around.items():
            if name == holder[size]:
                continue
            inner = opened(held) if _is_json(held) else held
            yield name, inner
            if isinstance(inner, dict):
                yield from inner.items()


def _is_json(held: Any) -> bool:
    return isinstance(held, str | bytes) and held[:1] in ("[", "{", b"[", b"{")


def _inside(name: str, held: Any) -> Iterator[tuple[str, Any]]:
    """Yield names and values of a field and of all fields of the objects in it."""
    yield name, held
    if isinstance(held, dict):
        for inner in held.items():
            yield from _inside(*inner)
    elif isinstance(held, list):
        for element in held:
            if isinstance(element, dict | list):
                yield from _inside("", element)


def _is_parallel(held: Any, size: int) -> bool:
    """Return whether a list has something for each element of a list that is no conversation."""
    is_as_long = isinstance(held, list) and len(held) == size >= _LEAST_PARALLEL
    return is_as_long and not any(map(kind_of, held))


def _is_element(name: str, held: Any, size: int) -> bool:
    """Return whether a field may have the place of an element: its number or its letter."""
    if isinstance(held, str):
        return _LETTER.fullmatch(held) is not None and ord(held) - ord("A") < size
    return _is_below(held, size) and not _NO_PLACE.fullmatch(name)


def _labels_turns(name: str, held: Any, sizes: Collection[int], size: int) -> bool:
    """Return whether a list has a label or score for each turn, or for each of one kind."""
    if not isinstance(held, list) or len(held) < _LEAST_PARALLEL or name in _DEFINITIONS:
        return False
    if all(label is None or isinstance(label, int | float) for label in held):
        return len(held) in sizes
    texts = [label for label in held if isinstance(label, str)]
    # Names beside turns may be as many by chance, but labels repeat. Other turns are no labels.
    is_label = len({*texts}) < len(texts) if texts else not any(map(kind_of, held))
    return len(held) == size and is_label


def _is_place(names: re.Pattern[str], name: str, held: Any, size: int) -> bool:
    """Return whether a field with such a name has the place of an element, or several places."""
    places = held if isinstance(held, list) else [held]
    is_named = names.search(name) is not None and not _NO_PLACE.fullmatch(name)
    return is_named and bool(places) and all(_is_below(place, size) for place in places)


def _is_below(place: Any, size: int) -> bool:
    return isinstance(place, int) and not isinstance(place, bool) and 0 <= place < size


def parts_from_media(value: Any, holder: Keys, gone: Collection[Keys]) -> bool:
    """Return whether pictures, or other media, of a row would belong to other turns.

    They are assigned in the order of their placeholders, so removed turns must not have any. If no
    turn of a conversation has any, it is unknown to which turns a list of media belongs.
    """
    media = [held for name, held in _around(value, holder) if name in _MEDIA and held]
    if not media:
        return False
    turns = opened(value_at(value, holder))
    with_media = {(*holder, at) for at, turn in enumerate(turns) if _has_placeholder(turn)}
    if with_media:
        return not with_media.isdisjoint(gone)
    return any(isinstance(held, list) for held in media) and any(map(kind_of, turns))


def _has_placeholder(held: Any) -> bool:
    if isinstance(held, str):
        return _PLACEHOLDER.search(held) is not None
    if isinstance(held, list):
        return any(map(_has_placeholder, held))
    if not isinstance(held, dict):
        return False
    return held.get("type") in _MEDIA_TYPES or any(map(_has_placeholder, held.values()))
