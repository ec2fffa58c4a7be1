"""The texts of many rows at once, by compiled kernels; unusual rows are left to `row_texts.py`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from decon_core.config.layouts import Layout
from decon_core.corpus.batches import Batch, Reread, summed
from decon_core.corpus.fields import Field, FieldTree, Kind
from decon_core.corpus.row_texts import LONGEST_NAME
from decon_core.corpus.text_values import is_text, without_lone_surrogates
from decon_core.kernels import json_lines, row_texts
from decon_core.kernels.arrays import Table, alloc_array
from decon_core.kernels.json_lines import MOST_DEEP, MOST_MEMBERS, MOST_STRINGS, PADDING

Integers = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]
Flags = npt.NDArray[np.bool_]

_MOST_NESTED = 8  # levels of JSON in strings; rows with more are left to Python
_WORD = (1 << 64) - 1
# A text that is read between others stays where it is, if they take less than the rest: a scan
# reads the bytes between texts as well.
_SHARE_IN_PLACE = 0.8


@dataclass(frozen=True, eq=False)
class Fields:
    """A copy of a tree of fields, as arrays by the number of the field."""

    table: Integers  # of keys
    columns: Table
    names: Bytes
    marks: npt.NDArray[np.uint64]  # in two words
    places: Integers  # of the source's paths
    kinds: dict[str, Bytes] = field(default_factory=dict)  # by layout

    @property
    def n(self) -> int:
        return self.places.size


def fields_of(tree: FieldTree) -> Fields:
    """Return the fields of a tree that are known now."""
    known = tree.compiled
    if not isinstance(known, Fields) or known.n != len(tree.fields):
        with tree.lock:
            known = tree.compiled = _copy_of(tree.fields)
    return known


def _copy_of(fields: Sequence[Field]) -> Fields:
    names = [(one.key or "").encode("utf-8", "replace") for one in fields]
    stops = np.cumsum([*map(len, names)], dtype=np.int64)
    columns = np.empty((len(fields), 6), np.int64)
    columns[:, json_lines.PARENT] = [one.parent.number if one.parent else -1 for one in fields]
    columns[:, json_lines.NAME_START] = stops - [*map(len, names)]
    columns[:, json_lines.NAME_STOP] = stops
    columns[:, json_lines.ELEMENT] = [
        one.element.number if one.has_element else -1 for one in fields
    ]
    columns[:, json_lines.RANK] = [one.rank for one in fields]
    columns[:, json_lines.IS_DECODED] = [one.is_decoded for one in fields]
    table = np.empty(1 << (4 * len(fields)).bit_length(), np.int64)
    arena = np.frombuffer(bytearray(b"".join(names) + b" "), np.uint8)
    is_entered = np.array([*map(_is_entered, fields)], np.uint8)
    json_lines.enter_fields(table, columns, arena, is_entered)
    marks = [[one.marks & _WORD for one in fields], [one.marks >> 64 for one in fields]]
    places = np.array([one.place or 0 for one in fields], np.int64)
    return Fields(table, columns, arena, np.array(marks, np.uint64), places)


def _is_entered(one: Field) -> bool:
    """Return whether the compiled reader may recognise the key of a field."""
    key, parent = one.key, one.parent
    if key is None or parent is None or (parent.has_element and parent.element is one):
        return False
    is_plain = key == without_lone_surrogates(key)  # others are written with escapes
    is_plain &= "\\" not in key and not key.startswith("[role=")
    return is_plain and not (len(key) > LONGEST_NAME and is_text(key))


@dataclass(frozen=True, eq=False)
class Strings:
    """Strings of rows, in reading order: row after row."""

    text: Bytes  # of which they are slices
    starts: Integers
    stops: Integers
    continuing: Integers  # bytes that begin no character
    fields: Integers
    rows: Integers
    is_json: Integers  # whether the string may be JSON that is to be decoded

    def take(self, which: npt.NDArray[np.generic]) -> Strings:
        """Return some of the strings: by a flag for each, or by their numbers in order."""
        if which.dtype == np.bool_ and which.all():
            return self
        return replace(
            self,
            starts=self.starts[which],
            stops=self.stops[which],
            continuing=self.continuing[which],
            fields=self.fields[which],
            rows=self.rows[which],
            is_json=self.is_json[which],
        )


@dataclass(frozen=True, eq=False)
class Texts:
    """The texts of rows, as of a batch, and the rows that are left to Python."""

    text: Bytes
    starts: Integers
    stops: Integers
    rows: Integers
    n_characters: int
    unread: Mapping[str, Sequence[int]]
    is_unusual: Flags  # per row


def batch_of(texts: Texts, first_row: int, reread: Reread) -> Batch:
    """Return texts as a batch; the rows that are left to Python are read again."""
    batch = Batch(
        texts.text,
        texts.starts,
        texts.stops,
        texts.rows + first_row,
        texts.n_characters,
        [],
        reread,
        unread=texts.unread,
    )
    return batch.with_rows(map(reread, (np.flatnonzero(texts.is_unusual) + first_row).tolist()))


def strings_of_lines(
    lines: Bytes, n_bytes: int, n_lines: int, fields: Fields, *, roots: Integers | None = None
) -> tuple[Strings, Flags, Integers]:
    """Return the strings of lines of JSON, which lines are unusual, and where each begins.

    `roots`: the field of the value in each line; None: each is a row.
    """
    text = alloc_array(n_bytes + PADDING, np.uint8)
    strings = np.empty((n_bytes // 3 + 1, 6), np.int64)  # two quotes and what separates values
    is_unusual, line_starts = np.empty(n_lines, np.uint8), np.empty(n_lines + 1, np.int64)
    n = json_lines.read_lines(
        lines,
        n_bytes,
        np.zeros(n_lines, np.int64) if roots is None else roots,
        roots is None,
        fields.table,
        fields.columns,
        fields.names,
        np.full(fields.n, -1),
        np.empty((MOST_DEEP + 1, 4), np.int64),
        np.empty((MOST_MEMBERS, 2), np.int64),
        np.empty((MOST_STRINGS, 5), np.int64),
        text,
        strings,
        is_unusual,
        line_starts,
    )
    of_field, starts, stops, continuing, is_json, rows = strings[:n].T.copy()
    found = Strings(text, starts, stops, continuing, of_field, rows, is_json)
    return found, is_unusual.astype(np.bool_), line_starts


def with_decoded(strings: Strings, is_unusual: Flags, fields: Fields) -> Strings:
    """Return the strings with those in place of JSON that it holds; marks rows as unusual."""
    for _ in range(_MOST_NESTED):
        (holders,) = np.nonzero((strings.is_json != 0) & ~is_unusual[strings.rows])
        if not holders.size:
            return strings
        strings = _decoded_once(strings, holders, is_unusual, fields)
    is_unusual[strings.rows[strings.is_json != 0]] = True
    return strings


def _decoded_once(
    strings: Strings, holders: Integers, is_unusual: Flags, fields: Fields
) -> Strings:
    of_holders = strings.take(holders)
    edges = zip(of_holders.starts.tolist(), of_holders.stops.tolist(), strict=True)
    # A line break between values is white space, as a carriage return is.
    values = [strings.text[a:b].tobytes().replace(b"\n", b"\r") for a, b in edges]
    content = b"\n".join([*values, b""])
    lines = np.frombuffer(bytearray(content + b"\n" + bytes(PADDING)), np.uint8)
    found, is_bad, _ = strings_of_lines(
        lines, len(content), holders.size, fields, roots=of_holders.fields
    )
    is_unusual[of_holders.rows[is_bad]] = True
    is_replaced = np.zeros(strings.starts.size, np.bool_)
    is_replaced[holders[found.rows]] = True  # JSON without any string stays as it is
    strings.is_json[holders] = 0
    kept = strings.take(~is_replaced)
    at, size = holders[found.rows], strings.text.size
    order = np.argsort(np.concatenate([np.flatnonzero(~is_replaced), at]), kind="stable")

    def both(first: npt.NDArray[Any], second: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return np.concatenate([first, second])[order]

    return Strings(
        np.concatenate([strings.text, found.text]),
        both(kept.starts, found.starts + size),
        both(kept.stops, found.stops + size),
        both(kept.continuing, found.continuing),
        both(kept.fields, found.fields),
        both(kept.rows, strings.rows[at]),
        both(kept.is_json, found.is_json),
    )


def texts_of(strings: Strings, is_unusual: Flags, tree: FieldTree, fields: Fields) -> Texts:
    """Return the texts of rows that are not unusual. A row without a string to read is unusual."""
    counts = np.bincount(strings.rows, minlength=is_unusual.size)
    is_unusual = is_unusual | (counts > MOST_STRINGS)
    strings = strings.take(~is_unusual[strings.rows])
    kinds, has_placeholder = _kinds(strings, tree, fields, is_unusual.size)
    row_texts.settle(strings.text, strings.starts, strings.stops, kinds)
    is_read = (kinds == Kind.VISIBLE) | (kinds == Kind.HIDDEN)
    has_text = np.zeros(is_unusual.size, np.bool_)
    has_text[strings.rows[is_read]] = True
    is_unusual = is_unusual | ~has_text | has_placeholder
    is_usual = ~is_unusual[strings.rows]
    unread = strings.take((kinds == Kind.UNREAD) & is_usual)
    read, kinds = strings.take(is_read & is_usual), kinds[is_read & is_usual]
    if len(tree.paths) > 1:
        order = np.lexsort((fields.places[read.fields], read.rows))
        read, kinds = read.take(order), kinds[order]
    return _joined(read, kinds, _counts_by_path(unread, tree), is_unusual)


def _joined(
    read: Strings, kinds: Bytes, unread: Mapping[str, Sequence[int]], is_unusual: Flags
) -> Texts:
    n_strings, n_read = read.starts.size, int((read.stops - read.starts).sum())
    n_text = int(read.stops[-1] - read.starts[0]) if n_strings else 0
    is_single = n_strings == np.unique(read.rows).size and bool((kinds == Kind.VISIBLE).all())
    if is_single and n_read > _SHARE_IN_PLACE * n_text:
        n_characters = n_read - int(read.continuing.sum())
        places = read.starts, read.stops, read.rows
        return Texts(read.text, *places, n_characters, unread, is_unusual)
    n_bytes = n_read + 2 * n_strings
    text = alloc_array(n_bytes + PADDING, np.uint8)
    # A row may have only a hidden string, and an empty visible text beside it.
    starts, stops, rows = np.empty((3, 2 * n_strings), np.int64)
    n, n_characters = row_texts.join_strings(
        read.text,
        read.starts,
        read.stops,
        kinds,
        read.continuing,
        read.rows,
        np.empty(3 * row_texts.TABLE, np.int64),
        np.full(row_texts.TABLE, -1, np.int64),
        text,
        starts,
        stops,
        rows,
    )
    return Texts(text, starts[:n], stops[:n], rows[:n], int(n_characters), unread, is_unusual)


def _kinds(strings: Strings, tree: FieldTree, fields: Fields, n_rows: int) -> tuple[Bytes, Flags]:
    """Return what is done with each string, and which rows may be placeholders of others."""
    has_placeholder = np.zeros(n_rows, np.bool_)
    if not strings.rows.size:
        return np.empty(0, np.uint8), has_placeholder
    first = np.flatnonzero(np.diff(strings.rows, prepend=-1))
    layouts, of_row = _layouts(strings, first, tree, fields)
    kinds = np.stack([_kinds_in(tree, fields, layout) for layout in layouts])
    of_string = np.repeat(of_row, np.diff([*first, strings.rows.size]))
    is_placeholder = np.array([layout.placeholder is not None for layout in layouts])
    has_placeholder[strings.rows[is_placeholder[of_string]]] = True
    return kinds[of_string, strings.fields], has_placeholder


def _layouts(
    strings: Strings, first: Integers, tree: FieldTree, fields: Fields
) -> tuple[list[Layout], Integers]:
    """Return the layouts of rows, and which of them each row has; `first` are their strings."""
    if tree.is_uniform:
        return [tree.layout_of(0)], np.zeros(first.size, np.int64)
    low, high = (np.bitwise_or.reduceat(word[strings.fields], first) for word in fields.marks)
    pairs = [*zip(low.tolist(), high.tolist(), strict=True)]
    numbers = {pair: at for at, pair in enumerate(dict.fromkeys(pairs))}
    layouts = [tree.layout_of(low | high << 64) for low, high in numbers]
    return layouts, np.array([numbers[pair] for pair in pairs], np.int64)


def _kinds_in(tree: FieldTree, fields: Fields, layout: Layout) -> Bytes:
    """Return what is done with each field in rows of a layout."""
    if layout.name not in fields.kinds:
        kinds = np.array([one.kind(layout) for one in tree.fields[: fields.n]], np.uint8)
        is_label = np.array([one.is_label for one in tree.fields[: fields.n]], np.bool_)
        kinds[is_label] |= row_texts.LABEL
        if not tree.is_counting:
            kinds[(kinds & 3) == Kind.UNREAD] = row_texts.SKIPPED
        fields.kinds[layout.name] = kinds
    return fields.kinds[layout.name]


def _counts_by_path(unread: Strings, tree: FieldTree) -> dict[str, list[int]]:
    n_values = np.bincount(unread.fields)
    n_bytes = np.bincount(unread.fields, unread.stops - unread.starts)
    return summed(  # fields may have the same path: keys may contain dots
        {tree.fields[at].path: [int(n_values[at]), int(n_bytes[at])]}
        for at in np.flatnonzero(n_values).tolist()
    )
