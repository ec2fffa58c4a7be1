"""Metadata of assets and materializations: columns, their lineage, previews, partitions."""

import json
import os
import warnings
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import distribution
from pathlib import Path
from types import FunctionType
from typing import TYPE_CHECKING, Any

import dagster as dg

from decon_assets.partitions import Ranges, resolved_once

if TYPE_CHECKING:
    import pyarrow as pa

    from decon_core.execution.jobs import Cost
    from decon_core.report.html.charts import Chart
    from decon_core.schemas import Column as DeclaredColumn

Metadata = Mapping[str, Any]

OWNERS = ["team:decontamination"]  # shown by the UI for every asset

# Metadata per partition takes Dagster quadratic time: 20 to 35 s for 1,000 partitions.
MAX_PARTITIONS_REPORTED = 200

RATE, SECONDS = "run_megabytes_per_second", "run_seconds"  # metadata keys of a scan

PREVIEW_ROWS = 10
_ROOT = Path(__file__).parents[2]
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


def cost_metadata(prefix: str, cost: "Cost") -> Metadata:
    """Return what shards cost as metadata, whose keys begin with the prefix."""
    return {
        f"{prefix}_core_seconds": round(cost.core_seconds, 1),
        f"{prefix}_gigabytes_read": round(cost.n_bytes / 1e9, 6),
        f"{prefix}_peak_process_megabytes": round(cost.peak_bytes / 1e6),
        f"{prefix}_nodes": ", ".join(sorted(cost.nodes)),
    }


def code_reference(function: FunctionType) -> Metadata:
    """Return the place of a function's code, which the UI links, as metadata."""
    code, name = function.__code__, function.__name__
    path, line = Path(code.co_filename), code.co_firstlineno
    url = repository_url()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dg.BetaWarning)  # the classes are in beta
        place: dg.LocalFileCodeReference | dg.UrlCodeReference
        if url and path.is_relative_to(_ROOT):
            file = path.relative_to(_ROOT).as_posix()
            place = dg.UrlCodeReference(url=f"{url}/{file}#L{line}", label=name)
        else:
            place = dg.LocalFileCodeReference(file_path=str(path), line_number=line, label=name)
        value = dg.CodeReferencesMetadataValue(code_references=[place])
    return {"dagster/code_references": value}


def repository_url() -> str:
    """Return the URL of a revision of this code: $DECON_CODE_URL, or the one that pip installed.

    Empty if the code was installed otherwise.
    """
    if url := os.environ.get("DECON_CODE_URL"):
        return url.rstrip("/")
    origin = json.loads(distribution("decon-assets").read_text("direct_url.json") or "{}")
    commit = origin.get("vcs_info", {}).get("commit_id")
    if not commit or not origin["url"].startswith("https://"):
        return ""
    return f"{origin['url'].removesuffix('.git')}/tree/{commit}"


def picture(title: str, svg: str) -> dg.MetadataValue:
    """Return a drawing as Markdown, which the UI shows."""
    packed = b64encode(svg.encode()).decode()
    return dg.MetadataValue.md(f"![{title}](data:image/svg+xml;base64,{packed})")


def pictures(charts: "Iterable[Chart]") -> dg.MetadataValue:
    """Return figures as Markdown, one below the other."""
    from decon_core.report.html.still import svg

    texts = (str(picture(chart.title, svg(chart)).value) for chart in charts)
    return dg.MetadataValue.md("\n\n".join(texts))


def record_preview(table: "pa.Table") -> dg.MetadataValue:
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


def columns(
    declared: "Iterable[DeclaredColumn]", origins: Mapping[str, Column]
) -> Mapping[str, Any]:
    """Return the columns of an asset and the upstream columns they come from, as metadata.

    Dagster's open-source UI does not show column lineage, so the column descriptions name it too;
    catalogs can read it from Dagster's API.
    """
    described = []
    for column in declared:
        about = column.about
        if column.name in origins:
            about = "{} (`{}`: {})".format(about, *origins[column.name]).strip()
        constraints = dg.TableColumnConstraints(nullable=column.is_nullable)
        described.append(dg.TableColumn(column.name, column.kind, about or None, constraints))
    deps = {
        name: [dg.TableColumnDep(asset_key=dg.AssetKey(other), column_name=column)]
        for name, (other, column) in origins.items()
    }
    lineage = {"dagster/column_lineage": dg.TableColumnLineage(deps_by_column=deps)} if deps else {}
    return {"dagster/column_schema": dg.TableSchema(columns=described), **lineage}
