"""Estimates for the whole corpus from a scan of a sample of it: sample.csv."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import polars as pl

from decon_core.decisions import sampling
from decon_core.storage.files import atomic_path

SAMPLE_FILE = "sample.csv"
ALL = "*"  # all sources, or any benchmark


@dataclass
class Stratum:
    """What was drawn of the documents of a source: the shards in one folder of the corpus."""

    n_documents: int = 0  # documents of the corpus
    n_sampled: int = 0
    n_draws: int = 0  # also those that met no document

    def __add__(self, other: Stratum) -> Stratum:
        return Stratum(
            self.n_documents + other.n_documents,
            self.n_sampled + other.n_sampled,
            self.n_draws + other.n_draws,
        )


@dataclass(frozen=True, kw_only=True)
class Rate:
    """An estimate: shards or documents of a source with a leak, or items that leaked anywhere.

    If whole shards were drawn, nobody knows how many documents the others hold: of documents, only
    the share is estimated.
    """

    of: str  # shards, documents or items
    source: str
    benchmark: str
    n: int | None  # shards or documents of the source, or items that can be found, or were
    n_sampled: int | None  # shards or documents; None for items, of which all are searched for
    n_found: int  # shards or documents with a leak, or leaked items, in the sample
    # Items: `high` assumes that no document (or shard, if shards were drawn) has more of them.
    together: int | None
    estimate: float | None
    low: int | None  # 95 % interval
    high: int | None
    rate: float | None  # None: nothing was drawn, or too few shards
    rate_low: float | None
    rate_high: float | None


def source_of(file: str) -> str:
    """Return the source of a shard: the first folder in its name, or `.` if there is none."""
    folder, slash, _ = file.partition("/")
    return folder if slash else "."


def rates_of_documents(
    matches: Path, strata: Mapping[str, Stratum], n_known: Mapping[str, int], *, share: float
) -> list[Rate]:
    """Return the estimates for documents, by source and benchmark, and for items.

    `n_known`: by benchmark, the number of items that can be found, or were.
    """
    leaks = pl.scan_parquet(matches).filter("is_contaminated")
    return [
        *_of_documents(_leaky_documents(leaks), strata, [ALL, *sorted(n_known)], share),
        *rates_of_items(leaks, n_known, share, unit=("file", "row")),
    ]


def write_rates(out: Path, rates: Sequence[Rate]) -> None:
    with atomic_path(out / SAMPLE_FILE) as draft:
        rows = [asdict(rate) for rate in rates]
        pl.DataFrame(rows, schema=[field.name for field in fields(Rate)], orient="row").write_csv(
            draft
        )


def _leaky_documents(leaks: pl.LazyFrame) -> dict[tuple[str, str], int]:
    """Count the documents with leaks by source and benchmark, and by all of either."""
    folders = pl.col("file").str.split("/").list
    source = pl.when(folders.len() > 1).then(folders.first()).otherwise(pl.lit("."))
    places = leaks.select("file", "row", "benchmark", source=source).unique()
    with_all = [
        places.with_columns(source=of_source, benchmark=of_benchmark)
        for of_source in (pl.col("source"), pl.lit(ALL))
        for of_benchmark in (pl.col("benchmark"), pl.lit(ALL))
    ]
    documents = pl.concat(with_all).group_by("source", "benchmark")
    counts = documents.agg(pl.struct("file", "row").n_unique()).collect(engine="streaming")
    return {(source, benchmark): n for source, benchmark, n in counts.iter_rows()}


def _of_documents(
    n_found: Mapping[tuple[str, str], int],
    strata: Mapping[str, Stratum],
    benchmarks: Sequence[str],
    share: float,
) -> Iterator[Rate]:
    """Yield the rates of all documents, and of each source if there are several."""
    whole = sum(strata.values(), Stratum())
    of_sources = sorted(strata.items()) if len(strata) > 1 else []
    for source, stratum in [(ALL, whole), *of_sources]:
        for benchmark in benchmarks:
            n = n_found.get((source, benchmark), 0)
            yield rate_of(
                sampling.documents(n, **asdict(stratum), share=share),
                of="documents",
                source=source,
                benchmark=benchmark,
                n=stratum.n_documents,
                n_sampled=stratum.n_sampled,
                n_found=n,
                together=None,
            )


def rates_of_items(
    leaks: pl.LazyFrame,
    n_known: Mapping[str, int],
    share: float,
    *,
    unit: Sequence[str],
    together_unseen: int | None = 1,
) -> Iterator[Rate]:
    """Yield the rate of each benchmark's items, found in drawn units: documents or shards.

    `together_unseen`: how many items a unit may hold if none was found; None: all of them.
    """
    item, place = ["benchmark", "split", "instance_index"], ["benchmark", *unit]
    places = leaks.select({*item, *place}).unique()
    by_item = places.group_by(item).agg(n=pl.len()).group_by("benchmark", "n").agg(items=pl.len())
    by_unit = places.group_by(place).agg(n=pl.len()).group_by("benchmark").agg(pl.max("n"))
    n_by_units: dict[str, dict[int, int]] = defaultdict(dict)
    for benchmark, n_units, n_items in by_item.collect(engine="streaming").iter_rows():
        n_by_units[benchmark][n_units] = n_items
    most = dict(by_unit.collect(engine="streaming").iter_rows())
    for benchmark, n in sorted(n_known.items()):
        n_items, together = n_by_units[benchmark], most.get(benchmark, together_unseen or n)
        yield rate_of(
            sampling.items(n_items, share=share, n_items=n, n_most_together=together),
            of="items",
            source=ALL,
            benchmark=benchmark,
            n=n,
            n_sampled=None,
            n_found=sum(n_items.values()),
            together=together,
        )


def rate_of(estimate: sampling.Estimate, *, n: int, n_sampled: int | None, **known: Any) -> Rate:
    """Return an estimated number of `n` as a rate."""
    return Rate(
        **known,
        n=n,
        n_sampled=n_sampled,
        estimate=estimate.value,
        low=estimate.low,
        high=estimate.high,
        rate=None if n_sampled == 0 or not n else estimate.value / n,
        rate_low=estimate.low / n if n else None,
        rate_high=estimate.high / n if n else None,
    )
