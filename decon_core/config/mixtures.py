"""The [[mixture]] tables of decon.toml.

    [[mixture]]
    name = "decontaminated"          # all documents except those that leaked
    sources = ["web", "chat"]        # optional: only these
    cut = "documents"                # what to remove of a leak: documents, turns, or spans
    mask = ""                        # text that replaces a removed span
    write = "shards"                 # or "attributes": Dolma attribute files, for its mixer;
                                     # "dolma", "parquet": the documents in these layouts

    [mixture.leaks]                  # which leaks count; all optional
    detectors = ["decon"]
    benchmarks = ["gsm8k"]
    splits = ["test"]
    least_score = 0.9                # leaks with the verdict "leak" count with any score
    verdicts = ["leak"]              # only leaks with this verdict of a person
    question_only = "remove"         # or "keep": questions that were found without their answer

    [mixture.licenses]               # optional: only documents under these licenses
    field = "license"                # or several: the first with a license counts
    allow = ["CC-BY-*", "MIT"]       # or deny = [...], or both
    unknown = "drop"                 # or "keep": rows without a license, or with "unknown"

    [[mixture]]
    name = "original"
    take = "everything"

    [[mixture]]
    name = "leaked"
    take = "leaks"                   # only the contaminated documents

    [[mixture]]
    name = "control"
    take = "control"                 # loses as many documents and tokens, per source, as ...
    control_of = "decontaminated"    # ... this mixture, drawn from the documents that it keeps
    seed = 0

Without any table there is one mixture, `decontaminated`, with default settings.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from fnmatch import fnmatchcase
from typing import Any, Literal, get_args

from decon_core.config.detectors import BUILT_IN
from decon_core.config.settings import SettingsReader
from decon_core.config.verdicts import LEAK
from decon_core.errors import ConfigError, Problem
from decon_core.wording import counted

Take = Literal["clean", "everything", "leaks", "control"]
Cut = Literal["documents", "turns", "spans"]
Unknown = Literal["drop", "keep"]
Write = Literal["shards", "attributes", "dolma", "parquet"]
QuestionOnly = Literal["remove", "keep"]


_MOST_NAMED = 8  # benchmarks in a description


@dataclass(frozen=True, kw_only=True)
class Leaks:
    """Which of the leaks found under the policy count for a mixture; empty fields: all of them.

    A question without its answer is not a leak, but by default it is removed like one, because a
    model that is trained on it has seen the question of the test.
    """

    detectors: tuple[str, ...] = ()
    benchmarks: tuple[str, ...] = ()
    splits: tuple[str, ...] = ()
    least_score: float | None = None
    verdicts: tuple[str, ...] = ()
    question_only: QuestionOnly = "remove"

    def needs(self, benchmark: str) -> bool:
        return not self.benchmarks or benchmark in self.benchmarks

    def counts(self, entry: Mapping[str, Any]) -> bool:
        """Return whether an entry counts as a leak, or is question-only and treated like one."""
        is_candidate = entry["is_contaminated"] or (
            self.question_only == "remove" and entry["is_question_only"]
        )
        return bool(
            is_candidate
            and (not self.detectors or entry["detector"] in self.detectors)
            and self.needs(entry["benchmark"])
            and (not self.splits or entry["split"] in self.splits)
            and (not self.verdicts or entry["verdict"] in self.verdicts)
            and (self.least_score is None or self._is_confident(entry, self.least_score))
        )

    def described(self, known: Sequence[str]) -> str:
        """Describe these leaks in one line. `known`: all benchmarks of the configuration."""
        names = [name for name in known if self.needs(name)]
        more = f" and {len(names) - _MOST_NAMED:,} more" if len(names) > _MOST_NAMED else ""
        listed = ", ".join(names[:_MOST_NAMED]) + more or "no benchmark"
        is_all = len(names) == len(known)
        limits = [
            *(
                ["all benchmarks"]
                if is_all
                else [f"{len(names):,} of {counted(len(known), 'benchmark')}"]
            ),
            *([f"splits {', '.join(self.splits)}"] if self.splits else []),
            *([f"by {', '.join(self.detectors)}"] if self.detectors else []),
            *([] if self.least_score is None else [f"score at least {self.least_score:g}"]),
            *([f"with the verdict {' or '.join(self.verdicts)}"] if self.verdicts else []),
        ]
        return f"{listed} ({'; '.join(limits)})"

    def _is_confident(self, entry: Mapping[str, Any], least: float) -> bool:
        # A confirmed leak counts with any score: a review must not remove it from the leaks.
        return bool(entry["score"] >= least or entry["verdict"] == LEAK)


@dataclass(frozen=True, kw_only=True)
class Licenses:
    """The licenses of documents to take: SPDX names in any case; `*` matches any characters."""

    fields: tuple[str, ...]  # the first field with a license counts
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    unknown: Unknown = "drop"

    def takes(self, license_name: str | None) -> bool:
        name = _normalized(license_name or "")
        if not names_license(name):
            return self.unknown == "keep"
        is_allowed = not self.allow or _is_one_of(name, self.allow)
        return is_allowed and not _is_one_of(name, self.deny)


# Values for a missing license: those of many corpora, and SPDX's own.
_NO_LICENSE = frozenset({"", "unknown", "none", "noassertion"})


def names_license(text: str) -> bool:
    """Return whether a text names a license; "unknown", for example, does not."""
    return _normalized(text) not in _NO_LICENSE


def _normalized(name: str) -> str:
    return name.strip().casefold()


def _is_one_of(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(name, pattern.casefold()) for pattern in patterns)


@dataclass(frozen=True, kw_only=True)
class Mixture:
    """A filtered variant of the corpus."""

    name: str
    take: Take = "clean"
    sources: tuple[str, ...] = ()  # empty: all
    cut: Cut = "documents"
    mask: str = ""
    write: Write = "shards"
    leaks: Leaks = field(default_factory=Leaks)
    licenses: Licenses | None = None
    control_of: str | None = None
    seed: int = 0

    def to_json(self) -> dict[str, Any]:
        """Return all settings but the name, for fingerprints and manifests."""
        return {name: value for name, value in asdict(self).items() if name != "name"}

    def has_source(self, name: str) -> bool:
        return not self.sources or name in self.sources

    @property
    def needs_leaks(self) -> bool:
        """Whether building it needs a scan of the shards against the benchmarks."""
        return self.take != "everything"


DEFAULT = Mixture(name="decontaminated")

_KEYS = {
    *("name", "take", "sources", "cut", "mask", "write"),
    *("leaks", "licenses", "control_of", "seed"),
}
# Keys that only have an effect with these values of another key. Elsewhere they are refused, as
# they would be ignored silently. (Keys that a control takes from its treatment: `_check_control`.)
_EFFECTIVE_WITH: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("cut", "take", ("clean",)),
    ("mask", "cut", ("spans",)),
    ("leaks", "take", ("clean", "leaks", "control")),
    ("control_of", "take", ("control",)),
    ("seed", "take", ("control",)),
)
_LEAK_KEYS = {"detectors", "benchmarks", "splits", "least_score", "verdicts", "question_only"}
_LICENSE_KEYS = {"field", "allow", "deny", "unknown"}


def read_mixtures(
    value: object, *, where: str, sources: Sequence[str], detectors: Sequence[str] = BUILT_IN
) -> tuple[tuple[Mixture, ...], list[Problem]]:
    """Parse the mixtures of a configuration; return them and all problems.

    `value` is the parsed TOML; None (no table) gives the default mixture.
    """
    if value is None:
        return (DEFAULT,), []
    reader = _Reader(where, detectors)
    return reader.mixtures(value, sources), reader.problems


class _Reader(SettingsReader):
    """Parses [[mixture]] tables and collects their problems."""

    def __init__(self, where: str, detectors: Sequence[str]) -> None:
        super().__init__(where)
        self._detectors = detectors

    def mixtures(self, value: object, sources: Sequence[str]) -> tuple[Mixture, ...]:
        if not isinstance(value, list) or not value:
            self.wrong("mixture", value, "one or more [[mixture]]")
            return ()
        mixtures = [
            mixture
            for number, entry in enumerate(value)
            if (mixture := self._mixture(f"mixture[{number}]", entry, sources))
        ]
        self.named_tables("mixture", [mixture.name for mixture in mixtures], what="mixture")
        by_name = {mixture.name: mixture for mixture in mixtures}
        for mixture in mixtures:
            self._check_control(mixture, by_name)
        return tuple(mixtures)

    def _mixture(self, where: str, entry: object, sources: Sequence[str]) -> Mixture | None:
        if not isinstance(entry, dict):
            self.wrong(where, entry, "a table")
            return None
        before = len(self.problems)
        self.unknown(where, entry, _KEYS)
        for key, kind, expected in (
            ("name", str, "a string"),
            ("mask", str, "a string"),
            ("control_of", str, "the name of a mixture"),
            ("seed", int, "a whole number"),
        ):
            if key in entry and (not isinstance(entry[key], kind) or entry[key] is True):
                self.wrong(f"{where}.{key}", entry[key], expected)
        if "name" not in entry:
            self.wrong(f"{where}.name", None, "a string")
        self.choice(f"{where}.take", entry.get("take", "clean"), get_args(Take))
        self.choice(f"{where}.cut", entry.get("cut", "documents"), get_args(Cut))
        self.choice(f"{where}.write", entry.get("write", "shards"), get_args(Write))
        if entry.get("write") == "attributes" and entry.get("cut", "documents") != "documents":
            self.wrong(f"{where}.cut", entry["cut"], "documents: attributes contain the spans")
        self._check_ignored(where, entry)
        names = self._names(where, entry, "sources", known=sources)
        leaks = self._leaks(f"{where}.leaks", entry.get("leaks", {}))
        licenses = None
        if "licenses" in entry:
            licenses = self._licenses(f"{where}.licenses", entry["licenses"])
        if len(self.problems) > before or leaks is None:
            return None
        rest = {key: entry[key] for key in _KEYS & set(entry) - {"leaks", "licenses", "sources"}}
        return Mixture(**rest, sources=names, leaks=leaks, licenses=licenses)

    def _check_ignored(self, where: str, entry: Mapping[str, Any]) -> None:
        """Report keys without effect in a mixture of this kind, unless they have the default."""
        for key, other, values in _EFFECTIVE_WITH:
            default = {} if key == "leaks" else getattr(DEFAULT, key)
            is_used = entry.get(other, getattr(DEFAULT, other)) in values
            if entry.get(key, default) != default and not is_used:
                needed = " or ".join(f'"{value}"' for value in values)
                remedy = f"leave it out, or set {other} = {needed}"
                self.wrong(f"{where}.{key}", entry[key], f"{other} = {needed}", remedy)

    def _leaks(self, where: str, entry: object) -> Leaks | None:
        if not isinstance(entry, dict):
            self.wrong(where, entry, "a table")
            return None
        self.unknown(where, entry, _LEAK_KEYS)
        least = entry.get("least_score")
        is_number = isinstance(least, int | float) and not isinstance(least, bool)
        if least is not None and not (is_number and 0 <= least <= 1):
            self.wrong(f"{where}.least_score", least, "a number from 0 to 1")
        question_only = entry.get("question_only", "remove")
        self.choice(f"{where}.question_only", question_only, get_args(QuestionOnly))
        return Leaks(
            detectors=self._names(where, entry, "detectors", known=self._detectors),
            benchmarks=self._names(where, entry, "benchmarks"),
            splits=self._names(where, entry, "splits"),
            least_score=least,
            # Only "leak": a match with any other verdict never counts as a leak.
            verdicts=self._verdicts(f"{where}.verdicts", entry),
            question_only=question_only,
        )

    def _verdicts(self, where: str, entry: Mapping[str, Any]) -> tuple[str, ...]:
        return self.named_choices(where, entry["verdicts"], (LEAK,)) if "verdicts" in entry else ()

    def _licenses(self, where: str, entry: object) -> Licenses | None:
        if not isinstance(entry, dict):
            self.wrong(where, entry, "a table")
            return None
        self.unknown(where, entry, _LICENSE_KEYS)
        field = entry.get("field", "")
        fields = (field,) if isinstance(field, str) else self._names(where, entry, "field")
        if fields == ("",):
            self.wrong(f"{where}.field", None, "the field with the license, or several")
        self.choice(f"{where}.unknown", entry.get("unknown", "drop"), get_args(Unknown))
        allow = self._names(where, entry, "allow")
        deny = self._names(where, entry, "deny")
        if not allow and not deny:
            self.wrong(where, "neither 'allow' nor 'deny'", "at least one of them")
        denied = {_normalized(name) for name in deny}
        for name in allow:
            if _normalized(name) in denied:
                self.wrong(f"{where}.allow", repr(name), "a name that is not also in 'deny'")
        return Licenses(
            fields=fields,
            allow=allow,
            deny=deny,
            unknown=entry.get("unknown", "drop"),
        )

    def _names(
        self, where: str, entry: Mapping[str, Any], key: str, *, known: Sequence[str] = ()
    ) -> tuple[str, ...]:
        return self.names(f"{where}.{key}", entry.get(key), known=known) or ()

    def _check_control(self, mixture: Mixture, known: Mapping[str, Mixture]) -> None:
        if mixture.take != "control":
            return
        where = f"mixture {mixture.name!r}: control_of"
        treatment = known.get(mixture.control_of or "")
        if treatment is None:
            self.wrong(where, mixture.control_of, "the name of another mixture")
        elif treatment.take != "clean" or treatment.cut != "documents":
            expected = 'one with take = "clean" and cut = "documents"'
            self.wrong(where, f"{treatment.name!r}", expected)
        elif mixture.licenses is not None or mixture.leaks != Leaks() or mixture.sources:
            # The two arms of a comparison must differ in one thing only.
            self.wrong(
                where,
                "sources, leaks or licenses of its own",
                f"none: a control takes these from {treatment.name!r}",
            )


def mixture_named(mixtures: Iterable[Mixture], name: str) -> Mixture:
    """Return the mixture of this name; raise `ConfigError` if there is none.

    Names may come from partition keys, which may no longer be declared.
    """
    known = {mixture.name: mixture for mixture in mixtures}
    if name not in known:
        raise ConfigError(
            Problem(
                f"mixture {name!r}",
                "not declared in decon.toml",
                f"one of {', '.join(known)}",
                "declare it, or delete its partition in the UI",
            )
        )
    return known[name]


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
