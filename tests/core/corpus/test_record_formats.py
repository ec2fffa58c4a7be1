"""JSON documents, CSV, TSV and tar archives: each row is read, and kept rows keep their bytes."""

import csv
import io
import json
import resource
import tarfile
from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from decon_core.config.mixtures import Mixture
from decon_core.config.sources import Source
from decon_core.corpus.documents import Document, Unreadable
from decon_core.corpus.formats import Changes, format_of
from decon_core.corpus.packs import Pack, find_shards
from decon_core.corpus.shards import (
    read_blocks,
    read_places,
    read_shard,
    rewrite_shard,
    values_of,
)
from decon_core.decisions.not_read import UnreadRule
from decon_core.errors import CorpusError
from decon_core.storage.compression import compression_of, create, open_bytes
from tests.core.places import CLEAN, Place

# Writers that share nothing with the readers ------------------------------------------------------


def as_array(rows, **style):
    return json.dumps(rows, **style).encode()


def as_holder(rows, key="data"):
    return json.dumps({"version": "1.1", key: rows, "n": len(rows)}, indent=1).encode()


def as_columns(rows):
    return json.dumps({name: [row[name] for row in rows] for name in ("id", "text")}).encode()


def as_csv(rows, **style):
    out = io.StringIO(newline="")
    writer = csv.DictWriter(out, ["id", "text"], **style)
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue().encode()


def as_tsv(rows):
    return "".join(
        f"{a}\t{b}\n" for a, b in [("id", "text"), *((row["id"], row["text"]) for row in rows)]
    ).encode()


def as_tar(rows):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for number, row in enumerate(rows):
            members = {"json": json.dumps(row).encode(), "txt": row["text"].encode()}
            for name, content in {**members, "jpg": b"\xff\xd8\xff"}.items():
                member = tarfile.TarInfo(f"shards/{number:06}.{name}")
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
    return out.getvalue()


WRITERS = {
    "array.json": as_array,
    "pretty.json": lambda rows: as_array(rows, indent=2, ensure_ascii=False),
    "ascii.json.gz": as_array,
    "holder.json.zst": as_holder,
    "rows.json": lambda rows: as_holder(rows, "rows"),
    "columns.json": as_columns,
    "lines.json": lambda rows: b"".join(json.dumps(row).encode() + b"\n" for row in rows),
    "a.csv": as_csv,
    "all.csv.gz": lambda rows: as_csv(rows, quoting=csv.QUOTE_ALL, lineterminator="\n"),
    "a.tsv.zst": as_tsv,
    "a.tar": as_tar,
    "a.tar.gz": as_tar,
}
ROWS = [{"id": f"r{n}", "text": f'text {n}, with "quotes" and ümlauts'} for n in range(5)]


def source_of(name, **more):
    fields = {"text": "json.text", "id": "json.id"} if ".tar" in name else {}
    return Source(**{"name": "web", "path": name, "text": "text", "id": "id", **fields, **more})


def shard_of(folder, name, content, **more):
    path = folder / name
    with create(path, compression_of(path)) as out:
        out.write(content)
    source = source_of(name, **more)
    (shard,) = find_shards(source, folder=folder, known={})
    return shard, source


def texts(shard, source):
    return [row.text for row in read_shard(shard, source)]


def content_of(path):
    with open_bytes(path) as file:
        return file.read()


# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", WRITERS)
def test_every_row_is_read_with_its_id(tmp_path, name):
    shard, source = shard_of(tmp_path, name, WRITERS[name](ROWS))
    rows = [*read_shard(shard, source)]
    assert [(row.row, row.id, row.text) for row in rows] == [
        (number, row["id"], row["text"]) for number, row in enumerate(ROWS)
    ]
    first = [
        row.get("json", row)["text"]
        for row in format_of(tmp_path / name).first_rows(tmp_path / name, 3)
    ]
    assert first[:3] == [row["text"] for row in ROWS[:3]]


TEXTS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=40)


@pytest.mark.parametrize("name", WRITERS)
@given(rows=st.lists(st.fixed_dictionaries({"id": TEXTS, "text": TEXTS}), min_size=1, max_size=6))
def test_prop_what_an_independent_writer_wrote_is_read_back(tmp_path_factory, name, rows):
    rows = [{**row, "id": f"{number} {row['id']}"} for number, row in enumerate(rows)]
    shard, source = shard_of(tmp_path_factory.mktemp("x"), name, WRITERS[name](rows))
    read = [*read_shard(shard, source)]
    assert [(row.id, row.text) for row in read] == [(row["id"], row["text"]) for row in rows]


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("gone", [{0}, {4}, {1, 2}, {0, 1, 2, 3, 4}, set()])
def test_kept_rows_keep_their_bytes(tmp_path, name, gone):
    shard, source = shard_of(tmp_path, name, WRITERS[name](ROWS))
    target = tmp_path / "out" / name
    ids = rewrite_shard(shard, source, target, lambda _: Changes(frozenset(gone), {}))
    assert ids == {row: f"r{row}" for row in gone}
    left, source = shard_of(tmp_path / "out", name, content_of(target))
    kept = [row for number, row in enumerate(ROWS) if number not in gone]
    assert texts(left, source) == [row["text"] for row in kept]
    before, after = content_of(tmp_path / name), content_of(target)
    if not gone:
        assert after == before
    elif kept and name in ("array.json", "ascii.json.gz", "pretty.json"):
        style = {"indent": 2, "ensure_ascii": False} if name == "pretty.json" else {}
        assert after == as_array(kept, **style)
    elif "csv" in name:
        lines = before.splitlines(keepends=True)
        assert after == b"".join(
            line for number, line in enumerate(lines, start=-1) if number not in gone
        )


@pytest.mark.parametrize("name", WRITERS)
def test_a_changed_row_is_written_in_the_form_of_the_old_one(tmp_path, name):
    shard, source = shard_of(tmp_path, name, WRITERS[name](ROWS))
    ((_, old),) = values_of(shard, source, [2])
    new = (
        {**old, "text": "a, new"}
        if "json" not in old
        else {**old, "json": {**old["json"], "text": "a, new"}}
    )
    target = tmp_path / "out" / name
    rewrite_shard(shard, source, target, lambda _: Changes(frozenset(), {2: new}))
    left, source = shard_of(tmp_path / "out", name, content_of(target))
    assert texts(left, source) == [
        "a, new" if number == 2 else row["text"] for number, row in enumerate(ROWS)
    ]


@pytest.mark.parametrize("name", WRITERS)
def test_parts_are_found_again_by_their_places(tmp_path, name):
    shard, source = shard_of(tmp_path, name, WRITERS[name](ROWS))
    blocks = [*read_blocks(shard, source, block_bytes=64)]
    assert len(blocks) > 1 or name == "columns.json"
    places = [block.place for block in blocks[::2]]
    found = [*read_places(shard, source, places)]
    assert [one.place for one in found] == places
    for one, block in zip(found, blocks[::2], strict=True):
        assert one.read().rows.tolist() == block.read().rows.tolist()
    assert all(a.row + a.n_rows == b.row for a, b in pairwise(block.place for block in blocks))


# The limit ----------------------------------------------------------------------------------------

LONG = [ROWS[0], {"id": "long", "text": "word " * 5_000}, ROWS[2]]
LIMITED = [*(name for name in WRITERS if name != "columns.json"), "a.jsonl", "a.jsonl.gz"]


@pytest.mark.parametrize("name", LIMITED)
@pytest.mark.parametrize("block_bytes", [64, 1 << 20])
def test_a_row_over_the_limit_is_refused_with_its_place(tmp_path, name, block_bytes):
    content = WRITERS.get(name, WRITERS["lines.json"])(LONG)
    limit = 8_000 if ".tar" in name else 2_000
    shard, source = shard_of(tmp_path, name, content, max_row_bytes=limit)
    with pytest.raises(CorpusError) as error:
        for block in read_blocks(shard, source, block_bytes=block_bytes):
            block.read()
    said = str(error.value)
    assert f"{shard.path}: row 1, byte " in said
    assert f"a row of more than {limit:,} bytes" in said or "kB" in said
    assert "max_row_bytes" in said
    shard, source = shard_of(tmp_path, name, content)
    assert texts(shard, source)[1] == LONG[1]["text"]


def test_the_memory_of_an_endless_line_is_bounded_by_the_limit(tmp_path):
    """A small file of one line of 200 MB."""

    path = tmp_path / "a.jsonl.gz"
    with create(path, ".gz") as out:
        out.write(b'{"text": "')
        for _ in range(50):
            out.write(b"a" * (4 << 20))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    source = source_of("a.jsonl.gz", max_row_bytes=10_000_000)
    (shard,) = find_shards(source, folder=tmp_path, known={})
    with pytest.raises(CorpusError, match="row 0, byte 0"):
        [*read_blocks(shard, source)]
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000  # kB


def test_a_table_row_over_the_limit_is_refused(tmp_path):
    import pyarrow as pa
    from pyarrow import parquet

    parquet.write_table(pa.table({"text": ["a", "b" * 5_000]}), tmp_path / "a.parquet")
    source = Source(name="web", path="a.parquet", text="text", max_row_bytes=2_000)
    (shard,) = find_shards(source, folder=tmp_path, known={})
    with pytest.raises(CorpusError, match=r"a\.parquet: row 1: found a row of more than"):
        [*read_shard(shard, source)]


# What is unusual ----------------------------------------------------------------------------------


def rows_in(tmp_path, name, content, **more):
    return [*read_shard(*shard_of(tmp_path, name, content, **more))]


def test_elements_that_are_no_objects_are_named(tmp_path):
    content = b'[{"text": "a"}, 5, {"text": "new\nline"}, {"text": "b"}]'
    rows = rows_in(tmp_path, "a.json", content)
    assert [(row.row, row.offset, row.reason) for row in rows if isinstance(row, Unreadable)] == [
        (1, 16, "not an object"),
        (2, 19, "not JSON"),
    ]
    assert [row.text for row in rows if isinstance(row, Document)] == ["a", "b"]


@pytest.mark.parametrize(
    "content",
    [b'[{"text": "a"}, {"text": "b"', b'[{"text": "a"} {"text": "b"}]', b'[{"text": "a"}, x]'],
)
def test_a_broken_array_is_refused_behind_its_good_rows(tmp_path, content):
    rows = read_shard(*shard_of(tmp_path, "a.json", content))
    assert next(rows).text == "a"
    with pytest.raises(CorpusError, match=r"a\.json: after 1 row, byte \d+ of the text"):
        next(rows)


def test_texts_beside_the_rows_are_no_silent_loss(tmp_path):
    prose = "one two three four five six seven eight nine"
    after = json.dumps({"data": [{"text": "a"}], "about": prose}, indent=1).encode()
    with pytest.raises(CorpusError, match="key 'about', next to the rows under 'data'"):
        rows_in(tmp_path, "a.json", after)
    before = json.dumps({"text": prose, "data": [{"text": "a"}]}, indent=1).encode()
    assert [row.text for row in rows_in(tmp_path, "b.json", before)] == [prose]  # one row


CHINESE = "".join(chr(0x4E00 + n) for n in range(30))
PIECES = [{"content": "seven words are no text of any"}] * 2


@pytest.mark.parametrize(
    "beside", [CHINESE, [CHINESE], PIECES, {"eight words are a text in a key too": 1}]
)
@pytest.mark.parametrize("is_ascii", [True, False])
@pytest.mark.parametrize("indent", [1, None])
def test_what_a_row_would_have_as_text_is_text_beside_the_rows(tmp_path, beside, is_ascii, indent):
    def document(value):
        return json.dumps(value, indent=indent, ensure_ascii=is_ascii).encode()

    with pytest.raises(CorpusError, match="key 'more', next to the rows under 'data'"):
        rows_in(
            tmp_path, "a.json", document([]) + document({"data": [{"text": "a"}], "more": beside})
        )
    whole = {"more": beside, "data": [{"text": "a"}]}
    (row,) = rows_in(tmp_path, "b.json", document(whole), text=None)
    assert row.text.endswith("a")
    assert len(row.parts) > 1


def test_a_second_list_of_rows_is_refused(tmp_path):
    rows = b'"data": [{"text": "one two three four five six seven eight"}]'
    content = b"{" + rows + b",\n" + rows + b"}"
    with pytest.raises(CorpusError, match="key 'data'"):
        rows_in(tmp_path, "a.json", content)


def test_a_number_of_thousands_of_digits_makes_its_row_unreadable_and_no_other(tmp_path):
    content = f'[{{"text": "a"}}, {{"n": {"9" * 5000}}}, {{"text": "b"}}]'.encode()
    first, row, last = rows_in(tmp_path, "a.json", content)
    assert (first.text, row.reason, last.text) == ("a", "not JSON", "b")


@pytest.mark.parametrize("names", [["1.txt", "1.txt"], ["1", "1.content"]])
def test_a_member_that_a_row_has_twice_is_named(tmp_path, names):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name in names:
            member = tarfile.TarInfo(name)
            member.size = 1
            archive.addfile(member, io.BytesIO(b"a"))
    (row,) = rows_in(tmp_path, "a.tar", out.getvalue(), text=None)
    assert (row.reason, row.detail) == ("a member twice", names[1])


@pytest.mark.parametrize(
    "content",
    [
        b'{"text": "a"}',
        b'{\n "text": "a"\n}\n',
        b'\xef\xbb\xbf[{"text": "a"}]',
        b'{"text": "a", "messages": [{"role": "user"}, {"role": "user"}]}',
    ],
)
def test_one_row(tmp_path, content):
    assert [row.text for row in rows_in(tmp_path, "a.json", content)] == ["a"]


def test_objects_over_several_lines_one_after_the_other(tmp_path):
    content = b'{\n "text": "a"\n}\n{\n "text": "b"\n}\n'
    assert [row.text for row in rows_in(tmp_path, "a.json", content)] == ["a", "b"]


def test_large_integers_and_escapes_of_kept_rows_stay(tmp_path):
    content = b'[{"text": "a"},{"n": 123456789012345678901234567890, "text": "\\u00fc"}]'
    shard, source = shard_of(tmp_path, "a.json", content)
    rewrite_shard(shard, source, tmp_path / "out/a.json", lambda _: Changes(frozenset([0]), {}))
    expected = b'[{"n": 123456789012345678901234567890, "text": "\\u00fc"}]'
    assert (tmp_path / "out/a.json").read_bytes() == expected


def test_broken_lines_of_a_json_file_are_rows_as_before(tmp_path):
    rows = rows_in(tmp_path, "a.json", b'{"text": "a\n{"text": "b"}\n')
    assert [type(row).__name__ for row in rows] == ["Unreadable", "Document"]


def test_cells_that_do_not_fit_the_header_are_named(tmp_path):
    rows = rows_in(tmp_path, "a.csv", b'id,text\n1,a\n2,b,c\n\n"x"y,d\n5,"e\nf"\n')
    assert [(row.row, getattr(row, "reason", row.__dict__.get("text"))) for row in rows] == [
        (0, "a"),
        (1, "not 2 cells"),
        (3, "not CSV"),
        (4, "e\nf"),
    ]


def test_a_quote_that_is_never_closed_is_refused_at_the_limit(tmp_path):
    content = b'id,text\n1,"a\n' + b"2,b\n" * 1_000
    with pytest.raises(CorpusError, match=r"a\.csv: row 0, byte 8 of the uncompressed"):
        rows_in(tmp_path, "a.csv", content, max_row_bytes=1_000)


def test_a_first_line_of_data_is_no_header(tmp_path):
    content = b'"What is the name of the largest lake in the land?",blue,A\n"And why?",red,B\n'
    rows = rows_in(tmp_path, "a.csv", content, text="column0", id=None)
    assert [row.text for row in rows][1] == "And why?"
    assert rows[0].text.startswith("What is the name")
    (row,) = rows_in(tmp_path, "b.csv", f"{CHINESE},x\n".encode(), text=None)
    assert row.text.startswith(CHINESE)


def test_bytes_that_are_not_utf8_are_replaced_and_noted(tmp_path):
    shard, source = shard_of(tmp_path, "a.csv", b"id,text\n1,caf\xe9\n2,b\n")
    row, _ = read_shard(shard, source)
    assert (row.text, row.invalid.offset) == ("caf\ufffd", 13)
    replaced = Changes(frozenset(), {}, frozenset([0]))
    rewrite_shard(shard, source, tmp_path / "out/a.csv", lambda _: replaced)
    assert (tmp_path / "out/a.csv").read_bytes() == "id,text\n1,caf\ufffd\n2,b\n".encode()


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl", "a.json"])
@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_utf16_is_refused(tmp_path, name, encoding):
    name_of_encoding = encoding.upper().replace("-LE", "LE").replace("-BE", "BE")
    with pytest.raises(CorpusError, match=rf"UTF-16.*iconv -f {name_of_encoding} -t UTF-8"):
        rows_in(tmp_path, name, '{"text": "a"}\n{"text": "b"}\n'.encode(encoding))


def test_cells_with_zeros_are_no_text(tmp_path):
    row, other = rows_in(tmp_path, "a.csv", b"text\na\0b\nc\n")
    assert (row.reason, other.text) == ("not text", "c")


def tar_of(**members):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return out.getvalue()


def test_media_are_passed_over_and_other_bytes_are_named(tmp_path):
    content = tar_of(**{
        "1.txt": b"a", "1.png": b"\x89PNG", "2.txt": b"b", "2.bin": b"\xff\xfe", "3.json": b"{x"
    })  # fmt: skip
    shard, source = shard_of(tmp_path, "a.tar", content, text="txt")
    first, second, third = read_shard(shard, source)
    assert first.text == "a"
    assert second.reason == "member bin cannot be read"
    assert third.reason == "member json cannot be read"
    ((_, value),) = values_of(shard, source, [0])
    assert value == {"__key__": "1", "txt": "a", "png": {"n_bytes": 4}}


@pytest.mark.parametrize("kind", [tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE])
@pytest.mark.parametrize("name", ["last", "last" * 40])
@pytest.mark.parametrize("size", [0, 9_000])  # of a link: that of the file, which is not here
def test_an_archive_may_end_in_a_folder_or_a_link(tmp_path, kind, name, size):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for at in range(3):
            member = tarfile.TarInfo(f"{at}.txt")
            member.size = 1
            archive.addfile(member, io.BytesIO(b"x"))
        last = tarfile.TarInfo(name)
        last.type, last.linkname, last.size = kind, "0.txt", 0 if kind == tarfile.DIRTYPE else size
        archive.addfile(last)
    content = out.getvalue()
    assert [row.text for row in rows_in(tmp_path, "a.tar", content, text="txt")] == ["x"] * 3
    shard, source = shard_of(tmp_path, "a.tar", content, text="txt")
    target = tmp_path / "out" / "a.tar"
    target.parent.mkdir()
    rewrite_shard(shard, source, target, lambda _: Changes(frozenset([1]), {}))
    with tarfile.open(target) as archive:
        assert archive.getnames() == ["0.txt", "2.txt", name]
    with pytest.raises(CorpusError, match="neither a header nor the end of the archive"):
        stop = -(-len(content.rstrip(b"\0")) // 512) * 512
        rows_in(tmp_path, "b.tar", content[:stop] + b"x" * 512, text="txt")


@pytest.mark.parametrize("stop", [-10_240, 700, 1_800, 2_000])
def test_a_cut_archive_is_refused(tmp_path, stop):
    content = tar_of(**{f"{n}.txt": b"some text" for n in range(3)})
    with pytest.raises(CorpusError, match=r"a\.tar: after \d rows?, byte"):
        rows_in(tmp_path, "a.tar", content[:stop], text="txt")


# Mixtures, tables, and datasets of the library datasets ------------------------------------------


@pytest.mark.parametrize("name", WRITERS)
def test_mixtures_drop_and_cut_rows_of_every_format(bench, make_words, name):
    question, answer = make_words(0, 30), make_words("!", 8)
    rows = [{"id": f"r{n}", "text": make_words(n + 1, 50)} for n in range(4)]
    plain = rows[2]["text"]
    rows[2] = {**rows[2], "text": f"{plain} {question} {answer}"}
    other = make_words(9, 30), make_words("?", 8), None
    place = Place(bench, bench.prepare({"a": [(question, answer, None), other]}))
    place.unread = UnreadRule(is_blocking=False)  # a tar has the text in a member of its own, too
    shard, source = shard_of(bench.folder, name, WRITERS[name](rows))
    place.packs.append(Pack(name="web-0000", source=source, shards=(shard,)))
    place.scan()

    def left_by(mixture):
        folder = place.build(mixture).folder
        (out,) = find_shards(source, folder=folder, known={})
        return texts(out, source)

    kept = [row["text"] for row in rows if row["id"] != "r2"]
    assert left_by(CLEAN) == kept
    cut = left_by(Mixture(name="cut", cut="spans"))
    assert [cut[0], cut[1], cut[3]] == kept
    assert cut[2].startswith(plain)
    assert question not in cut[2]


def test_a_folder_of_save_to_disk_is_read_and_its_caches_are_not(tmp_path):
    datasets = pytest.importorskip("datasets")
    data = datasets.DatasetDict({"train": datasets.Dataset.from_list(ROWS)})
    data.save_to_disk(tmp_path / "saved", num_shards={"train": 2})
    (tmp_path / "saved" / "train" / "cache-1f2e.arrow").write_bytes(b"")
    source = source_of("x", path="saved/**/*")
    shards = find_shards(source, folder=tmp_path, known={})
    assert [shard.name for shard in shards] == [
        f"train/data-0000{n}-of-00002.arrow" for n in range(2)
    ]
    assert [text for shard in shards for text in texts(shard, source)] == [
        row["text"] for row in ROWS
    ]
    state = tmp_path / "saved" / "train" / "state.json"
    selected = {**json.loads(state.read_text()), "_indices_files": [{"filename": "i.arrow"}]}
    state.write_text(json.dumps(selected))
    with pytest.raises(CorpusError, match=r"data-00000.*_indices_files.*flatten_indices"):
        texts(shards[0], source)


@pytest.mark.parametrize("name", ["a.parquet", "a.arrow"])
def test_columns_of_json_are_strings_and_are_written_back(tmp_path, name):
    texts_of_json = pa.array(['{"a": 1}', None, '{"b": "x y"}'], pa.string())
    column = pa.ExtensionArray.from_storage(pa.json_(), texts_of_json)
    lists = pa.ListArray.from_arrays(pa.array([0, 1, 2, 3], pa.int32()), column)
    table = pa.table({"id": ["0", "1", "2"], "text": ["a", "b", "c"], "j": column, "l": lists})
    if name.endswith(".parquet"):
        parquet.write_table(table, tmp_path / name)
        table = parquet.read_table(tmp_path / name)
    else:
        with pa.ipc.new_stream(tmp_path / name, table.schema) as writer:
            writer.write_table(table)
    source = source_of(name, text=("j", "text"))
    (shard,) = find_shards(source, folder=tmp_path, known={})
    first, *_ = read_shard(shard, source)
    assert first.text == '{"a": 1}\n\na'
    new = {"j": '{"a": 2}', "l": ["{}"]}
    changes = Changes(frozenset([1]), {0: new})
    rewrite_shard(shard, source, tmp_path / "out" / name, lambda _: changes)
    path = tmp_path / "out" / name
    left = parquet.read_table(path) if name.endswith("t") else pa.ipc.open_stream(path).read_all()
    assert left.schema.equals(table.schema)
    assert left.to_pylist() == [{**table.to_pylist()[0], **new}, table.to_pylist()[2]]


@pytest.mark.parametrize("group", [{}, {"use_compliant_nested_type": False}])
@pytest.mark.parametrize(
    "codecs",
    ["snappy", "gzip", "none", "lz4", ("snappy", "none", "zstd"), ("none", "gzip", "none")],
)
def test_parquet_keeps_the_codec_of_each_column(tmp_path, group, codecs):
    nested = [[{"content": text}] for text in "abc"]
    table = pa.table({"id": ["0", "1", "2"], "text": ["a", "b", "c"], "turns": nested})
    if isinstance(codecs, tuple):
        parquet.write_table(table, tmp_path / "a.parquet", **group)
        schema = parquet.ParquetFile(tmp_path / "a.parquet").schema
        codecs = {schema.column(at).path: codec for at, codec in enumerate(codecs)}
    parquet.write_table(
        table, tmp_path / "a.parquet", compression=codecs, row_group_size=2, **group
    )
    source = source_of("a.parquet")
    (shard,) = find_shards(source, folder=tmp_path, known={})
    target = tmp_path / "out" / "a.parquet"
    rewrite_shard(shard, source, target, lambda _: Changes(frozenset([0]), {1: {"text": "z"}}))
    assert codecs_of(target) == codecs_of(tmp_path / "a.parquet")
    assert parquet.read_table(target)["text"].to_pylist() == ["z", "c"]


def codecs_of(path):
    metadata = parquet.ParquetFile(path).metadata
    groups = [metadata.row_group(at) for at in range(metadata.num_row_groups)]
    return [[group.column(at).compression for at in range(3)] for group in groups]


def test_parquet_shards_of_a_source_may_differ_in_their_columns(tmp_path):
    parquet.write_table(pa.table({"text": ["a"], "id": ["1"]}), tmp_path / "a.parquet")
    parquet.write_table(
        pa.table({"text": pa.array(["b"], pa.large_string()), "more": [1]}), tmp_path / "b.parquet"
    )
    source = source_of("x", path="*.parquet")
    shards = find_shards(source, folder=tmp_path, known={})
    rows = [row for shard in shards for row in read_shard(shard, source)]
    assert [(row.id, row.text) for row in rows] == [("1", "a"), (None, "b")]
    for shard in shards:
        target = tmp_path / "out" / shard.name
        rewrite_shard(shard, source, target, lambda _: Changes(frozenset(), {0: {"text": "z"}}))
        left = parquet.read_table(target)
        assert left.schema == parquet.read_schema(shard.path)
        assert left["text"].to_pylist() == ["z"]
