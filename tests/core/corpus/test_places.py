"""Parts of a shard that are read again: the same as before, with as little reading as possible."""

import bz2
import gzip
import json
import lzma
import os

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from decon_core.config.sources import Source
from decon_core.corpus.formats import shard_format, tables
from decon_core.corpus.packs import shard_at
from decon_core.corpus.shards import read_blocks, read_places
from decon_core.errors import CorpusError

PART = 2_000
SOURCE = Source(name="web", path="*", text="text", id="id")
N_ROWS = 120


def rows():
    rng = np.random.default_rng(0)
    return [
        {"id": f"d{row}", "text": " ".join(f"w{n}" for n in rng.integers(0, 999, 20 + row % 40))}
        for row in range(N_ROWS)
    ]


def lines():
    found = [json.dumps(row).encode() + b"\n" for row in rows()]
    found[10:12] = [b"\n", b"{broken\n"]
    found[40] = json.dumps({"id": "long", "text": "long " * 2_000}).encode() + b"\n"
    return b"\xef\xbb\xbf" + b"".join(found)[:-1]  # a byte order mark; no break at the end


def frames(content, size=5_000):
    """Several zstd frames, and one that is skipped."""
    pack = zstandard.ZstdCompressor().compress
    made = [pack(content[at : at + size]) for at in range(0, len(content), size)]
    made.insert(1, b"\x50\x2a\x4d\x18" + (3).to_bytes(4, "little") + b"abc")
    return b"".join(made)


def streamed(content):
    """A zstd frame that does not state its size."""
    packer = zstandard.ZstdCompressor().compressobj()
    return packer.compress(content) + packer.flush()


def members(content):
    half = len(content) // 2
    return gzip.compress(content[:half], 1) + gzip.compress(content[half:], 1)


LINES = {
    "plain.jsonl": bytes,
    "one.jsonl.gz": gzip.compress,
    "two.jsonl.gz": members,
    "one.jsonl.zst": streamed,
    "many.jsonl.zst": frames,
    "a.jsonl.bz2": bz2.compress,
    "a.jsonl.xz": lzma.compress,
}
TABLES = ("groups.parquet", "file.arrow", "stream.arrow")
SEEKING = ("plain.jsonl", "groups.parquet")


def write(folder, name):
    path = folder / name
    if name in LINES:
        path.write_bytes(LINES[name](lines()))
        return path
    table = pa.Table.from_pylist(rows())
    if name.endswith(".parquet"):
        pq.write_table(table, path, row_group_size=10)
    else:
        create = pa.ipc.new_file if name == "file.arrow" else pa.ipc.new_stream
        with create(str(path), table.schema) as writer:
            writer.write_table(table, max_chunksize=7)
    return path


@pytest.fixture(params=[*LINES, *TABLES])
def shard(request, tmp_path, monkeypatch):
    for module in (shard_format, tables):
        monkeypatch.setattr(module, "PART_BYTES", PART)
    path = write(tmp_path, request.param)
    return shard_at(SOURCE, path, tmp_path)


def contents(block):
    """What a scan sees of a block."""
    batch = block.read()
    texts = [batch.document(at).text for at in range(batch.rows.size)]
    unreadable = [(row.row, row.reason, row.offset) for row in batch.unreadable]
    return block.place, batch.rows.tolist(), texts, unreadable


def test_prop_any_parts_are_those_of_the_first_reading(shard):
    expected = [contents(block) for block in read_blocks(shard, SOURCE, block_bytes=PART)]
    assert len(expected) > 3

    @given(st.sets(st.integers(0, len(expected) - 1)).map(sorted))
    def check(chosen):
        places = [expected[at][0] for at in chosen]
        found = [contents(block) for block in read_places(shard, SOURCE, places)]
        assert found == [expected[at] for at in chosen]

    check()


def test_only_a_part_of_the_file_is_read_where_the_format_can_seek(shard):
    places = [block.place for block in read_blocks(shard, SOURCE, block_bytes=PART)]
    (last,) = read_places(shard, SOURCE, places[-1:])
    if shard.name in SEEKING:
        assert 0 < last.position < shard.n_bytes * 0.6
    (first,) = read_places(shard, SOURCE, places[:1])
    assert 0 < first.position <= shard.n_bytes * 1.1 + 100  # with headers of frames


def test_a_file_that_was_replaced_is_refused(shard):
    places = [block.place for block in read_blocks(shard, SOURCE, block_bytes=PART)]
    os.utime(shard.path, ns=(1, 1))
    with pytest.raises(CorpusError, match="Run the command again"):
        list(read_places(shard, SOURCE, places))


def test_a_file_that_breaks_off_is_refused_if_its_date_and_size_were_noted_so(shard, tmp_path):
    places = [block.place for block in read_blocks(shard, SOURCE, block_bytes=PART)]
    path = tmp_path / shard.name
    path.write_bytes(path.read_bytes()[: shard.n_bytes // 2])
    shorter = shard_at(SOURCE, path, tmp_path)
    with pytest.raises(CorpusError):
        list(read_places(shorter, SOURCE, places))


def test_a_missing_file_is_refused(shard, tmp_path):
    (tmp_path / shard.name).unlink()
    with pytest.raises(CorpusError, match="the registered file is gone"):
        list(read_places(shard, SOURCE, []))
