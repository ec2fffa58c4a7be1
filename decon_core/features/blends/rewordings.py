"""Items in other words: [rewording] of decon.toml, and the file of what its endpoint answered."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, ClassVar, NamedTuple, Self

from pydantic.dataclasses import dataclass as model

from decon_core.config.load import Config
from decon_core.config.validation import AS_WRITTEN, TABLE, Name, Positive, SettingsReader, expects
from decon_core.errors import Problem
from decon_core.features.endpoints.settings import Endpoint
from decon_core.storage.line_log import append_objects, read_objects

FIELDS = ("passage", "question")

Line = Mapping[str, Any]


@model(frozen=True, kw_only=True, config=TABLE)
class Rewording(Endpoint):
    """[rewording]: rewordings of items by an OpenAI-compatible endpoint."""

    table: ClassVar[str] = "rewording"

    file: Annotated[Name, expects("the path of a local file")] = "rewordings.jsonl"
    """File of rewordings, to which every answer is appended. It need not exist yet."""
    variants: Positive = 1
    """Rewordings per item. The copies of an item in a blend use them in turn."""
    parameters: Annotated[Mapping[str, Any], AS_WRITTEN] = field(
        default_factory=lambda: {"temperature": 1, "max_tokens": 4096}, hash=False
    )
    """Additional fields of a request, sent unchanged."""

    def checked(self, reader: SettingsReader) -> Self:
        reader.local_file("rewording.file", self.file)
        return self


def rewording_settings(config: Config) -> Rewording:
    return config.table(Rewording) or Rewording()


def rewordings_path(config: Config) -> Path:
    return config.folder / rewording_settings(config).file


def rewording_files(config: Config) -> list[Path]:
    return [rewordings_path(config)]


class ItemWords(NamedTuple):
    """The texts of an item that are reworded."""

    passage: str
    question: str

    @property
    def key(self) -> str:
        return sha256(json.dumps(self).encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Rewordings:
    """The lines of a file of rewordings."""

    lines: tuple[Line, ...] = ()

    @cached_property
    def _accepted(self) -> dict[str, dict[int, ItemWords]]:
        """The last rewording of each item and variant; a failed try hides none."""
        accepted: dict[str, dict[int, ItemWords]] = {}
        for line in self.lines:
            if "failed" not in line:
                words = ItemWords(line["passage"], line["question"])
                accepted.setdefault(line["item"], {})[line["variant"]] = words
        return accepted

    @cached_property
    def answered(self) -> frozenset[str]:
        return frozenset(line["request"] for line in self.lines if "failed" not in line)

    def by_variant(self, item: ItemWords) -> dict[int, ItemWords]:
        """Return the rewordings of an item by the number of the variant, in their order."""
        return dict(sorted(self._accepted.get(item.key, {}).items()))

    @cached_property
    def digest(self) -> str:
        """The digest of all rewordings that count."""
        found = [
            (item, variant, *words)
            for item, variants in sorted(self._accepted.items())
            for variant, words in sorted(variants.items())
        ]
        return sha256(json.dumps(found).encode()).hexdigest()[:16]


NO_REWORDINGS = Rewordings()


def read_rewordings(path: Path) -> Rewordings:
    """Read a file of rewordings, which may be missing; raise InputError with all problems."""
    if not path.exists():
        return NO_REWORDINGS
    lines = read_objects(path, "a file of rewordings", _problems_of, drops_torn_line=True)
    return Rewordings(tuple(lines))


def append_rewording(path: Path, line: Line) -> None:
    """Append a line to a file, synced to disk when this returns."""
    append_objects(path, [line], _problems_of, drops_torn_line=True)


def _problems_of(where: str, line: Line) -> Iterator[Problem]:
    fields = ("failed",) if "failed" in line else FIELDS
    for name in ("item", "request", *fields):
        if not isinstance(line.get(name), str):
            yield Problem(f"{where}: {name}", f"{line.get(name)!r:.60}", "a string")
    variant = line.get("variant")
    if not isinstance(variant, int) or isinstance(variant, bool):
        yield Problem(f"{where}: variant", f"{variant!r:.60}", "a number")
