"""Embeddings by an OpenAI-compatible endpoint: `POST {url}/embeddings`.

A request that fails for a passing reason (no answer, 429, 5xx) is sent again after a wait that
doubles, or after the time that the server names. The key is read from the environment and appears
in no message.
"""

from __future__ import annotations

import errno
import json
import os
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from http import HTTPStatus
from http.client import HTTPException
from itertools import chain
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

import numpy as np
import numpy.typing as npt

from decon_core.errors import ConfigError, InputError, Problem
from decon_core.storage.paths import UnreachableError

Vectors = npt.NDArray[np.float32]

_MOST_WAIT_SECONDS = 60.0
_MOST_SHOWN = 200  # characters of an answer in a message


@dataclass(frozen=True, kw_only=True)
class EmbeddingEndpoint:
    """An endpoint, and how it is asked."""

    url: str  # up to `/embeddings`
    model: str
    key_env: str | None = None  # the environment variable with the key
    batch: int = 64  # texts in a request
    concurrency: int = 4  # requests at the same time
    timeout: float = 120.0  # seconds
    retries: int = 5
    first_wait: float = 1.0  # seconds before the first retry

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return one row for each text, not normalized."""
        self._key()  # once, before any thread is started
        starts = range(0, len(texts), self.batch)
        batches = [texts[start : start + self.batch] for start in starts]
        with ThreadPoolExecutor(self.concurrency) as pool:
            rows = [*chain.from_iterable(pool.map(self._embedded, batches))]
        if len({len(row) for row in rows}) > 1:
            raise self._wrong("vectors of different lengths", "vectors of one length")
        return np.array(rows, np.float32).reshape(len(rows), -1)

    def _embedded(self, texts: Sequence[str]) -> list[list[float]]:
        # An endpoint refuses empty texts; the caller ignores the vector of one.
        sent = {"model": self.model, "input": [one if one.strip() else "-" for one in texts]}
        answer = self._post(json.dumps(sent).encode())
        try:
            data = {int(one["index"]): one["embedding"] for one in json.loads(answer)["data"]}
            rows = [[float(x) for x in data[at]] for at in range(len(texts))]
            is_good = len(data) == len(texts) and np.isfinite(rows).all()
        except (ValueError, TypeError, KeyError, AttributeError):
            is_good = False
        if not is_good:
            raise self._wrong(
                repr(answer[:_MOST_SHOWN].decode(errors="replace")),
                f"JSON with `data`: {len(texts)} objects with `index` and `embedding`",
            )
        return rows

    def _post(self, body: bytes) -> bytes:
        headers = {"Content-Type": "application/json"}
        if key := self._key():
            headers["Authorization"] = f"Bearer {key}"
        url = f"{self.url.rstrip('/').removesuffix('/embeddings')}/embeddings"
        request = Request(url, body, headers)  # noqa: S310 - the settings accept only http and https
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
        message = f"{url} failed {self.retries + 1} times, the last time with {found}"
        raise UnreachableError(errno.ETIMEDOUT, f"{message}. Run the command again later")

    def _key(self) -> str | None:
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
        return self._wrong(found, "embeddings", remedies.get(code, ""))

    def _wrong(self, found: str, expected: str, remedy: str = "") -> InputError:
        return InputError(Problem(f"{self.url} ({self.model})", found, expected, remedy))


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
    return " ".join(text.split())[:_MOST_SHOWN]
