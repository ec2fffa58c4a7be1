"""What an endpoint is asked about a pair, how its answer is read, and what is left to ask."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from decon_core.decisions.annotations import (
    MATCH_TYPES,
    Annotation,
    Annotations,
    judgement_problems,
)
from decon_core.decisions.candidates import Candidate
from decon_core.features.endpoints.requests import (
    Prompt,
    Request,
    Task,
    last_object,
    load_prompt,
    request_digest,
)
from decon_core.features.judge.settings import Judge

_BUILT_IN = Path(__file__).with_name("judge_prompt.txt.j2")
_FIELDS = ("reasoning", "match_type", "is_sd", "confidence")
_EXPECTED = "a jinja2 template that shows {{ item }} and {{ text }}"
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


def _values(benchmark: str = "quiz", item: str = "", text: str = "") -> dict[str, Any]:
    """Return what a template may use. The score is not among it: the judge must not know."""
    return {
        "benchmark": benchmark,
        "item": item,
        "text": text,
        "match_types": MATCH_TYPES,
        "schema": json.dumps(ANSWER_SCHEMA),
    }


def prompt_about(candidate: Candidate, prompt: Prompt) -> str:
    """Return the prompt about a candidate; raise InputError if the template cannot be filled."""
    return prompt.fill(_values(candidate.benchmark, candidate.item_text, candidate.text or ""))


def load_judge_prompt(path: Path | None) -> Prompt:
    """Read a template, the built-in one for None; raise InputError if it cannot be used."""
    shown = ("item", "text")
    return load_prompt(
        path or _BUILT_IN, "judge.prompt", _values(), shown=shown, expected=_EXPECTED
    )


@dataclass
class Plan:
    """The candidates of a run: which are judged already, and what is left to ask."""

    requests: list[Request] = field(default_factory=list)
    copied: list[Annotation] = field(default_factory=list)  # answers to equal requests
    n_pairs: int = 0
    n_by_people: int = 0
    n_answered: int = 0  # pairs that the endpoint answered before
    without_text: Counter[str] = field(default_factory=Counter)  # pairs without a text, by reason

    @property
    def n_to_ask(self) -> int:
        return sum(len(request.pairs) for request in self.requests)


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
    known = {(line.pair, line.request) for line in annotations.lines if line.is_sd is not None}
    asked: dict[str, int] = {}  # number of the request of each digest
    for members in pairs:
        candidate = members[0]
        plan.n_pairs += 1
        if candidate.pair in by_people:
            plan.n_by_people += 1
            continue
        if candidate.text is None:
            plan.without_text[candidate.why_no_text or "no text"] += 1
            continue
        text = prompt_about(candidate, prompt)
        digest = request_digest(text, settings)
        key = candidate.pair, candidate.fingerprint
        if digest in annotations.answered:
            plan.n_answered += 1
            if (candidate.pair, digest) not in known:
                answer = annotations.answered[digest]
                plan.copied.append(replace(answer, pair=key[0], fingerprint=key[1]))
        elif digest in asked:
            at = asked[digest]
            plan.requests[at] = replace(plan.requests[at], pairs=(*plan.requests[at].pairs, key))
        else:
            asked[digest] = len(plan.requests)
            plan.requests.append(Request(digest, text, count_tokens(text), (key,)))
    return plan


def _faults(value: Mapping[str, Any]) -> list[str]:
    problems = judgement_problems("answer", value)
    return [f"{problem.where.partition(': ')[2]}: found {problem.found}" for problem in problems]


def _judgement_in(_: Request, content: str) -> dict[str, Any]:
    """Return the last valid judgement in an answer; raise UnusableAnswerError if there is none."""
    judgement = last_object(content, _FIELDS, _faults)
    return {**judgement, "is_sd": bool(judgement["is_sd"])}


JUDGING = Task("judgement", ANSWER_SCHEMA, _judgement_in)


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
