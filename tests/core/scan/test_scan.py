"""Scan results equal the oracle, however the work is cut, and spans cut out the right text."""

import errno
import gzip
import json
import os
import random
import shutil
import threading
import time
from dataclasses import replace
from functools import partial

import pytest

from decon_core.benchmarks.records import load_records
from decon_core.config.policy import Policy
from decon_core.config.sources import Source
from decon_core.corpus.packs import Pack, find_shards
from decon_core.corpus.shards import read_blocks, read_shard
from decon_core.decisions.decide import decide
from decon_core.errors import CorpusError, MissingError
from decon_core.index.parts import index_fingerprint, open_part
from decon_core.index.term_weights import current_snapshot, freeze
from decon_core.scan.blocks import kept_scanners
from decon_core.scan.coverage import missing_scan_results
from decon_core.scan.scanner import scan_packs
from decon_core.schemas import MATCHES
from decon_core.text.tokenizers import load_tokenizer
from tests.oracle.decon import (
    Record,
    build_index,
    count,
    detect,
    index_records,
    report,
    tokenize,
)
from tests.scan_result_files import ledgers_path, scan_result_rows


def scan_results(bench, pack, versions):
    return {
        (shard.name, version.benchmark): scan_result_rows(
            bench.store, bench.scan, shard.fingerprint, version.fingerprint
        )
        for shard in pack.shards
        for version in versions
    }


def read_scan_result(bench, pack, version, at=0):
    shard = pack.shards[at]
    return bench.results.matches([shard.fingerprint], version.fingerprint)


def records_of(table):
    """The rows of a record table as the oracle sees them."""
    return [
        Record(
            benchmark=row["benchmark"],
            split=row["split"],
            instance=row["instance_index"],
            question=row["question"],
            answer=row["answer"],
            passage=row["passage"],
            is_correct=row["is_correct"],
            fingerprint=row["fingerprint"],
        )
        for row in table.to_pylist()
    ]


def noisy(rng, text, edits):
    """A text with some words replaced, dropped or doubled."""
    found = text.split()
    for _ in range(edits):
        at = rng.randrange(len(found))
        found[at : at + 1] = rng.choice([["zzz"], [], [found[at], found[at]]])
    return " ".join(found)


@pytest.fixture
def crowded(bench, make_words):
    """Items from a small vocabulary, and documents that hold them whole, bent and side by side."""
    rng = random.Random(7)
    items = {
        name: [
            (
                make_words((name, "q", n), rng.randrange(8, 60), vocabulary=60),
                rng.choice([None, make_words((name, "a", n), rng.choice([2, 3, 4, 12]))]),
                rng.choice([None, make_words((name, "p", n), 40)]),
            )
            for n in range(12)
        ]
        for name in ("first", "second", "third")
    }
    documents = []
    for _ in range(60):
        parts = [make_words(rng.random(), rng.randrange(5, 40), vocabulary=60)]
        for _ in range(rng.randrange(3)):
            question, answer, passage = rng.choice(items[rng.choice(list(items))])
            parts += [passage or "", noisy(rng, question, rng.randrange(4)), answer or ""]
        parts.append(make_words(rng.random(), rng.randrange(40), vocabulary=60))
        documents.append(" ".join(parts))
    pack = bench.pack(
        {"a.jsonl": documents[:20], "b.jsonl": documents[20:35], "c.jsonl": documents[35:]}
    )
    return bench, items, pack


@pytest.mark.parametrize(
    ("sampling", "threshold"),
    [("exhaustive", 0.6), ("reference", 0.7), ("exhaustive", 0.8), ("reference", 0.95)],
)
def test_scan_results_and_decisions_equal_the_oracle(crowded, sampling, threshold):
    bench, items, pack = crowded
    bench.policy = Policy(
        tokenizer_str="words",
        detectors=("decon",),
        sampling=sampling,
        contamination_score_threshold=threshold,
    )
    versions = bench.prepare(items)
    scan_packs(bench.store, [pack], versions, bench.policy)

    tokenizer = load_tokenizer("words")
    entries = {
        v.benchmark: index_records(
            records_of(load_records(bench.store, v)), bench.policy, tokenizer
        )
        for v in versions
    }
    frequencies = count([e for found in entries.values() for e in found], bench.policy)
    n_found = 0
    for at, shard in enumerate(pack.shards):
        for version in versions:
            index = build_index(entries[version.benchmark], bench.policy, frequencies)
            expected = {
                (document.row, index.entries[m.number].record.fingerprint, m.start, m.score)
                for document in read_shard(shard, pack.source)
                for m in report(
                    detect(tokenize(document.text, bench.policy, tokenizer), index), index
                )
            }
            called = decide(read_scan_result(bench, pack, version, at), bench.policy).to_pylist()
            got = {
                (row["row"], row["fingerprint"], row["question_start"], row["score"])
                for row in called
                if row["is_contaminated"]
            }
            assert got == expected
            n_found += len(expected)
    assert n_found > 10


def test_scan_results_do_not_depend_on_workers_order_or_company(crowded, tmp_path, monkeypatch):
    bench, items, pack = crowded
    versions = bench.prepare(items)
    scan_packs(bench.store, [pack], versions, bench.policy)
    together = scan_results(bench, pack, versions)

    alone = replace(bench, folder=tmp_path / "alone")
    alone.folder.mkdir()
    names = list(items)
    saved = [alone.save(name, items[name]) for name in names]
    snapshot = freeze(alone.store, list(saved), alone.policy)
    for version in reversed(saved):
        alone.index([version], snapshot)
        for shard in reversed(pack.shards):
            scan_packs(alone.store, [replace(pack, shards=(shard,))], [version], alone.policy)
    assert scan_results(alone, pack, versions) == together

    monkeypatch.setattr("decon_core.execution.jobs._BYTES_PER_WORKER", 1)
    parallel = replace(bench, folder=tmp_path / "parallel")
    parallel.folder.mkdir()
    parallel.prepare(items)
    scan_packs(parallel.store, [pack], versions, parallel.policy, workers=2)
    assert scan_results(parallel, pack, versions) == together


@pytest.mark.parametrize(
    ("sampling", "threads", "cores", "block_bytes"),
    [
        ("exhaustive", 1, 1, 64),
        ("reference", 1, 8, 64),
        ("exhaustive", 1, 8, 1000),
        ("exhaustive", 3, 8, 300),
        ("reference", 3, 8, 300),
        ("exhaustive", 2, 2, 4 << 20),
    ],
)
def test_scan_results_do_not_depend_on_threads_or_blocks(
    crowded, tmp_path, monkeypatch, sampling, threads, cores, block_bytes
):
    bench, items, pack = crowded
    bench.policy = replace(bench.policy, sampling=sampling)
    versions = bench.prepare(items)
    scan_packs(bench.store, [pack], versions, bench.policy)
    expected = scan_results(bench, pack, versions)

    blocks = partial(read_blocks, block_bytes=block_bytes)
    monkeypatch.setattr("decon_core.scan.blocks.read_blocks", blocks)
    monkeypatch.setattr("decon_core.scan.scanner.usable_cores", lambda: cores)
    other = replace(bench, folder=tmp_path / "other")
    other.folder.mkdir()
    other.prepare(items)
    scan_packs(other.store, [pack], versions, other.policy, workers=threads)
    assert scan_results(other, pack, versions) == expected


def test_the_size_of_the_word_table_is_no_reason_to_scan_again(crowded):
    bench, items, pack = crowded
    versions = bench.prepare(items)
    scan_packs(bench.store, [pack], versions, bench.policy)
    other = replace(bench.policy, word_table_mb=1)
    assert scan_packs(bench.store, [pack], versions, other).n_shards_read == 0


def test_more_unions_than_are_kept_are_made_again(bench, make_words, monkeypatch):
    monkeypatch.setattr("decon_core.index.joined_index._MAX_FILES", 1)
    items = {f"b{n}": [(make_words((n, k), 30), None, None) for k in range(2)] for n in range(3)}
    versions = bench.prepare(items)
    pack = bench.pack({f"s{n}.jsonl": [items[f"b{n}"][0][0]] for n in range(3)})
    for shard, version in zip(pack.shards, versions, strict=True):
        scan_packs(bench.store, [replace(pack, shards=(shard,))], [version], bench.policy)
    scan_packs(bench.store, [pack], versions, bench.policy)  # each shard lacks two other ones
    assert not missing_scan_results(bench.results, [pack], versions)
    found = [
        read_scan_result(bench, pack, version, at).num_rows for at, version in enumerate(versions)
    ]
    assert found == [1, 1, 1]


def test_a_damaged_union_is_made_again(bench, make_words):
    versions = bench.prepare({"b": [(make_words("q", 30), None, None)]})
    pack = bench.pack({"a.jsonl": [make_words("q", 30)]})
    scan_packs(bench.store, [pack], versions, bench.policy)
    unions = {path: path.read_bytes() for path in bench.store.root.glob("search/*/*.arrow")}
    assert len(unions) == 2  # of n-grams, and of questions
    for union, content in unions.items():
        union.write_bytes(content[: len(content) // 2])
    shutil.rmtree(bench.store.root / "scan_results")
    kept_scanners.cache_clear()
    scan_packs(bench.store, [pack], versions, bench.policy)
    assert {path: path.read_bytes() for path in unions} == unions


def test_a_text_that_repeats_itself_for_long_takes_no_time_for_each_repeat(bench, make_words):
    question = " ".join(f"w{n % 8}" for n in range(48))
    others = [(make_words(n, 30), None, None) for n in range(3)]
    versions = bench.prepare({"b": [(question, make_words("a", 9), None), *others]})
    pack = bench.pack({"a.jsonl": [" ".join([question] * 4000)]})
    started = time.process_time()
    scan_packs(bench.store, [pack], versions, bench.policy)
    assert (
        time.process_time() - started < 300
    )  # of a processor; it would take hours, walked from every place


def test_a_full_disk_leaves_no_half_written_scan_result(bench, make_words, monkeypatch):
    versions = bench.prepare({"b": [(make_words("q", 30), None, None)]})
    pack = bench.pack({"a.jsonl": [make_words("q", 30)]})

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="no space left to write"):
            scan_packs(bench.store, [pack], versions, bench.policy)
    assert missing_scan_results(bench.results, [pack], versions)
    assert not list(bench.store.root.rglob("*.tmp"))
    scan_packs(bench.store, [pack], versions, bench.policy)
    assert not missing_scan_results(bench.results, [pack], versions)


def test_a_benchmark_outside_the_snapshot_moves_no_other_ones_scan_results(crowded, tmp_path):
    bench, items, pack = crowded
    versions = bench.prepare(items, frozen=["first", "second"])
    scan_packs(bench.store, [pack], versions, bench.policy)
    two = replace(bench, folder=tmp_path / "two")
    two.folder.mkdir()
    kept = two.prepare({name: items[name] for name in ("first", "second")})
    scan_packs(two.store, [pack], kept, two.policy)
    with_third = scan_results(bench, pack, versions)
    assert scan_results(two, pack, kept) == {k: v for k, v in with_third.items() if k[1] != "third"}


def test_a_benchmark_outside_is_weighed_with_the_snapshot_plus_itself(bench, make_words):
    inside = [(make_words(n, 30), None, None) for n in range(4)]
    outside = [(make_words(n, 30), None, None) for n in range(3, 9)]  # shares its first item
    versions = bench.prepare({"inside": inside, "outside": outside}, frozen=["inside"])
    assert current_snapshot(bench.store, bench.policy).counts.n_records == 4
    index = index_fingerprint(bench.store, bench.policy)
    alone, both = (open_part(bench.store, version, index) for version in versions)
    assert alone.n_records == 4
    assert set(alone.df["question"].values.tolist()) == {1}
    assert both.n_records == 10
    shared, *others = (both.df["question"].row(n).tolist() for n in range(6))
    assert set(shared) == {2}
    assert {df for row in others for df in row} == {1}


@pytest.mark.parametrize("tokenizer", ["words", "cl100k"])
def test_character_spans_cut_out_the_very_words(bench, make_words, tokenizer):
    bench.policy = Policy(tokenizer_str=tokenizer, detectors=("decon",))
    question = (
        "Which of the seven lighthouses on İskele’s northern shore was rebuilt — stone by stone — "
        "after the great storm of 1871, and who paid the 12,500 crowns that the work is said to "
        "have cost the town’s treasury in the end?"
    )
    answer = "The Möwen light; the guild of net-makers paid for all of it."
    passage = "Seven lights guard the northern shore, and every child can name them in order."
    items = [(question, answer, passage), *((make_words(n, 30), None, None) for n in range(3))]
    versions = bench.prepare({"lights": items})
    before, between = "Some 東京 words first… \U0001f680 ", " \n\n**Answer:**  "
    text = f"{before}{passage}\n{question.upper()}{between}{answer} And then some more."
    pack = bench.pack({"a.jsonl": [text]})
    scan_packs(bench.store, [pack], versions, bench.policy)
    (row,) = read_scan_result(bench, pack, versions[0]).to_pylist()

    def cut(name):
        return text[row[f"{name}_char_start"] : row[f"{name}_char_stop"]]

    assert cut("question") == question.upper().rstrip("?")
    assert cut("answer") == answer.rstrip(".")
    assert cut("passage") in passage
    assert row["base_score"] > 0.9


def test_nothing_found_is_a_written_empty_scan_result(bench, make_words):
    versions = bench.prepare({"b": [(make_words("q", 30), None, None)]})
    pack = bench.pack({"a.jsonl": [make_words("other", 50)]})
    scan_packs(bench.store, [pack], versions, bench.policy)
    scan_result = read_scan_result(bench, pack, versions[0])
    assert scan_result.num_rows == 0
    assert scan_result.schema == MATCHES


def test_the_ledger_accounts_for_every_row(bench, make_words):
    versions = bench.prepare({"b": [(make_words("q", 30), None, None)]})
    pack = bench.pack({"a.jsonl": [make_words(1, 50), b"{broken", "too short", {"text": None}]})
    scan_packs(bench.store, [pack], versions, bench.policy)
    ledger = bench.results.ledger(pack.shards[0].fingerprint)
    assert (ledger["n_rows"], ledger["n_documents"], ledger["n_too_short"]) == (4, 2, 1)
    assert [(row["row"], row["reason"]) for row in ledger["unreadable"]] == [
        (1, "not JSON"),
        (3, "field is null"),
    ]


def test_a_missing_index_part_is_refused_before_anything_is_read(bench, make_words):
    versions = bench.prepare({"b": [(make_words("q", 30), None, None)]})
    other = bench.save("late", [(make_words("r", 30), None, None)])
    pack = bench.pack({"a.jsonl": [make_words(1, 50)]})
    with pytest.raises(MissingError, match=r"'late'.*no index"):
        scan_packs(bench.store, [pack], [*versions, other], bench.policy)
    assert not (bench.store.root / "scan_results").exists()


def test_a_damaged_shard_gets_no_scan_result_and_stops_no_other(bench, make_words):
    versions = bench.prepare({"b": [(make_words("q", 30), None, None)]})
    pack = bench.pack({name: [make_words(1, 50)] for name in ("a.jsonl", "b.jsonl", "c.jsonl")})
    damaged = bench.folder / "shards" / "b.jsonl"
    damaged.write_text("changed after it was registered\n")
    with pytest.raises(CorpusError, match=r"b\.jsonl"):
        scan_packs(bench.store, [pack], versions, bench.policy)
    left = [shard.name for _, shard, _ in missing_scan_results(bench.results, [pack], versions)]
    assert left == ["b.jsonl"]


@pytest.mark.parametrize("cores", [1, 8])
def test_a_shard_that_ends_in_damage_is_refused_and_its_reader_ends(
    bench, make_words, monkeypatch, cores
):
    monkeypatch.setattr("decon_core.scan.scanner.usable_cores", lambda: cores)
    monkeypatch.setattr("decon_core.scan.blocks.read_blocks", partial(read_blocks, block_bytes=400))
    versions = bench.prepare({"b": [(make_words("q", 30), None, None)]})
    lines = [json.dumps({"id": str(n), "text": make_words(n, 50)}) for n in range(40)]
    packed = gzip.compress("\n".join(lines).encode())
    (bench.folder / "a.jsonl.gz").write_bytes(packed[:-4])  # without its length
    source = Source(name="web", path="*.gz", text="text", id="id")
    shards = find_shards(source, folder=bench.folder, known={})
    pack = Pack(name="web-0000", source=source, shards=tuple(shards))
    with pytest.raises(CorpusError, match="the data is damaged or truncated") as error:
        scan_packs(bench.store, [pack], versions, bench.policy)
    assert "after 39 rows" in str(error.value)
    assert not [one for one in threading.enumerate() if one.name.startswith("ThreadPoolExecutor")]


def test_a_scan_cut_off_before_its_ledger_is_done_again(bench, make_words):
    versions = bench.prepare({"b": [(make_words("q", 30), None, None)]})
    pack = bench.pack({"a.jsonl": [make_words(1, 50)]})
    scan_packs(bench.store, [pack], versions, bench.policy)
    ledger = ledgers_path(bench.store, bench.scan, pack.shards[0].fingerprint)
    before = ledger.read_bytes()
    ledger.unlink()
    summary = scan_packs(bench.store, [pack], versions, bench.policy)
    assert summary.n_shards_read == 1
    assert ledger.read_bytes() == before


def test_what_a_killed_scan_left_goes_when_it_is_old(bench, make_words):
    versions = bench.prepare({"b": [(make_words("q", 30), None, None)]})
    pack = bench.pack({"a.jsonl": [make_words(1, 50)]})
    documents = bench.store.unjoined_documents(bench.scan, pack.shards[0].fingerprint)
    old, fresh = (documents.with_name(f".documents.parquet.{n:012}.tmp") for n in range(2))
    documents.parent.mkdir(parents=True)
    for left in (old, fresh):
        left.write_bytes(b"half of it")
    os.utime(old, (time.time() - 90_000,) * 2)
    scan_packs(bench.store, [pack], versions, bench.policy)
    # Not every file system's locks hold between machines: another may be at work on the fresh one.
    assert [path.name for path in documents.parent.iterdir()] == [fresh.name]
