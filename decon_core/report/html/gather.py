"""Query the report's database for everything the page shows."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa

from decon_core.config.detector_registry import find
from decon_core.decisions.not_read import Account
from decon_core.feature import feature_files
from decon_core.report.open import coverage_in, opened, queries_in, rows_of

Row = Mapping[str, Any]
Rows = Sequence[Row]

# Limits of the page; the database has all rows.
MOST_TEXTS = 50_000
# Documents listed per matched text, and for all matched texts together.
MOST_PLACES_OF_TEXT = 200
MOST_PLACES = 200_000
# Rows of the table of documents, and texts listed per document and for all documents together.
MOST_DOCUMENTS = 100_000
MOST_TEXTS_OF_DOCUMENT = 1_000
MOST_TEXTS_OF_DOCUMENTS = 400_000

_FILES = (Path(__file__).with_suffix(".sql"), *feature_files("gather.sql"))
_QUERIES = {name: query for file in _FILES for name, query in queries_in(file).items()}
_TEXTS, _PLACES = _QUERIES.pop("matched_texts"), _QUERIES.pop("places")
_DOCUMENTS = _QUERIES.pop("documents_with_texts")


@dataclass(frozen=True)
class Facts:
    """Results of all queries; matched texts are sorted with leaks first, then by score."""

    results: Mapping[str, Rows]  # Keys are names of queries.
    matched_texts: pa.Table
    places: Mapping[str, Rows]  # The documents of each matched text that has several.
    documents: pa.Table  # leaks first
    notice: str = ""  # set if the report is incomplete

    def __getitem__(self, query: str) -> Rows:
        return self.results[query]

    @property
    def run(self) -> Row:
        """The row of `runs`; empty if there is none."""
        return next(iter(self["runs"]), {})

    @property
    def not_read(self) -> Account:
        return Account.stored(self["all_not_read"], self["bytes_read"])

    @property
    def totals(self) -> Row:
        return self["totals"][0]

    @property
    def has_snippets(self) -> bool:
        return bool(self.run.get("snippets"))

    @cached_property
    def _known_thresholds(self) -> Mapping[tuple[str, str | None], float]:
        """Thresholds by detector and benchmark (None: the default); some are a number of tokens."""
        return {
            (detector, row["benchmark"]): value
            for row in self["thresholds"]
            for detector, value in json.loads(row["thresholds"]).items()
        }

    @property
    def thresholds(self) -> Mapping[str, float]:
        """The default thresholds by detector."""
        known = self._known_thresholds.items()
        return {detector: value for (detector, benchmark), value in known if benchmark is None}

    @property
    def with_known_total(self) -> list[Row]:
        """Benchmarks and splits with a known number of items.

        A report imported from another program contains only what leaked.
        """
        return [row for row in self["benchmarks"] if row["n_items"] is not None]

    @property
    def with_known_rate(self) -> list[Row]:
        """Benchmarks and splits of which at least one item can be found."""
        return [row for row in self["benchmarks"] if row["leak_rate"] is not None]

    @property
    def n_unknown(self) -> int | None:
        """The items that cannot be found and were not; None if their number is unknown."""
        is_known = len(self.with_known_total) == len(self["benchmarks"])
        return self.total("n_unknown") if is_known else None

    def total(self, count: str) -> int:
        """Return the sum of a count over all benchmarks and splits."""
        return sum(row[count] or 0 for row in self["benchmarks"])

    def own_thresholds(self, detector: str) -> Mapping[str, float]:
        """Return the thresholds of the benchmarks that differ from the detector's default."""
        default = self.threshold(detector)
        return {
            benchmark: value
            for (name, benchmark), value in self._known_thresholds.items()
            if name == detector and benchmark is not None and value != default
        }

    def threshold(self, detector: str, benchmark: str | None = None) -> float | None:
        """Return the threshold for a benchmark; some are a number of tokens."""
        known = self._known_thresholds
        return known.get((detector, benchmark), known.get((detector, None)))

    def score_threshold(self, detector: str, benchmark: str | None = None) -> float | None:
        """Return the lowest score of a leak: always 1, the full length, of a number of tokens."""
        is_length = self.has_length_threshold(detector)
        return 1.0 if is_length else self.threshold(detector, benchmark)

    def has_length_threshold(self, detector: str) -> bool:
        """Return whether the threshold of a detector is a number of tokens."""
        known = find(detector)
        return known is not None and known.threshold.is_length


def gather(report: Path, *, most_texts: int = MOST_TEXTS) -> Facts:
    bounds = {"most_texts": most_texts, "of_text": MOST_PLACES_OF_TEXT, "in_all": MOST_PLACES}
    with opened(report) as connection:
        results = {name: rows_of(connection, query) for name, query in _QUERIES.items()}
        texts = connection.sql(_TEXTS, params={"most_texts": most_texts}).to_arrow_table()
        places: dict[str, list[Row]] = {}
        for row in connection.sql(_PLACES, params=bounds).to_arrow_table().to_pylist():
            places.setdefault(row["text_id"], []).append(row)
        bounds = {"most_documents": MOST_DOCUMENTS}
        documents = connection.sql(_DOCUMENTS, params=bounds).to_arrow_table()
        notice = coverage_in(connection).notice
    return Facts(results, texts, places, documents, notice)
