"""Converts the matches of detectors in a batch to rows of tiles, with character positions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
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
from decon_core.detectors.detector import Finding, Span
from decon_core.index.joined_index import Search
from decon_core.kernels import clusters
from decon_core.schemas import MATCHES
from decon_core.storage.tables import no_rows
from decon_core.text.canonical import canonical
from decon_core.text.characters import Form
from decon_core.text.word_cache import Encoder

_ABSENT = -1
_TEXTS = ("question", "answer", "passage")
_EDGES = ("start", "stop")
LABELS = ["benchmark", "config", "split", "instance_index", "fingerprint", "is_correct"]

Columns = dict[str, Any]  # arrays of equal length
Integers = npt.NDArray[np.int64]


# Returns the characters of question, answer and passage for some matches of a document, given by
# its number and text and the first and last position of these matches.
SpansOf = Callable[[int, str, int, int], Iterable[Sequence[Span | None]]]


def match_columns(
    batch: Batch, matches: Matches, detector: str, search: Search, encoder: Encoder, policy: Policy
) -> Columns:
    """Return tile columns of matches by n-grams, without labels of the record and shard."""
    columns = _columns(matches, search, ngram_size=policy.ngram_size)
    edges = [(columns[f"{name}_start"], columns[f"{name}_stop"]) for name in _TEXTS]

    def spans_of(number: int, text: str, begin: int, end: int) -> Iterator[list[Span | None]]:
        places = encoder.places(number, text)
        for at in range(begin, end):
            tokens = [(starts[at], stops[at]) for starts, stops in edges]
            yield [places.characters(*one) if one[0] != _ABSENT else None for one in tokens]

    documents = matches.whole[:, clusters.DOCUMENT]
    columns |= _located(batch, documents, detector, spans_of, policy.form)
    columns["part"] = search.entry_part[matches.whole[:, clusters.ENTRY]]
    columns["looked_for"] = _objects([None] * len(matches))
    columns["matched"] = _objects(matches.matched)
    return columns


# Returns the characters of question and answer for each finding of a document.
Locate = Callable[[int, str, Sequence[Finding]], list[tuple[Span | None, Span | None]]]


def finding_columns(
    batch: Batch, findings: Sequence[Finding], detector: str, locate: Locate, form: Form
) -> Columns:
    """Return the same columns for findings, which are sorted by document."""
    n = len(findings)
    columns: Columns = {
        "part": np.array([one.part for one in findings], np.int32),
        "record": np.array([one.record for one in findings], np.int64),
        "looked_for": _objects([one.looked_for for one in findings]),
        "matched": _objects([None] * n),
        "base_score": np.array([one.score for one in findings]),
        "question_overlap": _or_absent([one.question_overlap for one in findings]),
        "answer_overlap": _or_absent([one.answer_overlap for one in findings]),
        "passage_overlap": np.full(n, float(_ABSENT)),
        "n_matched": np.array([one.n_matched for one in findings], np.int64),
        "n_grams": np.array([one.question_tokens for one in findings], np.int64),
        "question_tokens": np.array([one.question_tokens for one in findings], np.int64),
        "total_tokens": np.array([one.total_tokens for one in findings], np.int64),
    }
    tokens = zip(*((one.question, one.answer, None) for one in findings), strict=True)
    for name, spans in zip(_TEXTS, tokens, strict=True):
        for at, edge in enumerate(_EDGES):
            edges = [span[at] if span else _ABSENT for span in spans]
            columns[f"{name}_{edge}"] = np.array(edges, np.int64)

    def spans_of(number: int, text: str, begin: int, end: int) -> Iterator[Sequence[Span | None]]:
        return ((*both, None) for both in locate(number, text, findings[begin:end]))

    documents = np.array([one.document for one in findings], np.int64)
    return columns | _located(batch, documents, detector, spans_of, form)


def _located(
    batch: Batch, documents: Integers, detector: str, spans_of: SpansOf, form: Form
) -> Columns:
    """Return rows, ids, character spans, parts and digests of matches, document by document."""
    n = documents.size
    names = ("doc_id", "slot_kind", "words", *(f"{name}_part" for name in _TEXTS))
    columns: Columns = {name: np.empty(n, object) for name in names}
    for name in _TEXTS:
        columns[f"{name}_char_start"], columns[f"{name}_char_stop"] = np.full((2, n), _ABSENT)
    if (np.diff(documents) < 0).any():
        raise ValueError(f"the findings of {detector} are not sorted by document")
    numbers, first = np.unique(documents, return_index=True)
    edges = [*first.tolist(), n]
    for number, (begin, end) in zip(numbers.tolist(), pairwise(edges), strict=True):
        document, is_hidden = batch.document(number), batch.is_second(number)
        text, offset = document.stretches[is_hidden]
        digests = _Digests(text, form)
        columns["doc_id"][begin:end] = document.id
        columns["slot_kind"][begin:end] = "hidden" if is_hidden else "visible"
        for at, spans in enumerate(spans_of(number, text, begin, end), begin):
            columns["words"][at] = digests.of(*spans)
            for name, span in zip(_TEXTS, spans, strict=True):
                if span:
                    start, stop = (offset + edge for edge in span)
                    columns[f"{name}_char_start"][at] = start
                    columns[f"{name}_char_stop"][at] = stop
                    part = document.part_at(start)
                    columns[f"{name}_part"][at] = part and part.path
    return columns | {"row": batch.rows[documents], "detector": _objects([detector] * n)}


def _objects(values: Sequence[object]) -> npt.NDArray[np.object_]:
    """Return a one-dimensional array, whatever the values are."""
    array = np.empty(len(values), object)
    array[:] = values
    return array


def _or_absent(shares: Sequence[float | None]) -> npt.NDArray[np.float64]:
    return np.array([_ABSENT if share is None else share for share in shares], np.float64)


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
    return pa.table(arrays).select(MATCHES.names).cast(MATCHES)


class _Digests:
    """Digests of the text in spans of a document, cached: similar records match the same spans."""

    def __init__(self, text: str, form: Form) -> None:
        self._text, self._form = text, form
        self._known: dict[tuple[Span | None, ...], str] = {}

    def of(self, *spans: Span | None) -> str:
        if (digest := self._known.get(spans)) is None:
            digest = self._known[spans] = digest_of([self._words(span) for span in spans])
        return digest

    def _words(self, span: Span | None) -> str:
        return canonical(self._text[slice(*span)], self._form) if span else ""


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
        "answer_overlap": np.where(answer < 0, _ABSENT, scores[:, clusters.ANSWER]),
        "passage_overlap": np.where(passage < 0, _ABSENT, scores[:, clusters.PASSAGE]),
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
