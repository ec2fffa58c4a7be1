"""Ask an endpoint that takes and returns JSON.

A request that fails for a passing reason (no answer, 429, 5xx) is sent again after a wait that
doubles, or after the time that the server names. The key is read from the environment and appears
in no message.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from itertools import chain
from typing import ClassVar, TypeVar

from decon_core.errors import ConfigError, InputError, Problem
from decon_core.storage.paths import UnreachableError

_Result = TypeVar("_Result")

_MOST_WAIT_SECONDS = 60.0
MOST_SHOWN = 200  # characters of an answer in a message
_RETRIED = frozenset({408, 409, 425, HTTPStatus.TOO_MANY_REQUESTS})
_REMEDIES: Mapping[int, str] = {
    HTTPStatus.UNAUTHORIZED: "check the key",
    HTTPStatus.FORBIDDEN: "check the key",
    HTTPStatus.NOT_FOUND: "check the url and the name of the model",
}


@dataclass(frozen=True, kw_only=True)
class JsonEndpoint:
    """An endpoint, and how it is asked."""

    what: ClassVar[str] = "an answer"  # noun that messages use

    url: str
    model: str | None = None
    key_env: str | None = None  # the environment variable with the key
    batch: int = 64  # texts in a request
    concurrency: int = 4  # requests at the same time
    timeout: float = 120.0  # seconds
    retries: int = 5
    first_wait: float = 1.0  # seconds before the first retry

    @property
    def address(self) -> str:
        return self.url

    def in_batches(
        self, texts: Sequence[str], ask: Callable[[Sequence[str]], list[_Result]]
    ) -> list[_Result]:
        """Ask for batches of texts, several at the same time; return the results in order."""
        self.key()  # once, before any thread is started
        starts = range(0, len(texts), self.batch)
        batches = [texts[start : start + self.batch] for start in starts]
        with ThreadPoolExecutor(self.concurrency) as pool:
            return [*chain.from_iterable(pool.map(ask, batches))]

    def post(self, value: object) -> bytes:
        """Send a JSON value and return the answer."""
        import httpx2

        key = self.key()
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        for number in range(self.retries + 1):
            least_wait = 0.0
            try:
                answer = httpx2.post(
                    self.address, json=value, headers=headers, timeout=self.timeout
                )
            except httpx2.RequestError as error:
                found = str(error) or type(error).__name__
            else:
                if answer.is_success:
                    return answer.content
                code = answer.status_code
                detail = " ".join(answer.text.split())[:MOST_SHOWN]
                found = f"{code} {answer.reason_phrase}: {detail}"
                if not may_pass(code):
                    raise self.wrong(found, self.what, _REMEDIES.get(code, ""))
                least_wait = seconds_until(answer.headers.get("retry-after"))
            if number < self.retries:
                wait = max(least_wait, self.first_wait * 2**number)
                time.sleep(min(wait, _MOST_WAIT_SECONDS))
        message = f"{self.address} failed {self.retries + 1} times, the last time with {found}"
        raise UnreachableError(errno.ETIMEDOUT, f"{message}. Run the command again later")

    def key(self) -> str | None:
        if not self.key_env:
            return None
        key = os.environ.get(self.key_env)
        if not key:
            remedy = (
                f"run `export {self.key_env}=…`, or leave key_env out if the endpoint needs no key"
            )
            problem = Problem(f"${self.key_env}", "not set", f"the key of {self.url}", remedy)
            raise ConfigError(problem)
        return key

    def wrong(self, found: str, expected: str, remedy: str = "") -> InputError:
        where = f"{self.url} ({self.model})" if self.model else self.url
        return InputError(Problem(where, found, expected, remedy))


def may_pass(status: int) -> bool:
    """Return whether a request with this status may succeed later."""
    return status in _RETRIED or status >= HTTPStatus.INTERNAL_SERVER_ERROR


def seconds_until(value: str | None) -> float:
    """Return the seconds of a Retry-After header, which may be a number or a date; 0 without."""
    if not value:
        return 0.0
    with suppress(ValueError):
        return max(0.0, float(value))
    with suppress(ValueError, TypeError):
        return max(0.0, (parsedate_to_datetime(value) - datetime.now(UTC)).total_seconds())
    return 0.0
