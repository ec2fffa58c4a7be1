"""The section of the report page with the tables of the study."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb

from decon_core.config.load import Config
from decon_core.features.study.build import DATABASE
from decon_core.features.study.exposure.effects import ALL
from decon_core.features.study.inputs import study_folder, study_key
from decon_core.features.study.settings import Study
from decon_core.report.html.build import Addition
from decon_core.report.html.sections import Section, Table
from decon_core.report.open import rows_of
from decon_core.storage.store import Store
from decon_core.text_tables import interval, number, p_value, signed
from decon_core.wording import counted

_ARMS = (
    "Models that were trained on variants of the data, compared with the model of the arm "
    "“{baseline}”. An average counts each benchmark the same. docs/studies/arms.md explains the "
    "numbers."
)
_EFFECTS = (
    "Effects are on the same items: planted in the arm's blend (seen) or held back, leaked into "
    "the corpus or clean."
)
_MOST_ROWS = 200


def study_on_page(config: Config, store: Store) -> Addition | None:
    """Return the section of the study that was built; None without one."""
    key = study_key(store) if config.table(Study) else ""
    return Addition(key, lambda: section_of(study_folder(store) / DATABASE)) if key else None


def section_of(database: Path) -> Section:
    """Return the tables of a study as a section."""
    with duckdb.connect(str(database), read_only=True) as connection:
        (baseline,) = rows_of(connection, "SELECT arm FROM arms WHERE is_baseline")
        differences = rows_of(connection, "FROM differences WHERE difference IS NOT NULL")
        without = rows_of(connection, "FROM differences WHERE difference IS NULL AND remark <> ''")
        effects = rows_of(connection, "FROM effects")
        problems = rows_of(connection, "FROM problems")
    words, tables = [_ARMS.format(baseline=baseline["arm"])], [_differences(differences)]
    if without:
        n_scores = counted(len(without), "score")
        words.append(f"Without a score of the baseline: {n_scores}, listed in study.md.")
    if problems:
        n_problems = counted(len(problems), "problem")
        words.append(
            f"Some results could not be read or matched to an item: {n_problems}, "
            "listed in study.md."
        )
    if effects:
        words.append(_EFFECTS)
        tables.append(_effects(effects))
    return Section("study", "Study", words, (), tables)


_Rows = Sequence[dict[str, Any]]


def _differences(rows: _Rows) -> Table:
    """Return the differences, averages first."""
    heads = {
        "arm": "short", "benchmark": "short", "metric": "short", "score": "formatted",
        "baseline": "formatted", "difference": "formatted", "95 % interval": "formatted",
        "p": "formatted", "compared on": "short",
    }  # fmt: skip
    cells = []
    for row in sorted(rows, key=lambda row: row["n_benchmarks"] is None):
        names = row["arm"], row["benchmark"], _measure(row)
        ends = interval(row["low"], row["high"])
        remark = "; ".join(filter(None, (row["basis"], row["remark"])))
        cells.append((*names, *_numbers(row), ends, p_value(row["p"]), remark))
    return _table("differences", "Differences from the baseline", heads, cells)


def _effects(rows: _Rows) -> Table:
    """Return the effects, those of all benchmarks first."""
    heads = {
        "arm": "short", "benchmark": "short", "metric": "short", "exposure": "short",
        "planted as": "short", "items": "formatted", "score": "formatted",
        "baseline": "formatted", "difference": "formatted", "95 % interval": "formatted",
        "p": "formatted",
    }  # fmt: skip
    cells = []
    for row in sorted(rows, key=lambda row: (row["arm"], row["benchmark"] != ALL)):
        names = row["arm"], row["benchmark"], _measure(row), row["exposure"]
        planted_as = ", ".join(filter(None, (row["form"], row["copies"], row["when"])))
        ends = interval(row["low"], row["high"]) or row["remark"]
        count = f"{row['n']:,}"
        cells.append((*names, planted_as, count, *_numbers(row), ends, p_value(row["p"])))
    return _table("effects", "Effects by exposure", heads, cells)


def _measure(row: dict[str, Any]) -> str:
    return ", ".join(filter(None, (row["metric"], row["filter"])))


def _numbers(row: dict[str, Any]) -> tuple[str, str, str]:
    return number(row["score"]), number(row["baseline"]), signed(row["difference"])


def _table(
    name: str, title: str, heads: dict[str, str], cells: Sequence[Sequence[object]]
) -> Table:
    columns = [{"name": name, "kind": kind} for name, kind in heads.items()]
    shown = cells[:_MOST_ROWS]
    if len(shown) < len(cells):
        title = f"{title}: {len(shown):,} of {counted(len(cells), 'row')}"
    return Table(name, title, columns, shown, (), is_folded=False)
