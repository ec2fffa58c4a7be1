"""Bytes that are not UTF-8: found, reported with their place, and not carried on unseen."""

import json
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from decon_core.config.mixtures import Mixture
from decon_core.config.policy import Policy
from decon_core.config.sources import Source
from decon_core.corpus.documents import Unreadable
from decon_core.corpus.formats.recognize import LEAST_INVALID, fault_of_bytes
from decon_core.corpus.packs import find_shards
from decon_core.corpus.shards import read_blocks, read_shard
from decon_core.errors import IncompleteError
from decon_core.mixtures.verify import verify
from decon_core.scan.coverage import scan_fingerprint
from decon_core.scan.scan_results import ScanResults
from decon_core.storage.compression import open_bytes
from tests.core.places import CLEAN, Place

LATIN = "café au lait, caf".encode("latin-1") + b"\xe9"  # two places


@pytest.fixture
def place(bench, make_words):
    bench.policy = Policy(tokenizer_str="words")
    names = ("a", "b", "c")
    items = [(make_words(name, 30), make_words(f"{name}!", 8), None) for name in names]
    versions = bench.prepare({"a": items})
    return Place(bench, versions)


def latin_line(text, *, name="x"):
    return json.dumps({"id": name, "text": f"{text} @"}).encode().replace(b"@", LATIN) + b"\n"


def ledger_of(place, at=0):
    scan = scan_fingerprint(place.bench.store, place.bench.policy)
    shard = place.packs[0].shards[at]
    return ScanResults(place.bench.store, scan).ledger(shard.fingerprint)


def strings(values, kind=pa.string()):  # noqa: B008 - a type is a value
    raw = pa.array(values, pa.binary() if kind == pa.string() else pa.large_binary())
    return pa.Array.from_buffers(kind, len(values), raw.buffers())


def test_a_ledger_has_every_row_that_is_not_utf8_with_line_and_byte(place, make_words):
    first, latin = make_words("x", 40), latin_line(make_words("y", 40))
    odd_id = b'{"text": "fine", "id": "\xff"}\n'
    odd_field = b'{"text": "fine", "id": "z", "meta": {"url": "\xc3"}}\n'
    nan = b'{"text": "fine", "id": "nan", "score": NaN}\n'
    place.put({"s.jsonl": [first, latin, odd_id, odd_field, nan, b"{\xff broken\n"]})
    place.scan()
    ledger = ledger_of(place)
    content = (place.bench.folder / "web" / "s.jsonl").read_bytes()
    assert [row["row"] for row in ledger["invalid_utf8"]] == [1, 2, 3]
    assert [content[row["offset"]] for row in ledger["invalid_utf8"]] == [0xE9, 0xFF, 0xC3]
    assert ledger["invalid_utf8"][0]["detail"].endswith("of the line (and 1 more)")
    assert ledger["n_documents"] == 5
    assert [row["row"] for row in ledger["unreadable"]] == [5]


@pytest.mark.parametrize(
    ("text", "ignore", "columns"),
    [
        (None, (), "text, meta"),
        ("text", (), "text, meta"),  # all are looked at, for text that is not read
        ("text", ("*",), "text"),
        ("meta.text", ("*",), "meta"),
        (("text", "id"), ("*",), "text"),
    ],
)
@pytest.mark.parametrize("suffix", [".parquet", ".arrow"])
def test_rows_of_tables_that_are_not_utf8_are_reported_with_their_columns(
    tmp_path, suffix, text, ignore, columns
):
    texts = strings([b"good", b"caf\xe9", b"good", b"good"])
    table = pa.table(
        {
            "text": texts,
            "id": strings([b"0", b"1", b"\xff2", b"3"], pa.large_string()),
            "meta": pa.StructArray.from_arrays([texts], names=["text"]),
        }
    )
    path = tmp_path / f"a{suffix}"
    if suffix == ".parquet":
        pq.write_table(table, path)
    else:
        with pa.ipc.new_file(str(path), table.schema) as writer:
            writer.write_table(table)
    source = Source(name="web", path=path.name, text=text, ignore=ignore, id="id")
    (shard,) = find_shards(source, folder=tmp_path, known={})
    plainly = [row.invalid for row in read_shard(shard, source) if row.invalid]
    assert [(one.row, one.offset, one.detail) for one in plainly] == [
        (1, None, f"in {columns}"),
        (2, None, "in id"),
    ]
    batches = [block.read() for block in read_blocks(shard, source)]
    assert [one for batch in batches for one in batch.invalid] == plainly


# Other encodings ----------------------------------------------------------------------------------

CHINESE = (
    "张伟在一家公司工作了八年，之后决定离开，去另一个城市开始新的生活和工作。他一共工作了多少年？"
)
TEXTS = {
    "GB18030": CHINESE,
    "BIG5": "張偉在一家公司工作了八年，之後決定離開，去另一個城市開始新的生活和工作。",
    "SHIFT_JIS": "田中さんは八年間会社で働いた後、新しい生活を始めるために移ることにしました。",
    "EUC-JP": "田中さんは八年間会社で働いた後、新しい生活を始めるために移ることにしました。",
    "EUC-KR": "김철수는 회사에서 팔 년 동안 일한 후 새로운 삶을 시작하기로 결정했습니다.",
    "WINDOWS-1251": "Иван проработал в компании восемь лет, после чего решил начать новую жизнь.",
    "KOI8-R": "Иван проработал в компании восемь лет, после чего решил начать новую жизнь.",
    "WINDOWS-1252": "Après l’école où il était employé, François a déménagé; l’été fut très sec.",
}


@pytest.mark.parametrize("name", [*TEXTS])
def test_a_row_in_another_encoding_is_unreadable_and_says_which(name):
    content = f'{{"text": "{TEXTS[name] * 2}"}}'.encode(name)
    reason, detail = fault_of_bytes(content)
    assert reason == f"not UTF-8, but probably {name}"
    assert detail.endswith(f"`iconv -f {name} -t UTF-8`")
    assert fault_of_bytes(b"a" * 70_000 + content)[0] == reason
    assert not fault_of_bytes(content.decode(name).encode())


def test_signs_of_windows_1252_in_english_are_replaced():
    text = " ".join(["It\u2019s a \u201cquoted\u201d text \u2014 in English\u2026"] * 20)
    assert fault_of_bytes(text.encode("windows-1252")) is None
    assert fault_of_bytes(text.encode("windows-1252") + LATIN * LEAST_INVALID)


def test_a_few_broken_bytes_are_no_other_encoding():
    assert not fault_of_bytes(b"\xe9 " * (LEAST_INVALID - 1))
    assert fault_of_bytes(b"\xe9 " * LEAST_INVALID)
    assert not fault_of_bytes(b"\xe9 " * LEAST_INVALID + ("é" * 60).encode())
    assert not fault_of_bytes(b"\xed\xa0\xbd\xed\xb8\x80" * LEAST_INVALID)  # surrogates
    assert fault_of_bytes(bytes(range(0x80, 0x100)))[0] == "not UTF-8"


@pytest.mark.parametrize("name", ["s.jsonl", "s.json", "s.csv", "s.parquet", "lists.parquet"])
def test_a_row_in_another_encoding_is_unreadable_in_every_format(tmp_path, name):
    odd, path = CHINESE.encode("gb18030"), tmp_path / name
    if path.suffix == ".parquet":
        texts = strings([b"fine", odd, b"caf\xe9"])
        nested = pa.StructArray.from_arrays([texts], names=["x"])
        lists = pa.ListArray.from_arrays([0, 1, 2, 3], nested)
        pq.write_table(pa.table({"text": texts if name == "s.parquet" else lists}), path)
    elif path.suffix == ".csv":
        path.write_bytes(b"text\nfine\n%s\ncaf\xe9\n" % odd)
    else:
        rows = [b'{"text": "%s"}' % text for text in (b"fine", odd, b"caf\xe9")]
        is_lines = path.suffix == ".jsonl"
        path.write_bytes(b"\n".join(rows) if is_lines else b"[%s]" % b",".join(rows))
    source = Source(name="web", path=path.name)
    (shard,) = find_shards(source, folder=tmp_path, known={})
    plainly = [*read_shard(shard, source)]
    assert [isinstance(row, Unreadable) for row in plainly] == [False, True, False]
    assert plainly[1].reason == "not UTF-8, but probably GB18030"
    assert plainly[2].invalid
    batches = [block.read() for block in read_blocks(shard, source)]
    assert [one for batch in batches for one in batch.unreadable] == [plainly[1]]
    assert [one.row for batch in batches for one in batch.invalid] == [2]


def test_a_row_in_another_encoding_is_never_written(place, make_words):
    odd = b'{"id": "x", "text": "%s"}\n' % CHINESE.encode("gb18030")
    place.put({"s.jsonl": [make_words("x", 40), odd]})
    place.scan()
    with pytest.raises(IncompleteError, match="probably GB18030"):
        place.build(CLEAN)
    place.bench.policy = replace(place.bench.policy, unreadable="drop")
    place.scan()
    assert [row["id"] for row in place.rows(CLEAN)] == ["s.jsonl-0"]
    assert place.manifest(CLEAN)["totals"]["n_invalid_utf8_replaced"] == 0


# Mixtures -----------------------------------------------------------------------------------------


def test_a_mixture_writes_replacement_characters_and_says_how_many_rows_have_them(
    place, make_words
):
    clean, text = make_words("x", 40), make_words("y", 40)
    place.put({"s.jsonl": [clean, latin_line(text), clean]})
    place.scan()
    folder = place.build(CLEAN).folder
    lines = (folder / "s.jsonl").read_bytes().splitlines(keepends=True)
    before = (place.bench.folder / "web" / "s.jsonl").read_bytes().splitlines(keepends=True)
    assert [lines[0], lines[2]] == [before[0], before[2]]
    assert lines[1] == before[1].decode(errors="replace").encode()
    manifest = place.manifest(CLEAN)
    assert manifest["totals"]["n_invalid_utf8_replaced"] == 1
    assert manifest["invalid_utf8"] == "replace"
    assert not verify(place.builder(CLEAN), CLEAN).problems


@pytest.mark.parametrize("write", ["shards", "dolma", "parquet"])
@pytest.mark.parametrize("name", ["s.jsonl", "s.parquet"])
def test_no_layout_carries_bytes_on_that_are_not_utf8(place, make_words, write, name):
    texts = [make_words("x", 40).encode(), make_words("y", 40).encode() + b" " + LATIN]
    path = place.bench.folder / "web" / name
    path.parent.mkdir()
    if name == "s.jsonl":
        lines = [
            b'{"id": "0", "source": "s", "text": "%s"}\n' % texts[0],
            b'{"id": "1\xff", "source": "s", "text": "%s"}\n' % texts[1],
        ]
        path.write_bytes(b"".join(lines))
    else:
        ids = strings([b"0", b"1\xff"])
        pq.write_table(pa.table({"id": ids, "source": ["s", "s"], "text": strings(texts)}), path)
    source = Source(name="web", path=f"web/{name}", text="text", id="id")
    place.put({}, source=source)
    place.scan()
    mixture = Mixture(name="m", take="everything", write=write)
    folder = place.build(mixture).folder
    assert place.manifest(mixture)["totals"]["n_invalid_utf8_replaced"] == 1
    (made,) = [path for path in folder.rglob("*s.*") if not path.name.startswith("_")]
    if made.suffix == ".parquet":
        rows = pq.read_table(made).to_pylist()
    else:
        with open_bytes(made) as file:
            rows = [json.loads(line.decode()) for line in file]
    assert [(row["id"], row["text"]) for row in rows] == [
        ("0", texts[0].decode()),
        ("1\N{REPLACEMENT CHARACTER}", texts[1].decode(errors="replace")),
    ]


def test_drop_leaves_such_rows_out_and_lists_them(place, make_words):
    place.put({"s.jsonl": [make_words("x", 40), latin_line(make_words("y", 40), name="latin")]})
    place.bench.policy = replace(place.bench.policy, invalid_utf8="drop")
    place.scan()
    assert [row["id"] for row in place.rows(CLEAN)] == ["s.jsonl-0"]
    (removed,) = place.removed(CLEAN)
    assert (removed["doc_id"], removed["why"]) == ("latin", "invalid_utf8")
    totals = place.manifest(CLEAN)["totals"]
    assert totals["removed"] == {"invalid_utf8": 1}
    assert totals["n_invalid_utf8_replaced"] == 0


def test_block_refuses_the_mixture_and_names_the_line(place, make_words):
    place.put({"s.jsonl": [make_words("x", 40), latin_line(make_words("y", 40))]})
    place.bench.policy = replace(place.bench.policy, invalid_utf8="block")
    place.scan()
    with pytest.raises(IncompleteError, match=r"s\.jsonl: line 2: found bytes that are not UTF-8"):
        place.build(CLEAN)


def test_how_such_rows_are_handled_asks_for_no_other_scan(place):
    policies = [
        replace(place.bench.policy, invalid_utf8=one) for one in ("replace", "drop", "block")
    ]
    assert len({scan_fingerprint(place.bench.store, policy) for policy in policies}) == 1


@pytest.mark.parametrize("cut", ["documents", "turns", "spans"])
def test_a_leak_beside_a_table_row_that_is_not_utf8_is_taken_out(place, bench, make_words, cut):
    """Such a row was read for its license, and cut, with an error of the library."""
    leak = f"{make_words('a', 30)} {make_words('a!', 8)}".encode()
    texts = [b"fine", make_words("w", 30).encode() + b" \xe9 " + leak]
    path = bench.folder / "web" / "s.parquet"
    path.parent.mkdir()
    pq.write_table(pa.table({"id": strings([b"0", b"\xff1"]), "text": strings(texts)}), path)
    place.put({}, source=Source(name="web", path="web/*.parquet", text="text", id="id"))
    place.scan()
    mixture = Mixture(name="m", cut=cut)
    folder = place.build(mixture).folder
    left = pq.read_table(folder / "s.parquet").to_pylist()
    assert left[0]["text"] == "fine"
    assert all(leak.decode() not in row["text"] for row in left)
    assert [row["doc_id"] for row in place.removed(mixture)] == ["\N{REPLACEMENT CHARACTER}1"]
