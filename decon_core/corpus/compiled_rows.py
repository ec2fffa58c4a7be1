"""The texts of many rows at once, by compiled kernels; unusual rows are left to `row_texts.py`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from decon_core.config.layouts import Layout
from decon_core.config.sources import Source
from decon_core.corpus.batches import Batch, Reread, summed
from decon_core.corpus.fields import Field, FieldTree, field_tree
from decon_core.corpus.origins import origins_in
from decon_core.corpus.row_json import decoded, without_lone_surrogates
from decon_core.corpus.row_texts import LONGEST_NAME, read_again
from decon_core.corpus.string_kinds import (
    FIRST_ENCODED,
    StringKind,
    counts_of_encoded,
    is_text,
    kind_of_encoded,
    n_bytes_of_text,
)
from decon_core.kernels import base64_lines, json_lines, row_texts, string_kinds
from decon_core.kernels.arrays import Bools, Bytes, Integers, Table, Words64, alloc_array
from decon_core.kernels.json_lines import MOST_STRINGS
from decon_core.kernels.json_tokens import LINE_BREAK, PADDING

_MOST_NESTED = 8  # levels of JSON in strings; rows with more are left to Python
_WORD = (1 << 64) - 1
# Documents stay where they were read if they are most of it: the rest fills memory as well.
_SHARE_IN_PLACE = 0.8


@dataclass(frozen=True, eq=False)
class Fields:
    """A copy of a tree of fields, as arrays by the number of the field."""

    table: Integers  # hash table of keys
    columns: Table
    names: Bytes
    marks: Words64  # marks of each field, as two words
    places: Integers  # places of the source's paths
    kinds: dict[str, Bytes] = field(default_factory=dict)  # keyed by layout

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
    names = [(node.key or "").encode("utf-8", "replace") for node in fields]
    stops = np.cumsum([*map(len, names)], dtype=np.int64)
    columns = np.empty((len(fields), json_lines.N_OF_FIELD), np.int64)
    columns[:, json_lines.PARENT] = [node.parent.number if node.parent else -1 for node in fields]
    columns[:, json_lines.NAME_START] = stops - [*map(len, names)]
    columns[:, json_lines.NAME_STOP] = stops
    columns[:, json_lines.ELEMENT] = [
        node.element.number if node.has_element else -1 for node in fields
    ]
    columns[:, json_lines.RANK] = [node.rank for node in fields]
    columns[:, json_lines.IS_DECODED] = [node.is_decoded for node in fields]
    columns[:, json_lines.USE] = [node.use for node in fields]
    columns[:, json_lines.NAMES] = [node.names for node in fields]
    columns[:, json_lines.HAS_TOKENS] = [
        node.has_tokens * (1 + node.is_of_arrays) for node in fields
    ]
    columns[:, json_lines.HOLDS_ANSWER] = [
        node.is_answer and node.place is not None for node in fields
    ]
    table = np.empty(1 << (4 * len(fields)).bit_length(), np.int64)
    arena = np.frombuffer(bytearray(b"".join(names) + b" "), np.uint8)
    is_entered = np.array([*map(_is_entered, fields)], np.uint8)
    json_lines.enter_fields(table, columns, arena, is_entered)
    marks = [[node.marks & _WORD, node.marks >> 64] for node in fields]
    places = np.array([node.place or 0 for node in fields], np.int64)
    return Fields(table, columns, arena, np.array(marks, np.uint64), places)


def _is_entered(node: Field) -> bool:
    """Return whether the compiled reader may recognise the key of a field."""
    key = node.key
    if key is None:  # the root, or the elements of a list
        return False
    is_plain = key == without_lone_surrogates(key)  # others are written with escapes
    is_plain &= "\\" not in key and not key.startswith("[role=")
    return is_plain and not (len(key) > LONGEST_NAME and is_text(key))


class _Column:
    """A column of `Strings.columns`."""

    def __init__(self, number: int) -> None:
        self._number = number

    def __get__(self, strings: Strings, _: type[Strings]) -> Integers:
        column: Integers = strings.columns[self._number]
        return column


@dataclass(frozen=True, eq=False)
class Strings:
    """Strings of rows, in reading order: row after row."""

    text: Bytes  # the strings are slices of it
    columns: Table  # `json_lines.FIELD` and so on, of each string
    marks: Words64  # marks of layouts, for each row
    has_room: bool  # whether two spare bytes follow each string that is read

    fields = _Column(json_lines.FIELD)
    starts = _Column(json_lines.START)
    stops = _Column(json_lines.STOP)
    continuing = _Column(json_lines.CONTINUING)  # bytes that begin no character
    actions = _Column(json_lines.ACTION)  # what is done with each string
    keys = _Column(json_lines.KEY)
    rows = _Column(json_lines.LINE)

    def take(self, which: Bools | Integers) -> Strings:
        """Return some of the strings: by a flag for each, or by their numbers in order."""
        if which.dtype == np.bool_ and which.all():
            return self
        numbers = np.flatnonzero(which) if which.dtype == np.bool_ else which
        return replace(self, columns=self.columns.take(numbers, axis=1))


def strings_of_lines(
    lines: Bytes, n_bytes: int, n_lines: int, fields: Fields, *, roots: Integers | None = None
) -> tuple[Strings, Bytes, Integers]:
    """Return the strings of lines of JSON, the status of each line, and where it begins.

    `roots`: the field of the value in each line; None: each is a row.
    """
    text = alloc_array(n_bytes + PADDING, np.uint8)
    most = n_bytes // 3 + 1  # two quotes and what separates values
    strings = np.empty((json_lines.N_OF_STRING, most), np.int64)
    status, line_starts = np.zeros(n_lines, np.uint8), np.empty(n_lines + 1, np.int64)
    marks = np.zeros((n_lines, 2), np.uint64)
    n = json_lines.read_lines(
        lines,
        n_bytes,
        np.zeros(n_lines, np.int64) if roots is None else roots,
        roots is None,
        fields.table,
        fields.columns,
        fields.names,
        fields.marks,
        text,
        strings,
        status,
        line_starts,
        marks,
    )
    return Strings(text, strings[:, :n], marks, has_room=True), status, line_starts


def settle(strings: Strings, fields: Fields, *, may_decode: bool) -> None:
    """Set what is done with strings that the line reader did not see."""
    row_texts.settle(
        strings.text,
        strings.columns,
        fields.columns,
        fields.marks,
        may_decode,
        strings.marks,
    )


def batch_of(
    strings: Strings,
    is_unusual: Bools,
    source: Source,
    fields: Fields,
    *,
    first_row: int,
    reread: Reread,
) -> Batch:
    """Return the texts of rows. Unusual rows, and those without a string to read, are read again.

    `is_unusual` is per row, and `reread` reads a row by its number in the shard.
    """
    tree = field_tree(source)
    strings = _with_decoded(strings, is_unusual, fields)
    is_unusual[strings.rows[strings.actions == string_kinds.TO_REREAD]] = True
    counts = np.bincount(strings.rows, minlength=is_unusual.size)
    layouts, layout_of_row = _layouts(strings.marks, is_unusual, tree)
    has_placeholder = np.array([layout.placeholder is not None for layout in layouts])
    is_read = strings.actions == string_kinds.TO_READ
    has_text = np.zeros(is_unusual.size, np.bool_)
    has_text[strings.rows[is_read]] = True
    is_unusual = is_unusual | (counts > MOST_STRINGS) | ~has_text | has_placeholder[layout_of_row]
    if tree.is_counting:
        is_unusual |= _may_have_ids(strings, is_read, fields, is_unusual.size)
        is_unusual |= _may_have_pieces(strings.take(is_read), tree, is_unusual.size)
    names = fields.columns[: fields.n, json_lines.NAMES]
    origins = origins_in(strings, ~is_unusual, tree, names)  # before strings are moved
    is_usual = ~is_unusual[strings.rows]
    unread = strings.take(is_usual & (strings.actions == string_kinds.TO_COUNT))
    read = strings.take(is_usual & is_read)
    if len(tree.paths) > 1:
        read = read.take(np.lexsort((fields.places[read.fields], read.rows)))
    is_only = (np.bincount(read.rows, minlength=is_unusual.size) == 1)[read.rows]
    only_field = np.full(is_unusual.size, -1)
    only_field[read.rows[is_only]] = read.fields[is_only]
    kinds = np.stack([_kinds_in(tree, fields, layout) for layout in layouts])
    encoded = [*_counts_of_encoded(strings, is_usual, read, tree)]  # before strings are moved
    text, starts, stops, rows, n_characters = _joined(
        read, kinds[layout_of_row[read.rows], read.fields]
    )
    rows += first_row
    short = strings.take(is_usual & (strings.actions == string_kinds.TO_COUNT_WORDS))
    sizes = unread.fields, unread.stops - unread.starts
    counts_by_path = summed(  # fields may have the same path: keys may contain dots
        {tree.fields[at].shown: [int(n_values[at]), int(n_bytes[at])]}
        for fields_of_texts, n_bytes_of_texts in (sizes, _texts_of(short))
        for n_values in [np.bincount(fields_of_texts)]
        for n_bytes in [np.bincount(fields_of_texts, n_bytes_of_texts)]
        for at in np.flatnonzero(n_values).tolist()
    )
    if tree.is_counting:
        counts_by_path = summed([counts_by_path, *encoded])
    batch = Batch(
        text, starts, stops, rows, n_characters, [], reread, unread=counts_by_path, origins=origins
    )
    if source.id is None:
        batch = replace(
            batch, only_path=lambda row: _path_of_key(tree, only_field[row - first_row])
        )
    unusual = map(reread, (np.flatnonzero(is_unusual) + first_row).tolist())
    return batch.with_rows(filter(None, unusual))  # a line with only a byte order mark is no row


def _may_have_ids(strings: Strings, is_read: Bools, fields: Fields, n_rows: int) -> Bools:
    """Return for which rows `ids_in_strings` may find token ids."""
    read = strings.take(is_read)
    sizes, are_numbers = read.stops - read.starts, np.empty(read.rows.size, np.bool_)
    string_kinds.find_numbers(read.text, read.starts, read.stops, are_numbers)
    is_named = fields.columns[:, json_lines.HAS_TOKENS][read.fields] != 0
    may_have = (
        np.bincount(read.rows, are_numbers * sizes, n_rows) >= 2 * string_kinds.LEAST_NUMBERS - 1
    )
    may_have[read.rows[~are_numbers & (sizes >= string_kinds.LEAST_BYTES)]] = False
    may_have[read.rows[are_numbers & is_named]] = True
    return may_have


def _may_have_pieces(read: Strings, tree: FieldTree, n_rows: int) -> Bools:
    """Return for which rows `pieces_in` may find pieces of words."""
    elements = np.array([node.is_element for node in tree.fields])
    read = read.take(elements[read.fields])
    first, second = read.text[read.starts], read.text[read.starts + 1]
    is_single = read.stops - read.starts - read.continuing == 1
    is_marked = (first == 0xC4) & (second == 0xA0) | (first == 0xE2) & (second == 0x96)
    is_marked |= (first == ord("#")) & (second == ord("#"))
    n_marked, n_single = (np.bincount(read.rows, of, n_rows) for of in (is_marked, is_single))
    may_have: Bools = (8 * n_marked >= string_kinds.LEAST_NUMBERS) | (
        10 * n_single >= 9 * string_kinds.LEAST_CODES
    )
    return may_have


def _counts_of_encoded(
    strings: Strings, is_usual: Bools, read: Strings, tree: FieldTree
) -> Iterator[dict[str, list[int]]]:
    """Yield the path and the bytes of what is base64 or a list of numbers."""
    if not tree.is_counting:
        return
    looked_at = strings.take(is_usual & (strings.actions == string_kinds.TO_LOOK_AT))
    columns = (looked_at.rows, looked_at.fields, looked_at.starts, looked_at.stops)
    by_field: dict[tuple[int, int], list[tuple[StringKind, str, int]]] = {}
    for row, at, start, stop in zip(*(column.tolist() for column in columns), strict=True):
        head = strings.text[start : min(stop, start + FIRST_ENCODED)].tobytes().decode()
        kind = kind_of_encoded(head, is_named=tree.fields[at].has_tokens)
        by_field.setdefault((row, at), []).append((kind, head, stop - start))
    for (_, at), found in by_field.items():
        for path, n_bytes in counts_of_encoded(tree.fields[at], found):
            yield {path: [1, n_bytes]}
    numbers = strings.take(is_usual & (strings.actions == string_kinds.TO_COUNT_NUMBERS))
    for at, n in zip(numbers.fields.tolist(), numbers.keys.tolist(), strict=True):
        yield {f"{tree.fields[at].shown}.{StringKind.TOKENS.step}": [1, n]}
    for (_, at), runs in _runs_in(read).items():
        if n_bytes := n_bytes_of_text(runs):
            yield {f"{tree.fields[at].shown}.{StringKind.BASE64.step}": [1, n_bytes]}


def _runs_in(read: Strings) -> dict[tuple[int, int], list[str]]:
    """Return the lines of base64 in strings with other text, by row and field."""
    most = int((read.stops - read.starts).sum()) // string_kinds.LINE_OF_BASE64 + 1
    which, starts, stops = np.empty((3, most), np.int64)
    n = base64_lines.find_runs(read.text, read.starts, read.stops, which, starts, stops)
    runs: dict[tuple[int, int], list[str]] = {}
    found = which[:n]
    columns = (read.rows[found], read.fields[found], starts[:n], stops[:n])
    for row, at, start, stop in zip(*(column.tolist() for column in columns), strict=True):
        run = read.text[start:stop].tobytes().decode()
        runs.setdefault((row, at), []).append(run)
    return runs


def _texts_of(short: Strings) -> tuple[Integers, Integers]:
    """Return field and bytes of the texts that the short strings of lists are together, by row."""
    fields = short.fields
    lists, which = np.unique(np.stack([short.rows, fields]), axis=1, return_inverse=True)
    sums = [
        np.bincount(which.ravel(), values, lists.shape[1]).astype(np.int64)
        for values in (short.keys % 256, short.keys // 256, short.stops - short.starts)
    ]
    is_text = (sums[0] >= string_kinds.LEAST_WORDS) | (sums[1] >= string_kinds.LEAST_LETTERS)
    return lists[1][is_text], sums[2][is_text]


def _path_of_key(tree: FieldTree, number: int) -> str | None:
    """Return the path of the strings of a field that is a key of the row; None of others."""
    node = tree.fields[number] if number >= 0 else tree.root
    return node.path if node.parent is tree.root and "[" not in node.path else None


def _with_decoded(strings: Strings, is_unusual: Bools, fields: Fields) -> Strings:
    """Return the strings with those in place of JSON that it holds; marks rows as unusual."""
    for _ in range(_MOST_NESTED):
        is_holder = strings.actions == string_kinds.TO_DECODE
        (holders,) = np.nonzero(is_holder & ~is_unusual[strings.rows])
        if not holders.size:
            return strings
        strings = _decoded_once(strings, holders, is_unusual, fields)
    is_unusual[strings.rows[strings.actions == string_kinds.TO_DECODE]] = True
    return strings


def _decoded_once(
    strings: Strings, holders: Integers, is_unusual: Bools, fields: Fields
) -> Strings:
    outer = strings.take(holders)
    lines = np.zeros(int((outer.stops - outer.starts + 1).sum()) + PADDING, np.uint8)
    n_bytes = row_texts.copy_to_lines(strings.text, outer.starts, outer.stops, lines)
    lines[n_bytes] = LINE_BREAK
    inner, status, _ = strings_of_lines(lines, n_bytes, holders.size, fields, roots=outer.fields)
    for line in np.flatnonzero(status == json_lines.UNUSUAL).tolist():
        value = strings.text[outer.starts[line] : outer.stops[line]]
        if decoded(value.tobytes().decode()) is None:
            status[line] = json_lines.WITHOUT_STRINGS
    is_unusual[outer.rows[status == json_lines.UNUSUAL]] = True
    np.bitwise_or.at(strings.marks, outer.rows, inner.marks)
    is_whole = status == json_lines.WITHOUT_STRINGS  # such JSON stays as it is
    inner = inner.take(~is_whole[inner.rows])  # its numbers are in the text
    whole = outer.take(np.flatnonzero(is_whole))
    settle(whole, fields, may_decode=False)
    strings.actions[holders] = string_kinds.TO_SKIP
    strings.actions[holders[is_whole]] = whole.actions
    row_texts.put_in_place(
        inner.text, inner.starts, inner.stops, inner.rows, strings.text, outer.starts
    )
    (kept,) = np.nonzero(strings.actions != string_kinds.TO_SKIP)
    at = holders[inner.rows]
    inner.rows[:] = strings.rows[at]
    order = np.argsort(np.concatenate([kept, at]), kind="stable")
    columns = np.concatenate([strings.columns[:, kept], inner.columns], axis=1)
    return replace(strings, columns=columns.take(order, axis=1))


def _joined(read: Strings, kinds: Bytes) -> tuple[Bytes, Integers, Integers, Integers, int]:
    """Join the strings of each row; return text, starts, stops, rows and number of characters.

    `kinds`: of each string, whether it is visible or hidden.
    """
    n_strings, n_read = read.starts.size, int((read.stops - read.starts).sum())
    n_bytes = n_read + 2 * n_strings
    is_in_place = _may_stay(read, kinds, n_bytes)
    text = read.text if is_in_place else alloc_array(n_bytes + PADDING, np.uint8)
    # A row may have only a hidden string: its visible text is then empty.
    starts, stops, rows = np.empty((3, 2 * n_strings), np.int64)
    n, n_characters = row_texts.join_strings(
        read.text,
        read.starts,
        read.stops,
        kinds,
        read.continuing,
        _keys_to_compare(read, kinds),
        read.rows,
        np.full(row_texts.TABLE, -1, np.int64),
        is_in_place,
        text,
        starts,
        stops,
        rows,
    )
    return text, starts[:n], stops[:n], rows[:n], int(n_characters)


def _keys_to_compare(read: Strings, kinds: Bytes) -> Integers:
    """Return the keys by which repeats are found: other ones for repeats that are read again."""
    is_long = read.stops - read.starts >= string_kinds.LEAST_REPEATED
    if is_long.all() or not (np.diff(read.rows) == 0).any():
        return read.keys
    order = np.lexsort((kinds, read.rows))
    lists, is_long = 2 * read.rows[order] + (kinds[order] == row_texts.HIDDEN), is_long[order]
    keys = read.keys.copy()
    for which in _lists_with_repeats(lists, is_long, read.keys[order]):
        numbers = order[slice(*np.searchsorted(lists, [which, which + 1]))]
        edges = zip(read.starts[numbers].tolist(), read.stops[numbers].tolist(), strict=True)
        texts = [read.text[start:stop].tobytes() for start, stop in edges]
        for at in read_again(texts):
            keys[numbers[at]] += at  # different, and different for each
    return keys


def _lists_with_repeats(lists: Integers, is_long: Bools, keys: Integers) -> list[int]:
    """Return the lists of strings that hold a longer text twice, and one before a short text."""
    is_answered = is_long[:-1] & ~is_long[1:] & (lists[1:] == lists[:-1])
    may_repeat = np.zeros(int(lists[-1]) + 1, np.bool_)
    may_repeat[lists[:-1][is_answered]] = True
    (longer,) = np.nonzero(is_long & may_repeat[lists])
    longer = longer[np.lexsort((keys[longer], lists[longer]))]
    is_same = (np.diff(keys[longer]) == 0) & (np.diff(lists[longer]) == 0)
    return sorted({*lists[longer[1:]][is_same].tolist()})


def _may_stay(read: Strings, kinds: Bytes, n_bytes: int) -> bool:
    """Return whether the strings of each row can be joined where they are."""
    if not read.rows.size or n_bytes < _SHARE_IN_PLACE * (read.stops[-1] - read.starts[0]):
        return False
    is_same_row = np.diff(read.rows) == 0
    if not (read.has_room or not is_same_row.any()):
        return False
    is_in_order = np.diff(read.starts) > 0
    is_in_order &= (kinds[1:] >= kinds[:-1]) | ~is_same_row  # hidden text comes last
    return bool(is_in_order.all())


def _layouts(marks: Words64, is_unusual: Bools, tree: FieldTree) -> tuple[list[Layout], Integers]:
    """Return the layouts of rows, and which of them each row has; unusual rows have any."""
    (usual,) = np.nonzero(~is_unusual)
    layout_of_row = np.zeros(is_unusual.size, np.int64)
    if tree.is_uniform or not usual.size:
        return [tree.layout_of(0)], layout_of_row
    words = marks[usual]
    if not (words == words[0]).all():
        words, layout_of_row[usual] = np.unique(words, axis=0, return_inverse=True)
    else:
        words = words[:1]
    return [tree.layout_of(low | high << 64) for low, high in words.tolist()], layout_of_row


def _kinds_in(tree: FieldTree, fields: Fields, layout: Layout) -> Bytes:
    """Return what is done with each field in rows of a layout."""
    if layout.name not in fields.kinds:
        kinds = [node.kind(layout) for node in tree.fields[: fields.n]]
        fields.kinds[layout.name] = np.array(kinds, np.uint8)
    return fields.kinds[layout.name]
