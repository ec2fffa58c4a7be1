"""Rows that name the benchmark that they are from: evidence of a leak that needs no detector."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from decon_core.benchmarks.named import benchmark_named, is_held_out

Row = dict[str, Any]


def named_rows(ledger: Mapping[str, Any], searched: Iterable[str]) -> Iterator[Row]:
    """Yield the names in a ledger or its line, each with the benchmark that it stands for.

    `searched`: the benchmarks of the scan, which may not be in the catalog.
    """
    searched = tuple(searched)
    for row in ledger["origins"]:
        named = benchmark_named(row["value"], searched) if row["value"] else None
        yield {
            **row,
            "benchmark": named.benchmark if named else None,
            "is_held_out": is_held_out(row["split"], named),
        }


def rows_of_benchmarks(shards: Iterable[tuple[str, Iterable[Row]]]) -> list[Row]:
    """Return the rows that name a held-out split of a benchmark, summed over shards; most first."""
    sums: dict[tuple[str, ...], Row] = {}
    for shard, rows in shards:
        for row in rows:
            if row["benchmark"] and row["is_held_out"]:
                key = row["field"], row["value"], row["split"]
                known = sums.setdefault(key, {**row, "n_rows": 0, "n_shards": 0, "shard": shard})
                known["n_rows"] += row["n_rows"]
                known["n_shards"] += 1
    return sorted(sums.values(), key=lambda row: (-row["n_rows"], row["field"], row["value"]))
