"""Places that may be an item, found beside the scan: rows like the matches of a detector."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from decon_core.config.rounding import reaches
from decon_core.detectors.detector import FOR_REVIEW
from decon_core.schemas import COLUMNS, MATCHES, field, schema_of
from decon_core.storage.tables import no_rows, read_parquet

# One row per place, record and benchmark version, beside the text of the place.
NOMINATED = schema_of([*COLUMNS["MATCHES"], field("text", "string", "the text of the place")])


@dataclass(frozen=True)
class NominatedPlaces:
    """The places of one nominator: a Parquet file of `NOMINATED` for each benchmark version."""

    detector: str  # the name that stands for one
    key: str  # identifies all that they are made from
    folder: Path
    review_from: float | None = None  # score from which they need review

    def path(self, version: str) -> Path:
        return self.folder / f"{version}.parquet"

    def matches(
        self, shards: Collection[str], version: str, *, columns: Sequence[str] = MATCHES.names
    ) -> pa.Table:
        """Return the places in these shards for a benchmark version."""
        import pyarrow.compute as pc

        if not self.path(version).is_file():
            return no_rows(MATCHES).select(columns)
        in_shards = pc.field("shard").isin(pa.array([*shards], pa.string()))
        rows = read_parquet(self.path(version), columns=MATCHES.names, filters=in_shards)
        if self.review_from is not None:
            waits = pa.array(reaches(rows["base_score"].to_numpy(), self.review_from))
            kinds = pc.if_else(waits, FOR_REVIEW, pa.scalar(None, pa.string()))
            at = rows.schema.get_field_index("kind")
            rows = rows.set_column(at, rows.schema.field(at), kinds)
        return rows.select(columns)

    def texts(self, text_ids: Collection[str], version: str) -> dict[str, str]:
        """Return the texts with these ids, of those that it found."""
        import pyarrow.compute as pc

        if not self.path(version).is_file():
            return {}
        is_asked = pc.field("text_id").isin(pa.array([*text_ids], pa.string()))
        rows = read_parquet(self.path(version), columns=["text_id", "text"], filters=is_asked)
        text_ids, texts = (column.to_pylist() for column in rows.columns)
        return dict(zip(text_ids, texts, strict=True))
