"""The policy: all settings of scans and decisions, with their defaults, and their fingerprints.

The names are those of AI2's decon where it has the setting. What they do is described in
`docs/decon-detector.md`; the arithmetic is in `tests/oracle/decon.py`. `config/__init__.py` says
what follows from a new key.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import asdict, field, fields, replace
from functools import cache
from itertools import chain
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast, get_type_hints

import numpy as np
import numpy.typing as npt
from pydantic import AfterValidator, BeforeValidator, Field, ValidationError, model_validator
from pydantic.dataclasses import dataclass
from typing_extensions import TypedDict

from decon_core.config import detector_registry as registry
from decon_core.config.detector_registry import Declaration, Reads
from decon_core.config.validation import (
    AS_WRITTEN,
    TABLE,
    AtLeastTwo,
    Count,
    Distinct,
    Flag,
    Number,
    Positive,
    PositiveShare,
    ShareBelowOne,
    did_you_mean,
    dotted,
    each_once,
    expects,
    in_a_list,
    known_name,
    problems_of,
)
from decon_core.errors import ConfigError, Problem

if TYPE_CHECKING:
    from decon_core.text.characters import Form

Sampling = Literal["exhaustive", "reference"]
Normalize = Literal["none", "whitespace", "decon"]
PUNCTUATION = "!’\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~”“‘—"

# Increased when the same text and policy give other matches than before. It is part of the
# fingerprints, so that old scan results are not used.
VERDICT_VERSION = 9

# Increased when the content of scan results changes: shards are scanned again, and no index built.
SCAN_RESULT_VERSION = 21

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
    "normalize_unicode",
    "strip_markup",
)

# Named settings. `reference` is the published decon, without later additions.
PRESETS: dict[str, dict[str, object]] = {
    "reference": {
        "detectors": ["decon"],
        "normalize_unicode": False,
        "strip_markup": False,
        "eval_min_token_length": 20,
        "keep_no_answer": False,
    }
}

# Fields that select among existing matches or change none: no new scan is needed. For the tokenizer
# its own fingerprint is used instead of its name, which may be a path.
_DECISION_FIELDS = frozenset(
    {"benchmark", "leak", "review", "common_share", "common_least_documents", "leave_out_common"}
    | {"unreadable", "invalid_utf8", "tokenizer_str", "word_table_mb"}
)

# A leak is reported as "with its answer" if at least this share of the answer was found. No verdict
# depends on it. An idf-weighted overlap of 0.5 needs most of a short answer; 0.006 of a long one is
# a single common n-gram.
LEAST_ANSWER_OVERLAP = 0.5

TELLING_ANSWER = 20  # tokens of an answer that belongs to one question only

Detectors = Annotated[
    tuple[Annotated[str, Field(json_schema_extra={"enum": [*registry.BUILT_IN]})], ...],
    AfterValidator(lambda names: each_once(names, registry.names())),
    BeforeValidator(in_a_list),
    expects(f"one or more of {', '.join(registry.BUILT_IN)}, each once"),
]

Kind = Annotated[
    str,
    AfterValidator(lambda name: known_name(name, registry.kinds())),
    # The detectors are not known yet when this file is imported.
    Field(json_schema_extra=lambda schema: schema.update(enum=[*registry.kinds()])),
]
Kinds = Distinct[Kind]


class Thresholds(TypedDict, total=False):
    """[policy.benchmark.NAME]: settings that decide which matches of one benchmark are leaks."""

    leak: Kinds
    review: Kinds
    contamination_score_threshold: PositiveShare
    ratcliff_threshold: PositiveShare
    longest_match_threshold: ShareBelowOne
    exact_threshold: PositiveShare
    ngram_any_size: Positive
    reworded_threshold: PositiveShare
    code_threshold: PositiveShare
    aligned_threshold: PositiveShare


Thresholds.__pydantic_config__ = TABLE  # type: ignore[attr-defined] # documented by pydantic


@dataclass(frozen=True, kw_only=True, config=TABLE)
class Policy:
    """[policy]: how texts are compared, and which matches count as leaks."""

    detectors: Detectors = ("aligned",)
    """One or more detectors; docs/detectors.md compares them. `decon` is AI2's published method."""

    # text and tokens
    tokenizer_str: str = "cl100k"
    """A bundled tokenizer, or the path of a tokenizer.json."""
    punctuation_chars: str = PUNCTUATION
    """Characters that are replaced by spaces before a text is split into words."""
    normalize_unicode: Flag = True
    """Ignore differences in control and zero-width characters, full-width letters, ligatures,
    look-alike letters and accents."""
    strip_markup: Flag = True
    """Remove HTML tags, entities, Markdown link targets, LaTeX formatting commands, URL encoding,
    escape sequences and hyphens at line ends before a text is split into words."""

    # what is indexed
    ngram_size: AtLeastTwo = 5
    """Tokens per question n-gram."""
    answer_ngram_size: Positive = 3
    """Tokens per answer n-gram."""
    passage_ngram_size: Positive = 4
    """Tokens per passage n-gram."""
    eval_min_token_length: Count = 12
    """Items with fewer tokens are not indexed."""
    eval_min_unique_word_count: Count = 4
    """Items with fewer distinct words are not indexed."""
    eval_dedup: Flag = True
    """Index identical records only once."""
    index_answers: Flag = True
    """Whether answers count toward the score."""
    index_passages: Flag = True
    """Whether passages count toward the score."""
    hot_ngram_records: Positive = 2000
    """A match never starts at an n-gram that more records than this contain."""

    # how clusters are found
    sampling: Sampling = "exhaustive"
    """N-grams of a text to look up: all ("exhaustive"), or a sample ("reference"), as AI2's decon
    does."""
    sample_every_m_tokens: Positive = 10
    """With sampling = "reference": look up one n-gram per this many tokens."""
    question_max_consecutive_misses: Positive = 11
    """The match of a question ends after this many consecutive n-grams do not match."""

    # what supports a question
    short_answer_token_threshold: Positive = 3
    """Answers of up to this many tokens count only if they are found whole."""
    short_answer_window_length: Count = 50
    """Number of tokens after a question within which a short answer must start."""
    min_long_answer_window: Positive = 100
    """Minimum number of tokens after a question in which a long answer is searched for."""
    min_passage_distance: Positive = 100
    """Minimum number of tokens before a question in which a passage is searched for."""
    passage_max_consecutive_misses: Count = 2
    """The match of a passage ends after more than this many consecutive n-grams do not match."""

    # length penalty
    perfect_match_decay_start: Count = 20
    """Questions of up to this many tokens must be found whole (an overlap of 1)."""
    perfect_match_decay_end: Positive = 50
    """In longer questions, the required overlap falls linearly, to its minimum at this length."""
    lowest_recorded_score: Number = 0.6
    """Matches below this score are not stored. Set it below the threshold, so that you can lower
    the threshold without a new scan."""
    keep_no_answer: Flag = True
    """Also store matches whose question alone, or question and passage, reach the lowest recorded
    score."""

    # ratcliff, longest_match, exact and ngram_any
    normalize: Normalize = "none"
    """`ratcliff`, `longest_match` and `exact`: how to normalize texts before comparing them."""
    shared_ngram_size: AtLeastTwo = 8
    """`ratcliff` and `longest_match` compare only texts that share this many consecutive tokens."""
    ratcliff_min_block: Positive = 5
    """`ratcliff`: runs of equal tokens shorter than this do not count."""
    ratcliff_prompt: Literal["question", "whole"] = "question"
    """`ratcliff`: what to search for: the question, or passage, question and choices together."""
    ratcliff_lowest_recorded: Number = 0.3
    """`ratcliff`: matches below this score are not kept."""
    longest_match_lowest_recorded: Number = 0.4
    """`longest_match`: matches below this score are not kept."""
    ngram_any_lowest_recorded: AtLeastTwo = 8
    """`ngram_any`: matches with fewer tokens than this are not kept."""
    reworded_lowest_recorded: Number = 0.2
    """`reworded`: matches below this score are not kept."""
    code_ngram_size: AtLeastTwo = 5
    """`code`: tokens per fingerprint."""
    code_min_tokens: Positive = 20
    """`code`: programs with fewer tokens are not searched for."""
    code_lowest_recorded: Number = 0.3
    """`code`: matches below this score are not kept."""
    word_table_mb: Positive = 256
    """Memory of the word cache per thread, in MB. Results do not depend on it."""

    # decisions
    leak: Kinds = ("verbatim", "edited")
    """Kinds of matches that are leaks, for detectors that report a kind (docs/detectors.md). For
    `aligned`, the answer must also be found."""
    review: Kinds = ("variant", "part", "reworded", "names", "near in meaning")
    """Kinds of matches that need review. A list replaces the default. Matches of kinds that are
    neither here nor in `leak` are stored but have no effect."""
    contamination_score_threshold: PositiveShare = 0.8
    """`decon`: a leak has at least this score."""
    aligned_threshold: PositiveShare = 0.6
    """`aligned`: a copy has at least this share of the question's words, and of the words that only
    this item has."""
    ratcliff_threshold: PositiveShare = 0.5
    """`ratcliff`: a leak has at least this score."""
    longest_match_threshold: ShareBelowOne = 0.7
    """`longest_match`: a leak has more than this score."""
    exact_threshold: PositiveShare = 0.5
    """`exact`: a leak has at least this score: how rare its n-grams are on average (at most 1)."""
    ngram_any_size: Positive = 13
    """`ngram_any`: a leak shares at least this many consecutive tokens."""
    reworded_threshold: PositiveShare = 0.27
    """`reworded`: minimum score of a match that needs review, or that is a leak if `leak` lists its
    kind."""
    code_threshold: PositiveShare = 0.45
    """`code`: a leak has at least this score."""
    common_share: PositiveShare = 0.001
    """N-grams in more than this share of a source's documents count as boilerplate."""
    common_least_documents: Positive = 20
    """Boilerplate n-grams also occur in at least this many documents, because a share means little
    in a small corpus."""
    leave_out_common: Flag = False
    """`decon`: ignore boilerplate n-grams (see `common_share`) when scores are computed."""
    unreadable: Literal["block", "drop"] = "block"
    """Unreadable rows: "block" builds no mixture from their pack; "drop" leaves the rows out."""
    invalid_utf8: Literal["replace", "drop", "block"] = "replace"
    """Rows with invalid UTF-8 in mixtures: "replace" writes U+FFFD for the bytes, "drop" leaves the
    rows out, "block" builds no mixture from their pack. The rows are scanned in any case."""
    benchmark: Annotated[Mapping[str, Thresholds], AS_WRITTEN] = field(
        default_factory=dict, hash=False
    )
    """Settings for one benchmark, which replace those of [policy]."""

    @model_validator(mode="wrap")
    @classmethod
    def _refuse_invalid(cls, values: Any, handler: Any) -> Any:
        try:
            return handler(values)
        except ValidationError as error:
            problems = problems_of(error, cls, place=lambda path: dotted(["policy", *path]))
            raise ConfigError(problems) from None

    def __post_init__(self) -> None:
        of_detectors = (each.setting_problems(self) for each in registry.declarations())
        ConfigError.raise_for(chain(*of_detectors, _related_problems(self)))

    @classmethod
    def from_mapping(cls, values: Mapping[str, object], *, where: str = "") -> Policy:
        """Build a policy from a table of the file `where`. `ConfigError` has all problems."""
        values = with_preset(values, where=where)
        try:
            return _with_own_settings(values)
        except ConfigError as error:
            place = f"{where}: " if where else ""
            raise ConfigError(
                replace(problem, where=f"{place}{problem.where}") for problem in error.problems
            ) from None

    def __reduce__(self) -> tuple[Any, ...]:
        values = {key.name: getattr(self, key.name) for key in fields(self)}
        return _with_own_settings, (values,)

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

        Without the term weights: of what a snapshot itself depends on.
        """
        settings = {name: getattr(self, name) for name in _INDEX_FIELDS}
        return digest_of([settings, tokenizer, snapshot, VERDICT_VERSION])

    def scan_fingerprint(self, *, tokenizer: str, snapshot: str) -> str:
        """Return the fingerprint of what a scan result depends on besides shard and benchmark."""
        detectors = registry.declarations()
        scan_settings = [detector.scan_settings for detector in detectors]
        left_out = decision_fields().union(*scan_settings)
        settings = {name: value for name, value in asdict(self).items() if name not in left_out}
        settings["detectors"] = sorted(self.detectors)
        for detector in self._chosen:
            settings |= detector.fingerprint_settings(self)
        return digest_of([settings, tokenizer, snapshot, VERDICT_VERSION, SCAN_RESULT_VERSION])

    @property
    def fingerprint(self) -> str:
        """The fingerprint of all settings."""
        return digest_of(asdict(self))

    @property
    def form(self) -> Form:
        """The settings of canonical text."""
        from decon_core.text.characters import Form

        return Form(
            punctuation=self.punctuation_chars,
            normalize_unicode=self.normalize_unicode,
            strip_markup=self.strip_markup,
        )

    @property
    def at_floor(self) -> Policy:
        """The policy for scans: matches are kept down to the lowest recorded score."""
        return replace(self, contamination_score_threshold=self.lowest_recorded_score, benchmark={})

    def for_benchmark(self, name: str) -> Policy:
        """Return the policy with the thresholds of a benchmark."""
        given: dict[str, Any] = {**self.benchmark.get(name, {})}
        return replace(self, benchmark={}, **given) if self.benchmark else self

    def decision_settings(self, benchmarks: Iterable[str]) -> list[object]:
        """Return what decides for these benchmarks, as part of a fingerprint of decisions."""
        own = sorted({name for name in benchmarks if name in self.benchmark})
        by_benchmark = [(name, self.for_benchmark(name).decision_settings(())) for name in own]
        kinds = [("leak", sorted(self.leak)), ("review", sorted(self.review))]
        return [*sorted(self.thresholds.items()), *kinds, *by_benchmark]

    @property
    def _chosen(self) -> list[Declaration]:
        return [registry.get(name) for name in self.detectors]

    @property
    def needs_texts(self) -> bool:
        """Whether a chosen detector compares the original texts."""
        without = (Reads.INDEX, Reads.OWN, Reads.ORIGINAL)
        return any(detector.reads not in without for detector in self._chosen)

    @property
    def compares_tokens(self) -> bool:
        """Whether a chosen detector compares the tokens of the original texts."""
        return any(detector.reads is Reads.TOKENS for detector in self._chosen)

    @property
    def searches_prompts(self) -> bool:
        """Whether a chosen detector searches for passage, question and choices as one text."""
        return self.ratcliff_prompt == "whole" and "ratcliff" in self.detectors

    @property
    def acting(self) -> list[str]:
        """The chosen detectors that find leaks. What others find needs review."""
        return [detector.name for detector in self._chosen if detector.acts(self.leak)]

    @property
    def acting_by_benchmark(self) -> dict[str, list[str]]:
        """The same for each benchmark that has settings."""
        return {name: self.for_benchmark(name).acting for name in self.benchmark}

    def threshold_of(self, detector: str) -> float:
        """Return the score at which a match of a detector counts as a leak."""
        return registry.get(detector).score_threshold(self)

    @property
    def thresholds(self) -> dict[str, float]:
        """The thresholds of the chosen detectors as configured, some of them a length."""
        return {detector.name: detector.configured_threshold(self) for detector in self._chosen}


def _with_own_settings(values: Mapping[str, Any]) -> Policy:
    """Build a policy that has also the settings that only detectors know."""
    own = tuple(pair for detector in registry.declarations() for pair in detector.own_settings)
    return _kind(own)(**values) if own else Policy(**values)


@cache
def _kind(own: tuple[tuple[str, registry.Setting], ...]) -> type[Policy]:
    """Return the class of policies with these settings and their defaults."""
    limits: dict[str, Any] = {
        name: Positive if kind is int else PositiveShare
        for name, kind in registry.threshold_settings().items()
    }
    known = get_type_hints(Thresholds, include_extras=True)
    table: Any = TypedDict("Thresholds", limits | known, total=False)  # type: ignore[misc] # keys from the registry
    table.__pydantic_config__ = TABLE  # type: ignore[attr-defined] # documented by pydantic
    kind: Any = type("Policy", (Policy,), dict(own))
    kind.__annotations__ = {name: limits.get(name, type(default)) for name, default in own}
    kind.__annotations__["benchmark"] = Annotated[Mapping[str, table], AS_WRITTEN]
    kind.benchmark = field(default_factory=dict, hash=False)
    return cast("type[Policy]", dataclass(frozen=True, kw_only=True, config=TABLE)(kind))


def decision_fields() -> frozenset[str]:
    """Return the settings that need no new scan, among them the thresholds of all detectors."""
    return _DECISION_FIELDS.union(registry.threshold_settings())


def unknown_benchmarks(policy: Policy, known: Collection[str]) -> Iterator[Problem]:
    """Yield a problem for each [policy.benchmark.NAME] of an unknown benchmark."""
    expected = f"one of {', '.join(known)}"
    for name in policy.benchmark:
        if name not in known:
            where = f"policy.benchmark.{name}"
            yield Problem(where, "no benchmark with this name", expected, did_you_mean(name, known))


def without_effect(policy: Policy) -> Iterator[Problem]:
    """Yield a problem for each threshold that was set for a detector that is not chosen."""
    default = Policy()
    owner = {kind.name: each.name for each in registry.declarations() for kind in each.kinds}
    for name in ("leak", "review"):
        changed = {*getattr(policy, name)} ^ {*getattr(default, name)}
        needed = {owner.get(kind) for kind in changed}  # None: what is found beside the scan
        if needed and needed.isdisjoint({*policy.detectors, None}):
            found = f"a list that has no effect on {', '.join(policy.detectors)}"
            expected = f"{' or '.join(sorted(filter(None, needed)))} among the detectors"
            yield Problem(f"policy.{name}", found, expected)
    for detector in registry.declarations():
        value, usual = map(detector.configured_threshold, (policy, default))
        if detector.name not in policy.detectors and value != usual:
            where = f"policy.{detector.threshold.setting}"
            found = f"{value}, which has no effect on {', '.join(policy.detectors)}"
            yield Problem(where, found, f"{detector.name} among the detectors")


def digest_of(value: object) -> str:
    """Return a short digest of a value that JSON can hold."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]


def with_preset(values: Mapping[str, object], *, where: str) -> Mapping[str, object]:
    """Return the settings with the defaults of the `preset` that they may name."""
    if "preset" not in values:
        return values
    name = values["preset"]
    if not isinstance(name, str) or name not in PRESETS:
        place = f"{where}: policy.preset" if where else "policy.preset"
        raise ConfigError(Problem(place, repr(name), " or ".join(map(repr, PRESETS))))
    return PRESETS[name] | {key: value for key, value in values.items() if key != "preset"}


def _related_problems(policy: Policy) -> Iterator[Problem]:
    """Yield settings that do not go with another setting."""
    tables: dict[str, Thresholds] = {"policy": {}}
    tables |= {f"policy.benchmark.{name}": table for name, table in policy.benchmark.items()}
    for where, table in tables.items():
        leak, review = table.get("leak", policy.leak), table.get("review", policy.review)
        if both := sorted({*leak} & {*review}):
            remedy = "a kind either is a leak or needs review"
            yield Problem(f"{where}.review", repr(both), "kinds that are not in leak", remedy)
    if policy.short_answer_token_threshold < policy.answer_ngram_size - 1:
        expected = f"at least answer_ngram_size - 1 ({policy.answer_ngram_size - 1})"
        remedy = "answers of lengths in between would have no n-grams and could never be found"
        found = repr(policy.short_answer_token_threshold)
        yield Problem("policy.short_answer_token_threshold", found, expected, remedy)
    start, end = policy.perfect_match_decay_start, policy.perfect_match_decay_end
    if end <= start:
        expected = f"more than perfect_match_decay_start ({start})"
        yield Problem("policy.perfect_match_decay_end", repr(end), expected)
