"""Shows what an engine logs in the run's log: submitted jobs, dead workers, lost nodes."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import dagster as dg

_ENGINES = logging.getLogger("decon_core.execution")


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
    handler, level, propagates = _ToRun(context), _ENGINES.level, _ENGINES.propagate
    _ENGINES.addHandler(handler)
    _ENGINES.setLevel(logging.DEBUG)
    _ENGINES.propagate = False  # otherwise a warning is printed twice
    try:
        yield
    finally:
        _ENGINES.removeHandler(handler)
        _ENGINES.setLevel(level)
        _ENGINES.propagate = propagates
