"""Read rows of a shard, which licenses and cuts need, and edit them.

Strings of a row are changed at their places, or turns are removed; all else stays as it was.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from decon_core.config.layouts import EVERYTHING
from decon_core.config.sources import Source
from decon_core.corpus.batches import Batch
from decon_core.corpus.formats import Part as ShardPart
from decon_core.corpus.packs import Shard
from decon_core.corpus.row_texts import KEY, Keys
from decon_core.corpus.shards import read_blocks, values_of
from decon_core.corpus.text_values import decoded, text_of_bytes

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


def replaced(value: Any, keys: Keys, text: str | None) -> Any:
    """Return a value with another string at a place; None: without that element of a list.

    Raise `NotExactError` if that changes more.
    """
    if isinstance(value, bytes):
        content = value.rstrip(b"\0")
        try:
            old = content.decode()
        except UnicodeDecodeError:
            raise NotExactError from None
        return replaced(old, keys, text).encode() + value[len(content) :]  # keeps its padding
    inner = decoded(value) if isinstance(value, str) else None
    if not keys and not isinstance(inner, str):
        return text
    if isinstance(value, str):
        inner = _opened_once(value) if inner is None else inner
        new_inner = replaced(inner, keys, text)
        encode = next((encode for encode in _FORMS if encode(inner) == value), None)
        if encode is None:
            raise NotExactError
        return encode(new_inner)
    first, rest = keys[0], keys[1:]
    if text is not None and rest[:1] == (KEY,):
        raise NotExactError
    if isinstance(value, dict):
        return {**value, first: replaced(value[first], rest, text)}
    if text is None and not rest:
        return [inner for at, inner in enumerate(value) if at != first]
    new = [replaced(inner, rest, text) if at == first else inner for at, inner in enumerate(value)]
    return type(value)(new)  # members of a map are tuples


def without_elements(value: Any, elements: Iterable[Keys]) -> Any:
    """Return a value without these elements of lists."""
    # Begin with the last element: removing it moves those behind it.
    for keys in sorted(elements, key=lambda keys: (len(keys), keys[-1]), reverse=True):
        value = replaced(value, keys, None)
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
