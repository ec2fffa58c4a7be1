"""The compiled readers find in rows of any shape what the plain reader finds, and nothing else."""

import io
import json
import tempfile
from base64 import b64encode
from decimal import Decimal
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from decon_core.config.sources import Source
from decon_core.corpus import fields, string_kinds
from decon_core.corpus.documents import Document
from decon_core.corpus.formats import format_of
from decon_core.corpus.formats.shard_format import Part
from decon_core.corpus.packs import find_shards
from decon_core.corpus.shards import open_shard
from decon_core.corpus.string_kinds import StringKind
from decon_core.kernels import base64_lines
from decon_core.kernels import string_kinds as screen
from decon_core.kernels.json_lines import MOST_MEMBERS, MOST_STRINGS
from decon_core.kernels.json_tokens import PADDING
from decon_core.mixtures.layouts import rows_of
from tests.core.corpus.random_rows import ENCODED, SENTENCES, SHORT, SOURCES, rows_for
from tests.uncompiled import fewer


@st.composite
def lines(draw, source):
    """Lines of JSON, some of which say a key twice."""
    made = []
    for row in draw(st.lists(rows_for(source), min_size=1, max_size=6)):
        line = json.dumps(row, ensure_ascii=draw(st.integers(0, 3)) == 0)
        if row and draw(st.integers(0, 7)) == 0:
            line = f"{line[:-1]}, {json.dumps(dict([draw(st.sampled_from([*row.items()]))]))[1:]}"
        made.append(line.encode("utf-8", "surrogatepass") + b"\n")
    return made * draw(st.sampled_from([1, 1, 3, 12]))


@settings(max_examples=fewer(60))
@given(data=st.data(), source=SOURCES, block_bytes=st.sampled_from([64, 2000, 1 << 20]))
def test_lines_are_read_as_by_the_plain_reader(data, source, block_bytes):
    content = data.draw(lines(source))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.jsonl"
        path.write_bytes(b"".join(content))
        require_same(path, source, block_bytes)


@settings(max_examples=fewer(40))
@given(data=st.data(), source=SOURCES, suffix=st.sampled_from([".parquet", ".arrow"]))
def test_tables_are_read_as_by_the_plain_reader(data, source, suffix):
    """Columns whose values Arrow cannot hold together are JSON in strings.

    Some columns are of bytes, which may be no text.
    """
    rows = [*map(_utf8, data.draw(st.lists(rows_for(source), min_size=1, max_size=6)))]
    names = dict.fromkeys(name for row in rows for name in row)
    columns = {name: _column([row.get(name) for row in rows]) for name in names}
    for name in data.draw(st.sets(st.sampled_from([*names]))) if names else ():
        columns[name] = _as_bytes(columns[name], data.draw(BYTES))
    for number, (kind, nest) in enumerate(data.draw(TYPED)):
        if suffix == ".arrow" or _fits_parquet(kind):
            columns[f"typed{number}"] = nest(_typed(kind, len(rows)))
    table = pa.table(dict(data.draw(st.permutations([*columns.items()]))))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"a{suffix}"
        if suffix == ".parquet":
            pq.write_table(table, path, row_group_size=4)
        else:
            with pa.ipc.new_file(str(path), table.schema) as writer:
                writer.write_table(table, max_chunksize=4)
        require_same(path, source, 1 << 20)
        require_same_as_json(path, source)


# Values of each type that a column may have: the second is one that Python has no type for.
CELLS = {
    pa.null(): [None],
    pa.bool_(): [True],
    **dict.fromkeys((pa.int8(), pa.uint64(), pa.float16(), pa.float32()), (1,)),
    **dict.fromkeys((pa.decimal128(12, 4), pa.decimal256(60, 4)), (Decimal("0.8731"),)),
    **dict.fromkeys((pa.date32(), pa.time32("s"), pa.time32("ms")), (86_000,)),
    **dict.fromkeys((pa.time64("us"), pa.time64("ns")), (86_000_000_001,)),
    **{pa.timestamp(unit): [1, 2**62] for unit in ("s", "ms", "us", "ns")},
    **{pa.timestamp(unit, "Europe/Berlin"): [1, 2**62] for unit in ("s", "ms", "us", "ns")},
    **{pa.duration(unit): [-1, 2**62] for unit in ("s", "ms", "us", "ns")},
    pa.date64(): [86_400_000],
    pa.month_day_nano_interval(): [(1, 2, 3)],
    pa.binary(len(SENTENCES[0])): [SENTENCES[0].encode(), bytes(len(SENTENCES[0]))],
    **dict.fromkeys(
        (pa.binary(), pa.large_binary(), pa.binary_view()), (SENTENCES[2].encode(), b"\xff\0")
    ),
    **dict.fromkeys((pa.string(), pa.large_string(), pa.string_view()), SENTENCES[:2]),
}


def _struct_of(array, name):
    return pa.StructArray.from_arrays([array], [name])


NESTS = (
    lambda array: array,
    lambda array: pa.ListArray.from_arrays([*range(len(array) + 1)], array),
    lambda array: pa.LargeListArray.from_arrays([*range(len(array) + 1)], array),
    lambda array: pa.FixedSizeListArray.from_arrays(array, 1),
    *(partial(_struct_of, name=name) for name in ("text", "answer")),
    lambda array: pa.ListArray.from_arrays(
        [*range(len(array) + 1)], pa.StructArray.from_arrays([array], ["content"])
    ),
    lambda array: pa.DictionaryArray.from_arrays([*range(len(array))], array),
)
TYPED = st.lists(
    st.tuples(st.sampled_from([*CELLS]), st.sampled_from(NESTS)), min_size=1, max_size=4
)


def _typed(kind, n):
    return pa.array([[*CELLS[kind], None][at % (1 + len(CELLS[kind]))] for at in range(n)], kind)


def _fits_parquet(kind):
    try:
        pq.write_table(pa.table({"a": NESTS[-1](_typed(kind, 3))}), io.BytesIO())
    except (pa.ArrowException, OverflowError):
        return False
    return True


def require_same_as_json(path, source):
    """The text of a row in a layout for trainers is the text that was scanned."""
    (shard,) = find_shards(Source(name="rows", path=path.name), folder=path.parent, known={})
    with open_shard(shard, source) as file:
        documents = [
            one for part in format_of(path).parts(file, None) for one in part.documents(source)
        ]
    written = [row.document for row in rows_of(shard, source)]
    read = [one for one in documents if isinstance(one, Document)]
    assert [(one.row, one.id, one.text, one.parts) for one in written] == [
        (one.row, one.id, one.text, one.parts) for one in read
    ]
    for row in rows_of(shard, source):
        json.dumps(row.value)


def _utf8(value):
    """Return a value without lone surrogates and very large numbers, which tables cannot hold."""
    match value:
        case dict():
            return {_utf8(key): _utf8(inner) for key, inner in value.items()}
        case list():
            return [*map(_utf8, value)]
        case str():
            return value.encode("utf-8", "replace").decode()
        case int():
            return value % 2**60
    return value


BYTES = st.sampled_from(
    [None, b"", b"\0", b"\xff\xfe is no text", "ü".encode(), b"a text and \xff", b"padded\0\0"]
)


def _as_bytes(column, last):
    """Return a column of strings, or of lists of them, as bytes, the last value replaced."""
    if column.type == pa.string():
        values = [*column.cast(pa.binary()).to_pylist()[:-1], last]
        return pa.StructArray.from_arrays([pa.array(values, pa.large_binary())], ["text"])
    if column.type == pa.list_(pa.string()):
        return column.cast(pa.list_(pa.binary()))
    return column


def _column(values):
    try:
        column = pa.array(values)
    except (pa.ArrowException, OverflowError):
        column = None
    if column is None or not _can_be_written(column.type):
        return pa.array(
            [json.dumps(one) if isinstance(one, dict | list) else str(one) for one in values]
        )
    return column


def _can_be_written(kind):
    if pa.types.is_struct(kind):
        return kind.num_fields > 0 and all(_can_be_written(field.type) for field in kind)
    return _can_be_written(kind.value_type) if pa.types.is_list(kind) else True


def require_same(path, source, block_bytes):
    fields.field_tree.cache_clear()  # the fields of other examples are not known
    (shard,) = find_shards(Source(name="rows", path=path.name), folder=path.parent, known={})
    with open_shard(shard, source) as file:
        for part in format_of(path).parts(file, source, part_bytes=block_bytes):
            plain = content_of(Part.batch(part, source))  # first: its fields are known then
            batch = part.batch(source)
            assert content_of(batch) == plain
            require_known_paths(batch)


def require_known_paths(batch):
    """A path that is known without reading the row is that of its only string."""
    for at, row in enumerate(batch.rows.tolist()):
        path, document = batch.only_path(row), batch.document(at)
        if path is not None:
            assert ([part.path for part in document.parts], document.id) == ([path], None)
            assert batch.text_at(at) in ("", document.text)  # before hidden text there may be none


def content_of(batch):
    slices = zip(batch.rows.tolist(), batch.starts.tolist(), batch.stops.tolist(), strict=True)
    texts = [(row, batch.text[start:stop].tobytes().decode()) for row, start, stop in slices]
    unread = {path: [*counts] for path, counts in batch.unread.items()}
    assert batch.n_characters == sum(len(text) for _, text in texts)
    return texts, unread, dict(batch.origins), batch.unreadable, batch.invalid


def _nested(value, n):
    for _ in range(n):
        value = json.dumps([value])
    return value


LONG = "A text of more than thirty-two bytes, "
LIMITS = {
    "strings": {"a": [LONG] + [f"{LONG}{at % 900}" for at in range(MOST_STRINGS - 1)]},
    "more strings": {"a": [f"{LONG}{at % 900}" for at in range(MOST_STRINGS + 1)]},
    "short strings": {"a": ["x"] * (MOST_STRINGS + 1)},
    "members": {"a": [{str(at): "x" for at in range(40)}] * 50},
    "more members": {"a": {str(at): {} for at in range(MOST_MEMBERS + 1)}, "text": "x"},
    "JSON in JSON": {"a": _nested(LONG, 8)},
    "more JSON in JSON": {"a": _nested(LONG, 11)},
    "repeated": {"a": [LONG, LONG[:-1], LONG], "b": json.dumps([LONG, f"{LONG}!"]), "c": LONG},
    "repeated in visible and in hidden text": {
        "prompt": LONG,
        "data_source": "x",
        "extra_info": {"question": [LONG, LONG], "again": json.dumps({"text": LONG})},
    },
    "dots": {"a.b": f"{LONG}words of it", "a": {"b": f"{LONG}other words of it", "c": LONG}},
}


@pytest.mark.parametrize("name", LIMITS)
@pytest.mark.parametrize("text", [None, "a", ("c", "a[]"), "elsewhere"][: fewer(4)])
def test_rows_at_the_limits_are_read_as_by_the_plain_reader(tmp_path, name, text):
    path = tmp_path / "a.jsonl"
    row = json.dumps(LIMITS[name])
    deep = f'{{"a": {"[" * 62}"{LONG}"{"]" * 62}}}'
    path.write_text("".join(f"{line}\n" for line in (row, deep, row, f"[{row}]", row)))
    require_same(path, Source(name="rows", path="", text=text), 1 << 20)


# Strings of visible and of hidden fields, some of which are repeats that are read again.
REPEATS = st.lists(st.sampled_from([LONG, f"{LONG}too", LONG * 3, "x", "y", LONG * 9]), max_size=20)


@settings(max_examples=fewer(60))
@given(rows=st.lists(st.tuples(REPEATS, REPEATS), min_size=1, max_size=5))
def test_repeats_are_read_again_as_by_the_plain_reader(rows):
    lines = (
        json.dumps({"prompt": seen, "extra_info": {"question": hidden, "b": seen[:3]}})
        for seen, hidden in rows
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.jsonl"
        path.write_text("".join(f"{line}\n" for line in lines))
        require_same(path, Source(name="rows", path=""), 1 << 20)


STRINGS = st.lists(
    st.one_of(
        st.sampled_from(
            [
                *SENTENCES,
                *SHORT,
                *ENCODED,
                "%20",
                "%E6",
                "+w",
                "-",
                "_x",
                "-%" * 8,
                " ",
                "\n",
                "\r\n",
                "a" * 60,
                "A" * 64,
                "=",
                "==",
                "-",
            ]
        ),
        st.sampled_from(
            [
                *("word ", "word\t", "word\u00a0", "word\u3000", "word\u2003", "...", "- ", "_"),
                *(
                    "木",
                    "é ",
                    "\x1c",
                    "\u2028",
                    "\u202f",
                    "\u205f",
                    "\u1680",
                    " \u00a0 ",
                    "ʘ",
                    "\u2010",
                ),
                *("བོད་ཡིག", "ﾊﾝｶｸ", "ꦗꦮ", "ᨲ᩠ᩅᩫ", "हिन्दी", "한국어", "Ａｂ", "ꀀ"),
            ]
        ),
        st.text(max_size=10),
    ),
    max_size=12,
).map("".join)


# Texts in escapes, and strings that have almost as many.
_LETTERS = [f"&#{ord(letter)};" for letter in SENTENCES[3]]
ESCAPED = ("".join(_LETTERS), "".join(_LETTERS[:23]), " ".join(_LETTERS), "\\u5f20" * 24)


@settings(max_examples=fewer(80))
@given(value=STRINGS)
def test_the_kernels_know_texts_and_base64_as_python_does(value):
    content = value.encode()
    text = np.frombuffer(content + bytes(PADDING), np.uint8)
    assert screen.is_text(text, 0, len(content)) == string_kinds.is_text(value)
    assert screen.is_joined(text, 0, len(content)) == string_kinds.is_joined(value)
    if not value.startswith("data:"):
        is_base64 = screen.is_base64(text, 0, len(content))
        assert is_base64 == string_kinds.is_encoded(value)


_KINDS = {  # what the classifier says of a string with which the screen does this
    screen.TO_READ: {StringKind.TEXT},
    screen.TO_COUNT: {StringKind.TEXT},
    screen.TO_COUNT_WORDS: {StringKind.PIECE},
    screen.TO_LOOK_AT: {kind for kind in StringKind if kind.step},
    screen.TO_SKIP: {StringKind.VALUE},
    screen.TO_NOTE: {StringKind.VALUE},
    screen.TO_REREAD: {*StringKind},
}


@settings(max_examples=fewer(80))
@given(
    value=st.one_of(STRINGS, st.sampled_from([*ENCODED, *ESCAPED, "data:;base64,aGk="])),
    use=st.integers(screen.READ, screen.IGNORE),
)
def test_the_screen_decides_as_the_classifier(value, use):
    content = value.encode()
    text = np.frombuffer(content + bytes(PADDING), np.uint8)
    size = np.uint64(len(content))
    action = screen.action_on(text, np.uint64(0), size, use, fields.Names.NOTHING)
    assert string_kinds.kind_of(value, use) in _KINDS[action]


RUNS = st.lists(
    st.one_of(
        st.sampled_from([*ENCODED, "\n", "\r\n", "\r", " ", "=", "a" * 59, "-" * 60, "é"]),
        st.binary(min_size=40, max_size=60).map(lambda value: b64encode(value).decode()),
        st.sampled_from(["H4sI", "eJ", "UEsD", "w6nDqcOpw6nDqcOp"]).map(
            lambda head: head.ljust(61, "A")
        ),
    ),
    max_size=8,
).map("".join)


@settings(max_examples=fewer(80))
@given(values=st.lists(RUNS, max_size=3))
def test_the_kernel_finds_base64_in_texts_as_python_does(values):
    contents = [value.encode() for value in values]
    text = np.frombuffer(b"".join(contents) + bytes(PADDING), np.uint8)
    stops = np.cumsum([0, *map(len, contents)])
    which, starts, ends = np.empty((3, text.size), np.int64)
    n = base64_lines.find_runs(text, stops[:-1], stops[1:], which, starts, ends)
    found = [
        (at, text[start:end].tobytes().decode())
        for at, start, end in zip(
            *(column[:n].tolist() for column in (which, starts, ends)), strict=True
        )
    ]
    assert found == [
        (at, run) for at, value in enumerate(values) for run in string_kinds.runs_in(value)
    ]


@pytest.mark.parametrize(
    "value",
    [
        "What\u00a0is\u00a0the name\u2003of the\u3000river there?",
        *(word * 24 for word in ("བོ", "ﾊ", "ꦗ", "ᨲ", "木", "ก")),
    ],
)
def test_words_between_wide_spaces_and_scripts_without_spaces_are_text(value):
    assert string_kinds.is_text(value)


def test_only_base64_is_encoded():
    assert string_kinds.is_encoded("data:;base64,aGk=")
    assert not string_kinds.is_encoded("data:image/png;base64,aGk=這是什麼問題")
    assert not string_kinds.is_encoded("data:text/plain;charset=utf-8,What%20is%20the%20question")
    words = "Which_of_the_words_that_are_joined_by_lines_is_no_word_of_the_text"
    assert not string_kinds.is_encoded(words)
    assert string_kinds.is_encoded(words.replace("_", "4"))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (b"a text in bytes\0\0\0", "a text in bytes"),
        (b"one byte of another caf\xe9 in it", "one byte of another caf\ufffd in it"),
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", ""),
        ("UTF-16".encode("utf-16-le"), ""),
        (bytes(range(1, 17)), ""),
        (b"", ""),
    ],
)
def test_bytes_are_text_if_little_of_them_is_none(value, text):
    assert string_kinds.text_of_bytes(value) == text


def test_text_behind_a_data_uri_is_read():
    assert string_kinds.is_encoded("data:image/png;base64,aGk=\n")
    assert not string_kinds.is_encoded("data:image/png;base64,aGk= and what is said of it")
    assert not string_kinds.is_encoded("data:text/plain,Who wrote the first of these books?")
