"""The one place that decides whether trying again can help.

A `DeconError` is permanent: the same inputs give the same error, so Dagster is told not to retry.
What a disk or a network does may go away: Dagster is asked to try again, twice. Anything else is a
mistake in here, and would be one again. A run whose process dies is begun again by the daemon, as
dagster.yaml says.
"""

import errno
import re
from collections.abc import Iterator
from contextlib import contextmanager

from dagster import Failure, MetadataValue, RetryRequested

from decon_core.errors import DeconError, format_problems
from decon_core.storage.paths import network_errors

_MOST_RETRIES = 2
_SECONDS_BEFORE_RETRY = 30
_PASSING = {
    errno.EAGAIN, errno.EBUSY, errno.ECONNABORTED, errno.ECONNREFUSED, errno.ECONNRESET,
    errno.EDQUOT, errno.EHOSTUNREACH, errno.EIO, errno.EMFILE, errno.ENETUNREACH, errno.ENFILE,
    errno.ENOMEM, errno.ENOSPC, errno.ESTALE, errno.ETIMEDOUT,
}  # fmt: skip


@contextmanager
def dagster_failures() -> Iterator[None]:
    """Turn the core's errors into failures that Dagster shows in full; retry what may pass."""
    try:
        yield
    except DeconError as error:
        raise Failure(
            description=f"{type(error).__name__}: {error}",
            metadata={"problems": MetadataValue.md(format_problems(error.problems, bullet="- "))},
            allow_retries=False,
        ) from error
    except network_errors() as error:
        raise RetryRequested(_MOST_RETRIES, _SECONDS_BEFORE_RETRY) from error
    except OSError as error:
        if _number_of(error) not in _PASSING:
            raise
        raise RetryRequested(_MOST_RETRIES, _SECONDS_BEFORE_RETRY) from error


def _number_of(error: OSError) -> int | None:
    """Polars has it in the text alone."""
    if error.errno is not None:
        return error.errno
    found = re.search(r"\(os error (\d+)\)", str(error))
    return int(found[1]) if found else None
