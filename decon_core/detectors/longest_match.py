"""The `longest_match` detector (WMT study): the longest common token run over the field's length.

A record has two fields, question and answer (source and target); the higher share is the score.
"""

from __future__ import annotations

import numpy as np

from decon_core.config.detector_registry import Reads, Threshold, register
from decon_core.config.policy import Policy
from decon_core.config.rounding import reaches
from decon_core.detectors.batch_texts import BatchTexts
from decon_core.detectors.detector import ABSENT, Detector, Indexes, Nominations, Search, firsts
from decon_core.detectors.shared_runs import COMPARISON, best_of
from decon_core.detectors.visibility import RecordTexts, Unmet, first_unmet, joined_names
from decon_core.index.record_texts import ANSWER, FIELDS, NAMES, QUESTION
from decon_core.kernels.arrays import NONE as NOTHING


@register
class LongestMatch(Detector):
    name = "longest_match"
    summary = "longest contiguous match, as a share of the field"
    reads = Reads.TOKENS
    threshold = Threshold(
        setting="longest_match_threshold",
        floor="longest_match_lowest_recorded",
        is_exclusive=True,
    )
    scan_settings = ("normalize", "shared_ngram_size", "longest_match_lowest_recorded")
    versions = COMPARISON
    compares_fields = True
    finds_answers = True
    advice = (
        "**To clean a test set, use `longest_match`.** It measures the question and the answer "
        "separately. It therefore finds questions without answers, and long answers even if their "
        "question was changed. It measures the longest run of matching text; edits throughout a "
        'question, line breaks and changes of case break up this run (`normalize = "whitespace"` '
        'ignores line breaks, and `"decon"` also ignores case). If a question or an answer quotes '
        "a passage at length, the passage alone is flagged."
    )

    def search(self, indexes: Indexes) -> Search:
        return _LongestMatchSearch(indexes)

    def visibility(self, texts: RecordTexts, policy: Policy) -> Unmet:
        """One searchable field is enough. The detail names the searchable fields."""
        question, answer = (texts.uses[kind] for kind in FIELDS)
        is_long = [use.n_tokens >= policy.shared_ngram_size for use in (question, answer)]
        searched = {
            NAMES[QUESTION]: is_long[0] & question.opens,
            NAMES[ANSWER]: is_long[1] & answer.opens,
        }
        requirements = {
            "empty question": question.has_text | answer.has_text,
            "question and answer too short": is_long[0] | is_long[1],
            "no words to search for": searched[NAMES[QUESTION]] | searched[NAMES[ANSWER]],
        }
        return first_unmet(requirements, joined_names(searched))


class _LongestMatchSearch(Search):
    def __init__(self, indexes: Indexes) -> None:
        self._verbatim, self._floor = (
            indexes.texts,
            indexes.policy.longest_match_lowest_recorded,
        )

    def nominate(self, texts: BatchTexts) -> Nominations:
        """Return a finding for each record with either field's share at or above the floor."""
        verbatim = self._verbatim
        runs = best_of([texts.shared.wholes, texts.shared.runs])
        reaching = runs.take(reaches(runs.share, self._floor))
        row, use = verbatim.uses_of(reaching.text, FIELDS, reaching.document)
        if not use.size:
            return Nominations.of([])
        document = reaching.document[row]
        part, record = verbatim.use_part[use].astype(np.int64), verbatim.use_record[use]
        first = firsts(np.column_stack([document, part, record]))
        document, part, record = document[first], part[first], record[first]
        fields = verbatim.fields(part, record)
        row = runs.of_texts(document, fields)
        has_run = row != NOTHING
        length = np.where(fields == NOTHING, 0, verbatim.n_tokens(fields))
        length = np.where(has_run, runs.n_tokens[row], length)
        # Not searchable is not the same as not found.
        is_searched = (fields != NOTHING) & verbatim.is_compared[fields]
        share = np.where(has_run & is_searched, runs.share[row], 0.0)
        overlap = np.where(is_searched, share, ABSENT)
        best = np.where(share[ANSWER] > share[QUESTION], ANSWER, QUESTION)
        at = np.arange(record.size)
        tokens, places = (
            np.where(has_run, [edge[row] for edge in edges], ABSENT).T.reshape(-1, 4)
            for edges in ((runs.start, runs.stop), (runs.first_byte, runs.last_byte))
        )
        return Nominations(
            document=document,
            part=part,
            record=record,
            score=share[best, at],
            question_overlap=overlap[QUESTION],
            answer_overlap=overlap[ANSWER],
            n_matched=np.where(has_run, runs.n_matched[row], 0)[best, at],
            question_tokens=length[QUESTION],
            total_tokens=length.sum(axis=0),
            tokens=tokens,
            places=places,
        )
