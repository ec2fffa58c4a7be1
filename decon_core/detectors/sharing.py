"""Documents that share a run of tokens with a text: screened by bytes, tokenized, and compared.

What `ratcliff` and `longest_match` start from, done once for both; and where texts stand as a
whole, which is all that `exact` asks for.

A text that a document contains in full is found in full, whatever comes before or after it. Its
first and last tokens may differ, as letters, signs and line breaks at an edge merge into one token.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from decon_core.config.policy import Policy
from decon_core.corpus.batches import Batch
from decon_core.index.verbatim import Verbatim
from decon_core.kernels import runs, screen
from decon_core.text.forms import formed, original_places
from decon_core.text.tokenizers import Pieces, Tokenizer
from decon_core.text.word_cache import FixedVocabulary

Integers = npt.NDArray[np.int64]

_ROOM = 1 << 12
_NO_PLACES = np.empty((2, 0), np.int64)


@dataclass(frozen=True, eq=False)
class Screened:
    """What may be found in the documents of a batch."""

    content: Callable[[int], bytes]  # of a document, by its number
    is_sharing: npt.NDArray[np.bool_]  # whether it may share an n-gram with a text as it stands
    wholes: Integers  # where documents hold a text as a whole, in order: columns as in `screen`


class Run(NamedTuple):
    """The longest run that a document shares with a text in one of its forms."""

    start: int  # tokens of the document
    stop: int
    n_matched: int  # tokens of the form
    n_tokens: int  # of all of the form
    bytes: tuple[int, int]  # of the document

    @property
    def share(self) -> float:
        return self.n_matched / self.n_tokens


@dataclass(frozen=True, eq=False)
class Shared:
    """A document, and what it shares with each of some texts."""

    number: int  # in the batch
    content: bytes
    pieces: Pieces
    tokens: npt.NDArray[np.uint32]
    wholes: dict[int, Run]  # by text, ascending: those that stand in it whole
    runs: dict[int, list[tuple[int, Run]]]  # of the others, by text: each form with its run

    @property
    def texts(self) -> list[int]:
        return sorted([*self.wholes, *self.runs])

    def run_of(self, text: int) -> Run | None:
        """The run that is the largest share of its form; None when the text is not shared."""
        if text in self.wholes:
            return self.wholes[text]
        # By itself comes first: of equal shares it is that one.
        return max(
            (run for _, run in self.runs.get(text, ())), key=lambda run: run.share, default=None
        )

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
        return formed(content.decode(), self._policy.normalize, self._policy.form).encode()

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
        is_aligned = policy.compares_tokens and verbatim.is_screened
        self._n_tokens = policy.shared_ngram_size if is_aligned else 0
        self._found = np.empty((_ROOM, 3), np.int64)
        self._room = self._eights = np.zeros(0, np.uint64)
        self._places = np.empty((4, screen.STRETCH + 3), np.int64)
        self._best = np.zeros(verbatim.n_rows, np.int64)
        self._place = np.zeros((verbatim.n_rows, 2), np.int64)
        self._touched = np.empty(verbatim.n_rows, np.int64)

    def look(self, batch: Batch) -> Screened:
        """Screen all documents of a batch."""
        content = _Contents(batch, self._policy)
        shares = np.zeros(batch.starts.size, np.uint8)
        wholes = np.concatenate([*self._screened(content, shares)])
        if not self._verbatim.is_screened:
            shares[:] = 1
        shares[wholes[self._are_compared(wholes), screen.DOCUMENT]] = 1
        return Screened(content.of, shares.astype(np.bool_), wholes[np.lexsort(wholes.T[::-1])])

    def _are_compared(self, wholes: Integers) -> npt.NDArray[np.bool_]:
        """Which texts that stand as a whole somewhere are compared by their tokens as well."""
        return self._verbatim.is_compared[wholes[:, screen.TEXT]]

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
            rows = touched[self._are_opened(tokens, touched)]
            found = np.stack([rows, self._best[rows], self._place[rows, runs.DOCUMENT]], axis=1)
            self._best[touched] = 0
            wholes = self._wholes_of(number, screened, pieces)
            if wholes or rows.size:
                by_text = self._runs_of(found, wholes, pieces)
                yield Shared(number, content, pieces, tokens, wholes, by_text)

    def _wholes_of(self, number: int, screened: Screened, pieces: Pieces) -> dict[int, Run]:
        """The texts that a document holds whole, where each first stands."""
        first, last = np.searchsorted(screened.wholes[:, screen.DOCUMENT], [number, number + 1])
        own = screened.wholes[first:last]
        wholes: dict[int, Run] = {}
        for _, text, place in own[self._are_compared(own)].tolist():
            if text not in wholes:
                n = self._verbatim.n_tokens(text)
                edges = self._verbatim.texts.offsets
                end = place + int(edges[text + 1] - edges[text])
                # The tokens that have a part in it.
                start = int(np.searchsorted(pieces.stops, place, side="right"))
                stop = int(np.searchsorted(pieces.starts, end, side="left"))
                wholes[text] = Run(start, stop, n, n, (place, end))
        return wholes

    def _runs_of(
        self, found: Integers, wholes: dict[int, Run], pieces: Pieces
    ) -> dict[int, list[tuple[int, Run]]]:
        """By text; the forms of each in order. `found` has columns: form, length, start."""
        verbatim = self._verbatim
        by_text: dict[int, list[tuple[int, Run]]] = {}
        for form, length, start in found[verbatim.is_compared[found[:, 0]]].tolist():
            text = int(verbatim.text_of[form])
            if text not in wholes:
                place = int(pieces.starts[start]), int(pieces.stops[start + length - 1])
                run = Run(start, start + length, length, verbatim.n_tokens(form), place)
                by_text.setdefault(text, []).append((form, run))
        return by_text

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
        return original_places(text, [*in_form], self._policy.normalize, self._policy.form)


def _first_bytes(content: bytes) -> Integers:
    """Where each character begins: at bytes that do not go on with another."""
    return np.flatnonzero((np.frombuffer(content, np.uint8) & 0xC0) != 0x80)
