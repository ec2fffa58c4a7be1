"""Asks an OpenAI-compatible chat endpoint many requests at once, within limits.

Too many requests (429), errors of the server, time-outs, broken connections and unusable answers
are tried again, each time after twice as long and a random part of it; where the server names a
time, nothing is sent before. A request that fails for good is left, with the reason. After many
failures in a row nothing more is sent: the endpoint is down.
"""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from decon_core.errors import InputError, Problem
from decon_core.features.endpoints.json_endpoint import may_pass, seconds_until
from decon_core.features.endpoints.requests import (
    Request,
    Task,
    UnusableAnswerError,
    answer_limit,
    body_of,
)
from decon_core.features.endpoints.settings import Endpoint

if TYPE_CHECKING:
    from httpx2 import AsyncClient

_LONGEST_WAIT_SECONDS = 900.0  # a server that asks for more is not waited for
_LONGEST_PAUSE_SECONDS = 60.0  # between two tries, if the server names no time
_MOST_BYTES = 1 << 20  # bytes of an answer
_FAILURES_IN_A_ROW = 10  # and as many as there are requests at the same time
_OK, _BAD_REQUEST, _TOO_MANY = 200, 400, 429
_ABOUT_KEYS = (401, 403)
# What is wrong with all requests, not only with this request.
_REFUSED = {
    401: "the endpoint does not accept the key: check the variable that {table}.key_env names",
    403: "the endpoint denies access: check the key and {table}.model",
    404: "check {table}.url (without /chat/completions) and {table}.model",
    405: "check {table}.url (without /chat/completions)",
}


class Outcome(NamedTuple):
    """What came of a request: the fields of its answer, or the reason why there are none."""

    judgement: dict[str, Any] | None
    unjudged: str = ""


@dataclass
class Spent:
    """What a command has sent and received."""

    n_requests: int = 0
    n_tokens: int = 0  # tokens of prompts and answers
    n_judged: int = 0  # requests
    n_failed: int = 0
    stopped: str = ""  # why nothing more is sent
    _reserved: int = 0  # tokens that requests under way may take

    def may_send(self, settings: Endpoint, n_tokens: int) -> bool:
        """Reserve a request, unless it could exceed a limit."""
        if self.n_requests >= settings.max_requests:
            self.stopped = f"{settings.table}.max_requests = {settings.max_requests:,}"
        elif (
            settings.max_tokens is not None
            and self.n_tokens + self._reserved + n_tokens > settings.max_tokens
        ):
            self.stopped = f"{settings.table}.max_tokens = {settings.max_tokens:,}"
        else:
            self.n_requests += 1
            self._reserved += n_tokens
            return True
        return False

    def received(self, reserved: int, used: int) -> None:
        """Replace a reservation by what was used."""
        self._reserved -= reserved
        self.n_tokens += used


OnOutcome = Callable[[Request, Outcome, Spent], None]


def ask(
    requests: Sequence[Request],
    settings: Endpoint,
    on_outcome: OnOutcome,
    *,
    task: Task,
    key: str | None = None,
) -> Spent:
    """Ask all requests; `on_outcome` is called in this thread for each that was answered or failed.

    Requests that no limit allows get no outcome. Raises InputError if the endpoint refuses all.
    """
    return asyncio.run(_Asker(settings, key, on_outcome, task).ask(requests))


class _RetryError(Exception):
    """A try that failed, and may succeed later."""

    def __init__(self, reason: str, wait: float = 0.0) -> None:
        super().__init__(reason)
        self.reason, self.wait = reason, wait


class _GiveUpError(Exception):
    """A request that will not succeed."""


@dataclass
class _Asker:
    settings: Endpoint
    key: str | None
    on_outcome: OnOutcome
    task: Task
    spent: Spent = field(default_factory=Spent)
    _not_before: float = 0.0  # a server that has too many requests named this time
    _in_a_row: int = 0  # failures

    async def ask(self, requests: Sequence[Request]) -> Spent:
        import httpx2

        waiting = deque(requests)
        n = min(self.settings.concurrency, len(requests))
        headers = {"Authorization": f"Bearer {self.key}"} if self.key else {}
        # The time-out covers a whole answer (`_try`): one per chunk would never end a slow trickle.
        async with httpx2.AsyncClient(
            headers=headers, timeout=None, limits=httpx2.Limits(max_connections=n)
        ) as client:
            workers = [asyncio.create_task(self._work(client, waiting)) for _ in range(n)]
            try:
                await asyncio.gather(*workers)
            finally:
                for worker in workers:
                    worker.cancel()
                await asyncio.gather(*workers, return_exceptions=True)
        return self.spent

    async def _work(self, client: AsyncClient, waiting: deque[Request]) -> None:
        while waiting and not self.spent.stopped:
            request = waiting.popleft()
            outcome = await self._outcome(client, request)
            if outcome is None:
                return
            if outcome.judgement is not None:
                self.spent.n_judged += 1
                self._in_a_row = 0
            else:
                self.spent.n_failed += 1
                self._in_a_row += 1
                if self._in_a_row >= _FAILURES_IN_A_ROW + self.settings.concurrency:
                    self.spent.stopped = f"{self._in_a_row} failures in a row"
            self.on_outcome(request, outcome, self.spent)

    async def _outcome(self, client: AsyncClient, request: Request) -> Outcome | None:
        """Try a request until it is answered; None if a limit does not allow to send it."""
        reason = ""
        for number in range(self.settings.retries + 1):
            while (seconds := self._not_before - time.monotonic()) > 0:
                await asyncio.sleep(seconds)
            if not self.spent.may_send(self.settings, self._most_tokens(request)):
                if not reason:
                    return None
                return Outcome(None, f"{reason}; no retry: {self.spent.stopped}")
            try:
                return Outcome(await self._try(client, request))
            except _GiveUpError as error:
                return Outcome(None, str(error))
            except _RetryError as error:
                reason = error.reason
                if error.wait > _LONGEST_WAIT_SECONDS:
                    return Outcome(None, f"{reason}: retry after {error.wait:.0f} s")
                if number < self.settings.retries:
                    longest = min(self.settings.first_wait * 2.0**number, _LONGEST_PAUSE_SECONDS)
                    part = random.uniform(0.5, 1.0)  # noqa: S311 - so that not all come at once
                    await asyncio.sleep(max(error.wait, longest * part))
        return Outcome(None, reason)

    def _most_tokens(self, request: Request) -> int:
        return request.n_tokens + answer_limit(self.settings)

    async def _try(self, client: AsyncClient, request: Request) -> dict[str, Any]:
        """Send a request once and return what its answer holds."""
        import httpx2

        used = 0
        try:
            async with asyncio.timeout(self.settings.timeout):
                status, headers, content = await self._send(client, request)
            self._check(status, headers, content)
            used = self._most_tokens(request)
            text, used = _read(content, default_tokens=used)
            if not isinstance(text, str):
                raise UnusableAnswerError("an answer without text")
            return self.task.read(request, text)
        except TimeoutError:
            reason = f"no answer within {self.settings.timeout:g} s"
            used = self._most_tokens(request)  # it may have been answered
            raise _RetryError(reason) from None
        except httpx2.RequestError as error:
            raise _RetryError(f"connection failed ({type(error).__name__})") from None
        except UnusableAnswerError as error:
            raise _RetryError(f"unusable answer ({error})") from None
        finally:
            self.spent.received(self._most_tokens(request), used)

    async def _send(self, client: AsyncClient, request: Request) -> tuple[int, Any, bytes]:
        body = body_of(request, self.settings, self.task)
        async with client.stream("POST", endpoint_address(self.settings), json=body) as response:
            content = b""
            async for chunk in response.aiter_bytes():
                content += chunk
                if len(content) > _MOST_BYTES:
                    raise _RetryError(f"unusable answer (more than {_MOST_BYTES:,} bytes)")
            return response.status_code, response.headers, content

    def _check(self, status: int, headers: Any, content: bytes) -> None:
        """Raise what follows from a status other than 200."""
        if status == _OK:
            return
        if may_pass(status):
            wait = seconds_until(headers.get("retry-after"))
            if status == _TOO_MANY and wait <= _LONGEST_WAIT_SECONDS:
                self._not_before = max(self._not_before, time.monotonic() + wait)
            raise _RetryError(f"HTTP {status}", wait)
        detail = " ".join(content.decode("utf-8", "replace").split())[:200]
        if status in _REFUSED or status < _BAD_REQUEST:  # below: it forwards
            # Some servers repeat the key that they do not accept.
            found = f"HTTP {status}" if status in _ABOUT_KEYS else f"HTTP {status} ({detail})"
            where = endpoint_address(self.settings)
            remedy = _REFUSED.get(status, "set {table}.url to the address that it redirects to")
            remedy = remedy.format(table=self.settings.table)
            raise InputError(Problem(where, found, "an answer", remedy))
        raise _GiveUpError(f"HTTP {status} ({detail})")


def endpoint_address(settings: Endpoint) -> str:
    tail = "/chat/completions"
    return str(settings.url).rstrip("/").removesuffix(tail) + tail


def _read(content: bytes, *, default_tokens: int) -> tuple[object, int]:
    """Return the text of an answer, if it has any, and the tokens that the request took."""
    try:
        value = json.loads(content)
        text = value["choices"][0]["message"]["content"]
    except (ValueError, LookupError, TypeError, RecursionError):
        raise UnusableAnswerError("not a response from a chat endpoint") from None
    used = default_tokens
    with suppress(LookupError, TypeError, ValueError):
        used = int(value["usage"]["total_tokens"])
    return text, used
