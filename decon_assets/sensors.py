"""The one sensor: keeps everything up to date while files come and change. Off until switched on.

It looks at names, sizes and times of files, opens none of them, and asks for one stage of work at
a time. What there is to ask for is looked up in the store, never remembered, so nothing is lost
when a run dies, a tick fails or somebody does part of it by hand. The look is taken when files
changed or a run ended, whoever began it.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from hashlib import sha256
from typing import TYPE_CHECKING

from dagster import (
    AssetKey,
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
from decon_core.config.load import Config
from decon_core.errors import DeconError, format_problems
from decon_core.storage.store import Store
from decon_core.wording import counted

if TYPE_CHECKING:  # what the rest needs to be imported takes longer than a code location may
    from decon_assets.planning import Request, State

NAME = "keep_up"
FILES_TAG = "decon/files"  # on every run that is asked for: the state of the files that it is for

_SECONDS_BETWEEN_TICKS = 10

_INVENTORY = AssetKey("inventory")

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
_REFUSALS = {
    DagsterRunStatus.FAILURE: "`inventory` refused these files; its last run says why. Mend them, "
    "or materialize it by hand as that says",
    DagsterRunStatus.CANCELED: "`inventory` of these files was cancelled; materialize it to go on",
}
_ENDED = [DagsterRunStatus.SUCCESS, DagsterRunStatus.FAILURE, DagsterRunStatus.CANCELED]


@dataclass(frozen=True)
class Cursor:
    """What the sensor knows from its last tick."""

    seen: str = ""  # the state of the files then
    registered: str = ""  # the one that `inventory` was asked to register
    # Runs that were asked for since then and that the store still lacks, each with the state it was
    # asked for in: one that failed is not asked for again until what is before it is another.
    asked: Mapping[str, str] = field(default_factory=dict)
    settled: str = ""  # what had happened on the instance when nothing was left to ask for

    @staticmethod
    def read(text: str | None) -> "Cursor":
        try:
            value = json.loads(text or "{}")
            return Cursor(**{**value, "asked": dict(value.get("asked", {}))})
        except (ValueError, TypeError, AttributeError):
            return Cursor()  # of another version, or typed by hand: begin anew

    def written(self) -> str:
        return json.dumps(asdict(self))

    @property
    def missing(self) -> str:
        """What nothing more can be done for here; nothing where all is done."""
        assets = dict.fromkeys(name.split()[0] for name in self.asked)
        return ", ".join(f"`{asset}`" for asset in assets)


@dataclass(frozen=True)
class Step:
    """What a tick comes to: runs to ask for or a reason for none, and what to remember."""

    cursor: Cursor
    todo: tuple["Request", ...] = ()
    why_nothing: str = ""


def step(
    cursor: Cursor,
    files: str,
    *,
    news: str,
    n_at_work: int,
    refusal: str,
    today: "Callable[[], State]",
) -> Step:
    """From what is known and what is there to what to do next."""
    from decon_assets.planning import Request, next_requests

    if files != cursor.seen:
        # Whoever copies files is not done yet, perhaps: wait until they hold still for a tick.
        return Step(replace(cursor, seen=files), why_nothing="files changed; waiting for a tick")
    if n_at_work:
        return Step(cursor, why_nothing=f"at work or waiting: {counted(n_at_work, 'run')}")
    if files != cursor.registered:
        return Step(Cursor(seen=files, registered=files), (Request("inventory"),))
    if refusal:
        return Step(cursor, why_nothing=refusal)
    if news == cursor.settled:
        return Step(cursor, why_nothing=_why_settled(cursor))
    todo, asked = next_requests(today(), cursor.asked)
    now = replace(cursor, asked=asked, settled="" if todo else news)
    return Step(now, tuple(todo), "" if todo else _why_settled(now))


def _why_settled(cursor: Cursor) -> str:
    if not cursor.missing:
        return "no file changed since all was done"
    return (
        f"still missing, though asked for: {cursor.missing}. Its last runs say why; to have it "
        "tried again, materialize it, or reset the cursor"
    )


@sensor(
    name=NAME,
    jobs=[*JOBS.values()],
    minimum_interval_seconds=_SECONDS_BETWEEN_TICKS,
    description="Keeps everything up to date: when files of benchmarks, shards, decon.toml or "
    "verdicts are new or changed, it asks for `inventory`, then asset by asset for what is "
    "missing. Off until it is switched on.",
)
def keep_up(context: SensorEvaluationContext, decon: Decon) -> SensorResult:
    """New and changed files of benchmarks, shards, decon.toml, verdicts: do what follows from them.

    First `inventory`, then stage by stage what is missing, no run before those before it ended.
    What was refused is asked for again when files change, what is before it does, or the cursor is
    reset.
    """
    cursor = Cursor.read(context.cursor)
    files = ""
    try:
        config = decon.config()
        files = state_of_files(config)
        now = step(
            cursor,
            files,
            news=_news(context),
            n_at_work=context.instance.get_runs_count(RunsFilter(statuses=_UNFINISHED)),
            refusal=_refusal(context, files),
            today=lambda: _today(context, config, decon.open_store()[1]),
        )
    except DeconError as error:  # a person has to mend it; the tick itself is as it should be
        now = Step(cursor, why_nothing=format_problems(error.problems))
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
    from decon_core.inventory import input_files

    digest = sha256()
    for file in input_files(config):
        digest.update(repr(file).encode())
    return digest.hexdigest()[:16]


def _news(context: SensorEvaluationContext) -> str:
    """Changes when a run ends, or partitions are registered outside of one: a look is worth it."""
    ended = context.instance.get_run_records(
        RunsFilter(statuses=_ENDED), limit=1, order_by="update_timestamp"
    )
    last = [f"{one.dagster_run.run_id} {one.update_timestamp.timestamp()}" for one in ended]
    return " ".join([*last, str(_registered_at(context))])


def _refusal(context: SensorEvaluationContext, files: str) -> str:
    """Why these very files are not registered although that was asked for; nothing if they are."""
    runs = context.instance.get_run_records(
        RunsFilter(job_name=JOBS["inventory"].name, tags={FILES_TAG: files}), limit=1
    )
    for run in runs:
        why = _REFUSALS.get(run.dagster_run.status)
        if why and _registered_at(context) <= (run.end_time or 0.0):
            return why
    return ""


def _registered_at(context: SensorEvaluationContext) -> float:
    """When `inventory` was last materialized, by whomever."""
    event = context.instance.get_latest_materialization_event(_INVENTORY)
    return event.timestamp if event else 0.0


def _today(context: SensorEvaluationContext, config: Config, store: Store) -> "State":
    from decon_assets.planning import Materialized, State
    from decon_core.inventory import list_packs

    return State(config, store, tuple(list_packs(store)), Materialized(context.instance))
