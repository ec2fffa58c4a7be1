"""Convert the output folder of `decon-assets scan` to a report database.

The folder has no sources, mixtures, texts or benchmark versions; these are null or absent.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import duckdb
import orjson

from decon_core.benchmarks.named import named_rows
from decon_core.config.policy import Policy
from decon_core.config.sources import ONLY_SOURCE
from decon_core.decisions.visibility import ONLY_REVIEW
from decon_core.errors import MissingError, Problem, StaleError
from decon_core.library import results
from decon_core.report.database import write_database
from decon_core.report.open import NOT_DRAWN, ONLY_SAMPLE, queries_in
from decon_core.report.tables import filled, table_of
from decon_core.storage.files import read_plain_json

_QUERIES = queries_in(Path(__file__).with_name("as_report.sql"))

_FILES = (
    results.MATCHES_FILE,
    results.LEDGER_FILE,
    results.NOT_READ_FILE,
    results.VISIBILITY_FILE,
    results.SUMMARY_FILE,
)

_Rows = defaultdict[str, list[dict[str, Any]]]  # keyed by table


def is_scan(folder: Path) -> bool:
    """Whether a folder is output of `decon-assets scan`, complete or not."""
    return any((folder / name).is_file() for name in _FILES)


def read_folder(folder: Path, database: Path) -> None:
    """Write the database of a folder; raise `MissingError` if the scan is not complete."""
    missing = [name for name in _FILES if not (folder / name).is_file()]
    if missing:
        remedy = "run the scan again: it continues where it stopped"
        problem = Problem(str(folder), f"no {', '.join(missing)}", "a complete scan", remedy)
        raise MissingError(problem)
    summary = read_plain_json(folder / results.SUMMARY_FILE)
    policy = Policy.from_mapping(summary["policy"], where=results.SUMMARY_FILE)
    rows = _ledger(folder / results.LEDGER_FILE, summary)
    rows["not_read"] = [*_lines(folder / results.NOT_READ_FILE)]
    sample = summary.get("sample")
    rows["not_scanned"] = not_scanned = [*_not_scanned(rows, summary)]
    run = {
        "threshold": policy.contamination_score_threshold,
        "thresholds": json.dumps(policy.thresholds),
        "snippets": False,
        "n_shards_not_scanned": len(not_scanned),
        "made_by": f"decon-assets scan, {sample['about']}" if sample else "decon-assets scan",
        "policy": json.dumps(summary["policy"], sort_keys=True, ensure_ascii=False),
    }
    rows["benchmarks"] = [
        {
            "benchmark": name,
            "revision": summary["revisions"].get(name),
            "n_items": count["n_items"],
            "n_records": count["n_records"],
            "thresholds": json.dumps(policy.for_benchmark(name).thresholds),
            "n_shards_not_scanned": len(not_scanned),
        }
        for name, count in sorted(summary["benchmarks"].items())
    ]
    rows["checkable_by_others"] = [
        {"benchmark": benchmark, "detector": detector, "n_items": n}
        for benchmark, counts in summary["n_items_checkable_by_others"].items()
        for detector, n in counts.items()
    ]
    rows |= {"runs": [run], "not_covered": summary["not_covered"]}
    del rows["not_drawn"]  # they are among those that were not scanned
    tables = {name: table_of(name, of_table) for name, of_table in rows.items()}
    proving = {
        "proving": policy.acting,
        "with_own": [*policy.acting_by_benchmark],
        "own": [
            f"{benchmark} {detector}"
            for benchmark, acting in policy.acting_by_benchmark.items()
            for detector in acting
        ],
        "only_review": ONLY_REVIEW,
    }
    with duckdb.connect() as connection:
        try:
            for name, file, parameters in (
                ("matches", results.MATCHES_FILE, {"source": ONLY_SOURCE}),
                ("items", results.VISIBILITY_FILE, proving),
                ("visibility", results.VISIBILITY_FILE, {}),
            ):
                values = {"path": str(folder / file), **parameters}
                found = connection.sql(_QUERIES[name], params=values)
                tables[name] = filled(name, found.to_arrow_table())
        except duckdb.Error as error:
            text = str(error).splitlines()[0]
            problem = Problem(str(folder), text, "files of this version", "scan again")
            raise StaleError(problem) from None
    write_database(database, tables)


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    return map(orjson.loads, path.read_bytes().splitlines())


def _not_scanned(rows: _Rows, summary: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the shards that could not be read or were not drawn, or that were read in part."""
    benchmarks = sorted(summary["benchmarks"])
    sample, not_drawn = summary.get("sample", {}), rows["not_drawn"]
    for row in rows["not_read"]:
        if row["what"] == "shard":
            place = {"source": row["source"], "shard_name": row["place"]}
            yield {**place, "benchmarks": benchmarks, "reason": row["reason"]}
    # Any document that was not sampled may hold any item: none without a finding is clean.
    about, sampled = sample.get("about"), rows["shards"] if sample and not not_drawn else []
    reasons = ((sampled, f"{ONLY_SAMPLE}{about}"), (not_drawn, f"{NOT_DRAWN}{about}"))
    for shards, reason in reasons:
        for row in shards:
            place = {name: row[name] for name in ("source", "shard_name")}
            remedy = "scan without --sample"
            yield {**place, "benchmarks": benchmarks, "reason": reason, "remedy": remedy}


def _ledger(path: Path, summary: Mapping[str, Any]) -> _Rows:
    """Read the ledger: the rows of tables of the report, and `not_drawn`, shards out of the sample.

    A shard that could not be read is not among the scanned ones.
    """
    rows: _Rows = defaultdict(list)
    searched = [*summary["benchmarks"]]
    for shard in _lines(path):
        place = {"source": ONLY_SOURCE, "shard_name": shard["file"]}
        if not shard.get("is_drawn", True):
            rows["not_drawn"].append(place)
            continue
        if not shard["is_read"]:
            continue
        counts = {name: shard[name] for name in results.COUNTS_READ}
        counts |= {f"n_{name}": len(shard[name]) for name in ("unreadable", "invalid_utf8")}
        rows["shards"].append({**place, **counts})
        rows["row_origins"] += [{**place, **row} for row in named_rows(shard, searched)]
        for row in shard["unreadable"]:
            named = {name: row[name] for name in ("row", "offset", "reason", "detail")}
            rows["unreadable"].append({**place, **named})
        for row in shard["invalid_utf8"]:
            named = {name: row[name] for name in ("row", "offset", "detail")}
            rows["invalid_utf8"].append({**place, **named})
    return rows
