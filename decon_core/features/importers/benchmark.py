"""The result of an import: a benchmark of a registry with its recipe, or why there is none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


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

    hf_path: str
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


def refused(
    name: str, origin: Origin, source: Source, reason: str, detail: str = ""
) -> ImportedBenchmark:
    """Return a benchmark without a recipe."""
    return ImportedBenchmark(
        name=name,
        status=Status.REFUSED,
        origin=origin,
        data_set=source.hf_path,
        reason=reason,
        detail=detail,
    )


def benchmark(
    name: str,
    origin: Origin,
    source: Source,
    fields: Mapping[str, Any],
    doubts: Sequence[tuple[str, str]] = (),
) -> ImportedBenchmark:
    """Return a benchmark with a recipe. It is only proposed if there are doubts."""
    (reason, first), *others = doubts or [("", "")]
    recipe: dict[str, Any] = {"hf_path": source.hf_path}
    if source.hf_config not in ("", "default"):
        recipe["hf_config"] = source.hf_config
    if source.hf_revision:
        recipe["hf_revision"] = source.hf_revision
    return ImportedBenchmark(
        name=name,
        status=Status.PROPOSED if doubts else Status.DERIVED,
        origin=origin,
        data_set=source.hf_path,
        recipe=recipe | {"splits": [*source.splits], **fields},
        reason=reason,
        detail="; ".join([first, *(f"{other}: {detail}" for other, detail in others)]),
    )
