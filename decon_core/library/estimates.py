"""Estimates for the whole corpus from a scan of documents or whole shards of it: sample.csv."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
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
    n: int | None = None  # shards or documents of the source, or items that can be found, or were
    n_sampled: int | None = None  # shards or documents; None for items, which are all searched for
    n_found: int  # shards or documents with a leak, or leaked items, in the sample
    # Items: `high` assumes that no document (or shard, if shards were drawn) has more of them.
    together: int | None = None
    estimate: float | None = None
    low: int | None = None  # 95 % interval
    high: int | None = None
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
    n_leaky: Counter[tuple[str, str]] = Counter()
    for benchmark, by_shard in _leaky_documents(leaks).items():
        for shard, n in by_shard.items():
            n_leaky.update({(ALL, benchmark): n, (source_of(shard), benchmark): n})
    whole = sum(strata.values(), Stratum())
    of_sources = sorted(strata.items()) if len(strata) > 1 else []
    rates = [
        _rate_of(
            sampling.documents(n_leaky[source, benchmark], **asdict(stratum), share=share),
            of="documents",
            source=source,
            benchmark=benchmark,
            n=stratum.n_documents,
            n_sampled=stratum.n_sampled,
            n_found=n_leaky[source, benchmark],
        )
        for source, stratum in [(ALL, whole), *of_sources]
        for benchmark in [ALL, *sorted(n_known)]
    ]
    return [*rates, *_rates_of_items(leaks, n_known, share, unit=("file", "row"))]


def rates_of_shards(
    matches: Path,
    n_documents: Mapping[str, int],
    others: Collection[str],
    n_known: Mapping[str, int],
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
    return [*rates, *_rates_of_items(leaks, n_known, share, unit=("file",), together_unseen=None)]


def write_rates(out: Path, rates: Sequence[Rate]) -> None:
    with atomic_path(out / SAMPLE_FILE) as draft:
        rows = [asdict(rate) for rate in rates]
        pl.DataFrame(rows, schema=[field.name for field in fields(Rate)], orient="row").write_csv(
            draft
        )


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
    yield _rate_of(
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
    )
    share, low, high = sampling.share_of_documents(shards) or (None, None, None)
    yield Rate(
        of="documents",
        source=source,
        benchmark=benchmark,
        n_sampled=sum(n for _, n in shards),
        n_found=sum(n_leaky for n_leaky, _ in shards),
        rate=share,
        rate_low=low,
        rate_high=high,
    )


def _rates_of_items(
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
        yield _rate_of(
            sampling.items(n_items, share=share, n_items=n, n_most_together=together),
            of="items",
            source=ALL,
            benchmark=benchmark,
            n=n,
            n_sampled=None,
            n_found=sum(n_items.values()),
            together=together,
        )


def _rate_of(estimate: sampling.Estimate, *, n: int, n_sampled: int | None, **known: Any) -> Rate:
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
