"""Clean data that loads: the kept rows, by the loaders that people have, and nothing else."""

import gzip
import importlib
import json
import shutil
from dataclasses import replace

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest
import yaml
import zstandard

from decon_core.config.mixtures import Mixture
from decon_core.config.policy import Policy
from decon_core.config.sources import Source
from decon_core.mixtures.card import CARD, listing_of
from decon_core.mixtures.loading import columns_of, merged
from decon_core.mixtures.verify import verify
from tests.core.places import CLEAN, Place, manifest_of
from tests.core.trainer_tokenizers import byte_level

FORMS = (".jsonl", ".jsonl.gz", ".jsonl.zst", ".parquet", ".arrow")
SUFFIXES = {"dolma": ".jsonl.zst", "parquet": ".parquet", "mask": ".parquet"}
MIXTURES = {
    "clean": CLEAN,
    "control": Mixture(name="control", take="control", control_of="clean"),
    "leaks": Mixture(name="leaks", take="leaks"),
    "everything": Mixture(name="everything", take="everything"),
    "spans": Mixture(name="spans", cut="spans"),
}


@pytest.fixture
def load(tmp_path, monkeypatch):
    """Loads a folder as Hugging Face's package does, without a network."""
    datasets = pytest.importorskip("datasets")
    monkeypatch.setattr("datasets.config.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("datasets.config.HF_DATASETS_OFFLINE", True)

    def load(folder, *names):
        made = datasets.load_dataset(str(folder), *names, cache_dir=str(tmp_path / "cache"))
        assert [*made] == ["train"]
        return made["train"].to_list()

    return load


@pytest.fixture
def place(bench, make_words):
    bench.policy = Policy(tokenizer_str="words")
    items = [(make_words(("q", n), 30), make_words(("a", n), 8), None) for n in range(2)]
    place = Place(bench, bench.prepare({"quiz": items}))
    place.leaks = [" ".join(filter(None, item)) for item in items]
    place.quiet = lambda key: make_words(("quiet", key), 40)
    return place


def rows_of(place, key, n=6):
    """Rows of a shard, of which one is a leak and one ends with one."""
    rows = [{"id": f"{key}-{at}", "text": place.quiet((key, at)), "n": at} for at in range(n)]
    rows[1]["text"] = place.leaks[0]
    rows[3]["text"] += f" {place.leaks[1]}"
    return rows


def write(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = b"".join(json.dumps(row).encode() + b"\n" for row in rows)
    if path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
    elif path.suffix == ".arrow":
        table = pa.Table.from_pylist(rows)
        with pa.ipc.new_file(path, table.schema) as out:
            out.write_table(table)
    else:
        pack = {".gz": gzip.compress, ".zst": zstandard.compress}.get(path.suffix, bytes)
        path.write_bytes(pack(lines))


def put(place, shards, *, name="web", **settings):
    """Shards of any format (rows by name) as a pack of a source."""
    for file, rows in shards.items():
        write(place.bench.folder / name / file, rows)
    settings = {"text": "text", "id": "id", **settings}
    return place.put({}, source=Source(name=name, path=f"{name}/**/*.*", **settings), name=name)


def built(place, mixture):
    place.scan()
    for pack in place.packs:
        folder = place.build(mixture, pack).folder
    return folder.parent


def by_glob(folder, suffix):
    """The ids of the rows below a folder, as other loaders find them with a glob."""
    pattern, columns = f"{folder}/**/*{suffix}", ["id"]
    if suffix == ".parquet":
        yield pl.scan_parquet(pattern).select(columns).collect()["id"].to_list()
        yield [row[0] for row in duckdb.sql(f"SELECT id FROM read_parquet('{pattern}')").fetchall()]
        found = pa.dataset.dataset(str(folder), format="parquet", exclude_invalid_files=True)
        yield found.to_table(columns=columns)["id"].to_pylist()
    elif suffix == ".arrow":
        yield pl.scan_ipc(pattern).select(columns).collect()["id"].to_list()
        found = pa.dataset.dataset(str(folder), format="arrow", exclude_invalid_files=True)
        yield found.to_table(columns=columns)["id"].to_pylist()
    else:
        yield pl.scan_ndjson(pattern).select(columns).collect()["id"].to_list()
        yield [row[0] for row in duckdb.sql(f"SELECT id FROM read_json('{pattern}')").fetchall()]
        if suffix != ".jsonl.zst":  # which pyarrow does not decompress
            found = pa.dataset.dataset(str(folder), format="json", exclude_invalid_files=True)
            yield found.to_table(columns=columns)["id"].to_pylist()


def kept(place, mixture, pack):
    """The ids that the list of removals leaves."""
    gone = {row["doc_id"] for row in place.removed(mixture, pack) if row["what"] == "document"}
    ids = {f"{pack.name}-{shard}-{n}" for shard in range(2) for n in range(6)}
    return ids - gone


@pytest.mark.parametrize("form", FORMS)
def test_every_loader_gives_the_rows_that_were_kept(place, load, form):
    # The names of shard and folder are those of splits.
    for source in ("test-01", "train"):
        files = (f"validation/test{form}", f"b-test-0{form}")
        pack = f"{source}-{len(place.packs):04}"
        put(place, {f: rows_of(place, f"{pack}-{n}") for n, f in enumerate(files)}, name=source)
    for mixture in MIXTURES.values():
        check(place, load, mixture, form)


def check(place, load, mixture, suffix):
    folder = built(place, mixture)
    expected = sorted(set().union(*(kept(place, mixture, pack) for pack in place.packs)))
    assert 0 < len(expected) <= 24
    assert sorted(row["id"] for row in load(folder)) == expected
    for found in by_glob(folder, suffix):
        assert sorted(found) == expected
    assert {path.suffix for path in folder.rglob("*") if path.is_file()} == {
        ".md",
        "." + suffix.rpartition(".")[2],
    }


@pytest.mark.parametrize("layout", SUFFIXES)
def test_every_loader_gives_the_rows_of_every_layout(place, load, tmp_path, layout):
    tokens = {"tokenizer": str(byte_level(tmp_path / "tokenizer.json")), "cut": "spans"}
    mixture = Mixture(name="made", write=layout, **(tokens if layout == "mask" else {}))
    for source, form in (("test-01", ".jsonl.gz"), ("train", ".parquet")):
        pack = f"{source}-{len(place.packs):04}"
        files = (f"validation/test{form}", f"b-test-0{form}")
        put(place, {f: rows_of(place, f"{pack}-{n}") for n, f in enumerate(files)}, name=source)
    check(place, load, mixture, SUFFIXES[layout])


def test_turns_that_were_cut_are_not_loaded(place, load):
    turns = [{"role": "user", "content": place.quiet(0)}]
    leak = [*turns, {"role": "user", "content": place.leaks[0]}]
    rows = [{"id": "a", "messages": turns}, {"id": "b", "messages": leak}]
    put(place, {"test.jsonl": rows}, text=None, messages="messages")
    folder = built(place, Mixture(name="cut", cut="turns"))
    assert load(folder) == [rows[0], {"id": "b", "messages": turns}]


def test_attributes_say_that_they_are_no_documents(place):
    put(place, {"test.jsonl": rows_of(place, "a")})
    mixture = Mixture(name="tags", write="attributes")
    card = (built(place, mixture) / CARD).read_text()
    assert "This folder contains no documents" in card
    assert "configs" not in head_of(card)
    assert verify(place.builder(mixture), mixture).problems == []


def head_of(card):
    return yaml.safe_load(card.split("---\n")[1])


# Tables that do not fit together ------------------------------------------------------------------


def test_columns_that_a_file_lacks_are_null(place, load):
    rows = rows_of(place, "a")[:1]
    more = [{**rows[0], "id": "b", "meta": {"tags": ["x"], "score": 0.5}}]
    put(place, {"a.jsonl": [{**rows[0], "meta": None}], "b.jsonl.zst": more})
    put(place, {"c.jsonl": [{"id": "c", "text": place.quiet(9)}]}, name="other")
    folder = built(place, CLEAN)
    loaded = load(folder)
    assert [row["id"] for row in loaded] == ["c", "a-0", "b"] or len(loaded) == 3
    by_id = {row["id"]: row for row in loaded}
    assert by_id["b"] == more[0]
    assert by_id["a-0"]["meta"] is None
    assert by_id["c"] == {"id": "c", "text": place.quiet(9), "n": None, "meta": None}
    card = (folder / CARD).read_text()
    assert [one["config_name"] for one in head_of(card)["configs"]] == ["default"]
    assert "a column that a file lacks is null" in card


def test_files_of_other_columns_and_formats_are_tables_of_their_own(place, load):
    text = {n: place.quiet(n) for n in range(9)}
    put(place, {"a.parquet": [{"id": n, "text": text[n]} for n in range(3)]}, name="a")
    put(place, {"b.parquet": [{"id": "x", "text": text[4]}]}, name="b")
    lines = [{"id": 7, "text": text[7]}]
    put(place, {"c.jsonl": lines, "d.parquet": [{"id": 8, "text": text[8]}]}, name="c")
    folder = built(place, CLEAN)
    assert [row["id"] for row in load(folder)] == [0, 1, 2, 8]  # the table with the most
    card = (folder / CARD).read_text()
    names = [one["config_name"] for one in head_of(card)["configs"]]
    assert names == ["default", "a", "b", "c-1"]
    found = [row["id"] for name in names[1:] for row in load(folder, name)]
    assert "The files form more than one table" in card
    assert "| `c-2` | json | `c` | 1 |" in card
    (said,) = (line for line in card.splitlines() if line.startswith("    load_dataset("))
    settings = {
        "FOLDER": str(folder),
        "load_dataset": importlib.import_module("datasets").load_dataset,
    }
    found += [row["id"] for row in eval(said.strip(), settings)]
    assert sorted(map(str, found)) == ["0", "1", "2", "7", "8", "x"]


def test_a_shard_whose_name_loaders_skip_or_expand_is_listed(place, load):
    rows = [{"id": str(n), "text": place.quiet(n)} for n in range(4)]
    names = (".s.jsonl", "__t/[a]?.jsonl", "u*.jsonl", "v.jsonl")
    for name, row in zip(names, rows, strict=True):
        write(place.bench.folder / "web" / name, [row])
    for name, path in (("a", "web/.s*"), ("b", "web/__t/*.jsonl"), ("c", "web/*.jsonl")):
        place.put({}, source=Source(name=name, path=path, text="text", id="id"), name=name)
    assert sorted(row["id"] for row in load(built(place, CLEAN))) == ["0", "1", "2", "3"]


def test_a_format_that_the_loader_does_not_read_is_named(place, load):
    put(place, {"a.jsonl": [{"id": "a", "text": place.quiet(0)}]})
    table = pa.table({"id": ["b"], "text": [place.quiet(1)]})
    path = place.bench.folder / "other" / "b.feather"
    path.parent.mkdir()
    with pa.ipc.new_file(path, table.schema) as out:
        out.write_table(table)
    place.put({}, source=Source(name="other", path="other/*", text="text", id="id"), name="other")
    folder = built(place, CLEAN)
    assert [row["id"] for row in load(folder)] == ["a"]
    assert "- `other-0001/b.feather`" in (folder / CARD).read_text()


def test_a_file_that_the_loader_may_refuse_is_named(place, load):
    lines = [json.dumps({"text": place.quiet(0), "n": "x"}), "", '{"text": "t", "n": NaN}', ""]
    path = place.bench.folder / "web" / "a.jsonl"
    path.parent.mkdir()
    path.write_text("\n".join(lines))
    put(place, {})
    folder = built(place, CLEAN)
    with pytest.raises(ValueError, match=r"Expected object or value|generating the dataset"):
        load(folder)
    assert "In 1 file (such as `web-0000/a.jsonl`)" in (folder / CARD).read_text()


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("string", "null", "string"),
        ("null", ["int64"], ["int64"]),
        ("int64", "float64", "float64"),
        ("int64", "string", None),
        ("timestamp[s]", "string", None),
        ({"a": "int64"}, {"b": ["null"]}, {"a": "int64", "b": ["null"]}),
        ({"a": ["null"]}, {"a": [{"b": "bool"}]}, {"a": [{"b": "bool"}]}),
        ({"a": "int64"}, {"a": ["int64"]}, None),
        ({"a": {"b": "string"}}, {"a": {"b": "bool"}}, None),
    ],
)
def test_columns_are_merged_where_no_value_changes(one, other, expected):
    assert merged(one, other) == merged(other, one) == expected


def test_columns_are_those_that_loaders_infer(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"a": [{"b": 1.5}], "c": null}\n{"d": "x", "e": {"f": true}}\n')
    expected = {"a": [{"b": "float64"}], "c": "null", "d": "string", "e": {"f": "bool"}}
    assert columns_of(path) == expected
    path.write_text('{"a": 1}\n{"a": {"b": 1}}\n')
    assert columns_of(path) is None
    path.write_text("")
    assert columns_of(path) == {}


# Kills --------------------------------------------------------------------------------------------


def test_data_without_its_manifest_is_no_mixture_and_is_replaced(place, load):
    """A run was killed between the renames of data and manifest."""
    first, second = (
        put(place, {"s.jsonl": rows_of(place, name)}, name=name) for name in ("first", "second")
    )
    folder = built(place, CLEAN)
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    shutil.rmtree(manifest_of(folder / second.name).parent)
    data = folder / second.name / "s.jsonl"
    data.write_bytes(data.read_bytes() * 2)
    assert not place.builder().is_current(CLEAN, first)  # the card counts a pack without manifest
    assert not place.builder().is_current(CLEAN, second)
    assert [problem.found[:11] for problem in verify(place.builder(), CLEAN).problems]
    place.build(CLEAN, first)  # of the next run, which may be killed here
    assert listing_of(folder / CARD).packs == {first.name}
    assert {row["id"][:5] for row in load(folder)} == {"first"}
    assert not place.build(CLEAN, second).was_there
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before
    assert verify(place.builder(), CLEAN).problems == []


def test_while_a_pack_is_replaced_it_is_on_no_card(place, load, monkeypatch):
    """The process dies as soon as the new data has its place."""
    first, second = (
        put(place, {"s.jsonl": rows_of(place, name)}, name=name) for name in ("first", "second")
    )
    folder = built(place, CLEAN)
    changed = replace(CLEAN, cut="spans")
    replace_folder = shutil.rmtree

    def dies(path, *args, **options):
        replace_folder(path, *args, **options)
        if path.name.startswith(".second") and path.suffix == ".old":
            raise KeyboardInterrupt

    monkeypatch.setattr("decon_core.storage.files.shutil.rmtree", dies)
    with pytest.raises(KeyboardInterrupt):
        place.build(changed, second)
    monkeypatch.undo()
    assert not manifest_of(folder / second.name).exists()
    assert second.name not in listing_of(folder / CARD).packs
    place.build(changed, first)
    place.build(changed, second)
    assert listing_of(folder / CARD).packs == {first.name, second.name}
    assert len(load(folder)) == 10
    assert verify(place.builder(changed), changed).problems == []
