"""[corpus] of decon.toml: the sources of shards, and the limits of their packs."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, field, replace
from typing import Annotated, Literal

from pydantic import AfterValidator, Field
from pydantic.dataclasses import dataclass as model

from decon_core.config.layouts import known_layouts
from decon_core.config.validation import (
    TABLE,
    Bytes,
    Name,
    Names,
    Positive,
    SettingsReader,
    did_you_mean,
    expects,
    invalid,
)

_DEFAULT_PACK_SHARDS = 64
MAX_ROW_BYTES = 1_000_000_000
ONLY_SOURCE = "corpus"  # the name of the source where there is no decon.toml
_LIMITS = ("pack_shards", "pack_bytes")


@model(frozen=True, kw_only=True, config=TABLE)
class PackLimits:
    """Limits of a pack, for all sources or for one."""

    pack_shards: Positive | None = None
    """Maximum number of shards in a pack; default: as in [corpus], there 64 unless pack_bytes is
    set."""
    pack_bytes: Bytes | None = None
    """Maximum bytes of a pack's files, as stored: a number, or "20 GB", "1.5 GiB"."""


_LABEL = re.compile(r"(?!source$)[a-z][a-z0-9_]*")


def _known_as_columns(labels: dict[str, str]) -> dict[str, str]:
    for name in labels:
        if not _LABEL.fullmatch(name):
            expected = "labels of lower-case letters, digits and _, and not 'source'"
            raise invalid(expected, found=repr(name))
    return labels


@model(frozen=True, kw_only=True, config=TABLE)
class SourceTable(PackLimits):
    """[[corpus.source]]: shards that are read in the same way."""

    name: str
    """Name of the source, part of the names of its packs."""
    path: Annotated[str, Field(min_length=1), expects("a path or a pattern")]
    """A glob; `**` descends into folders. Shards are named from its first wildcard on."""
    text: Annotated[
        Name | Names[Name] | None, expects("the path of a field, or a list of them")
    ] = None
    """Read only these fields, as "text", "metadata.body", ["prompt", "chosen", "rejected"] or
    "messages[].tool_calls[].function.arguments"; each with all below it. Default: every text of a
    row, at any depth."""
    messages: Annotated[Name | None, expects("the path of a field")] = None
    """Instead of text: read only this conversation."""
    roles: Names[Name] = ()
    """With messages: only turns of these roles; default: all."""
    layout: Annotated[Name | None, expects("the name of a layout")] = None
    """Read all rows as this published layout, as "openai_chat" (docs/layouts.md). Default: it is
    recognised row by row."""
    ignore: Names[Name] = ()
    """Paths of text that may stay unread. Other text that is not read blocks mixtures."""
    id: Annotated[Name | None, expects("the name of a field")] = None
    """Field with the row's id."""
    labels: Annotated[
        dict[str, Annotated[Name, expects("a text in quotes")]],
        AfterValidator(_known_as_columns),
        expects('a table of texts, as {language = "en"}'),
    ] = field(default_factory=dict)
    """Texts by name, as { language = "en", kind = "web" }, by which tables of a composition group
    sources (docs/mixtures.md). No result depends on them."""


@model(frozen=True, kw_only=True, config=TABLE)
class Corpus(PackLimits):
    """[corpus]: the shards."""

    max_row_bytes: Bytes = MAX_ROW_BYTES
    """Maximum bytes of an uncompressed row: a shard with a longer one is refused, so that it cannot
    take all memory. A number, or "1 GB"."""
    source: tuple[SourceTable, ...] = ()
    """The sources."""
    unread: Literal["block", "report"] = "block"
    """Text that a source does not read and does not ignore: mixtures of the source are refused, or
    it is only reported."""


@dataclass(frozen=True, kw_only=True)
class Source:
    """A glob of shards, and the fields with their text. Fields may be nested: `metadata.text`."""

    name: str
    path: str
    # Paths of the fields that are read; None, without `messages`: all text of the rows.
    text: str | tuple[str, ...] | None = None
    messages: str | None = None  # the path of a conversation, instead of `text`
    roles: tuple[str, ...] = ()  # of the messages to read; empty: all
    layout: str | None = None  # of all rows, by name; None: recognised row by row
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


@dataclass(frozen=True, kw_only=True)
class Packing:
    """The limits of a new pack. Existing packs are not changed."""

    shards: int | None = None
    n_bytes: int | None = None  # size of the files

    def is_full(self, n_shards: int, n_bytes: int, n_more: int) -> bool:
        """Return whether a shard of `n_more` bytes would exceed a limit of the pack."""
        too_many = self.shards is not None and n_shards >= self.shards
        return too_many or (self.n_bytes is not None and n_bytes + n_more > self.n_bytes)


def read_sources(
    reader: SettingsReader, values: object
) -> tuple[tuple[Source, ...], dict[str, Packing], str]:
    """Return the sources, the limits of their packs, and what unread text does."""
    entries = values.get("source") if isinstance(values, dict) else None
    if isinstance(values, dict):
        values = {key: value for key, value in values.items() if key != "source"}
    general = reader.table(Corpus, "corpus", values) or Corpus()
    if not isinstance(entries, list) or not entries:
        reader.wrong("corpus.source", entries, "at least one [[corpus.source]]")
        return (), {}, general.unread
    sources, packing = [], {}
    for number, entry in enumerate(entries):
        where = f"corpus.source[{number}]"
        table = reader.table(SourceTable, where, entry)
        if table is None:
            continue
        _check_reading(reader, where, table)
        if table.roles and table.messages is None:
            reader.wrong(f"{where}.roles", "no 'messages'", "the field whose turns have roles")
        n_shards = table.pack_shards or general.pack_shards
        n_bytes = table.pack_bytes or general.pack_bytes
        if n_shards is None and n_bytes is None:
            n_shards = _DEFAULT_PACK_SHARDS
        packing[table.name] = Packing(shards=n_shards, n_bytes=n_bytes)
        fields = {key: value for key, value in asdict(table).items() if key not in _LIMITS}
        fields["labels"] = tuple(sorted(table.labels.items()))
        fields["max_row_bytes"] = general.max_row_bytes
        sources.append(Source(**fields))
    reader.named_tables("corpus.source", [source.name for source in sources], what="source")
    return tuple(sources), packing, general.unread


def _check_reading(reader: SettingsReader, where: str, table: SourceTable) -> None:
    given = [name for name in ("text", "messages", "layout") if getattr(table, name)]
    if len(given) > 1:
        found = " and ".join(map(repr, given))
        reader.wrong(where, found, "one of them, or none: then every text is read")
    if table.layout and table.layout not in known_layouts():
        names = known_layouts()
        expected = f"one of {', '.join(names)}"
        remedy = did_you_mean(table.layout, names)
        reader.wrong(f"{where}.layout", table.layout, expected, remedy)
