"""List the files at a path, and whatever else lies there: nothing is passed over without a word.

One walk serves folders, patterns and single files. Links to folders are followed, and each folder
is entered once, so that a link to a folder above it ends. Nothing is opened: a fifo cannot block.
"""

from __future__ import annotations

import os
import re
import stat
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase, translate
from glob import has_magic
from pathlib import Path
from typing import NamedTuple

from decon_core.storage.paths import (
    RemotePath,
    Stamp,
    expand_glob,
    fixed_part,
    is_hidden,
    local_stamp,
    stamp_of,
)

_ALL = ("**",)  # the pattern of everything below a folder

# Files of datasets that describe their data or their storage.
METADATA = {
    "README",
    "README.md",
    "README.txt",
    "LICENSE",
    "LICENSE.md",
    "LICENSE.txt",
    "CITATION.cff",
    "dataset_info.json",
    "dataset_infos.json",
    "dataset_dict.json",
    "state.json",
}
_PICTURES = {".gif", ".jpeg", ".jpg", ".png", ".svg", ".webp"}
_MOST_NAMED = 3  # missing files that a message names
_CACHE = "cache-*.arrow"  # written by `datasets` for intermediate results of `map` and `filter`
_SPECIAL = (
    (stat.S_ISFIFO, "a fifo"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


@dataclass(frozen=True, order=True)
class Skipped:
    """Something that is not read, and why."""

    path: str  # a folder ends in a slash
    why: str
    # Set aside by its name, not asked for by the pattern, or read under another name.
    is_on_purpose: bool
    n_bytes: int = 0  # of a file

    def __str__(self) -> str:
        return f"{self.path}: {self.why}"


@dataclass
class Listing:
    """The files at a path, and what else is there. Both are sorted by path."""

    base: Path  # the folder that names are relative to
    files: list[tuple[str, Stamp]] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)

    @property
    def instead(self) -> str:
        """What was found instead of files, for messages; empty if nothing."""
        parts = [f"{skipped.path} ({skipped.why})" for skipped in self.skipped[:_MOST_NAMED]]
        if n_left_out := len(self.skipped) - len(parts):
            parts.append(f"{n_left_out:,} more")
        return f", only {', '.join(parts)}" if parts else ""

    @property
    def paths(self) -> list[Path]:
        """The files as paths, in the order of paths, where `a/b` comes before `a.b`."""
        is_remote = isinstance(self.base, RemotePath)
        return sorted((RemotePath if is_remote else Path)(name) for name, _ in self.files)


def list_path(path: Path, *, without: Collection[Path] = ()) -> Listing:
    """List a folder with all folders below it, a single file, or the files that match a pattern.

    Files and folders whose names begin with `_` or `.` are set aside, unless a part of the pattern
    begins so, too, and so is metadata of datasets, unless the pattern spells its name. A local
    path must be absolute; `without` are folders and files that are not listed at all.
    """
    base = fixed_part(path)
    if not isinstance(path, RemotePath) and path.is_dir():
        return list_pattern(path, _ALL, without=without)
    if not isinstance(path, RemotePath) and path.exists():  # its name may contain a wildcard
        base = path.parent
    return list_pattern(base, path.parts[len(base.parts) :], without=without)


def list_pattern(base: Path, pattern: Sequence[str], *, without: Collection[Path] = ()) -> Listing:
    """List the files that match a pattern below a folder, and what else is in the same folders.

    Of a pattern without wildcards, only the file is listed, and behind a URL only what matches.
    """
    if isinstance(base, RemotePath):
        return _list_remote(base, pattern)
    return _Walk(base, pattern, without).listing()


def _list_remote(base: RemotePath, pattern: Sequence[str]) -> Listing:
    path = RemotePath(base.joinpath(*pattern))
    path.file_system.invalidate_cache()  # the hub's keeps listings whatever its options say
    if has_magic(str(path)):
        files = expand_glob(str(path))
    elif path.is_file():  # asked first: over HTTP, to look for a folder downloads the file
        files = [(path, stamp_of(path))]
    elif path.is_dir():
        base, pattern, files = path, _ALL, expand_glob(f"{path}/**")
    else:
        files = []
    listing = Listing(base)
    outputs = _outputs_of_scans(file for file, _ in files) - {base}
    for file, stamp in files:
        names = file.parts[len(base.parts) :]
        reasons = ["the output of a scan"] if outputs.intersection(file.parents) else []
        reasons += filter(None, (_set_aside(name, pattern) for name in names))
        if why := next(iter(reasons), None):
            listing.skipped.append(Skipped(str(file), why, True, stamp.n_bytes))
        else:
            listing.files.append((str(file), stamp))
    return listing


def _set_aside(name: str, pattern: Sequence[str]) -> str | None:
    """Return why a name is set aside; None if it is not, or if the pattern asks for it."""
    if is_hidden((name,), pattern):
        return "its name begins with _ or ."
    if name in METADATA and name not in pattern:
        return "metadata of a dataset"
    if Path(name).suffix.lower() in _PICTURES:
        return "a picture"
    if fnmatchcase(name, _CACHE) and not any(part.startswith("cache-") for part in pattern):
        return "a cache of the Hugging Face datasets library"
    return None


def _has_scan(entries: Iterable[os.DirEntry[str]]) -> bool:
    """Return whether `decon-assets scan` wrote to the folder with these entries."""
    stores = (entry.path for entry in entries if entry.name == ".store")
    return any(os.path.isdir(f"{store}/packs") for store in stores)  # noqa: PTH112 - as above


def _outputs_of_scans(files: Iterable[Path]) -> set[Path]:
    """Return the folders behind a URL that have what a scan writes; their `.store` is hidden."""
    names: dict[Path, set[str]] = {}
    for file in files:
        names.setdefault(file.parent, set()).add(file.name)
    return {folder for folder, within in names.items() if any(map(within.issuperset, _WRITTEN))}


# Files that are together only in the output of a scan, whatever endings a pattern names.
_WRITTEN = (
    {"matches.parquet", "visibility.parquet", "common.parquet"},
    {"ledger.jsonl", "skipped.jsonl"},
)


class _Folder(NamedTuple):
    path: str
    states: frozenset[int]  # parts of the pattern that names in it may match


class _Walk:
    """Walks through the folders that a pattern reaches."""

    def __init__(self, base: Path, pattern: Sequence[str], without: Collection[Path]) -> None:
        self._base, self._pattern = base, pattern
        self._is_single = not has_magic("/".join(pattern)) or base.joinpath(*pattern).is_file()
        self._without = set(map(str, without))
        patterns = [re.escape(part) if self._is_single else translate(part) for part in pattern]
        self._matches = [re.compile(part).fullmatch for part in patterns]
        self._seen: dict[tuple[int, int], str] = {}  # folders that were entered
        self._links: deque[_Folder] = deque()  # entered last: a folder keeps its own name
        self._found = Listing(base)

    def listing(self) -> Listing:
        self._enter(_Folder(str(self._base), self._closure({0})))
        while self._links:
            self._enter(self._links.popleft())
        self._found.files.sort()
        self._found.skipped.sort()
        return self._found

    def _enter(self, first: _Folder) -> None:
        """List a folder and the folders below it."""
        folders = [first]
        while folders:
            folder = folders.pop()
            try:
                status = os.stat(folder.path)  # noqa: PTH116 - 100,000 paths as strings
                known = self._seen.setdefault((status.st_dev, status.st_ino), folder.path)
                if known != folder.path:
                    self._skip(f"{folder.path}/", f"the same folder as {known}", on_purpose=True)
                    continue
                with os.scandir(folder.path) as entries:
                    ordered = sorted(entries, key=lambda entry: entry.name)
            except OSError as error:
                if folder.path != str(self._base):
                    self._skip(f"{folder.path}/", f"cannot be opened ({error.strerror})")
                continue
            if folder.path != str(self._base) and _has_scan(ordered):
                self._skip(f"{folder.path}/", "the output of a scan", on_purpose=True)
                continue
            below = [inner for entry in ordered for inner in self._look_at(entry, folder)]
            folders += reversed(below)

    def _look_at(self, entry: os.DirEntry[str], folder: _Folder) -> Iterator[_Folder]:
        """Note what an entry of a folder is; yield it if it is a folder to be entered now."""
        path, states = entry.path, self._next(folder.states, entry.name)
        is_match, is_reached = len(self._pattern) in states, bool(states - {len(self._pattern)})
        if path in self._without or not (is_match or is_reached or not self._is_single):
            return
        if why := _set_aside(entry.name, self._pattern):
            n_bytes = entry.stat().st_size if entry.is_file() else 0
            self._skip(path + "/" * entry.is_dir(), why, on_purpose=True, n_bytes=n_bytes)
            return
        try:
            status = entry.stat()
        except OSError as error:
            what = "a broken link" if entry.is_symlink() else str(error.strerror)
            self._skip(path, what, on_purpose=not (is_match or is_reached))
            return
        if stat.S_ISDIR(status.st_mode):
            if not is_reached:
                what = "a folder that the pattern does not enter"
                self._skip(f"{path}/", what, on_purpose=not is_match)
            elif entry.is_symlink():
                self._links.append(_Folder(path, states))
            else:
                yield _Folder(path, states)
        elif not stat.S_ISREG(status.st_mode):
            kind = next(kind for test, kind in _SPECIAL if test(status.st_mode))
            self._skip(path, kind, on_purpose=not is_match)
        elif is_match:
            self._found.files.append((path, local_stamp(status)))
        else:
            n_bytes = status.st_size
            self._skip(path, "not matched by the pattern", on_purpose=True, n_bytes=n_bytes)

    def _skip(self, path: str, why: str, *, on_purpose: bool = False, n_bytes: int = 0) -> None:
        name = os.fsencode(path).decode("utf-8", "backslashreplace")
        self._found.skipped.append(Skipped(name, why, on_purpose, n_bytes))

    def _next(self, states: frozenset[int], name: str) -> frozenset[int]:
        """Return which parts of the pattern may follow after a name."""
        after: set[int] = set()
        for at in states - {len(self._pattern)}:
            if self._pattern[at] == "**":
                after.add(at)
                if at + 1 == len(self._pattern):
                    after.add(at + 1)
            elif self._matches[at](name):
                after.add(at + 1)
        return self._closure(after)

    def _closure(self, states: Iterable[int]) -> frozenset[int]:
        """Add what follows each `**`, which stands for any number of folders, also for none."""
        closed = set(states)
        for at, part in enumerate(self._pattern[:-1]):
            if part == "**" and at in closed:
                closed.add(at + 1)
        return frozenset(closed)
