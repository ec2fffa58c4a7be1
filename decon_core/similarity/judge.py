"""What an endpoint is asked about a pair, how its answer is read, and what is left to ask."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from decon_core.config.endpoint import Endpoint
from decon_core.config.judge import Judge
from decon_core.errors import InputError, Problem
from decon_core.similarity.annotations import (
    MATCH_TYPES,
    Annotation,
    Annotations,
    judgement_problems,
)
from decon_core.similarity.candidates import Candidate

_BUILT_IN = Path(__file__).with_name("judge_prompt.txt.j2")
_FIELDS = ("reasoning", "match_type", "is_sd", "confidence")
_ITEM, _TEXT = "\ue000item\ue001", "\ue000text\ue001"  # to see whether a template shows both

_EXPECTED = "a jinja2 template that shows {{ item }} and {{ text }}"
_MOST_OBJECTS = 10_000  # looked at in one answer

# What an answer has to be; `reasoning` comes first, so that a model reasons before it decides.
ANSWER_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "reasoning": {"type": "string"},
        "match_type": {"type": "string", "enum": [*MATCH_TYPES]},
        "is_sd": {"type": "boolean"},
        "confidence": {"type": "number", "minimum": 0, "maximum": 1},
    },
    "required": [*_FIELDS],
    "additionalProperties": False,
}


@dataclass(frozen=True)
class Prompt:
    """The template of a prompt."""

    source: str
    where: str
    key: str = "judge.prompt"  # of decon.toml

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

    def render(self, candidate: Candidate) -> str:
        """Return the prompt about a candidate. Its score is not shown: the judge must not know.

        Raises InputError if the template cannot be filled.
        """
        values = {
            "benchmark": candidate.benchmark,
            "item": candidate.item_text,
            "text": candidate.text or "",
            "match_types": MATCH_TYPES,
            "schema": json.dumps(ANSWER_SCHEMA),
        }
        return self.fill(values)

    def fill(self, values: Mapping[str, Any]) -> str:
        """Return the filled template; raise InputError if it cannot be filled."""
        from jinja2 import TemplateError

        try:
            return str(self._template.render(values))
        except (TemplateError, ArithmeticError, LookupError, TypeError, ValueError) as error:
            found = f"{type(error).__name__}: {error}"
            remedy = f"a template may use {', '.join(values)}"
            where, expected = f"{self.key}: {self.where}", "a jinja2 template"
            raise InputError(Problem(where, found, expected, remedy)) from None


def load_prompt(path: Path | None) -> Prompt:
    """Read a template, the built-in one for None; raise InputError if it cannot be used."""
    file = path or _BUILT_IN
    try:
        prompt = Prompt(file.read_text(encoding="utf-8"), str(file))
        values = {"pair": "", "fingerprint": "", "benchmark": "quiz", "item": "", "detector": ""}
        shown = prompt.render(Candidate(**values, score=0.0, item_text=_ITEM, text=_TEXT))
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(Problem(f"judge.prompt: {file}", str(error), _EXPECTED)) from None
    missing = [name for name, sign in (("item", _ITEM), ("text", _TEXT)) if sign not in shown]
    if missing:
        found = f"a template without {{{{ {missing[0]} }}}}"
        raise InputError(Problem(f"judge.prompt: {file}", found, _EXPECTED))
    return prompt


class UnusableAnswerError(Exception):
    """An answer without the fields that were asked for."""


@dataclass(frozen=True)
class Request:
    """One question to the endpoint, and the pairs that its answer is about."""

    digest: str
    prompt: str
    n_tokens: int  # of the prompt, about
    pairs: tuple[tuple[str, str], ...] = ()  # with the fingerprint of the record


class Task(NamedTuple):
    """What an endpoint is asked for."""

    name: str
    schema: Mapping[str, Any]  # of an answer
    read: Callable[[Request, str], dict[str, Any]]  # raises UnusableAnswerError


@dataclass
class Plan:
    """The candidates of a run: which are judged already, and what is left to ask."""

    requests: list[Request] = field(default_factory=list)
    copied: list[Annotation] = field(default_factory=list)  # answers to equal requests
    n_pairs: int = 0
    n_by_people: int = 0
    n_answered: int = 0  # by the endpoint, before
    without_text: Counter[str] = field(default_factory=Counter)  # by reason

    @property
    def n_tokens(self) -> int:
        return sum(one.n_tokens for one in self.requests)

    @property
    def n_to_ask(self) -> int:
        return sum(len(one.pairs) for one in self.requests)

    def within(self, settings: Endpoint) -> Plan:
        """Return the plan of the requests that fit into the limits of one command."""
        return replace(self, requests=within_limits(self.requests, settings))


def within_limits(requests: Sequence[Request], settings: Endpoint) -> list[Request]:
    """Return the first requests, as many as fit into the limits of one command."""
    fitting, n_tokens = [], 0
    for one in requests[: settings.max_requests]:
        n_tokens += one.n_tokens + answer_limit(settings)
        if settings.max_tokens is not None and n_tokens > settings.max_tokens:
            break
        fitting.append(one)
    return fitting


def answer_limit(settings: Endpoint) -> int:
    """Return the most tokens of an answer; 0 if the parameters do not limit it."""
    names = ("max_tokens", "max_completion_tokens")
    limits = (settings.parameters.get(name) for name in names)
    return next((one for one in limits if isinstance(one, int)), 0)


def request_digest(prompt: str, settings: Endpoint) -> str:
    """Return the digest of all that an answer depends on; the address of the endpoint is not."""
    asked = [prompt, settings.model, dict(settings.parameters), settings.response_format]
    return sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()[:32]


def plan_requests(
    pairs: Iterable[Sequence[Candidate]],
    prompt: Prompt,
    settings: Judge,
    annotations: Annotations,
    *,
    decided: Iterable[str] = (),
    count_tokens: Callable[[str], int],
) -> Plan:
    """Sort pairs, each with its candidates, into those to ask about and those judged already.

    `decided`: pairs with a verdict of a person, which are not asked about.
    """
    plan, by_people = Plan(), set(decided)
    known = {(one.pair, one.request) for one in annotations.lines if one.is_sd is not None}
    asked: dict[str, int] = {}  # by digest: the number of its request
    for members in pairs:
        candidate = members[0]
        plan.n_pairs += 1
        if candidate.pair in by_people:
            plan.n_by_people += 1
            continue
        if candidate.text is None:
            plan.without_text[candidate.why_no_text or "no text"] += 1
            continue
        text = prompt.render(candidate)
        digest = request_digest(text, settings)
        key = candidate.pair, candidate.fingerprint
        if digest in annotations.answered:
            plan.n_answered += 1
            if (candidate.pair, digest) not in known:
                one = annotations.answered[digest]
                plan.copied.append(replace(one, pair=key[0], fingerprint=key[1]))
        elif digest in asked:
            at = asked[digest]
            plan.requests[at] = replace(plan.requests[at], pairs=(*plan.requests[at].pairs, key))
        else:
            asked[digest] = len(plan.requests)
            plan.requests.append(Request(digest, text, count_tokens(text), (key,)))
    return plan


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


def judgement_in(content: str) -> dict[str, Any]:
    """Return the last valid judgement in an answer; raise UnusableAnswerError without one."""
    found = last_object(content, _FIELDS, _faults)
    return {**found, "is_sd": bool(found["is_sd"])}


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


def _faults(value: Mapping[str, Any]) -> list[str]:
    problems = judgement_problems("answer", value)
    return [f"{one.where.partition(': ')[2]}: found {one.found}" for one in problems]


JUDGING = Task("judgement", ANSWER_SCHEMA, lambda _, text: judgement_in(text))


def annotations_of(
    request: Request, settings: Judge, prompt: Prompt, *, at: str, said: Mapping[str, Any]
) -> list[Annotation]:
    """Return an annotation of each pair of a request. `said`: the judgement, or `unjudged`."""
    return [
        Annotation(
            pair=pair,
            fingerprint=fingerprint,
            kind="model",
            by=str(settings.model),
            at=at,
            request=request.digest,
            prompt=prompt.digest,
            **said,
        )
        for pair, fingerprint in request.pairs
    ]
