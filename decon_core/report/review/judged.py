"""The report's tables of judged pairs, and of the probability by score that follows from them."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa

from decon_core.config.detector_registry import curve_of, near_kinds
from decon_core.decisions.annotations import Annotation, labels_of
from decon_core.decisions.calibration import ALL, LEAST_JUDGED, Curve, Fit, calibrate
from decon_core.decisions.candidates import Candidate, Evidence
from decon_core.decisions.judged import points_of
from decon_core.decisions.verdicts import Verdicts
from decon_core.report.open import queries_in, rows_of
from decon_core.report.tables import TABLES, table_of

_QUERIES = queries_in(Path(__file__).with_suffix(".sql"))

Row = dict[str, Any]


def judged_tables(
    matches: Sequence[Path],
    verdicts: Verdicts,
    evidence: Evidence,
    *,
    has_snippets: bool,
) -> dict[str, pa.Table]:
    """Return the tables of judged pairs and of the calibration by them.

    Without snippets there are no reasons of models and no messages of servers: they may quote the
    text.
    """
    labels = labels_of(verdicts.labels, evidence.annotations)
    found, n_pairs = _found(matches, labels)
    of_files = _beside_matches(evidence.candidates, n_pairs)
    found += [row for row in of_files if row["pair"] in labels]
    known = {row["pair"] for row in found}
    without_match = [{"pair": pair} for pair in labels if pair not in known]
    pairs = [_judged_row(row, labels[row["pair"]]) for row in (*found, *without_match)]
    if not has_snippets:
        for row in pairs:
            row["reasoning"] = None
            if unjudged := row.get("unjudged"):
                row["unjudged"] = unjudged.partition(" (")[0]
    pairs.sort(key=lambda row: (row["pair"], row.get("detector") or "", row.get("benchmark") or ""))
    decided = {pair: label.is_sd for pair, label in labels.items() if label.is_sd is not None}
    rows = [row for row in found if row["pair"] in decided and row["score"] is not None]
    calibration = calibrate(points_of(rows, decided))
    curves = calibration.curves.items()
    return {
        "judged_pairs": table_of("judged_pairs", pairs),
        "calibration": table_of(
            "calibration", [row for key, curve in curves for row in _step_rows(key, curve)]
        ),
        "calibration_fit": table_of("calibration_fit", _fit_rows(n_pairs, found, labels, curves)),
    }


def _found(
    matches: Sequence[Path], labels: Mapping[str, Annotation]
) -> tuple[list[Row], Counter[tuple[str, str]]]:
    """Return the judged pairs by detector and benchmark, and the number of all pairs by both.

    Pairs are not counted if none is judged: then no calibration is made.
    """
    import duckdb

    n_pairs: Counter[tuple[str, str]] = Counter()
    if not (matches and labels):
        return [], n_pairs
    files = {"files": [*map(str, matches)]}
    with duckdb.connect() as connection:
        connection.register("judged", pa.table({"text_id": pa.array(sorted(labels), pa.string())}))
        found = rows_of(connection, _QUERIES["found"], files)
        near = {**files, "near_kinds": near_kinds()}
        for row in rows_of(connection, _QUERIES["counts"], near):
            curve = curve_of(row["detector"], row["kind"])
            n_pairs[curve, row["benchmark"] or ALL] = row["n_pairs"]
    return found, n_pairs


def _beside_matches(
    candidates: Iterable[Candidate], n_pairs: Counter[tuple[str, str]]
) -> Iterable[Row]:
    """Yield candidates of files as rows like those of matches, and count pairs.

    Of several with the same texts the one with the highest score counts.
    """
    best: dict[tuple[str, str, str], Candidate] = {}

    def score(candidate: Candidate) -> float:
        return -math.inf if candidate.score is None else candidate.score

    for candidate in sorted(candidates, key=score):
        best[candidate.detector, candidate.benchmark, candidate.pair] = candidate
    n_pairs.update((detector, ALL) for detector, _ in {(key[0], key[2]) for key in best})
    for _, candidate in sorted(best.items()):
        n_pairs[candidate.detector, candidate.benchmark] += 1
        yield {name: value for name, value in asdict(candidate).items() if name not in _TEXTS}


_TEXTS = ("item_text", "text", "why_no_text")


def _judged_row(row: Mapping[str, Any], label: Annotation) -> Row:
    names = {column.name for column in TABLES["judged_pairs"].schema}
    said = {**asdict(label), "judge": label.kind, "judged_by": label.by, "judged_at": label.at}
    said = {name: value for name, value in said.items() if value != ""}
    return {name: value for name, value in {**said, **row}.items() if name in names}


def _step_rows(key: tuple[str, str], curve: Curve) -> list[Row]:
    """Return the steps of a curve; none if too few pairs are judged for a probability."""
    if curve.n_judged < LEAST_JUDGED:
        return []
    named = {"detector": key[0], "benchmark": key[1] or None}
    return [
        {**named, "step": number, **asdict(step), "probability": step.probability}
        for number, step in enumerate(curve.steps)
    ]


def _fit_rows(
    n_pairs: Counter[tuple[str, str]],
    found: Sequence[Row],
    labels: Mapping[str, Annotation],
    curves: Iterable[tuple[tuple[str, str], Curve]],
) -> list[Row]:
    """Return a row for each detector and benchmark with a judgement, and for all of a detector."""
    kinds: dict[tuple[str, str], dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for row in found:
        label = labels[row["pair"]]
        judged_as = curve_of(row["detector"], row.get("kind"))
        kind = "unjudged" if label.is_sd is None else label.kind
        for benchmark in (row["benchmark"], ALL):
            kinds[judged_as, benchmark][kind].add(row["pair"])
    by_key, rows = dict(curves), []
    for key, pairs in sorted(kinds.items()):
        curve = by_key.get(key, Curve(()))
        fit = asdict(curve.fit) if isinstance(curve.fit, Fit) else {}
        rows.append(
            {
                "detector": key[0],
                "benchmark": key[1] or None,
                "n_pairs": n_pairs[key],
                "n_judged": curve.n_judged,
                "n_sd": curve.n_sd,
                "n_by_people": len(pairs["person"]),
                "n_by_files": len(pairs["file"]),
                "n_by_models": len(pairs["model"]),
                "n_unjudged": len(pairs["unjudged"]),
                **fit,
            }
        )
    return rows
