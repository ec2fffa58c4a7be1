"""Write documents as token ids with a loss mask, for trainers: Parquet with one row per document.

The text is the one that was scanned, so spans have the same characters. The parts of a conversation
or of several fields are encoded one by one, with the separators between them, so that a trainer can
take the tokens of a turn, with their mask, into a template of its own.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from decon_core.corpus.documents import Document, Part, joined_parts
from decon_core.corpus.row_json import without_lone_surrogates
from decon_core.corpus.row_texts import Keys, Slot
from decon_core.kernels.arrays import Bools, Integers
from decon_core.mixtures.layouts import Add, Row, RowGroups, id_in, source_in
from decon_core.text.trainer_tokens import TrainerTokenizer

SUFFIX = ".parquet"
NO_LOSS = -100  # the label that PyTorch's cross entropy ignores

# A row group is held in memory until it is full; readers decompress it as a whole.
_GROUP_TOKENS = 4 << 20

_RANGE = [("start", pa.int64()), ("stop", pa.int64())]
MASKS = pa.schema(
    [
        ("id", pa.string()),
        ("source", pa.string()),
        ("input_ids", pa.list_(pa.int32())),
        ("labels", pa.list_(pa.int32())),  # `input_ids`, and -100 where the mask is 0
        ("loss_mask", pa.list_(pa.uint8())),  # 1: train on this token
        ("masked", pa.list_(pa.struct(_RANGE))),  # characters of the text
        ("parts", pa.list_(pa.struct([("path", pa.string()), *_RANGE]))),  # tokens
    ]
)


@dataclass(frozen=True, eq=False)
class Tokens:
    """The tokens of a document and which of them hold a masked character."""

    ids: Integers
    starts: Integers  # bytes of the text that each holds
    stops: Integers
    is_masked: Bools
    parts: list[dict[str, Any]] | None  # path, and range of tokens, of each; None: a single field

    @property
    def labels(self) -> Integers:
        return np.where(self.is_masked, NO_LOSS, self.ids)


def tokens_of(document: Document, masked: Spans, tokenizer: TrainerTokenizer) -> Tokens:
    """Encode a document, and mask every token that holds a part of a masked character."""
    cuts = [edge for part in document.parts for edge in (part.start, part.stop)]
    encoded = tokenizer.encode(document.text, cuts)
    # The first section, before the first part, is empty.
    ranges = [*pairwise(encoded.section_edges)][1::2]
    parts = [
        {"path": part.path, "start": start, "stop": stop}
        for part, (start, stop) in zip(document.parts, ranges, strict=True)
    ]
    pieces = encoded.pieces
    is_masked = encoded.touching(masked)
    return Tokens(pieces.ids, pieces.starts, pieces.stops, is_masked, parts or None)


@contextmanager
def open_masks(
    target: Path, masked: Mapping[int, Spans], tokenizer: TrainerTokenizer
) -> Iterator[tuple[Add, dict[str, int]]]:
    """Open a file of documents with these characters masked, by row.

    Yield what adds a document, and the counts of tokens; both are complete when the block ends.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    counts = {"n_input_tokens": 0, "n_masked_tokens": 0}
    with pq.ParquetWriter(target, MASKS, compression="zstd", use_dictionary=["source"]) as writer:
        groups = RowGroups(writer, MASKS, largest=_GROUP_TOKENS)

        def add(row: Row) -> None:
            spans = masked.get(row.number, ())
            tokens = tokens_of(row.document.without_hidden, spans, tokenizer)
            columns = {
                "id": without_lone_surrogates(id_in(row)),
                "source": without_lone_surrogates(source_in(row)),
                "input_ids": tokens.ids.astype(np.int32),
                "labels": tokens.labels.astype(np.int32),
                "loss_mask": (~tokens.is_masked).astype(np.uint8),
                "masked": [{"start": start, "stop": stop} for start, stop in spans],
                "parts": tokens.parts,
            }
            groups.add(columns, tokens.ids.size)
            counts["n_input_tokens"] += tokens.ids.size
            counts["n_masked_tokens"] += int(tokens.is_masked.sum())

        yield add, counts
        groups.flush()


Spans = Sequence[tuple[int, int]]  # character ranges, half-open


def runs_of(flags: Bools) -> list[tuple[int, int]]:
    """Return the half-open ranges in which flags are set."""
    edges = np.flatnonzero(np.diff(flags, prepend=False, append=False))
    return [(start, stop) for start, stop in edges.reshape(-1, 2).tolist()]


@dataclass(frozen=True, eq=False)
class MaskedText:
    """A document and the characters of it that are masked; separators of parts never are."""

    whole: Document
    is_masked: Bools  # per character

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
