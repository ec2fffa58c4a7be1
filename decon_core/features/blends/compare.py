"""Find where two blends part: the first document that differs.

Files are compared by their checksums. From the first files that differ on, documents are compared
as they were written: lines of JSON byte for byte, rows of tables field by field.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile, zip_longest
from pathlib import Path
from typing import Any

from decon_core.config.sources import Source
from decon_core.corpus.packs import shard_at
from decon_core.errors import MissingError, Problem
from decon_core.features.blends.build import Blender
from decon_core.features.blends.schemas import TEXTS_FILE, blend_folder, blend_manifest
from decon_core.features.blends.settings import Blend
from decon_core.mixtures.layouts import ID, TEXT, Row, rows_of
from decon_core.storage.files import read_json
from decon_core.storage.tables import open_parquet

_CHARACTERS_BEFORE, _CHARACTERS_SHOWN = 20, 80  # around the first character that differs


@dataclass(frozen=True)
class BlendDocument:
    """A document of a blend, and where it stands."""

    place: str  # file and row
    origin: str  # shard and row in the corpus, or the test item
    excerpt: str


@dataclass(frozen=True)
class Difference:
    """The first documents of two blends that differ."""

    n_equal_documents: int  # documents before those that differ
    n_equal_tokens: int  # tokens of these documents
    documents: tuple[BlendDocument | None, BlendDocument | None]  # None: the blend has ended


_Place = tuple[str, Row]  # file, and document in it


def first_difference(blender: Blender, blends: tuple[Blend, Blend]) -> Difference | None:
    """Return where two blends part; None if they are equal throughout.

    Raises MissingError for blends that are missing or out of date, or whose layouts differ.
    """
    _require_comparable(blender, blends)
    store = blender.builder.store
    folders = [blend_folder(store, blend.name) for blend in blends]
    manifests = [blend_manifest(store, blend.name) for blend in blends]
    parts = [read_json(path)["parts"] for path in manifests]
    pairs = zip(*parts, strict=False)
    equal = [*takewhile(lambda pair: pair[0]["output"] == pair[1]["output"], pairs)]
    n_equal = sum(part["n_documents"] for part, _ in equal)
    rest = (
        _documents(folder, [part["file"] for part in own[len(equal) :]])
        for folder, own in zip(folders, parts, strict=True)
    )
    for places in zip_longest(*rest):
        if None in places or not _is_equal(*(row for _, row in places)):
            return _difference(manifests, n_equal, places)
        n_equal += 1
    return None


def _require_comparable(blender: Blender, blends: Sequence[Blend]) -> None:
    problems = [
        Problem(
            f"blend {blend.name!r}", "missing or out of date", remedy="`decon-assets run` builds it"
        )
        for blend in blends
        if not blender.is_current(blend)
    ]
    if len({blend.write for blend in blends}) > 1:
        found = " and ".join(f"{blend.name!r} with write = {blend.write!r}" for blend in blends)
        remedy = "declare both with the same `write`"
        problems.append(Problem("blends to compare", found, "one layout", remedy))
    MissingError.raise_for(problems)


def _documents(folder: Path, files: Sequence[str]) -> Iterator[_Place]:
    source = Source(name=folder.name, path="", text=TEXT, id=ID)
    for file in files:
        for row in rows_of(shard_at(source, folder / file, folder), source):
            yield file, row


def _is_equal(first: Row, second: Row) -> bool:
    return first.line == second.line if first.line is not None else first.value == second.value


def _difference(
    manifests: Sequence[Path], n_equal: int, places: Sequence[_Place | None]
) -> Difference:
    texts = [place[1].value[TEXT] if place else "" for place in places]
    differs = (at for at, (one, other) in enumerate(zip(*texts, strict=False)) if one != other)
    start = max(next(differs, min(map(len, texts))) - _CHARACTERS_BEFORE, 0)
    documents: list[BlendDocument | None] = []
    for path, place, text in zip(manifests, places, texts, strict=True):
        n_tokens, listed = _tokens_before(path.with_name(TEXTS_FILE), n_equal)
        if place and listed:
            excerpt = text[start : start + _CHARACTERS_SHOWN]
            where = f"{place[0]}:{place[1].number}"
            documents.append(BlendDocument(where, _origin(listed), excerpt))
        else:
            documents.append(None)
    return Difference(n_equal, n_tokens, (documents[0], documents[1]))


def _tokens_before(path: Path, n_documents: int) -> tuple[int, Mapping[str, Any] | None]:
    """Return the tokens of the first documents of a blend, and the row of the one after them."""
    n_tokens = 0
    for batch in open_parquet(path).iter_batches():
        tokens = batch["n_tokens"].to_numpy()
        if n_documents < batch.num_rows:
            row = batch.slice(n_documents, 1).to_pylist()[0]
            return n_tokens + int(tokens[:n_documents].sum()), row
        n_tokens += int(tokens.sum())
        n_documents -= batch.num_rows
    return n_tokens, None


def _origin(listed: Mapping[str, Any]) -> str:
    if listed["shard"] is not None:
        return f"{listed['shard']}:{listed['corpus_row']}"
    item = "/".join(str(listed[name]) for name in ("benchmark", "split", "instance_index"))
    return f"test item {item} ({listed['form']})"
