"""Metadata of assets and materializations: columns, their lineage, previews, partitions."""

import os
import platform
import resource
import warnings
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import FunctionType
from typing import TYPE_CHECKING, Any

import dagster as dg
import pyarrow as pa

from decon_assets.partitions import Ranges, resolved_once

if TYPE_CHECKING:
    from decon_core.report.html.charts import Chart

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

    def __init__(self, context: dg.AssetExecutionContext) -> None:
        self._context = context
        self._n_left = MAX_PARTITIONS_REPORTED
        self._ranges: Ranges = {}

    @property
    def is_full(self) -> bool:
        return not self._n_left

    def report(self, key: str, metadata: Mapping[str, Any]) -> None:
        if self._n_left:
            with resolved_once(self._ranges):
                self._context.add_asset_metadata(metadata, partition_key=key)
            self._n_left -= 1


def measured_cost() -> Callable[[], Metadata]:
    """Return a function that returns, as metadata, what this machine has spent since this call.

    Worker processes count when they have ended; jobs on other machines do not.
    """
    before = os.times()

    def cost() -> Metadata:
        used = [now - then for now, then in zip(os.times()[:4], before[:4], strict=True)]
        peaks = [
            resource.getrusage(whose).ru_maxrss
            for whose in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
        ]
        return {
            "run_core_seconds": round(sum(used), 1),
            "run_peak_process_megabytes": round(max(peaks) * 1024 / 1e6),
            "run_node": platform.node(),
        }

    return cost


def code_reference(function: FunctionType) -> Metadata:
    """Return the place of a function's code, which the UI links, as metadata."""
    code = function.__code__
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dg.BetaWarning)  # of both classes
        place = dg.LocalFileCodeReference(
            file_path=code.co_filename, line_number=code.co_firstlineno, label=function.__name__
        )
        value = dg.CodeReferencesMetadataValue(code_references=[place])
    return {"dagster/code_references": value}


def picture(title: str, svg: str) -> dg.MetadataValue:
    """Return a drawing as Markdown, which the UI shows."""
    packed = b64encode(svg.encode()).decode()
    return dg.MetadataValue.md(f"![{title}](data:image/svg+xml;base64,{packed})")


def pictures(charts: "Iterable[Chart]") -> dg.MetadataValue:
    """Return figures as Markdown, one below the other."""
    from decon_core.report.html.still import svg

    texts = (str(picture(chart.title, svg(chart)).value) for chart in charts)
    return dg.MetadataValue.md("\n\n".join(texts))


def record_preview(table: pa.Table) -> dg.MetadataValue:
    """Return the first records as a table, without columns of a single value."""
    first = ["question", "answer", "passage"]
    names = [*first, *(name for name in table.column_names if name not in {*first, *_HIDDEN})]
    shown = [name for name in names if len(table[name].unique()) > 1]
    return preview(table.select(shown).slice(0, PREVIEW_ROWS + 1).to_pylist())


def preview(
    rows: Sequence[Mapping[str, Any]], *, width: int = _CELL_WIDTH, most: int = PREVIEW_ROWS
) -> dg.MetadataValue:
    """Return the first rows as a Markdown table."""
    if not rows:
        return dg.MetadataValue.md("*nothing*")
    names = list(rows[0])
    cells = [[_cell(row[name], width) for name in names] for row in rows[:most]]
    lines = [f"| {' | '.join(line)} |" for line in (names, ["---"] * len(names), *cells)]
    if len(rows) > most:
        lines.append("\n… and more")
    return dg.MetadataValue.md("\n".join(lines))


def _cell(value: object, width: int) -> str:
    text = f"{value:.3f}" if isinstance(value, float) else str(value)
    text = " ".join(text.split()).replace("|", "\\|")
    return text if len(text) <= width else f"{text[: width - 1]}…"


# A column has lineage only if it is copied or counted from a single upstream column.

Column = tuple[str, str]  # asset, column
ITEM = ("benchmark", "split", "instance_index")  # the columns that name an item


def same(asset: str, *names: str) -> dict[str, Column]:
    """Map columns to columns of the same name in another asset."""
    return {name: (asset, name) for name in names}


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
