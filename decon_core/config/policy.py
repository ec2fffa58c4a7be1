"""Every threshold of a scan: frozen, validated, fingerprinted.

The names are the reference implementation's own where it has one, so that its users' settings carry
over. What the fields do is in `docs/detector.md`; the arithmetic is in `reference.py`.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields, replace
from dataclasses import field as settings_field
from typing import Any, Literal, cast, get_args, overload

import numpy as np
import numpy.typing as npt

from decon_core.errors import ConfigError, Problem
from decon_core.text.characters import Form

Sampling = Literal["exhaustive", "reference"]
Normalize = Literal["none", "whitespace", "decon"]
Unreadable = Literal["block", "drop"]
InvalidUtf8 = Literal["replace", "drop", "block"]

PUNCTUATION = "!’\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~”“‘—"

# Counted up whenever the same text and the same policy give other matches than before. It is part
# of the fingerprint, so old tiles are never mistaken for today's.
VERDICT_VERSION = 3

# Counted up when a tile says more, or says it in another way: it is scanned again, not indexed.
TILE_VERSION = 6

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

# What canonical text is made with, beside punctuation. They name index parts and tiles only where
# they are on: off, the text is that of the published rule, and so are the names.
_TEXT_FIELDS = ("normalize_unicode", "strip_markup")

# Settings that a name stands for. `reference` is the published rule, without what was added to it.
PRESETS: dict[str, dict[str, object]] = {
    "reference": {
        "normalize_unicode": False,
        "strip_markup": False,
        "keep_question_only": False,
    },
}

# Said wherever question-only is counted, so that no count of a scan without them looks complete.
QUESTIONS_LEFT_OUT = "most questions of 20 to 43 tokens are left out, as keep_question_only is off"

# Counted up when `ratcliff` and `longest_match` compare texts in another way: then tiles of these
# rules are scanned again, and no others.
_COMPARED_VERSION = 2

RULES = ("decon", "ratcliff", "longest_match", "exact", "ngram_any")

# The default is decon's own settings: whoever leaves the others alone keeps the tiles that are
# there. The others' settings name a tile when one of their rules is chosen.
_SETTINGS_OF = {
    "ratcliff": ("normalize", "shared_ngram_size", "ratcliff_min_block", "ratcliff_floor"),
    "longest_match": ("normalize", "shared_ngram_size", "longest_match_floor"),
    "exact": ("normalize",),
    "ngram_any": ("ngram_any_floor",),
}
_OTHER_RULES = frozenset(name for names in _SETTINGS_OF.values() for name in names)

# Fields that choose among matches already found, or that change no match at all: changing one never
# asks for another scan. The tokenizer's own fingerprint stands in for its name, maybe a path.
DECISION_FIELDS = frozenset(
    {
        "contamination_score_threshold",
        "ratcliff_threshold",
        "longest_match_threshold",
        "exact_threshold",
        "ngram_any_size",
        "benchmark",
        "common_share",
        "common_least_documents",
        "leave_out_common",
        "unreadable",
        "invalid_utf8",
        "tokenizer_str",
        "word_table_mb",
    }
)

# Two shares closer than this are equal. 0.7 + 0.1 is 0.7999999999999999 in binary floating point,
# and on paper it reaches a threshold of 0.8. Sums of at most some thousand shares err by less than
# 1e-12, and different shares of texts below a million tokens lie further apart than 1e-9.
TOLERANCE = 1e-9


@overload
def reaches(value: float, threshold: float) -> bool: ...
@overload
def reaches(
    value: npt.NDArray[Any], threshold: float | npt.NDArray[Any]
) -> npt.NDArray[np.bool_]: ...
def reaches(value: Any, threshold: Any) -> Any:
    """Whether a share is at least a threshold, equal within `TOLERANCE` included."""
    return value >= threshold - TOLERANCE


@overload
def exceeds(value: float, threshold: float) -> bool: ...
@overload
def exceeds(
    value: npt.NDArray[Any], threshold: float | npt.NDArray[Any]
) -> npt.NDArray[np.bool_]: ...
def exceeds(value: Any, threshold: Any) -> Any:
    """Whether a share is more than a threshold, not merely equal within `TOLERANCE`."""
    return value > threshold + TOLERANCE


# A leak is told as one "with its answer" where at least this share of the answer was found; below
# it, something of the answer was. No leak depends on it. An idf-weighted overlap of a half needs
# most of a short answer; 0.006 of a long one is a single common n-gram.
LEAST_ANSWER_OVERLAP = 0.5


@dataclass(frozen=True, kw_only=True)
class Policy:
    """How text is compared (scan) and from when on a match counts as a leak (decision)."""

    # the rules, any number at once; docs/detectors.md says what to choose when
    detectors: tuple[str, ...] = ("decon",)

    # text and tokens
    tokenizer_str: str = "cl100k"
    punctuation_chars: str = PUNCTUATION
    normalize_unicode: bool = True
    strip_markup: bool = True

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
    # Matches are also kept where the question alone, or question and passage, reach the floor.
    keep_question_only: bool = True

    # ratcliff, longest_match and exact: what is made of a text before they compare it
    normalize: Normalize = "none"
    # ratcliff and longest_match look only where so many tokens in a row are shared
    shared_ngram_size: int = 8
    ratcliff_min_block: int = 5
    ratcliff_floor: float = 0.3
    longest_match_floor: float = 0.4
    ngram_any_floor: int = 8

    # How much memory the table of words may take, for each thread. No verdict depends on it.
    word_table_mb: int = 256

    # decisions
    contamination_score_threshold: float = 0.8
    ratcliff_threshold: float = 0.5  # reached
    longest_match_threshold: float = 0.7  # passed
    exact_threshold: float = 0.5  # how telling a text must be: by the idf of its n-grams
    ngram_any_size: int = 13
    # n-grams that more than this share of a source's documents hold are common: boilerplate. decon
    # can leave them out of what was found of a question, and of what there was to find.
    common_share: float = 0.001
    common_least_documents: int = 20  # of a small corpus a share says little
    leave_out_common: bool = False
    # What a mixture does about rows that could not be read: refuse to be built, or leave them out.
    unreadable: Unreadable = "block"
    # What a mixture does about rows with bytes that are not UTF-8: write them with U+FFFD in place
    # of these bytes, leave them out, or refuse to be built. They are scanned and reported anyway.
    invalid_utf8: InvalidUtf8 = "replace"
    # Thresholds of single benchmarks, by name, instead of those above.
    benchmark: Mapping[str, Mapping[str, float]] = settings_field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        problems = [*_type_problems(self)]
        if not problems:
            problems = [*_range_problems(self)]
        if problems:
            raise ConfigError(problems)

    @classmethod
    def from_mapping(cls, values: Mapping[str, object], *, where: str = "policy") -> Policy:
        """A policy from a TOML table; every wrong key is named in one error.

        `preset` names settings that hold where the table does not say otherwise.
        """
        values = with_preset(values, where=where)
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
        given = {name: value for name, value in values.items() if name in known}
        if isinstance(given.get("detectors"), list):
            given["detectors"] = tuple(cast("list[str]", given["detectors"]))
        try:
            policy = cls(**given)  # type: ignore[arg-type] # checked in __post_init__
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
        settings = {name: getattr(self, name) for name in _INDEX_FIELDS} | self._text_settings
        return _digest([settings, tokenizer, snapshot, VERDICT_VERSION])

    def scan_fingerprint(self, *, tokenizer: str, snapshot: str) -> str:
        """What a tile depends on besides shard and benchmark: scan settings and frozen idf."""
        left_out = DECISION_FIELDS | _OTHER_RULES | {"detectors", *_TEXT_FIELDS}
        if not self.keep_question_only:
            left_out |= {"keep_question_only"}  # as before there was this setting
        settings = {name: value for name, value in asdict(self).items() if name not in left_out}
        settings |= self._text_settings
        if self.detectors != ("decon",):
            chosen = {name for rule in self.detectors for name in _SETTINGS_OF.get(rule, ())}
            settings["detectors"] = sorted(self.detectors)
            settings |= {name: getattr(self, name) for name in sorted(chosen)}
            if self.compares_tokens:
                settings["compared"] = _COMPARED_VERSION
        return _digest([settings, tokenizer, snapshot, VERDICT_VERSION, TILE_VERSION])

    @property
    def form(self) -> Form:
        """How text becomes canonical text."""
        return Form(
            punctuation=self.punctuation_chars,
            normalize_unicode=self.normalize_unicode,
            strip_markup=self.strip_markup,
        )

    @property
    def _text_settings(self) -> dict[str, bool]:
        return {name: True for name in _TEXT_FIELDS if getattr(self, name)}

    @property
    def at_floor(self) -> Policy:
        """Matches are kept down to the evidence floor; the threshold is applied to them later."""
        return replace(self, contamination_score_threshold=self.evidence_floor, benchmark={})

    def for_benchmark(self, name: str) -> Policy:
        """The policy by which matches of a benchmark are decided."""
        given: dict[str, Any] = {**self.benchmark.get(name, {})}
        return replace(self, benchmark={}, **given) if self.benchmark else self

    def decision_settings(self, benchmarks: Iterable[str]) -> list[object]:
        """The thresholds that apply to these benchmarks: a fingerprint of decisions names them."""
        own = {
            name: sorted(self.for_benchmark(name).thresholds.items())
            for name in benchmarks
            if name in self.benchmark
        }
        return [*sorted(self.thresholds.items()), *sorted(own.items())]

    @property
    def needs_texts(self) -> bool:
        """Whether a rule is chosen that compares texts as they stand."""
        return {*self.detectors} != {"decon"}

    @property
    def compares_tokens(self) -> bool:
        """Whether a rule is chosen that compares the tokens of texts as they stand."""
        return not {"ratcliff", "longest_match"}.isdisjoint(self.detectors)

    def threshold_of(self, rule: str) -> float:
        """The score from which on a rule's match counts as a leak."""
        return {
            "decon": self.contamination_score_threshold,
            "ratcliff": self.ratcliff_threshold,
            "longest_match": self.longest_match_threshold,
            "exact": self.exact_threshold,
            "ngram_any": 1.0,
        }[rule]

    @property
    def thresholds(self) -> dict[str, float]:
        """Of the chosen rules, as they are set: that of `ngram_any` is a length."""
        return {
            rule: self.ngram_any_size if rule == "ngram_any" else self.threshold_of(rule)
            for rule in self.detectors
        }


def unknown_benchmarks(policy: Policy, known: Collection[str]) -> Iterator[Problem]:
    """Tables [policy.benchmark.NAME] of benchmarks that are not scanned for."""
    for name in policy.benchmark:
        if name not in known:
            close = difflib.get_close_matches(name, sorted(known), n=1)
            remedy = f"Did you mean {close[0]!r}?" if close else ""
            where = f"policy.benchmark.{name}"
            yield Problem(where, "no benchmark of this name", f"one of {', '.join(known)}", remedy)


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]


def as_stored(settings: Mapping[str, object]) -> Mapping[str, object]:
    """Settings as a product keeps them: it had the published rule where it lacks one."""
    return {**PRESETS["reference"], **settings}


def _did_you_mean(name: str, known: set[str]) -> str:
    close = difflib.get_close_matches(name, sorted(known), n=1)
    return f"Did you mean {close[0]!r}?" if close else "docs/detector.md lists them"


def with_preset(values: Mapping[str, object], *, where: str) -> Mapping[str, object]:
    """Settings, and those of the `preset` that they name where they have none of their own."""
    if "preset" not in values:
        return values
    name = values["preset"]
    if not isinstance(name, str) or name not in PRESETS:
        expected = " or ".join(map(repr, PRESETS))
        raise ConfigError(Problem(f"{where}: preset", repr(name), expected))
    return PRESETS[name] | {key: value for key, value in values.items() if key != "preset"}


def _type_problems(policy: Policy) -> list[Problem]:
    choices: dict[str, tuple[str, ...]] = {
        "sampling": get_args(Sampling),
        "normalize": get_args(Normalize),
        "unreadable": get_args(Unreadable),
        "invalid_utf8": get_args(InvalidUtf8),
    }
    problems = []
    for field in fields(policy):
        value = getattr(policy, field.name)
        if field.name in choices:
            if value not in choices[field.name]:
                expected = " or ".join(map(repr, choices[field.name]))
                problems.append(Problem(f"policy.{field.name}", repr(value), expected))
            continue
        if field.name == "detectors":
            problems += _detector_problems(value)
            continue
        if field.name == "benchmark":
            problems += _table_problems(value)
            continue
        kind = type(field.default)
        accepted = (int, float) if kind is float else (kind,)
        if not isinstance(value, accepted) or (kind is not bool and isinstance(value, bool)):
            problems.append(Problem(f"policy.{field.name}", repr(value), _KINDS[kind]))
    return problems


def _detector_problems(value: object) -> list[Problem]:
    names = value if isinstance(value, tuple) else ()
    if names and all(names.count(name) == 1 and name in RULES for name in names):
        return []
    found = repr([*names] if isinstance(value, tuple) else value)
    expected = f"some of {', '.join(RULES)}, each once"
    return [Problem("policy.detectors", found, expected)]


_KINDS = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}

_AT_LEAST_TWO = {"ngram_size", "shared_ngram_size", "ngram_any_floor"}
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
        least = 0 if field.name in _MAY_BE_ZERO else 2 if field.name in _AT_LEAST_TWO else 1
        if type(field.default) is int and value < least:
            problems.append(Problem(f"policy.{field.name}", repr(value), f"{least} or more"))
    problems += _floor_problems(policy)
    problems += _problems_by_benchmark(policy)
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


# Matches are kept from the first on, and count as leaks from the second on.
_FLOORS = (
    ("evidence_floor", "contamination_score_threshold", 1.0),
    ("ratcliff_floor", "ratcliff_threshold", 1.0),
    ("longest_match_floor", "longest_match_threshold", 1.0),
    ("ngram_any_floor", "ngram_any_size", math.inf),
    ("exact_threshold", "exact_threshold", 1.0),
    ("common_share", "common_share", 1.0),
)


# What [policy.benchmark.NAME] may say: from when on a match is a leak.
BENCHMARK_SETTINGS = (
    "contamination_score_threshold",
    "ratcliff_threshold",
    "longest_match_threshold",
    "exact_threshold",
    "ngram_any_size",
)


def _table_problems(tables: object) -> Iterator[Problem]:
    """Tables of benchmarks that are no tables, unknown keys in them, and values of another type."""
    where = "policy.benchmark"
    if not isinstance(tables, dict):
        yield Problem(where, repr(tables), "a table for each benchmark: [policy.benchmark.NAME]")
        return
    for name, table in tables.items():
        if not isinstance(table, dict):
            yield Problem(f"{where}.{name}", repr(table), "a table of thresholds")
            continue
        for key, value in table.items():
            if key not in BENCHMARK_SETTINGS:
                yield Problem(
                    f"{where}.{name}",
                    f"unknown setting {key!r}",
                    f"one of {', '.join(BENCHMARK_SETTINGS)}",
                    _did_you_mean(key, {*BENCHMARK_SETTINGS}),
                )
                continue
            accepted = int if key == "ngram_any_size" else (int, float)
            if not isinstance(value, accepted) or isinstance(value, bool):
                expected = _KINDS[int if key == "ngram_any_size" else float]
                yield Problem(f"{where}.{name}.{key}", repr(value), expected)


def _problems_by_benchmark(policy: Policy) -> Iterator[Problem]:
    """Thresholds of benchmarks below the floor: what they ask for was not kept."""
    for name, table in policy.benchmark.items():
        for lower, upper, most in _FLOORS:
            if upper not in table:
                continue
            where, value = f"policy.benchmark.{name}.{upper}", table[upper]
            floor = getattr(policy, lower)
            if most == 1.0 and not 0 < value <= most:
                yield Problem(where, repr(value), "above 0, at most 1")
            elif lower != upper and value < floor:
                yield Problem(
                    where,
                    repr(value),
                    f"{lower} ({floor}) or more",
                    "matches below the floor are not kept, so no threshold below it can be applied",
                )
            elif upper == "longest_match_threshold" and value == 1:
                yield Problem(where, repr(value), "below 1", _NOTHING_ABOVE_ALL)


_NOTHING_ABOVE_ALL = "the rule asks for more than the threshold, and there is no more than all"


def _floor_problems(policy: Policy) -> list[Problem]:
    problems = []
    for lower, upper, most in _FLOORS:
        floor, threshold = getattr(policy, lower), getattr(policy, upper)
        if most == 1.0 and not 0 < threshold <= most:
            problems.append(Problem(f"policy.{upper}", repr(threshold), "above 0, at most 1"))
        if not 0 < floor <= threshold and lower != upper:
            problems.append(
                Problem(
                    f"policy.{lower}",
                    repr(floor),
                    f"above 0 and at most the threshold ({threshold})",
                    "matches below the floor are not kept, so no threshold below it can be applied",
                )
            )
    if policy.longest_match_threshold == 1:
        problems.append(
            Problem(
                "policy.longest_match_threshold",
                repr(policy.longest_match_threshold),
                "below 1",
                _NOTHING_ABOVE_ALL,
            )
        )
    if policy.ratcliff_min_block > policy.shared_ngram_size:
        problems.append(
            Problem(
                "policy.ratcliff_min_block",
                repr(policy.ratcliff_min_block),
                f"at most shared_ngram_size ({policy.shared_ngram_size})",
            )
        )
    return problems
