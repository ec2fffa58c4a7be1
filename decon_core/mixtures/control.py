"""Controls: as many documents fewer as a treatment has, of the same lengths, drawn at random.

What a model learns from fewer documents must not be taken for what it learns from fewer leaks. For
every document that the treatment takes out of a source, the control takes out another one of the
source that the treatment keeps, about as long; so both lose as many documents and tokens, and the
control keeps the leaks. Which of several equal ones it is, the seed says.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from decon_core.config.mixtures import Mixture
from decon_core.corpus.packs import Pack, Shard
from decon_core.decisions.match_reader import MatchReader
from decon_core.errors import DamagedError
from decon_core.mixtures.choice import FOUND, Sizes, choose_rows, drop_unlicensed, leaks_of
from decon_core.mixtures.matching import matching
from decon_core.mixtures.rows import RowsOfShard
from decon_core.schemas import DRAWN
from decon_core.storage.store import Store, read_json, read_parquet, write_parquet

Integers = npt.NDArray[np.int64]
Words64 = npt.NDArray[np.uint64]

_MATCHED = b"matched"
# Documents that are drawn from: as many of each to be drawn, and more. All of a large source would
# not fit into memory; which ones it is, the seed says.
_POOL = 200
_LEAST_POOL = 20_000
_MIX = np.uint64(0x9E3779B97F4A7C15)
_MIX_2 = np.uint64(0xD6E8FEB86659FD93)
_SHIFT = np.uint64(32)


@dataclass(frozen=True)
class Matched:
    """How near a control came to its treatment in one source."""

    source: str
    n_documents: int  # that the treatment takes out
    n_tokens: int
    n_drawn: int
    n_drawn_tokens: int

    @property
    def is_near(self) -> bool:
        """As many documents, and as many tokens to half a percent."""
        apart = abs(self.n_drawn_tokens - self.n_tokens)
        return self.n_drawn == self.n_documents and apart <= 0.005 * self.n_tokens


@dataclass(frozen=True, eq=False)
class Draw:
    """The rows that a control leaves out, by name of the shard: of those asked for, or of all."""

    rows: dict[str, list[int]]
    matched: Matched


def draw_fingerprint(
    packs: Sequence[Pack], control: Mixture, treatment: Mixture, settings: object
) -> str:
    """What a draw depends on: all shards of its source, and the settings that make leaks."""
    source = packs[0].source.name
    shards = sorted((shard.name, shard.fingerprint) for pack in packs for shard in pack.shards)
    value = [source, shards, control.seed, treatment.to_json(), settings]
    return sha256(json.dumps(value).encode()).hexdigest()[:16]


def read_draw(store: Store, fingerprint: str, shards: Sequence[str]) -> Draw | None:
    """What was drawn before from shards, by their names, if that is there and whole."""
    own = pc.field("shard").isin(pa.array(shards, pa.string()))
    try:
        return _told(read_parquet(store.draw(fingerprint), filters=own))
    except (FileNotFoundError, DamagedError):
        return None


def draw(
    reader: MatchReader,
    packs: Sequence[Pack],
    control: Mixture,
    treatment: Mixture,
    fingerprint: str,
) -> Draw:
    """Draw from all packs of a source, of which each has its share, and keep it to be read."""
    table, matched = _draw_from(reader, packs, control.seed, treatment)
    about = {_MATCHED: json.dumps(vars(matched)).encode()}
    table = table.replace_schema_metadata(about)
    write_parquet(reader.store.draw(fingerprint), table)
    return _told(table)


def _told(table: pa.Table) -> Draw:
    rows: dict[str, list[int]] = {}
    for shard, row in zip(*(column.to_pylist() for column in table.columns), strict=True):
        rows.setdefault(shard, []).append(row)
    return Draw(rows, Matched(**json.loads(table.schema.metadata[_MATCHED])))


def _draw_from(
    reader: MatchReader, packs: Sequence[Pack], seed: int, treatment: Mixture
) -> tuple[pa.Table, Matched]:
    """A draw from one source."""
    shards = [(pack, shard) for pack in packs for shard in pack.shards]
    ledgers = [
        read_json(reader.store.ledger(reader.scan, shard.fingerprint)) for _, shard in shards
    ]
    n_documents = sum(ledger["n_documents"] for ledger in ledgers)
    source = packs[0].source.name
    most = sum(len(leaks_of(reader, shard, treatment, source=source)) for _, shard in shards)
    share = (_POOL * most + _LEAST_POOL) / max(n_documents, 1)
    gone, kept = [np.empty(0, np.int64)], []
    for number, (pack, shard) in enumerate(shards):
        taken_out, left = _parted(reader, shard, pack, treatment)
        gone.append(taken_out)
        kept.append(_Pool.of(seed, shard, number, *left, share=share))
    wanted, pool = np.concatenate(gone), _Pool.joined(kept)
    drawn = pool.take(matching(wanted, pool.n_tokens))
    order = np.lexsort([drawn.rows, drawn.shards])
    names = np.array([shard.name for _, shard in shards], object)[drawn.shards[order]]
    table = pa.table([pa.array(names, pa.string()), drawn.rows[order]], DRAWN)
    told = Matched(
        source=source,
        n_documents=int(wanted.size),
        n_tokens=int(wanted.sum()),
        n_drawn=int(drawn.rows.size),
        n_drawn_tokens=int(drawn.n_tokens.sum()),
    )
    return table, told


def _parted(
    reader: MatchReader, shard: Shard, pack: Pack, treatment: Mixture
) -> tuple[Integers, tuple[Integers, Integers]]:
    """Tokens of the documents that leaked; rows and tokens of those that the treatment keeps.

    What goes for another reason goes from both.
    """
    sizes = Sizes.of(reader.store, shard, reader.scan)
    choice = choose_rows(reader, shard, pack.source, treatment, sizes)
    drop_unlicensed(choice, sizes.rows.tolist(), RowsOfShard(shard, pack.source), treatment)
    leaks = [
        row
        for row, reasons in choice.gone.items()
        if all(reason["why"] in FOUND for reason in reasons)
    ]
    is_kept = ~np.isin(sizes.rows, np.array([*choice.gone], np.int64))
    return sizes.n_tokens[sizes.at(leaks)], (sizes.rows[is_kept], sizes.n_tokens[is_kept])


@dataclass(frozen=True, eq=False)
class _Pool:
    """Documents that may be drawn, the seed's first ones first."""

    shards: Integers  # number of the shard
    rows: Integers
    n_tokens: Integers
    ranks: Words64

    @staticmethod
    def of(
        seed: int, shard: Shard, number: int, rows: Integers, n_tokens: Integers, *, share: float
    ) -> _Pool:
        """About this share of a shard's documents."""
        named = f"{seed} {shard.source} {shard.name} {shard.fingerprint}"
        start = int(sha256(named.encode()).hexdigest()[:16], 16)
        ranks = (rows.astype(np.uint64) + np.uint64(start)) * _MIX
        ranks = (ranks ^ (ranks >> _SHIFT)) * _MIX_2
        pool = _Pool(np.full(rows.size, number), rows, n_tokens, ranks ^ (ranks >> _SHIFT))
        return pool if share >= 1 else pool.take(np.flatnonzero(pool.ranks < int(share * 2**64)))

    @staticmethod
    def joined(pools: Sequence[_Pool]) -> _Pool:
        """All of them in the order of their ranks; a field at a time, or there were two of all."""
        order = np.argsort(np.concatenate([pool.ranks for pool in pools]), kind="stable")
        names = ("shards", "rows", "n_tokens", "ranks")
        return _Pool(
            *(np.concatenate([getattr(pool, name) for pool in pools])[order] for name in names)
        )

    def take(self, at: Integers) -> _Pool:
        return _Pool(self.shards[at], self.rows[at], self.n_tokens[at], self.ranks[at])
