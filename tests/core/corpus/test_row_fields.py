"""The tree of fields of a source."""

import bz2
import gzip
import hashlib
import io
import json
import lzma
import random
import tarfile
import time
import zipfile
import zlib
from base64 import b64encode
from itertools import product
from pathlib import Path
from urllib.parse import quote, quote_plus

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from decon_core.config.sources import Source
from decon_core.corpus import fields as fields_module
from decon_core.corpus.fields import LABELS, field_tree
from decon_core.corpus.formats import format_of
from decon_core.corpus.formats.json_lines import JsonBlock
from decon_core.corpus.formats.lines import blocks_of
from decon_core.corpus.formats.shard_format import Part
from decon_core.corpus.packs import find_shards
from decon_core.corpus.row_texts import text_of_row
from decon_core.corpus.shards import open_shard
from decon_core.corpus.string_kinds import StringKind, are_like_ids, is_escaped_text
from decon_core.kernels.jit import compiled_at_once
from decon_core.text.tokenizers import load_tokenizer


def test_keys_that_are_data_do_not_fill_the_memory_and_are_read_all_the_same(monkeypatch):
    monkeypatch.setattr(fields_module, "MOST_FIELDS", 40)
    field_tree.cache_clear()
    source = Source(name="users", path="*", layout="openai_chat")
    said = [f"What user {n} said about the weather of that day in long words" for n in range(300)]
    rows = [{"said": {f"user-{n}": [text]}, "id": f"{n}"} for n, text in enumerate(said)]
    lines = "".join(json.dumps(row) + "\n" for row in rows).encode()
    with compiled_at_once():
        (block,) = blocks_of(lines, JsonBlock)
        batch, plain = block.batch(source), Part.batch(block, source)
    assert len(field_tree(source).fields) == 40
    texts = [
        batch.text[a:b].tobytes().decode() for a, b in zip(batch.starts, batch.stops, strict=True)
    ]
    assert [text for text in texts if text] == said
    assert np.array_equal(batch.rows, plain.rows)
    field_tree.cache_clear()


def test_a_label_is_read_only_if_it_is_a_text_or_in_a_list():
    values = (
        ("seven words are no text of any", []),
        ("eight words are a text in any field", ["eight words are a text in any field"]),
        (["half of", "a text"], ["half of", "a text"]),
        ('["in JSON", "too"]', ["in JSON", "too"]),
    )
    for key, (value, texts) in product(sorted(LABELS), values):
        read = text_of_row({key: value}, field_tree(Source(name="labels", path="")))
        assert [slot.text for slot in read.visible] == texts, key


ITEM = (
    "A keeper climbs 214 steps of the tower every evening. How many steps does he climb in a week, "
    "if he stays at home on Sunday? He climbs them on 6 days, which makes 1284 steps."
)
SENTENCE = "Eight words of another text beside the item."
CHINESE = "山水木火土金石田力口日月目手足犬牛羊鳥山水木火土金石田力口日月"
PICTURE = hashlib.shake_128(b"a picture").digest(9000)
SVG = (
    b'<svg xmlns="http://www.w3.org/2000/svg" width="24" height="24" fill="none" stroke="#000" '
    b'class="a b"><path d="M12 2L3 7v10l9 5 9-5V7z"/></svg>'
)
ROWS = Source(name="rows", path="")


@pytest.mark.parametrize(
    "value",
    [
        f"https://a.org/search?q={quote(ITEM)}",
        f"https://a.org/search?q={quote_plus(ITEM)}",
        "-".join(ITEM.split()),
        "_".join(ITEM.split()),
        quote("山水木火土金石田力口日月目手足犬牛羊鳥山水木火土"),
        f"data:text/plain,{quote(' '.join(ITEM.split()[:9]))}",
        f"data:text/plain;charset=utf-8,{quote(ITEM)}",
    ],
)
def test_a_label_is_a_text_if_its_words_are_joined_as_in_a_url(value):
    read = text_of_row({"url": value}, field_tree(ROWS))
    assert [slot.text for slot in read.visible] == [value]


@pytest.mark.parametrize(
    "value",
    [
        "https://news.example.org/2024/02/21/how-a-keeper-climbs-214-steps-of-his-tower.html",
        "s3://crawl/segments/1708/warc/CC-MAIN-20240221004107-00001.warc.gz",
        "0d5f9a3e-9b8c-4c1d-8f7a-6b5e4d3c2b1a_ab12cd34-9b8c-4c1d-8f7a-6b5e4d3c2b1a",
        f"data:image/svg+xml,{quote('<svg><path/></svg>')}",
        "Mozilla/5.0+(X11;+Linux+x86_64)+AppleWebKit/537.36",
    ],
)
def test_a_usual_label_is_not_read(value):
    assert not text_of_row({"url": value, "id": value}, field_tree(ROWS)).visible


def _zip_of(files):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return file.getvalue()


def _archive(files):
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return file.getvalue()


@pytest.mark.parametrize(
    "content",
    [
        ITEM.encode(),
        ITEM.encode("utf-16-le"),
        ITEM.encode("utf-16-be"),
        b64encode(ITEM.encode()),
        ITEM.encode().hex().encode(),
        gzip.compress(ITEM.encode()),
        zlib.compress(ITEM.encode()),
        _zip_of({"a.txt": ITEM.encode()}),
        b64encode(gzip.compress(ITEM.encode())),
        json.dumps({"q": CHINESE}).encode(),
        gzip.compress(_archive({"a.txt": ITEM.encode()})),
        _zip_of({"a.png": PICTURE[:900], "a.txt": ITEM.encode()}),
    ],
)
def test_base64_of_text_is_unread_however_the_text_is_packed(content):
    value = b64encode(content).decode()
    lines = "\n".join(value[at : at + 76] for at in range(0, len(value), 76))
    for text in (value, lines):
        assert _unread({"a": text, "b": SENTENCE}) == {"a.<base64>": [1, len(text)]}
    for text in (f"echo '{value}' | base64 -d", f"base64:{value}", f"$ cat a\r\n{lines}\n$ "):
        (found,) = _unread({"a": text})
        assert found == "a.<base64>"


@pytest.mark.parametrize(
    ("content", "ending"),
    [
        (_zip_of({"a.png": PICTURE, "a.txt": ITEM.encode()}), "<unknown>"),
        (_archive({"a.png": PICTURE, "a.txt": ITEM.encode()}), "<unknown>"),
        (gzip.compress(_archive({"a.png": PICTURE})), "<unknown>"),
        (lzma.compress(PICTURE), "<unknown>"),
        (b"\x28\xb5\x2f\xfd" + PICTURE, "<unknown>"),
        (b"%PDF-1.7\n" + PICTURE, "<unknown>"),
        (PICTURE, "<data>"),
        (gzip.compress(PICTURE), "<data>"),
        (_zip_of({"x/data.pkl": PICTURE, "x/data/0": PICTURE}), "<data>"),
        (_zip_of({"arr_0.npy": PICTURE}), "<data>"),
    ],
)
def test_an_archive_without_known_text_is_no_picture(content, ending):
    value = b64encode(content).decode()
    assert _unread({"a": value, "b": SENTENCE}) == {f"a.{ending}": [1, len(value)]}


def test_base64_of_other_archives_of_text_is_unread():
    content = ITEM.encode()
    packed = _archive({"a.txt": content}), lzma.compress(content), bz2.compress(content)
    for value in (b64encode(one).decode() for one in packed):
        assert _unread({"a": value, "b": SENTENCE}) == {"a.<base64>": [1, len(value)]}


def test_a_broken_size_in_an_archive_ends_what_is_looked_at():
    archive = bytearray(_archive({"a.txt": ITEM.encode()}))
    archive[124:136] = b"-00000001000"  # the next header would be this one
    value = b64encode(archive).decode()
    assert _unread({"a": value, "b": SENTENCE}) == {"a.<unknown>": [1, len(value)]}


def test_lines_of_base64_in_a_list_are_one_text():
    value = b64encode(CHINESE.encode() * 4).decode()
    lines = [value[at : at + 76] for at in range(0, len(value) // 76 * 76, 76)]
    expected = {"a[].<base64>": [len(lines), 76 * len(lines)]}
    assert _unread({"a": lines, "b": SENTENCE}) == expected
    hashes = [b64encode(hashlib.sha512(bytes([at])).digest()).decode() for at in range(3)]
    assert _unread({"a": hashes, "b": SENTENCE}) == {"a[].<data>": [3, sum(map(len, hashes))]}


def test_short_pieces_of_base64_are_one_text():
    value = b64encode(ITEM.encode()).decode()
    pieces = [value[at : at + 60] for at in range(0, len(value) // 60 * 60, 60)]
    assert _unread({"a": pieces, "b": SENTENCE}) == {"a[].<base64>": [1, 60 * len(pieces)]}


@pytest.mark.parametrize(
    "content",
    [
        bytes(range(256)),
        zlib.compress(bytes(range(256)) * 9),
        np.arange(900, dtype=np.int16).tobytes(),
        SVG,
        b"-----BEGIN CERTIFICATE-----",
    ],
)
def test_other_base64_in_a_text_is_not_unread_text(content):
    value = b64encode(content * 2).decode()
    assert not _unread({"a": f"![a picture](data:image/svg+xml;base64,{value}) of the tower"})
    assert not _unread({"a": f"The hash of this file is {value}, and that is all of it."})
    assert not _unread({"a": "-" * 90 + "\n" + "word_" * 30 + "\n" + "a/b-c/" * 30})


def test_hex_of_text_is_unread():
    value = ITEM.encode().hex()
    for text in (value, value.upper(), f"0x{value}"):
        assert _unread({"a": text, "b": SENTENCE}) == {"a.<hex>": [1, len(text)]}
    digest = "0123456789abcdef" * 4
    assert _unread({"a": digest, "b": SENTENCE}) == {"a.<data>": [1, 64]}


@pytest.mark.parametrize(
    "name",
    ["input_ids", "prompt_token_ids", "tokens", "promptTokenIds", "chosen_tokens", "query_tensor"],
)
def test_token_ids_beside_a_text_are_unread(name):
    ids = [*range(900, 940)]
    assert _unread({name: ids, "b": SENTENCE}) == {f"{name}.<tokens>": [1, 40]}
    assert _unread({"m": [{name: [ids, ids]}], "b": SENTENCE}) == {
        f"m[].{name}[].<tokens>": [2, 80]
    }
    assert _unread({name: ids[:15], "num_tokens": ids, "user_ids": ids, "b": SENTENCE}) == {}
    assert _unread({name: ids, "b": SENTENCE}, ignore=("*",)) == {}


_IDS = [*range(900, 940)]
_IN_STRINGS = (str(_IDS), str(_IDS).replace(",", ""), " ".join(map(str, _IDS)), f"[{_IDS}]")


@pytest.mark.parametrize("ids", _IN_STRINGS)
def test_token_ids_in_a_string_are_unread(ids):
    assert _unread({"input_ids": ids, "b": SENTENCE}) == {"input_ids.<tokens>": [1, 40]}
    assert not _unread({"x": ids})
    assert not _unread({"input_ids": " ".join(map(str, _IDS[:15])), "b": SENTENCE})


# Tokens of a text on the seats of a theater, in the vocabulary of cl100k.
_OF_TEXT = [
    *(791, 1176, 2872, 706, 11888, 16712, 11, 323, 1855, 315, 279, 1023, 7123, 706, 1403, 810),
    *(1109, 279, 2872, 1603, 433, 13, 2650, 1690, 16712, 527, 304, 279, 1176, 4848, 7123, 315),
    *(279, 34596, 30, 763, 279, 2132, 2872, 1070, 527, 45314, 16712, 11, 304, 279, 4948, 2872),
    *(1070, 527, 61759, 11, 323, 779, 389, 11, 779, 430, 279, 26084, 2872, 706, 94935, 16712, 13),
]


@pytest.mark.parametrize("ids", [str(_OF_TEXT), str(_OF_TEXT).replace(",", ""), f"[{_OF_TEXT}]"])
def test_a_row_of_nothing_but_a_list_like_token_ids_is_unread(ids):
    assert _unread({"id": "a-1", "x": ids, "n": 4}) == {"x.<tokens>": [1, len(_OF_TEXT)]}
    assert not _unread({"x": ids, "b": SENTENCE})
    assert not _unread({"x": ids.strip("[]")})
    assert not _unread({"x": str(_OF_TEXT[:63])})


@pytest.mark.parametrize("tokenizer", ["cl100k", "o200k", "llama3"])
def test_token_ids_of_real_text_look_like_token_ids(tokenizer):
    text = (Path(__file__).parents[3] / "docs" / "limits.md").read_text()
    ids = load_tokenizer(tokenizer).encode([text])[0]
    windows = [ids[at : at + 128] for at in range(0, len(ids) - 128, 32)]
    assert sum(map(are_like_ids, windows)) >= 0.95 * len(windows)


def test_prices_populations_and_measurements_are_no_token_ids():
    rng = random.Random(5)
    for n in (64, 256, 1024):
        sizes = [rng.lognormvariate(9, 1.2) for _ in range(n)]
        lists = {
            "populations": [*map(int, sizes)],
            "prices": [10 * int(size / 10) for size in sizes],
            "prices to 99": [100 * int(size / 100) + 99 for size in sizes],
            "years": [rng.randrange(1900, 2025) for _ in sizes],
            "measurements": [5000 + int(rng.gauss(0, 90)) for _ in sizes],
            "one after the other": [*range(900, 900 + n)],
            "large": [48213, 99120, 1_402_417] * n,
        }
        assert [name for name, numbers in lists.items() if _unread({"a": str(numbers)})] == []


@pytest.mark.parametrize(
    "numbers",
    [
        " ".join("0120" * 20),  # a grid
        "2024-01-31\n" * 20,
        "(555) 123-4567\n" * 20,
        "1990 0.5 1500.25\n" * 20,
    ],
)
def test_other_numbers_in_a_string_are_no_token_ids(numbers):
    assert not _unread({"a": numbers})


@pytest.mark.parametrize(
    ("ids", "path"),
    [
        ([*map(str, _IDS)], "input_ids[].<tokens>"),
        ([*map(float, _IDS)], "input_ids.<tokens>"),
        ([{"id": one, "logprob": -0.5} for one in _IDS], "input_ids.<tokens>"),
        ([_IDS[at : at + 8] for at in range(0, 40, 8)], "input_ids.<tokens>"),
        ([None, None, *map(float, _IDS)], "input_ids.<tokens>"),
    ],
)
def test_token_ids_in_other_lists_are_unread(ids, path):
    assert _unread({"input_ids": ids, "b": SENTENCE}) == {path: [1, 40]}


def test_the_documentation_lists_every_kind_that_is_encoded():
    docs = (Path(__file__).parents[3] / "docs" / "layouts.md").read_text()
    rows = [line.split(" | ") for line in docs.splitlines()]
    is_blocking = {row[0].strip("| `"): row[2].startswith("yes") for row in rows if len(row) == 3}
    for kind in StringKind:
        assert not kind.step or is_blocking[kind.step] == kind.is_blocking


def test_token_ids_as_bytes_are_unread(tmp_path):
    ids = np.array(_IDS, np.int32).tobytes()
    encoded = b64encode(ids).decode()
    row = {"input_ids": encoded, "b": SENTENCE}
    assert _unread(row) == {"input_ids.<tokens>": [1, len(encoded)]}
    for name in ("input_ids", "a"):
        pq.write_table(pa.table({name: [ids], "b": [SENTENCE]}), tmp_path / "a.parquet")
        expected = {"input_ids.<tokens>": [1, len(ids)]} if name == "input_ids" else {}
        assert _unread_of(tmp_path / "a.parquet") == expected
    files = {"0.input_ids.npy": ids, "0.b.txt": SENTENCE.encode()}
    (tmp_path / "a.tar").write_bytes(_archive(files))
    assert _unread_of(tmp_path / "a.tar") == {"input_ids.npy.<tokens>": [1, len(ids)]}


def test_words_with_an_index_are_no_token_ids():
    words = [{"id": at, "start": at, "text": "a"} for at in range(40)]
    assert not _unread({"tokens": words, "b": SENTENCE})


_WORDS = f"{ITEM} {SENTENCE}".split()


@pytest.mark.parametrize(
    ("pieces", "is_unread"),
    [
        ([f"Ġ{word}" for word in _WORDS], True),
        ([piece for word in _WORDS for piece in (f"▁{word[:3]}", word[3:]) if piece], True),
        ([piece for word in _WORDS for piece in (word[:3], f"##{word[3:]}")], True),
        ([*f"{ITEM} {SENTENCE}"], True),
        (_WORDS * 4, False),
        ([*"ABCD"] * 15, False),  # choices
        ([f"## {word}" for word in _WORDS][:15], False),
        (["Ġof", "Ġthe", *["duck"] * 14], True),
        (["Ġof", *["duck"] * 15], False),
    ],
)
@pytest.mark.parametrize("name", ["a.jsonl", "a.parquet"])
def test_pieces_of_words_are_unread(tmp_path, name, pieces, is_unread):
    rows = [{"b": SENTENCE, "x": {"tokens": pieces}}]
    if name.endswith(".parquet"):
        pq.write_table(pa.Table.from_pylist(rows), tmp_path / name)
    else:
        (tmp_path / name).write_text(json.dumps(rows[0]) + "\n")
    n_bytes = sum(len(piece.encode()) for piece in pieces)
    expected = {"x.tokens[].<tokens>": [1, n_bytes]} if is_unread else {}
    assert _unread_of(tmp_path / name) == expected


def test_the_bytes_of_a_text_in_a_list_are_unread():
    for text in (ITEM, "Слова другого письма тоже разделены пробелами, как и эти слова."):
        codes = [*text.encode()]
        assert _unread({"a": codes, "b": SENTENCE}) == {"a.<tokens>": [1, len(codes)]}


@pytest.mark.parametrize(
    "numbers",
    [
        [0.01 * at for at in range(99)],
        [1] * 300,
        [*range(300)],
        [at * 37 % 101 for at in range(300)],
        [at * 97 % 256 for at in range(300)],
        [32] * 300,
    ],
)
def test_other_numbers_are_not_unread_text(numbers):
    row = {"embedding": numbers, "attention_mask": numbers, "user_ids": numbers, "b": SENTENCE}
    assert not _unread(row)


def test_short_strings_in_a_list_of_objects_are_one_text():
    turns = [{"role": "user", "content": "four words of it"}, {"role": "tool", "content": "x " * 4}]
    row = {"text": SENTENCE, "messages": turns, "words": [{"w": word} for word in "abcdefgh"]}
    assert _unread(row, text="text") == {"messages[].content": [1, 24], "words[].w": [1, 8]}
    assert not _unread({"text": SENTENCE, "m": [{"type": "user", "a": {}}] * 9}, text="text")
    assert not _unread(
        {"text": SENTENCE, "m": [{"a": "seven words of one are no text"}]}, text="text"
    )


def test_text_in_escapes_is_unread():
    entities = "".join(f"&#{ord(letter)};" for letter in CHINESE)
    for value in (json.dumps(CHINESE)[1:-1], entities, json.dumps(json.dumps(CHINESE))[1:-1]):
        assert _unread({"a": value, "b": SENTENCE}, text="b") == {"a": [1, len(value)]}
        assert not _unread({"a": value[:60], "b": SENTENCE}, text="b")


def test_many_backslashes_are_looked_at_once():
    started = time.process_time()
    assert not is_escaped_text("\\" * 60_000 + "u")
    assert time.process_time() - started < 1


def test_text_in_escapes_is_unread_in_each_row_of_a_table(tmp_path):
    """The strings of a column have nothing between them."""
    entities = "".join(f"&#{ord(letter)};" for letter in CHINESE)
    for value in (json.dumps(CHINESE)[1:-1], entities):
        table = pa.table({"a": [value] * 4, "b": [SENTENCE] * 4})
        pq.write_table(table, tmp_path / "a.parquet")
        assert _unread_of(tmp_path / "a.parquet", text="b") == {"a": [4, 4 * len(value)]}


def test_a_text_that_a_row_repeats_very_often_is_read_in_linear_time():
    started = time.process_time()
    (slot,) = text_of_row({"a": [SENTENCE] * 40_000}, field_tree(ROWS)).visible
    assert time.process_time() - started < 2
    assert slot.keys == ("a", 0)
    assert slot.copies == tuple(("a", at) for at in range(1, 40_000))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (r'"\frac{1}{2} \text{ of } \beta"', r'"\frac{1}{2} \text{ of } \beta"'),
        (r'"\\frac{1}{2}"', r"\frac{1}{2}"),
        (r'"half \"of\" it"', 'half "of" it'),
        (r'"C:\temp\bin"', r'"C:\temp\bin"'),
        (r'"\nabla f = 0"', r'"\nabla f = 0"'),
        (r'"so \"a\" \neq b,\n\theta"', r'"so \"a\" \neq b,\n\theta"'),
        (r'"\\nabla f\nand g"', "\\nabla f\nand g"),
        (r'"one\ntwo"', "one\ntwo"),
        (r'"one\n\ttwo"', "one\n\ttwo"),
    ],
)
def test_a_quoted_text_with_commands_of_latex_is_no_json(tmp_path, value, text):
    (slot,) = text_of_row({"a": value}, field_tree(ROWS)).visible
    assert slot.text == text
    pq.write_table(pa.table({"a": [value]}), tmp_path / "a.parquet")
    (tmp_path / "a.jsonl").write_text(json.dumps({"a": value}) + "\n")
    for name in ("a.parquet", "a.jsonl"):
        (shard,) = find_shards(Source(name="rows", path=name), folder=tmp_path, known={})
        with open_shard(shard, ROWS) as file:
            (part,) = format_of(tmp_path / name).parts(file, ROWS)
            assert part.batch(ROWS).text_at(0) == text


def _unread_of(path, **settings):
    """Return what is unread in a shard, as both readers find it."""
    field_tree.cache_clear()
    source = Source(name="rows", path=path.name, **settings)
    (shard,) = find_shards(source, folder=path.parent, known={})
    with open_shard(shard, source) as file:
        (part,) = format_of(path).parts(file, source)
        plain, batch = Part.batch(part, source), part.batch(source)
    assert batch.unread == plain.unread
    return {place: [*counts] for place, counts in plain.unread.items()}


def _unread(row, **settings):
    """Return what is unread in a row, as both readers find it."""
    field_tree.cache_clear()
    source = Source(name="rows", path="", **settings)
    with compiled_at_once():
        (block,) = blocks_of((json.dumps(row) + "\n").encode() * 2, JsonBlock)
        plain, batch = Part.batch(block, source), block.batch(source)
    assert batch.unread == plain.unread
    assert batch.rows.size == 2
    return {path: [n // 2, size // 2] for path, (n, size) in batch.unread.items()}
