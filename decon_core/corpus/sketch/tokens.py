"""Tokens with two numbers: that of an index, and one that depends only on the tokenizer."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from decon_core.corpus.batches import Batch
from decon_core.kernels.arrays import alloc_array
from decon_core.kernels.ngram_filters import renumber
from decon_core.text.tokenizers import Tokenizer, Words
from decon_core.text.word_cache import Encoder, FixedVocabulary, Ragged

Integers = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.uint32]


_MOST = (1 << 31) - 1


def stable_numbers(ids: Integers) -> Numbers:
    """Return the numbers of token ids in a sketch: of the hashes of `words`, 31 bits."""
    return (ids & _MOST).astype(np.uint32)


class _ShortHashes(Words):
    """The tokens of `words`, with these numbers."""

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        return [[token & _MOST for token in tokens] for tokens in super().encode(texts)]


class _StableVocabulary:
    """Number tokens as in a sketch."""

    def numbers(self, ids: Integers) -> Numbers:
        return stable_numbers(ids)


class TwoNumberings:
    """Converts texts to tokens once, and returns them with both numbers.

    `ids` are the token ids of an index, ascending.
    """

    def __init__(
        self, tokenizer: Tokenizer, ids: Integers, make_encoder: Callable[..., Encoder]
    ) -> None:
        self._is_hashed = isinstance(tokenizer, Words)
        self._number_of = np.zeros(0, np.uint32)
        if self._is_hashed:  # hashes of words are too large for a dense table
            self.encoder = make_encoder(FixedVocabulary(ids), terms=_ShortHashes())
            return
        if ids.size:
            self._number_of = np.zeros(int(ids[-1]) + 1, np.uint32)
            self._number_of[ids] = np.arange(1, ids.size + 1)
        self.encoder = make_encoder(_StableVocabulary())

    def encode(self, batch: Batch) -> tuple[Ragged, Ragged]:
        """Return the tokens of a batch as numbered in the index, and with stable numbers."""
        tokens = self.encoder.encode(batch.text, batch.starts, batch.stops)
        if self._is_hashed:
            return tokens, self.encoder.terms_of_latest()
        numbers = alloc_array(tokens.values.size, np.uint32)
        renumber(tokens.values, self._number_of, numbers)
        return Ragged(numbers, tokens.offsets), tokens
