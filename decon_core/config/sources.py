"""[corpus] and [sketch] of decon.toml: sources of shards, limits of packs, filters of n-grams.

`config/__init__.py` says what follows from a new key.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, ValidationInfo
from pydantic.dataclasses import dataclass as model

from decon_core.config.validation import (
    TABLE,
    Bytes,
    Name,
    Names,
    Positive,
    Whole,
    expects,
    invalid,
    known_name,
)

_DEFAULT_PACK_SHARDS = 64
MAX_ROW_BYTES = 1_000_000_000
ONLY_SOURCE = "corpus"  # the name of the source where there is no decon.toml
_LIMITS = ("pack_shards", "pack_bytes")


@model(frozen=True, kw_only=True, config=TABLE)
class PackLimits:
    """Limits of a pack, for all sources or for a single source."""

    pack_shards: Positive | None = None
    """Maximum number of shards in a pack. A source defaults to the value in [corpus], whose default
    is 64 unless pack_bytes is set."""
    pack_bytes: Bytes | None = None
    """Maximum size of a pack's files as stored: a number of bytes, or "20 GB", "1.5 GiB"."""

    def is_full(self, n_shards: int, n_bytes: int, n_more: int) -> bool:
        """Return whether a shard of `n_more` bytes would exceed a limit of a new pack."""
        too_many = self.pack_shards is not None and n_shards >= self.pack_shards
        return too_many or (self.pack_bytes is not None and n_bytes + n_more > self.pack_bytes)


_LABEL = re.compile(r"(?!source$)[a-z][a-z0-9_]*")


def _known_as_columns(labels: dict[str, str]) -> dict[str, str]:
    for name in labels:
        if not _LABEL.fullmatch(name):
            expected = "names of lower-case letters, digits and _, other than 'source'"
            raise invalid(expected, found=repr(name))
    return labels


def _known_layout(name: str) -> str:
    from decon_core.config.layouts import known_layouts

    return known_name(name, known_layouts(), found=name)


def _only_way(way: str | None, info: ValidationInfo) -> str | None:
    """Refuse a second way of reading rows: of `text`, `messages` and `layout`, a source has one."""
    others = [name for name in ("text", "messages", "layout") if info.data.get(name)]
    if way and others:
        found = " and ".join(map(repr, [*others, info.field_name]))
        raise invalid("one of them, or none, to read every text", found=found)
    return way


def _of_messages(roles: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
    # The key is absent if its value is wrong, which is another problem.
    if roles and info.data.get("messages", "") is None:
        raise invalid("'messages', the field whose turns have roles", found="no 'messages'")
    return roles


@model(frozen=True, kw_only=True, config=TABLE)
class SourceTable(PackLimits):
    """[[corpus.source]]: shards that are read in the same way."""

    name: str
    """Name of the source. It is part of the names of its packs."""
    path: Annotated[str, Field(min_length=1), expects("a path or a pattern")]
    """A glob; `**` matches any number of folders. The name of a shard is its path from the first
    wildcard on."""
    text: Annotated[
        Name | Names[Name] | None, expects("the path of a field, or a list of them")
    ] = None
    """Read only these fields and everything below them: "text", "metadata.body",
    ["prompt", "chosen", "rejected"], "messages[].tool_calls[].function.arguments". Default: every
    text of a row, at any depth."""
    messages: Annotated[Name | None, AfterValidator(_only_way), expects("the path of a field")] = (
        None
    )
    """Instead of `text`: read only the conversation in this field."""
    roles: Annotated[Names[Name], AfterValidator(_of_messages)] = ()
    """With `messages`: read only the turns of these roles; default: all."""
    layout: Annotated[
        Annotated[Name, AfterValidator(_known_layout)] | None,
        AfterValidator(_only_way),
        expects("the name of a layout"),
    ] = None
    """Read all rows in this published layout, such as "openai_chat" (docs/layouts.md). Default: the
    layout of each row is recognized."""
    ignore: Names[Name] = ()
    """Paths of text that may stay unread. No mixture is built while other text is unread."""
    id: Annotated[Name | None, expects("the name of a field")] = None
    """Field with the row's id."""
    labels: Annotated[
        dict[str, Annotated[Name, expects("a text in quotes")]],
        AfterValidator(_known_as_columns),
        expects('a table of strings, such as {language = "en"}'),
    ] = field(default_factory=dict)
    """Labels, such as { language = "en", kind = "web" }, by which composition tables group sources
    (docs/mixtures.md). Results do not depend on them."""


_AT_LEAST_ONE = "at least one [[corpus.source]]"


def _at_least_one(sources: tuple[SourceTable, ...]) -> tuple[SourceTable, ...]:
    if not sources:
        raise invalid(_AT_LEAST_ONE, found="[]")
    return sources


@model(frozen=True, kw_only=True, config=TABLE)
class Corpus(PackLimits):
    """[corpus]: the shards."""

    max_row_bytes: Bytes = MAX_ROW_BYTES
    """Maximum size of an uncompressed row: a number of bytes, or "1 GB". A shard with a longer row
    is not read, to limit memory use."""
    source: Annotated[
        tuple[SourceTable, ...], AfterValidator(_at_least_one), expects(_AT_LEAST_ONE)
    ]
    """Groups of shards that are read in the same way."""
    unread: Literal["block", "report"] = "block"
    """Text that a source neither reads nor ignores: "block" builds no mixture from the source,
    "report" only lists the text."""
    left_out: Annotated[tuple[Name, ...], expects("a list of paths in quotes")] = ()
    """Files that `init` could not read, or patterns of such files. They count as not read until you
    delete them from this list."""

    @cached_property
    def sources(self) -> tuple[Source, ...]:
        """The sources with what they inherit."""
        sources = []
        for table in self.source:
            values = {key: value for key, value in asdict(table).items() if key not in _LIMITS}
            values["labels"] = tuple(sorted(table.labels.items()))
            sources.append(Source(**values, max_row_bytes=self.max_row_bytes))
        return tuple(sources)

    @cached_property
    def packing(self) -> Mapping[str, PackLimits]:
        """The limits of new packs, by source; existing packs are not changed."""
        limits = {}
        for table in self.source:
            n_shards = table.pack_shards or self.pack_shards
            n_bytes = table.pack_bytes or self.pack_bytes
            if n_shards is None and n_bytes is None:
                n_shards = _DEFAULT_PACK_SHARDS
            limits[table.name] = PackLimits(pack_shards=n_shards, pack_bytes=n_bytes)
        return limits


@model(frozen=True, kw_only=True, config=TABLE)
class Sketch:
    """[sketch]: compact filters that record which n-grams occur in each block of documents. A scan
    of a benchmark that you add later reads only the blocks that may contain a match."""

    bits: Annotated[Whole, Field(ge=2, le=16)] = 5
    """Bits per n-gram. With more bits, the sketch is larger and fewer blocks are read again."""


@dataclass(frozen=True, kw_only=True)
class Source:
    """A glob of shards, and the fields with their text. Fields may be nested: `metadata.text`."""

    name: str
    path: str
    # Paths of the fields that are read; None, without `messages`: all text of the rows.
    text: str | tuple[str, ...] | None = None
    messages: str | None = None  # the path of a conversation, instead of `text`
    roles: tuple[str, ...] = ()  # roles of the messages to read; empty: all
    layout: str | None = None  # layout of all rows, by name; None: recognised row by row
    ignore: tuple[str, ...] = ()  # paths of text that may stay unread
    id: str | None = None
    labels: tuple[tuple[str, str], ...] = ()  # column and value, by column
    max_row_bytes: int = MAX_ROW_BYTES  # uncompressed; a shard with a longer row is refused

    def __post_init__(self) -> None:
        # JSON and TOML have only lists; a source read from them must equal the original.
        if self.text is not None and not isinstance(self.text, str):
            object.__setattr__(self, "text", tuple(self.text))
        object.__setattr__(self, "roles", tuple(self.roles))
        object.__setattr__(self, "ignore", tuple(self.ignore))
        object.__setattr__(self, "labels", tuple((name, value) for name, value in self.labels))

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths of the fields that are read; empty: all."""
        if self.messages:
            return (self.messages,)
        return (self.text,) if isinstance(self.text, str) else self.text or ()

    @property
    def reading(self) -> Source:
        """What decides the text of a row, without what does not."""
        is_uncounted = "*" in self.ignore
        return replace(
            self, name="", path="", id=None, labels=(), ignore=("*",) if is_uncounted else ()
        )


def source_names(corpus: object) -> list[str]:
    """Return the names in a parsed table [corpus], whatever else is wrong with it."""
    entries = corpus.get("source") if isinstance(corpus, dict) else None
    tables = entries if isinstance(entries, list) else []
    names = [table.get("name") for table in tables if isinstance(table, dict)]
    return [name for name in names if isinstance(name, str)]
