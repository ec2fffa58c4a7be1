"""The [[mixture]] tables of decon.toml; docs/mixtures.md has examples.

Without any table there is one mixture, `decontaminated`, with default settings. What a key does is
in `decon_core/mixtures`, and what follows from a new key in `config/__init__.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, field
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field
from pydantic.dataclasses import dataclass

from decon_core.config.detector_registry import BUILT_IN, get
from decon_core.config.policy import Policy
from decon_core.config.validation import (
    TABLE,
    Flag,
    Name,
    Names,
    Positive,
    PositiveShare,
    SettingsReader,
    Share,
    Whole,
    declared,
    expects,
    known,
)
from decon_core.errors import Problem

FoundButNoLeak = Literal["remove", "keep"]


@dataclass(frozen=True, kw_only=True, config=TABLE)
class Leaks:
    """[mixture.leaks]: which leaks the mixture acts on; by default, all.

    A question without its answer is not a leak, but by default it is removed like one, because a
    model that is trained on it has seen the test question.
    """

    detectors: Names[Annotated[Name, known("detectors")]] = ()
    """Only leaks found by these detectors."""
    benchmarks: Names[Name] = ()
    """Only leaks of these benchmarks."""
    splits: Names[Name] = ()
    """Only leaks of these splits."""
    least_score: Share | None = None
    """Minimum score. Leaks by a verdict, and duplicates found by a judge, count at any score."""

    # Only "leak": a match with any other verdict never counts as a leak.
    verdicts: Names[Literal["leak"]] = ()
    """Only leaks with one of these reviewer verdicts."""
    min_probability: PositiveShare | None = None
    """Include matches that need review if their probability of being a leak, estimated from judged
    pairs, is at least this. Default: only matches that a person or a judge called a leak."""
    min_judged: Positive = 50
    """Minimum number of judged pairs from which `min_probability` is estimated."""
    no_answer: FoundButNoLeak = "remove"
    """What to do with questions found without their answer."""
    review: FoundButNoLeak = "keep"
    """What to do with matches that need review: those of the kinds in `review` of [policy]."""

    def needs(self, benchmark: str) -> bool:
        return not self.benchmarks or benchmark in self.benchmarks


@dataclass(frozen=True, kw_only=True, config=TABLE)
class Licenses:
    """Licenses of the documents to take: SPDX names in any case; `*` matches any characters.

    A document's license may be an SPDX expression: with `MIT OR GPL-3.0-only`, it is enough if one
    of the two is allowed.
    """

    fields: Annotated[
        Names[Name],
        BeforeValidator(lambda value: (value,) if isinstance(value, str) else value),
        expects("the field with the license, or a list of fields"),
        Field(alias="field"),
    ]
    """Field with the license. In a list of fields, the first one with a license counts."""
    allow: Names[Name] = ()
    """Only these licenses, such as "CC-BY-*"."""
    deny: Names[Name] = ()
    """No document under these licenses."""
    unknown: Literal["drop", "keep"] = "drop"
    """What to do with rows whose license is missing or "unknown"."""


@dataclass(frozen=True, kw_only=True, config=TABLE)
class Mixture:
    """A filtered variant of the corpus."""

    name: str
    """Name of the mixture, and of its folder in the store."""
    take: Literal["clean", "everything", "leaks", "control"] = "clean"
    """Documents to take: those without leaks, all of them, those with leaks, or a control, which
    leaves out as many documents and tokens as another mixture, chosen at random."""
    sources: Names[Annotated[Name, known("sources")]] = ()
    """Only these sources."""
    cut: Literal["documents", "turns", "spans"] = "documents"
    """What to remove for each leak: the document, the conversation turns, or the matching spans."""
    mask: str = ""
    """Text that replaces a removed span."""
    write: Literal["shards", "attributes", "dolma", "parquet", "mask"] = "shards"
    """What to write: the shards in their own format, attribute files for Dolma's mixer, the
    documents as Dolma JSONL or parquet, or their tokens with a loss mask."""
    tokenizer: Annotated[
        Name | None, expects("a tokenizer.json, a bundled tokenizer, or owner/model")
    ] = None
    """With write = "mask", the trainer's tokenizer: a bundled one, the path to a tokenizer.json, or
    a model on the Hugging Face hub."""
    add_special_tokens: Flag = False
    """With write = "mask": add the special tokens that the tokenizer puts around a text."""
    leaks: Leaks = field(default_factory=Leaks)
    """Which leaks the mixture acts on."""
    hidden: Literal["remove", "keep"] = "remove"
    """Whether to remove or keep rows with a leak in a hidden field, such as a reference answer."""
    licenses: Licenses | None = None
    """Only documents under these licenses."""
    control_of: Annotated[str | None, expects("the name of a mixture")] = None
    """For a control: the mixture that it is compared with."""
    seed: Whole = 0
    """For a control: the random seed."""

    def to_json(self) -> dict[str, Any]:
        """Return all settings but the name, for fingerprints and manifests."""
        settings = {name: value for name, value in asdict(self).items() if name != "name"}
        if self.write == "mask":
            settings["tokenizer"] = self.tokenizer_name
        else:  # fingerprints stay as they were before these settings existed
            settings = {key: settings[key] for key in settings if key not in _OF_MASK}
        # Fingerprints stay as they were before this setting existed.
        if self.leaks.min_probability is None:
            leaks = settings["leaks"]
            settings["leaks"] = {key: leaks[key] for key in leaks if key not in _OF_PROBABILITY}
        if self.licenses is not None:  # mixtures in which expressions were names are built again
            settings["licenses"]["texts"] = "names and SPDX expressions"
        return settings

    def has_source(self, name: str) -> bool:
        return not self.sources or name in self.sources

    @property
    def needs_leaks(self) -> bool:
        """Whether building it needs a scan of the shards against the benchmarks."""
        return self.take != "everything"

    @property
    def tokenizer_name(self) -> str:
        """The name of the trainer's tokenizer, of a file without its folder."""
        name = self.tokenizer or ""
        return Path(name).name if name.endswith(TOKENIZER_FILE) else name


TOKENIZER_FILE = ".json"  # suffix of tokenizers that are files

_OF_MASK = ("tokenizer", "add_special_tokens")
_OF_PROBABILITY = ("min_probability", "min_judged")

DEFAULT = Mixture(name="decontaminated")

# Keys that only have an effect with these values of another key. Elsewhere they are refused, as
# they would be ignored silently. (Keys that a control takes from its treatment: `_check_control`.)
_EFFECTIVE_WITH: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("cut", "take", ("clean",)),
    ("mask", "cut", ("spans",)),
    ("mask", "write", ("shards", "dolma", "parquet", "attributes")),
    ("tokenizer", "write", ("mask",)),
    ("add_special_tokens", "write", ("mask",)),
    ("leaks", "take", ("clean", "leaks", "control")),
    ("hidden", "take", ("clean", "leaks")),
    ("control_of", "take", ("control",)),
    ("seed", "take", ("control",)),
)


def read_mixtures(
    value: object,
    *,
    where: str,
    sources: Sequence[str],
    detectors: Sequence[str] = BUILT_IN,
    leak: Sequence[str] = Policy.leak,
) -> tuple[tuple[Mixture, ...], list[Problem]]:
    """Return the parsed mixtures, without any table (None) the default one, and all problems.

    `leak`: the kinds of matches that are leaks by the policy.
    """
    if value is None:
        return (DEFAULT,), []
    names = {"leak": leak, "sources": sources, "detectors": detectors}
    reader = _Reader(where, names=names)
    return reader.mixtures(value), reader.problems


class _Reader(SettingsReader):
    """Parses [[mixture]] tables and collects their problems."""

    def mixtures(self, value: object) -> tuple[Mixture, ...]:
        by_name: dict[str, Mixture] = {}
        names = []
        for number, entry in enumerate(self.tables("mixture", value)):
            where, before = f"mixture[{number}]", len(self.problems)
            mixture = self.table(Mixture, where, entry)
            if mixture is not None:
                self._check_effects(where, mixture)
                self._check_probability(f"{where}.leaks", mixture.leaks)
                if mixture.licenses is not None:
                    self._check_licenses(f"{where}.licenses", mixture.licenses)
                if len(self.problems) == before:
                    names.append(mixture.name)
                    by_name[mixture.name] = mixture
        self.named_tables("mixture", names, what="mixture")
        for mixture in by_name.values():
            self._check_control(mixture, by_name)
        return tuple(by_name.values())

    def _check_effects(self, where: str, mixture: Mixture) -> None:
        """Report keys without effect in a mixture of this kind, unless they have the default."""
        if mixture.write == "attributes" and mixture.cut != "documents":
            expected = "documents, because attribute files contain the spans"
            self.wrong(f"{where}.cut", mixture.cut, expected)
        if mixture.write == "mask":
            self._check_mask(where, mixture)
        for key, other, values in _EFFECTIVE_WITH:
            value = getattr(mixture, key)
            if value != getattr(DEFAULT, key) and getattr(mixture, other) not in values:
                needed = " or ".join(f'"{name}"' for name in values)
                remedy = f"leave it out, or set {other} = {needed}"
                found = "a table" if key == "leaks" else repr(value)
                self.wrong(f"{where}.{key}", found, f"{other} = {needed}", remedy)

    def _check_mask(self, where: str, mixture: Mixture) -> None:
        """Report settings without which nothing can be masked."""
        if mixture.take != "clean":
            expected = '"clean" with write = "mask", because leaks are masked'
            self.wrong(f"{where}.take", repr(mixture.take), expected)
        elif mixture.cut == "documents":
            found = f"{mixture.cut!r}, which leaves out leaked documents, so nothing is masked"
            self.wrong(f"{where}.cut", found, '"spans" or "turns" with write = "mask"')
        if mixture.tokenizer is None:
            expected = 'the tokenizer of the trainer, which write = "mask" needs'
            self.wrong(f"{where}.tokenizer", None, expected)

    def _check_probability(self, where: str, leaks: Leaks) -> None:
        """Report settings of a probability without an effect."""
        chosen = leaks.detectors or self.names["detectors"]
        if leaks.min_probability is None:
            if leaks.min_judged != Leaks.min_judged:
                self.wrong(f"{where}.min_judged", leaks.min_judged, "also min_probability")
        elif all(get(name).acts(self.names["leak"]) for name in chosen):
            found = f"{leaks.min_probability:g}, but every chosen detector decides by its score"
            expected = "a detector whose matches need review"
            remedy = "leave it out, or use least_score to select by score"
            self.wrong(f"{where}.min_probability", found, expected, remedy)

    def _check_licenses(self, where: str, licenses: Licenses) -> None:
        if not licenses.allow and not licenses.deny:
            self.wrong(where, "neither 'allow' nor 'deny'", "at least one of them")
        denied = {name.strip().casefold() for name in licenses.deny}
        for name in licenses.allow:
            if name.strip().casefold() in denied:
                self.wrong(f"{where}.allow", repr(name), "a name that is not also in 'deny'")

    def _check_control(self, mixture: Mixture, known: Mapping[str, Mixture]) -> None:
        if mixture.take != "control":
            return
        where = f"mixture {mixture.name!r}: control_of"
        treatment = known.get(mixture.control_of or "")
        if treatment is None:
            self.wrong(where, mixture.control_of, "the name of another mixture")
        elif treatment.take != "clean" or treatment.cut != "documents":
            expected = 'a mixture with take = "clean" and cut = "documents"'
            self.wrong(where, f"{treatment.name!r}", expected)
        elif mixture.licenses is not None or mixture.leaks != Leaks() or mixture.sources:
            # The two training runs of a comparison must differ in one thing only.
            expected = f"none of these: a control takes them from {treatment.name!r}"
            self.wrong(where, "sources, leaks or licenses", expected)


def mixture_named(mixtures: Iterable[Mixture], name: str) -> Mixture:
    """Return the mixture of this name; raise `ConfigError` if there is none."""
    return declared("mixture", mixtures, name)


def treatment_of(mixture: Mixture, mixtures: Iterable[Mixture]) -> Mixture:
    """Return the mixture that this one is a control of."""
    return mixture_named(mixtures, str(mixture.control_of))


def unknown_names(
    mixtures: Iterable[Mixture], known: Mapping[str, Sequence[str]]
) -> Iterator[Problem]:
    """Yield a problem for each unknown benchmark or split. `known`: the splits by benchmark."""
    for mixture in mixtures:
        where = f"mixture {mixture.name!r}: leaks"
        for name in mixture.leaks.benchmarks:
            if name not in known:
                yield Problem(f"{where}.benchmarks", repr(name), f"one of {', '.join(known)}")
        known_splits = {
            split for name, splits in known.items() if mixture.leaks.needs(name) for split in splits
        }
        for split in mixture.leaks.splits if known_splits else ():
            if split not in known_splits:
                names = ", ".join(sorted(known_splits))
                expected = f"one of {names}, the splits of its benchmarks"
                yield Problem(f"{where}.splits", repr(split), expected)
