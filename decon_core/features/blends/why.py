"""What `why` says of blends: how often each has a document, or replaced it by an item."""

from __future__ import annotations

from typing import Any

import pyarrow.compute as pc

from decon_core.config.load import Config
from decon_core.features.blends.build import REPLACED_FILE, TEXTS_FILE
from decon_core.features.blends.folders import blend_manifest
from decon_core.features.blends.schemas import BLENDED, REPLACED
from decon_core.features.blends.settings import Blend, declared_blends
from decon_core.mixtures.builder import Builder
from decon_core.report.why import Place, rows_of_place
from decon_core.storage.tables import read_parquet


def in_blends(config: Config, builder: Builder, place: Place) -> list[dict[str, Any]]:
    return [_in_blend(builder, place, blend) for blend in declared_blends(config)]


def _in_blend(builder: Builder, place: Place, blend: Blend) -> dict[str, Any]:
    """Return how often and in which parts it was drawn, and how often a test item replaced it."""
    path = blend_manifest(builder.store, blend.name)
    state = {"blend": blend.name, "of": blend.of}
    if not path.is_file():
        return {**state, "is_built": False, "n_texts": 0, "parts": [], "n_replaced": 0}
    is_of_source = pc.field("source") == place.pack.source.name
    is_here = rows_of_place("shard", "corpus_row", place) & is_of_source
    texts = read_parquet(path.with_name(TEXTS_FILE), schema=BLENDED, filters=is_here)
    replaced = read_parquet(path.with_name(REPLACED_FILE), schema=REPLACED, filters=is_here)
    parts = sorted({*texts["part"].to_pylist()})
    counts = {"n_texts": texts.num_rows, "parts": parts, "n_replaced": replaced.num_rows}
    return {**state, "is_built": True, **counts}
