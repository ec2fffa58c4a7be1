"""Neighbours in the store: whether they are missing, and what decisions and the report take."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import polars as pl
import pyarrow as pa

from decon_core.benchmarks.records import Version, load_records
from decon_core.decisions.nominations import NominatedPlaces
from decon_core.errors import InputError, Problem
from decon_core.features.neighbours.build import (
    has_neighbours,
    neighbour_tables,
    neighbours_folder,
    neighbours_key,
    nominations_of,
)
from decon_core.features.neighbours.settings import Neighbours
from decon_core.planner import Plan
from decon_core.report.tables import ReportAddition
from decon_core.storage.store import Store

_ITEM = ("split", "instance_index")
_BUILD_AGAIN = "delete the folder, and `decon-assets run` builds it again"
_ROUNDING = 1e-6


def current_key(plan: Plan) -> str:
    """Return the key of the complete neighbours that a configuration asks for; else "".

    Also empty if it names an embedder that is not installed: building the neighbours says so, and
    what does not need them goes on.
    """
    settings = plan.config.table(Neighbours)
    if settings is None:
        return ""
    try:
        tokenizer = plan.config.policy.tokenizer_str
        key = neighbours_key(plan.packs, plan.versions, settings, tokenizer)
    except InputError:
        return ""
    return key if has_neighbours(plan.store, key) else ""


def is_missing(plan: Plan) -> bool:
    """Return whether neighbours are wanted, and missing or outdated."""
    return plan.config.table(Neighbours) is not None and not current_key(plan)


def report_addition(plan: Plan) -> ReportAddition | None:
    """Return the tables of neighbours; without paragraphs if a report has no corpus text."""
    config, store = plan.config, plan.store
    key = current_key(plan)
    if not key:
        return None

    def tables() -> dict[str, pa.Table]:
        by_name = neighbour_tables(store, key)
        if not config.report.has_snippets:
            rows = by_name["neighbours"]
            at = rows.schema.get_field_index("text")
            empty = pa.nulls(rows.num_rows, pa.string())
            by_name["neighbours"] = rows.set_column(at, rows.schema.field(at), empty)
        return by_name

    return ReportAddition(key, tables)


def nominations(plan: Plan) -> NominatedPlaces | None:
    """Return the neighbours as places that may be an item; None if there are none."""
    settings, key = plan.config.table(Neighbours), current_key(plan)
    if settings is None or not key:
        return None
    return nominations_of(plan.store, key, settings)


def faults_of_neighbours(
    store: Store, key: str, versions: Sequence[Version], top: int
) -> Iterator[Problem]:
    """Check that neighbours are of items of the benchmarks, and at most `top` of each."""
    rows = neighbour_tables(store, key)["neighbours"]
    n_of = Counter(pl.DataFrame(rows).select("benchmark", *_ITEM).rows())
    known = {
        (version.benchmark, *item)
        for version in versions
        for item in pl.DataFrame(load_records(store, version, columns=[*_ITEM])).rows()
    }
    where = str(neighbours_folder(store) / key)
    for item, n in sorted(n_of.items()):
        if item not in known:
            yield Problem(where, f"neighbours of {item}", "items of the benchmarks", _BUILD_AGAIN)
        elif n > top:
            yield Problem(where, f"{n} neighbours of {item}", f"at most {top}", _BUILD_AGAIN)
    similarity = rows["similarity"].to_pylist()
    if wrong := sum(not abs(value) <= 1 + _ROUNDING for value in similarity):
        yield Problem(where, f"{wrong:,} cosines beyond 1", "from -1 to 1", _BUILD_AGAIN)
