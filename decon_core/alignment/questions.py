"""The index of all questions as units, with what other items share with each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from decon_core.alignment.blanks import blanks_of
from decon_core.alignment.operators import operators_of
from decon_core.alignment.sentences import sentences_of
from decon_core.alignment.siblings import items_with_runs, own_of
from decon_core.alignment.stated_answers import short_answers_of
from decon_core.alignment.units import Units, spelled_units, without_markup
from decon_core.kernels.arrays import Integers, Numbers, distinct
from decon_core.kernels.hashing import numbered_digests
from decon_core.kernels.word_alignment import WORTH, WORTH_OF_STOP_WORD
from decon_core.text.canonical import characters_per_word
from decon_core.text.characters import Form
from decon_core.text.content_words import is_content, weight_of_word
from decon_core.text.word_cache import edges_of

if TYPE_CHECKING:  # a detector can be asked for its words before pyarrow is loaded
    import pyarrow as pa

    from decon_core.storage.tables import Array

_ITEM = ("split", "instance_index", "sub_index")  # several questions of a row are several items
COLUMNS = ("question", "answer", "passage", *_ITEM, "is_correct")


_MOST_WORDS = 1 << 17  # words that are kept; they are hashed again with each benchmark


def sizes_of(questions: Sequence[str], form: Form) -> tuple[Integers, Integers]:
    """Return the number of words of each question, and the weight of its units."""
    number_of = {question: number for number, question in enumerate(dict.fromkeys(questions))}
    words = _Words(form)
    _, plain = without_markup([*number_of], form)
    units, kind = words.read(plain)
    sums = _sums(words.weights[kind], units)
    numbers = [number_of[question] for question in questions]
    n_words: Integers = units.lengths // units_per_word(words.per_word[kind], units)
    return n_words[numbers], sums[numbers]


def sizes_in(index: Mapping[str, Any], number: int) -> tuple[Integers, Integers]:
    """Return the sizes of the questions of a benchmark's records, from the benchmarks' index."""
    records = slice(*index["record_edges"][number : number + 2].tolist())
    questions, edges = index["question_of"][records], index["unit_edges"]
    n_units = edges[questions + 1] - edges[questions]
    return n_units // index["units_per_word"][questions], index["weight"][questions]


def index_of(records: Iterable[pa.Table], form: Form) -> dict[str, Array]:
    """Return the units of each benchmark's questions, and the question and item of each record."""
    import pyarrow.compute as pc

    from decon_core.storage.tables import numbered

    n_questions = n_items = 0
    n_records: list[int] = []
    nothing = np.zeros(0, np.int64)
    of_records = {"question_of": nothing, "item_of": nothing, "is_wrong": nothing.astype(np.uint8)}
    of_answers: dict[str, Array] = {
        "answer_sort": nothing.astype(np.uint8),
        "answer_items": nothing,
        "answer_sizes": nothing,
        "answer_bytes": nothing.astype(np.uint8),
    }
    words = _Words(form)
    # So that the arrays are empty if there is no benchmark.
    columns = [_columns_of([], nothing, words, form) | of_records | of_answers]
    for table in records:
        questions = table["question"].unique().to_pylist()
        question_of = numbered(table, ["question"])
        item_of = numbered(table, _ITEM) + n_items
        is_wrong = pc.invert(table["is_correct"].fill_null(True)).to_numpy().astype(np.uint8)
        of_records = {
            "question_of": question_of + n_questions,
            "item_of": item_of,
            "is_wrong": is_wrong,
        }
        n_passages = _count_passages(table, question_of, len(questions))
        of_answers = short_answers_of(table, item_of, is_wrong)
        columns.append(_columns_of(questions, n_passages, words, form) | of_records | of_answers)
        n_questions += len(questions)
        n_items = int(item_of.max(initial=n_items - 1)) + 1
        n_records.append(table.num_rows)
    # Column by column, so that the parts of a column are freed before the next one is joined.
    joined = {name: np.concatenate([of.pop(name) for of in columns]) for name in [*columns[0]]}
    return joined | {
        "unit_edges": edges_of(joined.pop("n_units")),
        "sentence_edges": edges_of(joined.pop("n_sentences")),
        "sentence_units": edges_of(joined.pop("sentence_sizes")),
        "operator_edges": edges_of(joined.pop("n_operators")),
        "blank_edges": edges_of(joined.pop("n_blanks")),
        "record_edges": edges_of(n_records),
        "answer_edges": edges_of(joined.pop("answer_sizes")),
    }


def _count_passages(table: pa.Table, question_of: Integers, n_questions: int) -> Integers:
    """Count the passages that each question is about, at least one."""
    import pyarrow.compute as pc

    from decon_core.storage.tables import numbered

    has_passage = pc.binary_length(table["passage"]).fill_null(0).to_numpy() > 0
    passage_of = numbered(table, ["passage"])
    n = int(passage_of.max(initial=0)) + 1
    pairs = distinct((question_of * n + passage_of)[has_passage])
    return np.maximum(np.bincount(pairs // n, minlength=n_questions), 1)


class _Words:
    """The different words of several benchmarks: each is spelled and looked up once."""

    def __init__(self, form: Form) -> None:
        self._form = replace(form, strip_markup=False)
        self._forget()

    def _forget(self) -> None:
        self._keys = np.zeros(0, np.uint64)
        self.weights = np.zeros(0, np.uint32)
        self.per_word = np.zeros(0, np.int64)
        self.is_content, self.is_letter = np.zeros((2, 0), np.bool_)

    def read(self, texts: Sequence[str]) -> tuple[Units, Numbers]:
        """Return the units of texts without mark-up, and the number of the word that each is."""
        if self._keys.size > _MOST_WORDS:
            self._forget()
        units, spelled = spelled_units(texts, self._form)
        n = self._keys.size
        number_of, first = numbered_digests(np.append(self._keys, units.keys))
        new = first[n:] - n
        self._keys = np.append(self._keys, units.keys[new])
        self._look_up(spelled(new))
        return units, number_of[n:]

    def _look_up(self, words: Sequence[str]) -> None:
        weights, per_word = map(weight_of_word, words), map(characters_per_word, words)
        self.weights = np.append(self.weights, np.array([*weights], np.uint32))
        self.per_word = np.append(self.per_word, np.array([*per_word], np.int64))
        are_content = np.array([*map(is_content, words)], np.bool_)
        self.is_content = np.append(self.is_content, are_content)
        are_letters = np.array([len(word) == 1 and word.isascii() for word in words], np.bool_)
        self.is_letter = np.append(self.is_letter, are_letters)


def _columns_of(
    questions: Sequence[str], n_items: Integers, words: _Words, form: Form
) -> dict[str, Array]:
    """Return the questions of one benchmark as arrays; `n_items`: how many items ask each."""
    _, plain = without_markup(questions, form)
    units, kind = words.read(plain)
    weights = words.weights[kind]
    n_items_with = items_with_runs(units.keys, units.lengths, n_items)
    is_own, is_in_own_run, n_family = own_of(*n_items_with, units.lengths)
    own_weights = weights * is_own
    blanks = [blanks_of(question, form) for question in questions]
    is_worth = words.is_content[kind] | (units.is_number == 1)
    return {
        "keys": units.keys,
        "is_number": units.is_number,
        "is_name": units.is_name,
        "weights": weights,
        "own_weights": own_weights,
        "is_word": (~words.is_letter[kind] & (units.is_number == 0)).astype(np.uint8),
        "is_in_own_run": is_in_own_run.astype(np.uint8),
        "worth": np.where(is_worth, WORTH, WORTH_OF_STOP_WORD).astype(np.uint8),
        "weight": _sums(weights, units),
        "own_weight": _sums(own_weights, units),
        "n_family": n_family,
        "units_per_word": units_per_word(words.per_word[kind], units),
        "n_units": units.lengths,
        "n_blanks": np.array([*map(len, blanks)], np.int64),
        "blanks": np.array([edge for of in blanks for blank in of for edge in blank], np.int64),
        **sentences_of(plain, units),
        **operators_of(plain, units),
        "n_characters": np.array([*map(len, questions)], np.int64),
    }


def units_per_word(per_word: Integers, units: Units) -> Integers:
    """Return how many units make a word of each text; more than 1 if most are single characters."""
    n_alone, n_fourths = _sums(per_word > 1, units), _sums(per_word > 2, units)
    per_word = np.where(2 * n_fourths > n_alone, 4, 2)
    return np.where(2 * n_alone > units.lengths, per_word, 1).astype(np.int64)


def _sums(weights: npt.ArrayLike, units: Units) -> Integers:
    """Return the sum of the weights of each text's units."""
    up_to = np.append(0, np.cumsum(weights, dtype=np.int64))
    return np.diff(up_to[units.edges])
