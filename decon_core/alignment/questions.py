"""The questions of all benchmarks as a scan needs them, and what other items share with each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from decon_core.alignment.comparison import Question
from decon_core.alignment.siblings import items_with_runs, own_of
from decon_core.alignment.units import units_of
from decon_core.text.characters import Form

if TYPE_CHECKING:
    from decon_core.storage.tables import Array

Integers = npt.NDArray[np.int64]
Rows = Sequence[Mapping[str, Any]]

_QUESTIONS_KEPT = 1 << 14


@lru_cache(maxsize=_QUESTIONS_KEPT)
def size_of(question: str, form: Form) -> tuple[int, int]:
    """Return the number of units of a question, and their weight."""
    units = units_of(question, form)
    return len(units), sum(units.weights)


def index_of(records: Sequence[Rows], form: Form) -> dict[str, Array]:
    """Return the questions of each benchmark, and for each unit how many items share it."""
    questions: list[bytes] = []
    question_of: list[int] = []
    shared: list[Integers] = []
    for rows in records:
        passages: dict[str, set[str]] = {}
        for row in rows:
            passages.setdefault(row["question"], set()).add(row["passage"] or "")
        number_of = {question: len(questions) + at for at, question in enumerate(passages)}
        questions += [question.encode() for question in passages]
        question_of += [number_of[row["question"]] for row in rows]
        units = [units_of(question, form) for question in passages]
        n_items = [max(1, len(about - {""})) for about in passages.values()]
        shared += items_with_runs(units, n_items)
    return {
        "text": np.frombuffer(b"".join(questions), np.uint8),
        "text_edges": _edges(map(len, questions)),
        "question_of": np.array(question_of, np.int64),
        "record_edges": _edges(map(len, records)),
        "n_items_with": np.concatenate([np.empty(0, np.int64), *shared]).astype(np.uint32),
        "unit_edges": _edges(map(len, shared)),
    }


def _edges(lengths: Any) -> Integers:
    return np.append(0, np.cumsum(np.fromiter(lengths, np.int64)))


class Questions:
    """The indexed questions, of which those that were nominated are kept."""

    def __init__(self, arrays: Mapping[str, Any], form: Form) -> None:
        self._arrays, self._form = arrays, form
        self.get = lru_cache(maxsize=_QUESTIONS_KEPT)(self._load)

    def number(self, part: int, record: int) -> int:
        arrays = self._arrays
        return int(arrays["question_of"][arrays["record_edges"][part] + record])

    def _load(self, number: int) -> Question:
        arrays = self._arrays
        start, stop = arrays["text_edges"][number : number + 2].tolist()
        text = arrays["text"][start:stop].tobytes().decode()
        first, last = arrays["unit_edges"][number : number + 2].tolist()
        own = own_of(arrays["n_items_with"][first:last].astype(np.int64))
        return Question(units_of(text, self._form), own, len(text))
