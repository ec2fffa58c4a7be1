"""With the sketch, scan results are those of a full scan: any corpus, leaks, edits and settings."""

import shutil
import tempfile
from collections import Counter
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from decon_core.benchmarks.records import Version
from decon_core.config.policy import Policy
from decon_core.config.sources import Sketch
from decon_core.corpus.packs import Pack
from decon_core.corpus.shards import read_blocks
from decon_core.corpus.sketch import shard_sketch
from decon_core.corpus.sketch.pack_sketch import build_pack_sketch, sketch_fingerprint
from decon_core.scan import blocks
from decon_core.scan.answers import why_unbounded
from decon_core.scan.scanner import ScanSummary, scan_packs
from tests.core.conftest import Bench, Item
from tests.oracle.decon import Entry, Tokens
from tests.oracle.strategies import NOISE, documents, entries, policies, token_runs
from tests.oracle.worlds import entry, run
from tests.scan_result_files import scan_result_rows, what_was_read
from tests.uncompiled import fewer

N_EXAMPLES = fewer(25)  # each scans three times
SETS_OF_DETECTORS = [("decon",), ("aligned",), ("ngram_any",), ("aligned", "decon", "ngram_any")]
OTHER = (("w900 w901 w902 w903 w904 w905 w906 w907 w908", None, None),)  # in no document


def text_of(tokens: Tokens) -> str:
    return " ".join(f"w{token}" for token in tokens)


def item_of(one: Entry) -> Item:
    return text_of(one.question), text_of(one.answer) or None, text_of(one.passage) or None


@st.composite
def items(draw: st.DrawFn) -> list[Entry]:
    """Records that share n-grams, and some of which each has its own words.

    A block with a leak of one of the latter is only possible for that one.
    """
    lengths = draw(st.lists(st.integers(8, 40), min_size=1, max_size=5))
    return [*draw(entries()), *(entry(run(1000 * n, size)) for n, size in enumerate(lengths, 2))]


@st.composite
def edited(draw: st.DrawFn, known: list[Entry]) -> Tokens:
    """An item between noise, with some of its words changed, left out or repeated."""
    one = draw(st.sampled_from(known))
    parts = draw(st.sampled_from(["question", "question and answer", "all"]))
    tokens = [*one.question]
    if parts != "question":
        tokens += one.answer
    if parts == "all":
        tokens = [*one.passage, *tokens]
    for _ in range(draw(st.integers(0, 4))):
        at = draw(st.integers(0, len(tokens) - 1))
        tokens[at : at + 1] = draw(st.sampled_from([(99,), (), (tokens[at], tokens[at])]))
        tokens = tokens or [99]
    noise = token_runs(0, 12, NOISE)
    return (*draw(noise), *tokens, *draw(noise))


@st.composite
def corpora(draw: st.DrawFn, known: list[Entry]) -> dict[str, list[str]]:
    """Two shards; some documents contain items, edited or in pieces."""
    kinds = st.one_of(token_runs(1, 30, NOISE), documents(known), edited(known), edited(known))
    shard = st.lists(kinds.map(text_of), min_size=1, max_size=10)
    return {"a.jsonl": draw(shard), "b.jsonl": draw(shard)}


@st.composite
def settings_with_a_bound(draw: st.DrawFn) -> Policy:
    """Settings of the index and of the detectors that have a bound."""
    size, answer_size = draw(st.integers(2, 7)), draw(st.integers(1, 4))
    # With a high floor, an edit or two decide whether a leak is a match.
    floor = draw(st.sampled_from([0.3571, 0.6173, 0.8219]))
    policy = draw(
        policies(
            contamination_score_threshold=floor,
            lowest_recorded_score=floor,
            eval_min_token_length=draw(st.sampled_from([0, 9])),
            tokenizer_str=draw(st.sampled_from(["words", "cl100k"])),
            word_table_mb=1,  # every example has a scanner with a table of its own
            detectors=draw(st.sampled_from(SETS_OF_DETECTORS)),
            sampling=draw(st.sampled_from(["exhaustive", "reference"])),
            ngram_size=size,
            answer_ngram_size=answer_size,
            passage_ngram_size=draw(st.integers(1, 5)),
            short_answer_token_threshold=answer_size + draw(st.integers(0, 2)),
            index_answers=draw(st.booleans()),
            index_passages=draw(st.booleans()),
            ngram_any_lowest_recorded=size + draw(st.integers(0, 3)),
            normalize_unicode=draw(st.booleans()),
        )
    )
    assert why_unbounded(policy) is None
    return policy


@contextmanager
def small_blocks(*, part_bytes: int, is_one_part: bool):
    """Read small parts, and close a block after each of them or when its filter is full."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "read_blocks", partial(read_blocks, block_bytes=part_bytes))
        patch.setattr(shard_sketch, "LOG2_BITS", 12)
        if is_one_part:
            patch.setattr(shard_sketch, "_share_set", lambda _: 1.0)
        yield


def rows_of(bench: Bench, pack: Pack, version: Version) -> list[object]:
    names = [(bench.scan, shard.fingerprint) for shard in pack.shards]
    return [
        (
            scan_result_rows(bench.store, *one, version.fingerprint),
            what_was_read(bench.store, *one),
        )
        for one in names
    ]


def both_ways(
    bench: Bench, known: list[Entry], corpus: dict[str, list[str]], sketch: Sketch
) -> tuple[list[object], list[object], ScanSummary]:
    """Scan the items in full, and again from a sketch that was made before they were known."""
    pack = bench.pack(corpus)
    first, later = bench.prepare({"first": OTHER, "later": [*map(item_of, known)]})
    scan = partial(scan_packs, bench.store, [pack])
    scan([later], bench.policy)
    expected = rows_of(bench, pack, later)
    shutil.rmtree(bench.store.root / "scan_results")
    scan([first], bench.policy, sketch=sketch)
    assert build_pack_sketch(bench.store, sketch_fingerprint(bench.policy, sketch), pack)
    summary = scan([later], bench.policy, sketch=sketch)
    return expected, rows_of(bench, pack, later), summary


def test_prop_scan_results_with_the_sketch_are_those_of_a_full_scan():
    n = Counter[str]()

    @settings(derandomize=True, max_examples=N_EXAMPLES)
    @given(
        data=st.data(),
        policy=settings_with_a_bound(),
        known=items(),
        sketch=st.builds(Sketch, bits=st.integers(2, 8)),
        part_bytes=st.sampled_from([200, 600]),
        is_one_part=st.booleans(),
    )
    def check(data, policy, known, sketch, part_bytes, is_one_part):
        corpus = data.draw(corpora(known))
        with (
            tempfile.TemporaryDirectory() as folder,
            small_blocks(part_bytes=part_bytes, is_one_part=is_one_part),
        ):
            bench = Bench(Path(folder), policy)
            expected, found, summary = both_ways(bench, known, corpus, sketch)
        assert found == expected
        n.update(excluded=summary.n_blocks_excluded, read=summary.n_blocks_read)
        n.update(matches=sum(len(rows) for rows, _ in expected), examples=1)

    check()

    # It would prove nothing if all blocks were read, or if there was nothing to find.
    assert min(n["excluded"], n["read"], n["matches"]) >= N_EXAMPLES // 4, n
