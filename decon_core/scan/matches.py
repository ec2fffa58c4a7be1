"""Converts the matches of a batch to rows of scan results, with character positions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import sha256
from itertools import groupby
from operator import itemgetter
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from decon_core.config.detector_registry import get, in_order
from decon_core.corpus.batches import Batch
from decon_core.detectors.detector import ABSENT, Nominations, Span
from decon_core.kernels.arrays import Bools, Integers
from decon_core.schemas import MATCHES
from decon_core.storage.tables import no_rows

_TEXTS = ("question", "answer", "passage")
_EDGES = ("start", "stop")
_OF_PLACE = ("doc_id", "slot_kind", "words")
_NO_SPAN = (ABSENT, ABSENT)
LABELS = ["benchmark", "config", "split", "instance_index", "fingerprint", "is_correct"]

Columns = dict[str, Any]  # arrays of equal length


# Returns the characters of a document, given by its number in the batch and its text, that some
# places are: spans in the unit in which a detector reads documents.
Locate = Callable[[int, str, Sequence[Span]], Sequence[Span]]
# Returns the canonical words at characters of such a document.
WordsAt = Callable[[int, str, Span], str]


def columns_of(
    batch: Batch, found: Nominations, detector: str, locate: Locate, words_at: WordsAt
) -> Columns:
    """Return columns of a scan result of what a detector found, without labels of item, shard."""
    n = len(found)
    tokens, places = (
        np.hstack([spans, np.full((n, 2 * len(_TEXTS) - spans.shape[1]), ABSENT)])
        for spans in (found.tokens, found.places)
    )
    columns: Columns = {
        "part": found.part.astype(np.int32),
        "record": found.record,
        "kind": np.full(n, found.kind, object),
        "searched_text": np.full(n, found.searched_text, object),
        "matched": _objects(found.matched or [None] * n),
        "base_score": found.score,
        "question_overlap": found.question_overlap,
        "answer_overlap": np.full(n, found.answer_overlap),
        "passage_overlap": np.full(n, found.passage_overlap),
        "n_matched": found.n_matched,
        "n_grams": found.question_tokens if found.n_grams is None else found.n_grams,
        "question_tokens": found.question_tokens,
        "total_tokens": found.question_tokens if found.total_tokens is None else found.total_tokens,
    }
    columns |= zip([f"{name}_{edge}" for name in _TEXTS for edge in _EDGES], tokens.T, strict=True)
    return columns | _located(batch, found.document, detector, places, locate, words_at)


def _located(
    batch: Batch,
    documents: Integers,
    detector: str,
    places: Integers,
    locate: Locate,
    words_at: WordsAt,
) -> Columns:
    """Return rows, ids, character spans, parts and digests of matches.

    Many records may be found at one place of a document, which is looked up once.
    """
    if (np.diff(documents) < 0).any():
        raise ValueError(f"the findings of {detector} are not sorted by document")
    # A passage that a leak does not need is no part of the text that a verdict is about.
    needs_passage = "passage" in get(detector).needed_parts
    distinct, place_of = _distinct(np.column_stack([documents, places]))
    located: list[tuple[Any, ...]] = []
    for number, rows in groupby(distinct.tolist(), itemgetter(0)):
        text, is_hidden = batch.text_at(number), batch.is_second(number)
        path = batch.only_path(int(batch.rows[number]))
        document = batch.document(number) if path is None else None
        offset = document.stretches[is_hidden][1] if document else 0
        of_document = document and document.id, "hidden" if is_hidden else "visible"
        in_rows = [[*zip(row[1::2], row[2::2], strict=True)] for row in rows]
        there = [span for row in in_rows for span in row if span[0] != ABSENT]
        characters = iter(locate(number, text, there))
        for row in in_rows:
            words: list[str] = []
            parts: list[str | None] = []
            edges: list[int] = []
            for start, _ in row:
                if start == ABSENT:
                    words.append("")
                    parts.append(None)
                    edges += _NO_SPAN
                    continue
                span = next(characters)
                is_in_id = len(words) < len(_TEXTS) - 1 or needs_passage
                words.append(words_at(number, text, span) if is_in_id else "")
                part = document.part_at(offset + span[0]) if document else None
                parts.append(part.path if part else path)
                edges += [offset + edge for edge in span]
            located.append((*of_document, digest_of(words), *parts, *edges))
    names = [*_OF_PLACE, *(f"{name}_part" for name in _TEXTS)]
    in_columns = [*zip(*located, strict=True)] or [()] * (len(names) + 2 * len(_TEXTS))
    columns: Columns = dict(zip(names, map(_objects, in_columns), strict=False))
    for at, name in enumerate(f"{name}_char_{edge}" for name in _TEXTS for edge in _EDGES):
        columns[name] = np.array(in_columns[len(names) + at], np.int64)
    of_rows = {"row": batch.rows[documents], "detector": _objects([detector] * documents.size)}
    return {name: values[place_of] for name, values in columns.items()} | of_rows


def _distinct(rows: Integers) -> tuple[Integers, Integers]:
    """Return the distinct rows, sorted, and for each row its number among them."""
    order = np.lexsort(rows.T[::-1])
    in_order = rows[order]
    is_new = np.append(True, (in_order[1:] != in_order[:-1]).any(axis=1))[: len(rows)]
    number_of = np.empty(len(rows), np.int64)
    number_of[order] = np.cumsum(is_new) - 1
    return in_order[is_new], number_of


def _objects(values: Sequence[object]) -> npt.NDArray[np.object_]:
    """Return a one-dimensional array, whatever the values are."""
    array = np.empty(len(values), object)
    array[:] = values
    return array


def scan_result_of(
    batches: Sequence[Columns],
    number: int,
    *,
    labels: Callable[[], pa.Table],
    shard: str,
    scan: str,
) -> pa.Table:
    """Return the scan result of one benchmark; `labels` loads its records if there are matches."""
    # Sorted by detector, then document, so that the split into blocks changes no scan result.
    order = in_order({columns["detector"][0] for columns in batches})
    batches = sorted(batches, key=lambda columns: order.index(columns["detector"][0]))
    rows_of = [np.flatnonzero(columns["part"] == number) for columns in batches]
    n = sum(rows.size for rows in rows_of)
    if not n:
        return no_rows(MATCHES)
    joined = {
        name: np.concatenate(
            [columns[name][rows] for columns, rows in zip(batches, rows_of, strict=True)]
        )
        for name in batches[0]
    }
    arrays = {
        name: pa.array(values, MATCHES.field(name).type, mask=_is_null(name, values))
        for name, values in joined.items()
        if name not in ("part", "words")
    }
    arrays["shard"] = pa.repeat(pa.scalar(shard), n)
    arrays["detector_fingerprint"] = pa.repeat(pa.scalar(scan), n)
    labelled = labels().take(pa.array(joined["record"]))
    arrays |= {name: labelled[name].combine_chunks() for name in LABELS}
    fingerprints = labelled["fingerprint"].to_pylist()
    arrays["text_id"] = pa.array(
        map(text_id_of, fingerprints, joined["words"].tolist()), pa.string()
    )
    is_alone = joined["n_alike"] == ABSENT
    arrays["words"] = pa.array(joined["words"], pa.string(), mask=is_alone)
    return pa.table(arrays).select(MATCHES.names).cast(MATCHES)


def _is_null(name: str, values: npt.NDArray[Any]) -> Bools | None:
    """Return the null mask: negative numbers mean absent, while absent texts are None already."""
    if values.dtype == object or not MATCHES.field(name).nullable:
        return None
    return values < 0


# Ids of matched texts -----------------------------------------------------------------------------

# A matched text is the words of a benchmark record that were found, wherever they are. Its id is
# the key of verdicts (`decisions/verdicts.py`), so it is the same in every document, after every
# scan, and in reports of other programs. The scan keeps only a digest of the words: their texts
# would stay in memory until the end of the shard.


def digest_of(words: Sequence[str]) -> str:
    """Hash the canonical words found of question, answer and passage; "" for a missing text."""
    # Canonical text never contains the separator.
    return sha256("\n".join(words).encode()).hexdigest()


def text_id_of(fingerprint: str, digest: str) -> str:
    """Return the id of a matched text: 16 hex digits, of the record and the digest of its words."""
    return sha256(f"{fingerprint} {digest}".encode()).hexdigest()[:16]
