"""The inputs of the study that decon.toml declares, and whether it was built of them.

Nothing here reads results: `status` and the code location ask this often.
"""

from __future__ import annotations

import glob
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path

from decon_core.benchmarks import Recipe
from decon_core.blends.build import ITEMS_FILE
from decon_core.config.blends import Blend
from decon_core.config.study import Arm, Study
from decon_core.errors import DamagedError, Problem
from decon_core.storage.files import read_json
from decon_core.storage.store import Store

SUMMARY = "study.json"

_FORMAT = 1


@dataclass(frozen=True)
class Inputs:
    """A declared study, and where its inputs are."""

    study: Study
    folder: Path  # of decon.toml: results are relative to it
    store: Store
    blends: Sequence[Blend]
    recipes: Mapping[str, Recipe]  # read the raw rows that harnesses keep in their results


def is_current(inputs: Inputs) -> bool:
    """Return whether the study of these inputs was built."""
    try:
        made = read_json(inputs.store.study / SUMMARY)
    except (FileNotFoundError, DamagedError):
        return False
    return bool(made.get("key") == fingerprint_of(inputs))


def study_key(store: Store) -> str:
    """Return the key of the study that was built; empty without one."""
    try:
        return str(read_json(store.study / SUMMARY)["key"])
    except (FileNotFoundError, DamagedError):
        return ""


def fingerprint_of(inputs: Inputs) -> str:
    """Return a digest of the settings and of the stamps of all files."""
    files: list[Path] = [inputs.store.report]
    for arm in inputs.study.arm:
        for path in find_paths(arm, inputs.folder)[0]:
            files += files_below(path) if path.is_dir() else [path]
        files.append(inputs.store.blend(arm.of or "") / ITEMS_FILE)
    stamps = [
        (os.path.relpath(file, inputs.folder), stat.st_size, stat.st_mtime_ns)
        for file in files
        if file.is_file() and (stat := file.stat())
    ]
    blends = [blend.to_json() for blend in inputs.blends]
    value = json.dumps([_FORMAT, asdict(inputs.study), blends, stamps], default=str)
    return sha256(value.encode()).hexdigest()[:16]


def find_paths(arm: Arm, folder: Path) -> tuple[list[Path], list[Problem]]:
    """Return the files and folders of an arm's results, and a problem for each that is missing."""
    paths: list[Path] = []
    problems = []
    for pattern in arm.results:
        path = folder / pattern
        if path.exists() or not glob.has_magic(pattern):
            found = [path] if path.exists() else []
        else:
            found = sorted(map(Path, glob.glob(str(path), recursive=True)))  # noqa: PTH207 - takes whole patterns
        if not found:
            where = f"study.arm {arm.name!r}"
            problems.append(Problem(where, f"no file {path}", "results of its model"))
        paths += found
    return list(dict.fromkeys(paths)), problems


def files_below(folder: Path) -> list[Path]:
    """Return all files that are not hidden or in a hidden folder."""
    return sorted(
        path
        for path in folder.rglob("*")
        if path.is_file()
        and not any(part.startswith(".") for part in path.relative_to(folder).parts)
    )
