"""A shard format is one class: a new one is read, scanned and cut without any other change."""

import json
from itertools import islice

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from decon_core.benchmarks.folder import records_in
from decon_core.config.mixtures import Mixture
from decon_core.config.policy import Policy
from decon_core.config.sources import Source
from decon_core.corpus.documents import Unreadable, document_of
from decon_core.corpus.formats.lines import LineBlock, LineFormat
from decon_core.corpus.formats.recognize import shard_formats
from decon_core.corpus.packs import Pack, find_shards
from decon_core.corpus.shards import read_blocks, read_shard
from decon_core.discovery.corpus import survey_corpus
from decon_core.errors import CorpusError
from decon_core.library.scan import Request, scan_folder
from decon_core.storage.compression import create, open_bytes
from tests.core.places import CLEAN, Place

# The format: a line is an id, a tab, and a text ---------------------------------------------------


def cells_of(line):
    return line.decode().rstrip("\n").split("\t")


class TabBlock(LineBlock):
    def document(self, row, source):
        ((_, start, line),) = self.lines_at([row])
        offset, cells = self.offset + start, cells_of(line)
        if len(cells) != 2:
            return Unreadable(row, offset, "not two cells", f"{len(cells)} cells", line)
        value = dict(zip(("id", "text"), cells, strict=True))
        return document_of(value, row, source, offset=offset, raw=line)

    def values(self, rows):
        for row, _, line in self.lines_at(rows):
            yield row, dict(zip(("id", "text"), cells_of(line), strict=True))


class TabText(LineFormat):
    suffixes = (".tab",)
    block = TabBlock

    def line_of(self, value, *, like):
        return f"{value['id']}\t{value['text']}\n".encode()

    def first_rows(self, path, most):
        with open_bytes(path) as file:
            for line in islice(file, most):
                cells = cells_of(line)
                yield dict(zip(("id", "text"), cells, strict=True)) if len(cells) == 2 else None


# --------------------------------------------------------------------------------------------------


@pytest.fixture
def tab(monkeypatch):
    monkeypatch.setitem(shard_formats(), ".tab", TabText())


SOURCE = Source(name="tab", path="tab/*.tab*", text="text", id="id")


def write_tab(folder, name, rows):
    path = folder / "tab" / name
    path.parent.mkdir(exist_ok=True)
    with create(path, path.suffix if path.suffix == ".zst" else "") as out:
        out.write("".join("\t".join(row) + "\n" for row in rows).encode())
    return path


@pytest.fixture
def leaky(bench, make_words):
    """Two shards with a leak in the third row, and the items that leaked."""
    bench.policy = Policy(tokenizer_str="words", unreadable="drop")
    items = [(make_words(n, 30), make_words((n, "!"), 8), None) for n in range(2)]
    for number, name in enumerate(("a.tab", "b.tab.zst")):
        question, answer, _ = items[number]
        rows = [(f"{name}-{n}", make_words((name, n), 50)) for n in range(4)]
        rows[2] = (rows[2][0], f"{rows[2][1]} {question} {answer}")
        write_tab(bench.folder, name, [*rows, ("too", "many", "cells")])
    return bench, items


def found_in(folder, tab_path="*.tab*"):
    return find_shards(Source(name="tab", path=tab_path, text="text"), folder=folder, known={})


def test_an_unknown_suffix_is_refused_with_the_known_ones(tmp_path, monkeypatch):
    path = write_tab(tmp_path, "a.tab", [("1", "x")])
    known = r"\.arrow, \.feather, \.csv, \.tsv, \.json, \.jsonl, \.ndjson, \.parquet, \.tar"
    with pytest.raises(CorpusError, match=rf"a\.tab \(no format of shards\).* files in {known}"):
        found_in(path.parent)
    with monkeypatch.context() as patch:
        patch.setitem(shard_formats(), ".tab", TabText())
        (shard,) = found_in(path.parent)
        assert [row.text for row in read_shard(shard, SOURCE)] == ["x"]
    # Registered by another version.
    with pytest.raises(CorpusError, match=rf"'\.tab'; expected one of {known}"):
        list(read_shard(shard, SOURCE))


def test_its_rows_are_read_in_blocks_of_any_size(leaky, tab):
    bench, _ = leaky
    for shard in found_in(bench.folder / "tab"):
        rows = list(read_shard(shard, SOURCE))
        assert [row.row for row in rows] == [0, 1, 2, 3, 4]
        assert (rows[4].reason, rows[4].detail) == ("not two cells", "3 cells")
        for block_bytes in (64, 1 << 20):
            batches = [
                block.read() for block in read_blocks(shard, SOURCE, block_bytes=block_bytes)
            ]
            documents = [batch.document(at) for batch in batches for at in range(len(batch.rows))]
            assert documents == rows[:4]
            assert [row for batch in batches for row in batch.unreadable] == rows[4:]


def test_a_file_of_another_format_under_its_suffix_is_refused(tmp_path, tab):
    pq.write_table(pa.table({"text": ["x"]}), tmp_path / "a.tab")
    (shard,) = found_in(tmp_path)
    with pytest.raises(CorpusError, match=r"a parquet file, .* Rename it to a\.parquet"):
        list(read_shard(shard, SOURCE))


def test_init_finds_its_files(leaky, tab):
    bench, _ = leaky
    found = survey_corpus([str(bench.folder / "tab")])
    assert {one.source.id for one in found.sources} == {"id"}
    files = [path.name for one in found.sources for path in one.files]
    assert sorted(files) == ["a.tab", "b.tab.zst"]
    assert found.left_out == []


def test_a_folder_of_it_is_scanned(leaky, tab, tmp_path):
    bench, items = leaky
    lines = [
        {"eval_key": "a", "eval_instance_index": n, "split": "test", "question": q, "answer": a}
        for n, (q, a, _) in enumerate(items)
    ]
    evals = tmp_path / "evals.jsonl"
    evals.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert [*records_in(evals)] == ["a"]
    request = Request(
        evals=evals,
        source=Source(name="corpus", path=str(bench.folder / "tab"), id="id"),
        out=tmp_path / "out",
        policy=bench.policy,
    )
    outcome = scan_folder(request)
    assert (outcome.n_rows, outcome.n_documents, outcome.n_unreadable) == (10, 8, 2)
    assert (outcome.n_leaks, outcome.benchmarks[0].n_leaked_items) == (2, 2)
    ledger = [*map(json.loads, (tmp_path / "out" / "ledger.jsonl").read_bytes().splitlines())]
    assert [line["unreadable"][0]["line"] for line in ledger] == [5, 5]


def test_mixtures_drop_and_cut_its_rows_and_keep_all_others(leaky, tab, make_words):
    bench, items = leaky
    place = Place(bench, bench.prepare({"a": items}))
    shards = find_shards(SOURCE, folder=bench.folder, known={})
    place.packs.append(Pack(name="tab-0000", source=SOURCE, shards=tuple(shards)))
    place.scan()

    def lines_of(mixture, name):
        with open_bytes(place.build(mixture).folder / name) as file:
            return file.read().splitlines(keepends=True)

    for shard in shards:
        with open_bytes(bench.folder / "tab" / shard.name) as file:
            before = file.read().splitlines(keepends=True)
        assert lines_of(CLEAN, shard.name) == [*before[:2], before[3]]
        cut = lines_of(Mixture(name="cut", cut="spans"), shard.name)
        assert [cut[0], cut[1], cut[3]] == [before[0], before[1], before[3]]
        assert cut[2].startswith(f"{shard.name}-2\t{make_words((shard.name, 2), 50)}".encode())
        assert len(cut[2]) < len(before[2])
        dolma = lines_of(Mixture(name="dolma", write="dolma"), f"{shard.name}.jsonl.zst")
        ids = [f"{shard.name}-{n}" for n in (0, 1, 3)]
        assert [json.loads(line)["id"] for line in dolma] == ids
