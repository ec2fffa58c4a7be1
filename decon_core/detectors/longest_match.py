"""The `longest_match` detector (WMT study): the longest common token run over the field's length.

A record has two fields, question and answer (source and target); the higher share is the score.
"""

from __future__ import annotations

from collections.abc import Iterator

from decon_core.config.detector_registry import Reads, Threshold, register
from decon_core.config.policy import Policy
from decon_core.config.rounding import reaches
from decon_core.detectors.detector import Detector, Finding, Indexes, Search
from decon_core.detectors.shared_runs import COMPARISON, BatchTexts, Shared
from decon_core.detectors.visibility import RecordTexts, Unmet, first_unmet, joined_names
from decon_core.index.record_texts import ANSWER, FIELDS, NAMES, QUESTION


@register
class LongestMatch(Detector):
    name = "longest_match"
    summary = "longest contiguous match, as a share of the field"
    reads = Reads.TOKENS
    threshold = Threshold(
        setting="longest_match_threshold", floor="longest_match_floor", is_exclusive=True
    )
    scan_settings = ("normalize", "shared_ngram_size", "longest_match_floor")
    versions = COMPARISON
    compares_fields = True
    advice = (
        "**To clean a test set, `longest_match`.** Question and answer are measured separately, so "
        "it finds questions without answers, and long answers even if their question was changed. "
        "Edits spread over a question, a line break or another case cut the run that it measures "
        '(`normalize = "whitespace"` fixes the line breaks, `"decon"` also the case). A passage '
        "that a question or an answer quotes at length is flagged even without them."
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
            "no field long enough": is_long[0] | is_long[1],
            "nothing to screen by": searched[NAMES[QUESTION]] | searched[NAMES[ANSWER]],
        }
        return first_unmet(requirements, joined_names(searched))


class _LongestMatchSearch(Search):
    def __init__(self, indexes: Indexes) -> None:
        self._verbatim, self._floor = indexes.texts, indexes.policy.longest_match_floor

    def find(self, texts: BatchTexts) -> list[Finding]:
        """Return a finding for each record with either field's share at or above the floor."""
        return [one for document in texts.shared for one in self._in_document(document)]

    def _in_document(self, document: Shared) -> Iterator[Finding]:
        matched_records: set[tuple[int, int]] = set()
        for text in document.texts:
            run = document.run_of(text)
            if run is None or not reaches(run.share, self._floor):
                continue
            uses = self._verbatim.uses(text, FIELDS)
            matched_records |= {(use.part, use.record) for use in uses}
        for part, record in sorted(matched_records):
            yield self._finding(document, part, record)

    def _finding(self, document: Shared, part: int, record: int) -> Finding:
        verbatim = self._verbatim
        texts = verbatim.fields(part, record)
        runs = [document.run_of(text) if text >= 0 else None for text in texts]
        lengths = [
            run.n_tokens if run else verbatim.n_tokens(text) if text >= 0 else 0
            for text, run in zip(texts, runs, strict=True)
        ]
        # None: not searchable, which is not the same as not found.
        scores = [
            (run.share if run else 0.0) if text >= 0 and verbatim.is_compared[text] else None
            for text, run in zip(texts, runs, strict=True)
        ]
        best_field = max(FIELDS, key=lambda field: scores[field] or 0.0)
        question, answer = runs
        matched = runs[best_field]
        return Finding(
            document=document.number,
            part=part,
            record=record,
            score=scores[best_field] or 0.0,
            question_overlap=scores[QUESTION],
            answer_overlap=scores[ANSWER],
            n_matched=matched.n_matched if matched else 0,
            question_tokens=lengths[QUESTION],
            total_tokens=sum(lengths),
            question=(question.start, question.stop) if question else None,
            answer=(answer.start, answer.stop) if answer else None,
            question_bytes=question.bytes if question else None,
            answer_bytes=answer.bytes if answer else None,
        )
