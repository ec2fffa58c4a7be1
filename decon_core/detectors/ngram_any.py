"""The `ngram_any` detector (GPT-3): one question n-gram in a document makes a leak.

Tokens are canonical. The longest common run is stored, so one scan serves sizes 8 and 13.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from decon_core.config.detector_registry import Reads, Threshold, register
from decon_core.config.policy import Policy
from decon_core.detectors.batch_texts import BatchTexts
from decon_core.detectors.detector import Detector, Indexes, Nominations, Search
from decon_core.detectors.shared_runs import LongestRuns
from decon_core.detectors.visibility import RecordTexts, Unmet, first_unmet
from decon_core.index.record_texts import QUESTION
from decon_core.kernels.arrays import Integers, read_only
from decon_core.kernels.grams import screen_runs

if TYPE_CHECKING:
    from decon_core.corpus.sketch.pack_sketch import PackSketch, Possible
    from decon_core.kernels.arrays import Flags, Words64
    from decon_core.kernels.ngram_filters import Rows
    from decon_core.text.word_cache import Ragged


@register
class NgramAny(Detector):
    name = "ngram_any"
    summary = "token runs of the benchmark that are at least as long as the threshold"
    reads = Reads.CANONICAL
    threshold = Threshold(
        setting="ngram_any_size", floor="ngram_any_lowest_recorded", is_length=True
    )
    scan_settings = ("ngram_any_lowest_recorded",)
    advice = (
        "**To compare with published numbers, use `ngram_any`.** A single shared run of tokens is "
        "enough, so it finds more of the items truncated to a quarter of their question than any "
        "other detector. With runs of 13 tokens, it misses every shorter question and, if one word "
        "in five was edited, about half of the longer ones. It flags most copies of a question "
        "with other names and numbers, because they share such a run. With runs of 8 tokens, it "
        "finds more items than any other detector, but also flags a third of the hard negatives, "
        "because many questions share short phrases."
    )

    def search(self, indexes: Indexes) -> Search:
        return _NgramSearch(indexes)

    def is_bounded(self, policy: Policy) -> bool:
        """A run that is shorter than an n-gram of the sketch need not contain any n-gram."""
        return policy.ngram_any_lowest_recorded >= policy.ngram_size

    def possible_blocks(self, indexes: Indexes, sketch: PackSketch) -> Possible:
        """A block is possible if it may contain all n-grams of a long enough run."""
        from decon_core.corpus.sketch.shard_sketch import stable_numbers
        from decon_core.kernels.ngram_filters import bound_runs

        texts, policy = indexes.texts.canonical, indexes.policy
        tokens = stable_numbers(np.append(indexes.grams.ids, 0))[texts.tokens.astype(np.int64) - 1]

        def look_up(rows: Rows, is_read: Flags, possible: Words64) -> bool:
            return bound_runs(
                tokens,
                texts.tokens,
                texts.offsets,
                policy.ngram_any_lowest_recorded,
                policy.ngram_size,
                rows,
                is_read,
                possible,
            )

        return sketch.possible(texts.offsets.size - 1, look_up)

    def visibility(self, texts: RecordTexts, policy: Policy) -> Unmet:
        n_tokens = texts.uses[QUESTION].n_canonical
        needed = {
            "question too short": policy.ngram_any_lowest_recorded,
            "question shorter than the threshold": policy.ngram_any_size,
        }
        long_enough = {reason: n_tokens >= least for reason, least in needed.items()}
        unmet = first_unmet({"empty question": n_tokens > 0, **long_enough})
        return unmet.note_tokens(n_tokens, needed)


class _NgramSearch(Search):
    def __init__(self, indexes: Indexes) -> None:
        self._verbatim = verbatim = indexes.texts
        self._size = indexes.policy.ngram_any_lowest_recorded
        texts = verbatim.canonical
        opens = read_only(np.ones(texts.tokens.size, np.uint8))  # any n-gram counts
        self._longest = LongestRuns(texts, opens, self._size)

    def nominate(self, texts: BatchTexts) -> Nominations:
        """Return all questions that share a run with a document."""
        verbatim = self._verbatim
        document, text, first, n_matched = self._runs(texts.tokens).T
        length = np.diff(verbatim.canonical.offsets)[text]
        row, use = verbatim.uses_of(text, (QUESTION,), document)
        share = (n_matched / length)[row]
        run = np.column_stack([first, first + n_matched])[row]
        return Nominations(
            document=document[row],
            part=verbatim.use_part[use],
            record=verbatim.use_record[use],
            score=share,
            question_overlap=share,
            n_matched=n_matched[row],
            question_tokens=length[row],
            tokens=run,
            places=run,
        )

    def _runs(self, documents: Ragged) -> Integers:
        """Return the longest runs of each document: columns document, text, start and length."""
        verbatim = self._verbatim
        shares = np.zeros(len(documents), np.uint8)
        screen_runs(
            documents.values,
            documents.offsets,
            self._size,
            verbatim.canonical_pairs,
            verbatim.canonical_filter,
            shares,
        )
        return self._longest.of(documents, np.flatnonzero(shares))

    def compile(self, documents: Ragged) -> None:
        self._longest.of(documents, np.arange(1))
