"""What the settings must know of each detector, and the registry of all detectors.

A detector is one file in `decon_core/detectors`, imported when it is first asked about. Settings
are validated before anything is scanned, so this half of a detector is below the policy.

A new detector is a subclass of `Detector` (`detectors/detector.py`) in a file beside it, and its
name in `BUILT_IN` below. Settings that decon.toml may set are fields of `Policy` (`policy.py`), a
threshold also a key of `policy.Thresholds`.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import KW_ONLY, dataclass
from enum import Enum
from typing import Any, ClassVar, TypeVar

from decon_core.config.validation import did_you_mean
from decon_core.errors import InputError, Problem
from decon_core.feature import feature_entries

Setting = bool | int | float | str

_BELOW_FLOOR = (
    "Matches below the lowest recorded score are not kept, so a lower threshold has no effect"
)

# The order is that of scan results, tables and pages.
BUILT_IN = (
    "decon",
    "aligned",
    "ratcliff",
    "longest_match",
    "exact",
    "ngram_any",
    "reworded",
    "code",
)


class Reads(Enum):
    """What a detector searches in a document, and so what must be prepared for it."""

    INDEX = "canonical tokens, with the index of idf-weighted n-grams"
    CANONICAL = "canonical tokens, with the index of texts"
    TEXTS = "bytes of the text after `normalize`, with the index of texts"
    TOKENS = "tokens of the text after `normalize`, with the index of texts"
    OWN = "documents as they are, with an index of its own"
    ORIGINAL = "bytes of the unchanged text, with an index of the records of its own"


@dataclass(frozen=True, kw_only=True)
class Threshold:
    """Which matches of a detector are leaks, by settings of the policy."""

    setting: str  # "": there is none
    floor: str | None = None  # setting: matches are kept from here on
    is_exclusive: bool = False  # a leak has more than the threshold, not the same
    is_length: bool = False  # a number of tokens; the score is the matched share of it, at most 1
    # The kinds that it applies to. None: what has no kind, and is a leak by the threshold alone.
    of: tuple[str | None, ...] = (None,)


@dataclass(frozen=True)
class Kind:
    """What a match may be to its item: the policy says if that is a leak."""

    name: str  # a value of `kind`
    lacks: str = ""  # why it is less than a copy of the item, if it is
    _: KW_ONLY
    is_apart: bool = False  # its judged pairs tell nothing of the detector's other matches
    needs_answer: bool = False  # whether a leak needs the answer, if the item has one


class Declaration:
    """The attributes of a detector that settings, reports and help ask for."""

    name: ClassVar[str]
    summary: ClassVar[str]  # what it compares, in one line
    reads: ClassVar[Reads]
    threshold: ClassVar[Threshold]
    kinds: ClassVar[tuple[Kind, ...]] = ()

    # Settings that change its matches: they enter the fingerprint of scan results if it is chosen.
    # Those without a field in the policy are in `own_settings`, with their defaults.
    scan_settings: ClassVar[tuple[str, ...]] = ()
    own_settings: ClassVar[tuple[tuple[str, Setting], ...]] = ()
    # Increased when the same settings give other matches: only its scan results are then made anew.
    versions: ClassVar[tuple[tuple[str, int], ...]] = ()

    advice: ClassVar[str] = ""  # when to choose it, in Markdown, for the scorecard
    # Columns of the records that its own index is made of, if it reads `Reads.OWN`.
    own_columns: ClassVar[tuple[str, ...]] = ("question", "answer", "is_correct")

    # Whether it finds the records of the n-gram index, which has equal ones once, and no others.
    uses_ngram_index: ClassVar[bool] = False
    # What a leak has of an item besides its question, if the item has it; without it
    # the class is `no answer`.
    needed_parts: ClassVar[tuple[str, ...]] = ()
    # A question of fewer words is no leak by its kind without its answer or its passage.
    fewest_words: ClassVar[int] = 0
    finds_every_place: ClassVar[bool] = False  # else one match per document and text
    finds_other_numbers: ClassVar[bool] = False  # the question with different numbers or names
    finds_other_names: ClassVar[bool] = False  # programs with all names changed
    finds_answers: ClassVar[bool] = False  # an answer without its question
    compares_any_order: ClassVar[bool] = False  # words and numbers agree, in any order
    compares_fields: ClassVar[bool] = False  # question and answer each have a score

    def setting(self, policy: Any, name: str) -> Any:
        """Return a setting of the policy, or its default if the policy has no such field."""
        return getattr(policy, name, dict(self.own_settings).get(name))

    def fingerprint_settings(self, policy: Any) -> dict[str, Any]:
        """Return the settings and versions that its scan results depend on."""
        settings = {name: self.setting(policy, name) for name in self.scan_settings}
        return settings | dict(self.versions)

    def acts(self, leak: Collection[str]) -> bool:
        """Return whether it finds leaks, if these kinds are leaks.

        If not, mixtures need verdicts or calibration to remove what it finds.
        """
        return None in self.threshold.of or any(kind.name in leak for kind in self.kinds)

    def configured_threshold(self, policy: Any) -> float:
        """Return the threshold as configured: a score, or a number of tokens."""
        setting = self.threshold.setting
        value: float = self.setting(policy, setting) if setting else 1.0
        return value

    def score_threshold(self, policy: Any) -> float:
        """Return the lowest score of a leak."""
        return 1.0 if self.threshold.is_length else self.configured_threshold(policy)

    def setting_problems(self, policy: Any) -> Iterator[Problem]:
        """Yield the problems of its settings in a policy, whose types are right."""
        setting, floor = self.threshold.setting, self.threshold.floor
        if floor is None:
            return
        least, threshold = self.setting(policy, floor), self.configured_threshold(policy)
        if not 0 < least <= threshold:
            expected = f"above 0 and at most the threshold ({threshold})"
            yield Problem(f"policy.{floor}", repr(least), expected, _BELOW_FLOOR)
        for benchmark, table in policy.benchmark.items():
            if (value := table.get(setting, least)) < least:
                where = f"policy.benchmark.{benchmark}.{setting}"
                yield Problem(where, repr(value), f"{floor} ({least}) or more", _BELOW_FLOOR)


_registered: dict[str, Declaration] = {}

_D = TypeVar("_D", bound=Declaration)


def register(kind: type[_D]) -> type[_D]:
    """Register a class of detectors under its name."""
    other = _registered.get(kind.name)
    if other is not None and type(other).__qualname__ != kind.__qualname__:
        found = f"a second detector {kind.name!r}"
        raise InputError(Problem(f"{kind.__module__}.{kind.__qualname__}", found, "another name"))
    _registered[kind.name] = kind()
    return kind


def names() -> tuple[str, ...]:
    """Return the names of all detectors, the built-in ones first."""
    return (*BUILT_IN, *(name for name in _registered if name not in BUILT_IN))


def get(name: str) -> Declaration:
    """Return a detector, or what stands for one as it finds places beside the scan.

    Raises InputError with the known names if there is none of this name.
    """
    if name in feature_entries("nominations"):
        return _nominator(name)
    if name in BUILT_IN and name not in _registered:
        importlib.import_module(f"decon_core.detectors.{name}")
    if name not in _registered:
        remedy = did_you_mean(name, names()) or "see docs/detectors.md"
        expected = f"one of {', '.join(names())}"
        raise InputError(Problem("detector", repr(name), expected, remedy))
    return _registered[name]


def _nominator(name: str) -> Declaration:
    module = importlib.import_module("decon_core.detectors.detector")
    nominator: Declaration = module.nominator(name)
    return nominator


def find(name: str) -> Declaration | None:
    """Return a detector, or None: a report may name one that is not installed here."""
    return get(name) if name in (*names(), *feature_entries("nominations")) else None


def declarations() -> Iterator[Declaration]:
    """Yield all detectors in order."""
    return map(get, names())


def kinds() -> dict[str, Kind]:
    """Return the kinds of all detectors, and of what is found beside the scan, if anything is."""
    every = (*declarations(), _nominator(""))
    return {kind.name: kind for detector in every for kind in detector.kinds}


def near_kinds() -> list[str]:
    """Return the kinds of matches that are judged apart, as they are no copies of their item."""
    return sorted(name for name, kind in kinds().items() if kind.is_apart)


def curve_of(detector: str, kind: str | None) -> str:
    """Return whose judged pairs tell the probability of a match: near kinds are judged apart."""
    return f"{detector} {kind}" if kind in near_kinds() else detector


def names_where(condition: Callable[[Declaration], bool]) -> list[str]:
    """Return the names of the detectors that satisfy a condition."""
    return [detector.name for detector in declarations() if condition(detector)]


def in_order(chosen: Iterable[str]) -> list[str]:
    """Sort names in the order of the registry; raise InputError for unknown ones."""
    order = {name: place for place, name in enumerate(names())}
    return sorted((get(name).name for name in chosen), key=order.__getitem__)


def threshold_settings() -> dict[str, type[float]]:
    """Return the settings that are thresholds, the keys of [policy.benchmark.NAME], with types."""
    thresholds = [detector.threshold for detector in declarations()]
    return {threshold.setting: int if threshold.is_length else float for threshold in thresholds}
