"""The index of all questions as units, with what other items share with each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from decon_core.alignment.siblings import items_with_runs, own_of
from decon_core.alignment.units import Units, spelled_units
from decon_core.kernels.arrays import Integers
from decon_core.kernels.word_alignment import WORTH, WORTH_OF_STOP_WORD
from decon_core.text.characters import Form
from decon_core.text.content_words import is_content, weight_of_word
from decon_core.text.word_cache import edges_of

if TYPE_CHECKING:
    from decon_core.storage.tables import Array

Rows = Sequence[Mapping[str, Any]]

COLUMNS = ("question", "passage", "split", "instance_index", "is_correct")


def sizes_of(questions: Sequence[str], form: Form) -> tuple[Integers, Integers]:
    """Return the number of units of each question, and their weight."""
    number_of = {question: number for number, question in enumerate(dict.fromkeys(questions))}
    units, spelled, kind = spelled_units([*number_of], form)
    sums = _sums(np.array([*map(weight_of_word, spelled)], np.uint32)[kind], units)
    numbers = [number_of[question] for question in questions]
    return units.lengths[numbers], sums[numbers]


def sizes_in(index: Mapping[str, Any], number: int) -> tuple[Integers, Integers]:
    """Return the sizes of the questions of a benchmark's records, from the benchmarks' index."""
    records = slice(*index["record_edges"][number : number + 2].tolist())
    questions, edges = index["question_of"][records], index["unit_edges"]
    return edges[questions + 1] - edges[questions], index["weight"][questions]


def index_of(records: Iterable[Rows], form: Form) -> dict[str, Array]:
    """Return the units of the questions of each benchmark, and the question of each record."""
    n_questions = n_items = 0
    n_records: list[int] = []
    columns = [_columns_of({}, form) | _records_of([], {}, {})]  # without a benchmark: empty
    for rows in records:
        passages: dict[str, set[str]] = {}
        items: dict[tuple[str, int], int] = {}
        for row in rows:
            passages.setdefault(row["question"], set()).add(row["passage"] or "")
            items.setdefault((row["split"], row["instance_index"]), n_items + len(items))
        number_of = {question: n_questions + at for at, question in enumerate(passages)}
        n_questions, n_items = n_questions + len(passages), n_items + len(items)
        n_records.append(len(rows))
        columns.append(_columns_of(passages, form) | _records_of(rows, number_of, items))
    # Column by column, so that the parts of a column are freed before the next one is joined.
    joined = {name: np.concatenate([of.pop(name) for of in columns]) for name in [*columns[0]]}
    return joined | {
        "unit_edges": edges_of(joined.pop("n_units")),
        "record_edges": edges_of(n_records),
    }


def _records_of(
    rows: Rows, number_of: Mapping[str, int], items: Mapping[tuple[str, int], int]
) -> dict[str, Array]:
    """Return the question and the item of each record, by number, and whether it is wrong."""
    item_of = [items[row["split"], row["instance_index"]] for row in rows]
    return {
        "question_of": np.array([number_of[row["question"]] for row in rows], np.int64),
        "item_of": np.array(item_of, np.int64),
        "is_wrong": np.array([row["is_correct"] is False for row in rows], np.uint8),
    }


def _columns_of(passages: Mapping[str, set[str]], form: Form) -> dict[str, Array]:
    """Return the questions of one benchmark as arrays."""
    units, spelled, kind = spelled_units([*passages], form)
    n_items = [max(1, len(about - {""})) for about in passages.values()]
    weights = np.array([*map(weight_of_word, spelled)], np.uint32)[kind]
    n_items_with = items_with_runs(units.keys, units.lengths, n_items)
    is_own, n_family = own_of(n_items_with, units.lengths)
    own_weights = weights * is_own
    is_worth = np.array([*map(is_content, spelled)], np.bool_)[kind] | (units.is_number == 1)
    return {
        "keys": units.keys,
        "is_number": units.is_number,
        "is_name": units.is_name,
        "weights": weights,
        "own_weights": own_weights,
        "worth": np.where(is_worth, WORTH, WORTH_OF_STOP_WORD).astype(np.uint8),
        "weight": _sums(weights, units),
        "own_weight": _sums(own_weights, units),
        "n_family": n_family,
        "n_units": units.lengths,
        "n_characters": np.array([*map(len, passages)], np.int64),
    }


def _sums(weights: npt.ArrayLike, units: Units) -> Integers:
    """Return the sum of the weights of each text's units."""
    up_to = np.append(0, np.cumsum(weights, dtype=np.int64))
    return np.diff(up_to[units.edges])
