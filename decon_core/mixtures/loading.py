"""Which files of a mixture load as one table, and how its README.md says so.

Hugging Face's `datasets` reads a folder by the `configs` at the head of its README.md. A
configuration is one table: files of one format whose columns agree, or can be completed with nulls.
All configurations of a folder have one format; files of another are loaded by their paths.
"""

from __future__ import annotations

import glob
import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.json
import pyarrow.parquet as pq

from decon_core.storage.compression import open_bytes, suffix_of

# The columns of a file as JSON: the name of a type, [element], or {field: type}.
# None: no columns that fit all rows.
Columns = Any

_NULL = "null"
_NUMBERS = {"int64", "float64"}
_NAMES = {"double": "float64", "float": "float32", "halffloat": "float16", "date32[day]": "date32"}
# Types that can be declared in README.md by their name.
_DECLARABLE = re.compile(
    r"null|bool|u?int\d+|float\d+|(large_)?(string|binary)|date32|timestamp\[.+\]|decimal128\(.+\)"
)
_LOADERS = {
    **dict.fromkeys((".jsonl", ".json", ".ndjson"), "json"),
    ".parquet": "parquet",
    ".arrow": "arrow",
}
_HEAD_BYTES = 4 << 20  # the first bytes of a file of JSON lines, which decide its columns
_HIDDEN = (".", "__")  # files and folders that loaders skip unless they are named


def columns_of(path: Path) -> Columns:
    """Return the columns of a file: all of a table, and those at the head of JSON lines."""
    suffix = suffix_of(path)
    if suffix == ".parquet":
        return _columns(pq.read_schema(path))
    if suffix in (".arrow", ".feather"):
        with pa.memory_map(str(path)) as file:
            try:
                return _columns(pa.ipc.open_file(file).schema)
            except pa.ArrowInvalid:
                file.seek(0)
                return _columns(pa.ipc.open_stream(file).schema)
    try:
        with open_bytes(path) as lines:
            head = lines.read(_HEAD_BYTES) + lines.readline(_HEAD_BYTES)
    except EOFError:
        head = b""  # a compressed file without content
    if not head.strip():
        return {}
    try:
        options = pa.json.ReadOptions(block_size=len(head))
        return _columns(pa.json.read_json(io.BytesIO(head), read_options=options).schema)
    except pa.ArrowException:  # a field with values of different types
        return None


def _columns(fields: Iterable[pa.Field]) -> Columns:
    return {column.name: _type(column.type) for column in fields}


def _type(kind: pa.DataType) -> Columns:
    if pa.types.is_struct(kind):
        return _columns(kind)
    if pa.types.is_list(kind):
        return [_type(kind.value_type)]
    return _NAMES.get(str(kind), str(kind))


def merged(first: Columns, second: Columns) -> Columns:
    """Return the columns of two files as one table; None if a value would have to change."""
    if first == second or second == _NULL:
        return first
    if first == _NULL:
        return second
    if isinstance(first, dict) and isinstance(second, dict):
        types = {
            name: merged(first.get(name, _NULL), second.get(name, _NULL)) for name in first | second
        }
        return None if None in types.values() else types
    if isinstance(first, list) and isinstance(second, list):
        element = merged(first[0], second[0])
        return None if element is None else [element]
    is_number = isinstance(first, str) and isinstance(second, str) and {first, second} == _NUMBERS
    return "float64" if is_number else None


def _is_declarable(columns: Columns) -> bool:
    if isinstance(columns, str):
        return _DECLARABLE.fullmatch(columns) is not None
    return all(map(_is_declarable, columns.values() if isinstance(columns, dict) else columns))


def _features(columns: Mapping[str, Columns]) -> list[dict[str, Any]]:
    """Return columns as `features` of the `dataset_info` in README.md."""
    return [{"name": name, **_feature(kind)} for name, kind in columns.items()]


def _feature(kind: Columns) -> dict[str, Any]:
    if isinstance(kind, dict):
        return {"struct": _features(kind)}
    if isinstance(kind, list):
        (element,) = kind
        return {"list": _features(element) if isinstance(element, dict) else _feature(element)}
    return {"dtype": kind}


@dataclass(frozen=True)
class LoadedFile:
    """A data file of a mixture, as its README.md needs it."""

    name: str  # name in the folder of its pack
    columns: Columns
    n_documents: int

    @property
    def loader(self) -> str:
        """The module of `datasets` that reads it; empty if there is none."""
        return _LOADERS.get(suffix_of(Path(self.name)), "")


def files_to_load(accounts: Iterable[Mapping[str, Any]]) -> tuple[LoadedFile, ...]:
    """Return the files that a manifest lists, without those that hold attributes."""
    return tuple(
        LoadedFile(account["file"], account["columns"], account["n_documents_out"])
        for account in accounts
        if "columns" in account
    )


Pack = tuple[str, str]  # source and name
Files = Mapping[Pack, Sequence[LoadedFile]]


@dataclass
class _Table:
    """Files that load as one table."""

    loader: str
    columns: Columns
    is_completed: bool = False  # a file lacks some of the columns, or has fewer types
    files: dict[Pack, list[LoadedFile]] = field(default_factory=dict)

    def add(self, pack: Pack, file: LoadedFile) -> bool:
        """Add a file, if it fits; return whether it does."""
        if self.loader != file.loader:
            return False
        if self.columns != file.columns:
            if self.columns is None or file.columns is None:
                return False
            columns = merged(self.columns, file.columns)
            if columns is None or not _is_declarable(columns):
                return False
            self.columns, self.is_completed = columns, True
        self.files.setdefault(pack, []).append(file)
        return True


def _n_documents(files: Files) -> int:
    return sum(file.n_documents for pack in files.values() for file in pack)


@dataclass(frozen=True)
class Configuration:
    """A named table for loaders."""

    name: str
    loader: str
    sources: tuple[str, ...]
    n_documents: int
    paths: tuple[str, ...]
    features: str  # JSON; empty if loaders infer them


DEFAULT = "default"


def configurations_of(files: Files) -> list[Configuration]:
    """Return the tables of a mixture; the first, `default`, is loaded if none is named.

    If all its files are one table, there is only that. Otherwise `default` is the table with the
    most documents, and the others together are all tables, each by source. Those with another
    loader than `default` cannot be configurations beside it.
    """
    tables: list[_Table] = []
    for pack in sorted(files):
        for file in files[pack]:
            if file.loader and not any(table.add(pack, file) for table in tables):
                tables.append(_Table(file.loader, file.columns, files={pack: [file]}))
    tables = [table for table in tables if _n_documents(table.files)]
    if not tables:
        return []
    tables.sort(key=lambda table: -_n_documents(table.files))
    default = _configuration(DEFAULT, tables[0], tables[0].files, files)
    return [default, *_by_source(tables, files)] if len(tables) > 1 else [default]


def unloadable(files: Files) -> list[str]:
    """Return the files of formats that no configuration loads."""
    return [f"{pack[1]}/{file.name}" for pack in files for file in files[pack] if not file.loader]


def of_mixed_types(files: Files) -> list[str]:
    """Return the JSON files in which a field has values of different types, near their start."""
    return [
        f"{pack[1]}/{file.name}"
        for pack in files
        for file in files[pack]
        if file.loader and file.columns is None
    ]


def _by_source(tables: Sequence[_Table], files: Files) -> Iterator[Configuration]:
    used = {DEFAULT}
    for source in sorted({source for source, _ in files}):
        parts = [
            (table, {pack: table.files[pack] for pack in table.files if pack[0] == source})
            for table in tables
        ]
        parts = [(table, of_source) for table, of_source in parts if _n_documents(of_source)]
        for number, (table, of_source) in enumerate(parts, start=1):
            name = source if len(parts) == 1 else f"{source}-{number}"
            while name in used:
                name += "_"
            used.add(name)
            yield _configuration(name, table, of_source, files)


def _configuration(name: str, table: _Table, chosen: Files, files: Files) -> Configuration:
    return Configuration(
        name,
        table.loader,
        sources=tuple(sorted({source for source, _ in chosen})),
        n_documents=_n_documents(chosen),
        paths=tuple(path for pack in chosen for path in _paths(pack[1], chosen[pack], files[pack])),
        features=json.dumps(_features(table.columns)) if table.is_completed else "",
    )


def _paths(pack: str, chosen: Sequence[LoadedFile], every: Sequence[LoadedFile]) -> list[str]:
    """Return one pattern for all files of a pack, or the path of each."""
    is_named = any(part.startswith(_HIDDEN) for file in every for part in file.name.split("/"))
    if len(chosen) == len(every) and not is_named:
        return [f"{pack}/**"]
    return [glob.escape(f"{pack}/{file.name}") for file in chosen]
