"""The job that makes everything that is missing, for the UI and for `decon-assets run`.

Dagster takes no job of assets that are partitioned in different ways. So this job has one op, which
starts a run for each asset that lacks something, one after the other, as the command line does.
"""

import logging
from collections.abc import Callable
from typing import TypeVar

from dagster import (
    DagsterExecutionInterruptedError,
    DagsterInstance,
    Failure,
    InitLoggerContext,
    JobDefinition,
    OpExecutionContext,
    job,
    logger,
    op,
)

from decon_assets.failures import dagster_failures
from decon_assets.instance.home import COMMAND_LINE_TAGS, locked_instance, show_in_timeline
from decon_assets.resources import Decon
from decon_assets.runner.interrupts import watch_interrupts

NAME = "everything_missing"
DESCRIPTION = (
    "Make everything that is missing or changed, from `records` to `report_page`, as `decon-assets "
    "run` does: register benchmarks and packs, then start a run for each asset that lacks "
    "something, in the order of the data."
)

Result = TypeVar("Result")


def everything_job(act: Callable[[OpExecutionContext, Decon], None]) -> JobDefinition:
    """The job, with what its op does."""

    @op(name="make_what_is_missing", description=DESCRIPTION)
    def make_what_is_missing(context: OpExecutionContext, decon: Decon) -> None:
        act(context, decon)

    @job(name=NAME, description=DESCRIPTION, logger_defs={"console": _silent})
    def everything_missing() -> None:
        make_what_is_missing()

    return everything_missing


def _from_the_ui(context: OpExecutionContext, decon: Decon) -> None:
    """In a process that Dagster's daemon started."""
    # It brings half of the core, and a code location has to be there within a second.
    from decon_assets.runner.pipeline import Pipeline, PipelineError

    with dagster_failures(), locked_instance(context.instance):
        pipeline = Pipeline(decon.path(), context.instance, context.log.info)
        try:
            pipeline.run()
        except PipelineError as error:
            raise Failure(description=str(error), allow_retries=False) from error


def run_as_job(instance: DagsterInstance, act: Callable[[], Result]) -> Result:
    """Execute the job here, with `act` as its op: the UI shows when it was and how it ended."""
    results: list[Result] = []

    def make(context: OpExecutionContext, _: Decon) -> None:
        show_in_timeline(instance, context.run_id)
        results.append(act())

    with watch_interrupts() as interrupts:
        try:
            everything_job(make).execute_in_process(
                instance=instance,
                tags=COMMAND_LINE_TAGS,
                resources={"decon": Decon()},
                run_config={"loggers": {"console": {"config": {}}}},
            )
        except DagsterExecutionInterruptedError as error:
            raise KeyboardInterrupt from error
        interrupts.check()
    return results[0]


@logger(config_schema={})
def _silent(_: InitLoggerContext) -> logging.Logger:
    """What Dagster says of the run itself is in the history; the command line has its own voice."""
    found = logging.Logger("decon_assets")  # noqa: LOG001 - of this run only
    found.addHandler(logging.NullHandler())
    return found


EVERYTHING_MISSING = everything_job(_from_the_ui)
