"""Outcomes of jobs: results and exceptions as bytes, and jobs whose workers died."""

from __future__ import annotations

import pickle
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from decon_core.errors import CorpusError, Problem

# A worker may die by accident: another process took the memory, a node was lost. Three times is no
# accident.
MOST_DEATHS = 3


def outcome_of(fn: Callable[[Any], Any], job: Any) -> bytes:
    """Run a job and return its result or its exception, pickled."""
    try:
        result = fn(job)
    except Exception as error:  # noqa: BLE001 - it is raised again where the job was started
        return _pickled_error(error)
    return pickle.dumps((True, result))


def future_of(outcome: bytes) -> Future[Any]:
    """Return a finished future with the result or the exception of a job."""
    is_result, value = pickle.loads(outcome)  # noqa: S301 - written by a worker of this run
    future: Future[Any] = Future()
    if is_result:
        future.set_result(value)
    else:
        future.set_exception(value)
    return future


def failed(error: Exception) -> Future[Any]:
    """Return a finished future with an exception."""
    future: Future[Any] = Future()
    future.set_exception(error)
    return future


def abandoned(name: str, deaths: Sequence[str], log: str | Path | None = None) -> CorpusError:
    """Return the error of a job whose workers died too often; `deaths` says how each one did."""
    causes = ", ".join(dict.fromkeys(deaths)) or "cause unknown"
    remedy = "give workers more memory or time, run fewer at once, or take the file out"
    if log:
        remedy += f"; the log of the worker: {log}"
    found = f"a worker that died {len(deaths)} times while it read this ({causes})"
    return CorpusError(Problem(name, found, "a worker that ends", remedy))


def _pickled_error(error: Exception) -> bytes:
    error.add_note(f"In a worker:\n{traceback.format_exc()}")
    try:
        pickled = pickle.dumps((False, error))
        pickle.loads(pickled)  # noqa: S301 - an exception may fail only here
    except (AttributeError, TypeError, ValueError, pickle.PickleError):
        plain = RuntimeError(f"{type(error).__name__}: {error}\n{traceback.format_exc()}")
        return pickle.dumps((False, plain))
    return pickled
