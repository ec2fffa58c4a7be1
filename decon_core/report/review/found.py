"""What a report has to be looked at: its pairs, and its calls of documents and items."""

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

# Of a pair: all that can be asked of it without its texts.
_ABOUT = (
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
_OF_CALL = (
    *("source", "shard_name", "row", "benchmark", "config", "split", "instance_index"),
    *("pair", "score"),
)


MOST_DOCUMENTS = 1_000  # of a pair


@dataclass(frozen=True)
class Place:
    """A document in which a pair stands."""

    source: str
    shard_name: str
    row: int
    doc_id: str | None

    def __str__(self) -> str:
        name = f" ({self.doc_id})" if self.doc_id else ""
        return f"{self.source}/{self.shard_name} row {self.row}{name}"


@dataclass(frozen=True, kw_only=True)
class About:
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
    is_question_only: bool | None  # null: in a report of another program
    verdict: str | None  # as the report has it
    n_documents: int
    source: str
    shard_name: str
    row: int

    @property
    def called(self) -> str:
        """How the report counts it."""
        if self.is_contaminated:
            return "leak"
        return "question-only" if self.is_question_only else "near miss"

    @property
    def item(self) -> str:
        return f"{self.benchmark} {self.split} {self.instance_index}"


@dataclass(frozen=True, kw_only=True)
class Call:
    """A document and an item of which something in it reaches the threshold."""

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
class Wanted:
    """What of a report is looked at; nothing named: all of it."""

    benchmarks: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()
    documents: tuple[str, ...] = ()  # by their own ids


class Report:
    """A report that is open for reading."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, path: Path) -> None:
        self._connection, self._path = connection, path

    def coverage(self) -> Coverage:
        """Which shards the report lacks."""
        return coverage_in(self._connection)

    def policy(self) -> Policy:
        """The one that it was made with."""
        ((settings,),) = self._rows("SELECT policy FROM runs")
        return Policy.from_mapping(as_stored(json.loads(settings)), where=f"{self._path}: runs")

    def pairs(self, wanted: Wanted) -> list[About]:
        """By name."""
        where = [_among("benchmark", wanted.benchmarks), _with_rule(wanted.rules)]
        values = [*wanted.benchmarks, *wanted.rules]
        if wanted.sources:  # a pair is shown in one document, and may stand in others
            among = _among("source", wanted.sources)
            where.append(f"({among} OR pair IN (SELECT pair FROM decisions WHERE {among}))")
            values += [*wanted.sources, *wanted.sources]
        if wanted.documents:  # any document in which it stands, also one that is not shown
            among = _among("doc_id", wanted.documents)
            where.append(f"pair IN (SELECT pair FROM matches WHERE {among})")
            values += wanted.documents
        query = f"SELECT {', '.join(_ABOUT)} FROM pairs WHERE {_all(where)} ORDER BY pair"
        return [About(**dict(zip(_ABOUT, row, strict=True))) for row in self._rows(query, values)]

    def calls(self, wanted: Wanted) -> list[Call]:
        """Of documents and items: those that are leaks by score, whatever people said of them."""
        where = ["is_by_score", _among("benchmark", wanted.benchmarks)]
        where.append(_among("source", wanted.sources))
        values = [*wanted.benchmarks, *wanted.sources, *wanted.rules]
        if wanted.rules:
            where.append(f"list_has_any(rules_by_score, [{_places(wanted.rules)}])")
        query = f"SELECT {', '.join(_OF_CALL)} FROM decisions WHERE {_all(where)}"
        return [Call(**dict(zip(_OF_CALL, row, strict=True))) for row in self._rows(query, values)]

    def pair(self, pair: str) -> dict[str, Any]:
        """All of one pair, its texts among it."""
        cursor = self._execute("FROM pairs WHERE pair = ?", [pair])
        row = cursor.fetchone()
        names = [column[0] for column in cursor.description or ()]
        if row is None:
            expected = "a pair of this report: `decon-assets review --list` shows them"
            raise MissingError(Problem(f"pair {pair!r}", f"not in {self._path}", expected))
        return {**dict(zip(names, row, strict=True)), "documents": self.documents(pair)}

    def documents(self, pair: str, *, most: int = MOST_DOCUMENTS) -> list[Place]:
        """The documents in which a pair stands; of very many the first."""
        query = f"""
            SELECT {", ".join(Place.__dataclass_fields__)} FROM pair_documents WHERE pair = ?
            ORDER BY is_contaminated DESC, source, shard_name, row LIMIT ?
        """
        return [Place(*row) for row in self._rows(query, [pair, most])]

    def beginning_with(self, start: str) -> list[str]:
        """The first of the pairs whose key begins so."""
        query = "SELECT pair FROM pairs WHERE starts_with(pair, ?) ORDER BY pair LIMIT 5"
        return [pair for (pair,) in self._rows(query, [start])]

    def names(self, column: str) -> list[str]:
        """The benchmarks, or the sources, of which anything was found."""
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
                    f"a report of another form ({str(error).splitlines()[0]})",
                    "one of this version",
                    "`decon-assets run` makes it anew",
                )
            ) from None


@contextmanager
def open_report(path: Path) -> Iterator[Report]:
    """Open a report; raises where there is none, or none that can be read."""
    with opened(path) as connection:
        yield Report(connection, path)


def _among(column: str, names: Sequence[str]) -> str:
    return f"{column} IN ({', '.join('?' * len(names))})" if names else "true"


def _with_rule(rules: Sequence[str]) -> str:
    if not rules:
        return "true"
    return f"list_has_any(string_split(rules, ', '), [{_places(rules)}])"


def _places(values: Sequence[str]) -> str:
    return ", ".join("?" * len(values))


def _all(conditions: Sequence[str]) -> str:
    return " AND ".join(conditions)
