"""[neighbours] in decon.toml: sizes and shares by source, and what is refused."""

import pytest

from decon_core.config.load import load_config
from decon_core.errors import ConfigError
from decon_core.features.neighbours.settings import Neighbours, Sample

CONFIG = """
[evals]
recipes = ["evals.yaml"]
[[corpus.source]]
name = "web"
path = "shards/*.jsonl"
text = "text"
"""


def neighbours(folder, text):
    path = folder / "decon.toml"
    path.write_text(CONFIG + text)
    return load_config(path).table(Neighbours)


def test_without_the_table_no_neighbours_are_wanted(tmp_path):
    assert neighbours(tmp_path, "") is None


def test_an_empty_table_samples_a_thousand_documents_of_each_source(tmp_path):
    found = neighbours(tmp_path, "[neighbours]\n")
    assert found.embedder == "wordllama"
    assert found.of_source("web") == Sample(size=1000)


def test_a_source_may_have_a_size_or_share_of_its_own(tmp_path):
    found = neighbours(tmp_path, "[neighbours]\nsize = 5\n[neighbours.source.web]\nshare = 0.5\n")
    assert found.of_source("web") == Sample(share=0.5)
    assert found.of_source("books") == Sample(size=5)


def test_a_model_folder_is_relative_to_the_file(tmp_path):
    found = neighbours(tmp_path, '[neighbours]\nembedder = "models/e5"\n')
    assert found.embedder == str(tmp_path / "models/e5")


def test_an_endpoint_has_a_model_and_a_key(tmp_path):
    text = 'embedder = "http://localhost/v1"\nmodel = "e5"\nkey_env = "E5_KEY"\n'
    found = neighbours(tmp_path, f"[neighbours]\n{text}")
    assert (found.embedder, found.model, found.key_env) == ("http://localhost/v1", "e5", "E5_KEY")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("size = 5\nshare = 0.1", "both 'size' and 'share'"),
        ("share = 1.5", "a number above 0 and up to 1"),
        ("size = 0", "a whole number of 1 or more"),
        ("[neighbours.source.wep]\nsize = 5", "Did you mean 'web'"),
        ("max_tokens = 60", "at least twice min_tokens"),
        ('embedder = "http://localhost/v1"', "the model's name"),
        ('model = "e5"', "an embedder that is a URL"),
        ("sizes = 5", "unknown key 'sizes'"),
    ],
)
def test_wrong_settings_are_refused_with_place_and_reason(tmp_path, text, problem):
    with pytest.raises(ConfigError, match=problem):
        neighbours(tmp_path, f"[neighbours]\n{text}\n")


def test_a_key_that_was_pasted_is_not_repeated(tmp_path):
    text = '[neighbours]\nembedder = "http://localhost/v1"\nmodel = "e"\nkey_env = "sk-secret"\n'
    with pytest.raises(ConfigError, match="environment variable") as error:
        neighbours(tmp_path, text)
    assert "sk-secret" not in str(error.value)
