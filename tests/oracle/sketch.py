"""A plain twin of the corpus sketch: sets of n-grams, and what they prove."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet

Gram = tuple[int, ...]
Block = AbstractSet[Gram]


def ngrams(tokens: Sequence[int], size: int) -> set[Gram]:
    """Return the distinct n-grams of a text."""
    return {tuple(tokens[at : at + size]) for at in range(len(tokens) - size + 1)}


def ngrams_of_block(documents: Iterable[Sequence[int]], size: int) -> set[Gram]:
    """Return the distinct n-grams of the documents of a block."""
    return {gram for tokens in documents for gram in ngrams(tokens, size)}


def may_match(question: Sequence[tuple[Gram, float]], need: float, block: Block) -> bool:
    """Return whether the weight of a question's n-grams in a block suffices for a match.

    Whatever cluster of a document in the block is compared, its n-grams are among these.
    """
    present = [weight for gram, weight in question if gram in block]
    return bool(present) and sum(present) >= need * (1 - 1e-6)


def has_run(question: Sequence[int], block: Block, *, run: int, size: int) -> bool:
    """Return whether all n-grams of some run of that many tokens are in a block."""
    return any(
        ngrams(question[at : at + run], size) <= block for at in range(len(question) - run + 1)
    )
