"""The pairs of a report as candidates of the judge (`similarity/candidates.py`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

import duckdb
import pyarrow as pa

from decon_core.report.open import rows_of
from decon_core.report.review.found import NEIGHBOURS, Report
from decon_core.similarity.candidates import Candidate, neighbour_candidates

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


def neighbours_in(report: Report) -> list[Candidate]:
    """Return the neighbours of a report, with their texts; none if it has none."""
    return neighbour_candidates(report.neighbours())


def neighbours_of(tables: Mapping[str, pa.Table]) -> list[Candidate]:
    """Return the neighbours of a report that is being made; none if it has none."""
    if "neighbours" not in tables:
        return []
    with duckdb.connect() as connection:
        for name in ("neighbours", "items"):
            connection.register(name, tables[name])
        return neighbour_candidates(rows_of(connection, NEIGHBOURS))


def with_texts(
    report: Report | None, pairs: Iterable[Sequence[Candidate]]
) -> Iterator[list[Candidate]]:
    """Yield the candidates of each pair, those of the report with their texts."""
    rest = iter(pairs)
    while batch := [*islice(rest, _PAIRS_AT_ONCE)]:
        # Candidates of files and neighbours have their texts already.
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
