"""The manifest of a mixture of a pack: read it, summarize it, and verify the files against it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from decon_core.corpus.packs import hash_file
from decon_core.errors import DeconError, Problem
from decon_core.mixtures.card import Share, count_leaks
from decon_core.schemas import REMOVED
from decon_core.storage.store import read_json, read_parquet
from decon_core.wording import counted

MANIFEST = "_manifest.json"
REMOVED_FILE = "_removed.parquet"


@dataclass(frozen=True)
class Summary:
    """Counts of a mixture of a pack, before and after."""

    mixture: str
    pack: str
    n_documents_in: int
    n_documents_out: int
    n_tokens_in: int
    n_tokens_out: int
    n_cut: int  # documents that were partly removed
    n_unreadable: int
    folder: Path
    was_there: bool

    @property
    def n_removed(self) -> int:
        return self.n_documents_in - self.n_documents_out


def summary_of(manifest: Mapping[str, Any], folder: Path, *, was_there: bool) -> Summary:
    """Return the counts of a manifest. `was_there`: the mixture was not built now."""
    totals = manifest["totals"]
    return Summary(
        mixture=manifest["mixture"],
        pack=manifest["pack"],
        **{
            name: totals.get(name, 0)
            for name in (
                "n_documents_in",
                "n_documents_out",
                "n_tokens_in",
                "n_tokens_out",
                "n_cut",
            )
        },
        n_unreadable=totals.get("n_unreadable_left_out", 0),
        folder=folder,
        was_there=was_there,
    )


def current_manifest(folder: Path, fingerprint: str) -> dict[str, Any] | None:
    """Return the manifest of a mixture; None unless it has this fingerprint and all its files.

    Files are compared by size only.
    """
    path = folder / MANIFEST
    if not path.is_file() or not (folder / REMOVED_FILE).is_file():
        return None
    try:
        manifest: dict[str, Any] = read_json(path)
        is_current = manifest["fingerprint"] == fingerprint and all(
            (folder / shard["file"]).is_file()
            and (folder / shard["file"]).stat().st_size == shard["n_bytes"]
            for shard in manifest["shards"]
        )
    except (DeconError, KeyError, TypeError):
        return None  # damaged or in an older format: rebuilt
    return manifest if is_current else None


def read_share(folder: Path) -> Share | None:
    """Return what the card needs of a pack; None while another process replaces the folder."""
    try:
        status = (folder / MANIFEST).stat()
        return _share_of(folder, (status.st_ino, status.st_size, status.st_mtime_ns))
    except (OSError, DeconError, KeyError, TypeError, pa.ArrowException):
        return None  # or damaged: reported by its build and by `mixture verify`


@lru_cache(maxsize=1 << 14)
def _share_of(folder: Path, _stamp: tuple[int, ...]) -> Share:
    """Cached, because the card is rendered from all packs after every pack."""
    manifest = read_json(folder / MANIFEST)
    has_files = bool(manifest.pop("shards"))
    return Share(manifest, has_files, count_leaks(folder / REMOVED_FILE))


def manifest_faults(folder: Path) -> list[Problem]:
    """Verify a mixture of a pack against its manifest: document counts and file checksums."""
    if not (folder / MANIFEST).is_file():
        return [Problem(str(folder), "no manifest", "a mixture")]
    manifest = read_json(folder / MANIFEST)
    problems = []
    for shard in manifest["shards"]:
        n_accounted = shard["n_documents_out"] + sum(shard["removed"].values())
        if n_accounted != shard["n_documents_in"]:
            file = str(folder / shard["file"])
            found = f"{counted(n_accounted, 'document')} written or removed"
            problems.append(Problem(file, found, f"{shard['n_documents_in']}, as in the corpus"))
    if not problems:
        problems += _check_removed(folder, manifest)
    written = [(shard["file"], shard["output"]) for shard in manifest["shards"]]
    for name, content in [*written, (REMOVED_FILE, manifest["removed"])]:
        file = folder / name
        if not file.is_file() or hash_file(file) != content:
            problems.append(
                Problem(
                    str(file),
                    "checksum mismatch",
                    "the file as it was written",
                    "remove the folder; `decon-assets run` builds it again",
                )
            )
    return problems + unlisted_files(
        folder, {name for name, _ in written} | {REMOVED_FILE, MANIFEST}
    )


def unlisted_files(folder: Path, known: Collection[str]) -> list[Problem]:
    """Return a problem for each unknown file: a loader that reads the folder would read it, too."""
    files = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    return [
        Problem(str(folder / name), "a file that no manifest names", "no such file", "remove it")
        for name in sorted(files.difference(known))
    ]


def _check_removed(folder: Path, manifest: Mapping[str, Any]) -> list[Problem]:
    """Compare the number of removed documents in `_removed.parquet` with the manifest."""
    path = folder / REMOVED_FILE
    if not path.is_file():
        return []  # reported with the other files
    rows = read_parquet(path, schema=REMOVED, columns=["shard", "row", "what"])
    whole = rows.filter(pc.field("what") == "document")
    n_listed = whole.group_by(["shard", "row"]).aggregate([]).num_rows
    totals = manifest["totals"]
    n_removed = sum(totals["removed"].values()) + totals.get("n_unreadable_left_out", 0)
    if n_listed == n_removed:
        return []
    expected = f"{n_removed}, as in the manifest"
    return [Problem(str(path), counted(n_listed, "document"), expected)]
