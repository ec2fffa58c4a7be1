"""Shared by the commands that ask an endpoint: its key, the estimate of its cost, and progress."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from decon_assets.terminal.output import say
from decon_assets.terminal.progress import ShardProgress
from decon_core.errors import InputError, Problem
from decon_core.features.endpoints.settings import Endpoint
from decon_core.wording import counted

if TYPE_CHECKING:
    from decon_core.features.endpoints.chat import Outcome, Spent
    from decon_core.features.endpoints.requests import Request, Task

_TOKENIZER = "cl100k"  # an estimate: an endpoint counts by its own


def require_endpoint(settings: Endpoint, config: Path, *, docs: str) -> str | None:
    """Return the key of the endpoint; raise InputError if it cannot be asked."""
    table, problems = settings.table, []
    for name, value in (("url", settings.url), ("model", settings.model)):
        if not value:
            expected = "the URL of the endpoint" if name == "url" else "the name of the model"
            remedy = f"the page {docs} shows a [{table}] table"
            problems.append(Problem(f"{config}: {table}.{name}", "missing", expected, remedy))
    key = os.environ.get(settings.key_env or "")
    if settings.key_env and not key:
        where, expected = f"environment: {settings.key_env}", "the key of the endpoint"
        remedy = f"the setting {table}.key_env names this variable"
        problems.append(Problem(where, "not set", expected, remedy))
    InputError.raise_for(problems)
    return key


def token_counter() -> Callable[[str], int]:
    from decon_core.text.tokenizers import load_tokenizer

    tokenizer = load_tokenizer(_TOKENIZER)
    return lambda text: len(tokenizer.encode([text])[0])


def say_cost(requests: Sequence[Request], n_to_ask: int, settings: Endpoint) -> None:
    """Print how much there is to ask, and the limits of a command."""
    from decon_core.features.endpoints.requests import answer_limit

    n, limit = len(requests), answer_limit(settings)
    most = f"at most {n * limit:,}" if limit else "an unknown number (`parameters` sets no limit)"
    n_tokens = sum(request.n_tokens for request in requests)
    asked = f"{n_to_ask:,} to ask: {counted(n, 'request')}"
    tokens = f"about {n_tokens:,} tokens, plus {most} in answers"
    say(f"  {asked} with {tokens}" if n else f"  {asked}")
    limits = [f"max_requests = {settings.max_requests:,}"]
    limits += [f"max_tokens = {settings.max_tokens:,}"] if settings.max_tokens else []
    say(f"  limits of one command: {', '.join(limits)}")


def ask_with_progress(
    requests: Sequence[Request],
    settings: Endpoint,
    save: Callable[[Request, Outcome], None],
    *,
    key: str | None,
    task: Task,
) -> Spent:
    """Ask all requests; `save` is called at once with the outcome of each."""
    from decon_core.features.endpoints.chat import Spent, ask

    n, began = len(requests), time.monotonic()
    if not n:
        return Spent()
    with ShardProgress(sys.stderr) as progress:

        def on_outcome(request: Request, outcome: Outcome, spent: Spent) -> None:
            save(request, outcome)
            failed = f", {spent.n_failed:,} failed" if spent.n_failed else ""
            about = f", {spent.n_tokens:,} tokens{failed}"
            n_done, seconds = spent.n_judged + spent.n_failed, time.monotonic() - began
            progress.count("request", n_done, n, seconds, about=about)

        return ask(requests, settings, on_outcome, key=key, task=task)
