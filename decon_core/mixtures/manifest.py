"""Manifests of products: what a folder was made from, its files, and whether they are intact.

A product is a mixture of a pack, a blend, or a clean benchmark. Its manifest holds the fingerprint
of all inputs, and hashes of its files. Those of mixtures and blends lie with lists of documents in
`<store>/manifests/`, so that below `<store>/mixtures/` and `<store>/blends/` there is only data.
The manifest is removed before the data is replaced, and written after it: data without a manifest
is not a product, and is replaced by the next run.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import pyarrow as pa

from decon_core.corpus.packs import FILES
from decon_core.errors import DeconError, Problem
from decon_core.mixtures.card import CARD, Share, count_leaks, counts_in
from decon_core.mixtures.loading import files_to_load
from decon_core.schemas import REMOVED
from decon_core.storage.checksums import hash_file, sealed_page
from decon_core.storage.drafts import remove
from decon_core.storage.files import atomic_path, read_json
from decon_core.storage.store import Store
from decon_core.storage.tables import read_parquet
from decon_core.storage.verification import Inspection, inspect_changed, stamp_of_files
from decon_core.wording import counted

REMOVED_FILE = "removed.parquet"  # beside the manifest of a mixture
TABLES = "tables"  # key of the hashes of the files beside the manifest
REBUILD = "remove the folder; `decon-assets run` builds it again"

Manifest = dict[str, Any]


def fingerprint_of(value: object) -> str:
    """Return a hash of a JSON value: all inputs of a product."""
    return fingerprint_of_json(json.dumps(value))


def fingerprint_of_json(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:16]


def listed_files(manifest: Mapping[str, Any]) -> tuple[dict[str, str], dict[str, int]]:
    """Return hashes and sizes of the data files of a product, by path; some have no sizes."""
    if FILES in manifest:
        return dict(manifest[FILES]), manifest.get("sizes", {})
    entries = manifest["parts" if "parts" in manifest else "shards"]
    hashes = {entry["file"]: entry["output"] for entry in entries}
    return hashes, {entry["file"]: entry["n_bytes"] for entry in entries}


def read_manifest(path: Path) -> Manifest | None:
    """Return a manifest; None if it is missing or damaged."""
    try:
        manifest = read_json(path)
    except (OSError, DeconError):
        return None
    return manifest if isinstance(manifest, dict) else None


def current_manifest(path: Path, fingerprint: str, folder: Path) -> Manifest | None:
    """Return a manifest; None unless it has this fingerprint and all its files.

    The data in `folder` is compared by size only.
    """
    manifest = read_manifest(path)
    if manifest is None or manifest.get("fingerprint") != fingerprint:
        return None
    hashes, sizes = listed_files(manifest)
    is_whole = (
        all((folder / name).is_file() for name in hashes)
        and all((folder / name).stat().st_size == n_bytes for name, n_bytes in sizes.items())
        and all(path.with_name(name).is_file() for name in manifest.get(TABLES, ()))
    )
    return manifest if is_whole else None


@contextmanager
def replaced(folder: Path, manifest: Path, drafts: Path) -> Iterator[tuple[Path, Path]]:
    """Yield draft folders of the data and of the manifest with its tables, and put them in place.

    The data comes first. The block ends with `withdraw`, so that after a kill in between there is
    no manifest, which would describe other data.
    """
    with (
        atomic_path(manifest.parent, drafts=drafts) as records,
        atomic_path(folder, drafts=drafts) as data,
    ):
        records.mkdir(parents=True)
        data.mkdir()
        yield data, records


def withdraw(manifest: Path) -> None:
    """Remove a manifest, then its tables: the data that it described no longer counts."""
    manifest.unlink(missing_ok=True)
    remove(manifest.parent)


def has_page(path: Path, text: str) -> bool:
    """Return whether a card exists and has this text."""
    return path.is_file() and path.read_bytes() == sealed_page(text)


def file_faults(
    path: Path, manifest: Mapping[str, Any], folder: Path, *others: str
) -> Iterator[Problem]:
    """Compare the tables beside a manifest and the data in `folder` with the manifest.

    `others`: known files that it does not list. Unknown files are faults: a loader that reads the
    folder would read them, too.
    """
    yield from _folder_faults(path.parent, manifest[TABLES], path.name)
    yield from _folder_faults(folder, listed_files(manifest)[0], *others)


def _folder_faults(folder: Path, listed: Mapping[str, str], *others: str) -> Iterator[Problem]:
    for name, content in listed.items():
        file = folder / name
        found = "checksum mismatch" if file.is_file() else "the file is missing"
        if not file.is_file() or hash_file(file) != content:
            yield Problem(str(file), found, remedy=REBUILD)
    files = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    yield from map(_unlisted, (folder / name for name in sorted(files.difference(listed, others))))


def _unlisted(file: Path) -> Problem:
    return Problem(str(file), "no manifest lists this file", remedy="remove it")


def inspect_products(
    store: Store,
    what: str,
    products: Mapping[str, tuple[Path, Path]],
    faults: Callable[[Path, Path], Iterable[Problem]],
) -> Inspection:
    """Verify the products that were built or modified since the last inspection.

    `products`: by name, the manifest and the folder of the data. The problems of those of a pack,
    whose names end with it, are grouped.
    """
    stamps = {
        name: [stamp_of_files(path.parent, path.name), stamp_of_files(folder)]
        for name, (path, folder) in products.items()
        if path.is_file()
    }
    return inspect_changed(
        store,
        what,
        stamps,
        lambda name: faults(*products[name]),
        groups_of=lambda name: [name.rpartition("/")[2]],
    )


@dataclass(frozen=True)
class Built:
    """A mixture of a pack, a blend or a clean benchmark after its build."""

    folder: Path
    manifest: Mapping[str, Any]
    was_there: bool  # not built now

    @property
    def counts(self) -> Counter[str]:
        """The counts in its manifest; those of other kinds of products are 0."""
        return counts_in([self.manifest])


def read_share(path: Path) -> Share | None:
    """Return what the card needs of a pack; None while another process replaces the manifest."""
    try:
        status = path.stat()
        return _share_of(path, (status.st_ino, status.st_size, status.st_mtime_ns))
    except (OSError, DeconError, KeyError, TypeError, pa.ArrowException):
        return None  # or damaged: reported by its build and by `mixture verify`


@lru_cache(maxsize=1 << 14)
def _share_of(path: Path, _stamp: tuple[int, ...]) -> Share:
    """Cached, because cards are rendered from all packs again and again."""
    manifest = read_json(path)
    files = files_to_load(manifest.pop("shards"))
    return Share(manifest, files, *count_leaks(path.with_name(REMOVED_FILE)))


def faults_without_pack(store: Store, packs: Collection[str]) -> list[Problem]:
    """Return a problem for each folder of mixtures that is of none of the registered packs."""
    remedy = "`decon-assets run` removes it, and builds the mixtures of every registered pack"
    return [
        Problem(str(folder), "a mixture of an unregistered pack", "a registered pack", remedy)
        for folder in store.without_pack(packs)
    ]


def faults_beside_packs(folder: Path) -> list[Problem]:
    """Return a problem for each file of a mixture, other than its card, that is in no pack.

    Loaders skip hidden files.
    """
    files = (path for path in folder.glob("[!.]*") if path.is_file() and path.name != CARD)
    return [*map(_unlisted, sorted(files))]


def manifest_faults(path: Path, folder: Path) -> list[Problem]:
    """Verify a mixture of a pack against its manifest: document counts and file checksums."""
    import pyarrow.compute as pc

    if not path.is_file():
        return [Problem(str(folder), f"no manifest {path}", "a mixture")]
    manifest = read_json(path)
    problems = []
    for shard in manifest["shards"]:
        n_accounted = shard["n_documents_out"] + sum(shard["removed"].values())
        if n_accounted != shard["n_documents_in"]:
            file = str(folder / shard["file"])
            found = f"{counted(n_accounted, 'document')} written or removed"
            problems.append(Problem(file, found, f"{shard['n_documents_in']}, as in the corpus"))
    removed = path.with_name(REMOVED_FILE)
    if not problems and removed.is_file():
        rows = read_parquet(removed, schema=REMOVED, columns=["shard", "row", "what"])
        whole = rows.filter(pc.field("what") == "document")
        n_listed = whole.group_by(["shard", "row"]).aggregate([]).num_rows
        totals = manifest["totals"]
        # Only mixtures of shards leave out unreadable rows.
        n_removed = sum(totals["removed"].values()) + totals.get("n_unreadable_left_out", 0)
        if n_listed != n_removed:
            found, expected = counted(n_listed, "document"), f"{n_removed}, as in the manifest"
            problems.append(Problem(str(removed), found, expected))
    return [*problems, *file_faults(path, manifest, folder)]
