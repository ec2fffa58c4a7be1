"""The columns of all tables passed between stages, from schemas.toml, and their Arrow schemas.

A schema is made when it is first imported, because the code location needs only the columns and
loads without Arrow.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from decon_core.hidden import hidden

if TYPE_CHECKING:
    import pyarrow as pa


class Column(NamedTuple):
    name: str
    kind: str  # as Arrow prints the type
    about: str
    is_nullable: bool


def field(name: str, kind: str, about: str) -> Column:
    return Column(name, kind, about, is_nullable=True)


def required(name: str, kind: str, about: str) -> Column:
    return Column(name, kind, about, is_nullable=False)


def _columns(name: str) -> tuple[Column, ...]:
    """Return the columns that a table of schemas.toml declares."""
    return tuple(
        Column(column, kind.removesuffix("?"), about, is_nullable=kind[-1] == "?")
        for column, kind, about in _DECLARED[name]
    )


def _arrays(name: str) -> tuple[Column, ...]:
    """Return a table of one row, with an array in every column."""
    return tuple(
        required(column, f"large_list<item: {kind} not null>", about)
        for column, kind, about in _DECLARED[name]
    )


_DECLARED = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))

COLUMNS = {
    **{name: _columns(name) for name in _DECLARED},
    "INDEX": _arrays("INDEX"),
    "FREQUENCIES": _arrays("FREQUENCIES"),
    "MATCHES": (*_columns("MATCH"), *_columns("ALIKE")),
    "ENTRIES": (*_columns("MATCH"), *_columns("ENTRY")),
}


def __getattr__(name: str) -> Any:
    """Return the Arrow schema of a table, such as `RECORDS`."""
    if name not in COLUMNS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return globals().setdefault(name, schema_of(COLUMNS[name]))


def schema_of(columns: Iterable[Column]) -> pa.Schema:
    return _arrow().schema([_field(column) for column in columns])


@cache
def _arrow() -> Any:
    import pyarrow as pa

    # With its first array, Arrow imports pandas if it is installed, to recognize objects of pandas:
    # a third of a second in every process, though nothing here has such objects. Conversions to and
    # from pandas still import it when they are called.
    with hidden("pandas"):
        pa.array([0])
    return pa


def _field(column: Column) -> pa.Field:
    name, kind, about, is_nullable = column
    metadata = {"description": about} if about else None
    return _arrow().field(name, _type(kind), nullable=is_nullable, metadata=metadata)


def _type(kind: str) -> pa.DataType:
    pa = _arrow()
    outer, _, inner = kind.removesuffix(">").partition("<")
    if outer == "large_list":
        items = inner.removeprefix("item: ").removesuffix(" not null")
        return pa.large_list(pa.field("item", _type(items), nullable=False))
    if outer == "list":
        return pa.list_(_type(inner.removeprefix("item: ")))
    if outer == "struct":
        members = (member.split(": ") for member in inner.split(", "))
        return pa.struct([(name, _type(of_member)) for name, of_member in members])
    return pa.type_for_alias(kind)
