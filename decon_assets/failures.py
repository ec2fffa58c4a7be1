"""The one place that decides whether trying again can help.

A `DeconError` is permanent: the same inputs give the same error, so Dagster is told not to retry.
Everything else (a disk that is full, a mount that is away) may go away, and is left to whatever
retries the run asks for.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from dagster import Failure, MetadataValue

from decon_core.errors import DeconError, told


@contextmanager
def permanent_failures() -> Iterator[None]:
    """Turn the core's errors into failures that Dagster shows in full and does not retry."""
    try:
        yield
    except DeconError as error:
        raise Failure(
            description=f"{type(error).__name__}: {error}",
            metadata={"problems": MetadataValue.md(told(error.problems, bullet="- "))},
            allow_retries=False,
        ) from error
