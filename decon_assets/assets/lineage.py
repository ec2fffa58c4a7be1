"""The columns of every asset, and from which column of another asset each comes.

Named is only what is carried on or counted from one column; what is made of many has no line.
"""

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
from dagster import AssetKey, TableColumnDep, TableColumnLineage

from decon_assets.assets.metadata import column_schema
from decon_core.report.tables import TABLES
from decon_core.schemas import BLENDED, COMMON, FREQUENCIES, INDEX, MATCHES, RECORDS, REMOVED

Column = tuple[str, str]  # asset, column


# Of some 200 columns: those that people ask for first, and that come from elsewhere.
_REPORT_TABLES = ("items", "removed")


def _report_schema() -> pa.Schema:
    """The report's tables as one: `table.column`."""
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
_OF_RECORD = (*_ITEM, "config", "is_correct", "fingerprint")
_OF_LEAK = (*_ITEM, "detector")


def _same(asset: str, *names: str, prefix: str = "") -> dict[str, Column]:
    """Columns that are those of another asset, under their own names."""
    return {f"{prefix}{name}": (asset, name) for name in names}


FROM: Mapping[str, Mapping[str, Column]] = {
    "index": {name: ("records", name.partition(".")[0]) for name in INDEX.names if "." in name},
    "scan": {
        **_same("records", *_OF_RECORD),
        **{f"{text}_overlap": ("index", f"{text}.tokens") for text in _TEXTS},
        "question_tokens": ("index", "question.offsets"),
        "matched": ("index", "question.df_offsets"),
    },
    "common_ngrams": {"benchmark": ("records", "benchmark"), "text": ("records", "question")},
    "mixture": {
        **_same("scan", "row", "doc_id", *_OF_LEAK),
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
    """Metadata of an asset: its columns, and where each comes from.

    The open UI draws no lineage of columns, so their descriptions name it as well; catalogs that
    read Dagster's API have it as such.
    """
    came = FROM.get(asset, {})
    schema = pa.schema([_told(column, came.get(column.name)) for column in SCHEMAS[asset]])
    deps = {
        name: [TableColumnDep(asset_key=AssetKey(other), column_name=column)]
        for name, (other, column) in came.items()
    }
    lineage = {"dagster/column_lineage": TableColumnLineage(deps_by_column=deps)} if deps else {}
    return {**column_schema(schema), **lineage}


def _told(column: pa.Field, origin: Column | None) -> pa.Field:
    if origin is None:
        return column
    about = (column.metadata or {}).get(b"description", b"").decode()
    return column.with_metadata({"description": f"{about} (`{origin[0]}`: {origin[1]})".strip()})
