"""Converts the matches of detectors in a batch to rows of tiles, with character positions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import sha256
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from decon_core.config.detector_registry import in_order
from decon_core.config.policy import Policy
from decon_core.corpus.batches import Batch
from decon_core.detectors.decon import Matches
from decon_core.detectors.detector import ABSENT, FindingTable, Span
from decon_core.index.joined_index import Search
from decon_core.kernels import clusters
from decon_core.schemas import MATCHES
from decon_core.storage.tables import no_rows
from decon_core.text.canonical import canonical
from decon_core.text.characters import Form

_TEXTS = ("question", "answer", "passage")
_EDGES = ("start", "stop")
LABELS = ["benchmark", "config", "split", "instance_index", "fingerprint", "is_correct"]

Columns = dict[str, Any]  # arrays of equal length
Integers = npt.NDArray[np.int64]


# Returns the characters of a document, given by its number in the batch and its text, that some
# places are: spans in the unit in which a detector reads documents.
Locate = Callable[[int, str, Sequence[Span]], Sequence[Span]]


def match_columns(
    batch: Batch, matches: Matches, detector: str, search: Search, locate: Locate, policy: Policy
) -> Columns:
    """Return tile columns of matches by n-grams, without labels of the record and shard."""
    columns = _columns(matches, search, ngram_size=policy.ngram_size)
    places = np.column_stack([columns[f"{name}_{edge}"] for name in _TEXTS for edge in _EDGES])
    documents = matches.whole[:, clusters.DOCUMENT]
    columns |= _located(batch, documents, detector, places, locate, policy.form)
    columns["part"] = search.entry_part[matches.whole[:, clusters.ENTRY]]
    columns["looked_for"] = _objects([None] * len(matches))
    columns["matched"] = _objects(matches.matched)
    return columns


def finding_columns(
    batch: Batch, findings: FindingTable, detector: str, locate: Locate, form: Form
) -> Columns:
    """Return the same columns for findings, which are sorted by document."""
    n = len(findings)
    columns: Columns = {
        "part": findings.part.astype(np.int32),
        "record": findings.record,
        "looked_for": findings.looked_for,
        "matched": _objects([None] * n),
        "base_score": findings.score,
        "question_overlap": findings.question_overlap,
        "answer_overlap": findings.answer_overlap,
        "passage_overlap": np.full(n, float(ABSENT)),
        "n_matched": findings.n_matched,
        "n_grams": findings.question_tokens,
        "question_tokens": findings.question_tokens,
        "total_tokens": findings.total_tokens,
    }
    nowhere = np.full((n, 2), ABSENT)
    edges = ((name, edge) for name in _TEXTS for edge in _EDGES)
    for (name, edge), values in zip(edges, np.hstack([findings.tokens, nowhere]).T, strict=True):
        columns[f"{name}_{edge}"] = values
    places = np.hstack([findings.places, nowhere])
    return columns | _located(batch, findings.document, detector, places, locate, form)


def _located(
    batch: Batch,
    documents: Integers,
    detector: str,
    places: Integers,
    locate: Locate,
    form: Form,
) -> Columns:
    """Return rows, ids, character spans, parts and digests of matches.

    Many records may be found at one place of a document, which is looked up once.
    """
    if (np.diff(documents) < 0).any():
        raise ValueError(f"the findings of {detector} are not sorted by document")
    distinct, place_of = _distinct(np.column_stack([documents, places]))
    n = len(distinct)
    names = ("doc_id", "slot_kind", "words", *(f"{name}_part" for name in _TEXTS))
    columns: Columns = {name: np.empty(n, object) for name in names}
    for name in _TEXTS:
        columns[f"{name}_char_start"], columns[f"{name}_char_stop"] = np.full((2, n), ABSENT)
    numbers, first = np.unique(distinct[:, 0], return_index=True)
    for number, (begin, end) in zip(numbers.tolist(), pairwise([*first.tolist(), n]), strict=True):
        document, is_hidden = batch.document(number), batch.is_second(number)
        text, offset = document.stretches[is_hidden]
        columns["doc_id"][begin:end] = document.id
        columns["slot_kind"][begin:end] = "hidden" if is_hidden else "visible"
        edges = distinct[begin:end, 1:].reshape(-1, len(_TEXTS), 2)
        is_there = edges[:, :, 0] != ABSENT
        spans = np.full(edges.shape, ABSENT)
        spans[is_there] = locate(number, text, [*map(tuple, edges[is_there].tolist())])
        for at, of_place in enumerate(spans.tolist(), begin):
            words = [
                canonical(text[slice(*span)], form) if span[0] != ABSENT else ""
                for span in of_place
            ]
            columns["words"][at] = digest_of(words)
            for name, (start, stop) in zip(_TEXTS, of_place, strict=True):
                if start != ABSENT:
                    columns[f"{name}_char_start"][at] = offset + start
                    columns[f"{name}_char_stop"][at] = offset + stop
                    part = document.part_at(offset + start)
                    columns[f"{name}_part"][at] = part and part.path
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


def tile_of(
    batches: Sequence[Columns],
    number: int,
    *,
    labels: Callable[[], pa.Table],
    shard: str,
    scan: str,
) -> pa.Table:
    """Return the tile of one benchmark; `labels` loads its record table if there are matches."""
    # Sorted by detector, then document, so that the split into blocks does not change a tile.
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
    arrays["pair"] = pa.array(map(pair_name, fingerprints, joined["words"].tolist()), pa.string())
    is_alone = joined["n_alike"] == ABSENT
    arrays["words"] = pa.array(joined["words"], pa.string(), mask=is_alone)
    return pa.table(arrays).select(MATCHES.names).cast(MATCHES)


def _is_null(name: str, values: npt.NDArray[Any]) -> npt.NDArray[np.bool_] | None:
    """Return the null mask: negative numbers mean absent, while absent texts are None already."""
    if values.dtype == object or not MATCHES.field(name).nullable:
        return None
    return values < 0


def _columns(matches: Matches, search: Search, *, ngram_size: int) -> Columns:
    """Return the columns that do not depend on the text of documents."""
    index = search.index
    entry = matches.whole[:, clusters.ENTRY]
    question = search.entry_question[entry]
    answer, passage = index.entry_answer[entry], index.entry_passage[entry]
    n_tokens = np.diff(index.question_offsets)[question]
    n_answer = np.append(index.answer_different, 0)[answer]
    n_passage = np.append(np.diff(index.passage_offsets), 0)[passage]
    whole, scores = matches.whole, matches.scores
    start, stop = whole[:, clusters.START], whole[:, clusters.END] + ngram_size
    answer_start = whole[:, clusters.ANSWER_START]
    # A cluster that extends into the answer is cut off where the answer begins.
    stop = np.where((start < answer_start) & (answer_start < stop), answer_start, stop)
    return {
        "record": search.entry_record[entry],
        "base_score": scores[:, clusters.BASE],
        "question_overlap": scores[:, clusters.QUESTION],
        "answer_overlap": np.where(answer < 0, ABSENT, scores[:, clusters.ANSWER]),
        "passage_overlap": np.where(passage < 0, ABSENT, scores[:, clusters.PASSAGE]),
        "n_matched": whole[:, clusters.N_MATCHED],
        "n_grams": np.diff(index.question_gram_offsets)[question],
        "question_tokens": n_tokens,
        "total_tokens": n_tokens + n_answer + n_passage,
        "question_start": start,
        "question_stop": stop,
        "answer_start": answer_start,
        "answer_stop": whole[:, clusters.ANSWER_STOP],
        "passage_start": whole[:, clusters.PASSAGE_START],
        "passage_stop": whole[:, clusters.PASSAGE_STOP],
    }


# Names of pairs -----------------------------------------------------------------------------------

# A pair is a benchmark record and the words of it that were found. Verdicts are stored under these
# names (`decisions/verdicts.py`), so the same pair has the same name in every document, after every
# scan, and in reports of other programs. The scan keeps only a digest of the words: their texts
# would stay in memory until the end of the shard.


def digest_of(words: Sequence[str]) -> str:
    """Hash the canonical words found of question, answer and passage; "" for a missing one."""
    # Canonical text never contains the separator.
    return sha256("\n".join(words).encode()).hexdigest()


def pair_name(fingerprint: str, digest: str) -> str:
    """Return the name of a pair: 16 hex digits from the record and the digest of its words."""
    return sha256(f"{fingerprint} {digest}".encode()).hexdigest()[:16]
