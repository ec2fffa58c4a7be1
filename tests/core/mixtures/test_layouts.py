"""Documents in other layouts: nothing of a row is lost, and what reads such layouts reads ours."""

import base64
import gzip
import io
import json
import os
import random
from collections import Counter
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from decon_core.config.mixtures import Licenses, Mixture
from decon_core.config.policy import Policy
from decon_core.config.sources import Source
from decon_core.corpus.documents import Document, document_of
from decon_core.corpus.packs import Pack, find_shards
from decon_core.corpus.shards import read_shard
from decon_core.errors import CorpusError
from decon_core.execution import jobs as workers_module
from decon_core.mixtures import builder as builder_module
from decon_core.mixtures import positions
from decon_core.mixtures.build import build_shares
from decon_core.mixtures.builder import Builder
from decon_core.mixtures.card import CARD, listing_of
from decon_core.mixtures.excise import Rescan
from decon_core.mixtures.layouts import PARQUET, Row, open_layout, rows_of
from decon_core.mixtures.verify import inspect_changed_mixtures, verify
from decon_core.scan.scanner import scan_packs
from decon_core.storage.checksums import hash_file
from decon_core.storage.compression import create
from decon_core.storage.files import read_json, write_json
from decon_core.wording import percent
from tests.core.conftest import DECON
from tests.core.places import build_mixture, faults_in, manifest_of, removed_in
from tests.uncompiled import fewer

CLEAN = Mixture(name="clean")
DOLMA = Mixture(name="dolma", write="dolma")
PARQUETS = Mixture(name="tables", write="parquet")
TAGS = Mixture(name="tags", write="attributes")
CONTROL = Mixture(name="control", take="control", control_of="clean", write="parquet")
WEB = Source(name="web", path="web/**/*.*", text="text", id="id")


class Place:
    """Shards in a folder, some of them with leaks, scanned; and mixtures of them."""

    def __init__(self, bench, make_words):
        bench.policy = DECON
        self.bench, self.make_words, self.packs = bench, make_words, []
        items = [
            (make_words(("item", n), 30), make_words(("item", n, "!"), 8), None) for n in (0, 1)
        ]
        self.versions = bench.prepare({"quiz": items})
        self.leaks = [f"{question} {answer}" for question, answer, _ in items]

    def quiet(self, seed, n=40):
        return self.make_words(("quiet", seed), n)

    def put(self, files, source=WEB):
        """Files as a pack: lines as bytes, rows as values, tables as tables."""
        folder = self.bench.folder / source.name
        for name, rows in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if isinstance(rows, pa.Table):
                pq.write_table(rows, path)
                continue
            with create(path, ".zst" if name.endswith(".zst") else "") as out:
                for row in rows:
                    out.write(row if isinstance(row, bytes) else json.dumps(row).encode() + b"\n")
        found = [
            shard
            for shard in find_shards(source, folder=self.bench.folder, known={})
            if shard.name in files
        ]
        self.packs.append(
            Pack(name=f"{source.name}-{len(self.packs):04}", source=source, shards=tuple(found))
        )
        scan_packs(self.bench.store, self.packs, self.versions, self.bench.policy)
        return self.packs[-1]

    def builder(self, *mixtures):
        known = (CLEAN, CONTROL, DOLMA, PARQUETS, TAGS)
        others = [one for one in known if one.name not in {own.name for own in mixtures}]
        return Builder(
            self.bench.store,
            tuple(self.packs),
            tuple(self.versions),
            self.bench.policy,
            (*mixtures, *others),
        )

    def build(self, mixture, pack=None):
        summary = build_mixture(self.builder(mixture), mixture, pack or self.packs[0])
        assert faults_in(summary.folder) == []
        return summary.folder

    def lines(self, file="s.jsonl.zst", mixture=DOLMA, pack=None):
        packed = (self.build(mixture, pack) / file).read_bytes()
        return lines_in(zstandard.ZstdDecompressor().stream_reader(io.BytesIO(packed)).read())

    def table(self, file="s.parquet", mixture=PARQUETS, pack=None):
        return pq.read_table(self.build(mixture, pack) / file)


@pytest.fixture
def place(bench, make_words):
    return Place(bench, make_words)


def lines_in(data):
    assert not data or data.endswith(b"\n")
    return data.split(b"\n")[:-1]


def line_of(value, source=WEB, *, shard="s.jsonl", number=0, line=None, folder=None):
    """A value, or the line that it lies in, as Dolma's layout has it."""
    path = folder / "web" / shard
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(json.dumps(value).encode() if line is None else line)
    (found,) = find_shards(source, folder=folder, known={})
    with open_layout("dolma", folder / "out.zst", Policy()) as (add, _):
        for row in rows_of(found, source):
            add(row)
    packed = (folder / "out.zst").read_bytes()
    return lines_in(zstandard.ZstdDecompressor().stream_reader(io.BytesIO(packed)).read())


# Lines of Dolma's ---------------------------------------------------------------------------------


def test_a_line_that_is_one_of_dolma_s_keeps_its_bytes(place):
    lines = [
        b'\xef\xbb\xbf{"id":"a",  "source" : "own", "text":"one\\u00e9", "n": 1E5, "n": 2 }\r\n',
        b"\n",
        '{"text": "zwei ü \u2028", "id": "b", "source": "", "n": 12345678901234567890}\n'.encode(),
        b'{"text": "half \\ud800 and \xff", "id": "c", "source": "s", "nan": NaN}',
    ]
    place.put({"s.jsonl": lines})
    kept = [lines[0].removeprefix(b"\xef\xbb\xbf").rstrip(), lines[2].rstrip()]
    kept.append(lines[3].decode(errors="replace").encode())  # UTF-8, whatever stood there
    assert place.lines() == kept
    assert verify(place.builder(DOLMA), DOLMA).problems == []


def test_a_line_that_lacks_id_or_source_gets_them_at_its_end(place):
    lines = [
        '{"text": "ü {}" }  \n'.encode(),
        b'{"text": "b", "id": "own"}\n',
        b'{"text": "c", "source": "there"}',
    ]
    place.put({"é/s.jsonl": lines})
    assert place.lines("é/s.jsonl.zst") == [
        '{"text": "ü {}" , "id": "é/s.jsonl:0", "source": "web"}  '.encode(),
        b'{"text": "b", "id": "own", "source": "web"}',
        b'{"text": "c", "source": "there", "id": "\\u00e9/s.jsonl:2"}',
    ]


@pytest.mark.parametrize(
    ("source", "value", "made"),
    [
        pytest.param(
            WEB,
            {"n": 10**30 + 1, "text": "t", "id": 7, "source": None},
            {
                "id": "7",
                "text": "t",
                "source": "web",
                "n": 10**30 + 1,
                "metadata": {"id": 7, "source": None},
            },
            id="a number as id",
        ),
        pytest.param(
            replace(WEB, text="content"),
            {"id": "i", "content": "c", "text": "t", "source": "s", "metadata": {"a": 1}},
            {"id": "i", "text": "c", "source": "s", "metadata": {"a": 1, "text": "t"}},
            id="a text of another name",
        ),
        pytest.param(
            replace(WEB, text="metadata.text", id="doc.key"),
            {"text": ["t"], "metadata": {"text": "c", "m": 1}, "doc": {"key": 5}, "id": "x"},
            {
                "id": "5",
                "text": "c",
                "source": "web",
                "metadata": {"m": 1, "text": ["t"], "id": "x"},
                "doc": {"key": 5},
            },
            id="fields below others",
        ),
        pytest.param(
            WEB,
            {"id": 1, "text": "t", "source": {"u": 2}, "metadata": "m", "metadata_id": 0},
            {
                "id": "1",
                "text": "t",
                "source": "web",
                "metadata": "m",
                "metadata_id": 0,
                "metadata_id_": 1,
                "metadata_source": {"u": 2},
            },
            id="metadata that is no object",
        ),
        pytest.param(
            replace(WEB, text=("prompt", "chosen"), id=None),
            {"prompt": "p", "chosen": [{"role": "a", "content": "c"}], "text": "other"},
            {
                "id": "s.jsonl:0",
                "text": "p\n\nc",
                "source": "web",
                "prompt": "p",
                "chosen": [{"role": "a", "content": "c"}],
                "metadata": {"text": "other"},
            },
            id="a preference pair",
        ),
        pytest.param(
            replace(WEB, text="a.b"),
            {"a.b": "dots", "a": {"b": "no"}, "id": "i", "half": "\ud83d", "nan": float("inf")},
            {
                "id": "i",
                "text": "dots\n\nno",
                "source": "web",
                "a": {"b": "no"},
                "half": "\ud83d",
                "nan": "Infinity",
            },
            id="odd keys and values",
        ),
    ],
)
def test_a_row_of_another_form_is_made_one_and_loses_nothing(tmp_path, source, value, made):
    (line,) = line_of(value, source, folder=tmp_path)
    assert json.loads(line) == made
    assert [*json.loads(line)] == [*made]


SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


@settings(max_examples=fewer(60), derandomize=True)
@given(
    value=st.dictionaries(
        st.sampled_from(["id", "text", "source", "metadata", "metadata_id", "content", "x"]),
        VALUES,
    ),
    content=st.text(min_size=1).filter(lambda text: text.isprintable()),
    field=st.sampled_from(["text", "content", "metadata.text"]),
    is_ascii=st.booleans(),
)
def test_whatever_a_row_holds_is_in_its_line_and_all_three_are_texts(
    tmp_path_factory, value, content, field, is_ascii
):
    folder = tmp_path_factory.mktemp("row")
    source = replace(WEB, text=field)
    if field == "metadata.text":
        value["metadata"] = {"m": 1, "text": content}
    else:
        value[field] = content
    line = json.dumps(value, ensure_ascii=is_ascii).encode()
    (written,) = line_of(value, source, line=line, folder=folder)
    made = json.loads(written)
    assert all(isinstance(made[name], str) for name in ("id", "text", "source"))
    assert made["text"] == content
    if field == "text" and all(isinstance(value.get(name), str) for name in ("id", "source")):
        assert written == line
    # Every value of the row is somewhere in the line, under its own name or one made of it.
    left = json.loads(json.dumps(value))
    for name, found in left.items():
        if name == field:
            continue
        if name == "metadata" and isinstance(found, dict):
            kept = {k: v for k, v in found.items() if f"metadata.{k}" != field}
            assert kept.items() <= made["metadata"].items()
            continue
        metadata = made.get("metadata")
        places = [made.get(name), *(v for k, v in made.items() if k.startswith(f"metadata_{name}"))]
        places += [metadata[name]] if isinstance(metadata, dict) and name in metadata else []
        assert any(place == found and type(place) is type(found) for place in places)


def test_rows_that_are_asked_for_come_alone_and_in_order_from_any_format(place):
    rows = [{"id": str(n), "text": f"t{n} " * 30, "n": n} for n in range(500)]
    lines = place.put({"s.jsonl": rows, "t.parquet": pa.Table.from_pylist(rows)})
    for shard in lines.shards:
        for wanted in ([], [0], [3, 4, 499], [*range(500)], None):
            found = [*rows_of(shard, WEB, wanted)]
            numbers = range(500) if wanted is None else wanted
            assert [(row.number, row.value) for row in found] == [(n, rows[n]) for n in numbers]
            assert {row.shard for row in found} <= {shard.name}
            is_table = shard.name.endswith(".parquet")
            assert all((row.line is None) == is_table for row in found)


def test_a_line_of_many_levels_keeps_its_bytes(tmp_path):
    deep = "[" * 190 + "]" * 190
    line = f'{{"id": "i", "text": "t", "source": "s", "deep": {deep}}}'.encode()
    assert line_of(None, line=line, folder=tmp_path) == [line]


def test_rows_that_are_no_documents_are_passed_over_unless_they_are_asked_for(tmp_path):
    (tmp_path / "web").mkdir()
    lines = b'\n{"text": 1}\nno JSON\n[]\n{"text": "t"}\r\n'
    (tmp_path / "web" / "s.jsonl").write_bytes(lines)
    (shard,) = find_shards(WEB, folder=tmp_path, known={})
    assert [(row.number, row.line) for row in rows_of(shard, WEB)] == [(4, b'{"text": "t"}')]
    with pytest.raises(CorpusError, match=r"row 3: the row is no longer"):
        [*rows_of(shard, WEB, [3])]
    (row,) = rows_of(shard, replace(WEB, text="t"), [1])
    with (
        pytest.raises(CorpusError, match=r"row 1: found .*field missing"),
        open_layout("parquet", tmp_path / "out", Policy()) as (add, _),
    ):
        add(row)


def odd_table():
    """Columns of every kind that JSON has no form for."""
    at = datetime(2020, 5, 17, 1, 2, 3, 4, tzinfo=UTC)
    return {
        "ns": (pa.array([1, None], pa.timestamp("ns")), "1970-01-01T00:00:00.000000001"),
        "zone": (pa.array([at, None], pa.timestamp("us", "UTC")), "2020-05-17T01:02:03.000004Z"),
        "far": (pa.array([2**62, None], pa.timestamp("ms")), "146140482-04-24T15:36:27.904"),
        "day": (pa.array([date(2020, 5, 17), None]), "2020-05-17"),
        "time": (pa.array([1, None], pa.time64("ns")), "00:00:00.000000001"),
        "long": (pa.array([timedelta(seconds=-90, milliseconds=-5), None]), "-PT90.005000S"),
        "price": (pa.array([Decimal("1.50"), None]), "1.50"),
        "raw": (pa.array([b"\xff\x00", None]), base64.b64encode(b"\xff\x00").decode()),
        "map": (
            pa.array([[("k", Decimal("0.1"))], None], pa.map_(pa.string(), pa.decimal128(3, 1))),
            [["k", "0.1"]],
        ),
        "deep": (
            pa.array([[{"a": [at.replace(tzinfo=None)], "b": 2**53 + 1}], None]),
            [{"a": ["2020-05-17T01:02:03.000004"], "b": 2**53 + 1}],
        ),
        "big": (pa.array([2**64 - 1, None], pa.uint64()), 2**64 - 1),
        "name": (pa.array(["x", None]).dictionary_encode(), "x"),
        "none": (pa.array([float("nan"), None]), "NaN"),
    }


def test_columns_that_json_has_no_form_for_are_told_without_loss(place):
    odd = odd_table()
    table = pa.table(
        {
            "id": [1, 2],
            "text": [place.quiet(0), place.quiet(1)],
            **{name: column for name, (column, _) in odd.items()},
        }
    )
    source = replace(WEB, name="tab", path="tab/*.parquet")
    place.put({"s.parquet": table}, source)
    told = {name: found for name, (_, found) in odd.items()}
    first, second = (json.loads(line) for line in place.lines("s.parquet.jsonl.zst"))
    rest = {"id": "1", "text": place.quiet(0), "source": "tab"}
    assert first == {**rest, **told, "metadata": {"id": 1}}
    assert {second[name] for name in odd} == {None}
    made = place.table()
    assert made.schema.equals(PARQUET)
    assert made["id"].to_pylist() == ["1", "2"]
    assert json.loads(made["metadata"][0].as_py()) == {**told, "metadata": {"id": 1}}
    for mixture in (DOLMA, PARQUETS):
        assert verify(place.builder(mixture), mixture).problems == []


@pytest.mark.parametrize("kind", ["file", "stream"])
def test_columns_of_arrow_s_rarer_kinds_are_read_as_well(tmp_path, kind):
    texts = pa.array(["x", "y"], pa.string_view())
    cells = {
        "bad": (pa.array([b"a\xff", b"b"]).view(pa.string()), ["a\ufffd", "b"]),
        "uuid": (pa.array([b"\xff" * 16] * 2, pa.uuid()), [f"{'/' * 21}w=="] * 2),
        "bytes": (pa.array([b"a text", b"\0\0"]), ["a text", "AAA="]),
        "view": (pa.array([[1], None], pa.list_view(pa.int64())), [[1], None]),
        "interval": (pa.array([(1, 2, 3), None], pa.month_day_nano_interval()), [[1, 2, 3], None]),
        "seconds": (pa.array([1, None], pa.timestamp("s")), ["1970-01-01T00:00:01", None]),
        "half": (pa.array([1.5, None], pa.float16()), [1.5, None]),
        "runs": (pa.RunEndEncodedArray.from_arrays([2], ["r"]), ["r", "r"]),
        "either": (
            pa.UnionArray.from_sparse(pa.array([0, 1], pa.int8()), [pa.array([1, 2]), texts]),
            [1, "y"],
        ),
    }
    cells["named"] = (cells["seconds"][0].dictionary_encode(), cells["seconds"][1])
    table = pa.table({"text": texts, **{name: column for name, (column, _) in cells.items()}})
    create_table = pa.ipc.new_file if kind == "file" else pa.ipc.new_stream
    with create_table(str(tmp_path / "s.arrow"), table.schema) as writer:
        writer.write_table(table)
    source = replace(WEB, path="*.arrow")
    (shard,) = find_shards(source, folder=tmp_path, known={})
    found = [row.value for row in rows_of(shard, source)]
    assert [value.pop("text") for value in found] == ["x", "y"]
    assert found == [{name: told[n] for name, (_, told) in cells.items()} for n in (0, 1)]
    assert json.loads(json.dumps(found)) == found


def test_two_columns_of_one_name_are_refused_and_not_halved(place):
    table = pa.table([["i"], [place.quiet(0)], [1], [2]], names=["id", "text", "x", "x"])
    source = replace(WEB, name="tab", path="tab/*.parquet")
    with pytest.raises(CorpusError, match=r"s\.parquet: found two columns called 'x'"):
        place.put({"s.parquet": table}, source)


def test_two_fields_of_one_name_in_a_struct_are_refused(place):
    twice = pa.StructArray.from_arrays([pa.array(["a"]), pa.array(["b"])], ["x", "x"])
    more = pa.ListArray.from_arrays([0, 1], twice)
    table = pa.table({"id": ["i"], "text": [place.quiet(0)], "more": more})
    source = replace(WEB, name="tab", path="tab/*.parquet")
    with pytest.raises(CorpusError, match=r"s\.parquet: found two columns called 'x'"):
        place.put({"s.parquet": table}, source)


def test_a_cut_row_of_a_table_keeps_its_other_columns(place):
    odd = odd_table()
    table = pa.table(
        {
            "id": ["a", "b"],
            "text": [f"{place.quiet(0)} {place.leaks[0]}", place.quiet(1)],
            **{name: column for name, (column, _) in odd.items()},
        }
    )
    place.put({"s.parquet": table}, replace(WEB, name="tab", path="tab/*.parquet"))
    cut = replace(DOLMA, name="cut", cut="spans", mask="[…]")
    first, second = (json.loads(line) for line in place.lines("s.parquet.jsonl.zst", cut))
    assert first["text"] == f"{place.quiet(0)} […]"
    assert {name: first[name] for name in odd} == {name: told for name, (_, told) in odd.items()}
    assert second["text"] == place.quiet(1)
    assert verify(place.builder(cut), cut).problems == []


# What reads them ----------------------------------------------------------------------------------


def dolma_mixed(documents, attributes, names):
    """Documents without those that have an attribute of these names, line by line."""
    for line, of_line in zip(documents, attributes, strict=True):
        row, told = json.loads(line), json.loads(of_line)
        assert row["id"] == told["id"]
        assert isinstance(row["text"], str)
        assert isinstance(row["source"], str)
        spans = [span for name in names for span in told["attributes"].get(name, ())]
        assert all(0 <= start < stop <= len(row["text"]) for start, stop, _ in spans)
        if not spans:
            yield line


@pytest.mark.parametrize("kind", ["lines", "table"])
def test_attributes_applied_to_all_documents_give_the_clean_ones(place, kind):
    rng = random.Random(2)
    rows = []
    for n in range(60):
        leak = f" {rng.choice(place.leaks)}" if rng.random() < 0.2 else ""
        rows.append({"id": n, "text": f"{place.quiet(n)}é{leak}", "license": rng.choice("ab")})
    rows[4]["id"] = "text"
    if kind == "table":
        rows = pa.table({name: [str(row[name]) for row in rows] for name in rows[0]})
    source = replace(WEB, path="web/**/*.*")
    name = "x/s.parquet" if kind == "table" else "x/s.jsonl.zst"
    place.put({name: rows}, source)
    stem = "x/s.parquet.jsonl" if kind == "table" else "x/s.jsonl"
    licenses = Licenses(fields=("license",), allow=("a",))
    tags = replace(TAGS, licenses=licenses)
    all_of_it = place.lines(f"{stem}.zst", Mixture(name="all", take="everything", write="dolma"))
    told = gzip.decompress((place.build(tags) / f"{stem}.gz").read_bytes()).splitlines()
    clean = place.lines(f"{stem}.zst", replace(DOLMA, licenses=licenses))
    assert [*dolma_mixed(all_of_it, told, ["tags__leak", "tags__license"])] == clean
    assert 10 < len(clean) < 50


def priced_table(place, n=4):
    """Rows with numbers and times in front of a text, and a leak in one of the texts."""
    texts = [place.quiet(at) + (f" {place.leaks[0]}" if at == 2 else "") for at in range(n)]
    return pa.table(
        {
            "id": [f"d{at}" for at in range(n)],
            "quality": pa.array([Decimal("0.8731")] * n, pa.decimal128(12, 4)),
            "seen": pa.array([0] * n, pa.timestamp("us", "UTC")),
            "text": texts,
            "crawled": pa.array([0] * n, pa.date32()),
        }
    )


def test_what_is_no_text_in_a_table_is_no_text_of_its_documents(place):
    table = priced_table(place)
    place.put({"s.parquet": table}, Source(name="tab", path="tab/*.parquet", id="id"))
    texts = table["text"].to_pylist()
    everything = replace(DOLMA, name="all", take="everything")
    lines = [*map(json.loads, place.lines("s.parquet.jsonl.zst", everything))]
    assert [line["text"] for line in lines] == texts
    assert [line["quality"] for line in lines] == ["0.8731"] * 4
    assert place.table()["text"].to_pylist() == [*texts[:2], texts[3]]
    told = gzip.decompress((place.build(TAGS) / "s.parquet.jsonl.gz").read_bytes()).splitlines()
    spans = [json.loads(line)["attributes"].get("tags__leak", []) for line in told]
    (start, _, _), *_, (_, stop, _) = spans[2]
    assert texts[2][start:stop] == place.leaks[0]
    for mixture in (everything, PARQUETS, TAGS):
        place.build(mixture)
        assert verify(place.builder(mixture), mixture).problems == []


def test_verify_finds_attributes_that_are_not_where_the_leaks_are(place):
    place.put({"s.parquet": priced_table(place)}, replace(WEB, name="tab", path="tab/*.parquet"))
    folder = place.build(TAGS)
    path = folder / "s.parquet.jsonl.gz"
    lines = [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]
    (span, *_) = lines[2]["attributes"]["tags__leak"]
    lines[2]["attributes"]["tags__leak"] = [[span[0] + 1, span[1], span[2]]]
    path.write_bytes(gzip.compress("".join(json.dumps(line) + "\n" for line in lines).encode()))
    manifest = read_json(manifest_of(folder))
    manifest["shards"][0] |= {"output": hash_file(path), "n_bytes": path.stat().st_size}
    write_json(manifest_of(folder), manifest)
    (problem, *_) = verify(place.builder(TAGS), TAGS).problems
    assert "s.parquet.jsonl.gz: row 2 of the shard" in str(problem)
    assert "no attribute for characters" in str(problem)
    assert "`decon-assets run` builds it again" in str(problem)


def test_verify_makes_the_detectors_for_attributes_once(place, monkeypatch):
    leaky = [{"id": f"a{n}", "text": f"{place.quiet(n)} {place.leaks[0]}"} for n in range(2)]
    place.put({"a/s.jsonl": leaky[:1], "b/s.jsonl": leaky[1:]})
    place.build(TAGS)
    made = []

    def rescan(*given, **more):
        made.append(Rescan(*given, **more))
        return made[-1]

    monkeypatch.setattr(positions, "Rescan", rescan)
    assert verify(place.builder(TAGS), TAGS).problems == []
    assert len(made) == 1


def test_verify_finds_a_leak_that_is_elsewhere_in_the_document(place, monkeypatch):
    """Not so if the document that is written has the text as it was scanned."""
    place.put({"s.parquet": priced_table(place)}, replace(WEB, name="tab", path="tab/*.parquet"))
    place.build(TAGS)
    shifted = property(lambda row: {**row.value, "text": f"2024-01-01 {row.value['text']}"})
    monkeypatch.setattr(Row, "scanned", shifted)
    (problem, *_) = verify(place.builder(TAGS), TAGS).problems
    assert "no text of quiz" in str(problem)


@pytest.fixture
def load(tmp_path, monkeypatch):
    """Loads a folder as Hugging Face's package does, without a network."""
    datasets = pytest.importorskip("datasets")
    monkeypatch.setattr("datasets.config.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("datasets.config.HF_DATASETS_OFFLINE", True)
    return lambda folder: datasets.load_dataset(str(folder), cache_dir=str(tmp_path / "cache"))


def test_a_mixture_in_parquet_loads_as_a_data_set(place, load):
    rows = [{"id": f"a{n}", "text": place.quiet(n), "n": n} for n in range(9)]
    rows[3]["text"] += " " + place.leaks[0]
    first = place.put({"a/s.jsonl.zst": rows, "b/s.jsonl": [rows[3]]})
    second = place.put(
        {"c.jsonl": [{"text": place.leaks[1], "id": "x"}, {"text": "ok", "id": "y"}]}
    )
    folder = place.build(PARQUETS, first).parent
    assert load(folder)["train"].num_rows == 8  # the other pack is not there yet
    place.build(PARQUETS, second)
    loaded = load(folder)
    assert [*loaded] == ["train"]
    train = loaded["train"]
    assert train.column_names == ["id", "text", "source", "messages", "metadata"]
    assert train.num_rows == 9
    assert [*train["text"]] == [*(r["text"] for r in rows if r["id"] != "a3"), "ok"]
    assert [json.loads(told) for told in train["metadata"]][:2] == [{"n": 0}, {"n": 1}]
    assert verify(place.builder(PARQUETS), PARQUETS).problems == []


CHAT = Source(name="chat", path="chat/*.jsonl", messages="turns", id="id")


def test_conversations_have_their_turns_in_a_column_where_these_are_plain(place, load):
    plain = [{"role": "user", "content": place.quiet(0)}, {"role": "bot", "content": "ja é"}]
    rows = [
        {"id": "plain", "turns": plain, "lang": "de"},
        {"id": "named", "turns": [{**plain[0], "name": "x"}]},
        {"id": "parts", "turns": [{"role": "u", "content": [{"type": "text", "text": "p"}]}]},
        {"id": "other", "turns": [{"from": "u", "value": "v"}]},
        {"id": "leak", "turns": [*plain, {"role": "bot", "content": place.leaks[0]}]},
    ]
    place.put({"s.jsonl": rows}, CHAT)
    cut = replace(PARQUETS, cut="turns")
    made = place.table(mixture=cut).to_pylist()
    assert [row["messages"] for row in made] == [plain, None, None, None, plain]
    assert [row["text"] for row in made] == [
        f"{place.quiet(0)}\n\nja é",
        place.quiet(0),
        "p",
        "v",
        f"{place.quiet(0)}\n\nja é",
    ]
    assert [json.loads(row["metadata"]) for row in made] == [
        {"lang": "de"},
        *({"turns": row["turns"]} for row in rows[1:4]),
        {},
    ]
    assert verify(place.builder(cut), cut).problems == []
    assert load(place.build(cut).parent)["train"][0]["messages"] == plain
    lines = replace(DOLMA, cut="turns")
    assert [json.loads(line)["turns"] for line in place.lines(mixture=lines)] == [
        *(row["turns"] for row in rows[:4]),
        plain,
    ]
    assert verify(place.builder(lines), lines).problems == []


QUIET = "and nothing else was said"


def test_pairs_of_texts_keep_their_fields_and_count_as_they_did(place):
    source = Source(name="pairs", path="pairs/*.jsonl", text=("prompt", "chosen"))
    rows = [
        {"prompt": place.quiet(0), "chosen": place.quiet(1), "rejected": "r"},
        {"prompt": place.quiet(2), "chosen": f"{place.leaks[0]} {QUIET}", "rejected": "r"},
        {"prompt": "", "chosen": [{"role": "u", "content": place.quiet(3)}], "rejected": "r"},
    ]
    place.put({"s.jsonl": rows}, source)
    for mixture in (
        replace(DOLMA, cut="spans", mask="-"),
        replace(PARQUETS, cut="spans", mask="-"),
    ):
        assert verify_built(place, mixture).n_documents == 3
    made = place.table(mixture=replace(PARQUETS, cut="spans", mask="-")).to_pylist()
    assert [row["id"] for row in made] == ["s.jsonl:0", "s.jsonl:1", "s.jsonl:2"]
    assert json.loads(made[1]["metadata"]) == {**rows[1], "chosen": f"- {QUIET}"}


@pytest.mark.parametrize("write", ["dolma", "parquet"])
def test_hidden_text_is_counted_apart_from_the_text_that_is_read_again(place, write):
    source = Source(name="tasks", path="tasks/*.jsonl", id="id")
    answers = [place.quiet("own", 12), place.leaks[0], place.quiet("other", 12)]
    rows = [
        {"id": f"{n}", "prompt": place.quiet(n), "reward_model": {"ground_truth": answer}}
        for n, answer in enumerate(answers)
    ]
    rows[2]["prompt"] += f" {place.leaks[1]}"
    pack = place.put({"s.jsonl": rows}, source)
    for take, n_documents, n_leaks in ("clean", 1, 0), ("everything", 3, 2), ("leaks", 2, 2):
        mixture = Mixture(name=take, write=write, take=take)
        found = verify_built(place, mixture)
        assert (found.n_documents, found.n_leaks) == (n_documents, n_leaks)
        (account,) = read_json(manifest_of(place.build(mixture, pack)))["shards"]
        assert found.n_tokens == account["n_tokens_out"]
        assert account["n_hidden_tokens"] >= 12 * n_documents


def verify_built(place, mixture):
    for pack in place.packs:
        place.build(mixture, pack)
    found = verify(place.builder(mixture), mixture)
    assert found.problems == []
    return found


# Mixtures -----------------------------------------------------------------------------------------


def test_in_any_layout_are_the_documents_that_shards_would_hold(place):
    texts = [place.quiet(n) + (f" {place.leaks[n % 2]}" if n % 6 == 0 else "") for n in range(40)]
    rows = [json.dumps({"text": text, "n": 1}).encode() + b"\n" for text in texts]
    pack = place.put({"s.jsonl": [*rows[:20], b"\n", *rows[20:]], "t.jsonl": []})

    def account_of(name):
        share = place.bench.store.mixture(name, pack.name)
        totals = json.loads(manifest_of(share).read_text())["totals"]
        return {**totals, "n_bytes": None}, removed_in(share)  # the bytes are of the files

    for mixture in (
        CLEAN,
        replace(CONTROL, seed=1),
        Mixture(name="cut", cut="spans"),
        Mixture(name="leaks", take="leaks"),
        Mixture(name="everything", take="everything"),
    ):
        whole = replace(mixture, name="whole", write="shards")
        shards = find_shards(replace(WEB, path="*.jsonl"), folder=place.build(whole), known={})
        expected = [row.text for shard in shards for row in read_shard(shard, WEB)]
        totals, removed = account_of("whole")
        for write in ("dolma", "parquet"):
            made = replace(mixture, name=f"{mixture.name}-{write}", write=write)
            found = verify_built(place, made)
            if write == "dolma":
                texts = [json.loads(line)["text"] for line in place.lines(mixture=made)]
            else:
                texts = place.table(mixture=made)["text"].to_pylist()
            assert texts == expected
            assert found.n_documents == len(expected) > 0
            totals_of_made, removed_of_made = account_of(made.name)
            assert totals_of_made == totals
            assert removed_of_made.equals(removed)


def test_a_document_that_was_tampered_with_is_found_out(place):
    rows = [{"id": f"{n}", "text": place.quiet(n)} for n in range(5)]
    place.put({"s.jsonl": rows})
    rows[2]["text"] += f" {place.leaks[1]}"
    for mixture in (DOLMA, PARQUETS):
        tamper_with(place, mixture, rows)


def tamper_with(place, mixture, rows):
    """Put other rows into a mixture; verification must say so."""
    assert verify_built(place, mixture).n_leaks == 0
    folder = place.build(mixture)
    if mixture.write == "dolma":
        path = folder / "s.jsonl.zst"
        with create(path, ".zst") as out:
            out.write(b"".join(json.dumps(row).encode() + b"\n" for row in rows))
    else:
        path = folder / "s.parquet"
        made = pq.read_table(path).set_column(1, "text", [[row["text"] for row in rows]])
        pq.write_table(made, path)
    assert [problem.found for problem in faults_in(folder)] == ["checksum mismatch"]
    # With the bytes entered into the account, only a scan can tell.
    manifest = read_json(manifest_of(folder))
    account = manifest["shards"][0]
    account["output"], account["n_bytes"] = hash_file(path), path.stat().st_size
    write_json(manifest_of(folder), manifest)
    found = verify(place.builder(mixture), mixture)
    said = [problem.found for problem in found.problems]
    assert found.n_leaks == 1
    assert any("a leak of quiz" in one for one in said)
    assert any("documents, " in one for one in said)


def test_verify_names_the_file_that_is_missing_or_differs(place):
    pack = place.put({"s.jsonl": [{"id": "a", "text": "t"}], "t.jsonl": [{"text": "t"}]})
    folder = place.build(CLEAN)
    manifest, card = manifest_of(folder), folder.parent / CARD
    as_built = {path: path.read_bytes() for path in (folder / "s.jsonl", manifest, card)}

    def found_by_verify(builder):
        return [(problem.where, problem.found) for problem in verify(builder, CLEAN).problems]

    (folder / "s.jsonl").write_bytes(b"{}\n")
    (folder / "t.jsonl").rename(folder.parent.parent / "t.jsonl")
    assert found_by_verify(place.builder()) == [
        (str(folder / "s.jsonl"), "checksum mismatch"),
        (str(folder / "t.jsonl"), "the file is missing"),
    ]
    (folder.parent.parent / "t.jsonl").rename(folder / "t.jsonl")
    for path, found in (
        (manifest, "the manifest is damaged"),
        (card, "it does not match the manifests"),
    ):
        for written, content in as_built.items():
            written.write_bytes(content)
        path.write_bytes(b"")
        assert found_by_verify(place.builder()) == [(str(path), found)]
    card.unlink()
    assert found_by_verify(place.builder()) == [(str(card), "the file is missing")]
    place.build(CLEAN, pack)
    looser = replace(place.builder(), policy=replace(DECON, contamination_score_threshold=0.7))
    ((where, found),) = found_by_verify(looser)
    assert where == str(folder)
    assert found == "built from other shards, benchmarks or settings than the current ones"


def test_a_file_beside_the_packs_of_a_mixture_is_found(place):
    place.put({"s.jsonl": [{"id": "a", "text": "t"}]})
    file = place.build(DOLMA).parent / "top.jsonl"
    file.write_bytes(b"{}")
    (problem,) = verify(place.builder(), DOLMA).problems
    assert (problem.where, problem.found) == (str(file), "no manifest lists this file")
    inspection = inspect_changed_mixtures(place.bench.store, [DOLMA], place.packs)
    assert inspection.problems == [problem]


def test_names_that_would_be_one_name_are_refused(place):
    place.put({name: [{"id": "a", "text": "t"}] for name in ("s.jsonl", "s.jsonl.zst")})
    for mixture in (DOLMA, PARQUETS):
        with pytest.raises(CorpusError, match="documents would get the same file name"):
            place.build(mixture)


def test_folders_that_are_named_like_files_do_not_mix_shards_up(place):
    shards = {f"x.jsonl.d/{name}.jsonl": [{"id": name, "text": name}] for name in "ab"}
    place.put(shards, replace(WEB, path="web/*/*"))
    for name in "ab":
        (line,) = place.lines(f"x.jsonl.d/{name}.jsonl.zst")
        assert json.loads(line)["id"] == name


def test_one_process_and_two_write_the_same_bytes_and_the_same_card(place, tmp_path, monkeypatch):
    monkeypatch.setattr(workers_module, "_BYTES_PER_WORKER", 1)
    for pack in range(3):
        rows = [
            {"id": n, "text": place.quiet((pack, n)) + f" {place.leaks[0]}" * (n % 7 == 0)}
            for n in range(30)
        ]
        place.put({f"{pack}.jsonl": rows})
    found = []
    for workers in (1, 2):
        mixtures = [PARQUETS, DOLMA]
        wanted = [(mixture, pack) for mixture in mixtures for pack in place.packs]
        for *_, future in build_shares(place.builder(), wanted, workers=workers):
            future.result()
        root = place.bench.store.root
        roots = [root / name for name in ("mixtures", "manifests")]
        files = [path for one in roots for path in one.rglob("*") if path.is_file()]
        found.append({path.relative_to(root): path.read_bytes() for path in files})
        for mixture in mixtures:
            assert verify(place.builder(), mixture).problems == []
        for one in roots:
            one.rename(tmp_path / f"{one.name}-{workers}")
    assert found[0] == found[1]
    assert len(found[0]) == 2 * 3 * 3 + 2


def test_a_large_table_is_written_in_groups_of_bounded_size(place, monkeypatch):
    place.put({"s.jsonl": [{"id": str(n), "text": place.quiet(n)} for n in range(50)]})
    monkeypatch.setattr("decon_core.mixtures.layouts._GROUP_ROWS", 20)
    path = place.build(PARQUETS) / "s.parquet"
    groups = pq.ParquetFile(path).metadata
    assert [groups.row_group(n).num_rows for n in range(groups.num_row_groups)] == [20, 20, 10]
    assert pq.read_table(path)["id"].to_pylist() == [str(n) for n in range(50)]


# The card -----------------------------------------------------------------------------------------


def front(card):
    return yaml.safe_load(card.split("---\n")[1])


def test_a_card_says_what_the_mixture_is_and_what_it_lost(place):
    rows = [{"id": n, "text": place.quiet(n), "license": "MIT"} for n in range(8)]
    rows[1]["text"] = place.leaks[0]
    rows[2]["license"] = "GPL-3.0"
    first = place.put({"s.jsonl": rows})
    second = place.put({"t.jsonl": [{"id": "x", "text": place.leaks[1], "license": "MIT"}]})
    licenses = Licenses(fields=("license",), allow=("MIT",))
    mixture = replace(PARQUETS, licenses=licenses)
    card = (place.build(mixture, first).parent / CARD).read_text()
    assert "1 of 2 packs" in card
    card = (place.build(mixture, second).parent / CARD).read_text()
    assert "2 of 2 packs" in card
    head = front(card)
    assert head["license"] == "mit"
    assert head["size_categories"] == ["n<1K"]
    (files,) = head["configs"][0]["data_files"]
    assert files["path"] == [f"{pack.name}/**" for pack in place.packs]
    n_tokens = 7 * 40 + 38
    assert f"| web | 9 | 6 | {n_tokens + 38} | 240 |" in card
    assert "leak: 2; license: 1" in card
    assert (
        f"| detector decon | 2 | {percent(2 / 9)} | 76 | {percent(76 / (n_tokens + 38))} |" in card
    )
    assert f"| benchmark quiz | 2 | {percent(2 / 9)} |" in card
    assert f"| quiz | {place.versions[0].fingerprint} |" in card
    assert "| decon | 0.8 |" in card
    assert json.loads(manifest_of(place.build(mixture)).read_text())["term_weights"] in card


def test_a_card_says_where_benchmark_items_are_and_counts_them_where_they_went(place):
    rows = [{"id": n, "text": place.quiet(n)} for n in range(9)]
    rows[1]["text"] += f" {place.leaks[0]}"
    place.put({"s.jsonl": rows})
    for mixture, said in (
        (replace(PARQUETS, cut="spans", mask="[x]"), "Each removed span is replaced by `[x]`"),
        (replace(PARQUETS, take="leaks"), "the documents that contain benchmark items, and no"),
        (replace(PARQUETS, take="everything"), "was not checked against any benchmark"),
        (CONTROL, "The other mixture is `clean`; the seed is 0"),
    ):
        card = (place.build(mixture).parent / CARD).read_text()
        assert said in card
        assert ("## What leaked" in card) == (mixture.take == "clean")
        assert verify(place.builder(mixture), mixture).problems == []


def test_a_card_names_a_license_only_where_there_is_one(place):
    place.put({"s.jsonl": [{"id": 1, "text": "t", "l": "MIT"}]})
    for licenses, name in (
        (None, "other"),
        (Licenses(fields=("l",), allow=("CC-BY-4.0",)), "cc-by-4.0"),
        (Licenses(fields=("l",), allow=("CC-BY-4.0",), unknown="keep"), "other"),
        (Licenses(fields=("l",), allow=("CC-*",)), "other"),
        (Licenses(fields=("l",), allow=("MIT", "0BSD")), "other"),
        (Licenses(fields=("l",), deny=("GPL-3.0",)), "other"),
    ):
        folder = place.build(replace(PARQUETS, licenses=licenses)).parent
        assert front((folder / CARD).read_text())["license"] == name


def test_packs_that_are_built_side_by_side_end_up_on_one_card(place, monkeypatch):
    first, second = (place.put({f"{n}.jsonl": [{"id": n, "text": "t"}]}) for n in range(2))
    card_of, pending = builder_module.card_of, [second]

    def while_another_is_built(*args, **options):
        text = card_of(*args, **options)
        if pending:  # between looking and writing
            place.build(PARQUETS, pending.pop())
        return text

    monkeypatch.setattr(builder_module, "card_of", while_another_is_built)
    path = place.build(PARQUETS, first).parent / CARD
    assert listing_of(path).packs == {first.name, second.name}
    assert verify(place.builder(), PARQUETS).problems == []


def test_a_card_that_is_not_that_of_its_packs_is_found_out_and_mended(place):
    first, second = (place.put({f"{n}.jsonl": [{"id": n, "text": "t"}]}) for n in range(2))
    for pack in place.packs:
        path = place.build(PARQUETS, pack).parent / CARD
    good = path.read_text()
    path.write_text(good.replace("2 of 2", "3 of 3"))
    (problem,) = verify(place.builder(), PARQUETS).problems
    assert problem.found == "it does not match the manifests"
    assert build_mixture(place.builder(), PARQUETS, first).was_there
    assert path.read_text() == good
    # A process that was killed before it wrote the card; a pack that is not there any more.
    for wrong in (
        "",
        good.replace(second.name, "gone-0001"),
        good.replace("<!-- packs:", "<!-- packs: gone-0001"),
    ):
        path.write_text(wrong)
        assert not place.builder().is_current(PARQUETS, second)
        assert build_mixture(place.builder(), PARQUETS, second).was_there
        assert path.read_text() == good
        assert place.builder().is_current(PARQUETS, second)


def test_a_card_tells_of_packs_of_one_kind_only(place):
    first, second = (place.put({f"{n}.jsonl": [{"id": n, "text": "t"}]}) for n in range(2))
    path = place.build(PARQUETS, first).parent / CARD
    place.build(PARQUETS, second)
    place.bench.policy = replace(place.bench.policy, contamination_score_threshold=0.7)
    place.build(PARQUETS, first)
    assert listing_of(path).packs == {first.name}


@pytest.mark.parametrize("changed", [{"common_share": 0.4}, {"contamination_score_threshold": 0.7}])
def test_a_card_tells_of_packs_that_a_changed_setting_does_not_concern(place, changed):
    everything = Mixture(name="everything", take="everything")
    first, second = (place.put({f"{n}.jsonl": [{"id": n, "text": "t"}]}) for n in range(2))
    path = place.build(everything, first).parent / CARD
    place.bench.policy = replace(place.bench.policy, **changed)
    place.build(everything, second)
    assert listing_of(path).packs == {first.name, second.name}
    builder = place.builder(everything)
    assert builder.current_packs(everything) == {first.name, second.name}
    assert verify(builder, everything).problems == []
    assert build_mixture(builder, everything, first).was_there
    shard = path.parent / second.name / "1.jsonl"
    shard.write_bytes(shard.read_bytes()[::-1])  # replaced by a builder of this pack alone
    assert not build_mixture(builder, everything, second).was_there
    assert listing_of(path).packs == {first.name, second.name}


@contextmanager
def files_counted(monkeypatch):
    """Count how often cards and manifests are opened, and folders listed."""
    counts = Counter()
    real_open, real_listdir = io.open, os.listdir

    def counting_open(file, mode="r", *args, **options):
        for name in (CARD, "manifest.json"):
            counts[f"{name} read"] += Path(file).name == name and mode in ("r", "rb")
            counts[f"{name} written"] += Path(file).name.startswith(f".{name}.") and mode == "wb"
        return real_open(file, mode, *args, **options)

    def counting_listdir(*args):
        counts["folder listed"] += 1
        return real_listdir(*args)

    with monkeypatch.context() as patch:
        patch.setattr(io, "open", counting_open)
        patch.setattr(os, "listdir", counting_listdir)
        yield counts


def build_packs(place, packs):
    for *_, future in build_shares(place.builder(), [(PARQUETS, pack) for pack in packs]):
        future.result()


def test_a_card_is_not_read_and_written_again_for_each_pack(place, monkeypatch):
    """Neither when all shares are asked about, nor when all are replaced."""
    for n_packs in (2, 6):
        for n in range(len(place.packs), n_packs):
            place.put({f"{n}.jsonl": [{"id": n, "text": "t"}]})
        build_packs(place, place.packs)
        with files_counted(monkeypatch) as counts:
            current = place.builder().current_packs(PARQUETS)
        assert current == {pack.name for pack in place.packs}
        listings = {"folder listed": n_packs + 2, "manifest.json read": n_packs}
        assert +counts == {f"{CARD} read": 1, **listings}
        monkeypatch.setattr(builder_module, "_FORMAT", f"for {n_packs} packs")
        with files_counted(monkeypatch) as counts:
            build_packs(place, place.packs)
        assert counts[f"{CARD} written"] == 3  # without the shares, with the first, with all
        assert counts[f"{CARD} read"] == 2 * 3 + n_packs
        assert counts["manifest.json read"] == 2 * n_packs
        assert verify(place.builder(), PARQUETS).problems == []


def test_after_a_kill_the_card_lists_no_share_that_was_to_be_replaced(place, monkeypatch):
    first, second, other = (place.put({f"{n}.jsonl": [{"id": n, "text": "t"}]}) for n in range(3))
    build_packs(place, place.packs)
    path = place.bench.store.mixtures(PARQUETS.name) / CARD
    monkeypatch.setattr(builder_module, "_FORMAT", "another")

    def dies(_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("decon_core.mixtures.build.withdraw", dies)
        with pytest.raises(KeyboardInterrupt):
            build_packs(place, [first, second])
    assert listing_of(path).packs == {other.name}
    build_packs(place, place.packs)
    assert verify(place.builder(), PARQUETS).problems == []


def test_a_share_that_could_not_be_replaced_is_back_on_the_card(place, monkeypatch):
    first, second = (place.put({f"{n}.jsonl": [{"id": n, "text": "t"}]}) for n in range(2))
    build_packs(place, place.packs)
    path = place.bench.store.mixtures(PARQUETS.name) / CARD
    monkeypatch.setattr(builder_module, "_FORMAT", "another")
    Path(second.shards[0].path).unlink()
    wanted = [(PARQUETS, pack) for pack in place.packs]
    listed = [
        (future.exception() is None, listing_of(path).packs)
        for *_, future in build_shares(place.builder(), wanted)
    ]
    assert listed == [(True, {first.name}), (False, {first.name})]
    assert listing_of(path).packs == {first.name, second.name}
    assert place.builder().current_packs(PARQUETS) == {first.name}


def test_a_source_that_is_not_taken_has_a_share_without_files_and_is_not_on_the_card(place, load):
    place.put({"s.jsonl": [{"id": 1, "text": "t"}]})
    other = place.put({"s.jsonl": [{"id": 2, "text": "u"}]}, replace(WEB, name="b", path="b/*"))
    chosen = replace(PARQUETS, sources=("web",))
    verify_built(place, chosen)
    assert place.builder(chosen).is_current(chosen, other)
    assert [*load(place.build(chosen).parent)["train"]["text"]] == ["t"]


def test_what_documents_say_is_what_was_scanned(place):
    """The document of a line in Dolma's layout is that of the row that it was made of."""
    rows = [{"id": n, "a": f"x{n}", "b": "" if n % 2 else "y"} for n in range(4)]
    source = replace(WEB, text=("a", "b"))
    place.put({"s.jsonl": rows}, source)
    for row, line in zip(rows, place.lines(), strict=True):
        there = document_of(row, 0, source)
        here = document_of(json.loads(line), 0, WEB)
        assert isinstance(there, Document)
        assert (here.text, here.id) == (there.text, there.id)
        assert Path(place.packs[0].shards[0].path).is_file()
