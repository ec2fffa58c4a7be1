"""Samples of a corpus: the same share of every shard, or whole shards, chosen by a seed.

The rows of a shard are divided into runs of `n_of` rows, and `n_taken` rows of each are drawn. So
every row has the same probability, every shard and source has its share, and whether a row is taken
depends only on the seed, the content of its shard and the number of the row: not on the order of
shards, the size of blocks or the number of workers.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from functools import lru_cache
from hashlib import sha256
from typing import TYPE_CHECKING

import numpy as np

from decon_core.config import seeding
from decon_core.corpus.batches import Batch
from decon_core.errors import InputError, Problem
from decon_core.kernels.arrays import Bools, Integers, distinct
from decon_core.wording import counted

if TYPE_CHECKING:
    from decon_core.corpus.packs import Pack, Shard


_MOST_ROWS = 1_000_000  # rows of a run: shares have at most six decimals
# Fewest rows that are drawn: drawing a run at a time would take longer for short runs.
_ROWS_AT_ONCE = 1024


@dataclass(frozen=True, kw_only=True)
class Sample:
    """How the documents of a shard are drawn."""

    n_taken: int  # rows of each run
    n_of: int  # length of a run
    seed: int = 0
    copy: int = 0  # number of the shard among those with the same content, which differ by it

    @classmethod
    def of(cls, share: Fraction, *, seed: int = 0) -> Sample:
        """Return the sample of a share of all documents; raise `InputError` if there is none."""
        if not 0 < share < 1 or share.denominator > _MOST_ROWS:
            found, expected = f"{float(share):g}", "more than 0 and less than 1"
            remedy = "Use for example 1% or 0.01 (up to six decimals). Omit it to scan everything."
            raise InputError(Problem("sample", found, expected, remedy))
        return cls(n_taken=share.numerator, n_of=share.denominator, seed=seed)

    @property
    def share(self) -> float:
        """The probability of every document."""
        return self.n_taken / self.n_of

    @property
    def words(self) -> str:
        """The sample as results name it."""
        return f"sample of {100 * self.share:g} %, seed {self.seed}"

    def n_draws(self, n_rows: int) -> int:
        """Return how many draws a shard of `n_rows` rows takes, also those beyond its last row."""
        return -(-n_rows // self.n_of) * self.n_taken

    def takes(self, content: str, rows: Integers) -> Bools:
        """Return which of some ascending rows of a shard are in the sample."""
        n_runs = max(1, _ROWS_AT_ONCE // self.n_of)
        parts, first = rows // (n_runs * self.n_of), 0
        is_taken = np.empty(rows.size, np.bool_)
        for part in distinct(parts).tolist():
            stop = int(np.searchsorted(parts, part, "right"))
            drawn = _drawn(self, content, part, n_runs)
            is_taken[first:stop] = drawn[rows[first:stop] - part * n_runs * self.n_of]
            first = stop
        return is_taken

    def of_batch(self, content: str, batch: Batch) -> Batch:
        """Return the documents of a batch that are in the sample; all its unreadable rows stay."""
        is_taken = self.takes(content, batch.rows)
        starts, stops, rows = (
            column[is_taken] for column in (batch.starts, batch.stops, batch.rows)
        )
        spans = zip(starts.tolist(), stops.tolist(), strict=True)
        # Copied: some steps of a scan look at all bytes, also at those between the documents.
        text = np.concatenate([batch.text[:0], *(batch.text[start:stop] for start, stop in spans)])
        edges = np.concatenate([[0], np.cumsum(stops - starts)])
        taken = {*rows.tolist()} if batch.invalid or batch.without_text else set()
        without_text = [row for row in batch.without_text if row in taken]
        return replace(
            batch,
            text=text,
            starts=edges[:-1],
            stops=edges[1:],
            rows=rows,
            # All bytes of UTF-8 but 10xxxxxx begin a character.
            n_characters=int(np.count_nonzero((text & 0xC0) != 0x80)),
            invalid=[invalid for invalid in batch.invalid if invalid.row in taken],
            without_text=without_text,
            n_left_out=distinct(batch.rows).size - distinct(rows).size,
            n_left_out_without_text=len(batch.without_text) - len(without_text),
        )


@lru_cache(maxsize=64)
def _drawn(sample: Sample, content: str, part: int, n_runs: int) -> Bools:
    """Return which rows of some consecutive runs of a shard are drawn."""
    name = f"sample {sample.seed} of shard {content}, copy {sample.copy}"
    n_rows = n_runs * sample.n_of
    keys = seeding.numbers(name, n_rows, first=part * n_rows).reshape(n_runs, sample.n_of)
    rows = np.argpartition(keys, sample.n_taken - 1, axis=1)[:, : sample.n_taken]
    is_drawn = np.zeros((n_runs, sample.n_of), np.bool_)
    np.put_along_axis(is_drawn, rows, True, axis=1)
    return is_drawn.ravel()


def sampled_packs(packs: Iterable[Pack], sample: Sample) -> list[Pack]:
    """Return packs of which only a sample is read. Their shards have fingerprints of their own.

    So neither does a full scan take scan results of a sample for its own, nor the other way round.
    """
    copies = Counter[str]()
    return [
        replace(pack, shards=tuple(_sampled(shard, sample, copies) for shard in pack.shards))
        for pack in packs
    ]


def _sampled(shard: Shard, sample: Sample, copies: Counter[str]) -> Shard:
    """Return a shard of which only a sample is read, numbered among those of the same content.

    Shards of the same content would otherwise have the same sample, and count as one draw.
    """
    numbered = replace(sample, copy=copies[shard.content])
    copies[shard.content] += 1
    identity = json.dumps([shard.fingerprint, asdict(numbered)])
    fingerprint = sha256(identity.encode()).hexdigest()[:32]
    return replace(shard, sample=numbered, fingerprint=fingerprint)


@dataclass(frozen=True, kw_only=True)
class ShardSample:
    """How many whole shards of a corpus are drawn; the others are not opened.

    Each has the same probability. Whether a shard is drawn depends on the seed and on the names of
    the shards, not on their order or content. A larger sample of the same seed contains the smaller
    one, so its scan reads only what is new.
    """

    n_shards: int
    seed: int = 0

    @property
    def words(self) -> str:
        """The sample as results name it."""
        return f"sample of {counted(self.n_shards, 'shard')}, seed {self.seed}"

    def draw(self, names: Collection[str]) -> set[str]:
        """Return the names of the drawn shards; raise `InputError` if there are no others."""
        if self.n_shards >= len(names):
            found = f"only {counted(len(names), 'shard')}"
            expected = f"more than the {self.n_shards:,} to be drawn"
            remedy = (
                "Omit --sample to scan all of them, or use --sample 1%, which searches one "
                "document in a hundred of each"
            )
            raise InputError(Problem("sample", found, expected, remedy))
        return {*sorted(names, key=self._key)[: self.n_shards]}

    def _key(self, name: str) -> str:
        return sha256(f"sample {self.seed} of shard {name}".encode()).hexdigest()
