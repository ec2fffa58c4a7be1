"""The benchmark that a name in training data stands for: `openai/gsm8k` is gsm8k of the catalog.

A row that names its benchmark is evidence of a leak that needs no detector.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from os.path import commonprefix
from typing import Any, NamedTuple

from decon_core.benchmarks.catalog import entries_by_key

_HELD_OUT = ("test", "eval", "val", "dev")  # how the names of such splits begin
_TRAIN = "train"
# Datasets for training, which the catalog has because AI2's decon searches for them.
_FOR_TRAINING = ("tatsu-lab/alpaca", "allenai/wildjailbreak")
_LEAST_IN_COMMON = 3  # letters at the beginning of the names of benchmarks from one dataset


class Named(NamedTuple):
    """A benchmark, or a pattern for those of a dataset (`global_mmlu_*`), with their splits."""

    benchmark: str
    splits: Sequence[str] = ()


def benchmark_named(name: str, searched: Iterable[str] = ()) -> Named | None:
    """Return the benchmark of a name: a dataset of the hub, or the name of a benchmark.

    Case and signs do not matter, nor does the owner of a copy. `searched`: benchmarks that may not
    be in the catalog.
    """
    own = {_letters(benchmark): Named(benchmark) for benchmark in searched}
    for key in (name.casefold(), _letters(name), _letters(name.rpartition("/")[2])):
        if known := _catalog().get(key) or own.get(key):
            return known
    return None


def is_held_out(split: str | None, named: Named | None) -> bool:
    """Return whether a split is not for training, or all that the benchmark has."""
    splits = {each.casefold() for each in named.splits} if named else set()
    own = (split or "").casefold()
    is_own = own in splits and (own != _TRAIN or splits == {_TRAIN})
    return is_own or own.startswith(_HELD_OUT)


@lru_cache(maxsize=1)
def _catalog() -> dict[str, Named]:
    """Return the benchmarks of the catalog by name, and by dataset of the hub."""
    entries = {key.replace("{config}", "*"): entry for key, entry in entries_by_key().items()}
    splits = {
        name: () if entry.get("hf_path") in _FOR_TRAINING else entry["splits"]
        for name, entry in entries.items()
    }
    known = {_letters(name): Named(name, splits[name]) for name in entries}
    by_path: dict[str, list[str]] = {}
    for name, entry in entries.items():
        by_path.setdefault(entry.get("hf_path", name).casefold(), []).append(name)
    for path, names in by_path.items():
        start = commonprefix(names)  # noqa: RUF071 - character by character: they are no paths
        name = f"{start}*" if len(names) > 1 and len(start) >= _LEAST_IN_COMMON else names[0]
        known[path] = Named(name, [split for each in names for split in splits[each]])
    return known


def _letters(name: str) -> str:
    return re.sub(r"[\W_]", "", name.casefold())


# Rows that name their benchmark -------------------------------------------------------------------

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
