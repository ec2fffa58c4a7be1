"""A sample of whole shards: each is drawn with the same probability, the others are not opened.

Whether a shard is drawn depends on the seed and on the names of the shards, not on their order or
content. A larger sample of the same seed contains the smaller one, so its scan reads only what is
new.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from hashlib import sha256

from decon_core.errors import InputError, Problem
from decon_core.wording import counted


@dataclass(frozen=True, kw_only=True)
class ShardSample:
    """How many shards of a corpus are drawn."""

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
