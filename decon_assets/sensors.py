"""The sensor `keep_up`, which requests runs when input files change. It is off by default.

It reads names, sizes and modification times of files, never their content, and requests one stage
at a time. What is missing is looked up in the store, not remembered, so a run that dies, a tick
that fails or work done by hand does no harm. The store is read only when files changed or a run
ended.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from hashlib import sha256
from typing import TYPE_CHECKING, NamedTuple

import dagster as dg

from decon_assets.graph import GRAPH, Graph
from decon_assets.resources import Decon
from decon_assets.run_requests import Materialized, Request, next_requests
from decon_core.errors import DeconError, format_problems
from decon_core.wording import counted

if TYPE_CHECKING:
    from decon_core.config.load import Config
    from decon_core.planner import Plan

NAME = "keep_up"
FILES_TAG = "decon/files"  # tag of every requested run: the state of the files at that time

_SECONDS_BETWEEN_TICKS = 10

_UNFINISHED = [
    dg.DagsterRunStatus.QUEUED,
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
]
_REFUSALS = {
    dg.DagsterRunStatus.FAILURE: "`inventory` failed on these files; its last run shows why. Fix "
    "the files, or materialize `inventory` by hand as the error message says",
    dg.DagsterRunStatus.CANCELED: "`inventory` was cancelled for these files; materialize it to "
    "continue",
}
_ENDED = [dg.DagsterRunStatus.SUCCESS, dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.CANCELED]


@dataclass(frozen=True)
class Cursor:
    """What the sensor remembers of its last tick."""

    seen: str = ""  # state of the files at that tick
    registered: str = ""  # state of the files for which `inventory` was requested
    # Requested runs whose result is still missing, with the digest of `next_requests`: a run that
    # failed is not requested again until something upstream of it changes.
    asked: Mapping[str, str] = field(default_factory=dict)
    settled: str = ""  # state of the instance when there was nothing left to request

    @staticmethod
    def from_json(text: str | None) -> "Cursor":
        try:
            value = json.loads(text or "{}")
            return Cursor(**{**value, "asked": dict(value.get("asked", {}))})
        except (ValueError, TypeError, AttributeError):
            return Cursor()  # written by another version, or by hand: start from the beginning

    def to_json(self) -> str:
        return json.dumps(asdict(self))


class Step(NamedTuple):
    """The result of a tick: runs to request or the reason for none, and the new cursor."""

    cursor: Cursor
    requests: Sequence[Request] = ()
    skip_reason: str = ""


def step(cursor: Cursor, files: str, known: Materialized, load_plan: Callable[[], "Plan"]) -> Step:
    """Decide what to do next; `load_plan` is called only if the store has to be read."""
    if files != cursor.seen:
        # Files may still be being copied: wait until they are unchanged for a tick.
        reason = "files changed; waiting one tick in case more changes follow"
        return Step(replace(cursor, seen=files), skip_reason=reason)
    if n_unfinished := _unfinished_runs(known):
        waiting = f"waiting for {counted(n_unfinished, 'unfinished run')}"
        return Step(cursor, skip_reason=waiting)
    if files != cursor.registered:
        return Step(Cursor(seen=files, registered=files), (Request("inventory"),))
    if refusal := _refusal(known, files):
        return Step(cursor, skip_reason=refusal)
    instance_state = _state_of_instance(known)
    if instance_state == cursor.settled:
        return Step(cursor, skip_reason=_settled_reason(cursor))
    requests, asked = next_requests(load_plan(), known, cursor.asked)
    updated = replace(cursor, asked=asked, settled="" if requests else instance_state)
    return Step(updated, requests, "" if requests else _settled_reason(updated))


def _settled_reason(cursor: Cursor) -> str:
    if not cursor.asked:
        return "everything is up to date"
    missing = ", ".join(dict.fromkeys(f"`{name.split()[0]}`" for name in cursor.asked))
    return (
        f"requested but still missing: {missing}. Their last runs show why; to try again, "
        "materialize them or reset the cursor"
    )


def build_sensor(graph: Graph = GRAPH) -> dg.Definitions:
    """Build the sensor for the stages of a graph, and the jobs that it requests."""
    jobs = graph.stage_jobs

    def keep_up(context: dg.SensorEvaluationContext, decon: Decon) -> dg.SensorResult:
        return tick(context, decon, graph)

    sensor = dg.sensor(
        name=graph.identifier(NAME),
        jobs=jobs,
        minimum_interval_seconds=_SECONDS_BETWEEN_TICKS,
        description="Keeps everything up to date: when benchmark files, shards, decon.toml or the "
        "verdicts file are new or changed, it requests a run of `inventory`, then runs for "
        "whatever is missing, one asset after the other. Off until it is switched on.",
    )(graph.bound(keep_up))
    return dg.Definitions(jobs=jobs, sensors=[sensor])


def tick(context: dg.SensorEvaluationContext, decon: Decon, graph: Graph) -> dg.SensorResult:
    """Request runs for new and changed input files.

    `inventory` comes first, then one stage after the other; a stage waits until all runs before it
    ended. A failed run is requested again when files or upstream assets change, or when the cursor
    is reset.
    """
    cursor = Cursor.from_json(context.cursor)
    files = ""
    try:
        config = decon.config()
        files = state_of_files(config)
        known = Materialized(context.instance, graph)
        result = step(cursor, files, known, lambda: _load_plan(config))
    except DeconError as error:  # a problem of the inputs is no failure of the tick
        result = Step(cursor, skip_reason=format_problems(error.problems))
    return dg.SensorResult(
        run_requests=[
            dg.RunRequest(
                job_name=graph.job_name(request.asset),
                tags={**request.tags, FILES_TAG: files},
            )
            for request in result.requests
        ],
        skip_reason=dg.SkipReason(result.skip_reason) if result.skip_reason else None,
        cursor=result.cursor.to_json(),
    )


def state_of_files(config: "Config") -> str:
    """Return a digest of names, sizes and times of all input files."""
    from decon_core.planner import input_files

    digest = sha256()
    for file in input_files(config):
        digest.update(repr(file).encode())
    return digest.hexdigest()[:16]


def _unfinished_runs(known: Materialized) -> int:
    """Count the runs to wait for; in a project with other assets, those of this graph."""
    waiting, graph = dg.RunsFilter(statuses=_UNFINISHED), known.graph
    if not graph.key_prefix:
        return known.instance.get_runs_count(waiting)
    keys, jobs = {graph.key(name) for name in graph.upstream}, graph.identifier("")
    return sum(
        run.job_name == f"{jobs}{run.job_name.rpartition('__')[2]}"
        or not keys.isdisjoint(run.asset_selection or ())
        for run in known.instance.get_runs(waiting)
    )


def _state_of_instance(known: Materialized) -> str:
    """Return a string that changes whenever a run ends or partitions are registered."""
    ended = known.instance.get_run_records(
        dg.RunsFilter(statuses=_ENDED), limit=1, order_by="update_timestamp"
    )
    last = [f"{run.dagster_run.run_id} {run.update_timestamp.timestamp()}" for run in ended]
    return " ".join([*last, str(_registered_at(known))])


def _refusal(known: Materialized, files: str) -> str:
    """Return why the requested `inventory` of these files did not succeed; empty if it did."""
    job = known.graph.job_name("inventory")
    runs = known.instance.get_run_records(
        dg.RunsFilter(job_name=job, tags={FILES_TAG: files}), limit=1
    )
    if not runs or _registered_at(known) > (runs[0].end_time or 0.0):
        return ""
    return _REFUSALS.get(runs[0].dagster_run.status, "")


def _registered_at(known: Materialized) -> float:
    """Return the time of the last materialization of `inventory`; 0 if there was none."""
    inventory = known.graph.key("inventory")
    event = known.instance.get_latest_materialization_event(inventory)
    return event.timestamp if event else 0.0


def _load_plan(config: "Config") -> "Plan":
    from decon_core.config.open_store import open_store
    from decon_core.planner import Plan

    return Plan(config, open_store(config))
