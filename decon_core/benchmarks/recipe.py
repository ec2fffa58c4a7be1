"""A validated recipe; `parse` reads it. Class and field names are part of its fingerprint.

The aliases of fields are the keys in YAML; docs/recipes.md describes them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Discriminator, Field, Tag
from pydantic.dataclasses import dataclass as model

from decon_core.benchmarks.transforms import ARGUMENT_TRANSFORMS, LABEL_TRANSFORMS, TRANSFORM_NAMES
from decon_core.config.validation import TABLE, Count, Distinct, Flag, expects, invalid, known_name

# Increased when the same recipe and rows give other records than before.
NORMALIZATION_VERSION = 3
# The languages of a translation, in recipes and in `extras`; templates use the same placeholders.
LANGUAGE_KEYS = ("source_language", "target_language")


@dataclass(frozen=True, kw_only=True)
class HubSource:
    """A dataset on the Hugging Face hub; its configs are read in order."""

    path: str
    configs: tuple[str, ...] = ()
    revision: str | None = None


@dataclass(frozen=True, kw_only=True)
class LocalSource:
    """Local files: patterns for all splits (see `files`), or patterns by split."""

    patterns: tuple[str, ...] = ()
    by_split: tuple[tuple[str, tuple[str, ...]], ...] = ()
    config: str | None = None
    columns: tuple[str, ...] = ()  # names of the columns, if CSV or TSV files have no line of names


def _as_list(value: object) -> object:
    """Return a single value as a list; YAML may have either."""
    if value is None:
        return ()
    return value if isinstance(value, list | tuple) else [value]


def _known_transform(name: str, known: Collection[str]) -> str:
    return known_name(name, known, found=f"the unknown transform {name!r}")


def _step(step: object) -> object:
    """Return `strip`, or `after_marker: "####"`, as name and argument."""
    if isinstance(step, tuple):
        return step
    name, argument = step, None
    if isinstance(step, Mapping) and len(step) == 1:
        name, argument = next(iter(step.items()))
        if not isinstance(argument, str):
            raise invalid(f"text after `{name}:`")
    if not isinstance(name, str):
        raise invalid("the name of a transform, or `name: text`")
    _known_transform(name, TRANSFORM_NAMES)
    if argument is not None and name not in ARGUMENT_TRANSFORMS:
        raise invalid(f"{name} without an argument", found=f"{name} with an argument")
    return name, argument


# The key that says of which kind an object is.
_TEXTS = {
    "field": "FieldText",
    "fields": "JoinedText",
    "messages": "MessagesText",
    "concat_messages": "MessagesText",
    "last_paragraph": "LastParagraph",
}
_ANSWERS = {
    "expand_choices": "ChoicesAnswer",
    "expand_prefix": "PrefixAnswer",
    "indexed": "IndexedAnswer",
    "array": "ArrayAnswer",
    "key_field": "IndexedAnswer",  # the older way to write `indexed`
}
WRAPPERS = ("expand_choices", "expand_prefix", "indexed", "concat_messages")


def _kind(value: object, kinds: Mapping[str, str]) -> str | None:
    """Return the name of the class that a value is for, or is of."""
    if isinstance(value, Mapping):
        return next((name for key, name in kinds.items() if key in value), None)
    return type(value).__name__ if is_dataclass(value) else None


def _unwrapped(value: Any) -> Any:
    """Return `expand_choices: {field: ...}` as `{field: ...}`, with the other keys of its table."""
    key = next((key for key in WRAPPERS if isinstance(value, Mapping) and key in value), None)
    if key is None:
        return value
    if not isinstance(value[key], Mapping):
        raise invalid(f"an object (`key: value` lines) for {key}", found=repr(value[key]))
    return value[key] | {name: value[name] for name in value if name != key}


def _chat(value: Any) -> Any:
    """Return decon's `concat_messages: {field, content_field}` as `messages: field`."""
    if not isinstance(value, Mapping) or "concat_messages" not in value:
        return value
    inner = _unwrapped(value)
    return {"messages" if key == "field" else key: inner[key] for key in inner}


def _plain_answer(value: Any) -> Any:
    """Return a text and `is_correct` as the fields of a plain answer."""
    if isinstance(value, PlainAnswer) or (isinstance(value, Mapping) and "text" in value):
        return value
    if not isinstance(value, Mapping) or "is_correct" not in value:
        return {"text": value}
    text = {key: value[key] for key in value if key != "is_correct"}
    return {"text": text, "is_correct": value["is_correct"]}


_CORRECT = ("correct_index", "correct_text", "correct_flags")
_CHOICES = {"field", "fields", "transform", *_CORRECT, "label_transform"}


def _choices(value: Any) -> Any:
    """Refuse choices without field, or without a word on which is correct."""
    value = _unwrapped(value)
    if isinstance(value, Mapping) and value.keys() <= _CHOICES:  # others are reported as unknown
        _exactly_one(value, "field", "fields")
        remedy = "Write `correct_index: null` if the rows do not name the correct choice."
        _exactly_one(value, *_CORRECT, remedy=remedy)
    return value


def _indexed(value: Any) -> Any:
    value = _unwrapped(value)
    if isinstance(value, Mapping):
        _exactly_one(value, "prefix", "field")
    return value


def _exactly_one(value: Mapping[str, object], *keys: str, remedy: str = "") -> None:
    given = [key for key in keys if key in value]
    if len(given) != 1:
        found = " and ".join(given) or f"none of {', '.join(keys)}"
        raise invalid("exactly one of them", remedy, found=found)


Transform = Annotated[tuple[str, str | None], BeforeValidator(_step)]
LabelTransform = Annotated[
    str, AfterValidator(lambda name: _known_transform(name, LABEL_TRANSFORMS))
]
String = Annotated[
    str, Field(min_length=1), expects("text (in quotes, if YAML would read it as something else)")
]
Strings = Annotated[Distinct[String], BeforeValidator(_as_list)]
Transforms = Annotated[tuple[Transform, ...], BeforeValidator(_as_list)]


@model(frozen=True, kw_only=True, config=TABLE)
class FieldText:
    field: String
    transforms: Annotated[Transforms, Field(alias="transform")] = ()
    is_optional: Annotated[Flag, Field(alias="optional")] = False


@model(frozen=True, kw_only=True, config=TABLE)
class JoinedText:
    """Several fields as one text."""

    fields: Annotated[Strings, Field(min_length=1), expects("a list of field names")]
    separator: str = "\n"


@model(frozen=True, kw_only=True, config=TABLE)
class MessagesText:
    """The turns of a chat as one text; empty `roles`: all roles."""

    field: Annotated[String, Field(alias="messages")]
    content_field: String | None = None
    roles: Strings = ()
    append_field: String | None = None


@model(frozen=True, kw_only=True, config=TABLE)
class LastParagraph:
    """The last paragraph of at least `min_words` words."""

    field: Annotated[String, Field(alias="last_paragraph")]
    min_words: Annotated[Count, AfterValidator(lambda n_words: n_words or 1)] = 1


Text = Annotated[
    Annotated[
        FieldText,
        BeforeValidator(lambda value: {"field": value} if isinstance(value, str) else value),
        Tag("FieldText"),
    ]
    | Annotated[JoinedText, Tag("JoinedText")]
    | Annotated[MessagesText, BeforeValidator(_chat), Tag("MessagesText")]
    | Annotated[LastParagraph, Tag("LastParagraph")],
    Discriminator(lambda value: "FieldText" if isinstance(value, str) else _kind(value, _TEXTS)),
    expects(f"a field name, or an object with one of {', '.join(_TEXTS)}"),
]
Texts = Annotated[
    tuple[Text, ...], BeforeValidator(_as_list), Field(min_length=1), expects("at least one field")
]


@model(frozen=True, kw_only=True, config=TABLE)
class PlainAnswer:
    text: Text
    is_correct: Flag | None = None


@model(frozen=True, kw_only=True, config=TABLE)
class ChoicesAnswer:
    """One record per choice, from one field or from several, whose names are then the labels.

    The correct choice is given by index or label, by its text, by flags, or not at all.
    """

    field: String | None = None
    fields: Strings = ()
    transforms: Annotated[Transforms, Field(alias="transform")] = ()
    correct_index: String | None = None
    correct_text: String | None = None
    correct_flags: String | None = None
    label_transform: LabelTransform | None = None


@model(frozen=True, kw_only=True, config=TABLE)
class PrefixAnswer:
    """One record per field named by the prefix and a letter or number."""

    prefix: String
    suffix_match_field: String | None = None
    label_transform: LabelTransform | None = None


@model(frozen=True, kw_only=True, config=TABLE)
class IndexedAnswer:
    """One answer, selected by a label: the `prefix` field + label, or an element of `field`."""

    key_field: String
    prefix: String | None = None
    field: String | None = None
    label_transform: LabelTransform | None = None


@model(frozen=True, kw_only=True, config=TABLE)
class ArrayAnswer:
    """The element at the position of the question in its array.

    With `choices`, the field with a list of choices for each question, the element is the label of
    the correct choice.
    """

    array: String
    choices: String | None = None
    label_transform: LabelTransform | None = None
    is_optional: Annotated[Flag, Field(alias="optional")] = False


Answer = Annotated[
    Annotated[PlainAnswer, BeforeValidator(_plain_answer), Tag("PlainAnswer")]
    | Annotated[ChoicesAnswer, BeforeValidator(_choices), Tag("ChoicesAnswer")]
    | Annotated[PrefixAnswer, BeforeValidator(_unwrapped), Tag("PrefixAnswer")]
    | Annotated[IndexedAnswer, BeforeValidator(_indexed), Tag("IndexedAnswer")]
    | Annotated[ArrayAnswer, Tag("ArrayAnswer")],
    Discriminator(lambda value: _kind(value, _ANSWERS) or "PlainAnswer"),
]


@model(frozen=True, kw_only=True, config=TABLE)
class Prompts:
    """One question per text."""

    texts: Texts


@model(frozen=True, kw_only=True, config=TABLE)
class PromptArray:
    """One question per element of a list."""

    array: String


@model(frozen=True, kw_only=True, config=TABLE)
class TranslationPair:
    source: Text
    target: Text
    both_directions: bool = False
    source_language: str = ""
    target_language: str = ""

    def languages(self, direction: int | None) -> dict[str, str]:
        """Return the languages of a question and its answer, as named in `extras`; {}: unknown."""
        if not self.source_language:
            return {}
        names = (self.source_language, self.target_language)
        return dict(zip(LANGUAGE_KEYS, reversed(names) if direction else names, strict=True))


Questions = Prompts | PromptArray | TranslationPair


Answers = Annotated[tuple[Answer, ...], BeforeValidator(_as_list)]
Prompt = Annotated[
    Annotated[PromptArray, Tag("PromptArray")] | Annotated[Texts, Tag("texts")],
    Discriminator(
        lambda value: "PromptArray" if isinstance(value, Mapping) and "array" in value else "texts"
    ),
]
# A plain name stays one, as it is part of the fingerprints of recipes.
ConfigField = Annotated[
    Annotated[FieldText, Tag("field")] | Annotated[String, Tag("name")],
    Discriminator(lambda value: "field" if isinstance(value, Mapping | FieldText) else "name"),
]
LocalPath = Annotated[
    Annotated[dict[str, Strings], Tag("by split")] | Annotated[Strings, Tag("patterns")],
    Discriminator(lambda value: "by split" if isinstance(value, Mapping) else "patterns"),
]


@model(frozen=True, kw_only=True, config=TABLE)
class RecipeTable:
    """The keys of a recipe in YAML."""

    splits: Annotated[Strings, Field(min_length=1), expects("a list of splits: [train, test]")]
    no_answer_splits: Strings = ()
    hf_path: String | None = None
    hf_config: Strings = ()
    hf_revision: String | None = None
    local_path: LocalPath | None = None
    columns: Strings = ()
    prompt: Prompt | None = None
    prompts: Prompt | None = None
    source: Text | None = None
    target: Text | None = None
    both_directions: Flag = False
    source_language: String | None = None
    target_language: String | None = None
    passage: Text | None = None
    answers: Answers = ()
    answer: Answers = ()
    solution: Answers = ()
    extra_fields: Strings = ()
    tests: Strings = ()
    dataset_name_field: ConfigField | None = None
    eval_key: String | None = None
    verified: Flag = True
    derived_from: String | None = None  # like `note`, only shown to readers of the catalog
    note: String | None = None


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How the rows of a benchmark become records. `questions` is None: they are records."""

    name: str
    source: HubSource | LocalSource
    splits: tuple[str, ...]
    questions: Questions | None = None
    passage: Text | None = None
    answers: tuple[Answer, ...] = ()
    no_answer_splits: tuple[str, ...] = ()
    extra_fields: tuple[str, ...] = ()
    dataset_name_field: str | FieldText | None = None
    eval_key: str | None = None  # read only the records of this benchmark
    # False: it is untested, so its fields are compared with the columns before it is used.
    is_verified: bool = field(default=True, compare=False)

    @property
    def fingerprint(self) -> str:
        """16 hex digits of the recipe's content, independent of how the YAML is written."""
        content = {"version": NORMALIZATION_VERSION, "recipe": _canonical(self)}
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


def _canonical(value: object) -> object:
    """Return a recipe as JSON: without defaults, so that new fields change no fingerprint."""
    if is_dataclass(value) and not isinstance(value, type):
        values = {
            field.name: _canonical(getattr(value, field.name))
            for field in fields(value)
            if field.compare
            and (field.default is MISSING or getattr(value, field.name) != field.default)
        }
        return {"kind": type(value).__name__, **values}
    if isinstance(value, tuple):
        return [_canonical(item) for item in value]
    return value
