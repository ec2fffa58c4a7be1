"""Compare leak rates with those of the previous report."""

from __future__ import annotations

from pathlib import Path

from decon_core.config.rounding import exceeds
from decon_core.errors import Problem
from decon_core.report.open import opened, rows_of
from decon_core.wording import percent

_CHANGES = {
    "is_incomplete": "the scanned shards (one of the two reports is incomplete)",
    "is_other_scan": "the scan's settings or the term weights",
    "is_other_policy": "the policy",
    "is_other_verdicts": "the verdicts",
    "is_other_version": "the benchmark itself",
}
_UNEXPLAINED = "settings and benchmark are unchanged: check the shards that were added or removed"


def drift_of(report: Path, most: float) -> tuple[list[Problem], int]:
    """Return the benchmarks whose leak rate moved since the report that this one replaced.

    `most`: the largest difference of two rates that is not a problem. Also returns how many
    benchmarks were compared: 0 without an earlier report.
    """
    with opened(report) as connection:
        rows = rows_of(connection, "FROM rate_changes")
    problems = []
    for row in rows:
        if not exceeds(abs(row["leak_rate"] - row["rate_before"]), most):
            continue
        why = [text for column, text in _CHANGES.items() if row[column]]
        remedy = f"changed since: {', '.join(why)}" if why else _UNEXPLAINED
        rate, before = percent(row["leak_rate"]), percent(row["rate_before"])
        found = f"{rate} of {row['n_checkable']} checkable items leaked"
        expected = f"{before} ± {percent(most)}"
        problems.append(Problem(row["benchmark"], found, expected, remedy))
    return problems, len(rows)
