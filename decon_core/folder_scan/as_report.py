"""Convert the output folder of `decon-assets scan` to a report database.

The folder has no sources, mixtures, texts or benchmark versions; these are null or absent.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb
import orjson
import pyarrow as pa

from decon_core.config.policy import Policy, as_stored
from decon_core.errors import MissingError, Problem, StaleError
from decon_core.folder_scan.results import (
    COUNTS_READ,
    INDEXABILITY_FILE,
    LEDGER_FILE,
    MATCHES_FILE,
    SUMMARY_FILE,
)
from decon_core.report.database import write_database
from decon_core.report.tables import ONLY_SOURCE, filled, table_of
from decon_core.storage.store import read_plain_json

_FILES = (MATCHES_FILE, LEDGER_FILE, INDEXABILITY_FILE, SUMMARY_FILE)

_WHOLE_SHARD = "the whole shard"  # reason of a row in `unreadable` that means the whole shard

# The columns of matches.parquet that a report uses.
_MATCHES = """
    SELECT $source AS source, file AS shard_name, shard, row, doc_id, detector, benchmark, config,
           split, instance_index, record, fingerprint, pair, is_correct, base_score,
           question_overlap, answer_overlap, passage_overlap, looked_for, n_matched, n_grams,
           question_tokens, total_tokens, score, is_by_score, holds_to, verdict, is_contaminated,
           is_question_only
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
    """Whether a folder is output of `decon-assets scan`, complete or not."""
    return any((folder / name).is_file() for name in _FILES)


def read_folder(folder: Path, database: Path) -> None:
    """Write the database of a folder; raise `MissingError` if the scan is not complete."""
    missing = [name for name in _FILES if not (folder / name).is_file()]
    if missing:
        remedy = "run the scan again: it continues where it stopped"
        raise MissingError(
            Problem(str(folder), f"no {', '.join(missing)}", "a complete scan", remedy)
        )
    summary = read_plain_json(folder / SUMMARY_FILE)
    policy = Policy.from_mapping(as_stored(summary["policy"]), where=SUMMARY_FILE)
    shards, unreadable, invalid = _ledger(folder / LEDGER_FILE)
    not_scanned = _not_scanned(unreadable, [*summary["benchmarks"]])
    tables = {
        "runs": table_of("runs", [_run(summary, policy, len(not_scanned))]),
        "benchmarks": table_of("benchmarks", _benchmarks(summary, policy, len(not_scanned))),
        "not_scanned": table_of("not_scanned", not_scanned),
        "shards": table_of("shards", shards),
        "unreadable": table_of("unreadable", unreadable),
        "invalid_utf8": table_of("invalid_utf8", invalid),
    }
    with duckdb.connect() as connection:
        try:
            for name, query, file in (
                ("matches", _MATCHES, MATCHES_FILE),
                ("items", _ITEMS, INDEXABILITY_FILE),
                ("indexability", "FROM read_parquet($path)", INDEXABILITY_FILE),
            ):
                tables[name] = filled(name, _query(connection, query, folder / file))
        except duckdb.Error as error:
            found = str(error).splitlines()[0]
            raise StaleError(
                Problem(str(folder), found, "files of this version", "scan again")
            ) from None
    write_database(database, tables)


def _query(connection: duckdb.DuckDBPyConnection, query: str, path: Path) -> pa.Table:
    values = {"path": str(path), "source": ONLY_SOURCE}
    used = {name: value for name, value in values.items() if f"${name}" in query}
    return connection.sql(query, params=used).to_arrow_table()


def _not_scanned(
    unreadable: Sequence[Mapping[str, Any]], benchmarks: Sequence[str]
) -> list[dict[str, Any]]:
    """Return the shards that could not be read, as rows of `not_scanned`."""
    return [
        {
            "source": row["source"],
            "shard_name": row["shard_name"],
            "benchmarks": sorted(benchmarks),
            # Without the path: reports may be published.
            "reason": row["detail"].partition(": found ")[2] or row["detail"],
        }
        for row in unreadable
        if row["reason"] == _WHOLE_SHARD
    ]


def _run(summary: Mapping[str, Any], policy: Policy, n_not_scanned: int) -> dict[str, Any]:
    return {
        "threshold": policy.contamination_score_threshold,
        "thresholds": json.dumps(policy.thresholds),
        "snippets": False,
        "n_shards_not_scanned": n_not_scanned,
        "made_by": "decon-assets scan",
        "policy": json.dumps(summary["policy"], sort_keys=True, ensure_ascii=False),
    }


def _benchmarks(
    summary: Mapping[str, Any], policy: Policy, n_not_scanned: int
) -> list[dict[str, Any]]:
    return [
        {
            "benchmark": name,
            "n_items": count["n_items"],
            "n_records": count["n_records"],
            "thresholds": json.dumps(policy.for_benchmark(name).thresholds),
            "n_shards_not_scanned": n_not_scanned,
        }
        for name, count in sorted(summary["benchmarks"].items())
    ]


_Rows = list[dict[str, Any]]


def _ledger(path: Path) -> tuple[_Rows, _Rows, _Rows]:
    """Read the ledger: scanned shards, unreadable rows, and rows that are not UTF-8.

    A shard that could not be read is not among the scanned ones, only among the unreadable rows.
    """
    shards: _Rows = []
    unreadable: _Rows = []
    invalid: _Rows = []
    for line in path.read_bytes().splitlines():
        one = orjson.loads(line)
        place = {"source": ONLY_SOURCE, "shard_name": one["file"]}
        if not one["is_read"]:
            detail = "; ".join(one["problems"])
            unreadable.append({**place, "reason": _WHOLE_SHARD, "detail": detail})
            continue
        counts = {name: one[name] for name in COUNTS_READ}
        n_invalid = len(one["invalid_utf8"])
        n_unreadable = len(one["unreadable"])
        shards.append(
            {**place, **counts, "n_unreadable": n_unreadable, "n_invalid_utf8": n_invalid}
        )
        invalid += [
            {**place, **{name: row[name] for name in ("row", "offset", "detail")}}
            for row in one["invalid_utf8"]
        ]
        unreadable += [
            {**place, **{name: row[name] for name in ("row", "offset", "reason", "detail")}}
            for row in one["unreadable"]
        ]
    return shards, unreadable, invalid
