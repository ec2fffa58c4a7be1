"""Synchronize a local store with a copy behind a URL: pull before the work, push after it.

All other code works on the local folder. docs/configuration.md says what holds with several
machines, lost files and interruptions.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from decon_core.errors import DamagedError, InputError, Problem
from decon_core.storage.drafts import remove
from decon_core.storage.files import draft_folder, read_json, write_json
from decon_core.storage.paths import (
    ATOMIC_UPLOADS,
    RemotePath,
    Stamp,
    list_files,
    naming_unreachable,
    scheme_of,
    stamp_of,
)
from decon_core.wording import counted

_NOTE = ".mirror.json"
_LOCK = ".mirror.lock"
# Folders that are not synchronized; they are built where needed. Verification notes hold for the
# local files only, and scan results that are not joined only help the scan that joins them.
_LOCAL_ONLY = ("checks", "drafts", "empty_report", "logs", "search", "unjoined")

# Only the pointers change in these folders, and nothing is ever removed.
_UNCHANGING = ("records", "idf", "index", "scan_results", "common", "draws")
_POINTER = "current.json"

# The order of transfers; deletions run in reverse. What refers to files comes after them, so that
# an interrupted push leaves a consistent store, and the next one continues.
_CONTENT, _LEDGER, _POINTERS, _MANIFEST, _CARD, _REPORT, _REPORT_FILES = range(7)
_COMPLETION_MARKERS = frozenset({_MANIFEST, _CARD, _REPORT_FILES})
_RANKS = {
    "ledger.json": _LEDGER,
    "ledgers.json": _LEDGER,
    "shards.json": _LEDGER,
    _POINTER: _POINTERS,
    "manifest.json": _MANIFEST,
    "README.md": _CARD,
}

_BATCH_SIZE = 200  # files per transfer
_MAX_LOST = 5  # a loss of so few files is never "most of a store"


class _Agreed(NamedTuple):
    """The state of a file on both sides at the last synchronization."""

    here: Stamp
    there: str  # id of the remote content; empty if the file never changes


@dataclass
class _Sides:
    """All files of both sides by name, and their state at the last synchronization."""

    here: dict[str, Stamp]
    there: dict[str, Stamp]
    agreed: dict[str, _Agreed] = field(default_factory=dict)

    def is_changed_here(self, name: str) -> bool:
        return name not in self.agreed or self.agreed[name].here != self.here.get(name)

    def is_changed_there(self, name: str) -> bool:
        content_id = _content_id(name, self.there[name])
        return name not in self.agreed or self.agreed[name].there != content_id

    def agree(self, names: Iterable[str]) -> None:
        """Note that these files are the same on both sides."""
        for name in names:
            self.agreed[name] = _Agreed(self.here[name], _content_id(name, self.there[name]))


@dataclass(frozen=True)
class Mirror:
    """A local store and the URL of its copy."""

    work: Path
    kept: RemotePath

    def pull(self) -> None:
        """Fetch new and changed files, and remove files that were removed remotely."""
        with self._locked_sides() as sides:
            if lost := _lost(sides.agreed, held=sides.here, left=sides.there):
                n_files = counted(len(sides.agreed), "file")
                found = (
                    f"{len(lost)} of {n_files} that were there after the last synchronization are "
                    f"missing, such as {lost[0]}"
                )
                remedy = (
                    f"to keep the copy at the URL, delete {self.work}: the next command downloads "
                    f"the files that are left. To keep the local copy, delete {self.work / _NOTE}: "
                    "the next command uploads all local files"
                )
                raise InputError(Problem(str(self.kept), found, remedy=remedy))
            to_fetch = [name for name in sides.there if self._is_to_fetch(sides, name)]
            left = [name for name in sides.agreed if name in sides.here and name not in sides.there]
            gone = [name for name in left if not sides.is_changed_here(name)]
            for name in _stale_markers(to_fetch, gone, sides.here):
                remove(self.work / name)
            for names in in_order(to_fetch):
                fetch(self.kept, self.work, names)
                sides.here |= {name: stamp_of(self.work / name) for name in names}
                sides.agree(names)
            for name in _in_reverse(gone):
                remove(self.work / name)
                del sides.agreed[name]

    def push(self) -> None:
        """Send new and changed files, and remove files that were removed locally."""
        with self._locked_sides() as sides:
            to_send = [name for name in sides.here if self._is_to_send(sides, name)]
            left = [name for name in sides.agreed if name in sides.there and name not in sides.here]
            left = [name for name in left if not is_never_removed(name)]
            gone = [name for name in left if not sides.is_changed_there(name)]
            self._delete(sides, _stale_markers(to_send, gone, sides.there))
            for names in in_order(to_send):
                send(self.work, self.kept, names)
                changing = [name for name in names if not is_unchanging(name)]
                sides.there |= {name: sides.here[name] for name in names}
                sides.there |= {name: stamp_of(self.kept / name) for name in changing}
                sides.agree(names)
            self._delete(sides, [name for name in _in_reverse(gone) if name in sides.there])
            for name in gone:
                del sides.agreed[name]

    def discard(self, paths: Iterable[Path]) -> None:
        """Remove files and folders locally and behind the URL, so that they are built again."""
        listed = [*paths]
        names = tuple(f"{path.relative_to(self.work).as_posix()}/" for path in listed)
        with self._locked_sides() as sides:
            gone = [name for name in sides.there if f"{name}/".startswith(names)]
            self._delete(sides, _in_reverse(gone))
            for name in gone:
                sides.agreed.pop(name, None)
        for path in listed:
            remove(path)

    def note_fetched(self, names: Iterable[str]) -> None:
        """Note that files that a scan has fetched are the same on both sides.

        Otherwise the next push would read them at the URL, and could not remove them there.
        """
        from filelock import FileLock

        by_folder: defaultdict[str, list[str]] = defaultdict(list)
        for name in names:
            by_folder[name.rpartition("/")[0]].append(name)
        with FileLock(self.work / _LOCK):
            agreed = self._read_note()
            for folder, of_folder in by_folder.items():
                there = list_files(self.kept / folder)
                for name in of_folder:
                    stamp = there.get(name.rpartition("/")[2])
                    if stamp and (self.work / name).is_file():
                        here = stamp_of(self.work / name)
                        agreed[name] = _Agreed(here, _content_id(name, stamp))
            self._write_note(agreed)

    def _is_to_fetch(self, sides: _Sides, name: str) -> bool:
        if name not in sides.here:  # new there, or removed here: the next push removes it there
            return is_never_removed(name) or sides.is_changed_there(name)
        if is_unchanging(name) or self._is_same(sides, name):
            sides.agree([name])
            return False
        return sides.is_changed_there(name) and not (
            name in sides.agreed and sides.is_changed_here(name)
        )

    def _is_to_send(self, sides: _Sides, name: str) -> bool:
        if name not in sides.there:  # new here, or removed there: the next pull removes it here
            return sides.is_changed_here(name)
        if is_unchanging(name) or self._is_same(sides, name):
            sides.agree([name])
            return False
        return sides.is_changed_here(name)

    def _is_same(self, sides: _Sides, name: str) -> bool:
        """Return whether both sides have the same content; reads the files only if necessary."""
        changed = sides.is_changed_here(name), sides.is_changed_there(name)
        if not all(changed) or sides.here[name].n_bytes != sides.there[name].n_bytes:
            return not any(changed)
        return (self.work / name).read_bytes() == (self.kept / name).read_bytes()

    def _delete(self, sides: _Sides, names: Iterable[str]) -> None:
        for name in names:
            delete(self.kept, name)
            del sides.there[name]

    @contextmanager
    def _locked_sides(self) -> Iterator[_Sides]:
        """Yield the state of both sides under a lock; the note is saved even after an error."""
        from filelock import FileLock  # takes 40 ms, and only URLs need it

        self.work.mkdir(parents=True, exist_ok=True)
        with FileLock(self.work / _LOCK):
            there = {name: stamp for name, stamp in list_files(self.kept).items() if is_kept(name)}
            here = files_in(self.work)
            # An empty side does not mean that everything was removed: it is new, or elsewhere.
            sides = _Sides(here, there, self._read_note() if here and there else {})
            if _lost(sides.agreed, held=there, left=here):
                sides.agreed = {name: sides.agreed[name] for name in here if name in sides.agreed}
            try:
                yield sides
            finally:
                self._write_note(sides.agreed)

    def _write_note(self, agreed: Mapping[str, _Agreed]) -> None:
        write_json(self.work / _NOTE, {"url": str(self.kept), "files": agreed})

    def _read_note(self) -> dict[str, _Agreed]:
        path = self.work / _NOTE
        try:
            note: Mapping[str, Any] = read_json(path) if path.is_file() else {}
        except DamagedError:
            return {}  # both sides are compared, as at the first synchronization
        if note.get("url") != str(self.kept):
            return {}
        return {name: _Agreed(Stamp(*here), there) for name, (here, there) in note["files"].items()}


def _content_id(name: str, stamp: Stamp) -> str:
    """Return an id of a remote content; empty for files that never change."""
    if is_unchanging(name):
        return ""
    return stamp.tag or f"{stamp.n_bytes} {stamp.modified_ns}"


def is_unchanging(name: str) -> bool:
    """Return whether a file of this name always has the same content."""
    return is_never_removed(name) and not name.endswith(f"/{_POINTER}")


def is_never_removed(name: str) -> bool:
    """Return whether the pipeline never removes a file; if missing, it was lost or deleted."""
    return name.split("/", maxsplit=1)[0] in _UNCHANGING


def _lost(agreed: Iterable[str], *, held: Collection[str], left: Collection[str]) -> list[str]:
    """Return the files that one side holds and the other has lost, if that is most of them.

    Replaced mixtures and files of retired packs do not count as lost.
    """
    known = [name for name in agreed if name in held]
    folders = {name.rpartition("/")[0] for name in left if "/" in name}
    missing = [
        name
        for name in known
        if name not in left
        # If its folder still has files, a mixture was written in another way.
        and (is_never_removed(name) or name.rpartition("/")[0] not in folders)
        and not _is_retired(name, left)
    ]
    return missing if len(missing) > max(_MAX_LOST, len(known) // 2) else []


def _is_retired(name: str, left: Collection[str]) -> bool:
    """Return whether a file was removed because its pack was retired."""
    folder, *between, file = name.split("/")
    if folder == "manifests" and between[:1] == ["mixtures"]:
        folder, *between = between
    pack = between[1] if folder == "mixtures" and len(between) > 1 else file.removesuffix(".json")
    return folder in ("mixtures", "packs") and f"packs/retired/{pack}.json" in left


def is_kept(name: str) -> bool:
    """Return whether a file is a product to synchronize, not temporary or local."""
    parts = name.split("/")
    return parts[0] not in _LOCAL_ONLY and not any(part.startswith(".") for part in parts)


def files_in(folder: Path) -> dict[str, Stamp]:
    """Return all products in a folder by relative name."""
    stamps: dict[str, Stamp] = {}
    for parent, folders, files in os.walk(folder):
        below = Path(parent).relative_to(folder)
        folders[:] = [name for name in folders if is_kept((below / name).as_posix())]
        for file in files:
            name = (below / file).as_posix()
            if is_kept(name):
                stamps[name] = stamp_of(folder / name)
    return stamps


def rank(name: str) -> int:
    """Return the position of a file in the order of transfers; lower ranks come first."""
    *folders, file = name.split("/")
    folder = folders[0] if folders else ""
    if folder == "report":
        return _REPORT if file.endswith(".duckdb") else _REPORT_FILES
    return _POINTERS if folder == "packs" else _RANKS.get(file, _CONTENT)


def in_order(names: Iterable[str]) -> Iterator[list[str]]:
    """Yield names in the order of transfers, in batches of one rank."""
    for _, of_rank in groupby(sorted(names, key=lambda name: (rank(name), name)), rank):
        every = list(of_rank)
        yield from (every[at : at + _BATCH_SIZE] for at in range(0, len(every), _BATCH_SIZE))


def _in_reverse(names: Iterable[str]) -> list[str]:
    return sorted(names, key=lambda name: (-rank(name), name))


def _stale_markers(
    changed: Iterable[str], gone: Iterable[str], known: Collection[str]
) -> list[str]:
    """Return the manifests and cards to delete before the files they describe change."""
    names = {name for name in (*changed, *gone) if rank(name) in _COMPLETION_MARKERS}
    return [name for name in _in_reverse(names) if name in known]


# Transfers: each file gets its name when it is complete ------------------------------------------


def fetch(url: RemotePath, folder: Path, names: Collection[str]) -> None:
    """Fetch files, which replace those in the folder."""
    if not names:
        return
    with draft_folder(folder / "drafts", "fetched") as draft:
        parts = [draft / str(number) for number in range(len(names))]
        keys = [_key(url, name) for name in names]
        with naming_unreachable(url):
            url.file_system.get(keys, [str(part) for part in parts])
        for part, name in zip(parts, names, strict=True):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            part.replace(folder / name)


def send(folder: Path, url: RemotePath, names: Collection[str]) -> None:
    """Send files, which replace those at the URL."""
    if not names:
        return
    files = url.file_system
    paths = [str(folder / name) for name in names]
    keys = [_key(url, name) for name in names]
    with naming_unreachable(url):
        if scheme_of(str(url)) in ATOMIC_UPLOADS:
            files.put(paths, keys)
            return
        for path, key in zip(paths, keys, strict=True):
            parent, _, name = key.rpartition("/")
            files.makedirs(parent, exist_ok=True)
            files.put_file(path, f"{parent}/.{name}.tmp")
            files.mv(f"{parent}/.{name}.tmp", key)


def delete(url: RemotePath, name: str) -> None:
    """Delete a file at the URL, unless another machine was quicker."""
    with suppress(FileNotFoundError), naming_unreachable(url):
        url.file_system.rm_file(_key(url, name))


def _key(url: RemotePath, name: str) -> str:
    return f"{url.key.rstrip('/')}/{name}"
