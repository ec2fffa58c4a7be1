"""What a detector is asked when it states which records of a benchmark it can find."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import compress, product
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from decon_core.kernels.arrays import Bools, Floats, Integers

if TYPE_CHECKING:
    import pyarrow as pa

    from decon_core.benchmarks.records import StoredRecords
    from decon_core.index.parts import Part

Details = npt.NDArray[np.object_]


@dataclass(frozen=True, eq=False)
class TextUse:
    """Per record of a benchmark: the text that it uses as one kind of text."""

    has_text: Bools
    n_tokens: Integers
    n_canonical: Integers  # canonical tokens; questions only
    opens: Bools  # whether an n-gram of it opens a comparison
    is_whole: Bools  # whether it can be found as a whole text
    weight: Floats  # informativeness by idf


@dataclass(frozen=True, eq=False)
class OwnIndex:
    """The separate index of a detector, and the place of the benchmark in it."""

    arrays: Mapping[str, Any]
    number: int


@dataclass(frozen=True, eq=False)
class RecordTexts:
    """The records of a benchmark, as they are indexed."""

    records: pa.Table  # split, instance_index, config, fingerprint
    part: Part
    uses: Mapping[int, TextUse]  # keyed by kind of text; empty if no chosen detector reads texts
    stored: StoredRecords  # used by detectors that read the records themselves
    own: Mapping[str, OwnIndex] = field(
        default_factory=dict
    )  # keyed by detector, only indexes that are built

    @cached_property
    def alike(self) -> Integers:
        """Per record: the first record with the same texts."""
        from decon_core.storage.tables import numbered

        codes = numbered(self.records, ["fingerprint"])
        first = np.zeros(codes.size, np.int64)
        first[codes[::-1]] = np.arange(codes.size)[::-1]  # the last assignment to a code is kept
        return first[codes]


@dataclass(frozen=True, eq=False)
class Unmet:
    """Per record: the first requirement that it does not meet, and a detail."""

    reasons: tuple[str | None, ...]  # None: it is visible; then from nearly visible to far from it
    places: Integers  # positions in `reasons`
    details: Details

    def note_tokens(self, n_tokens: Integers, needed: Mapping[str, int]) -> Unmet:
        """Add details such as "3 of 8 tokens" to the reasons in `needed`."""
        for reason, n in needed.items():
            for at in np.flatnonzero(self.places == self.reasons.index(reason)).tolist():
                self.details[at] = f"{n_tokens[at]} of {n} tokens"
        return self


def first_unmet(requirements: Mapping[str, Bools], details: Details | None = None) -> Unmet:
    """Return the first unmet requirement of each record, in the given order.

    `requirements` has the records that meet it, by the reason that is reported for the others.
    """
    reasons = (None, *reversed([*requirements]))
    is_unmet = [~meets for meets in requirements.values()]
    places = np.select(is_unmet, [*range(len(is_unmet), 0, -1)], 0).astype(np.int64)
    return Unmet(
        reasons, places, np.full(places.size, None, object) if details is None else details
    )


def joined_names(flags: Mapping[str, Bools]) -> Details:
    """Return, per record, the names whose flags are set."""
    masks = product((False, True), repeat=len(flags))
    joined = np.array([", ".join(compress(flags, mask)) or None for mask in masks], object)
    return joined.reshape([2] * len(flags))[tuple(each.astype(np.intp) for each in flags.values())]
