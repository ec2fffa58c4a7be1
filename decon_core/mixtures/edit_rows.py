"""Read rows of a shard, which licenses and cuts need, and edit them.

Strings of a row are changed at their places, or turns are removed; all else stays as it was.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from itertools import chain
from typing import Any

from decon_core.config.layouts import EVERYTHING
from decon_core.config.sources import Source
from decon_core.corpus.batches import Batch
from decon_core.corpus.formats import Part as ShardPart
from decon_core.corpus.packs import Shard
from decon_core.corpus.row_json import decoded
from decon_core.corpus.row_texts import KEY, Keys
from decon_core.corpus.shards import read_blocks, values_of
from decon_core.corpus.string_kinds import text_of_bytes

_FORMS = [
    json.JSONEncoder(ensure_ascii=is_ascii, separators=separators, indent=indent).encode
    for is_ascii in (False, True)
    for separators, indent in (
        ((", ", ": "), None),
        ((",", ":"), None),
        ((",", ": "), 1),
        ((",", ": "), 2),
        ((",", ": "), 4),
    )
]


class NotExactError(Exception):
    """JSON in a string cannot be written back as it was, or the string is a key."""


def without_spans(text: str, spans: Sequence[tuple[int, int]], mask: str) -> str:
    """Return a text with these ranges of characters replaced by a mask."""
    pieces, at = [], 0
    for start, stop in spans:
        pieces += [text[at:start], mask]
        at = stop
    return "".join([*pieces, text[at:]])


def is_empty(text: str, mask: str) -> bool:
    """Return whether a text has only masks, white space and punctuation."""
    return not any(map(str.isalnum, text.replace(mask, "") if mask else text))


def replaced(value: Any, keys: Keys, new: str | Collection[int]) -> Any:
    """Return a value with another string at a place, or without these elements of the list there.

    Raise `NotExactError` if that changes more.
    """
    if isinstance(value, bytes):
        content = value.rstrip(b"\0")
        try:
            old = content.decode()
        except UnicodeDecodeError:
            raise NotExactError from None
        return replaced(old, keys, new).encode() + value[len(content) :]  # keeps its padding
    if not keys and isinstance(value, int | float | Decimal):
        raise NotExactError  # a number: no text can stand in its place
    inner = decoded(value) if isinstance(value, str) else None
    if not keys and isinstance(new, str) and not isinstance(inner, str):
        return new
    if isinstance(value, str):
        inner = _opened_once(value) if inner is None else inner
        new_inner = replaced(inner, keys, new)
        encode = next((encode for encode in _FORMS if encode(inner) == value), None)
        if encode is None:
            raise NotExactError
        return encode(new_inner)
    if not keys:
        return [element for at, element in enumerate(value) if at not in new]
    first, rest = keys[0], keys[1:]
    if isinstance(new, str) and rest[:1] == (KEY,):
        raise NotExactError
    if isinstance(value, dict):
        return {**value, first: replaced(value[first], rest, new)}
    elements = [
        replaced(element, rest, new) if at == first else element for at, element in enumerate(value)
    ]
    return type(value)(elements)  # members of a map are tuples


def without_elements(value: Any, elements: Iterable[Keys]) -> Any:
    """Return a value without these elements of lists."""
    by_list: dict[Keys, set[int]] = {}
    for keys in elements:
        by_list.setdefault(keys[:-1], set()).add(int(keys[-1]))
    # Begin with the innermost lists: removing an element moves those behind it.
    for holder in sorted(by_list, key=len, reverse=True):
        value = replaced(value, holder, by_list[holder])
    return value


def value_at(value: Any, keys: Keys) -> Any:
    """Return the value at a place."""
    for key in keys:
        value = opened(value)[key]
    return value


def opened(value: Any) -> Any:
    """Return a value, or the one that a string holds as JSON, whether or not text is left in it."""
    if isinstance(value, bytes):
        value = text_of_bytes(value)
    while isinstance(value, str):
        value = _opened_once(value)
    return value


@lru_cache(maxsize=4)  # a conversation in a string is opened for each of its turns
def _opened_once(value: str) -> Any:
    try:
        return decoded(value) or json.loads(value)
    except (ValueError, RecursionError):
        return None


Value = dict[str, Any]


@dataclass(frozen=True, eq=False)
class RowReader:
    """Reads rows of a part that is in memory, or of a whole shard, which every call reads again."""

    shard: Shard
    source: Source
    part: ShardPart | None = None

    def texts(self, field: str) -> Iterator[tuple[int, str]]:
        """Yield row number and value of a field, for all rows in which it is a string."""
        named = self.source
        source = Source(name=named.name, path=named.path, text=field, ignore=(EVERYTHING,))
        if self.part:
            return _texts_in(self.part.batch(source))
        blocks = read_blocks(self.shard, source)
        return chain.from_iterable(_texts_in(block.read()) for block in blocks)

    def values(self, rows: Sequence[int]) -> Iterator[tuple[int, Value]]:
        """Yield row number and fields of these rows (ascending); of tables only text columns."""
        part = self.part
        return part.values(rows) if part else values_of(self.shard, self.source, rows)


def _texts_in(batch: Batch) -> Iterator[tuple[int, str]]:
    known: dict[bytes, str] = {}
    # Slicing bytes is five times as fast as slicing the array.
    text = batch.text[: batch.stops.max(initial=0)].tobytes()
    columns = (batch.rows.tolist(), batch.starts.tolist(), batch.stops.tolist())
    for row, start, stop in zip(*columns, strict=True):
        name = text[start:stop]
        if name not in known:
            known[name] = name.decode()
        yield row, known[name]
