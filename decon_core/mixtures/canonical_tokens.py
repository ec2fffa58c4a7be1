"""Encode texts as canonical tokens, the unit in which mixtures and blends count."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from decon_core.config.policy import Policy
from decon_core.index.text_weights import encode_texts
from decon_core.kernels.arrays import Integers
from decon_core.text.tokenizers import load_tokenizer
from decon_core.text.word_cache import FixedVocabulary, Ragged, Vocabulary


def encoded(policy: Policy, texts: Sequence[str], vocabulary: Vocabulary) -> Ragged:
    """Return the canonical tokens of texts."""
    return encode_texts(texts, vocabulary, load_tokenizer(policy.tokenizer_str), policy)


def n_tokens_of(policy: Policy, texts: Sequence[str]) -> Integers:
    """Return the number of canonical tokens of each text."""
    return encoded(policy, texts, FixedVocabulary(np.empty(0, np.int64))).lengths
