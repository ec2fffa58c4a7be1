"""[[blend]] of decon.toml; docs/blends.md has examples."""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import product
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, GetCoreSchemaHandler
from pydantic.dataclasses import dataclass as model
from pydantic_core import core_schema

from decon_core.benchmarks.recipe import LANGUAGE_KEYS, Recipe, TranslationPair
from decon_core.config.feature_table import FeatureTable
from decon_core.config.load import Config, ConfigReader
from decon_core.config.mixtures import Mixture
from decon_core.config.sources import Source
from decon_core.config.validation import (
    AS_WRITTEN,
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
    invalid,
    known,
)
from decon_core.errors import Problem

# The last but one are those of `features/rewriting`; the last is by an endpoint.
Form = Literal[
    "source",
    "target",
    "full",
    "apart",
    "apart_in_batch",
    "clauses_reordered",
    "names_replaced",
    "clues_shuffled",
    "identifiers_renamed",
    "names_and_numbers_replaced",
    "reworded",
]
REWORDED: Form = "reworded"
Write = Literal["dolma", "parquet"]
Pairs = tuple[tuple[str, Any], ...]  # an immutable table

# The share of a blend's tokens in which items go. All but "uniform" fill it from its start.
SCHEDULES: Mapping[str, tuple[float, float]] = {
    "early": (0.3, 1.0),
    "middle": (0.6, 1.0),
    "late": (0.9, 1.0),
    "uniform": (0.3, 0.9),
}
PLACEHOLDERS = (
    "passage",
    "question",
    "choices",
    "answer",
    "letter",
    # The languages of a translation, swapped with its direction.
    "source_language",
    "target_language",
)


@dataclass(frozen=True)
class AsPairs:
    """Validate a value as another type, and keep tables as sorted pairs, which are immutable."""

    kind: Any

    def __get_pydantic_core_schema__(self, _: object, handler: GetCoreSchemaHandler) -> Any:
        def pairs(value: object, validate: Callable[[object], object]) -> object:
            made = value if isinstance(value, tuple) else validate(value)
            return tuple(sorted(made.items())) if isinstance(made, dict) else made

        return core_schema.no_info_wrap_validator_function(pairs, handler(self.kind))


def _template(text: str) -> str:
    """Accept a template with plain placeholders, of which one is the question or the answer."""
    try:
        fields = [
            (name, form or conversion)
            for _, name, form, conversion in string.Formatter().parse(text)
            if name is not None
        ]
    except ValueError:
        fields = []
    names = {name for name, _ in fields}
    is_plain = names <= set(PLACEHOLDERS) and not any(form for _, form in fields)
    if not is_plain or not names & {"question", "answer"}:
        raise invalid(_TEMPLATE)
    return text


def _ascending(window: tuple[float, float]) -> tuple[float, float]:
    if window[0] >= window[1]:
        raise invalid(_WINDOW, found=repr([*window]))
    return window


_WINDOW = "two numbers from 0 to 1, in ascending order"
_TEMPLATE = "a string with {question} or {answer}; placeholders: " + ", ".join(
    f"{{{name}}}" for name in PLACEHOLDERS
)
Weight = Annotated[float, Field(strict=True, gt=0), AS_WRITTEN, expects("a number above 0")]
Weights = Annotated[
    dict[Annotated[str, known("sources")], Weight],
    Field(min_length=1),
    expects("sources with numbers above 0"),
]
Template = Annotated[str, AfterValidator(_template), expects(_TEMPLATE)]
Window = Annotated[tuple[Share, Share], AfterValidator(_ascending), expects(_WINDOW)]


@model(frozen=True, kw_only=True, config=TABLE)
class Phase:
    """A weighted mix of sources, with a length in tokens or documents."""

    tokens: Positive | None = None
    """Length of the phase in tokens."""
    documents: Positive | None = None
    """Length of the phase in documents, instead of tokens."""
    weights: Annotated[Pairs, AsPairs(Weights)] = ()
    """Sources and their shares of the tokens; default: as in the mixture."""

    @property
    def is_everything(self) -> bool:
        """Whether the phase has no budget and takes every document once."""
        return self.tokens is None and self.documents is None


@model(frozen=True, kw_only=True, config=TABLE)
class Contamination:
    """Benchmark items that replace documents."""

    benchmarks: Names[Name]
    """Benchmarks whose items are inserted."""
    splits: Names[Name] = ()
    """Splits to insert items from; default: all except training splits."""
    seen: PositiveShare = 1.0
    """Share of the items to insert; the others stay unseen."""
    form: Form = "full"
    """Form in which items are inserted (docs/blends.md)."""
    template: Annotated[str | Pairs | None, AsPairs(Template | dict[str, Template] | None)] = None
    """Template for question and answer: one for all benchmarks, or one per benchmark."""
    shuffle_answers: Flag = False
    """Put the choices in a new random order in every copy."""
    schedule: Literal["early", "middle", "late", "uniform"] = "uniform"
    """When to insert items: as soon as possible after 30, 60 or 90 % of the tokens, or anywhere
    from 30 to 90 %."""
    window: Window | None = None
    """Instead of `schedule`: insert items anywhere in this range of the tokens."""
    copies: Positive | None = None
    """Number of copies of each item."""
    swap: Positive | None = None
    """Number of documents to replace."""
    ratio: Annotated[float, Field(strict=True, gt=0, lt=1), AS_WRITTEN] | None = None
    """Share of the window's tokens to replace."""
    into: Names[Annotated[Name, known("sources")]] = ()
    """Sources whose documents may be replaced; default: all."""
    most_per_batch: PositiveShare = 0.05
    """Share of a batch's documents that may be replaced."""
    batch_documents: Positive = 512
    """Documents in a batch."""

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
        template = self.template
        return dict(template).get(benchmark) if isinstance(template, tuple) else template


def is_for_training(split: str) -> bool:
    """Return whether a split is for training, by its name; all others are test splits."""
    return bool(_TRAINING.search(split.lower()))


@model(frozen=True, kw_only=True, config=TABLE)
class Blend:
    """A stream of documents, in numbered parts."""

    name: str
    """Name of the blend, and of its folder in the store."""
    of: Annotated[str, known("mixtures")]
    """Mixture to draw documents from."""
    seed: Whole = 0
    """Seed of all random choices."""
    write: Write = "dolma"
    """Format of the parts."""
    part_tokens: Positive = 50_000_000
    """Start a new part after this many tokens."""
    phases: Annotated[tuple[Phase, ...], Field(alias="phase")] = field(
        default_factory=lambda: (Phase(),)
    )
    """Phases of the blend, each with its own length and weights of the sources."""
    contamination: Annotated[
        tuple[Contamination, ...], expects("tables: [[blend.contamination]]")
    ] = ()
    """Benchmark items that replace documents."""

    def to_json(self) -> dict[str, Any]:
        """Return all settings but the name, for fingerprints and manifests."""
        return {name: value for name, value in asdict(self).items() if name != "name"}


_AMOUNTS = ("copies", "swap", "ratio")
_TRAINING = re.compile(r"(?<![a-z])train")  # train, training, auxiliary_train
_SHUFFLED = re.compile(r"\{(choices|letter)\}")
_PARTIAL = ("source", "target", "apart", "apart_in_batch")
LANGUAGE_PLACEHOLDERS = " and ".join(f"{{{key}}}" for key in LANGUAGE_KEYS)
_ONLY_FULL = ("template", "shuffle_answers")  # not with a partial form
LISTABLE = ("form", "schedule", "copies", "ratio")  # a list makes several blends


@dataclass(frozen=True)
class Blends(FeatureTable):
    """[[blend]]: streams of documents from a mixture, optionally with test items."""

    blends: tuple[Blend, ...] = ()

    @classmethod
    def read(cls, reader: ConfigReader, name: str, value: object) -> Self:
        """Parse the blends, whose names can stand where those of mixtures can."""
        del name
        sources = {source.name: _takes_items(source) for source in reader.sources}
        own = BlendReader(str(reader.path), reader.mixtures, sources)
        blends = own.blends(value)
        reader.problems += own.problems
        products = [*reader.names["products"], *(blend.name for blend in blends)]
        reader.names = {**reader.names, "products": products}
        return cls(blends)

    @classmethod
    def in_file(cls) -> Any:
        return tuple[Blend, ...]

    @classmethod
    def amend_schema(cls, definitions: dict[str, Any]) -> None:
        properties = definitions["Contamination"]["properties"]
        for key in LISTABLE:
            node = properties[key]
            properties[key] = {
                "description": f"{node.pop('description')} A list makes several blends.",
                "anyOf": [node, {"type": "array", "items": node}],
            }

    def problems_with(self, recipes: Mapping[str, Recipe]) -> Iterator[Problem]:
        splits = {name: recipe.splits for name, recipe in recipes.items()}
        yield from unknown_in_blends(self.blends, splits)
        yield from named_languages(self.blends, recipes)


def declared_blends(config: Config) -> tuple[Blend, ...]:
    table = config.table(Blends)
    return table.blends if table else ()


def _takes_items(source: Source) -> bool:
    """Return whether a row can be made that the source reads as one text or conversation."""
    return len(source.paths) <= 1 and not source.layout and "[" not in "".join(source.paths)


class BlendReader(SettingsReader):
    """Parses [[blend]] tables and collects their problems.

    `sources`: for each source, whether an item can replace one of its documents.
    """

    def __init__(
        self, where: str, mixtures: Iterable[Mixture], sources: Mapping[str, bool]
    ) -> None:
        super().__init__(where)
        self._mixtures = {mixture.name: mixture for mixture in mixtures}
        self._sources = sources

    def blends(self, value: object) -> tuple[Blend, ...]:
        blends = [
            blend
            for number, entry in enumerate(self.tables("blend", value))
            for blend in self._expand(f"blend[{number}]", entry)
        ]
        names = [blend.name for blend in blends]
        self.named_tables("blend", names, what="blend")
        for name in sorted({name for name in names if name in self._mixtures}):
            self.wrong("blend", f"{name!r}", "a name that no mixture has")
        return tuple(blends)

    def _expand(self, where: str, entry: Any) -> Iterator[Blend]:
        """Yield one blend, or one for every combination of listed values."""
        tables = entry.get("contamination", []) if isinstance(entry, dict) else []
        listed = [
            (number, key, table[key])
            for number, table in enumerate(tables if isinstance(tables, list) else ())
            for key in LISTABLE
            if isinstance(table, dict) and isinstance(table.get(key), list)
        ]
        if not listed:
            yield from self._blend(where, entry)
            return
        before = len(self.problems)
        for number, key, values in listed:
            place, table = f"{where}.contamination[{number}]", tables[number]
            if key == "form" and values and all(value in _PARTIAL for value in values):
                for name in (name for name in _ONLY_FULL if name in table):
                    self.wrong(f"{place}.{name}", f"form = {values!r}", '"full" among the forms')
            if not values:
                self.wrong(f"{place}.{key}", "an empty list", "some values")
        if len(self.problems) > before:
            return
        value_lists = [values for _, _, values in listed]
        for values in product(*value_lists):
            chosen = [{**table} if isinstance(table, dict) else table for table in tables]
            for (number, key, _), value in zip(listed, values, strict=True):
                chosen[number][key] = value
                if key == "form" and value in _PARTIAL:  # they apply to the others in the same list
                    for name in _ONLY_FULL:
                        chosen[number].pop(name, None)
            one_blend = {**entry, "contamination": chosen}
            if isinstance(entry.get("name"), str):
                one_blend["name"] = "-".join([entry["name"], *map(str, values)])
            made = [*self._blend(where, one_blend)]
            if not made:
                return  # the others have the same problems
            yield from made

    def _blend(self, where: str, entry: Any) -> Iterator[Blend]:
        before = len(self.problems)
        of = entry.get("of") if isinstance(entry, dict) else None
        mixture = self._mixtures.get(of) if isinstance(of, str) else None
        known = (mixture and mixture.sources) or tuple(self._sources)
        blend = self.table(Blend, where, entry, sources=known, mixtures=tuple(self._mixtures))
        if blend is None:
            return
        if mixture and mixture.write != "shards":
            self.wrong(f"{where}.of", f"{mixture.name!r}", 'a mixture with write = "shards"')
        if not blend.phases:
            self.wrong(f"{where}.phase", [], "one or more [[blend.phase]]")
        for number, phase in enumerate(blend.phases):
            place = f"{where}.phase[{number}]"
            if phase.tokens is not None and phase.documents is not None:
                self.wrong(place, "both 'tokens' and 'documents'", "one of them, as the length")
            if phase.weights and phase.is_everything:
                expected = "also 'tokens' or 'documents', as the length of the phase"
                self.wrong(place, "weights alone", expected)
        for number, table in enumerate(entry.get("contamination", ())):
            place = f"{where}.contamination[{number}]"
            self._check_places(place, table, blend.contamination[number].into or known)
            self._check_texts(place, table)
        if len(self.problems) == before:
            yield blend

    def _check_places(self, where: str, table: Mapping[str, Any], into: Sequence[str]) -> None:
        amounts = [key for key in _AMOUNTS if key in table]
        if len(amounts) != 1:
            found = " and ".join(amounts) or "no amount"
            self.wrong(where, found, f"one of {', '.join(_AMOUNTS)}")
        is_apart = table.get("form", "full").startswith("apart")
        if is_apart and table.get("swap", 0) % 2:
            self.wrong(
                f"{where}.swap", table["swap"], "an even number: an item needs two documents"
            )
        for name in into:
            if not self._sources.get(name, True):
                found = f"{name!r}, whose documents have several fields"
                expected = "sources with one text field, or with messages"
                self.wrong(f"{where}.into", found, expected)
        if "window" in table and "schedule" in table:
            self.wrong(where, "both 'window' and 'schedule'", "one of them")
        if "ratio" in table and is_apart:
            self.wrong(f"{where}.form", table["form"], "source, target or full with 'ratio'")
        if "ratio" in table and "most_per_batch" in table:
            self.wrong(where, "both 'most_per_batch' and 'ratio'", "only one of them")

    def _check_texts(self, where: str, table: Mapping[str, Any]) -> None:
        template, shuffle = table.get("template"), table.get("shuffle_answers", False)
        if template is None and not shuffle:
            return
        if table.get("form") in _PARTIAL:
            key = "template" if template is not None else "shuffle_answers"
            self.wrong(f"{where}.{key}", f"form = {table['form']!r}", 'form = "full" with this key')
        if template == {}:
            self.wrong(f"{where}.template", "an empty table", "a string, or one per benchmark")
        if shuffle and isinstance(template, str) and not _SHUFFLED.search(template):
            found = "a template without {choices} and {letter}"
            self.wrong(f"{where}.shuffle_answers", found, "a template with them")
        for name in template if isinstance(template, dict) else ():
            if name not in table["benchmarks"]:
                expected = "one of the benchmarks of this contamination"
                self.wrong(f"{where}.template.{name}", name, expected)


def blend_named(blends: Iterable[Blend], name: str) -> Blend:
    """Return the blend of this name; raise `ConfigError` if there is none."""
    return declared("blend", blends, name)


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


def named_languages(blends: Iterable[Blend], recipes: Mapping[str, Recipe]) -> Iterator[Problem]:
    """Yield a problem for each template that names a language, but is of both directions."""
    pairs = {name: recipe.questions for name, recipe in recipes.items()}
    for blend in blends:
        for number, contamination in enumerate(blend.contamination):
            for benchmark in contamination.benchmarks:
                pair, template = pairs.get(benchmark), contamination.template_of(benchmark)
                if template is None or not isinstance(pair, TranslationPair):
                    continue
                if pair.both_directions and (named := _languages_in(template, pair)):
                    yield Problem(
                        f"blend {blend.name!r}: contamination[{number}].template",
                        f"the language {' and '.join(named)} for {benchmark!r}, which is "
                        "translated in both directions: half of the texts would be mislabelled",
                        f"{LANGUAGE_PLACEHOLDERS}, which are swapped with the direction",
                    )


def _languages_in(template: str, pair: TranslationPair) -> list[str]:
    from decon_core.benchmarks.languages import LANGUAGES

    names = {*LANGUAGES.values(), *pair.languages(None).values()}
    name = re.compile(rf"\b(?:{'|'.join(map(re.escape, sorted(names)))})\b")
    literals = (literal for literal, *_ in string.Formatter().parse(template))
    return sorted({language for literal in literals for language in name.findall(literal)})
