"""Compare leak rates with those of the previous report.

The rates of the last two different reports are stored beside the report, so a second call for the
same report gives the same result.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from decon_core.config.rounding import exceeds
from decon_core.errors import Problem
from decon_core.report.open import opened, rows_of
from decon_core.storage.files import read_json, write_json
from decon_core.storage.store import Store
from decon_core.wording import percent

_FILE = "leak_rates_of_checkable.json"

_RATES = """
    SELECT b.benchmark, b.version, b.thresholds, i.n_checkable, i.n_leaked
    FROM benchmarks b JOIN (
        SELECT benchmark, sum(n_checkable)::BIGINT AS n_checkable,
               sum(n_leaked_checkable)::BIGINT AS n_leaked
        FROM by_benchmark GROUP BY benchmark
    ) i USING (benchmark)
    WHERE i.n_checkable > 0
    ORDER BY b.benchmark
"""
_SETTINGS = "SELECT state, scan_fingerprint, thresholds, verdicts FROM runs"
_SETTING_NAMES = {
    "scan_fingerprint": "the scan's settings or the term weights",
    "thresholds": "the thresholds",
    "verdicts": "the verdicts",
}

_UNEXPLAINED = "settings and benchmark are unchanged: check the shards that were added or removed"

Rates = dict[str, Any]  # settings of a report, and its benchmarks by name


@dataclass(frozen=True)
class Drift:
    """Benchmarks whose leak rate moved, and how many were compared."""

    problems: tuple[Problem, ...]
    n_compared: int
    has_before: bool


def drift_of(store: Store, most: float) -> Drift:
    """Compare the report with the previous one, and store its rates.

    `most`: the largest difference of two rates that is not a problem.
    """
    with opened(store.report) as connection:
        rows = rows_of(connection, _RATES)
        (settings,) = rows_of(connection, _SETTINGS) or [dict.fromkeys(("state", *_SETTING_NAMES))]
    now: Rates = {**settings, "benchmarks": {row.pop("benchmark"): row for row in rows}}
    path = store.report.with_name(_FILE)
    known = read_json(path) if path.is_file() else {}
    if known.get("now", {}).get("state") != now["state"]:
        known = {"now": now, "before": known.get("now")}
        write_json(path, known)
    before = known["before"]
    if before is None:
        return Drift((), 0, has_before=False)
    both = now["benchmarks"].keys() & before["benchmarks"].keys()
    return Drift(tuple(_moved(now, before, sorted(both), most)), len(both), has_before=True)


def _moved(now: Rates, before: Rates, names: list[str], most: float) -> Iterator[Problem]:
    changed = [text for name, text in _SETTING_NAMES.items() if now[name] != before[name]]
    for name in names:
        row, earlier = now["benchmarks"][name], before["benchmarks"][name]
        rate = row["n_leaked"] / row["n_checkable"]
        rate_before = earlier["n_leaked"] / earlier["n_checkable"]
        if not exceeds(abs(rate - rate_before), most):
            continue
        why = [*changed]
        if row["version"] != earlier["version"]:
            why.append("the benchmark itself")
        thresholds = row.get("thresholds"), earlier.get("thresholds")
        is_moved = None not in thresholds and thresholds[0] != thresholds[1]  # None: not stored
        if is_moved and now["thresholds"] == before["thresholds"]:
            why.append("the thresholds of this benchmark")
        remedy = f"changed since: {', '.join(why)}" if why else _UNEXPLAINED
        found = f"{percent(rate)} of {row['n_checkable']} items that can be found leaked"
        yield Problem(name, found, f"{percent(rate_before)} ± {percent(most)}", remedy)
