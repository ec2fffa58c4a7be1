"""What a registry declares: its files, and each benchmark with its recipe, or why there is none."""

from __future__ import annotations

import posixpath
import zipfile
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from decon_core.errors import InputError, Problem
from decon_core.features.importers.column_names import proposed_fields
from decon_core.features.importers.questions import Draft
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


class Status(StrEnum):
    """How far a registry declares a recipe."""

    DERIVED = "derived"
    PROPOSED = "proposed"  # a person has to confirm what the reason names
    REFUSED = "refused"


@dataclass(frozen=True, kw_only=True)
class Origin:
    """Where a registry declares a benchmark."""

    registry: str
    file: str  # relative to the folder or wheel that was imported
    tasks: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Source:
    """Where the rows of a task are, as its registry declares them."""

    hf_path: str = ""
    hf_config: str = ""
    hf_revision: str = ""
    splits: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ImportedBenchmark:
    """A benchmark that a registry declares, with a recipe in the format of docs/recipes.md."""

    name: str
    status: Status
    origin: Origin
    data_set: str
    recipe: Mapping[str, Any] | None = None
    reason: str = ""  # why it is refused or only proposed; the same words for the same cause
    detail: str = ""  # the function, key or value that the reason is about

    @property
    def why(self) -> str:
        """The reason with what it is about."""
        return f"{self.reason}: {self.detail}" if self.detail else self.reason


@dataclass(frozen=True, kw_only=True)
class Task:
    """A task that a registry declares, and where its rows are."""

    name: str
    origin: Origin
    source: Source = field(default_factory=Source)

    def refused(self, reason: str, detail: str = "") -> ImportedBenchmark:
        """Return a benchmark without a recipe."""
        return ImportedBenchmark(
            name=self.name,
            status=Status.REFUSED,
            origin=self.origin,
            data_set=self.source.hf_path,
            reason=reason,
            detail=detail,
        )

    def guessed(self, columns: Collection[str], reason: str, detail: str) -> ImportedBenchmark:
        """Return a benchmark with fields proposed by the names of columns; refused without any."""
        fields = proposed_fields(columns)
        if fields is None:
            return self.refused(reason, detail)
        return self.benchmark(Draft(fields=fields, doubts=[(reason, detail)]))

    def benchmark(self, draft: Draft, shown: str = "") -> ImportedBenchmark:
        """Return a benchmark with the fields of a draft; it is only proposed if there are doubts.

        `shown`: what the draft was made of, as detail if there are no fields.
        """
        if draft.refusal:
            return self.refused(draft.refusal, shown)
        (reason, first), *others = draft.doubts or [("", "")]
        source = self.source
        recipe: dict[str, Any] = {"hf_path": source.hf_path}
        if source.hf_config not in ("", "default"):
            recipe["hf_config"] = source.hf_config
        if source.hf_revision:
            recipe["hf_revision"] = source.hf_revision
        return ImportedBenchmark(
            name=self.name,
            status=Status.PROPOSED if draft.doubts else Status.DERIVED,
            origin=self.origin,
            data_set=source.hf_path,
            recipe=recipe | {"splits": [*source.splits], **draft.fields},
            reason=reason,
            detail="; ".join([first, *(f"{other}: {detail}" for other, detail in others)]),
        )
