"""Check the files of a haystack."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import polars as pl

from decon_core.corpus.packs import FILES, changed_files
from decon_core.errors import Problem
from decon_core.storage.files import read_json
from decon_core.studies.haystack.page import RESULT


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
                expected = f"at most the {result['n_planted']:,} that are planted"
                yield Problem(str(places), f"{n:,} items with {scorer}", expected)
