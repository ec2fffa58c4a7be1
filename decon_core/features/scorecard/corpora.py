"""Read texts of any corpus lazily: zip archives, text files, shards, registered packs."""

from __future__ import annotations

import glob
import zipfile
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import NamedTuple, TypeVar

from decon_core.config.sources import Source
from decon_core.corpus.documents import Document
from decon_core.corpus.formats import is_shard, known_suffixes
from decon_core.corpus.packs import Pack, Shard, find_shards
from decon_core.corpus.shards import read_shard
from decon_core.errors import InputError, MissingError, Problem
from decon_core.features.scorecard.plan import in_turn

T = TypeVar("T")

_PAGE = 3_000  # characters; about the length of a web page
_MAX_SHARDS = 32  # opened at once; spread evenly over the corpus
_ROWS_TRIED = 50


class Texts(NamedTuple):
    """An archive, the loose files of a folder, or a shard."""

    name: str
    has_documents: bool  # True for a shard; files may contain many documents each
    texts: Iterator[str]


def hosts_below(path: Path) -> Iterator[str]:
    """Yield host documents from all archives, folders and shards below a path, in turn.

    Long files are split into pages at line ends. Raise `InputError` if there are no texts.
    """
    if not path.exists():
        raise InputError(Problem(str(path), "no such file or folder", _EXPECTED))
    sets = texts_below(path)
    if not sets:
        raise InputError(Problem(str(path), "no texts", _EXPECTED))
    shards = _spread([texts.texts for texts in sets if texts.has_documents])
    return in_turn([*shards, *(_pages(texts.texts) for texts in sets if not texts.has_documents)])


_EXPECTED = f".zip or .txt files, or shards ({known_suffixes()}) with 'text' or 'messages'"


def hosts_of_packs(packs: Iterable[Pack]) -> Iterator[str]:
    """Yield documents of registered packs, read with the settings of their sources."""
    shards = [(shard, pack.source) for pack in packs for shard in pack.shards]
    if not shards:
        found, remedy = "no registered shard", "register the corpus: `decon-assets register`"
        raise MissingError(Problem("the corpus", found, "documents to plant into", remedy))
    return in_turn([_documents(shard, source) for shard, source in _spread(shards)])


def texts_below(path: Path) -> list[Texts]:
    """Return all texts below a path, sorted by name."""
    files = [path] if path.is_file() else sorted(file for file in path.rglob("*") if file.is_file())
    loose: dict[str, list[Path]] = {}
    sets = []
    for file in files:
        if file.suffix == ".zip":
            sets.append(Texts(str(file), has_documents=False, texts=_texts_in_zip(file)))
        elif file.suffix == ".txt":
            loose.setdefault(str(file.parent), []).append(file)
        elif is_shard(file):
            sets.append(Texts(str(file), has_documents=True, texts=_texts_of_shard(file)))
    for folder, members in loose.items():
        decoded = (_decode(member.read_bytes()) for member in members)
        sets.append(Texts(folder, has_documents=False, texts=decoded))
    return sorted(sets, key=lambda texts: texts.name)


def _spread(shards: Sequence[T]) -> Sequence[T]:
    """Return at most `_MAX_SHARDS` elements, evenly spread."""
    n = min(len(shards), _MAX_SHARDS)
    return [shards[at * len(shards) // n] for at in range(n)]


def _texts_in_zip(path: Path) -> Iterator[str]:
    with zipfile.ZipFile(path) as archive:
        for name in sorted(archive.namelist()):
            if name.endswith(".txt"):
                yield _decode(archive.read(name))


def _decode(content: bytes) -> str:
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        return content.decode("latin-1")  # never fails


def _pages(texts: Iterable[str]) -> Iterator[str]:
    for text in texts:
        start = 0
        while len(text) - start > _PAGE:
            end = start + _PAGE
            cuts = (text.rfind(mark, start, end) for mark in ("\n", " "))
            stop = next((cut + 1 for cut in cuts if cut > start), end)
            yield text[start:stop]
            start = stop
        yield text[start:]


def _texts_of_shard(path: Path) -> Iterator[str]:
    """Yield documents from the usual fields, `text` or `messages`."""
    name = glob.escape(path.name)
    for source in (
        Source(name="texts", path=name, text="text"),
        Source(name="texts", path=name, messages="messages"),
    ):
        (shard,) = find_shards(source, folder=path.parent, known={})
        with closing(_documents(shard, source, rows=_ROWS_TRIED)) as tried:
            if next(tried, None) is None:
                continue
        yield from _documents(shard, source)
        return


def _documents(
    shard: Shard, source: Source, *, rows: int | None = None
) -> Generator[str, None, None]:
    for row in islice(read_shard(shard, source), rows):
        if isinstance(row, Document):
            yield row.text
