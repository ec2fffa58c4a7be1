"""The scorers of a study: each gives documents and planted items a number, the higher the better.

A new kind is a name in `settings.py` and an entry of `_LOADERS`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from decon_core.decisions.statistics import Floats
from decon_core.errors import InputError, Problem, collecting
from decon_core.features.endpoints.json_endpoint import MOST_SHOWN, JsonEndpoint
from decon_core.features.haystack.documents import HaystackDocument
from decon_core.features.haystack.model_files import load_score, require_package
from decon_core.features.haystack.planted import PlantedItem, Planting
from decon_core.features.haystack.product import ModelFile, label_of, scores_file
from decon_core.features.haystack.settings import SHORT, TRAINED, Haystack, ScorerName
from decon_core.features.haystack.trained import instructions, teaching_texts, train
from decon_core.text.segments import canonical_words
from decon_core.wording import counted

_MOST_PROBLEMS = 20
_FEWEST_WORDS = 5  # words of a question that is looked for: shorter ones are in many documents


@dataclass(frozen=True)
class Scorer:
    """A function of documents and one of planted items; NaN for what has no score."""

    name: str
    about: str  # what it is
    of_documents: Callable[[Sequence[HaystackDocument]], Floats]
    of_planted: Callable[[Sequence[PlantedItem]], Floats]


@dataclass(frozen=True, kw_only=True)
class ScoringEndpoint(JsonEndpoint):
    """An endpoint that scores texts.

    It is sent `{"model": …, "input": [text, …]}`. Its answer is `{"scores": [number, …]}`, or what
    vLLM's `/classify` returns: `{"data": [{"index": 0, "probs": [number, …]}, …]}`, of which the
    last probability is the score.
    """

    what: ClassVar[str] = "scores"

    def score(self, texts: Sequence[str]) -> Floats:
        return np.array(self.in_batches(texts, self._scored), np.float64)

    def _scored(self, texts: Sequence[str]) -> list[float]:
        sent: dict[str, Any] = {"input": [*texts]}
        answer = self.post({"model": self.model, **sent} if self.model else sent)
        try:
            value = json.loads(answer)
            if "scores" in value:
                scores = [float(score) for score in value["scores"]]
            else:
                by_index = {int(row["index"]): float(row["probs"][-1]) for row in value["data"]}
                scores = [by_index[at] for at in range(len(texts))]
            is_good = len(scores) == len(texts) and bool(np.isfinite(scores).all())
        except (ValueError, TypeError, LookupError, AttributeError):
            is_good = False
        if not is_good:
            expected = f"JSON with `scores`: one number for each of the {len(texts)} texts"
            raise self.wrong(repr(answer[:MOST_SHOWN].decode(errors="replace")), expected)
        return scores


@dataclass(frozen=True)
class Training:
    """The planted items, and documents set aside to train on."""

    planting: Planting
    documents: Sequence[HaystackDocument]

    @cached_property
    def without_planted(self) -> list[HaystackDocument]:
        """The documents without the words of a planted item."""
        questions = [_plain(planted.item.question) for planted in self.planting.planted]
        questions = [question for question in questions if question.count(" ") > _FEWEST_WORDS]
        texts = ((document, _plain(document.text)) for document in self.documents)
        return [
            document
            for document, text in texts
            if not any(question in text for question in questions)
        ]


def load_scorers(
    settings: Haystack, planting: Planting, training: Sequence[HaystackDocument]
) -> list[Scorer]:
    """Load or train all scorers; raise InputError with the problems of all that cannot be."""
    scorers: list[Scorer] = []
    problems: list[Problem] = []
    names = settings.scorer_names
    set_aside = Training(planting, training)
    labels = [label_of(name) for name in names]
    for name, label in zip(names, labels, strict=True):
        with collecting(problems):
            scorer = _LOADERS[name.kind](name, settings, set_aside)
            is_unique = labels.count(label) == 1
            scorers.append(replace(scorer, name=label if is_unique else str(name)))
    InputError.raise_for(problems)
    return scorers


def _of_texts(name: ScorerName, about: str, score: Callable[[Sequence[str]], Floats]) -> Scorer:
    """Return a scorer of texts. Raises InputError for scores that are no finite numbers."""

    def checked(texts: Sequence[str]) -> Floats:
        scores = score(texts)
        n_wrong = int((~np.isfinite(scores)).sum())
        if n_wrong:
            found = f"no number for {n_wrong:,} of {counted(len(texts), 'text')}"
            raise InputError(Problem(f"scorer {name}", found, "a number for each text"))
        return scores

    return Scorer(
        str(name),
        about,
        lambda documents: checked([document.text for document in documents]),
        lambda planted: checked([item.text for item in planted]),
    )


def _trained(name: ScorerName, _: Haystack, training: Training) -> Scorer:
    """Train a built-in scorer on its texts against documents of the corpus.

    Its documents lack the words of planted items: no scorer learns what it ranks.
    """
    require_package("sklearn", "scikit-learn", name)
    documents = training.without_planted
    web = [document.text for document in documents if not document.is_conversation]
    if not web:
        found = "no document with plain text among those set aside for training"
        expected = "documents that are not conversations, as negative examples"
        raise InputError(Problem(f"scorer {name}", found, expected, "use a larger corpus"))
    if name.kind == "educational":
        positive = {"built-in teaching text": teaching_texts()}
    else:
        positive = {
            "built-in instruction": instructions(),
            "conversation": [doc.text for doc in documents if doc.is_conversation],
            "training item": [*training.planting.training],
        }
    parts = [counted(len(texts), noun) for noun, texts in positive.items() if texts]
    about = f"trained on {', '.join(parts)} against {counted(len(web), 'document')} from the corpus"
    texts = [text for kind in positive.values() for text in kind]
    return _of_texts(name, about, train(texts, web))


def _plain(text: str) -> str:
    return f" {' '.join(canonical_words(text))} "


def _short(name: ScorerName, *_: object) -> Scorer:
    about = "a control: shorter texts score higher"
    return _of_texts(name, about, lambda texts: np.array([-float(len(text)) for text in texts]))


def _file(name: ScorerName, *_: object) -> Scorer:
    file = ModelFile.of(name)
    of_label = f", label {file.label}" if file.label else ""
    return _of_texts(name, f"{name.kind} file {file.path.name}{of_label}", load_score(name))


def _endpoint(name: ScorerName, settings: Haystack, *_: object) -> Scorer:
    endpoint = ScoringEndpoint(url=name.target, model=settings.model, key_env=settings.key_env)
    model = f", model {settings.model}" if settings.model else ""
    return _of_texts(name, f"endpoint {name.target}{model}", endpoint.score)


def _column(name: ScorerName, _: Haystack, training: Training) -> Scorer:
    column = name.target.partition("=")[0]
    path = scores_file(name)
    scores = read_planted_scores(path, [planted.item.name for planted in training.planting.planted])

    def of_documents(documents: Sequence[HaystackDocument]) -> Floats:
        values = np.array([document.values.get(column) for document in documents], np.float64)
        if np.isnan(values).all():
            found = f"no number in the field {column!r} of any drawn document"
            raise InputError(Problem(f"scorer {name}", found, "a field with numbers"))
        return values

    about = f"field {column} of the corpus; {path.name} for planted items"
    return Scorer(
        str(name),
        about,
        of_documents,
        lambda planted: np.array([scores[each.item.name] for each in planted]),
    )


def read_planted_scores(path: Path, items: Sequence[str]) -> Mapping[str, float]:
    """Read the scores of planted items, lines of JSON with `item` and `score`.

    Raises InputError for lines that are none, and for items without a score.
    """
    scores: dict[str, float] = {}
    problems: list[Problem] = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if not line.strip():
            continue
        try:
            value: Any = json.loads(line)
            item, score = value["item"], float(value["score"])
        except (ValueError, TypeError, LookupError):
            item, score = "", np.nan
        if np.isfinite(score):
            scores[item] = score
        elif len(problems) < _MOST_PROBLEMS:
            expected = '{"item": "benchmark/split/0", "score": 0.5}'
            problems.append(Problem(f"{path}: line {number}", repr(line[:100]), expected))
    missing = [item for item in items if item not in scores]
    if missing and not problems:
        found = f"no score for {counted(len(missing), 'planted item')}, for example {missing[0]}"
        remedy = "`decon-assets haystack --planted FILE` writes their texts"
        problems.append(Problem(str(path), found, "a score for each planted item", remedy))
    InputError.raise_for(problems)
    return scores


_LOADERS: Mapping[str, Callable[[ScorerName, Haystack, Training], Scorer]] = {
    **dict.fromkeys(TRAINED, _trained),
    SHORT: _short,
    **dict.fromkeys(("fasttext", "sklearn", "onnx"), _file),
    "endpoint": _endpoint,
    "column": _column,
}
