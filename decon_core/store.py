"""Where everything the pipeline makes is kept, and how it gets there: whole or not at all.

    <root>/
      packs/<pack>.json                              which shards belong together
      packs/retired/<pack>.json                      packs that went: their numbers stay taken
      records/<benchmark>/<version>.parquet          normalized records
      records/<benchmark>/current.json               the version that counts today
      idf/<snapshot>.arrow, idf/current.json         frozen frequencies
      index/<index fp>/<benchmark>/<version>.arrow   tokens and frequencies of a benchmark
      search/<scan fp>/<versions>.arrow              several of those, ready to be searched at once
      tiles/<scan fp>/<shard fp>/<version>.parquet   matches of one shard with one benchmark
      tiles/<scan fp>/<shard fp>/<version>.grams.parquet   in how many documents each n-gram stands
      tiles/<scan fp>/<shard fp>/documents.parquet   how long each of its documents is
      tiles/<scan fp>/<shard fp>/ledger.json         what was read of it, and what could not be
      common/<fingerprint>.parquet, common/current.json    common n-grams, as they were frozen
      mixtures/<name>/<pack>/                        a variant of the shards, and its account
      blends/<name>/                                 a stream drawn from a mixture, in parts
      clean/<benchmark>/                             what is left of a benchmark without its leaks
      draws/<fingerprint>.parquet                    what a control leaves out of a source
      report/contamination.duckdb                    the answer
      report/report.html                             the same as a page
      report/card.md, report/summary.json            the same for a dataset's card, and for programs
      report/leak_rates.json                         of this report and of the one before
      scorecard/                                     what each rule sees of planted leaks
      checks/<what>.json                             what was verified, and how it lay there then
      checks/matches-<scan fp>.json                  how many each tile had when it was found right
      drafts/                                        mixtures that are being written

Paths are made here and nowhere else. Names that hold a fingerprint never change what they say, so a
file that is present is right, and writing it again is harmless.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from decon_core.errors import Problem, StaleError

Array = npt.NDArray[np.generic]
_REMEDY = "delete it, and what was lost is made again by the next run"

_DAY_SECONDS = 86_400
_ROWS_PER_GROUP = 1 << 16
_DRAFT = ".tmp"


@dataclass(frozen=True)
class Store:
    """The folder that holds all products of a pipeline."""

    root: Path

    def pack(self, pack: str) -> Path:
        return self.root / "packs" / f"{pack}.json"

    @property
    def retired_packs(self) -> Path:
        return self.root / "packs" / "retired"

    def records(self, benchmark: str, version: str) -> Path:
        return self.root / "records" / benchmark / f"{version}.parquet"

    def current_records(self, benchmark: str) -> Path:
        return self.root / "records" / benchmark / "current.json"

    def snapshot(self, fingerprint: str) -> Path:
        return self.root / "idf" / f"{fingerprint}.arrow"

    @property
    def current_snapshot(self) -> Path:
        return self.root / "idf" / "current.json"

    def index_part(self, index: str, benchmark: str, version: str) -> Path:
        return self.root / "index" / index / benchmark / f"{version}.arrow"

    def search(self, scan: str, versions: str) -> Path:
        return self.root / "search" / scan / f"{versions}.arrow"

    def tiles(self, scan: str) -> Path:
        return self.root / "tiles" / scan

    def tile(self, scan: str, shard: str, version: str) -> Path:
        return self.root / "tiles" / scan / shard / f"{version}.parquet"

    def tiles_there(self, scan: str, shard: str) -> frozenset[str]:
        """The names of the files in a shard's folder of tiles."""
        try:
            return frozenset(os.listdir(self.root / "tiles" / scan / shard))  # noqa: PTH208 - names only
        except FileNotFoundError:
            return frozenset()

    @contextmanager
    def alone_on(self, scan: str, shard: str) -> Iterator[None]:
        """Whoever else wants to scan this shard waits until the block ends, in any process.

        The system takes the lock back when a process dies, however it dies. Where a file system
        knows no locks, or only those of one machine, two may do the same work: the same bytes
        twice, and nothing wrong. So drafts that lie there go only when they are old.
        """
        self.drafts.mkdir(parents=True, exist_ok=True)
        with _locked(self.drafts / f".{scan}-{shard}.lock"):
            for name in self.tiles_there(scan, shard):
                if name.startswith(".") and name.endswith(_DRAFT):
                    _sweep(self.tiles(scan) / shard / name)
            yield

    def gram_counts(self, scan: str, shard: str, version: str) -> Path:
        return self.root / "tiles" / scan / shard / f"{version}.grams.parquet"

    def documents(self, scan: str, shard: str) -> Path:
        return self.root / "tiles" / scan / shard / "documents.parquet"

    def ledger(self, scan: str, shard: str) -> Path:
        return self.root / "tiles" / scan / shard / "ledger.json"

    def common(self, fingerprint: str) -> Path:
        return self.root / "common" / f"{fingerprint}.parquet"

    @property
    def current_common(self) -> Path:
        return self.root / "common" / "current.json"

    def mixture(self, name: str, pack: str) -> Path:
        return self.mixtures(name) / pack

    def mixtures(self, name: str) -> Path:
        return self.root / "mixtures" / name

    def mixtures_of(self, pack: str) -> list[Path]:
        """The folders that any mixture has for a pack."""
        return sorted((self.root / "mixtures").glob(f"*/{pack}"))

    def blend(self, name: str) -> Path:
        return self.root / "blends" / name

    def clean_benchmark(self, benchmark: str) -> Path:
        return self.root / "clean" / benchmark

    def draw(self, fingerprint: str) -> Path:
        return self.root / "draws" / f"{fingerprint}.parquet"

    @property
    def drafts(self) -> Path:
        return self.root / "drafts"

    def sweep_drafts(self) -> None:
        """Remove what processes that were killed left behind."""
        for draft in self.drafts.glob(".*"):
            _sweep(draft)

    @property
    def report(self) -> Path:
        return self.root / "report" / "contamination.duckdb"

    @property
    def report_page(self) -> Path:
        return self.report.with_name("report.html")

    @property
    def of_report(self) -> tuple[Path, ...]:
        """What is made from the report's database: no report, none of these."""
        return (self.report_page, *map(self.report.with_name, ("card.md", "summary.json")))

    @property
    def scorecard(self) -> Path:
        return self.root / "scorecard"

    def verified(self, what: str) -> Path:
        return self.root / "checks" / f"{what}.json"


def _sweep(draft: Path) -> None:
    """Remove a draft that was not written to for a day: of a process that was killed."""
    with suppress(FileNotFoundError):  # another one was quicker
        if time.time() - draft.stat().st_mtime > _DAY_SECONDS:
            remove(draft)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold a lock on a file that is there only as long as anybody wants it."""
    while True:
        with path.open("w") as file:
            with suppress(OSError):
                fcntl.flock(file, fcntl.LOCK_EX)
            if not _leads_to(path, file.fileno()):
                continue  # whoever held it has removed it meanwhile
            try:
                yield
            finally:
                path.unlink(missing_ok=True)
            return


def _leads_to(path: Path, file: int) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(file))
    except FileNotFoundError:
        return False


@contextmanager
def aside(path: Path, *, drafts: Path | None = None) -> Iterator[Path]:
    """A name to write to; it becomes `path` when the block ends well, and vanishes when not.

    Works for files and for folders. A folder that stands in the way is replaced. What is left of a
    process that was killed lies beside the path, or in `drafts` where people read all that there is
    beside it.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    folder = drafts or path.parent
    draft = folder / f".{path.name}.{uuid4().hex[:12]}{_DRAFT}"
    try:
        yield draft
        if draft.is_dir():
            _replace_folder(draft, path)
        else:
            _flush(draft)
            draft.replace(path)
    except OSError as error:
        if error.errno == errno.ENOSPC and not error.filename:
            raise OSError(error.errno, "no space left to write", str(path)) from error
        raise
    finally:
        remove(draft)


def _flush(path: Path) -> None:
    """To the disk before the rename, or a power cut could leave a named but empty file."""
    with path.open("rb+") as file:
        os.fsync(file.fileno())


def _replace_folder(draft: Path, path: Path) -> None:
    for file in draft.rglob("*"):
        if file.is_file():
            _flush(file)
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


def remove(path: Path) -> None:
    """Delete a file or a folder, if it is there."""
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def write_json(path: Path, value: object) -> None:
    with aside(path) as draft:
        text = json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False)
        draft.write_text(text + "\n", encoding="utf-8")


def read_json(path: Path) -> Any:  # the caller knows what it wrote
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise StaleError(Problem(str(path), f"damaged ({error})", "valid JSON", _REMEDY)) from None


def write_parquet(path: Path, table: pa.Table) -> None:
    with aside(path) as draft:
        pq.write_table(table, draft, compression="zstd")


def write_tile(path: Path, table: pa.Table) -> None:
    """Without what columns mean: of most tiles, which have no rows, that would be two thirds."""
    with aside(path) as draft:
        if table.num_rows:
            pq.write_table(table, draft, compression="zstd", store_schema=False)
        else:
            draft.write_bytes(_empty_tile(table.schema.serialize().to_pybytes()))


@lru_cache(maxsize=64)
def _empty_tile(schema: bytes) -> bytes:
    """The file without rows, which only the schema decides.

    Most tiles of a grid are such, and putting one together takes longer than writing it.
    """
    sink = pa.BufferOutputStream()
    pq.write_table(_empty_table(schema), sink, compression="zstd", store_schema=False)
    return bytes(sink.getvalue())


def no_rows(schema: pa.Schema) -> pa.Table:
    """A table without rows; of forty columns, half a millisecond is spent on making one."""
    return _empty_table(schema.serialize().to_pybytes())


@lru_cache(maxsize=64)
def _empty_table(schema: bytes) -> pa.Table:
    return pa.ipc.read_schema(pa.py_buffer(schema)).empty_table()


def has_no_rows(path: Path, schema: pa.Schema) -> bool:
    """Whether a tile has none; telling so takes a tenth of the time of opening it."""
    empty = _empty_tile(schema.serialize().to_pybytes())
    return path.stat().st_size == len(empty) and path.read_bytes() == empty


@contextmanager
def growing_parquet(path: Path, schema: pa.Schema) -> Iterator[Callable[[pa.Table], None]]:
    """A file to write rows to as they come; how they were cut into tables leaves no trace in it."""
    waiting = schema.empty_table()
    with aside(path) as draft, pq.ParquetWriter(draft, schema, compression="zstd") as writer:

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
    """Tables of one schema in one file, each when it is needed."""
    with aside(path) as draft, pq.ParquetWriter(draft, schema, compression="zstd") as writer:
        for table in tables:
            writer.write_table(table)


def write_arrow(path: Path, table: pa.Table) -> None:
    """Uncompressed Arrow IPC, so that readers can map it into memory."""
    with (
        aside(path) as draft,
        pa.OSFile(str(draft), "wb") as sink,
        pa.ipc.new_file(sink, table.schema) as writer,
    ):
        writer.write_table(table)


def read_arrow(path: Path) -> pa.Table:
    try:
        with pa.memory_map(str(path)) as source:
            return pa.ipc.open_file(source).read_all()
    except pa.ArrowInvalid as error:
        raise StaleError(
            Problem(str(path), f"damaged ({error})", "a whole file", _REMEDY)
        ) from None


def write_arrays(
    path: Path,
    arrays: Mapping[str, Array],
    *,
    schema: pa.Schema | None = None,
    about: Mapping[str, str] | None = None,
) -> None:
    """Arrays of any lengths in one Arrow file: a table of one row, with a list in every column."""
    columns = {
        name: pa.LargeListArray.from_arrays([0, values.size], pa.array(values))
        for name, values in arrays.items()
    }
    table = pa.table(columns)
    if schema is not None:
        table = table.select(schema.names).cast(schema)
    write_arrow(path, table.replace_schema_metadata(about))


def _as_mapped(values: pa.Array) -> Array:
    """Arrow's own way to give numpy its numbers looks for pandas first, which can take 0.3 s."""
    kind = values.type.to_pandas_dtype()
    content = values.buffers()[1] if len(values) else b""
    return np.frombuffer(content, kind, len(values), values.offset * kind().itemsize)


def map_arrays(path: Path) -> tuple[dict[str, Any], dict[str, str]]:
    """What `write_arrays` wrote: mapped, not read, so that all processes share one copy."""
    table = read_arrow(path)
    arrays = {name: _as_mapped(table[name].chunk(0).values) for name in table.column_names}
    metadata = table.schema.metadata or {}
    about = {key.decode(): value.decode() for key, value in metadata.items()}
    return arrays, about
