"""Score texts with the file of a classifier: fastText, scikit-learn or ONNX.

The packages that read these files are optional. Opening a scikit-learn file runs the code that it
holds: only files from a trusted place should be opened.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from decon_core.config.validation import did_you_mean
from decon_core.decisions.statistics import Floats
from decon_core.errors import InputError, Problem
from decon_core.features.haystack.product import ModelFile
from decon_core.features.haystack.settings import ScorerName
from decon_core.features.similarity.embedders import read_tokenizer

Score = Callable[[Sequence[str]], Floats]

_AT_ONCE = 256  # texts; the same for any number of documents, so that sums have the same order


def load_score(name: ScorerName) -> Score:
    """Load the classifier of a file, as a function of texts."""
    file = ModelFile.of(name)
    load = {"fasttext": _fasttext, "sklearn": _sklearn, "onnx": _onnx}[name.kind]
    score = load(name, file)

    def in_blocks(texts: Sequence[str]) -> Floats:
        starts = range(0, len(texts), _AT_ONCE)
        blocks = [score(texts[start : start + _AT_ONCE]) for start in starts]
        return np.concatenate([np.zeros(0), *blocks])

    return in_blocks


def require_package(module: str, install: str, name: ScorerName) -> Any:
    """Import a package. Raises InputError with the command that installs it."""
    try:
        return import_module(module)
    except ImportError as error:
        found = f"the package {module!r}, which this scorer needs, cannot be imported ({error})"
        remedy = f"run `pip install {install}`"
        raise InputError(Problem(f"scorer {name}", found, remedy=remedy)) from None


def _unreadable(name: ScorerName, error: Exception, expected: str) -> InputError:
    reason = " ".join(str(error).split())[:200]
    return InputError(Problem(f"scorer {name}", f"an error: {reason}", expected))


def _position_of(label: str | None, labels: Sequence[object], name: ScorerName) -> int:
    """Return where a label is among those of a classifier; without one, the last of two."""
    known = [*map(str, labels)]
    if label is None and len(known) <= 2:
        return len(known) - 1
    if label in known:
        return known.index(label)
    found = "no label" if label is None else f"the label {label!r}"
    expected = f"one of the classifier's labels: {', '.join(known[:20])}"
    remedy = f"write {name.kind}:FILE:LABEL" if label is None else did_you_mean(label, known)
    raise InputError(Problem(f"scorer {name}", found, expected, remedy))


_FASTTEXT_PREFIX = "__label__"


def _fasttext(name: ScorerName, file: ModelFile) -> Score:
    fasttext = require_package("fasttext", "fasttext-wheel", name)
    try:
        # load_model prints a warning about its own interface to stderr.
        model = fasttext.FastText._FastText(model_path=str(file.path))  # noqa: SLF001
    except (ValueError, RuntimeError, MemoryError) as error:
        raise _unreadable(name, error, "a fastText model (.bin or .ftz)") from None
    labels = [label.removeprefix(_FASTTEXT_PREFIX) for label in model.get_labels()]
    asked = (file.label or "").removeprefix(_FASTTEXT_PREFIX) or None
    if asked is None:  # their order follows from frequencies in the training data: no default
        expected = f"one of the model's labels: {', '.join(labels[:20])}"
        remedy = "write fasttext:FILE:LABEL"
        raise InputError(Problem(f"scorer {name}", "no label", expected, remedy))
    label = f"{_FASTTEXT_PREFIX}{labels[_position_of(asked, labels, name)]}"

    def score(texts: Sequence[str]) -> Floats:
        # Not `predict`, which fails with NumPy 2. A text is one line for fastText.
        lines = [" ".join(text.split("\n")) + "\n" for text in texts]
        predictions = [model.f.predict(line, len(labels), 0.0, "replace") for line in lines]
        of_label = [{label: probability for probability, label in pairs} for pairs in predictions]
        # A text without known words has no prediction.
        return np.array([float(scores.get(label, 0.0)) for scores in of_label])

    return score


def _sklearn(name: ScorerName, file: ModelFile) -> Score:
    joblib = require_package("joblib", "scikit-learn", name)
    require_package("sklearn", "scikit-learn", name)
    try:
        model = joblib.load(file.path)
    except (ValueError, EOFError, ImportError, AttributeError, KeyError, IndexError) as error:
        raise _unreadable(name, error, "a pickled scikit-learn pipeline") from None
    if hasattr(model, "predict_proba"):
        at = _position_of(file.label, model.classes_, name)
        return _checked(name, lambda texts: model.predict_proba([*texts])[:, at])
    if act := getattr(model, "decision_function", None) or getattr(model, "predict", None):
        return _checked(name, lambda texts: act([*texts]))
    expected = "a text classifier or regressor, such as a pipeline with a vectorizer"
    raise InputError(Problem(f"scorer {name}", type(model).__name__, expected))


_TOKEN_INPUTS = {"input_ids", "attention_mask", "token_type_ids"}
_MOST_TOKENS = 512


def _onnx(name: ScorerName, file: ModelFile) -> Score:
    runtime = require_package("onnxruntime", "onnxruntime", name)
    # The errors of onnxruntime have no base class of their own.
    state = import_module("onnxruntime.capi.onnxruntime_pybind11_state")
    kinds = ("Fail", "InvalidArgument", "InvalidGraph", "InvalidProtobuf", "NotImplemented")
    errors = tuple(getattr(state, kind) for kind in (*kinds, "NoSuchFile", "RuntimeException"))
    options = runtime.SessionOptions()
    options.intra_op_num_threads = 1  # sums in one order
    try:
        session = runtime.InferenceSession(
            str(file.path), options, providers=["CPUExecutionProvider"]
        )
    except errors as error:
        raise _unreadable(name, error, "an ONNX model") from None
    names = {given.name for given in session.get_inputs()}
    tokenizer = file.path.with_name("tokenizer.json")
    if [given.type for given in session.get_inputs()] == ["tensor(string)"]:
        return _checked(name, _onnx_of_strings(session, file, name), errors)
    if names <= _TOKEN_INPUTS and tokenizer.is_file():
        return _checked(name, _onnx_of_tokens(session, tokenizer, file, name), errors)
    inputs = ", ".join(f"{given.name}: {given.type}" for given in session.get_inputs())
    expected = "one string input, or input_ids and attention_mask with tokenizer.json next to it"
    raise InputError(Problem(f"scorer {name}", f"the inputs {inputs}", expected))


def _onnx_of_tokens(session: Any, tokenizer: Path, file: ModelFile, name: ScorerName) -> Score:
    """Score by a model that takes tokens, each text alone: a score does not depend on the others.

    Of several logits, the score is the probability of a label, which is a number.
    """
    encoder = read_tokenizer(tokenizer)
    encoder.enable_truncation(_MOST_TOKENS)
    names = [given.name for given in session.get_inputs()]
    output = session.get_outputs()[0].name

    def score(texts: Sequence[str]) -> Floats:
        found = []
        for text in texts:
            encoding = encoder.encode(text)
            given = {"input_ids": encoding.ids, "attention_mask": encoding.attention_mask}
            given["token_type_ids"] = encoding.type_ids
            fed = {key: np.array([given[key]], np.int64) for key in names}
            logits = np.asarray(session.run([output], fed)[0], np.float64).reshape(-1)
            at = _position_of(file.label, range(logits.size), name)
            weights = np.exp(logits - logits.max())
            found.append(logits[0] if logits.size == 1 else weights[at] / weights.sum())
        return np.array(found)

    return score


def _onnx_of_strings(session: Any, file: ModelFile, name: ScorerName) -> Score:
    (given,) = session.get_inputs()
    has_columns = len(given.shape) == 2
    output = session.get_outputs()[-1].name  # a classifier's probabilities, which follow the label

    def score(texts: Sequence[str]) -> Floats:
        values = np.array([*texts], object)
        (found,) = session.run([output], {given.name: values[:, None] if has_columns else values})
        if len(texts) and isinstance(found[0], dict):  # how skl2onnx writes probabilities
            labels = [*found[0]]
            label = labels[_position_of(file.label, labels, name)]
            return np.array([probabilities[label] for probabilities in found])
        table = np.asarray(found).reshape(len(texts), -1)
        return table[:, _position_of(file.label, range(table.shape[1]), name)]

    return score


_WRONG_INPUT = (ValueError, TypeError, AttributeError, RuntimeError, IndexError)


def _checked(
    name: ScorerName, score: Score, errors: tuple[type[Exception], ...] = _WRONG_INPUT
) -> Score:
    """Return the function with its result as one number for each text."""

    def checked(texts: Sequence[str]) -> Floats:
        try:
            found = np.asarray(score(texts), np.float64)
        except errors as error:
            raise _unreadable(name, error, "a classifier that takes a list of texts") from None
        if found.shape != (len(texts),):
            expected = f"one number for each of the {len(texts)} texts"
            raise InputError(Problem(f"scorer {name}", f"the shape {found.shape}", expected))
        return found

    return checked
