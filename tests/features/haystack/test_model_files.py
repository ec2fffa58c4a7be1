"""Files of classifiers as scorers."""

import pickle

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace

from decon_core.errors import InputError
from decon_core.features.haystack.model_files import load_score
from decon_core.features.haystack.settings import ScorerName

GOOD = [f"a good text about number {n}" for n in range(20)]
BAD = [f"spam spam click here {n}" for n in range(20)]
# It has no wheels for Python 3.13 and later.
NO_FASTTEXT = "an optional scorer: pip install fasttext-wheel"


def load(kind, path):
    return load_score(ScorerName(kind, str(path)))


@pytest.mark.parametrize("kind", ["fasttext", "sklearn", "onnx"])
def test_a_file_that_is_missing_is_named(kind, tmp_path):
    with pytest.raises(InputError, match=rf"{kind}:.*no such file"):
        load(kind, tmp_path / "model.bin")


@pytest.mark.parametrize(
    ("kind", "module", "package"),
    [
        ("fasttext", "fasttext", "fasttext-wheel"),
        ("sklearn", "joblib", "scikit-learn"),
        ("onnx", "onnxruntime", "onnxruntime"),
    ],
)
def test_a_package_that_is_missing_is_named(kind, module, package, tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, module, None)
    path = tmp_path / "model.bin"
    path.write_bytes(b"")
    with pytest.raises(InputError, match=f"pip install {package}"):
        load(kind, path)


# fastText ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def fasttext_file(tmp_path_factory):
    fasttext = pytest.importorskip("fasttext", reason=NO_FASTTEXT)
    folder = tmp_path_factory.mktemp("fasttext")
    lines = [f"__label__hq {one}" for one in GOOD] + [f"__label__cc {one}" for one in BAD]
    (folder / "train.txt").write_text("\n".join(lines))
    settings = {"dim": 8, "epoch": 50, "lr": 1.0, "thread": 1, "verbose": 0, "bucket": 100}
    model = fasttext.train_supervised(str(folder / "train.txt"), **settings)
    model.save_model(str(folder / "quality.bin"))
    return folder / "quality.bin"


def test_a_fasttext_score_is_the_probability_of_the_label(fasttext_file):
    texts = ["a good text\nabout a number", "click here", "", "☃"]
    hq, cc = (load("fasttext", f"{fasttext_file}:{label}")(texts) for label in ("hq", "cc"))
    assert hq[0] > 0.9 > 0.1 > hq[1]
    assert np.allclose((hq + cc)[:2], 1, atol=1e-3)
    assert load("fasttext", f"{fasttext_file}:__label__hq")(texts).tolist() == hq.tolist()


def test_a_fasttext_label_must_be_one_of_the_model(fasttext_file):
    with pytest.raises(InputError, match="no label; expected one of the model's labels: "):
        load("fasttext", fasttext_file)
    with pytest.raises(InputError, match=r"the label 'hc'; expected .*: cc, hq"):
        load("fasttext", f"{fasttext_file}:hc")


def test_a_file_that_is_no_fasttext_model_is_refused(tmp_path):
    pytest.importorskip("fasttext", reason=NO_FASTTEXT)
    (tmp_path / "quality.bin").write_bytes(b"not a model" * 10)
    with pytest.raises(InputError, match="a fastText model"):
        load("fasttext", f"{tmp_path / 'quality.bin'}:hq")


# scikit-learn ------------------------------------------------------------------------------------


@pytest.fixture
def pickled(tmp_path):
    def save(model):
        path = tmp_path / "quality.joblib"
        path.write_bytes(pickle.dumps(model))
        return path

    return save


def fitted(model):
    from sklearn.feature_extraction.text import HashingVectorizer
    from sklearn.pipeline import make_pipeline

    pipeline = make_pipeline(HashingVectorizer(n_features=256), model)
    return pipeline.fit([*GOOD, *BAD], [1] * len(GOOD) + [0] * len(BAD))


def test_a_pipeline_scores_by_the_probability_of_its_last_or_named_class(pickled):
    from sklearn.linear_model import LogisticRegression

    path = pickled(fitted(LogisticRegression()))
    scores = load("sklearn", path)([GOOD[0], BAD[0]])
    assert scores[0] > 0.5 > scores[1]
    assert np.allclose(load("sklearn", f"{path}:0")([GOOD[0], BAD[0]]), 1 - scores)


def test_a_regressor_scores_by_its_prediction(pickled):
    from sklearn.linear_model import Ridge

    scores = load("sklearn", pickled(fitted(Ridge())))([*GOOD, *BAD] * 7)
    assert scores.shape == (280,)  # more than one block
    assert scores[0] > scores[20]


def test_a_pickle_that_is_no_classifier_of_texts_is_refused(pickled, tmp_path):
    with pytest.raises(InputError, match="dict; expected a text classifier"):
        load("sklearn", pickled({}))
    from sklearn.linear_model import Ridge

    score = load("sklearn", pickled(Ridge().fit([[0.0], [1.0]], [0, 1])))
    with pytest.raises(InputError, match="a classifier that takes a list of texts"):
        score(GOOD)
    (tmp_path / "text.joblib").write_text("no pickle")
    with pytest.raises(InputError, match="a pickled scikit-learn pipeline"):
        load("sklearn", tmp_path / "text.joblib")


# ONNX --------------------------------------------------------------------------------------------


def save_onnx(path, nodes, given, result, weights=()):
    graph = helper.make_graph(nodes, "g", given, result, initializer=[*weights])
    opsets = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), str(path))
    return path


def test_an_onnx_model_of_strings_scores_by_its_last_or_named_output(tmp_path):
    count = helper.make_node(
        "TfIdfVectorizer",
        ["text"],
        ["scores"],
        mode="TF",
        min_gram_length=1,
        max_gram_length=1,
        max_skip_count=0,
        ngram_counts=[0],
        ngram_indexes=[0, 1],
        pool_strings=["bad", "good"],
    )
    given = helper.make_tensor_value_info("text", TensorProto.STRING, [None, 1])
    result = helper.make_tensor_value_info("scores", TensorProto.FLOAT, [None, 2])
    path = save_onnx(tmp_path / "words.onnx", [count], [given], [result])
    assert load("onnx", path)(["good", "bad", "other"]).tolist() == [1, 0, 0]
    assert load("onnx", f"{path}:0")(["good", "bad", "other"]).tolist() == [0, 1, 0]


def test_an_onnx_model_of_tokens_uses_the_tokenizer_beside_it(tmp_path):
    words = {"[UNK]": 0, "bad": 1, "good": 2}
    tokenizer = Tokenizer(WordLevel(words, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    nodes = [
        helper.make_node("Gather", ["table", "input_ids"], ["vectors"]),
        helper.make_node("ReduceSum", ["vectors", "axis"], ["logits"], keepdims=0),
    ]
    table = numpy_helper.from_array(np.array([[0, 0], [2, 0], [0, 2]], np.float32), "table")
    axis = numpy_helper.from_array(np.array([1]), "axis")
    given = helper.make_tensor_value_info("input_ids", TensorProto.INT64, [None, None])
    result = helper.make_tensor_value_info("logits", TensorProto.FLOAT, [None, 2])
    path = save_onnx(tmp_path / "m.onnx", nodes, [given], [result], [table, axis])
    with pytest.raises(InputError, match="with tokenizer"):
        load("onnx", path)
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    scores = load("onnx", path)(["good", "good bad", "bad bad", "good " * 600])
    assert np.allclose(scores, [1 / (1 + np.exp(-2)), 0.5, 1 / (1 + np.exp(4)), 1.0])


def test_a_file_that_is_no_onnx_model_is_refused(tmp_path):
    (tmp_path / "m.onnx").write_bytes(b"not a model")
    with pytest.raises(InputError, match="an ONNX model"):
        load("onnx", tmp_path / "m.onnx")
