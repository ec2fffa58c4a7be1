"""Products that are kept behind a URL, and the folder that they are made in.

All code reads and writes a folder of this machine. Whoever starts work on it comes through here:
before the work the folder gets what the URL has, after it the URL gets what the folder has, whether
the work went well or not. Nothing is asked of the store behind the URL but that it can list, read,
write and delete.

What has a fingerprint in its name never changes, so it only has to be there. Of the rest a note in
the folder says how both sides were when they last agreed, so that what one side changed or removed
since is told from what the other one did. Several machines may work at once: none takes away what
another one made. A folder that was emptied is no order to remove anything: what nothing in here
ever removes comes back, and where most is gone all of it does. Where most is gone behind the URL
nothing is removed here before a person has said what is meant.

Where two write the same changing file (a pointer, a pack, the report, a mixture of a pack), the
last one stands; a mixture that two wrote through one another does not match its manifest, which is
checked wherever mixtures are.

Whoever reads behind the URL at any moment finds nothing before what it needs: ledgers come behind
the tiles, pointers behind what they point to, the manifest of a mixture last. Before something
changes what says that it is whole goes away. So what breaks off is whole as far as it goes, and
the next push goes on from there.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

from decon_core.errors import DamagedError, InputError, Problem
from decon_core.storage.paths import (
    RemotePath,
    Stamp,
    list_files,
    scheme_of,
    stamp_of,
    uploads_are_whole,
)
from decon_core.storage.store import atomic_path, read_json, remove, write_json
from decon_core.wording import counted

_NOTE = ".mirror.json"
_LOCK = ".mirror.lock"
# Folders of this machine alone; made again wherever they are needed. What was verified was verified
# of the files as they lie here.
_OWN = ("checks", "drafts", "search")

# Of all that is in these folders only the pointers change, and nothing is ever removed.
_UNCHANGING = ("records", "idf", "index", "tiles", "common", "draws")
_POINTER = "current.json"

# In which order things appear; they vanish the other way round.
_CONTENT, _LEDGER, _POINTERS, _MANIFEST, _CARD, _REPORT, _OF_REPORT = range(7)
_SAYS_IT_IS_WHOLE = frozenset({_MANIFEST, _CARD, _OF_REPORT})

_AT_ONCE = 200  # files that are sent or fetched together
_HANDFUL = 5  # files that may go without being most of a store


@dataclass(frozen=True)
class _Agreed:
    """A file as both sides had it."""

    here: Stamp
    there: str  # what names the content there; empty where the name of the file does


@dataclass
class _Sides:
    """All files of both sides by name, and how they were when the two agreed."""

    here: dict[str, Stamp]
    there: dict[str, Stamp]
    agreed: dict[str, _Agreed] = field(default_factory=dict)

    def is_changed_here(self, name: str) -> bool:
        return name not in self.agreed or self.agreed[name].here != self.here.get(name)

    def is_changed_there(self, name: str) -> bool:
        return name not in self.agreed or self.agreed[name].there != _named(name, self.there[name])

    def lost_here(self) -> list[str]:
        return _lost(self.agreed, held=self.there, left=self.here)

    def lost_there(self) -> list[str]:
        return _lost(self.agreed, held=self.here, left=self.there)


@dataclass(frozen=True)
class Mirror:
    """A folder of products and the URL where they are kept."""

    work: Path
    kept: RemotePath

    def pull(self) -> None:
        """Bring here what is there and not here, and remove what was removed there."""
        with self._alone() as sides:
            self._require_not_lost(sides)
            wanted = [name for name in sides.there if self._is_to_fetch(sides, name)]
            gone = [
                name
                for name in sides.agreed
                if name in sides.here
                and name not in sides.there
                and not sides.is_changed_here(name)
            ]
            for name in _before(wanted, gone, sides.here):
                remove(self.work / name)
            for names in _in_order(wanted):
                self._fetch(names)
                sides.here |= {name: stamp_of(self.work / name) for name in names}
                self._agree(sides, names)
            for name in _falling(gone):
                remove(self.work / name)
                del sides.agreed[name]

    def push(self) -> None:
        """Bring there what is here and not there, and remove what was removed here."""
        with self._alone() as sides:
            wanted = [name for name in sides.here if self._is_to_send(sides, name)]
            gone = [
                name
                for name in sides.agreed
                if name not in sides.here
                and name in sides.there
                and not is_for_good(name)
                and not sides.is_changed_there(name)
            ]
            self._delete(sides, _before(wanted, gone, sides.there))
            for names in _in_order(wanted):
                self._send(names)
                changing = [name for name in names if not is_unchanging(name)]
                sides.there |= {name: sides.here[name] for name in names}
                sides.there |= {name: stamp_of(self.kept / name) for name in changing}
                self._agree(sides, names)
            self._delete(sides, [name for name in _falling(gone) if name in sides.there])
            for name in gone:
                del sides.agreed[name]

    def discard(self, paths: Iterable[Path]) -> None:
        """Remove files and folders of the store here and behind the URL, to be made again."""
        names = [path.relative_to(self.work).as_posix() for path in paths]
        with self._alone() as sides:
            gone = [
                one
                for one in sides.there
                if any(one == name or one.startswith(f"{name}/") for name in names)
            ]
            self._delete(sides, _falling(gone))
            for name in gone:
                sides.agreed.pop(name, None)
        for name in names:
            remove(self.work / name)

    # What is to be done -------------------------------------------------------------------------

    def _is_to_fetch(self, sides: _Sides, name: str) -> bool:
        if name not in sides.here:  # new there; or removed here, which the next push will say there
            return is_for_good(name) or sides.is_changed_there(name)
        if is_unchanging(name) or self._is_same(sides, name):
            self._agree(sides, [name])
            return False
        return sides.is_changed_there(name) and not (
            name in sides.agreed and sides.is_changed_here(name)
        )

    def _is_to_send(self, sides: _Sides, name: str) -> bool:
        if name not in sides.there:  # new here; or removed there, which the next pull will say here
            return sides.is_changed_here(name)
        if is_unchanging(name) or self._is_same(sides, name):
            self._agree(sides, [name])
            return False
        return sides.is_changed_here(name)

    def _is_same(self, sides: _Sides, name: str) -> bool:
        """Whether both sides hold the same, by reading it only where nothing else tells."""
        changed = sides.is_changed_here(name), sides.is_changed_there(name)
        if not all(changed) or sides.here[name].n_bytes != sides.there[name].n_bytes:
            return not any(changed)
        return (self.work / name).read_bytes() == (self.kept / name).read_bytes()

    @staticmethod
    def _agree(sides: _Sides, names: Iterable[str]) -> None:
        for name in names:
            sides.agreed[name] = _Agreed(sides.here[name], _named(name, sides.there[name]))

    # Doing it -----------------------------------------------------------------------------------

    def _fetch(self, names: Collection[str]) -> None:
        """Each appears whole, under its name, once it is there."""
        drafts = self.work / "drafts"
        with atomic_path(drafts / "fetched", drafts=drafts) as folder:
            folder.mkdir(parents=True)
            parts = [folder / str(number) for number in range(len(names))]
            places = [self._key(name) for name in names]
            self.kept.file_system.get(places, [str(part) for part in parts])
            for part, name in zip(parts, names, strict=True):
                (self.work / name).parent.mkdir(parents=True, exist_ok=True)
                part.replace(self.work / name)
        remove(drafts / "fetched")

    def _send(self, names: Collection[str]) -> None:
        files = self.kept.file_system
        own = [str(self.work / name) for name in names]
        keys = [self._key(name) for name in names]
        if uploads_are_whole(scheme_of(str(self.kept))):
            files.put(own, keys)
            return
        for path, key in zip(own, keys, strict=True):
            folder, _, name = key.rpartition("/")
            files.makedirs(folder, exist_ok=True)
            files.put_file(path, f"{folder}/.{name}.tmp")
            files.mv(f"{folder}/.{name}.tmp", key)

    def _delete(self, sides: _Sides, names: Iterable[str]) -> None:
        for name in names:
            with suppress(FileNotFoundError):  # another machine was quicker
                self.kept.file_system.rm_file(self._key(name))
            del sides.there[name]

    def _key(self, name: str) -> str:
        return f"{self.kept.key.rstrip('/')}/{name}"

    @contextmanager
    def _alone(self) -> Iterator[_Sides]:
        """Both sides as they are; the note about what they agree on is kept however this ends."""
        self.work.mkdir(parents=True, exist_ok=True)
        with (self.work / _LOCK).open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            there = {name: stamp for name, stamp in list_files(self.kept).items() if is_kept(name)}
            here = files_in(self.work)
            # Nothing at all on one side is no word that all of it was removed: it was never there,
            # or is somewhere else.
            sides = _Sides(here, there, self._noted() if here and there else {})
            if sides.lost_here():
                sides.agreed = {name: sides.agreed[name] for name in here if name in sides.agreed}
            try:
                yield sides
            finally:
                self._note(sides.agreed)

    def _require_not_lost(self, sides: _Sides) -> None:
        """Raise when what is behind the URL would have most be removed here."""
        lost = sides.lost_there()
        if lost:
            found = (
                f"{len(lost)} of {counted(len(sides.agreed), 'file')} gone, {lost[0]} among them"
            )
            remedy = (
                f"if that is meant, delete {self.work}: what is left is fetched again. If not, "
                f"delete {self.work / _NOTE}: the next command that works sends all that is here"
            )
            expected = "most of what was sent or fetched before"
            raise InputError(Problem(str(self.kept), found, expected, remedy))

    def _noted(self) -> dict[str, _Agreed]:
        path = self.work / _NOTE
        try:
            note: Mapping[str, Any] = read_json(path) if path.is_file() else {}
        except DamagedError:
            return {}  # as before the first time: both sides are compared
        if note.get("url") != str(self.kept):
            return {}
        return {name: _Agreed(Stamp(*here), there) for name, (here, there) in note["files"].items()}

    def _note(self, agreed: Mapping[str, _Agreed]) -> None:
        told = {name: [[*one.here], one.there] for name, one in sorted(agreed.items())}
        write_json(self.work / _NOTE, {"url": str(self.kept), "files": told})


def _named(name: str, stamp: Stamp) -> str:
    """What names a content there; of what never changes its name is enough."""
    if is_unchanging(name):
        return ""
    return stamp.tag or f"{stamp.n_bytes} {stamp.modified_ns}"


def is_unchanging(name: str) -> bool:
    """Whether there is only one content that can ever stand under a name."""
    return is_for_good(name) and not name.endswith(f"/{_POINTER}")


def is_for_good(name: str) -> bool:
    """Whether nothing in here ever removes it: where it lacks, it was lost or removed by hand."""
    return name.split("/", maxsplit=1)[0] in _UNCHANGING


def _lost(agreed: Iterable[str], *, held: Collection[str], left: Collection[str]) -> list[str]:
    """What one side still holds and the other lacks, if that is most, and nothing says why."""
    known = [name for name in agreed if name in held]
    folders = {name.rpartition("/")[0] for name in left}
    lacking = [
        name
        for name in known
        if name not in left
        and (is_for_good(name) or not _is_replaced(name, folders))
        and not _is_retired(name, left)
    ]
    return lacking if len(lacking) > max(_HANDFUL, len(known) // 2) else []


def _is_replaced(name: str, folders: Collection[str]) -> bool:
    """Whether other files stand beside where it was: a mixture, written in another way."""
    return "/" in name and name.rpartition("/")[0] in folders


def _is_retired(name: str, left: Collection[str]) -> bool:
    """Whether it went with its pack."""
    folder, *between, file = name.split("/")
    pack = between[1] if folder == "mixtures" and len(between) > 1 else file.removesuffix(".json")
    return folder in ("mixtures", "packs") and f"packs/retired/{pack}.json" in left


def is_kept(name: str) -> bool:
    """Whether a file belongs to the products, rather than to whoever is at work on them."""
    parts = name.split("/")
    return parts[0] not in _OWN and not any(part.startswith(".") for part in parts)


def files_in(folder: Path) -> dict[str, Stamp]:
    """All products in a folder, by their names from there on."""
    found: dict[str, Stamp] = {}
    for place, folders, files in os.walk(folder):
        below = Path(place).relative_to(folder)
        folders[:] = [one for one in folders if is_kept((below / one).as_posix())]
        for file in files:
            name = (below / file).as_posix()
            if is_kept(name):
                found[name] = stamp_of(folder / name)
    return found


# The order ----------------------------------------------------------------------------------------


def rank(name: str) -> int:
    """When a file may appear: later than those of lower rank."""
    folder, *_, file = name.split("/") if "/" in name else ("", name)
    if folder == "report":
        return _REPORT if file.endswith(".duckdb") else _OF_REPORT
    ranks = {"ledger.json": _LEDGER, _POINTER: _POINTERS}
    if file in ("_manifest.json", "manifest.json"):
        return _MANIFEST
    if file == "README.md":
        return _CARD
    return _POINTERS if folder == "packs" else ranks.get(file, _CONTENT)


def _in_order(names: Iterable[str]) -> Iterator[list[str]]:
    """Names as they may appear, some at a time; those of one rank in any order."""
    for _, alike in groupby(sorted(names, key=lambda name: (rank(name), name)), rank):
        every = list(alike)
        yield from (every[at : at + _AT_ONCE] for at in range(0, len(every), _AT_ONCE))


def _falling(names: Iterable[str]) -> list[str]:
    return sorted(names, key=lambda name: (-rank(name), name))


def _before(wanted: Iterable[str], gone: Iterable[str], known: Collection[str]) -> list[str]:
    """What has to go before anything changes: what says that the things that change are whole."""
    names = {name for name in (*wanted, *gone) if rank(name) in _SAYS_IT_IS_WHOLE}
    return [name for name in _falling(names) if name in known]
