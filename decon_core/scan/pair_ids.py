"""The name of a pair: of what was found of a record, wherever it stands.

What people say is kept under it (verdicts.py), so the same must have the same name after every
scan, and in reports of other programs. Of words only a digest is carried along: texts would be held
until a shard ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256


def digest_of(words: Sequence[str]) -> str:
    """Of the canonical words found of question, answer and passage; empty where there are none."""
    # No canonical text holds the sign that stands between them.
    return sha256("\n".join(words).encode()).hexdigest()


def pair_name(fingerprint: str, digest: str) -> str:
    """Of a record's fingerprint and what was found of it."""
    return sha256(f"{fingerprint} {digest}".encode()).hexdigest()[:16]
