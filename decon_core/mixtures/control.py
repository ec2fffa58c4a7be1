"""Draw the documents that a control leaves out: as many as its treatment, of the same lengths.

A control separates the effect of fewer documents from the effect of fewer leaks. For every document
that the treatment removes from a source, the control removes one of about the same length that the
treatment keeps. Both lose the same number of documents and tokens, and the control keeps the leaks.
The seed decides among documents of equal length.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from decon_core.config.mixtures import Mixture
from decon_core.corpus.packs import Pack, Shard
from decon_core.decisions.match_reader import MatchReader
from decon_core.errors import DamagedError
from decon_core.kernels.arrays import Integers
from decon_core.mixtures.choice import FOUND, choose_rows, drop_unlicensed, leaks_of
from decon_core.mixtures.edit_rows import RowReader
from decon_core.mixtures.manifest import fingerprint_of
from decon_core.schemas import DRAWN
from decon_core.storage.store import Store
from decon_core.storage.tables import read_parquet, write_parquet

if TYPE_CHECKING:
    import polars as pl


_MATCHED = b"matched"
# Size of the pool to draw from: so many documents for each one to be drawn, and at least so many.
# All documents of a large source would not fit into memory. The seed selects the pool.
_POOL = 200
_LEAST_POOL = 20_000
_MIX = np.uint64(0x9E3779B97F4A7C15)
_MIX_2 = np.uint64(0xD6E8FEB86659FD93)
_SHIFT = np.uint64(32)


@dataclass(frozen=True)
class Matched:
    """How well a control matches its treatment in one source."""

    source: str
    n_documents: int  # removed by the treatment
    n_tokens: int
    n_drawn: int
    n_drawn_tokens: int

    @property
    def is_near(self) -> bool:
        """Whether documents are equal in number, and tokens to within half a percent."""
        apart = abs(self.n_drawn_tokens - self.n_tokens)
        return self.n_drawn == self.n_documents and apart <= 0.005 * self.n_tokens


@dataclass(frozen=True, eq=False)
class Draw:
    """The rows that a control leaves out, by name of the shard."""

    rows: dict[str, list[int]]
    matched: Matched


def draw_fingerprint(
    packs: Sequence[Pack], control: Mixture, treatment: Mixture, settings: object
) -> str:
    """Return a hash of all inputs of a draw: the shards of the source, and the leak settings."""
    source = packs[0].source.name
    shards = sorted((shard.name, shard.fingerprint) for pack in packs for shard in pack.shards)
    return fingerprint_of([source, shards, control.seed, treatment.to_json(), settings])


def read_draw(store: Store, fingerprint: str, shards: Sequence[str]) -> Draw | None:
    """Return the stored draw for these shards (names); None if it is missing or damaged."""
    import pyarrow.compute as pc

    is_wanted = pc.field("shard").isin(pa.array(shards, pa.string()))
    try:
        return _draw_of(read_parquet(store.draw(fingerprint), filters=is_wanted))
    except (FileNotFoundError, DamagedError):
        return None


def draw(
    reader: MatchReader,
    packs: Sequence[Pack],
    control: Mixture,
    treatment: Mixture,
    fingerprint: str,
) -> Draw:
    """Draw from all packs of a source, and store the result."""
    import polars as pl

    from decon_core.mixtures.match_sizes import matching

    shards = [(pack, shard) for pack in packs for shard in pack.shards]
    n_documents = sum(reader.ledger(shard)["n_documents"] for _, shard in shards)
    source = packs[0].source.name
    n_leaky = sum(len(leaks_of(reader, shard, treatment, source=source)) for _, shard in shards)
    share = (_POOL * n_leaky + _LEAST_POOL) / max(n_documents, 1)
    removed, pools = [np.empty(0, np.int64)], []
    for number, (pack, shard) in enumerate(shards):
        sizes, kept = _split_by_treatment(reader, shard, pack, treatment)
        removed.append(sizes)
        pools.append(_pool(control.seed, shard, number, *kept, share=share))
    wanted, pool = np.concatenate(removed), pl.concat(pools).sort("rank", maintain_order=True)
    drawn = pool[matching(wanted, pool["n_tokens"].to_numpy())].sort("number", "row")
    matched = Matched(
        source=source,
        n_documents=int(wanted.size),
        n_tokens=int(wanted.sum()),
        n_drawn=drawn.height,
        n_drawn_tokens=int(drawn["n_tokens"].sum()),
    )
    table = drawn.select("shard", "row").to_arrow().cast(DRAWN)
    table = table.replace_schema_metadata({_MATCHED: json.dumps(vars(matched)).encode()})
    write_parquet(reader.store.draw(fingerprint), table)
    return _draw_of(table)


def _draw_of(table: pa.Table) -> Draw:
    rows: dict[str, list[int]] = {}
    shards, numbers = (column.to_pylist() for column in table.columns)
    for shard, row in zip(shards, numbers, strict=True):
        rows.setdefault(shard, []).append(row)
    return Draw(rows, Matched(**json.loads(table.schema.metadata[_MATCHED])))


def _split_by_treatment(
    reader: MatchReader, shard: Shard, pack: Pack, treatment: Mixture
) -> tuple[Integers, tuple[Integers, Integers]]:
    """Return the tokens of the documents that leaked; rows and tokens of those that are kept.

    Documents that are removed for another reason are in neither: the control removes them, too.
    """
    choice = choose_rows(reader, shard, pack.source.name, treatment)
    sizes = choice.sizes
    drop_unlicensed(choice, sizes.rows.tolist(), RowReader(shard, pack.source), treatment.licenses)
    reasons = {row: {reason["why"] for reason in all_} for row, all_ in choice.gone.items()}
    leaks = [row for row, whys in reasons.items() if whys.issubset(FOUND)]
    is_kept = ~np.isin(sizes.rows, np.array([*choice.gone], np.int64))
    return sizes.n_tokens[sizes.at(leaks)], (sizes.rows[is_kept], sizes.n_tokens[is_kept])


def _pool(
    seed: int, shard: Shard, number: int, rows: Integers, n_tokens: Integers, *, share: float
) -> pl.DataFrame:
    """Return about this share of the documents of a shard, which may be drawn in order of rank."""
    import polars as pl

    named = f"{seed} {shard.source} {shard.name} {shard.fingerprint}"
    start = int(sha256(named.encode()).hexdigest()[:16], 16)
    ranks = (rows.astype(np.uint64) + np.uint64(start)) * _MIX
    ranks = (ranks ^ (ranks >> _SHIFT)) * _MIX_2
    ranks ^= ranks >> _SHIFT
    at = np.flatnonzero(ranks < int(share * 2**64)) if share < 1 else np.arange(rows.size)
    columns = {"row": rows[at], "n_tokens": n_tokens[at], "rank": ranks[at]}
    named_shard = pl.lit(shard.name, pl.String).alias("shard")
    return pl.DataFrame(columns).with_columns(pl.lit(number).alias("number"), named_shard)
