"""The sketch: no n-gram is ever lost, rows are exact, and damage is noticed."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from decon_core.config.policy import Policy
from decon_core.config.sources import Sketch
from decon_core.corpus.batches import Batch, Place
from decon_core.corpus.sketch import shard_sketch
from decon_core.corpus.sketch.pack_sketch import (
    build_pack_sketch,
    has_pack_sketch,
    open_pack_sketch,
    sketch_fingerprint,
)
from decon_core.corpus.sketch.shard_sketch import (
    PartSketch,
    open_blocks,
    open_filters,
    writing_sketch,
)
from decon_core.errors import DamagedError
from decon_core.kernels.hashing import digest_of
from decon_core.kernels.ngram_filters import PROBES, enter_ngrams, find_ngram, renumber
from decon_core.text.word_cache import Ragged, edges_of

SIZE = 5
LOG2 = 13
NAME = "0123456789abcdef"


def plain_bits(tokens, offsets, size, log2):
    """The bits of a filter, one n-gram and one bit at a time."""
    bits = set()
    for start, stop in pairwise(offsets):
        for at in range(start, stop - size + 1):
            digest = int(digest_of(tokens, at, size))
            line = digest >> (64 - (log2 - 9))
            bits |= {line * 512 + (digest >> 9 * n) % 512 for n in range(PROBES)}
    return bits


def bits_of(words):
    return {
        64 * at + bit
        for at, word in enumerate(words.tolist())
        for bit in range(64)
        if word >> bit & 1
    }


documents = st.lists(st.lists(st.integers(0, 300), max_size=30), max_size=6)


def ragged(rows):
    values = np.array([token for row in rows for token in row], np.uint32)
    return Ragged(values, edges_of([len(row) for row in rows]))


@given(documents, st.integers(2, 6))
def test_prop_a_filter_has_the_bits_of_every_ngram(rows, size):
    tokens = ragged(rows)
    words = np.zeros((1 << LOG2) // 64, np.uint64)
    enter_ngrams(tokens.values, tokens.offsets, size, LOG2, words)
    assert bits_of(words) == plain_bits(tokens.values, tokens.offsets.tolist(), size, LOG2)


@given(documents)
def test_prop_half_a_filter_is_the_filter_of_half_the_size(rows):
    tokens = ragged(rows)
    whole, half = np.zeros((1 << LOG2) // 64, np.uint64), np.zeros((1 << LOG2) // 128, np.uint64)
    enter_ngrams(tokens.values, tokens.offsets, SIZE, LOG2, whole)
    enter_ngrams(tokens.values, tokens.offsets, SIZE, LOG2 - 1, half)
    assert np.array_equal(shard_sketch._halved(whole), half)


@given(st.lists(st.integers(0, 40), max_size=50), st.sets(st.integers(0, 30)))
def test_prop_tokens_are_numbered_again_as_in_an_index(tokens, known):
    number_of = np.zeros(max(known, default=-1) + 1, np.uint32)
    number_of[sorted(known)] = np.arange(1, len(known) + 1)
    numbers = np.empty(len(tokens), np.uint32)
    renumber(np.array(tokens, np.uint32), number_of, numbers)
    places = {token: at for at, token in enumerate(sorted(known), start=1)}
    assert numbers.tolist() == [places.get(token, 0) for token in tokens]


# A pack -------------------------------------------------------------------------------------------


@pytest.fixture
def small_filters(monkeypatch):
    monkeypatch.setattr(shard_sketch, "LOG2_BITS", LOG2)


def part(rng, row, n_tokens):
    """A part of one document of random tokens."""
    tokens = ragged([rng.integers(0, 10_000, n_tokens).tolist()])
    batch = replace(Batch.of_texts([f"document {row}"]), rows=np.array([row], np.int64))
    return PartSketch.of(Place(row, 1), batch, tokens, ngram_size=SIZE), tokens


def write(store, shard, parts, *, bits=5):
    with writing_sketch(store, NAME, shard, bits=bits) as sketcher:
        for one in parts:
            sketcher.add(one)
    # A scan writes these beside the sketch.
    store.sketch_ledger(NAME, shard).touch()
    store.sketch_documents(NAME, shard).touch()


@pytest.fixture(params=[1, 3, 70])
def pack(request, bench, small_filters):
    """A pack, and the tokens of each of its parts by shard."""
    rng = np.random.default_rng(request.param)
    pack = bench.pack({f"{at}.jsonl": [f"text {at}"] for at in range(2)})
    tokens = {}
    for shard in pack.shards:
        made = [part(rng, row, int(rng.integers(100, 900))) for row in range(request.param)]
        write(bench.store, shard.fingerprint, [one for one, _ in made])
        tokens[shard.fingerprint] = [of_part for _, of_part in made]
    return bench.store, pack, tokens


def looking_for(digest):
    """A lookup of one n-gram."""

    def look_up(rows, is_read, possible):
        return find_ngram(digest, rows, is_read, possible[0])

    return look_up


def test_rows_say_the_same_as_the_filters_of_the_blocks(pack):
    store, pack, tokens = pack
    filters = {}
    for shard in tokens:
        blocks = open_blocks(store, NAME, shard)
        words, at = open_filters(store, NAME, shard, blocks).copy(), 0
        for number, log2 in enumerate(blocks.log2_bits.tolist()):
            filters[shard, number] = log2, bits_of(words[at : at + (1 << log2) // 64])
            at += (1 << log2) // 64
    assert build_pack_sketch(store, NAME, pack)
    sketch = open_pack_sketch(store, NAME, pack)
    rng = np.random.default_rng(0)
    for shard, parts in tokens.items():
        blocks = open_blocks(store, NAME, shard)
        for block in range(len(blocks)):
            first = int(blocks.part_offsets[block])
            values = parts[first].values
            for at in [0, values.size - SIZE, *rng.integers(0, values.size - SIZE, 1).tolist()]:
                digest = int(digest_of(values, at, SIZE))
                possible = sketch.possible(1, looking_for(np.uint64(digest))).is_possible
                assert block in sketch.blocks_of(shard, possible)[0]
                for (other, number), (log2, bits) in filters.items():
                    line = digest >> (64 - (log2 - 9))
                    wanted = {line * 512 + (digest >> 9 * n) % 512 for n in range(PROBES)}
                    found, n_blocks = sketch.blocks_of(other, possible)
                    assert (number in found) == (wanted <= bits)
                    assert n_blocks == len(open_blocks(store, NAME, other))
    assert 0 < sketch.n_bytes_read <= sketch.n_page_bytes_read + 4096


def test_a_block_is_closed_before_its_filter_has_too_few_bits_for_an_ngram(pack):
    store, _, tokens = pack
    for shard, parts in tokens.items():
        blocks = open_blocks(store, NAME, shard)
        words, at = open_filters(store, NAME, shard, blocks), 0
        assert blocks.part_offsets[-1] == len(parts) == len(blocks.places)
        for number, log2 in enumerate(blocks.log2_bits.tolist()):
            of_block = words[at : at + (1 << log2) // 64]
            at += of_block.size
            if blocks.part_offsets[number + 1] - blocks.part_offsets[number] > 1:
                assert np.bitwise_count(of_block).sum() <= 0.452 * 64 * of_block.size


def test_the_filters_of_shards_are_removed_once_they_are_in_the_sketch_of_the_pack(pack):
    store, pack, tokens = pack
    assert not has_pack_sketch(store, NAME, pack)
    assert build_pack_sketch(store, NAME, pack)
    assert has_pack_sketch(store, NAME, pack)
    assert not any(store.sketch_filters(NAME, shard).exists() for shard in tokens)


def test_a_pack_with_a_shard_without_sketch_has_none(pack):
    store, pack, tokens = pack
    store.sketch_filters(NAME, next(iter(tokens))).unlink()
    assert not build_pack_sketch(store, NAME, pack)
    assert not has_pack_sketch(store, NAME, pack)


def test_every_flipped_bit_that_is_read_is_noticed(pack):
    store, pack, tokens = pack
    build_pack_sketch(store, NAME, pack)
    path = open_pack_sketch(store, NAME, pack).path
    content = path.read_bytes()
    values = next(iter(tokens.values()))[0].values
    look_up = looking_for(np.uint64(digest_of(values, 0, SIZE)))
    whole = open_pack_sketch(store, NAME, pack)
    whole.possible(1, look_up)
    number, flags = next(iter(whole.is_read.items()))
    layout, unit = whole.layouts[number], int(np.flatnonzero(flags)[0])
    start = layout.offset + unit * layout.unit_bytes
    for at in range(start, start + layout.unit_bytes):
        damaged = bytearray(content)
        damaged[at] ^= 1 << at % 8
        path.write_bytes(damaged)
        with pytest.raises(DamagedError, match="does not match its checksum"):
            open_pack_sketch(store, NAME, pack).possible(1, look_up)


def test_a_cut_off_sketch_is_noticed_when_it_is_opened(pack):
    store, pack, _ = pack
    build_pack_sketch(store, NAME, pack)
    path = open_pack_sketch(store, NAME, pack).path
    path.write_bytes(path.read_bytes()[:-8])
    with pytest.raises(DamagedError, match="size"):
        open_pack_sketch(store, NAME, pack)


def test_damaged_filters_of_a_shard_are_noticed_before_they_are_joined(pack):
    store, pack, tokens = pack
    path = store.sketch_filters(NAME, next(iter(tokens)))
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(DamagedError, match="checksum"):
        build_pack_sketch(store, NAME, pack)


def test_a_sketch_of_other_tokens_has_another_name():
    policy, sketch = Policy(), Sketch()
    others = [
        sketch_fingerprint(replace(policy, ngram_size=6), sketch),
        sketch_fingerprint(replace(policy, punctuation_chars="."), sketch),
        sketch_fingerprint(replace(policy, strip_markup=False), sketch),
        sketch_fingerprint(replace(policy, tokenizer_str="words"), sketch),
        sketch_fingerprint(policy, Sketch(bits=sketch.bits + 1)),
    ]
    same = replace(policy, contamination_score_threshold=0.9)
    same_name = sketch_fingerprint(same, sketch)
    assert same_name == sketch_fingerprint(policy, sketch)
    assert len({same_name, *others}) == 6
