"""Decides which errors Dagster retries.

- `DeconError`: permanent, as the same inputs give the same error. Never retried.
- Errors of a network, and disk errors that may pass: retried twice.
- Anything else is a bug in this project and is not retried.

If the process of a run dies, the daemon starts the run again (see dagster.yaml).
"""

import errno
import re
from collections.abc import Iterator
from contextlib import contextmanager

from dagster import Failure, MetadataValue, RetryRequested

from decon_core.errors import DeconError, format_problems
from decon_core.storage.paths import network_errors

_MAX_RETRIES = 2
_SECONDS_BEFORE_RETRY = 30
_TRANSIENT = {
    errno.EAGAIN, errno.EBUSY, errno.ECONNABORTED, errno.ECONNREFUSED, errno.ECONNRESET,
    errno.EDQUOT, errno.EHOSTUNREACH, errno.EIO, errno.EMFILE, errno.ENETUNREACH, errno.ENFILE,
    errno.ENOMEM, errno.ENOSPC, errno.ESTALE, errno.ETIMEDOUT,
}  # fmt: skip


@contextmanager
def dagster_failures() -> Iterator[None]:
    """Turn errors of the core into Dagster failures with all problems; retry transient errors."""
    try:
        yield
    except DeconError as error:
        raise Failure(
            description=f"{type(error).__name__}: {error}",
            metadata={"problems": MetadataValue.md(format_problems(error.problems, bullet="- "))},
            allow_retries=False,
        ) from error
    except network_errors() as error:
        raise RetryRequested(_MAX_RETRIES, _SECONDS_BEFORE_RETRY) from error
    except OSError as error:
        number = error.errno
        if number is None and (match := re.search(r"\(os error (\d+)\)", str(error))):
            number = int(match[1])  # errors of polars have it only in their text
        if number not in _TRANSIENT:
            raise
        raise RetryRequested(_MAX_RETRIES, _SECONDS_BEFORE_RETRY) from error
