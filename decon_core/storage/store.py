"""Paths of all products of the pipeline, and functions that read and write them atomically.

A path with a fingerprint always holds the same content, so an existing file is correct, and writing
it again is harmless. docs/lineage.md lists all files.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from decon_core.errors import DamagedError, Problem, StaleError
from decon_core.storage.checksums import (
    EMPTY,
    NAME,
    damaged,
    map_verified,
    read_verified,
    require_whole,
    seal,
    sealed,
    without_checksum,
)
from decon_core.storage.drafts import draft_name, locked, remove, sweep, sweep_lock

Array = npt.NDArray[np.generic]

_ROWS_PER_GROUP = 1 << 16
_ABOUT = "about"
_SYNCED_AT_ONCE = 16


@dataclass(frozen=True)
class Store:
    """The folder that holds all products of a pipeline."""

    root: Path

    def pack(self, pack: str) -> Path:
        return self.root / f"packs/{pack}.json"

    @property
    def retired_packs(self) -> Path:
        return self.root / "packs/retired"

    def records(self, benchmark: str, version: str) -> Path:
        return self.root / f"records/{benchmark}/{version}.parquet"

    def current_records(self, benchmark: str) -> Path:
        return self.root / f"records/{benchmark}/current.json"

    def snapshot(self, fingerprint: str) -> Path:
        return self.root / f"idf/{fingerprint}.arrow"

    @property
    def current_snapshot(self) -> Path:
        return self.root / "idf/current.json"

    def index_part(self, index: str, benchmark: str, version: str) -> Path:
        return self.root / f"index/{index}/{benchmark}/{version}.arrow"

    def search(self, scan: str, versions: str) -> Path:
        return self.root / f"search/{scan}/{versions}.arrow"

    def tiles(self, scan: str) -> Path:
        return self.root / f"tiles/{scan}"

    def joined(self, scan: str) -> Path:
        return self.root / f"tiles/{scan}/joined"

    def joined_shards(self, scan: str, joined: str) -> Path:
        return self.root / f"tiles/{scan}/joined/{joined}/shards.json"

    def tile(self, scan: str, joined: str, version: str) -> Path:
        return self.root / f"tiles/{scan}/joined/{joined}/{version}.parquet"

    def gram_counts(self, scan: str, joined: str, version: str) -> Path:
        return self.root / f"tiles/{scan}/joined/{joined}/{version}.grams.parquet"

    def answered(self, scan: str, joined: str, version: str) -> Path:
        return self.root / f"tiles/{scan}/joined/{joined}/{version}.answered.parquet"

    def unjoined(self, scan: str) -> Path:
        return self.root / f"unjoined/{scan}"

    def documents(self, scan: str, shard: str) -> Path:
        return self.root / f"tiles/{scan}/{shard}/documents.parquet"

    def ledger(self, scan: str, shard: str) -> Path:
        return self.root / f"tiles/{scan}/{shard}/ledger.json"

    def refusal(self, shard: str) -> Path:
        return self.root / f"refused/{shard}.json"

    def sketch_blocks(self, sketch: str, shard: str) -> Path:
        return self.root / f"sketch/{sketch}/{shard}.arrow"

    def sketch_ledger(self, sketch: str, shard: str) -> Path:
        return self.root / f"sketch/{sketch}/{shard}.ledger.json"

    def sketch_documents(self, sketch: str, shard: str) -> Path:
        return self.root / f"sketch/{sketch}/{shard}.documents.parquet"

    def sketch_filters(self, sketch: str, shard: str) -> Path:
        return self.root / f"sketch/{sketch}/{shard}.filters"

    def sketch_points(self, sketch: str, shard: str) -> Path:
        return self.root / f"sketch/{sketch}/{shard}.points"

    def pack_sketch(self, sketch: str, key: str) -> Path:
        return self.root / f"sketch/{sketch}/packs/{key}.arrow"

    def pack_sketch_rows(self, sketch: str, key: str) -> Path:
        return self.root / f"sketch/{sketch}/packs/{key}.rows"

    def common(self, fingerprint: str) -> Path:
        return self.root / f"common/{fingerprint}.parquet"

    @property
    def current_common(self) -> Path:
        return self.root / "common/current.json"

    def mixtures(self, name: str) -> Path:
        return self.root / f"mixtures/{name}"

    def mixture(self, name: str, pack: str) -> Path:
        return self.root / f"mixtures/{name}/{pack}"

    def blend(self, name: str) -> Path:
        return self.root / f"blends/{name}"

    def clean_benchmark(self, benchmark: str) -> Path:
        return self.root / f"clean/{benchmark}"

    def draw(self, fingerprint: str) -> Path:
        return self.root / f"draws/{fingerprint}.parquet"

    def calibration(self, fingerprint: str) -> Path:
        return self.root / f"calibration/{fingerprint}.json"

    @property
    def neighbours(self) -> Path:
        return self.root / "neighbours"

    @property
    def drafts(self) -> Path:
        return self.root / "drafts"

    @property
    def report(self) -> Path:
        return self.root / "report/contamination.duckdb"

    @property
    def report_page(self) -> Path:
        return self.root / "report/report.html"

    @property
    def scorecard(self) -> Path:
        return self.root / "scorecard"

    def verification_note(self, what: str) -> Path:
        return self.root / f"checks/{what}.json"

    @property
    def report_files(self) -> tuple[Path, ...]:
        """The files derived from the report's database."""
        return (self.report_page, *map(self.report.with_name, ("card.md", "summary.json")))

    def mixtures_of(self, pack: str) -> list[Path]:
        """Return the folders of all mixtures of a pack."""
        return sorted((self.root / "mixtures").glob(f"*/{pack}"))

    @contextmanager
    def locked_shard(self, scan: str, shard: str) -> Iterator[None]:
        """Hold a cross-process lock on scanning a shard, and remove abandoned drafts of its tiles.

        The system releases the lock when the process dies. Without file locks, or with locks of one
        machine only, two processes may do the same work and write the same bytes twice. Drafts are
        therefore removed only if `sweep` finds them abandoned.
        """
        self.drafts.mkdir(parents=True, exist_ok=True)
        with locked(self.drafts / f".{scan}-{shard}.lock"):
            for folder in (self.tiles(scan) / shard, self.unjoined(scan) / shard):
                for name in names_in(folder):
                    if name.startswith("."):
                        sweep(folder / name)
            yield

    def sweep_drafts(self) -> None:
        """Remove drafts and locks of killed processes anywhere in the store."""
        folders = [str(self.root)]
        while folders:
            try:
                with os.scandir(folders.pop()) as entries:
                    found = [(one.path, one.is_dir(follow_symlinks=False)) for one in entries]
            except FileNotFoundError:
                continue  # another process was quicker
            for path, is_folder in found:
                if Path(path).name.startswith("."):
                    sweep(Path(path))
                elif is_folder:
                    folders.append(path)
        for lock in self.drafts.glob(".*.lock"):
            sweep_lock(lock)


def names_in(folder: Path) -> frozenset[str]:
    """Return the names of what is in a folder; none if there is no folder."""
    try:
        return frozenset(os.listdir(folder))  # noqa: PTH208 - names only
    except FileNotFoundError:
        return frozenset()


def linked_store(store: Store, root: Path, folders: Iterable[str]) -> Store:
    """Create a temporary store that links some folders of another, and has the rest of its own."""
    root.mkdir()
    for name in folders:
        (store.root / name).mkdir(parents=True, exist_ok=True)
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).symlink_to((store.root / name).resolve(), target_is_directory=True)
    return Store(root)


def copy_file(source: Path, target: Path) -> None:
    """Copy a file that is complete."""
    with atomic_path(target) as draft:
        shutil.copyfile(source, draft)


@contextmanager
def draft_folder(folder: Path, name: str) -> Iterator[Path]:
    """Create a temporary folder in `folder` for the duration of the block."""
    folder.mkdir(parents=True, exist_ok=True)
    draft = folder / draft_name(name)
    draft.mkdir()
    try:
        yield draft
    finally:
        remove(draft)


@contextmanager
def atomic_path(
    path: Path, *, drafts: Path | None = None, is_synced: bool = True
) -> Iterator[Path]:
    """Yield a draft path that is renamed to `path` if the block succeeds, and deleted otherwise.

    Works for files and folders; an existing folder is replaced. The draft is created beside `path`,
    or in `drafts` if other programs read everything beside it: a killed process leaves its draft.
    Not synced, a file that was written shortly before a power failure may be damaged after it.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    folder = drafts or path.parent
    draft = folder / draft_name(path.name)
    with _named_when_full(path):
        try:
            yield draft
            if is_synced:
                for file in draft.rglob("*") if draft.is_dir() else [draft]:
                    if file.is_file():
                        _flush(file)
            if draft.is_dir():
                _replace_folder(draft, path)
            else:
                draft.replace(path)
        finally:
            remove(draft)


@contextmanager
def atomic_files() -> Iterator[Callable[[Path], Path]]:
    """Yield a function that returns a draft for a path; all are renamed in order at the end.

    They are synced side by side: a file system writes its journal once for all that wait for it.
    """
    drafts: dict[Path, Path] = {}

    def draft_of(path: Path) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        drafts[path] = path.parent / draft_name(path.name)
        return drafts[path]

    try:
        yield draft_of
        with ThreadPoolExecutor(_SYNCED_AT_ONCE) as pool:
            for path, synced in [(one, pool.submit(_flush, drafts[one])) for one in drafts]:
                with _named_when_full(path):
                    synced.result()
        for path, draft in drafts.items():
            draft.replace(path)
    finally:
        for draft in drafts.values():
            remove(draft)


@contextmanager
def _named_when_full(path: Path) -> Iterator[None]:
    """Name the file in the error of a full disk, where the system does not."""
    try:
        yield
    except OSError as error:
        if error.errno == errno.ENOSPC and not error.filename:
            raise OSError(error.errno, "no space left to write", str(path)) from error
        raise


def _flush(path: Path) -> None:
    """Sync a file before it is renamed: a power failure could otherwise leave an empty file."""
    with path.open("rb+") as file:
        os.fsync(file.fileno())


def _replace_folder(draft: Path, path: Path) -> None:
    if not path.exists():
        draft.replace(path)
        return
    old = draft.with_suffix(".old")
    path.replace(old)
    try:
        draft.replace(path)
    except OSError:
        old.replace(path)
        raise
    shutil.rmtree(old)


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Write a JSON object with its checksum as the last key."""
    text = json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False)
    rest = text.removesuffix("}").rstrip()
    between = "," if value else ""
    with atomic_path(path) as draft:
        draft.write_bytes(sealed(f'{rest}{between}\n "{NAME}": "{EMPTY}"\n}}\n'.encode()))


def write_plain_json(path: Path, value: object) -> None:
    """Write a JSON value without a checksum, for other programs."""
    with atomic_path(path) as draft:
        text = json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False)
        draft.write_text(text + "\n", encoding="utf-8")


def read_plain_json(path: Path) -> Any:
    """Read a JSON file without a checksum, which may have been edited by hand."""
    try:
        return json.loads(path.read_bytes())
    except ValueError as error:
        problem = Problem(str(path), f"a damaged file ({error})", "valid JSON", "write it again")
        raise StaleError(problem) from None


def read_json(path: Path) -> Any:  # the caller knows what it wrote
    """Read what `write_json` wrote, verify its checksum and drop it."""
    content = read_verified(path)
    try:
        value = json.loads(content)
    except ValueError as error:
        raise DamagedError(damaged(path, str(error))) from None
    if isinstance(value, dict):
        value.pop(NAME, None)
    return value


def write_parquet(path: Path, table: pa.Table) -> None:
    write_tables(path, table.schema, [table])


@contextmanager
def parquet_writer(
    draft: Path, schema: pa.Schema, *, store_schema: bool = True
) -> Iterator[pq.ParquetWriter]:
    """Open a Parquet file for writing; its checksum is added if the block succeeds."""
    with pq.ParquetWriter(draft, schema, compression="zstd", store_schema=store_schema) as writer:
        yield writer
        writer.add_key_value_metadata({NAME: EMPTY})
    seal(draft)


def read_parquet(
    path: Path,
    *,
    schema: pa.Schema | None = None,
    columns: Sequence[str] | None = None,
    filters: pc.Expression | None = None,
) -> pa.Table:
    """Read a Parquet file, or some columns and rows of it, after verifying its checksum."""
    content = map_verified(path)
    try:
        table = pq.read_table(
            pa.BufferReader(content),
            schema=schema,
            columns=None if columns is None else [*columns],
            filters=filters,
        )
    except pa.ArrowInvalid as error:
        raise DamagedError(damaged(path, str(error))) from None
    return table.replace_schema_metadata(without_checksum(table.schema.metadata))


def open_parquet(path: Path) -> pq.ParquetFile:
    """Open a Parquet file after verifying its checksum."""
    return pq.ParquetFile(pa.BufferReader(map_verified(path)))


def write_tile(path: Path, table: pa.Table, *, about: object = None) -> None:
    """Write a tile without the Arrow schema, which would be two thirds of a tile without rows.

    `about` is a JSON value that `read_about` returns.
    """
    with atomic_path(path) as draft:
        write_tile_draft(draft, table, about=about)


def write_tile_draft(draft: Path, table: pa.Table, *, about: object = None) -> None:
    """Write a tile to a draft, which the caller renames."""
    if not table.num_rows and about is None:
        draft.write_bytes(_empty(table.schema)[1])
        return
    with parquet_writer(draft, table.schema, store_schema=False) as writer:
        writer.write_table(table)
        if about is not None:
            writer.add_key_value_metadata({_ABOUT: json.dumps(about, sort_keys=True)})


def read_about(path: Path) -> Any:  # the caller knows what it wrote
    """Return the JSON value that was written with a tile."""
    return json.loads(open_parquet(path).metadata.metadata[_ABOUT.encode()])


def no_rows(schema: pa.Schema) -> pa.Table:
    """Return an empty table."""
    return _empty(schema)[0]


def has_no_rows(path: Path, schema: pa.Schema) -> bool:
    """Return whether a tile has no rows, in a tenth of the time of opening it."""
    empty = _empty(schema)[1]
    return path.stat().st_size == len(empty) and path.read_bytes() == empty


def _empty(schema: pa.Schema) -> tuple[pa.Table, bytes]:
    """Return a table without rows and the content of its tile."""
    return _empty_of(schema.serialize().to_pybytes())  # equal schemas may differ in metadata


# Most tiles have no rows, and building one takes longer than writing it.
@lru_cache(maxsize=64)
def _empty_of(schema: bytes) -> tuple[pa.Table, bytes]:
    table, sink = pa.ipc.read_schema(pa.py_buffer(schema)).empty_table(), pa.BufferOutputStream()
    with pq.ParquetWriter(sink, table.schema, compression="zstd", store_schema=False) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata({NAME: EMPTY})
    return table, sealed(bytes(sink.getvalue()))


def tiles_with_rows(paths: Iterable[Path], schema: pa.Schema) -> list[bytes]:
    """Return the verified contents of the tiles that have rows.

    A tile without rows is compared byte by byte with the expected content, which verifies it too.
    """
    empty, contents = _empty(schema)[1], []
    for path in paths:
        content = path.read_bytes()
        if content != empty:
            require_whole(content, path)
            contents.append(content)
    return contents


@contextmanager
def growing_parquet(path: Path, schema: pa.Schema) -> Iterator[Callable[[pa.Table], None]]:
    """Yield a function that appends a table; row groups do not depend on the tables' sizes."""
    waiting = schema.empty_table()
    with atomic_path(path) as draft, parquet_writer(draft, schema) as writer:

        def write(table: pa.Table) -> None:
            nonlocal waiting
            waiting = pa.concat_tables([waiting, table])
            while waiting.num_rows >= _ROWS_PER_GROUP:
                writer.write_table(waiting.slice(0, _ROWS_PER_GROUP).combine_chunks())
                waiting = waiting.slice(_ROWS_PER_GROUP)

        yield write
        if waiting.num_rows:
            writer.write_table(waiting.combine_chunks())


def write_tables(path: Path, schema: pa.Schema, tables: Iterable[pa.Table]) -> None:
    """Write tables of one schema to one file, taking them one at a time."""
    with atomic_path(path) as draft, parquet_writer(draft, schema) as writer:
        for table in tables:
            writer.write_table(table)


def write_arrow(path: Path, table: pa.Table) -> None:
    """Write uncompressed Arrow IPC, so that readers can memory-map it."""
    metadata = {**(table.schema.metadata or {}), NAME: EMPTY}
    kept = table.replace_schema_metadata(metadata)
    with atomic_path(path) as draft:
        with pa.OSFile(str(draft), "wb") as sink, pa.ipc.new_file(sink, kept.schema) as writer:
            writer.write_table(kept)
        seal(draft)


def read_arrow(path: Path) -> pa.Table:
    """Memory-map an Arrow file as a table after verifying its checksum."""
    content = map_verified(path)
    try:
        table = pa.ipc.open_file(pa.BufferReader(content)).read_all()
    except pa.ArrowInvalid as error:
        raise DamagedError(damaged(path, str(error))) from None
    return table.replace_schema_metadata(without_checksum(table.schema.metadata))


def write_arrays(
    path: Path,
    arrays: Mapping[str, Array],
    *,
    schema: pa.Schema | None = None,
    about: Mapping[str, str] | None = None,
) -> None:
    """Write arrays of any lengths to one Arrow file: one row, with a list in every column."""
    columns = {
        name: pa.LargeListArray.from_arrays([0, values.size], pa.array(values))
        for name, values in arrays.items()
    }
    table = pa.table(columns)
    if schema is not None:
        table = table.select(schema.names).cast(schema)
    write_arrow(path, table.replace_schema_metadata(about))


def _as_mapped(values: pa.Array) -> Array:
    """Return values as a NumPy view. Arrow's `to_numpy` imports pandas first, up to 0.3 s."""
    kind = values.type.to_pandas_dtype()
    content = values.buffers()[1] if len(values) else b""
    return np.frombuffer(content, kind, len(values), values.offset * kind().itemsize)


def map_arrays(path: Path) -> tuple[dict[str, Any], dict[str, str]]:
    """Memory-map what `write_arrays` wrote, so that all processes share one copy."""
    table = read_arrow(path)
    arrays = {name: _as_mapped(table[name].chunk(0).values) for name in table.column_names}
    metadata = table.schema.metadata or {}
    about = {key.decode(): value.decode() for key, value in metadata.items()}
    return arrays, about
