"""Compare truth and findings: recall, precision, curves and agreement of the detectors.

`findings` has one row per detector, document and matched item: a score, and whether it is a leak or
no answer (never both). An item without a row was not found and has score 0. A hard negative is
a false alarm if any item is flagged in its document; other plantings are never negatives, whatever
else is flagged in them. Documents without a planting are counted separately, because a real corpus
may contain real leaks.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import polars as pl

from decon_core.decisions.calibration import wilson
from decon_core.features.scorecard.edits import TRANSFORMATIONS
from decon_core.features.scorecard.negatives import HARD_NEGATIVES

_DECLARED = tomllib.loads(Path(__file__).with_name("tables.toml").read_text(encoding="utf-8"))
SCHEMAS: Mapping[str, pl.Schema] = {
    table: pl.Schema({name: getattr(pl, kind) for name, kind in columns.items()})
    for table, columns in _DECLARED.items()
}
TRUTH, FINDINGS = SCHEMAS["truth"], SCHEMAS["findings"]

_DOCUMENT = ["shard", "row"]
_ITEM = [*_DOCUMENT, "benchmark", "split", "instance_index"]
_ORDER = {
    (edit.group, edit.grade): at for at, edit in enumerate((*TRANSFORMATIONS, *HARD_NEGATIVES))
}


@dataclass(frozen=True)
class Marks:
    """The result tables of a scorecard."""

    detectors: tuple[str, ...]
    recall: pl.DataFrame
    negatives: pl.DataFrame
    totals: pl.DataFrame
    curves: pl.DataFrame
    agreement: pl.DataFrame
    found: pl.DataFrame


def mark(
    truth: pl.DataFrame,
    findings: pl.DataFrame,
    *,
    thresholds: Mapping[str, float],
    n_background: int = 0,
) -> Marks:
    """Build all tables. Detectors are in the order of `thresholds`."""
    detectors = tuple(thresholds)
    # The order is that of the transformations; unknown ones are last.
    keys = zip(truth["transformation"], truth["grade"], strict=True)
    places = pl.Series([_ORDER.get(key, len(_ORDER)) for key in keys], dtype=pl.Int64)
    truth = truth.sort(places.alias("place"), *_ITEM, maintain_order=True)
    seen = _best(findings, _ITEM)
    plants = _marked(truth, "plant", seen, _ITEM, detectors)
    negatives = _marked(truth, "hard_negative", seen, _DOCUMENT, detectors)
    background = _best(seen, _DOCUMENT).join(truth, on=_DOCUMENT, how="anti")
    curves = [_curve(detector, plants, negatives) for detector in detectors]
    named = negatives.rename({"transformation": "negative"})
    return Marks(
        detectors,
        _shares(plants, "recall", "n_found", "recall"),
        _shares(named, "negatives", "n_flagged", "false_alarm_rate"),
        _totals(plants, negatives, background, curves, thresholds, n_background),
        pl.concat([pl.DataFrame(schema=SCHEMAS["curves"]), *curves]),
        _agreement(plants, detectors),
        _found(plants, detectors),
    )


def _marked(
    truth: pl.DataFrame, kind: str, seen: pl.DataFrame, on: Sequence[str], detectors: Sequence[str]
) -> pl.DataFrame:
    """Return one row per planting of a kind and detector, with the best finding for its keys."""
    rows = truth.filter(kind=kind).with_row_index("number")
    every = rows.join(pl.DataFrame({"detector": detectors}, {"detector": pl.String}), how="cross")
    return every.join(
        _best(seen, on), on=["detector", *on], how="left", maintain_order="left"
    ).with_columns(
        pl.col("score").fill_null(0.0),
        pl.col("is_contaminated", "is_no_answer").fill_null(value=False),
    )


def _best(findings: pl.DataFrame, on: Sequence[str]) -> pl.DataFrame:
    """Return, per group, the best score and whether it is a leak or else `no answer`."""
    is_leak, is_no_answer = pl.col("is_contaminated").any(), pl.col("is_no_answer").any()
    return findings.group_by("detector", *on).agg(
        pl.col("score").max(), is_leak, is_no_answer & ~is_leak
    )


def _shares(rows: pl.DataFrame, table: str, n_found: str, share: str) -> pl.DataFrame:
    """Count leaks by the columns of a table before `n`, with their shares and intervals."""
    columns = [*SCHEMAS[table]]
    counts = rows.group_by(columns[: columns.index("n")], maintain_order=True).agg(
        pl.len().alias("n"),
        pl.col("is_contaminated").sum().alias(n_found),
        pl.col("is_no_answer").sum().alias("n_no_answer"),
    )
    shares = counts.to_dicts()
    for row in shares:
        row[share] = row[n_found] / row["n"]
        row["low"], row["high"] = wilson(row[share], row["n"])
    return pl.DataFrame(shares, schema=SCHEMAS[table])


def _totals(
    plants: pl.DataFrame,
    negatives: pl.DataFrame,
    background: pl.DataFrame,
    curves: Sequence[pl.DataFrame],
    thresholds: Mapping[str, float],
    n_background: int,
) -> pl.DataFrame:
    rows = []
    for (detector, threshold), curve in zip(thresholds.items(), curves, strict=True):
        groups = [group.filter(detector=detector) for group in (plants, negatives, background)]
        planted, negative, _ = groups
        n_found, n_false, n_others = (int(group["is_contaminated"].sum()) for group in groups)
        n_no_answer = [int(group["is_no_answer"].sum()) for group in groups]
        precision = _share(n_found, n_found + n_false)
        low, high = wilson(precision or 0.0, n_found + n_false)
        rows.append(
            {
                "detector": detector,
                "threshold": threshold,
                "n_planted": planted.height,
                "n_found": n_found,
                "recall": _share(n_found, planted.height),
                "n_negatives": negative.height,
                "n_false_alarms": n_false,
                "precision": precision,
                "low": low,
                "high": high,
                "average_precision": average_precision(curve),
                "n_background": n_background,
                "n_background_flagged": n_others,
                "n_no_answer": n_no_answer[0],
                "n_negatives_no_answer": n_no_answer[1],
                "n_background_no_answer": n_no_answer[2],
            }
        )
    return pl.DataFrame(rows, schema=SCHEMAS["totals"])


def _share(n_found: int, n: int) -> float | None:
    return n_found / n if n else None


def _curve(detector: str, plants: pl.DataFrame, negatives: pl.DataFrame) -> pl.DataFrame:
    """Return a point per distinct score, highest first. A score of 0 is not a match."""
    is_plant = pl.lit(value=True).alias("is_plant")
    planted = plants.filter(detector=detector).select("score", is_plant)
    negative = negatives.filter(detector=detector).select("score", ~is_plant)
    points = (
        pl.concat([planted, negative])
        .filter(pl.col("score") > 0)
        .group_by("score")
        .agg(
            pl.col("is_plant").sum().cast(pl.Int64).alias("n_found"),
            (~pl.col("is_plant")).sum().cast(pl.Int64).alias("n_false_alarms"),
        )
        .sort("score", descending=True)
        .with_columns(pl.col("n_found", "n_false_alarms").cum_sum())
    )
    n_flagged = pl.col("n_found") + pl.col("n_false_alarms")
    curve = points.with_columns(
        pl.lit(detector).alias("detector"),
        (pl.col("n_found") / max(planted.height, 1)).alias("recall"),
        (pl.col("n_found") / n_flagged).alias("precision"),
    )
    return curve.select(*SCHEMAS["curves"]).cast(SCHEMAS["curves"])


def average_precision(curve: pl.DataFrame) -> float:
    """Return the mean precision of the points, weighted by the recall that each adds."""
    added = curve["recall"].diff().fill_null(curve["recall"])
    return float((added * curve["precision"]).sum())


def _agreement(plants: pl.DataFrame, detectors: Sequence[str]) -> pl.DataFrame:
    is_found = {
        detector: plants.filter(detector=detector)["is_contaminated"] for detector in detectors
    }
    rows = []
    for first, second in combinations(detectors, 2):
        a, b = is_found[first], is_found[second]
        both, only_a = int((a & b).sum()), int((a & ~b).sum())
        only_b, neither = int((b & ~a).sum()), int((~a & ~b).sum())
        either = both + only_a + only_b
        rows.append(
            {
                "first": first,
                "second": second,
                "n_both": both,
                "n_only_first": only_a,
                "n_only_second": only_b,
                "n_neither": neither,
                "jaccard": both / either if either else None,
                "kappa": cohens_kappa(both, only_a, only_b, neither),
            }
        )
    return pl.DataFrame(rows, schema=SCHEMAS["agreement"])


def cohens_kappa(both: int, only_first: int, only_second: int, neither: int) -> float | None:
    """Return how far two detectors agree beyond chance; None if that is undefined."""
    n = both + only_first + only_second + neither
    if n == 0:
        return None
    found_first, found_second = (both + only_first) / n, (both + only_second) / n
    by_chance = found_first * found_second + (1 - found_first) * (1 - found_second)
    return ((both + neither) / n - by_chance) / (1 - by_chance) if by_chance < 1 else None


def _found(plants: pl.DataFrame, detectors: Sequence[str]) -> pl.DataFrame:
    is_found = pl.col("is_contaminated")
    n_finders = is_found.sum().over("number")
    counts = (
        plants.with_columns(n_finders.alias("n_finders"))
        .group_by("benchmark", "detector", maintain_order=True)
        .agg(
            pl.len().alias("n_planted"),
            is_found.sum().alias("n_found"),
            (is_found & (pl.col("n_finders") == 1)).sum().alias("n_found_alone"),
            (pl.col("n_finders") == len(detectors)).sum().alias("n_found_by_all"),
            (pl.col("n_finders") == 0).sum().alias("n_found_by_none"),
        )
    )
    found = counts.sort("benchmark", maintain_order=True)
    return found.select(*SCHEMAS["found"]).cast(SCHEMAS["found"])
