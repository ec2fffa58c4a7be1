"""Formats numbers and tables, as text and as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from typing import TypeVar

T = TypeVar("T")

NOTHING = "–"

_FORMULA = ("=", "+", "-", "@", "\t", "\r")  # first characters of formulas in spreadsheets

_DECIMALS = 6


def number(value: float | None) -> str:
    return NOTHING if value is None else f"{value:.3f}"


def signed(value: float | None, *, nothing: str = "") -> str:
    # Adding 0 turns -0.0 into 0.0, which would be shown with the wrong sign.
    return nothing if value is None else f"{round(value, 3) + 0:+.3f}"


def interval(low: float | None, high: float | None, *, nothing: str = "") -> str:
    return nothing if low is None or high is None else f"{signed(low)} to {signed(high)}"


def p_value(value: float | None, *, nothing: str = "") -> str:
    if value is None:
        return nothing
    return f"{value:.3f}" if value >= 0.001 else "< 0.001"


def rounded(value: T) -> T:
    """Round a float, and return anything else: the last digits depend on the processor."""
    # Adding 0 turns -0.0 into 0.0.
    return round(value, _DECIMALS) + 0.0 if isinstance(value, float) else value  # type: ignore[return-value] # a float


def as_csv(rows: Sequence[Mapping[str, object]], heads: Sequence[str] = ()) -> str:
    """Return rows as CSV; without rows, a line with these heads.

    An apostrophe before a text keeps spreadsheets from taking it for a formula.
    """
    text = io.StringIO()
    writer = csv.DictWriter(text, [*rows[0]] if rows else heads, lineterminator="\n")
    writer.writeheader()
    writer.writerows({key: _as_cell(value) for key, value in row.items()} for row in rows)
    return text.getvalue()


def _as_cell(value: object) -> object:
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value
