"""Split a text into words, and align the words of a question with those of a document.

An alignment is worth the words that are equal and in order, less a cost for each word of the
document between them. The one that is worth most is found exactly, as the best path through a table
with a row for each word of the question and a column for each word of the document.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from decon_core.kernels.arrays import (
    NONE,
    Bytes,
    Flags,
    Integers,
    Numbers,
    Table,
    Words64,
    filled,
    n_same,
)
from decon_core.kernels.hashing import BASE, ZERO, mixed, next_slot, scaled
from decon_core.kernels.jit import inlined, kernel

# Worth and costs in hundredths.
WORTH, WORTH_OF_STOP_WORD = 100, 40
_SHARE_ALONE = 70  # share of the worth of a word whose neighbours differ
_COST_OF_OTHER_WORD = 22  # cost of a word of the document between two that the question has

# Cells of a table: a question of more words than its root is aligned within a band.
_MOST_CELLS = 1 << 22
_NARROWEST = 64  # columns

# What a character is, as bits.
SEPARATOR, ALONE, SPACE, NEW_LINE, OPENS_SENTENCE, VOICING_MARK = 1, 2, 4, 8, 16, 32
_ENDS_WORD = SEPARATOR | ALONE
# What a word is, as bits.
IS_NAME, IS_OTHER = 1, 2  # other than letters and signs of ASCII

_FIRST_SHOWN, _LAST_SHOWN = 0x20, 0x7E
_UPPER_A, _UPPER_Z, _TO_LOWER = 0x41, 0x5A, 0x20

# How the best alignment up to a cell was reached, and how the words of the cell are in a run.
_SKIP_OF_QUESTION, _SKIP_OF_DOCUMENT, _EQUAL, _NOTHING = 0, 1, 2, 3
_MOVES, _IS_RUN, _CONTINUES_RUN = 3, 4, 8
_RUNS = _IS_RUN | _CONTINUES_RUN
_NEVER = -(1 << 40)

# Columns of what `compare` counts.
N_FOUND, WEIGHT_FOUND, OWN_FOUND, LONGEST, N_INSERTED = range(5)
N_NUMBERS_FOUND, N_NUMBERS_CHANGED, N_NAMES_FOUND, N_NAMES_CHANGED = range(5, 9)
N_COUNTS = 9
ITEM, DOCUMENT, SIZE = range(3)  # columns of blocks


class Questions(NamedTuple):
    """The words of all questions, one after the other."""

    keys: Words64
    is_number: Flags
    is_name: Flags
    weights: Numbers
    own_weights: Numbers  # 0 for words that other items have, too
    worth: Bytes


class Words(NamedTuple):
    """The words of a document."""

    keys: Words64
    is_number: Flags
    is_name: Flags


class Place(NamedTuple):
    """A question, and where it is looked for: words of all questions, then of a document."""

    first: int
    last: int
    start: int  # what may belong to the question
    stop: int
    span_start: int  # a part of this does
    span_stop: int


# Words --------------------------------------------------------------------------------------------


@kernel
def cut_words(
    characters: Numbers,
    classes: Bytes,
    starts: Integers,
    stops: Integers,
    keys: Words64,
    is_a: Bytes,
) -> int:
    """Return the number of words, having entered where each begins and ends, its key and kind.

    The key of a word is a hash of its lower case; of others than those of ASCII it is not set.
    """
    n, at, size = 0, 0, characters.size
    while at < size:
        of_character = _class_of(characters[at], classes)
        if of_character & SEPARATOR:
            at += 1
            continue
        start = at
        is_other = False
        is_alone = of_character & ALONE
        digest = ZERO
        while at < size:
            character = characters[at]
            of_character = _class_of(character, classes)
            goes_on = of_character & VOICING_MARK if is_alone else not of_character & _ENDS_WORD
            if at > start and not goes_on:
                break
            is_other |= character < _FIRST_SHOWN or character > _LAST_SHOWN
            if _UPPER_A <= character <= _UPPER_Z:
                character += np.uint32(_TO_LOWER)
            digest = digest * BASE + np.uint64(character) + np.uint64(1)
            at += 1
        starts[n], stops[n], keys[n] = start, at, mixed(digest)
        is_capital = _UPPER_A <= characters[start] <= _UPPER_Z and at - start > 1
        is_name = is_capital and not _begins_sentence(characters, start, classes)
        is_a[n] = IS_NAME * is_name + IS_OTHER * is_other
        n += 1
    return n


@kernel
def key_of(characters: Numbers) -> np.uint64:
    """Return the key of a word in lower case, as `cut_words` gives it."""
    digest = ZERO
    for at in range(characters.size):
        digest = digest * BASE + np.uint64(characters[at]) + np.uint64(1)
    return mixed(digest)


@inlined
def _class_of(character: int, classes: Bytes) -> int:
    return np.int64(classes[character]) if character < classes.size else 0


@kernel
def _begins_sentence(characters: Numbers, at: int, classes: Bytes) -> bool:
    """Return whether a sentence may begin here: the same as `begins_sentence` of segments."""
    while at:
        before = _class_of(characters[at - 1], classes)
        if before & NEW_LINE:
            return True
        if not before & SPACE:
            return before & OPENS_SENTENCE != 0
        at -= 1
    return True


# Alignment ----------------------------------------------------------------------------------------


@kernel
def align(
    keys: Words64,
    worth: Bytes,
    document: Words64,
    start: int,
    stop: int,
    span_start: int,
    span_stop: int,
    shift: int,
    width: int,
) -> Table:
    """Return the blocks of the best alignment with a range of a document's words.

    It overlaps the span. Within a band of this width the word of the document that stands for one
    of the question is looked for: at first beside it, if moved by the shift, then beside where the
    best alignment so far has come to.
    """
    present, last_places, earlier = _present(keys, document, start, stop)
    n_present, size = present.size, stop - start
    width = min(width, size + 1)
    moves = np.zeros(n_present * width, np.uint8)  # a row is the one before but for equal words
    first_column = np.empty(n_present, np.int64)
    # The best up to a column, and what ends with its two words, if these are of this or last row.
    best = filled(size + 1, 0)
    alone, run = filled(size + 1, _NEVER), filled(size + 1, _NEVER)
    row_of = filled(size + 1, n_present)  # none
    most, last_row, last_column = 0, -1, -1
    highest = left_column = 0
    reach = width - 1  # the last column of the band
    for row in range(n_present):
        at = present[row]
        value_of_word = np.int64(worth[at])
        of_word_before = np.int64(worth[at - 1]) if at else 0
        is_next = row > 0 and present[row - 1] == at - 1
        wanted_column = min(at + shift - start - width // 2, size + 1 - width)
        left_column = max(left_column, wanted_column)
        first_column[row] = left_column
        last_reach, reach = reach, left_column + width - 1
        of_row = row * width - left_column - 1
        # From right to left, so that the columns before are still those of the row before.
        most_before, highest_before = most, highest
        place = last_places[row]
        while place >= start + left_column:
            column = place - start + 1
            if column <= reach:
                before_alone = before_run = _NEVER
                if row_of[column - 1] == row - 1:
                    before_alone, before_run = alone[column - 1], run[column - 1]
                new_alone, new_run = _NEVER, _NEVER
                if best[column - 1] > 0 or place < span_stop:
                    new_alone = best[column - 1] + _SHARE_ALONE * value_of_word // 100
                from_alone = before_alone + (100 - _SHARE_ALONE) * of_word_before // 100
                if is_next:
                    new_run = max(before_run, from_alone) + value_of_word
                reached = max(new_alone, new_run)
                alone[column], run[column], row_of[column] = new_alone, new_run, row
                move = _IS_RUN if new_run >= new_alone else 0
                move |= _CONTINUES_RUN if before_run >= from_alone else 0
                if reached > 0 and reached >= best[column]:
                    best[column] = reached
                    move |= _EQUAL
                moves[of_row + column] = move
                _spread(best, column, reach, moves, of_row)
                if reached > highest_before and reached >= highest:
                    highest, shift = reached, place - at
                if reached > most_before and reached >= most and place >= span_start:
                    most, last_row, last_column = reached, row, column
            place = earlier[place - start]
        if left_column < last_reach < reach:
            _spread(best, last_reach, reach, moves, of_row)
    return _blocks(present, moves, first_column, width, start, last_row, last_column)


@inlined
def _spread(best: Integers, column: int, reach: int, moves: Bytes, of_row: int) -> None:
    """Enter where the best up to a column, with words of the document behind it, is better."""
    value = best[column] - _COST_OF_OTHER_WORD
    while column < reach and value > best[column + 1]:
        column += 1
        best[column] = value
        moves[of_row + column] = moves[of_row + column] & _RUNS | _SKIP_OF_DOCUMENT
        value -= _COST_OF_OTHER_WORD


@kernel
def _present(
    keys: Words64, document: Words64, start: int, stop: int
) -> tuple[Integers, Integers, Integers]:
    """Return which words of a question are in a range of a document, and the last place of each.

    Also returns for each place in the range the one before it with the same word, or `NONE`.
    """
    n_slots = 2 * (stop - start) + 1
    places = filled(n_slots, NONE)
    earlier = np.empty(stop - start, np.int64)
    for place in range(start, stop):
        slot = _slot_of(document[place], document, places)
        earlier[place - start] = places[slot]
        places[slot] = place
    present, last_places = np.empty(keys.size, np.int64), np.empty(keys.size, np.int64)
    n = 0
    for at in range(keys.size):
        slot = _slot_of(keys[at], document, places)
        if places[slot] != NONE:
            present[n], last_places[n] = at, places[slot]
            n += 1
    return present[:n], last_places[:n], earlier


@inlined
def _slot_of(key: np.uint64, document: Words64, places: Integers) -> int:
    """Return the slot with a place of a word, or the free one for it."""
    slot = scaled(key, places.size)
    while places[slot] != NONE and document[places[slot]] != key:
        slot = next_slot(slot, places.size)
    return slot


@kernel
def _blocks(
    present: Integers,
    moves: Bytes,
    first_column: Integers,
    width: int,
    start: int,
    row: int,
    column: int,
) -> Table:
    """Return the blocks of the path that ends with two equal words."""
    blocks = np.empty((max(row + 1, 0), 3), np.int64)
    n = 0
    in_run = row >= 0 and moves[row * width + column - first_column[row] - 1] & _IS_RUN != 0
    while row >= 0:
        item, place = present[row], start + column - 1
        if n and blocks[n - 1, ITEM] == item + 1 and blocks[n - 1, DOCUMENT] == place + 1:
            blocks[n - 1, ITEM], blocks[n - 1, DOCUMENT] = item, place
            blocks[n - 1, SIZE] += 1
        else:
            blocks[n, ITEM], blocks[n, DOCUMENT], blocks[n, SIZE] = item, place, 1
            n += 1
        continues = moves[row * width + column - first_column[row] - 1] & _CONTINUES_RUN != 0
        row, column = row - 1, column - 1
        if in_run:
            in_run = continues
            continue
        # Back to where the best up to here ends with two equal words.
        while row >= 0:
            in_row = column - first_column[row] - 1
            move = _SKIP_OF_QUESTION if in_row < 0 else _NOTHING  # beside the band
            if 0 <= in_row < width - 1:
                move = moves[row * width + in_row]
            if move & _MOVES == _SKIP_OF_QUESTION:
                row -= 1
            elif move & _MOVES == _SKIP_OF_DOCUMENT:
                column -= 1
            elif move & _MOVES == _EQUAL:
                in_run = move & _IS_RUN != 0
                break
            else:
                row = -1
    return blocks[:n][::-1].copy()


@kernel
def compare(questions: Questions, words: Words, where: Place) -> tuple[Table, Integers]:
    """Compare a question with what stands around a span of a document's words.

    Returns the blocks of equal words, none if nothing of the question is there, and counts. The
    best alignment with the span shows as far as where the question would reach; so neither words
    far away are taken for those of the question, nor those of another copy near it. None is better
    than a whole copy, which is looked for first.
    """
    first, last, start, stop, span_start, span_stop = where
    keys, worth = questions.keys[first:last], questions.worth[first:last]
    n_words = last - first
    copy = _whole_copy(keys, words.keys, where)
    width = max(_MOST_CELLS // max(n_words, 1), _NARROWEST)
    at, end = span_start, min(span_stop, span_start + width - 1)
    shift = at
    blocks = np.empty((1, 3), np.int64)
    blocks[0, ITEM], blocks[0, DOCUMENT], blocks[0, SIZE] = 0, copy, n_words
    for more in (n_words // 4, 1, 0):
        if copy != NONE:
            break
        blocks = align(keys, worth, words.keys, at, end, span_start, span_stop, shift, width)
        n = blocks.shape[0]
        if n == 0 or blocks[0, SIZE] == n_words:  # nothing, or a whole copy
            break
        shift = blocks[0, DOCUMENT] - blocks[0, ITEM]
        at = max(start, shift - more)
        end = min(stop, blocks[n - 1, DOCUMENT] + n_words - blocks[n - 1, ITEM] + more)
    counts = filled(N_COUNTS, 0)
    if blocks.shape[0]:
        _count_found(questions, first, blocks, counts)
        _count_changed(questions, words, where, blocks, counts)
    return blocks, counts


@kernel
def _whole_copy(keys: Words64, document: Words64, where: Place) -> int:
    """Return where all words of a question follow each other, most of them in a span, or `NONE`."""
    n = keys.size
    first = max(where.start, where.span_start - n // 2)
    last = min(where.stop - n, where.span_stop - (n - n // 2))
    for place in range(first, last + 1):
        if n and n_same(keys, 0, document, place, n) == n:
            return place
    return NONE


@kernel
def compare_all(questions: Questions, words: Words, places: Table) -> tuple[Table, Integers, Table]:
    """Compare questions with places, the rows of a table.

    Returns the blocks of all, where those of each begin, and a row of counts for each.
    """
    n_places = places.shape[0]
    blocks = np.empty((2 * n_places + 1, 3), np.int64)
    edges = filled(n_places + 1, 0)
    counts = np.empty((n_places, N_COUNTS), np.int64)
    n = 0
    for number in range(n_places):
        first, last, start, stop, span_start, span_stop = places[number]
        where = Place(first, last, start, stop, span_start, span_stop)
        found, counted = compare(questions, words, where)
        if n + found.shape[0] > blocks.shape[0]:
            more = np.empty((2 * blocks.shape[0] + found.shape[0], 3), np.int64)
            more[:n] = blocks[:n]
            blocks = more
        blocks[n : n + found.shape[0]] = found
        counts[number] = counted
        n += found.shape[0]
        edges[number + 1] = n
    return blocks[:n], edges, counts


@inlined
def _count_found(questions: Questions, first: int, blocks: Table, counts: Integers) -> None:
    for number in range(blocks.shape[0]):
        size = blocks[number, SIZE]
        counts[N_FOUND] += size
        counts[LONGEST] = max(counts[LONGEST], size)
        for at in range(first + blocks[number, ITEM], first + blocks[number, ITEM] + size):
            counts[WEIGHT_FOUND] += np.int64(questions.weights[at])
            counts[OWN_FOUND] += np.int64(questions.own_weights[at])
            counts[N_NUMBERS_FOUND] += np.int64(questions.is_number[at])
            counts[N_NAMES_FOUND] += np.int64(questions.is_name[at])


@inlined
def _count_changed(
    questions: Questions, words: Words, where: Place, blocks: Table, counts: Integers
) -> None:
    """Count the words that replace the question's words that were not found.

    Before and after what was found, the nearest words replace each other, in order. The first
    word of the question is left out: it may be its number in a list.
    """
    first, last, start, stop, _, _ = where
    new_names = np.empty((last - first, 2), np.uint64)
    n_names = 0
    for number in range(-1, blocks.shape[0]):
        if number < 0:
            after, place_after = blocks[0, ITEM], blocks[0, DOCUMENT]
            n_before = min(max(0, after - 1), place_after - start)
            at, place = after - n_before, place_after - n_before
        else:
            at = blocks[number, ITEM] + blocks[number, SIZE]
            place = blocks[number, DOCUMENT] + blocks[number, SIZE]
            if number + 1 < blocks.shape[0]:
                after, place_after = blocks[number + 1, ITEM], blocks[number + 1, DOCUMENT]
            else:
                n_after = min(last - first - at, stop - place)
                after, place_after = at + n_after, place + n_after
        n_lost, n_put = after - at, place_after - place
        counts[N_INSERTED] += max(0, n_put - n_lost)
        n_numbers_lost = n_numbers_put = 0
        for step in range(n_lost):
            n_numbers_lost += np.int64(questions.is_number[first + at + step])
        for step in range(n_put):
            n_numbers_put += np.int64(words.is_number[place + step])
        counts[N_NUMBERS_CHANGED] += min(n_numbers_lost, n_numbers_put)
        if n_lost != n_put:
            continue
        for step in range(n_lost):
            old, new = questions.keys[first + at + step], words.keys[place + step]
            known = 0
            while known < n_names and new_names[known, 0] != old:
                known += 1
            if known < n_names:
                counts[N_NAMES_CHANGED] += np.int64(new_names[known, 1] == new)
            elif questions.is_name[first + at + step] and words.is_name[place + step]:
                new_names[n_names, 0], new_names[n_names, 1] = old, new
                n_names += 1
                counts[N_NAMES_CHANGED] += 1
