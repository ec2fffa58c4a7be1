"""Texts to tokens, without tokenizing: a word that was seen before is looked up.

Canonical text is words between single spaces, and most tokenizers never join two of them. So the
ids of a word do not depend on its neighbours: one compiled pass over the bytes cuts, lower-cases
and looks up words, and only new ones are handed to the tokenizer. Whether a tokenizer keeps words
apart is tried when it is loaded; one that does not is given whole texts, which takes longer.
"""

from __future__ import annotations

import logging
import mmap
import sys
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from decon_core.kernels import word_stream
from decon_core.kernels.arrays import alloc_array
from decon_core.text.canonical import (
    WHITE_SPACE,
    Canonical,
    canonical,
    canonical_with_offsets,
    clean_with_offsets,
)
from decon_core.text.characters import Form
from decon_core.text.look_alikes import normalize_batch
from decon_core.text.markup import Stripper, stripped_with_offsets
from decon_core.text.tokenizers import Tokenizer, flat

Bytes = npt.NDArray[np.uint8]
Integers = npt.NDArray[np.int64]
Tokens = npt.NDArray[np.uint32]
Classes = tuple[Bytes, npt.NDArray[np.int32]]

_log = logging.getLogger(__name__)

_MOST_LISTED_IDS = 1 << 22
UNKNOWN = 0  # a token that no record holds; known ones are numbered from 1

# New words that are tokenized together. More makes no difference to the rate.
_ROUND_WORDS = 1 << 14
_ROUND_BYTES = 1 << 20
_ROUND_PATCHES = 1 << 16
_FIRST_SLOTS = 1 << 16
_STRETCH_BYTES = 1 << 17  # of text whose words are cut together: the processor's cache holds them
# A slot: key and value, the bytes of a long word, some tokens.
_BYTES_PER_SLOT = 8 * word_stream.NUMBERS + word_stream.LONGEST_KEPT + 8
_FEWEST_SLOTS = 1 << 10
_MOST_TOKENS_PER_SLOT = 2
_HUGE_PAGE = 1 << 21


class Vocabulary(Protocol):
    """Ids of a tokenizer to small numbers of our own."""

    def numbers(self, ids: Integers) -> Tokens:
        """The number of each id, `UNKNOWN` for one that has none."""


class FixedVocabulary:
    """The ids that an index holds, sorted; every other one is unknown."""

    def __init__(self, ids: Integers) -> None:
        self._ids = np.append(ids, -1)  # no id is negative: a search may end behind the last one
        n = int(ids[-1]) + 1 if ids.size else 0
        # A vocabulary's ids are few enough for a list of all; hashes of words are not.
        self._all = np.zeros(n if n <= _MOST_LISTED_IDS else 0, np.uint32)
        if self._all.size:
            self._all[ids] = np.arange(1, ids.size + 1)

    def numbers(self, ids: Integers) -> Tokens:
        if self._all.size:
            return np.where(ids < self._all.size, self._all[ids % self._all.size], UNKNOWN)
        at = np.searchsorted(self._ids[:-1], ids)
        return np.where(self._ids[at] == ids, at + 1, UNKNOWN).astype(np.uint32)


class GrowingVocabulary:
    """Numbers ids as they come: what an index is built with."""

    def __init__(self) -> None:
        self._numbers: dict[int, int] = {}

    def numbers(self, ids: Integers) -> Tokens:
        known = self._numbers
        numbered = [known.setdefault(token, len(known) + 1) for token in ids.tolist()]
        return np.array(numbered, np.uint32)

    @property
    def ids(self) -> Integers:
        return np.fromiter(self._numbers, np.int64, len(self._numbers))


@dataclass(frozen=True, eq=False)
class Ragged:
    """Rows of numbers of different lengths, one after the other."""

    values: Tokens
    offsets: Integers

    def __len__(self) -> int:
        return self.offsets.size - 1

    def row(self, at: int) -> Tokens:
        return self.values[self.offsets[at] : self.offsets[at + 1]]

    @property
    def lengths(self) -> Integers:
        return np.diff(self.offsets)

    def take(self, rows: Integers) -> Ragged:
        """These rows, in ascending order."""
        is_taken = np.zeros(len(self), np.bool_)
        is_taken[rows] = True
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(self.lengths[rows])])
        return Ragged(self.values[np.repeat(is_taken, self.lengths)], offsets)

    def only(self, is_kept: npt.NDArray[np.bool_]) -> Ragged:
        """All rows, those that are not kept without their numbers."""
        lengths = np.where(is_kept, self.lengths, 0)
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
        return Ragged(self.values[np.repeat(is_kept, self.lengths)], offsets)


@dataclass(frozen=True, eq=False)
class Places:
    """The words of a text: where each begins and ends, and the words that each token covers."""

    starts: Integers
    stops: Integers
    first_word: Integers
    last_word: Integers

    def characters(self, start: int, stop: int) -> tuple[int, int]:
        """Where the words stand that a range of tokens covers."""
        first, last = self.first_word[start], self.last_word[stop - 1]
        return int(self.starts[first]), int(self.stops[last])


def _places_of_canonical(found: Canonical) -> tuple[Integers, Integers]:
    edges = [-1, *(at for at, char in enumerate(found.text) if char == " ")]
    edges.append(len(found.text))
    words = [(start + 1, stop) for start, stop in pairwise(edges)] if found.text else []
    places = [found.original(start, stop) for start, stop in words]
    both = np.array(places, np.int64).reshape(-1, 2)
    return both[:, 0], both[:, 1]


class Encoder:
    """Turns texts into numbered tokens, as cleaning and tokenizing each by itself would."""

    def __init__(
        self, tokenizer: Tokenizer, vocabulary: Vocabulary, *, form: Form, table_mb: int
    ) -> None:
        self._tokenizer = tokenizer
        self._vocabulary = vocabulary
        self._form = form
        self._stripper = Stripper()
        self._is_separable = keeps_words_apart(tokenizer)
        self._classes = classes(form.punctuation)
        self._cutting = _Cutting()
        self._table = _WordTable(table_mb * 1_000_000 // _BYTES_PER_SLOT)
        # Of the words of the latest batch, and where those of each text begin.
        self._values = np.empty(0, np.uint64)
        self._offsets = np.zeros(1, np.int64)

    def encode(self, text: Bytes, starts: Integers, stops: Integers) -> Ragged:
        """Tokens of each stretch of a text in UTF-8."""
        if not self._is_separable:
            return self._encode_whole(text, starts, stops)
        if self._form.strip_markup:
            text, starts, stops = self._stripper.strip(text, starts, stops)
        offsets = self._values_of(text, starts, stops)
        values, table = self._values[: offsets[-1]], self._table
        token_offsets = np.zeros_like(offsets)
        room = (word_stream.MOST_NEAR + 1) * (values.size + 1)
        while True:
            tokens = alloc_array(room, np.uint32)
            if word_stream.expand(
                values, offsets, table.arena, table.passing, tokens, token_offsets
            ):
                return Ragged(tokens[: token_offsets[-1]], token_offsets)
            room *= 2

    def places(self, number: int, text: str) -> Places:
        """Where the words of a text stand in it, and which tokens belong to which word.

        The text is the one of that number in the latest batch, whose words are still at hand.
        """
        if not self._is_separable:
            return self._places_in_whole(text)
        if self._form.strip_markup:
            left = stripped_with_offsets(text)
            found = self._places_of_words(number, left.text)
            starts, stops = left.starts[found.starts], left.stops[found.stops - 1]
            return Places(starts, stops, found.first_word, found.last_word)
        return self._places_of_words(number, text)

    def _places_of_words(self, number: int, text: str) -> Places:
        start, stop = self._offsets[number], self._offsets[number + 1]
        counts = np.empty(stop - start, np.int64)
        table = self._table
        word_stream.tokens_of_words(self._values[start:stop], table.arena, table.passing, counts)
        starts, stops = self._word_places(text, counts.size)
        word = np.repeat(np.arange(counts.size), counts)
        return Places(starts, stops, word, word)

    def _word_places(self, text: str, n: int) -> tuple[Integers, Integers]:
        if "Σ" in text or "İ" in text:  # the words of the lowered text, and where they came from
            return _places_of_canonical(
                clean_with_offsets(text, punctuation=self._form.punctuation)
            )
        starts, stops = np.empty(n, np.int64), np.empty(n, np.int64)
        data = np.frombuffer(text.encode(), np.uint8)
        if word_stream.word_places(data, *self._classes, starts, stops) != n:
            raise ValueError(f"a text of other than {n} words: not the one of the latest batch")
        return starts, stops

    def _places_in_whole(self, text: str) -> Places:
        found = canonical_with_offsets(text, self._form)
        starts, stops = _places_of_canonical(found)
        # Of every character of the text with its space in front: the word that it belongs to, or
        # the one that the space leads to.
        is_space = np.frombuffer((" " + found.text).encode("utf-32-le"), np.uint32) == ord(" ")
        word_of = np.cumsum(is_space) - 1
        in_text = self._tokenizer.spans(" " + found.text) if found.text else []
        spans = np.array(in_text, np.int64).reshape(-1, 2)
        last = np.maximum(spans[:, 1] - 1, spans[:, 0])
        return Places(starts, stops, word_of[spans[:, 0]], word_of[last])

    def _values_of(self, text: Bytes, starts: Integers, stops: Integers) -> Integers:
        """Put a value for every word into `self._values`; where those of each text begin."""
        self._table.begin()
        waiting = _Waiting()
        offsets = self._offsets = np.zeros(starts.size + 1, np.int64)
        document = 0
        while document < starts.size:
            following = self._cut(text, starts, stops, document)
            if following == document:
                following = self._cut_lowered(text[starts[document] : stops[document]], document)
            first, stop = int(offsets[document]), int(offsets[following])
            if self._values.size < stop:
                self._values = _longer(self._values, 2 * stop)
            self._look_up(first, stop - first, waiting)
            document = following
        self._settle(waiting)
        return offsets

    def _cut(self, text: Bytes, starts: Integers, stops: Integers, document: int) -> int:
        """The words of some texts, from one on; which text is the next.

        It is the same when that one has letters whose lower case depends on their place.
        """
        self._cutting.make_room(int(stops[document] - starts[document]))
        return self._cutting.cut(text, starts, stops, document, self._classes, self._offsets)

    def _cut_lowered(self, text: Bytes, document: int) -> int:
        """Python lowers such a text as a whole; what is left to do is the same."""
        lowered = np.frombuffer(text.tobytes().decode().lower().encode(), np.uint8)
        offsets = self._offsets[document : document + 2]
        bounds = np.array([0, lowered.size])
        self._cutting.make_room(lowered.size)
        self._cutting.cut(lowered, bounds[:1], bounds[1:], 0, self._classes, offsets)
        return document + 1

    def _look_up(self, first: int, n_words: int, waiting: _Waiting) -> None:
        """Give the words that were cut their values, or have them wait for one."""
        word = 0
        while True:
            word = self._table.look_up(self._cutting, word, n_words, first, self._values, waiting)
            if word == n_words:
                return
            self._settle(waiting)
            self._table.make_room()

    def _settle(self, waiting: _Waiting) -> None:
        """Have the words tokenized that the table lacked."""
        if waiting.n_words:
            ids, lengths = self._encode_words(*self._table.pending_words(waiting))
            self._table.settle(waiting, self._numbered(ids, lengths), self._values)

    def _encode_words(self, text: bytes, edges: Integers) -> tuple[Integers, Integers]:
        """Ids of new words, and how many each has; one that is normalized to nothing has none."""
        if not self._form.normalize_unicode or text.isascii():
            return self._tokenizer.encode_words(text, edges)
        text, edges, n_words = normalize_batch(text, edges, punctuation=self._form.punctuation)
        ids, lengths = self._tokenizer.encode_words(text, edges)
        before = np.append(0, np.cumsum(lengths))
        return ids, np.diff(before[np.append(0, np.cumsum(n_words))])

    def _numbered(self, ids: Integers, lengths: Integers) -> Ragged:
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
        return Ragged(self._vocabulary.numbers(ids), offsets)

    def _encode_whole(self, text: Bytes, starts: Integers, stops: Integers) -> Ragged:
        texts = [
            canonical(text[start:stop].tobytes().decode(), self._form)
            for start, stop in zip(starts, stops, strict=True)
        ]
        encoded = self._tokenizer.encode([f" {cleaned}" for cleaned in texts if cleaned])
        following = iter(encoded)
        return self._numbered(*flat([next(following) if cleaned else [] for cleaned in texts]))


class _Cutting:
    """The words of a stretch of texts in lower case, one stretch after the other."""

    def __init__(self) -> None:
        self.edges = np.empty(0, np.int64)
        self.lowered = np.empty(0, np.uint8)

    def make_room(self, n_bytes: int) -> None:
        """For a text of so many bytes, at least."""
        room = word_stream.room_for(max(n_bytes, _STRETCH_BYTES)) // 8 * 8 + 8
        if self.lowered.size < room:
            # A word has two edges and at least a byte; separators may have left none.
            self.edges, self.lowered = np.empty(2 * room + 1, np.int64), np.empty(room, np.uint8)

    def cut(
        self,
        text: Bytes,
        starts: Integers,
        stops: Integers,
        document: int,
        in_classes: Classes,
        offsets: Integers,
    ) -> int:
        return word_stream.cut_words(
            text, starts, stops, document, *in_classes, self.lowered, self.edges, offsets
        )


@dataclass
class _Waiting:
    """Words that the table lacked, and what waits for them."""

    n_words: int = 0
    n_bytes: int = 0
    n_patches: int = 0


class _WordTable:
    """What was seen so far: words, and the values that stand for their tokens."""

    def __init__(self, most_slots: int) -> None:
        self._most_slots = 1 << max(most_slots, _FEWEST_SLOTS).bit_length() - 1
        self._pending_slots = np.empty(_ROUND_WORDS, np.int64)
        self._pending_offsets = np.zeros(_ROUND_WORDS + 1, np.int64)
        self._pending_bytes = np.empty(_ROUND_BYTES, np.uint8)
        self._patches = np.empty(_ROUND_PATCHES, np.int64)
        self._settled = np.empty(_ROUND_WORDS, np.uint64)
        self._forget_words()
        self._forget_tokens()

    def _forget_words(self) -> None:
        n_slots = min(_FIRST_SLOTS, self._most_slots)
        self._slots = _new_slots(word_stream.NUMBERS * n_slots)
        self._kept = np.empty(word_stream.LONGEST_KEPT * _FEWEST_SLOTS, np.uint8)
        self._n_kept = self._n_words = 0

    def _forget_tokens(self) -> None:
        self.arena = np.empty(_ROUND_WORDS, np.uint32)
        self.passing = np.empty(_ROUND_WORDS, np.uint32)
        self._n_arena = self._n_passing = 0

    def begin(self) -> None:
        """Before a batch: no value of an earlier one is in use any more."""
        self._n_passing = 0
        if self._n_arena > _MOST_TOKENS_PER_SLOT * self._most_slots:
            self._forget_words()
            self._forget_tokens()

    def look_up(
        self,
        cutting: _Cutting,
        word: int,
        n_words: int,
        first: int,
        values: npt.NDArray[np.uint64],
        waiting: _Waiting,
    ) -> int:
        """Values for words of a stretch, from one on; which one did not find room."""
        if self._pending_bytes.size < 2 * cutting.lowered.size:
            self._pending_bytes = _longer(self._pending_bytes, 2 * cutting.lowered.size)
        counts = np.array([*vars(waiting).values(), self._n_kept, self._n_words])
        word = word_stream.look_up(
            cutting.lowered,
            cutting.lowered.view(np.uint64),
            cutting.edges,
            word,
            n_words,
            first,
            counts,
            self._slots,
            self._kept,
            values,
            self._pending_slots,
            self._pending_offsets,
            self._pending_bytes,
            self._patches,
        )
        waiting.n_words, waiting.n_bytes, waiting.n_patches = counts[:3].tolist()
        self._n_kept, self._n_words = counts[3:].tolist()
        return word

    def pending_words(self, waiting: _Waiting) -> tuple[bytes, Integers]:
        """A space and a word, a space and a word; and where each begins, and the last one ends."""
        data = self._pending_bytes[: waiting.n_bytes].tobytes()
        return data, self._pending_offsets[: waiting.n_words + 1]

    def settle(self, waiting: _Waiting, tokens: Ragged, values: npt.NDArray[np.uint64]) -> None:
        """Give the pending words of a round their tokens."""
        room = tokens.values.size + waiting.n_words
        if self._n_arena + room > self.arena.size:
            self.arena = _longer(self.arena, 2 * (self._n_arena + room))
        if self._n_passing + room > self.passing.size:
            self.passing = _longer(self.passing, 2 * (self._n_passing + room))
        self._n_arena, self._n_passing = word_stream.settle(
            tokens.values,
            tokens.offsets,
            self._pending_slots[: waiting.n_words],
            self._slots,
            values,
            self._patches[: waiting.n_patches],
            self.arena,
            self._n_arena,
            self.passing,
            self._n_passing,
            self._settled,
        )
        waiting.n_words = waiting.n_bytes = waiting.n_patches = 0

    def make_room(self) -> None:
        """For some more words. Nothing may be waiting."""
        n_slots = self._slots.size // word_stream.NUMBERS
        if self._n_words >= n_slots * 3 // 4:
            if n_slots >= self._most_slots:
                self._forget_words()
                return
            larger = _new_slots(2 * word_stream.NUMBERS * n_slots)
            word_stream.rehash(self._slots, larger)
            self._slots = larger
        elif self._n_kept + word_stream.LONGEST_KEPT > self._kept.size:
            self._kept = _longer(self._kept, 2 * self._kept.size)


def _new_slots(n: int) -> npt.NDArray[np.uint64]:
    """Zeros, on huge pages where the system has them: many of them are found a tenth faster."""
    room = mmap.mmap(-1, 8 * n + _HUGE_PAGE)
    if sys.platform == "linux":
        room.madvise(mmap.MADV_HUGEPAGE)
    slots = np.frombuffer(room, np.uint64)
    first = -slots.ctypes.data % _HUGE_PAGE // 8
    return slots[first : first + n]


Number = TypeVar("Number", bound=np.generic)


def _longer(array: npt.NDArray[Number], size: int) -> npt.NDArray[Number]:
    longer = np.empty(size, array.dtype)
    longer[: array.size] = array
    return longer


@lru_cache(maxsize=8)
def classes(punctuation: str) -> Classes:
    """What becomes of each byte below 128 and of each character: its lower case, or a class."""
    separators = set(WHITE_SPACE + punctuation)
    n_points = max(_LAST_CASED, *map(ord, separators)) + 1
    characters = np.arange(n_points, dtype=np.int32)
    for point in range(n_points):
        lowered = chr(point).lower()
        if len(lowered) > 1 or chr(point) == "Σ":
            characters[point] = word_stream.WIDE_SPECIAL
        else:
            is_separator = lowered in separators
            characters[point] = word_stream.WIDE_SEPARATOR if is_separator else ord(lowered)
    plain = characters[:128]
    in_bytes = np.full(256, word_stream.NOT_ASCII, np.uint8)
    in_bytes[:128] = np.where(plain < 0, word_stream.SEPARATOR, plain)
    return in_bytes, characters


# No character above the last cased script (Adlam, today) has another lower case.
_LAST_CASED = max(point for point in range(0x20000) if chr(point).lower() != chr(point))


@lru_cache(maxsize=4)
def keeps_words_apart(tokenizer: Tokenizer) -> bool:
    """Whether a word has the same ids wherever it stands, tried with all pairs of a probe."""
    if tokenizer.joins_words():
        return _say_joining(tokenizer)
    alone = dict(zip(_PROBE, tokenizer.encode([f" {word}" for word in _PROBE]), strict=True))
    texts = [f" {first} {second}" for first in _PROBE for second in _PROBE]
    joined = tokenizer.encode([*texts, " " + " ".join(_PROBE)])
    expected = [[*alone[first], *alone[second]] for first in _PROBE for second in _PROBE]
    is_separable = joined == [*expected, [token for word in _PROBE for token in alone[word]]]
    return is_separable or _say_joining(tokenizer)


def _say_joining(tokenizer: Tokenizer) -> bool:
    _log.warning(
        "tokenizer %s joins words: whole texts are tokenized, which takes several times longer",
        tokenizer.fingerprint,
    )
    return False


# Words that a tokenizer may treat in a way of its own: parts of contractions, digits, control and
# joining characters at the edges, marks without a letter, scripts without spaces, emoji sequences.
_PROBE = (
    *("of", "in", "to", "and", "is", "it", "that", "for", "on", "new", "york"),
    *("a", "the", "don't", "'s", "'ll", "re", "12", "1234", "3.14", "a1", "1a", "x", "…", "«x»"),
    *("¿que", "--", "#", "_", "<|endoftext|>", "é", "ß", "ς", "½", "²", "Ⅷ", "𝔘", "日本語", "。"),
    *("한국어", "नमस्ते", "العربية", "ไทย", "😀", "👩\u200d👩\u200d👧", "1\ufe0f\u20e3", "﷽"),
    *("\x00", "a\x00", "\x1c", "a\x1c", "\x1fa", "\x7f", "\u200b", "a\u200b", "\ufeffa", "\xad"),
    *("\u0301", "e\u0301", "\u0301x", "i\u0307", "\u20e3", "\u2060", "\u180e"),
)
