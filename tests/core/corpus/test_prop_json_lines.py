"""`read_blocks` gives what `read_shard` gives, whatever the lines hold and however they are cut."""

import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from decon_core.config.sources import Source
from decon_core.corpus.documents import Document, Unreadable
from decon_core.corpus.packs import find_shards
from decon_core.corpus.shards import read_blocks, read_shard
from decon_core.errors import CorpusError
from tests.uncompiled import fewer

_N_EXAMPLES = fewer(60)

SOURCES = (
    Source(name="web", path="*", text="text", id="id"),
    Source(name="web", path="*", text="a.b", id="a.id"),
    Source(name="web", path="*", text="a.b.text"),
    Source(name="web", path="*", text="a..text"),
    Source(name="web", path="*", text="é"),
)

BLOCKS = (1, 7, 64, 300, 1 << 20)

characters = st.one_of(
    st.sampled_from(
        '"\\/\n\r\t\x00\x0b\x0c\x1f\x7f\x80é\u07ff\u0800\ufffd\uffff\U00010000\U0010ffff'
    ),
    st.characters(codec="utf-8"),
)
texts = st.text(characters, max_size=80)
# Longer than any stride, with little in it to stop at.
long_texts = st.lists(
    st.sampled_from(["plain words in a row, ", "x" * 67, "é", '"', "\\", "\n", "日本語", "😀"]),
    max_size=12,
).map("".join)

ESCAPES = (
    *(f"\\{letter}" for letter in '"\\/bfnrt'),
    "\\u00e9",
    "\\u0000",
    "\\u0041",
    "\\uFFFD",
    "\\ud83d\\ude80",
    "\\uD83D\\uDE80",
    "\\ud83d",
    "\\ude80",
    "\\udc00",
    "\\udfff",
    "\\udc00\\udc00",
    "\\ud800\\udfff",
    "\\udbff\\udc00",
    "\\ude80\\ud83d",
    "\\ud83dx",
    "\\ud83d\\n",
    "\\ud83d\\u0041",
    "\\u12",
    "\\u12g4",
    "\\x41",
    "\\'",
    "\\",
    "\\u",
    "\\ud83d\\u",
)
ODD_BYTES = (
    b"\xe9",
    b"\xc0\x80",
    b"\xc3",
    b"\xe0\x80\x80",
    b"\xed\xa0\x80",
    b"\xf0\x80\x80\x80",
    b"\xf4\x90\x80\x80",
    b"\xf5\x80\x80\x80",
    b"\x80",
    b"\x00",
    b"\x1f",
    b"\x7f",
    b"\r",
    b"\xef\xbb\xbf",
    b"\xff\xfe",
)
content = st.one_of(
    texts.map(lambda text: json.dumps(text, ensure_ascii=False)[1:-1].encode()),
    texts.map(lambda text: json.dumps(text)[1:-1].encode()),
    long_texts.map(lambda text: json.dumps(text, ensure_ascii=False)[1:-1].encode()),
    st.sampled_from(ESCAPES).map(str.encode),
    st.sampled_from(ODD_BYTES),
)
# Mostly one valid piece: of three pieces with a mistake in each hardly a line would be read.
strings = st.one_of(
    texts.map(lambda text: json.dumps(text, ensure_ascii=False).encode()),
    long_texts.map(lambda text: json.dumps(text).encode()),
    st.lists(content, max_size=3).map(lambda parts: b'"' + b"".join(parts) + b'"'),
)
FEW_DIGITS = """
    0 -0 01 -01 00 1. .5 - + +1 -a 1-1 --1 1.-1 1.0.0 1.5e3 1E+5 1e-5 1e 1e+ 1e+-1 1e5.0 1e99 1e100
    1e999 -1e999 1e-999 18446744073709551616 0x1 1_0 NaN Infinity -Infinity nan
"""
LITERALS = "true false null tru fals nul trxe trua nulx nuxl faxse falxe falsa True nullx falsey a"
ODD_NUMBERS = (*FEW_DIGITS.split(), *("7" * n for n in (1, 39, 40, 41, 310, 5000)))
numbers = st.one_of(
    st.integers().map(str), st.floats().map(json.dumps), st.sampled_from(ODD_NUMBERS)
).map(str.encode)
literals = st.sampled_from([*LITERALS.split(), ""]).map(str.encode)
scalars = st.one_of(strings, numbers, literals)
space = st.sampled_from([b"", b"", b"", b" ", b"\t", b"\r", b"  \r\t", b"\x0b", b"\xc2\xa0"])
keys = st.sampled_from(
    [
        *(f'"{key}"'.encode() for key in ("text", "a", "b", "a.b", "a.b.text", "id", "answer")),
        b'""',
        b'"te\\u0078t"',
        b'"te\\xt"',
        '"é"'.encode(),
        b"text",
        b'"other"',
    ]
)


def _object(members):
    return b"{" + b",".join(a + key + b + b":" + value for a, key, b, value in members) + b"}"


def _list(items):
    return b"[" + b",".join(items) + b"]"


values = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(st.tuples(space, keys, space, inner), max_size=4).map(_object),
        st.lists(inner, max_size=3).map(_list),
    ),
    max_leaves=12,
)
objects = st.lists(st.tuples(space, keys, space, values), max_size=5).map(_object)


@st.composite
def almost(draw):
    """A line with one byte lost, doubled or changed."""
    line = bytearray(draw(objects))
    at = draw(st.integers(0, len(line) - 1))
    match draw(st.sampled_from(["lost", "doubled", "changed"])):
        case "lost":
            del line[at]
        case "doubled":
            line.insert(at, line[at])
        case _:
            line[at] = draw(st.sampled_from(b'"\\{}[]:, \x00\t0e.-+\xe9\n'))
    return bytes(line)


def _nested(depth):
    return b'{"m": ' + b"[" * depth + b"]" * depth + b', "text": "deep"}'


odd_lines = st.one_of(
    objects,
    almost(),
    scalars,
    st.sampled_from([b"", b" ", b"\x0b", b"\xef\xbb\xbf", b'\xef\xbb\xbf{"text": "x"}', b"{}"]),
    st.sampled_from([62, 63, 64, 65, 198, 199, 200, 1100]).map(_nested),
    st.tuples(objects, st.sampled_from([b"x", b"{}", b",", b"]", b"}"])).map(b"".join),
)


def _valid(value):
    return st.booleans().map(lambda is_ascii: json.dumps(value, ensure_ascii=is_ascii).encode())


valid_strings = st.one_of(texts, long_texts).flatmap(_valid)
valid_values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(-1e9, 1e9), texts),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=6,
).flatmap(_valid)


@st.composite
def lines_with(draw, field):
    """A line with the field in its place, and maybe one strange thing somewhere in it."""
    odd = draw(st.sampled_from([None, None, "text", "field", "key", "space", "byte"]))
    value = draw(strings if odd == "text" else valid_strings)
    for key in reversed(field.split(".")):
        members = [(b'"%s"' % key.encode(), value)]
        for number in range(draw(st.integers(0, 2))):
            name = draw(keys) if odd == "key" else b'"x%d"' % number
            member = (name, draw(values if odd == "field" else valid_values))
            members.insert(draw(st.integers(0, len(members))), member)
        blank = draw(space) if odd == "space" else draw(st.sampled_from([b"", b" ", b"\t \r"]))
        value = _object([(blank, name, blank, value) for name, value in members])
    if odd == "byte":
        at = draw(st.integers(0, len(value) - 1))
        value = value[:at] + draw(st.sampled_from(ODD_BYTES)) + value[at:]
    return value


@st.composite
def shards(draw, field):
    n_lines = draw(st.integers(0, 8))
    lines = [
        draw(st.sampled_from([b"", b"", b" ", b"\t\r"]))
        + draw(st.one_of(lines_with(field), lines_with(field), lines_with(field), odd_lines))
        + draw(st.sampled_from([b"\n", b" \n", b"\r\n"]))
        for _ in range(n_lines)
    ]
    content = b"".join(lines)
    return content if draw(st.booleans()) else content.removesuffix(b"\n")


def plainly(shard, source):
    """The rows, and the error at their end."""
    rows = []
    try:
        rows.extend(read_shard(shard, source))
    except CorpusError as error:
        return rows, error.problems
    return rows, None


def in_blocks(shard, source, block_bytes):
    rows = []
    try:
        for block in read_blocks(shard, source, block_bytes=block_bytes):
            rows += rows_of(block.read())
    except CorpusError as error:
        return rows, error.problems
    return rows, None


def rows_of(batch):
    text = batch.text.tobytes()
    documents = []
    for at, (row, start, stop) in enumerate(
        zip(batch.rows.tolist(), batch.starts.tolist(), batch.stops.tolist(), strict=True)
    ):
        document = batch.document(at)
        assert isinstance(document, Document)
        assert document.row == row
        assert document.text == text[start:stop].decode("utf-8", errors="strict")
        documents.append(document)
    assert batch.n_characters == sum(len(document.text) for document in documents)
    assert all(isinstance(row, Unreadable) for row in batch.unreadable)
    assert [row.row for row in documents] == sorted(row.row for row in documents)
    assert batch.invalid == [document.invalid for document in documents if document.invalid]
    return sorted([*documents, *batch.unreadable], key=lambda row: row.row)


@settings(max_examples=_N_EXAMPLES)
@given(data=st.data(), source=st.sampled_from(SOURCES), block_bytes=st.sampled_from(BLOCKS))
def test_blocks_hold_the_rows_that_the_careful_reader_finds(data, source, block_bytes):
    require_same(data.draw(shards(source.text)), source, block_bytes)


def _odd_values():
    pieces = [*ODD_BYTES, *(escape.encode() for escape in ESCAPES)]
    for before in (b"", b"plain words " * 3, "Straße 日本".encode()):
        yield from (b'"' + before + piece + b' behind"' for piece in pieces)
        yield from (b'"' + before + piece + b'"' for piece in pieces)
    yield from (value.encode() for value in (*ODD_NUMBERS, *LITERALS.split()))


@pytest.mark.parametrize(
    "line",
    [
        b'{"text": %s}',
        b'{"x": %s, "text": "y"}',
        b'{"text": "y", "x": [%s]}',
        b'{%s: 1, "text": "y"}',
    ],
)
def test_every_odd_value_is_judged_as_the_careful_reader_judges_it(line):
    content = b"".join(line % value + b"\n" for value in _odd_values())
    require_same(content, SOURCES[0], 1000)


@pytest.mark.parametrize("block_bytes", BLOCKS)
@pytest.mark.parametrize(
    ("field", "content"),
    [
        ("text", b""),
        ("text", b"\n"),
        ("text", b"\n\n \n"),
        ("text", b'{"text": "a"}'),
        ("text", b'{"text": "a"}\n' * 40),
        ("text", b'{"text": "a", "text": "b"}\n{"text": 1, "text": "b"}\n'),
        ("text", b'{"text": "a", "te\\u0078t": "b"}\n'),
        ("text", b'{"text": "a"} {"text": "b"}\n[{"text": "a"}]\n'),
        ("text", b'{"m": {"text": "a"}}\n{"m": {"text": "a"}, "text": "b"}\n'),
        ("text", b'{"text": "%s"}\n{"text": "b"}\n' % (b"long " * 1000)),
        ("a.b", b'{"a": {"b": "x"}, "a": {"b": "y"}}\n{"a": {"b": "x"}, "a": {}}\n'),
        ("a.b", b'{"a": {"b": "x"}, "a": 1}\n{"a": {"b": "x"}, "a.b": "y"}\n'),
        ("a.b", b'{"a": [{"b": "x"}]}\n{"a": {"c": {"b": "x"}, "b": "y"}}\n'),
        ("a.b", b'{"b": "x", "a": {"a": {"b": "z"}, "b": "y"}, "c": {"b": 1}}\n'),
        ("a.b.text", b'{"a": {"b.text": "x", "b": {"text": "y"}}}\n'),
        ("a.b.text", b'{"a": {"b": {"text": "y"}, "b": {}}}\n{"a": {"b": {"text": "y"}}}\n'),
    ],
)
def test_keys_are_found_where_the_careful_reader_finds_them(field, content, block_bytes):
    require_same(content, Source(name="web", path="*", text=field), block_bytes)


def require_same(content, source, block_bytes):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.jsonl"
        path.write_bytes(content)
        (shard,) = find_shards(source, folder=path.parent, known={})
        assert in_blocks(shard, source, block_bytes) == plainly(shard, source)
