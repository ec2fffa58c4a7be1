"""Neighbours in the store: whether they are missing, and what decisions and the report take."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from decon_core.benchmarks.records import Version, load_records
from decon_core.decisions.nominations import NominatedPlaces
from decon_core.errors import InputError, Problem
from decon_core.features.neighbours.settings import Neighbours
from decon_core.planner import Plan
from decon_core.report.tables import ReportAddition

if TYPE_CHECKING:
    from decon_core.features.neighbours.build import Results

_ITEM = ("split", "instance_index")
_BUILD_AGAIN = "delete the folder, and `decon-assets run` builds it again"
_ROUNDING = 1e-6


def current_results(plan: Plan) -> Results | None:
    """Return the complete neighbours that a configuration asks for; None if there are none.

    Also none if it names an embedder that is not installed: building the neighbours says so, and
    what does not need them goes on.
    """
    settings = plan.config.table(Neighbours)
    if settings is None:
        return None
    from decon_core.features.neighbours.build import Results, neighbours_key

    try:
        tokenizer = plan.config.policy.tokenizer_str
        key = neighbours_key(plan.packs, plan.versions, settings, tokenizer)
    except InputError:
        return None
    results = Results(plan.store, key)
    return results if results.is_complete else None


def is_missing(plan: Plan) -> bool:
    """Return whether neighbours are wanted, and missing or outdated."""
    return plan.config.table(Neighbours) is not None and current_results(plan) is None


def report_addition(plan: Plan) -> ReportAddition | None:
    """Return the tables of neighbours; without paragraphs if a report has no corpus text."""
    results = current_results(plan)
    if results is None:
        return None

    def tables() -> dict[str, pa.Table]:
        by_name = results.tables()
        if not plan.config.report.has_snippets:
            rows = by_name["neighbours"]
            at = rows.schema.get_field_index("text")
            empty = pa.nulls(rows.num_rows, pa.string())
            by_name["neighbours"] = rows.set_column(at, rows.schema.field(at), empty)
        return by_name

    return ReportAddition(results.key, tables)


def nominations(plan: Plan) -> NominatedPlaces | None:
    """Return the neighbours as places that may be an item; None if there are none."""
    settings, results = plan.config.table(Neighbours), current_results(plan)
    return results.nominations(settings) if settings and results else None


def faults_of_neighbours(
    results: Results, versions: Sequence[Version], top: int
) -> Iterator[Problem]:
    """Check that neighbours are of items of the benchmarks, and at most `top` of each."""
    import polars as pl

    rows = results.tables()["neighbours"]
    n_of = Counter(pl.DataFrame(rows).select("benchmark", *_ITEM).rows())
    known = {
        (version.benchmark, *item)
        for version in versions
        for item in pl.DataFrame(load_records(results.store, version, columns=[*_ITEM])).rows()
    }
    where = str(results.folder)
    for item, n in sorted(n_of.items()):
        if item not in known:
            yield Problem(where, f"neighbours of {item}", "items of the benchmarks", _BUILD_AGAIN)
        elif n > top:
            yield Problem(where, f"{n} neighbours of {item}", f"at most {top}", _BUILD_AGAIN)
    similarity = rows["similarity"].to_pylist()
    if wrong := sum(not abs(value) <= 1 + _ROUNDING for value in similarity):
        yield Problem(where, f"{wrong:,} cosines beyond 1", "from -1 to 1", _BUILD_AGAIN)
