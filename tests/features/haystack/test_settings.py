"""[haystack] in decon.toml: scorers by name, and what is refused."""

import pytest

from decon_core.config.load import load_config
from decon_core.errors import ConfigError
from decon_core.features.haystack.settings import Haystack

CONFIG = """
[evals]
recipes = ["evals.yaml"]
[[corpus.source]]
name = "web"
path = "shards/*.jsonl"
text = "text"
"""


def haystack(folder, text):
    path = folder / "decon.toml"
    path.write_text(CONFIG + text)
    return load_config(path).table(Haystack)


def test_without_the_table_no_haystack_is_wanted(tmp_path):
    assert haystack(tmp_path, "") is None


def test_an_empty_table_has_the_defaults(tmp_path):
    found = haystack(tmp_path, "[haystack]\n")
    assert found.scorers == ("instruction_like", "educational", "short")
    assert (found.documents, found.items, found.seed) == (10_000, 15, 0)
    assert found.cuts == (0.01, 0.05, 0.1, 0.25, 0.5)


def test_files_of_scorers_are_relative_to_the_file(tmp_path):
    names = ["educational", "fasttext:q.bin:hq", "column:meta.q=s.jsonl", "endpoint:http://h/c"]
    found = haystack(tmp_path, f"[haystack]\nscorers = {names}\n")
    assert found.scorers == (
        "educational",
        f"fasttext:{tmp_path}/q.bin:hq",
        f"column:meta.q={tmp_path}/s.jsonl",
        "endpoint:http://h/c",
    )


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('scorers = ["fastext:q.bin"]', "Did you mean 'fasttext'"),
        ('scorers = ["fasttext"]', "expected fasttext:FILE:LABEL"),
        ('scorers = ["educational:x"]', "expected educational"),
        ('scorers = ["endpoint:ftp://h"]', "expected endpoint:URL"),
        ('scorers = ["column:quality"]', "Planted items are not rows of the corpus"),
        ("scorers = []", "one or more names"),
        ('sources = ["wep"]', "Did you mean 'web'"),
        ("cuts = [0.5, 0.1]", "ascending"),
        ("cuts = []", "ascending"),
        ("cuts = [0.0]", "a number above 0 and up to 1"),
        ("documents = 0", "a whole number of 1 or more"),
        ('model = "q"', "a scorer endpoint:URL"),
        ('key_env = "Q_KEY"', "a scorer endpoint:URL"),
        ("document = 5", "Did you mean 'documents'"),
    ],
)
def test_wrong_settings_are_refused_with_place_and_reason(tmp_path, text, problem):
    with pytest.raises(ConfigError, match=problem):
        haystack(tmp_path, f"[haystack]\n{text}\n")
