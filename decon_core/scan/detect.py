"""Runs the chosen detectors on a batch; they share its tokens and its screening."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from decon_core.config.detector_registry import Reads, in_order
from decon_core.corpus.batches import Batch
from decon_core.detectors.batch_texts import BatchTexts, first_bytes
from decon_core.detectors.detector import Indexes, Nominations, Span, detector
from decon_core.kernels.arrays import Integers, Numbers, distinct
from decon_core.scan.matches import Columns, Locate, columns_of
from decon_core.text.tokenizers import Tokenizer, Words
from decon_core.text.word_cache import Encoder, Ragged

if TYPE_CHECKING:
    from decon_core.detectors.shared_runs import Sharing

_FORMED = (Reads.TEXTS, Reads.TOKENS)


class DetectorSet:
    """The chosen detectors, for use in one thread: it holds scratch arrays."""

    def __init__(self, indexes: Indexes, tokenizer: Tokenizer) -> None:
        self._form, self._grams = indexes.policy.form, indexes.grams
        detectors = [detector(name) for name in in_order(indexes.policy.detectors)]
        self._searches = [(chosen, chosen.search(indexes)) for chosen in detectors]
        self._sharing: Sharing | None = None
        if indexes.verbatim is not None and any(chosen.reads in _FORMED for chosen in detectors):
            from decon_core.detectors.shared_runs import Sharing

            self._sharing = Sharing(indexes.verbatim, indexes.policy, tokenizer)

    @property
    def terms(self) -> Words | None:
        """How the encoder is to number words besides, if a detector wants that."""
        return next((search.terms for _, search in self._searches if search.terms), None)

    def find(self, batch: Batch, tokens: Ragged, encoder: Encoder) -> list[Columns]:
        """Return the matches of each detector in document order; `tokens` are canonical tokens."""
        texts, tables = BatchTexts(batch, tokens, self._sharing, encoder, self._grams), []
        words_at = partial(texts.words, form=self._form)
        for chosen, search in self._searches:
            if len(nominations := search.nominate(texts)):
                locate = self._locate(chosen.reads, texts, nominations)
                tables.append(columns_of(batch, nominations, chosen.name, locate, words_at))
        return tables

    def _locate(self, reads: Reads, texts: BatchTexts, nominations: Nominations) -> Locate:
        """Return what maps places that a detector finds to characters of a document."""
        if reads in _FORMED:
            return texts.characters
        if reads is Reads.ORIGINAL:
            return _characters
        if reads is Reads.OWN:
            return lambda _number, _text, characters: characters
        texts.find_places(distinct(nominations.document).tolist())
        return partial(_places_of_tokens, texts)

    def take_counts(self) -> tuple[Numbers, Integers]:
        """Return indexed n-grams and their document counts since the last call, and reset them."""
        counts = [search.take_counts() for _, search in self._searches]
        grams, n_documents = zip(*counts, strict=True)
        return np.concatenate(grams), np.concatenate(n_documents)

    def compile(self, batch: Batch, documents: Ragged, encoder: Encoder) -> None:
        """Compile all kernels, independent of what the documents contain."""
        self.compile_all_but_judging(documents)
        self.compile_judging(documents)
        self.find(batch, documents, encoder)
        self.take_counts()

    def compile_all_but_judging(self, documents: Ragged) -> None:
        for _, search in self._searches:
            search.compile(documents)
        if self._sharing:
            self._sharing.compile()

    def compile_judging(self, documents: Ragged) -> None:
        for _, search in self._searches:
            search.compile_judging(documents)

    @property
    def is_ready_to_judge(self) -> bool:
        return all(search.is_ready_to_judge for _, search in self._searches)


def _places_of_tokens(
    texts: BatchTexts, number: int, text: str, tokens: Sequence[Span]
) -> list[Span]:
    """Map canonical tokens of a document to its characters."""
    del text
    places = texts.places(number)
    return [places.characters(*span) for span in tokens]


def _characters(number: int, text: str, places: Sequence[Span]) -> list[Span]:
    """Map bytes of an unchanged document to characters."""
    del number
    edges = first_bytes(text.encode())
    characters = np.searchsorted(edges, np.array(places, np.int64).reshape(-1, 2))
    return [(start, stop) for start, stop in characters.tolist()]
