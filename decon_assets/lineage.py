"""The columns of every asset, and from which column of another asset each comes.

Named is only what is carried on or counted from one column; what is made of many has no line.
"""

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
from dagster import AssetKey, TableColumnDep, TableColumnLineage

from decon_core.report.tables import TABLES
from decon_core.schemas import BLENDED, COMMON, INDEX, MATCHES, RECORDS, REMOVED

Column = tuple[str, str]  # asset, column


def _report_schema() -> pa.Schema:
    """All tables of the report as one: `table.column`."""
    return pa.schema(
        [
            column.with_name(f"{name}.{column.name}")
            for name, table in TABLES.items()
            for column in table.schema
        ]
    )


SCHEMAS: Mapping[str, pa.Schema] = {
    "records": RECORDS,
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
        **_same("scan", *MATCHES.names, prefix="matches."),
        **_same("mixture", *REMOVED.names[1:], prefix="removed."),
        "removed.shard_name": ("mixture", "shard"),
        **_same("records", *_ITEM, "config", "question", prefix="items."),
        **_same("records", *_ITEM, *_TEXTS, prefix="pairs."),
        **_same("common_ngrams", *COMMON.names, prefix="common_ngrams."),
    },
}


def column_lineage(asset: str) -> Mapping[str, Any]:
    """Metadata of a materialization: the UI draws it from the latest one."""
    deps = {
        name: [TableColumnDep(asset_key=AssetKey(other), column_name=column)]
        for name, (other, column) in FROM[asset].items()
    }
    return {"dagster/column_lineage": TableColumnLineage(deps_by_column=deps)}
