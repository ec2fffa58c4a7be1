"""A benchmark: a recipe with its files, and the records that are normalized from them once."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from pathlib import Path

import pyarrow as pa

from decon_core.benchmarks.download import Remote, is_published, is_remote
from decon_core.benchmarks.files import files_by_split
from decon_core.benchmarks.normalize import normalize
from decon_core.benchmarks.recipe import Recipe
from decon_core.benchmarks.records import Version, current_version, recorded_origin, save_records
from decon_core.storage.checksums import hash_file
from decon_core.storage.paths import RemotePath, Stamp, stamp_of
from decon_core.storage.store import Store


@dataclass(frozen=True)
class Benchmark:
    """A recipe and the folder that its local paths are relative to."""

    recipe: Recipe
    base: Path

    def origin(self) -> str:
        """Return a fingerprint of recipe and files, of published data of the recipe only.

        Otherwise, `status` and the sensor would ask the hub and web sites.
        """
        files = {} if is_published(self.recipe) else files_by_split(self.recipe, base=self.base)
        content = [[split, *map(_hash, paths)] for split, paths in files.items()]
        return sha256(json.dumps([self.recipe.fingerprint, content]).encode()).hexdigest()[:16]

    def normalized(self, *, limit: int | None = None) -> pa.Table:
        return normalize(self.recipe, base=self.base, limit=limit)

    def fetched(self) -> tuple[pa.Table, str]:
        """Return all records, and the revision if they were downloaded, which is done once."""
        if not is_remote(self.recipe):
            return self.normalized(), ""
        remote = Remote.of(self.recipe, self.base)
        return remote.records(), remote.revision

    def saved(self, store: Store, remote: Remote | None = None) -> Version:
        """Return the saved records, normalized again only if the recipe or the data changed.

        `remote`: where they are downloaded from, if they are.
        """
        name = self.recipe.name
        revision = remote.revision if remote else ""
        origin = f"{self.recipe.fingerprint} {revision}" if remote else self.origin()
        if (revision or not remote) and recorded_origin(store, name) == origin:
            return current_version(store, name)
        table = remote.records() if remote else self.normalized()
        return save_records(store, name, table, origin=origin, revision=revision)


def _hash(path: Path) -> str:
    """Return the hash of a file; a remote file is read again only when its stamp changes."""
    return _hash_at(path, stamp_of(path)) if isinstance(path, RemotePath) else hash_file(path)


@lru_cache(maxsize=10_000)
def _hash_at(path: Path, stamp: Stamp) -> str:  # noqa: ARG001 - part of the cache key
    return hash_file(path)
