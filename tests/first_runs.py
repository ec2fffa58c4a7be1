"""Runs, kept and copied: hundreds of tests begin with the same one, dozens go on with the same.

The first test that needs a run makes it. Its files and its history are kept, and put back for each
later test of the process that has the same files in the same folder, and the same history. A test
of what a run does, or of code that it replaces before, calls `World.run` itself.
"""

from __future__ import annotations

import inspect
import os
import shutil
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from dagster import DagsterInstance
from sqlalchemy.engine import Connection


@dataclass
class _Kept:
    """What a run left behind."""

    folders: list[tuple[Path, Path]]  # where each was, and its copy
    databases: list[sqlite3.Connection]
    result: Any


_KEPT: dict[str, _Kept] = {}


def empty(folder: Path) -> Path:
    """A folder with nothing in it, and nothing in memory of what was there."""
    folder.mkdir(exist_ok=True)
    _clear(folder)
    _forget()
    return folder


def _clear(folder: Path) -> None:
    """Remove what is in a folder, and leave the folder: it may be the current one."""
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()


def home_with_history(home: Path) -> Path:
    """An empty Dagster home; its tables take longer to create than to copy."""
    from decon_assets.instance.home import open_instance

    def create() -> None:
        with open_instance(home):
            pass

    run_or_copy(create, [empty(home)])
    return home


def run_command(folder: Path, *command: str) -> None:
    """`decon-assets` in a world with a Dagster home of its own, or a copy of what it left."""
    from decon_assets.cli.main import main

    def run(*command: str) -> int:
        return main([*command, "--config", str(folder / "decon.toml")])

    home = os.environ["DAGSTER_HOME"]
    with DagsterInstance.from_config(home) as instance:
        in_memory = instance if instance.is_ephemeral else None
    assert run_or_copy(run, [folder, Path(home)], in_memory, *command) == 0


def run_or_copy(
    run: Any, folders: list[Path], instance: DagsterInstance | None = None, *arguments: str
) -> Any:
    """The result of a run that changes folders and a history in memory, made or copied.

    `run` is a function or method with a name of its own: another one does something else.
    """
    key = f"{run.__qualname__}-{arguments}-{_digest(folders)}-{_history(instance)}"
    kept = _KEPT.get(key)
    if kept is None:
        result = run(*arguments)
        copies = [folder.with_name(f"kept-{folder.name}-{len(_KEPT)}") for folder in folders]
        for folder, copy in zip(folders, copies, strict=True):
            shutil.copytree(folder, copy, symlinks=True)
        databases = [_copied(one, sqlite3.connect(":memory:")) for one in _databases(instance)]
        _KEPT[key] = _Kept([*zip(folders, copies, strict=True)], databases, result)
        return result
    for folder, copy in kept.folders:
        _clear(folder)
        shutil.copytree(copy, folder, symlinks=True, dirs_exist_ok=True)
    for source, target in zip(kept.databases, _databases(instance), strict=True):
        _copied(source, target)
    return kept.result


def _history(instance: DagsterInstance | None) -> str:
    """Of a history in memory. Copies of one are equal; a new one has an identity of its own."""
    if instance is None:
        return "on disk"
    if not instance.get_runs(limit=1):
        return "new"
    content = b"".join(database.serialize() for database in _databases(instance))
    return sha256(content).hexdigest()[:16]


def _digest(folders: list[Path]) -> str:
    """Of the place and the content of every file."""
    told = sha256()
    for folder in folders:
        told.update(f"{folder}\n".encode())
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                content = sha256(path.read_bytes()).hexdigest()
                told.update(f"{path.relative_to(folder)} {content}\n".encode())
    return told.hexdigest()[:16]


def _databases(instance: DagsterInstance | None) -> Iterator[sqlite3.Connection]:
    """Those of a history in memory, which Dagster holds open."""
    if instance is not None:
        for storage in (instance.run_storage, instance.event_log_storage):
            yield storage._held_conn.connection.dbapi_connection


@contextmanager
def held_connection(storage: Any) -> Iterator[Connection]:
    """The connection that a history in memory holds open.

    Dagster opens another one for each query and sets it up: a fifth of the time of a run.
    """
    with storage._held_conn.begin():
        yield storage._held_conn


def _copied(source: sqlite3.Connection, target: sqlite3.Connection) -> sqlite3.Connection:
    source.backup(target)
    return target


def _forget() -> None:
    """Empty the caches that depend on files, and those that hold that something was done once.

    Another world stands where the last one stood. Patterns, models and templates stay as they are.
    """
    for name in [*sys.modules]:
        if name.startswith(("decon_core", "decon_assets")):
            for cached in _caches_of_files(name):
                cached.cache_clear()


@cache
def _caches_of_files(module: str) -> list[Any]:
    found = [*vars(sys.modules[module]).values()]
    return [one for one in found if hasattr(one, "cache_clear") and _is_of_files(one)]


def _is_of_files(cached: Any) -> bool:
    signature = inspect.signature(cached)
    takes = {str(one.annotation) for one in signature.parameters.values()}
    return bool({"Path", "str"} & takes) or signature.return_annotation in (None, "None")
