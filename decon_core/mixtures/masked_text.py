"""The text of a document with some characters masked: what is left, and where it was."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from decon_core.corpus.documents import Document, Part, joined_parts
from decon_core.corpus.row_texts import Keys, Slot

Integers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Spans = Sequence[tuple[int, int]]  # character ranges, half-open


def runs_of(flags: Flags) -> list[tuple[int, int]]:
    """Return the half-open ranges in which flags are set."""
    edges = np.flatnonzero(np.diff(flags, prepend=False, append=False))
    return [(start, stop) for start, stop in edges.reshape(-1, 2).tolist()]


@dataclass(frozen=True, eq=False)
class MaskedText:
    """A document and the characters of it that are masked; separators of parts never are."""

    whole: Document
    is_masked: Flags  # per character

    @staticmethod
    def of(document: Document, spans: Spans = ()) -> MaskedText:
        """Return a document with these characters masked."""
        is_masked = np.zeros(len(document.text), np.bool_)
        for start, stop in spans:
            is_masked[start:stop] = True
        return MaskedText(document, is_masked)

    @property
    def spans(self) -> list[tuple[int, int]]:
        """The masked characters as ascending, disjoint ranges."""
        return runs_of(self.is_masked)

    @cached_property
    def _left(self) -> list[tuple[Part, Integers]]:
        """The parts of which something is left, and the places of these characters."""
        left = []
        for part in self.whole.parts:
            places = np.flatnonzero(~self.is_masked[part.start : part.stop]) + part.start
            if places.size:
                left.append((part, places))
        return left

    @cached_property
    def remainder(self) -> Document:
        """The document without the masked characters; parts of which nothing is left are gone."""
        text = self.whole.text
        joined, parts = joined_parts(
            (Slot(part.keys, "".join(map(text.__getitem__, places.tolist()))), part.is_hidden)
            for part, places in self._left
        )
        return Document(self.whole.row, self.whole.id, joined, None, parts)

    def with_spans(self, spans: Spans) -> MaskedText:
        """Mask these characters of the remainder as well."""
        is_masked = self.is_masked.copy()
        for _, places, start, stop in self._within_parts(spans):
            is_masked[places[start:stop]] = True
        return replace(self, is_masked=is_masked)

    def emptied(self) -> list[Part]:
        """Return the parts of which characters are masked and no letter or digit is left."""
        text = self.whole.text
        left = dict(self._left)
        none = np.empty(0, np.int64)
        return [
            part
            for part in self.whole.parts
            if self.is_masked[part.start : part.stop].any()
            and not any(text[at].isalnum() for at in left.get(part, none).tolist())
        ]

    def without_turns(self, turns: Collection[Keys]) -> MaskedText:
        """Mask all parts of some turns."""
        is_masked = self.is_masked.copy()
        for part in self.whole.parts:
            if any(part.keys[: len(turn)] == turn for turn in turns):
                is_masked[part.start : part.stop] = True
        return replace(self, is_masked=is_masked)

    def parts_with(self, spans: Spans) -> list[Part]:
        """Return the parts with these characters of the remainder."""
        return [part for part, _, _, _ in self._within_parts(spans)]

    def _within_parts(self, spans: Spans) -> Iterator[tuple[Part, Integers, int, int]]:
        """Yield each span in each part that it touches, and the places of the part's characters."""
        for (part, places), left in zip(self._left, self.remainder.parts, strict=True):
            for start, stop in spans:
                if start < left.stop and stop > left.start:
                    first = max(start, left.start) - left.start
                    yield part, places, first, min(stop, left.stop) - left.start
