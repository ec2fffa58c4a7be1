"""Metrics of how alike two texts are, from 0 to 1 (a cosine from -1).

Words are those of canonical text: lower case, without punctuation. In scripts that are written
without spaces every character is a word. Twins of what is computed fast are in
`tests/oracle/similarity.py`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from decon_core.config.policy import PUNCTUATION
from decon_core.kernels import token_runs
from decon_core.text.canonical import clean
from decon_core.text.content_words import is_content, stems, weight_of
from decon_core.text.numbers import numbers_in

if TYPE_CHECKING:
    from decon_core.features.similarity.embedders import Embedder

Floats = npt.NDArray[np.float64]

# Thai, Lao, Burmese, Khmer, Japanese and Chinese.
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3041-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
_WORD = re.compile(f"[{_UNSPACED}]|[^ {_UNSPACED}]+")
_DECIMALS = 6  # further ones of a cosine depend on the machine


@lru_cache(maxsize=4096)
def words_of(text: str) -> tuple[str, ...]:
    return tuple(_WORD.findall(clean(text, punctuation=PUNCTUATION)))


def jaccard(words: Sequence[str], others: Sequence[str], size: int) -> float:
    """Return the share of distinct n-grams that both have; a shorter text is one n-gram."""
    grams, other_grams = _grams(words, size), _grams(others, size)
    either = len(grams | other_grams)
    return len(grams & other_grams) / either if either else 0.0


def overlap(words: Sequence[str], others: Sequence[str], size: int) -> float:
    """Return the share of the distinct n-grams of one text that the other has; the larger share."""
    grams, other_grams = _grams(words, size), _grams(others, size)
    fewer = min(len(grams), len(other_grams))
    return len(grams & other_grams) / fewer if fewer else 0.0


def _grams(words: Sequence[str], size: int) -> set[tuple[str, ...]]:
    last = max(len(words) - size, 0)
    return {tuple(words[at : at + size]) for at in range(last + 1)} if words else set()


def rouge_l(words: Sequence[str], others: Sequence[str]) -> float:
    """Return ROUGE-L as F1: the longest common subsequence of words, by both lengths."""
    n_words = len(words) + len(others)
    return 2 * longest_common_subsequence(words, others) / n_words if n_words else 0.0


def longest_common_subsequence(words: Sequence[str], others: Sequence[str]) -> int:
    """Return its length, in steps of one row of the usual table, held as the bits of an integer."""
    places: dict[str, int] = {}
    for at, word in enumerate(words):
        places[word] = places.get(word, 0) | 1 << at
    every = (1 << len(words)) - 1
    row = every  # a bit is 0 where the length grows
    for word in others:
        shared = row & places.get(word, 0)
        row = ((row + shared) | (row - shared)) & every
    return len(words) - row.bit_count()


def difflib_ratio(text: str, other: str) -> float:
    """Return `difflib.SequenceMatcher(None, text, other, autojunk=False).ratio()`.

    By the suffix automaton of the detector `ratcliff`, so that long texts take no quadratic time.
    """
    characters, others = _characters(text), _characters(other)
    n = characters.size + others.size
    if not characters.size or not others.size:
        return 0.0 if n else 1.0
    blocks = np.empty((min(characters.size, others.size) + 1, 3), np.int64)
    n_blocks = token_runs.matching_blocks(characters, others, 1, blocks)
    return 2 * int(blocks[:n_blocks, token_runs.LENGTH].sum()) / n


def _characters(text: str) -> npt.NDArray[np.uint32]:
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)


def containment(text: str, other: str) -> float | None:
    """Return the share of a text's content words that the other has, the rare ones weighing more.

    None if the text has no content word.
    """
    weights, others = content_weights(text), content_weights(other)
    total = sum(weights.values())
    return sum(weights[stem] for stem in weights.keys() & others.keys()) / total if total else None


@lru_cache(maxsize=4096)
def content_weights(text: str) -> Mapping[str, int]:
    """Return the stems of a text's content words, with their weights."""
    words = sorted({word for word in words_of(text) if is_content(word)})
    words_by_stem: dict[str, list[str]] = {}
    for word, stem in zip(words, stems(words), strict=True):
        words_by_stem.setdefault(stem, []).append(word)
    return {stem: weight_of(of_stem) for stem, of_stem in words_by_stem.items()}


def number_agreement(text: str, other: str) -> float | None:
    """Return the share of the distinct numbers of both that both have; None without a number."""
    values, others = numbers_of(text), numbers_of(other)
    either = len(values | others)
    return len(values & others) / either if either else None


@lru_cache(maxsize=4096)
def numbers_of(text: str) -> frozenset[float]:
    return frozenset(number.value for number in numbers_in(text))


def _of_words(
    metric: Callable[[Sequence[str], Sequence[str]], float], text: str, other: str
) -> float:
    return metric(words_of(text), words_of(other))


LEXICAL: Mapping[str, Callable[[str, str], float | None]] = {
    "jaccard_1": partial(_of_words, partial(jaccard, size=1)),
    "jaccard_2": partial(_of_words, partial(jaccard, size=2)),
    "jaccard_3": partial(_of_words, partial(jaccard, size=3)),
    "rouge_l": partial(_of_words, rouge_l),
    "difflib": difflib_ratio,
    "containment": containment,
    "numbers": number_agreement,
}


def pair_metrics(
    texts: Sequence[str],
    others: Sequence[str],
    *,
    embedders: Sequence[Embedder] = (),
    on_step: Callable[[str], None] = lambda _: None,
) -> dict[str, Floats]:
    """Return the metrics of pairs as columns; nan where a pair has no value.

    The columns are those of `LEXICAL`, and `cosine NAME` for each embedder.
    """
    columns = {}
    for name, metric in LEXICAL.items():
        on_step(f"{name}: {len(texts):,} pairs")
        values = [metric(text, other) for text, other in zip(texts, others, strict=True)]
        columns[name] = np.array(values, np.float64)  # None becomes nan
    for embedder in embedders:
        on_step(f"cosine similarity by {embedder.name}: {len(texts):,} pairs")
        columns[f"cosine {embedder.name}"] = embedder.cosines(texts, others)
    return {name: column.round(_DECIMALS) for name, column in columns.items()}
