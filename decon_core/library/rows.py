"""Rows of a program's objects as lines of JSON, which are read as those of a shard."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Mapping, Sequence
from numbers import Number
from typing import Any, TypeAlias

import orjson

from decon_core.errors import InputError, Problem

# A text; a row, as a line of JSON Lines holds it; or a conversation, a list of its messages.
TextOrRow: TypeAlias = "str | Mapping[str, Any] | Sequence[Mapping[str, Any]]"

NO_ROW = b"null"
# Values without text, as those in a table that are no strings, lists or structs.
_WITHOUT_TEXT = (bytes, bytearray, memoryview, Number, dt.date, dt.time, dt.timedelta)


def is_conversation(value: object) -> bool:
    """Return whether a value is a list of messages."""
    return isinstance(value, list | tuple) and all(isinstance(one, Mapping) for one in value)


def line_of(row: Mapping[Any, Any], where: str = "") -> bytes:
    """Return a row as JSON in one line; raise `InputError` if it holds what JSON has no form for.

    Numbers, times and bytes may be lost: they are no text.
    """
    try:
        return orjson.dumps(row, default=_json_form)
    except (TypeError, RecursionError):  # also: lone surrogates, long integers, keys of other types
        pass
    try:
        return json.dumps(row, default=_json_form).encode()
    except (TypeError, ValueError, RecursionError) as error:
        remedy = "Convert the value to dictionaries, lists and strings, or leave it out."
        raise InputError(Problem(where, str(error), "values that JSON has", remedy)) from None


def _json_form(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, _WITHOUT_TEXT):
        return None
    if hasattr(value, "tolist"):  # arrays of numpy and the like
        return value.tolist()
    if isinstance(value, Sequence):
        return [*value]
    raise TypeError(f"a value of type {type(value).__name__}")
