"""Build the arrays of query texts (token rows) that the kernels in `runs` search for."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from decon_core.index.ngram_counts import GramTable
from decon_core.kernels import grams, token_runs
from decon_core.text.word_cache import Ragged

Integers = npt.NDArray[np.int64]

_PAIR_BITS = 4
_MAX_PAIR_WORDS = 1 << 17


def edges_of(lengths: Sequence[int] | Integers) -> Integers:
    """Return where rows of these lengths start, and where the last one stops."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(np.asarray(lengths, np.int64))])


def texts_of(rows: Ragged, size: int) -> token_runs.Texts:
    """Return token rows with an inverted index of the positions of all their n-grams."""
    table = GramTable(rows.values, rows.offsets, size)
    is_gram = table.numbers != grams.NONE
    positions, numbers = np.flatnonzero(is_gram), table.numbers[is_gram]
    order = np.argsort(numbers, kind="stable")
    counts = np.bincount(numbers, minlength=table.first.size)
    row_of = np.repeat(np.arange(len(rows), dtype=np.uint32), rows.lengths)
    gram_at = table.first.astype(np.uint32)
    slots = np.zeros(4 * gram_at.size + 2, np.uint32)
    token_runs.fill_slots(rows.values, gram_at, size, slots)
    # A few bits for each pair, but no more than the CPU caches hold.
    pairs = np.zeros(min(rows.values.size * _PAIR_BITS // 64 + 1, _MAX_PAIR_WORDS), np.uint64)
    token_runs.enter_pairs(rows.values, rows.offsets, pairs)
    return token_runs.Texts(
        tokens=rows.values,
        offsets=rows.offsets,
        pairs=pairs,
        slots=slots,
        gram_at=gram_at,
        posting_offsets=edges_of(counts),
        postings=positions[order].astype(np.uint32),
        posting_texts=row_of[positions[order]],
    )
