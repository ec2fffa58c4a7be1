"""The result of an import: a benchmark of a registry with its recipe, or why there is none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from decon_core.features.importers.questions import Draft


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
