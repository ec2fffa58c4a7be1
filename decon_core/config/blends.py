"""What a blend is to be, as decon.toml declares it: a mixture in an order, with test items or none.

    [[blend]]
    name = "garlic"
    of = "decontaminated"           # the mixture whose documents it draws
    seed = 0
    write = "dolma"                 # or "parquet"
    part_tokens = 50_000_000        # a new file after so many

    [[blend.phase]]                 # successive mixes; none: every document once
    tokens = 1_000_000              # how long it is; or documents = 10_000
    weights = { web = 3, books = 1 }    # shares of its tokens; default: as the documents are

    [[blend.contamination]]         # documents replaced by items of benchmarks, on purpose
    benchmarks = ["gsm8k"]
    splits = ["test"]               # default: all but those for training
    seen = 0.5                      # share of the items that are used; the others stay unseen
    form = "full"                   # source, target, full, apart, apart_in_batch
    template = "Q: {question}\\nA: {answer}"   # of full; or one for each benchmark
    shuffle_answers = false         # another order of the choices in every copy
    schedule = "early"              # middle, late: from 30, 60, 90 % of the tokens on, at once;
    window = [0.8, 1.0]             # uniform: anywhere in 30 to 90 %. Or any other part of them
    copies = 10                     # of each item; or
    swap = 500                      # so many documents in all; or
    ratio = 0.16                    # so many of the window's tokens
    into = ["web"]                  # sources whose documents make room; default: all
    most_per_batch = 0.05           # share of the documents of a batch that may be replaced
    batch_documents = 512

Where `form`, `schedule` or `copies` is a list, there is a blend for every combination, named after
it: `wmt-full-early-10`.
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from math import isfinite
from typing import Any, Literal, get_args

from decon_core.config.mixtures import Mixture
from decon_core.config.settings import SettingsReader
from decon_core.errors import ConfigError, Problem

Form = Literal["source", "target", "full", "apart", "apart_in_batch"]
Write = Literal["dolma", "parquet"]
Pairs = tuple[tuple[str, Any], ...]  # a table that never changes

# Where in the tokens of a blend test items go; those of one share begin there, and end when all are
# placed.
SCHEDULES: Mapping[str, tuple[float, float]] = {
    "early": (0.3, 1.0),
    "middle": (0.6, 1.0),
    "late": (0.9, 1.0),
    "uniform": (0.3, 0.9),
}
PLACEHOLDERS = ("passage", "question", "choices", "answer", "letter")


@dataclass(frozen=True, kw_only=True)
class Phase:
    """One mix of sources, up to a budget."""

    tokens: int | None = None
    documents: int | None = None
    weights: Pairs = ()  # source and share of the tokens; none: as the documents are

    @property
    def is_everything(self) -> bool:
        """Every document once."""
        return self.tokens is None and self.documents is None


@dataclass(frozen=True, kw_only=True)
class Contamination:
    """Items of benchmarks, in the place of documents."""

    benchmarks: tuple[str, ...]
    splits: tuple[str, ...] = ()  # none named: all that are not for training
    seen: float = 1.0
    form: Form = "full"
    template: str | Pairs | None = None  # for all benchmarks, for each, or the usual one
    shuffle_answers: bool = False
    schedule: str = "uniform"
    window: tuple[float, float] | None = None
    copies: int | None = None
    swap: int | None = None
    ratio: float | None = None
    into: tuple[str, ...] = ()  # none named: all
    most_per_batch: float = 0.05
    batch_documents: int = 512

    @property
    def stretch(self) -> tuple[float, float]:
        """The part of the tokens that items may stand in."""
        return self.window or SCHEDULES[self.schedule]

    @property
    def is_at_once(self) -> bool:
        """Whether they come as early in it as there is room, rather than all over it."""
        return self.window is None and self.schedule != "uniform"

    def takes(self, split: str) -> bool:
        return split in self.splits if self.splits else not is_for_training(split)

    def template_of(self, benchmark: str) -> str | None:
        if isinstance(self.template, tuple):
            return dict(self.template).get(benchmark)
        return self.template


def is_for_training(split: str) -> bool:
    """Whether items of a split may be trained on: all others are tests."""
    return bool(_TRAINING.search(split.lower()))


@dataclass(frozen=True, kw_only=True)
class Blend:
    """A stream of documents, in numbered parts."""

    name: str
    of: str
    seed: int = 0
    write: Write = "dolma"
    part_tokens: int = 50_000_000
    phases: tuple[Phase, ...] = (Phase(),)
    contamination: tuple[Contamination, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """What its outcome depends on: all of it but the name."""
        return {name: value for name, value in asdict(self).items() if name != "name"}


_KEYS = {"name", "of", "seed", "write", "part_tokens", "phase", "contamination"}
_PHASE_KEYS = {"tokens", "documents", "weights"}
_AMOUNTS = ("copies", "swap", "ratio")
_CONTAMINATION_KEYS = {
    *("benchmarks", "splits", "seen", "form", "template", "shuffle_answers", "schedule", "window"),
    *(*_AMOUNTS, "into", "most_per_batch", "batch_documents"),
}
_TRAINING = re.compile(r"(?<![a-z])train")  # train, training, auxiliary_train
_MOST = 10**15  # of anything that is counted
_SHUFFLED = re.compile(r"\{(choices|letter)\}")
_NUMBER = re.compile(r"\[\d+\]")
_OF_FULL = ("template", "shuffle_answers")
_LISTED = ("form", "schedule", "copies")  # of which a list makes several blends


def read_blends(
    value: object,
    *,
    where: str,
    mixtures: Sequence[Mixture],
    sources: Mapping[str, bool],
) -> tuple[tuple[Blend, ...], list[Problem]]:
    """The blends of a configuration, and all that is wrong with them.

    `sources` says of each whether a test item can take the place of one of its documents.
    """
    reader = _Reader(where, {mixture.name: mixture for mixture in mixtures}, sources)
    return (reader.blends(value) if value is not None else ()), reader.problems


class _Reader(SettingsReader):
    """Takes the tables apart and collects what is wrong on the way."""

    def __init__(
        self, where: str, mixtures: Mapping[str, Mixture], sources: Mapping[str, bool]
    ) -> None:
        super().__init__(where)
        self._mixtures, self._sources = mixtures, sources

    def blends(self, value: object) -> tuple[Blend, ...]:
        entries = self._tables("blend", value)
        blends = [
            blend
            for number, entry in enumerate(entries)
            for blend in self._all_of(f"blend[{number}]", entry)
        ]
        names = [blend.name for blend in blends]
        self.named_tables("blend", names, what="blend")
        for name in sorted({name for name in names if name in self._mixtures}):
            self.wrong("blend", f"{name!r}", "a name that no mixture has")
        return tuple(blends)

    def _tables(self, where: str, value: object) -> list[dict[str, Any]]:
        """A list of tables, as `[[...]]` makes one."""
        is_list = isinstance(value, list) and all(isinstance(one, dict) for one in value)
        if not is_list or not value:
            self.wrong(where, value, f"one or more [[{re.sub(_NUMBER, '', where)}]]")
            return []
        return list(value) if isinstance(value, list) else []

    def _all_of(self, where: str, entry: Mapping[str, Any]) -> Iterator[Blend]:
        """One blend, or one for every combination of what is listed."""
        tables = entry.get("contamination", [])
        if not isinstance(tables, list) or not all(isinstance(one, dict) for one in tables):
            self.wrong(f"{where}.contamination", tables, "tables: [[blend.contamination]]")
            return
        listed = [
            (number, key, table[key])
            for number, table in enumerate(tables)
            for key in _LISTED
            if isinstance(table.get(key), list)
        ]
        before = len(self.problems)
        for number, key, values in listed:
            if key == "form" and values and "full" not in values:
                self._say_nothing_in_full(f"{where}.contamination[{number}]", tables[number])
            if not values:
                self.wrong(f"{where}.contamination[{number}].{key}", "an empty list", "some values")
        if len(self.problems) > before:
            return
        for values in product(*(values for _, _, values in listed)):
            chosen = [dict(table) for table in tables]
            for (number, key, _), one in zip(listed, values, strict=True):
                chosen[number][key] = one
                if key == "form" and one != "full":  # what the others of the list say in full
                    for name in _OF_FULL:
                        chosen[number].pop(name, None)
            named = "-".join([str(entry.get("name")), *map(str, values)])
            found = self._blend(where, {**entry, "contamination": chosen}, named)
            if found is None:
                return  # what is wrong with one is wrong with all
            yield found

    def _say_nothing_in_full(self, where: str, table: Mapping[str, Any]) -> None:
        for key in _OF_FULL:
            if key in table:
                self.wrong(f"{where}.{key}", f"form = {table['form']!r}", '"full" among the forms')

    def _blend(self, where: str, entry: Mapping[str, Any], name: str) -> Blend | None:
        before = len(self.problems)
        self.unknown(where, entry, _KEYS)
        if not isinstance(entry.get("name"), str):
            self.wrong(f"{where}.name", entry.get("name"), "a text")
        self._whole(where, entry, "seed", least=None)
        self._whole(where, entry, "part_tokens", least=1)
        self.choice(f"{where}.write", entry.get("write", "dolma"), get_args(Write))
        known = self._sources_of(f"{where}.of", entry.get("of"))
        phases: tuple[Phase, ...] = (Phase(),)
        if "phase" in entry:
            phases = tuple(
                self._phase(f"{where}.phase[{number}]", table, known)
                for number, table in enumerate(self._tables(f"{where}.phase", entry["phase"]))
            )
        contamination = tuple(
            self._contamination(f"{where}.contamination[{number}]", table, known)
            for number, table in enumerate(entry["contamination"])
        )
        if len(self.problems) > before:
            return None
        rest = {key: entry[key] for key in ("of", "seed", "write", "part_tokens") if key in entry}
        return Blend(**rest, name=name, phases=phases, contamination=contamination)

    def _sources_of(self, where: str, name: object) -> tuple[str, ...]:
        """The sources of the mixture that a blend is made of."""
        mixture = self._mixtures.get(name) if isinstance(name, str) else None
        if mixture is None:
            known = ", ".join(self._mixtures)
            self.wrong(where, name, f"the name of a mixture: one of {known}")
            return tuple(self._sources)
        if mixture.write != "shards":
            self.wrong(where, f"{mixture.name!r}", 'a mixture with write = "shards"')
        return mixture.sources or tuple(self._sources)

    def _phase(self, where: str, entry: Mapping[str, Any], known: Sequence[str]) -> Phase:
        self.unknown(where, entry, _PHASE_KEYS)
        for key in ("tokens", "documents"):
            self._whole(where, entry, key, least=1)
        if "tokens" in entry and "documents" in entry:
            self.wrong(where, "both 'tokens' and 'documents'", "one of them: how long it is")
        weights = entry.get("weights", {})
        is_table = isinstance(weights, dict) and all(map(_is_number, weights.values()))
        is_empty = "weights" in entry and not weights
        if not is_table or is_empty or any(weight <= 0 for weight in weights.values()):
            self.wrong(f"{where}.weights", weights, "sources with numbers above 0")
            weights = {}
        for name in weights:
            if name not in known:
                self.wrong(f"{where}.weights", repr(name), f"one of {', '.join(known)}")
        if weights and not {"tokens", "documents"} & set(entry):
            self.wrong(
                where, "weights alone", "'tokens' or 'documents' beside them: how long it is"
            )
        return Phase(
            tokens=entry.get("tokens"),
            documents=entry.get("documents"),
            weights=tuple(sorted(weights.items())),
        )

    def _contamination(
        self, where: str, entry: Mapping[str, Any], known: Sequence[str]
    ) -> Contamination:
        self.unknown(where, entry, _CONTAMINATION_KEYS)
        found: dict[str, Any] = {
            key: self.names(f"{where}.{key}", entry.get(key), required=key == "benchmarks") or ()
            for key in ("benchmarks", "splits")
        }
        found["into"] = self._into(f"{where}.into", entry.get("into"), known)
        amounts = [key for key in _AMOUNTS if key in entry]
        if len(amounts) != 1:
            told = " and ".join(amounts) or "no amount"
            self.wrong(where, told, f"one of {', '.join(_AMOUNTS)}")
        for key in ("copies", "swap", "batch_documents"):
            self._whole(where, entry, key, least=1)
        self._between(where, entry, "seen", 0.0, 1.0)
        self._between(where, entry, "ratio", 0.0, 1.0, is_open=True)
        self._between(where, entry, "most_per_batch", 0.0, 1.0)
        self.choice(f"{where}.form", entry.get("form", "full"), get_args(Form))
        if str(entry.get("form")).startswith("apart") and _is_odd(entry.get("swap")):
            self.wrong(f"{where}.swap", entry["swap"], "an even number: an item is two documents")
        self._when(where, entry)
        self._what(where, entry)
        for key in ("seen", "form", "shuffle_answers", "schedule", "most_per_batch"):
            if key in entry:
                found[key] = entry[key]
        found |= {key: entry[key] for key in (*_AMOUNTS, "batch_documents") if key in entry}
        template = entry.get("template")
        found["template"] = (
            tuple(sorted(template.items())) if isinstance(template, dict) else template
        )
        found["window"] = tuple(entry["window"]) if _is_window(entry.get("window")) else None
        return Contamination(**found)

    def _into(self, where: str, value: object, known: Sequence[str]) -> tuple[str, ...]:
        named = self.names(where, value, known=known) or ()
        for name in named or known:
            if not self._sources.get(name, True):
                found = f"{name!r}, whose documents have several fields"
                self.wrong(where, found, "sources with one text field, or with messages")
        return named

    def _when(self, where: str, entry: Mapping[str, Any]) -> None:
        if "window" in entry and not _is_window(entry["window"]):
            self.wrong(f"{where}.window", entry["window"], "two numbers from 0 to 1, ascending")
        if "window" in entry and "schedule" in entry:
            self.wrong(where, "both 'window' and 'schedule'", "one of them")
        self.choice(f"{where}.schedule", entry.get("schedule", "uniform"), tuple(SCHEDULES))
        if "ratio" in entry and entry.get("form") in ("apart", "apart_in_batch"):
            self.wrong(f"{where}.form", entry["form"], "source, target or full beside 'ratio'")
        if "ratio" in entry and "most_per_batch" in entry:
            self.wrong(where, "'most_per_batch' beside 'ratio'", "one of them: a ratio is a share")

    def _what(self, where: str, entry: Mapping[str, Any]) -> None:
        shuffle = entry.get("shuffle_answers", False)
        if not isinstance(shuffle, bool):
            self.wrong(f"{where}.shuffle_answers", shuffle, "true or false")
        template = entry.get("template")
        if template is None and not shuffle:
            return
        if entry.get("form", "full") != "full":
            key = "template" if template is not None else "shuffle_answers"
            self.wrong(f"{where}.{key}", f"form = {entry['form']!r}", 'form = "full" beside it')
        if template == {}:
            self.wrong(f"{where}.template", "an empty table", "a text, or one for a benchmark")
        if shuffle and isinstance(template, str) and not _SHUFFLED.search(template):
            found = "a template without {choices} and {letter}"
            self.wrong(f"{where}.shuffle_answers", found, "one with them")
        templates = template if isinstance(template, dict) else {"": template}
        for name, one in templates.items() if template is not None else ():
            place = f"{where}.template.{name}" if name else f"{where}.template"
            if not isinstance(one, str) or not _is_template(one):
                told = ", ".join(f"{{{placeholder}}}" for placeholder in PLACEHOLDERS)
                self.wrong(
                    place, one, f"a text with {{question}} or {{answer}}, and of others {told}"
                )
            elif isinstance(template, dict) and name not in entry.get("benchmarks", ()):
                self.wrong(place, name, "one of the benchmarks beside it")

    def _whole(self, where: str, entry: Mapping[str, Any], key: str, *, least: int | None) -> None:
        value = entry.get(key)
        if value is None:
            return
        is_whole = isinstance(value, int) and not isinstance(value, bool)
        if not is_whole or abs(value) > _MOST or (least is not None and value < least):
            told = "a whole number" if least is None else f"a whole number of {least} or more"
            self.wrong(f"{where}.{key}", value, told)

    def _between(
        self,
        where: str,
        entry: Mapping[str, Any],
        key: str,
        low: float,
        high: float,
        *,
        is_open: bool = False,
    ) -> None:
        value = entry.get(key)
        if value is None or (_is_number(value) and low < value <= high - 1e-9 * is_open):
            return
        end = "below" if is_open else "up to"
        told = f"a number above {low:g} and {end} {high:g}"
        self.wrong(f"{where}.{key}", value, told)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)


def _is_odd(value: object) -> bool:
    return isinstance(value, int) and value % 2 == 1


def _is_window(value: object) -> bool:
    return (
        isinstance(value, list)
        and len(value) == 2
        and all(map(_is_number, value))
        and 0 <= value[0] < value[1] <= 1
    )


def _is_template(text: str) -> bool:
    try:
        found = [
            (name, form or conversion)
            for _, name, form, conversion in string.Formatter().parse(text)
            if name is not None
        ]
    except ValueError:
        return False
    names = {name for name, _ in found}
    is_plain = names <= set(PLACEHOLDERS) and not any(form for _, form in found)
    return is_plain and bool(names & {"question", "answer"})


def blend_named(blends: Iterable[Blend], name: str) -> Blend:
    """One of them; a partition key may have been typed by hand."""
    known = {blend.name: blend for blend in blends}
    if name not in known:
        raise ConfigError(
            Problem(
                f"blend {name!r}",
                "not declared in decon.toml",
                f"one of {', '.join(known) or 'none'}",
                "declare it; or, in the UI, delete its partition",
            )
        )
    return known[name]


def unknown_in_blends(
    blends: Iterable[Blend], known: Mapping[str, Sequence[str]]
) -> Iterator[Problem]:
    """Benchmarks that blends name and nobody knows, and splits that one of theirs lacks.

    `known` are the splits of each benchmark.
    """
    for blend in blends:
        where = f"blend {blend.name!r}: contamination"
        for contamination in blend.contamination:
            for name in contamination.benchmarks:
                if name not in known:
                    yield Problem(f"{where}.benchmarks", repr(name), f"one of {', '.join(known)}")
                    continue
                for split in contamination.splits:
                    if split not in known[name]:
                        expected = f"one of {', '.join(known[name])}: the splits of {name}"
                        yield Problem(f"{where}.splits", repr(split), expected)
