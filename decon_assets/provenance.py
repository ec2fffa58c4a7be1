"""What materializations say about themselves: counts, fingerprints, previews."""

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
from dagster import MetadataValue, TableColumn, TableColumnConstraints, TableSchema

PREVIEW_ROWS = 10
_CELL_WIDTH = 80
_UNTOLD = {"fingerprint", "extras"}


def column_schema(schema: pa.Schema) -> Mapping[str, Any]:
    """Metadata that the UI shows as the asset's columns."""
    columns = [
        TableColumn(
            name=field.name,
            type=str(field.type),
            description=(field.metadata or {}).get(b"description", b"").decode() or None,
            constraints=TableColumnConstraints(nullable=field.nullable),
        )
        for field in schema
    ]
    return {"dagster/column_schema": TableSchema(columns=columns)}


def record_preview(table: pa.Table) -> MetadataValue:
    """The first records, without columns that say the same in every row."""
    first = ["question", "answer", "passage"]
    names = [*first, *(name for name in table.column_names if name not in {*first, *_UNTOLD})]
    told = [name for name in names if len(table[name].unique()) > 1]
    return preview(table.select(told).slice(0, PREVIEW_ROWS + 1).to_pylist())


def preview(rows: Sequence[Mapping[str, Any]], *, width: int = _CELL_WIDTH) -> MetadataValue:
    """The first rows as a Markdown table."""
    if not rows:
        return MetadataValue.md("*nothing*")
    names = list(rows[0])
    lines = [_line(names), _line(["---"] * len(names))]
    lines += [_line([_cell(row[name], width) for name in names]) for row in rows[:PREVIEW_ROWS]]
    if len(rows) > PREVIEW_ROWS:
        lines.append("\n… and more")
    return MetadataValue.md("\n".join(lines))


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(value: object, width: int) -> str:
    text = f"{value:.3f}" if isinstance(value, float) else str(value)
    text = " ".join(text.split()).replace("|", "\\|")
    return text if len(text) <= width else f"{text[: width - 1]}…"
