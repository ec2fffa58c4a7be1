"""Compressed files: whole, or an error."""

import pytest

from decon_core.streams import COMPRESSIONS, DAMAGE, compression_of, create, format_of, open_bytes

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
    assert format_of(path) == ".jsonl"


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
