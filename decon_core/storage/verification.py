"""Notes about verified files, so that only changed files are verified again.

Hashing a store takes as long as writing it. A note has names, sizes and dates: a file overwritten
with as many bytes and its old date goes unnoticed. `mixture verify` and `blend verify` read all.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

from decon_core.errors import Problem, StaleError, collecting
from decon_core.storage.files import read_json, write_json
from decon_core.storage.store import Store

# Increased when the verification checks more than before: everything is then verified again.
FORM = 1

Stamp = Any  # a JSON value
Faults = Callable[[str], Iterable[Problem]]
Groups = Callable[[str], Iterable[str]]


@dataclass
class Inspection:
    """The problems found, and how many entries were inspected or skipped as unchanged."""

    problems: list[Problem] = field(default_factory=list)
    # The problems of each group of entries, such as a pack; an empty list if all are right.
    by_group: dict[str, list[Problem]] = field(default_factory=dict)
    n_inspected: int = 0
    n_unchanged: int = 0


def inspect_changed(
    store: Store,
    what: str,
    stamps: Mapping[str, Stamp],
    faults: Faults,
    *,
    groups_of: Groups = lambda name: (name,),
) -> Inspection:
    """Inspect the entries whose stamp differs from the last successful verification.

    `groups_of`: the groups in which an entry is counted; by default each entry is a group.
    """
    path = store.verification_note(what)
    noted = read_note(path)
    inspection, right = Inspection(), {}
    for name, stamp in stamps.items():
        groups = [inspection.by_group.setdefault(group, []) for group in groups_of(name)]
        if noted.get(name) == stamp:
            inspection.n_unchanged += 1
            right[name] = stamp
            continue
        inspection.n_inspected += 1
        problems: list[Problem] = []
        with collecting(problems):  # an error counts as a fault
            problems += [*faults(name)]
        inspection.problems += problems
        for group in groups:
            group.extend(problems)
        if not problems:
            right[name] = stamp
    if right != noted:
        write_json(path, {"form": FORM, "right": right})
    return inspection


def read_note(path: Path) -> dict[str, Any]:
    """Return the stamps of verified entries by name; empty if the note cannot be read."""
    try:
        value = read_json(path) if path.is_file() else {}
    except StaleError:
        return {}
    is_ours = isinstance(value, dict) and value.get("form") == FORM
    right = value.get("right") if is_ours else None
    return right if isinstance(right, dict) else {}


def stamp_of_files(folder: Path, *manifests: str) -> Stamp:
    """Return names, sizes and dates of the files below a folder, and digests of its manifests."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    named = ((path.relative_to(folder).as_posix(), path.stat()) for path in files)
    stamps = [[name, status.st_size, status.st_mtime_ns] for name, status in named]
    paths = (folder / name for name in manifests)
    return [stamps, [sha256(path.read_bytes()).hexdigest() for path in paths if path.is_file()]]


def digest_of_files(folder: Path) -> Stamp:
    """Return a digest of names, sizes and dates of the files directly in a folder.

    Short, because a store may hold a million scan results. Hidden files are still being written.
    """
    with os.scandir(folder) as files:
        named = [(file.name, file.stat()) for file in files if not file.name.startswith(".")]
    stamps = sorted((name, status.st_size, status.st_mtime_ns) for name, status in named)
    return sha256(repr(stamps).encode()).hexdigest()[:16]
