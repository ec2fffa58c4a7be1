"""Tables that features add to the report."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import duckdb
import pyarrow as pa

from decon_core.errors import Problem

REBUILD = "Run `decon-assets run` to materialize `report` again"
_STATES = {True: "up to date", False: "out of date or missing"}


@dataclass(frozen=True)
class ReportAddition:
    """Tables of a report, and a key of their content: with another key the report is outdated."""

    key: str
    tables: Callable[[], Mapping[str, pa.Table]]
    changes: Callable[[duckdb.DuckDBPyConnection], Iterable[Problem]] = lambda _: ()
    """Yields what changed since an outdated report was built, where that is known."""


def state_changed(product: str, in_report: bool, now: bool) -> Problem:
    """Return the problem of a product that was current when the report was built, or is now."""
    return Problem(
        product, f"{_STATES[now]}, but {_STATES[in_report]} in the report", remedy=REBUILD
    )
