"""Paths of all products of the pipeline.

A path with a fingerprint always holds the same content, so an existing file is correct, and writing
it again is harmless. docs/lineage.md lists all files.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from decon_core.storage.drafts import locked, sweep, sweep_lock
from decon_core.storage.files import names_in

_OF_MIXTURES = ("manifests/mixtures", "mixtures")


@dataclass(frozen=True)
class Store:
    """The folder that holds all products of a pipeline."""

    root: Path

    def pack(self, pack: str) -> Path:
        return self.root / f"packs/{pack}.json"

    def pack_copy(self, pack: str) -> Path:
        """A second copy of a pack's file: without it, damage would give the pack another name."""
        return self.root / f"packs/copies/{pack}.json"

    @property
    def retired_packs(self) -> Path:
        return self.root / "packs/retired"

    @property
    def skipped(self) -> Path:
        return self.root / "skipped.json"

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

    def scan_results(self, scan: str) -> Path:
        return self.root / f"scan_results/{scan}"

    def joined(self, scan: str, joined: str) -> Path:
        return self.root / f"scan_results/{scan}/{joined}"

    def joined_shards(self, scan: str, joined: str) -> Path:
        return self.joined(scan, joined) / "shards.json"

    def ledgers(self, scan: str, joined: str) -> Path:
        return self.joined(scan, joined) / "ledgers.json"

    def documents(self, scan: str, joined: str) -> Path:
        return self.joined(scan, joined) / "documents.parquet"

    def scan_result(self, scan: str, joined: str, version: str) -> Path:
        return self.joined(scan, joined) / f"{version}.parquet"

    def unjoined(self, scan: str) -> Path:
        return self.root / f"unjoined/{scan}"

    def unjoined_ledger(self, scan: str, shard: str) -> Path:
        return self.unjoined(scan) / shard / "ledger.json"

    def unjoined_documents(self, scan: str, shard: str) -> Path:
        return self.unjoined(scan) / shard / "documents.parquet"

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

    def mixture_manifests(self, name: str) -> Path:
        return self.root / f"manifests/mixtures/{name}"

    def mixture_manifest(self, name: str, pack: str) -> Path:
        return self.root / f"manifests/mixtures/{name}/{pack}/manifest.json"

    def removed(self, name: str, pack: str) -> Path:
        return self.root / f"manifests/mixtures/{name}/{pack}/removed.parquet"

    def clean_benchmark(self, benchmark: str) -> Path:
        return self.root / f"clean/{benchmark}"

    def draw(self, fingerprint: str) -> Path:
        return self.root / f"draws/{fingerprint}.parquet"

    def calibration(self, fingerprint: str) -> Path:
        return self.root / f"calibration/{fingerprint}.json"

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
    def report_figures(self) -> Path:
        return self.root / "report/figures"

    def verification_note(self, what: str) -> Path:
        return self.root / f"checks/{what}.json"

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
                    found = [(entry.path, entry.is_dir(follow_symlinks=False)) for entry in entries]
            except FileNotFoundError:
                continue  # another process was quicker
            for path, is_folder in found:
                if Path(path).name.startswith("."):
                    sweep(Path(path))
                elif is_folder:
                    folders.append(path)
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
