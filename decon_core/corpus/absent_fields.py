"""Settings that name a field which the rows of a source do not have, as a misspelled name does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from decon_core.config.mixtures import Mixture
from decon_core.config.sources import Source
from decon_core.config.validation import did_you_mean
from decon_core.corpus.documents import field_value
from decon_core.corpus.packs import Pack
from decon_core.corpus.row_json import leaves
from decon_core.corpus.shard_head import Row, head_of
from decon_core.errors import Problem
from decon_core.storage.paths import parse_path
from decon_core.wording import counted

_MOST_SHARDS = 3  # whose first rows are read, of a source


def absent_fields(packs: Iterable[Pack], mixtures: Sequence[Mixture]) -> Iterator[Problem]:
    """Yield a problem for each setting that names a field that no first row of a source has."""
    paths: dict[Source, list[str]] = {}
    for pack in packs:
        paths.setdefault(pack.source, []).extend(shard.path for shard in pack.shards)
    for source, of_source in paths.items():
        absent, rows = [*_settings_of(source, mixtures)], list[Row]()
        for path in of_source[:_MOST_SHARDS]:
            if absent:
                rows += (head := head_of(parse_path(path)).rows)
                absent = [(where, fields) for where, fields in absent if _lack(head, fields)]
        for where, fields in absent if rows else ():
            named = " and ".join(map(repr, fields))
            n_rows = counted(len(rows), "row")
            found = f"{named}, which is in none of the first {n_rows} of source {source.name!r}"
            remedy = did_you_mean(fields[0], {path for row in rows for path, _ in leaves(row)})
            yield Problem(where, found, "the name of a field that the rows have", remedy)


def _lack(rows: Iterable[Row], fields: Sequence[str]) -> bool:
    """Return whether all rows lack all fields."""
    return all(field_value(row, name) is None for row in rows for name in fields)


def _settings_of(
    source: Source, mixtures: Sequence[Mixture]
) -> Iterator[tuple[str, Sequence[str]]]:
    """Yield the settings that name fields of a source, with the fields; one of these is enough."""
    if source.id:
        yield f"corpus.source {source.name!r}: id", [source.id]
    for mixture in mixtures:
        if mixture.licenses and mixture.has_source(source.name):
            yield f"mixture {mixture.name!r}: licenses.field", mixture.licenses.fields
