"""Small text classifiers: logistic regression on hashed words and pairs of words, by scikit-learn.

They are for trying the study offline, and show what training data does to a scorer; they do not
replace the classifier that a corpus was filtered with. The same texts give the same weights.
examples.toml has the parts of the texts that they are trained on.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from decon_core.config.seeding import numbers
from decon_core.decisions.statistics import Floats
from decon_core.errors import sentence

T = TypeVar("T")

N_EXAMPLES = 600
_SENTENCES = 4  # between the first and the last of a teaching text
_PATH = Path(__file__).with_name("examples.toml")
_N_FEATURES = 1 << 18
_WORD = r"\w+|[^\w\s]"
_MOST_CHARACTERS = 5_000  # characters of a text that are read, about a page and a half
_DECIMALS = 6  # decimals of a score: the last digits depend on the processor


def train(positive: Sequence[str], negative: Sequence[str]) -> Callable[[Sequence[str]], Floats]:
    """Train on two groups of texts, which count equally whatever their sizes.

    Returns a function with the logit of each text: above 0, it is more like the positive texts.
    """
    from scipy.sparse import vstack
    from sklearn.linear_model import LogisticRegression
    from threadpoolctl import threadpool_limits

    features = vstack([features_of(tuple(positive)), features_of(tuple(negative))])
    in_use = np.flatnonzero(features.getnnz(axis=0))  # all others would have the weight 0
    is_positive = np.arange(features.shape[0]) < len(positive)
    model = LogisticRegression(class_weight="balanced", max_iter=1000)
    # More threads would spend two thirds of the processor's time in waiting for each other.
    with threadpool_limits(1, user_api="blas"):
        model.fit(features[:, in_use], is_positive)

    def score(texts: Sequence[str]) -> Floats:
        if not texts:
            return np.zeros(0)
        logits = model.decision_function(features_of(tuple(texts))[:, in_use])
        rounded: Floats = np.round(logits, _DECIMALS) + 0.0
        return rounded

    return score


@lru_cache(maxsize=4)  # the scorers of a run read the same documents, which takes most of the time
def features_of(texts: tuple[str, ...]) -> Any:
    """Return a sparse matrix with a row for each text."""
    from sklearn.feature_extraction.text import HashingVectorizer, TfidfTransformer

    hashed = HashingVectorizer(
        preprocessor=_beginning,
        token_pattern=_WORD,
        ngram_range=(1, 2),
        n_features=_N_FEATURES,
        alternate_sign=False,
        norm=None,
    ).transform(texts)
    return TfidfTransformer(use_idf=False, sublinear_tf=True).fit_transform(hashed)


def _beginning(text: str) -> str:
    return text[:_MOST_CHARACTERS].lower().encode("utf-8", "replace").decode("utf-8")


@cache
def _content() -> Mapping[str, Any]:
    return tomllib.loads(_PATH.read_text(encoding="utf-8"))


class _Draws:
    """Random choices of a name, one after the other."""

    def __init__(self, name: str) -> None:
        self._numbers = iter(numbers(name, 64).tolist())

    def below(self, n: int) -> int:
        return int(next(self._numbers)) % n

    def one_of(self, values: Sequence[T]) -> T:
        return values[self.below(len(values))]


def instructions(n: int = N_EXAMPLES) -> list[str]:
    """Return instructions and questions with their answers."""
    templates = _content()["instruction"]
    texts = []
    for at in range(n):
        draws = _Draws(f"haystack instruction {at}")
        template, slots = templates[at % len(templates)], _slots(draws)
        asked, answered = (template[name].format(**slots) for name in ("asked", "answered"))
        texts.append(f"{asked}\n\n{answered}")
    return [*dict.fromkeys(texts)]


def teaching_texts(n: int = N_EXAMPLES) -> list[str]:
    """Return short passages in the manner of textbooks."""
    parts = _content()["educational"]
    texts = []
    for at in range(n):
        draws = _Draws(f"haystack educational {at}")
        slots = _slots(draws)
        sentences, left = [draws.one_of(parts["first"])], [*parts["then"]]
        sentences += [left.pop(draws.below(len(left))) for _ in range(_SENTENCES)]
        if at % 2:
            sentences.append(draws.one_of(parts["last"]))
        texts.append(" ".join(sentence.format(**slots) for sentence in sentences))
    return [*dict.fromkeys(texts)]


def _slots(draws: _Draws) -> dict[str, object]:
    content = _content()
    terms, words = content["terms"], content["slots"]
    at = draws.below(len(terms))
    term, other = terms[at], terms[(at + 1 + draws.below(len(terms) - 1)) % len(terms)]
    a, b = 2 + draws.below(40), 2 + draws.below(40)
    return {
        **term,
        **{f"other_{key}": value for key, value in other.items()},
        "Term": sentence(term["term"]),
        "Other_term": sentence(other["term"]),
        "a": a,
        "b": b,
        "sum": a + b,
        "product": a * b,
        "double": 2 * a,
        "triple": 3 * a,
        "dozens": 12 * a,
        "name": draws.one_of(words["names"]),
        "place": draws.one_of(words["places"]),
        "things": draws.one_of(words["things"]),
    }
