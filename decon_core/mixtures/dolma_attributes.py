"""Dolma attribute files that mark what a mixture would remove, for use with Dolma's mixer.

Each file has one line per row of the shard, in order: the document's id, and lists of
`[start, end, score]` spans in characters of its text, one list per reason: `<mixture>__leak`,
`<mixture>__no_answer`, `<mixture>__review`, `<mixture>__license`, `<mixture>__control`,
`<mixture>__no_leak`, `<mixture>__unreadable` and `<mixture>__invalid_utf8`. A reason without a
position in the text, such as a license, spans the whole text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson

from decon_core.config.sources import Source
from decon_core.corpus.documents import Document, document_of, id_of
from decon_core.corpus.formats import Ids
from decon_core.corpus.packs import Shard
from decon_core.corpus.shards import values_of
from decon_core.errors import ConfigError, Problem
from decon_core.mixtures.choice import FOUND, RowActions, reason_of
from decon_core.mixtures.edit_rows import RowReader
from decon_core.storage.compression import create

Spans = dict[str, list[list[float]]]

SUFFIX = ".jsonl.gz"  # what Dolma's own taggers write
TEXTS = ("question", "answer", "passage")


def write_attributes(
    shard: Shard, source: Source, target: Path, choice: RowActions, rows: Sequence[int], name: str
) -> Ids:
    """Write the attributes of all rows; return the ids of the rows that have any."""
    if not source.id:
        expected = "the field with the document id, by which Dolma's mixer finds attributes"
        raise ConfigError(Problem(f"source {source.name!r}", "no 'id'", expected))
    target.parent.mkdir(parents=True, exist_ok=True)
    wanted = set(rows)
    # Ids that are strings take the fast path of reading a text.
    texts = RowReader(shard, source).texts(source.id)
    ids: Ids = {row: text for row, text in texts if row in wanted}
    others = values_of(shard, source, wanted - ids.keys())
    ids |= {row: id_of(value, source) for row, value in others}
    lengths = {}  # characters of each row; 0 for rows that are no document
    for row, value in values_of(shard, source, [row for row in choice.gone if row in ids]):
        document = document_of(value, row, source)
        lengths[row] = len(document.text) if isinstance(document, Document) else 0
    with create(target, ".gz") as out:
        for row in sorted({*rows, *choice.gone}):
            spans = _spans(choice.gone.get(row, ()), choice.leaks.get(row, ()), lengths.get(row, 0))
            attributes = {f"{name}__{why}": of_reason for why, of_reason in spans.items()}
            out.write(orjson.dumps({"id": ids.get(row), "attributes": attributes}) + b"\n")
    return {row: ids.get(row) for row in choice.gone}


def _spans(
    reasons: Sequence[Mapping[str, Any]], leaks: Sequence[dict[str, Any]], length: int
) -> Spans:
    spans: Spans = {}
    for reason in reasons:
        if reason["why"] not in FOUND:
            spans[_key(reason)] = [[0, length, 1.0]]
    for entry in leaks:
        why = _key(reason_of(entry))
        for text in TEXTS:
            start, stop = entry[f"{text}_char_start"], entry[f"{text}_char_stop"]
            if start is not None:
                spans.setdefault(why, []).append([start, stop, entry["score"]])
    return {why: sorted(of_reason) for why, of_reason in spans.items()}


def _key(reason: Mapping[str, Any]) -> str:
    return str(reason["why"]).replace(" ", "_")
