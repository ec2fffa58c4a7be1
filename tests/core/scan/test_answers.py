"""Answers from the sketch: the scan results of a full scan, from a fraction of its reading."""

import os
import random
import shutil
from dataclasses import replace
from functools import partial

import pytest

from decon_core.benchmarks.records import load_records
from decon_core.config.policy import Policy
from decon_core.config.sources import Sketch
from decon_core.corpus.shards import read_blocks
from decon_core.corpus.sketch import shard_sketch
from decon_core.corpus.sketch.pack_sketch import (
    build_pack_sketch,
    has_pack_sketch,
    open_pack_sketch,
    sketch_fingerprint,
)
from decon_core.corpus.sketch.shard_sketch import has_blocks, open_blocks
from decon_core.errors import CorpusError
from decon_core.index.joined_index import open_search
from decon_core.index.parts import index_fingerprint
from decon_core.scan import blocks as scan_blocks_module
from decon_core.scan.answers import answer, why_unbounded
from decon_core.scan.coverage import missing_scan_results, uncounted
from decon_core.scan.scanner import scan_packs
from decon_core.text.tokenizers import load_tokenizer
from tests.oracle.decon import tokenize
from tests.oracle.sketch import has_run, may_match, ngrams_of_block
from tests.scan_result_files import scan_result_rows, what_was_read

SKETCH = Sketch(bits=5)


@pytest.fixture
def small_parts(monkeypatch):
    """Read parts of a few documents, and let every part be a block."""
    read = partial(read_blocks, block_bytes=1_500)
    monkeypatch.setattr(scan_blocks_module, "read_blocks", read)
    monkeypatch.setattr(shard_sketch, "LOG2_BITS", 18)
    # As if a filter had room for the n-grams of one part only.
    monkeypatch.setattr(shard_sketch, "_share_set", lambda _: 1.0)


def edited(rng, text, n):
    found = text.split()
    for _ in range(n):
        at = rng.randrange(len(found))
        found[at : at + 1] = rng.choice([["zzz"], [], [found[at], found[at]]])
    return " ".join(found)


def make_world(bench, make_words, *, n_items=30, n_documents=150, share=0.3, seed=0):
    """Benchmarks `first` and `later`; some documents contain items, whole or edited."""
    rng = random.Random(seed)
    items = {
        name: [
            (
                make_words((name, "q", n), rng.randrange(6, 60), vocabulary=2_000),
                rng.choice([None, make_words((name, "a", n), rng.choice([2, 6]))]),
                rng.choice([None, make_words((name, "p", n), 40)]),
            )
            for n in range(n_items)
        ]
        for name in ("first", "later")
    }
    documents = []
    for _ in range(n_documents):
        parts = [make_words(rng.random(), rng.randrange(5, 60), vocabulary=2_000)]
        if rng.random() < share:
            question, given, passage = rng.choice(items[rng.choice(list(items))])
            parts += [passage or "", edited(rng, question, rng.randrange(6)), given or ""]
        parts.append(make_words(rng.random(), rng.randrange(60), vocabulary=2_000))
        documents.append(" ".join(parts))
    third = n_documents // 3
    pack = bench.pack(
        {
            "a.jsonl": documents[:third],
            "b.jsonl": documents[third : 2 * third],
            "c.jsonl": documents[2 * third :],
        }
    )
    return bench.prepare(items), pack


def fingerprint(bench):
    return sketch_fingerprint(bench.policy, SKETCH)


def files(bench, pack, version):
    """All bytes that later stages read of a scan, by shard."""
    names = [(bench.scan, shard.fingerprint) for shard in pack.shards]
    return [
        (
            scan_result_rows(bench.store, *one, version.fingerprint),
            what_was_read(bench.store, *one),
        )
        for one in names
    ]


def scan_fully(bench, pack, versions):
    scan_packs(bench.store, [pack], versions, bench.policy)
    found = [files(bench, pack, version) for version in versions]
    shutil.rmtree(bench.store.root / "scan_results")
    return found


def sketch(bench, pack, versions):
    """Scan against `versions` and write the sketch on the way."""
    scan_packs(bench.store, [pack], versions, bench.policy, sketch=SKETCH)
    assert build_pack_sketch(bench.store, fingerprint(bench), pack)


POLICIES = {
    "default": {},
    "reference": {"preset": "reference", "sampling": "reference"},
    "low floor": {"lowest_recorded_score": 0.2, "contamination_score_threshold": 0.4},
    "aligned": {"detectors": ("aligned",)},
    "ngram_any": {"detectors": ("decon", "ngram_any")},
    "short runs": {
        "detectors": ("ngram_any",),
        "ngram_any_lowest_recorded": 6,
        "ngram_any_size": 6,
    },
    "cl100k": {"tokenizer_str": "cl100k"},
}


@pytest.mark.parametrize("name", POLICIES)
def test_answered_scan_results_are_those_of_a_full_scan(bench, make_words, small_parts, name):
    bench.policy = Policy.from_mapping({"tokenizer_str": "words", **POLICIES[name]})
    (first, later), pack = make_world(bench, make_words, share=0.15)
    (expected,) = scan_fully(bench, pack, [later])
    sketch(bench, pack, [first])
    summary = scan_packs(bench.store, [pack], [later], bench.policy, sketch=SKETCH)
    assert files(bench, pack, later) == expected
    assert summary.n_blocks_excluded > 0
    assert summary.n_blocks_read > 0


def test_a_clean_benchmark_reads_no_shard(bench, make_words, small_parts):
    (first, later), pack = make_world(bench, make_words, share=0.0)
    (expected,) = scan_fully(bench, pack, [later])
    sketch(bench, pack, [first])
    for shard in pack.shards:
        (bench.folder / "shards" / shard.name).unlink()
    summary = scan_packs(bench.store, [pack], [later], bench.policy, sketch=SKETCH)
    assert files(bench, pack, later) == expected
    assert (summary.n_shards_read, summary.n_blocks_read) == (0, 0)


def test_other_thresholds_need_no_scan_either_since_the_sketch_keeps_the_ledger(
    bench, make_words, small_parts
):
    (first, later), pack = make_world(bench, make_words, share=0.0)
    sketch(bench, pack, [first])
    bench.policy = replace(bench.policy, lowest_recorded_score=0.5)
    (expected,) = scan_fully(bench, pack, [later])
    for shard in pack.shards:
        (bench.folder / "shards" / shard.name).unlink()
    scan_packs(bench.store, [pack], [later], bench.policy, sketch=SKETCH)
    assert files(bench, pack, later) == expected


@pytest.mark.parametrize("seed", range(4))
def test_bounds_equal_the_oracle(bench, make_words, small_parts, seed):
    """The filters are so large here that they are sets."""
    bench.policy = Policy(tokenizer_str="words", detectors=("decon", "ngram_any"))
    (first, later), pack = make_world(bench, make_words, share=0.1, seed=seed)
    sketch(bench, pack, [first])
    index = index_fingerprint(bench.store, bench.policy)
    name, policy = fingerprint(bench), bench.policy
    found = answer(bench.store, name, pack, [later], policy, index=index, scan=bench.scan)
    tokenizer = load_tokenizer("words")
    search = open_search(bench.store, [later], policy.at_floor, index=index, scan=bench.scan)
    questions = [questions_of(search, question) for question in range(search.n_questions)]
    texts = load_records(bench.store, later)["question"].to_pylist()
    asked = [tokenize(text, policy, tokenizer) for text in texts]
    n_possible = n_blocks = 0
    for shard in pack.shards:
        parts = [block.read() for block in scan_blocks_module.read_blocks(shard, pack.source)]
        for number, batch in enumerate(parts):
            read = (batch.document(at).text for at in range(batch.rows.size))
            block = ngrams_of_block((tokenize(one, policy, tokenizer) for one in read), 5)
            expected = {
                "decon": any(may_match(*one, block) for one in questions),
                "ngram_any": any(has_run(one, block, run=8, size=5) for one in asked),
            }
            for detector, is_expected in expected.items():
                of_detector = found.by_detector[detector].is_possible
                is_possible = number in found.sketch.blocks_of(shard.fingerprint, of_detector)[0]
                assert is_possible == is_expected, (shard.name, number, detector)
            n_blocks, n_possible = n_blocks + 1, n_possible + expected["decon"]
    assert 0 < n_possible < n_blocks


def questions_of(search, question):
    """The n-grams of an indexed question with their weights, and the weight that it needs."""
    index = search.index
    start, stop = index.question_offsets[question : question + 2].tolist()
    ids = search.ids[index.question_tokens[start:stop].astype(int) - 1].tolist()
    grams = dict.fromkeys(tuple(ids[at : at + 5]) for at in range(len(ids) - 4))
    first, last = index.question_gram_offsets[question : question + 2].tolist()
    weights = index.weights[index.question_weights[first:last].astype(int)].tolist()
    return [*zip(grams, weights, strict=True)], float(index.question_need[question])


# What is written ----------------------------------------------------------------------------------


def test_a_sketch_does_not_depend_on_the_number_of_threads(bench, make_words, small_parts):
    (first, _), pack = make_world(bench, make_words)
    made = []
    for workers in (1, 3):
        scan_packs(bench.store, [pack], [first], bench.policy, sketch=SKETCH, workers=workers)
        build_pack_sketch(bench.store, fingerprint(bench), pack)
        folder = bench.store.root / "sketch"
        made.append({p.name: p.read_bytes() for p in folder.rglob("*") if p.is_file()})
        shutil.rmtree(folder)
        shutil.rmtree(bench.store.root / "scan_results")
    assert made[0] == made[1]


def test_the_record_of_an_answer_names_the_blocks_that_were_read(bench, make_words, small_parts):
    (first, later), pack = make_world(bench, make_words, share=0.1)
    sketch(bench, pack, [first])
    summary = scan_packs(bench.store, [pack], [later], bench.policy, sketch=SKETCH)
    n_read = n_blocks = 0
    for shard in pack.shards:
        record = bench.results.answer(shard.fingerprint, later.fingerprint)
        assert record["n_blocks"] == len(
            open_blocks(bench.store, fingerprint(bench), shard.fingerprint)
        )
        n_read, n_blocks = n_read + len(record["blocks_read"]), n_blocks + record["n_blocks"]
    assert (summary.n_blocks_read, summary.n_blocks_excluded) == (n_read, n_blocks - n_read)
    assert {*uncounted(bench.results, [pack], [first, later]).values()} == {frozenset({"later"})}


def test_common_ngrams_need_counts_and_so_a_full_scan(bench, make_words, small_parts):
    (first, later), pack = make_world(bench, make_words, share=0.1)
    sketch(bench, pack, [first])
    scan_packs(bench.store, [pack], [later], bench.policy, sketch=SKETCH)
    assert not missing_scan_results(bench.results, [pack], [later])
    bench.policy = replace(bench.policy, leave_out_common=True)
    assert "leave_out_common" in why_unbounded(bench.policy)
    before = files(bench, pack, later)
    assert missing_scan_results(bench.results, [pack], [later], needs_counts=True)
    summary = scan_packs(bench.store, [pack], [later], bench.policy, sketch=SKETCH)
    assert summary.n_shards_read == 3
    assert files(bench, pack, later) == before
    assert not uncounted(bench.results, [pack], [later])


def test_detectors_without_a_bound_are_scanned_in_full(bench, make_words, small_parts):
    bench.policy = Policy(tokenizer_str="words", detectors=("decon", "exact", "ratcliff"))
    (first, later), pack = make_world(bench, make_words, share=0.0)
    assert why_unbounded(bench.policy) == "a sketch cannot rule out matches of ratcliff, exact"
    sketch(bench, pack, [first])
    summary = scan_packs(bench.store, [pack], [later], bench.policy, sketch=SKETCH)
    assert (summary.n_shards_read, summary.n_blocks_excluded) == (3, 0)


# What goes wrong ----------------------------------------------------------------------------------


def test_a_damaged_sketch_is_removed_and_the_pack_scanned_in_full(bench, make_words, small_parts):
    (first, later), pack = make_world(bench, make_words, share=0.1)
    (expected,) = scan_fully(bench, pack, [later])
    sketch(bench, pack, [first])
    path = open_pack_sketch(bench.store, fingerprint(bench), pack).path
    path.write_bytes(bytes(path.stat().st_size))
    summary = scan_packs(bench.store, [pack], [later], bench.policy, sketch=SKETCH)
    assert files(bench, pack, later) == expected
    assert (summary.n_shards_read, summary.n_blocks_excluded) == (3, 0)
    assert not has_pack_sketch(bench.store, fingerprint(bench), pack)


def test_if_it_is_unreadable_where_blocks_lie_the_pack_is_scanned_in_full(
    bench, make_words, small_parts
):
    (first, later), pack = make_world(bench, make_words, share=0.1)
    (expected,) = scan_fully(bench, pack, [later])
    sketch(bench, pack, [first])
    path = bench.store.sketch_blocks(fingerprint(bench), pack.shards[1].fingerprint)
    path.write_bytes(path.read_bytes()[:-100])
    summary = scan_packs(bench.store, [pack], [later], bench.policy, sketch=SKETCH)
    assert files(bench, pack, later) == expected
    assert (summary.n_shards_read, summary.n_blocks_excluded) == (3, 0)
    assert not has_pack_sketch(bench.store, fingerprint(bench), pack)


def test_files_of_the_sketch_that_are_missing_are_made_again(bench, make_words, small_parts):
    """A file of another kind for each of the three shards."""
    (first, later), pack = make_world(bench, make_words, share=0.0)
    sketch(bench, pack, [first])
    bench.policy = replace(bench.policy, lowest_recorded_score=0.5)
    (expected,) = scan_fully(bench, pack, [later])
    kinds = bench.store.sketch_ledger, bench.store.sketch_documents, bench.store.sketch_blocks
    paths = [
        kind(fingerprint(bench), shard.fingerprint)
        for kind, shard in zip(kinds, pack.shards, strict=True)
    ]
    before = [path.read_bytes() for path in paths]
    for path in paths:
        path.unlink()
    summary = scan_packs(bench.store, [pack], [later], bench.policy, sketch=SKETCH)
    assert files(bench, pack, later) == expected
    assert summary.n_shards_read == 3
    assert [path.read_bytes() for path in paths] == before
    # The sketch of the pack has the filters already, so those of a shard would stay for ever.
    assert not [*paths[0].parent.glob("*.filters")]


def test_a_block_with_another_text_is_refused(bench, make_words, small_parts):
    (first, later), pack = make_world(bench, make_words, share=0.1)
    sketch(bench, pack, [first])
    for shard in pack.shards:  # one letter in every document, with the old size and date
        path = bench.folder / "shards" / shard.name
        path.write_bytes(path.read_bytes().replace(b'"text": "w', b'"text": "x'))
        os.utime(path, ns=(shard.modified_ns, shard.modified_ns))
    with pytest.raises(CorpusError, match="changed since it was registered") as caught:
        scan_packs(bench.store, [pack], [later], bench.policy, sketch=SKETCH)
    assert caught.value.problems
    assert missing_scan_results(bench.results, [pack], [later])


def test_a_scan_that_fails_leaves_no_sketch(bench, make_words, small_parts, monkeypatch):
    (first, _), pack = make_world(bench, make_words)

    def fail(*_):
        raise OSError("no space left")

    monkeypatch.setattr("decon_core.scan.shard_results._gram_counts", fail)
    with pytest.raises(OSError, match="no space"):
        scan_packs(bench.store, [pack], [first], bench.policy, sketch=SKETCH)
    assert not any(
        has_blocks(bench.store, fingerprint(bench), shard.fingerprint) for shard in pack.shards
    )


def test_shards_without_a_sketch_are_read_for_it(bench, make_words, small_parts):
    (first, later), pack = make_world(bench, make_words, share=0.1)
    scan_packs(bench.store, [pack], [first], bench.policy)
    before = files(bench, pack, first)
    summary = scan_packs(
        bench.store,
        [pack],
        [],
        bench.policy,
        along=[first, later],
        sketch=SKETCH,
        fill_sketch=True,
    )
    assert summary.n_shards_read == 3
    assert files(bench, pack, first) == before
    assert not missing_scan_results(bench.results, [pack], [first, later])
    assert build_pack_sketch(bench.store, fingerprint(bench), pack)
