"""The sketch of a pack: the filters of all its blocks as rows, in one file.

A benchmark reads the rows of its n-grams, a few bytes each, instead of whole filters. Filters of
different sizes have rows of their own: a *group* for each size.
"""

from __future__ import annotations

import mmap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property, partial
from hashlib import sha256
from pathlib import Path

import numpy as np

from decon_core.config.policy import VERDICT_VERSION, Policy, digest_of
from decon_core.config.sources import Sketch
from decon_core.corpus.packs import Pack
from decon_core.corpus.sketch.shard_sketch import (
    ShardBlocks,
    has_filters,
    open_blocks,
    open_filters,
    remove_filters,
)
from decon_core.errors import DamagedError
from decon_core.kernels.arrays import Bools, Bytes, Flags, Integers, Words64, distinct
from decon_core.kernels.ngram_filters import CHECK_BYTES, Rows, write_rows
from decon_core.storage.checksums import EMPTY, N_BYTES, damaged, seal
from decon_core.storage.files import atomic_path
from decon_core.storage.store import Store
from decon_core.storage.tables import map_arrays, write_arrays
from decon_core.text.tokenizers import load_tokenizer

# Increased when the content of a sketch changes.
_SKETCH_VERSION = 6

# A unit has at least this many bytes of rows, so that its check adds at most an eighth.
_LEAST_UNIT_BYTES = 16
_SPARE_BYTES = 16  # kernels read past the end
_BYTES_AT_ONCE = 32 << 20  # bytes of filters
_PAGE_BYTES = 4096  # what a local disk reads at least

# Looks up texts in rows: takes the rows, flags of the units that were read, and for each text a bit
# per block, which it sets if the block may contain a match. Returns False at damage.
LookUp = Callable[[Rows, Flags, Words64], bool]


@dataclass(frozen=True)
class _Layout:
    """Where the rows of a group lie in the file."""

    log2_bits: int
    n_blocks: int
    offset: int

    @property
    def rows_per_unit(self) -> int:
        n = 1
        while n * self.n_blocks < 8 * _LEAST_UNIT_BYTES:
            n *= 2
        return n

    @property
    def unit_bytes(self) -> int:
        return -(-self.rows_per_unit * self.n_blocks // 8) + CHECK_BYTES

    @property
    def n_units(self) -> int:
        return (1 << self.log2_bits) // self.rows_per_unit

    @property
    def n_bytes(self) -> int:
        """The size in the file; the next group begins at a multiple of eight."""
        return -(-(self.n_units * self.unit_bytes + _SPARE_BYTES) // 8) * 8

    def rows(self, eights: Words64) -> Rows:
        return Rows(eights, self.log2_bits, self.n_blocks, self.rows_per_unit, self.unit_bytes)


def _layouts(log2_bits: Integers) -> list[_Layout]:
    """Return the layouts of the groups of blocks with filters of these sizes."""
    layouts: list[_Layout] = []
    for log2, n in zip(*np.unique(log2_bits, return_counts=True), strict=True):
        offset = layouts[-1].offset + layouts[-1].n_bytes if layouts else 0
        layouts.append(_Layout(int(log2), int(n), offset))
    return layouts


def sketch_fingerprint(policy: Policy, sketch: Sketch) -> str:
    """Return the fingerprint of what a sketch depends on besides its shard."""
    tokenizer = load_tokenizer(policy.tokenizer_str).fingerprint
    settings = {"form": asdict(policy.form), "ngram_size": policy.ngram_size, "bits": sketch.bits}
    return digest_of([settings, tokenizer, VERDICT_VERSION, _SKETCH_VERSION])


def pack_key(pack: Pack) -> str:
    """Return what names the sketch of a pack: its shards."""
    shards = "\n".join(shard.fingerprint for shard in pack.shards)
    return sha256(shards.encode()).hexdigest()[:16]


def has_pack_sketch(store: Store, sketch: str, pack: Pack) -> bool:
    return all(path.is_file() for path in _paths(store, sketch, pack))


def _paths(store: Store, sketch: str, pack: Pack) -> tuple[Path, Path]:
    key = pack_key(pack)
    return store.pack_sketch(sketch, key), store.pack_sketch_rows(sketch, key)


def remove_pack_sketch(store: Store, sketch: str, pack: Pack) -> None:
    for path in _paths(store, sketch, pack):
        path.unlink(missing_ok=True)


def build_pack_sketch(
    store: Store, sketch: str, pack: Pack, *, keeps_filters: bool = False
) -> bool:
    """Join the sketches of the shards of a pack; return False if some shard has none.

    The filters of the shards are then removed, unless they are needed for another pack.
    """
    shards = list(dict.fromkeys(shard.fingerprint for shard in pack.shards))
    if not all(has_filters(store, sketch, shard) for shard in shards):
        return False
    blocks = [open_blocks(store, sketch, shard) for shard in shards]
    filters = [*map(partial(open_filters, store, sketch), shards, blocks)]
    log2_bits = np.concatenate([np.empty(0, np.int64), *(block.log2_bits for block in blocks)])
    about, rows = _paths(store, sketch, pack)
    with atomic_path(rows) as draft:
        with draft.open("wb") as file:
            for layout in _layouts(log2_bits):
                for piece in _pieces(layout, [*_of_size(blocks, filters, layout.log2_bits)]):
                    file.write(piece.data)
        seal(draft, end=EMPTY)
    offsets = np.cumsum([0, *map(len, blocks)], dtype=np.int64)
    write_arrays(about, {"offsets": offsets, "log2_bits": log2_bits})
    for shard in () if keeps_filters else shards:
        remove_filters(store, sketch, shard)
    return True


def _of_size(
    blocks: Sequence[ShardBlocks], filters: Sequence[Words64], log2_bits: int
) -> Iterator[Words64]:
    """Yield the filters of one size, in the order of shards and blocks."""
    for blocks_of_shard, words in zip(blocks, filters, strict=True):
        at = 0
        for log2 in blocks_of_shard.log2_bits.tolist():
            n_words = (1 << log2) // 64
            if log2 == log2_bits:
                yield words[at : at + n_words]
            at += n_words


def _pieces(layout: _Layout, filters: Sequence[Words64]) -> Iterator[Bytes]:
    """Yield the bytes of a group in pieces of whole units."""
    n_words = (1 << layout.log2_bits) // 64
    step = 8  # a power of two: 512 rows, which are whole units
    while 16 * step * len(filters) <= _BYTES_AT_ONCE and step < n_words:
        step *= 2
    for first in range(0, n_words, step):
        columns = np.concatenate([words[first : first + step] for words in filters])
        n_units = 64 * step // layout.rows_per_unit
        n_bytes = n_units * layout.unit_bytes
        eights = np.zeros(-(-n_bytes // 8) + 2, np.uint64)
        write_rows(columns, layout.rows(eights), 64 * first // layout.rows_per_unit)
        yield eights.view(np.uint8)[:n_bytes]
    yield np.zeros(layout.n_bytes - layout.n_units * layout.unit_bytes, np.uint8)


@dataclass(frozen=True, eq=False)
class Possible:
    """Which blocks of a pack may contain a match of which texts; all others contain none."""

    is_possible: Bools  # per block, of any text
    groups: Sequence[tuple[Integers, Words64]]  # blocks, and a bit per text and block

    def n_blocks_of_texts(self) -> Integers:
        """Return for each text the number of blocks that may contain a match."""
        counts = [np.bitwise_count(bits).sum(axis=1, dtype=np.int64) for _, bits in self.groups]
        return np.asarray(np.sum(counts, axis=0, dtype=np.int64))

    def blocks_of(self, text: int) -> list[int]:
        """Return the blocks that may contain a match of a text."""
        numbers: list[int] = []
        for blocks, bits in self.groups:
            flags = np.unpackbits(bits[text].view(np.uint8), bitorder="little")
            numbers += blocks[np.flatnonzero(flags)].tolist()
        return sorted(numbers)


@dataclass(frozen=True, eq=False)
class PackSketch:
    """The sketch of a pack, mapped into memory; only what is looked up is read."""

    path: Path
    shards: tuple[str, ...]  # fingerprints
    offsets: Integers  # range of the blocks of each shard
    log2_bits: Integers  # size of the filter of each block
    eights: Words64
    is_read: dict[int, Flags] = field(default_factory=dict)  # flags of the units of a group

    @cached_property
    def layouts(self) -> list[_Layout]:
        return _layouts(self.log2_bits)

    def possible(self, n_texts: int, look_up: LookUp) -> Possible:
        """Look up texts. Raises `DamagedError` if a unit that is read is damaged."""
        is_possible, groups = np.zeros(self.log2_bits.size, np.bool_), []
        for number, layout in enumerate(self.layouts):
            eights = self.eights[layout.offset // 8 : (layout.offset + layout.n_bytes) // 8]
            is_read = self.is_read.setdefault(number, np.zeros(layout.n_units, np.uint8))
            bits = np.zeros((n_texts, -(-layout.n_blocks // 64)), np.uint64)
            if not look_up(layout.rows(eights), is_read, bits):
                raise DamagedError(damaged(self.path, "a row does not match its checksum"))
            blocks = np.flatnonzero(self.log2_bits == layout.log2_bits)
            any_text = np.bitwise_or.reduce(bits, axis=0, initial=0)
            flags = np.unpackbits(any_text.view(np.uint8), bitorder="little")[: blocks.size]
            is_possible[blocks] = flags.astype(np.bool_)
            groups.append((blocks, bits))
        return Possible(is_possible, groups)

    @property
    def n_bytes_read(self) -> int:
        """The size of the units that were looked up, each once."""
        return sum(
            self.layouts[number].unit_bytes * int(flags.sum())
            for number, flags in self.is_read.items()
        )

    @property
    def n_page_bytes_read(self) -> int:
        """The size of the pages of a disk with these units."""
        n_pages = 0
        for number, flags in self.is_read.items():
            layout, units = self.layouts[number], np.flatnonzero(flags)
            first = (layout.offset + units * layout.unit_bytes) // _PAGE_BYTES
            last = (layout.offset + (units + 1) * layout.unit_bytes - 1) // _PAGE_BYTES
            n_pages += distinct(np.concatenate([first, last])).size
        return n_pages * _PAGE_BYTES

    def blocks_of(self, shard: str, possible: Bools) -> tuple[tuple[int, ...], int]:
        """Return the possible blocks of a shard, and the number of all its blocks."""
        number = self.shards.index(shard)
        flags = possible[self.offsets[number] : self.offsets[number + 1]]
        return tuple(np.flatnonzero(flags).tolist()), flags.size


def open_pack_sketch(store: Store, sketch: str, pack: Pack) -> PackSketch:
    """Map the sketch of a pack into memory."""
    about, path = _paths(store, sketch, pack)
    arrays, _ = map_arrays(about)
    shards = tuple(dict.fromkeys(shard.fingerprint for shard in pack.shards))
    offsets, log2_bits = arrays["offsets"], arrays["log2_bits"]
    n_bytes = sum(layout.n_bytes for layout in _layouts(log2_bits))
    if offsets.size != len(shards) + 1 or path.stat().st_size != n_bytes + N_BYTES:
        raise DamagedError(damaged(path, "its size is wrong"))
    with path.open("rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    mapped.madvise(mmap.MADV_RANDOM)  # single rows are read: no reading ahead
    eights = np.frombuffer(mapped, np.uint64, n_bytes // 8)
    return PackSketch(path, shards, offsets, log2_bits, eights)
