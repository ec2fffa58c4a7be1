"""Shows what an engine logs in the run's log: submitted jobs, dead workers, lost nodes."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import dagster as dg

_ENGINES = logging.getLogger("decon_core.execution")


class _ToRun(logging.Handler):
    """Passes records on to the log of a run."""

    def __init__(self, context: dg.AssetExecutionContext) -> None:
        super().__init__(logging.INFO)
        self._context = context

    def emit(self, record: logging.LogRecord) -> None:
        is_warning = record.levelno >= logging.WARNING
        log = self._context.log.warning if is_warning else self._context.log.debug
        log(record.getMessage())


@contextmanager
def engine_log(context: dg.AssetExecutionContext) -> Iterator[None]:
    """Pass what engines log to the log of a run until the block ends."""
    handler, level, propagates = _ToRun(context), _ENGINES.level, _ENGINES.propagate
    _ENGINES.addHandler(handler)
    _ENGINES.setLevel(logging.INFO)
    _ENGINES.propagate = False  # otherwise a warning is printed twice
    try:
        yield
    finally:
        _ENGINES.removeHandler(handler)
        _ENGINES.setLevel(level)
        _ENGINES.propagate = propagates
