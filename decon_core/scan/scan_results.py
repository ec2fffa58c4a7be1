"""Finds and reads scan results: the matches of a shard with a benchmark version.

The scan results of the shards of a pack are joined: there is one file for each benchmark version. A
store of ten thousand shards and a hundred benchmarks would otherwise hold a million files.

    scan_results/<scan>/<digest of shards>/
      shards.json                  the shards of this folder
      ledgers.json                 what was read of each shard
      documents.parquet            their documents, shard after shard
      <version>.parquet            their matches with a benchmark version, by shard
      <digest of versions>.grams.parquet       how many documents contain each n-gram, by version
                                               and shard; and, as metadata, the versions
      <digest of versions>.answered.parquet    instead of it, if the sketch answered for some shards

What a file contains never changes. Shards that are scanned later have a folder of their own, and so
have those that are scanned in full after an answer from the sketch. Ledgers and documents are only
in the folder of the first scan of a shard.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from hashlib import sha256
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa
import pyarrow.parquet as pq

from decon_core.errors import DamagedError, MissingError, Problem
from decon_core.schemas import DOCUMENTS, GRAM_COUNTS, MATCHES
from decon_core.storage.checksums import damaged
from decon_core.storage.files import names_in, read_json
from decon_core.storage.store import Store
from decon_core.storage.tables import (
    contents_with_rows,
    count_rows,
    no_rows,
    open_parquet,
    read_about,
)

if TYPE_CHECKING:
    import polars as pl

# Endings of the files with the counts of n-grams; answered: the sketch answered for some shards.
COUNTED, ANSWERED = ".grams.parquet", ".answered.parquet"

# The sketch's answer for a shard: its fingerprint, blocks, and those read.
Answer = Mapping[str, Any]
# What was read of a shard: counts, and the rows that could not be read.
Ledger = Mapping[str, Any]


def with_text(ledger: Ledger) -> dict[str, int]:
    """Return the numbers of documents, of those too short, and of those that are not in the sample.

    Rows without text are in none of them.
    """
    n: int = ledger["n_without_text"]
    n_left_out: int = ledger.get("n_left_out", 0) - ledger.get("n_left_out_without_text", 0)
    return {
        "n_documents": ledger["n_documents"] - n,
        "n_too_short": ledger["n_too_short"] - n,
        "n_left_out": n_left_out,
    }


def digest_of(names: Iterable[str]) -> str:
    """Return a digest of shards or versions, by which folders and files of them are named."""
    return sha256("\n".join(sorted(names)).encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Joined:
    """A folder of joined scan results."""

    store: Store
    scan: str
    name: str
    positions: Mapping[str, int] = field(repr=False)  # positions of its shards, which are sorted

    @property
    def shards(self) -> Collection[str]:
        return self.positions.keys()

    @cached_property
    def files(self) -> frozenset[str]:
        """The names of its files, as they were when this was first asked for."""
        return names_in(self.store.joined(self.scan, self.name))

    @property
    def is_read(self) -> bool:
        """Whether it has ledgers and documents; if not, another folder has them, or none does."""
        return {"ledgers.json", "documents.parquet"} <= self.files

    @property
    def ledgers(self) -> Mapping[str, Ledger]:
        """What was read of each shard."""
        path = self.store.ledgers(self.scan, self.name)
        return _ledgers_at(path, path.stat().st_mtime_ns)

    @cached_property
    def _offsets(self) -> Sequence[int]:
        """Where the documents of each shard begin in their file, and where the last ones end."""
        ledgers = self.ledgers
        return [*accumulate((ledgers[shard]["n_documents"] for shard in self.shards), initial=0)]

    def documents(self, shard: str) -> pa.Table:
        """Return the documents of a shard."""
        path = self.store.documents(self.scan, self.name)
        file, position = _documents_at(path, path.stat().st_mtime_ns), self.positions[shard]
        first, last = self._offsets[position : position + 2]
        if file.metadata.num_rows != self._offsets[-1]:
            fault = f"{file.metadata.num_rows} documents, {self._offsets[-1]} in the ledgers"
            raise DamagedError(damaged(path, fault))
        return _rows_of(file, first, last - first)

    @cached_property
    def counted(self) -> Mapping[str, Path]:
        """The files with the counts of n-grams of all shards, by version with scan results."""
        return self._with_scan_results(COUNTED)

    @cached_property
    def answered(self) -> Mapping[str, Path]:
        """These files for versions for which the sketch answered for some shards."""
        paths = self._with_scan_results(ANSWERED)
        return {version: path for version, path in paths.items() if version not in self.counted}

    def _with_scan_results(self, ending: str) -> Mapping[str, Path]:
        paths = self.counts_of(ending)
        return {
            version: path for version, path in paths.items() if f"{version}.parquet" in self.files
        }

    def counts_of(self, ending: str) -> Mapping[str, Path]:
        """Return the files of counts with this ending, by version."""
        folder = self.store.joined(self.scan, self.name)
        return {
            version: folder / name
            for name in sorted(self.files)
            if name.endswith(ending) and not name.startswith(".")
            for version in about_counts(folder / name)["versions"]
        }

    def scan_result(self, version: str) -> Path:
        return self.store.scan_result(self.scan, self.name, version)

    def counts(self, version: str) -> Path:
        """Return the file with the counts of n-grams of a version, among others."""
        return self.counted.get(version) or self.answered[version]

    def answers(self, version: str) -> Mapping[str, Answer]:
        """Return the answers of the sketch by shard; none for shards that were scanned in full."""
        path = self.answered.get(version)
        return about_counts(path)["answers"] if path else {}


@lru_cache(maxsize=1 << 16)
def about_counts(path: Path) -> Mapping[str, Any]:
    """Return the versions whose n-grams a file counts, and the answers of the sketch by shard."""
    return cast("Mapping[str, Any]", read_about(path))


@lru_cache(maxsize=64)
def _ledgers_at(path: Path, _modified_ns: int) -> Mapping[str, Ledger]:
    return cast("Mapping[str, Ledger]", read_json(path))


@lru_cache(maxsize=2)
def _documents_at(path: Path, _modified_ns: int) -> pq.ParquetFile:
    return open_parquet(path)


def _rows_of(file: pq.ParquetFile, first: int, n: int) -> pa.Table:
    """Return rows of a file of documents, of which only the row groups that hold them are read."""
    groups: list[int] = []
    skipped = at = 0
    for number in range(file.metadata.num_row_groups):
        size = file.metadata.row_group(number).num_rows
        if at + size <= first:
            skipped += size
        elif at < first + n:
            groups.append(number)
        at += size
    if not groups:
        return no_rows(DOCUMENTS)
    return file.read_row_groups(groups).cast(DOCUMENTS).slice(first - skipped, n)


@lru_cache(maxsize=1 << 16)
def _positions_at(path: Path) -> Mapping[str, int]:
    """Return the shards of a folder with their positions. A list of shards never changes."""
    return {shard: number for number, shard in enumerate(read_json(path)["shards"])}


# The folders of each shard, by the root of all folders and their names. A scan asks for them for
# every shard, and folders are added only when a pack is done.
_folders_by_shard: dict[Path, tuple[frozenset[str], Mapping[str, Sequence[str]]]] = {}


class ScanResults:
    """The scan results of a scan that exist when this is created."""

    def __init__(self, store: Store, scan: str) -> None:
        self.store, self.scan = store, scan
        self._root = store.scan_results(scan)
        self._names = frozenset(name for name in names_in(self._root) if not name.startswith("."))
        self._joined: dict[str, Joined | None] = {}

    def _folder(self, name: str) -> Joined | None:
        """Return a folder by name; None if it has no list of shards, and so is incomplete."""
        if name not in self._joined:
            path = self.store.joined_shards(self.scan, name)
            is_complete = path.is_file()
            self._joined[name] = (
                Joined(self.store, self.scan, name, _positions_at(path)) if is_complete else None
            )
        return self._joined[name]

    @property
    def folders(self) -> Sequence[Joined]:
        """All complete folders, by name."""
        return [folder for name in sorted(self._names) if (folder := self._folder(name))]

    @cached_property
    def _by_shard(self) -> Mapping[str, Sequence[str]]:
        """The names of the folders that have the scan results of each shard."""
        names, known = _folders_by_shard.get(self._root, (None, {}))
        if names == self._names:
            return known
        by_shard: defaultdict[str, list[str]] = defaultdict(list)
        for folder in self.folders:
            for shard in folder.shards:
                by_shard[shard].append(folder.name)
        if None not in self._joined.values():
            _folders_by_shard[self._root] = self._names, by_shard
        return by_shard

    def _of_shard(self, shard: str) -> Iterator[Joined]:
        """Yield the folders that have the scan results of a shard."""
        for name in self._by_shard.get(shard, ()):
            if folder := self._folder(name):
                yield folder

    def is_read(self, shard: str) -> bool:
        """Return whether the ledger and the documents of a shard exist.

        Neither does if the scan was interrupted, or if they were damaged and removed.
        """
        return any(folder.is_read for folder in self._of_shard(shard))

    def where_read(self, shard: str) -> Joined:
        """Return the folder with the ledger and documents of a shard; MissingError if none."""
        for folder in self._of_shard(shard):
            if folder.is_read:
                return folder
        problem = Problem(f"shard {shard}", "not scanned", "its ledger", "run `decon-assets run`")
        raise MissingError(problem)

    def ledger(self, shard: str) -> Ledger:
        """Return what was read of a shard."""
        return self.where_read(shard).ledgers[shard]

    def documents(self, shard: str) -> pa.Table:
        """Return the documents of a shard."""
        return self.where_read(shard).documents(shard)

    def has(self, shard: str, version: str, *, needs_counts: bool = False) -> bool:
        """Return whether there is a scan result; with `needs_counts`, one with n-gram counts."""
        return not self.missing(shard, frozenset({version}), needs_counts=needs_counts)

    def missing(
        self, shard: str, versions: frozenset[str], *, needs_counts: bool = False
    ) -> frozenset[str]:
        """Return the versions for which a shard has no scan result, or none with n-gram counts."""
        for folder in self._of_shard(shard):
            versions -= folder.counted.keys()
            if not versions:
                break
            versions -= {
                version
                for version in versions & folder.answered.keys()
                if not needs_counts or shard not in folder.answers(version)
            }
        return versions

    def _best(self, shard: str, version: str) -> Joined | None:
        """Return the folder with a scan result; a counted scan result is preferred."""
        answered = None
        for folder in self._of_shard(shard):
            if version in folder.counted:
                return folder
            if version in folder.answered:
                answered = answered or folder
        return answered

    def folder(self, shard: str, version: str) -> Joined:
        """Return the folder with a scan result; MissingError if there is none."""
        if found := self._best(shard, version):
            return found
        problem = Problem(f"shard {shard}", f"no scan result of version {version}", "one")
        raise MissingError(problem)

    def by_folder(
        self, shards: Iterable[str], version: str
    ) -> Iterator[tuple[Joined, Collection[str]]]:
        """Yield folders with the shards whose scan results are taken from them."""
        found: dict[str, tuple[Joined, list[str]]] = {}
        for shard in dict.fromkeys(shards):
            folder = self.folder(shard, version)
            found.setdefault(folder.name, (folder, []))[1].append(shard)
        yield from found.values()

    def answer(self, shard: str, version: str) -> Answer | None:
        """Return the answer of the sketch for a shard; None if it was scanned in full, or not."""
        folder = self._best(shard, version)
        return folder.answers(version).get(shard) if folder else None

    def matches(
        self, shards: Iterable[str], version: str, *, columns: Sequence[str] = MATCHES.names
    ) -> pa.Table:
        """Return the matches of shards with a benchmark version."""
        import polars as pl

        schema = pa.schema([MATCHES.field(name) for name in columns])
        folders = [*self.by_folder(shards, version)]
        whole = [
            folder.scan_result(version)
            for folder, chosen in folders
            if len(chosen) == len(folder.shards)
        ]
        # One call: file by file takes several times as long.
        tables = [_read(whole, MATCHES, columns)]
        for folder, chosen in folders:
            if len(chosen) < len(folder.shards):
                is_chosen = pl.col("shard").is_in(sorted(chosen))
                tables.append(
                    _read([folder.scan_result(version)], MATCHES, columns, where=is_chosen)
                )
        return pa.concat_tables(table.cast(schema) for table in tables)

    def n_matches(self, shards: Iterable[str], version: str) -> int:
        """Return about how many matches these shards have, as if all of a folder had as many."""
        n = 0.0
        for folder, of_folder in self.by_folder(shards, version):
            n_rows = count_rows(folder.scan_result(version), MATCHES)
            n += n_rows * len(of_folder) / len(folder.shards)
        return round(n)

    def gram_counts(self, shards_of: Mapping[str, Collection[str]]) -> Mapping[str, pa.Table]:
        """Return how many documents contain each n-gram, by its place, for each version.

        `shards_of`: the shards whose documents count, by version.
        """
        import polars as pl

        whole: defaultdict[Path, list[str]] = defaultdict(list)  # versions, for all shards
        some: defaultdict[Path, list[tuple[str, int]]] = defaultdict(list)
        for version, shards in shards_of.items():
            for folder, chosen in self.by_folder(shards, version):
                path = folder.counts(version)
                if len(chosen) == len(folder.shards):
                    whole[path].append(version)
                else:
                    some[path] += [(version, folder.positions[shard]) for shard in chosen]
        n_documents = pl.col("n_documents").cast(pl.Int64).sum()
        keys = "version", "place"
        sums = [pl.DataFrame(no_rows(GRAM_COUNTS)).group_by(keys).agg(n_documents)]
        schema = {"version": pl.String, "shard": pl.UInt32}
        for path in sorted({*whole, *some}):
            counts = pl.DataFrame(_read([path], GRAM_COUNTS, GRAM_COUNTS.names))
            of_some = pl.DataFrame(some[path], schema, orient="row")
            rows = [
                counts.filter(pl.col("version").is_in(whole[path])),
                counts.join(of_some, on=["version", "shard"], how="semi"),
            ]
            sums.append(pl.concat(rows).group_by(keys).agg(n_documents))
        total = pl.concat(sums).group_by(keys).agg(n_documents).sort(keys)
        by_version = total.partition_by("version", as_dict=True, include_key=False)
        nothing = total.clear().drop("version")
        return {version: by_version.get((version,), nothing).to_arrow() for version in shards_of}


def _read(
    paths: Sequence[Path],
    schema: pa.Schema,
    columns: Sequence[str],
    *,
    where: pl.Expr | None = None,
) -> pa.Table:
    """Return columns of the rows of files; only of those rows that meet a condition."""
    import polars as pl

    contents = contents_with_rows(paths, schema)
    if not contents:
        return no_rows(schema).select(columns)
    frame = pl.scan_parquet(contents)
    if where is not None:
        frame = frame.filter(where)
    return frame.select(columns).collect().to_arrow()
