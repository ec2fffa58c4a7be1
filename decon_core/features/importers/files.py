"""The files of a registry: one file, a folder such as a checkout, or a wheel."""

from __future__ import annotations

import posixpath
import zipfile
from collections.abc import Callable, Mapping
from functools import cached_property, partial
from pathlib import Path

from decon_core.errors import InputError, Problem
from decon_core.storage.paths import is_hidden

_ARCHIVES = (".whl", ".zip")


class Files:
    """Texts of files by their paths below `root`, with "/" between folders."""

    def __init__(self, root: Path, files: Mapping[str, Callable[[], bytes]]) -> None:
        self.root, self._files = root, files

    @classmethod
    def at(cls, path: Path) -> Files:
        """Return the files of a folder or a wheel; those beside a single file are known, too."""
        if path.suffix in _ARCHIVES and path.is_file():
            archive = zipfile.ZipFile(path)
            names = [info.filename for info in archive.infolist() if not info.is_dir()]
            return cls(path, {name: partial(archive.read, name) for name in names})
        if path.is_file():
            return cls(path.parent, {path.name: path.read_bytes})
        if not path.exists():
            expected = "a file, a folder or a wheel of a registry"
            raise InputError(Problem(str(path), "no such file or folder", expected))
        below = {file.relative_to(path).parts: file for file in path.rglob("*")}
        shown = {parts: file for parts, file in below.items() if not is_hidden(parts)}
        return cls(
            path,
            {"/".join(parts): file.read_bytes for parts, file in shown.items() if file.is_file()},
        )

    @cached_property
    def names(self) -> list[str]:
        return sorted(self._files)

    def text(self, name: str) -> str | None:
        """Return the text of a file; None if there is none, or none in UTF-8."""
        read = self._files.get(posixpath.normpath(name), (self.root / name).read_bytes)
        try:
            return read().decode()
        except (OSError, UnicodeDecodeError):
            return None
