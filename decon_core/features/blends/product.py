"""Blends in the store: which are missing, what the report takes of them, and what `why` says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from hashlib import sha256
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from decon_core.config.load import Config
from decon_core.errors import Problem
from decon_core.features.blends.build import Blender
from decon_core.features.blends.rewordings import read_rewordings, rewordings_path
from decon_core.features.blends.schemas import (
    BLEND_ITEMS,
    BLENDED,
    ITEMS_FILE,
    REPLACED,
    REPLACED_FILE,
    TEXTS_FILE,
    blend_manifest,
)
from decon_core.features.blends.settings import Blend, declared_blends
from decon_core.mixtures.builder import Builder
from decon_core.mixtures.composition import labels_of
from decon_core.mixtures.manifest import read_manifest
from decon_core.planner import Plan
from decon_core.report.open import rows_of
from decon_core.report.page_additions import Addition
from decon_core.report.tables import TABLES, ReportAddition, beside, state_changed, table_of
from decon_core.schemas import schema_of
from decon_core.storage.files import read_json
from decon_core.storage.store import Store
from decon_core.storage.tables import read_parquet

if TYPE_CHECKING:
    import duckdb

    from decon_core.report.why import Place

_SECTION = "decon_core.features.blends.on_page:section_of"  # imported only to draw it

Row = Mapping[str, Any]


def blender_of(config: Config, builder: Builder) -> Blender:
    return Blender(builder, declared_blends(config), read_rewordings(rewordings_path(config)))


def blend_names(config: Config) -> list[str]:
    return [blend.name for blend in declared_blends(config)]


def missing_blends(plan: Plan) -> list[str]:
    if not declared_blends(plan.config):
        return []
    blender = blender_of(plan.config, plan.builder)
    return [blend.name for blend in blender.blends if not blender.is_current(blend)]


def report_addition(plan: Plan) -> ReportAddition | None:
    if not declared_blends(plan.config):
        return None
    return addition_of(blender_of(plan.config, plan.builder))


def addition_of(blender: Blender) -> ReportAddition:
    """Return what the report has of blends; a blend that was not built has no rows."""
    states = {blend.name: blender.is_current(blend) for blend in blender.blends}
    inputs = [f"{blender.fingerprint(blend)} {states[blend.name]}" for blend in blender.blends]
    return ReportAddition(
        " ".join(sorted(inputs)),
        lambda: _tables(blender.builder.store, states),
        lambda connection: _changes(connection, states),
    )


def _tables(store: Store, states: Mapping[str, bool]) -> dict[str, pa.Table]:
    """Return totals, counts by phase and source, and test items of the blends."""
    totals: list[Row] = []
    phases: list[Row] = []
    sources: list[Row] = []
    items = [TABLES["blend_items"].schema.empty_table()]
    for name, is_current in states.items():
        path = blend_manifest(store, name)
        if not path.is_file():
            continue
        manifest = read_json(path)
        named = {"blend": name, "is_current": is_current}
        totals.append({**named, "mixture": manifest["mixture"]["name"], **manifest["totals"]})
        phases += [{**named, **phase} for phase in manifest["phases"]]
        by_source = {source["source"]: source for source in manifest["sources"]}
        sources += [
            {**by_source[drawn["source"]], **named, "phase": phase["phase"], **drawn}
            for phase in manifest["phases"]
            for drawn in phase["sources"]
        ]
        rows = read_parquet(path.with_name(ITEMS_FILE), schema=schema_of(BLEND_ITEMS))
        items.append(beside("blend_items", named, rows))
    return {
        "blends": table_of("blends", totals),
        "blend_phases": table_of("blend_phases", phases),
        "blend_sources": table_of("blend_sources", sources),
        "blend_items": pa.concat_tables(items),
    }


def _changes(
    connection: duckdb.DuckDBPyConnection, states: Mapping[str, bool]
) -> Iterator[Problem]:
    """Yield the blends that were built, removed or outdated since the report."""
    for row in rows_of(connection, "SELECT blend, is_current FROM blends"):
        is_current = states.get(row["blend"], False)
        if is_current != row["is_current"]:
            yield state_changed(f"blend {row['blend']}", row["is_current"], is_current)


def blends_on_page(config: Config, store: Store) -> Addition | None:
    """Return the section of the blends that were built; None if there is none."""
    manifests = {
        blend.name: manifest
        for blend in declared_blends(config)
        if (manifest := read_manifest(blend_manifest(store, blend.name)))
    }
    labels = labels_of(config.corpus.sources)
    inputs = [(name, manifest["fingerprint"]) for name, manifest in manifests.items()]
    key = sha256(repr((inputs, labels)).encode()).hexdigest()[:16]
    return Addition(key, lambda: resolve_name(_SECTION)(manifests, labels)) if manifests else None


def in_blends(config: Config, builder: Builder, place: Place) -> list[dict[str, Any]]:
    """Return how often each blend has a document, or replaced it by an item."""
    return [_in_blend(builder, place, blend) for blend in declared_blends(config)]


def _in_blend(builder: Builder, place: Place, blend: Blend) -> dict[str, Any]:
    """Return how often and in which parts it was drawn, and how often a test item replaced it."""
    import pyarrow.compute as pc

    from decon_core.report.why import rows_of_place

    path = blend_manifest(builder.store, blend.name)
    state = {"blend": blend.name, "of": blend.of}
    if not path.is_file():
        return {**state, "is_built": False, "n_texts": 0, "parts": [], "n_replaced": 0}
    is_of_source = pc.field("source") == place.pack.source.name
    is_here = rows_of_place("shard", "corpus_row", place) & is_of_source
    texts = read_parquet(path.with_name(TEXTS_FILE), schema=schema_of(BLENDED), filters=is_here)
    replaced = read_parquet(
        path.with_name(REPLACED_FILE), schema=schema_of(REPLACED), filters=is_here
    )
    parts = sorted({*texts["part"].to_pylist()})
    counts = {"n_texts": texts.num_rows, "parts": parts, "n_replaced": replaced.num_rows}
    return {**state, "is_built": True, **counts}
