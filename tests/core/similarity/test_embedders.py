"""Embedders: a BERT encoder equals the oracle's, the packaged models work without network."""

import importlib.util
import json
from functools import cache

import numpy as np
import pytest

from decon_core.errors import InputError
from decon_core.similarity import embedders
from decon_core.similarity.bert import Bert, read_folder
from decon_core.similarity.embedders import PACKAGED, load_embedder
from tests.oracle import bert as oracle

pytest.importorskip("safetensors", reason="the optional group `semantic` is not installed")

N_LAYERS, N_HEADS, SIZE, INNER = 2, 3, 12, 20
WORDS = ["[PAD]", "[CLS]", "[SEP]", "[UNK]", *"abcdefgh"]
TEXTS = ["a b c", "h", "a b c d e f g h a b", "[SEP] a", ""]


def random_tensors():
    rng = np.random.default_rng(5)
    shapes = {
        "embeddings.word_embeddings.weight": (len(WORDS), SIZE),
        "embeddings.position_embeddings.weight": (16, SIZE),
        "embeddings.token_type_embeddings.weight": (2, SIZE),
    }
    linear = {"attention.self.query": (SIZE, SIZE), "attention.self.key": (SIZE, SIZE)}
    linear |= {"attention.self.value": (SIZE, SIZE), "attention.output.dense": (SIZE, SIZE)}
    linear |= {"intermediate.dense": (INNER, SIZE), "output.dense": (SIZE, INNER)}
    norms = ["embeddings.LayerNorm"]
    for number in range(N_LAYERS):
        layer = f"encoder.layer.{number}"
        norms += [f"{layer}.attention.output.LayerNorm", f"{layer}.output.LayerNorm"]
        for name, shape in linear.items():
            shapes |= {f"{layer}.{name}.weight": shape, f"{layer}.{name}.bias": shape[:1]}
    shapes |= {f"{name}.{part}": (SIZE,) for name in norms for part in ("weight", "bias")}
    return {name: rng.normal(0, 0.6, shape).astype("f4") for name, shape in shapes.items()}


def write_model(folder, *, pooling="mean_tokens", prefix="", dtype="f4", **config):
    """Write a random model as sentence-transformers saves it."""
    from safetensors.numpy import save_file
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    (folder / "1_Pooling").mkdir(parents=True)
    tokenizer = Tokenizer(models.WordLevel({one: at for at, one in enumerate(WORDS)}, "[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 1), ("[SEP]", 2)]
    )
    tokenizer.enable_padding(length=16)  # as published files have it
    tokenizer.save(str(folder / "tokenizer.json"))
    tensors = {f"{prefix}{name}": one.astype(dtype) for name, one in random_tensors().items()}
    save_file(tensors, folder / "model.safetensors")
    settings = {
        "model_type": "bert",
        "hidden_act": "gelu",
        "num_attention_heads": N_HEADS,
        "num_hidden_layers": N_LAYERS,
        "layer_norm_eps": 1e-12,
        "max_position_embeddings": 16,
        **config,
    }
    types = ["Transformer", "Pooling", "Normalize"]
    paths = ["", "1_Pooling", "2_Normalize"]
    files = {
        "config.json": settings,
        "modules.json": [
            {"path": path, "type": f"sentence_transformers.models.{name}"}
            for path, name in zip(paths, types, strict=True)
        ],
        "1_Pooling/config.json": {f"pooling_mode_{pooling}": True},
        "sentence_bert_config.json": {"max_seq_length": 8, "do_lower_case": True},
    }
    for name, value in files.items():
        (folder / name).write_text(json.dumps(value))
    return folder


def ids_of(text, most=8):
    known = {word: at for at, word in enumerate(WORDS)}
    spaced = text.lower().replace("[", " [ ").replace("]", " ] ").split()
    return [*[1, *(known.get(word, 3) for word in spaced)][: most - 1], 2]


@cache
def expected_states(text):
    tensors = {name: one.astype(float).tolist() for name, one in random_tensors().items()}
    return oracle.states(tensors, ids_of(text), n_layers=N_LAYERS, n_heads=N_HEADS, least=1e-12)


@pytest.mark.parametrize("pooling", ["mean_tokens", "cls_token"])
@pytest.mark.parametrize("prefix", ["", "bert."])
def test_a_bert_encoder_equals_the_oracles(tmp_path, pooling, prefix):
    model = Bert(read_folder(write_model(tmp_path / "m", pooling=pooling, prefix=prefix)))
    for text, row in zip(TEXTS, model.embed(TEXTS), strict=True):
        states = np.array(expected_states(text))
        expected = states.mean(axis=0) if pooling == "mean_tokens" else states[0]
        np.testing.assert_allclose(row, expected, atol=2e-5)


def test_a_text_has_the_same_vector_alone_and_among_others(tmp_path):
    model = load_embedder(str(write_model(tmp_path / "m")))
    together = model.embed(TEXTS)
    for row, text in zip(together, TEXTS, strict=True):
        np.testing.assert_array_equal(row, model.embed([text])[0])


def test_vectors_have_length_one_and_an_empty_text_the_vector_zero(tmp_path):
    vectors = load_embedder(str(write_model(tmp_path / "m"))).embed(TEXTS)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), [1, 1, 1, 1, 0], atol=1e-6)


def test_weights_in_half_precision_are_read(tmp_path):
    exact, half = (
        load_embedder(str(write_model(tmp_path / name, dtype=name))) for name in ("f4", "f2")
    )
    np.testing.assert_allclose(exact.embed(TEXTS), half.embed(TEXTS), atol=0.02)
    assert exact.fingerprint != half.fingerprint


def test_a_fingerprint_depends_on_weights_and_settings_and_not_on_the_place(tmp_path):
    one, same = (load_embedder(str(write_model(tmp_path / name))) for name in ("a", "b"))
    other = load_embedder(str(write_model(tmp_path / "c", pooling="cls_token")))
    assert one.fingerprint == same.fingerprint
    assert one.fingerprint != other.fingerprint


@pytest.mark.parametrize(
    ("config", "found"),
    [
        ({"model_type": "mpnet"}, "the architecture 'mpnet'"),
        ({"hidden_act": "relu"}, "the activation 'relu'"),
        ({"pooling": "max_tokens"}, "pooling by max_tokens"),
    ],
)
def test_other_architectures_need_the_package_for_them(tmp_path, config, found):
    if importlib.util.find_spec("sentence_transformers"):
        pytest.skip("sentence-transformers is installed")
    with pytest.raises(InputError, match=found) as error:
        load_embedder(str(write_model(tmp_path / "m", **config)))
    assert "pip install sentence-transformers" in str(error.value)


def test_a_folder_without_weights_is_refused(tmp_path):
    folder = write_model(tmp_path / "m")
    (folder / "model.safetensors").unlink()
    with pytest.raises(InputError, match=r"no model\.safetensors"):
        load_embedder(str(folder))


def test_damaged_weights_are_an_input_error(tmp_path):
    folder = write_model(tmp_path / "m")
    (folder / "model.safetensors").write_bytes(b"nonsense")
    with pytest.raises(InputError, match="a safetensors file"):
        load_embedder(str(folder)).load()


def test_an_unknown_name_is_an_input_error_with_the_known_ones():
    with pytest.raises(InputError, match="wordllama, minilm"):
        load_embedder("word2vec")


@pytest.mark.parametrize("name", PACKAGED)
def test_a_missing_package_is_named_with_the_command_that_installs_it(name, monkeypatch):
    monkeypatch.setattr(embedders, "find_spec", lambda _: None)
    with pytest.raises(InputError, match="pip install"):
        load_embedder(name)


@pytest.mark.parametrize("name", PACKAGED)
def test_the_packaged_models_find_the_rewording(name):
    module, _ = embedders._PACKAGES[name]
    if not importlib.util.find_spec(module):
        pytest.skip(f"{module} is not installed")
    text = "How many eggs do the ducks lay per day?"
    others = ["What is the number of eggs that the ducks produce each day?", "Who wrote Hamlet?"]
    near, far = load_embedder(name).cosines([text] * 2, others)
    assert near > 0.7
    assert far < 0.3
    assert load_embedder(name).cosines([text], [text])[0] == pytest.approx(1, abs=1e-6)
