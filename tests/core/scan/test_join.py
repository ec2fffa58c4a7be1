"""Scan results of a pack in one file per benchmark: the same bytes however they came about."""

import random
import shutil
from collections import Counter

import pytest

from decon_core.corpus.packs import Pack
from decon_core.errors import CorpusError
from decon_core.scan import join
from decon_core.scan import scanner as scanner_module
from decon_core.scan.coverage import missing_scan_results, uncounted
from decon_core.scan.join import join_scan_results, write_unjoined
from decon_core.scan.scan_results import COUNTED, ScanResults, digest_of
from decon_core.scan.scanner import scan_packs
from decon_core.schemas import DOCUMENTS, GRAM_COUNTS, MATCHES
from decon_core.storage.files import read_json, write_json
from decon_core.storage.store import Store
from decon_core.storage.tables import no_rows, write_parquet
from tests.scan_result_files import as_read

N_SHARDS = 6


@pytest.fixture
def scene(bench, make_words):
    """Three benchmarks, and a pack of several shards with leaks of all of them."""
    items = {
        name: [(make_words((name, n), 30), make_words((name, "a", n), 8), None) for n in range(4)]
        for name in ("first", "second", "third")
    }
    rng = random.Random(3)
    texts = {}
    for number in range(N_SHARDS):
        leaked = [items[rng.choice(list(items))][rng.randrange(4)] for _ in range(3)]
        leaks = [f"{question} {answer}" for question, answer, _ in leaked]
        texts[f"{number}.jsonl"] = [*leaks, make_words(("clean", number), 60)]
    return bench, bench.prepare(items), bench.pack(texts)


def scan(bench, packs, versions, **options):
    return scan_packs(bench.store, packs, versions, bench.policy, **options)


def files(bench):
    """Everything that later stages read of a scan."""
    root = bench.store.root / "scan_results"
    paths = [path for path in sorted(root.rglob("*")) if path.is_file()]
    return as_read({str(path.relative_to(root)): path.read_bytes() for path in paths})


def has_unjoined(bench):
    return any((bench.store.root / "unjoined").rglob("*.*"))


def part_of(pack, shards, name="part"):
    return Pack(name=name, source=pack.source, shards=tuple(shards))


def rows(bench, pack, version):
    shards = [shard.fingerprint for shard in pack.shards]
    return bench.results.matches(shards, version.fingerprint).to_pylist()


def counts(bench, pack, version):
    shards = [shard.fingerprint for shard in pack.shards]
    return gram_counts(bench.results, shards, version)


def gram_counts(results, shards, version):
    return results.gram_counts({version.fingerprint: shards})[version.fingerprint].to_pydict()


def test_a_pack_has_a_file_for_each_benchmark_and_four_for_all(scene):
    bench, versions, pack = scene
    scan(bench, [pack], versions)
    names = sorted(path.name for path in bench.store.root.glob("scan_results/*/*/*"))
    of_counts = f"{digest_of(version.fingerprint for version in versions)}{COUNTED}"
    of_matches = [f"{version.fingerprint}.parquet" for version in versions]
    of_shards = ["shards.json", "ledgers.json", "documents.parquet"]
    assert names == sorted([*of_shards, *of_matches, of_counts])
    assert not has_unjoined(bench)
    assert {row["shard"] for version in versions for row in rows(bench, pack, version)} == {
        shard.fingerprint for shard in pack.shards
    }


def test_benchmarks_that_come_later_leave_the_bytes_of_one_scan(scene):
    bench, versions, pack = scene
    scan(bench, [pack], versions)
    at_once = files(bench)
    shutil.rmtree(bench.store.root / "scan_results")
    for version in reversed(versions):
        scan(bench, [pack], [version])
    assert files(bench) == at_once


@pytest.mark.parametrize("workers", [1, 3])
def test_a_scan_that_was_interrupted_leaves_the_bytes_of_one_scan(scene, monkeypatch, workers):
    bench, versions, pack = scene
    scan(bench, [pack], versions)
    at_once = files(bench)
    shutil.rmtree(bench.store.root / "scan_results")
    n_joined = []

    def interrupted(*_):
        n_joined.append(1)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(scanner_module, "join_scan_results", interrupted)
        with pytest.raises(KeyboardInterrupt):
            scan(bench, [pack], versions, workers=workers)
    assert n_joined
    assert has_unjoined(bench)
    assert missing_scan_results(bench.results, [pack], versions)
    summary = scan(bench, [pack], versions, workers=workers)
    assert summary.n_shards_read == 0
    assert files(bench) == at_once
    assert not has_unjoined(bench)


@pytest.mark.parametrize("workers", [1, 2])
def test_the_last_progress_of_a_scan_has_all_bytes_and_comes_once(scene, monkeypatch, workers):
    bench, versions, pack = scene
    monkeypatch.setattr("decon_core.execution.jobs._BYTES_PER_WORKER", 1)
    last = []

    def note(n_done, n_shards, n_bytes, n_bytes_in_all, _):
        if n_done == n_shards:
            last.append((n_shards, n_bytes, n_bytes_in_all))

    scan(bench, [pack], versions, workers=workers, on_progress=note)
    n_bytes = sum(shard.n_bytes for shard in pack.shards)
    assert last == [(N_SHARDS, n_bytes, n_bytes)]


def test_benchmarks_that_come_after_an_interrupt_leave_the_bytes_of_one_scan(scene, monkeypatch):
    bench, versions, pack = scene
    scan(bench, [pack], versions)
    at_once = files(bench)

    def interrupted(*_):
        raise KeyboardInterrupt

    for shard in pack.shards:  # the only one that was scanned before
        shutil.rmtree(bench.store.root / "scan_results")
        with monkeypatch.context() as patched:
            patched.setattr(scanner_module, "join_scan_results", interrupted)
            with pytest.raises(KeyboardInterrupt):
                scan(bench, [part_of(pack, [shard])], versions[:1])
        scan(bench, [pack], versions)
        assert files(bench) == at_once


def test_shards_that_were_scanned_before_the_interrupt_are_not_read_again(scene):
    bench, versions, pack = scene
    scan(bench, [pack], versions)
    at_once = files(bench)
    shutil.rmtree(bench.store.root / "scan_results")
    (bench.folder / "shards" / "3.jsonl").rename(bench.folder / "away")
    with pytest.raises(CorpusError, match=r"3\.jsonl"):
        scan(bench, [pack], versions)
    (bench.folder / "away").rename(bench.folder / "shards" / "3.jsonl")
    assert len(missing_scan_results(bench.results, [pack], versions)) == 1
    assert scan(bench, [pack], versions).n_shards_read == 1
    folders = bench.results.folders
    assert sorted(len(folder.shards) for folder in folders) == [1, N_SHARDS - 1]
    assert not missing_scan_results(bench.results, [pack], versions)
    found = [rows(bench, pack, version) for version in versions]
    counted = [counts(bench, pack, version) for version in versions]
    shutil.rmtree(bench.store.root / "scan_results")
    scan(bench, [pack], versions)
    assert files(bench) == at_once
    assert [sorted(map(repr, rows(bench, pack, version))) for version in versions] == [
        sorted(map(repr, some)) for some in found
    ]
    assert [counts(bench, pack, version) for version in versions] == counted


def test_the_rows_of_some_shards_are_those_of_each_alone(scene):
    bench, versions, pack = scene
    scan(bench, [pack], versions)
    results = bench.results
    names = [shard.fingerprint for shard in pack.shards]
    for version in versions:
        of_all = results.matches(names, version.fingerprint).to_pylist()
        for some in (names[:1], names[2:5], names[::-1]):
            found = results.matches(some, version.fingerprint).to_pylist()
            assert found == [row for row in of_all if row["shard"] in some]
            total: Counter[int] = Counter()
            for shard in some:
                of_shard = gram_counts(results, [shard], version)
                total.update(dict(zip(*of_shard.values(), strict=True)))
            together = gram_counts(results, some, version)
            assert dict(zip(*together.values(), strict=True)) == total


def test_a_shard_in_two_packs_is_read_once_and_both_have_its_scan_results(scene):
    bench, versions, pack = scene
    first = part_of(pack, pack.shards[:4], "first")
    second = part_of(pack, pack.shards[2:], "second")
    assert scan(bench, [first, second], versions, workers=2).n_shards_read == N_SHARDS
    assert not missing_scan_results(bench.results, [first, second], versions)
    folders = {folder.name for folder in bench.results.folders}
    names = [shard.fingerprint for shard in pack.shards]
    assert folders == {digest_of(names[:4]), digest_of(names[4:])}


def test_shards_of_a_new_pack_keep_the_scan_results_of_their_old_one(scene):
    bench, versions, pack = scene
    scan(bench, [pack], versions)
    moved = part_of(pack, pack.shards[1:3])
    assert not missing_scan_results(bench.results, [moved], versions)
    assert scan(bench, [moved], versions).n_shards_read == 0
    of_moved = {shard.fingerprint for shard in moved.shards}
    for version in versions:
        assert rows(bench, moved, version) == [
            row for row in rows(bench, pack, version) if row["shard"] in of_moved
        ]


def test_large_results_are_joined_in_several_passes(scene, monkeypatch):
    bench, versions, pack = scene
    scan(bench, [pack], versions)
    at_once = files(bench)
    shutil.rmtree(bench.store.root / "scan_results")
    monkeypatch.setattr(join, "_ROWS_AT_ONCE", 5)
    scan(bench, [pack], versions)
    assert files(bench) == at_once


def test_damaged_results_of_a_shard_are_removed_and_the_shard_is_scanned_again(scene, monkeypatch):
    bench, versions, pack = scene
    scan(bench, [pack], versions)
    at_once = files(bench)
    shutil.rmtree(bench.store.root / "scan_results")
    with monkeypatch.context() as patched:
        patched.setattr(scanner_module, "join_scan_results", lambda *_: None)
        scan(bench, [pack], versions)
    matches, grams = (
        sorted(bench.store.root.rglob(f"unjoined/*/*/*/{name}"))
        for name in ("matches.parquet", "grams.parquet")
    )
    matches[0].write_bytes(matches[0].read_bytes()[:-9])
    grams[1].write_bytes(b"")
    matches[2].unlink()
    of_shards = [shard.fingerprint for shard in pack.shards]
    left = sorted(set(of_shards) - {path.parents[1].name for path in (*matches[:3], grams[1])})
    bench.store.unjoined_ledger(bench.scan, left[0]).write_bytes(b"{")
    bench.store.unjoined_documents(bench.scan, left[1]).unlink()
    assert scan(bench, [pack], versions).n_shards_read == 5
    assert files(bench) == at_once


def test_other_versions_of_a_scan_that_goes_on_are_left_to_it(scene, monkeypatch):
    bench, (first, second, third), pack = scene
    with monkeypatch.context() as patched:  # as if the scan of `third` was still at work
        patched.setattr(scanner_module, "join_scan_results", lambda *_: None)
        scan(bench, [part_of(pack, pack.shards[:2])], [third])
    scan(bench, [pack], [first, second])
    assert has_unjoined(bench)
    assert len(missing_scan_results(bench.results, [pack], [third])) == N_SHARDS
    assert scan(bench, [pack], [third]).n_shards_read == N_SHARDS - 2
    (folder,) = bench.results.folders
    assert len(folder.shards) == N_SHARDS


# Answers of the sketch ----------------------------------------------------------------------------

NO_COUNTS = no_rows(GRAM_COUNTS)
ANSWER = {"sketch": "s" * 16, "n_blocks": 4, "blocks_read": [1]}


def put(store: Store, shard, version, answer=None):
    result = no_rows(MATCHES), None if answer else NO_COUNTS
    write_unjoined(store, "scan", shard, {version: result}, answer=answer)
    write_json(store.unjoined_ledger("scan", shard), {"n_documents": 0})
    write_parquet(store.unjoined_documents("scan", shard), no_rows(DOCUMENTS))


def test_a_scan_in_full_replaces_an_answer(tmp_path):
    store = Store(tmp_path)
    put(store, "a", "v", ANSWER)
    put(store, "b", "v")
    join_scan_results(store, "scan", ["a", "b"], ["v"])
    results = ScanResults(store, "scan")
    assert [results.answer(shard, "v") for shard in "ab"] == [ANSWER, None]
    assert [results.has(shard, "v", needs_counts=True) for shard in "ab"] == [False, True]
    assert [results.has(shard, "v") for shard in "ab"] == [True, True]
    put(store, "a", "v")
    join_scan_results(store, "scan", ["a", "b"], ["v"])
    results = ScanResults(store, "scan")
    assert [results.answer(shard, "v") for shard in "ab"] == [None, None]
    assert [results.has(shard, "v", needs_counts=True) for shard in "ab"] == [True, True]


def test_of_two_results_of_a_shard_the_one_with_counts_is_joined(tmp_path):
    store = Store(tmp_path)
    for versions, answer in ((["v", "w"], ANSWER), (["v"], None)):
        result = no_rows(MATCHES), None if answer else NO_COUNTS
        write_unjoined(store, "scan", "a", dict.fromkeys(versions, result), answer=answer)
    join_scan_results(store, "scan", ["a"], ["v", "w"])
    results = ScanResults(store, "scan")
    assert (results.answer("a", "v"), results.answer("a", "w")) == (None, ANSWER)


def test_a_folder_without_its_list_of_shards_does_not_count(scene):
    bench, versions, pack = scene
    scan(bench, [pack], versions)
    now = files(bench)
    (folder,) = bench.results.folders
    path = bench.store.joined_shards(bench.scan, folder.name)
    assert read_json(path) == {"shards": sorted(shard.fingerprint for shard in pack.shards)}
    path.unlink()
    assert len(missing_scan_results(bench.results, [pack], versions)) == N_SHARDS
    scan(bench, [pack], versions)
    assert files(bench) == now
    assert not uncounted(bench.results, [pack], versions)


def test_benchmarks_without_records_have_a_scan_result_each(bench, make_words):
    """Their versions have the same fingerprint, as there is nothing to tell them apart by."""
    some = [(make_words(("q", n), 30), None, None) for n in range(3)]
    versions = bench.prepare({"empty": [], "none": [], "some": some})
    pack = bench.pack({"a.jsonl": [some[0][0]]})
    scan(bench, [pack], versions)
    assert not missing_scan_results(bench.results, [pack], versions)
    assert [len(rows(bench, pack, version)) for version in versions] == [0, 0, 1]
