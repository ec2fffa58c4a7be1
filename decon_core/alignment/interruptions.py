"""A question in pieces that stand so far apart that no comparison has all of them.

An advertisement or the end of a page may stand between two sentences of a question.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from decon_core.alignment.comparison import Comparison, Questions
from decon_core.alignment.nominations import Nomination
from decon_core.alignment.units import Units
from decon_core.kernels.arrays import Integers, distinct

_MOST_BETWEEN = 2_000  # characters
_NEARLY_ALL = 0.9  # share of a question's units

Place = tuple[Nomination, Comparison]


def joined(
    compared: Sequence[tuple[Nomination, Comparison | None]], questions: Questions, units: Units
) -> Iterator[Place]:
    """Yield the questions of a document of which all pieces together are nearly everything.

    `units`: those whose numbers the comparisons have. Questions about a passage are left out: it
    has words of them, which are no pieces of a copy.
    """
    of_questions: dict[int, list[Place]] = {}
    for nomination, comparison in compared:
        if comparison and nomination.passage is None:
            of_questions.setdefault(nomination.question, []).append((nomination, comparison))
    for places in of_questions.values():
        for near in _near_each_other(places) if len(places) > 1 else ():
            if _may_be_all(near) and (whole := _as_one(near, questions, units)):
                nomination = near[0][0]
                for other, _ in near[1:]:
                    nomination = nomination.joined(other)
                stop = max(other.stop for other, _ in near)
                yield nomination._replace(stop=stop), whole


def _near_each_other(places: Sequence[Place]) -> Iterator[list[Place]]:
    """Yield the places of a question that follow each other with little text between."""
    near: list[Place] = []
    for place in sorted(places, key=lambda of: (of[1].start, of[1].stop)):
        if near and place[1].start - near[-1][1].stop > _MOST_BETWEEN:
            yield near
            near = []
        near.append(place)
    yield near


def _may_be_all(places: Sequence[Place]) -> bool:
    """Whether no place has nearly all units of the question, but all of them together do."""
    least = _NEARLY_ALL * places[0][1].n_units
    if len(places) < 2 or max(of.n_found for _, of in places) >= least:
        return False
    found = [of.found_at[:, 0] for _, of in places]
    return distinct(np.concatenate(found)).size >= least


def _as_one(places: Sequence[Place], questions: Questions, units: Units) -> Comparison | None:
    """Compare a question with the words of its places as if nothing stood between them."""
    spans = [np.arange(of.places[0], of.places[-1] + 1) for _, of in places]
    rows = distinct(np.concatenate(spans))
    all_rows = np.array([[0, rows.size]])
    question = np.array([places[0][0].question])
    (whole,) = questions.compare(question, _rows_of(units, rows), all_rows, all_rows)
    if whole is None:
        return None
    there = rows[whole.places]
    n_between = int(there[-1] - there[0] - (whole.places[-1] - whole.places[0]))
    whole = whole._replace(places=there, n_inserted=whole.n_inserted + n_between)
    return whole if whole.is_in_pieces else None


def _rows_of(units: Units, rows: Integers) -> Units:
    names = "keys", "is_number", "is_name", "starts", "stops"
    columns = {name: getattr(units, name)[rows] for name in names}
    return replace(units, **columns, lengths=np.array([rows.size]))
