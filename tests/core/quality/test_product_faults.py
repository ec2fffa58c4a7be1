"""What is wrong with clean benchmarks, sketches and neighbours is named."""

import json

import pyarrow.parquet as pq
import pytest

from decon_core.config.sources import Sketch
from decon_core.corpus.packs import FILES, changed_files, hashes_below
from decon_core.corpus.sketch.pack_sketch import build_pack_sketch, pack_key, sketch_fingerprint
from decon_core.mixtures.clean_evals import MANIFEST, TABLES_FOLDER, build_clean_benchmarks
from decon_core.quality.store_faults import faults_of_clean_benchmark, faults_of_sketch
from decon_core.scan.scanner import scan_packs
from decon_core.storage.files import read_json, write_json
from tests.core.places import Place


@pytest.fixture
def place(bench, make_words):
    items = [(make_words(n, 30), make_words(f"a{n}", 8), None) for n in range(4)]
    place = Place(bench, bench.prepare({"quiz": items}))
    place.put({"a.jsonl": [f"{items[1][0]} {items[1][1]}", make_words("other", 60)]})
    return place.scan()


def found(faults):
    return [(problem.found, problem.expected) for problem in faults]


def test_a_clean_benchmark_adds_up_until_an_item_comes_back_or_a_file_changes(place):
    store = place.bench.store
    assert found(faults_of_clean_benchmark(store, "quiz")) == []  # there is none
    (built,) = build_clean_benchmarks(place.builder(), place.versions)
    assert [one["instance_index"] for one in built.manifest["removed"]] == [1]
    assert found(faults_of_clean_benchmark(store, "quiz")) == []
    folder = store.clean_benchmark("quiz")
    table = folder / TABLES_FOLDER / "quiz.parquet"
    left = pq.read_table(table)
    changed = left.set_column(
        left.schema.get_field_index("instance_index"), "instance_index", [[0, 1, 3]]
    )
    pq.write_table(changed, table)
    assert found(faults_of_clean_benchmark(store, "quiz")) == [
        ("its content changed since it was written", ""),
        ("1 items that leaked, the first ('test', 1)", "none of them"),
    ]
    pq.write_table(left.slice(1), table)
    manifest = read_json(folder / MANIFEST)
    files = {name: one for name, one in hashes_below(folder).items() if name != MANIFEST}
    write_json(folder / MANIFEST, manifest | {FILES: files})
    assert found(faults_of_clean_benchmark(store, "quiz")) == [
        ("2 items, and 1 removed", "4 together")
    ]


def test_a_sketch_that_is_cut_off_is_named(place):
    store, policy, (pack,) = place.bench.store, place.bench.policy, place.packs
    sketch = Sketch()
    name = sketch_fingerprint(policy, sketch)
    assert found(faults_of_sketch(store, name, [pack])) == []  # there is none
    along = place.versions
    scan_packs(store, [pack], [], policy, along=along, sketch=sketch, fill_sketch=True)
    build_pack_sketch(store, name, pack)
    assert found(faults_of_sketch(store, name, [pack])) == []
    path = store.pack_sketch_rows(name, pack_key(pack))
    path.write_bytes(path.read_bytes()[:-1])
    ((problem, _),) = found(faults_of_sketch(store, name, [pack]))
    assert "size is wrong" in problem


def test_files_are_compared_with_what_was_written(tmp_path):
    (tmp_path / "a.json").write_text(json.dumps({}))
    hashes = hashes_below(tmp_path)
    assert not [*changed_files(tmp_path, hashes)]
    assert len([*changed_files(tmp_path, hashes | {"b.json": "0"})]) == 1
