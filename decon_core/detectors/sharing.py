"""Documents that share a run of tokens with a text: screened by bytes, tokenized, and compared.

What `ratcliff` and `longest_match` start from, done once for both; and where texts stand as a
whole, which is all that `exact` asks for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
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
_NO_PLACES = np.empty((2, 0), np.int64)


@dataclass(frozen=True, eq=False)
class Screened:
    """What may be found in the documents of a batch."""

    content: Callable[[int], bytes]  # of a document, by its number
    is_sharing: npt.NDArray[np.bool_]  # whether it may share an n-gram with a text as it stands
    wholes: Integers  # where documents hold a text as a whole, in order: columns as in `screen`


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

    def run_of(self, text: int) -> range | None:
        """The tokens that it shares with a text; None when they are not compared."""
        at = int(np.searchsorted(self.texts, text))
        if at == self.texts.size or self.texts[at] != text:
            return None
        start = int(self.starts[at])
        return range(start, start + int(self.lengths[at]))

    def bytes_of(self, start: int, stop: int) -> tuple[int, int]:
        """The bytes behind a range of tokens."""
        return int(self.pieces.starts[start]), int(self.pieces.stops[stop - 1])


class _Contents:
    """The documents of a batch in their form, made when they are asked for."""

    def __init__(self, batch: Batch, policy: Policy) -> None:
        self._batch, self._policy = batch, policy

    def of(self, number: int) -> bytes:
        start, stop = self._batch.starts[number], self._batch.stops[number]
        content = self._batch.text[start:stop].tobytes()
        if self._policy.normalize == "none":
            return content
        return formed(content.decode(), self._policy).encode()

    def data(self) -> tuple[npt.NDArray[np.uint8], Integers, Integers]:
        """All of them, one after the other."""
        if self._policy.normalize == "none":
            return self._batch.text, self._batch.starts, self._batch.stops
        contents = [self.of(number) for number in range(self._batch.starts.size)]
        edges = np.cumsum([0, *map(len, contents)], dtype=np.int64)
        return np.frombuffer(b"".join(contents), np.uint8), edges[:-1], edges[1:]


class Sharing:
    """Looks through batches. One per thread: it holds scratch arrays."""

    def __init__(self, verbatim: Verbatim, policy: Policy, tokenizer: Tokenizer) -> None:
        self._verbatim = verbatim
        self._policy = policy
        self._tokenizer = tokenizer
        self._vocabulary = FixedVocabulary(verbatim.ids)
        is_aligned = {"ratcliff", "longest_match"} & {*policy.detectors} and verbatim.is_screened
        self._n_tokens = policy.shared_ngram_size if is_aligned else 0
        self._found = np.empty((_ROOM, 3), np.int64)
        self._room = self._eights = np.zeros(0, np.uint64)
        self._places = np.empty((4, screen.STRETCH + 3), np.int64)
        self._best = np.zeros(verbatim.n_texts, np.int64)
        self._place = np.zeros((verbatim.n_texts, 2), np.int64)
        self._touched = np.empty(verbatim.n_texts, np.int64)

    def look(self, batch: Batch) -> Screened:
        """Screen all documents of a batch."""
        content = _Contents(batch, self._policy)
        shares = np.zeros(batch.starts.size, np.uint8)
        wholes = np.concatenate([*self._screened(content, shares)])
        if not self._verbatim.is_screened:
            shares[:] = 1
        return Screened(content.of, shares.astype(np.bool_), wholes[np.lexsort(wholes.T[::-1])])

    def _screened(self, content: _Contents, shares: npt.NDArray[np.uint8]) -> Iterator[Integers]:
        data, starts, stops = content.data()
        n = int(stops.max(initial=0))
        data, self._eights = self._with_spare(data, n)
        verbatim = self._verbatim
        yield self._found[:0]
        sizes = ((screen.LONG, verbatim.long), (screen.SHORT, verbatim.short))
        for (size, windows), (places, numbers) in zip(sizes, self._there(n), strict=True):
            firsts = np.searchsorted(places, starts)
            screen.fetch(numbers, windows, verbatim.texts)
            document = 0
            while document < starts.size:
                before = document
                n_found, document = screen.screen(
                    data,
                    starts,
                    stops,
                    places,
                    numbers,
                    firsts,
                    document,
                    size,
                    windows,
                    verbatim.texts,
                    self._n_tokens,
                    shares,
                    self._found,
                )
                yield self._found[:n_found].copy()
                self._make_room(document == before)

    def _with_spare(
        self, data: npt.NDArray[np.uint8], n: int
    ) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint64]]:
        """So many bytes with more behind them, as they are and in numbers of eight.

        In their place, where a reader left room.
        """
        n_eights = (n + screen.SPARE) // 8 + 1
        if data.size < 8 * n_eights or data.ctypes.data % 8 or not data.flags.writeable:
            if self._room.size < n_eights:
                self._room = np.zeros(n_eights, np.uint64)
            self._room.view(np.uint8)[:n] = data[:n]
            return self._room.view(np.uint8), self._room
        return data, data[: 8 * n_eights].view(np.uint64)

    def _there(self, n: int) -> list[npt.NDArray[np.int64]]:
        """The long windows in so many bytes, then the short ones: at which place, which one."""
        verbatim, text_eights = self._verbatim, self._verbatim.texts.data.view(np.uint64)
        every, left, *both = self._places
        sizes = ((screen.LONG, verbatim.long), (screen.SHORT, verbatim.short))
        found: list[list[Integers]] = [[_NO_PLACES] for _ in sizes]
        for start in range(0, n, screen.STRETCH):
            stop = min(start + screen.STRETCH, n)
            n_every = screen.find_beginnings(self._eights, start, stop, every)
            n_left = screen.sift(self._eights, every[:n_every], verbatim.beginnings, left)
            for own, (size, windows) in zip(found, sizes, strict=True):
                n_there = screen.find_windows(
                    self._eights,
                    left[:n_left],
                    size,
                    windows.filter,
                    windows.slots,
                    windows.first,
                    text_eights,
                    *both,
                )
                own.append(np.stack([array[:n_there] for array in both]))
        return [np.concatenate(own, axis=1) for own in found]

    def _make_room(self, is_full: bool) -> None:
        if is_full:
            self._found = np.empty((2 * self._found.shape[0], 3), np.int64)

    def shared(self, screened: Screened) -> Iterator[Shared]:
        """The documents that share a run with a text, in order."""
        for number in np.flatnonzero(screened.is_sharing).tolist():
            content = screened.content(number)
            pieces = self._tokenizer.pieces(content.decode())
            tokens = self._vocabulary.numbers(pieces.ids).astype(np.uint32)
            n = self._longest_runs(tokens)
            touched = np.sort(self._touched[:n])
            texts = touched[self._are_opened(tokens, touched)]
            lengths, starts = self._best[texts], self._place[texts, runs.DOCUMENT]
            self._best[touched] = 0
            if texts.size:
                yield Shared(number, content, pieces, tokens, texts, lengths, starts)

    def _are_opened(self, tokens: npt.NDArray[np.uint32], texts: Integers) -> npt.NDArray[np.bool_]:
        """Which texts share an n-gram with a document that opens a comparison."""
        size, aligned = self._policy.shared_ngram_size, self._verbatim.aligned
        slots = np.zeros(2 * tokens.size + 1, np.uint32)
        runs.enter_grams(tokens, 0, tokens.size, size, slots)
        are_opened = np.zeros(texts.size, np.uint8)
        runs.find_opened(
            tokens,
            slots,
            size,
            aligned.tokens,
            aligned.offsets,
            texts,
            self._verbatim.opens,
            are_opened,
        )
        return are_opened.astype(np.bool_)

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
        self._are_opened(tokens, np.empty(0, np.int64))
        runs.enter_grams(tokens, 0, tokens.size, 5, slots)
        aligned = self._verbatim.aligned.tokens
        runs.covered(tokens, slots, 5, aligned, 0, 0)
        runs.matching_blocks(tokens, aligned[:0], 5, np.empty((1, 3), np.int64))

    def characters(
        self, text: str, content: bytes, places: list[tuple[int, int]]
    ) -> list[tuple[int, int]]:
        """Characters of a document's own text behind bytes of its form, with those that are cut."""
        edges = _first_bytes(content)
        starts, stops = np.array(places, np.int64).reshape(-1, 2).T
        first = np.searchsorted(edges, starts, side="right") - 1
        in_form = zip(first.tolist(), np.searchsorted(edges, stops).tolist(), strict=True)
        return original_places(text, [*in_form], self._policy)


def _first_bytes(content: bytes) -> Integers:
    """Where each character begins: at bytes that do not go on with another."""
    return np.flatnonzero((np.frombuffer(content, np.uint8) & 0xC0) != 0x80)
