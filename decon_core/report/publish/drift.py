"""How far leak rates moved since the report before: a jump is news, or a mistake.

The rates of the last two different reports are kept beside it. Asked twice about the same
report, the answer is the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from decon_core.config.policy import exceeds
from decon_core.errors import Problem
from decon_core.report.open import opened, rows_of
from decon_core.storage.store import Store, read_json, write_json

_FILE = "leak_rates.json"

_RATES = """
    SELECT b.benchmark, b.version, b.n_items, b.thresholds,
           count(i.instance_index)::BIGINT AS n_leaked
    FROM benchmarks b LEFT JOIN item_status i
      ON i.benchmark = b.benchmark AND i.status = 'leaked'
    WHERE b.n_items > 0
    GROUP BY ALL ORDER BY b.benchmark
"""
_SETTINGS = "SELECT state, scan_fingerprint, thresholds, verdicts FROM runs"
_SAID = {
    "scan_fingerprint": "the scan's settings or the idf snapshot",
    "thresholds": "the thresholds",
    "verdicts": "the verdicts",
}

Rates = dict[str, Any]  # settings of a report, and its benchmarks by name


@dataclass(frozen=True)
class Drift:
    """What moved, and what there was to compare."""

    problems: tuple[Problem, ...]
    n_compared: int
    has_before: bool


def drift_of(store: Store, most: float) -> Drift:
    """Compare today's report with the one before, and remember it."""
    path = store.report.with_name(_FILE)
    known = read_json(path) if path.is_file() else {}
    now = _rates(store)
    if known.get("now", {}).get("state") != now["state"]:
        known = {"now": now, "before": known.get("now")}
        write_json(path, known)
    before = known["before"]
    if before is None:
        return Drift((), 0, has_before=False)
    both = now["benchmarks"].keys() & before["benchmarks"].keys()
    return Drift(tuple(_moved(now, before, sorted(both), most)), len(both), has_before=True)


def _rates(store: Store) -> Rates:
    with opened(store.report) as connection:
        rows = rows_of(connection, _RATES)
        (settings,) = rows_of(connection, _SETTINGS) or [dict.fromkeys(("state", *_SAID))]
    return {**settings, "benchmarks": {row.pop("benchmark"): row for row in map(dict, rows)}}


def _moved(now: Rates, before: Rates, names: list[str], most: float) -> Iterator[Problem]:
    changed = [said for name, said in _SAID.items() if now[name] != before[name]]
    for name in names:
        one, other = now["benchmarks"][name], before["benchmarks"][name]
        rate, rate_before = _rate(one), _rate(other)
        if exceeds(abs(rate - rate_before), most):
            why = [*changed, *(["the benchmark itself"] if _is_other(one, other) else [])]
            if _has_other_thresholds(one, other) and _SAID["thresholds"] not in why:
                why.append("the thresholds of this benchmark")
            remedy = f"since then changed: {', '.join(why)}" if why else _UNEXPLAINED
            found = f"{rate:.1%} of {one['n_items']} items leaked"
            yield Problem(name, found, f"{rate_before:.1%}, give or take {most:.1%}", remedy)


_UNEXPLAINED = "settings and benchmark are the same: look at the shards that came or went"


def _rate(row: Mapping[str, Any]) -> float:
    return float(row["n_leaked"] / row["n_items"])


def _has_other_thresholds(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether both are known and differ: rates of an older report do not have them."""
    known = one.get("thresholds"), other.get("thresholds")
    return None not in known and known[0] != known[1]


def _is_other(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    return bool(one["version"] != other["version"])
