"""Computes the cost of runs from their events: the time spent on work and in Dagster."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dagster import DagsterEventType, DagsterInstance, EventLogEntry
from dagster._core.storage.dagster_run import RunRecord

_READ = re.compile(r"read ([\d,]+) shards?, wrote ([\d,]+) scan results?")
_WORK_ENDS = {
    DagsterEventType.STEP_OUTPUT,
    DagsterEventType.STEP_FAILURE,
    DagsterEventType.ASSET_MATERIALIZATION,
    DagsterEventType.ASSET_CHECK_EVALUATION,
}


@dataclass(frozen=True)
class Cost:
    """The total cost of some runs."""

    n_runs: int = 0
    n_partitions: int = 0
    n_events: int = 0
    n_shards_read: int = 0
    n_scan_results_written: int = 0
    work_seconds: float = 0.0  # inside of assets and checks: calls of the core, nearly all
    dagster_seconds: float = 0.0  # what else passed while a run was alive

    def __add__(self, other: Cost) -> Cost:
        return Cost(**{name: value + vars(other)[name] for name, value in vars(self).items()})


def cost_since(instance: DagsterInstance, known: Iterable[str]) -> dict[str, Cost]:
    """Return the cost of all runs that are not yet known, by asset."""
    left_out = set(known)
    costs: dict[str, Cost] = {}
    for record in instance.get_run_records():
        if record.dagster_run.run_id not in left_out:
            events = instance.all_logs(record.dagster_run.run_id)
            asset = _asset(record)
            costs[asset] = costs.get(asset, Cost()) + cost_of(record, events)
    return costs


def cost_of(record: RunRecord, events: Sequence[EventLogEntry]) -> Cost:
    """Return the cost of one run, from its creation to its last event.

    A run without a selection of assets starts the runs of the stages and waits for them, so its
    step is not counted as work.
    """
    read = [_READ.search(event.user_message) for event in events]
    work = _work_seconds(events)
    alive = max(event.timestamp for event in events) - record.create_timestamp.timestamp()
    return Cost(
        n_runs=1,
        n_partitions=_count(events, DagsterEventType.ASSET_MATERIALIZATION),
        n_events=len(events),
        n_shards_read=sum(_number(found[1]) for found in read if found),
        n_scan_results_written=sum(_number(found[2]) for found in read if found),
        work_seconds=work if record.dagster_run.asset_selection else 0.0,
        dagster_seconds=max(alive - work, 0.0),
    )


def _number(text: str) -> int:
    return int(text.replace(",", ""))


def _work_seconds(events: Sequence[EventLogEntry]) -> float:
    """Sum the time from the start of each step to its first output."""
    begun: dict[str, float] = {}
    seconds = 0.0
    for event in sorted(events, key=lambda event: event.timestamp):
        kind, step = event.dagster_event_type, event.step_key or ""
        if kind is DagsterEventType.STEP_START:
            begun[step] = event.timestamp
        elif kind in _WORK_ENDS and step in begun:
            seconds += event.timestamp - begun.pop(step)
    return seconds


def _count(events: Sequence[EventLogEntry], kind: DagsterEventType) -> int:
    return sum(event.dagster_event_type is kind for event in events)


def _asset(record: RunRecord) -> str:
    selection = record.dagster_run.asset_selection or ()
    return ", ".join(sorted(key.to_user_string() for key in selection)) or "everything"
