"""Paths of all products of the pipeline.

A path with a fingerprint always holds the same content, so an existing file is correct, and writing
it again is harmless. docs/lineage.md lists all files.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from decon_core.storage.drafts import locked, sweep, sweep_lock
from decon_core.storage.files import names_in

_OF_MIXTURES = ("manifests/mixtures", "mixtures")


class _Path:
    """A path in the store."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, store: Store, _: type[Store]) -> Path:
        return store.root / self._name


def _paths(form: str) -> Callable[..., Path]:
    """Return a method that puts its arguments in place of the names in braces, in their order."""
    form = re.sub(r"\{\w+\}", "%s", form)

    def path(store: Store, *names: str) -> Path:
        return store.root / (form % names)

    return path


@dataclass(frozen=True)
class Store:
    """The folder that holds all products of a pipeline."""

    root: Path

    pack = _paths("packs/{pack}.json")
    # A second copy: without it, damage would give the pack another name.
    pack_copy = _paths("packs/copies/{pack}.json")
    retired_packs = _Path("packs/retired")
    skipped = _Path("skipped.json")
    records = _paths("records/{benchmark}/{version}.parquet")
    current_records = _paths("records/{benchmark}/current.json")
    snapshot = _paths("idf/{fingerprint}.arrow")
    current_snapshot = _Path("idf/current.json")
    index_part = _paths("index/{index}/{benchmark}/{version}.arrow")
    search = _paths("search/{scan}/{versions}.arrow")
    scan_results = _paths("scan_results/{scan}")
    joined = _paths("scan_results/{scan}/{joined}")
    joined_shards = _paths("scan_results/{scan}/{joined}/shards.json")
    ledgers = _paths("scan_results/{scan}/{joined}/ledgers.json")
    documents = _paths("scan_results/{scan}/{joined}/documents.parquet")
    scan_result = _paths("scan_results/{scan}/{joined}/{version}.parquet")
    unjoined = _paths("unjoined/{scan}")
    unjoined_ledger = _paths("unjoined/{scan}/{shard}/ledger.json")
    unjoined_documents = _paths("unjoined/{scan}/{shard}/documents.parquet")
    refusal = _paths("refused/{shard}.json")
    sketch_blocks = _paths("sketch/{sketch}/{shard}.arrow")
    sketch_ledger = _paths("sketch/{sketch}/{shard}.ledger.json")
    sketch_documents = _paths("sketch/{sketch}/{shard}.documents.parquet")
    sketch_filters = _paths("sketch/{sketch}/{shard}.filters")
    pack_sketch = _paths("sketch/{sketch}/packs/{key}.arrow")
    pack_sketch_rows = _paths("sketch/{sketch}/packs/{key}.rows")
    common = _paths("common/{fingerprint}.parquet")
    current_common = _Path("common/current.json")
    mixtures = _paths("mixtures/{name}")
    mixture = _paths("mixtures/{name}/{pack}")
    mixture_manifests = _paths("manifests/mixtures/{name}")
    mixture_manifest = _paths("manifests/mixtures/{name}/{pack}/manifest.json")
    removed = _paths("manifests/mixtures/{name}/{pack}/removed.parquet")
    clean_benchmark = _paths("clean/{benchmark}")
    draw = _paths("draws/{fingerprint}.parquet")
    calibration = _paths("calibration/{fingerprint}.json")
    drafts = _Path("drafts")
    empty_report = _paths("empty_report/{schema}.duckdb")
    report = _Path("report/contamination.duckdb")
    report_page = _Path("report/report.html")
    report_figures = _Path("report/figures")
    verification_note = _paths("checks/{what}.json")

    @property
    def report_files(self) -> tuple[Path, ...]:
        """The files derived from the report's database, without the figures."""
        return (self.report_page, *map(self.report.with_name, ("card.md", "summary.json")))

    def mixtures_of(self, pack: str) -> list[Path]:
        """Return the folders of all mixtures of a pack, those of their manifests first."""
        kinds = (self.root / kind for kind in _OF_MIXTURES)
        return [path for kind in kinds for path in sorted(kind.glob(f"*/{pack}"))]

    @property
    def pack_names(self) -> set[str]:
        return {path.stem for path in self.pack("any").parent.glob("*.json")}

    def without_pack(self, packs: Collection[str]) -> list[Path]:
        """Return the folders of mixtures that are of none of these packs."""
        found = (path for kind in _OF_MIXTURES for path in (self.root / kind).glob("*/*/"))
        return sorted(path for path in found if path.name not in packs)

    def removed_from(self, pack: str) -> list[Path]:
        """Return the lists of the documents that mixtures removed from a pack."""
        return sorted((self.root / "manifests/mixtures").glob(f"*/{pack}/removed.parquet"))

    @contextmanager
    def locked_shard(self, scan: str, shard: str) -> Iterator[None]:
        """Hold a cross-process lock on scanning a shard, and remove abandoned drafts of results.

        The system releases the lock when the process dies. Without file locks, or with locks of one
        machine only, two processes may do the same work and write the same bytes twice. Drafts are
        therefore removed only if `sweep` finds them abandoned.
        """
        self.drafts.mkdir(parents=True, exist_ok=True)
        with locked(self.drafts / f".{scan}-{shard}.lock"):
            folder = self.unjoined(scan) / shard
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
                    found = [*entries]
            except FileNotFoundError:
                continue  # another process was quicker
            for entry in found:
                if entry.name.startswith("."):
                    sweep(Path(entry.path))
                elif entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
        for lock in self.drafts.glob(".*.lock"):
            sweep_lock(lock)


def linked_store(store: Store, root: Path, folders: Iterable[str]) -> Store:
    """Create a temporary store that links some folders of another, and has the others to itself."""
    root.mkdir()
    for name in folders:
        (store.root / name).mkdir(parents=True, exist_ok=True)
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).symlink_to((store.root / name).resolve(), target_is_directory=True)
    return Store(root)
