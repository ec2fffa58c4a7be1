"""The `exact` detector (GAPERON): count the verbatim occurrences of an item's texts in a document.

It searches for the question, the question followed by its correct answer, and the last sentence of
the question followed by the answer. The score is how informative the text is (by idf): a text of
common phrases also occurs in documents unrelated to the item.
"""

from __future__ import annotations

import numpy as np

from decon_core.config.detector_registry import Reads, Threshold, register
from decon_core.config.policy import Policy
from decon_core.config.rounding import reaches
from decon_core.detectors.batch_texts import BatchTexts
from decon_core.detectors.detector import ABSENT, Detector, Indexes, Nominations, Search, firsts
from decon_core.detectors.visibility import RecordTexts, Unmet, first_unmet, joined_names
from decon_core.index.record_texts import NAMES, WHOLE
from decon_core.kernels import prefilter


@register
class Exact(Detector):
    name = "exact"
    summary = "the exact text, if it is informative enough"
    reads = Reads.TEXTS
    threshold = Threshold(setting="exact_threshold")
    scan_settings = ("normalize",)
    finds_answers = True
    advice = (
        "**To count occurrences, use `exact`.** A single changed character hides an item, so the "
        "counts are a lower bound, not a measure of how clean a corpus is. With `normalize = "
        '"decon"`, it ignores line breaks, case and punctuation. It flagged no hard negatives, '
        "because questions made of common phrases do not reach its threshold."
    )

    def search(self, indexes: Indexes) -> Search:
        return _ExactSearch(indexes)

    def visibility(self, texts: RecordTexts, policy: Policy) -> Unmet:
        """One informative text is enough. The detail names the texts that count."""
        uses = {NAMES[kind]: texts.uses[kind] for kind in WHOLE}
        informative = {
            name: use.is_whole & reaches(use.weight, policy.exact_threshold)
            for name, use in uses.items()
        }
        requirements = {
            "empty question": np.any([use.has_text for use in uses.values()], axis=0),
            "no words to search for": np.any([use.is_whole for use in uses.values()], axis=0),
            "not informative enough": np.any([*informative.values()], axis=0),
        }
        return first_unmet(requirements, joined_names(informative))


class _ExactSearch(Search):
    def __init__(self, indexes: Indexes) -> None:
        self._verbatim = indexes.texts

    def nominate(self, texts: BatchTexts) -> Nominations:
        """Return one finding per document, record and text."""
        wholes, verbatim = texts.screened.wholes, self._verbatim
        first = firsts(wholes[:, : prefilter.PLACE])
        counts = np.diff(first, append=len(wholes))
        document, text, start = wholes[first].T
        stop = start + np.diff(verbatim.texts.offsets)[text]
        row, use = verbatim.uses_of(text, WHOLE, document)
        return Nominations(
            document=document[row],
            part=verbatim.use_part[use],
            record=verbatim.use_record[use],
            score=verbatim.use_weight[use],
            question_overlap=np.ones(row.size),
            n_matched=counts[row],
            question_tokens=np.zeros(row.size, np.int64),
            tokens=np.full((row.size, 2), ABSENT),
            places=np.column_stack([start, stop])[row],
            searched_text=np.array(NAMES, object)[verbatim.use_kind[use]],
        )
