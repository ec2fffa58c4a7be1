"""The shards of one mixture and pack, written: what is left, what is not and why, the account."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from decon_core.config.mixtures import Mixture
from decon_core.corpus.lines import LineBlock
from decon_core.corpus.packs import Pack, Shard, hash_file
from decon_core.decisions.match_reader import MatchReader
from decon_core.errors import CorpusError, Problem
from decon_core.mixtures.attributes import attribute_file, stem_of, write_attributes
from decon_core.mixtures.card import DATA
from decon_core.mixtures.choice import RowActions, Sizes, choose_rows, drop_unlicensed
from decon_core.mixtures.excise import Cut, cut_out
from decon_core.mixtures.layouts import LAYOUTS, write_layout
from decon_core.mixtures.manifest import MANIFEST, REMOVED_FILE
from decon_core.mixtures.rescan import Rescan
from decon_core.mixtures.rewrite import Changes, Ids, has_lines, rewrite, rewrite_lines
from decon_core.mixtures.rows import Rows, RowsOfBlock, RowsOfShard
from decon_core.scan.workers import advance
from decon_core.schemas import REMOVED
from decon_core.storage.store import write_parquet

_UNITS = ("documents", "bytes", "tokens")


class Writer:
    """Writes the shards of one mixture and pack, and keeps account."""

    def __init__(self, reader: MatchReader, mixture: Mixture, pack: Pack, folder: Path) -> None:
        self._sight, self._mixture, self._pack, self._folder = reader, mixture, pack, folder
        self._removed: list[pa.Table] = [REMOVED.empty_table()]

    @cached_property
    def _rescan(self) -> Rescan:
        reader = self._sight
        return Rescan(
            reader.store,
            reader.needed_by(self._mixture),
            reader.policy,
            reader.scan,
            source=self._pack.source.name,
            verdicts=reader.verdicts,
        )

    def write(self, shard: Shard, drawn: Sequence[int]) -> dict[str, Any]:
        """Write a shard as the mixture has it; its account."""
        _require_name(self._mixture, shard)
        sizes = Sizes.of(self._sight.store, shard, self._sight.scan)
        choice = choose_rows(
            self._sight, shard, self._pack.source, self._mixture, sizes, drawn=drawn
        )
        fate = _Fate(sizes, choice)
        target = self._folder / file_of(self._mixture, shard)
        if target.exists():  # these have one ending, whatever their shards have
            what = "attributes" if self._mixture.write == "attributes" else "documents"
            found = f"another shard whose {what} would have the same name"
            raise CorpusError(Problem(shard.path, found, "names that differ before the ending"))
        ids = self._write(shard, target, fate)
        advance(shard.n_bytes)
        self._removed.append(_removed_rows(shard, fate, ids, self._mixture))
        return {
            "shard": shard.name,
            "file": file_of(self._mixture, shard),
            "content": shard.content,
            "fingerprint": shard.fingerprint,
            **_account(fate),
            "n_bytes": target.stat().st_size,
            "output": hash_file(target),
        }

    def _write(self, shard: Shard, target: Path, fate: _Fate) -> Ids:
        """The file of a shard; the ids of the rows that are not as they were."""
        source, write = self._pack.source, self._mixture.write

        def decide(block: LineBlock) -> Changes:
            return self._settle(fate, block.rows, RowsOfBlock(block, shard, source))

        if write == "shards" and has_lines(shard):
            return rewrite_lines(shard, source, target, decide)
        changes = self._settle(fate, fate.rows, RowsOfShard(shard, source))
        rows = fate.sizes.rows.tolist()
        if write == "attributes":
            name = self._mixture.name
            return write_attributes(shard, source, target, fate.choice, rows, name=name)
        if write == "shards":
            return rewrite(shard, source, target, changes)
        return write_layout(write, shard, source, target, changes, rows)

    def _settle(self, fate: _Fate, rows: range, at_hand: Rows) -> Changes:
        """What only the rows themselves can tell, of a stretch of them: then all is told."""
        mixture, choice = self._mixture, fate.choice
        drop_unlicensed(choice, fate.sizes.within(rows), at_hand, mixture)
        to_cut = [row for row in rows if row in choice.cut] if choice.cut else []
        cut = {}
        if to_cut:
            cut = cut_out(choice, to_cut, at_hand, self._pack.source, mixture, self._rescan)
            fate.cut.update(cut)
        gone = frozenset(filter(choice.gone.__contains__, rows))
        replaced = frozenset(filter(choice.replaced.__contains__, rows)) - gone - cut.keys()
        return Changes(gone, {row: one.value for row, one in cut.items()}, replaced)

    def write_removed(self) -> Path:
        path = self._folder / REMOVED_FILE
        write_parquet(path, pa.concat_tables(self._removed).combine_chunks())
        return path


@dataclass(frozen=True, eq=False)
class _Fate:
    """What becomes of the rows of a shard. Some of it is told only as they are written."""

    sizes: Sizes
    choice: RowActions
    cut: dict[int, Cut] = field(default_factory=dict)

    @property
    def rows(self) -> range:
        """All of them."""
        return range(max([*self.choice.gone, *self.sizes.rows[-1:].tolist()], default=-1) + 1)


def file_of(mixture: Mixture, shard: Shard) -> str:
    """The name of what a mixture has of a shard."""
    match mixture.write:
        case "shards":
            return shard.name
        case "attributes":
            return attribute_file(shard)
        case "dolma":
            return stem_of(shard) + LAYOUTS["dolma"].suffix
        case "parquet":
            suffix = LAYOUTS["parquet"].suffix
            return f"{DATA}/{stem_of(shard).removesuffix(suffix)}{suffix}"


def _require_name(mixture: Mixture, shard: Shard) -> None:
    """Raise where a shard is named like what is ours, or like what loaders pass over."""
    expected = ""
    if shard.name in (MANIFEST, REMOVED_FILE):
        expected = "any other name"
    elif mixture.write == "parquet" and any(
        part.startswith((".", "__")) for part in shard.name.split("/")
    ):
        expected = "a name that begins in another way: loaders of parquet would pass over it"
    if expected:
        raise CorpusError(Problem(shard.path, f"a shard named {shard.name}", expected))


def _account(fate: _Fate) -> dict[str, Any]:
    """Documents, bytes and tokens before and after, and what went for which reason first."""
    sizes, choice, cut = fate.sizes, fate.choice, fate.cut
    is_left = ~np.isin(sizes.rows, np.array([*choice.gone], np.int64))
    n_bytes, n_tokens = sizes.n_bytes.copy(), sizes.n_tokens.copy()
    for row, one in cut.items():
        at = sizes.at([row])
        n_bytes[at], n_tokens[at] = one.n_bytes, one.n_tokens
    counts = {
        "in": (sizes.rows.size, sizes.n_bytes.sum(), sizes.n_tokens.sum()),
        "out": (is_left.sum(), n_bytes[is_left].sum(), n_tokens[is_left].sum()),
    }
    why = Counter(reasons[0]["why"] for reasons in choice.gone.values())
    return {
        **{
            f"n_{unit}_{way}": int(n)
            for way, ns in counts.items()
            for unit, n in zip(_UNITS, ns, strict=True)
        },
        "n_cut": len(cut),
        "n_unreadable_left_out": why.pop("unreadable", 0),
        "n_invalid_utf8_replaced": len(choice.replaced - choice.gone.keys()),
        "removed": dict(sorted(why.items())),
        "found": dict(sorted(choice.n_found.items())),
    }


def _removed_rows(shard: Shard, fate: _Fate, ids: Ids, mixture: Mixture) -> pa.Table:
    """What is not there, and why. A column at a time: it may be nearly all of the shard."""
    sizes, cut = fate.sizes, fate.cut
    told = {**fate.choice.gone, **{row: one.reasons for row, one in cut.items()}}
    once = sorted(told)
    n_reasons = np.array([len(told[row]) for row in once], np.int64)
    n_left = np.array([cut[row].n_tokens if row in cut else 0 for row in once], np.int64)
    rows = np.repeat(np.array(once, np.int64), n_reasons)
    is_read = np.isin(rows, sizes.rows)
    n_tokens = np.zeros(rows.size, np.int64)
    n_tokens[is_read] = sizes.n_tokens[np.searchsorted(sizes.rows, rows[is_read])]
    numbers = rows.tolist()
    reasons = [reason for row in once for reason in told[row]]
    columns = {
        "shard": pa.repeat(shard.name, rows.size),
        "row": rows,
        "doc_id": [ids[row] for row in numbers],
        "n_tokens": pa.array(n_tokens - np.repeat(n_left, n_reasons), mask=~is_read),
        "what": [mixture.cut if row in cut else "document" for row in numbers],
    }
    said = set().union(*reasons)
    for name in REMOVED.names[len(columns) :]:
        found = [reason.get(name) for reason in reasons] if name in said else pa.nulls(rows.size)
        columns[name] = pa.array(found, REMOVED.field(name).type)
    return pa.table(columns, schema=REMOVED)


def totals_of(accounts: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The accounts of shards, added up."""
    totals: Counter[str] = Counter()
    removed: Counter[str] = Counter()
    found: Counter[str] = Counter()
    for account in accounts:
        totals.update({name: n for name, n in account.items() if name.startswith("n_")})
        removed.update(account["removed"])
        found.update(account["found"])
    by_reason = {"removed": dict(sorted(removed.items())), "found": dict(sorted(found.items()))}
    return {**dict(sorted(totals.items())), **by_reason}
