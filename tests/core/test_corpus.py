"""Reading shards: every row is a document or is accounted for."""

import gzip
import json
import os

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from decon_core.config import Source
from decon_core.corpus import (
    Document,
    Pack,
    Unreadable,
    find_shards,
    plan_packs,
    read_shard,
)
from decon_core.errors import CorpusError
from decon_core.streams import compression_of, create

TEXT = Source(name="web", path="*", text="text", id="id")


def rows_of(path, source=TEXT):
    source = Source(**{**source.__dict__, "path": path.name})
    (shard,) = find_shards(source, folder=path.parent, known={})
    return list(read_shard(shard, source))


def lines(tmp_path, *rows, name="a.jsonl"):
    path = tmp_path / name
    path.write_bytes(b"".join(row if isinstance(row, bytes) else row.encode() for row in rows))
    return path


def test_rows_keep_their_number_their_id_and_their_bytes(tmp_path):
    first, second = '{"text": "one", "id": 7}\n', '{"id": "x", "text": "two", "other": [1]}\n'
    assert rows_of(lines(tmp_path, first, "\n", second)) == [
        Document(0, "7", "one", first.encode()),
        Document(2, "x", "two", second.encode()),
    ]


@pytest.mark.parametrize(
    ("line", "reason", "detail"),
    [
        ("{not json\n", "not JSON", "Expecting property name"),
        ("[1, 2]\n", "not an object", "list"),
        ('{"id": 1}\n', "field missing", "text"),
        ('{"text": null}\n', "field is null", "text"),
        ('{"text": 5}\n', "field is not text", "text is int"),
        ('{"text": ["a"]}\n', "field is not text", "text is list"),
    ],
)
def test_a_row_that_is_no_document_is_kept_apart_with_place_and_reason(
    tmp_path, line, reason, detail
):
    good = '{"text": "fine"}\n'
    document, bad, after = rows_of(lines(tmp_path, good, line, good))
    assert isinstance(document, Document)
    assert isinstance(after, Document)
    assert isinstance(bad, Unreadable)
    assert (bad.row, bad.offset, bad.reason) == (1, len(good), reason)
    assert detail in bad.detail


def test_an_id_that_changes_its_type_and_metadata_that_drifts_break_nothing(tmp_path):
    rows = rows_of(
        lines(
            tmp_path,
            '{"text": "a", "id": 1, "meta": {"x": 1}}\n',
            '{"text": "b", "id": "two", "meta": "none"}\n',
            '{"text": "c", "id": null, "meta": [NaN]}\n',
        )
    )
    assert [(row.id, row.text) for row in rows] == [("1", "a"), ("two", "b"), (None, "c")]


def test_bytes_that_are_not_utf8_and_lone_surrogates_become_replacement_characters(tmp_path):
    rows = rows_of(
        lines(tmp_path, b'{"text": "caf\xe9"}\n', '{"text": "x\\ud800y \\ud83d\\ude80"}\n')
    )
    assert [row.text for row in rows] == ["caf\ufffd", "x\ufffdy \U0001f680"]


def test_nested_fields_are_found_and_so_are_keys_that_hold_dots(tmp_path):
    source = Source(name="web", path="", text="metadata.body", id="m.id")
    path = lines(
        tmp_path, '{"metadata": {"body": "deep"}, "m.id": 3}\n', '{"metadata.body": "flat"}\n'
    )
    assert [(row.id, row.text) for row in rows_of(path, source)] == [("3", "deep"), (None, "flat")]


def test_a_conversation_is_one_document_of_all_turns(tmp_path):
    source = Source(name="chat", path="", messages="messages")
    turns = [
        {"role": "user", "content": "Question?"},
        {"role": "assistant", "content": None, "tool_calls": []},
        {"role": "assistant", "content": [{"type": "text", "text": "Answer"}]},
    ]
    path = lines(tmp_path, json.dumps({"messages": turns}) + "\n")
    assert [row.text for row in rows_of(path, source)] == ["Question?\n\nAnswer"]


@pytest.mark.parametrize(
    ("messages", "reason"),
    [
        ("hello", "not a list of messages"),
        ([{"role": "user"}], "message without content"),
        (["hello"], "message without content"),
        ([{"role": "user", "content": 5}], "field is not text"),
    ],
)
def test_a_conversation_of_another_shape_is_kept_apart(tmp_path, messages, reason):
    source = Source(name="chat", path="", messages="messages")
    (row,) = rows_of(lines(tmp_path, json.dumps({"messages": messages}) + "\n"), source)
    assert isinstance(row, Unreadable)
    assert row.reason == reason


def test_parquet_rows_are_read_by_name_with_nested_fields(tmp_path):
    path = tmp_path / "a.parquet"
    table = pa.table({"id": [1, 2, 3], "meta": [{"text": "a"}, {"text": None}, {"text": "c"}]})
    pq.write_table(table, path, row_group_size=2)
    source = Source(name="web", path="", text="meta.text", id="id")
    first, second, third = rows_of(path, source)
    assert (first.row, first.id, first.text) == (0, "1", "a")
    assert isinstance(second, Unreadable)
    assert (third.row, third.text) == (2, "c")


@pytest.mark.parametrize("name", ["a.jsonl.gz", "a.parquet"])
def test_a_damaged_shard_raises_with_its_place(tmp_path, name):
    path = tmp_path / name
    if name.endswith("gz"):
        path.write_bytes(gzip.compress(b'{"text": "x"}\n' * 5000)[:-20])
    else:
        pq.write_table(pa.table({"text": ["x"] * 100}), path)
        path.write_bytes(path.read_bytes()[:-10])
    with pytest.raises(CorpusError, match=name):
        rows_of(path)


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz", "a.jsonl.zst", "a.parquet"])
def test_a_shard_that_changes_while_it_is_read_raises_before_the_end(tmp_path, name):
    """Same size and same time: only its bytes tell."""
    path = tmp_path / name
    source = Source(name="web", path=name, text="text")

    def write(letter):
        rows = [{"text": letter * 50} for _ in range(30_000)]
        if name.endswith("parquet"):
            pq.write_table(
                pa.Table.from_pylist(rows), path, compression="none", use_dictionary=False
            )
        else:
            with create(path, compression_of(path)) as file:
                file.write(b"".join(json.dumps(row).encode() + b"\n" for row in rows))

    write("a")
    status = path.stat()
    (shard,) = find_shards(source, folder=tmp_path, known={})
    assert len(list(read_shard(shard, source))) == 30_000
    write("b")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    with pytest.raises(CorpusError, match="other content"):
        list(read_shard(shard, source))


def test_a_line_nested_too_deeply_and_an_id_of_half_a_character_stop_nothing(tmp_path):
    deep = '{"text": "x", "meta": ' + "[" * 100_000 + "]" * 100_000 + "}\n"
    row, odd = rows_of(lines(tmp_path, deep, '{"text": "y", "id": "a\\ud800"}\n'))
    assert isinstance(row, Unreadable)
    assert row.reason == "not JSON"
    assert odd.id == "a\ufffd"


def test_a_byte_order_mark_is_no_part_of_the_first_line_s_json_but_of_its_bytes(tmp_path):
    first = b'\xef\xbb\xbf{"text": "a"}\n'
    (row,) = rows_of(lines(tmp_path, first))
    assert (row.text, row.raw) == ("a", first)


def test_a_folder_with_brackets_in_its_name_is_a_folder(tmp_path):
    folder = tmp_path / "v[1]"
    folder.mkdir()
    (row,) = rows_of(lines(folder, '{"text": "a"}\n'))
    assert row.text == "a"


def test_a_parquet_page_that_is_damaged_raises_with_its_file(tmp_path):
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"text": [f"row {n} of many" for n in range(20_000)]}), path)
    damaged = bytearray(path.read_bytes())
    damaged[2000:2200] = bytes(200)
    path.write_bytes(damaged)
    with pytest.raises(CorpusError, match=r"a\.parquet"):
        rows_of(path)


def test_a_glob_that_finds_nothing_or_a_strange_format_is_an_error(tmp_path):
    with pytest.raises(CorpusError, match="no file matches"):
        find_shards(TEXT, folder=tmp_path / "nowhere", known={})
    lines(tmp_path, "x", name="a.docx")
    with pytest.raises(CorpusError, match=r"format '\.docx'.*expected one of"):
        find_shards(TEXT, folder=tmp_path, known={})


def test_the_same_text_read_in_another_way_is_another_shard(tmp_path):
    lines(tmp_path, '{"text": "a", "body": "b"}\n')
    (one,) = find_shards(TEXT, folder=tmp_path, known={})
    (two,) = find_shards(Source(name="web", path="*", text="body"), folder=tmp_path, known={})
    assert one.content == two.content
    assert one.fingerprint != two.fingerprint


def shards(tmp_path, *names):
    for name in names:
        lines(tmp_path, json.dumps({"text": name}) + "\n", name=f"{name}.jsonl")
    return find_shards(TEXT, folder=tmp_path, known={})


def members(packs: list[Pack]) -> dict[str, list[str]]:
    return {pack.name: [shard.name for shard in pack.shards] for pack in packs}


def test_packs_never_change_their_members(tmp_path):
    first, _ = plan_packs(TEXT, shards(tmp_path, "b", "c", "d"), existing=[], pack_shards=2)
    assert members(first) == {"web-0000": ["b.jsonl", "c.jsonl"], "web-0001": ["d.jsonl"]}
    # "a" sorts first, and still does not move the others
    second, gone = plan_packs(TEXT, shards(tmp_path, "a", "e", "f"), existing=first, pack_shards=2)
    assert not gone
    assert members(second[:2]) == members(first)
    assert members(second[2:]) == {"web-0002": ["a.jsonl", "e.jsonl"], "web-0003": ["f.jsonl"]}


def test_a_pack_that_lost_a_member_goes_and_its_number_is_not_used_again(tmp_path):
    first, _ = plan_packs(TEXT, shards(tmp_path, "a", "b", "c", "d"), existing=[], pack_shards=2)
    (tmp_path / "d.jsonl").unlink()
    second, gone = plan_packs(TEXT, shards(tmp_path), existing=first, pack_shards=2)
    assert [pack.name for pack in gone] == ["web-0001"]
    assert members(second) == {"web-0000": ["a.jsonl", "b.jsonl"], "web-0002": ["c.jsonl"]}
    assert Pack.from_json(json.loads(json.dumps(second[0].to_json()))) == second[0]
