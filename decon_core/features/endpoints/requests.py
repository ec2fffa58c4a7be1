"""What an endpoint is asked: prompts, requests, their limits, and the object in an answer."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from decon_core.errors import InputError, Problem
from decon_core.features.endpoints.settings import Endpoint

_MOST_OBJECTS = 10_000  # looked at in one answer


@dataclass(frozen=True)
class Prompt:
    """The template of a prompt."""

    source: str
    where: str  # key of decon.toml, and file

    @cached_property
    def digest(self) -> str:
        return sha256(self.source.encode()).hexdigest()[:16]

    @cached_property
    def _template(self) -> Any:
        from jinja2 import StrictUndefined
        from jinja2.sandbox import ImmutableSandboxedEnvironment

        environment = ImmutableSandboxedEnvironment(
            undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, autoescape=False
        )
        return environment.from_string(self.source)

    def fill(self, values: Mapping[str, Any]) -> str:
        """Return the filled template; raise InputError if it cannot be filled."""
        from jinja2 import TemplateError

        try:
            return str(self._template.render(values))
        except (TemplateError, ArithmeticError, LookupError, TypeError, ValueError) as error:
            found = f"{type(error).__name__}: {error}"
            remedy = f"a template may use {', '.join(values)}"
            problem = Problem(self.where, found, "a jinja2 template", remedy)
            raise InputError(problem) from None


def load_prompt(
    file: Path, key: str, values: Mapping[str, Any], *, shown: Sequence[str], expected: str
) -> Prompt:
    """Read a template; raise InputError if it cannot be filled, or does not show these values.

    `key`: key of decon.toml. `values`: examples of all values that a template may use.
    """
    where = f"{key}: {file}"
    try:
        prompt = Prompt(file.read_text(encoding="utf-8"), where)
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(Problem(where, str(error), expected)) from None
    signs = {name: f"\ue000{name}\ue001" for name in shown}
    filled = prompt.fill({**values, **signs})
    if missing := [name for name, sign in signs.items() if sign not in filled]:
        found = f"a template without {{{{ {missing[0]} }}}}"
        raise InputError(Problem(where, found, expected))
    return prompt


class UnusableAnswerError(Exception):
    """An answer without the fields that were asked for."""


@dataclass(frozen=True)
class Request:
    """One question to the endpoint, and the pairs that its answer is about."""

    digest: str
    prompt: str
    n_tokens: int  # tokens of the prompt, about
    pairs: tuple[tuple[str, str], ...] = ()  # pairs with the fingerprint of the record


class Task(NamedTuple):
    """What an endpoint is asked for."""

    name: str
    schema: Mapping[str, Any]  # schema of an answer
    read: Callable[[Request, str], dict[str, Any]]  # raises UnusableAnswerError


def answer_limit(settings: Endpoint) -> int:
    """Return the most tokens of an answer; 0 if the parameters do not limit it."""
    names = ("max_tokens", "max_completion_tokens")
    limits = (settings.parameters.get(name) for name in names)
    return next((limit for limit in limits if isinstance(limit, int)), 0)


def request_digest(prompt: str, settings: Endpoint) -> str:
    """Return the digest of all that an answer depends on; the address of the endpoint is not."""
    asked = [prompt, settings.model, dict(settings.parameters), settings.response_format]
    return sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()[:32]


def body_of(request: Request, settings: Endpoint, task: Task) -> dict[str, Any]:
    """Return the JSON that is sent."""
    body = {**settings.parameters, "model": settings.model}
    body["messages"] = [{"role": "user", "content": request.prompt}]
    if settings.response_format == "json_object":
        body["response_format"] = {"type": "json_object"}
    elif settings.response_format == "json_schema":
        schema = {"name": task.name, "strict": True, "schema": task.schema}
        body["response_format"] = {"type": "json_schema", "json_schema": schema}
    return body


def last_object(
    content: str, names: Sequence[str], faults_of: Callable[[Mapping[str, Any]], list[str]]
) -> dict[str, Any]:
    """Return the fields of the last object in an answer without a fault.

    Models write before or around it: their thoughts, a fence, a second thought. Raises
    UnusableAnswerError if there is none.
    """
    decoder, at, faults = json.JSONDecoder(), content.find("{"), ["no JSON object"]
    found: dict[str, Any] | None = None
    for _ in range(_MOST_OBJECTS):
        if at < 0:
            break
        try:
            value, stop = decoder.raw_decode(content, at)
        except (ValueError, RecursionError):
            stop = at + 1
        else:
            faults = [f"no {name}" for name in names if value.get(name) is None] or faults_of(value)
            found = found if faults else {name: value[name] for name in names}
        at = content.find("{", stop)
    if found is None:
        raise UnusableAnswerError("; ".join(faults))
    return found
