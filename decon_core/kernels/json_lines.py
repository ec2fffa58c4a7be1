"""Extract all strings from lines of JSON, each with the field that it is in.

A line is handled here only if all of it is strict JSON in strict UTF-8, its fields are known and
come in reading order. Unusual lines are left to Python; no line is rejected here.

A block ends in a line break followed by `PADDING` bytes, so that lookahead needs no bounds check.
"""

from __future__ import annotations

import numpy as np

from decon_core.kernels.arrays import Bytes, Integers, Table, Words64, filled
from decon_core.kernels.hashing import HALF, MIX
from decon_core.kernels.jit import entry, inlined, kernel
from decon_core.kernels.json_tokens import (
    BACKSLASH,
    LINE_BREAK,
    PADDING,
    QUOTE,
    Number,
    Place,
    copy_plain_scalar,
    end_of_scalar,
    end_of_string,
    is_fraction,
    n_plain_bytes,
    read_string,
    skip_space,
)
from decon_core.kernels.string_kinds import (
    COUNT_TOGETHER,
    LEAST_BYTES,
    N_NUMBERS,
    READ,
    TO_COUNT_NUMBERS,
    TO_COUNT_WORDS,
    TO_DECODE,
    TO_NOTE,
    TO_SKIP,
    action_on,
    are_text,
    code_of,
    count_code,
    key_of,
    may_be_json,
    may_have_loose_ids,
    words_in,
)

# Columns of an array with a row for each field: its parent, the bytes of its name, the elements of
# its lists, its rank among siblings, whether JSON in its strings is decoded, what its source does
# with it, what short values name, whether numbers in its lists are token ids (2: those of a member
# of an archive as well), and whether a number or a boolean is read as text. -1: none.
PARENT, NAME_START, NAME_STOP, ELEMENT, RANK = range(5)
IS_DECODED, USE, NAMES, HAS_TOKENS, HOLDS_ANSWER = range(5, 10)
N_OF_FIELD = 10
ANSWERS = 1  # the field above the names of answers; 0 is that of rows
# Rows of an array with a column for each string: its field, its bytes in the text, how many of them
# begin no character, what is done with it, the key of its text (or its words or numbers, if only
# they are counted), and its line.
FIELD, START, STOP, CONTINUING, ACTION, KEY, LINE = range(7)
N_OF_STRING = 7
# Columns of an array with a row for each open container: its field, the highest rank of its
# members so far, the number of the object, its first member, and where its next key is noted, the
# same place in most such objects. Of a list: its field, and the sums of `count_code`.
_FIELD_AT, _RANK_AT, _OBJECT_AT, _MEMBER_AT, _NEXT_AT = range(5)
N_OF_CONTAINER = 5
# Columns of an array with a row for each member of an open object: its first string, and its rank.
_FIRST_STRING, _MEMBER_RANK = range(2)

MOST_MEMBERS = 1 << 12  # members of the open objects
MOST_STRINGS = 1 << 11  # strings of a row; rows with more are left to Python
N_RANKS = 8  # ranks of siblings
LONGEST_NAME = 32  # bytes of a key that is surely no text
MOST_DEEP = 64  # maximum nesting: one bit of a number per container

_ZERO = np.uint64(0)
_ONE = np.uint64(1)

_COLON, _COMMA = 0x3A, 0x2C
_OBJECT, _OBJECT_END, _LIST, _LIST_END, _NULL = 0x7B, 0x7D, 0x5B, 0x5D, 0x6E

# Kinds of lines.
WITHOUT_STRINGS, WITH_STRINGS, UNUSUAL = range(3)

# Parser states: what may come next in a line.
_FIRST_KEY, _KEY, _FIRST_VALUE, _VALUE, _AFTER_VALUE = 0, 1, 2, 3, 4


@kernel
def _end_of_label(block: Bytes, at: Place) -> Place:
    """Return the position after a string that is too short for a text; 0 if it may be another."""
    first = block[at]
    if (first <= 0x20) | (first == _OBJECT) | (first == _LIST):
        return _ZERO  # may be JSON
    n = np.uint64(n_plain_bytes(block, at))
    is_short = (n < np.uint64(LEAST_BYTES)) & (block[at + n] == QUOTE)
    return at + n + _ONE if is_short else _ZERO


@kernel
def _hash(block: Bytes, start: Place, stop: Place, parent: Number) -> np.uint64:
    value = (np.uint64(parent) + _ONE) * MIX
    for step in range(np.int64(stop - start)):
        value = (value ^ np.uint64(block[start + np.uint64(step)])) * MIX
    return value ^ (value >> HALF)


@kernel
def _child(
    block: Bytes,
    start: Place,
    stop: Place,
    parent: Number,
    table: Integers,
    fields: Table,
    names: Bytes,
) -> Number:
    """Return the field of a key below a field; -1 if it is unknown."""
    mask = np.uint64(table.size - 1)
    at = _hash(block, start, stop, parent) & mask
    while True:
        found = table[at]
        if found < 0:
            return -1
        first = fields[found, NAME_START]
        is_same = (fields[found, PARENT] == parent) & (
            fields[found, NAME_STOP] - first == np.int64(stop - start)
        )
        if is_same:
            for step in range(np.int64(stop - start)):
                if block[start + np.uint64(step)] != names[first + step]:
                    is_same = False
                    break
        if is_same:
            return np.int64(found)
        at = (at + _ONE) & mask


@kernel
def _end_of_key(block: Bytes, start: Place, field: Number, fields: Table, names: Bytes) -> Place:
    """Return where a key ends, if it is that of a field; 0 if it is another key."""
    first = np.uint64(fields[field, NAME_START])
    size = np.uint64(fields[field, NAME_STOP]) - first
    for step in range(size):
        if block[start + step] != names[first + step]:
            return _ZERO
    return start + size if block[start + size] == QUOTE else _ZERO


@entry(compile_seconds=0.5, steps=lambda table, *_: table.size)
def enter_fields(table: Integers, fields: Table, names: Bytes, is_entered: Bytes) -> None:
    """Enter fields into the table of keys; elements of lists and the root have no key."""
    mask = np.uint64(table.size - 1)
    table[:] = -1
    for field in range(is_entered.size):
        if is_entered[field]:
            start, stop = np.uint64(fields[field, NAME_START]), np.uint64(fields[field, NAME_STOP])
            at = _hash(names, start, stop, fields[field, PARENT]) & mask
            while table[at] >= 0:
                at = (at + _ONE) & mask
            table[at] = field


@kernel
def _put_in_order(
    members: Table, first: Number, stop: Number, strings: Table, n_strings: Number, copy: Table
) -> None:
    """Sort the strings of an object by the ranks of its members, `first` to `stop`."""
    base, n = members[first, _FIRST_STRING], 0
    for rank in range(N_RANKS):
        for member in range(first, stop):
            if members[member, _MEMBER_RANK] != rank:
                continue
            end = members[member + 1, _FIRST_STRING] if member + 1 < stop else n_strings
            for string in range(members[member, _FIRST_STRING], end):
                for column in range(LINE):
                    copy[column, n] = strings[column, string]
                n += 1
    for string in range(n):
        for column in range(LINE):
            strings[column, base + string] = copy[column, string]


@kernel
def _may_be_passed(
    block: Bytes, start: Place, stop: Place, table: Integers, fields: Table, names: Bytes
) -> bool:
    """Return whether an unknown key matters only if its value is a string or holds some.

    One with an escape may be a known one, and a long one may be a text. A number may be an answer.
    """
    if stop - start > np.uint64(LONGEST_NAME):
        return False
    for at in range(start, stop):
        if block[at] == BACKSLASH:
            return False
    return _child(block, start, stop, ANSWERS, table, fields, names) < 0


@kernel
def _keep_name(text: Bytes, strings: Table, string: Number, free: Integers) -> None:
    """Move a string to the end of the text, where all names are near each other."""
    start, size = strings[START, string], strings[STOP, string] - strings[START, string]
    free[0] -= size
    for step in range(size):
        text[free[0] + step] = text[start + step]
    strings[START, string], strings[STOP, string] = free[0], free[0] + size


@inlined
def _read_line(
    block: Bytes,
    at: Place,
    root: Number,
    is_row: bool,
    table: Integers,
    fields: Table,
    names: Bytes,
    marks_of: Words64,
    seen_in: Integers,
    next_keys: Integers,
    depths: Table,
    members: Table,
    copy: Table,
    text: Bytes,
    n: Place,
    free: Integers,
    strings: Table,
    n_strings: Number,
    n_objects: Number,
    line: int,
    status: Bytes,
    marks: Words64,
) -> tuple[Place, Place, Number, Number]:
    """Read the strings of one line.

    Returns the start of the next line (0 if this one is unusual), the end of the text, and the
    numbers of strings and of objects.
    """
    n_members = 0
    out_of_order = _ZERO  # open containers whose members are not in reading order
    first_string = n_strings
    at = skip_space(block, at)
    if (block[at] != _OBJECT) & (is_row | (block[at] != _LIST)):
        return _ZERO, n, n_strings, n_objects
    depth = 0
    are_objects = _ZERO  # open containers: 1 for an object, 0 for a list; innermost lowest
    field = np.int64(root)
    state = _VALUE
    while True:
        at = skip_space(block, at)
        byte = block[at]
        if state == _AFTER_VALUE or (
            (state == _FIRST_KEY) & (byte == _OBJECT_END)
            | (state == _FIRST_VALUE) & (byte == _LIST_END)
        ):
            is_object = (are_objects & _ONE) == _ONE
            at += _ONE
            if byte == (_OBJECT_END if is_object else _LIST_END):
                if is_object:
                    if (out_of_order & _ONE) == _ONE:
                        _put_in_order(
                            members, depths[depth, _MEMBER_AT], n_members, strings, n_strings, copy
                        )
                    n_members = depths[depth, _MEMBER_AT]
                elif depths[depth, N_NUMBERS] and are_text(
                    fields[depths[depth, _FIELD_AT], HAS_TOKENS] > 0, depths, depth
                ):
                    if n_strings - first_string == MOST_STRINGS:
                        return _ZERO, n, n_strings, n_objects
                    strings[FIELD, n_strings] = depths[depth, _FIELD_AT]
                    strings[START, n_strings] = strings[STOP, n_strings] = np.int64(n)
                    strings[CONTINUING, n_strings] = 0
                    strings[ACTION, n_strings] = TO_COUNT_NUMBERS
                    strings[KEY, n_strings] = depths[depth, N_NUMBERS]
                    n_strings += 1
                depth -= 1
                are_objects >>= _ONE
                out_of_order >>= _ONE
                state = _AFTER_VALUE
                if depth == 0:
                    break
            elif (byte == _COMMA) & (state == _AFTER_VALUE):
                state = _KEY if is_object else _VALUE
            else:
                return _ZERO, n, n_strings, n_objects
            continue

        if state <= _KEY:
            if byte != QUOTE:
                return _ZERO, n, n_strings, n_objects
            start = at + _ONE
            next_at = depths[depth, _NEXT_AT]
            field = next_keys[next_at]
            stop = _end_of_key(block, start, field, fields, names) if field >= 0 else _ZERO
            at = stop + _ONE
            if stop == _ZERO:
                at = end_of_string(block, start)
                if at == _ZERO:
                    return _ZERO, n, n_strings, n_objects
                stop = at - _ONE
                field = _child(block, start, stop, depths[depth, _FIELD_AT], table, fields, names)
            if field >= 0:
                next_keys[next_at] = field
                depths[depth, _NEXT_AT] = field
                # If an object has a key twice, the last one counts.
                if (seen_in[field] == depths[depth, _OBJECT_AT]) | (n_members == MOST_MEMBERS):
                    return _ZERO, n, n_strings, n_objects
                seen_in[field] = depths[depth, _OBJECT_AT]
                rank = fields[field, RANK]
                if rank < depths[depth, _RANK_AT]:
                    out_of_order |= _ONE
                else:
                    depths[depth, _RANK_AT] = rank
                members[n_members, _FIRST_STRING] = n_strings
                members[n_members, _MEMBER_RANK] = rank
                n_members += 1
            elif not _may_be_passed(block, start, stop, table, fields, names):
                return _ZERO, n, n_strings, n_objects
            at = skip_space(block, at)
            if block[at] != _COLON:
                return _ZERO, n, n_strings, n_objects
            at = skip_space(block, at + _ONE)
            byte = block[at]
        elif depth:
            field = fields[depths[depth, _FIELD_AT], ELEMENT]

        if (byte == _OBJECT) | (byte == _LIST):
            if (depth == MOST_DEEP) | (field < 0):
                return _ZERO, n, n_strings, n_objects
            is_object = byte == _OBJECT
            is_element = (depth > 0) & ((are_objects & _ONE) == _ZERO)
            if may_have_loose_ids(
                fields[field, HAS_TOKENS], is_element, is_object, is_row | (depth > 0)
            ):
                return _ZERO, n, n_strings, n_objects
            at += _ONE
            depth += 1
            are_objects <<= _ONE
            out_of_order <<= _ONE
            if is_object:
                are_objects |= _ONE
                n_objects += 1
                depths[depth, _MEMBER_AT] = n_members
                depths[depth, _OBJECT_AT] = n_objects
                depths[depth, _RANK_AT] = 0
                depths[depth, _NEXT_AT] = seen_in.size + field
            else:
                depths[depth, N_NUMBERS:] = 0
            depths[depth, _FIELD_AT] = field
            state = _FIRST_KEY if is_object else _FIRST_VALUE
            continue
        first = n
        if byte == QUOTE:
            if field < 0:
                return _ZERO, n, n_strings, n_objects
            use = fields[field, USE]
            if (use != READ) & (use != COUNT_TOGETHER) & (fields[field, NAMES] == 0):
                behind = _end_of_label(block, at + _ONE)
                if behind != _ZERO:
                    if behind - at > np.uint64(2):
                        status[line] = WITH_STRINGS
                        marks[line, 0] |= marks_of[field, 0]
                        marks[line, 1] |= marks_of[field, 1]
                    at = behind
                    state = _AFTER_VALUE
                    continue
            at, n, n_continuing = read_string(block, at + _ONE, text, first)
            if at == _ZERO:
                return _ZERO, n, n_strings, n_objects
        else:
            start, n_continuing = at, 0
            at = end_of_scalar(block, at)
            if at == _ZERO:
                return _ZERO, n, n_strings, n_objects
            if (are_objects & _ONE) == _ZERO:
                code = code_of(block, start, at)
                has_tokens = fields[depths[depth, _FIELD_AT], HAS_TOKENS] > 0
                if (code < 0) & has_tokens and is_fraction(block, start, at):
                    return _ZERO, n, n_strings, n_objects
                count_code(code, depths, depth)
            elif (field >= 0) and fields[field, HOLDS_ANSWER] and (byte != _NULL):
                n = copy_plain_scalar(block, start, at, text, first)
                if n == _ZERO:
                    return _ZERO, n, n_strings, n_objects
        if n > first:
            if byte == QUOTE:
                status[line] = WITH_STRINGS
            if n_strings - first_string == MOST_STRINGS:
                return _ZERO, n, n_strings, n_objects
            if fields[field, IS_DECODED] and may_be_json(text, first, n):
                action = TO_DECODE
            else:
                action = action_on(text, first, n, fields[field, USE], fields[field, NAMES])
                marks[line, 0] |= marks_of[field, 0]
                marks[line, 1] |= marks_of[field, 1]
            if action != TO_SKIP:
                strings[FIELD, n_strings] = field
                strings[START, n_strings] = np.int64(first)
                strings[STOP, n_strings] = np.int64(n)
                strings[CONTINUING, n_strings] = n_continuing
                strings[ACTION, n_strings] = action
                is_short = action == TO_COUNT_WORDS
                sign = words_in(text, first, n) if is_short else key_of(text, first, n)
                strings[KEY, n_strings] = sign
                n_strings += 1
            if action == TO_NOTE:
                _keep_name(text, strings, n_strings - 1, free)
            if action >= TO_NOTE:
                n = first
            else:
                text[n] = text[n + _ONE] = LINE_BREAK  # before the next part of a document
                n += np.uint64(2)
        state = _AFTER_VALUE
    at = skip_space(block, at)
    if block[at] != LINE_BREAK:
        return _ZERO, n, n_strings, n_objects
    return at + _ONE, n, n_strings, n_objects


@entry(compile_seconds=1.5, steps=lambda _block, n_bytes, *_: n_bytes)
def read_lines(
    block: Bytes,
    n_bytes: int,
    roots: Integers,
    is_row: bool,
    table: Integers,
    fields: Table,
    names: Bytes,
    marks_of: Words64,
    text: Bytes,
    strings: Table,
    status: Bytes,
    line_starts: Integers,
    marks: Words64,
) -> int:
    """Write the strings of every line, and its status; return the number of strings.

    `roots`: the field of the value in each line; of rows it is an object. `marks_of` fields are
    collected in `marks` of lines. `status` and `marks` are 0.

    Two line breaks follow each string that is kept: most documents stand in the text as they are.
    Names are at its end. The bytes of strings that are only counted are not kept.
    """
    seen_in = filled(fields.shape[0], -1)  # the last object with each field
    # Of each field the one that comes behind it in an object, and the first one in the object.
    next_keys = filled(2 * fields.shape[0], -1)
    depths = np.empty((MOST_DEEP + 1, N_OF_CONTAINER), np.int64)
    members = np.empty((MOST_MEMBERS, 2), np.int64)
    copy = np.empty((N_OF_STRING, MOST_STRINGS), np.int64)
    at = _ZERO
    end = np.uint64(n_bytes)
    n = _ZERO
    free = np.full(1, n_bytes + PADDING - 8)  # all of the text before it
    n_strings = n_objects = np.int64(0)
    line = 0
    line_starts[0] = 0
    while at < end:
        behind, stop, n_after, n_objects = _read_line(
            block,
            at,
            roots[line],
            is_row,
            table,
            fields,
            names,
            marks_of,
            seen_in,
            next_keys,
            depths,
            members,
            copy,
            text,
            n,
            free,
            strings,
            n_strings,
            n_objects,
            line,
            status,
            marks,
        )
        if behind != _ZERO:
            n = stop
            for string in range(n_strings, n_after):
                strings[LINE, string] = line
            n_strings = n_after
        else:
            status[line] = UNUSUAL
            marks[line, 0] = marks[line, 1] = 0
            behind = at
            while block[behind] != LINE_BREAK:
                behind += _ONE
            behind += _ONE
        at = behind
        line += 1
        line_starts[line] = np.int64(min(at, end))
    return int(n_strings)
