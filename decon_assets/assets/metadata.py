"""Metadata of materializations: previews, and reports per partition."""

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
from dagster import AssetExecutionContext, MetadataValue

Metadata = Mapping[str, Any]

OWNERS = ["team:decontamination"]  # shown by the UI for every asset

# Metadata per partition takes Dagster quadratic time: 20 to 35 s for 1,000 partitions.
MAX_PARTITIONS_REPORTED = 200

RATE = "run_megabytes_per_second"  # metadata key of a scan

PREVIEW_ROWS = 10
_CELL_WIDTH = 80
_HIDDEN = {"fingerprint", "extras"}


class PartitionReporter:
    """Adds metadata to the first `MAX_PARTITIONS_REPORTED` partitions of a run."""

    def __init__(self, context: AssetExecutionContext) -> None:
        self._context = context
        self._n_left = MAX_PARTITIONS_REPORTED

    @property
    def is_full(self) -> bool:
        return not self._n_left

    def report(self, key: str, metadata: Mapping[str, Any]) -> None:
        if self._n_left:
            self._context.add_asset_metadata(metadata, partition_key=key)
            self._n_left -= 1


def record_preview(table: pa.Table) -> MetadataValue:
    """Return the first records as a table, without columns of a single value."""
    first = ["question", "answer", "passage"]
    names = [*first, *(name for name in table.column_names if name not in {*first, *_HIDDEN})]
    shown = [name for name in names if len(table[name].unique()) > 1]
    return preview(table.select(shown).slice(0, PREVIEW_ROWS + 1).to_pylist())


def preview(
    rows: Sequence[Mapping[str, Any]], *, width: int = _CELL_WIDTH, most: int = PREVIEW_ROWS
) -> MetadataValue:
    """Return the first rows as a Markdown table."""
    if not rows:
        return MetadataValue.md("*nothing*")
    names = list(rows[0])
    cells = [[_cell(row[name], width) for name in names] for row in rows[:most]]
    lines = [f"| {' | '.join(line)} |" for line in (names, ["---"] * len(names), *cells)]
    if len(rows) > most:
        lines.append("\n… and more")
    return MetadataValue.md("\n".join(lines))


def _cell(value: object, width: int) -> str:
    text = f"{value:.3f}" if isinstance(value, float) else str(value)
    text = " ".join(text.split()).replace("|", "\\|")
    return text if len(text) <= width else f"{text[: width - 1]}…"
