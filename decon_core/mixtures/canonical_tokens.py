"""Encode texts as canonical tokens, the unit in which mixtures and blends count."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from decon_core.config.policy import Policy
from decon_core.text.tokenizers import load_tokenizer
from decon_core.text.word_cache import Encoder, FixedVocabulary, Ragged, Vocabulary


def encoded(policy: Policy, texts: Sequence[str], vocabulary: Vocabulary) -> Ragged:
    """Return the canonical tokens of texts."""
    encoder = Encoder(
        load_tokenizer(policy.tokenizer_str),
        vocabulary,
        form=policy.form,
        table_mb=policy.word_table_mb,
    )
    pieces = [text.encode() for text in texts]
    edges = np.cumsum([0, *map(len, pieces)], dtype=np.int64)
    data = np.frombuffer(b"".join(pieces), np.uint8).copy()
    return encoder.encode(data, edges[:-1], edges[1:])


def n_tokens_of(policy: Policy, texts: Sequence[str]) -> npt.NDArray[np.int64]:
    """Return the number of canonical tokens of each text."""
    return encoded(policy, texts, FixedVocabulary(np.empty(0, np.int64))).lengths
