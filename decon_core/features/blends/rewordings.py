"""A file of items in other words, by the content of the item: what an endpoint answered."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from decon_core.errors import Problem
from decon_core.storage.line_log import append_objects, read_objects

FIELDS = ("passage", "question")

Line = Mapping[str, Any]


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
    names = ("item", "request", *(("failed",) if "failed" in line else FIELDS))
    for name in names:
        if not isinstance(line.get(name), str):
            yield Problem(f"{where}: {name}", f"{line.get(name)!r:.60}", "a string")
    variant = line.get("variant")
    if not isinstance(variant, int) or isinstance(variant, bool):
        yield Problem(f"{where}: variant", f"{variant!r:.60}", "a number")
