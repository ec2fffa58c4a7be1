"""What stands of a mixture of a pack: its manifest, what that says, and whether it is true."""

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
from decon_core.mixtures.card import Share, leaked_of
from decon_core.schemas import REMOVED
from decon_core.storage.store import read_json, read_parquet
from decon_core.wording import counted

MANIFEST = "_manifest.json"
REMOVED_FILE = "_removed.parquet"


@dataclass(frozen=True)
class Summary:
    """What a mixture of a pack holds, and what is not in it any more."""

    mixture: str
    pack: str
    n_documents_in: int
    n_documents_out: int
    n_tokens_in: int
    n_tokens_out: int
    n_cut: int  # documents that are there in part
    n_unreadable: int
    folder: Path
    was_there: bool

    @property
    def n_removed(self) -> int:
        return self.n_documents_in - self.n_documents_out


def summary_of(manifest: Mapping[str, Any], folder: Path, *, was_there: bool) -> Summary:
    """What a manifest says, in short."""
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
    """The manifest of a mixture that is there already, whole and from the same inputs."""
    path = folder / MANIFEST
    if not path.is_file() or not (folder / REMOVED_FILE).is_file():
        return None
    try:
        manifest: dict[str, Any] = read_json(path)
        is_standing = manifest["fingerprint"] == fingerprint and all(
            (folder / shard["file"]).is_file()
            and (folder / shard["file"]).stat().st_size == shard["n_bytes"]
            for shard in manifest["shards"]
        )
    except (DeconError, KeyError, TypeError):
        return None  # damaged, or of an older form: it is built again
    return manifest if is_standing else None


def share_at(folder: Path) -> Share | None:
    """What a pack has to say on its mixture's page; nothing, while another process replaces it."""
    try:
        status = (folder / MANIFEST).stat()
        return _share_of(folder, (status.st_ino, status.st_size, status.st_mtime_ns))
    except (OSError, DeconError, KeyError, TypeError, pa.ArrowException):
        return None  # or damaged: its own build, or `mixture verify`, says so


@lru_cache(maxsize=1 << 14)
def _share_of(folder: Path, _as_it_lies: tuple[int, ...]) -> Share:
    """Read once: a page is written for every pack, from all of them."""
    manifest = read_json(folder / MANIFEST)
    has_files = bool(manifest.pop("shards"))
    return Share(manifest, has_files, leaked_of(folder / REMOVED_FILE))


def manifest_faults(folder: Path) -> list[Problem]:
    """What does not add up in a pack's mixture: documents in and out, and the bytes on disk."""
    if not (folder / MANIFEST).is_file():
        return [Problem(str(folder), "no manifest", "a mixture")]
    manifest = read_json(folder / MANIFEST)
    problems = []
    for shard in manifest["shards"]:
        n_accounted = shard["n_documents_out"] + sum(shard["removed"].values())
        if n_accounted != shard["n_documents_in"]:
            file = str(folder / shard["file"])
            problems.append(
                Problem(file, counted(n_accounted, "document"), f"{shard['n_documents_in']}")
            )
    if not problems:
        problems += _unlisted(folder, manifest)
    written = [(shard["file"], shard["output"]) for shard in manifest["shards"]]
    for name, content in [*written, (REMOVED_FILE, manifest["removed"])]:
        file = folder / name
        if not file.is_file() or hash_file(file) != content:
            problems.append(
                Problem(
                    str(file),
                    "other bytes",
                    "those that were written",
                    "remove the folder; `decon-assets run` builds it anew",
                )
            )
    return problems + unknown_files(
        folder, {name for name, _ in written} | {REMOVED_FILE, MANIFEST}
    )


def unknown_files(folder: Path, known: Collection[str]) -> list[Problem]:
    """Files that a folder should not have: whoever reads all of it would read them, too."""
    files = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    return [
        Problem(str(folder / name), "a file that no manifest names", "nothing", "remove it")
        for name in sorted(files.difference(known))
    ]


def _unlisted(folder: Path, manifest: Mapping[str, Any]) -> list[Problem]:
    """Whether as many documents are on the list of what is not there as the account says."""
    path = folder / REMOVED_FILE
    if not path.is_file():
        return []  # said with the other files
    rows = read_parquet(path, schema=REMOVED, columns=["shard", "row", "what"])
    whole = rows.filter(pc.field("what") == "document")
    n_listed = whole.group_by(["shard", "row"]).aggregate([]).num_rows
    totals = manifest["totals"]
    n_gone = sum(totals["removed"].values()) + totals.get("n_unreadable_left_out", 0)
    if n_listed == n_gone:
        return []
    return [Problem(str(path), counted(n_listed, "document"), f"{n_gone}, as the manifest says")]
