"""Draw the documents of a blend: sources by weight, phase after phase, up to a budget.

The documents of a source come shard by shard, and every pass shuffles the order of the shards. So a
part of a blend is written by reading a few shards from front to back. If less than a source is
needed, all of its shards are sampled; if more, another pass begins. The manifest counts the passes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from decon_core.config.mixtures import Mixture
from decon_core.config.seeding import fractions, numbers_at, shuffled
from decon_core.config.sources import Source
from decon_core.corpus.packs import Pack, Shard, shard_at
from decon_core.errors import ConfigError, MissingError, Problem
from decon_core.features.blends.settings import Phase
from decon_core.kernels.arrays import distinct
from decon_core.mixtures.builder import Builder
from decon_core.mixtures.choice import Sizes
from decon_core.schemas import REMOVED
from decon_core.storage.files import read_json
from decon_core.storage.tables import read_parquet

Integers = npt.NDArray[np.int64]
Small = npt.NDArray[np.int32]
Flags = npt.NDArray[np.bool_]

_OF_REMOVED = ("shard", "row", "n_tokens", "what")


@dataclass(frozen=True, eq=False)
class Material:
    """The documents of one source, shard after shard. Arrays have one element per document."""

    source: Source
    shards: tuple[Shard, ...]  # shards of the mixture
    names: tuple[str, ...]  # their names in the corpus
    shard: Small  # number of the shard
    row: Integers  # row in the shard of the mixture
    corpus_row: Integers  # row in the shard of the corpus
    n_tokens: Integers

    def __len__(self) -> int:
        return self.row.size

    @property
    def all_tokens(self) -> int:
        return int(self.n_tokens.sum())


def material_of(builder: Builder, mixture: Mixture) -> tuple[Material, ...]:
    """Return the documents of a mixture by source, in the order of the sources' names.

    Raises `MissingError` unless the mixture of every pack exists and is current.
    """
    packs = [pack for pack in builder.packs if mixture.has_source(pack.source.name)]
    current = builder.current_packs(mixture)
    problems = [
        Problem(
            f"mixture {mixture.name!r} of pack {pack.name!r}",
            "not built, or built from other shards, benchmarks or settings",
            remedy="materialize `mixture` for this pack first, or use `decon-assets run`",
        )
        for pack in packs
        if pack.name not in current
    ]
    MissingError.raise_for(problems)
    names = sorted({pack.source.name for pack in packs})
    return tuple(
        _of_source(builder, mixture, [pack for pack in packs if pack.source.name == name])
        for name in names
    )


def _of_source(builder: Builder, mixture: Mixture, packs: Sequence[Pack]) -> Material:
    shards: list[Shard] = []
    names: list[str] = []
    columns: list[tuple[Small, Integers, Integers, Integers]] = []
    for pack in packs:
        folder = builder.store.mixture(mixture.name, pack.name)
        list_of_removed = builder.store.removed(mixture.name, pack.name)
        removed = pl.DataFrame(read_parquet(list_of_removed, schema=REMOVED, columns=_OF_REMOVED))
        by_shard = removed.partition_by("shard", as_dict=True)
        manifest = read_json(builder.store.mixture_manifest(mixture.name, pack.name))
        for shard, account in zip(pack.shards, manifest["shards"], strict=True):
            of_shard = by_shard.get((shard.name,), removed.clear())
            columns.append(_of_shard(builder, shard, len(shards), of_shard))
            path = folder / account["file"]
            written = Shard(
                source=pack.source.name,
                name="",
                path=str(path),
                n_bytes=account["n_bytes"],
                modified_ns=path.stat().st_mtime_ns,
                content=account["output"],  # verified when it is read
                fingerprint="",
            )
            shards.append(shard_at(pack.source, path, folder, written))
            names.append(shard.name)
    joined = (np.concatenate(column) for column in zip(*columns, strict=True))
    return Material(packs[0].source, tuple(shards), tuple(names), *joined)


def _of_shard(
    builder: Builder, shard: Shard, number: int, removed: pl.DataFrame
) -> tuple[Small, Integers, Integers, Integers]:
    """Return shard number, row, corpus row and tokens of the remaining documents of a shard."""
    sizes = Sizes.of(builder.reader.documents(shard))
    is_whole = pl.col("what") == "document"
    gone = distinct(removed.filter(is_whole)["row"].to_numpy())
    n_tokens = sizes.n_tokens.copy()
    cut = removed.filter(~is_whole).unique("row", keep="first")  # there is one row per reason
    n_tokens[np.searchsorted(sizes.rows, cut["row"].to_numpy())] -= cut["n_tokens"].to_numpy()
    is_left = ~np.isin(sizes.rows, gone)
    rows = sizes.rows[is_left]
    numbers = np.full(rows.size, number, np.int32)
    return numbers, rows - np.searchsorted(gone, rows), rows, n_tokens[is_left]


Shares = npt.NDArray[np.float64]

_AT_ONCE = 1 << 18  # draws
_SPARE = 1.01  # a sample is a little larger than the expected number of draws


class Draws(NamedTuple):
    """Documents that were drawn, in order."""

    source: Small  # number of the material
    at: Integers  # position of the document in the material
    time: Small  # number of earlier passes over the source
    n_tokens: Integers

    @staticmethod
    def joined(draws: Sequence[Draws]) -> Draws:
        return Draws._make(map(np.concatenate, zip(*draws, strict=True)))


@dataclass(frozen=True, eq=False)
class Stream:
    """The drawn documents of all phases, in the order in which a model sees them."""

    draws: Draws
    phases: Integers  # start of each phase, then the end of the last one

    def __len__(self) -> int:
        return self.draws.source.size


def draw_stream(materials: Sequence[Material], phases: Sequence[Phase], seed: int) -> Stream:
    """Draw all phases of a blend, one after the other."""
    known = {material.source.name: material.all_tokens for material in materials}
    problems = [
        Problem(f"source {name!r}", "it has a weight, but no tokens in the mixture")
        for phase in phases
        for name, _ in phase.weights
        if not known.get(name)
    ]
    if not any(known.values()):
        problems.append(Problem("the mixture", "it has no tokens to draw from"))
    ConfigError.raise_for(dict.fromkeys(problems))
    chances = [_chances(materials, phase) for phase in phases]
    expected = np.zeros(len(materials))
    for phase, chance in zip(phases, chances, strict=True):
        expected += _expected(materials, phase, chance)
    sequences = [
        _Passes(material, seed, float(share))
        for material, share in zip(materials, expected, strict=True)
    ]
    drawn = [
        _draw(sequences, phase, chance, f"{seed} phase {number}")
        for number, (phase, chance) in enumerate(zip(phases, chances, strict=True))
    ]
    edges = np.cumsum([0, *(draws.source.size for draws in drawn)], dtype=np.int64)
    return Stream(Draws.joined(drawn), edges)


def _chances(materials: Sequence[Material], phase: Phase) -> Shares:
    """Return the probability of each source per document that gives its tokens their weight."""
    n_documents = np.array([len(material) for material in materials], np.float64)
    if not phase.weights:
        return np.asarray(n_documents / n_documents.sum())
    weights = dict(phase.weights)
    n_tokens = np.array([max(material.all_tokens, 1) for material in materials], np.float64)
    wanted = np.array([weights.get(material.source.name, 0.0) for material in materials])
    chances = np.divide(wanted * n_documents, n_tokens)
    return np.asarray(chances / chances.sum())


def _expected(materials: Sequence[Material], phase: Phase, chances: Shares) -> Shares:
    """Return the expected number of passes over each source."""
    n_documents = np.array([max(len(material), 1) for material in materials], np.float64)
    if phase.is_everything:
        return np.ones(len(materials))
    if phase.documents is not None:
        return phase.documents * chances / n_documents
    mean = np.array([material.all_tokens for material in materials]) / n_documents
    return (phase.tokens or 0) * chances / max(float((chances * mean).sum()), 1e-9) / n_documents


class _Passes:
    """The documents of a source in the order in which they are drawn, pass after pass."""

    def __init__(self, material: Material, seed: int, share: float) -> None:
        self.material, self._name = material, f"{seed} source {material.source.name}"
        self._whole_passes, self._share = int(share), share - int(share)
        self._at = np.empty(0, np.int64)
        self._time = np.empty(0, np.int32)
        self._n_passes = 0

    def next(self, n: int) -> tuple[Integers, Small]:
        """Return the next `n` documents and their pass numbers, without taking them."""
        first = self._n_passes
        passes = [self._at]
        while sum(map(len, passes)) < n:
            passes.append(self._pass(self._n_passes))
            self._n_passes += 1
        new = np.repeat(np.arange(first, self._n_passes, dtype=np.int32), len(self.material))
        self._at, self._time = np.concatenate(passes), np.append(self._time, new)
        return self._at[:n], self._time[:n]

    def start_pass(self) -> None:
        """Skip the rest of a pass that has begun."""
        if self._time.size:
            rest = self._time == self._time[0]
            if np.count_nonzero(rest) < len(self.material):
                self._at, self._time = self._at[~rest], self._time[~rest]

    def take(self, n: int) -> None:
        self._at, self._time = self._at[n:], self._time[n:]

    def _pass(self, number: int) -> Integers:
        """Return every document once; in the last, partial pass a random sample comes first."""
        material = self.material
        rank_of_shard = np.argsort(shuffled(f"{self._name} pass {number}", len(material.shards)))
        order = np.argsort(rank_of_shard[material.shard], kind="stable")
        if number != self._whole_passes or not self._share:
            return order
        ranks = np.empty(len(material), np.uint64)
        edges = np.searchsorted(material.shard, np.arange(len(material.shards) + 1))
        for at, name in enumerate(material.names):
            rows = slice(edges[at], edges[at + 1])
            ranks[rows] = numbers_at(f"{self._name} {name}", material.corpus_row[rows])
        is_sampled = ranks[order] < np.uint64(min(self._share * _SPARE, 1 - 1e-9) * 2**64)
        return np.concatenate([order[is_sampled], order[~is_sampled]])


def _draw(sequences: Sequence[_Passes], phase: Phase, chances: Shares, name: str) -> Draws:
    counts = [len(sequence.material) for sequence in sequences]
    if phase.is_everything:
        for sequence in sequences:
            sequence.start_pass()
        sources = np.repeat(np.arange(len(counts), dtype=np.int32), counts)
        sources = sources[shuffled(name, sources.size)]
        return _take(sequences, _preview(sequences, sources))
    edges = np.cumsum(chances)
    edges[np.flatnonzero(chances)[-1] :] = 1.0  # exact in spite of rounding
    drawn: list[Draws] = []
    n_drawn = n_tokens = 0
    at_once = min(_AT_ONCE, sum(counts))  # do not prepare unneeded passes
    while True:
        at = np.searchsorted(edges, fractions(name, at_once, first=n_drawn), side="right")
        batch = _preview(sequences, at.astype(np.int32))
        reached = n_tokens + np.cumsum(batch.n_tokens)
        stop = at_once
        if phase.documents is not None:
            stop = min(stop, phase.documents - n_drawn)
        elif phase.tokens is not None and reached[-1] >= phase.tokens:
            stop = int(np.searchsorted(reached, phase.tokens)) + 1
        batch = Draws._make(column[:stop] for column in batch)
        drawn.append(_take(sequences, batch))
        n_drawn, n_tokens = n_drawn + stop, int(reached[stop - 1])
        if n_drawn == phase.documents or (phase.tokens and n_tokens >= phase.tokens):
            return Draws.joined(drawn)


def _preview(sequences: Sequence[_Passes], sources: Small) -> Draws:
    """Return the documents that drawing these sources in order would give, without taking them."""
    at = np.empty(sources.size, np.int64)
    time = np.empty(sources.size, np.int32)
    n_tokens = np.empty(sources.size, np.int64)
    for number, sequence in enumerate(sequences):
        of_source = np.flatnonzero(sources == number)
        if of_source.size:
            at[of_source], time[of_source] = sequence.next(of_source.size)
            n_tokens[of_source] = sequence.material.n_tokens[at[of_source]]
    return Draws(sources, at, time, n_tokens)


def _take(sequences: Sequence[_Passes], draws: Draws) -> Draws:
    for number, n in enumerate(np.bincount(draws.source, minlength=len(sequences)).tolist()):
        sequences[number].take(n)
    return draws
