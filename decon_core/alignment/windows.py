"""The units of documents around nominations, each read once though the windows overlap."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from decon_core.alignment.units import units_of
from decon_core.kernels.arrays import Integers, Table
from decon_core.text.characters import Form

MARGIN = 80  # characters around a nomination, besides those that the question may fill
_WORD_REST = re.compile(r"\S+")


class Around:
    """The units of documents in windows, which may overlap: each is read once."""

    def __init__(
        self, texts: Sequence[str], number_of: Integers, windows: Table, form: Form
    ) -> None:
        merged: list[list[int]] = []  # document, start, stop
        order = np.lexsort([*windows.T[::-1], number_of])
        in_order = np.column_stack([number_of, windows])[order]
        for number, start, stop in in_order.tolist():
            if merged and merged[-1][0] == number and start <= merged[-1][2]:
                merged[-1][2] = max(merged[-1][2], stop)
            else:
                merged.append([number, start, stop])
        within = [texts[number][start:stop] for number, start, stop in merged]
        self.units = units_of(within, form)
        numbers, starts, _ = np.array(merged, np.int64).reshape(-1, 3).T
        of_units = np.repeat(np.arange(len(merged)), self.units.lengths)
        self.units.starts[:] += starts[of_units]
        self.units.stops[:] += starts[of_units]
        self._starts, self._stops = (
            _in_row(numbers[of_units], places) for places in (self.units.starts, self.units.stops)
        )

    def within(self, number_of: Integers, windows: Table) -> Table:
        """Return which units begin in ranges of characters of documents."""
        edges = (_in_row(number_of, windows[:, edge]) for edge in (0, 1))
        return np.column_stack([np.searchsorted(self._starts, edge) for edge in edges])

    def touched(self, number_of: Integers, spans: Table) -> Table:
        """Return which units overlap ranges of characters of documents."""
        start, stop = (_in_row(number_of, spans[:, edge]) for edge in (0, 1))
        first = np.searchsorted(self._stops, start, side="right")
        return np.column_stack([first, np.searchsorted(self._starts, stop)])


def window_around(text: str, span: Sequence[int], n_characters: int) -> tuple[int, int]:
    """Return the span and what surrounds it, as far as a question of so many may reach."""
    missing = max(0, n_characters - (span[1] - span[0]))
    margin = missing + n_characters // 4 + MARGIN
    start, stop = max(0, span[0] - margin), min(len(text), span[1] + margin)
    before = text[max(0, start - MARGIN) : start]
    if before and not before[-1].isspace():
        start -= len(before.rsplit(None, 1)[-1])
    word_rest = _WORD_REST.match(text, stop, stop + MARGIN)
    return start, word_rest.end() if word_rest else stop


def _in_row(number_of: Integers, places: Integers) -> Integers:
    """Return characters of documents as if these followed each other, far apart."""
    return (number_of << 40) + places
