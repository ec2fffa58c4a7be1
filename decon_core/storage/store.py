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
      refused/<shard fp>.json                        why a shard could not be scanned
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
import re
import shutil
import socket
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any
from uuid import uuid4

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

Array = npt.NDArray[np.generic]

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

    def refusal(self, shard: str) -> Path:
        return self.root / "refused" / f"{shard}.json"

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
        """Remove what processes that were killed left behind, anywhere in the store."""
        folders = [str(self.root)]
        while folders:
            try:
                with os.scandir(folders.pop()) as entries:
                    found = [(one.path, one.is_dir(follow_symlinks=False)) for one in entries]
            except FileNotFoundError:
                continue  # another process was quicker
            for path, is_folder in found:
                if Path(path).name.startswith("."):
                    _sweep(Path(path))
                elif is_folder:
                    folders.append(path)
        for lock in self.drafts.glob(f".*{_LOCK}"):
            _sweep_lock(lock)

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


def draft_name(name: str) -> str:
    """A hidden name for what is being written, which says by which process."""
    return f".{name}.{_this_process()}-{uuid4().hex[:8]}{_DRAFT}"


@contextmanager
def draft_folder(folder: Path, name: str) -> Iterator[Path]:
    """A folder for what is needed while the block runs."""
    folder.mkdir(parents=True, exist_ok=True)
    draft = folder / draft_name(name)
    draft.mkdir()
    try:
        yield draft
    finally:
        remove(draft)


def _this_process() -> str:
    """Machine, process and when it began: a number of a process is used again."""
    return f"{_machine()}-{os.getpid():x}-{_begun(os.getpid()) or 0:x}"


@lru_cache(maxsize=1)
def _machine() -> str:
    """This machine since it was started, as far as processes see each other in it."""
    told = [socket.gethostname()]
    with suppress(OSError):
        told.append(Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii"))
        told.append(str(Path("/proc/self/ns/pid").readlink()))
    return sha256(" ".join(told).encode()).hexdigest()[:12]


def _begun(process: int) -> int | None:
    """When a process began, in the system's own ticks; None when there is no such process.

    Where the system has no /proc, all that is known of a living process is that it is there: 0.
    """
    try:
        told = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
        return int(told.rpartition(")")[2].split()[19])
    except FileNotFoundError:
        if Path("/proc/self").exists():
            return None
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return None
    except PermissionError:
        pass
    return 0


_OWNED = re.compile(r"\.([0-9a-f]{12})-([0-9a-f]+)-([0-9a-f]+)-[0-9a-f]{8}(\.tmp|\.old)(\.|$)")
_LEFT = re.compile(r"^\..+(\.tmp|\.old)(\.|$)|^\.(matches|canaries)\.")
_LOCK = ".lock"


def _sweep(draft: Path) -> None:
    """Remove a draft whose process is gone; of one on another machine, when it is a day old."""
    with suppress(FileNotFoundError):  # another process was quicker
        if owner := _OWNED.search(draft.name):
            machine, process, begun = owner[1], int(owner[2], 16), int(owner[3], 16)
            is_left = _begun(process) != begun if machine == _machine() else _is_old(draft)
            if is_left:
                remove(draft)
        elif _LEFT.search(draft.name) and _is_old(draft):
            remove(draft)


def _is_old(draft: Path) -> bool:
    return time.time() - draft.stat().st_mtime > _DAY_SECONDS


def sweep_beside(folder: Path) -> None:
    """Remove drafts of dead processes that lie directly in a folder, which may be a person's."""
    for draft in folder.glob(".*"):
        if _OWNED.search(draft.name):
            _sweep(draft)


def _sweep_lock(path: Path) -> None:
    """Remove the file of a lock that no process holds."""
    with suppress(OSError), path.open("r+") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if _leads_to(path, file.fileno()):
            path.unlink()


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
def atomic_path(path: Path, *, drafts: Path | None = None) -> Iterator[Path]:
    """A name to write to; it becomes `path` when the block ends well, and vanishes when not.

    Works for files and for folders. A folder that stands in the way is replaced. What is left of a
    process that was killed lies beside the path, or in `drafts` where people read all that there is
    beside it.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    folder = drafts or path.parent
    draft = folder / draft_name(path.name)
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


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """An object with its checksum as the last key."""
    with atomic_path(path) as draft:
        draft.write_bytes(_json(value))


def _json(value: Mapping[str, Any]) -> bytes:
    text = json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False)
    rest = text.removesuffix("}").rstrip()
    between = "," if value else ""
    return sealed(f'{rest}{between}\n "{NAME}": "{EMPTY}"\n}}\n'.encode())


def write_plain_json(path: Path, value: object) -> None:
    """For other programs: the value alone, in a file that nothing here reads again."""
    with atomic_path(path) as draft:
        text = json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False)
        draft.write_text(text + "\n", encoding="utf-8")


def read_plain_json(path: Path) -> Any:
    """What `write_plain_json` wrote; a person may have edited it since."""
    try:
        return json.loads(path.read_bytes())
    except ValueError as error:
        problem = Problem(str(path), f"a damaged file ({error})", "valid JSON", "write it again")
        raise StaleError(problem) from None


def read_json(path: Path) -> Any:  # the caller knows what it wrote
    """What `write_json` wrote, without the checksum."""
    content = read_verified(path)
    try:
        value = json.loads(content)
    except ValueError as error:
        raise DamagedError(damaged(path, str(error))) from None
    if isinstance(value, dict):
        value.pop(NAME, None)
    return value


def write_parquet(path: Path, table: pa.Table) -> None:
    with atomic_path(path) as draft, parquet_writer(draft, table.schema) as writer:
        writer.write_table(table)


@contextmanager
def parquet_writer(
    draft: Path, schema: pa.Schema, *, store_schema: bool = True
) -> Iterator[pq.ParquetWriter]:
    """A writer of a Parquet file; the file has its checksum when the block ends well."""
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
    """A table, or some of it, out of a file whose checksum is right."""
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


def count_rows(path: Path, schema: pa.Schema) -> int:
    """How many rows a tile has, once its checksum was verified."""
    content = path.read_bytes()
    if _is_empty_tile(content, schema):
        return 0
    require_whole(content, path)
    return int(pq.read_metadata(pa.BufferReader(content)).num_rows)


def write_tile(path: Path, table: pa.Table) -> None:
    """Without what columns mean: of most tiles, which have no rows, that would be two thirds."""
    with atomic_path(path) as draft:
        if not table.num_rows:
            draft.write_bytes(_empty_tile(table.schema.serialize().to_pybytes()))
            return
        with parquet_writer(draft, table.schema, store_schema=False) as writer:
            writer.write_table(table)


@lru_cache(maxsize=64)
def _empty_tile(schema: bytes) -> bytes:
    """The file without rows, which only the schema decides.

    Most tiles of a grid are such, and putting one together takes longer than writing it.
    """
    sink = pa.BufferOutputStream()
    empty = _empty_table(schema)
    with pq.ParquetWriter(sink, empty.schema, compression="zstd", store_schema=False) as writer:
        writer.write_table(empty)
        writer.add_key_value_metadata({NAME: EMPTY})
    return sealed(bytes(sink.getvalue()))


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


def _is_empty_tile(content: bytes, schema: pa.Schema) -> bool:
    return content == _empty_tile(schema.serialize().to_pybytes())


def tiles_with_rows(paths: Iterable[Path], schema: pa.Schema) -> list[bytes]:
    """The content of those tiles that have rows, each verified.

    A tile without rows is compared with the one file that it can be, which verifies it, too.
    """
    empty = _empty_tile(schema.serialize().to_pybytes())
    contents = []
    for path in paths:
        content = path.read_bytes()
        if content != empty:
            require_whole(content, path)
            contents.append(content)
    return contents


@contextmanager
def growing_parquet(path: Path, schema: pa.Schema) -> Iterator[Callable[[pa.Table], None]]:
    """A file to write rows to as they come; how they were cut into tables leaves no trace in it."""
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
    """Tables of one schema in one file, each when it is needed."""
    with atomic_path(path) as draft, parquet_writer(draft, schema) as writer:
        for table in tables:
            writer.write_table(table)


def write_arrow(path: Path, table: pa.Table) -> None:
    """Uncompressed Arrow IPC, so that readers can map it into memory."""
    metadata = {**(table.schema.metadata or {}), NAME: EMPTY}
    kept = table.replace_schema_metadata(metadata)
    with atomic_path(path) as draft:
        with (
            pa.OSFile(str(draft), "wb") as sink,
            pa.ipc.new_file(sink, kept.schema) as writer,
        ):
            writer.write_table(kept)
        seal(draft)


def read_arrow(path: Path) -> pa.Table:
    """A table mapped into memory, after all of the file was verified."""
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
