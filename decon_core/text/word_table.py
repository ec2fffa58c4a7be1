"""The table of words seen so far, with buffers for new words that wait to be tokenized."""

from __future__ import annotations

import mmap
import sys

import numpy as np
import numpy.typing as npt

from decon_core.kernels import word_table as kernels
from decon_core.kernels.arrays import Bytes, Integers, Number, Numbers, Words64

# New words that are tokenized together. Larger rounds are not faster.
_ROUND_WORDS = 1 << 14
_ROUND_BYTES = 1 << 20
_ROUND_PATCHES = 1 << 16
_FIRST_SLOTS = 1 << 16
# A slot: key and value, the bytes of a long word, some tokens.
_BYTES_PER_SLOT = 8 * kernels.NUMBERS + kernels.LONGEST_KEPT + 8
_FEWEST_SLOTS = 1 << 10
_MOST_TOKENS_PER_SLOT = 2
_MOST_SLOTS = 1 << 26  # the bytes of long words are then numbered in 32 bits
_HUGE_PAGE = 1 << 21


class WordTable:
    """Words, and the values that encode their tokens."""

    def __init__(self, n_bytes: int) -> None:
        most_slots = min(max(n_bytes // _BYTES_PER_SLOT, _FEWEST_SLOTS), _MOST_SLOTS)
        self._most_slots = 1 << most_slots.bit_length() - 1
        self._settled = np.empty(_ROUND_WORDS, np.uint64)
        table, kept = self._no_words()
        self.words = kernels.Words(
            counts=np.zeros(kernels.N_COUNTS, np.int64),
            table=table,
            kept=kept,
            pending_slots=np.empty(_ROUND_WORDS, np.int64),
            pending_offsets=np.zeros(_ROUND_WORDS + 1, np.int64),
            pending_bytes=np.empty(_ROUND_BYTES, np.uint8),
            patches=np.empty(_ROUND_PATCHES, np.int64),
        )
        self.tokens, self.terms = _new_arena(), _new_arena()

    def _no_words(self) -> tuple[Words64, Bytes]:
        """Return a table without words, and room for the bytes of long ones."""
        n_slots = min(_FIRST_SLOTS, self._most_slots)
        kept = np.empty(kernels.LONGEST_KEPT * _FEWEST_SLOTS, np.uint8)
        return _new_slots(kernels.NUMBERS * n_slots), kept

    def _forget_words(self) -> None:
        table, kept = self._no_words()
        self.words = self.words._replace(table=table, kept=kept)
        self.words.counts[[kernels.KEPT_BYTES, kernels.KNOWN_WORDS]] = 0

    def begin(self) -> None:
        """Start a batch: values of earlier batches are no longer used."""
        self.words.counts[kernels.OF_PENDING] = 0
        for arena in (self.tokens, self.terms):
            arena.ends[1] = 0
        n_most = _MOST_TOKENS_PER_SLOT * self._most_slots
        if max(self.tokens.ends[0], self.terms.ends[0]) > n_most:
            self._forget_words()
            self.tokens, self.terms = _new_arena(), _new_arena()

    def look_up(
        self,
        lowered: Bytes,
        edges: Integers,
        word: int,
        n_words: int,
        first: int,
        values: Words64,
        terms: Numbers,
    ) -> int:
        """Look up words from `word` on; return the first one for which there is no room."""
        if self.words.pending_bytes.size < 2 * lowered.size:
            room = longer(self.words.pending_bytes, 2 * lowered.size)
            self.words = self.words._replace(pending_bytes=room)
        return kernels.look_up(lowered, edges, word, n_words, first, self.words, values, terms)

    @property
    def pending_words(self) -> tuple[bytes, Integers]:
        """The words that wait for their tokens, each with a leading space, and their edges."""
        n_words, n_bytes, _ = self.words.counts[kernels.OF_PENDING]
        text = self.words.pending_bytes[:n_bytes].tobytes()
        return text, self.words.pending_offsets[: n_words + 1]

    def settle(self, tokens: Numbers, offsets: Integers, values: Words64) -> None:
        """Store the tokens of the pending words, in the table and in values that wait."""
        self.tokens = _with_room(self.tokens, tokens.size + offsets.size)
        kernels.settle(tokens, offsets, self.words, values, self.tokens, self._settled)
        self.words.counts[kernels.OF_PENDING] = 0

    def settle_terms(
        self, of_pending: Numbers, offsets: Integers, values: Words64, terms: Numbers
    ) -> None:
        """Store the terms of the pending words likewise; before their tokens."""
        self.terms = _with_room(self.terms, of_pending.size + offsets.size)
        settled = self._settled.view(np.uint32)
        kernels.settle_terms(of_pending, offsets, self.words, values, terms, self.terms, settled)

    def make_room(self) -> None:
        """Make capacity for more words. No words may be pending."""
        words, n_slots = self.words, self.words.table.size // kernels.NUMBERS
        if words.counts[kernels.KNOWN_WORDS] >= n_slots * 3 // 4:
            if n_slots >= self._most_slots:
                self._forget_words()
                return
            larger = _new_slots(2 * words.table.size)
            kernels.rehash(words.table, larger)
            self.words = words._replace(table=larger)
        elif words.counts[kernels.KEPT_BYTES] + kernels.LONGEST_KEPT > words.kept.size:
            self.words = words._replace(kept=longer(words.kept, 2 * words.kept.size))


def _new_arena() -> kernels.Arena:
    kept, passing = np.empty((2, _ROUND_WORDS), np.uint32)
    return kernels.Arena(kept, passing, np.zeros(2, np.int64))


def _with_room(arena: kernels.Arena, n: int) -> kernels.Arena:
    """Return the arena with room for more, whether they are kept or not."""
    kept, passing = (
        longer(array, 2 * (end + n)) if end + n > array.size else array
        for array, end in zip((arena.kept, arena.passing), arena.ends.tolist(), strict=True)
    )
    return kernels.Arena(kept, passing, arena.ends)


def _new_slots(n: int) -> Words64:
    """Return zeros, on huge pages where available: lookups in a large table are 10 % faster."""
    pages = mmap.mmap(-1, 8 * n + _HUGE_PAGE)
    if sys.platform == "linux":
        pages.madvise(mmap.MADV_HUGEPAGE)
    slots = np.frombuffer(pages, np.uint64)
    first = -slots.ctypes.data % _HUGE_PAGE // 8
    return slots[first : first + n]


def longer(array: npt.NDArray[Number], size: int) -> npt.NDArray[Number]:
    """Return a copy with room for more."""
    copy = np.empty(size, array.dtype)
    copy[: array.size] = array
    return copy
