"""Read reports of the reference implementation, one file per shard, into one report database.

These reports list only leaks. Clean items, numbers of documents, unreadable rows and benchmarks
without leaks are not in them; they are null or absent in the database.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow.parquet as pq

from decon_core.config.sources import ONLY_SOURCE
from decon_core.errors import InputError, Problem
from decon_core.features.decon_reports.report_lines import (
    Line,
    LineError,
    match_row,
    pair_texts,
    parse_marks,
    read_line,
)
from decon_core.features.decon_reports.write import MANIFEST
from decon_core.report.database import write_database
from decon_core.report.tables import TABLES, table_of
from decon_core.storage.files import read_json

MADE_BY = "reference implementation: only what leaked is known"

_NAME = re.compile(r"(?P<shard>.+)-[a-z_]+-(?P<threshold>\d+(?:\.\d+)?)\.jsonl")
_BATCH_ROWS = 50_000  # matches held in memory at a time
_MOST_LISTED = 1000

# What a pair has of its first match.
_OF_MATCH = (
    "source", "shard_name", "row", "pair", "fingerprint", "benchmark", "split",
    "instance_index", "question_overlap", "answer_overlap", "passage_overlap",
)  # fmt: skip


@dataclass(frozen=True)
class ReportFile:
    """A report file and its shard."""

    path: Path
    source: str
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


def read_reports(folder: Path, database: Path, *, may_skip: bool = False) -> ReadResult:
    """Write the database. Bad lines raise `InputError`, or are skipped and counted."""
    files, others = _files(folder)
    gathered = _Gathered(ReadResult(len(files), others=others))
    with TemporaryDirectory(prefix="decon-reference-") as work:
        matches = Path(work) / "matches.parquet"
        schema = TABLES["matches"].schema
        with pq.ParquetWriter(matches, schema, compression="zstd") as writer:
            for rows in _batches(gathered, files):
                writer.write_table(table_of("matches", rows).cast(schema))
        read = gathered.read
        if read.n_bad and not may_skip:
            problems = [*read.bad]
            if n_more := read.n_bad - len(read.bad):
                problems.append(Problem(f"{n_more:,} more lines", "bad lines", "lines of a report"))
            remedy = "--skip-bad leaves such lines out and counts them"
            found = f"{read.n_bad:,} bad lines"
            problems.append(Problem("reference read", found, "none", remedy))
            raise InputError(problems)
        write_database(database, gathered.tables(files), {"matches": [matches]})
    return read


# Which files --------------------------------------------------------------------------------------


def _files(folder: Path) -> tuple[list[ReportFile], list[str]]:
    base = folder.parent if folder.is_file() else folder
    manifest = base / MANIFEST
    shards = read_json(manifest)["shards"] if manifest.is_file() else []
    known = {shard["file"]: shard for shard in shards}
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
        entry = known.get(name, {"source": ONLY_SOURCE, "shard": shard})
        files.append(ReportFile(path, entry["source"], entry["shard"], threshold))
    if not files:
        what = "no such folder" if not folder.exists() else "no file that ends in .jsonl"
        raise InputError(Problem(str(folder), what, "reports of the reference implementation"))
    _require_one_each(files)
    return files, [name for name in others if name != MANIFEST]


def _require_one_each(files: Sequence[ReportFile]) -> None:
    """Raise if a shard has two reports, whose leaks would count twice, or thresholds differ."""
    first: dict[tuple[str, str], ReportFile] = {}
    problems = []
    for file in files:
        other = first.setdefault((file.source, file.shard), file)
        if other is not file:
            found = f"a second report of {file.shard}, beside {other.path}"
            problems.append(Problem(str(file.path), found, "one report of each shard"))
    thresholds = {file.threshold for file in files}
    if len(thresholds) > 1:
        found = "thresholds " + ", ".join(sorted(map(str, thresholds)))
        problems.append(Problem(str(files[0].path.parent), found, "reports of one threshold"))
    if problems:
        raise InputError(problems)


# What is in them ----------------------------------------------------------------------------------


class _Gathered:
    """The rows of all tables but `matches`, which is too large for memory."""

    def __init__(self, read: ReadResult) -> None:
        self.read = read
        self._items: dict[tuple[str, str, int], dict[str, Any]] = {}
        self._pairs: dict[str, dict[str, Any]] = {}
        self._shards: dict[tuple[str, str], None] = {}
        self._bad: list[dict[str, Any]] = []

    def add(self, line: Line, file: ReportFile) -> dict[str, Any]:
        """Add a line; return its match."""
        marked = parse_marks(line.get("training_overlap_text") or "")
        # The shard by the file name, which has its folder, if the line names the same shard.
        training_file = str(line["training_file"])
        is_same = PurePosixPath(file.shard).name.startswith(PurePosixPath(training_file).name)
        shard = file.shard if is_same else training_file
        match = match_row(line, marked, source=file.source, shard=shard)
        self._shards.setdefault((match["source"], match["shard_name"]))
        self.read.n_unclear += bool(marked.unclear)
        name = match["benchmark"], match["split"], match["instance_index"]
        item = self._items.setdefault(name, {"fingerprints": {}, "has_answer": False})
        item.setdefault("question", line.get("eval_question_text") or line.get("eval_overlap_text"))
        item["has_answer"] |= bool(line.get("eval_answer_text"))
        if match["fingerprint"]:
            item["fingerprints"].setdefault(match["fingerprint"])
        pair = self._pairs.get(match["pair"])
        if pair is None:
            same = {name: match[name] for name in _OF_MATCH}
            calls = {"detectors": "decon", "is_by_score": True, "is_contaminated": True}
            counts = {"n_matches": 0, "score": -1.0, "documents": set()}
            pair = {**pair_texts(line, marked), **same, **calls, **counts}
            self._pairs[match["pair"]] = pair
        pair["n_matches"] += 1
        pair["score"] = max(pair["score"], match["score"])
        pair["documents"].add((match["source"], match["shard_name"], match["row"]))
        return match

    def skip(self, file: ReportFile, number: int, error: LineError) -> None:
        """Count a bad line as unreadable: it may have been a leak."""
        self.read.n_bad += 1
        if len(self.read.bad) < _MOST_LISTED:
            where = f"{file.path} line {number}"
            self.read.bad.append(Problem(where, error.found, error.expected))
        self._bad.append(
            {
                "source": file.source,
                "shard_name": file.shard,
                "reason": "line of the report",
                "detail": f"line {number}: {error.found}",
            }
        )

    def tables(self, files: Sequence[ReportFile]) -> dict[str, Any]:
        """Return all tables but `matches`; shards with an empty report are included."""
        for file in files:
            self._shards.setdefault((file.source, file.shard))
        for pair in self._pairs.values():
            pair["n_documents"] = len(pair.pop("documents"))
        threshold, n_bad = files[0].threshold, self.read.n_bad
        run = {
            "threshold": threshold,
            "thresholds": json.dumps({} if threshold is None else {"decon": threshold}),
            "snippets": True,
            "made_by": f"{MADE_BY}; {n_bad:,} lines could not be read" if n_bad else MADE_BY,
            "policy": "{}",
        }
        items = [
            {
                "benchmark": benchmark,
                "split": split,
                "instance_index": index,
                "question": item["question"],
                "has_answer": item["has_answer"],
                "fingerprints": [*item["fingerprints"]],
                "is_indexed": True,  # it has a match
            }
            for (benchmark, split, index), item in sorted(self._items.items())
        ]
        rows: Mapping[str, Sequence[Mapping[str, Any]]] = {
            "runs": [run],
            "benchmarks": [{"benchmark": name} for name in sorted({b for b, _, _ in self._items})],
            "items": items,
            "shards": [{"source": source, "shard_name": n} for source, n in sorted(self._shards)],
            "unreadable": self._bad,
            "pairs": [self._pairs[key] for key in sorted(self._pairs)],
        }
        return {name: table_of(name, table_rows) for name, table_rows in rows.items()}


def _batches(gathered: _Gathered, files: Sequence[ReportFile]) -> Iterator[list[dict[str, Any]]]:
    rows: list[dict[str, Any]] = []
    for file in files:
        with file.path.open("rb") as lines:
            for number, raw in enumerate(lines, start=1):
                if not raw.strip():
                    continue
                gathered.read.n_lines += 1
                try:
                    rows.append(gathered.add(read_line(raw), file))
                except LineError as error:
                    gathered.skip(file, number, error)
                if len(rows) == _BATCH_ROWS:
                    yield rows
                    rows = []
    yield rows
