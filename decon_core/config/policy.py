"""The policy: all settings of scans and decisions, validated and fingerprinted.

The names are those of AI2's decon where it has the setting. The fields are described in
`docs/detector.md`; the arithmetic is in `tests/oracle/decon.py`.
"""

from __future__ import annotations

import difflib
import hashlib
import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields, make_dataclass, replace
from dataclasses import field as settings_field
from functools import cache
from typing import Any, Literal, cast, get_args, overload

import numpy as np
import numpy.typing as npt

from decon_core.config import detectors as registry
from decon_core.config.detectors import Declaration, Reads
from decon_core.errors import ConfigError, Problem
from decon_core.text.characters import Form

Sampling = Literal["exhaustive", "reference"]
Normalize = Literal["none", "whitespace", "decon"]
Unreadable = Literal["block", "drop"]
InvalidUtf8 = Literal["replace", "drop", "block"]

PUNCTUATION = "!’\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~”“‘—"

# Increased when the same text and policy give other matches than before. Part of the fingerprints,
# so that old tiles are not used.
VERDICT_VERSION = 3

# Increased when the content of tiles changes: shards are scanned again, benchmarks not indexed.
TILE_VERSION = 6

# Fields that determine what is indexed, and with which weight.
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

# Fields that determine canonical text, besides punctuation. They enter fingerprints only if on;
# if off, the text and the fingerprints are those of the published decon.
_TEXT_FIELDS = ("normalize_unicode", "strip_markup")

# Named settings. `reference` is the published decon, without later additions.
PRESETS: dict[str, dict[str, object]] = {
    "reference": {
        "normalize_unicode": False,
        "strip_markup": False,
        "keep_question_only": False,
    },
}

# Shown with every count of question-only items, which is incomplete without them.
QUESTIONS_LEFT_OUT = "most questions of 20 to 43 tokens are left out, as keep_question_only is off"

# Fields that select among existing matches or change none: no new scan is needed. For the tokenizer
# its own fingerprint is used instead of its name, which may be a path.
_DECISION_FIELDS = frozenset(
    {
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

# Shares closer than this are equal: 0.7 + 0.1 is 0.7999999999999999 in binary floating point but
# must reach a threshold of 0.8. Sums of a few thousand shares err by less than 1e-12, and different
# shares of texts below a million tokens differ by more than 1e-9.
TOLERANCE = 1e-9


@overload
def reaches(value: float, threshold: float) -> bool: ...
@overload
def reaches(
    value: npt.NDArray[Any], threshold: float | npt.NDArray[Any]
) -> npt.NDArray[np.bool_]: ...
def reaches(value: Any, threshold: Any) -> Any:
    """Return whether a share is at least a threshold, or equal to it within `TOLERANCE`."""
    return value >= threshold - TOLERANCE


@overload
def exceeds(value: float, threshold: float) -> bool: ...
@overload
def exceeds(
    value: npt.NDArray[Any], threshold: float | npt.NDArray[Any]
) -> npt.NDArray[np.bool_]: ...
def exceeds(value: Any, threshold: Any) -> Any:
    """Return whether a share is more than a threshold by more than `TOLERANCE`."""
    return value > threshold + TOLERANCE


# A leak is reported as "with its answer" if at least this share of the answer was found. No verdict
# depends on it. An idf-weighted overlap of 0.5 needs most of a short answer; 0.006 of a long one is
# a single common n-gram.
LEAST_ANSWER_OVERLAP = 0.5


@dataclass(frozen=True, kw_only=True)
class Policy:
    """How texts are compared (scan), and which matches count as leaks (decision)."""

    # one or more detectors; docs/detectors.md compares them
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

    # length penalty
    perfect_match_decay_start: int = 20
    perfect_match_decay_end: int = 50

    # Matches are kept down to this score, so that the threshold can change without a new scan.
    evidence_floor: float = 0.6
    # Also keep matches where the question alone, or question and passage, reach the floor.
    keep_question_only: bool = True

    # ratcliff, longest_match and exact: normalization before texts are compared
    normalize: Normalize = "none"
    # ratcliff and longest_match compare only texts that share this many consecutive tokens
    shared_ngram_size: int = 8
    ratcliff_min_block: int = 5
    ratcliff_floor: float = 0.3
    longest_match_floor: float = 0.4
    ngram_any_floor: int = 8

    # Memory limit of the word table, per thread. No verdict depends on it.
    word_table_mb: int = 256

    # decisions
    contamination_score_threshold: float = 0.8
    ratcliff_threshold: float = 0.5  # a leak has at least this score
    longest_match_threshold: float = 0.7  # a leak has more than this score
    exact_threshold: float = 0.5  # minimum informativeness of a text, by the idf of its n-grams
    ngram_any_size: int = 13
    # n-grams in more than this share of a source's documents are common: boilerplate. decon can
    # exclude them from the overlap and from the question's weight.
    common_share: float = 0.001
    common_least_documents: int = 20  # in a small corpus a share means little
    leave_out_common: bool = False
    # How a mixture treats unreadable rows: fail, or drop them.
    unreadable: Unreadable = "block"
    # How a mixture treats rows with invalid UTF-8: write them with U+FFFD in place of the bytes,
    # drop them, or fail. They are scanned and reported in any case.
    invalid_utf8: InvalidUtf8 = "replace"
    # Thresholds by benchmark, instead of those above.
    benchmark: Mapping[str, Mapping[str, float]] = settings_field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        problems = [*_type_problems(self)]
        if not problems:
            problems = [*_range_problems(self)]
        if problems:
            raise ConfigError(problems)

    @classmethod
    def from_mapping(cls, values: Mapping[str, object], *, where: str = "policy") -> Policy:
        """Build a policy from a TOML table. Raises one `ConfigError` with all problems.

        `preset` selects default settings, which the other keys override.
        """
        values = with_preset(values, where=where)
        kind = _with_own_settings(registry.own_settings()) or cls
        known = {field.name for field in fields(kind)}
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
            policy = kind(**given)  # type: ignore[arg-type] # checked in __post_init__
        except ConfigError as error:
            raise ConfigError([*unknown, *error.problems]) from None
        if unknown:
            raise ConfigError(unknown)
        return policy

    def __reduce__(self) -> tuple[Any, ...]:
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return _unpickled, (values,)

    @property
    def least_question_overlap(self) -> float:
        """The overlap below which even a perfect answer and passage cannot reach the threshold."""
        return max(0.0, (self.contamination_score_threshold - 0.3) / 0.7)

    def decay(self, lengths: npt.NDArray[Any], target: float) -> npt.NDArray[np.float64]:
        """Return 1.0 for short texts, `target` for long ones, linear in between."""
        start, end = self.perfect_match_decay_start, self.perfect_match_decay_end
        line = 1.0 - (1.0 - target) * (lengths - start) / (end - start)
        return np.where(lengths <= start, 1.0, np.where(lengths >= end, target, line))

    def index_fingerprint(self, *, tokenizer: str, snapshot: str = "") -> str:
        """Return the fingerprint of what an index part depends on besides its records.

        These are the indexing settings and the idf snapshot. Without a snapshot: what a snapshot
        itself depends on.
        """
        settings = {name: getattr(self, name) for name in _INDEX_FIELDS} | self._text_settings
        return _digest([settings, tokenizer, snapshot, VERDICT_VERSION])

    def scan_fingerprint(self, *, tokenizer: str, snapshot: str) -> str:
        """Return the fingerprint of what a tile depends on besides shard and benchmark.

        These are the scan settings and the idf snapshot.
        """
        left_out = decision_fields() | {"detectors", *_TEXT_FIELDS}
        left_out |= {name for one in registry.declarations() for name in one.scan_settings}
        if not self.keep_question_only:
            left_out |= {"keep_question_only"}  # the fingerprint from before this setting existed
        settings = {name: value for name, value in asdict(self).items() if name not in left_out}
        settings |= self._text_settings
        if self.detectors != ("decon",):  # the fingerprint from before there were others
            settings["detectors"] = sorted(self.detectors)
            for one in self._chosen:
                settings |= {name: one.setting(self, name) for name in one.scan_settings}
                settings |= one.versions
        return _digest([settings, tokenizer, snapshot, VERDICT_VERSION, TILE_VERSION])

    @property
    def form(self) -> Form:
        """The settings of canonical text."""
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
        """The policy for scans: matches are kept down to the evidence floor."""
        return replace(self, contamination_score_threshold=self.evidence_floor, benchmark={})

    def for_benchmark(self, name: str) -> Policy:
        """Return the policy with the thresholds of a benchmark."""
        given: dict[str, Any] = {**self.benchmark.get(name, {})}
        return replace(self, benchmark={}, **given) if self.benchmark else self

    def decision_settings(self, benchmarks: Iterable[str]) -> list[object]:
        """Return the thresholds for these benchmarks, as part of a fingerprint of decisions."""
        by_benchmark = {
            name: sorted(self.for_benchmark(name).thresholds.items())
            for name in benchmarks
            if name in self.benchmark
        }
        return [*sorted(self.thresholds.items()), *sorted(by_benchmark.items())]

    @property
    def _chosen(self) -> list[Declaration]:
        return [registry.get(name) for name in self.detectors]

    @property
    def needs_texts(self) -> bool:
        """Whether a chosen detector compares the original texts."""
        return any(one.reads is not Reads.INDEX for one in self._chosen)

    @property
    def compares_tokens(self) -> bool:
        """Whether a chosen detector compares the tokens of the original texts."""
        return any(one.reads is Reads.TOKENS for one in self._chosen)

    def threshold_of(self, detector: str) -> float:
        """Return the score at which a match of a detector counts as a leak."""
        return registry.get(detector).score_threshold(self)

    @property
    def thresholds(self) -> dict[str, float]:
        """The thresholds of the chosen detectors as configured, some of them a length."""
        return {one.name: one.configured_threshold(self) for one in self._chosen}


@cache
def _with_own_settings(settings: tuple[tuple[str, registry.Setting], ...]) -> type[Policy] | None:
    """Return a policy that also has the settings that only detectors know; None without any."""
    own = [(name, type(default), default) for name, default in settings]
    return (
        make_dataclass("Policy", own, bases=(Policy,), frozen=True, kw_only=True) if own else None
    )


def _unpickled(values: dict[str, Any]) -> Policy:
    return (_with_own_settings(registry.own_settings()) or Policy)(**values)


def decision_fields() -> frozenset[str]:
    """Return the settings that need no new scan, among them the thresholds of all detectors."""
    return _DECISION_FIELDS.union(registry.threshold_settings())


def unknown_benchmarks(policy: Policy, known: Collection[str]) -> Iterator[Problem]:
    """Yield a problem for each [policy.benchmark.NAME] of an unknown benchmark."""
    for name in policy.benchmark:
        if name not in known:
            close = difflib.get_close_matches(name, sorted(known), n=1)
            remedy = f"Did you mean {close[0]!r}?" if close else ""
            where = f"policy.benchmark.{name}"
            yield Problem(where, "no benchmark of this name", f"one of {', '.join(known)}", remedy)


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]


def as_stored(settings: Mapping[str, object]) -> Mapping[str, object]:
    """Return the settings stored with a product, with defaults for those it lacks.

    Older products lack settings that were added later and behaved like the preset `reference`.
    """
    return {**PRESETS["reference"], **settings}


def _did_you_mean(name: str, known: set[str]) -> str:
    close = difflib.get_close_matches(name, sorted(known), n=1)
    return f"Did you mean {close[0]!r}?" if close else "docs/detector.md lists them"


def with_preset(values: Mapping[str, object], *, where: str) -> Mapping[str, object]:
    """Return the settings with the defaults of their `preset`, if they name one."""
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
    known = registry.names()
    if names and all(names.count(name) == 1 and name in known for name in names):
        return []
    found = repr([*names] if isinstance(value, tuple) else value)
    expected = f"some of {', '.join(known)}, each once"
    return [Problem("policy.detectors", found, expected)]


_KINDS = {bool: "true or false", int: "a whole number", float: "a number", str: "a string"}

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
    if not 0 < policy.common_share <= 1:
        problems.append(
            Problem("policy.common_share", repr(policy.common_share), "above 0, at most 1")
        )
    problems += registry.setting_problems(policy)
    if policy.short_answer_token_threshold < policy.answer_ngram_size - 1:
        problems.append(
            Problem(
                "policy.short_answer_token_threshold",
                repr(policy.short_answer_token_threshold),
                f"at least answer_ngram_size - 1 ({policy.answer_ngram_size - 1})",
                "answers of lengths in between would have no n-grams and could never be found",
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


def _table_problems(tables: object) -> Iterator[Problem]:
    """Yield wrong types and unknown keys in [policy.benchmark]."""
    where, settings = "policy.benchmark", registry.threshold_settings()
    if not isinstance(tables, dict):
        yield Problem(where, repr(tables), "a table for each benchmark: [policy.benchmark.NAME]")
        return
    for name, table in tables.items():
        if not isinstance(table, dict):
            yield Problem(f"{where}.{name}", repr(table), "a table of thresholds")
            continue
        for key, value in table.items():
            if key not in settings:
                yield Problem(
                    f"{where}.{name}",
                    f"unknown setting {key!r}",
                    f"one of {', '.join(settings)}",
                    _did_you_mean(key, {*settings}),
                )
                continue
            kind = settings[key]
            accepted = (int, float) if kind is float else (kind,)
            if not isinstance(value, accepted) or isinstance(value, bool):
                yield Problem(f"{where}.{name}.{key}", repr(value), _KINDS[kind])
