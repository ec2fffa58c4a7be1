"""Documents that share a run of tokens with a text: screened by bytes, tokenized, and compared.

What `ratcliff` and `longest_match` start from, done once for both; and where texts stand as a
whole, which is all that `exact` asks for.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from decon_core.batches import Batch
from decon_core.forms import formed, original_places
from decon_core.kernels import runs, screen
from decon_core.policy import Policy
from decon_core.tokens import Pieces, Tokenizer
from decon_core.verbatim import Verbatim
from decon_core.words import FixedVocabulary

Integers = npt.NDArray[np.int64]

_ROOM = 1 << 12


@dataclass(frozen=True, eq=False)
class Batched:
    """The documents of a batch in the form in which they are compared, and what stands in them."""

    data: npt.NDArray[np.uint8]
    starts: Integers
    stops: Integers
    is_sharing: npt.NDArray[np.bool_]  # whether a document shares an n-gram with a text
    occurrences: Integers  # of whole texts, in order: document, byte in `data`, text

    def content(self, number: int) -> bytes:
        return self.data[self.starts[number] : self.stops[number]].tobytes()


@dataclass(frozen=True, eq=False)
class Shared:
    """A document, and the longest run that it shares with each of some texts."""

    number: int  # in the batch
    content: bytes
    pieces: Pieces
    tokens: npt.NDArray[np.uint32]
    texts: Integers  # ascending
    lengths: Integers
    starts: Integers  # token of the document

    def bytes_of(self, start: int, stop: int) -> tuple[int, int]:
        """The bytes behind a range of tokens."""
        return int(self.pieces.starts[start]), int(self.pieces.stops[stop - 1])


class Sharing:
    """Looks through batches. One per thread: it holds scratch arrays."""

    def __init__(self, verbatim: Verbatim, policy: Policy, tokenizer: Tokenizer) -> None:
        self._verbatim = verbatim
        self._policy = policy
        self._tokenizer = tokenizer
        self._vocabulary = FixedVocabulary(verbatim.ids)
        aligned = {"ratcliff", "longest_match"} & {*policy.detectors}
        self._n_tokens = policy.shared_ngram_size if aligned else 0
        self._found = np.empty((_ROOM, 3), np.int64)
        self._best = np.zeros(verbatim.n_texts, np.int64)
        self._place = np.zeros((verbatim.n_texts, 2), np.int64)
        self._touched = np.empty(verbatim.n_texts, np.int64)

    def look(self, batch: Batch) -> Batched:
        """Screen all documents of a batch."""
        content, starts, stops = batch.text, batch.starts, batch.stops
        if self._policy.normalize != "none":
            content, starts, stops = self._formed(batch)
        eights = np.zeros((content.size + screen.SPARE) // 8 + 1, np.uint64)
        data = eights.view(np.uint8)
        data[: content.size] = content
        shares = np.zeros(starts.size, np.uint8)
        found = [*self._screened(data, eights, starts, stops, shares)]
        occurrences = np.concatenate(found)
        order = np.lexsort((occurrences[:, 1], occurrences[:, 2], occurrences[:, 0]))
        is_sharing = shares.astype(np.bool_)
        if self._n_tokens and not self._verbatim.is_screened:
            is_sharing[:] = True
        return Batched(data, starts, stops, is_sharing, occurrences[order])

    def _screened(
        self,
        data: npt.NDArray[np.uint8],
        eights: npt.NDArray[np.uint64],
        starts: Integers,
        stops: Integers,
        shares: npt.NDArray[np.uint8],
    ) -> Iterator[Integers]:
        n_tokens = self._n_tokens if self._verbatim.is_screened else 0
        document = 0
        yield self._found[:0]
        while document < starts.size:
            before = document
            n, document = screen.screen(
                data,
                eights,
                starts,
                stops,
                document,
                self._verbatim.long,
                self._verbatim.short,
                self._verbatim.texts,
                n_tokens,
                shares,
                self._found,
            )
            yield self._found[:n].copy()
            if document == before:
                self._found = np.empty((2 * self._found.shape[0], 3), np.int64)

    def _formed(self, batch: Batch) -> tuple[npt.NDArray[np.uint8], Integers, Integers]:
        contents = [
            formed(batch.text[start:stop].tobytes().decode(), self._policy).encode()
            for start, stop in zip(batch.starts.tolist(), batch.stops.tolist(), strict=True)
        ]
        edges = np.cumsum([0, *map(len, contents)], dtype=np.int64)
        return np.frombuffer(b"".join(contents), np.uint8), edges[:-1], edges[1:]

    def shared(self, batched: Batched) -> Iterator[Shared]:
        """The documents that share a run with a text, in order."""
        for number in np.flatnonzero(batched.is_sharing).tolist():
            content = batched.content(number)
            pieces = self._tokenizer.pieces(content.decode())
            tokens = self._vocabulary.numbers(pieces.ids).astype(np.uint32)
            n = self._longest_runs(tokens)
            texts = np.sort(self._touched[:n])
            lengths, starts = self._best[texts], self._place[texts, runs.DOCUMENT]
            self._best[texts] = 0
            if n:
                yield Shared(number, content, pieces, tokens, texts, lengths, starts)

    def _longest_runs(self, tokens: npt.NDArray[np.uint32]) -> int:
        return runs.longest_runs(
            tokens,
            0,
            tokens.size,
            self._verbatim.aligned,
            self._policy.shared_ngram_size,
            self._best,
            self._place,
            self._touched,
        )

    def compile(self) -> None:
        """Have the kernels compiled that only a document that shares something needs."""
        tokens, slots = np.ones(8, np.uint32), np.zeros(17, np.uint32)
        self._longest_runs(tokens[:0])
        runs.enter_grams(tokens, 0, tokens.size, 5, slots)
        aligned = self._verbatim.aligned.tokens
        runs.covered(tokens, slots, 5, aligned, 0, 0)
        runs.matching_blocks(tokens, aligned[:0], 5, np.empty((1, 3), np.int64))

    def characters(
        self, text: str, content: bytes, places: list[tuple[int, int]]
    ) -> list[tuple[int, int]]:
        """Characters of a document's own text behind bytes of its form."""
        in_form = [
            (_n_characters(content, start), _n_up_to(content, stop)) for start, stop in places
        ]
        return original_places(text, in_form, self._policy)


def _n_characters(content: bytes, stop: int) -> int:
    """Whole characters before a byte."""
    return len(content[:stop].decode(errors="ignore"))


def _n_up_to(content: bytes, stop: int) -> int:
    """Characters before a byte, counting one that the byte cuts."""
    is_cut = stop < len(content) and content[stop] & 0xC0 == 0x80
    return _n_characters(content, stop) + is_cut
