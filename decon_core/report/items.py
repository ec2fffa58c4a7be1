"""Read the items of a report with their verdicts: by its decision, or by chosen detectors."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Any

from decon_core.benchmarks.fields import Row
from decon_core.config.detector_registry import find
from decon_core.config.policy import Policy
from decon_core.config.validation import did_you_mean
from decon_core.errors import InputError, Problem
from decon_core.report.open import opened

CLEAN = "clean"
LEAKED = "leaked"
WITH_ANSWER = "leaked with its answer"
NO_ANSWER = "no answer"
REVIEW = "review"
NOT_CHECKABLE = "cannot be checked"
NOT_FULLY_SCANNED = "not fully scanned"

_QUERY = """
    SELECT benchmark, split, instance_index, s.config, s.question, coalesce(other_questions, []),
           fingerprints, extras,
           s.is_checkable,
           CASE WHEN what_leaked = 'with its answer' THEN 'leaked with its answer'
                ELSE status END AS verdict, status AS decision
    FROM item_status s JOIN items USING (benchmark, split, instance_index)
    ORDER BY benchmark, split, instance_index
"""

_DETECTORS = "SELECT DISTINCT detector FROM visibility ORDER BY detector"

# The same for chosen detectors as `item_status` and `findings` for all of them. A match counts here
# even if its score is no proof: a user who names the detector asks for it.
_BY_DETECTORS = """
    WITH own AS (
        SELECT benchmark, split, instance_index,
               list(CASE status WHEN 'review' THEN 'leaked' ELSE status END) AS statuses,
               bool_or(is_checkable) AS is_checkable
        FROM items_by_detector WHERE list_contains(?, detector)
        GROUP BY ALL
    ), answers AS (
        SELECT benchmark, split, instance_index,
               max(CASE WHEN searched_text IN ('question and answer', 'continuation') THEN 1
                        WHEN is_correct IS DISTINCT FROM false THEN answer_overlap END) AS overlap
        FROM matches WHERE (is_contaminated OR needs_review) AND list_contains(?, detector)
        GROUP BY ALL
    )
    SELECT benchmark, split, instance_index, s.config, s.question, coalesce(other_questions, []),
           fingerprints, extras,
           coalesce(own.is_checkable, false),
           CASE WHEN list_contains(statuses, 'leaked') THEN
                    CASE WHEN has_answer AND overlap >= answer_threshold()
                         THEN 'leaked with its answer' ELSE 'leaked' END
                WHEN list_contains(statuses, 'no answer') THEN 'no answer'
                WHEN list_contains(statuses, 'not fully scanned') THEN 'not fully scanned'
                WHEN list_contains(statuses, 'clean') THEN 'clean'
                ELSE 'cannot be checked' END AS verdict, s.status AS decision
    FROM item_status s
    JOIN items USING (benchmark, split, instance_index)
    LEFT JOIN own USING (benchmark, split, instance_index)
    LEFT JOIN answers USING (benchmark, split, instance_index)
    ORDER BY benchmark, split, instance_index
"""


@dataclass(frozen=True)
class ItemRow:
    """One item of a report."""

    benchmark: str
    split: str
    instance_index: int
    config: str | None
    question: str
    other_questions: Sequence[str]  # if its row has several
    fingerprints: Sequence[str]
    _: KW_ONLY
    extras: Row  # short fields that the recipe keeps
    is_checkable: bool  # whether the chosen detectors can find it
    verdict: str  # verdict of the chosen detectors
    decision: str  # decision of the report, where several detectors and reviewers count


@dataclass(frozen=True)
class ReportItems:
    """The items of a report, and with which settings it was made."""

    rows: list[ItemRow]
    state: str
    threshold: float | None
    policy: Row
    # Benchmarks of which only the leaks are known: the report is from another program.
    without_total: frozenset[str]


def load_report_items(report: Path, detectors: Sequence[str] = ()) -> ReportItems:
    """Read all items; `InputError` for a detector that the report does not have."""
    chosen = [*dict.fromkeys(detectors)]
    unknown_totals = "SELECT benchmark FROM benchmarks WHERE n_items IS NULL"
    with opened(report) as connection:
        if chosen:
            known = [name for (name,) in connection.execute(_DETECTORS).fetchall()]
            InputError.raise_for(
                Problem(
                    f"--detector {name}",
                    f"no results of this detector in {report}",
                    f"one of {', '.join(known)}" if known else "a report with detectors",
                    did_you_mean(name, known),
                )
                for name in chosen
                if name not in known
            )
        query, values = (_BY_DETECTORS, [chosen, chosen]) if chosen else (_QUERY, [])
        items = connection.execute(query, values).fetchall()
        runs = connection.execute("SELECT state, threshold, policy FROM runs").fetchone()
        without_total = frozenset(name for (name,) in connection.execute(unknown_totals).fetchall())
    state, threshold, policy = runs or ("", None, "{}")
    rows = [
        ItemRow(
            *columns,
            extras=json.loads(extras or "{}"),
            is_checkable=is_checkable,
            verdict=by_chosen,
            decision=by_report,
        )
        for *columns, extras, is_checkable, by_chosen, by_report in items
    ]
    return ReportItems(rows, state, threshold, json.loads(policy), without_total)


def about_detectors(items: ReportItems, detectors: Sequence[str]) -> list[str]:
    """Say what the verdicts by chosen detectors mean, and how they differ from the report's."""
    if not detectors:
        return []
    names = ", ".join(dict.fromkeys(detectors))
    meaning = "that an item could be found and was not; other detectors may have found it"
    notes = [f"Leaked and clean are decided by {names} alone; clean means {meaning}."]
    clean = [row for row in items.rows if row.verdict == CLEAN]
    for status in (LEAKED, NO_ANSWER, REVIEW):
        n = sum(row.decision == status for row in clean)
        if n:
            notes.append(
                f"The report gives {n:,} of the {len(clean):,} clean items the status {status}."
            )
    leak: Any = items.policy.get("leak", Policy.leak)
    known = {name: find(name) for name in detectors}
    if no_proof := [name for name, found in known.items() if found and not found.acts(leak)]:
        names = ", ".join(no_proof)
        notes.append(f"Findings of {names} count as leaked here, although they need review.")
    return notes
