"""Read reports of the reference implementation, one file per shard, into one report database.

These reports list only leaks. Clean items, numbers of documents, unreadable rows and benchmarks
without leaks are not in them; they are null or absent in the database.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from decon_core.config.sources import ONLY_SOURCE
from decon_core.decisions.not_read import NotRead
from decon_core.errors import InputError, Problem
from decon_core.features.decon_reports.report_lines import (
    Line,
    LineError,
    match_row,
    matched_text_of,
    parse_marks,
    read_line,
)
from decon_core.report.database import write_database
from decon_core.report.open import queries_in, rows_of
from decon_core.report.tables import TABLES, table_of

MADE_BY = "reference implementation, which reports only leaks"

_NAME = re.compile(r"(?P<shard>.+)-[a-z_]+-(?P<threshold>\d+(?:\.\d+)?)\.jsonl")
_BATCH_ROWS = 50_000  # matches held in memory at a time
_MOST_LISTED = 1000
_QUERIES = queries_in(Path(__file__).with_suffix(".sql"))  # query of each table of the report

_MATCH = TABLES["matches"].schema
_TEXTS = ("question", "answer", "passage", "text", "text_marks", "why_no_text")
_LINE = pa.schema([*_MATCH, *(TABLES["matched_texts"].schema.field(name) for name in _TEXTS)])


@dataclass(frozen=True)
class ReportFile:
    """A report file and its shard."""

    path: Path
    shard: str
    threshold: float | None


@dataclass
class ReadResult:
    """Counts of what was read, and the problems."""

    n_files: int = 0
    n_lines: int = 0
    n_bad: int = 0
    n_unclear: int = 0  # texts with brackets that may or may not be marks
    bad: list[Problem] = field(default_factory=list)  # the first bad lines
    others: list[str] = field(default_factory=list)  # files that are not reports
    unreadable: list[dict[str, str]] = field(default_factory=list)  # rows of that table

    def skip(self, file: ReportFile, number: int, error: LineError) -> None:
        """Count a bad line as unreadable: it may have been a leak."""
        self.n_bad += 1
        if len(self.bad) < _MOST_LISTED:
            where = f"{file.path} line {number}"
            self.bad.append(Problem(where, error.found, error.expected))
        place = {"source": ONLY_SOURCE, "shard_name": file.shard, "reason": "line of the report"}
        self.unreadable.append({**place, "detail": f"line {number}: {error.found}"})


def read_reports(folder: Path, database: Path, *, may_skip: bool = False) -> ReadResult:
    """Write the database. Bad lines raise `InputError`, or are skipped and counted."""
    files, others = _files(folder)
    read = ReadResult(len(files), others=others)
    with TemporaryDirectory(prefix="decon-reference-") as work:
        lines, matches = (Path(work) / name for name in ("lines.parquet", "matches.parquet"))
        with pq.ParquetWriter(lines, _LINE, compression="zstd") as writer:
            for rows in _batches(read, files):
                columns = table_of("matches", rows).columns
                texts = pa.Table.from_pylist(rows, schema=pa.schema(list(_LINE)[len(_MATCH) :]))
                writer.write_table(pa.table([*columns, *texts.columns], schema=_LINE))
        if read.n_bad and not may_skip:
            problems = [*read.bad]
            if n_more := read.n_bad - len(read.bad):
                problems.append(Problem("", f"{n_more:,} more lines cannot be read"))
            remedy = "use --skip-bad to leave such lines out and count them"
            found = f"{read.n_bad:,} lines cannot be read"
            problems.append(Problem("reference read", found, remedy=remedy))
            raise InputError(problems)
        # A database on disk gives DuckDB a place for what exceeds its memory.
        with duckdb.connect(f"{work}/lines.duckdb") as connection:
            relation = connection.read_parquet(str(lines), file_row_number=True)
            relation.create_view("lines")
            relation.select(*_MATCH.names).write_parquet(str(matches), compression="zstd")
            write_database(database, _tables(connection, files, read), {"matches": [matches]})
    return read


def _tables(
    connection: duckdb.DuckDBPyConnection, files: Sequence[ReportFile], read: ReadResult
) -> dict[str, pa.Table]:
    """Return all tables but `matches`, which is too large for memory."""
    threshold, n_bad = files[0].threshold, read.n_bad
    run = {
        "threshold": threshold,
        "thresholds": json.dumps({} if threshold is None else {"decon": threshold}),
        "snippets": True,
        "made_by": f"{MADE_BY}; {n_bad:,} lines could not be read" if n_bad else MADE_BY,
        "policy": "{}",
    }
    rows = {name: rows_of(connection, query) for name, query in _QUERIES.items()}
    shards = {row["shard_name"] for row in rows["shards"]}
    shards |= {file.shard for file in files}  # also those with an empty report
    rows |= {
        "runs": [run],
        "shards": [{"source": ONLY_SOURCE, "shard_name": name} for name in sorted(shards)],
        "unreadable": [*read.unreadable],
        "not_read": [
            NotRead("row", row["source"], row["shard_name"], None, row["reason"], 1, 1, 0)._asdict()
            for row in read.unreadable
        ],
    }
    return {name: table_of(name, table_rows) for name, table_rows in rows.items()}


# Choice of files ----------------------------------------------------------------------------------


def _files(folder: Path) -> tuple[list[ReportFile], list[str]]:
    base = folder.parent if folder.is_file() else folder
    files: list[ReportFile] = []
    others: list[str] = []
    for path in sorted(path for path in [folder, *folder.rglob("*")] if path.is_file()):
        name = path.relative_to(base).as_posix()
        if path.suffix != ".jsonl":
            others.append(name)
            continue
        parsed = _NAME.fullmatch(name)
        shard = parsed["shard"] if parsed else name.removesuffix(".jsonl")
        threshold = float(parsed["threshold"]) if parsed else None
        files.append(ReportFile(path, shard, threshold))
    if not files:
        what = "no such folder" if not folder.exists() else "no file that ends in .jsonl"
        raise InputError(Problem(str(folder), what, "reports of the reference implementation"))
    _require_one_each(files)
    return files, others


def _require_one_each(files: Sequence[ReportFile]) -> None:
    """Raise if a shard has two reports, whose leaks would count twice, or thresholds differ."""
    first: dict[str, ReportFile] = {}
    problems = []
    for file in files:
        other = first.setdefault(file.shard, file)
        if other is not file:
            found = f"a second report of shard {file.shard}; the first is {other.path}"
            problems.append(Problem(str(file.path), found))
    thresholds = {file.threshold for file in files}
    if len(thresholds) > 1:
        listed = ", ".join(sorted(map(str, thresholds)))
        found = f"the reports have different thresholds: {listed}"
        problems.append(Problem(str(files[0].path.parent), found))
    InputError.raise_for(problems)


# What is in them ----------------------------------------------------------------------------------


def _batches(read: ReadResult, files: Sequence[ReportFile]) -> Iterator[list[dict[str, Any]]]:
    """Yield the lines that can be read, as rows of matches with their texts."""
    rows: list[dict[str, Any]] = []
    for file in files:
        with file.path.open("rb") as lines:
            for number, raw in enumerate(lines, start=1):
                if not raw.strip():
                    continue
                read.n_lines += 1
                try:
                    rows.append(_row(read_line(raw), file, read))
                except LineError as error:
                    read.skip(file, number, error)
                if len(rows) == _BATCH_ROWS:
                    yield rows
                    rows = []
    yield rows


def _row(line: Line, file: ReportFile, read: ReadResult) -> dict[str, Any]:
    marked = parse_marks(line.get("training_overlap_text") or "")
    read.n_unclear += bool(marked.unclear)
    # The shard by the file name, which has its folder, if the line names the same shard.
    training_file = str(line["training_file"])
    is_same = PurePosixPath(file.shard).name.startswith(PurePosixPath(training_file).name)
    shard = file.shard if is_same else training_file
    match = match_row(line, marked, shard=shard)
    return {**match, **matched_text_of(line, marked)}
