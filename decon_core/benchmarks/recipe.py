"""What a recipe is, once it has been read and found right (`parse` does both)."""

from __future__ import annotations

import hashlib
import json
from dataclasses import MISSING, dataclass, fields, is_dataclass

# Counted up whenever the same recipe and the same rows give other records than before.
NORMALIZATION_VERSION = 1


@dataclass(frozen=True, kw_only=True)
class HubSource:
    """A data set on the Hugging Face hub; several configs are read one after the other."""

    path: str
    configs: tuple[str, ...] = ()
    revision: str | None = None


@dataclass(frozen=True, kw_only=True)
class LocalSource:
    """Files: either patterns for every split (`files` says how they are found), or per split."""

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
    """The turns of a chat as one text; `roles` empty = all of them."""

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
    """One record per choice, from one field or from several (whose names are then the labels).
    The right one is known by index or label, by its text, by flags, or not at all."""

    field: str | None = None
    fields: tuple[str, ...] = ()
    transforms: tuple[tuple[str, str | None], ...] = ()
    correct_index: str | None = None
    correct_text: str | None = None
    correct_flags: str | None = None
    label_transform: str | None = None


@dataclass(frozen=True, kw_only=True)
class PrefixAnswer:
    """One record per field whose name is the prefix and a letter or a number."""

    prefix: str
    suffix_match_field: str | None = None
    label_transform: str | None = None


@dataclass(frozen=True, kw_only=True)
class IndexedAnswer:
    """One answer, found by a label: in the field `prefix` + label, or in the list `field`."""

    key_field: str
    prefix: str | None = None
    field: str | None = None
    label_transform: str | None = None


@dataclass(frozen=True, kw_only=True)
class ArrayAnswer:
    """The element that stands where the question stands in its own array."""

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
    """How the rows of one benchmark become records. `questions` is None: they already are."""

    name: str
    source: HubSource | LocalSource
    splits: tuple[str, ...]
    questions: Questions | None = None
    passage: Text | None = None
    answers: tuple[Answer, ...] = ()
    no_answer_splits: tuple[str, ...] = ()
    extra_fields: tuple[str, ...] = ()
    dataset_name_field: str | None = None
    eval_key: str | None = None  # of records: only those of this benchmark

    @property
    def fingerprint(self) -> str:
        """16 hex digits of what the recipe says; how it was written down does not matter."""
        content = json.dumps(
            {"version": NORMALIZATION_VERSION, "recipe": _canonical(self)}, sort_keys=True
        )
        return hashlib.sha256(content.encode()).hexdigest()[:16]


def _canonical(value: object) -> object:
    """Nested lists and objects; defaults are left out, so that a new key changes no fingerprint."""
    if is_dataclass(value) and not isinstance(value, type):
        said = {
            field.name: getattr(value, field.name)
            for field in fields(value)
            if field.default is MISSING or getattr(value, field.name) != field.default
        }
        return {"kind": type(value).__name__} | {key: _canonical(said[key]) for key in said}
    if isinstance(value, tuple):
        return [_canonical(item) for item in value]
    return value
