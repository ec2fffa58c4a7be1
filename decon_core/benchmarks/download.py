"""Download benchmarks from the hub or from URLs, each revision once per machine.

~/.cache/decon-assets/benchmarks/<fingerprint of the recipe>/<revision>.parquet   its records
"""

from __future__ import annotations

import errno
import json
import os
import re
from contextlib import suppress
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path

import pyarrow as pa

from decon_core.benchmarks.files import files_by_split, local_paths
from decon_core.benchmarks.hub import configs_of, revision_of
from decon_core.benchmarks.normalize import normalize
from decon_core.benchmarks.recipe import HubSource, Recipe
from decon_core.errors import DamagedError, Problem, RecipeError, RecordError
from decon_core.schemas import RECORDS
from decon_core.storage.paths import UnreachableError, is_url, scheme_of, stamp_of
from decon_core.storage.tables import read_parquet, write_parquet

_ROWS_TRIED = 5  # rows of the first split on which an untested recipe is tried first
_COMMIT = re.compile(r"[0-9a-f]{40}")
_REPOSITORY = re.compile(r"hf://datasets/([^/@]+/[^/@]+)(?:@([^/]+))?/")


def is_remote(recipe: Recipe) -> bool:
    """Return whether the rows of a recipe are on the hub or at a URL."""
    return isinstance(recipe.source, HubSource) or any(map(is_url, local_paths(recipe)))


def is_published(recipe: Recipe) -> bool:
    """Return whether the rows are on the hub or on web sites, not on storage of the user."""
    schemes = {scheme_of(path) for path in local_paths(recipe)}
    return isinstance(recipe.source, HubSource) or schemes <= {"hf", "http", "https"}


def cache_folder() -> Path:
    """Return the folder of downloaded benchmarks, shared by all scans of this user."""
    caches = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(caches).expanduser() / "decon-assets" / "benchmarks"


@dataclass(frozen=True)
class Remote:
    """A benchmark on the hub or at a URL, at its current revision."""

    recipe: Recipe
    base: Path
    revision: str  # empty: unknown, so nothing is cached
    is_offline: bool = False  # nothing answers; the revision is the last downloaded one

    @classmethod
    def of(cls, recipe: Recipe, base: Path, *, is_offline: bool = False) -> Remote:
        """Return it at today's revision, or at the last downloaded one if nothing answers.

        A recipe that pins a commit has only this revision.
        """
        pinned = pinned_commit(recipe)
        if pinned and (_folder(recipe) / f"{pinned}.parquet").is_file():
            return cls(recipe, base, pinned)
        try:
            if is_offline:
                raise UnreachableError(errno.ENETDOWN, f"{recipe.name}: the network is down")
            return cls(recipe, base, _current_revision(recipe, base))
        except UnreachableError as error:
            cached = None if pinned else last_downloaded(recipe)
            if not error.is_no_answer or not cached:
                raise
            return cls(recipe, base, cached.stem, is_offline=True)

    @property
    def words(self) -> str:
        """Return where the records come from, for the progress of a command."""
        at = f"revision {self.revision}" if self.revision else "an unknown revision"
        if (_folder(self.recipe) / f"{self.revision}.parquet").is_file():
            return f"{at}, from the cache"
        if self.recipe.is_verified:
            return f"{at}, downloaded"
        return f"{at}, downloaded after its columns were compared with those of the recipe"

    def records(self) -> pa.Table:
        """Return all records, downloaded only if the cache has not this revision."""
        path = _folder(self.recipe) / f"{self.revision}.parquet"
        if self.revision and path.is_file():
            with suppress(DamagedError):
                return read_parquet(path, schema=RECORDS)
        recipe = self.recipe
        if isinstance(recipe.source, HubSource) and self.revision:
            # All splits are read at one commit, even if another is pushed meanwhile.
            recipe = replace(recipe, source=replace(recipe.source, revision=self.revision))
        if not recipe.is_verified:
            require_columns(recipe, self.base)
        table = normalize(recipe, base=self.base)
        if self.revision:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_parquet(path, table)
        return table


def last_downloaded(recipe: Recipe) -> Path | None:
    """Return the records of a recipe that were downloaded last; their revision is the stem."""
    cached = _folder(recipe).glob("*.parquet")
    return max(cached, key=lambda path: path.stat().st_mtime, default=None)


def _folder(recipe: Recipe) -> Path:
    """Return the folder of a recipe; one that pins a commit shares it with one that pins none."""
    source = recipe.source
    if isinstance(source, HubSource) and pinned_commit(recipe):
        recipe = replace(recipe, source=replace(source, revision=None))
    return cache_folder() / recipe.fingerprint


def pinned_commit(recipe: Recipe) -> str:
    """Return the commit that a recipe pins; empty if it pins none, or a branch or tag."""
    revision = recipe.source.revision if isinstance(recipe.source, HubSource) else None
    return revision if revision and _COMMIT.fullmatch(revision) else ""


def _current_revision(recipe: Recipe, base: Path) -> str:
    """Return the commit of a dataset, or a digest of the sizes and tags of files at URLs."""
    if isinstance(recipe.source, HubSource):
        return revision_of(recipe.source, where=recipe.name)
    paths = local_paths(recipe)
    places = [_REPOSITORY.match(path) for path in paths]
    if all(places):
        repositories = sorted({place.groups() for place in places if place})
        sources = (HubSource(path=path, revision=at) for path, at in repositories)
        return "-".join(revision_of(source, where=recipe.name) for source in sources)
    files = {file for paths in files_by_split(recipe, base=base).values() for file in paths}
    stamps = [(str(file), *stamp_of(file)) for file in sorted(files)]
    return sha256(json.dumps(stamps).encode()).hexdigest()[:16]


def first_records(recipe: Recipe, base: Path, *, limit: int) -> pa.Table:
    """Return the records of the first rows, of the first split and config."""
    tried = replace(recipe, splits=recipe.splits[:1])
    if isinstance(recipe.source, HubSource):
        first, *_ = configs_of(recipe.source, where=recipe.name)
        configs = (first,) if first else ()
        tried = replace(tried, source=replace(recipe.source, configs=configs))
    return normalize(tried, base=base, limit=limit)


def require_columns(recipe: Recipe, base: Path) -> None:
    """Raise `RecipeError` if the first rows do not have the columns that a recipe names."""
    try:
        first_records(recipe, base, limit=_ROWS_TRIED)
    except RecordError as error:
        faults = "; ".join(dict.fromkeys(problem.found for problem in error.problems))
        found = f"columns that differ from those of its recipe: {faults}"
        expected = "the columns that the recipe names"
        remedy = f"Correct it: `decon-assets catalog {recipe.name} > evals.yaml`."
        raise RecipeError(Problem(recipe.name, found, expected, remedy)) from None
