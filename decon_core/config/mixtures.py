"""What a mixture is to be, as decon.toml declares it.

    [[mixture]]
    name = "decontaminated"          # everything but the documents that leaked
    sources = ["web", "chat"]        # optional: only these
    cut = "documents"                # what goes of a leak: documents, turns, or spans
    mask = ""                        # what stands where a span stood
    write = "shards"                 # or "attributes": Dolma's files of them, for its mixer;
                                     # "dolma", "parquet": the documents in these layouts

    [mixture.leaks]                  # which of the policy's calls count; all optional
    detectors = ["decon"]
    benchmarks = ["gsm8k"]
    splits = ["test"]
    least_score = 0.9                # or what a person called a leak, whatever its score
    verdicts = ["leak"]              # only what a person called a leak
    question_only = "remove"         # or "keep": questions that were found without their answer

    [mixture.licenses]               # optional: whatever is taken, only under these licenses
    field = "license"                # or several: the first that names one counts
    allow = ["CC-BY-*", "MIT"]       # or deny = [...], or both
    unknown = "drop"                 # or "keep": rows that name none, or "unknown"

    [[mixture]]
    name = "original"
    take = "everything"

    [[mixture]]
    name = "leaked"
    take = "leaks"                   # the contaminated documents alone

    [[mixture]]
    name = "control"
    take = "control"                 # as many documents and tokens fewer as ...
    control_of = "decontaminated"    # ... this one, per source, drawn from those that it keeps
    seed = 0

Without any, there is one: the corpus without the documents that leaked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from fnmatch import fnmatchcase
from typing import Any, Literal, get_args

from decon_core.config.policy import RULES
from decon_core.config.settings import SettingsReader
from decon_core.config.verdicts import LEAK
from decon_core.errors import ConfigError, Problem
from decon_core.wording import counted

Take = Literal["clean", "everything", "leaks", "control"]
Cut = Literal["documents", "turns", "spans"]
Unknown = Literal["drop", "keep"]
Write = Literal["shards", "attributes", "dolma", "parquet"]
QuestionOnly = Literal["remove", "keep"]


_MOST_NAMED = 8  # benchmarks in one line of text


@dataclass(frozen=True, kw_only=True)
class Leaks:
    """Which of the calls that the policy makes count as leaks; nothing named: all of them.

    A question that was found without its answer is no leak, but by default it goes with them: a
    model that is trained on it has seen what it will be asked.
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
        """Whether an entry is a leak here, or question-only and goes with the leaks."""
        is_asked_for = entry["is_contaminated"] or (
            self.question_only == "remove" and entry["is_question_only"]
        )
        return bool(
            is_asked_for
            and (not self.detectors or entry["detector"] in self.detectors)
            and self.needs(entry["benchmark"])
            and (not self.splits or entry["split"] in self.splits)
            and (not self.verdicts or entry["verdict"] in self.verdicts)
            # Or whoever confirmed a leak with a low score would take it out of a mixture's leaks.
            and (self.least_score is None or self._is_sure(entry, self.least_score))
        )

    def described(self, known: Sequence[str]) -> str:
        """Which leaks these are, in words: `known` are the benchmarks that are looked for."""
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
            *([] if self.least_score is None else [f"from a score of {self.least_score:g} on"]),
            *([f"with the verdict {' or '.join(self.verdicts)}"] if self.verdicts else []),
        ]
        return f"{listed} ({'; '.join(limits)})"

    def _is_sure(self, entry: Mapping[str, Any], least: float) -> bool:
        return bool(entry["score"] >= least or entry["verdict"] == LEAK)


@dataclass(frozen=True, kw_only=True)
class Licenses:
    """Under which licenses a document is taken. Names are SPDX's, in any case; `*` is anything."""

    fields: tuple[str, ...]  # of a row the first that names one counts
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    unknown: Unknown = "drop"

    def takes(self, found: str | None) -> bool:
        name = _plain(found or "")
        if not names_license(name):
            return self.unknown == "keep"
        is_allowed = not self.allow or _is_one_of(name, self.allow)
        return is_allowed and not _is_one_of(name, self.deny)


# What stands in the field of many corpora, and SPDX's own words for it.
_SAYING_NOTHING = frozenset({"", "unknown", "none", "noassertion"})


def names_license(text: str) -> bool:
    """Whether a text says under which license something stands; "unknown", say, does not."""
    return _plain(text) not in _SAYING_NOTHING


def _plain(name: str) -> str:
    return name.strip().casefold()


def _is_one_of(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(name, pattern.casefold()) for pattern in patterns)


@dataclass(frozen=True, kw_only=True)
class Mixture:
    """One variant of the data."""

    name: str
    take: Take = "clean"
    sources: tuple[str, ...] = ()  # none named: all
    cut: Cut = "documents"
    mask: str = ""
    write: Write = "shards"
    leaks: Leaks = field(default_factory=Leaks)
    licenses: Licenses | None = None
    control_of: str | None = None
    seed: int = 0

    def to_json(self) -> dict[str, Any]:
        """What its outcome depends on: all of it but the name."""
        return {name: value for name, value in asdict(self).items() if name != "name"}

    def has_source(self, name: str) -> bool:
        return not self.sources or name in self.sources

    @property
    def needs_leaks(self) -> bool:
        """Whether it can be told only when the shards were scanned against the benchmarks."""
        return self.take != "everything"


DEFAULT = Mixture(name="decontaminated")

_KEYS = {
    *("name", "take", "sources", "cut", "mask", "write"),
    *("leaks", "licenses", "control_of", "seed"),
}
# What only some mixtures look at, and what it takes for that. Elsewhere such a key would do nothing
# without a word, and whoever wrote it believe that it did. (What a control has of its treatment is
# told with the treatment.)
_LOOKED_AT: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("cut", "take", ("clean",)),
    ("mask", "cut", ("spans",)),
    ("leaks", "take", ("clean", "leaks", "control")),
    ("control_of", "take", ("control",)),
    ("seed", "take", ("control",)),
)
_LEAK_KEYS = {"detectors", "benchmarks", "splits", "least_score", "verdicts", "question_only"}
_LICENSE_KEYS = {"field", "allow", "deny", "unknown"}


def read_mixtures(
    value: object, *, where: str, sources: Sequence[str], rules: Sequence[str] = RULES
) -> tuple[tuple[Mixture, ...], list[Problem]]:
    """The mixtures of a configuration, and all that is wrong with them. None declared: one."""
    if value is None:
        return (DEFAULT,), []
    reader = _Reader(where, rules)
    return reader.mixtures(value, sources), reader.problems


class _Reader(SettingsReader):
    """Takes the tables apart and collects what is wrong on the way."""

    def __init__(self, where: str, rules: Sequence[str]) -> None:
        super().__init__(where)
        self._rules = rules

    def mixtures(self, value: object, sources: Sequence[str]) -> tuple[Mixture, ...]:
        if not isinstance(value, list) or not value:
            self.wrong("mixture", value, "one or more [[mixture]]")
            return ()
        found = [
            mixture
            for number, entry in enumerate(value)
            if (mixture := self._mixture(f"mixture[{number}]", entry, sources))
        ]
        self.named_tables("mixture", [mixture.name for mixture in found], what="mixture")
        by_name = {mixture.name: mixture for mixture in found}
        for mixture in found:
            self._check_control(mixture, by_name)
        return tuple(found)

    def _mixture(self, where: str, entry: object, sources: Sequence[str]) -> Mixture | None:
        if not isinstance(entry, dict):
            self.wrong(where, entry, "a table")
            return None
        before = len(self.problems)
        self.unknown(where, entry, _KEYS)
        for key, kind, told in (
            ("name", str, "a text"),
            ("mask", str, "a text"),
            ("control_of", str, "the name of a mixture"),
            ("seed", int, "a whole number"),
        ):
            if key in entry and (not isinstance(entry[key], kind) or entry[key] is True):
                self.wrong(f"{where}.{key}", entry[key], told)
        if "name" not in entry:
            self.wrong(f"{where}.name", None, "a text")
        self.choice(f"{where}.take", entry.get("take", "clean"), get_args(Take))
        self.choice(f"{where}.cut", entry.get("cut", "documents"), get_args(Cut))
        self.choice(f"{where}.write", entry.get("write", "shards"), get_args(Write))
        if entry.get("write") == "attributes" and entry.get("cut", "documents") != "documents":
            self.wrong(f"{where}.cut", entry["cut"], "documents: attributes say where spans are")
        self._idle(where, entry)
        named = self._some(where, entry, "sources", known=sources)
        leaks = self._leaks(f"{where}.leaks", entry.get("leaks", {}))
        licenses = None
        if "licenses" in entry:
            licenses = self._licenses(f"{where}.licenses", entry["licenses"])
        if len(self.problems) > before or leaks is None:
            return None
        rest = {key: entry[key] for key in _KEYS & set(entry) - {"leaks", "licenses", "sources"}}
        return Mixture(**rest, sources=named, leaks=leaks, licenses=licenses)

    def _idle(self, where: str, entry: Mapping[str, Any]) -> None:
        """Keys that a mixture of this kind does not look at, and that say more than a default."""
        for key, other, values in _LOOKED_AT:
            default = {} if key == "leaks" else getattr(DEFAULT, key)
            is_used = entry.get(other, getattr(DEFAULT, other)) in values
            if entry.get(key, default) != default and not is_used:
                needed = " or ".join(f'"{value}"' for value in values)
                remedy = f"leave it out, or say {other} = {needed} beside it"
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
            detectors=self._some(where, entry, "detectors", known=self._rules),
            benchmarks=self._some(where, entry, "benchmarks"),
            splits=self._some(where, entry, "splits"),
            least_score=least,
            # Nobody's leaks are those that a person took for anything else.
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
        named = entry.get("field", "")
        fields = (named,) if isinstance(named, str) else self._some(where, entry, "field")
        if fields == ("",):
            self.wrong(f"{where}.field", None, "the field with the license, or several")
        self.choice(f"{where}.unknown", entry.get("unknown", "drop"), get_args(Unknown))
        allow = self._some(where, entry, "allow")
        deny = self._some(where, entry, "deny")
        if not allow and not deny:
            self.wrong(where, "neither 'allow' nor 'deny'", "at least one of them")
        denied = {_plain(name) for name in deny}
        for name in allow:
            if _plain(name) in denied:
                self.wrong(f"{where}.allow", repr(name), "a name that is not in 'deny', too")
        return Licenses(
            fields=fields,
            allow=allow,
            deny=deny,
            unknown=entry.get("unknown", "drop"),
        )

    def _some(
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
            # Arms that are to differ in one thing only.
            self.wrong(
                where,
                "sources, leaks or licenses of its own",
                f"those of {treatment.name!r}: a control differs in nothing else",
            )


def mixture_named(mixtures: Iterable[Mixture], name: str) -> Mixture:
    """One of them; a partition key may have been typed by hand."""
    known = {mixture.name: mixture for mixture in mixtures}
    if name not in known:
        raise ConfigError(
            Problem(
                f"mixture {name!r}",
                "not declared in decon.toml",
                f"one of {', '.join(known)}",
                "declare it; or, in the UI, delete its partition",
            )
        )
    return known[name]


def treatment_of(mixture: Mixture, mixtures: Iterable[Mixture]) -> Mixture:
    """The mixture that a control is one of."""
    return mixture_named(mixtures, str(mixture.control_of))


def unknown_names(
    mixtures: Iterable[Mixture], known: Mapping[str, Sequence[str]]
) -> Iterator[Problem]:
    """Benchmarks that mixtures name and nobody knows, and splits that none of theirs has.

    `known` are the splits of each benchmark.
    """
    for mixture in mixtures:
        where = f"mixture {mixture.name!r}: leaks"
        for name in mixture.leaks.benchmarks:
            if name not in known:
                yield Problem(f"{where}.benchmarks", repr(name), f"one of {', '.join(known)}")
        there = {
            split for name, splits in known.items() if mixture.leaks.needs(name) for split in splits
        }
        for split in mixture.leaks.splits if there else ():
            if split not in there:
                expected = f"one of {', '.join(sorted(there))}: the splits of its benchmarks"
                yield Problem(f"{where}.splits", repr(split), expected)
