"""Write the shards of a mixture of a pack, the list of removed documents, and their counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from decon_core.config.mixtures import Mixture
from decon_core.corpus.documents import id_of
from decon_core.corpus.formats import Changes, Ids, Part
from decon_core.corpus.packs import Pack, Shard
from decon_core.corpus.shards import rewrite_shard
from decon_core.decisions.match_reader import MatchReader
from decon_core.errors import CorpusError, Problem
from decon_core.mixtures import masks
from decon_core.mixtures.builder import tokenizer_of
from decon_core.mixtures.card import counts_in
from decon_core.mixtures.choice import RowActions, choose_rows, drop_unlicensed
from decon_core.mixtures.dolma_attributes import SUFFIX, write_attributes
from decon_core.mixtures.edit_rows import RowReader
from decon_core.mixtures.excise import Rescan, cut_out
from decon_core.mixtures.layouts import SUFFIXES, Opened, open_layout, rows_of
from decon_core.mixtures.loading import columns_of
from decon_core.mixtures.manifest import REMOVED_FILE
from decon_core.mixtures.masks import open_masks
from decon_core.schemas import REMOVED
from decon_core.storage.checksums import hash_file
from decon_core.storage.tables import write_parquet


class Writer:
    """Writes the shards of a mixture of a pack, and collects what was removed."""

    def __init__(self, reader: MatchReader, mixture: Mixture, pack: Pack, folder: Path) -> None:
        self._reader, self._mixture, self._pack, self._folder = reader, mixture, pack, folder
        self._removed: list[pa.Table] = [REMOVED.empty_table()]

    @cached_property
    def _rescan(self) -> Rescan:
        versions = self._reader.needed_by(self._mixture)
        return Rescan(self._reader, versions, source=self._pack.source.name)

    def write(self, shard: Shard, drawn: Sequence[int]) -> dict[str, Any]:
        """Write a shard; return its entry in the manifest. `drawn`: rows that a control removes."""
        source = self._pack.source.name
        choice = choose_rows(self._reader, shard, source, self._mixture, drawn=drawn)
        file = _file_of(self._mixture, shard)
        target = self._folder / file
        if target.exists():  # shards that differ only in their suffix
            what = "attributes" if self._mixture.write == "attributes" else "documents"
            found = f"another shard whose {what} would get the same file name"
            raise CorpusError(Problem(shard.path, found, "names that differ before the suffix"))
        ids, n_tokens = self._write(shard, target, choice)
        self._removed.append(_removed_rows(shard, choice, ids, self._mixture))
        is_data = self._mixture.write != "attributes"
        return {
            "shard": shard.name,
            "file": file,
            "content": shard.content,
            "fingerprint": shard.fingerprint,
            **_account(choice),
            **n_tokens,
            **({"columns": columns_of(target)} if is_data else {}),
            "n_bytes": target.stat().st_size,
            "output": hash_file(target),
        }

    def _write(
        self, shard: Shard, target: Path, choice: RowActions
    ) -> tuple[Ids, Mapping[str, int]]:
        """Write the file of a shard; return the ids of the rows that changed, and more counts."""
        source, write = self._pack.source, self._mixture.write

        def decide(part: Part | None) -> Changes:
            rows = part.rows if part else choice.rows
            return self._decide(choice, rows, RowReader(shard, source, part))

        if write == "shards":
            return rewrite_shard(shard, source, target, decide), {}
        changes, rows = decide(None), choice.sizes.rows.tolist()
        if write == "attributes":
            name = self._mixture.name
            return write_attributes(shard, source, target, choice, rows, name), {}
        if write == "mask":
            masked = {row: left.masked for row, left in choice.left.items()}
            opened: Opened = open_masks(target, masked, tokenizer_of(self._mixture))
        else:
            opened = open_layout(write, target, self._reader.policy)
        ids: Ids = dict.fromkeys(changes.rows)
        with opened as (add, counts):
            for row in rows_of(shard, source, rows, changed=changes.values):
                if row.number in ids:
                    ids[row.number] = id_of(row.scanned, source)
                if row.number not in changes.gone:
                    add(row)
        return ids, counts

    def _decide(self, choice: RowActions, rows: range, row_reader: RowReader) -> Changes:
        """Check licenses and cut leaks in a range of rows; return all changes to these rows."""
        mixture = self._mixture
        drop_unlicensed(choice, choice.sizes.within(rows), row_reader, mixture.licenses)
        to_cut = [row for row in rows if row in choice.cut] if choice.cut else []
        cut = {}
        if to_cut:
            cut = cut_out(choice, to_cut, row_reader, mixture, self._rescan)
            choice.left |= cut
        gone = frozenset(filter(choice.gone.__contains__, rows))
        replaced = frozenset(filter(choice.replaced.__contains__, rows)) - gone - cut.keys()
        values = {row: left.value for row, left in cut.items()}
        return Changes(gone, values, replaced, unreadable=gone & choice.unreadable)

    def write_removed(self, folder: Path) -> Path:
        path = folder / REMOVED_FILE
        write_parquet(path, pa.concat_tables(self._removed).combine_chunks())
        return path


def _file_of(mixture: Mixture, shard: Shard) -> str:
    """Return the name of the file that a mixture writes for a shard."""
    if mixture.write == "shards":
        return shard.name
    folder, slash, file = shard.name.rpartition("/")
    stem = folder + slash + file.partition(".jsonl")[0]
    if mixture.write == "attributes":
        return stem + SUFFIX
    suffix = masks.SUFFIX if mixture.write == "mask" else SUFFIXES[mixture.write]
    return stem.removesuffix(suffix) + suffix


def _account(choice: RowActions) -> dict[str, Any]:
    """Return documents, bytes and tokens before and after, and removals by first reason."""
    sizes, cut = choice.sizes, choice.left
    is_left = ~np.isin(sizes.rows, np.array([*choice.gone], np.int64))
    n_bytes, n_tokens = sizes.n_bytes.copy(), sizes.n_tokens.copy()
    for row, remainder in cut.items():
        at = sizes.at([row])
        n_bytes[at], n_tokens[at] = remainder.n_bytes, remainder.n_tokens
    why = Counter(reasons[0]["why"] for reasons in choice.gone.values())
    return {
        "n_documents_in": sizes.rows.size,
        "n_bytes_in": int(sizes.n_bytes.sum()),
        "n_tokens_in": int(sizes.n_tokens.sum()),
        "n_documents_out": int(is_left.sum()),
        "n_bytes_out": int(n_bytes[is_left].sum()),
        "n_tokens_out": int(n_tokens[is_left].sum()),
        "n_cut": len(cut),
        "n_unreadable_left_out": why.pop("unreadable", 0),
        "n_invalid_utf8_replaced": len(choice.replaced - choice.gone.keys()),
        "removed": dict(sorted(why.items())),
        "found": dict(sorted(choice.n_found.items())),
    }


def _removed_rows(shard: Shard, choice: RowActions, ids: Ids, mixture: Mixture) -> pa.Table:
    """Return the removed and cut rows with their reasons, one row per reason.

    Built column by column, as it may cover nearly all of the shard.
    """
    sizes, cut = choice.sizes, choice.left
    by_row = choice.gone | {row: remainder.reasons for row, remainder in cut.items()}
    unique = sorted(by_row)
    n_reasons = np.array([len(by_row[row]) for row in unique], np.int64)
    n_left = np.array([cut[row].n_tokens if row in cut else 0 for row in unique], np.int64)
    rows = np.repeat(np.array(unique, np.int64), n_reasons)
    is_read = np.isin(rows, sizes.rows)
    n_tokens = np.zeros(rows.size, np.int64)
    n_tokens[is_read] = sizes.n_tokens[np.searchsorted(sizes.rows, rows[is_read])]
    numbers = rows.tolist()
    reasons = [reason for row in unique for reason in by_row[row]]
    columns = {
        "shard": pa.repeat(shard.name, rows.size),
        "row": rows,
        "doc_id": [ids[row] for row in numbers],
        "n_tokens": pa.array(n_tokens - np.repeat(n_left, n_reasons), mask=~is_read),
        "what": [mixture.cut if row in cut else "document" for row in numbers],
    }
    given = set().union(*reasons)
    for name in REMOVED.names[len(columns) :]:
        values = [reason.get(name) for reason in reasons] if name in given else pa.nulls(rows.size)
        columns[name] = pa.array(values, REMOVED.field(name).type)
    return pa.table(columns, schema=REMOVED)


def totals_of(accounts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the sums of the counts of shards."""
    by_reason = {
        name: dict(sorted(counts_in(account[name] for account in accounts).items()))
        for name in ("removed", "found")
    }
    return {**dict(sorted(counts_in(accounts).items())), **by_reason}
