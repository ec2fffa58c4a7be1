"""The table of words seen so far, with buffers for new words that wait to be tokenized."""

from __future__ import annotations

import mmap
import sys
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from decon_core.kernels import word_table as kernels

Bytes = npt.NDArray[np.uint8]
Words64 = npt.NDArray[np.uint64]
Integers = npt.NDArray[np.int64]
Tokens = npt.NDArray[np.uint32]

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
        self._pending_slots = np.empty(_ROUND_WORDS, np.int64)
        self._pending_offsets = np.zeros(_ROUND_WORDS + 1, np.int64)
        self._pending_bytes = np.empty(_ROUND_BYTES, np.uint8)
        self._patches = np.empty(_ROUND_PATCHES, np.int64)
        self._settled = np.empty(_ROUND_WORDS, np.uint64)
        self._counts = np.zeros(kernels.N_COUNTS, np.int64)
        self._forget_words()
        self.token_arenas, self.term_arenas = _Arenas(), _Arenas()

    def _forget_words(self) -> None:
        n_slots = min(_FIRST_SLOTS, self._most_slots)
        self.slots = _new_slots(kernels.NUMBERS * n_slots)
        self._kept = np.empty(kernels.LONGEST_KEPT * _FEWEST_SLOTS, np.uint8)
        self._counts[[kernels.KEPT_BYTES, kernels.KNOWN_WORDS]] = 0

    def begin(self) -> None:
        """Start a batch: values of earlier batches are no longer used."""
        self.token_arenas.n_passing = self.term_arenas.n_passing = 0
        self._counts[kernels.OF_PENDING] = 0
        n_most = _MOST_TOKENS_PER_SLOT * self._most_slots
        if max(self.token_arenas.n_kept, self.term_arenas.n_kept) > n_most:
            self._forget_words()
            self.token_arenas, self.term_arenas = _Arenas(), _Arenas()

    def look_up(
        self,
        lowered: Bytes,
        edges: Integers,
        word: int,
        n_words: int,
        first: int,
        values: Words64,
        terms: Tokens,
    ) -> int:
        """Look up words from `word` on; return the first one for which there is no room."""
        if self._pending_bytes.size < 2 * lowered.size:
            self._pending_bytes = longer(self._pending_bytes, 2 * lowered.size)
        return kernels.look_up(
            lowered,
            edges,
            word,
            n_words,
            first,
            self._counts,
            self.slots,
            self._kept,
            values,
            terms,
            self._pending_slots,
            self._pending_offsets,
            self._pending_bytes,
            self._patches,
        )

    @property
    def pending_words(self) -> tuple[bytes, Integers]:
        """The words that wait for their tokens, each with a leading space, and their edges."""
        n_words, n_bytes, _ = self._counts[kernels.OF_PENDING]
        return self._pending_bytes[:n_bytes].tobytes(), self._pending_offsets[: n_words + 1]

    def settle(self, tokens: Tokens, offsets: Integers, values: Words64) -> None:
        """Store the tokens of the pending words, in the table and in values that wait."""
        n_words, _, n_patches = self._counts[kernels.OF_PENDING]
        arenas = self.token_arenas
        arenas.make_room(tokens.size + n_words)
        arenas.n_kept, arenas.n_passing = kernels.settle(
            tokens,
            offsets,
            self._pending_slots[:n_words],
            self.slots,
            values,
            self._patches[:n_patches],
            arenas.kept,
            arenas.n_kept,
            arenas.passing,
            arenas.n_passing,
            self._settled,
        )
        self._counts[kernels.OF_PENDING] = 0

    def settle_terms(
        self, of_pending: Tokens, offsets: Integers, values: Words64, terms: Tokens
    ) -> None:
        """Store the terms of the pending words likewise; before their tokens."""
        n_words, _, n_patches = self._counts[kernels.OF_PENDING]
        arenas = self.term_arenas
        arenas.make_room(of_pending.size + n_words)
        arenas.n_kept, arenas.n_passing = kernels.settle_terms(
            of_pending,
            offsets,
            self._pending_slots[:n_words],
            self.slots,
            values,
            terms,
            self._patches[:n_patches],
            arenas.kept,
            arenas.n_kept,
            arenas.passing,
            arenas.n_passing,
            self._settled.view(np.uint32),
        )

    def make_room(self) -> None:
        """Make capacity for more words. No words may be pending."""
        n_slots = self.slots.size // kernels.NUMBERS
        if self._counts[kernels.KNOWN_WORDS] >= n_slots * 3 // 4:
            if n_slots >= self._most_slots:
                self._forget_words()
                return
            larger = _new_slots(2 * kernels.NUMBERS * n_slots)
            kernels.rehash(self.slots, larger)
            self.slots = larger
        elif self._counts[kernels.KEPT_BYTES] + kernels.LONGEST_KEPT > self._kept.size:
            self._kept = longer(self._kept, 2 * self._kept.size)


class _Arenas:
    """The tokens or terms of words that have none or more than one.

    Those of words in the table are kept; all others are dropped after the batch.
    """

    def __init__(self) -> None:
        self.kept, self.passing = np.empty((2, _ROUND_WORDS), np.uint32)
        self.n_kept = self.n_passing = 0

    def make_room(self, n: int) -> None:
        if self.n_kept + n > self.kept.size:
            self.kept = longer(self.kept, 2 * (self.n_kept + n))
        if self.n_passing + n > self.passing.size:
            self.passing = longer(self.passing, 2 * (self.n_passing + n))


def _new_slots(n: int) -> Words64:
    """Return zeros, on huge pages where available: lookups in a large table are 10 % faster."""
    pages = mmap.mmap(-1, 8 * n + _HUGE_PAGE)
    if sys.platform == "linux":
        pages.madvise(mmap.MADV_HUGEPAGE)
    slots = np.frombuffer(pages, np.uint64)
    first = -slots.ctypes.data % _HUGE_PAGE // 8
    return slots[first : first + n]


Number = TypeVar("Number", bound=np.generic)


def longer(array: npt.NDArray[Number], size: int) -> npt.NDArray[Number]:
    """Return a copy with room for more."""
    copy = np.empty(size, array.dtype)
    copy[: array.size] = array
    return copy
