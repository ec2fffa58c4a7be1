"""A batch of documents as detectors read it: what several detectors need is made once."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from decon_core.kernels.arrays import Integers
from decon_core.text.canonical import canonical

if TYPE_CHECKING:
    from decon_core.corpus.batches import Batch
    from decon_core.detectors.detector import Span
    from decon_core.detectors.shared_runs import Screened, Shared, Sharing
    from decon_core.index.joined_index import Search as GramIndex
    from decon_core.kernels.gram_runs import Hits
    from decon_core.text.characters import Form
    from decon_core.text.word_cache import Encoder, Places, Ragged


class BatchTexts:
    """The documents of a batch, their tokens and n-grams, and the runs shared with texts."""

    def __init__(
        self,
        batch: Batch,
        tokens: Ragged,
        sharing: Sharing | None,
        encoder: Encoder | None = None,
        grams: GramIndex | None = None,
    ) -> None:
        self.batch, self.tokens = batch, tokens  # canonical tokens
        self.encoder = encoder  # whose latest batch this is
        self._sharing, self._grams = sharing, grams
        self._word_places: dict[int, Places] = {}
        self._words: dict[tuple[int, int, int], str] = {}

    @property
    def _shares(self) -> Sharing:
        if self._sharing is None:
            raise RuntimeError("no chosen detector reads texts")
        return self._sharing

    @cached_property
    def hits(self) -> Hits:
        """The n-grams of the index in the documents."""
        if self._grams is None:
            raise RuntimeError("no index of n-grams")
        return self._grams.hits(self.tokens)

    @cached_property
    def screened(self) -> Screened:
        """The documents in the policy's form, screened by bytes."""
        return self._shares.look(self.batch)

    @cached_property
    def shared(self) -> Shared:
        """The documents that may share a run of tokens with a text, and these runs."""
        return self._shares.shared(self.screened)

    def places(self, number: int) -> Places:
        """Return the words of a document, and those of each of its canonical tokens."""
        self.find_places([number])
        return self._word_places[number]

    def find_places(self, numbers: Sequence[int]) -> None:
        """Find the words of several documents, which takes less time than one after the other."""
        new = [number for number in numbers if number not in self._word_places]
        if not new:
            return
        if self.encoder is None:
            raise ValueError("the encoder is needed to find the words of a match")
        places = self.encoder.places_of(new, [*map(self.batch.text_at, new)])
        self._word_places.update(zip(new, places, strict=True))

    def words(self, number: int, text: str, span: Span, form: Form) -> str:
        """Return the canonical words at characters of a document."""
        key = (number, *span)
        if key not in self._words:
            self._words[key] = canonical(text[slice(*span)], form)
        return self._words[key]

    def characters(self, number: int, text: str, places: Sequence[Span]) -> list[Span]:
        """Map byte ranges of a document's form to characters of its text."""
        return self._shares.characters(text, self.screened.content(number), places)


def first_bytes(content: bytes) -> Integers:
    """Return the byte offset of each UTF-8 character: every byte that is no continuation byte."""
    return np.flatnonzero((np.frombuffer(content, np.uint8) & 0xC0) != 0x80)
