"""Blocks of a shard: the same rows, texts and errors as from `read_shard`, whatever the format."""

import codecs
import json
import threading

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from decon_core.config.sources import Source
from decon_core.corpus.documents import Unreadable
from decon_core.corpus.packs import find_shards
from decon_core.corpus.shards import read_blocks, read_shard
from decon_core.errors import CorpusError
from decon_core.storage.compression import COMPRESSIONS, create
from tests.uncompiled import IS_COMPILED

TEXT = Source(name="web", path="*", text="text", id="id")


def shard_at(path, source=TEXT):
    source = Source(**{**source.__dict__, "path": path.name})
    (shard,) = find_shards(source, folder=path.parent, known={})
    return shard


def rows_of(batch):
    """The rows of a batch; each text stands in it as the bytes that the document says."""
    documents = [batch.document(at) for at in range(len(batch.rows))]
    texts = [
        batch.text[start:stop].tobytes().decode()
        for start, stop in zip(batch.starts, batch.stops, strict=True)
    ]
    assert texts == [document.text for document in documents]
    assert batch.rows.tolist() == [document.row for document in documents]
    assert batch.n_characters == sum(map(len, texts))
    assert batch.invalid == [document.invalid for document in documents if document.invalid]
    return sorted([*documents, *batch.unreadable], key=lambda row: row.row)


def outcome(read, *arguments, **options):
    """All rows, and what was said at the end."""
    rows = []
    try:
        for row in read(*arguments, **options):
            rows += [row]
    except CorpusError as error:
        return rows, error.problems
    return rows, None


def in_blocks(shard, source, **options):
    for block in read_blocks(shard, source, **options):
        yield from rows_of(block.read())


def require_same(path, source=TEXT, *, block_bytes=1000):
    shard = shard_at(path, source)
    rows, problems = outcome(read_shard, shard, source)
    assert outcome(in_blocks, shard, source, block_bytes=block_bytes) == (rows, problems)
    return rows, problems


def lines_of(n):
    for number in range(n):
        match number % 10:
            case 3:
                yield b"\n"
            case 5:
                yield b'{"text": %d}\n' % number
            case 7:
                yield b'{"text": "half a \\ud800 pair", "id": %d}\n' % number
            case _:
                text = f"Document {number}, \u00e9 and \u65e5\u672c. " * (number % 30)
                yield json.dumps({"id": number, "text": text}).encode() + b"\n"


N_LINES = 200 if IS_COMPILED else 60
BODY = b"".join(lines_of(N_LINES))


@pytest.mark.parametrize("compression", ["", *COMPRESSIONS])
def test_every_compression_gives_the_same_rows(tmp_path, compression):
    path = tmp_path / f"a.jsonl{compression}"
    with create(path, compression) as file:
        file.write(BODY)
    rows, problems = require_same(path)
    assert problems is None
    assert len(rows) == 0.9 * N_LINES  # a tenth of the lines is blank


@pytest.mark.parametrize("compression", COMPRESSIONS)
@pytest.mark.parametrize("block_bytes", [64, 5000, 4 << 20])
def test_a_shard_that_breaks_off_gives_the_same_rows_and_the_same_error(
    tmp_path, compression, block_bytes
):
    path = tmp_path / f"a.jsonl{compression}"
    with create(path, compression) as file:
        for number in range(4 if IS_COMPILED else 1):
            file.write(BODY + b"%d" % number)
    path.write_bytes(path.read_bytes()[:-25])
    _, problems = require_same(path, block_bytes=block_bytes)
    assert "the data is damaged or truncated" in problems[0].found


def test_a_line_longer_than_a_block_makes_a_longer_block(tmp_path):
    path = tmp_path / "a.jsonl"
    long_text = "words " * 20_000
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in ("a", long_text, "b")))
    shard = shard_at(path)
    batches = [block.read() for block in read_blocks(shard, TEXT, block_bytes=1000)]
    assert [batch.rows.tolist() for batch in batches] == [[0], [1, 2]]
    assert batches[1].n_characters == len(long_text) + 1
    require_same(path)


def test_blocks_are_read_in_other_threads_in_any_order(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_bytes(BODY * (4 if IS_COMPILED else 1))
    shard = shard_at(path)
    blocks = list(read_blocks(shard, TEXT, block_bytes=5_000))
    found = {}

    def read(numbers):
        for number in numbers:
            found[number] = rows_of(blocks[number].read())

    halves = [range(len(blocks))[::-2], range(len(blocks))[-2::-2]]
    threads = [threading.Thread(target=read, args=(numbers,)) for numbers in halves]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    rows = [row for number in range(len(blocks)) for row in found[number]]
    assert rows == list(read_shard(shard, TEXT))


@pytest.mark.parametrize(
    "source",
    [
        Source(name="chat", path="*", messages="messages", id="id"),
        Source(name="chat", path="*", messages="messages", roles=("user",)),
        Source(name="pairs", path="*", text=("prompt", "chosen", "rejected")),
    ],
    ids=["turns", "roles", "pairs"],
)
@pytest.mark.parametrize("suffix", [".jsonl", ".parquet", ".arrow"])
def test_conversations_and_pairs_come_in_batches_too(tmp_path, source, suffix):
    rows = [
        {
            "id": number,
            "messages": [
                {"role": "user", "content": "Q\u00e9"},
                {"role": "assistant", "content": "A"},
            ],
            "prompt": None if number % 4 == 1 else "P",
            "chosen": [{"role": "assistant", "content": f"good {number}"}],
            "rejected": [{"role": "assistant", "content": "bad"}],
        }
        for number in range(50)
    ]
    path = tmp_path / f"a{suffix}"
    write(path, rows)
    found, _ = require_same(path, source)
    texts = [row.text for row in found]
    if source.text:
        assert texts[1:3] == ["good 1\n\nbad", "P\n\ngood 2\n\nbad"]
    else:
        assert {*texts} == {"Q\u00e9" if source.roles else "Q\u00e9\n\nA"}


@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
def test_rows_may_have_hidden_text_alone_or_beside_what_a_model_sees(tmp_path, suffix):
    sizes = range(0, 300, 3)
    keys = ("ground_truth", "data_source", "prompt")
    rows = [dict(zip(keys, ("g " * row, None, None), strict=True)) for row in sizes]
    rows += [dict(zip(keys, ("A", "x", f"Q{row}"), strict=True)) for row in sizes]
    path = tmp_path / f"a{suffix}"
    write(path, rows)
    everything = Source(name="web", path="*")
    shard = shard_at(path, everything)
    documents = [*read_shard(shard, everything)]
    batches = [block.read() for block in read_blocks(shard, everything)]
    texts = [
        (row, batch.text[start:stop].tobytes().decode())
        for batch in batches
        for row, start, stop in zip(batch.rows, batch.starts, batch.stops, strict=True)
    ]
    assert texts == [(one.row, text) for one in documents for text, _ in one.stretches]
    assert texts[1:3] == [(1, ""), (1, "g g g ")]
    assert texts[-2:] == [(199, "Q297"), (199, "A")]


def write(path, rows):
    match path.suffix:
        case ".jsonl":
            path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        case ".parquet":
            pq.write_table(pa.Table.from_pylist(rows), path, row_group_size=7)
        case _:
            write_arrow(path, pa.Table.from_pylist(rows))


def write_arrow(path, table, *, is_file=True):
    with (pa.ipc.new_file if is_file else pa.ipc.new_stream)(str(path), table.schema) as writer:
        writer.write_table(table, max_chunksize=40)


KINDS = [
    pa.string(),
    pa.large_string(),
    pa.string_view(),
    pa.dictionary(pa.int32(), pa.string()),
    pa.dictionary(pa.int8(), pa.large_string()),
]


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("name", ["a.parquet", "a.arrow", "a.feather"])
def test_text_columns_of_every_kind_are_read(tmp_path, kind, name):
    texts = [None if n % 7 == 3 else f"row {n % 40} \u00e9\u65e5 " * (n % 5) for n in range(100)]
    table = pa.table({"id": list(range(100)), "text": pa.array(texts).cast(kind), "x": [1] * 100})
    path = tmp_path / name
    if path.suffix == ".parquet":
        pq.write_table(table, path, row_group_size=33)
    else:
        write_arrow(path, table, is_file=path.suffix == ".feather")
    rows, _ = require_same(path, block_bytes=500)
    assert [getattr(row, "text", None) for row in rows] == texts
    assert all(row.reason == "field is null" for row in rows if isinstance(row, Unreadable))


@pytest.mark.parametrize(
    "column",
    [
        pa.array([1, 2, 3]),
        pa.array([b"\0a", b"\xff", b"\0c\0"]),
        pa.nulls(3),
    ],
    ids=lambda column: str(column.type),
)
@pytest.mark.parametrize("name", ["a.parquet", "a.arrow"])
def test_columns_that_hold_no_text_are_refused_row_by_row(tmp_path, column, name):
    table = pa.table({"text": column})
    path = tmp_path / name
    (pq.write_table if path.suffix == ".parquet" else lambda t, p: write_arrow(p, t))(table, path)
    rows, _ = require_same(path)
    assert all(isinstance(row, Unreadable) for row in rows)
    rows, _ = require_same(path, Source(name="web", path="*", text="elsewhere"))
    assert [row.reason for row in rows] == ["field missing"] * 3


@pytest.mark.parametrize(
    ("column", "texts"),
    [
        (pa.array([["a", None, "b"], [], None]), ["a\n\nb", "", None]),
        (pa.array([{"text": "x"}, None, {"text": None}]), ["x", None, ""]),
        (pa.array([["a"], [], None], pa.list_(pa.string(), -1)), ["a", "", None]),
        (
            pa.array([[("k", "x")], [], None], pa.map_(pa.string(), pa.string())),
            ["k\n\nx", "", None],
        ),
        (pa.array([[{"a": ["x"]}, {"a": ["y", "z"]}], [], None]), ["x\n\ny\n\nz", "", None]),
    ],
    ids=lambda value: str(getattr(value, "type", "")),
)
@pytest.mark.parametrize("name", ["a.parquet", "a.arrow"])
def test_columns_that_hold_text_in_lists_and_structs_are_read(tmp_path, column, texts, name):
    path = tmp_path / name
    table = pa.table({"text": column})
    (pq.write_table if path.suffix == ".parquet" else lambda t, p: write_arrow(p, t))(table, path)
    rows, _ = require_same(path)
    assert [getattr(row, "text", None) for row in rows] == texts


@pytest.mark.parametrize("name", ["a.parquet", "a.arrow"])
def test_one_text_that_is_not_utf8_does_not_cost_its_neighbours(tmp_path, name):
    raw = [
        b"good",
        b"caf\xe9",
        None,
        b"",
        b"\xed\xa0\x80 half",
        "\u65e5\u672c".encode(),
        b"cut \xe6\x97",
    ]
    column = pa.Array.from_buffers(pa.string(), len(raw), pa.array(raw, pa.binary()).buffers())
    path = tmp_path / name
    table = pa.table({"text": column})
    (pq.write_table if path.suffix == ".parquet" else lambda t, p: write_arrow(p, t))(table, path)
    rows, _ = require_same(path)
    texts = [getattr(row, "text", None) for row in rows]
    assert texts == [None if text is None else text.decode(errors="replace") for text in raw]


@pytest.mark.parametrize("name", ["a.parquet", "a.arrow"])
def test_a_table_of_no_rows_is_a_shard_of_no_rows(tmp_path, name):
    table = pa.table({"text": pa.array([], pa.string())})
    path = tmp_path / name
    (pq.write_table if path.suffix == ".parquet" else lambda t, p: write_arrow(p, t))(table, path)
    assert require_same(path) == ([], None)


@pytest.mark.parametrize("name", ["a.jsonl", "a.json", "a.csv", "a.tsv"])
@pytest.mark.parametrize("end", ["", "\n", "\r\n\n"])
def test_a_file_with_only_a_byte_order_mark_is_empty(tmp_path, name, end):
    path = tmp_path / name
    path.write_bytes(codecs.BOM_UTF8 + end.encode())
    assert require_same(path) == ([], None)


@pytest.mark.parametrize("n", [3, 30_000])
def test_a_line_with_only_a_byte_order_mark_is_blank(tmp_path, n):
    path = tmp_path / "a.jsonl"
    path.write_bytes(codecs.BOM_UTF8 + b"\n" + b'{"text": "a"}\n' * n)
    rows, problems = require_same(path, block_bytes=1 << 20)
    assert (len(rows), rows[0].row, problems) == (n, 1, None)


@pytest.mark.parametrize("is_file", [True, False])
@pytest.mark.parametrize("kind", [pa.string(), pa.dictionary(pa.int8(), pa.string())])
def test_two_arrow_tables_in_a_file_are_refused_and_not_halved(tmp_path, is_file, kind):
    path = tmp_path / "a.arrow"
    write_arrow(path, pa.table({"text": pa.array(["x", "y"] * 30).cast(kind)}), is_file=is_file)
    assert len(require_same(path, block_bytes=500)[0]) == 60
    path.write_bytes(path.read_bytes() * 2)
    (problem,) = require_same(path, block_bytes=500)[1]
    assert "where other data follows: write each table to a file of its own" in problem.found


@pytest.mark.parametrize("options", [{}, {"compression": "zstd"}, {"metadata_version": 3}])
def test_arrow_files_without_rows_or_with_other_options_are_read(tmp_path, options):
    if "metadata_version" in options:
        options = {"metadata_version": pa.ipc.MetadataVersion.V4}
    options = pa.ipc.IpcWriteOptions(**options)
    for name, texts in (("a", ["x"] * 3), ("b", [])):
        table = pa.table({"text": pa.array(texts, pa.string())})
        with pa.ipc.new_file(str(tmp_path / f"{name}.arrow"), table.schema, options=options) as to:
            to.write_table(table)
        assert len(require_same(tmp_path / f"{name}.arrow", block_bytes=500)[0]) == len(texts)


def test_offsets_that_point_outside_an_arrow_file_are_damage(tmp_path):
    path = tmp_path / "a.arrow"
    write_arrow(path, pa.table({"text": ["x" * 11, "y" * 12, "z" * 13]}))
    offsets = np.cumsum([0, 11, 12, 13]).astype(np.int32).tobytes()
    content = path.read_bytes()
    assert offsets in content
    for wrong in ([0, 11, 23, 1 << 30], [0, 30, 23, 36], [-5, 11, 23, 36]):
        path.write_bytes(content.replace(offsets, np.array(wrong, np.int32).tobytes()))
        rows, problems = require_same(path)
        assert not rows
        assert "an unreadable arrow file" in problems[0].found


def test_the_arrays_of_a_batch_can_be_written_to(tmp_path):
    """Kernels are compiled for such arrays; others would make them be compiled once more."""
    path = tmp_path / "a.jsonl"
    path.write_bytes(BODY)
    pq.write_table(pa.table({"text": ["a", "b"]}), tmp_path / "b.parquet")
    for name in ("a.jsonl", "b.parquet"):
        for block in read_blocks(shard_at(tmp_path / name), TEXT):
            batch = block.read()
            for array in (batch.text, batch.starts, batch.stops, batch.rows):
                assert array.flags.writeable
                assert array.flags.c_contiguous


@pytest.mark.parametrize("read", [read_shard, in_blocks])
@pytest.mark.parametrize("name", ["a.parquet", "a.arrow"])
@pytest.mark.parametrize("is_replaced", [True, False])
def test_a_table_that_is_written_anew_while_it_is_read_raises(tmp_path, read, name, is_replaced):
    path = tmp_path / name
    write(path, [{"text": "before"}] * 20)
    shard = shard_at(path)
    rows = read(shard, TEXT)
    next(rows)
    new = path.with_name("new") if is_replaced else path
    write(new.with_suffix(path.suffix), [{"text": "behind"}] * 20)
    if is_replaced:
        new.with_suffix(path.suffix).replace(path)
    with pytest.raises(CorpusError, match="modified while it was read"):
        list(rows)


def test_characters_of_a_table_are_counted_as_a_plain_number_that_json_can_hold(tmp_path):
    """The kernels of few rows run as plain Python, on NumPy's numbers."""
    pq.write_table(pa.table({"a": ["some words"], "b": ["and others"]}), tmp_path / "a.parquet")
    shard = shard_at(tmp_path / "a.parquet", Source(name="web", path="*"))
    (batch,) = [block.read() for block in read_blocks(shard, Source(name="web", path="*"))]
    assert type(batch.n_characters) is int
    assert batch.n_characters == len("some words\n\nand others")


@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
def test_the_path_of_the_only_string_of_a_row_is_known_unless_its_id_is_wanted(tmp_path, suffix):
    path = tmp_path / f"a{suffix}"
    rows = [{"a": "some words", "b": None, "n": 1}, {"a": "more words", "b": "and others", "n": 2}]
    write(path, rows)
    for identity, known in ((None, ["a", None]), ("n", [None, None])):
        source = Source(name="web", path="*", text=("a", "b"), id=identity)
        (batch,) = [block.read() for block in read_blocks(shard_at(path, source), source)]
        assert [batch.only_path(row) for row in (0, 1)] == known
