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

_QUERIES = Path(__file__).with_name("sample.sql")


@dataclass
class Stratum:
    """What was drawn of the documents of a source: the shards in one folder of the corpus."""

    n_documents: int = 0  # of the corpus
    n_sampled: int = 0
    n_draws: int = 0  # also those that met no document

    def add(self, other: Stratum) -> None:
        self.n_documents += other.n_documents
        self.n_sampled += other.n_sampled
        self.n_draws += other.n_draws


@dataclass(frozen=True, kw_only=True)
class Rate:
    """An estimate: documents of a source with a leak, or items that leaked anywhere."""

    of: str  # documents or items
    source: str
    benchmark: str
    n: int  # documents of the source, or items of the benchmark that can be found, or were
    n_sampled: int | None  # documents; None for items, of which all are searched for
    n_found: int  # with a leak, or leaked, in the sample
    together: int | None  # items: `high` assumes that no document has more of them
    estimate: float
    low: int  # 95 % interval
    high: int
    rate: float | None  # None: nothing was drawn
    rate_low: float | None
    rate_high: float | None


def source_of(file: str) -> str:
    """Return the source of a shard: the first folder in its name, or `.` if there is none."""
    folder, slash, _ = file.partition("/")
    return folder if slash else "."


def write_rates(
    out: Path,
    matches: Path,
    strata: Mapping[str, Stratum],
    n_known: Mapping[str, int],
    *,
    share: float,
) -> list[Rate]:
    """Write the estimates for documents, by source and benchmark, and for items.

    `n_known`: by benchmark, the number of items that can be found, or were.
    """
    documents, items = _found(matches)
    n_found = {(row["source"], row["benchmark"]): int(row["n_found"]) for row in documents}
    by_documents: dict[str, dict[int, int]] = defaultdict(dict)
    together: dict[str, int] = {}
    for row in items:
        by_documents[row["benchmark"]][row["n_documents"]] = row["n_items"]
        together[row["benchmark"]] = row["n_most_together"]
    rates = [
        *_of_documents(n_found, strata, [ALL, *sorted(n_known)], share),
        *(
            _of_items(name, n, by_documents.get(name, {}), together.get(name, 1), share)
            for name, n in sorted(n_known.items())
        ),
    ]
    with atomic_path(out / SAMPLE_FILE) as draft:
        rows = [asdict(rate) for rate in rates]
        pl.DataFrame(rows, schema=[one.name for one in fields(Rate)], orient="row").write_csv(draft)
    return rates


def _found(matches: Path) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Count the documents with leaks by source and benchmark, and items by their documents."""
    import duckdb  # only a sample needs it

    from decon_core.report.open import queries_in, rows_of

    queries, paths = queries_in(_QUERIES), {"path": str(matches)}
    with duckdb.connect() as connection:
        documents, items = (
            rows_of(connection, queries[name], paths) for name in ("documents", "items")
        )
    return documents, items


def _of_documents(
    n_found: Mapping[tuple[str, str], int],
    strata: Mapping[str, Stratum],
    benchmarks: Sequence[str],
    share: float,
) -> Iterator[Rate]:
    """Yield the rates of all documents, and of each source if there are several."""
    whole = Stratum()
    for stratum in strata.values():
        whole.add(stratum)
    of_sources = sorted(strata.items()) if len(strata) > 1 else []
    for source, stratum in [(ALL, whole), *of_sources]:
        for benchmark in benchmarks:
            n = n_found.get((source, benchmark), 0)
            estimate = sampling.documents(n, **asdict(stratum), share=share)
            yield _rate(
                estimate,
                of="documents",
                source=source,
                benchmark=benchmark,
                n=stratum.n_documents,
                n_sampled=stratum.n_sampled,
                n_found=n,
                together=None,
            )


def _of_items(
    benchmark: str, n_items: int, n_by_documents: Mapping[int, int], together: int, share: float
) -> Rate:
    estimate = sampling.items(
        n_by_documents, share=share, n_items=n_items, n_most_together=together
    )
    return _rate(
        estimate,
        of="items",
        source=ALL,
        benchmark=benchmark,
        n=n_items,
        n_sampled=None,
        n_found=sum(n_by_documents.values()),
        together=together,
    )


def _rate(
    estimate: sampling.Estimate,
    *,
    of: str,
    source: str,
    benchmark: str,
    n: int,
    n_sampled: int | None,
    n_found: int,
    together: int | None,
) -> Rate:
    is_unknown = n_sampled == 0 or not n
    return Rate(
        of=of,
        source=source,
        benchmark=benchmark,
        n=n,
        n_sampled=n_sampled,
        n_found=n_found,
        together=together,
        estimate=estimate.value,
        low=estimate.low,
        high=estimate.high,
        rate=None if is_unknown else estimate.value / n,
        rate_low=estimate.low / n if n else None,
        rate_high=estimate.high / n if n else None,
    )
