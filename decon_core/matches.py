"""What a detector found in a batch, as rows of tiles, with the characters behind every token."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from decon_core.batches import Batch
from decon_core.corpus import Document
from decon_core.detectors.decon import Matches
from decon_core.kernels import clusters
from decon_core.schemas import MATCHES
from decon_core.search import Search
from decon_core.words import Encoder

Integers = npt.NDArray[np.int64]

_DETECTOR = "decon"
_NOWHERE = -1
LABELS = ["benchmark", "config", "split", "instance_index", "fingerprint", "is_correct"]


def match_rows(
    batch: Batch,
    found: Matches,
    search: Search,
    encoder: Encoder,
    *,
    labels: Callable[[int], pa.Table],
    shard: str,
    scan: str,
    ngram_size: int,
) -> dict[int, pa.Table]:
    """Tile rows, by benchmark. `labels` gives the record table of one."""
    if not len(found):
        return {}
    columns = _columns(found, search, ngram_size=ngram_size)
    columns |= _places(batch, found, columns, encoder)
    columns["row"] = batch.rows[found.whole[:, clusters.DOCUMENT]]
    columns["shard"] = [shard] * len(found)
    columns["detector"] = [_DETECTOR] * len(found)
    columns["detector_fingerprint"] = [scan] * len(found)
    part = search.entry_part[found.whole[:, clusters.ENTRY]]
    tables = {}
    for number in np.unique(part).tolist():
        rows = np.flatnonzero(part == number)
        own = {name: pa.array(values).take(pa.array(rows)) for name, values in columns.items()}
        labelled = labels(number).select(LABELS).take(own["record"])
        own |= {name: labelled[name].combine_chunks() for name in LABELS}
        tables[number] = pa.table(own).select(MATCHES.names).cast(MATCHES)
    return tables


def _columns(found: Matches, search: Search, *, ngram_size: int) -> dict[str, Any]:
    """All that needs no document."""
    index = search.index
    entry = found.whole[:, clusters.ENTRY]
    question = search.entry_question[entry]
    answer, passage = index.entry_answer[entry], index.entry_passage[entry]
    n_tokens = np.diff(index.question_offsets)[question]
    n_answer = np.append(index.answer_different, 0)[answer]
    n_passage = np.append(np.diff(index.passage_offsets), 0)[passage]
    whole, scores = found.whole, found.scores
    start, stop = whole[:, clusters.START], whole[:, clusters.END] + ngram_size
    answer_start = whole[:, clusters.ANSWER_START]
    # A cluster that runs on into the answer ends where the answer begins.
    stop = np.where((start < answer_start) & (answer_start < stop), answer_start, stop)
    columns = {
        "record": search.entry_record[entry],
        "base_score": scores[:, clusters.BASE],
        "question_overlap": scores[:, clusters.QUESTION],
        "answer_overlap": _unless(answer < 0, scores[:, clusters.ANSWER]),
        "passage_overlap": _unless(passage < 0, scores[:, clusters.PASSAGE]),
        "n_matched": whole[:, clusters.N_MATCHED],
        "n_grams": np.diff(index.question_gram_offsets)[question],
        "question_tokens": n_tokens,
        "total_tokens": n_tokens + n_answer + n_passage,
        "question_start": start,
        "question_stop": stop,
    }
    for name, first, last in (
        ("answer", clusters.ANSWER_START, clusters.ANSWER_STOP),
        ("passage", clusters.PASSAGE_START, clusters.PASSAGE_STOP),
    ):
        is_absent = whole[:, first] == _NOWHERE
        columns[f"{name}_start"] = _unless(is_absent, whole[:, first])
        columns[f"{name}_stop"] = _unless(is_absent, whole[:, last])
    return columns


def _unless(is_null: npt.NDArray[np.bool_], values: npt.NDArray[Any]) -> pa.Array:
    return pa.array(values, mask=is_null)


def _places(
    batch: Batch, found: Matches, columns: dict[str, Any], encoder: Encoder
) -> dict[str, Any]:
    """Characters and parts of the documents, and their ids; one document after the other."""
    numbers, first = np.unique(found.whole[:, clusters.DOCUMENT], return_index=True)
    edges = [*first.tolist(), len(found)]
    ids: list[str | None] = []
    made: dict[str, list[Any]] = {}
    spans = {
        name: (_filled(columns[f"{name}_start"]), _filled(columns[f"{name}_stop"]))
        for name in ("question", "answer", "passage")
    }
    for number, start, stop in zip(numbers.tolist(), edges[:-1], edges[1:], strict=True):
        document = batch.document(number)
        places = encoder.places(number, document.text)
        ids += [document.id] * (stop - start)
        for name, (starts, stops) in spans.items():
            for at in range(start, stop):
                span = (
                    places.characters(int(starts[at]), int(stops[at]))
                    if starts[at] != _NOWHERE
                    else (None, None)
                )
                made.setdefault(f"{name}_char_start", []).append(span[0])
                made.setdefault(f"{name}_char_stop", []).append(span[1])
                made.setdefault(f"{name}_part", []).append(_part_at(document, span[0]))
    return {
        "doc_id": pa.array(ids, pa.string()),
        **{name: pa.array(values, MATCHES.field(name).type) for name, values in made.items()},
    }


def _filled(values: Any) -> Integers:
    array = pa.array(values).fill_null(_NOWHERE)
    return np.asarray(array.to_numpy(zero_copy_only=False), np.int64)


def _part_at(document: Document, character: int | None) -> str | None:
    """The field or message in which a character stands; None in a plain text."""
    if character is None or not document.parts:
        return None
    at = bisect_right(document.parts, character, key=lambda part: part.start)
    return document.parts[max(at - 1, 0)].path
