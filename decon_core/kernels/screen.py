"""Documents as bytes to those few that may share a run of tokens with a text, or hold all of it.

Whoever shares eight tokens shares their bytes. Of the bytes of every such n-gram one window of a
few is kept, its anchor; a document in which no anchor stands among the bytes of its n-gram shares
none, and need not be tokenized. Twin: `bytes.find`.

Anchors begin where a word does, or at a sign, a digit, a letter beyond ASCII; so not every byte of
a document is looked at. Where none of that is near, in a long run of letters or spaces, every place
may be the first one of an anchor.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from decon_core.kernels.jit import inlined, kernel

Bytes = npt.NDArray[np.uint8]
Words64 = npt.NDArray[np.uint64]
Numbers = npt.NDArray[np.uint32]
Integers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.uint8]

NONE = -1

# Sizes of windows: the longer one says more, the shorter one is for strings with no room for it.
LONG, SHORT = 16, 8
SPARE = 24  # bytes behind the last one that are read with it

# Kinds of bytes: within a character; a letter of a word; white space; all others.
_INSIDE, _LETTER, _SPACE, _SIGN = 0, 1, 2, 3
# Whether an anchor may begin here: never; if the byte before is known not to be a letter; always.
_NEVER, _BEHIND, _ALWAYS = 0, 1, 2


class Texts(NamedTuple):
    """What is looked for: texts one after the other, with bytes to spare behind the last."""

    data: Bytes
    offsets: Integers
    token_offsets: Integers  # the tokens of each text; a text that is looked for whole has none
    token_starts: Integers  # the bytes of each token, counted through all texts
    token_stops: Integers


class Anchors(NamedTuple):
    """Windows of one size, and where in the texts each stands for something."""

    filter: Words64  # two bits for every window
    slots: Words64  # half of a window's digest, and its number, from 1
    first: Integers  # where each window first stands
    gram_offsets: Integers
    gram_places: Integers  # where it stands for an n-gram
    whole_offsets: Integers
    whole_places: Integers  # where it stands for a whole text


_A = np.uint64(0xD6E8FEB86659FD93)
_B = np.uint64(0x9E3779B97F4A7C15)
_HALF = np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)
_SIX = np.uint64(6)
_SIX_BITS = np.uint64(63)
_ONE = np.uint64(1)
_ZERO = np.uint64(0)
_HIGH = _LOW << _HALF
_TOP_BITS = np.uint64(62)  # digests below a quarter of all are small


@kernel
def _eight(eights: Words64, at: int) -> np.uint64:
    """The eight bytes from a place on."""
    shift = np.uint64(8 * (at & 7))
    low = eights[at >> 3] >> shift
    return low | (eights[(at >> 3) + 1] << _ONE) << (_SIX_BITS - shift)


@kernel
def _digest(eights: Words64, at: int, size: int) -> np.uint64:
    """Of a window of eight or sixteen bytes."""
    digest = _eight(eights, at) * _A
    if size == LONG:
        digest += _eight(eights, at + 8) * _B
    digest = (digest ^ (digest >> _HALF)) * _B
    return digest ^ (digest >> _HALF)


@kernel
def _scaled(digest: np.uint64, n: int) -> int:
    """A place among n, by the lower half: an anchor has a small digest, by the upper one."""
    return np.int64(((digest & _LOW) * np.uint64(n)) >> _HALF)


@kernel
def _filter_place(digest: np.uint64, n: int) -> int:
    """Three quarters of the filter are for small digests, which most anchors have and few others.

    So most of what is looked up comes to a part that is nearly empty.
    """
    n_large = n >> 2
    if digest >> _TOP_BITS:
        return _scaled(digest, n_large)
    return n_large + _scaled(digest, n - n_large)


@kernel
def _filter_bits(digest: np.uint64) -> np.uint64:
    return _ONE << (digest & _SIX_BITS) | _ONE << ((digest >> _SIX) & _SIX_BITS)


@kernel
def _kind(byte: int) -> int:
    if byte >= 0x80:
        return _SIGN if byte >= 0xC0 else _INSIDE
    if ord("a") <= byte | 0x20 <= ord("z"):
        return _LETTER
    return _SPACE if byte == ord(" ") else _SIGN


@kernel
def _is_same(data: Bytes, at: int, other: Bytes, other_at: int, size: int) -> bool:
    step = 0
    while step < size and data[at + step] == other[other_at + step]:
        step += 1
    return step == size


# Made once ----------------------------------------------------------------------------------------


@kernel
def mark_beginnings(data: Bytes, offsets: Integers, marks: Flags) -> None:
    """Where in the texts an anchor may begin."""
    for text in range(offsets.size - 1):
        at = offsets[text]
        while at < offsets[text + 1]:
            kind = _kind(data[at])
            stop = at + 1
            if kind in (_LETTER, _SPACE):
                while stop < offsets[text + 1] and _kind(data[stop]) == kind:
                    stop += 1
                for inner in range(at, stop):
                    marks[inner] = _ALWAYS if inner + SHORT <= stop else _NEVER
                if kind == _LETTER and not marks[at]:
                    marks[at] = _BEHIND
            else:
                marks[at] = _ALWAYS if kind == _SIGN else _NEVER
            at = stop


@kernel
def choose_anchors(
    eights: Words64, marks: Flags, starts: Integers, stops: Integers, size: int, places: Integers
) -> None:
    """The window of the least digest in each range of bytes, `NONE` where none may be chosen.

    Ranges that overlap mostly have the same one, so there are few different ones.
    """
    for number in range(starts.size):
        places[number] = NONE
        least = _ZERO
        for at in range(starts[number], stops[number] - size + 1):
            if marks[at] == _ALWAYS or (marks[at] == _BEHIND and at > starts[number]):
                digest = _digest(eights, at, size)
                if places[number] == NONE or digest < least:
                    places[number], least = at, digest


@kernel
def enter_windows(
    data: Bytes,
    eights: Words64,
    places: Integers,
    size: int,
    in_filter: Words64,
    slots: Words64,
    first: Integers,
    numbers: Numbers,
) -> int:
    """Number the different windows at these places; how many there are."""
    n = 0
    for at in range(places.size):
        digest = _digest(eights, places[at], size)
        in_filter[_filter_place(digest, in_filter.size)] |= _filter_bits(digest)
        slot = _scaled(digest, slots.size)
        while slots[slot]:
            if slots[slot] & _HIGH == digest & _HIGH:
                known = first[np.int64(slots[slot] & _LOW) - 1]
                if _is_same(data, places[at], data, known, size):
                    break
            slot += 1
            if slot == slots.size:
                slot = 0
        if not slots[slot]:
            first[n] = places[at]
            n += 1
            slots[slot] = digest & _HIGH | np.uint64(n)
        numbers[at] = np.uint32(slots[slot] & _LOW) - np.uint32(1)
    return n


# For every document -------------------------------------------------------------------------------


@inlined
def _window_at(
    data: Bytes, at: int, digest: np.uint64, size: int, anchors: Anchors, texts: Texts
) -> int:
    slot = _scaled(digest, anchors.slots.size)
    while anchors.slots[slot]:
        if anchors.slots[slot] & _HIGH == digest & _HIGH:
            number = np.int64(anchors.slots[slot] & _LOW) - 1
            if _is_same(data, at, texts.data, anchors.first[number], size):
                return number
        slot += 1
        if slot == anchors.slots.size:
            slot = 0
    return NONE


@kernel
def _first_above(numbers: Integers, start: int, stop: int, value: int) -> int:
    while start < stop:
        middle = (start + stop) // 2
        if numbers[middle] <= value:
            start = middle + 1
        else:
            stop = middle
    return start


@inlined
def _shares_gram(
    data: Bytes, start: int, stop: int, at: int, place: int, texts: Texts, n_tokens: int
) -> bool:
    """Whether the bytes around a window agree as far as an n-gram of the text reaches."""
    text = _first_above(texts.offsets, 0, texts.offsets.size, place) - 1
    low = high = 0
    while at - low > start and place - low > texts.offsets[text]:
        if data[at - low - 1] != texts.data[place - low - 1]:
            break
        low += 1
    while at + high < stop and place + high < texts.offsets[text + 1]:
        if data[at + high] != texts.data[place + high]:
            break
        high += 1
    first, last = texts.token_offsets[text], texts.token_offsets[text + 1]
    token = _first_above(texts.token_starts, first, last, place - low - 1)
    return token + n_tokens <= last and texts.token_stops[token + n_tokens - 1] <= place + high


@kernel
def _may_hold(in_filter: Words64, digest: np.uint64) -> bool:
    bits = _filter_bits(digest)
    return in_filter[_filter_place(digest, in_filter.size)] & bits == bits


@inlined
def _use_window(
    data: Bytes,
    document: int,
    start: int,
    stop: int,
    at: int,
    digest: np.uint64,
    size: int,
    anchors: Anchors,
    texts: Texts,
    n_tokens: int,
    shares: Flags,
    found: Integers,
    n_found: int,
) -> int:
    """Look whether what a window stands for is there; how many texts were found by now."""
    window = _window_at(data, at, digest, size, anchors, texts)
    if window == NONE:
        return n_found
    if n_tokens and not shares[document]:
        for use in range(anchors.gram_offsets[window], anchors.gram_offsets[window + 1]):
            place = anchors.gram_places[use]
            if _shares_gram(data, start, stop, at, place, texts, n_tokens):
                shares[document] = 1
                break
    for use in range(anchors.whole_offsets[window], anchors.whole_offsets[window + 1]):
        place = anchors.whole_places[use]
        text = _first_above(texts.offsets, 0, texts.offsets.size, place) - 1
        begin = at - (place - texts.offsets[text])
        length = texts.offsets[text + 1] - texts.offsets[text]
        if begin < start or begin + length > stop:
            continue
        if _is_same(data, begin, texts.data, texts.offsets[text], length):
            if n_found < found.shape[0]:
                found[n_found, 0], found[n_found, 1] = document, begin
                found[n_found, 2] = text
            n_found += 1
    return n_found


@kernel
def screen(
    data: Bytes,
    eights: Words64,
    starts: Integers,
    stops: Integers,
    first_document: int,
    long: Anchors,
    short: Anchors,
    texts: Texts,
    n_tokens: int,
    shares: Flags,
    found: Integers,
) -> tuple[int, int]:
    """Which documents share an n-gram of `n_tokens`, and where whole texts stand in them.

    `eights` are the bytes in numbers of eight, with some to spare. 0 tokens: only whole texts are
    looked for. Columns of `found`: document, place, text. Returns how many there are and the
    document to go on with, when `found` is full.
    """
    n_found = 0
    # An array out of a tuple is counted as used at every look.
    long_filter, short_filter = long.filter, short.filter
    for document in range(first_document, starts.size):
        start, stop = starts[document], stops[document]
        n_before = n_found
        at = start
        while at <= stop - SHORT:
            kind = _kind(data[at])
            if kind == _INSIDE:
                at += 1
                continue
            # One place, or all those of a run of letters or spaces that have room for a window.
            end = at + 1
            last = at
            if kind != _SIGN:
                while end < stop and _kind(data[end]) == kind:
                    end += 1
                last = end - SHORT
                if kind == _LETTER:
                    last = max(last, at)
            for place in range(at, last + 1):
                digest = _digest(eights, place, LONG)
                if _may_hold(long_filter, digest) and place + LONG <= stop:
                    n_found = _use_window(
                        data,
                        document,
                        start,
                        stop,
                        place,
                        digest,
                        LONG,
                        long,
                        texts,
                        n_tokens,
                        shares,
                        found,
                        n_found,
                    )
                digest = _digest(eights, place, SHORT)
                if _may_hold(short_filter, digest):
                    n_found = _use_window(
                        data,
                        document,
                        start,
                        stop,
                        place,
                        digest,
                        SHORT,
                        short,
                        texts,
                        n_tokens,
                        shares,
                        found,
                        n_found,
                    )
            at = end
        if n_found > found.shape[0]:
            return n_before, document
    return n_found, starts.size


# The same for canonical tokens --------------------------------------------------------------------


@kernel
def _token_digest(tokens: Numbers, at: int, size: int) -> np.uint64:
    digest = _ZERO
    for step in range(size):
        digest = digest * _A + np.uint64(tokens[at + step]) * _B
    digest = (digest ^ (digest >> _HALF)) * _B
    return digest ^ (digest >> _HALF)


@kernel
def _pair_place(first: np.uint32, second: np.uint32, n_bits: int) -> int:
    return _scaled(((np.uint64(first) * _A + np.uint64(second)) * _B) >> _HALF, n_bits)


@kernel
def enter_token_grams(
    tokens: Numbers, offsets: Integers, size: int, pairs: Flags, in_filter: Words64
) -> None:
    """All n-grams of all texts into a filter, and which two tokens follow each other in them."""
    for text in range(offsets.size - 1):
        for at in range(offsets[text], offsets[text + 1] - size + 1):
            for pair in range(at, at + size - 1):
                pairs[_pair_place(tokens[pair], tokens[pair + 1], pairs.size)] = 1
            digest = _token_digest(tokens, at, size)
            in_filter[_scaled(digest, in_filter.size)] |= _filter_bits(digest)


@kernel
def screen_tokens(
    tokens: Numbers,
    offsets: Integers,
    size: int,
    pairs: Flags,
    in_filter: Words64,
    shares: Flags,
) -> None:
    """Which documents may share an n-gram: never lets one go that does."""
    for document in range(offsets.size - 1):
        start, stop = offsets[document], offsets[document + 1]
        n_pairs = 0
        for at in range(start + 1, stop):
            n_pairs += 1
            n_pairs *= np.int64(pairs[_pair_place(tokens[at - 1], tokens[at], pairs.size)])
            if n_pairs < size - 1:
                continue
            digest = _token_digest(tokens, at - size + 1, size)
            bits = _filter_bits(digest)
            if in_filter[_scaled(digest, in_filter.size)] & bits == bits:
                shares[document] = 1
                break
