"""A detector in one file, added from outside: a document that begins as a question does."""

from __future__ import annotations

import numpy as np

from decon_core.config.detector_registry import Reads, Threshold
from decon_core.config.rounding import reaches
from decon_core.detectors.detector import Detector, Finding, Nominations, Search
from decon_core.detectors.visibility import first_unmet
from decon_core.index.record_texts import QUESTION


class FirstSentence(Detector):
    name = "first_sentence"
    summary = "the first sentence, as a share of the question"
    reads = Reads.TEXTS
    threshold = Threshold(setting="first_sentence_threshold", floor="first_sentence_floor")
    scan_settings = ("normalize", "first_sentence_floor")
    own_settings = (("first_sentence_threshold", 0.5), ("first_sentence_floor", 0.2))
    advice = "**To find documents that begin alike, `first_sentence`.**"

    def search(self, indexes):
        return _Search(indexes, self.setting(indexes.policy, "first_sentence_floor"))

    def visibility(self, texts, policy):
        question = texts.uses[QUESTION]
        requirements = {
            "empty question": question.has_text,
            "no words to search for": question.is_whole,
        }
        return first_unmet(requirements)


class _Search(Search):
    def __init__(self, indexes, floor):
        verbatim = indexes.texts
        data, edges = verbatim.texts.data.tobytes(), verbatim.texts.offsets.tolist()
        self._questions = {}
        for text in range(verbatim.use_offsets.size - 1):
            question = data[edges[text] : edges[text + 1]]
            _, uses = verbatim.uses_of(np.array([text]), (QUESTION,), np.zeros(1, np.int64))
            uses = [*zip(verbatim.use_part[uses], verbatim.use_record[uses], strict=True)]
            if uses and reaches(_share(question), floor):
                self._questions.setdefault(_beginning(question), []).append((question, uses))

    def nominate(self, texts):
        findings = (
            Finding(
                document=number,
                part=int(part),
                record=int(record),
                score=_share(question),
                question_overlap=_share(question),
                n_matched=1,
                question_tokens=len(question.split()),
                question_place=(0, len(beginning)),
                kind="first sentence",
            )
            for number in range(texts.batch.starts.size)
            if (beginning := _beginning(texts.screened.content(number))) in self._questions
            for question, uses in self._questions[beginning]
            for part, record in uses
        )
        return Nominations.of(findings)


def _beginning(text):
    return text[: text.find(b".") + 1]


def _share(question):
    return len(_beginning(question)) / max(len(question), 1)
