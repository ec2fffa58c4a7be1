"""Read the rows of benchmark files, where a truncated one is an error, and of folders of tasks."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import BinaryIO

import orjson

from decon_core.benchmarks.fields import Row, describe
from decon_core.errors import Problem, RecordError
from decon_core.storage.compression import COMPRESSIONS, DAMAGE, open_bytes
from decon_core.storage.paths import RemotePath
from decon_core.wording import counted

_BOM = b"\xef\xbb\xbf"


def read_rows(path: Path, *, columns: Sequence[str] = ()) -> Iterator[Row | Problem]:
    """Yield the rows of a file, a `Problem` for an unreadable one; `RecordError` if damaged.

    `columns` are those of a table (CSV, TSV) whose first line does not name them.
    """
    if is_task(path):
        yield _task(path)
        return
    ending = _format_of(path)
    if columns and ending not in _TABLES:
        expected = f"a table ({', '.join(_TABLES)}): other formats name their fields"
        yield Problem(str(path), f"`columns` for a {ending} file", expected)
        return
    try:
        yield from _table(path, columns) if ending in _TABLES else _READERS[ending](path)
    except EOFError:
        raise _damaged(path, "that ends too early") from None
    except DAMAGE as error:
        raise _damaged(path, f"that cannot be decompressed ({error})") from None


def is_readable(path: Path) -> bool:
    return _format_of(path) in (*_READERS, *_TABLES)


# Files with the text of a task, and where its solution and tests are, as in Harbor and in Exercism.
_TASKS = {
    "instruction.md": {"solution": ("solution", "*"), "tests": ("tests", "*")},
    "instructions.md": {"solution": (".meta", "example*"), "tests": ("", "*test*")},
}


def is_task(path: Path) -> bool:
    """Return whether a file is the text of a task, whose folder has its solution and tests."""
    return path.name in _TASKS


def _task(path: Path) -> Row:
    """Return a folder with a task as a row: instruction, solution, tests, and its name as task."""
    folder = path.parent.parent if path.parent.name.startswith(".") else path.parent
    row = {"task": folder.name, "instruction": path.read_text(encoding="utf-8", errors="replace")}
    for name, (within, pattern) in _TASKS[path.name].items():
        files = sorted(file for file in (folder / within).glob(pattern) if file.is_file())
        texts = [file.read_text(encoding="utf-8", errors="replace") for file in files]
        row[name] = "\n".join(texts)
    return row


def known_endings() -> str:
    return f"{', '.join((*_READERS, *_TABLES))}, optionally followed by {', '.join(COMPRESSIONS)}"


def _format_of(path: Path) -> str:
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] in COMPRESSIONS and suffixes[-2:-1] != [".parquet"]:
        suffixes.pop()
    return suffixes[-1] if suffixes else ""


def _damaged(path: Path, what: str) -> RecordError:
    return RecordError(
        Problem(str(path), f"a file {what}", "a complete file", "Copy or download it again.")
    )


def _json_lines(path: Path) -> Iterator[Row | Problem]:
    with open_bytes(path) as file:
        yield from _json_rows(path, file)


def _json_rows(path: Path, file: BinaryIO) -> Iterator[Row | Problem]:
    offset = 0
    for number, line in enumerate(file, start=1):
        text = line.removeprefix(_BOM) if number == 1 else line
        found = ""
        try:
            value = _parse(text)
        except ValueError as error:
            found = f"text that is not JSON ({error})"
        else:
            if isinstance(value, dict):
                yield value
            else:
                found = describe(value)
        if found and text.strip():
            where = f"{path} line {number} (byte {offset})"
            yield Problem(where, found, "one JSON object per line")
        offset += len(line)


def _parse(text: bytes) -> object:
    """Parse JSON with orjson, or with the standard library if there is a NaN."""
    try:
        parsed: object = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        try:
            parsed = json.loads(text.decode("utf-8"))
            json.dumps(parsed, ensure_ascii=False).encode()  # refuses lone surrogates
        except (json.JSONDecodeError, RecursionError):
            raise error from None
    return parsed


def _json_array(path: Path) -> Iterator[Row | Problem]:
    """Read a list of objects, alone or as the only list of an object, or one object per line."""
    with open_bytes(path) as file:
        content = file.read().removeprefix(_BOM)
    try:
        values = _parse(content)
    except ValueError as error:
        if content.lstrip().startswith(b"["):
            yield Problem(str(path), f"text that is not JSON ({error})", "a JSON list of objects")
        else:
            yield from _json_rows(path, io.BytesIO(content))
        return
    if isinstance(values, Mapping):
        values = _rows_in(values)
    for number, value in enumerate(values if isinstance(values, list) else [], start=1):
        is_row, where = isinstance(value, Mapping), f"{path} item {number}"
        yield value if is_row else Problem(where, describe(value), "an object")


def _rows_in(value: Mapping[str, object]) -> list[object]:
    """Return the rows of a file that is one object: its only list of objects, or itself.

    `{"examples": [{"input": …}, …], "canary": …}` holds rows, `{"messages": […]}` is a row.
    """
    lists = [
        item
        for item in value.values()
        if isinstance(item, list) and item and all(isinstance(row, Mapping) for row in item)
    ]
    is_chat = any({"role", "from"} & {*row} for rows in lists for row in rows)
    return lists[0] if len(lists) == 1 and not is_chat else [value]


def _parquet(path: Path) -> Iterator[Row | Problem]:
    import pyarrow as pa
    from pyarrow import parquet

    source = path.open("rb") if isinstance(path, RemotePath) else path
    try:
        for batch in parquet.ParquetFile(source).iter_batches(batch_size=2_000):
            yield from batch.to_pylist(maps_as_pydicts="strict")
    except pa.ArrowException as error:
        raise _damaged(path, f"that is not valid parquet ({error})") from None


def first_cells(path: Path, n_lines: int) -> list[list[str]]:
    """Return the cells of the first lines of a table; none for files in other formats."""
    if _format_of(path) not in _TABLES:
        return []
    lines = islice(_cells(path), n_lines)
    return [cells for cells, _ in lines if not isinstance(cells, Problem)]


def _table(path: Path, columns: Sequence[str]) -> Iterator[Row | Problem]:
    header = [*columns]
    for cells, number in _cells(path):
        if isinstance(cells, Problem):
            yield cells
        elif not header:
            header = cells
        elif len(cells) == len(header):
            yield dict(zip(header, cells, strict=True))
        else:
            expected = f"{counted(len(header), 'cell')} ({', '.join(header)})"
            yield Problem(f"{path} line {number}", counted(len(cells), "cell"), expected)


def _cells(path: Path) -> Iterator[tuple[list[str] | Problem, int]]:
    """Yield the cells of each line that is not empty, with the number of the line."""
    csv.field_size_limit(2**31 - 1)  # the default refuses passages over 128 kB
    delimiter, quoting = _TABLES[_format_of(path)]
    with open_bytes(path) as raw, io.TextIOWrapper(raw, encoding="utf-8-sig", newline="") as file:
        n_read = 0
        try:
            header = file.readline()
            unquoted = re.sub(r'"[^"]*("|$)', "", header)
            if delimiter == "," and ";" in unquoted and "," not in unquoted:
                delimiter = ";"  # as spreadsheets write where the comma is a decimal mark
            lines = chain([header], file)
            reader = csv.reader(lines, delimiter=delimiter, quoting=quoting, strict=True)  # type: ignore[arg-type] # the stubs want literals
            for cells in filter(None, reader):
                n_read = reader.line_num
                yield cells, n_read
        except (csv.Error, UnicodeDecodeError) as error:
            found = f"a line that cannot be read ({error})"
            expected = f"cells separated by {delimiter!r}, in UTF-8"
            yield Problem(f"{path} line {n_read + 1}", found, expected), n_read + 1


_READERS: dict[str, Callable[[Path], Iterator[Row | Problem]]] = {
    ".jsonl": _json_lines,
    ".ndjson": _json_lines,
    ".json": _json_array,
    ".parquet": _parquet,
}
_TABLES = {  # delimiter and quoting
    ".csv": (",", csv.QUOTE_MINIMAL),
    # TSV has no quoting: an unpaired quote in a text would swallow whole lines.
    ".tsv": ("\t", csv.QUOTE_NONE),
}
