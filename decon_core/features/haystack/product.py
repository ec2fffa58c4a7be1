"""The haystack in the store: its folder, whether it is missing, and its faults."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import polars as pl

from decon_core.corpus.packs import FILES, changed_files
from decon_core.errors import InputError, Problem
from decon_core.features.haystack.page import RESULT, has_haystack
from decon_core.features.haystack.run import haystack_key
from decon_core.features.haystack.settings import Haystack
from decon_core.planner import Plan
from decon_core.storage.files import read_json
from decon_core.storage.store import Store


def haystack_folder(store: Store) -> Path:
    return store.root / "haystack"


def is_missing(plan: Plan) -> bool:
    """Return whether a haystack is wanted, and missing or outdated."""
    settings = plan.config.table(Haystack)
    if settings is None:
        return False
    try:
        key = haystack_key(plan.packs, plan.versions, settings)
    except InputError:  # the file of a scorer cannot be found, which the study then says
        return True
    return not has_haystack(haystack_folder(plan.store), key)


def demonstrate(store: Store, program: str, config: Path) -> Iterator[str]:
    if (picture := haystack_folder(store) / "haystack.svg").is_file():
        yield f"haystack: {picture}  (print its tables: {program} haystack --config {config})"


def faults_of_haystack(folder: Path) -> Iterator[Problem]:
    """Yield changed files, and scorers that rank more items than are planted."""
    if not (folder / RESULT).is_file():
        return
    result = read_json(folder / RESULT)
    yield from changed_files(folder, result[FILES])
    places = folder / "haystack.csv"
    if places.is_file():
        ranked = pl.read_csv(places, infer_schema=False).group_by("scorer").len()
        for scorer, n in sorted(ranked.rows()):
            if n > result["n_planted"]:
                expected = f"at most the {result['n_planted']:,} planted items"
                yield Problem(str(places), f"{n:,} items with {scorer}", expected)
