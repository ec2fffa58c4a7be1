"""Products of a store, by name or by folder, as people type them; folders nobody declares."""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path

from decon_core.errors import ConfigError, Problem


def name_of(typed: str, folder: Path, *, what: str) -> str:
    """The name of a product, or of the one whose folder was typed; all lie right below `folder`."""
    path = Path(typed)
    if os.sep not in typed and not path.is_dir():
        return typed
    path = path.resolve()
    if path.parent != folder.resolve():
        raise ConfigError(
            Problem(typed, f"no folder of a {what}", f"one right below {folder.resolve()}")
        )
    return path.name


def undeclared_folders(folder: Path, known: Collection[str]) -> list[str]:
    """Lines about folders of products that decon.toml had once."""
    found = sorted(folder.iterdir()) if folder.is_dir() else ()
    return [
        f"not declared any more, and nobody keeps it up to date: {path}"
        for path in found
        if path.is_dir() and path.name not in known
    ]
