"""Shows what an engine logs in the run's log: submitted jobs, dead workers, lost nodes."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import dagster as dg

from decon_core.execution.engine import ENGINE_LOG


class _ToRun(logging.Handler):
    """Passes records on to the log of a run."""

    def __init__(self, context: dg.AssetExecutionContext) -> None:
        super().__init__()
        self._context = context

    def emit(self, record: logging.LogRecord) -> None:
        level = min(record.levelno, logging.WARNING)  # an error ends the run by itself
        self._context.log.log(level, record.getMessage())


@contextmanager
def engine_log(context: dg.AssetExecutionContext) -> Iterator[None]:
    """Pass what engines log to the log of a run until the block ends."""
    handler, level, propagates = _ToRun(context), ENGINE_LOG.level, ENGINE_LOG.propagate
    ENGINE_LOG.addHandler(handler)
    ENGINE_LOG.setLevel(logging.DEBUG)
    ENGINE_LOG.propagate = False  # otherwise a warning is printed twice
    try:
        yield
    finally:
        ENGINE_LOG.removeHandler(handler)
        ENGINE_LOG.setLevel(level)
        ENGINE_LOG.propagate = propagates
