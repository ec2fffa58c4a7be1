"""Runs of hits in documents: n-grams of questions that are near each other.

Nearly all text is rejected by two fast tests without false negatives: a filter of the n-grams in
the index, and an upper bound of the score of a run of hits. `clusters.py` scores the rest.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from decon_core.kernels.arrays import Integers, Numbers, Table, Words64
from decon_core.kernels.hashing import (
    ONE,
    ZERO,
    digest_of,
    has_bit,
    pair_digest,
    scaled,
    shift_for,
    slot_of_known,
)
from decon_core.kernels.instructions import lowest_bit, prefetch
from decon_core.kernels.jit import inlined, kernel
from decon_core.kernels.question_index import Index, may_be_gram

# Bounds are relaxed by this factor against rounding: false positives, but no false negatives.
LENIENT = 1.0 - 1e-6

_STRETCH = 1 << 10  # pairs of tokens after which their n-grams are looked up
_GROUP = 64  # n-grams of a group: one bit each
_GROUP_BITS = np.uint64(_GROUP)


class Hits(NamedTuple):
    """The n-grams of the index in documents, in order."""

    places: Integers  # first token, counted in the document
    grams: Integers
    offsets: Integers  # range of each document


class Seen(NamedTuple):
    """Which documents were last seen with an n-gram of the index."""

    last: Numbers  # per n-gram: serial number of the last document with it
    first_serial: int  # of the first document of a batch


@kernel
def find_hits(tokens: Numbers, offsets: Integers, index: Index, hits: Hits) -> None:
    """Write the n-grams of the index in documents; there is room for as many as tokens.

    Documents of fewer than two n-grams are left out.
    """
    size = index.policy.ngram_size
    pairs, in_filter, slots = index.pairs, index.filter, index.slots
    known, grams_at = index.question_tokens, index.gram_at
    hit_places, hit_grams, hit_offsets = hits
    places, digests = np.empty(_STRETCH, np.int64), np.empty(_STRETCH, np.uint64)
    n_hits = 0
    for document in range(offsets.size - 1):
        hit_offsets[document] = n_hits
        start, stop = offsets[document], offsets[document + 1]
        if stop - start < 2 * size:
            continue
        before = ZERO
        for stretch in range(start, stop - 1, _STRETCH):
            n_pairs = min(_STRETCH, stop - 1 - stretch)
            n_places, before = _possible_places(
                tokens, start, stretch, n_pairs, size, before, pairs, in_filter, places, digests
            )
            # In several loops, each over the places that passed the one before: what the next one
            # reads is prefetched.
            n_possible = 0
            for at in range(n_places):
                if may_be_gram(digests[at], in_filter):
                    prefetch(slots, scaled(digests[at], slots.size))
                    places[n_possible], digests[n_possible] = places[at], digests[at]
                    n_possible += 1
            for at in range(n_possible):
                number = np.int64(slots[scaled(digests[at], slots.size)])
                prefetch(grams_at, max(number - 1, 0))
            for at in range(n_possible):
                slot = scaled(digests[at], slots.size)
                slot = slot_of_known(tokens, places[at], size, slot, known, grams_at, slots)
                if slots[slot]:
                    hit_places[n_hits] = places[at] - start
                    hit_grams[n_hits] = np.int64(slots[slot]) - 1
                    n_hits += 1
    hit_offsets[offsets.size - 1] = n_hits


@kernel
def find_distinct(hits: Hits, seen: Seen, grams: Numbers) -> int:
    """Write each n-gram once for every document that has it; return how many."""
    n = 0
    for document in range(hits.offsets.size - 1):
        serial = np.uint32(seen.first_serial + document)
        for hit in range(hits.offsets[document], hits.offsets[document + 1]):
            gram = hits.grams[hit]
            if seen.last[gram] != serial:
                seen.last[gram] = serial
                grams[n] = np.uint32(gram)
                n += 1
    return n


@kernel
def find_runs(hits: Hits, first_document: int, index: Index, runs: Table) -> tuple[int, int]:
    """Find runs of hits that may contain a match; write document, first and last hit.

    Every cluster lies within one run of hits, of any records, whose gaps are no longer than a
    cluster allows. The sum of the weights of all hits in a run bounds the score of any record
    there. Returns the number of runs, and the document to continue with if `runs` is full.
    """
    places, grams, offsets = hits
    gram_weight, weight_levels = index.gram_weight, index.weight_levels
    gram_need, need_levels = index.gram_need, index.need_levels
    longest_gap = index.policy.longest_gap
    n_runs = 0
    for document in range(first_document, offsets.size - 1):
        n_before = n_runs
        first, stop = offsets[document], offsets[document + 1]
        weight, need = 0.0, np.inf
        for hit in range(first, stop):
            if hit > first and places[hit] - places[hit - 1] > longest_gap:
                if weight >= need * LENIENT:
                    n_runs = _add_run(document, first, hit - 1, runs, n_runs)
                first = hit
                weight, need = 0.0, np.inf
            weight += weight_levels[gram_weight[grams[hit]]]
            need = min(need, need_levels[gram_need[grams[hit]]])
        if weight >= need * LENIENT:
            n_runs = _add_run(document, first, stop - 1, runs, n_runs)
        if n_runs > runs.shape[0]:
            return n_before, document
    return n_runs, offsets.size - 1


@inlined
def _possible_places(
    tokens: Numbers,
    start: int,
    stretch: int,
    n_pairs: int,
    size: int,
    before: np.uint64,
    pairs: Words64,
    in_filter: Words64,
    places: Integers,
    digests: Words64,
) -> tuple[int, np.uint64]:
    """Write the places of n-grams whose pairs of tokens all are in questions, and their digests.

    Most text lacks such pairs, so that no n-gram needs to be looked up. The others are prefetched.
    Returns the number of places, and which of the last pairs are known.
    """
    shift = shift_for(pairs)
    n_places = 0
    for group in range(stretch, stretch + n_pairs, _GROUP):
        n = min(_GROUP, stretch + n_pairs - group)
        known = _known_pairs(tokens, group, n, pairs, shift)
        ends = _ends_of_known(known, before, size - 1)
        before = known
        while ends:
            place = group + np.int64(lowest_bit(ends)) + 2 - size
            ends &= ends - ONE
            if place >= start:
                digest = digest_of(tokens, place, size)
                prefetch(in_filter, scaled(digest, in_filter.size))
                places[n_places], digests[n_places] = place, digest
                n_places += 1
    return n_places, before


@inlined
def _known_pairs(
    tokens: Numbers, start: int, n_pairs: int, pairs: Words64, shift: np.uint64
) -> np.uint64:
    """Return a bit for each pair of adjacent tokens from `start` on: 1 if a question may have it.

    Without a branch and independent of each other, so that their look-ups overlap.
    """
    at, known = np.uint64(start), ZERO
    for number in range(np.uint64(n_pairs)):
        digest = pair_digest(tokens[at + number], tokens[at + number + ONE])
        known |= np.uint64(has_bit(pairs, digest >> shift)) << number
    return known


@inlined
def _ends_of_known(known: np.uint64, before: np.uint64, size: int) -> np.uint64:
    """Return a bit for each pair with which `size` known ones end; `before` are the 64 before.

    Of very long n-grams it is 64: it only has to leave out most of the text.
    """
    ends = known
    for step in range(ONE, np.uint64(min(size, _GROUP))):
        ends &= known << step | before >> (_GROUP_BITS - step)
    return ends


@kernel
def _add_run(document: int, first: int, last: int, runs: Table, n_runs: int) -> int:
    """Write a run; return the number of runs, including those that did not fit."""
    if n_runs < runs.shape[0]:
        runs[n_runs, 0], runs[n_runs, 1], runs[n_runs, 2] = document, first, last
    return n_runs + 1
