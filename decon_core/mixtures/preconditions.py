"""What has to be there before anything is built: every shard scanned, every row read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from decon_core.benchmarks.records import Version
from decon_core.config.load import Source
from decon_core.corpus.packs import Pack, Shard
from decon_core.corpus.shapes import no_row_read
from decon_core.decisions.match_reader import MatchReader
from decon_core.errors import IncompleteError, MissingError, Problem
from decon_core.scan.tiles import Gap, gaps_of
from decon_core.storage.paths import parse_path
from decon_core.storage.store import read_json


def require_scanned(reader: MatchReader, pack: Pack, versions: Sequence[Version]) -> None:
    """Raise unless every shard has a tile for every benchmark: absent means not scanned."""
    gaps = gaps_of(reader.store, [pack], versions, reader.scan)
    if gaps:
        raise MissingError(_not_scanned(gap) for gap in gaps)


def _not_scanned(gap: Gap) -> Problem:
    found = f"not scanned against {', '.join(gap.lacking)}" if gap.lacking else "not scanned"
    remedy = "materialize `scan` for these cells first; until then nothing here counts as clean"
    if gap.is_refused:
        found, remedy = f"{found} ({gap.reason})", gap.cause.remedy
    where = f"shard {gap.shard.name!r} of pack {gap.pack.name!r}"
    return Problem(where, found, "a tile for every benchmark", remedy)


def require_readable(reader: MatchReader, pack: Pack) -> None:
    """Raise when rows of a shard could not be read: nobody knows what they hold.

    Even where such rows may be left out, a shard of nothing else is more likely a field of another
    name than a shard to be emptied.
    """
    problems = []
    for shard in pack.shards:
        ledger = read_json(reader.store.ledger(reader.scan, shard.fingerprint))
        if ledger["unreadable"] and not ledger["n_documents"]:
            problems.append(none_readable(shard, pack.source, ledger["unreadable"]))
        elif reader.policy.unreadable == "block":
            problems += [_unreadable_row(shard, row) for row in ledger["unreadable"]]
        if reader.policy.invalid_utf8 == "block":
            problems += [_invalid_row(shard, row) for row in ledger["invalid_utf8"]]
    if problems:
        raise IncompleteError(problems)


def none_readable(shard: Shard, source: Source, rows: Sequence[dict[str, Any]]) -> Problem:
    """A shard of which no row could be read: with its fields, and the setting that reads them."""
    first = f"the first: {rows[0]['reason']} ({rows[0]['detail']})"
    remedy = f", in a [[corpus.source]] for such files; it is in source {source.name!r} now"
    return no_row_read(parse_path(shard.path), source, len(rows), first, remedy=remedy)


def _invalid_row(shard: Shard, row: dict[str, Any]) -> Problem:
    return Problem(
        f"{shard.path}: {_place(row)}",
        f"bytes that are not UTF-8 ({row['detail']})",
        "UTF-8",
        'mend it, or set policy.invalid_utf8 = "replace" to write such rows with replacement '
        'characters, or "drop" to leave them out',
    )


def _place(row: dict[str, Any]) -> str:
    # Lines are counted from one, as editors do; rows of tables from zero, as libraries do.
    return f"row {row['row']}" if row["offset"] is None else f"line {row['row'] + 1}"


def _unreadable_row(shard: Shard, row: dict[str, Any]) -> Problem:
    return Problem(
        f"{shard.path}: {_place(row)}",
        f"{row['reason']} ({row['detail']})",
        "a document",
        'mend it, or set policy.unreadable = "drop" to leave such rows out',
    )
