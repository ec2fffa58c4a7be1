"""The pairs of a report as candidates of the judge (`decisions/candidates.py`)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pkgutil import resolve_name
from typing import Any

import duckdb
import pyarrow as pa

from decon_core.decisions.candidates import Candidate
from decon_core.feature import feature_candidates
from decon_core.report.review.found import Report

_PAIRS_AT_ONCE = 500  # whose texts are in memory


def candidates_in(
    report: Report, *, benchmarks: Sequence[str] = (), detectors: Sequence[str] = ()
) -> list[Candidate]:
    """Return the pairs that these detectors found (default: all), without their texts."""
    return [
        Candidate(
            pair=row["pair"],
            fingerprint=row["fingerprint"],
            benchmark=row["benchmark"],
            item=f"{row['split']} {row['instance_index']}",
            detector=row["detector"],
            score=row["score"],
        )
        for row in report.candidates(benchmarks, detectors)
    ]


def added_candidates(
    connection: duckdb.DuckDBPyConnection, names: Collection[str] = ()
) -> list[Candidate]:
    """Return the pairs that features add, with their texts; by default of all names."""
    hooks = feature_candidates().items()
    chosen = (resolve_name(hook) for name, hook in hooks if not names or name in names)
    return [candidate for hook in chosen for candidate in hook(connection)]


def candidates_of(tables: Mapping[str, pa.Table]) -> list[Candidate]:
    """Return the pairs that features add to a report that is being made of these tables."""
    with duckdb.connect() as connection:
        for name, table in tables.items():
            connection.register(name, table)
        return added_candidates(connection)


def with_texts(
    report: Report | None, pairs: Iterable[Sequence[Candidate]]
) -> Iterator[list[Candidate]]:
    """Yield the candidates of each pair, those of the report with their texts."""
    rest = iter(pairs)
    while batch := [*islice(rest, _PAIRS_AT_ONCE)]:
        # Candidates of files and features have their texts already.
        keys = [one.pair for members in batch for one in members if not one.item_text]
        texts = report.texts(keys) if report and keys else {}
        for members in batch:
            yield [_filled(one, texts[one.pair]) if one.pair in texts else one for one in members]


def _filled(candidate: Candidate, row: Mapping[str, Any]) -> Candidate:
    parts = [row["passage"], row["question"], row["answer"] and f"Answer: {row['answer']}"]
    return replace(
        candidate,
        item_text="\n\n".join(filter(None, parts)),
        text=row["text"],
        why_no_text=row["why_no_text"] or "the report keeps no text of it",
    )
