"""Convert texts to tokens with a cache of words, so that only new words are tokenized.

Words of canonical text are separated by single spaces, and most tokenizers never join two words.
One compiled pass over the bytes splits, lower-cases and looks up words; only new ones go to the
tokenizer. One that joins words (tested when it is loaded) gets whole texts, which is slower.
"""

from __future__ import annotations

import logging
import operator
import re
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice, pairwise, product

import numpy as np

from decon_core.kernels import grams, word_stream
from decon_core.kernels.arrays import (
    Bools,
    Bytes,
    Floats,
    Int32s,
    Integers,
    Numbers,
    alloc_array,
)
from decon_core.kernels.word_table import (
    MOST_NEAR,
    SPARE,
    expand,
    expand_terms,
    terms_of_words,
    tokens_of_words,
)
from decon_core.text.canonical import (
    WHITE_SPACE,
    Canonical,
    canonical,
    canonical_with_offsets,
    word_spans,
)
from decon_core.text.characters import N_CASED, UNSPACED, VOICING_MARKS, Form
from decon_core.text.look_alikes import normalize_batch
from decon_core.text.markup import Stripper, stripped_texts
from decon_core.text.tokenizers import Tokenizer, Words, encode_words, flat
from decon_core.text.word_table import WordTable, longer

Classes = tuple[Bytes, Int32s]

_log = logging.getLogger(__name__)

_MOST_LISTED_IDS = 1 << 22
UNKNOWN = 0  # a token that no record contains; known tokens are numbered from 1

_STRETCH_BYTES = 1 << 17  # bytes of text whose words are split together: fits the CPU cache


class FixedVocabulary:
    """Number the sorted ids of an index; every other id is `UNKNOWN`."""

    def __init__(self, ids: Integers) -> None:
        self._ids = np.append(ids, -1)  # sentinel: a search may end after the last id
        n = int(ids[-1]) + 1 if ids.size else 0
        # Vocabulary ids are small enough for a dense table; hashes of words are not.
        self._all = np.zeros(n if n <= _MOST_LISTED_IDS else 0, np.uint32)
        if self._all.size:
            self._all[ids] = np.arange(1, ids.size + 1)

    def numbers(self, ids: Integers) -> Numbers:
        if self._all.size:
            return np.where(ids < self._all.size, self._all[ids % self._all.size], UNKNOWN)
        at = np.searchsorted(self._ids[:-1], ids)
        return np.where(self._ids[at] == ids, at + 1, UNKNOWN).astype(np.uint32)

    def renumbered(self, tokens: Numbers, ids: Integers) -> Numbers:
        """Renumber tokens, of which token n is ids[n - 1]."""
        return np.append(np.zeros(1, np.uint32), self.numbers(ids))[tokens]


class GrowingVocabulary:
    """Number ids in order of first occurrence, to build an index."""

    def __init__(self) -> None:
        self.ids = array("q")  # id n - 1 has number n
        self._numbers: dict[int, int] = {}

    def numbers(self, ids: Integers) -> Numbers:
        known = self._numbers
        numbered = [known.setdefault(token, len(known) + 1) for token in ids.tolist()]
        self.ids.extend(islice(known, len(self.ids), None))
        return np.array(numbered, np.uint32)

    def ranked(self, *numbered: Numbers) -> tuple[Integers, Numbers]:
        """Return the ids that occur, ascending, and for each number its place among them from 1."""
        occurs = np.zeros(len(self.ids) + 1, np.bool_)
        for numbers in numbered:
            occurs[numbers] = True
        used = np.flatnonzero(occurs)
        ids = np.array(self.ids, np.int64)[used - 1]
        order = np.argsort(ids)
        rank = np.zeros(occurs.size, np.uint32)
        rank[used[order]] = np.arange(1, used.size + 1)
        return ids[order], rank


Vocabulary = FixedVocabulary | GrowingVocabulary


def edges_of(lengths: Sequence[int] | Integers) -> Integers:
    """Return where each of several rows begins, and the end of the last."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(np.asarray(lengths, np.int64))])


@dataclass(frozen=True, eq=False)
class Ragged:
    """Rows of different lengths in one array."""

    values: Numbers
    offsets: Integers

    def __len__(self) -> int:
        return self.offsets.size - 1

    def row(self, at: int) -> Numbers:
        return self.values[self.offsets[at] : self.offsets[at + 1]]

    @property
    def lengths(self) -> Integers:
        return np.diff(self.offsets)

    def between(self, first: int, stop: int) -> Ragged:
        """Return a range of rows; they share the values."""
        edges = self.offsets[first : stop + 1]
        return Ragged(self.values[edges[0] : edges[-1]], edges - edges[0])

    def take(self, rows: Integers) -> Ragged:
        """Return these rows, in time that does not depend on the others."""
        starts = self.offsets[rows]
        edges = edges_of(self.offsets[rows + 1] - starts)
        places = np.arange(edges[-1]) + np.repeat(starts - edges[:-1], np.diff(edges))
        return Ragged(self.values[places], edges)

    def distinct(self) -> Ragged:
        """Return the distinct values of each row, in order of first occurrence."""
        last_row = np.full(int(self.values.max(initial=0)) + 1, -1, np.int64)
        unique, offsets = np.empty_like(self.values), np.zeros_like(self.offsets)
        values = np.require(self.values, requirements="W")  # a kernel has one type of each argument
        grams.unique_in_rows(values, self.offsets, 1, last_row, unique, offsets)
        return Ragged(unique[: offsets[-1]].copy(), offsets)

    def count(self, n_of_row: Integers, n: int) -> Integers:
        """Count each of the values below n; row i counts `n_of_row[i]` times."""
        counts = np.zeros(n, np.int64)
        np.add.at(counts, self.values, np.repeat(n_of_row, self.lengths))  # in half the memory
        return counts

    def sums(self, numbers: Floats) -> Floats:
        """Return the sum of the numbers of each row's values, added from the first to the last."""
        row_of = np.repeat(np.arange(len(self)), self.lengths)
        return np.asarray(np.bincount(row_of, numbers, len(self)), np.float64)

    def only(self, is_kept: Bools) -> Ragged:
        """Return all rows, with those that are not kept empty."""
        offsets = edges_of(np.where(is_kept, self.lengths, 0))
        return Ragged(self.values[np.repeat(is_kept, self.lengths)], offsets)


@dataclass(frozen=True, eq=False)
class Places:
    """Offsets of words, and the first and last word of each token of a text.

    Texts whose places are looked up together share the words.
    """

    starts: Integers
    stops: Integers
    first_word: Integers
    last_word: Integers

    def characters(self, start: int, stop: int) -> tuple[int, int]:
        """Return the character range of the words that a range of tokens covers."""
        first, last = self.first_word[start], self.last_word[stop - 1]
        return int(self.starts[first]), int(self.stops[last])

    def tokens(self, start: int, stop: int) -> tuple[int, int]:
        """Return the range of tokens of the words in a range of characters."""
        words = np.s_[self.first_word[0] : self.last_word[-1] + 1]
        first = self.first_word[0] + np.searchsorted(self.stops[words], start, side="right")
        last = self.first_word[0] + np.searchsorted(self.starts[words], stop)
        first_token = int(np.searchsorted(self.last_word, first))
        return first_token, int(np.searchsorted(self.first_word, last))


def _places_of_canonical(plain: Canonical) -> tuple[Integers, Integers]:
    places = [plain.original(*word.span()) for word in re.finditer("[^ ]+", plain.text)]
    both = np.array(places, np.int64).reshape(-1, 2)
    return both[:, 0], both[:, 1]


class Encoder:
    """Convert texts to numbered tokens, the same as cleaning and tokenizing each text alone.

    With `terms`, which numbers words another way, a detector gets those of the same words too.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        vocabulary: Vocabulary,
        *,
        form: Form,
        table_mb: int,
        terms: Words | None = None,
    ) -> None:
        self._tokenizer = tokenizer
        self._vocabulary = vocabulary
        self._form = form
        self._stripper = Stripper()
        self._is_separable = keeps_words_apart(tokenizer)
        self._classes = classes(form.punctuation, is_split=form.normalize_unicode)
        self._table = WordTable(table_mb * 1_000_000)
        # None if texts are tokenized as a whole: then there are no words.
        self.terms = terms if self._is_separable else None
        # The lower-case words of one stretch of texts at a time.
        self._lowered = np.empty(0, np.uint8)
        self._edges = np.empty(0, np.int64)
        # The values of the latest batch's words, their terms, and the first word of each text.
        self._values = np.empty(0, np.uint64)
        self._terms = np.empty(0, np.uint32)
        self._offsets = np.zeros(1, np.int64)

    def encode(self, text: Bytes, starts: Integers, stops: Integers) -> Ragged:
        """Return the tokens of each range of a UTF-8 text."""
        if not self._is_separable:
            return self._encode_whole(text, starts, stops)
        if self._form.strip_markup:
            text, starts, stops = self._stripper.strip(text, starts, stops)
        offsets = self._values_of(text, starts, stops)
        values, arena = self._values[: offsets[-1]], self._table.tokens
        token_offsets = np.zeros_like(offsets)
        capacity = (MOST_NEAR + 1) * values.size + SPARE
        while True:
            tokens = alloc_array(capacity, np.uint32)
            if expand(values, offsets, arena, tokens, token_offsets):
                return Ragged(tokens[: token_offsets[-1]], token_offsets)
            capacity *= 2

    def terms_of_latest(self) -> Ragged:
        """Return the terms of each text of the latest batch; needs `terms`."""
        offsets = np.zeros_like(self._offsets)
        capacity = 2 * int(self._offsets[-1]) + 1
        while True:
            out = alloc_array(capacity, np.uint32)
            if expand_terms(self._terms, self._offsets, self._table.terms, out, offsets):
                return Ragged(out[: offsets[-1]], offsets)
            capacity *= 2

    def first_tokens_of_latest(self, tokens: Ragged) -> Ragged | None:
        """Return the first token of each word of the latest batch, by text.

        `tokens`: those of the batch. None if texts are tokenized as a whole.
        """
        if not self._is_separable:
            return None
        counts = np.empty(int(self._offsets[-1]), np.int64)
        tokens_of_words(self._values[: counts.size], self._table.tokens, counts)
        has_tokens = counts > 0
        firsts = tokens.values[(np.cumsum(counts) - counts)[has_tokens]]
        return Ragged(firsts, edges_of(has_tokens.astype(np.int64))[self._offsets])

    def places(self, number: int, text: str, *, of_terms: bool = False) -> Places:
        """Do what `places_of` does for one text."""
        return self.places_of([number], [text], of_terms=of_terms)[0]

    def places_of(
        self, numbers: Sequence[int], texts: Sequence[str], *, of_terms: bool = False
    ) -> list[Places]:
        """Return the offsets of each text's words, and the words of each token or term.

        The texts must be those of these numbers in the latest batch, whose word values are still
        stored.
        """
        if not self._is_separable:
            return [*map(self._places_in_whole, texts)]
        words = [slice(*self._offsets[number : number + 2].tolist()) for number in numbers]
        stored = self._terms if of_terms else self._values
        values = np.concatenate([stored[:0], *(stored[of] for of in words)])
        counts = np.empty(values.size, np.int64)  # tokens or terms of each word
        if of_terms:
            terms_of_words(values, self._table.terms, counts)
        else:
            tokens_of_words(values, self._table.tokens, counts)
        n_words = np.array([of.stop - of.start for of in words], np.int64)
        stripped = stripped_texts(texts) if self._form.strip_markup else [None] * len(texts)
        plain = [left.text if left else text for left, text in zip(stripped, texts, strict=True)]
        starts, stops = self._places_of_words(n_words, plain)
        word_edges = edges_of(n_words)
        for left, edges in zip(stripped, pairwise(word_edges.tolist()), strict=True):
            if left:
                of_text = slice(*edges)
                starts[of_text] = left.starts[starts[of_text]]
                stops[of_text] = left.stops[stops[of_text] - 1]
        word = np.repeat(np.arange(counts.size), counts)
        token_edges = edges_of(counts)[word_edges].tolist()
        words_of = [word[first:stop] for first, stop in pairwise(token_edges)]
        return [Places(starts, stops, words, words) for words in words_of]

    def _places_of_words(
        self, n_words: Integers, texts: Sequence[str]
    ) -> tuple[Integers, Integers]:
        """Return where the words of texts begin and end, each counted in its text."""
        n = int(n_words.sum())
        # The lower case of some letters depends on their position: Python finds the words.
        lines = ["" if "Σ" in text or "İ" in text else text for text in texts]
        is_line = np.array([*map(operator.is_, lines, texts)], np.bool_)
        line_edges = np.cumsum([0, *(len(line) + 1 for line in lines)])
        data = np.frombuffer("\n".join(lines).encode(), np.uint8)
        edges = np.empty(2 * n + 3, np.int64)
        edges = edges[: word_stream.word_places(data, *self._classes, edges)]
        n_edges = np.diff(np.searchsorted(edges, line_edges))
        if (n_edges != 2 * np.where(is_line, n_words, 0)).any():
            raise ValueError("these texts are not from the latest batch, which has other words")
        edges -= np.repeat(line_edges[:-1], n_edges)
        if is_line.all():
            return edges[::2], edges[1::2]
        both = np.empty((n, 2), np.int64)
        both[np.repeat(is_line, n_words)] = edges.reshape(-1, 2)
        word_edges = edges_of(n_words)
        for at in np.flatnonzero(~is_line).tolist():
            # Split the lower-cased text and map its offsets back.
            both[slice(*word_edges[at : at + 2])] = word_spans(texts[at], self._form)
        return both[:, 0], both[:, 1]

    def _places_in_whole(self, text: str) -> Places:
        plain = canonical_with_offsets(text, self._form)
        starts, stops = _places_of_canonical(plain)
        spaced = f" {plain.text}" if plain.text else ""
        # The word of every byte; a space belongs to the word after it.
        word_of = np.cumsum(np.frombuffer(spaced.encode(), np.uint8) == ord(" ")) - 1
        pieces = self._tokenizer.pieces(spaced)
        last = np.maximum(pieces.stops - 1, pieces.starts)
        return Places(starts, stops, word_of[pieces.starts], word_of[last])

    def _values_of(self, text: Bytes, starts: Integers, stops: Integers) -> Integers:
        """Store a value for every word in `self._values`; return the first word of each text."""
        self._table.begin()
        offsets = self._offsets = np.zeros(starts.size + 1, np.int64)
        document = 0
        while document < starts.size:
            following = self._split(text, starts, stops, document, offsets)
            if following == document:  # it has letters whose lower case depends on their position
                content = text[starts[document] : stops[document]].tobytes().decode()
                lowered = np.frombuffer(bytearray(content.lower().encode()), np.uint8)
                bounds = np.array([0, lowered.size])
                self._split(lowered, bounds[:1], bounds[1:], 0, offsets[document : document + 2])
                following = document + 1
            self._look_up(int(offsets[document]), int(offsets[following]))
            document = following
        self._settle()
        return offsets

    def _split(
        self, text: Bytes, starts: Integers, stops: Integers, document: int, offsets: Integers
    ) -> int:
        """Split texts from `document` on; return the next one, or itself for Python to lower."""
        n_bytes = max(int(stops[document] - starts[document]), _STRETCH_BYTES)
        capacity = word_stream.room_for(n_bytes) // 8 * 8 + 8
        if self._lowered.size < capacity:
            # A word has two edges and takes at least one byte; separators may take none.
            self._edges = np.empty(2 * capacity + 1, np.int64)
            self._lowered = np.empty(capacity, np.uint8)
        return word_stream.cut_words(
            text, starts, stops, document, *self._classes, self._lowered, self._edges, offsets
        )

    def _look_up(self, first: int, stop: int) -> None:
        """Look up the values of the words that were split; unknown ones wait."""
        if self._values.size < stop:
            self._values = longer(self._values, 2 * stop)
            self._terms = longer(self._terms, 2 * stop)
        table, n_words, word = self._table, stop - first, 0
        while True:
            word = table.look_up(
                self._lowered, self._edges, word, n_words, first, self._values, self._terms
            )
            if word == n_words:
                return
            self._settle()
            table.make_room()

    def _settle(self) -> None:
        """Tokenize the waiting words and add them to the table."""
        text, edges = self._table.pending_words
        if not text:
            return
        n_words = np.ones(edges.size - 1, np.int64)  # 0 if normalized to nothing
        if self._form.normalize_unicode:
            text, edges, n_words = normalize_batch(text, edges, punctuation=self._form.punctuation)
        if self.terms is not None:
            terms = self.terms.encode_words(text, edges)[0].astype(np.uint32)
            self._table.settle_terms(terms, edges_of(n_words), self._values, self._terms)
        if self._form.normalize_unicode:
            ids, lengths = encode_words(self._tokenizer, text, edges)
        else:
            ids, lengths = self._tokenizer.encode_words(text, edges)
        offsets = edges_of(lengths)[edges_of(n_words)]
        self._table.settle(self._vocabulary.numbers(ids), offsets, self._values)

    def _encode_whole(self, text: Bytes, starts: Integers, stops: Integers) -> Ragged:
        texts = [
            canonical(text[start:stop].tobytes().decode(), self._form)
            for start, stop in zip(starts, stops, strict=True)
        ]
        encoded = iter(self._tokenizer.encode([f" {cleaned}" for cleaned in texts if cleaned]))
        ids, lengths = flat([next(encoded) if cleaned else [] for cleaned in texts])
        return Ragged(self._vocabulary.numbers(ids), edges_of(lengths))


_PAGE = 256
_LONGER = -1  # its lower case is more than one character


@lru_cache(maxsize=8)
def classes(punctuation: str, *, is_split: bool) -> Classes:
    """Return, for each ASCII byte and each character, its lower case or its class.

    With `is_split`, characters of scripts without spaces are words.
    """
    separators = [*map(ord, WHITE_SPACE + punctuation)]
    characters = _lower_case(max(N_CASED, max(separators) + 1))
    last_cased = int(np.flatnonzero(characters != np.arange(characters.size))[-1])
    characters = characters[: max(last_cased, UNSPACED[-1][1], *separators) + 1]
    is_special = characters == _LONGER
    is_special[ord("Σ")] = True
    characters[np.isin(characters, separators)] = word_stream.WIDE_SEPARATOR
    characters[is_special] = word_stream.WIDE_SPECIAL
    for first, last in UNSPACED if is_split else ():
        characters[first : last + 1] += word_stream.ALONE
    if is_split:
        characters[[*map(ord, VOICING_MARKS)]] += word_stream.VOICING_MARK - word_stream.ALONE
    plain = characters[:128]
    in_bytes = np.full(256, word_stream.NOT_ASCII, np.uint8)
    in_bytes[:128] = np.where(plain < 0, word_stream.SEPARATOR, plain)
    return in_bytes, characters


def _lower_case(n: int) -> Int32s:
    """Return the lower case of each of the first characters. Most pages have no cased letter."""
    points = np.arange(n, dtype=np.int32)
    for start in range(0, n, _PAGE):
        page = "".join(map(chr, range(start, min(start + _PAGE, n))))
        if page.lower() != page:
            lower = [char.lower() for char in page]
            points[start : start + len(page)] = [
                ord(char) if len(char) == 1 else _LONGER for char in lower
            ]
    return points


@lru_cache(maxsize=4)
def keeps_words_apart(tokenizer: Tokenizer) -> bool:
    """Return whether a word's ids do not depend on its neighbours, tested on pairs of a probe."""
    if not tokenizer.joins_words():
        alone = dict(zip(_PROBE, tokenizer.encode([f" {word}" for word in _PROBE]), strict=True))
        texts = [*product(_PROBE, repeat=2), _PROBE]
        joined = tokenizer.encode([f" {' '.join(words)}" for words in texts])
        if joined == [[token for word in words for token in alone[word]] for words in texts]:
            return True
    _log.warning(
        "tokenizer %s joins words: whole texts are tokenized, which is several times slower",
        tokenizer.fingerprint,
    )
    return False


# Words that tokenizers may treat specially: contractions, digits, edges with control or joining
# characters, marks without a letter, scripts without spaces, emoji sequences.
_PROBE = (
    "of", "in", "to", "and", "is", "it", "that", "for", "on", "new", "york",
    "a", "the", "don't", "'s", "'ll", "re", "12", "1234", "3.14", "a1", "1a", "x", "…", "«x»",
    "¿que", "--", "#", "_", "<|endoftext|>", "é", "ß", "ς", "½", "²", "Ⅷ", "𝔘", "日本語", "。",
    "한국어", "नमस्ते", "العربية", "ไทย", "😀", "👩\u200d👩\u200d👧", "1\ufe0f\u20e3", "﷽",
    "\x00", "a\x00", "\x1c", "a\x1c", "\x1fa", "\x7f", "\u200b", "a\u200b", "\ufeffa", "\xad",
    "\u0301", "e\u0301", "\u0301x", "i\u0307", "\u20e3", "\u2060", "\u180e",
)  # fmt: skip
