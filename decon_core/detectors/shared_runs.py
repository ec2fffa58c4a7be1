"""Find documents that share a token run with a benchmark text: screen bytes, tokenize, compare.

The shared first step of `ratcliff` and `longest_match`; it also finds verbatim occurrences of whole
texts, which is all that `exact` needs.

A text that a document contains in full is found in full, whatever surrounds it. Its first and last
tokens may differ, because letters, punctuation and line breaks at an edge merge into one token.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from decon_core.config.policy import Policy
from decon_core.detectors.batch_texts import first_bytes
from decon_core.detectors.detector import Span, firsts
from decon_core.kernels import prefilter, token_runs
from decon_core.kernels.arrays import NONE as NOTHING
from decon_core.kernels.arrays import Bools, Bytes, Flags, Floats, Integers
from decon_core.kernels.instructions import LANES
from decon_core.kernels.word_stream import find_beginnings
from decon_core.text.canonical import formed, original_places

if TYPE_CHECKING:
    from decon_core.corpus.batches import Batch
    from decon_core.index.text_index import Verbatim
    from decon_core.text.tokenizers import Pieces, Tokenizer
    from decon_core.text.word_cache import Ragged


# Increased when texts are compared differently: only the scan results of detectors with this in
# their `versions` are then scanned again.
COMPARISON = (("compared", 2),)

_INITIAL_FOUND = 1 << 12
_NO_PLACES = np.empty((2, 0), np.int64)
_TEXT_BITS = 32  # bits of a text's number, in a key with the number of a document
_PLACE_BITS = 40  # bits of a byte's place, in a key with the number of a document


@dataclass(frozen=True, eq=False)
class Screened:
    """The result of screening a batch by bytes."""

    content: Callable[[int], bytes]  # bytes of a document, by its number in the batch
    is_sharing: Bools  # per document: may it share an n-gram with a text
    wholes: Integers  # verbatim occurrences of whole texts, sorted; columns as in `screen`


class Runs(NamedTuple):
    """The longest token runs that documents share with forms of texts, as columns."""

    document: Integers  # its number in the batch
    text: Integers
    start: Integers  # tokens of the document
    stop: Integers
    n_matched: Integers  # matched tokens of the form
    n_tokens: Integers  # all tokens of the form
    first_byte: Integers  # bytes of the document
    last_byte: Integers

    @property
    def share(self) -> Floats:
        return self.n_matched / self.n_tokens

    def take(self, rows: npt.NDArray[np.generic]) -> Runs:
        return Runs(*(column[rows] for column in self))

    def best(self) -> Runs:
        """Return the run with the largest share of each text, by document and text.

        The first of equal ones.
        """
        order = np.lexsort((-self.share, self.text, self.document))
        return self.take(order[firsts(np.column_stack([self.document, self.text])[order])])

    def of_texts(self, documents: Integers, texts: Integers) -> Integers:
        """Return the row of these texts in documents, `NOTHING` if there is none.

        Rows must be by document and text.
        """
        if not self.text.size:
            return np.full(texts.shape, NOTHING)
        known, wanted = (
            (documents << _TEXT_BITS) + texts
            for documents, texts in ((self.document, self.text), (documents, texts))
        )
        row = np.minimum(np.searchsorted(known, wanted), known.size - 1)
        return np.where(known[row] == wanted, row, NOTHING)


_NO_RUNS = Runs(*np.empty((len(Runs._fields), 0), np.int64))


@dataclass(frozen=True, eq=False)
class Shared:
    """The documents of a batch that may share runs with texts, and these runs."""

    documents: Integers  # their numbers in the batch, ascending
    pieces: Pieces  # tokens of all documents, with their bytes
    tokens: Ragged
    wholes: Runs  # runs of the texts that they contain in full, by document and text
    forms: Integers  # forms of other texts, ascending in each document
    runs: Runs  # runs of these forms

    def bytes_of(
        self, documents: Integers, start: Integers, stop: Integers
    ) -> tuple[Integers, Integers]:
        """Return the bytes of ranges of tokens of documents, which are places in `documents`."""
        first = self.tokens.offsets[documents]
        return self.pieces.starts[first + start], self.pieces.stops[first + stop - 1]


class LongestRuns:
    """Finds the longest run that each document shares with each text. One per thread."""

    def __init__(self, texts: token_runs.Texts, opens: Flags, size: int) -> None:
        self._texts, self._opens, self._size = texts, opens, size
        self._longest = token_runs.longest_of(texts.offsets.size - 1)
        self._found = np.empty((_INITIAL_FOUND, 4), np.int64)

    def of(self, tokens: Ragged, documents: Integers) -> Integers:
        """Return rows document, text, start and length, by document and text."""
        found, first = [self._found[:0]], 0
        while first < documents.size:
            n, stop = token_runs.runs_of_documents(
                tokens.values,
                tokens.offsets,
                documents,
                first,
                self._texts,
                self._opens,
                self._size,
                self._longest,
                self._found,
            )
            found.append(self._found[:n].copy())
            if stop == first:  # full
                self._found = np.empty((2 * self._found.shape[0], 4), np.int64)
            first = stop
        rows = np.concatenate(found)
        return rows[np.lexsort((rows[:, 1], rows[:, 0]))]


def best_of(runs: Iterable[Runs]) -> Runs:
    """Return the best run of each text in each document."""
    return Runs(*map(np.concatenate, zip(_NO_RUNS, *runs, strict=True))).best()


class _Contents:
    """The documents of a batch in the policy's form, made on demand."""

    def __init__(self, batch: Batch, policy: Policy) -> None:
        self._batch, self._policy = batch, policy

    def of(self, number: int) -> bytes:
        start, stop = self._batch.starts[number], self._batch.stops[number]
        content = self._batch.text[start:stop].tobytes()
        if self._policy.normalize == "none":
            return content
        return formed(content.decode(), self._policy.normalize, self._policy.form).encode()

    def data(self) -> tuple[Bytes, Integers, Integers]:
        """Return all documents in one array, with start and stop offsets."""
        if self._policy.normalize == "none":
            return self._batch.text, self._batch.starts, self._batch.stops
        contents = [self.of(number) for number in range(self._batch.starts.size)]
        edges = np.cumsum([0, *map(len, contents)], dtype=np.int64)
        return np.frombuffer(b"".join(contents), np.uint8), edges[:-1], edges[1:]


class Sharing:
    """Find shared texts in batches of documents. One per thread: it holds scratch arrays."""

    def __init__(self, verbatim: Verbatim, policy: Policy, tokenizer: Tokenizer) -> None:
        from decon_core.text.word_cache import FixedVocabulary

        self._verbatim = verbatim
        self._policy = policy
        self._tokenizer = tokenizer
        self._vocabulary = FixedVocabulary(verbatim.ids)
        self._windows = ((prefilter.LONG, verbatim.long), (prefilter.SHORT, verbatim.short))
        is_aligned = policy.compares_tokens and verbatim.is_screened
        self._n_tokens = policy.shared_ngram_size if is_aligned else 0
        self._found = np.empty((_INITIAL_FOUND, 3), np.int64)
        self._padding_buffer = np.zeros(0, np.uint8)
        self._places = np.empty((4, prefilter.STRETCH + 8), np.int64)
        self._longest = LongestRuns(verbatim.aligned, verbatim.opens, policy.shared_ngram_size)

    def look(self, batch: Batch) -> Screened:
        """Screen all documents of a batch."""
        content = _Contents(batch, self._policy)
        shares = np.zeros(batch.starts.size, np.uint8)
        wholes = np.concatenate([*self._screen(content, shares)])
        if not self._verbatim.is_screened:
            shares[:] = 1
        shares[wholes[self._are_compared(wholes), prefilter.DOCUMENT]] = 1
        return Screened(content.of, shares.astype(np.bool_), wholes[np.lexsort(wholes.T[::-1])])

    def _are_compared(self, wholes: Integers) -> Bools:
        """Return which of these occurrences are of texts that are also compared by tokens."""
        return self._verbatim.is_compared[wholes[:, prefilter.TEXT]]

    def _screen(self, content: _Contents, shares: Flags) -> Iterator[Integers]:
        data, starts, stops = content.data()
        n = int(stops.max(initial=0))
        data, texts = self._padded(data, n), self._verbatim.texts
        documents = prefilter.Documents(data, starts, stops)
        yield self._found[:0]
        found = self._find_windows(data, n)
        for (size, windows), (places, numbers) in zip(self._windows, found, strict=True):
            hits = prefilter.Hits(size, places, numbers, np.searchsorted(places, starts))
            prefilter.fetch(numbers, windows, texts)
            document = 0
            while document < starts.size:
                document_before = document
                n_found, document = prefilter.screen(
                    documents, hits, document, windows, texts, self._n_tokens, shares, self._found
                )
                yield self._found[:n_found].copy()
                if document == document_before:  # full
                    self._found = np.empty((2 * self._found.shape[0], 3), np.int64)

    def _padded(self, data: Bytes, n: int) -> Bytes:
        """Return `n` bytes with spare bytes behind them.

        Without a copy where the reader left enough room.
        """
        if data.size >= n + LANES and data.flags.writeable:
            return data
        if self._padding_buffer.size < n + LANES:
            self._padding_buffer = np.zeros(n + LANES, np.uint8)
        self._padding_buffer[:n] = data[:n]
        return self._padding_buffer

    def _find_windows(self, data: Bytes, n: int) -> list[Integers]:
        """Find the long, then the short windows in `n` bytes: rows (position, window number)."""
        verbatim, texts = self._verbatim, self._verbatim.texts.data
        every, left, *both = self._places
        found: list[list[Integers]] = [[_NO_PLACES] for _ in self._windows]
        for start in range(0, n, prefilter.STRETCH):
            stop = min(start + prefilter.STRETCH, n)
            n_every = find_beginnings(data, start, stop, every)
            n_left = prefilter.sift(data, every[:n_every], verbatim.beginnings, left)
            for rows, (size, windows) in zip(found, self._windows, strict=True):
                n_windows = prefilter.find_windows(data, left[:n_left], size, windows, texts, *both)
                rows.append(np.stack([array[:n_windows] for array in both]))
        return [np.concatenate(rows, axis=1) for rows in found]

    def shared(self, screened: Screened) -> Shared:
        """Return the documents that may share a run with a text, and these runs."""
        from decon_core.text.word_cache import Ragged, edges_of

        documents = np.flatnonzero(screened.is_sharing)
        contents = [screened.content(number).decode() for number in documents.tolist()]
        pieces, n_tokens = self._tokenizer.joined_pieces(contents)
        tokens = Ragged(self._vocabulary.numbers(pieces.ids), edges_of(n_tokens))
        wholes = self._wholes_of(documents, screened, pieces, tokens)
        found = self._longest.of(tokens, np.arange(documents.size))
        number, forms, start, length = found.T
        text, document = self._verbatim.text_of[forms].astype(np.int64), documents[number]
        kept = self._verbatim.is_compared[forms]
        kept &= wholes.of_texts(document, text) == NOTHING
        number, forms, start, length = found[kept].T
        stop, first = start + length, tokens.offsets[number]
        runs = Runs(
            document[kept],
            text[kept],
            start,
            stop,
            length,
            self._verbatim.n_tokens(forms),
            pieces.starts[first + start],
            pieces.stops[first + stop - 1],
        )
        return Shared(documents, pieces, tokens, wholes, forms, runs)

    def _wholes_of(
        self, documents: Integers, screened: Screened, pieces: Pieces, tokens: Ragged
    ) -> Runs:
        """Return the texts that documents contain in full, each at its first occurrence."""
        rows = screened.wholes[self._are_compared(screened.wholes)]
        document, text, place = rows[firsts(rows[:, : prefilter.PLACE])].T
        n_tokens, edges = self._verbatim.n_tokens(text), self._verbatim.texts.offsets
        end = place + edges[text + 1] - edges[text]
        # All tokens that overlap it.
        number = np.searchsorted(documents, document)
        number_of_token = np.repeat(np.arange(documents.size), tokens.lengths)
        starts, stops = (
            (number_of_token << _PLACE_BITS) + edge for edge in (pieces.starts, pieces.stops)
        )
        first = tokens.offsets[number]
        start = np.searchsorted(stops, (number << _PLACE_BITS) + place, side="right") - first
        stop = np.searchsorted(starts, (number << _PLACE_BITS) + end, side="left") - first
        return Runs(document, text, start, stop, n_tokens, n_tokens, place, end)

    def compile(self) -> None:
        """Compile the kernels that run only for documents with a shared run."""
        from decon_core.text.word_cache import Ragged

        tokens, no_texts = np.ones(8, np.uint32), np.empty(0, np.int64)
        self._longest.of(Ragged(tokens[:0], np.zeros(2, np.int64)), np.arange(1))
        aligned = self._verbatim.aligned
        token_runs.covered(tokens, 5, aligned, no_texts, tokens, np.zeros(1, np.int64))
        token_runs.matching_blocks(tokens, aligned.tokens[:0], 5, np.empty((1, 3), np.int64))

    def characters(self, text: str, content: bytes, places: Sequence[Span]) -> list[Span]:
        """Map byte ranges of a document's form to characters of its text; cut ones are included."""
        in_form = [*places]
        if not content.isascii():
            edges = first_bytes(content)
            starts, stops = np.array(places, np.int64).reshape(-1, 2).T
            first = np.searchsorted(edges, starts, side="right") - 1
            in_form = [*zip(first.tolist(), np.searchsorted(edges, stops).tolist(), strict=True)]
        return original_places(text, in_form, self._policy.normalize, self._policy.form)
