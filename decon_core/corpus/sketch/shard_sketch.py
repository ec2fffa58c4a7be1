"""The sketch of a shard: a filter of all n-grams of each block, and where its parts lie.

A block takes consecutive parts of the shard while its filter has few enough bits set. Nothing else
decides its size, so the blocks do not depend on how the shard was scanned. N-grams are of tokens
whose numbers depend only on the tokenizer.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, Any

import numpy as np
import xxhash

from decon_core.corpus.batches import Batch, Place
from decon_core.kernels.arrays import Integers, Numbers, Words64, alloc_array
from decon_core.kernels.ngram_filters import LOG2_LINE, PROBES, enter_ngrams, renumber
from decon_core.storage.checksums import EMPTY, map_verified, seal
from decon_core.storage.files import atomic_path
from decon_core.storage.store import Store
from decon_core.storage.tables import map_arrays, write_arrays
from decon_core.text.tokenizers import Tokenizer, Words
from decon_core.text.word_cache import Encoder, FixedVocabulary, Ragged

LOG2_BITS = 24  # size of a filter: two megabytes, which the second cache of a core holds
_LEAST_LOG2_BITS = LOG2_LINE + 3
_MOST_NUMBER = (1 << 31) - 1
_PLACE = ("row", "n_rows", "offset", "n_bytes")


# Tokens -------------------------------------------------------------------------------------------


def stable_numbers(ids: Integers) -> Numbers:
    """Return the numbers of token ids in a sketch: of the hashes of `words`, 31 bits."""
    return (ids & _MOST_NUMBER).astype(np.uint32)


class _ShortHashes(Words):
    """The tokens of `words`, with these numbers."""

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        return [[token & _MOST_NUMBER for token in tokens] for tokens in super().encode(texts)]


class _StableVocabulary:
    """Number tokens as in a sketch."""

    def numbers(self, ids: Integers) -> Numbers:
        return stable_numbers(ids)


class TwoNumberings:
    """Converts texts to tokens once, numbered as in an index and as in a sketch.

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


# Sketches -----------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class PartSketch:
    """The n-grams of one part of a shard."""

    place: Place
    digest: bytes  # digest of its texts
    words: Words64

    @classmethod
    def of(cls, place: Place, batch: Batch, tokens: Ragged, *, ngram_size: int) -> PartSketch:
        """Enter the n-grams of a batch; `tokens` have stable numbers."""
        words = np.zeros((1 << LOG2_BITS) // 64, np.uint64)
        enter_ngrams(tokens.values, tokens.offsets, ngram_size, LOG2_BITS, words)
        return cls(place, digest_of_texts(batch), words)


def digest_of_texts(batch: Batch) -> bytes:
    """Return a digest of the rows and texts of a batch."""
    digest = xxhash.xxh3_128(batch.rows.tobytes())
    digest.update((batch.stops - batch.starts).tobytes())
    for start, stop in zip(batch.starts.tolist(), batch.stops.tolist(), strict=True):
        digest.update(batch.text[start:stop].data)
    return digest.digest()


@dataclass(frozen=True, eq=False)
class ShardBlocks:
    """Where the blocks of a shard lie."""

    log2_bits: Integers  # size of the filter of each block
    part_offsets: Integers  # range of the parts of each block
    places: Sequence[Place]  # places of all parts
    digests: Sequence[bytes]  # digests of the texts of all parts

    def __len__(self) -> int:
        return self.log2_bits.size

    def block_of(self, row: int) -> int:
        """Return the block that contains a row."""
        first_rows = [self.places[at].row for at in self.part_offsets[:-1].tolist()]
        return bisect_right(first_rows, row) - 1

    def parts(self, blocks: Sequence[int]) -> Iterator[tuple[Place, bytes]]:
        """Yield place and digest of each part of some blocks, in order."""
        for block in sorted(blocks):
            for at in range(self.part_offsets[block], self.part_offsets[block + 1]):
                yield self.places[at], self.digests[at]


def has_filters(store: Store, sketch: str, shard: str) -> bool:
    """Return whether the filters of a shard exist; they are removed once the pack has them."""
    return has_blocks(store, sketch, shard) and store.sketch_filters(sketch, shard).is_file()


def has_blocks(store: Store, sketch: str, shard: str) -> bool:
    """Return whether the sketch of a shard exists, but for its filters."""
    paths = store.sketch_blocks, store.sketch_ledger, store.sketch_documents
    return all(path(sketch, shard).is_file() for path in paths)


def open_blocks(store: Store, sketch: str, shard: str) -> ShardBlocks:
    """Read where the blocks of a shard lie."""
    arrays, _ = map_arrays(store.sketch_blocks(sketch, shard))
    digests = arrays["digests"].tobytes()
    columns = (arrays[name].tolist() for name in _PLACE)
    return ShardBlocks(
        log2_bits=arrays["log2_bits"],
        part_offsets=arrays["part_offsets"],
        places=[Place(*numbers) for numbers in zip(*columns, strict=True)],
        digests=[digests[at : at + 16] for at in range(0, len(digests), 16)],
    )


def open_filters(store: Store, sketch: str, shard: str, blocks: ShardBlocks) -> Words64:
    """Map the filters of a shard, block after block, after verifying their checksum."""
    n_words = int(sum(1 << int(log2) for log2 in blocks.log2_bits)) // 64
    content = map_verified(store.sketch_filters(sketch, shard))
    return np.frombuffer(content, np.uint64, n_words)


class ShardSketcher:
    """Joins the parts of a shard to blocks, and writes the filter of each to a file."""

    def __init__(self, file: IO[bytes], *, bits: int) -> None:
        self._file = file
        # A filter with this share of bits set has `bits` bits for each n-gram.
        self._most_set = 1 - math.exp(-PROBES / bits)
        self._words = np.empty(0, np.uint64)
        self._sizes: list[int] = []
        self._n_parts = [0]
        self._places: list[Place] = []
        self._digests: list[bytes] = []

    def add(self, part: PartSketch) -> None:
        """Add the next part to the current block, or begin a block with it."""
        joined = self._words | part.words if self._words.size else part.words
        if self._words.size and _share_set(joined) > self._most_set:
            self._close()
            joined = part.words
        self._words = joined
        self._places.append(part.place)
        self._digests.append(part.digest)

    def arrays(self) -> dict[str, Any]:
        """Close the last block, and return the arrays of `ShardBlocks`."""
        if self._words.size:
            self._close()
        columns = {
            name: np.array([getattr(place, name) for place in self._places], np.int64)
            for name in _PLACE
        }
        return columns | {
            "log2_bits": np.array(self._sizes, np.int64),
            "part_offsets": np.array(self._n_parts, np.int64),
            "digests": np.frombuffer(b"".join(self._digests), np.uint8),
        }

    def _close(self) -> None:
        """Write the filter of the current block, as small as it can be."""
        words, log2 = self._words, LOG2_BITS
        while log2 > _LEAST_LOG2_BITS:
            halved = _halved(words)
            if _share_set(halved) > self._most_set:
                break
            words, log2 = halved, log2 - 1
        self._file.write(words.tobytes())
        self._sizes.append(log2)
        self._n_parts.append(len(self._places))
        self._words = np.empty(0, np.uint64)


def _share_set(words: Words64) -> float:
    return float(np.bitwise_count(words).sum()) / (64 * words.size)


def _halved(words: Words64) -> Words64:
    """Join each line with the next: the filter of half the size, with the same n-grams."""
    lines = words.reshape(-1, 2, (1 << LOG2_LINE) // 64)
    return (lines[:, 0] | lines[:, 1]).ravel()


@contextmanager
def writing_sketch(store: Store, sketch: str, shard: str, *, bits: int) -> Iterator[ShardSketcher]:
    """Yield a sketcher for the parts of a shard, and save the sketch if the block succeeds."""
    with atomic_path(store.sketch_filters(sketch, shard)) as draft:
        with draft.open("wb") as file:
            sketcher = ShardSketcher(file, bits=bits)
            yield sketcher
            arrays = sketcher.arrays()
        seal(draft, end=EMPTY)
    write_arrays(store.sketch_blocks(sketch, shard), arrays)


def remove_filters(store: Store, sketch: str, shard: str) -> None:
    """Remove the filters of a shard, which are also in the sketch of its pack."""
    store.sketch_filters(sketch, shard).unlink(missing_ok=True)
