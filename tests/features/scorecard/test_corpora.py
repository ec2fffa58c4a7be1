"""Texts to plant into: every kind of corpus, in turn, and nothing lost of a long file."""

import gzip
import json
import zipfile
from itertools import islice

import pytest

from decon_core.config.sources import Source
from decon_core.corpus.packs import Pack, find_shards
from decon_core.errors import InputError, MissingError
from decon_core.features.scorecard.corpora import hosts_below, hosts_of_packs, texts_below


@pytest.fixture
def corpus(tmp_path):
    """An archive, loose files in two encodings, a shard of texts and one of conversations."""
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("one.txt", "archived one")
        archive.writestr("two.txt", "archived two")
        archive.writestr("README", "not a text")
    (tmp_path / "old.txt").write_bytes("déjà vu".encode("latin-1"))
    rows = [{"text": f"row {n}"} for n in range(3)] + [{"text": None}]
    with gzip.open(tmp_path / "s[1].jsonl.gz", "wt") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
    turns = [{"role": "user", "content": "asked"}, {"role": "assistant", "content": "answered"}]
    (tmp_path / "t.jsonl").write_text(json.dumps({"messages": turns}) + "\n")
    return tmp_path


def test_every_kind_of_text_is_read(corpus):
    found = [(one.has_documents, list(one.texts)) for one in texts_below(corpus)]
    assert sorted(found) == [
        (False, ["archived one", "archived two"]),
        (False, ["déjà vu"]),
        (True, ["asked\n\nanswered"]),
        (True, ["row 0", "row 1", "row 2"]),
    ]


def test_hosts_come_from_everything_in_turn(corpus):
    first = set(islice(hosts_below(corpus), 4))
    assert first == {"archived one", "déjà vu", "asked\n\nanswered", "row 0"}
    assert len(list(hosts_below(corpus))) == 7


def test_a_single_file_is_a_corpus(corpus):
    assert list(hosts_below(corpus / "s[1].jsonl.gz")) == ["row 0", "row 1", "row 2"]


def test_a_long_file_is_many_pages_that_end_with_lines(tmp_path):
    text = "\n".join(f"line {n} of a very long file" for n in range(2000))
    (tmp_path / "long.txt").write_text(text)
    pages = list(hosts_below(tmp_path))
    assert len(pages) > 10
    assert "".join(pages) == text
    assert all(page.endswith("\n") for page in pages[:-1])
    (tmp_path / "long.txt").write_text("x" * 10_000)
    assert "".join(hosts_below(tmp_path)) == "x" * 10_000


def test_nothing_to_plant_into_is_said(tmp_path):
    with pytest.raises(InputError, match="no such file"):
        hosts_below(tmp_path / "nowhere")
    with pytest.raises(InputError, match="or shards"):
        hosts_below(tmp_path)
    with pytest.raises(MissingError, match="decon-assets register"):
        hosts_of_packs([])


def test_packs_are_read_as_their_source_says_and_not_all_of_very_many(tmp_path):
    for number in range(50):
        row = {"body": f"text {number}"}
        (tmp_path / f"{number:02}.jsonl").write_text(json.dumps(row) + "\n")
    source = Source(name="web", path="*.jsonl", text="body")
    shards = tuple(find_shards(source, folder=tmp_path, known={}))
    hosts = list(hosts_of_packs([Pack(name="web-0000", source=source, shards=shards)]))
    assert len(hosts) == len(set(hosts)) == 32
    assert {hosts[0], hosts[-1]} == {"text 0", "text 48"}
