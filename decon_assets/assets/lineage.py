"""Columns of every asset and their lineage.

A column has lineage only if it is copied or counted from a single upstream column.
"""

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
from dagster import AssetKey, TableColumnDep, TableColumnLineage

from decon_assets.assets.metadata import column_schema
from decon_core.report.tables import TABLES
from decon_core.schemas import BLENDED, COMMON, FREQUENCIES, INDEX, MATCHES, RECORDS, REMOVED

Column = tuple[str, str]  # asset, column


# The report has some 200 columns: shown are the tables used most, which have upstream columns.
_REPORT_TABLES = ("items", "removed")


def _report_schema() -> pa.Schema:
    """Return one schema for several tables of the report, with names `table.column`."""
    return pa.schema(
        [
            column.with_name(f"{name}.{column.name}")
            for name in _REPORT_TABLES
            for column in TABLES[name].schema
        ]
    )


SCHEMAS: Mapping[str, pa.Schema] = {
    "records": RECORDS,
    "idf_snapshot": FREQUENCIES,
    "index": INDEX,
    "scan": MATCHES,
    "common_ngrams": COMMON,
    "mixture": REMOVED,
    "blend": BLENDED,
    "clean_benchmark": RECORDS,
    "report": _report_schema(),
}

_TEXTS = ("question", "answer", "passage")
_ITEM = ("benchmark", "split", "instance_index")
_RECORD = (*_ITEM, "config", "is_correct", "fingerprint")
_LEAK = (*_ITEM, "detector")


def _same(asset: str, *names: str, prefix: str = "") -> dict[str, Column]:
    """Map columns to columns of the same name in another asset."""
    return {f"{prefix}{name}": (asset, name) for name in names}


FROM: Mapping[str, Mapping[str, Column]] = {
    "index": {name: ("records", name.partition(".")[0]) for name in INDEX.names if "." in name},
    "scan": {
        **_same("records", *_RECORD),
        **{f"{text}_overlap": ("index", f"{text}.tokens") for text in _TEXTS},
        "question_tokens": ("index", "question.offsets"),
        "matched": ("index", "question.df_offsets"),
    },
    "common_ngrams": {"benchmark": ("records", "benchmark"), "text": ("records", "question")},
    "mixture": {
        **_same("scan", "row", "doc_id", *_LEAK),
        "score": ("scan", "base_score"),
    },
    "blend": _same("records", *_ITEM, "sub_index"),
    "clean_benchmark": _same("records", *RECORDS.names),
    "report": {
        **_same("mixture", *REMOVED.names[1:], prefix="removed."),
        "removed.shard_name": ("mixture", "shard"),
        **_same("records", *_ITEM, "config", "question", prefix="items."),
    },
}


def columns(asset: str) -> Mapping[str, Any]:
    """Return the columns of an asset and their lineage, as Dagster metadata.

    Dagster's open-source UI does not show column lineage, so the column descriptions name it too;
    catalogs can read it from Dagster's API.
    """
    origins = FROM.get(asset, {})
    schema = pa.schema([_described(column, origins.get(column.name)) for column in SCHEMAS[asset]])
    deps = {
        name: [TableColumnDep(asset_key=AssetKey(other), column_name=column)]
        for name, (other, column) in origins.items()
    }
    lineage = {"dagster/column_lineage": TableColumnLineage(deps_by_column=deps)} if deps else {}
    return {**column_schema(schema), **lineage}


def _described(column: pa.Field, origin: Column | None) -> pa.Field:
    """Append its origin to the description of a column."""
    if origin is None:
        return column
    about = (column.metadata or {}).get(b"description", b"").decode()
    return column.with_metadata({"description": f"{about} (`{origin[0]}`: {origin[1]})".strip()})
