"""Compare two report databases; the large joins run in DuckDB."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import duckdb

from decon_core.errors import InputError, Problem
from decon_core.report.open import opened, queries_in, rows_of

SCHEMA = "decon-assets/compare/2"

_SCRIPT = Path(__file__).with_suffix(".sql")
_QUERIES = queries_in(Path(__file__).with_name("queries.sql"))

Comparison = dict[str, Any]

KINDS = ("only in first", "only in second", "changed")

# Kinds of findings that are a leak in neither report.
_CLASSES = ("no answer", "review")
IN_BOTH = tuple(f"{finding} in both" for finding in _CLASSES)
OTHER_KINDS = tuple(
    kind
    for finding, in_both in zip(_CLASSES, IN_BOTH, strict=True)
    for kind in (
        f"{finding}, only in first",
        f"{finding}, only in second",
        in_both,
        f"{finding}, not comparable",
    )
)

_RUN = ("made_by", "scan_fingerprint", "term_weights", "verdicts")


def compare(first: Path, second: Path, *, most: int) -> Comparison:
    """Compare two reports: all counts, and the first `most` rows of each table."""
    for report in (first, second):
        with opened(report):
            pass  # it is a report of this version
    if first.samefile(second):
        raise InputError(Problem(str(second), "the same file as the first", "another report"))
    with duckdb.connect() as connection:
        for name, report in (("one", first), ("two", second)):
            quoted = str(report).replace("'", "''")
            connection.execute(f"ATTACH '{quoted}' AS {name} (READ_ONLY)")
        connection.execute("SET enable_external_access = false")  # views reach no other file
        connection.execute(_SCRIPT.read_text(encoding="utf-8"))

        def rows(query: str, *values: object) -> list[dict[str, Any]]:
            return rows_of(connection, _QUERIES[query], values)

        comparison: Comparison = {
            "schema": SCHEMA,
            "settings": _settings(connection),
            "benchmarks": rows("rates"),
            "n_shards": {row["standing"]: row["n"] for row in rows("n_shards")},
            "shards": rows("shards", most),
            "n_findings": {row["kind"]: row["n"] for row in rows("n_findings")},
            "findings": {kind: rows("findings", kind, most) for kind in KINDS},
            "not_comparable": rows("not_comparable"),
            "statuses": rows("statuses"),
            "items": rows("items", most),
        }
    return {**comparison, "is_same": _is_same(comparison)}


def _is_same(comparison: Comparison) -> bool:
    """Whether inputs and results are the same; settings alone may differ."""
    for benchmark in comparison["benchmarks"]:
        for name in ("version", "n_items"):  # compared if both reports have them
            values = {benchmark[f"{name}_of_first"], benchmark[f"{name}_of_second"]}
            if len(values) > 1 and None not in values:
                return False
        if benchmark["is_in_first"] != benchmark["is_in_second"]:
            return False
    return (
        set(comparison["n_findings"]) <= {"same", *IN_BOTH}
        and set(comparison["n_shards"]) <= {"in both"}
        and not comparison["statuses"]
    )


def _settings(connection: duckdb.DuckDBPyConnection) -> list[dict[str, Any]]:
    """Return the settings that differ between the two reports."""
    first, second = (_run(connection, name) for name in ("one", "two"))
    if not (first["policy"] and second["policy"]):  # one report, or both, have no policy
        for run in (first, second):
            run["policy"] = "known" if run["policy"] else None
    first, second = _flat(first), _flat(second)
    return [
        {"setting": name, "first": first.get(name), "second": second.get(name)}
        for name in sorted({*first, *second})
        if first.get(name) != second.get(name)
    ]


def _run(connection: duckdb.DuckDBPyConnection, name: str) -> dict[str, Any]:
    query = f"SELECT {', '.join(_RUN)}, policy, thresholds FROM {name}.runs"  # noqa: S608 - names of our own
    runs = rows_of(connection, query)
    run = runs[0] if runs else dict.fromkeys((*_RUN, "policy", "thresholds"))
    return run | {key: json.loads(run[key] or "{}") for key in ("policy", "thresholds")}


def _flat(run: dict[str, Any]) -> dict[str, Any]:
    """Flatten a run's settings to one dotted name per value."""
    policy, thresholds = run.pop("policy"), run.pop("thresholds")
    run |= {f"threshold of {name}": value for name, value in thresholds.items()}
    if not isinstance(policy, dict):
        return run | {"policy": policy}
    for benchmark, table in (policy.pop("benchmark", None) or {}).items():
        run |= {f"policy.benchmark.{benchmark}.{name}": value for name, value in table.items()}
    return run | {f"policy.{name}": value for name, value in policy.items()}
