"""What an expression of a template or of a function yields for a row: a column, a text, a list.

The templates and functions of registries are read and never run. This module has the rules that
Jinja and Python share.
"""

from __future__ import annotations

import string
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Column:
    """A field of the row, as the path of a recipe; "" is the row itself."""

    path: str


@dataclass(frozen=True)
class Constant:
    """A value that is the same in every row."""

    value: object


@dataclass(frozen=True)
class Part:
    """A piece of a text or list, such as the words before a comma."""

    of: Value


@dataclass(frozen=True)
class Joined:
    """The texts of several values, one after another."""

    parts: tuple[Value, ...]


@dataclass(frozen=True)
class Items:
    """A list that is written out."""

    items: tuple[Value, ...]


@dataclass(frozen=True)
class Fields:
    """An object that is written out; `rest` has its other fields."""

    fields: dict[str, Value]
    rest: Value | None = None


@dataclass(frozen=True)
class Position:
    """The position of a value in a list, or a number, with `offset` added."""

    value: Value
    among: Value | None = None  # None: the value is a number
    offset: int = 0


@dataclass(frozen=True)
class Chosen:
    """The element of a list that another value selects."""

    among: Value
    key: Value


@dataclass(frozen=True)
class Computed:
    """Anything else: what computes it, and the columns that it reads."""

    by: str
    reads: tuple[str, ...] = ()


Value = Column | Constant | Part | Joined | Items | Fields | Position | Chosen | Computed
ROW = Column("")
COUNTER = Computed("a counter")  # the number of a round of a loop

# Methods, filters and functions whose result shows the text or the list that they are given.
_SAME = frozenset((
    "strip", "lstrip", "rstrip", "trim", "removeprefix", "removesuffix", "replace",
    "lower", "upper", "capitalize", "title", "casefold",
    "str", "string", "int", "float", "chr", "list", "tuple", "sorted", "reversed",
    "copy", "default", "repr", "safe", "e", "tojson",
))  # fmt: skip
_PIECES = frozenset(["split", "rsplit", "splitlines", "first", "last", "partition", "rpartition"])
LETTER_CONSTANTS = {
    "ascii_uppercase": Constant(string.ascii_uppercase),
    "ascii_lowercase": Constant(string.ascii_lowercase),
}


def _inner(value: Value) -> Sequence[Value]:
    match value:
        case Part(of):
            return [of]
        case Joined(parts) | Items(parts):
            return parts
        case Fields(fields, rest):
            return [*fields.values()] if rest is None else [*fields.values(), rest]
        case Position(inner, among, _):
            return [inner] if among is None else [inner, among]
        case Chosen(among, key):
            return [among] if is_constant(among) else [among, key]
    return []


def text_of(value: Value | None) -> str:
    """Return a constant as text; "" for anything else."""
    return str(value.value) if isinstance(value, Constant) and value.value is not None else ""


def is_constant(value: Value) -> bool:
    """Return whether the value is a constant, or a list of constants."""
    match value:
        case Items(items):
            return all(isinstance(item, Constant) for item in items)
    return isinstance(value, Constant)


def leaves(value: Value | None) -> Iterator[Column | Constant | Computed]:
    """Yield the columns, constants and computations of a value, in the order of the text."""
    if isinstance(value, Column | Constant | Computed):
        if value != COUNTER:
            yield value
    elif value is not None:
        for inner in _inner(value):
            yield from leaves(inner)


def columns_of(value: Value | None) -> tuple[str, ...]:
    """Return the columns that a value shows or reads, each once, in the order of the text."""
    paths: dict[str, None] = {}
    for leaf in leaves(value):
        if isinstance(leaf, Column) and leaf.path:
            paths[leaf.path] = None
        elif isinstance(leaf, Computed):
            paths |= dict.fromkeys(leaf.reads)
    return tuple(paths)


def computed_by(value: Value | None) -> str:
    """Return what computes a part of the value; "": it only shows columns."""
    return next((leaf.by for leaf in leaves(value) if isinstance(leaf, Computed)), "")


def computed(by: str, *values: Value) -> Computed:
    """Return a value that `by` computes from other values."""
    reads = dict.fromkeys(path for value in values for path in columns_of(value))
    return Computed(next(filter(None, map(computed_by, values)), by), tuple(reads))


def joined(parts: Iterable[Value]) -> Value:
    """Return the texts of values one after another; a single value is returned itself."""
    flat: list[Value] = []
    for part in parts:
        for inner in part.parts if isinstance(part, Joined) else (part,):
            last = flat[-1] if flat else None
            if isinstance(inner, Constant) and isinstance(last, Constant):
                flat[-1] = Constant(f"{last.value}{inner.value}")
            elif isinstance(inner, Part) and isinstance(last, Column) and _is_first(last, inner.of):
                flat[-1] = inner  # choice[0].lower() + choice[1:]
            elif inner != Constant(""):
                flat.append(inner)
    return flat[0] if len(flat) == 1 else Joined(tuple(flat))


def _is_first(column: Column, of: Value) -> bool:
    return isinstance(of, Column) and column.path == f"{of.path}.0"


def bare(value: Value) -> Value:
    """Return a value without the white space around it."""
    if isinstance(value, Joined):
        shown = [part for part in value.parts if not is_blank(part)]
        return shown[0] if len(shown) == 1 else value
    return value


def is_blank(value: Value) -> bool:
    """Return whether the value is a text without characters other than white space."""
    return isinstance(value, Constant) and not str(value.value).strip()


def element(value: Value, key: Value) -> Value:
    """Return the field or the element of a value that a key selects."""
    index = key.value if isinstance(key, Constant) else None
    if key == COUNTER:  # an element of a list is written as the list
        return Chosen(value, key) if is_constant(value) else value
    if isinstance(value, Column) and index is None and (value == ROW or isinstance(key, Joined)):
        return computed("a computed name of a column", key)
    match value:
        case Column(path) if isinstance(index, str) or (isinstance(index, int) and index >= 0):
            return Column(f"{path}.{index}" if path else str(index))
        case Column() if index is not None:
            return Part(value)
        case Part() if index is not None:
            return value
        case Items(items) if isinstance(index, int) and -len(items) <= index < len(items):
            return items[index]
        case Fields(fields, rest) if isinstance(index, str) and (index in fields or rest):
            return fields[index] if index in fields else element(rest or ROW, key)
        case Fields(fields) if all(isinstance(inner, Constant) for inner in fields.values()):
            return Chosen(Items(tuple(fields.values())), key)
        case Constant():
            return value if index is not None else Chosen(value, key)
    if index is None and isinstance(value, Column | Items | Part | Chosen):
        return Chosen(value, key)
    return computed("a subscript", value, key)


def shifted(value: Value, offset: int) -> Value:
    """Return a number with a constant added to it."""
    return Position(value, None, offset)


def added(left: Value, right: Value) -> Value:
    """Return the sum of two numbers, texts or lists."""
    for value, other in ((left, right), (right, left)):
        if isinstance(other, Constant) and isinstance(other.value, int):
            return shifted(value, other.value)
    return joined((left, right))


def subtracted(left: Value, right: Value) -> Value:
    """Return the difference of two numbers."""
    if isinstance(right, Constant) and isinstance(right.value, int):
        return shifted(left, -right.value)
    return computed("a difference", left, right)


def either(by: str, first: Value, second: Value, *conditions: Value) -> Value:
    """Return the value of a condition: one of its branches, if both show the same columns."""
    if isinstance(first, Constant) and isinstance(second, Constant):
        return Chosen(Items((first, second)), COUNTER)
    is_number = isinstance(first, Position) or isinstance(second, Position)
    if columns_of(first) == columns_of(second) and not computed_by(second) and not is_number:
        return first
    return computed(by, first, second, *conditions)


def called(name: str, value: Value, arguments: Sequence[Value]) -> Value:
    """Return the result of a method or filter of a value."""
    if name in _SAME and not any(columns_of(argument) for argument in arguments):
        return value
    if name in _PIECES:
        return Part(value)
    if name in ("index", "find") and arguments:
        return Position(arguments[0], value)
    if name == "get" and arguments:
        return element(value, arguments[0])
    if name == "join":  # "\n".join(list) in Python, list|join("\n") in Jinja
        shown = arguments[0] if isinstance(value, Constant) and arguments else value
        return joined(shown.items) if isinstance(shown, Items) else shown
    if name == "format":
        return joined((value, *arguments))
    return computed(f"{name}(…)", value, *arguments)
