"""Small tables of decon.toml: [evals], [idf], [review], [report] and [store]."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic.dataclasses import dataclass

from decon_core.config.validation import TABLE, Count, Distinct, Name, Names, Share, expects
from decon_core.config.verdicts import DEFAULT_FILE


@dataclass(frozen=True, kw_only=True, config=TABLE)
class Evals:
    """[evals]: the benchmarks."""

    recipes: Names[Name]
    """Recipe files, or globs; one that matches nothing is an error."""
    benchmarks: Names[Name] | None = None
    """Use only these; default: all."""
    required: Names[Name] = ()
    """Fail if a chosen detector can find too few items of these benchmarks."""
    least_indexable_share: Share = 0.5
    """Share of the items that is enough; with fewer, a benchmark that is not required has a
    warning."""


@dataclass(frozen=True, kw_only=True, config=TABLE)
class Idf:
    """[idf]: the weights of n-grams."""

    benchmarks: Names[Name] | None = None
    """Benchmarks whose frequencies are frozen at the first run; default: all."""


@dataclass(frozen=True, kw_only=True, config=TABLE)
class Review:
    """[review]: verdicts of people on matches."""

    verdicts: Annotated[Name, expects("a local file, which need not exist")] = DEFAULT_FILE
    """File of reviewers' verdicts, which need not exist (docs/review.md)."""
    clears: Distinct[Literal["template", "common source"]] = ("template", "common source")
    """Verdicts that take a match out of the leaks."""


@dataclass(frozen=True, kw_only=True, config=TABLE)
class Report:
    """[report]: how much text a report shows, and what it warns of."""

    snippets: Literal["on", "off"] = "on"
    """With "off", database and pages have no corpus text."""
    context: Count = 300
    """Characters shown before and after a match."""
    most_pairs: Count = 50_000
    """Pairs of item and passage whose texts are kept."""
    drift: Share = 0.05
    """The check `leak_rate_is_steady` warns if a benchmark's leak rate differs by more than this
    from the previous report."""

    @property
    def has_snippets(self) -> bool:
        return self.snippets == "on"


@dataclass(frozen=True, kw_only=True, config=TABLE)
class StoreTable:
    """[store]: the place of all products."""

    path: Annotated[Name | None, expects("a path")] = None
    """A folder or a URL; default: .decon."""
    work: Annotated[Name | None, expects("a path")] = None
    """With a URL: the local work folder; default: .decon."""
