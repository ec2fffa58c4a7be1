"""What has to be there before anything is built: every shard scanned, every row read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from decon_core.corpus import Pack, Shard
from decon_core.errors import IncompleteError, MissingError, Problem
from decon_core.mixtures.choice import Sight
from decon_core.records import Version
from decon_core.store import read_json


def require_scanned(sight: Sight, pack: Pack, versions: Sequence[Version]) -> None:
    """Raise unless every shard has a tile for every benchmark: absent means not scanned."""
    problems = [
        Problem(
            f"shard {shard.name!r} of pack {pack.name!r}",
            f"not scanned against {', '.join(lacking)}" if versions else "not scanned",
            "a tile for every benchmark",
            "materialize `scan` for these cells first; until then nothing here counts as clean",
        )
        for shard in pack.shards
        if (lacking := _lacking(sight, shard, versions)) is not None
    ]
    if problems:
        raise MissingError(problems)


def _lacking(sight: Sight, shard: Shard, versions: Sequence[Version]) -> list[str] | None:
    """Benchmarks that a shard was not scanned against; None when it has all, and a ledger."""
    store, scan = sight.store, sight.scan
    if not store.ledger(scan, shard.fingerprint).is_file():
        return [version.benchmark for version in versions]
    return [
        version.benchmark
        for version in versions
        if not store.tile(scan, shard.fingerprint, version.fingerprint).is_file()
    ] or None


def require_readable(sight: Sight, pack: Pack) -> None:
    """Raise when rows of a shard could not be read: nobody knows what they hold.

    Even where such rows may be left out, a shard of nothing else is more likely a field of another
    name than a shard to be emptied.
    """
    problems = []
    for shard in pack.shards:
        ledger = read_json(sight.store.ledger(sight.scan, shard.fingerprint))
        if ledger["unreadable"] and not ledger["n_documents"]:
            first = ledger["unreadable"][0]
            problems.append(
                Problem(
                    shard.path,
                    f"no row that could be read; the first: {first['reason']} ({first['detail']})",
                    "documents",
                    f"check the fields of the source {pack.source.name!r} in decon.toml",
                )
            )
        elif sight.policy.unreadable == "block":
            problems += [_unreadable_row(shard, row) for row in ledger["unreadable"]]
    if problems:
        raise IncompleteError(problems)


def _unreadable_row(shard: Shard, row: dict[str, Any]) -> Problem:
    # Lines are counted from one, as editors do; rows of tables from zero, as libraries do.
    place = f"row {row['row']}" if row["offset"] is None else f"line {row['row'] + 1}"
    return Problem(
        f"{shard.path}: {place}",
        f"{row['reason']} ({row['detail']})",
        "a document",
        'mend it, or set policy.unreadable = "drop" to leave such rows out',
    )
