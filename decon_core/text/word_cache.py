"""Convert texts to tokens with a cache of words, so that only new words are tokenized.

Canonical text is words separated by single spaces, and most tokenizers never join two words. The
ids of a word then do not depend on its neighbours: one compiled pass over the bytes splits,
lower-cases and looks up words, and only new ones go to the tokenizer. Whether a tokenizer keeps
words apart is tested when it is loaded; one that does not gets whole texts, which is slower.
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
UNKNOWN = 0  # a token that no record contains; known tokens are numbered from 1

# New words that are tokenized together. Larger rounds are not faster.
_ROUND_WORDS = 1 << 14
_ROUND_BYTES = 1 << 20
_ROUND_PATCHES = 1 << 16
_FIRST_SLOTS = 1 << 16
_STRETCH_BYTES = 1 << 17  # of text whose words are split together: fits the CPU cache
# A slot: key and value, the bytes of a long word, some tokens.
_BYTES_PER_SLOT = 8 * word_stream.NUMBERS + word_stream.LONGEST_KEPT + 8
_FEWEST_SLOTS = 1 << 10
_MOST_TOKENS_PER_SLOT = 2
_HUGE_PAGE = 1 << 21


class Vocabulary(Protocol):
    """Map token ids of a tokenizer to small consecutive numbers."""

    def numbers(self, ids: Integers) -> Tokens:
        """Return the number of each id, `UNKNOWN` for one that has none."""


class FixedVocabulary:
    """The sorted ids of an index; every other id is unknown."""

    def __init__(self, ids: Integers) -> None:
        self._ids = np.append(ids, -1)  # sentinel: a search may end after the last id
        n = int(ids[-1]) + 1 if ids.size else 0
        # Vocabulary ids are small enough for a dense table; hashes of words are not.
        self._all = np.zeros(n if n <= _MOST_LISTED_IDS else 0, np.uint32)
        if self._all.size:
            self._all[ids] = np.arange(1, ids.size + 1)

    def numbers(self, ids: Integers) -> Tokens:
        if self._all.size:
            return np.where(ids < self._all.size, self._all[ids % self._all.size], UNKNOWN)
        at = np.searchsorted(self._ids[:-1], ids)
        return np.where(self._ids[at] == ids, at + 1, UNKNOWN).astype(np.uint32)


class GrowingVocabulary:
    """Number ids in order of first occurrence, to build an index."""

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
    """Rows of different lengths in one array."""

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
        """Return these rows; `rows` must be ascending."""
        is_taken = np.zeros(len(self), np.bool_)
        is_taken[rows] = True
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(self.lengths[rows])])
        return Ragged(self.values[np.repeat(is_taken, self.lengths)], offsets)

    def only(self, is_kept: npt.NDArray[np.bool_]) -> Ragged:
        """Return all rows, with those that are not kept empty."""
        lengths = np.where(is_kept, self.lengths, 0)
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
        return Ragged(self.values[np.repeat(is_kept, self.lengths)], offsets)


@dataclass(frozen=True, eq=False)
class Places:
    """Offsets of the words of a text, and the first and last word of each token."""

    starts: Integers
    stops: Integers
    first_word: Integers
    last_word: Integers

    def characters(self, start: int, stop: int) -> tuple[int, int]:
        """Return the character range of the words that a range of tokens covers."""
        first, last = self.first_word[start], self.last_word[stop - 1]
        return int(self.starts[first]), int(self.stops[last])


def _places_of_canonical(plain: Canonical) -> tuple[Integers, Integers]:
    edges = [-1, *(at for at, char in enumerate(plain.text) if char == " ")]
    edges.append(len(plain.text))
    words = [(start + 1, stop) for start, stop in pairwise(edges)] if plain.text else []
    places = [plain.original(start, stop) for start, stop in words]
    both = np.array(places, np.int64).reshape(-1, 2)
    return both[:, 0], both[:, 1]


class Encoder:
    """Convert texts to numbered tokens, the same as cleaning and tokenizing each text alone."""

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
        # The values of the latest batch's words, and the first word of each text.
        self._values = np.empty(0, np.uint64)
        self._offsets = np.zeros(1, np.int64)

    def encode(self, text: Bytes, starts: Integers, stops: Integers) -> Ragged:
        """Return the tokens of each range of a UTF-8 text."""
        if not self._is_separable:
            return self._encode_whole(text, starts, stops)
        if self._form.strip_markup:
            text, starts, stops = self._stripper.strip(text, starts, stops)
        offsets = self._values_of(text, starts, stops)
        values, table = self._values[: offsets[-1]], self._table
        token_offsets = np.zeros_like(offsets)
        capacity = (word_stream.MOST_NEAR + 1) * (values.size + 1)
        while True:
            tokens = alloc_array(capacity, np.uint32)
            if word_stream.expand(
                values, offsets, table.arena, table.passing, tokens, token_offsets
            ):
                return Ragged(tokens[: token_offsets[-1]], token_offsets)
            capacity *= 2

    def places(self, number: int, text: str) -> Places:
        """Return the offsets of a text's words, and the words of each token.

        `text` must be text `number` of the latest batch, whose word values are still stored.
        """
        if not self._is_separable:
            return self._places_in_whole(text)
        if self._form.strip_markup:
            without_markup = stripped_with_offsets(text)
            left = self._places_of_words(number, without_markup.text)
            starts = without_markup.starts[left.starts]
            stops = without_markup.stops[left.stops - 1]
            return Places(starts, stops, left.first_word, left.last_word)
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
        if "Σ" in text or "İ" in text:  # split the lower-cased text and map its offsets back
            return _places_of_canonical(
                clean_with_offsets(text, punctuation=self._form.punctuation)
            )
        starts, stops = np.empty(n, np.int64), np.empty(n, np.int64)
        data = np.frombuffer(text.encode(), np.uint8)
        if word_stream.word_places(data, *self._classes, starts, stops) != n:
            raise ValueError(f"expected a text of the latest batch, with {n} words")
        return starts, stops

    def _places_in_whole(self, text: str) -> Places:
        plain = canonical_with_offsets(text, self._form)
        starts, stops = _places_of_canonical(plain)
        # For every character of the text with its leading space: the word that it belongs to; for
        # a space, the word after it.
        is_space = np.frombuffer((" " + plain.text).encode("utf-32-le"), np.uint32) == ord(" ")
        word_of = np.cumsum(is_space) - 1
        in_text = self._tokenizer.spans(" " + plain.text) if plain.text else []
        spans = np.array(in_text, np.int64).reshape(-1, 2)
        last = np.maximum(spans[:, 1] - 1, spans[:, 0])
        return Places(starts, stops, word_of[spans[:, 0]], word_of[last])

    def _values_of(self, text: Bytes, starts: Integers, stops: Integers) -> Integers:
        """Store a value for every word in `self._values`; return the first word of each text."""
        self._table.begin()
        waiting = _Waiting()
        offsets = self._offsets = np.zeros(starts.size + 1, np.int64)
        document = 0
        while document < starts.size:
            next_document = self._split_texts(text, starts, stops, document)
            if next_document == document:
                next_document = self._split_lowered(
                    text[starts[document] : stops[document]], document
                )
            first, stop = int(offsets[document]), int(offsets[next_document])
            if self._values.size < stop:
                self._values = _longer(self._values, 2 * stop)
            self._look_up(first, stop - first, waiting)
            document = next_document
        self._settle(waiting)
        return offsets

    def _split_texts(self, text: Bytes, starts: Integers, stops: Integers, document: int) -> int:
        """Split the words of texts from `document` on; return the next text.

        Return `document` if it has letters whose lower case depends on their position.
        """
        self._cutting.make_room(int(stops[document] - starts[document]))
        return self._cutting.cut(text, starts, stops, document, self._classes, self._offsets)

    def _split_lowered(self, text: Bytes, document: int) -> int:
        """Split a text that Python lower-cases as a whole; return the next text."""
        lowered = np.frombuffer(text.tobytes().decode().lower().encode(), np.uint8)
        offsets = self._offsets[document : document + 2]
        bounds = np.array([0, lowered.size])
        self._cutting.make_room(lowered.size)
        self._cutting.cut(lowered, bounds[:1], bounds[1:], 0, self._classes, offsets)
        return document + 1

    def _look_up(self, first: int, n_words: int, waiting: _Waiting) -> None:
        """Look up the values of the words that were split; unknown ones wait."""
        word = 0
        while True:
            word = self._table.look_up(self._cutting, word, n_words, first, self._values, waiting)
            if word == n_words:
                return
            self._settle(waiting)
            self._table.make_room()

    def _settle(self, waiting: _Waiting) -> None:
        """Tokenize the waiting words and add them to the table."""
        if waiting.n_words:
            ids, lengths = self._encode_words(*self._table.pending_words(waiting))
            self._table.settle(waiting, self._numbered(ids, lengths), self._values)

    def _encode_words(self, text: bytes, edges: Integers) -> tuple[Integers, Integers]:
        """Return the ids of new words and their number per word; 0 if normalized to nothing."""
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
        ids = iter(encoded)
        return self._numbered(*flat([next(ids) if cleaned else [] for cleaned in texts]))


class _Cutting:
    """Buffers for the lower-case words of one stretch of texts at a time."""

    def __init__(self) -> None:
        self.edges = np.empty(0, np.int64)
        self.lowered = np.empty(0, np.uint8)

    def make_room(self, n_bytes: int) -> None:
        """Make capacity for a text of at least `n_bytes`."""
        capacity = word_stream.room_for(max(n_bytes, _STRETCH_BYTES)) // 8 * 8 + 8
        if self.lowered.size < capacity:
            # A word has two edges and takes at least one byte; separators may take none.
            self.edges = np.empty(2 * capacity + 1, np.int64)
            self.lowered = np.empty(capacity, np.uint8)

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
    """Numbers of pending words (not in the table), their bytes, and values to patch."""

    n_words: int = 0
    n_bytes: int = 0
    n_patches: int = 0


class _WordTable:
    """The words seen so far, and the values that encode their tokens."""

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
        """Start a batch: values of earlier batches are no longer used."""
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
        """Look up words from `word` on; return the first one that plain no capacity."""
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
        """Return the pending words, each with a leading space, and their edges."""
        data = self._pending_bytes[: waiting.n_bytes].tobytes()
        return data, self._pending_offsets[: waiting.n_words + 1]

    def settle(self, waiting: _Waiting, tokens: Ragged, values: npt.NDArray[np.uint64]) -> None:
        """Store the tokens of the pending words."""
        capacity = tokens.values.size + waiting.n_words
        if self._n_arena + capacity > self.arena.size:
            self.arena = _longer(self.arena, 2 * (self._n_arena + capacity))
        if self._n_passing + capacity > self.passing.size:
            self.passing = _longer(self.passing, 2 * (self._n_passing + capacity))
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
        """Make capacity for more words. No words may be pending."""
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
    """Return zeros, on huge pages where available: lookups in a large table are 10 % faster."""
    pages = mmap.mmap(-1, 8 * n + _HUGE_PAGE)
    if sys.platform == "linux":
        pages.madvise(mmap.MADV_HUGEPAGE)
    slots = np.frombuffer(pages, np.uint64)
    first = -slots.ctypes.data % _HUGE_PAGE // 8
    return slots[first : first + n]


Number = TypeVar("Number", bound=np.generic)


def _longer(array: npt.NDArray[Number], size: int) -> npt.NDArray[Number]:
    longer = np.empty(size, array.dtype)
    longer[: array.size] = array
    return longer


@lru_cache(maxsize=8)
def classes(punctuation: str) -> Classes:
    """Return, for each ASCII byte and each character, its lower case or its class."""
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


# No character above the last cased script (currently Adlam) has a different lower case.
_LAST_CASED = max(point for point in range(0x20000) if chr(point).lower() != chr(point))


@lru_cache(maxsize=4)
def keeps_words_apart(tokenizer: Tokenizer) -> bool:
    """Return whether a word's ids do not depend on its neighbours, tested on pairs of a probe."""
    if tokenizer.joins_words():
        return _warn_about_joining(tokenizer)
    alone = dict(zip(_PROBE, tokenizer.encode([f" {word}" for word in _PROBE]), strict=True))
    texts = [f" {first} {second}" for first in _PROBE for second in _PROBE]
    joined = tokenizer.encode([*texts, " " + " ".join(_PROBE)])
    expected = [[*alone[first], *alone[second]] for first in _PROBE for second in _PROBE]
    is_separable = joined == [*expected, [token for word in _PROBE for token in alone[word]]]
    return is_separable or _warn_about_joining(tokenizer)


def _warn_about_joining(tokenizer: Tokenizer) -> bool:
    _log.warning(
        "tokenizer %s joins words: whole texts are tokenized, which is several times slower",
        tokenizer.fingerprint,
    )
    return False


# Words that tokenizers may treat specially: contractions, digits, control and joining characters
# at the edges, marks without a letter, scripts without spaces, emoji sequences.
_PROBE = (
    *("of", "in", "to", "and", "is", "it", "that", "for", "on", "new", "york"),
    *("a", "the", "don't", "'s", "'ll", "re", "12", "1234", "3.14", "a1", "1a", "x", "…", "«x»"),
    *("¿que", "--", "#", "_", "<|endoftext|>", "é", "ß", "ς", "½", "²", "Ⅷ", "𝔘", "日本語", "。"),
    *("한국어", "नमस्ते", "العربية", "ไทย", "😀", "👩\u200d👩\u200d👧", "1\ufe0f\u20e3", "﷽"),
    *("\x00", "a\x00", "\x1c", "a\x1c", "\x1fa", "\x7f", "\u200b", "a\u200b", "\ufeffa", "\xad"),
    *("\u0301", "e\u0301", "\u0301x", "i\u0307", "\u20e3", "\u2060", "\u180e"),
)
