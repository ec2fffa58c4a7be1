"""A validated recipe; `parse` reads it. Class and field names are part of its fingerprint."""

from __future__ import annotations

import hashlib
import json
from dataclasses import MISSING, dataclass, fields, is_dataclass

# Increased when the same recipe and rows give other records than before.
NORMALIZATION_VERSION = 1


@dataclass(frozen=True, kw_only=True)
class HubSource:
    """A data set on the Hugging Face hub; its configs are read in order."""

    path: str
    configs: tuple[str, ...] = ()
    revision: str | None = None


@dataclass(frozen=True, kw_only=True)
class LocalSource:
    """Local files: patterns for all splits (see `files`), or patterns by split."""

    patterns: tuple[str, ...] = ()
    by_split: tuple[tuple[str, tuple[str, ...]], ...] = ()
    config: str | None = None


@dataclass(frozen=True, kw_only=True)
class FieldText:
    field: str
    transforms: tuple[tuple[str, str | None], ...] = ()
    is_optional: bool = False


@dataclass(frozen=True, kw_only=True)
class JoinedText:
    """Several fields as one text."""

    fields: tuple[str, ...]
    separator: str = "\n"


@dataclass(frozen=True, kw_only=True)
class MessagesText:
    """The turns of a chat as one text; empty `roles`: all roles."""

    field: str
    content_field: str | None = None
    roles: tuple[str, ...] = ()
    append_field: str | None = None


@dataclass(frozen=True, kw_only=True)
class LastParagraph:
    """The last paragraph of at least `min_words` words."""

    field: str
    min_words: int = 1


Text = FieldText | JoinedText | MessagesText | LastParagraph


@dataclass(frozen=True, kw_only=True)
class PlainAnswer:
    text: Text
    is_correct: bool | None = None


@dataclass(frozen=True, kw_only=True)
class ChoicesAnswer:
    """One record per choice, from one field or from several, whose names are then the labels.

    The correct choice is given by index or label, by its text, by flags, or not at all.
    """

    field: str | None = None
    fields: tuple[str, ...] = ()
    transforms: tuple[tuple[str, str | None], ...] = ()
    correct_index: str | None = None
    correct_text: str | None = None
    correct_flags: str | None = None
    label_transform: str | None = None


@dataclass(frozen=True, kw_only=True)
class PrefixAnswer:
    """One record per field named by the prefix and a letter or number."""

    prefix: str
    suffix_match_field: str | None = None
    label_transform: str | None = None


@dataclass(frozen=True, kw_only=True)
class IndexedAnswer:
    """One answer, selected by a label: the field `prefix` + label, or an element of `field`."""

    key_field: str
    prefix: str | None = None
    field: str | None = None
    label_transform: str | None = None


@dataclass(frozen=True, kw_only=True)
class ArrayAnswer:
    """The element at the position of the question in its array."""

    array: str


Answer = PlainAnswer | ChoicesAnswer | PrefixAnswer | IndexedAnswer | ArrayAnswer


@dataclass(frozen=True, kw_only=True)
class Prompts:
    """One question per text."""

    texts: tuple[Text, ...]


@dataclass(frozen=True, kw_only=True)
class PromptArray:
    """One question per element of a list."""

    array: str


@dataclass(frozen=True, kw_only=True)
class TranslationPair:
    source: Text
    target: Text
    both_directions: bool = False


Questions = Prompts | PromptArray | TranslationPair


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
    dataset_name_field: str | None = None
    eval_key: str | None = None  # of records: read only those of this benchmark

    @property
    def fingerprint(self) -> str:
        """16 hex digits of the recipe's content, independent of how the YAML is written."""
        content = json.dumps(
            {"version": NORMALIZATION_VERSION, "recipe": _canonical(self)}, sort_keys=True
        )
        return hashlib.sha256(content.encode()).hexdigest()[:16]


def _canonical(value: object) -> object:
    """Return a recipe as JSON. Defaults are left out, so that new fields change no fingerprint."""
    if is_dataclass(value) and not isinstance(value, type):
        values = {
            field.name: getattr(value, field.name)
            for field in fields(value)
            if field.default is MISSING or getattr(value, field.name) != field.default
        }
        return {"kind": type(value).__name__} | {key: _canonical(values[key]) for key in values}
    if isinstance(value, tuple):
        return [_canonical(item) for item in value]
    return value
