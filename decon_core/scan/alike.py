"""Keeps one match of the records of an item that are found alike: mostly its choices.

Detectors that search for questions find all choices of an item at the same place by the same words,
with the same score. Of these, decisions choose the correct one, or the first. Only its match is
kept, with the range of records that share it: a verdict may be about any of them
(`decisions/match_reader.py`).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from decon_core.config import detector_registry as registry
from decon_core.detectors.detector import ABSENT
from decon_core.kernels.arrays import Bools, Floats, Integers, Words64, distinct
from decon_core.kernels.hashing import MIX
from decon_core.scan.matches import Columns

Items = tuple[Integers, Bools]  # per record: its item, and whether it is the correct choice

_EQUAL = (
    "row", "part", "base_score", "question_overlap", "passage_overlap", "n_matched", "n_grams",
    "question_tokens", "question_start", "question_stop", "answer_start", "answer_stop",
    "question_char_start", "question_char_stop", "answer_char_start", "answer_char_stop",
)  # fmt: skip
# What choices may differ in though neither of their answers was found.
_OF_ANSWER = ("answer_overlap", "total_tokens")


def items_of(labels: pa.Table) -> Items:
    """Return for each record a number of its item, and whether it is the correct choice."""
    split = labels["split"].combine_chunks().dictionary_encode().indices.to_numpy()
    number = labels["instance_index"].to_numpy()
    is_new = (np.diff(split) != 0) | (np.diff(number) != 0)
    is_correct = labels["is_correct"].fill_null(fill_value=False)
    return np.cumsum(np.append(0, is_new)), is_correct.to_numpy(zero_copy_only=False)


def without_alike(columns: Columns, items_of_part: Callable[[int], Items]) -> Columns:
    """Return the matches of a detector that are kept, and the records that share each of them."""
    detector, record = registry.get(columns["detector"][0]), columns["record"]
    if detector.uses_ngram_index:  # whose exact repeats are found by their record
        alone = np.full(record.size, ABSENT)
        return columns | {"first_record": alone, "n_alike": alone}
    item, is_correct = np.empty(record.size, np.int64), np.empty(record.size, np.bool_)
    for part in distinct(columns["part"]).tolist():
        rows = np.flatnonzero(columns["part"] == part)
        of_part = items_of_part(part)
        item[rows], is_correct[rows] = (of_record[record[rows]] for of_record in of_part)
    compared = _compared(columns, item, compares_fields=detector.compares_fields)
    order = np.lexsort((record, ~is_correct, _digests(compared)))
    is_new = np.append(True, (np.diff(compared[:, order], axis=1) != 0).any(axis=0))
    first = np.flatnonzero(is_new)
    n = np.diff(first, append=order.size)
    lowest, highest = (each.reduceat(record[order], first) for each in (np.minimum, np.maximum))
    is_range = highest - lowest + 1 == n
    kept = is_new | np.repeat(~is_range, n)
    is_shared = is_range & (n > 1)
    shared = np.repeat(np.where(is_shared, [lowest, n], ABSENT), n, axis=1)[:, kept]
    rows = order[kept]
    in_order = np.argsort(rows)
    left = {name: values[rows[in_order]] for name, values in columns.items()}
    return left | dict(zip(("first_record", "n_alike"), shared[:, in_order], strict=True))


def _compared(columns: Columns, item: Integers, *, compares_fields: bool) -> Floats:
    """Return rows of numbers that are the same for matches that are alike."""
    names = [*zip(columns["kind"].tolist(), columns["searched_text"].tolist(), strict=True)]
    numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
    named = [numbers[name] for name in names]
    of_answer = np.array([columns[name] for name in _OF_ANSWER], np.float64)
    if compares_fields:
        of_answer[:, columns["answer_start"] == ABSENT] = ABSENT
    return np.array([item, named, *(columns[name] for name in _EQUAL), *of_answer], np.float64)


def _digests(compared: Floats) -> Words64:
    """Return a digest of each column, by which equal ones are brought together."""
    digests = np.zeros(compared.shape[1], np.uint64)
    for values in compared:
        digests = (digests ^ values.view(np.uint64)) * MIX
        digests ^= digests >> np.uint64(29)
    return digests
