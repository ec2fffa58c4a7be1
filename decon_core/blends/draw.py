"""The order in which documents come: sources drawn by weights, phase after phase, up to budgets.

Of each source documents come in the order of its shards, which the seed shuffles anew for every
pass; so a part of a blend is written by reading a few shards from front to back. A source of which
less is wanted than there is gives a sample of all its shards; one of which more is wanted begins
again, and everybody can see how often.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from decon_core.blends.material import Material
from decon_core.config.blends import Phase
from decon_core.errors import ConfigError, Problem
from decon_core.seeding import fractions, numbers_at, shuffled

Integers = npt.NDArray[np.int64]
Small = npt.NDArray[np.int32]

_AT_ONCE = 1 << 18  # draws
_SPARE = 1.01  # a sample is a little larger than what is expected to be drawn


class Draws(NamedTuple):
    """Documents that were drawn, in order."""

    source: Small  # number of the material
    at: Integers  # which of its documents
    time: Small  # how often the source had been gone through before
    n_tokens: Integers

    def first(self, n: int) -> Draws:
        return Draws(self.source[:n], self.at[:n], self.time[:n], self.n_tokens[:n])

    @staticmethod
    def joined(draws: Sequence[Draws]) -> Draws:
        return Draws(
            np.concatenate([one.source for one in draws]),
            np.concatenate([one.at for one in draws]),
            np.concatenate([one.time for one in draws]),
            np.concatenate([one.n_tokens for one in draws]),
        )


@dataclass(frozen=True, eq=False)
class Stream:
    """Documents in the order in which a model sees them."""

    draws: Draws
    phases: Integers  # where each begins, and the last one ends

    def __len__(self) -> int:
        return self.draws.source.size


def draw_stream(materials: Sequence[Material], phases: Sequence[Phase], seed: int) -> Stream:
    """All phases of a blend, one after the other."""
    _require_enough(materials, phases)
    chances = [_chances(materials, phase) for phase in phases]
    expected = np.zeros(len(materials))
    for phase, chance in zip(phases, chances, strict=True):
        expected += _expected(materials, phase, chance)
    sequences = [
        _Passes(material, seed, float(share))
        for material, share in zip(materials, expected, strict=True)
    ]
    drawn = [
        _draw(materials, sequences, phase, chance, f"{seed} phase {number}")
        for number, (phase, chance) in enumerate(zip(phases, chances, strict=True))
    ]
    edges = np.cumsum([0, *(draws.source.size for draws in drawn)], dtype=np.int64)
    return Stream(Draws.joined(drawn), edges)


def _require_enough(materials: Sequence[Material], phases: Sequence[Phase]) -> None:
    known = {material.source.name: material.all_tokens for material in materials}
    problems = [
        Problem(f"source {name!r}", "no token in the mixture", "some, as it has a weight")
        for phase in phases
        for name, _ in phase.weights
        if not known.get(name)
    ]
    if not any(known.values()):
        problems.append(Problem("the mixture", "no token", "some to draw from"))
    if problems:
        raise ConfigError(dict.fromkeys(problems))


def _chances(materials: Sequence[Material], phase: Phase) -> npt.NDArray[np.float64]:
    """How likely a document of each source comes next, so that its tokens have their share."""
    n_documents = np.array([len(material) for material in materials], np.float64)
    if not phase.weights:
        return np.asarray(n_documents / n_documents.sum())
    weights = dict(phase.weights)
    n_tokens = np.array([max(material.all_tokens, 1) for material in materials], np.float64)
    wanted = np.array([weights.get(material.source.name, 0.0) for material in materials])
    chances = np.divide(wanted * n_documents, n_tokens)
    return np.asarray(chances / chances.sum())


def _expected(
    materials: Sequence[Material], phase: Phase, chances: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """About how many times all of each source will be drawn."""
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
        self._material, self._name = material, f"{seed} source {material.source.name}"
        self._whole_passes, self._share = int(share), share - int(share)
        self._at = np.empty(0, np.int64)
        self._time = np.empty(0, np.int32)
        self._n_passes = 0

    def next(self, n: int) -> tuple[Integers, Small]:
        """The next documents, and how often the source had been gone through. None is taken."""
        first = self._n_passes
        passes = [self._at]
        while sum(map(len, passes)) < n:
            passes.append(self._pass(self._n_passes))
            self._n_passes += 1
        new = np.repeat(np.arange(first, self._n_passes, dtype=np.int32), len(self._material))
        self._at, self._time = np.concatenate(passes), np.append(self._time, new)
        return self._at[:n], self._time[:n]

    def begin(self) -> None:
        """Leave out what is left of a pass that was begun."""
        if self._time.size:
            rest = self._time == self._time[0]
            if np.count_nonzero(rest) < len(self._material):
                self._at, self._time = self._at[~rest], self._time[~rest]

    def take(self, n: int) -> None:
        """Go on behind these."""
        self._at, self._time = self._at[n:], self._time[n:]

    def _pass(self, number: int) -> Integers:
        """Every document once; where only some will be needed, a sample first, then the others."""
        material = self._material
        rank_of_shard = np.argsort(shuffled(f"{self._name} pass {number}", len(material.shards)))
        order = np.argsort(rank_of_shard[material.shard], kind="stable")
        if number != self._whole_passes or not self._share:
            return order
        is_sampled = self._ranks()[order] < np.uint64(min(self._share * _SPARE, 1 - 1e-9) * 2**64)
        return np.concatenate([order[is_sampled], order[~is_sampled]])

    def _ranks(self) -> npt.NDArray[np.uint64]:
        material = self._material
        ranks = np.empty(len(material), np.uint64)
        edges = np.searchsorted(material.shard, np.arange(len(material.shards) + 1))
        for number, name in enumerate(material.names):
            own = slice(edges[number], edges[number + 1])
            ranks[own] = numbers_at(f"{self._name} {name}", material.corpus_row[own])
        return ranks


def _draw(
    materials: Sequence[Material],
    sequences: Sequence[_Passes],
    phase: Phase,
    chances: npt.NDArray[np.float64],
    name: str,
) -> Draws:
    """One phase."""
    if phase.is_everything:
        for sequence in sequences:
            sequence.begin()
        counts = [len(material) for material in materials]
        sources = np.repeat(np.arange(len(materials), dtype=np.int32), counts)
        return _taken(materials, sequences, sources[shuffled(name, sources.size)])
    edges = np.cumsum(chances)
    edges[np.flatnonzero(chances)[-1] :] = 1.0  # whatever rounding says
    drawn: list[Draws] = []
    n_drawn = n_tokens = 0
    at_once = min(_AT_ONCE, sum(map(len, materials)))  # no more passes than are needed
    while True:
        at = np.searchsorted(edges, fractions(name, at_once, first=n_drawn), side="right")
        found = _looked_at(materials, sequences, at.astype(np.int32))
        reached = n_tokens + np.cumsum(found.n_tokens)
        stop = at_once
        if phase.documents is not None:
            stop = min(stop, phase.documents - n_drawn)
        elif phase.tokens is not None and reached[-1] >= phase.tokens:
            stop = int(np.searchsorted(reached, phase.tokens)) + 1
        drawn.append(found.first(stop))
        _go_on(sequences, drawn[-1].source)
        n_drawn, n_tokens = n_drawn + stop, int(reached[stop - 1])
        if n_drawn == phase.documents or (phase.tokens and n_tokens >= phase.tokens):
            return Draws.joined(drawn)


def _taken(materials: Sequence[Material], sequences: Sequence[_Passes], sources: Small) -> Draws:
    found = _looked_at(materials, sequences, sources)
    _go_on(sequences, sources)
    return found


def _looked_at(
    materials: Sequence[Material], sequences: Sequence[_Passes], sources: Small
) -> Draws:
    """The documents that come if these sources are drawn one after the other."""
    at = np.empty(sources.size, np.int64)
    time = np.empty(sources.size, np.int32)
    n_tokens = np.empty(sources.size, np.int64)
    for number, (material, sequence) in enumerate(zip(materials, sequences, strict=True)):
        own = np.flatnonzero(sources == number)
        if own.size:
            at[own], time[own] = sequence.next(own.size)
            n_tokens[own] = material.n_tokens[at[own]]
    return Draws(sources, at, time, n_tokens)


def _go_on(sequences: Sequence[_Passes], sources: Small) -> None:
    for number, n in enumerate(np.bincount(sources, minlength=len(sequences)).tolist()):
        sequences[number].take(n)
