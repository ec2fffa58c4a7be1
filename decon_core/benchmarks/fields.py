"""Look up fields of a benchmark row, and convert values to text."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Mapping, Sequence
from decimal import Decimal

from decon_core.config.validation import did_you_mean

Row = Mapping[str, object]

_DATE_PARTS = ("month", "day", "year")


class FieldError(Exception):
    """A row does not match its recipe. Internal: `normalize` turns it into a `Problem`."""

    def __init__(self, field: str, found: str, expected: str, remedy: str = "") -> None:
        super().__init__(field, found, expected)
        self.field, self.found, self.expected, self.remedy = field, found, expected, remedy


class AbsentFieldError(FieldError):
    """The row has no such key. A key with an empty value is no error."""


def value_at(row: Row, path: str) -> object:
    """Return the value at a dotted path: `a.b.0` enters objects by key and lists by position.

    Keys may contain dots and spaces. A key applied to a list is looked up in every element, because
    some writers store an object of lists as a list of objects. A position beyond the end of a list,
    and anything below a null, is null.
    """
    if "." not in path and path in row:  # most paths, in a third of the time
        return row[path]
    value: object = row
    parts = path.split(".")
    while parts and value is not None:
        value, n_used = _step(value, parts, path)
        parts = parts[n_used:]
    return value


def _step(value: object, parts: Sequence[str], path: str) -> tuple[object, int]:
    if isinstance(value, Mapping):
        for n_parts in range(1, len(parts) + 1):
            key = ".".join(parts[:n_parts])
            if key in value:
                return value[key], n_parts
        names = [str(name) for name in value]
        found, remedy = f"no {parts[0]!r} among {_listing(names)}", did_you_mean(parts[0], names)
        raise AbsentFieldError(path, found, f"the field {path!r}", remedy)
    if isinstance(value, list | tuple):
        if parts[0].isdecimal():
            position = int(parts[0])
            return (value[position] if position < len(value) else None), 1
        return [None if item is None else _step(item, parts[:1], path)[0] for item in value], 1
    expected, remedy = f"an object or a list with {parts[0]!r}", "Shorten the path in the recipe."
    raise FieldError(path, describe(value), expected, remedy)


def _listing(names: Sequence[str], n_shown: int = 12) -> str:
    shown = ", ".join(repr(name) for name in names[:n_shown]) or "no fields at all"
    return shown if len(names) <= n_shown else f"{shown} and {len(names) - n_shown} more"


def describe(value: object) -> str:
    """Describe a value for an error message."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return repr(value) if len(value) <= 60 else repr(value[:57] + "...")
    if isinstance(value, int | float):
        return f"the number {value}"
    if isinstance(value, Mapping):
        return f"an object with {_listing([str(key) for key in value])}"
    if isinstance(value, list | tuple):
        return f"a list of {len(value)}"
    return f"a value of type {type(value).__name__}"


def is_empty(value: object) -> bool:
    """Return whether a value is null, blank text, or NaN (null in spreadsheets and pandas)."""
    if isinstance(value, str):
        return not value or value.isspace()
    return value is None or (isinstance(value, float) and math.isnan(value))


def text_of(value: object, field: str) -> str | None:
    """Return a value as text, or None if it is empty. Text is returned unchanged."""
    if isinstance(value, str):
        return None if not value or value.isspace() else value
    if is_empty(value):
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float | Decimal):
        return str(value)
    if isinstance(value, dt.date | dt.time):
        return value.isoformat()
    if isinstance(value, Mapping) and value and set(value) <= set(_DATE_PARTS):
        parts = [text_of(value.get(part), field) for part in _DATE_PARTS]
        return " ".join(part for part in parts if part) or None
    remedy = ""
    if isinstance(value, Mapping):
        key = next(iter(value), "key")
        remedy = f"Name a field inside it ({field}.{key}), or use `transform: to_json`."
    elif isinstance(value, list | tuple):
        remedy = f"Name one element ({field}.0), or use `transform: join`."
    raise FieldError(field, describe(value), "text, a number or a boolean", remedy)


def texts_of(value: object, field: str) -> list[str]:
    """Return a value as a list of answers: several for a list, none for an empty value."""
    values = value if isinstance(value, (list, tuple)) else [value]
    return [text for text in (text_of(item, field) for item in values) if text is not None]


def plain(value: object, field: str) -> object:
    """Return a value in JSON types."""
    if isinstance(value, Mapping):
        return {str(key): plain(item, field) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item, field) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, dt.date | dt.time | Decimal):
        return text_of(value, field)
    raise FieldError(field, describe(value), "a value that JSON supports")
