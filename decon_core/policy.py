"""Every threshold of a scan: frozen, validated, fingerprinted.

The names are the reference implementation's own where it has one, so that its users' settings carry
over. What the fields do is in `docs/detector.md`; the arithmetic is in `reference.py`.
"""

from __future__ import annotations

import difflib
import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from decon_core.errors import ConfigError, Problem

Sampling = Literal["exhaustive", "reference"]
Unreadable = Literal["block", "drop"]

PUNCTUATION = "!’\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~”“‘—"

# Counted up whenever the same text and the same policy give other matches than before. It is part
# of the fingerprint, so old tiles are never mistaken for today's.
VERDICT_VERSION = 2

# Fields that decide what is indexed, and with which weight.
_INDEX_FIELDS = (
    "punctuation_chars",
    "ngram_size",
    "answer_ngram_size",
    "passage_ngram_size",
    "eval_min_token_length",
    "eval_min_unique_word_count",
    "eval_dedup",
    "index_answers",
    "index_passages",
    "short_answer_token_threshold",
)

# Fields that choose among matches already found, or that change no match at all: changing one never
# asks for another scan. The tokenizer's own fingerprint stands in for its name, maybe a path.
_DECISION_FIELDS = frozenset(
    {"contamination_score_threshold", "unreadable", "tokenizer_str", "word_table_mb"}
)


@dataclass(frozen=True, kw_only=True)
class Policy:
    """How text is compared (scan) and from when on a match counts as a leak (decision)."""

    # text and tokens
    tokenizer_str: str = "cl100k"
    punctuation_chars: str = PUNCTUATION

    # what is indexed
    ngram_size: int = 5
    answer_ngram_size: int = 3
    passage_ngram_size: int = 4
    eval_min_token_length: int = 20
    eval_min_unique_word_count: int = 4
    eval_dedup: bool = True
    index_answers: bool = True
    index_passages: bool = True
    hot_ngram_records: int = 2000

    # how clusters are found
    sampling: Sampling = "exhaustive"
    sample_every_m_tokens: int = 10
    question_max_consecutive_misses: int = 11

    # what supports a question
    short_answer_token_threshold: int = 3
    short_answer_window_length: int = 50
    min_long_answer_window: int = 100
    min_passage_distance: int = 100
    passage_max_consecutive_misses: int = 2

    # how lengths weigh
    perfect_match_decay_start: int = 20
    perfect_match_decay_end: int = 50

    # Matches are kept down to this score, so that the threshold can be moved without another scan.
    evidence_floor: float = 0.6

    # How much memory the table of words may take, for each thread. No verdict depends on it.
    word_table_mb: int = 256

    # decisions
    contamination_score_threshold: float = 0.8
    # What a mixture does about rows that could not be read: refuse to be built, or leave them out.
    unreadable: Unreadable = "block"

    def __post_init__(self) -> None:
        problems = [*_type_problems(self)]
        if not problems:
            problems = [*_range_problems(self)]
        if problems:
            raise ConfigError(problems)

    @classmethod
    def from_mapping(cls, values: Mapping[str, object], *, where: str = "policy") -> Policy:
        """A policy from a TOML table; every wrong key is named in one error."""
        known = {field.name for field in fields(cls)}
        unknown = [
            Problem(
                where=where,
                found=f"unknown setting {name!r}",
                expected="one of the policy's settings",
                remedy=_did_you_mean(name, known),
            )
            for name in values
            if name not in known
        ]
        try:
            policy = cls(**{name: value for name, value in values.items() if name in known})  # type: ignore[arg-type] # checked in __post_init__
        except ConfigError as error:
            raise ConfigError([*unknown, *error.problems]) from None
        if unknown:
            raise ConfigError(unknown)
        return policy

    @property
    def least_question_overlap(self) -> float:
        """Below this even a perfect answer and passage could not reach the threshold."""
        return max(0.0, (self.contamination_score_threshold - 0.3) / 0.7)

    def decay(self, lengths: npt.NDArray[Any], target: float) -> npt.NDArray[np.float64]:
        """1.0 for short texts, `target` for long ones, a straight line in between."""
        start, end = self.perfect_match_decay_start, self.perfect_match_decay_end
        line = 1.0 - (1.0 - target) * (lengths - start) / (end - start)
        return np.where(lengths <= start, 1.0, np.where(lengths >= end, target, line))

    def index_fingerprint(self, *, tokenizer: str, snapshot: str = "") -> str:
        """What an index part depends on besides its records: indexing settings and frozen idf.

        Without a snapshot: what the frequencies in a snapshot themselves depend on.
        """
        settings = {name: getattr(self, name) for name in _INDEX_FIELDS}
        return _digest([settings, tokenizer, snapshot, VERDICT_VERSION])

    def scan_fingerprint(self, *, tokenizer: str, snapshot: str) -> str:
        """What a tile depends on besides shard and benchmark: scan settings and frozen idf."""
        settings = {
            name: value for name, value in asdict(self).items() if name not in _DECISION_FIELDS
        }
        return _digest([settings, tokenizer, snapshot, VERDICT_VERSION])


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]


def _did_you_mean(name: str, known: set[str]) -> str:
    close = difflib.get_close_matches(name, sorted(known), n=1)
    return f"Did you mean {close[0]!r}?" if close else "docs/detector.md lists them"


def _type_problems(policy: Policy) -> list[Problem]:
    choices: dict[str, tuple[str, ...]] = {
        "sampling": get_args(Sampling),
        "unreadable": get_args(Unreadable),
    }
    problems = []
    for field in fields(policy):
        value = getattr(policy, field.name)
        if field.name in choices:
            if value not in choices[field.name]:
                expected = " or ".join(map(repr, choices[field.name]))
                problems.append(Problem(f"policy.{field.name}", repr(value), expected))
            continue
        kind = type(field.default)
        accepted = (int, float) if kind is float else (kind,)
        if not isinstance(value, accepted) or (kind is not bool and isinstance(value, bool)):
            problems.append(Problem(f"policy.{field.name}", repr(value), _KINDS[kind]))
    return problems


_KINDS = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}

_MAY_BE_ZERO = {
    "eval_min_token_length",
    "eval_min_unique_word_count",
    "perfect_match_decay_start",
    "passage_max_consecutive_misses",
    "short_answer_window_length",
}


def _range_problems(policy: Policy) -> list[Problem]:
    problems = []
    for field in fields(policy):
        value = getattr(policy, field.name)
        least = 0 if field.name in _MAY_BE_ZERO else 2 if field.name == "ngram_size" else 1
        if type(field.default) is int and value < least:
            problems.append(Problem(f"policy.{field.name}", repr(value), f"{least} or more"))
    threshold, floor = policy.contamination_score_threshold, policy.evidence_floor
    if not 0 < threshold <= 1:
        problems.append(
            Problem("policy.contamination_score_threshold", repr(threshold), "above 0, at most 1")
        )
    if not 0 < floor <= threshold:
        problems.append(
            Problem(
                "policy.evidence_floor",
                repr(floor),
                f"above 0 and at most the threshold ({threshold})",
                "matches below the floor are not kept, so no threshold below it can be applied",
            )
        )
    if policy.short_answer_token_threshold < policy.answer_ngram_size - 1:
        problems.append(
            Problem(
                "policy.short_answer_token_threshold",
                repr(policy.short_answer_token_threshold),
                f"at least answer_ngram_size - 1 ({policy.answer_ngram_size - 1})",
                "an answer between the two would have no n-grams, and could never be found",
            )
        )
    if policy.perfect_match_decay_end <= policy.perfect_match_decay_start:
        problems.append(
            Problem(
                "policy.perfect_match_decay_end",
                repr(policy.perfect_match_decay_end),
                f"more than perfect_match_decay_start ({policy.perfect_match_decay_start})",
            )
        )
    return problems
