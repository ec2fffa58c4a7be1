"""The `reworded` detector: an item in other words, found by its content words and numbers.

A window of a document is compared with a text of an item (`items.py`) if it holds two of the
text's rarest content words; words that many items of the benchmark have do not count as rare
(`search.py`). What counts is how much of the text's words and numbers is there, by weight and by
number, in any order (`evidence.py`). A question whose numbers were replaced by others is the same
template, not the same item. `tests/oracle/reworded.py` has the arithmetic.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from decon_core.config.detector_registry import Kind, Reads, Threshold, register
from decon_core.config.policy import Policy
from decon_core.corpus.batches import Batch
from decon_core.detectors.detector import Detector, Indexes, Search
from decon_core.detectors.reworded.evidence import LEAST_COUNT, OTHER_NUMBERS, REWORDED
from decon_core.detectors.reworded.items import (
    ITEM,
    Text,
    arrays_of,
    index_of,
    questions_with_choices,
    texts_sought,
)
from decon_core.detectors.reworded.search import RewordedSearch
from decon_core.detectors.visibility import RecordTexts, Unmet, first_unmet
from decon_core.kernels.arrays import Floats

if TYPE_CHECKING:
    import pyarrow as pa

    from decon_core.storage.tables import Array

_ANY_SCORE = 1e-6


@register
class Reworded(Detector):
    name = "reworded"
    summary = "content words and numbers of the question, in any order"
    reads = Reads.OWN
    threshold = Threshold(
        setting="reworded_threshold",
        floor="reworded_lowest_recorded",
        of=(REWORDED, OTHER_NUMBERS),
    )
    kinds = (
        Kind(REWORDED, "its words occur in any order, which does not prove a leak"),
        Kind(
            OTHER_NUMBERS,
            "the same template with different numbers: a different item",
            is_apart=True,
        ),
    )
    scan_settings = ("reworded_lowest_recorded",)
    versions = (("reworded", 4),)
    own_columns = ("question", "answer", *ITEM, "choice_index")
    compares_any_order = True
    advice = (
        "**To find reworded items, use `reworded`.** It finds questions that a person or a model "
        "reworded, if the numbers and some of the rarer words were kept. It reports copies with "
        "other numbers separately. It also flags other items about a similar situation, and "
        "passages without their question. Its matches need review: a score alone never makes them "
        "leaks."
    )

    def own_index(self, records: Iterable[pa.Table], policy: Policy) -> Mapping[str, Array]:
        return index_of((table.to_pylist() for table in records), policy.form)

    def search(self, indexes: Indexes) -> Search:
        policy = indexes.policy
        return RewordedSearch(indexes.own[self.name], policy, policy.reworded_lowest_recorded)

    def visibility(self, texts: RecordTexts, policy: Policy) -> Unmet:
        rows = texts.stored.table(self.own_columns).to_pylist()
        sought = texts_sought(rows, 0, policy.form)
        search = RewordedSearch(arrays_of(sought), policy, _ANY_SCORE)
        answered = [" ".join(filter(None, (row["question"], row["answer"]))) for row in rows]
        records = _scores_of_copies(search, answered)
        whole = questions_with_choices(rows)
        with_choices = _scores_of_copies(search, whole)
        counts = np.array([Text.of(text, policy.form).most_agreeing for text in whole], np.int64)
        threshold = policy.reworded_threshold
        reasons = {
            (few := "too few words and numbers"): counts >= LEAST_COUNT,
            "only words that many items have": with_choices > 0,
            "too little evidence": self.reaches_threshold(with_choices, threshold),
            "found only together with its choices": self.reaches_threshold(records, threshold),
        }
        unmet = first_unmet(reasons)
        for at in np.flatnonzero(unmet.places == unmet.reasons.index(few)).tolist():
            unmet.details[at] = f"{counts[at]} of {LEAST_COUNT}"
        return unmet


def _scores_of_copies(search: RewordedSearch, copies: Sequence[str]) -> Floats:
    """Return for each record the score of a document with this copy of it; 0: not found."""
    distinct = {text: number for number, text in enumerate(dict.fromkeys(copies))}
    findings = search.findings(Batch.of_texts([*distinct]))
    scores = {(finding.document, finding.record): finding.score for finding in findings}
    return np.array(
        [scores.get((distinct[text], record), 0.0) for record, text in enumerate(copies)]
    )
