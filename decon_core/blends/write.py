"""One part of a blend, written: documents from the mixture's shards, and items in between."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from decon_core.blends.items import Item, ItemText, item_text, parts_of
from decon_core.blends.plan import Contaminated, Plan, PlannedPart, TokenCount
from decon_core.config.blends import Contamination, Write
from decon_core.config.load import Source
from decon_core.config.policy import Policy
from decon_core.corpus.documents import Document, document_of
from decon_core.corpus.packs import Shard, hash_file
from decon_core.errors import CorpusError
from decon_core.mixtures.layouts import LAYOUTS, Row, open_layout, rows_of
from decon_core.scan.workers import advance

_CHANGED = "remove this folder of the mixture, and `decon-assets run` builds it anew"

Integers = npt.NDArray[np.int64]
Small = npt.NDArray[np.int32]


@dataclass(frozen=True)
class TestText:
    """A text of an item, on its way into a part."""

    __test__ = False  # not one of pytest's

    item: Item
    part: str
    copy: int
    contamination: Contamination
    number: int  # of the contamination

    @property
    def id(self) -> str:
        """No other text of the blend has it."""
        return f"test-item:{self.item.name}:{self.part}:{self.number}:{self.copy}"


@dataclass(frozen=True, eq=False)
class PartJob:
    """A part to be written, in any process."""

    part: PlannedPart
    path: Path
    layout: Write
    policy: Policy
    sources: tuple[Source, ...]
    shards: tuple[tuple[Shard, ...], ...]  # of each source
    source: Small  # per text: of the document that it is, or stands for
    shard: Small  # -1: it is a test item
    row: Integers
    texts: tuple[TestText, ...]  # of the items, in order


@dataclass(frozen=True, eq=False)
class Written:
    """What became of it."""

    part: PlannedPart
    path: Path
    n_bytes: int
    output: str  # hash
    tokens_of_texts: Integers


def job_of(plan: Plan, part: PlannedPart, folder: Path, policy: Policy) -> PartJob:
    """What a process needs to know of a plan to write one of its parts."""
    own = slice(part.start, part.stop)
    draws = plan.stream.draws
    place, by = plan.place[own], plan.by[own]
    source, at = draws.source[place], draws.at[place]
    shard = np.full(place.size, -1, np.int32)
    row = np.full(place.size, -1, np.int64)
    for number, material in enumerate(plan.materials):
        is_of = (source == number) & (by < 0)
        shard[is_of] = material.shard[at[is_of]]
        row[is_of] = material.row[at[is_of]]
    return PartJob(
        part=part,
        path=folder / (part.name + LAYOUTS[plan.blend.write].suffix),
        layout=plan.blend.write,
        policy=policy,
        sources=tuple(material.source for material in plan.materials),
        shards=tuple(material.shards for material in plan.materials),
        source=source,
        shard=shard,
        row=row,
        texts=tuple(
            _text_of(plan.contaminated[number], number, insertion)
            for number, insertion in zip(by.tolist(), plan.insertion[own].tolist(), strict=True)
            if number >= 0
        ),
    )


def _text_of(contaminated: Contaminated, number: int, insertion: int) -> TestText:
    """The text that one insertion puts in."""
    found = contaminated.insertions
    parts = parts_of(contaminated.declared.form)
    return TestText(
        item=contaminated.items.seen[int(found.item[insertion])],
        part=parts[int(found.part[insertion])],
        copy=int(found.copy[insertion]),
        contamination=contaminated.declared,
        number=number,
    )


def write_part(job: PartJob) -> Written:
    """Write the texts of a part, in order."""
    documents = [_rows(job, number) for number in range(len(job.sources))]
    texts = iter(job.texts)
    texts_put_in: list[str] = []
    with open_layout(job.layout, job.path) as out:
        for source, shard in zip(job.source.tolist(), job.shard.tolist(), strict=True):
            if shard >= 0:
                out.add(next(documents[source]))
                continue
            row = row_of_text(next(texts), job.sources[source])
            texts_put_in.append(_scanned(row))
            out.add(row)
    for rows in documents:
        next(rows, None)  # at their end shards are compared with what they were
    tokens = np.empty(0, np.int64)
    if texts_put_in:
        tokens = TokenCount(job.policy).of(texts_put_in)
    n_bytes = job.path.stat().st_size
    advance(n_bytes)
    return Written(job.part, job.path, n_bytes, hash_file(job.path), tokens)


def _rows(job: PartJob, number: int) -> Generator[Row]:
    """The documents of a source that the part holds: shard after shard, each read once a pass."""
    own = (job.source == number) & (job.shard >= 0)
    shard, row = job.shard[own], job.row[own]
    is_new = np.diff(shard, prepend=-1) != 0
    is_new[1:] |= np.diff(row) <= 0  # the next pass, or what a sample has left out
    for start, stop in pairwise([*np.flatnonzero(is_new).tolist(), shard.size]):
        held = job.shards[number][shard[start]]
        try:
            yield from rows_of(held, job.sources[number], row[start:stop].tolist())
        except CorpusError as error:  # no shard of the corpus, as its reader takes it for
            raise CorpusError(replace(one, remedy=_CHANGED) for one in error.problems) from None


# Rows of test items -------------------------------------------------------------------------------


def row_of_text(text: TestText, source: Source) -> Row:
    """A row like those of a source, with nothing in it but a text of an item."""
    said = item_text(text.item, text.part, text.contamination, str(text.copy))
    value: dict[str, Any] = {}
    _put(value, source.id or "id", text.id)
    if source.messages:
        _put(value, source.messages, _turns(said, source.roles))
    else:
        _put(value, str(source.text), said.text)
    value.setdefault("source", f"{text.item.benchmark}/{text.item.split}")
    return Row(source=source, shard="", number=-1, value=value, line=None)


def _turns(said: ItemText, roles: Sequence[str]) -> list[dict[str, str]]:
    """What is asked by the user, what is answered by the assistant; or all of it by who is read."""
    turns = [("user", said.asked.rstrip()), ("assistant", said.answered)]
    if roles and not {"user", "assistant"} <= set(roles):
        turns = [(roles[0], said.text)]
    return [{"role": role, "content": content} for role, content in turns if content]


def _put(value: dict[str, Any], path: str, found: object) -> None:
    head, _, rest = path.partition(".")
    if rest:
        _put(value.setdefault(head, {}), rest, found)
    else:
        value[head] = found


def _scanned(row: Row) -> str:
    """What a scan sees of a row."""
    found = document_of(row.value, 0, row.source)
    if not isinstance(found, Document):
        raise TypeError(f"{found}: a row made for a source does not fit it")
    return found.text
