"""Run the asset graph without a daemon: register inputs, materialize what is missing.

Runs execute in the calling process on the given Dagster instance, so the UI shows the same history
as if they had been started there.
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
    """A stage failed; the message has the reasons."""


class Pipeline:
    """Run the stages of one configuration in order on one instance."""

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
            loggers={"console": _console_logger(self._lines, instance)},
        )
        self._job = definitions.resolve_implicit_global_asset_job_def()

    def run(self, *, refreeze: bool = False, may_retire: bool = False) -> Registration:
        """Build everything that is missing or out of date, from records to report.

        Raises PipelineError, after all stages that can still run, if any failed.
        """
        registered = self._register(may_retire=may_retire)
        self._prepare(registered, refreeze=refreeze)
        failures = self._materialize(registered, "scan")  # other shards' products are still built
        for asset in ("common_ngrams", "mixture", "blend", "clean_benchmark"):
            failures += self._materialize(registered, asset)
        failures += self._materialize(registered, "report")  # lists the shards it lacks
        failures += self._materialize(registered, "report_page")
        if failures:
            raise PipelineError("\n".join(failures))
        return registered

    def scan(
        self,
        wanted: Callable[[State], Mapping[str, Collection[str]]],
        *,
        most_cells: int,
        may_retire: bool = False,
    ) -> int:
        """Scan the cells that `wanted` returns, by pack; return the number of runs."""
        registered = self._register(may_retire=may_retire)
        self._prepare(registered)
        state = self._state(registered)
        todo = grid_requests(state, "scan", wanted(state), most_cells=most_cells)
        failures = self._execute(todo)
        if failures:
            raise PipelineError("\n".join(failures))
        return len(todo)

    def _register(self, *, may_retire: bool = False) -> Registration:
        return register_outside(
            self._config_path, self._instance, may_retire=may_retire, echo=self._lines.line
        )

    def _prepare(self, registered: Registration, *, refreeze: bool = False) -> None:
        """Build records, idf and indexes; raise PipelineError if any fails, as all are needed."""
        config, store = registered.config, registered.store
        self._require(registered, "records")
        if refreeze:
            self._stage(Request("idf_snapshot"), config={"refreeze": True})
        else:
            self._require(registered, "idf_snapshot")
            self._warn_of_outdated_members(registered)
        current_snapshot(store, config.policy)
        require_frozen_from(store, config.snapshot)
        self._require(registered, "index")

    def _warn_of_outdated_members(self, registered: Registration) -> None:
        """List benchmarks that changed since the idf snapshot, which is kept on purpose."""
        for problem in outdated_members(registered.store):
            self._lines.line(f"  {problem}")

    def _state(self, registered: Registration) -> State:
        return State(
            registered.config, registered.store, registered.packs, Materialized(self._instance)
        )

    def _require(self, registered: Registration, asset: str) -> None:
        if failures := self._materialize(registered, asset):
            raise PipelineError("\n".join(failures))

    def _materialize(self, registered: Registration, asset: str) -> list[str]:
        """Materialize what is missing of an asset; return the failures of all its runs."""
        todo = requests(self._state(registered), asset)
        if not todo:
            return self._check_again(registered, asset)
        return self._execute(todo)

    def _check_again(self, registered: Registration, asset: str) -> list[str]:
        """Run checks of a complete asset that failed before or would fail now; return failures."""
        checks = failed_checks(self._instance, [asset])
        if asset == "index" and required_shortfalls(registered.config, registered.store):
            checks.append(AssetCheckKey(AssetKey("index"), "enough_is_indexable"))
        if not checks:
            is_outdated = asset == "idf_snapshot" and outdated_members(registered.store)
            self._lines.line(
                f"{asset}: {'kept, from earlier versions' if is_outdated else 'up to date'}"
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
        is_passed = result.success and not _failed_checks(result)
        return [] if is_passed else [_reason(asset, result)]

    def _execute(self, todo: Sequence[Request]) -> list[str]:
        """Run all requests; return the failures."""
        failures = []
        for number, request in enumerate(todo, start=1):
            name = request.asset if len(todo) == 1 else f"{request.asset} {number} of {len(todo)}"
            try:
                self._stage(request, name=name)
            except PipelineError as error:
                failures.append(str(error))
        return failures

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
        stage = self._lines.stage(name or asset, n_parts=request.n_cells)
        with stage, watch_interrupts() as interrupts:
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
            # After Ctrl-C, the result may be a failed step, a consequent error, or a success.
            interrupts.check()
            if not result.success:
                if _was_interrupted(result):  # by SIGTERM, which Dagster treats like Ctrl-C
                    raise KeyboardInterrupt
                raise PipelineError(_reason(asset, result))
        return result


def _was_interrupted(result: ExecuteInProcessResult) -> bool:
    """Return whether a step failed because of Ctrl-C or SIGTERM."""
    errors = [event.step_failure_data.error for event in result.get_step_failure_events()]
    return any(error and "Interrupt" in (error.cls_name or "") for error in errors)


def _reason(asset: str, result: ExecuteInProcessResult) -> str:
    """Return why a stage failed, without the stack trace, which is in the run's log."""
    if checks := _failed_checks(result):
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


def _failed_checks(result: ExecuteInProcessResult) -> list[str]:
    """Return the problems that blocking checks found."""
    return [
        f"{evaluation.check_name}: {evaluation.metadata['problems'].value}"
        for evaluation in result.get_asset_check_evaluations()
        if not evaluation.passed and evaluation.severity is AssetCheckSeverity.ERROR
        if evaluation.check_name in BLOCKING.get(evaluation.asset_key.to_user_string(), ())
    ]


def _console_logger(lines: StageLines, instance: DagsterInstance) -> LoggerDefinition:
    """Return a logger that prints the messages of assets, and drops Dagster's own."""

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            meta = getattr(record, "dagster_meta", {})
            if meta.get("dagster_event"):
                return  # a failure is printed once, after the run
            text = str(meta.get("orig_message") or record.getMessage())
            if text.startswith("Dependencies for step ") and text.endswith("Not executing."):
                return  # one by Dagster for every check after a failed step
            if record.levelno >= logging.WARNING:
                lines.line(f"  {text}")
            elif record.levelno >= logging.INFO:
                lines.result(text)
            else:
                lines.detail(text)

    @logger(config_schema={})
    def plain(context: InitLoggerContext) -> logging.Logger:
        if context.run_id:  # the first hook after a run is created in this process
            show_in_timeline(instance, context.run_id)
        run_logger = logging.Logger("decon_assets", level=logging.DEBUG)  # noqa: LOG001 - of this run only
        run_logger.addHandler(Handler())
        return run_logger

    return plain
