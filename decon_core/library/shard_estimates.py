"""Estimates for the whole corpus from a scan of some whole shards of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

import polars as pl

from decon_core.decisions import sampling
from decon_core.library.estimates import ALL, Rate, rate_of, rates_of_items, source_of

_ByShard = Mapping[str, int]  # by the name of the shard


def rates_of_shards(
    matches: Path, n_documents: _ByShard, others: Collection[str], n_known: Mapping[str, int]
) -> list[Rate]:
    """Return the estimates for shards and documents, by source and benchmark, and for items.

    `n_documents`: of the shards that were read; `others`: the names of all other shards;
    `n_known`: by benchmark, the number of items that can be found, or were.
    """
    leaks = pl.scan_parquet(matches).filter("is_contaminated")
    n_leaky = _leaky_documents(leaks)
    names = [*n_documents, *others]
    by_source = defaultdict[str, list[str]](list)
    for name in names:
        by_source[source_of(name)].append(name)
    of_sources = sorted(by_source.items()) if len(by_source) > 1 else []
    rates: list[Rate] = []
    for source, members in [(ALL, names), *of_sources]:
        drawn = [name for name in members if name in n_documents]
        for benchmark in (ALL, *sorted(n_known)):
            shards = [(n_leaky[benchmark].get(name, 0), n_documents[name]) for name in drawn]
            rates += _of_source(source, benchmark, len(members), shards)
    rates.sort(key=lambda rate: rate.of == "documents")  # after the shards
    share = len(n_documents) / len(names)
    return [*rates, *rates_of_items(leaks, n_known, share, unit=("file",), together_unseen=None)]


def _leaky_documents(leaks: pl.LazyFrame) -> dict[str, dict[str, int]]:
    """Count the documents with leaks by benchmark, or any benchmark, and by shard."""
    places = leaks.select("file", "row", "benchmark")
    with_all = pl.concat([places, places.with_columns(benchmark=pl.lit(ALL))]).unique()
    counts = with_all.group_by("benchmark", "file").len().collect(engine="streaming")
    n_leaky = defaultdict[str, dict[str, int]](dict)
    for benchmark, file, n in counts.iter_rows():
        n_leaky[benchmark][file] = n
    return n_leaky


def _of_source(
    source: str, benchmark: str, n_shards: int, shards: Sequence[tuple[int, int]]
) -> Iterator[Rate]:
    """Yield the rates of shards and documents with a leak, from the drawn shards of a source."""
    n_drawn, n_found = len(shards), sum(n_leaky > 0 for n_leaky, _ in shards)
    yield rate_of(
        sampling.documents(
            n_found,
            n_sampled=n_drawn,
            n_draws=n_drawn,
            n_documents=n_shards,
            share=n_drawn / n_shards or 1,
        ),
        of="shards",
        source=source,
        benchmark=benchmark,
        n=n_shards,
        n_sampled=n_drawn,
        n_found=n_found,
        together=None,
    )
    share, low, high = sampling.share_of_documents(shards) or (None, None, None)
    yield Rate(
        of="documents",
        source=source,
        benchmark=benchmark,
        n=None,
        n_sampled=sum(n for _, n in shards),
        n_found=sum(n_leaky for n_leaky, _ in shards),
        together=None,
        estimate=None,
        low=None,
        high=None,
        rate=share,
        rate_low=low,
        rate_high=high,
    )
