"""Read the rows of benchmark files, where a truncated one is an error, and of the hub."""

from __future__ import annotations

import csv
import io
import json
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import BinaryIO

import orjson

from decon_core.benchmarks.fields import Row, describe
from decon_core.benchmarks.recipe import HubSource
from decon_core.errors import Problem, RecipeError, RecordError
from decon_core.storage.compression import COMPRESSIONS, DAMAGE, open_bytes
from decon_core.storage.paths import RemotePath, naming_unreachable
from decon_core.wording import counted

_BOM = b"\xef\xbb\xbf"


def read_rows(path: Path, *, columns: Sequence[str] = ()) -> Iterator[Row | Problem]:
    """Yield the rows of a file, a `Problem` for an unreadable one; `RecordError` if damaged.

    `columns` are those of a table (CSV, TSV) whose first line does not name them.
    """
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
        where, expected = f"{path} line {number} (byte {offset})", "one JSON object per line"
        offset += len(line)
        if not text.strip():
            continue
        try:
            value = _parse(text)
        except ValueError as error:
            yield Problem(where, f"text that is not JSON ({error})", expected)
            continue
        yield value if isinstance(value, Mapping) else Problem(where, describe(value), expected)


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
        reader = csv.reader(file, delimiter=delimiter, quoting=quoting, strict=True)  # type: ignore[arg-type] # the stubs want literals
        try:
            for cells in filter(None, reader):
                yield cells, reader.line_num
        except (csv.Error, UnicodeDecodeError) as error:
            found = f"a line that cannot be read ({error})"
            expected = f"cells separated by {delimiter!r}, in UTF-8"
            where = f"{path} line {reader.line_num}"
            yield Problem(where, found, expected), reader.line_num


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


def read_hub_rows(
    source: HubSource, *, config: str | None, split: str, where: str
) -> Iterator[Row]:
    """Stream the rows of a split, so that reading ten rows does not download the data set."""
    try:
        import datasets
    except ImportError:
        expected = f"the package 'datasets', to read {source.path} from the hub"
        remedy = "Run `pip install 'decon-assets[hub]'`, or download the files and use local_path."
        problem = Problem(f"{where}.hf_path", "no package 'datasets'", expected, remedy)
        raise RecipeError(problem) from None
    place = f"{where}.hf_path {source.path!r}"
    try:
        with _without_retry_warnings(), naming_unreachable(place):
            rows = datasets.load_dataset(
                source.path, name=config, split=split, revision=source.revision, streaming=True
            )
    except (ValueError, FileNotFoundError, RuntimeError) as error:
        # Raised by `datasets` if the data set, the config or the split does not exist.
        found = f"nothing to read on the hub ({type(error).__name__}: {error})"
        names = f"hf_path {source.path!r}, hf_config {config!r}, split {split!r}"
        expected = f"{names}, hf_revision {source.revision!r}"
        remedy = "Look up the names on the data set's page."
        raise RecipeError(Problem(where, found, expected, remedy)) from error
    # Images and audio are never compared; decoding them would need more packages.
    with _without_retry_warnings(), naming_unreachable(place):
        yield from rows.decode(enable=False)


@contextmanager
def _without_retry_warnings() -> Iterator[None]:
    """Silence the two log lines of each retry; the final error contains the cause."""
    logger = logging.getLogger("huggingface_hub")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)
