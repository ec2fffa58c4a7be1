"""What `decon-assets scan` left in a folder, as a report's database.

A folder knows no sources and no mixtures, keeps no texts, and has no versions of its benchmarks.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import duckdb
import orjson
import pyarrow as pa

from decon_core.errors import MissingError, Problem, StaleError
from decon_core.folder_scan import INDEXABILITY_FILE, LEDGER_FILE, MATCHES_FILE, SUMMARY_FILE
from decon_core.policy import Policy
from decon_core.report.database import write_database
from decon_core.report.rows import filled, table_of
from decon_core.store import read_json

SOURCE = "corpus"  # as the scan of a folder calls it

_FILES = (MATCHES_FILE, LEDGER_FILE, INDEXABILITY_FILE, SUMMARY_FILE)
_COUNTS = ("n_rows", "n_documents", "n_characters", "n_too_short")

# What a report's other tables are made from; the rest says how a score came about.
_MATCHES = """
    SELECT $source AS source, file AS shard_name, shard, row, doc_id, detector, benchmark, config,
           split, instance_index, record, fingerprint, pair, is_correct, base_score,
           question_overlap, answer_overlap, passage_overlap, looked_for, n_matched, n_grams,
           question_tokens, total_tokens, score, is_by_score, holds_to, verdict, is_contaminated
    FROM read_parquet($path)
"""

_ITEMS = """
    SELECT benchmark, any_value(config) AS config, split, instance_index,
           max(n_records) AS n_records, bool_or(is_visible) AS is_indexed,
           CASE WHEN NOT bool_or(is_visible) THEN first(reason) END AS why_not_indexed
    FROM read_parquet($path)
    GROUP BY benchmark, split, instance_index
    ORDER BY benchmark, split, instance_index
"""


def is_scan(folder: Path) -> bool:
    """Whether a folder is what `decon-assets scan` writes, whole or not."""
    return any((folder / name).is_file() for name in _FILES)


def read_folder(folder: Path, database: Path) -> None:
    """Write the database of a folder."""
    missing = [name for name in _FILES if not (folder / name).is_file()]
    if missing:
        remedy = "scan again: what is done is not done twice"
        raise MissingError(
            Problem(str(folder), f"no {', '.join(missing)}", "a scan that is through", remedy)
        )
    summary = read_json(folder / SUMMARY_FILE)
    shards, unreadable = _ledger(folder / LEDGER_FILE)
    tables = {
        "runs": table_of("runs", [_run(summary)]),
        "benchmarks": table_of("benchmarks", _benchmarks(summary)),
        "shards": table_of("shards", shards),
        "unreadable": table_of("unreadable", unreadable),
    }
    with duckdb.connect() as connection:
        try:
            for name, query, file in (
                ("matches", _MATCHES, MATCHES_FILE),
                ("items", _ITEMS, INDEXABILITY_FILE),
                ("indexability", "FROM read_parquet($path)", INDEXABILITY_FILE),
            ):
                tables[name] = filled(name, _asked(connection, query, folder / file))
        except duckdb.Error as error:
            told = str(error).splitlines()[0]
            raise StaleError(
                Problem(str(folder), told, "files of this version", "scan again")
            ) from None
    write_database(database, tables)


def _asked(connection: duckdb.DuckDBPyConnection, query: str, path: Path) -> pa.Table:
    values = {"path": str(path), "source": SOURCE}
    used = {name: value for name, value in values.items() if f"${name}" in query}
    return connection.sql(query, params=used).to_arrow_table()


def _run(summary: Mapping[str, Any]) -> dict[str, Any]:
    policy = Policy.from_mapping(summary["policy"], where=SUMMARY_FILE)
    return {
        "threshold": policy.contamination_score_threshold,
        "thresholds": json.dumps(policy.thresholds),
        "snippets": False,
        "made_by": "decon-assets scan",
        "policy": json.dumps(summary["policy"], sort_keys=True, ensure_ascii=False),
    }


def _benchmarks(summary: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [
        {"benchmark": name, "n_items": count["n_items"], "n_records": count["n_records"]}
        for name, count in sorted(summary["benchmarks"].items())
    ]


def _ledger(path: Path) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The shards that were read. One that could not be is not there: nobody scanned it."""
    shards, unreadable = [], []
    for line in path.read_bytes().splitlines():
        one = orjson.loads(line)
        place = {"source": SOURCE, "shard_name": one["file"]}
        if not one["is_read"]:
            told = "; ".join(one["problems"])
            unreadable.append({**place, "reason": "the whole shard", "detail": told})
            continue
        counts = {name: one[name] for name in _COUNTS}
        shards.append({**place, **counts, "n_unreadable": len(one["unreadable"])})
        unreadable += [
            {**place, **{name: row[name] for name in ("row", "offset", "reason", "detail")}}
            for row in one["unreadable"]
        ]
    return shards, unreadable
