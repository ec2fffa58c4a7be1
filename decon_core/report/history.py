"""Leak rates of earlier reports: each report keeps those of the reports that it replaced."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pyarrow as pa

from decon_core.errors import DeconError
from decon_core.report.open import opened
from decon_core.report.tables import TABLES

_MOST_REPORTS = 100  # of which the rates are kept

# Reports made in the same second need a number. A report that is built again has the same state.
_EARLIER = """
    WITH earlier AS (
        FROM earlier_rates
        UNION ALL BY NAME
        SELECT 1 + coalesce((SELECT max(report) FROM earlier_rates), 0) AS report, *
        FROM rates_of_report WHERE (SELECT state FROM runs) <> $state
    )
    FROM earlier
    QUALIFY dense_rank() OVER (ORDER BY report DESC) <= $most
    ORDER BY report, benchmark
"""


def earlier_rates(report: Path, state: str) -> pa.Table:
    """Return the rates of the report that one with this state replaces, and of those before it.

    Of a report that is damaged, or was made by a version without these tables, nothing is kept.
    """
    values = {"state": state, "most": _MOST_REPORTS}
    with suppress(DeconError), opened(report) as connection:
        return connection.sql(_EARLIER, params=values).to_arrow_table()
    return TABLES["earlier_rates"].schema.empty_table()
