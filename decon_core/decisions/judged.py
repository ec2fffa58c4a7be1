"""Joins the judgements of pairs with the scores that a scan gave them, and calibrates by them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Any

from decon_core.config.detector_registry import curve_of
from decon_core.corpus.packs import Pack
from decon_core.decisions.annotations import Annotations, labels_of
from decon_core.decisions.calibration import Calibration, Point, calibrate
from decon_core.decisions.common_ngrams import current_common
from decon_core.decisions.match_reader import MatchReader
from decon_core.errors import DamagedError
from decon_core.scan.coverage import gaps_of, missing_by_shard
from decon_core.storage.files import read_json, write_json

# Increase this when the same judgements give another calibration.
_FORMAT = 2
_COLUMNS = ["detector", "kind", "benchmark", "text_id", "fingerprint", "score"]


@dataclass(frozen=True)
class Calibrated:
    """A calibration that is made when it is needed, and then kept in the store."""

    fingerprint: str  # fingerprint of all that it is made from
    reader: MatchReader
    packs: tuple[Pack, ...] = ()
    labels: Mapping[str, bool] = field(default_factory=dict)

    def load(self) -> Calibration:
        path = self.reader.store.calibration(self.fingerprint)
        try:
            return Calibration.from_json(read_json(path)["curves"])
        except (FileNotFoundError, DamagedError):
            made = calibrate(judged_points(self.reader, self.packs, self.labels))
            write_json(path, {"curves": made.to_json()})
            return made

    def stored(self) -> Calibrated:
        """Return it without what it is made from, after it was made."""
        self.load()
        return replace(self, packs=(), labels={})


def calibrated(reader: MatchReader, packs: Sequence[Pack], annotations: Annotations) -> Calibrated:
    """Return the calibration by the pairs that are judged today, from all scanned shards."""
    labels = labels_of(reader.verdicts.labels, annotations)
    decided = {pair: label.is_sd for pair, label in labels.items() if label.is_sd is not None}
    store, policy, scan = reader.store, reader.policy, reader.scan
    gaps = gaps_of(reader.scan_results, packs, reader.versions)
    value = [
        _FORMAT,
        scan,
        decided,
        reader.verdicts.decisive,
        policy.decision_settings(version.benchmark for version in reader.versions),
        current_common(store, scan, policy)[0] if policy.leave_out_common else None,
        sorted((version.benchmark, version.fingerprint) for version in reader.versions),
        sorted((pack.source.name, shard.fingerprint) for pack in packs for shard in pack.shards),
        sorted((gap.shard.fingerprint, gap.lacking) for gap in gaps),
        *(nomination.key for nomination in reader.nominations),
    ]
    fingerprint = sha256(json.dumps(value).encode()).hexdigest()[:16]
    return Calibrated(fingerprint, reader, tuple(packs), decided)


def judged_points(
    reader: MatchReader, packs: Sequence[Pack], labels: Mapping[str, bool]
) -> list[Point]:
    """Return each judged pair that a scan found, once for each detector and benchmark."""
    import pyarrow.compute as pc

    if not labels:
        return []
    lacking = missing_by_shard(gaps_of(reader.scan_results, packs, reader.versions))
    is_judged = pc.field("text_id").isin(sorted(labels))
    in_order = sorted(packs, key=lambda pack: pack.source.name)
    rows = (
        row
        for _, entries in reader.entry_batches(in_order, reader.versions, lacking)
        for row in entries.filter(is_judged).select(_COLUMNS).to_pylist()
    )
    return points_of(({**row, "pair": row["text_id"]} for row in rows), labels)


def points_of(rows: Iterable[Mapping[str, Any]], labels: Mapping[str, bool]) -> list[Point]:
    """Return the points of matches; of several of a pair the one with the highest score."""
    best: dict[tuple[str, str, str], Point] = {}
    for row in rows:
        key = curve_of(row["detector"], row.get("kind")), row["benchmark"], row["pair"]
        before = best.get(key)
        if before is None or before.score < row["score"]:
            best[key] = Point(*key, row["fingerprint"], row["score"], labels[row["pair"]])
    return [best[key] for key in sorted(best)]
