"""Tokenizer files: what they carry for a model's sake must not reach the detector."""

import os
import subprocess
import sys
from dataclasses import astuple
from pathlib import Path

import numpy as np
import pytest
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace

from decon_core.errors import ConfigError
from decon_core.text.tokenizers import load_tokenizer

VOCABULARY = {"[UNK]": 0, "[PAD]": 1, "one": 2, "two": 3, "three": 4}


@pytest.fixture
def path(tmp_path):
    tokenizer = Tokenizer(WordLevel(VOCABULARY, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.add_special_tokens(["[PAD]"])
    tokenizer.enable_truncation(max_length=2)
    tokenizer.enable_padding(length=8, pad_token="[PAD]", pad_id=1)
    file = tmp_path / "tokenizer.json"
    tokenizer.save(str(file))
    return str(file)


def test_truncation_and_padding_of_a_file_are_switched_off(path):
    loaded = load_tokenizer(path)
    assert loaded.encode(["one two three two", "one"]) == [[2, 3, 4, 3], [2]]


def test_pieces_cover_the_words_behind_the_tokens(path):
    text = " one two"
    pieces = load_tokenizer(path).pieces(text)
    cut = [text[start:stop] for start, stop in zip(pieces.starts, pieces.stops, strict=True)]
    assert cut == ["one", "two"]


def test_an_unknown_tokenizer_is_refused_with_the_known_ones():
    with pytest.raises(ConfigError, match=r"'gpt9'.*'cl100k'"):
        load_tokenizer("gpt9")


HUB = """
import sys
from decon_core.errors import ConfigError
from decon_core.text.tokenizers import load_tokenizer
print(load_tokenizer("owner/model").encode([" one two"]))
try:
    load_tokenizer("owner/absent")
except ConfigError as error:
    print(error)
"""


def test_a_name_on_the_hub_is_found_where_it_was_fetched_to(path, tmp_path):
    """Offline, with a cache such as a download leaves behind."""
    model = tmp_path / "hub" / "models--owner--model"
    (model / "refs").mkdir(parents=True)
    (model / "refs" / "main").write_text("0123abc")
    (model / "snapshots" / "0123abc").mkdir(parents=True)
    (model / "snapshots" / "0123abc" / "tokenizer.json").write_bytes(Path(path).read_bytes())
    environment = {**os.environ, "HF_HUB_CACHE": str(tmp_path / "hub"), "HF_HUB_OFFLINE": "1"}
    said = subprocess.run(
        [sys.executable, "-c", HUB], env=environment, capture_output=True, text=True, check=True
    ).stdout
    assert str(load_tokenizer(path).encode([" one two"])) in said
    assert "'owner/absent', which could not be downloaded" in said


@pytest.mark.parametrize("name", ["cl100k", "words"])
def test_texts_tokenized_together_have_the_tokens_of_each(name):
    tokenizer = load_tokenizer(name)
    texts = ["two words", "", " żółw, 東京!", "<|endoftext|> is no end", "\n"]
    pieces, sizes = tokenizer.joined_pieces(texts)
    columns = [np.split(column, np.cumsum(sizes)[:-1]) for column in astuple(pieces)]
    for text, *together in zip(texts, *columns, strict=True):
        for alone, part in zip(astuple(tokenizer.pieces(text)), together, strict=True):
            assert alone.tolist() == part.tolist()
    empty, none = tokenizer.joined_pieces([])
    assert empty.ids.size == none.size == 0
