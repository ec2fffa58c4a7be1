"""Encode whole texts as a trainer does, and find the tokens that hold given characters.

The scan encodes canonical text; a trainer encodes the text as it is. A token here is a range of the
text's bytes, so that one that holds only a part of a character is treated like any other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise

import numpy as np

from decon_core.errors import ConfigError, Problem
from decon_core.kernels.arrays import Bools
from decon_core.text.tokenizers import (
    NO_PIECES,
    BytePieces,
    Pieces,
    TokenizerFile,
    load_tokenizer,
)


@dataclass(frozen=True, eq=False)
class TrainerTokenizer:
    """A trainer's tokenizer, and the special tokens that it puts around a text."""

    tokenizer: BytePieces | TokenizerFile
    before: tuple[int, ...] = ()
    after: tuple[int, ...] = ()

    @property
    def fingerprint(self) -> str:
        """A hash of the file, which also says which special tokens there are."""
        return self.tokenizer.fingerprint

    @cached_property
    def is_lossless(self) -> bool:
        """Return whether tokens decode to the text that was encoded."""
        return self.tokenizer.is_lossless()

    def decode(self, ids: Sequence[int]) -> str:
        return self.tokenizer.decode(ids)

    def encode(self, text: str, cuts: Sequence[int] = ()) -> Encoded:
        """Encode a text, each section between `cuts` (characters, ascending) for itself.

        No token spans a cut: the tokens of a section are those of its text alone.
        """
        edges = [0, *cuts, len(text)]
        sections, n_bytes = [], 0
        known = {"": NO_PIECES}  # half of the sections of a conversation are its separators
        for start, stop in pairwise(edges):
            section = text[start:stop]
            if section not in known:
                known[section] = self.tokenizer.pieces(section)
            pieces = known[section]
            sections.append(Pieces(pieces.ids, pieces.starts + n_bytes, pieces.stops + n_bytes))
            n_bytes += len(section.encode())
        # Special tokens hold no byte of the text.
        at_start = np.zeros(len(self.before), np.int64)
        first = Pieces(np.array(self.before, np.int64), at_start, at_start)
        at_end = np.full(len(self.after), n_bytes, np.int64)
        last = Pieces(np.array(self.after, np.int64), at_end, at_end)
        n_tokens = np.cumsum([pieces.ids.size for pieces in (first, *sections)])
        every = Pieces.joined([first, *sections, last])
        return Encoded(text, every, tuple(n_tokens.tolist()))


@dataclass(frozen=True, eq=False)
class Encoded:
    """A text with its tokens, and the tokens at which its sections begin and the last one ends."""

    text: str
    pieces: Pieces
    section_edges: tuple[int, ...]

    def touching(self, spans: Sequence[tuple[int, int]]) -> Bools:
        """Return for each token whether it holds any byte of these characters.

        `spans`: character ranges, ascending and disjoint.
        """
        is_touching = np.zeros(self.pieces.ids.size, np.bool_)
        for start, stop in byte_ranges(self.text, spans):
            is_touching |= (self.pieces.starts < stop) & (self.pieces.stops > start)
        return is_touching


def byte_ranges(text: str, spans: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yield the UTF-8 byte range of each character range (ascending and disjoint)."""
    at = n_bytes = 0
    for start, stop in spans:
        first = n_bytes + len(text[at:start].encode())
        at, n_bytes = stop, first + len(text[start:stop].encode())
        yield first, n_bytes


@lru_cache(maxsize=4)
def load_trainer_tokenizer(name: str, *, add_special_tokens: bool, where: str) -> TrainerTokenizer:
    """Load a bundled vocabulary, a tokenizer.json or a hub model; else ConfigError."""
    tokenizer = load_tokenizer(name, where=where)
    if isinstance(tokenizer, TokenizerFile):
        before, after = tokenizer.special_tokens() if add_special_tokens else ((), ())
        return TrainerTokenizer(tokenizer.untrimmed(), tuple(before), tuple(after))
    if not isinstance(tokenizer, BytePieces):
        expected = "a tokenizer with a vocabulary, as used to train models"
        raise ConfigError(Problem(where, repr(name), expected))
    if add_special_tokens:
        found = f"{name!r}, a bundled vocabulary, which puts no special tokens around a text"
        remedy = "give the path of its tokenizer.json, or remove add_special_tokens"
        raise ConfigError(Problem(where, found, "a tokenizer with special tokens", remedy))
    return TrainerTokenizer(tokenizer)
