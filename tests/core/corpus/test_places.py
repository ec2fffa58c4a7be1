"""Parts of a shard that are read again: the same as before, with as little reading as possible."""

import bz2
import gzip
import json
import lzma
import os
import sys

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
from decon_core.storage import seeking
from decon_core.storage.compression import DAMAGE
from decon_core.storage.seeking import open_ranges

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
    with pytest.raises(CorpusError, match="no such file"):
        list(read_places(shard, SOURCE, []))


# Restart points of gz files --------------------------------------------------------------------


@pytest.fixture(scope="module")
def content():
    """Text that is large enough for several restart points."""
    numbers = np.random.default_rng(0).integers(0, 1 << 40, 2_000_000)
    return " ".join(map(str, numbers)).encode()


def one_member(content):
    return gzip.compress(content, 1)


@pytest.fixture(scope="module")
def packed(content):
    return one_member(content)


GZ = {
    "one member": one_member,
    "two members": members,
    "many members": lambda content: b"".join(
        gzip.compress(content[at : at + 50_000], 1) for at in range(0, len(content), 50_000)
    ),
}


def read_range(path, offset, n_bytes, points=None):
    """Return a range, and how much of the file was read for it."""
    into = memoryview(bytearray(n_bytes))
    with open_ranges(path, points) as ranges:
        ranges.read(offset, into)
        return bytes(into), ranges.n_bytes_read


@pytest.mark.parametrize("pack", GZ.values(), ids=GZ)
def test_a_gz_file_is_read_from_restart_points_that_are_kept(pack, content, tmp_path):
    path, points = tmp_path / "a.gz", tmp_path / "a.points"
    path.write_bytes(pack(content))
    size = path.stat().st_size
    for offset in (0, len(content) // 2, len(content) - 1_000):
        expected = content[offset : offset + 1_000]
        found, n_bytes_read = read_range(path, offset, 1_000, points)
        assert found == expected
        if offset:
            assert n_bytes_read < size / 2
        assert read_range(path, offset, 1_000)[0] == expected
    with pytest.raises(DAMAGE):
        read_range(path, len(content) - 10, 11, points)


def test_restart_points_are_made_again_if_they_are_damaged(content, packed, tmp_path):
    path, points = tmp_path / "a.gz", tmp_path / "a.points"
    path.write_bytes(packed)
    read_range(path, 0, 10, points)
    whole = points.read_bytes()
    points.write_bytes(whole[:1_000] + b"?" + whole[1_001:])
    assert read_range(path, 5_000_000, 10, points)[0] == content[5_000_000:5_000_010]
    assert points.read_bytes() == whole


def test_without_the_package_for_restart_points_a_gz_file_is_read_from_its_beginning(
    content, packed, tmp_path, monkeypatch, caplog
):
    monkeypatch.setitem(sys.modules, "rapidgzip", None)
    seeking._note_once.cache_clear()
    path, points = tmp_path / "a.gz", tmp_path / "a.points"
    path.write_bytes(packed)
    for offset in (len(content) // 2, len(content) - 1_000):
        found, n_bytes_read = read_range(path, offset, 1_000, points)
        assert found == content[offset : offset + 1_000]
        assert n_bytes_read > path.stat().st_size * 0.4
    assert not points.exists()
    (said,) = caplog.messages
    assert "pip install 'decon-assets[sketch]'" in said


def test_zeros_after_the_last_gz_member_are_accepted(content, packed, tmp_path):
    path, points = tmp_path / "a.gz", tmp_path / "a.points"
    path.write_bytes(packed + bytes(1_000))
    assert read_range(path, 5_000_000, 10, points)[0] == content[5_000_000:5_000_010]


@pytest.mark.parametrize("has_points", [True, False], ids=["points kept", "no points"])
def test_a_gz_file_that_is_damaged_raises(content, packed, tmp_path, has_points):
    path, points = tmp_path / "a.gz", tmp_path / "a.points"
    path.write_bytes(packed)
    if has_points:
        read_range(path, 0, 10, points)
    at = len(packed) - 3_000_000
    path.write_bytes(packed[:at] + bytes(3_000_000))
    with pytest.raises(DAMAGE):
        read_range(path, len(content) - 10, 10, points)
    if not has_points:
        path.write_bytes(b"no gz file" * 1_000)
        with pytest.raises(DAMAGE):
            read_range(path, 10, 10, points)
