"""What would leave a shard, as Dolma's attribute files say it, for mixers that read such.

A line for every row of the shard, in its order: the document's own id, and for what a mixture would
take out of it lists of `[start, end, score]` in characters of its text. They are named
`<mixture>__leak`, `<mixture>__question_only`, `<mixture>__license`, `<mixture>__control`,
`<mixture>__no_leak`, `<mixture>__unreadable` and `<mixture>__invalid_utf8`. What has no place in
the text (a license, say) is all of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson

from decon_core.config.load import Source
from decon_core.corpus.documents import Document, document_of, id_of
from decon_core.corpus.packs import Shard
from decon_core.corpus.shards import values_of
from decon_core.errors import ConfigError, Problem
from decon_core.mixtures.choice import FOUND, RowActions, reason_of
from decon_core.mixtures.rewrite import Ids
from decon_core.mixtures.rows import RowsOfShard
from decon_core.storage.compression import create

Spans = dict[str, list[list[float]]]

SUFFIX = ".jsonl.gz"  # what Dolma's own taggers write
_TEXTS = ("question", "answer", "passage")


def attribute_file(shard: Shard) -> str:
    """The name of the attributes of a shard: its own, or for a table that of its lines."""
    return stem_of(shard) + SUFFIX


def stem_of(shard: Shard) -> str:
    """What a shard and what is made of it as lines of JSON have in common in their names."""
    folder, slash, file = shard.name.rpartition("/")
    return folder + slash + file.partition(".jsonl")[0]


def write_attributes(
    shard: Shard,
    source: Source,
    target: Path,
    choice: RowActions,
    rows: Sequence[int],
    *,
    name: str,
) -> Ids:
    """Write the attributes of all rows; the ids of those that have any."""
    if not source.id:
        raise ConfigError(
            Problem(f"source {source.name!r}", "no 'id'", "the field by which attributes are told")
        )
    target.parent.mkdir(parents=True, exist_ok=True)
    ids = _ids(shard, source, rows)
    lengths = _lengths(shard, source, [row for row in choice.gone if row in ids])
    with create(target, ".gz") as out:
        for row in sorted({*rows, *choice.gone}):
            spans = _spans(choice.gone.get(row, ()), choice.leaks.get(row, ()), lengths.get(row, 0))
            attributes = {f"{name}__{why}": found for why, found in spans.items()}
            out.write(orjson.dumps({"id": ids.get(row), "attributes": attributes}) + b"\n")
    return {row: ids.get(row) for row in choice.gone}


def _spans(
    reasons: Sequence[Mapping[str, Any]], leaks: Sequence[dict[str, Any]], length: int
) -> Spans:
    found: Spans = {}
    for reason in reasons:
        if reason["why"] not in FOUND:
            found[_key(reason)] = [[0, length, 1.0]]
    for entry in leaks:
        why = _key(reason_of(entry))
        for text in _TEXTS:
            start, stop = entry[f"{text}_char_start"], entry[f"{text}_char_stop"]
            if start is not None:
                found.setdefault(why, []).append([start, stop, entry["score"]])
    return {why: sorted(spans) for why, spans in found.items()}


def _key(reason: Mapping[str, Any]) -> str:
    return str(reason["why"]).replace(" ", "_")


def _ids(shard: Shard, source: Source, rows: Sequence[int]) -> Ids:
    """Of all documents; those that are texts at the speed of reading."""
    wanted = set(rows)
    texts = RowsOfShard(shard, source).texts(str(source.id))
    found: Ids = {row: text for row, text in texts if row in wanted}
    found |= _others(shard, source, sorted(wanted - set(found)))
    return found


def _others(shard: Shard, source: Source, rows: Sequence[int]) -> Iterator[tuple[int, str | None]]:
    for row, value in values_of(shard, source, rows):
        yield row, id_of(value, source)


def _lengths(shard: Shard, source: Source, rows: Sequence[int]) -> dict[int, int]:
    """Characters of documents."""
    lengths = {}
    for row, value in values_of(shard, source, rows):
        document = document_of(value, row, source)
        lengths[row] = len(document.text) if isinstance(document, Document) else 0
    return lengths
