"""The one sensor: keeps everything up to date while files come and change. Off until switched on.

It looks at names, sizes and times of files, opens none of them, and asks for one stage of work at
a time. What there is to ask for is looked up in the store, never remembered, so nothing is lost
when a run dies, a tick fails or somebody does part of it by hand.
"""

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from typing import TYPE_CHECKING

from dagster import (
    AssetSelection,
    DagsterRunStatus,
    RunRequest,
    RunsFilter,
    SensorEvaluationContext,
    SensorResult,
    SkipReason,
    define_asset_job,
    sensor,
)

from decon_assets.partitions import STAGES
from decon_assets.resources import Decon
from decon_core.config import Config
from decon_core.store import Store

if TYPE_CHECKING:  # what the rest needs to be imported takes longer than a code location may
    from decon_assets.work import Request, Today

NAME = "keep_up"
FILES_TAG = "decon/files"  # on every run that is asked for: the state of the files that it is for

_SECONDS_BETWEEN_TICKS = 10

# One for each asset: Dagster takes no job of assets that are cut in different ways.
JOBS = {
    asset: define_asset_job(
        f"{NAME}_{asset}", AssetSelection.assets(asset), description=f"`{asset}`, as `{NAME}` asks"
    )
    for asset in ("inventory", *STAGES)
}

_UNFINISHED = [
    DagsterRunStatus.QUEUED,
    DagsterRunStatus.NOT_STARTED,
    DagsterRunStatus.STARTING,
    DagsterRunStatus.STARTED,
    DagsterRunStatus.CANCELING,
]


@dataclass(frozen=True)
class Cursor:
    """What the sensor knows from its last tick."""

    seen: str = ""  # the state of the files then
    registered: str = ""  # the one that `inventory` was asked to register
    asked: tuple[str, ...] = ()  # runs that were asked for since then
    is_settled: bool = False  # nothing was left to ask for

    @staticmethod
    def read(text: str | None) -> "Cursor":
        try:
            value = json.loads(text or "{}")
            return Cursor(**{**value, "asked": tuple(value.get("asked", ()))})
        except (ValueError, TypeError, AttributeError):
            return Cursor()  # of another version, or typed by hand: begin anew

    def written(self) -> str:
        return json.dumps(asdict(self))


@dataclass(frozen=True)
class Step:
    """What a tick comes to: runs to ask for or a reason for none, and what to remember."""

    cursor: Cursor
    todo: tuple["Request", ...] = ()
    why_nothing: str = ""


def step(
    cursor: Cursor, files: str, *, n_at_work: int, is_refused: bool, today: "Callable[[], Today]"
) -> Step:
    """From what is known and what is there to what to do next."""
    from decon_assets.work import Request, next_requests

    if files != cursor.seen:
        # Whoever copies files is not done yet, perhaps: wait until they hold still for a tick.
        return Step(replace(cursor, seen=files), why_nothing="files changed; waiting for a tick")
    if n_at_work:
        return Step(cursor, why_nothing=f"{n_at_work} runs are at work or waiting")
    if files != cursor.registered:
        return Step(Cursor(seen=files, registered=files), (Request("inventory"),))
    if is_refused:
        return Step(cursor, why_nothing="`inventory` refused these files; its last run says why")
    if cursor.is_settled:
        return Step(cursor, why_nothing="no file changed since all was done")
    todo = next_requests(today(), cursor.asked)
    if not todo:
        return Step(replace(cursor, is_settled=True), why_nothing="nothing is left to ask for")
    asked = (*cursor.asked, *(request.name for request in todo))
    return Step(replace(cursor, asked=asked), tuple(todo))


@sensor(name=NAME, jobs=[*JOBS.values()], minimum_interval_seconds=_SECONDS_BETWEEN_TICKS)
def keep_up(context: SensorEvaluationContext, decon: Decon) -> SensorResult:
    """New and changed files of benchmarks, shards, decon.toml, verdicts: do what follows from them.

    First `inventory`, then stage by stage what is missing, no run before those before it ended.
    What was refused is asked for again when files change, or the cursor is reset.
    """
    config = decon.config()
    files = state_of_files(config)
    now = step(
        Cursor.read(context.cursor),
        files,
        n_at_work=context.instance.get_runs_count(RunsFilter(statuses=_UNFINISHED)),
        is_refused=_is_refused(context, files),
        today=lambda: _today(context, config, decon.at_hand()[1]),
    )
    return SensorResult(
        run_requests=[
            RunRequest(job_name=JOBS[request.asset].name, tags={**request.tags, FILES_TAG: files})
            for request in now.todo
        ],
        skip_reason=SkipReason(now.why_nothing) if now.why_nothing else None,
        cursor=now.cursor.written(),
    )


def state_of_files(config: Config) -> str:
    """Changes when any input does."""
    from decon_core.registry import input_files

    digest = sha256()
    for file in input_files(config):
        digest.update(repr(file).encode())
    return digest.hexdigest()[:16]


def _is_refused(context: SensorEvaluationContext, files: str) -> bool:
    """Whether the latest `inventory` of these very files failed."""
    runs = context.instance.get_runs(
        RunsFilter(job_name=JOBS["inventory"].name, tags={FILES_TAG: files}), limit=1
    )
    return any(run.status == DagsterRunStatus.FAILURE for run in runs)


def _today(context: SensorEvaluationContext, config: Config, store: Store) -> "Today":
    from decon_assets.work import Known, Today
    from decon_core.registry import list_packs

    return Today(config, store, tuple(list_packs(store)), Known(context.instance))
