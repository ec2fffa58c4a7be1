"""The `ratcliff` detector (Apertus): the share of a prompt in blocks common with a document.

The blocks are those of Ratcliff and Obershelp, in the same order in both, over the whole document.
A prompt is skipped early only when all its common runs together could not reach the floor.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import sliding_window_view

from decon_core.config.detector_registry import Reads, Threshold, register
from decon_core.config.policy import Policy
from decon_core.config.rounding import reaches
from decon_core.detectors.detector import Detector, Finding, Indexes, Search, sort_findings
from decon_core.detectors.shared_runs import COMPARISON, BatchTexts, Run, Shared
from decon_core.detectors.visibility import Integers, RecordTexts, Unmet, first_unmet
from decon_core.errors import Problem
from decon_core.index.record_texts import NAMES, PROMPT, QUESTION
from decon_core.kernels import grams, token_runs

if TYPE_CHECKING:
    from decon_core.index.ngram_counts import GramTable
    from decon_core.index.text_index import Verbatim

Numbers = npt.NDArray[np.uint32]

_LONG_DOCUMENT = 1 << 12  # tokens; for shorter ones, finding what to skip takes as long as aligning


@register
class Ratcliff(Detector):
    name = "ratcliff"
    summary = "similarity of strings, by Ratcliff and Obershelp"
    reads = Reads.TOKENS
    threshold = Threshold(setting="ratcliff_threshold", floor="ratcliff_floor")
    scan_settings = (
        *("normalize", "shared_ngram_size"),
        *("ratcliff_min_block", "ratcliff_prompt", "ratcliff_floor"),
    )
    versions = COMPARISON
    advice = (
        "**To find edited items, `ratcliff`.** Of all detectors it finds the most edited items: "
        "other words, names and numbers, shuffled sentences, and formulas in a text of another "
        "language. It compares unchanged text, so capitals and unusual "
        'characters hide an item (`normalize = "decon"` fixes that, but loses some formulas). '
        "It also flags items that share their setting with another, and nearly every copy of a "
        "question with other names and numbers, which is another item: review what only it finds "
        "before you remove it."
    )

    def setting_problems(self, policy: Policy) -> Iterator[Problem]:
        yield from super().setting_problems(policy)
        if policy.ratcliff_min_block > policy.shared_ngram_size:
            expected = f"at most shared_ngram_size ({policy.shared_ngram_size})"
            yield Problem("policy.ratcliff_min_block", repr(policy.ratcliff_min_block), expected)

    def search(self, indexes: Indexes) -> Search:
        return _RatcliffSearch(indexes)

    def visibility(self, texts: RecordTexts, policy: Policy) -> Unmet:
        prompt, size = texts.uses[_searched(policy)], policy.shared_ngram_size
        too_short = "question too short" if prompt is texts.uses[QUESTION] else "prompt too short"
        requirements = {
            "empty question": prompt.has_text,
            too_short: prompt.n_tokens >= size,
            "nothing to screen by": prompt.opens,
        }
        return first_unmet(requirements).note_tokens(prompt.n_tokens, {too_short: size})


def _searched(policy: Policy) -> int:
    """Return the kind of text that is searched for as the prompt."""
    return PROMPT if policy.searches_prompts else QUESTION


class _RatcliffSearch(Search):
    def __init__(self, indexes: Indexes) -> None:
        self._verbatim, self._policy = indexes.texts, indexes.policy
        self._kind = _searched(indexes.policy)

    def find(self, texts: BatchTexts) -> list[Finding]:
        """Return a finding for each prompt whose aligned share reaches the floor."""
        return [one for document in texts.shared for one in self._in_document(document)]

    def _in_document(self, document: Shared) -> list[Finding]:
        return sort_findings(self._findings(document))

    def _findings(self, document: Shared) -> Iterator[Finding]:
        aligner = _Aligner(document, self._verbatim, self._policy)
        for text in document.texts:
            uses = [*self._verbatim.uses(text, (self._kind,))]
            found = aligner.best(text) if uses else None
            if found is None:
                continue
            for use in uses:
                yield Finding(
                    document=document.number,
                    part=use.part,
                    record=use.record,
                    score=found.share,
                    question_overlap=found.share,
                    n_matched=found.n_matched,
                    question_tokens=found.n_tokens,
                    total_tokens=found.n_tokens,
                    question=(found.start, found.stop),
                    question_bytes=found.bytes,
                    looked_for=None if self._kind == QUESTION else NAMES[self._kind],
                )


class _Aligner:
    """Align one document with prompts, each in all its forms."""

    def __init__(self, document: Shared, verbatim: Verbatim, policy: Policy) -> None:
        self._document, self._aligned = document, verbatim.aligned
        self._min_block, self._floor = policy.ratcliff_min_block, policy.ratcliff_floor
        self._matcher = _BlockMatcher(document.tokens, self._min_block)
        self._slots = np.zeros(2 * document.tokens.size + 1, np.uint32)
        token_runs.enter_grams(
            document.tokens, 0, document.tokens.size, self._min_block, self._slots
        )

    def best(self, text: int) -> Run | None:
        """Return the run (first to last block) of the best-covered form; None below the floor."""
        if text in self._document.wholes:
            return self._document.wholes[text]
        aligned = [self._align(form) for form, _ in self._document.runs[text]]
        runs_found = [run for run in aligned if run is not None]
        # The text without a leading space comes first and wins ties.
        return max(runs_found, key=lambda run: run.share, default=None)

    def _align(self, form: int) -> Run | None:
        tokens, aligned, min_block = self._document.tokens, self._aligned, self._min_block
        start, stop = int(aligned.offsets[form]), int(aligned.offsets[form + 1])
        max_matched = token_runs.covered(
            tokens, self._slots, min_block, aligned.tokens, start, stop
        )
        if not reaches(max_matched / (stop - start), self._floor):
            return None
        blocks = self._matcher.blocks(aligned.tokens[start:stop])
        n_matched = int(blocks[:, token_runs.LENGTH].sum())
        if not reaches(n_matched / (stop - start), self._floor):
            return None
        first, last = blocks[0], blocks[-1]
        span = (
            int(first[token_runs.DOCUMENT]),
            int(last[token_runs.DOCUMENT] + last[token_runs.LENGTH]),
        )
        return Run(*span, n_matched, stop - start, self._document.bytes_of(*span))


class _BlockMatcher:
    """The matching blocks between one document and prompts.

    A document that contains many prompts is long, and aligning all of it with each prompt would be
    quadratic in its length. Of a long document only the pieces covered by n-grams of the prompt are
    aligned, separated by a token that no prompt has: every block lies within one piece.
    """

    def __init__(self, tokens: Numbers, min_block: int) -> None:
        self._tokens, self._min_block = tokens, min_block
        self._is_long = tokens.size > _LONG_DOCUMENT

    def blocks(self, prompt: Numbers) -> Integers:
        """Return the matching blocks, with columns as in `runs`."""
        from decon_core.text.word_cache import UNKNOWN

        if not self._is_long:
            return self._aligned(self._tokens, prompt)
        positions = self._positions(prompt)
        if positions.size > self._tokens.size // 4:
            return self._aligned(self._tokens, prompt)
        # n-grams that touch or overlap form one piece.
        is_first = np.diff(positions, prepend=-self._tokens.size) > self._min_block
        starts = positions[is_first]
        stops = positions[np.append(is_first[1:], True)] + self._min_block
        offsets = np.append(0, np.cumsum(stops - starts + 1))
        pieces = np.full(offsets[-1], UNKNOWN, np.uint32)
        for start, stop, at in zip(starts.tolist(), stops.tolist(), offsets.tolist(), strict=False):
            pieces[at : at + stop - start] = self._tokens[start:stop]
        blocks = self._aligned(pieces, prompt)
        piece = np.searchsorted(offsets, blocks[:, token_runs.DOCUMENT], side="right") - 1
        blocks[:, token_runs.DOCUMENT] += starts[piece] - offsets[piece]
        return blocks

    def _positions(self, prompt: Numbers) -> Integers:
        """Return the sorted positions of the prompt's n-grams in the document."""
        table, offsets, positions = self._grams
        numbers = np.unique(table.find(sliding_window_view(prompt, self._min_block).ravel()))
        numbers = numbers[numbers != grams.NONE]
        return np.sort(
            np.concatenate([positions[offsets[n] : offsets[n + 1]] for n in numbers.tolist()])
        )

    @cached_property
    def _grams(self) -> tuple[GramTable, Integers, Integers]:
        """The document's n-grams: table, offsets per n-gram, positions."""
        from decon_core.index.ngram_counts import GramTable

        table = GramTable(self._tokens, np.array([0, self._tokens.size]), self._min_block)
        numbers = table.numbers[: self._tokens.size - self._min_block + 1]
        counts = np.bincount(numbers, minlength=table.first.size)
        offsets = np.append(0, np.cumsum(counts))
        return table, offsets, np.argsort(numbers, kind="stable")

    def _aligned(self, tokens: Numbers, prompt: Numbers) -> Integers:
        blocks = np.empty((min(tokens.size, prompt.size) // self._min_block + 1, 3), np.int64)
        return blocks[: token_runs.matching_blocks(tokens, prompt, self._min_block, blocks)]
