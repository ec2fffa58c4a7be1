"""Small text classifiers: logistic regression on hashed words and pairs of words, by scikit-learn.

They are for trying the study offline, and show what training data does to a scorer; they do not
replace the classifier that a corpus was filtered with. The same texts give the same weights.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

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

    features = vstack([features_of(tuple(positive)), features_of(tuple(negative))])
    in_use = np.flatnonzero(features.getnnz(axis=0))  # all others would have the weight 0
    is_positive = np.arange(features.shape[0]) < len(positive)
    model = LogisticRegression(class_weight="balanced", max_iter=1000)
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
