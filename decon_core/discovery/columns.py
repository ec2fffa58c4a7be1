"""What the first rows of a benchmark say about each field: its kinds, values, and name."""

from __future__ import annotations

import ast
import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from decon_core.benchmarks.fields import Row, is_empty
from decon_core.corpus.shard_head import printable

_MAX_DEPTH = 3  # levels of objects
_MIN_PROSE = 3  # words
_FIRST_IDEOGRAPH = "\u2e80"  # first sign of the scripts without spaces between words
_LABEL = re.compile(r"\(?([A-Za-z]|\d{1,2}(\.0)?)[).]?")
_LETTERS = re.compile(r"[A-J](?:[\s,;&]*[A-J])+")  # several correct choices
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[^\W\d_A-Z]+|\d+")
_SQL = re.compile(r"\s*(select|with)\b.*\bfrom\b.*[^.?!:]\s*", re.IGNORECASE | re.DOTALL)
_PLURAL = re.compile(r"(?<=\w\w[^\Wisu])s$")
_PARSERS: dict[str, Callable[[str], object]] = {
    "parse_json": json.loads,
    "parse_python": ast.literal_eval,
}


def words_of(name: str) -> tuple[str, ...]:
    """Split `correctAnswer_2`, `Correct Answers 2` or `CORRECT-ANSWER.2` into singular words."""
    return tuple(_PLURAL.sub("", word.lower()) for word in _WORD.findall(name))


@dataclass(frozen=True, eq=False)
class Column:
    """A field of the sampled rows, by its dotted path, with its values that are not empty."""

    name: str
    values: tuple[object, ...]
    n_rows: int

    def __str__(self) -> str:
        length = f" of {self.n_characters} characters" if self.kind == "text" else ""
        distinct = "" if self.n_distinct == len(self.values) else f", {self.n_distinct} different"
        share = "" if self.share == 1 else f", in {self.share:.0%} of the rows"
        return f"{printable(self.name)} ({self.kind}{length}{distinct}{share})"

    @cached_property
    def words(self) -> tuple[str, ...]:
        """The words of the field's name; those of the object around it, if it is a mere `text`."""
        *parents, last = [part for part in self.name.split(".") if not part.isdecimal()]
        words = words_of(last)
        is_plain = words in {("text",), ("value",), ("span",), ("content",), ("input", "text")}
        words_around = words_of(parents[-1]) if parents and is_plain else ()
        return (*words_around, *words)

    @property
    def parent(self) -> str:
        """The path of the field around it; "" if there is none."""
        return self.name.rpartition(".")[0]

    def is_called(self, words: Iterable[str]) -> bool:
        """Return whether a word of the field's name is one of these."""
        return not {*self.words}.isdisjoint(words)

    @cached_property
    def kind(self) -> str:
        kinds = {_kind_of(value) for value in self.values}
        return kinds.pop() if len(kinds) == 1 else "mixed" if kinds else "nothing"

    @cached_property
    def share(self) -> float:
        """The share of rows in which the field is not empty."""
        return len(self.values) / self.n_rows

    @cached_property
    def texts(self) -> list[str]:
        """The texts of the field: of lists each element, of conversations what a user says."""
        return [text for value in self.values for text in _texts_in(value)]

    @cached_property
    def n_characters(self) -> int:
        return sum(map(len, self.texts)) // max(len(self.texts), 1)

    @cached_property
    def n_distinct(self) -> int:
        return len(set(map(repr, self.values)))

    @cached_property
    def is_prose(self) -> bool:
        """Whether most texts have words, unlike labels, names, identifiers, URLs and dates."""
        return 2 * sum(map(_is_prose, self.texts)) > max(len(self.texts), 1)

    @cached_property
    def is_asking(self) -> bool:
        """Whether most texts end with a question mark."""
        ends = sum(text.rstrip().endswith(("?", "？", "؟")) for text in self.texts)
        return 2 * ends > max(len(self.texts), 1)

    @cached_property
    def is_sql(self) -> bool:
        """Whether all texts are SQL, such as those of a field `query`."""
        return bool(self.texts) and all(map(_SQL.fullmatch, self.texts))

    @cached_property
    def repeats(self) -> bool:
        """Whether the values repeat like those of a class, a subject or a source."""
        n_values = len(self.values)
        return n_values >= 4 and 2 * self.n_distinct <= n_values

    @cached_property
    def has_labels(self) -> bool:
        """Whether all values are a letter or a small number, which may point to a choice."""
        return bool(self.values) and all(map(_is_label, self.values))

    @cached_property
    def has_letters(self) -> bool:
        """Whether all values name choices by letters, which say nothing without the choices."""
        listed = (value if isinstance(value, list) else [value] for value in self.values)
        names = [str(name).strip() for names in listed for name in names]
        is_label = all(_LABEL.fullmatch(name) or _LETTERS.fullmatch(name) for name in names)
        return is_label and any(map(str.isalpha, "".join(names)))

    @cached_property
    def parser(self) -> str | None:
        """The transform that reads lists or objects which are published as text."""
        for name, parse in _PARSERS.items():
            if self.kind == "text" and all(_parses(value, parse) for value in self.values):
                return name
        return None


def columns_of(rows: Sequence[Row]) -> list[Column]:
    """Return all fields in order of first appearance, objects and the fields in them as well."""
    values: defaultdict[str, list[object]] = defaultdict(list)
    for row in rows:
        for path, value in _paths(row):
            values[path] += [] if is_empty(value) or value in ([], {}) else [value]
    return [Column(path, tuple(of_path), len(rows)) for path, of_path in values.items()]


def _paths(value: Row, prefix: str = "", depth: int = 1) -> Iterator[tuple[str, object]]:
    for key, item in value.items():
        yield f"{prefix}{key}", item
        if isinstance(item, dict) and depth < _MAX_DEPTH:
            yield from _paths(item, f"{prefix}{key}.", depth + 1)
        elif isinstance(item, list) and _kind_of(item) == "list of object":
            # A recipe reads a key of all of them.
            objects = [element for element in item if isinstance(element, Mapping)]
            for name in dict.fromkeys(name for element in objects for name in element):
                yield f"{prefix}{key}.{name}", [element.get(name) for element in objects]


def _texts_in(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _texts_in(item)
    elif isinstance(value, Mapping) and value.get("role", value.get("from", "user")) in _USERS:
        yield from _texts_in(value.get("content", value.get("value")))


def _kind_of(value: object) -> str:
    if isinstance(value, list):
        kinds = {_kind_of(item) for item in value if not is_empty(item)}
        inner = kinds.pop() if len(kinds) == 1 else "mixed"
        is_chat = inner == "object" and all({*_ROLES} & {*item} for item in value if item)
        return "chat" if is_chat else f"list of {inner}"
    if isinstance(value, Mapping):
        return "object"
    return {str: "text", bool: "boolean", int: "number", float: "number"}.get(type(value), "other")


_ROLES = ("role", "from")  # the keys of the two published forms of a message
_USERS = ("user", "human")


def _is_prose(text: str) -> bool:
    words = [word for word in text.split() if any(map(str.isalpha, word))]
    is_ideographic = any(char >= _FIRST_IDEOGRAPH for char in text)
    return len(words) >= _MIN_PROSE or (is_ideographic and len(text) >= 2 * _MIN_PROSE)


def _is_label(value: object) -> bool:
    if isinstance(value, list):
        return len(value) == 1 and _is_label(value[0])
    return not isinstance(value, bool) and bool(_LABEL.fullmatch(str(value).strip()))


def _parses(value: object, parse: Callable[[str], object]) -> bool:
    text = str(value).strip()
    if not text.startswith(("[", "{")):
        return False
    try:
        return isinstance(parse(text), list | dict)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return False
