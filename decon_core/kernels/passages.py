"""Find passages anywhere in a document, and the words of a place that belong to a passage."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from decon_core.kernels.arrays import (
    Array,
    Floats,
    Integers,
    Numbers,
    Short,
    Table,
    distinct,
    filled,
    zeros,
)
from decon_core.kernels.hashing import slot_of_gram
from decon_core.kernels.jit import entry, kernel

DOCUMENT, PASSAGE = 0, 1  # columns


class Passages(NamedTuple):
    """The passages of an index, and the weights of their different n-grams as they first occur."""

    tokens: Short
    offsets: Integers
    weight_of: Short
    weight_offsets: Integers
    weights: Floats


@kernel
def _table_of(text: Array, size: int) -> tuple[Numbers, Numbers]:
    """Return a table of the first position of each n-gram, from 1, and each next position."""
    slots = zeros(2 * text.size + 2)
    after = zeros(text.size)
    for at in range(text.size - size, -1, -1):
        slot = slot_of_gram(text, at, size, text, slots)
        after[at] = slots[slot]
        slots[slot] = at + 1
    return slots, after


@kernel
def _row(values: Array, offsets: Integers, number: int) -> Array:
    return values[offsets[number] : offsets[number + 1]]


def _steps(
    _tokens: Numbers, offsets: Integers, wanted: Table, passages: Passages, *_: object
) -> int:
    documents, numbers = distinct(wanted[:, DOCUMENT]), wanted[:, PASSAGE]
    n_tokens = np.diff(offsets)[documents].sum() + np.diff(passages.offsets)[numbers].sum()
    return 10 * int(n_tokens)


@entry(compile_seconds=1.5, steps=_steps)
def find_in_documents(
    tokens: Numbers, offsets: Integers, wanted: Table, passages: Passages, size: int, least: float
) -> tuple[Floats, Integers, Integers]:
    """Find which shares of passages are in documents, by the weight of their n-grams.

    `wanted`: a row for each document and passage, in order of documents. Returns the share of each
    row, 0 if it is less than `least`; the places of the n-grams of the other rows; and the edges of
    the rows in these places.
    """
    shares = np.zeros(wanted.shape[0])
    edges = filled(wanted.shape[0] + 1, 0)
    found = np.empty(1024, np.int64)
    n_found = 0
    text = tokens[:0]
    slots, after = _table_of(text, size)
    for row in range(wanted.shape[0]):
        document, number = wanted[row, DOCUMENT], wanted[row, PASSAGE]
        if row == 0 or document != wanted[row - 1, DOCUMENT]:
            text = _row(tokens, offsets, document)
            slots, after = _table_of(text, size)
        passage = _row(passages.tokens, passages.offsets, number)
        weight_of = _row(passages.weight_of, passages.weight_offsets, number)
        whole = missed = 0.0
        for ordinal in range(weight_of.size):
            whole += passages.weights[np.int64(weight_of[ordinal])]
        of_passage, _ = _table_of(passage, size)
        ordinal = 0
        n_before = n_found
        for at in range(passage.size - size + 1):
            if of_passage[slot_of_gram(passage, at, size, passage, of_passage)] != at + 1:
                continue  # it repeats
            place = np.int64(slots[slot_of_gram(passage, at, size, text, slots)])
            if place == 0:
                missed += passages.weights[np.int64(weight_of[ordinal])]
                if whole - missed < least * whole:
                    break
            while place > 0:
                if n_found == found.size:
                    wider = np.empty(2 * found.size, np.int64)
                    wider[:n_found] = found
                    found = wider
                found[n_found] = place - 1
                n_found += 1
                place = np.int64(after[place - 1])
            ordinal += 1
        if whole > 0.0 and whole - missed >= least * whole:
            shares[row] = (whole - missed) / whole
        else:
            n_found = n_before
        edges[row + 1] = n_found
    return shares, found[:n_found], edges


@entry(compile_seconds=1.0, steps=lambda _text, passage, *_: 10 * passage.size)
def without_passage(
    text: Numbers, passage: Array, first: int, stop: int, size: int
) -> tuple[int, int]:
    """Return a range without the tokens of a passage that continues beyond either end of it."""
    slots, _ = _table_of(passage, size)
    last = text.size - size
    at = max(0, first - size + 1)
    while at < first and at <= last:
        if slots[slot_of_gram(text, at, size, passage, slots)]:
            first = at + size
        at += 1
    at = min(stop - 1, last)
    while at >= 0 and at + size > stop:
        if slots[slot_of_gram(text, at, size, passage, slots)]:
            stop = at
        at -= 1
    return first, stop
