"""The job that builds all missing assets, for the UI and for `decon-assets run`.

Dagster does not accept a job of assets with different partitions. So this job has a single op,
which starts one run after the other, like the command line.
"""

import logging
from collections.abc import Callable, Mapping
from typing import TypeVar

import dagster as dg

from decon_assets.failures import dagster_failures
from decon_assets.graph import GRAPH, Graph
from decon_assets.instance.home import (
    IN_PROCESS_TAGS,
    LOCATION,
    fail_unfinished_runs,
    locked_instance,
    show_in_timeline,
    tags_of_command,
)
from decon_assets.resources import Decon
from decon_assets.runner.interrupts import watch_interrupts

NAME = "everything_missing"
DESCRIPTION = (
    "Start with this job. It builds everything that is missing or outdated, from `records` to "
    "`report_page`, like `decon-assets run`: it registers benchmarks and packs, then starts a run "
    "for each asset that is not up to date, upstream assets first."
)

SENSOR = "fail_stage_runs"
STARTED_BY_TAG = "decon/started_by"  # of stage runs: the id of the run in whose process they are

Result = TypeVar("Result")


def everything_job(
    act: Callable[[dg.OpExecutionContext, Decon], None], graph: Graph = GRAPH
) -> dg.JobDefinition:
    """Build the job; its op calls `act`."""

    def make_what_is_missing(context: dg.OpExecutionContext, decon: Decon) -> None:
        act(context, decon)

    name = graph.identifier("make_what_is_missing")
    op = dg.op(name=name, description=DESCRIPTION)(graph.bound(make_what_is_missing))

    @dg.job(
        name=graph.identifier(NAME),
        description=DESCRIPTION,
        logger_defs={"console": _silent},
        executor_def=dg.in_process_executor,
    )
    def everything_missing() -> None:
        op()

    return everything_missing


def run_pipeline(context: dg.OpExecutionContext, decon: Decon, graph: Graph = GRAPH) -> None:
    """Run the pipeline in a process that the UI or Dagster's daemon started."""
    # Imported late: it loads half of the core, and a code location must load within a second.
    from decon_assets.runner.pipeline import Pipeline, PipelineError
    from decon_core.config.load import load_config
    from decon_core.execution.choice import require_engine

    with dagster_failures():  # once, not at each stage
        config = load_config(decon.path())
        require_engine(config.tables)
    with dagster_failures(), locked_instance(context.instance):
        # The runs of the stages belong to the code location of this run.
        run = context.instance.get_run_by_id(context.run_id)
        origin = run.remote_job_origin if run else None
        location = LOCATION if graph is GRAPH else ""
        if origin:
            location = origin.location_name
        pipeline = Pipeline(
            decon.path(),
            context.instance,
            context.log.info,
            graph=graph,
            location=location,
            tags={**tags_of_command(NAME, config.policy), STARTED_BY_TAG: context.run_id},
        )
        try:
            pipeline.run()
        except PipelineError as error:
            raise dg.Failure(description=str(error), allow_retries=False) from error


def stage_run_sensor(job: dg.JobDefinition, graph: Graph = GRAPH) -> dg.SensorDefinition:
    """Build a sensor that fails the stage runs in the process of a job's run that failed.

    If that process was killed, Dagster would wait for them, and its queue with it.
    """

    @dg.run_failure_sensor(
        name=graph.identifier(SENSOR),
        monitored_jobs=[job],
        default_status=dg.DefaultSensorStatus.RUNNING,
        description=(
            f"If the process of a run of `{NAME}` was killed, marks the runs that it started as "
            "failed, so that the queue does not wait for them."
        ),
    )
    def fail_stage_runs(context: dg.RunFailureSensorContext) -> None:
        fail_unfinished_runs(context.instance, {STARTED_BY_TAG: context.dagster_run.run_id})

    return fail_stage_runs


def run_as_job(
    instance: dg.DagsterInstance, act: Callable[[], Result], tags: Mapping[str, str]
) -> Result:
    """Execute the job in this process with `act` as its op, so that the UI lists it as a run."""
    results: list[Result] = []

    def make(context: dg.OpExecutionContext, _: Decon) -> None:
        show_in_timeline(instance, context.run_id)
        results.append(act())

    with watch_interrupts():
        try:
            everything_job(make).execute_in_process(
                instance=instance,
                tags={**IN_PROCESS_TAGS, **tags},
                resources={"decon": Decon()},
                run_config={"loggers": {"console": {"config": {}}}},
            )
        except dg.DagsterExecutionInterruptedError as error:
            raise KeyboardInterrupt from error
    return results[0]


@dg.logger(config_schema={})
def _silent(_: dg.InitLoggerContext) -> logging.Logger:
    """A console logger that prints nothing: the command line writes its own messages.

    Dagster's events of the run are still in its history.
    """
    silent = logging.Logger("decon_assets")  # noqa: LOG001 - of this run only
    silent.addHandler(logging.NullHandler())
    return silent


EVERYTHING_MISSING = everything_job(run_pipeline)
