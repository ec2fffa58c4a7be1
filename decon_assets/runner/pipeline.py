"""Run the asset graph without a daemon: register inputs, materialize what is missing.

Runs execute in the calling process on the given Dagster instance, so the UI shows the same history
as if they had been started there.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

import dagster as dg

from decon_assets.assets.gates import failed_checks, unfinished_checks
from decon_assets.assets.registration import Echo, Registration, record_inventory, register
from decon_assets.assets.stage import Stage
from decon_assets.graph import GRAPH, Graph, build_graph
from decon_assets.instance.home import IN_PROCESS_TAGS, LOCATION, show_in_timeline
from decon_assets.instance.sqlite_history import write_quickly
from decon_assets.run_requests import Materialized, Request, grid_requests, requests
from decon_assets.runner.interrupts import stop_if_asked, watch_interrupts
from decon_assets.runner.stage_lines import StageLines
from decon_core.planner import Plan

if TYPE_CHECKING:
    from dagster_shared.error import SerializableErrorInfo

_RUN_CONFIG: Mapping[str, object] = {"loggers": {"console": {"config": {}}}}


class PipelineError(Exception):
    """Stages failed; the message has the reason of each."""

    def __init__(self, *reasons: str) -> None:
        super().__init__("\n".join(reasons))
        # Whether all of them only lack input that was not read.
        self.is_held_back = all(": IncompleteError: " in reason for reason in reasons)


class Pipeline:
    """Run the stages of one configuration in order on one instance.

    `tags`: of all runs, in addition to those of the stage.
    """

    def __init__(
        self,
        config_path: Path,
        instance: dg.DagsterInstance,
        echo: Echo,
        *,
        lines: StageLines | None = None,
        graph: Graph = GRAPH,
        location: str = LOCATION,
        tags: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        write_quickly()  # thousands of events are written before a run begins
        self._config_path = config_path
        self._instance = instance
        self._lines = lines or StageLines(echo)
        self._graph = graph
        self._known = Materialized(instance, graph)
        self._tags = {**IN_PROCESS_TAGS, **tags}
        self._location = location
        self._plan: Plan | None = None  # None again after each execution

    def run(self, *, refreeze: bool = False, may_retire: bool = False) -> Registration:
        """Build everything that is missing or out of date, from records to report.

        Raises PipelineError, after all stages that can still run, if any failed.
        """
        registered = self._register(may_retire=may_retire)
        settings = {"term_weights": {"refreeze": True}} if refreeze else {}
        self._run_stages(registered, self._graph.stages, settings)
        return registered

    def scan(
        self,
        wanted: Callable[[Plan, Materialized], Mapping[str, Collection[str]]],
        *,
        most_partitions: int,
        may_retire: bool = False,
    ) -> int:
        """Scan the partitions that `wanted` returns, by pack; return the number of runs."""
        registered = self._register(may_retire=may_retire)
        before = self._graph.upstream["scan"]
        self._run_stages(
            registered, [stage for stage in self._graph.stages if stage.name in before]
        )
        partitions = wanted(self._plan_of(registered), self._known)
        todo = grid_requests(self._known, "scan", partitions, most_partitions=most_partitions)
        if failures := self._execute(todo):
            raise PipelineError(*failures)
        return len(todo)

    def _register(self, *, may_retire: bool = False) -> Registration:
        registered = register(
            self._config_path,
            self._instance,
            may_retire=may_retire,
            echo=self._lines.line,
            key_prefix=self._graph.key_prefix,
        )
        record_inventory(registered, self._instance, self._graph.key_prefix)
        return registered

    def _run_stages(
        self,
        registered: Registration,
        stages: Sequence[Stage],
        settings: Mapping[str, Mapping[str, object]] = MappingProxyType({}),
    ) -> None:
        """Bring stages up to date; `settings` are run configurations of stages to run anyway.

        After a failed stage, those that do not require it still run: a shard that cannot be
        scanned does not hold back the products of the others.
        """
        failures: list[str] = []
        failed: list[str] = []
        for stage in stages:
            if stage.name in settings:
                self._stage(Request(stage.name), stage.name, settings[stage.name])
            elif failures_of_stage := self._materialize(registered, stage, failed):
                failures += failures_of_stage
                failed.append(stage.name)
            if failures and stage.is_required:
                break
        if failures:
            raise PipelineError(*failures)

    def _materialize(
        self, registered: Registration, stage: Stage, failed: Sequence[str]
    ) -> list[str]:
        """Materialize what is missing of a stage; return the failures of all its runs."""
        todo = requests(self._plan_of(registered), self._known, stage.name)
        failures = self._execute(todo) if todo else self._check_again(registered, stage, failed)
        if not failures:
            for problem in stage.remarks(registered.config, registered.store):
                self._lines.line(f"  {problem}")
        return failures

    def _check_again(
        self, registered: Registration, stage: Stage, failed: Sequence[str]
    ) -> list[str]:
        """Run checks of a complete stage that never ran to their end, that failed, or would fail.

        Returns the failures.
        """
        gates = self._graph.blocking[stage.name]
        is_unmet = bool(stage.unmet(registered.config, registered.store))
        checks = [*gates] if is_unmet else failed_checks(self._instance, gates)
        checks += unfinished_checks(self._instance, self._graph.checks_of(stage.name))
        if not checks:
            state = "up to date"
            if table := stage.not_configured(registered.config):
                state = f"skipped: decon.toml has no {table} table"
            elif before := [name for name in failed if name in self._graph.upstream[stage.name]]:
                state = f"skipped: {before[0]} failed"
            elif stage.remarks(registered.config, registered.store):
                state = "kept, from earlier versions"
            self._lines.line(f"{stage.name}: {state}")
            return []
        job = self._job_of(stage.name).get_subset(
            asset_selection=frozenset(), asset_check_selection={*checks}
        )
        self._plan = None
        with watch_interrupts():
            result = job.execute_in_process(
                instance=self._instance,
                tags=self._tags,
                run_config=_RUN_CONFIG,
                raise_on_error=False,
            )
        self._lines.line(f"{stage.name}: checked again")
        is_passed = result.success and not _failed_checks(result)
        return [] if is_passed else [_reason(stage.name, result)]

    def _plan_of(self, registered: Registration) -> Plan:
        if self._plan is None or self._plan.registered is not registered.packs:
            self._plan = Plan(registered.config, registered.store, registered.packs)
        return self._plan

    @cached_property
    def _jobs(self) -> dg.RepositoryDefinition:
        definitions = build_graph(
            config_path=str(self._config_path.resolve()),
            loggers={"console": _console_logger(self._lines, self._instance, self._location)},
            graph=self._graph,
        )
        jobs = dg.Definitions(jobs=self._graph.stage_jobs)
        return dg.Definitions.merge(definitions, jobs).get_repository_def()

    def _job_of(self, asset: str) -> dg.JobDefinition:
        return self._jobs.get_job(self._graph.job_name(asset))

    def _execute(self, todo: Sequence[Request]) -> list[str]:
        """Run all requests; return the failures."""
        failures = []
        for number, request in enumerate(todo, start=1):
            name = request.asset if len(todo) == 1 else f"{request.asset} {number} of {len(todo)}"
            try:
                self._stage(request, name)
            except PipelineError as error:
                failures.append(str(error))
        return failures

    def _stage(
        self, request: Request, name: str, config: Mapping[str, object] | None = None
    ) -> None:
        """Run a request; raise PipelineError if it fails."""
        self._plan, asset = None, request.asset
        keys = [self._graph.key(asset)]
        ops = {"ops": {self._graph.identifier(asset): {"config": config}}} if config else {}
        with self._lines.stage(name, n_parts=request.n_partitions), watch_interrupts():
            try:
                result = self._job_of(asset).execute_in_process(
                    instance=self._instance,
                    asset_selection=keys,
                    tags={**self._tags, **request.tags},
                    run_config={**_RUN_CONFIG, **ops},
                    raise_on_error=False,
                )
            except dg.DagsterExecutionInterruptedError as error:
                raise KeyboardInterrupt from error
            # After Ctrl-C, the result may be a failed step, a consequent error, or a success: when
            # the block ends, it is a stop.
            if not result.success:
                failures = result.get_step_failure_events()
                errors = [event.step_failure_data.error for event in failures]
                if any(error and "Interrupt" in (error.cls_name or "") for error in errors):
                    raise KeyboardInterrupt  # SIGTERM arrived, which Dagster treats like Ctrl-C
                raise PipelineError(_reason(asset, result))


def _reason(asset: str, result: dg.ExecuteInProcessResult) -> str:
    """Return why a stage failed, without the stack trace, which is in the run's log."""
    if checks := _failed_checks(result):
        return f"{asset}: {'; '.join(checks)}"
    for event in result.get_step_failure_events():
        data = event.step_failure_data
        if data.user_failure_data and data.user_failure_data.description:
            return f"{asset}: {data.user_failure_data.description}"
        if data.error:
            return f"{asset}: {_cause_of(data.error)}"
    return f"{asset} failed"


def _cause_of(error: SerializableErrorInfo) -> str:
    while error.cause:
        error = error.cause
    return error.message.strip()


def _failed_checks(result: dg.ExecuteInProcessResult) -> list[str]:
    """Return the problems that blocking checks found."""
    return [
        f"{evaluation.check_name}: {evaluation.metadata['problems'].value}"
        for evaluation in result.get_asset_check_evaluations()
        if not evaluation.passed and evaluation.severity is dg.AssetCheckSeverity.ERROR
        if evaluation.blocking
    ]


def _console_logger(
    lines: StageLines, instance: dg.DagsterInstance, location: str
) -> dg.LoggerDefinition:
    """Return a logger that prints the messages of assets, and drops Dagster's own."""

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            stop_if_asked()  # during a long stage, whose own interrupt may be lost
            meta = getattr(record, "dagster_meta", {})
            if event := meta.get("dagster_event"):
                if event.is_step_up_for_retry:
                    retry = event.step_retry_data
                    seconds = f"{retry.seconds_to_wait:.0f} s"
                    lines.line(f"  {_cause_of(retry.error)}; trying again in {seconds}")
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

    @dg.logger(config_schema={})
    def plain(context: dg.InitLoggerContext) -> logging.Logger:
        if context.run_id and location:  # the first hook after a run is created in this process
            show_in_timeline(instance, context.run_id, location)
        run_logger = logging.Logger("decon_assets", level=logging.DEBUG)  # noqa: LOG001 - of this run only
        run_logger.addHandler(Handler())
        return run_logger

    return plain
