"""Compressed files: whole, or an error."""

import os

import pytest
import zstandard

from decon_core.corpus.formats.recognize import sniff
from decon_core.storage.compression import (
    COMPRESSIONS,
    DAMAGE,
    HEAD,
    compression_of,
    create,
    open_bytes,
    read_chunks,
    suffix_of,
)

BODY = b"".join(b"line %d \xc3\xa9\n" % number for number in range(50_000))
ALL = ["", *COMPRESSIONS]


def written(path, body=BODY):
    with create(path, compression_of(path)) as file:
        file.write(body)
    return path


@pytest.mark.parametrize("compression", ALL)
def test_what_was_written_is_read_back(tmp_path, compression):
    path = written(tmp_path / f"a.jsonl{compression}")
    with open_bytes(path) as file:
        assert b"".join(file) == BODY
    assert suffix_of(path) == ".jsonl"


@pytest.mark.parametrize("compression", ALL)
def test_the_same_bytes_give_the_same_file(tmp_path, compression):
    first = written(tmp_path / f"a{compression}").read_bytes()
    assert written(tmp_path / f"b{compression}").read_bytes() == first


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_a_file_cut_off_anywhere_raises(tmp_path, compression):
    whole = written(tmp_path / f"a{compression}").read_bytes()
    for n_bytes in (5, len(whole) // 3, len(whole) - 3):
        path = tmp_path / f"cut{compression}"
        path.write_bytes(whole[:n_bytes])
        with pytest.raises(DAMAGE), open_bytes(path) as file:
            for _ in file:
                pass


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_flipped_bits_raise(tmp_path, compression):
    damaged = bytearray(written(tmp_path / f"a{compression}").read_bytes())
    damaged[len(damaged) // 2] ^= 0xFF
    path = tmp_path / f"bad{compression}"
    path.write_bytes(damaged)
    with pytest.raises(DAMAGE), open_bytes(path) as file:
        for _ in file:
            pass


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_files_glued_together_are_read_to_the_end(tmp_path, compression):
    whole = written(tmp_path / f"a{compression}").read_bytes()
    path = tmp_path / f"two{compression}"
    path.write_bytes(whole + whole)
    with open_bytes(path) as file:
        assert file.read() == BODY + BODY


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_a_file_of_no_bytes_was_cut_off(tmp_path, compression):
    path = tmp_path / f"a{compression}"
    path.touch()
    with pytest.raises(DAMAGE), open_bytes(path) as file:
        file.read()


def test_a_gz_file_padded_with_zeros_is_whole(tmp_path):
    path = written(tmp_path / "a.gz")
    path.write_bytes(path.read_bytes() + bytes(512))
    with open_bytes(path) as file:
        assert file.read() == BODY


def test_a_zstd_file_padded_with_zeros_is_damaged(tmp_path):
    path = written(tmp_path / "a.zst")
    path.write_bytes(path.read_bytes() + bytes(512))
    with pytest.raises(DAMAGE), open_bytes(path) as file:
        file.read()


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_a_file_without_content_is_whole(tmp_path, compression):
    path = tmp_path / f"a{compression}"
    with create(path, compression):
        pass
    with open_bytes(path) as file:
        assert file.read() == b""


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_something_else_behind_the_end_raises(tmp_path, compression):
    path = written(tmp_path / f"a{compression}")
    path.write_bytes(path.read_bytes() + b"and then some text")
    with pytest.raises(DAMAGE, match="other data after the end"), open_bytes(path) as file:
        for _ in file:
            pass


@pytest.mark.parametrize("compression", ALL)
def test_pieces_are_all_that_can_be_read_before_the_damage(tmp_path, compression):
    path = written(tmp_path / f"a{compression}")
    with path.open("rb") as file:
        assert b"".join(map(bytes, read_chunks(file, compression))) == BODY
    if compression:
        path.write_bytes(path.read_bytes()[:-3])
        got = b""
        with pytest.raises(DAMAGE), path.open("rb") as file:
            for piece in read_chunks(file, compression):
                got += piece
        assert BODY.startswith(got)


# For `zstd` itself: a frame may have a checksum or not, tell its size or not, and hold blocks that
# are compressed, stored, or one byte many times.
BODIES = [b"", b"x", b"\x00" * 3_000_000, BODY, bytes(range(256)) * 3, os.urandom(700_000)]


@pytest.mark.parametrize("body", BODIES, ids=len)
@pytest.mark.parametrize("has_checksum", [True, False])
@pytest.mark.parametrize("has_size", [True, False])
def test_every_kind_of_zstd_frame_is_followed_to_its_end(tmp_path, body, has_checksum, has_size):
    packer = zstandard.ZstdCompressor(write_checksum=has_checksum, write_content_size=has_size)
    frame = packer.compress(body)
    skippable = b"\x5a\x2a\x4d\x18\x05\x00\x00\x00skip!"
    path = tmp_path / "a.zst"
    path.write_bytes(frame + skippable + frame + b"\x50\x2a\x4d\x18\x00\x00\x00\x00")
    with open_bytes(path) as file:
        assert file.read() == body + body
    for n_bytes in range(1, 6):
        path.write_bytes((frame + skippable)[:-n_bytes])
        with pytest.raises(EOFError), open_bytes(path) as file:
            file.read()
        path.write_bytes(frame + frame[:-n_bytes])
        with pytest.raises(EOFError), open_bytes(path) as file:
            file.read()


def test_what_zstd_is_told_to_skip_is_skipped_however_long_it_is(tmp_path):
    frame = zstandard.compress(BODY)
    skippable = b"\x5f\x2a\x4d\x18" + (1 << 20).to_bytes(4, "little") + os.urandom(1 << 20)
    path = tmp_path / "a.zst"
    path.write_bytes(skippable + frame + skippable + skippable + frame)
    with open_bytes(path) as file:
        assert file.read() == BODY + BODY


def test_a_zstd_file_with_a_very_long_window_is_read(tmp_path):
    parameters = zstandard.ZstdCompressionParameters(window_log=30, enable_ldm=True)
    packer = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    path = tmp_path / "a.zst"
    path.write_bytes(packer.compress(BODY) + packer.flush())
    with open_bytes(path) as file:
        assert file.read() == BODY


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_few_bytes_that_stand_for_very_many_are_unpacked_a_step_at_a_time(tmp_path, compression):
    body = bytes(1 << 24)
    path = written(tmp_path / f"a{compression}", body)
    assert path.stat().st_size < len(body) / 500
    with path.open("rb") as file:
        sizes = [len(piece) for piece in read_chunks(file, compression)]
    assert sum(sizes) == len(body)
    assert max(sizes) <= 1 << 18


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("a.gz", ("a gzip file", ".gz")),
        ("a.zst", ("a zstd file", ".zst")),
        ("a.bz2", ("a bzip2 file", ".bz2")),
        ("a.xz", ("an xz file", ".xz")),
        ("a", ("plain text", "")),
    ],
)
def test_a_file_is_known_by_its_first_bytes(tmp_path, name, kind):
    assert sniff(written(tmp_path / name).read_bytes()[:HEAD]) == kind
    assert sniff(b"\x50\x2a\x4d\x18\x00\x00\x00\x00") == ("a zstd file", ".zst")
    assert sniff(b"") is None
    assert sniff(bytes(16)) is None
