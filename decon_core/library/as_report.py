"""Convert the output folder of `decon-assets scan` to a report database.

The folder has no sources, mixtures, texts or benchmark versions; these are null or absent.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb
import orjson

from decon_core.config.policy import Policy
from decon_core.config.sources import ONLY_SOURCE
from decon_core.decisions.ledgers import named_rows
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
    results.VISIBILITY_FILE,
    results.SUMMARY_FILE,
)

_WHOLE_SHARD = "the whole shard"  # reason of a row in `unreadable` that means the whole shard


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
    shards, not_drawn, unreadable, invalid, origins = _ledger(
        folder / results.LEDGER_FILE, [*summary["benchmarks"]]
    )
    sample = summary.get("sample")
    sampled = shards if sample and not not_drawn else ()
    not_scanned = [*_not_scanned(unreadable, sampled, not_drawn, summary)]
    run = {
        "threshold": policy.contamination_score_threshold,
        "thresholds": json.dumps(policy.thresholds),
        "snippets": False,
        "n_shards_not_scanned": len(not_scanned),
        "made_by": f"decon-assets scan, {sample['about']}" if sample else "decon-assets scan",
        "policy": json.dumps(summary["policy"], sort_keys=True, ensure_ascii=False),
    }
    of_benchmarks = [
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
    checkable_by_others = [
        {"benchmark": benchmark, "detector": detector, "n_items": n}
        for benchmark, counts in summary["n_items_checkable_by_others"].items()
        for detector, n in counts.items()
    ]
    tables = {
        "runs": table_of("runs", [run]),
        "benchmarks": table_of("benchmarks", of_benchmarks),
        "not_scanned": table_of("not_scanned", not_scanned),
        "not_covered": table_of("not_covered", summary["not_covered"]),
        "checkable_by_others": table_of("checkable_by_others", checkable_by_others),
        "shards": table_of("shards", shards),
        "unreadable": table_of("unreadable", unreadable),
        "invalid_utf8": table_of("invalid_utf8", invalid),
        "row_origins": table_of("row_origins", origins),
    }
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
                rows = connection.sql(_QUERIES[name], params=values)
                tables[name] = filled(name, rows.to_arrow_table())
        except duckdb.Error as error:
            text = str(error).splitlines()[0]
            problem = Problem(str(folder), text, "files of this version", "scan again")
            raise StaleError(problem) from None
    write_database(database, tables)


def _not_scanned(
    unreadable: Sequence[Mapping[str, Any]],
    sampled: Sequence[Mapping[str, Any]],
    not_drawn: Sequence[Mapping[str, Any]],
    summary: Mapping[str, Any],
) -> Iterator[dict[str, Any]]:
    """Yield the shards that could not be read or were not drawn, or that were read in part."""
    benchmarks = sorted(summary["benchmarks"])
    about = summary.get("sample", {}).get("about")
    for row in unreadable:
        if row["reason"] == _WHOLE_SHARD:
            place = {name: row[name] for name in ("source", "shard_name")}
            # Without the path: reports may be published.
            reason = row["detail"].partition(": found ")[2] or row["detail"]
            yield {**place, "benchmarks": benchmarks, "reason": reason}
    # Any document that was not sampled may hold any item: none without a finding is clean.
    reasons = ((sampled, f"{ONLY_SAMPLE}{about}"), (not_drawn, f"{NOT_DRAWN}{about}"))
    for rows, reason in reasons:
        for row in rows:
            place = {name: row[name] for name in ("source", "shard_name")}
            remedy = "scan without --sample"
            yield {**place, "benchmarks": benchmarks, "reason": reason, "remedy": remedy}


_Rows = list[dict[str, Any]]


def _ledger(path: Path, searched: Sequence[str]) -> tuple[_Rows, _Rows, _Rows, _Rows, _Rows]:
    """Read the ledger: shards that were scanned, and those that are not in the sample; then rows.

    These are unreadable, or not in UTF-8, or name a data set. A shard that could not be read is not
    among the scanned ones, only among the unreadable rows.
    """
    shards: _Rows = []
    not_drawn: _Rows = []
    unreadable: _Rows = []
    invalid: _Rows = []
    origins: _Rows = []
    for line in path.read_bytes().splitlines():
        shard = orjson.loads(line)
        place = {"source": ONLY_SOURCE, "shard_name": shard["file"]}
        if not shard.get("is_drawn", True):
            not_drawn.append(place)
            continue
        if not shard["is_read"]:
            detail = "; ".join(shard["problems"])
            unreadable.append({**place, "reason": _WHOLE_SHARD, "detail": detail})
            continue
        counts = {name: shard[name] for name in results.COUNTS_READ}
        counts |= {f"n_{name}": len(shard[name]) for name in ("unreadable", "invalid_utf8")}
        shards.append({**place, **counts})
        origins += [{**place, **row} for row in named_rows(shard, searched)]
        for row in shard["unreadable"]:
            named = {name: row[name] for name in ("row", "offset", "reason", "detail")}
            unreadable.append({**place, **named})
        for row in shard["invalid_utf8"]:
            invalid.append({**place, **{name: row[name] for name in ("row", "offset", "detail")}})
    return shards, not_drawn, unreadable, invalid, origins
