"""What ledgers say of a corpus: rows that name the benchmark that they are from.

Such a row is evidence of a leak that needs no detector. What was not read is in `not_read.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from decon_core.benchmarks.named import benchmark_named, is_held_out
from decon_core.corpus.packs import Pack, Shard
from decon_core.decisions.match_reader import MatchReader
from decon_core.scan.scan_results import Ledger


def ledgers_of(reader: MatchReader, packs: Iterable[Pack]) -> Iterator[tuple[str, Ledger]]:
    """Yield source and ledger of each shard that was scanned, with its name and size."""
    for pack in packs:
        for shard in pack.shards:
            if reader.scan_results.is_read(shard.fingerprint):
                yield pack.source.name, with_file(reader.ledger(shard), shard)


def with_file(ledger: Ledger, shard: Shard) -> Ledger:
    """Return a ledger with the name and size of its shard, as `not_read.py` takes it."""
    return {**ledger, "file": shard.name, "file_bytes": shard.n_bytes}


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
