"""The `ratcliff` detector (Apertus): the share of a prompt in blocks common with a document.

The blocks are those of Ratcliff and Obershelp, in the same order in both, over the whole document.
A prompt is skipped early only when all its common runs together could not reach the floor.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from decon_core.config.detector_registry import Reads, Threshold, register
from decon_core.config.policy import Policy
from decon_core.config.rounding import reaches
from decon_core.detectors.batch_texts import BatchTexts
from decon_core.detectors.detector import Detector, Indexes, Nominations, Search
from decon_core.detectors.shared_runs import COMPARISON, Runs, Shared, best_of
from decon_core.detectors.visibility import RecordTexts, Unmet, first_unmet
from decon_core.errors import Problem
from decon_core.index.record_texts import NAMES, PROMPT, QUESTION
from decon_core.kernels import grams, token_runs
from decon_core.kernels.arrays import Integers, Numbers, distinct

if TYPE_CHECKING:
    from decon_core.index.ngram_counts import GramTable


_LONG_DOCUMENT = 1 << 12  # tokens; for shorter ones, finding what to skip takes as long as aligning


@register
class Ratcliff(Detector):
    name = "ratcliff"
    summary = "Ratcliff-Obershelp string similarity"
    reads = Reads.TOKENS
    threshold = Threshold(setting="ratcliff_threshold", floor="ratcliff_lowest_recorded")
    scan_settings = (
        "normalize",
        "shared_ngram_size",
        "ratcliff_min_block",
        "ratcliff_prompt",
        "ratcliff_lowest_recorded",
    )
    versions = COMPARISON
    advice = (
        "**To find edited items with a published method, use `ratcliff`.** It finds items with a "
        "few changed words or with different names or numbers. It finds nearly all items with "
        "shuffled sentences. If the words between formulas were translated, it finds more items "
        "than any other detector. It compares unchanged text, so capitals and unusual characters "
        'hide an item (`normalize = "decon"` fixes this, but some formulas are then missed). It '
        "also flags other items about a similar situation, and nearly every copy of a question "
        "with different names and numbers, which is a different item. Review the items that only "
        "`ratcliff` finds before you remove them."
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
            "no words to search for": prompt.opens,
        }
        return first_unmet(requirements).note_tokens(prompt.n_tokens, {too_short: size})


def _searched(policy: Policy) -> int:
    """Return the kind of text that is searched for as the prompt."""
    return PROMPT if policy.searches_prompts else QUESTION


class _RatcliffSearch(Search):
    def __init__(self, indexes: Indexes) -> None:
        self._verbatim, self._policy = indexes.texts, indexes.policy
        self._kind = _searched(indexes.policy)
        uses = np.append(0, np.cumsum(indexes.texts.use_kind == self._kind))
        self._is_prompt = np.diff(uses[indexes.texts.use_offsets]) > 0

    def nominate(self, texts: BatchTexts) -> Nominations:
        """Return a finding for each prompt whose aligned share reaches the floor."""
        runs = best_of([texts.shared.wholes, self._aligned(texts.shared)])
        row, use = self._verbatim.uses_of(runs.text, (self._kind,), runs.document)
        runs = runs.take(row)
        return Nominations(
            document=runs.document,
            part=self._verbatim.use_part[use],
            record=self._verbatim.use_record[use],
            score=runs.share,
            question_overlap=runs.share,
            n_matched=runs.n_matched,
            question_tokens=runs.n_tokens,
            tokens=np.column_stack([runs.start, runs.stop]),
            places=np.column_stack([runs.first_byte, runs.last_byte]),
            searched_text=np.full(row.size, NAMES[self._kind], object),
        )

    def _aligned(self, shared: Shared) -> Runs:
        """Return runs (first to last block) of the forms of prompts that reach the floor."""
        kept = np.flatnonzero(self._is_prompt[shared.runs.text])
        documents = np.searchsorted(shared.documents, shared.runs.document[kept])
        first = np.flatnonzero(np.diff(documents, prepend=-1))
        rows, aligned = [kept[:0]], [np.empty((0, 3), np.int64)]
        for document, of_document in zip(
            documents[first].tolist(), np.split(kept, first[1:]), strict=False
        ):
            forms, n_tokens = shared.forms[of_document], shared.runs.n_tokens[of_document]
            may_reach, blocks = self._blocks(shared.tokens.row(document), forms, n_tokens)
            rows.append(of_document[may_reach])
            aligned.append(blocks)
        runs = shared.runs.take(np.concatenate(rows))
        start, stop, n_matched = np.concatenate(aligned).T
        documents = np.searchsorted(shared.documents, runs.document)
        first_byte, last_byte = shared.bytes_of(documents, start, stop)
        runs = runs._replace(
            start=start,
            stop=stop,
            n_matched=n_matched,
            first_byte=first_byte,
            last_byte=last_byte,
        )
        return runs.take(reaches(runs.share, self._policy.ratcliff_lowest_recorded))

    def _blocks(
        self, tokens: Numbers, forms: Integers, n_tokens: Integers
    ) -> tuple[Integers, Integers]:
        """Align forms with a document.

        Returns those that may reach the floor, and for each of them the first and last token of its
        blocks, and how many tokens they have.
        """
        matcher = _BlockMatcher(tokens, self._policy.ratcliff_min_block)
        covered, edges = self._covered(tokens, forms, int(n_tokens.sum()))
        n_gaps = np.append(0, np.cumsum(covered == token_runs.GAP))
        n_covered = np.diff(edges - n_gaps[edges])
        may_reach = np.flatnonzero(
            reaches(n_covered / n_tokens, self._policy.ratcliff_lowest_recorded)
        )
        of_tokens: dict[bytes, tuple[int, int, int]] = {}
        blocks = []
        for at in may_reach.tolist():
            of_form = covered[edges[at] : edges[at + 1]]
            key = of_form.tobytes()
            if key not in of_tokens:
                found = matcher.blocks(of_form)
                first, last = found[0], found[-1]
                of_tokens[key] = (
                    int(first[token_runs.DOCUMENT]),
                    int(last[token_runs.DOCUMENT] + last[token_runs.LENGTH]),
                    int(found[:, token_runs.LENGTH].sum()),
                )
            blocks.append(of_tokens[key])
        return may_reach, np.array(blocks, np.int64).reshape(-1, 3)

    def _covered(self, tokens: Numbers, forms: Integers, n_tokens: int) -> tuple[Numbers, Integers]:
        """Return the tokens of forms that may be in a block, with gaps, and where each begins."""
        kept, edges = np.empty(n_tokens, np.uint32), np.empty(forms.size + 1, np.int64)
        size, aligned = self._policy.ratcliff_min_block, self._verbatim.aligned
        token_runs.covered(tokens, size, aligned, forms, kept, edges)
        return kept[: edges[-1]], edges


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
        numbers = distinct(table.find(sliding_window_view(prompt, self._min_block).ravel()))
        numbers = numbers[numbers != grams.NONE]
        return np.sort(
            np.concatenate([positions[offsets[n] : offsets[n + 1]] for n in numbers.tolist()])
        )

    @cached_property
    def _grams(self) -> tuple[GramTable, Integers, Integers]:
        """The document's n-grams: table, offsets per n-gram, positions."""
        from decon_core.index.ngram_counts import number_grams
        from decon_core.text.word_cache import Ragged

        whole = Ragged(self._tokens, np.array([0, self._tokens.size]))
        table, numbers = number_grams(whole, self._min_block)
        numbers = numbers[: self._tokens.size - self._min_block + 1]
        counts = np.bincount(numbers, minlength=len(table))
        offsets = np.append(0, np.cumsum(counts))
        return table, offsets, np.argsort(numbers, kind="stable")

    def _aligned(self, tokens: Numbers, prompt: Numbers) -> Integers:
        blocks = np.empty((min(tokens.size, prompt.size) // self._min_block + 1, 3), np.int64)
        return blocks[: token_runs.matching_blocks(tokens, prompt, self._min_block, blocks)]
