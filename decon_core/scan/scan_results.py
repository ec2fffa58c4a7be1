"""Finds and reads scan results: the matches of a shard with a benchmark version.

The scan results of the shards of a pack are joined: there is one file for each benchmark version. A
store of ten thousand shards and a hundred benchmarks would otherwise hold a million files.

    scan_results/<scan>/<shard>/ledger.json, documents.parquet    what was read of a shard
    scan_results/<scan>/joined/<digest of shards>/
      shards.json                    the shards of this folder
      <version>.parquet              their matches with a benchmark version, by shard
      <version>.grams.parquet        how many documents contain each n-gram, by shard
      <version>.answered.parquet     instead of it, if the sketch answered for some of the shards

What a file contains never changes. Shards that are scanned later have a folder of their own, and so
have those that are scanned in full after an answer from the sketch.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from decon_core.errors import MissingError, Problem
from decon_core.schemas import GRAM_COUNTS, MATCHES
from decon_core.storage.files import names_in, read_json
from decon_core.storage.store import Store
from decon_core.storage.tables import contents_with_rows, no_rows, read_about

_COUNTED = ("place", "n_documents")

# The sketch's answer for a shard: its fingerprint, blocks, and those read.
Answer = Mapping[str, Any]


def digest_of_shards(shards: Iterable[str]) -> str:
    """Return the name of the folder with the joined scan results of these shards."""
    return sha256("\n".join(sorted(shards)).encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Joined:
    """A folder of joined scan results."""

    store: Store
    scan: str
    name: str
    positions: Mapping[str, int] = field(repr=False)  # positions of its shards, which are sorted
    _answers: dict[str, Mapping[str, Answer]] = field(
        default_factory=dict, init=False, compare=False, repr=False
    )

    @property
    def shards(self) -> Collection[str]:
        return self.positions.keys()

    @cached_property
    def files(self) -> frozenset[str]:
        """The names of its files, as they were when this was first asked for."""
        return names_in(self.store.joined(self.scan) / self.name)

    @cached_property
    def counted(self) -> frozenset[str]:
        """The versions with scan results, of whose n-grams the counts are known for all shards."""
        return self._with_scan_results(".grams.parquet")

    @cached_property
    def answered(self) -> frozenset[str]:
        """The versions with scan results for which the sketch answered for some shards."""
        return self._with_scan_results(".answered.parquet") - self.counted

    def _with_scan_results(self, ending: str) -> frozenset[str]:
        versions = (name.removesuffix(ending) for name in self.files if name.endswith(ending))
        return frozenset(version for version in versions if f"{version}.parquet" in self.files)

    def scan_result(self, version: str) -> Path:
        return self.store.scan_result(self.scan, self.name, version)

    def counts(self, version: str) -> Path:
        of = self.store.gram_counts if version in self.counted else self.store.answered
        return of(self.scan, self.name, version)

    def answers(self, version: str) -> Mapping[str, Answer]:
        """Return the answers of the sketch by shard; none for shards that were scanned in full."""
        if version in self.counted:
            return {}
        if version not in self._answers:
            self._answers[version] = read_about(self.counts(version))
        return self._answers[version]


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
        self._store, self.scan = store, scan
        self._root = store.joined(scan)
        self._names = frozenset(name for name in names_in(self._root) if not name.startswith("."))
        self._joined: dict[str, Joined | None] = {}

    def _folder(self, name: str) -> Joined | None:
        """Return a folder by name; None if it has no list of shards, and so is incomplete."""
        if name not in self._joined:
            path = self._store.joined_shards(self.scan, name)
            is_complete = path.is_file()
            self._joined[name] = (
                Joined(self._store, self.scan, name, _positions_at(path)) if is_complete else None
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
        found: defaultdict[str, list[str]] = defaultdict(list)
        for folder in self.folders:
            for shard in folder.shards:
                found[shard].append(folder.name)
        if None not in self._joined.values():
            _folders_by_shard[self._root] = self._names, found
        return found

    def _of_shard(self, shard: str) -> Iterator[Joined]:
        """Yield the folders that have the scan results of a shard."""
        for name in self._by_shard.get(shard, ()):
            if folder := self._folder(name):
                yield folder

    def is_read(self, shard: str) -> bool:
        """Return whether the ledger and the documents of a shard exist.

        No ledger: the scan was interrupted. No documents: they were damaged, and removed.
        """
        files = names_in(self._store.scan_results(self.scan) / shard)
        return {"ledger.json", "documents.parquet"} <= files

    def has(self, shard: str, version: str, *, needs_counts: bool = False) -> bool:
        """Return whether there is a scan result; with `needs_counts`, one with n-gram counts."""
        return not self.missing(shard, frozenset({version}), needs_counts=needs_counts)

    def missing(
        self, shard: str, versions: frozenset[str], *, needs_counts: bool = False
    ) -> frozenset[str]:
        """Return the versions for which a shard has no scan result, or none with n-gram counts."""
        for folder in self._of_shard(shard):
            versions -= folder.counted
            if not versions:
                break
            versions -= {
                version
                for version in versions & folder.answered
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
            for content in contents_with_rows([folder.scan_result(version)], MATCHES):
                n_rows = pq.read_metadata(pa.BufferReader(content)).num_rows
                n += n_rows * len(of_folder) / len(folder.shards)
        return round(n)

    def gram_counts(self, shards: Iterable[str], version: str) -> pa.Table:
        """Return how many documents of shards contain each n-gram, by its place."""
        n_documents = pl.col("n_documents").cast(pl.Int64).sum()
        sums = [pl.DataFrame(_read([], GRAM_COUNTS, _COUNTED)).cast({"n_documents": pl.Int64})]
        for folder, of_folder in self.by_folder(shards, version):
            where = None
            if len(of_folder) < len(folder.shards):
                where = pl.col("shard").is_in([folder.positions[shard] for shard in of_folder])
            counts = _read([folder.counts(version)], GRAM_COUNTS, _COUNTED, where=where)
            sums.append(pl.DataFrame(counts).group_by("place").agg(n_documents))
        return pl.concat(sums).group_by("place").agg(n_documents).sort("place").to_arrow()


def _read(
    paths: Sequence[Path],
    schema: pa.Schema,
    columns: Sequence[str],
    *,
    where: pl.Expr | None = None,
) -> pa.Table:
    """Return columns of the rows of files; only of those rows that meet a condition."""
    contents = contents_with_rows(paths, schema)
    if not contents:
        return no_rows(schema).select(columns)
    frame = pl.scan_parquet(contents)
    if where is not None:
        frame = frame.filter(where)
    return frame.select(columns).collect().to_arrow()
