"""The whole graph without a daemon: register what is there, materialize what is missing.

Runs in the calling process on whatever Dagster instance it is given, so that the UI shows the same
history afterwards as if the buttons had been pressed there.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path

from dagster import (
    AssetCheckKey,
    AssetCheckSeverity,
    AssetKey,
    DagsterExecutionInterruptedError,
    DagsterInstance,
    ExecuteInProcessResult,
    InitLoggerContext,
    LoggerDefinition,
    logger,
)

from decon_assets.assets.gates import BLOCKING, failed_checks
from decon_assets.assets.registration import Registration, register_outside
from decon_assets.graph import build_graph
from decon_assets.instance.home import COMMAND_LINE_TAGS, show_in_timeline
from decon_assets.instance.sqlite_history import write_quickly
from decon_assets.planning import Materialized, Request, State, grid_requests, requests
from decon_assets.runner.interrupts import watch_interrupts
from decon_assets.runner.stage_lines import StageLines
from decon_core.index.idf import current_snapshot, outdated_members, require_frozen_from
from decon_core.quality.requirements import required_shortfalls

Echo = Callable[[str], None]

_RUN_CONFIG: Mapping[str, object] = {"loggers": {"console": {"config": {}}}}


class PipelineError(Exception):
    """A stage failed; what it said is in the message."""


class Pipeline:
    """Stages of one configuration, run in order on one instance."""

    def __init__(
        self,
        config_path: Path,
        instance: DagsterInstance,
        echo: Echo,
        *,
        lines: StageLines | None = None,
    ) -> None:
        write_quickly()  # thousands of events are written before a run begins
        self._config_path = config_path
        self._instance = instance
        self._lines = lines or StageLines(echo)
        definitions = build_graph(
            config_path=str(config_path.resolve()),
            loggers={"console": _telling(self._lines, instance)},
        )
        self._job = definitions.resolve_implicit_global_asset_job_def()

    def run(self, *, refreeze: bool = False, may_retire: bool = False) -> Registration:
        """Everything that is missing or no longer today's, from records to report."""
        registered = self._register(may_retire=may_retire)
        self._prepare(registered, refreeze=refreeze)
        refusals = self._do(registered, "scan")  # of some shards; what needs no other goes on
        for asset in ("common_ngrams", "mixture", "blend", "clean_benchmark"):
            refusals += self._do(registered, asset)
        refusals += self._do(registered, "report")  # of what was read; it says what was not
        refusals += self._do(registered, "report_page")
        if refusals:
            raise PipelineError("\n".join(refusals))
        return registered

    def scan(
        self,
        wanted: Callable[[State], Mapping[str, Collection[str]]],
        *,
        most_cells: int,
        may_retire: bool = False,
    ) -> int:
        """Scan the cells that somebody wants, by pack; how many runs that took."""
        registered = self._register(may_retire=may_retire)
        self._prepare(registered)
        today = self._today(registered)
        todo = grid_requests(today, "scan", wanted(today), most_cells=most_cells)
        refusals = self._ask(todo)
        if refusals:
            raise PipelineError("\n".join(refusals))
        return len(todo)

    def _register(self, *, may_retire: bool = False) -> Registration:
        return register_outside(
            self._config_path, self._instance, may_retire=may_retire, echo=self._lines.line
        )

    def _prepare(self, registered: Registration, *, refreeze: bool = False) -> None:
        """Records, idf and indexes: nothing goes on without all of them."""
        config, store = registered.config, registered.store
        self._require(registered, "records")
        if refreeze:
            self._stage(Request("idf_snapshot"), config={"refreeze": True})
        else:
            self._require(registered, "idf_snapshot")
            self._say_what_is_outdated(registered)
        current_snapshot(store, config.policy)
        require_frozen_from(store, config.snapshot)
        self._require(registered, "index")

    def _say_what_is_outdated(self, registered: Registration) -> None:
        """The snapshot is kept on purpose, also when benchmarks changed since; say which did."""
        for problem in outdated_members(registered.store):
            self._lines.line(f"  {problem}")

    def _today(self, registered: Registration) -> State:
        return State(
            registered.config, registered.store, registered.packs, Materialized(self._instance)
        )

    def _require(self, registered: Registration, asset: str) -> None:
        if refusals := self._do(registered, asset):
            raise PipelineError("\n".join(refusals))

    def _do(self, registered: Registration, asset: str) -> list[str]:
        """Materialize what an asset lacks; what was refused. One run does not stop the others."""
        todo = requests(self._today(registered), asset)
        if not todo:
            return self._check_again(registered, asset)
        return self._ask(todo)

    def _check_again(self, registered: Registration, asset: str) -> list[str]:
        """Of an asset that lacks nothing, the checks that failed, or that would fail today."""
        checks = failed_checks(self._instance, [asset])
        if asset == "index" and required_shortfalls(registered.config, registered.store):
            checks.append(AssetCheckKey(AssetKey("index"), "enough_is_indexable"))
        if not checks:
            is_outdated = asset == "idf_snapshot" and outdated_members(registered.store)
            self._lines.line(
                f"{asset}: {'kept, of earlier versions' if is_outdated else 'up to date'}"
            )
            return []
        job = self._job.get_subset(asset_selection=frozenset(), asset_check_selection={*checks})
        with watch_interrupts() as interrupts:
            result = job.execute_in_process(
                instance=self._instance,
                tags=COMMAND_LINE_TAGS,
                run_config=_RUN_CONFIG,
                raise_on_error=False,
            )
            interrupts.check()
        self._lines.line(f"{asset}: checked again")
        return [] if result.success and not _failed(result) else [_why(asset, result)]

    def _ask(self, todo: Sequence[Request]) -> list[str]:
        refusals = []
        for number, request in enumerate(todo, start=1):
            name = request.asset if len(todo) == 1 else f"{request.asset} {number} of {len(todo)}"
            try:
                self._stage(request, name=name)
            except PipelineError as error:
                refusals.append(str(error))
        return refusals

    def _stage(
        self,
        request: Request,
        *,
        name: str = "",
        config: dict[str, object] | None = None,
    ) -> ExecuteInProcessResult:
        asset = request.asset
        run_config = dict(_RUN_CONFIG)
        if config:
            run_config["ops"] = {asset: {"config": config}}
        with self._lines.stage(name or asset), watch_interrupts() as interrupts:
            try:
                result = self._job.execute_in_process(
                    instance=self._instance,
                    asset_selection=[AssetKey(asset)],
                    tags={**COMMAND_LINE_TAGS, **request.tags},
                    run_config=run_config,
                    raise_on_error=False,
                )
            except DagsterExecutionInterruptedError as error:
                raise KeyboardInterrupt from error
            # A Ctrl-C is a failed step, another error that it led to, or nothing at all.
            interrupts.check()
            if not result.success:
                if _was_interrupted(result):  # by SIGTERM, which Dagster takes for a Ctrl-C
                    raise KeyboardInterrupt
                raise PipelineError(_why(asset, result))
        return result


def _was_interrupted(result: ExecuteInProcessResult) -> bool:
    """Dagster turns a Ctrl-C into a failed step."""
    errors = [event.step_failure_data.error for event in result.get_step_failure_events()]
    return any(error and "Interrupt" in (error.cls_name or "") for error in errors)


def _why(asset: str, result: ExecuteInProcessResult) -> str:
    """What failed, without the stack: that is kept in the run's log, which the UI shows."""
    if checks := _failed(result):
        return f"{asset}: {'; '.join(checks)}"
    for event in result.get_step_failure_events():
        data = event.step_failure_data
        if data.user_failure_data and data.user_failure_data.description:
            return f"{asset}: {data.user_failure_data.description}"
        error = data.error
        while error and error.cause:
            error = error.cause
        if error:
            return f"{asset}: {error.message.strip()}"
    return f"{asset} failed"


def _failed(result: ExecuteInProcessResult) -> list[str]:
    """What checks that block found."""
    return [
        f"{evaluation.check_name}: {evaluation.metadata['problems'].value}"
        for evaluation in result.get_asset_check_evaluations()
        if not evaluation.passed and evaluation.severity is AssetCheckSeverity.ERROR
        if evaluation.check_name in BLOCKING.get(evaluation.asset_key.to_user_string(), ())
    ]


def _telling(lines: StageLines, instance: DagsterInstance) -> LoggerDefinition:
    """A logger that passes on what assets say, and leaves out what Dagster says about itself."""

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            meta = getattr(record, "dagster_meta", {})
            if meta.get("dagster_event"):
                return  # a failure is printed once, after the run
            text = str(meta.get("orig_message") or record.getMessage())
            if text.startswith("Dependencies for step ") and text.endswith("Not executing."):
                return  # Dagster's own, for every check after a failed step
            if record.levelno >= logging.WARNING:
                lines.line(f"  {text}")
            elif record.levelno >= logging.INFO:
                lines.result(text)
            else:
                lines.detail(text)

    @logger(config_schema={})
    def plain(context: InitLoggerContext) -> logging.Logger:
        if context.run_id:  # the first that is heard of a run that was created here
            show_in_timeline(instance, context.run_id)
        found = logging.Logger("decon_assets", level=logging.DEBUG)  # noqa: LOG001 - of this run only
        found.addHandler(Handler())
        return found

    return plain
