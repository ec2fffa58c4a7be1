"""The section of the report page with the ranks of planted items."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from decon_core.features.haystack import page
from decon_core.features.haystack.files import RESULT, TABLES
from decon_core.report.html.labels import shown
from decon_core.report.html.sections import ALL, Choice, Section, Table
from decon_core.storage.files import read_json
from decon_core.wording import counted

_NAMES = dict.fromkeys(("scorer", "benchmark", "subject"), pl.String)


def section_of(folder: Path) -> Section:
    """Return the figures and tables of a haystack as a section."""
    result = read_json(folder / RESULT)
    rows = [
        pl.read_csv(path, infer_schema_length=None, schema_overrides=_NAMES).to_dicts()
        for path in (folder / f"{name}.csv" for name in TABLES)
    ]
    n_planted = counted(result["n_planted"], "benchmark item")
    n_documents = counted(result["n_documents"], "document")
    about = (
        f"{n_planted} planted among {n_documents} of the corpus, ranked by quality scorers: does a "
        "quality filter keep leaked items more often than other documents? "
        "docs/studies/haystack.md explains the numbers."
    )
    words = [
        about,
        page.NOTE,
        *(
            f"{shown(scored['scorer'])}: {counted(scored['n_without_score'], 'document')} without "
            "a score, not ranked."
            for scored in result["scorers"]
            if scored["n_without_score"]
        ),
    ]
    tables = page.tables(result)
    shown_tables = [
        _table("haystack", "Percentiles of planted items", *tables["percentiles"]),
        _table("amplification", "What a filter keeps", *tables["amplification"]),
    ]
    choices = [Choice(ALL, [*page.figures(*rows).values()])]
    return Section("haystack", "Planted items and quality filters", words, choices, shown_tables)


def _table(name: str, title: str, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    kinds = ["short" if head in ("scorer", "benchmark") else "formatted" for head in heads]
    columns = [{"name": head, "kind": kind} for head, kind in zip(heads, kinds, strict=True)]
    return Table(name, title, columns, [[*map(shown, row)] for row in rows], (), is_folded=True)
