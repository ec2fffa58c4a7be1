"""Verify every file of a store, and remove damaged ones so that they are rebuilt.

Most files contain a checksum (`checksums.py`). Files for other programs, such as the shards of a
mixture, have theirs in the manifest of their folder.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import chain
from pathlib import Path

from decon_core.errors import DeconError, Problem
from decon_core.feature import feature_entries
from decon_core.index.term_weights import current_snapshot_fingerprint, outdated_members
from decon_core.mixtures.card import CARD
from decon_core.mixtures.manifest import faults_without_pack, listed_files
from decon_core.storage.checksums import damaged, fault_of, hash_file, is_whole
from decon_core.storage.drafts import remove
from decon_core.storage.files import files_below, read_json, write_json
from decon_core.storage.store import Store

_OF_THE_CORE = {"mixtures": "manifests/*/*/manifest.json", "clean": "*/manifest.json"}
_LEFT_OUT = {"drafts", "logs"}


def _manifests() -> dict[str, tuple[str, bool]]:
    """Return the folders whose files are listed in manifests, with the pattern of these.

    The manifests are in the folder, or apart: at the same depth below `manifests/<folder>`.
    """
    patterns = {**_OF_THE_CORE, **feature_entries("folders")}
    return {
        folder: (pattern.removeprefix("manifests/"), pattern.startswith("manifests/"))
        for folder, pattern in patterns.items()
        if pattern
    }


def verify_store(store: Store) -> Iterator[Problem | None]:
    """Read every file; yield for each a problem, or None if it is intact."""
    with_manifest = _manifests()
    folders = feature_entries("folders")
    left_out = _LEFT_OUT | {folder for folder, pattern in folders.items() if not pattern}
    for folder in sorted(path for path in store.root.glob("*") if path.is_dir()):
        if folder.name in left_out or folder.name.startswith("."):
            continue
        pattern, is_apart = with_manifest.get(folder.name, ("", False))
        if not pattern:
            # Manifests that are apart are verified with the data that they list.
            files = (path for path in files_below(folder) if path.name != "manifest.json")
            yield from map(_fault, files)
            continue
        manifests = store.root / "manifests" / folder.name if is_apart else folder
        for path in sorted(manifests.glob(pattern)):
            yield from _faults_of_listed(path, folder / path.parent.relative_to(manifests))
        yield from (_fault(path) for path in files_below(folder) if path.name == CARD)
    yield from faults_without_pack(store, store.pack_names)


def remove_damaged(store: Store, problems: Iterable[Problem]) -> list[Path]:
    """Remove damaged files and what depends on them; return the damaged files.

    The file of a pack is restored from its copy.
    """
    places = dict.fromkeys(Path(problem.where) for problem in problems)
    files = [path for path in places if path.is_relative_to(store.root) and path.exists()]
    for path in to_remove(store, files):
        remove(path)
    for path in files:
        copy = store.pack_copy(path.stem)
        if path == store.pack(path.stem) and is_whole(copy):
            write_json(path, read_json(copy))
    return files


def to_remove(store: Store, damaged_files: Iterable[Path]) -> list[Path]:
    """Return the files and folders to remove so that damaged files are rebuilt."""
    return [
        *dict.fromkeys(chain.from_iterable(_removed_with(store, path) for path in damaged_files))
    ]


def _removed_with(store: Store, path: Path) -> list[Path]:
    kind, *rest = path.relative_to(store.root).parts
    if kind == "manifests":
        kind, *rest = rest
    pattern, is_apart = _manifests().get(kind, ("", False))
    if pattern and path.name != CARD:
        below = Path(kind, *rest[: pattern.count("/")])
        manifests = [store.root / "manifests" / below] if is_apart else []
        return [*manifests, store.root / below]
    if path.parent == store.report_figures:
        return [path.parent, store.report_page]
    if kind == "common":
        return [path, store.current_common]
    if kind == "idf":
        # Only if the current records give the same counts: else weights would change silently.
        # Only `--new-term-weights` may change them.
        with suppress(DeconError):
            if path.stem == current_snapshot_fingerprint(store) and not outdated_members(store):
                return [store.current_snapshot]  # a first freeze then replaces the damaged file
    return [path]


def _fault(path: Path) -> Problem | None:
    try:
        found = fault_of(path)
    except FileNotFoundError:
        return None  # removed meanwhile
    return damaged(path, found) if found else None


def _faults_of_listed(path: Path, folder: Path) -> Iterator[Problem | None]:
    """Compare the files of a folder with its manifest."""
    if problem := _fault(path):
        yield problem
        return
    try:
        hashes, _ = listed_files(read_json(path))
    except (DeconError, KeyError, TypeError, AttributeError) as error:
        yield damaged(path, f"an invalid manifest: {error}")
        return
    yield None
    for file, content in sorted(hashes.items()):
        found = folder / file
        if not found.is_file():
            yield damaged(found, "the file is missing")
        elif hash_file(found) != content:
            yield damaged(found, "its checksum differs from the manifest")
        else:
            yield None
