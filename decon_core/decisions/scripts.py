"""Benchmarks in scripts that the tokenizer splits into letters, which makes their texts long.

What such a text shares with a document in another language, as a formula, is then a small share of
its tokens. Detectors whose score is a share of tokens miss it. docs/detectors.md has the numbers.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from decon_core.benchmarks.records import Version, load_records
from decon_core.config.policy import Policy
from decon_core.errors import Problem
from decon_core.storage.store import Store
from decon_core.text.tokenizers import Tokenizer, load_tokenizer

# The bundled vocabulary that needs the fewest tokens for scripts that are not Latin.
_FEWEST = "o200k"
_MOST = 1.5  # times as many
_LAST_LATIN = "\u024f"
_N_QUESTIONS = 500  # questions to look at, from the whole benchmark


def split_scripts(store: Store, versions: Sequence[Version], policy: Policy) -> list[Problem]:
    """Return the benchmarks mostly in a script of which the tokenizer makes too many tokens.

    None if no chosen detector compares tokens.
    """
    if not policy.compares_tokens:
        return []
    problems = []
    name = policy.tokenizer_str
    for version in versions:
        questions = load_records(store, version, columns=["question"])["question"].unique()
        at = np.linspace(0, len(questions) - 1, min(_N_QUESTIONS, len(questions))).astype(np.int64)
        text = "\n".join(questions.take(at).to_pylist())
        letters = [character for character in text if character.isalpha()]
        if 2 * sum(letter > _LAST_LATIN for letter in letters) <= len(letters):
            continue
        times = _n_tokens(load_tokenizer(name), text) / _n_tokens(load_tokenizer(_FEWEST), text)
        if times >= _MOST:
            found = (
                f"{name} needs {times:.1f} times as many tokens as {_FEWEST}, because most letters "
                "are not Latin. Text that an item shares with a document in another language, such "
                "as a formula, is then a small share of the item's tokens and may be missed"
            )
            remedy = f'set tokenizer_str = "{_FEWEST}" in [policy]; this scans everything again'
            problems.append(Problem(version.benchmark, found, remedy=remedy))
    return problems


def _n_tokens(tokenizer: Tokenizer, text: str) -> int:
    return len(tokenizer.encode([text])[0])
