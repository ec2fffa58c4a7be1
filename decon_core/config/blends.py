"""The [[blend]] tables of decon.toml.

    [[blend]]
    name = "garlic"
    of = "decontaminated"           # the mixture to draw documents from
    seed = 0
    write = "dolma"                 # or "parquet"
    part_tokens = 50_000_000        # start a new file after so many tokens

    [[blend.phase]]                 # successive mixes of sources; none: every document once
    tokens = 1_000_000              # length of the phase; or documents = 10_000
    weights = { web = 3, books = 1 }    # shares of its tokens; default: as in the mixture

    [[blend.contamination]]         # replaces documents by items of benchmarks
    benchmarks = ["gsm8k"]
    splits = ["test"]               # default: all splits except those for training
    seen = 0.5                      # share of the items to insert; the others stay unseen
    form = "full"                   # source, target, full, apart, apart_in_batch
    template = "Q: {question}\\nA: {answer}"   # for form "full"; or a table with one per benchmark
    shuffle_answers = false         # shuffle the choices anew in every copy
    schedule = "early"              # early, middle, late: as soon as possible after 30, 60, 90 % of
                                    # the tokens; uniform: anywhere from 30 to 90 %
    window = [0.8, 1.0]             # instead of a schedule: anywhere in this share of the tokens
    copies = 10                     # of each item; or
    swap = 500                      # number of documents to replace; or
    ratio = 0.16                    # share of the window's tokens to replace
    into = ["web"]                  # sources whose documents may be replaced; default: all
    most_per_batch = 0.05           # share of the documents of a batch that may be replaced
    batch_documents = 512

If `form`, `schedule` or `copies` is a list, there is one blend for every combination of values,
with these in its name: `wmt-full-early-10`.
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
Pairs = tuple[tuple[str, Any], ...]  # an immutable table

# The share of a blend's tokens in which items go. All but "uniform" fill it from its start.
SCHEDULES: Mapping[str, tuple[float, float]] = {
    "early": (0.3, 1.0),
    "middle": (0.6, 1.0),
    "late": (0.9, 1.0),
    "uniform": (0.3, 0.9),
}
PLACEHOLDERS = ("passage", "question", "choices", "answer", "letter")


@dataclass(frozen=True, kw_only=True)
class Phase:
    """A weighted mix of sources with a budget of tokens or documents."""

    tokens: int | None = None
    documents: int | None = None
    weights: Pairs = ()  # source and share of the tokens; empty: as in the mixture

    @property
    def is_everything(self) -> bool:
        """Whether the phase has no budget and takes every document once."""
        return self.tokens is None and self.documents is None


@dataclass(frozen=True, kw_only=True)
class Contamination:
    """Items of benchmarks that replace documents."""

    benchmarks: tuple[str, ...]
    splits: tuple[str, ...] = ()  # empty: all that are not for training
    seen: float = 1.0
    form: Form = "full"
    template: str | Pairs | None = None  # for all benchmarks, by benchmark, or None: default
    shuffle_answers: bool = False
    schedule: str = "uniform"
    window: tuple[float, float] | None = None
    copies: int | None = None
    swap: int | None = None
    ratio: float | None = None
    into: tuple[str, ...] = ()  # empty: all
    most_per_batch: float = 0.05
    batch_documents: int = 512

    @property
    def token_range(self) -> tuple[float, float]:
        """The range of the tokens, in shares, in which items may go."""
        return self.window or SCHEDULES[self.schedule]

    @property
    def is_front_loaded(self) -> bool:
        """Whether items go as early as possible, rather than anywhere in the range."""
        return self.window is None and self.schedule != "uniform"

    def takes(self, split: str) -> bool:
        return split in self.splits if self.splits else not is_for_training(split)

    def template_of(self, benchmark: str) -> str | None:
        if isinstance(self.template, tuple):
            return dict(self.template).get(benchmark)
        return self.template


def is_for_training(split: str) -> bool:
    """Return whether a split is for training, by its name; all others are test splits."""
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
        """Return all settings but the name, for fingerprints and manifests."""
        return {name: value for name, value in asdict(self).items() if name != "name"}


_KEYS = {"name", "of", "seed", "write", "part_tokens", "phase", "contamination"}
_PHASE_KEYS = {"tokens", "documents", "weights"}
_AMOUNTS = ("copies", "swap", "ratio")
_CONTAMINATION_KEYS = {
    *("benchmarks", "splits", "seen", "form", "template", "shuffle_answers", "schedule", "window"),
    *(*_AMOUNTS, "into", "most_per_batch", "batch_documents"),
}
_TRAINING = re.compile(r"(?<![a-z])train")  # train, training, auxiliary_train
_MOST = 10**15  # upper limit of whole numbers
_SHUFFLED = re.compile(r"\{(choices|letter)\}")
_NUMBER = re.compile(r"\[\d+\]")
_ONLY_FULL = ("template", "shuffle_answers")  # only with form = "full"
_LISTABLE = ("form", "schedule", "copies")  # a list makes several blends


def read_blends(
    value: object,
    *,
    where: str,
    mixtures: Sequence[Mixture],
    sources: Mapping[str, bool],
) -> tuple[tuple[Blend, ...], list[Problem]]:
    """Parse the blends of a configuration; return them and all problems.

    `sources`: for each source, whether an item can replace one of its documents.
    """
    reader = _Reader(where, {mixture.name: mixture for mixture in mixtures}, sources)
    return (reader.blends(value) if value is not None else ()), reader.problems


class _Reader(SettingsReader):
    """Parses [[blend]] tables and collects their problems."""

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
            for blend in self._expand(f"blend[{number}]", entry)
        ]
        names = [blend.name for blend in blends]
        self.named_tables("blend", names, what="blend")
        for name in sorted({name for name in names if name in self._mixtures}):
            self.wrong("blend", f"{name!r}", "a name that no mixture has")
        return tuple(blends)

    def _tables(self, where: str, value: object) -> list[dict[str, Any]]:
        """Return a list of tables; report anything else."""
        is_list = isinstance(value, list) and all(isinstance(one, dict) for one in value)
        if not is_list or not value:
            self.wrong(where, value, f"one or more [[{re.sub(_NUMBER, '', where)}]]")
            return []
        return list(value) if isinstance(value, list) else []

    def _expand(self, where: str, entry: Mapping[str, Any]) -> Iterator[Blend]:
        """Yield one blend, or one for every combination of listed values."""
        tables = entry.get("contamination", [])
        if not isinstance(tables, list) or not all(isinstance(one, dict) for one in tables):
            self.wrong(f"{where}.contamination", tables, "tables: [[blend.contamination]]")
            return
        listed = [
            (number, key, table[key])
            for number, table in enumerate(tables)
            for key in _LISTABLE
            if isinstance(table.get(key), list)
        ]
        before = len(self.problems)
        for number, key, values in listed:
            if key == "form" and values and "full" not in values:
                self._check_only_full(f"{where}.contamination[{number}]", tables[number])
            if not values:
                self.wrong(f"{where}.contamination[{number}].{key}", "an empty list", "some values")
        if len(self.problems) > before:
            return
        for values in product(*(values for _, _, values in listed)):
            chosen = [dict(table) for table in tables]
            for (number, key, _), one in zip(listed, values, strict=True):
                chosen[number][key] = one
                if key == "form" and one != "full":  # they apply to "full" in the same list
                    for name in _ONLY_FULL:
                        chosen[number].pop(name, None)
            named = "-".join([str(entry.get("name")), *map(str, values)])
            blend = self._blend(where, {**entry, "contamination": chosen}, named)
            if blend is None:
                return  # the others have the same problems
            yield blend

    def _check_only_full(self, where: str, table: Mapping[str, Any]) -> None:
        for key in _ONLY_FULL:
            if key in table:
                self.wrong(f"{where}.{key}", f"form = {table['form']!r}", '"full" among the forms')

    def _blend(self, where: str, entry: Mapping[str, Any], name: str) -> Blend | None:
        before = len(self.problems)
        self.unknown(where, entry, _KEYS)
        if not isinstance(entry.get("name"), str):
            self.wrong(f"{where}.name", entry.get("name"), "a string")
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
        """Return the sources of the mixture that a blend draws from."""
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
            self.wrong(where, "both 'tokens' and 'documents'", "one of them: the length")
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
            expected = "'tokens' or 'documents' as well: the length of the phase"
            self.wrong(where, "weights alone", expected)
        return Phase(
            tokens=entry.get("tokens"),
            documents=entry.get("documents"),
            weights=tuple(sorted(weights.items())),
        )

    def _contamination(
        self, where: str, entry: Mapping[str, Any], known: Sequence[str]
    ) -> Contamination:
        self.unknown(where, entry, _CONTAMINATION_KEYS)
        values: dict[str, Any] = {
            key: self.names(f"{where}.{key}", entry.get(key), required=key == "benchmarks") or ()
            for key in ("benchmarks", "splits")
        }
        values["into"] = self._into(f"{where}.into", entry.get("into"), known)
        amounts = [key for key in _AMOUNTS if key in entry]
        if len(amounts) != 1:
            found = " and ".join(amounts) or "no amount"
            self.wrong(where, found, f"one of {', '.join(_AMOUNTS)}")
        for key in ("copies", "swap", "batch_documents"):
            self._whole(where, entry, key, least=1)
        self._between(where, entry, "seen", 0.0, 1.0)
        self._between(where, entry, "ratio", 0.0, 1.0, is_open=True)
        self._between(where, entry, "most_per_batch", 0.0, 1.0)
        self.choice(f"{where}.form", entry.get("form", "full"), get_args(Form))
        if str(entry.get("form")).startswith("apart") and _is_odd(entry.get("swap")):
            self.wrong(f"{where}.swap", entry["swap"], "an even number: two documents per item")
        self._check_places(where, entry)
        self._check_texts(where, entry)
        for key in ("seen", "form", "shuffle_answers", "schedule", "most_per_batch"):
            if key in entry:
                values[key] = entry[key]
        values |= {key: entry[key] for key in (*_AMOUNTS, "batch_documents") if key in entry}
        template = entry.get("template")
        values["template"] = (
            tuple(sorted(template.items())) if isinstance(template, dict) else template
        )
        values["window"] = tuple(entry["window"]) if _is_window(entry.get("window")) else None
        return Contamination(**values)

    def _into(self, where: str, value: object, known: Sequence[str]) -> tuple[str, ...]:
        names = self.names(where, value, known=known) or ()
        for name in names or known:
            if not self._sources.get(name, True):
                found = f"{name!r}, whose documents have several fields"
                self.wrong(where, found, "sources with one text field, or with messages")
        return names

    def _check_places(self, where: str, entry: Mapping[str, Any]) -> None:
        if "window" in entry and not _is_window(entry["window"]):
            self.wrong(f"{where}.window", entry["window"], "two numbers from 0 to 1, ascending")
        if "window" in entry and "schedule" in entry:
            self.wrong(where, "both 'window' and 'schedule'", "one of them")
        self.choice(f"{where}.schedule", entry.get("schedule", "uniform"), tuple(SCHEDULES))
        if "ratio" in entry and entry.get("form") in ("apart", "apart_in_batch"):
            self.wrong(f"{where}.form", entry["form"], "source, target or full with 'ratio'")
        if "ratio" in entry and "most_per_batch" in entry:
            self.wrong(where, "both 'most_per_batch' and 'ratio'", "one: a ratio is a share")

    def _check_texts(self, where: str, entry: Mapping[str, Any]) -> None:
        shuffle = entry.get("shuffle_answers", False)
        if not isinstance(shuffle, bool):
            self.wrong(f"{where}.shuffle_answers", shuffle, "true or false")
        template = entry.get("template")
        if template is None and not shuffle:
            return
        if entry.get("form", "full") != "full":
            key = "template" if template is not None else "shuffle_answers"
            self.wrong(f"{where}.{key}", f"form = {entry['form']!r}", 'form = "full" with it')
        if template == {}:
            self.wrong(f"{where}.template", "an empty table", "a string, or one per benchmark")
        if shuffle and isinstance(template, str) and not _SHUFFLED.search(template):
            found = "a template without {choices} and {letter}"
            self.wrong(f"{where}.shuffle_answers", found, "one with them")
        templates = template if isinstance(template, dict) else {"": template}
        for name, one in templates.items() if template is not None else ():
            place = f"{where}.template.{name}" if name else f"{where}.template"
            if not isinstance(one, str) or not _is_template(one):
                names = ", ".join(f"{{{placeholder}}}" for placeholder in PLACEHOLDERS)
                expected = f"a string with {{question}} or {{answer}}; placeholders: {names}"
                self.wrong(place, one, expected)
            elif isinstance(template, dict) and name not in entry.get("benchmarks", ()):
                self.wrong(place, name, "one of the benchmarks of this contamination")

    def _whole(self, where: str, entry: Mapping[str, Any], key: str, *, least: int | None) -> None:
        value = entry.get(key)
        if value is None:
            return
        is_whole = isinstance(value, int) and not isinstance(value, bool)
        if not is_whole or abs(value) > _MOST or (least is not None and value < least):
            expected = "a whole number" if least is None else f"a whole number of {least} or more"
            self.wrong(f"{where}.{key}", value, expected)

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
        self.wrong(f"{where}.{key}", value, f"a number above {low:g} and {end} {high:g}")


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
        fields = [
            (name, form or conversion)
            for _, name, form, conversion in string.Formatter().parse(text)
            if name is not None
        ]
    except ValueError:
        return False
    names = {name for name, _ in fields}
    is_plain = names <= set(PLACEHOLDERS) and not any(form for _, form in fields)
    return is_plain and bool(names & {"question", "answer"})


def blend_named(blends: Iterable[Blend], name: str) -> Blend:
    """Return the blend of this name; raise `ConfigError` if there is none."""
    known = {blend.name: blend for blend in blends}
    if name not in known:
        raise ConfigError(
            Problem(
                f"blend {name!r}",
                "not declared in decon.toml",
                f"one of {', '.join(known) or 'none'}",
                "declare it, or delete its partition in the UI",
            )
        )
    return known[name]


def unknown_in_blends(
    blends: Iterable[Blend], known: Mapping[str, Sequence[str]]
) -> Iterator[Problem]:
    """Yield a problem for each unknown benchmark or split. `known`: the splits by benchmark."""
    for blend in blends:
        where = f"blend {blend.name!r}: contamination"
        for contamination in blend.contamination:
            for name in contamination.benchmarks:
                if name not in known:
                    yield Problem(f"{where}.benchmarks", repr(name), f"one of {', '.join(known)}")
                    continue
                for split in contamination.splits:
                    if split not in known[name]:
                        expected = f"one of {', '.join(known[name])}, the splits of {name}"
                        yield Problem(f"{where}.splits", repr(split), expected)
