"""The questions of all benchmarks as a scan needs them, and what other items share with each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from decon_core.alignment.comparison import Question
from decon_core.alignment.siblings import items_with_runs, own_of
from decon_core.alignment.units import Units, units_of
from decon_core.text.characters import Form
from decon_core.text.word_cache import edges_of

if TYPE_CHECKING:
    from decon_core.storage.tables import Array

Rows = Sequence[Mapping[str, Any]]

_QUESTIONS_KEPT = 1 << 14
_FLAGS = "is_number", "is_name"


@lru_cache(maxsize=_QUESTIONS_KEPT)
def size_of(question: str, form: Form) -> tuple[int, int]:
    """Return the number of units of a question, and their weight."""
    units = units_of(question, form)
    return len(units), sum(units.weights)


def index_of(records: Sequence[Rows], form: Form) -> dict[str, Array]:
    """Return the units of the questions of each benchmark, and how many items share each."""
    n_questions = 0
    question_of: list[int] = []
    columns = [_columns_of({}, form)]  # without a benchmark they are empty
    for rows in records:
        passages: dict[str, set[str]] = {}
        for row in rows:
            passages.setdefault(row["question"], set()).add(row["passage"] or "")
        number_of = {question: n_questions + at for at, question in enumerate(passages)}
        n_questions += len(passages)
        question_of += [number_of[row["question"]] for row in rows]
        columns.append(_columns_of(passages, form))
    joined = {name: np.concatenate([of[name] for of in columns]) for name in columns[0]}
    return joined | {
        "key_edges": edges_of(joined.pop("n_bytes")),
        "unit_edges": edges_of(joined.pop("n_units")),
        "question_of": np.array(question_of, np.int64),
        "record_edges": edges_of([len(rows) for rows in records]),
    }


def _columns_of(passages: Mapping[str, set[str]], form: Form) -> dict[str, Array]:
    """Return the questions of one benchmark as arrays, which take less memory than their units."""
    units = [units_of(question, form) for question in passages]
    n_items = [max(1, len(about - {""})) for about in passages.values()]
    keys = ["\n".join(question.keys).encode() for question in units]
    return {
        "keys": np.frombuffer(b"".join(keys), np.uint8),
        "n_bytes": np.array([*map(len, keys)], np.int64),
        "weights": _joined((question.weights for question in units), np.uint32),
        "is_number": _joined((question.is_number for question in units), np.uint8),
        "is_name": _joined((question.is_name for question in units), np.uint8),
        "n_items_with": _joined(items_with_runs(units, n_items), np.uint32),
        "n_units": np.array([*map(len, units)], np.int64),
        "n_characters": np.array([*map(len, passages)], np.int64),
    }


def _joined(columns: Iterable[Any], kind: type[np.generic]) -> Array:
    return np.concatenate([np.empty(0, kind), *(np.asarray(column, kind) for column in columns)])


class Questions:
    """The indexed questions, of which those that were nominated are kept."""

    def __init__(self, arrays: Mapping[str, Any]) -> None:
        self._arrays = arrays
        self.get = lru_cache(maxsize=_QUESTIONS_KEPT)(self._load)

    def numbers(self, parts: npt.NDArray[Any], records: npt.NDArray[Any]) -> list[int]:
        """Return the numbers of the questions of records, given as benchmark and row."""
        rows = self._arrays["record_edges"][parts] + records
        return [*map(int, self._arrays["question_of"][rows])]

    def _load(self, number: int) -> Question:
        arrays = self._arrays
        start, stop = arrays["key_edges"][number : number + 2].tolist()
        keys = arrays["keys"][start:stop].tobytes().decode()
        of_question = slice(*arrays["unit_edges"][number : number + 2].tolist())
        is_number, is_name = (
            tuple(map(bool, arrays[name][of_question].tolist())) for name in _FLAGS
        )
        return Question(
            Units(tuple(keys.split("\n")) if keys else (), is_number, is_name),
            arrays["weights"][of_question].tolist(),
            own_of(arrays["n_items_with"][of_question].astype(np.int64)),
            int(arrays["n_characters"][number]),
        )
