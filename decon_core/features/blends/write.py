"""Write a part of a blend: documents from the shards of the mixture, and inserted items."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from decon_core.config.policy import Policy
from decon_core.config.sources import Source
from decon_core.corpus.packs import Shard
from decon_core.errors import CorpusError
from decon_core.features.blends.draw import Integers, Small
from decon_core.features.blends.items import item_text
from decon_core.features.blends.plan import Plan, PlannedPart, TestText
from decon_core.features.blends.settings import Write
from decon_core.mixtures.layouts import SUFFIXES, Row, n_tokens_of, open_layout, rows_of
from decon_core.storage.checksums import hash_file

_CHANGED = "remove this folder of the mixture; `decon-assets run` builds it again"


@dataclass(frozen=True, eq=False)
class PartJob:
    """A part to write in a worker process."""

    part: PlannedPart
    path: Path
    layout: Write
    policy: Policy
    sources: tuple[Source, ...]
    shards: tuple[tuple[Shard, ...], ...]  # shards of each source
    source: Small  # per text: source of the document, or of the document that the item replaces
    shard: Small  # per text: number of the shard; -1 for an item
    row: Integers  # per text: row in the shard; -1 for an item
    texts: tuple[TestText, ...]  # texts of items, in order


@dataclass(frozen=True, eq=False)
class WrittenPart:
    part: PlannedPart
    path: Path
    n_bytes: int
    output: str  # content hash
    tokens_of_texts: Integers  # tokens of inserted texts, in order
    counts: dict[str, int]  # of hidden tokens, if there are any


def job_of(plan: Plan, part: PlannedPart, folder: Path, policy: Policy) -> PartJob:
    """Return what a process needs to write one part of a plan."""
    texts = slice(part.start, part.stop)
    draws = plan.stream.draws
    place, by = plan.place[texts], plan.by[texts]
    source, at = draws.source[place], draws.at[place]
    shard = np.full(place.size, -1, np.int32)
    row = np.full(place.size, -1, np.int64)
    for number, material in enumerate(plan.materials):
        is_of = (source == number) & (by < 0)
        shard[is_of] = material.shard[at[is_of]]
        row[is_of] = material.row[at[is_of]]
    return PartJob(
        part=part,
        path=folder / (part.name + SUFFIXES[plan.blend.write]),
        layout=plan.blend.write,
        policy=policy,
        sources=tuple(material.source for material in plan.materials),
        shards=tuple(material.shards for material in plan.materials),
        source=source,
        shard=shard,
        row=row,
        texts=tuple(plan.inserted(part.start, part.stop)),
    )


def write_part(job: PartJob) -> WrittenPart:
    """Write the texts of a part, in order."""
    documents = [_rows(job, number) for number in range(len(job.sources))]
    texts = iter(job.texts)
    inserted: list[str] = []
    with open_layout(job.layout, job.path, job.policy) as (add, counts):
        for source, shard in zip(job.source.tolist(), job.shard.tolist(), strict=True):
            if shard >= 0:
                row = next(documents[source])
            else:
                row = row_of_text(next(texts), job.sources[source])
                inserted.append(row.document.text)
            add(row)
    for rows in documents:
        next(rows, None)  # checksums are verified at the end of a shard
    tokens = n_tokens_of(job.policy, inserted) if inserted else np.empty(0, np.int64)
    n_bytes, content = job.path.stat().st_size, hash_file(job.path)
    return WrittenPart(job.part, job.path, n_bytes, content, tokens, counts)


def _rows(job: PartJob, number: int) -> Generator[Row]:
    """Yield the documents of a source in the part, reading each shard once per pass."""
    is_wanted = (job.source == number) & (job.shard >= 0)
    shard, row = job.shard[is_wanted], job.row[is_wanted]
    is_new = np.diff(shard, prepend=-1) != 0
    is_new[1:] |= np.diff(row) <= 0  # the next pass, or the rows after a sample
    for start, stop in pairwise([*np.flatnonzero(is_new).tolist(), shard.size]):
        current = job.shards[number][shard[start]]
        try:
            yield from rows_of(current, job.sources[number], row[start:stop].tolist())
        except CorpusError as error:  # its remedy is for a shard of the corpus, not of a mixture
            raise CorpusError(
                replace(problem, remedy=_CHANGED) for problem in error.problems
            ) from None


def row_of_text(text: TestText, source: Source) -> Row:
    """Return a row that a source reads, with only the text of an item."""
    rendered = item_text(text.item, text.part, text.contamination, str(text.copy))
    value: dict[str, Any] = {}
    _set_field(value, source.id or "id", text.id)
    if source.messages:
        turns = [("user", rendered.asked.rstrip()), ("assistant", rendered.answered)]
        if source.roles and not {"user", "assistant"} <= set(source.roles):  # they are not read
            turns = [(source.roles[0], rendered.text)]
        messages = [{"role": role, "content": content} for role, content in turns if content]
        _set_field(value, source.messages, messages)
    else:
        _set_field(value, str(source.text or "text"), rendered.text)
    value.setdefault("source", f"{text.item.benchmark}/{text.item.split}")
    return Row(source=source, shard="", number=-1, value=value, line=None)


def _set_field(value: dict[str, Any], path: str, content: object) -> None:
    head, _, rest = path.partition(".")
    if rest:
        _set_field(value.setdefault(head, {}), rest, content)
    else:
        value[head] = content
