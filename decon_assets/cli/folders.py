"""Mixtures and blends given by name or by folder, and folders of undeclared ones."""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path

from decon_core.errors import ConfigError, Problem


def name_of(typed: str, folder: Path, *, what: str) -> str:
    """Return the name of a product given by name or by its folder, a child of `folder`."""
    path = Path(typed)
    if os.sep not in typed and not path.is_dir():
        return typed
    path = path.resolve()
    if path.parent != folder.resolve():
        raise ConfigError(
            Problem(typed, f"not the folder of a {what}", f"a folder in {folder.resolve()}")
        )
    return path.name


def undeclared_folders(folder: Path, known: Collection[str]) -> list[str]:
    """Return a line for each product's folder that decon.toml no longer declares."""
    paths = sorted(folder.iterdir()) if folder.is_dir() else ()
    return [
        f"no longer declared in decon.toml, so not updated: {path}"
        for path in paths
        if path.is_dir() and path.name not in known
    ]
