"""Columns of an asset and their lineage, as metadata.

A column has lineage only if it is copied or counted from a single upstream column.
"""

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
from dagster import AssetKey, TableColumnDep, TableColumnLineage

from decon_assets.assets.metadata import column_schema

Column = tuple[str, str]  # asset, column
ITEM = ("benchmark", "split", "instance_index")  # the columns that name an item


def same(asset: str, *names: str, prefix: str = "") -> dict[str, Column]:
    """Map columns to columns of the same name in another asset."""
    return {f"{prefix}{name}": (asset, name) for name in names}


def columns(schema: pa.Schema, origins: Mapping[str, Column]) -> Mapping[str, Any]:
    """Return the columns of an asset and the upstream columns they come from, as metadata.

    Dagster's open-source UI does not show column lineage, so the column descriptions name it too;
    catalogs can read it from Dagster's API.
    """
    described = pa.schema([_described(column, origins.get(column.name)) for column in schema])
    deps = {
        name: [TableColumnDep(asset_key=AssetKey(other), column_name=column)]
        for name, (other, column) in origins.items()
    }
    lineage = {"dagster/column_lineage": TableColumnLineage(deps_by_column=deps)} if deps else {}
    return {**column_schema(described), **lineage}


def _described(column: pa.Field, origin: Column | None) -> pa.Field:
    """Append its origin to the description of a column."""
    if origin is None:
        return column
    about = (column.metadata or {}).get(b"description", b"").decode()
    return column.with_metadata({"description": f"{about} (`{origin[0]}`: {origin[1]})".strip()})
