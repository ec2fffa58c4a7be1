"""Ask an endpoint that takes and returns JSON.

A request that fails for a passing reason (no answer, 429, 5xx) is sent again after a wait that
doubles, or after the time that the server names. The key is read from the environment and appears
in no message.
"""

from __future__ import annotations

import errno
import json
import os
import time
from dataclasses import dataclass
from http import HTTPStatus
from http.client import HTTPException
from typing import Any, ClassVar
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from decon_core.errors import ConfigError, InputError, Problem
from decon_core.storage.paths import UnreachableError

_MOST_WAIT_SECONDS = 60.0
MOST_SHOWN = 200  # characters of an answer in a message


@dataclass(frozen=True, kw_only=True)
class JsonEndpoint:
    """An endpoint, and how it is asked."""

    what: ClassVar[str] = "an answer"  # for messages

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

    def post(self, value: object) -> bytes:
        """Send a JSON value and return the answer."""
        body = json.dumps(value).encode()
        headers = {"Content-Type": "application/json"}
        if key := self.key():
            headers["Authorization"] = f"Bearer {key}"
        request = Request(self.address, body, headers)  # noqa: S310 - the settings accept only http and https
        for number in range(self.retries + 1):
            try:
                with urlopen(request, timeout=self.timeout) as answer:  # noqa: S310 - as above
                    return bytes(answer.read())
            except HTTPError as error:
                found = f"{error.code} {error.reason}: {_detail(error)}"
                if not _may_pass(error.code):
                    raise self._refused(error.code, found) from None
                least_wait = _named_wait(error)
            except (URLError, HTTPException, OSError) as error:
                found, least_wait = str(getattr(error, "reason", error)), 0.0
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
            remedy = f"export {self.key_env}=…, or leave key_env out if the endpoint needs no key"
            problem = Problem(f"${self.key_env}", "nothing", f"the key of {self.url}", remedy)
            raise ConfigError(problem)
        return key

    def _refused(self, code: int, found: str) -> InputError:
        remedies: dict[int, str] = {
            HTTPStatus.UNAUTHORIZED: "check the key",
            HTTPStatus.FORBIDDEN: "check the key",
            HTTPStatus.NOT_FOUND: "check the url and the name of the model",
        }
        return self.wrong(found, self.what, remedies.get(code, ""))

    def wrong(self, found: str, expected: str, remedy: str = "") -> InputError:
        where = f"{self.url} ({self.model})" if self.model else self.url
        return InputError(Problem(where, found, expected, remedy))


def _may_pass(code: int) -> bool:
    return code in (HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS) or code >= 500


def _named_wait(error: HTTPError) -> float:
    """Return the seconds of the header Retry-After; 0 if it has none or names a date."""
    value = error.headers.get("Retry-After", "")
    return float(value) if value.isdecimal() else 0.0


def _detail(error: HTTPError) -> str:
    """Return the message of an error's answer, shortened."""
    try:
        text = error.read().decode(errors="replace")
    except (OSError, HTTPException):
        return ""
    try:
        detail: Any = json.loads(text)["error"]
        text = str(detail.get("message") if isinstance(detail, dict) else detail)
    except (ValueError, KeyError, TypeError):
        pass
    return " ".join(text.split())[:MOST_SHOWN]
