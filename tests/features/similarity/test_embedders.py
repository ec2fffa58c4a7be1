"""Embedders: the packaged models work without network, a folder goes to sentence-transformers."""

import json
import sys

import numpy as np
import pytest

from decon_core.errors import InputError
from decon_core.features.similarity import embedders
from decon_core.features.similarity.embedders import PACKAGED, load_embedder

TEXTS = ["a b c", "h", "a b c d e f g h a b", "[SEP] a", ""]

# Stands in for sentence-transformers, which would install torch.
STAND_IN = """
import json, pathlib
import numpy as np

class SentenceTransformer:
    def __init__(self, folder, *, local_files_only):
        assert local_files_only
        self.first = json.loads(pathlib.Path(folder, "model.safetensors").read_text())

    def encode(self, texts, *, batch_size, show_progress_bar):
        assert batch_size == 1
        return np.array([[self.first, len(one), one.count("a")] for one in texts])
"""


def write_model(folder, weights=1.0):
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    (folder / "model.safetensors").write_text(json.dumps(weights))
    return folder


@pytest.fixture
def stand_in(tmp_path, monkeypatch):
    package = tmp_path / "packages/sentence_transformers"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(STAND_IN)
    monkeypatch.syspath_prepend(package.parent)
    monkeypatch.delitem(sys.modules, "sentence_transformers", raising=False)


@pytest.mark.usefixtures("stand_in")
def test_the_vectors_of_a_folder_have_length_one_and_an_empty_text_the_vector_zero(tmp_path):
    vectors = load_embedder(str(write_model(tmp_path / "m"))).embed(TEXTS)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), [1, 1, 1, 1, 0], atol=1e-6)
    np.testing.assert_allclose(vectors[1], np.array([1, 1, 0]) / np.sqrt(2), atol=1e-6)


@pytest.mark.usefixtures("stand_in")
def test_a_fingerprint_depends_on_the_files_and_not_on_the_place(tmp_path):
    one, same = (load_embedder(str(write_model(tmp_path / name))) for name in ("a", "b"))
    other = load_embedder(str(write_model(tmp_path / "c", weights=2.0)))
    assert one.fingerprint == same.fingerprint
    assert one.fingerprint != other.fingerprint


@pytest.mark.usefixtures("stand_in")
def test_a_damaged_folder_is_an_input_error(tmp_path):
    folder = write_model(tmp_path / "m")
    (folder / "model.safetensors").write_text("nonsense")
    with pytest.raises(InputError, match="a folder saved by sentence-transformers"):
        load_embedder(str(folder)).load()


def test_a_folder_needs_the_package_for_it(tmp_path, monkeypatch):
    monkeypatch.setattr(embedders, "find_spec", lambda _: None)
    with pytest.raises(InputError, match="pip install sentence-transformers"):
        load_embedder(str(write_model(tmp_path / "m")))


def test_an_unknown_name_is_an_input_error_with_the_known_ones():
    with pytest.raises(InputError, match="wordllama, minilm"):
        load_embedder("word2vec")


@pytest.mark.parametrize("name", PACKAGED)
def test_a_missing_package_is_named_with_the_command_that_installs_it(name, monkeypatch):
    monkeypatch.setattr(embedders, "find_spec", lambda _: None)
    with pytest.raises(InputError, match="pip install"):
        load_embedder(name)


def test_the_static_vectors_find_the_rewording():
    text = "How many eggs do the ducks lay per day?"
    others = ["What is the number of eggs that the ducks produce each day?", "Who wrote Hamlet?"]
    near, far = load_embedder("wordllama").cosines([text] * 2, others)
    assert near > 0.7
    assert far < 0.3
    assert load_embedder("wordllama").cosines([text], [text])[0] == pytest.approx(1, abs=1e-6)


def test_a_text_has_the_same_vector_alone_and_among_others():
    model = load_embedder("wordllama")
    together = model.embed(TEXTS)
    for row, text in zip(together, TEXTS, strict=True):
        np.testing.assert_array_equal(row, model.embed([text])[0])
