"""What was looked at and found right: it is looked at again when it changed, and not before.

To hash all that lies in a store takes as long as to write it. So a look leaves behind, per thing,
how its files lay there when they were right: names, sizes, dates. A file that is written over with
as many bytes and given its old date is not noticed. `decon-assets mixture verify` and
`blend verify` read every byte all the same; records and tiles are read where the note is deleted.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

from decon_core.errors import DeconError, Problem, StaleError
from decon_core.storage.store import Store, read_json, write_json

# Counted up when a look sees more than before: then everything is looked at once more.
FORM = 1

Stamp = Any  # of JSON
Faults = Callable[[str], Iterable[Problem]]


@dataclass
class Inspection:
    """What a look found, and how much it could leave out."""

    problems: list[Problem] = field(default_factory=list)
    n_looked_at: int = 0
    n_as_before: int = 0


def inspect_changed(
    store: Store, what: str, stamps: Mapping[str, Stamp], faults: Faults
) -> Inspection:
    """Look for faults in all that does not lie as it did when it was right."""
    path = store.verified(what)
    known = read_note(path)
    found, right = Inspection(), {}
    for name, stamp in stamps.items():
        if known.get(name) == stamp:
            found.n_as_before += 1
            right[name] = stamp
            continue
        found.n_looked_at += 1
        problems = _faults_or_damage(faults, name)
        found.problems += problems
        if not problems:
            right[name] = stamp
    if right != known:
        write_json(path, {"form": FORM, "right": right})
    return found


def _faults_or_damage(faults: Faults, name: str) -> list[Problem]:
    """What is too damaged to be looked at is one of the faults."""
    try:
        return list(faults(name))
    except DeconError as error:
        return list(error.problems)


def read_note(path: Path) -> dict[str, Any]:
    """What a note says by name; what nobody can read was not verified."""
    try:
        value = read_json(path) if path.is_file() else {}
    except StaleError:
        return {}
    is_ours = isinstance(value, dict) and value.get("form") == FORM
    right = value.get("right") if is_ours else None
    return right if isinstance(right, dict) else {}


def stamp_of_files(folder: Path, *accounts: str) -> Stamp:
    """How the files below a folder lie there; of accounts, which say what the others are, all."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    status = ((path.relative_to(folder).as_posix(), path.stat()) for path in files)
    lying = [[name, one.st_size, one.st_mtime_ns] for name, one in status]
    said = (folder / name for name in accounts)
    return [lying, [sha256(path.read_bytes()).hexdigest() for path in said if path.is_file()]]


def digest_of_files(folder: Path) -> Stamp:
    """The same of one folder, in a few letters: all tiles of a grid are a million files.

    Hidden ones are still being written, and nobody reads them.
    """
    with os.scandir(folder) as files:
        there = [(one.name, one.stat()) for one in files if not one.name.startswith(".")]
    lying = sorted((name, one.st_size, one.st_mtime_ns) for name, one in there)
    return sha256(repr(lying).encode()).hexdigest()[:16]
