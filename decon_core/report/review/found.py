"""Read a report for review: its pairs, and its calls (a document and an item) that are leaks."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

from decon_core.config.policy import Policy, as_stored
from decon_core.errors import MissingError, Problem, StaleError
from decon_core.report.open import Coverage, coverage_in, opened

# The columns of `pairs` without the texts.
_PAIR_COLUMNS = (
    *("pair", "fingerprint", "benchmark", "config", "split", "instance_index", "rules", "score"),
    *(
        "is_by_score",
        "is_contaminated",
        "is_question_only",
        "verdict",
        "n_documents",
        "source",
        "shard_name",
        "row",
    ),
)
_CALL_COLUMNS = (
    *("source", "shard_name", "row", "benchmark", "config", "split", "instance_index"),
    *("pair", "score"),
)

MOST_DOCUMENTS = 1_000  # per pair


@dataclass(frozen=True)
class Place:
    """A document that contains a pair."""

    source: str
    shard_name: str
    row: int
    doc_id: str | None

    def __str__(self) -> str:
        name = f" ({self.doc_id})" if self.doc_id else ""
        return f"{self.source}/{self.shard_name} row {self.row}{name}"


@dataclass(frozen=True, kw_only=True)
class PairSummary:
    """A pair without its texts."""

    pair: str
    fingerprint: str
    benchmark: str
    config: str | None
    split: str
    instance_index: int
    rules: str
    score: float
    is_by_score: bool
    is_contaminated: bool
    is_question_only: bool | None  # None: the report was made by another program
    verdict: str | None  # the one in the report
    n_documents: int
    source: str
    shard_name: str
    row: int

    @property
    def called(self) -> str:
        """The class of the pair in the report: leak, question-only or near miss."""
        if self.is_contaminated:
            return "leak"
        return "question-only" if self.is_question_only else "near miss"

    @property
    def item(self) -> str:
        return f"{self.benchmark} {self.split} {self.instance_index}"


@dataclass(frozen=True, kw_only=True)
class Call:
    """A document and an item that is a leak in it by score."""

    source: str
    shard_name: str
    row: int
    benchmark: str
    config: str | None
    split: str
    instance_index: int
    pair: str
    score: float


@dataclass(frozen=True, kw_only=True)
class PairFilter:
    """Which pairs and calls of a report to return; an empty field does not filter."""

    benchmarks: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()
    documents: tuple[str, ...] = ()  # values of doc_id


class Report:
    """A report's database, open for reading."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, path: Path) -> None:
        self._connection, self._path = connection, path

    def coverage(self) -> Coverage:
        """Return which shards the report covers."""
        return coverage_in(self._connection)

    def policy(self) -> Policy:
        """Return the policy that the report was made with."""
        ((settings,),) = self._rows("SELECT policy FROM runs")
        return Policy.from_mapping(as_stored(json.loads(settings)), where=f"{self._path}: runs")

    def pairs(self, filters: PairFilter) -> list[PairSummary]:
        """Return the pairs that pass the filter, sorted by key."""
        where = [_is_in("benchmark", filters.benchmarks), _has_detector(filters.rules)]
        values = [*filters.benchmarks, *filters.rules]
        if filters.sources:  # `pairs` names one document of a pair; it may be in others
            is_in = _is_in("source", filters.sources)
            where.append(f"({is_in} OR pair IN (SELECT pair FROM decisions WHERE {is_in}))")
            values += [*filters.sources, *filters.sources]
        if filters.documents:  # any document that contains the pair
            is_in = _is_in("doc_id", filters.documents)
            where.append(f"pair IN (SELECT pair FROM matches WHERE {is_in})")
            values += filters.documents
        query = f"SELECT {', '.join(_PAIR_COLUMNS)} FROM pairs WHERE {_and(where)} ORDER BY pair"
        rows = self._rows(query, values)
        return [PairSummary(**dict(zip(_PAIR_COLUMNS, row, strict=True))) for row in rows]

    def calls(self, filters: PairFilter) -> list[Call]:
        """Return the calls that are leaks by score, whatever their verdicts."""
        where = ["is_by_score", _is_in("benchmark", filters.benchmarks)]
        where.append(_is_in("source", filters.sources))
        values = [*filters.benchmarks, *filters.sources, *filters.rules]
        if filters.rules:
            where.append(f"list_has_any(rules_by_score, [{_placeholders(filters.rules)}])")
        query = f"SELECT {', '.join(_CALL_COLUMNS)} FROM decisions WHERE {_and(where)}"
        rows = self._rows(query, values)
        return [Call(**dict(zip(_CALL_COLUMNS, row, strict=True))) for row in rows]

    def pair(self, pair: str) -> dict[str, Any]:
        """Return every column of one pair, and its documents; raise `MissingError` if absent."""
        cursor = self._execute("FROM pairs WHERE pair = ?", [pair])
        row = cursor.fetchone()
        names = [column[0] for column in cursor.description or ()]
        if row is None:
            expected = "a pair of this report; `decon-assets review --list` shows them"
            raise MissingError(Problem(f"pair {pair!r}", f"not in {self._path}", expected))
        return {**dict(zip(names, row, strict=True)), "documents": self.documents(pair)}

    def documents(self, pair: str, *, most: int = MOST_DOCUMENTS) -> list[Place]:
        """Return the first `most` documents that contain a pair."""
        query = f"""
            SELECT {", ".join(Place.__dataclass_fields__)} FROM pair_documents WHERE pair = ?
            ORDER BY is_contaminated DESC, source, shard_name, row LIMIT ?
        """
        return [Place(*row) for row in self._rows(query, [pair, most])]

    def keys_starting_with(self, start: str) -> list[str]:
        """Return the first five pair keys that start with `start`."""
        query = "SELECT pair FROM pairs WHERE starts_with(pair, ?) ORDER BY pair LIMIT 5"
        return [pair for (pair,) in self._rows(query, [start])]

    def names(self, column: str) -> list[str]:
        """Return the different values of `benchmark` or `source` in the decisions."""
        query = f"SELECT DISTINCT {column} FROM decisions ORDER BY 1"
        return [name for (name,) in self._rows(query)]

    def _rows(self, query: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        return self._execute(query, values).fetchall()

    def _execute(self, query: str, values: Sequence[object]) -> duckdb.DuckDBPyConnection:
        try:
            return self._connection.execute(query, [*values])
        except (duckdb.CatalogException, duckdb.BinderException) as error:
            raise StaleError(
                Problem(
                    str(self._path),
                    f"a report of another version ({str(error).splitlines()[0]})",
                    "a report of this version",
                    "`decon-assets run` rebuilds it",
                )
            ) from None


@contextmanager
def open_report(path: Path) -> Iterator[Report]:
    """Open a report; raise if the file is missing or cannot be read."""
    with opened(path) as connection:
        yield Report(connection, path)


def _is_in(column: str, names: Sequence[str]) -> str:
    return f"{column} IN ({_placeholders(names)})" if names else "true"


def _has_detector(detectors: Sequence[str]) -> str:
    if not detectors:
        return "true"
    return f"list_has_any(string_split(rules, ', '), [{_placeholders(detectors)}])"


def _placeholders(values: Sequence[str]) -> str:
    return ", ".join("?" * len(values))


def _and(conditions: Sequence[str]) -> str:
    return " AND ".join(conditions)
