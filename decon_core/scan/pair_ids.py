"""Names of pairs: a pair is a benchmark record and the words of it that were found.

Verdicts are stored under these names (`decisions/verdicts.py`), so the same pair has the same name
in every document, after every scan, and in reports of other programs. The scan keeps only a digest
of the words: their texts would stay in memory until the end of the shard.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256


def digest_of(words: Sequence[str]) -> str:
    """Hash the canonical words found of question, answer and passage; "" for a missing one."""
    # Canonical text never contains the separator.
    return sha256("\n".join(words).encode()).hexdigest()


def pair_name(fingerprint: str, digest: str) -> str:
    """Return the name of a pair: 16 hex digits from the record and the digest of its words."""
    return sha256(f"{fingerprint} {digest}".encode()).hexdigest()[:16]
