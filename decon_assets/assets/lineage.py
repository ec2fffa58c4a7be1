"""Columns of an asset and their lineage, as metadata.

A column has lineage only if it is copied or counted from a single upstream column.
"""

from collections.abc import Mapping
from typing import Any

import dagster as dg
import pyarrow as pa

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
    described = []
    for field in schema:
        about = (field.metadata or {}).get(b"description", b"").decode()
        if field.name in origins:
            about = "{} (`{}`: {})".format(about, *origins[field.name]).strip()
        constraints = dg.TableColumnConstraints(nullable=field.nullable)
        described.append(dg.TableColumn(field.name, str(field.type), about or None, constraints))
    deps = {
        name: [dg.TableColumnDep(asset_key=dg.AssetKey(other), column_name=column)]
        for name, (other, column) in origins.items()
    }
    lineage = {"dagster/column_lineage": dg.TableColumnLineage(deps_by_column=deps)} if deps else {}
    return {"dagster/column_schema": dg.TableSchema(columns=described), **lineage}
