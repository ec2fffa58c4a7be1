"""An item is visible to a detector if and only if it is found in a document that holds it."""

import errno
import random
from dataclasses import replace
from itertools import compress

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from decon_core.benchmarks.normalized import fingerprint_of
from decon_core.benchmarks.records import save_records
from decon_core.config.detector_registry import BUILT_IN
from decon_core.config.policy import Policy
from decon_core.decisions import visibility
from decon_core.decisions.match_reader import MatchReader
from decon_core.decisions.visibility import (
    blind_items,
    checkable_by_others,
    visibilities,
    visibility_table,
)
from decon_core.detectors.visibility import RecordTexts, joined_names
from decon_core.index.parts import index_fingerprint
from decon_core.index.term_weights import freeze
from decon_core.scan.coverage import scan_fingerprint
from decon_core.scan.plan import build_search_files, sort_versions
from decon_core.scan.scanner import scan_packs
from decon_core.schemas import RECORDS, VISIBILITY
from tests.core.places import report_of

ALL = Policy(tokenizer_str="words", detectors=BUILT_IN, hot_ngram_records=10)
TEMPLATE = "which one of the following four statements is true of the thing named above"


def words(seed, n):
    rng = random.Random(str(seed))
    return " ".join(f"word{rng.randrange(10_000)}" for _ in range(n))


def dots(n):
    return ". " * n


FILLER = [(words(("filler", n), 30), None, None) for n in range(4)]


def rows_of(bench, items, *detectors, **settings):
    """What is said of benchmark b of these items, by item and detector; b2 is there for idf."""
    chosen = {"detectors": detectors or BUILT_IN, **settings}
    bench.policy = Policy(tokenizer_str="words", eval_min_token_length=20, **chosen)
    versions = bench.prepare({"b": items, "b2": FILLER})
    table = visibility_table(bench.store, versions, bench.policy)
    assert table.schema.equals(VISIBILITY)
    rows = [row for row in table.to_pylist() if row["benchmark"] == "b"]
    return {(row["instance_index"], row["detector"]): row for row in rows}


# What is visible is found -------------------------------------------------------------------------


def mixed_items():
    """Items of all lengths and kinds; some that repeat others, in part or wholly."""
    rng = random.Random("mixed")
    items = []
    for n in range(26):
        answers = (None, words(("a", n), 1), words(("a", n), 2 + n % 11))
        for kind, answer in enumerate(answers):
            question = words(("q", n, kind), n)
            passage = words(("p", n, kind), 25) if rng.random() < 0.4 else None
            items.append((question, answer, passage))
    items += [(TEMPLATE, words(("t", n), 1 + n % 4), words(("tp", n), 12)) for n in range(30)]
    items += [(TEMPLATE, words(("t", n), 12), None) for n in range(5)]
    items += [(f"{dots(n)}{words(n, 1)}", words(n, n % 9), None) for n in range(3, 30, 2)]
    items += [("จงหาค่าของ x ที่ทำให้สมการเป็นจริง", "๑๒ และ ๑๓", words(n, 30)) for n in range(3)]
    items += [(f"{words(('s', n), 5)}. {words(('u', n), 9)}?", words(n, 6), None) for n in range(5)]
    return [*items, *items[40:60], *items[:3]]


def as_document(item, number):
    texts = (words(("before", number), 60), item[2], item[0], item[1], words(("after", number), 60))
    return " ".join(text for text in texts if text)


def programs():
    """Two programs, one of them too short."""
    long = "def f(values):\n    return [value % 3 for value in values if value > len(values)]\n"
    return [(words(("task", n), 30), text, None) for n, text in enumerate((long, "def f(x): pass"))]


@pytest.mark.parametrize(
    ("normalize", "prompt"),
    [("none", "question"), ("whitespace", "question"), ("decon", "question"), ("none", "whole")],
)
def test_a_rule_finds_the_items_that_it_can_see_and_no_others(bench, normalize, prompt):
    items = [*mixed_items(), *programs()]
    bench.policy = Policy(
        tokenizer_str="words",
        detectors=BUILT_IN,
        hot_ngram_records=10,
        normalize=normalize,
        ratcliff_prompt=prompt,
    )
    versions = bench.prepare({"b": items})
    pack = bench.pack({"a.jsonl": [as_document(item, n) for n, item in enumerate(items)]})
    scan_packs(bench.store, [pack], versions, bench.policy)
    (shard,) = pack.shards
    reader = MatchReader(bench.store, tuple(versions), bench.policy, bench.scan)
    entries = reader.entries(shard, versions, source="web").to_pylist()
    rows = visibility_table(bench.store, versions, bench.policy).to_pylist()
    assert {row["reason"] for row in rows} >= {
        None,
        "too few tokens",
        "question too short",
        "question shorter than the threshold",
        "question and answer too short",
        "only very common n-grams",
        "empty question",
        "no program",
        "program too short",
    }
    for detector in BUILT_IN:
        found = {
            entry["instance_index"]
            for entry in entries
            if (entry["is_contaminated"] or entry["needs_review"]) and entry["detector"] == detector
        }
        seen = {
            row["instance_index"]
            for row in rows
            if row["detector"] == detector and row["is_visible"]
        }
        assert 0 < len(seen) < len(items)
        assert found == seen, detector


def test_it_does_not_depend_on_what_else_is_looked_for(bench):
    bench.policy = ALL
    items = mixed_items()
    versions = bench.prepare({"b": items[::2], "c": items[1::2]})
    together = visibility_table(bench.store, versions, ALL)
    alone = [visibility_table(bench.store, [version], ALL) for version in versions]
    assert together.equals(pa.concat_tables(alone))


# Reasons ------------------------------------------------------------------------------------------


REASONS = {  # by detector: an item, the reason why it is not visible, and a detail
    "decon": [
        ((words(1, 20), None, None), None, None),
        ((words(1, 19), None, None), "too few tokens", None),
        (("one two three " * 7, None, None), "too few different words", None),
        (("?!", words(1, 20), None), "empty question", None),
        ((words(1, 4), words(2, 30), None), "question too short", "4 of 5 tokens"),
    ],
    "ratcliff": [
        ((words(1, 8), None, None), None, None),
        ((words(1, 7), words(2, 30), None), "question too short", "7 of 8 tokens"),
        (("", words(2, 30), None), "empty question", None),
        ((dots(20), None, None), "no words to search for", None),
    ],
    "longest_match": [
        ((words(1, 8), words(2, 8), None), None, "question, answer"),
        ((words(1, 8), words(2, 7), None), None, "question"),
        ((words(1, 7), words(2, 8), None), None, "answer"),
        (("", words(2, 8), None), None, "answer"),
        ((words(1, 7), words(2, 7), None), "question and answer too short", None),
        ((dots(20), "yes", None), "no words to search for", None),
        (("", None, None), "empty question", None),
    ],
    "exact": [
        ((words(1, 6), None, None), None, "question"),
        (
            (f"{words(1, 6)}. {words(2, 6)}", words(3, 2), None),
            None,
            "question, question and answer, continuation",
        ),
        (("2 + 2 = 4", None, None), "no words to search for", None),
        (("shorter than any other", None, None), "not informative enough", None),
        (("", None, None), "empty question", None),
    ],
    "ngram_any": [
        ((words(1, 13), None, None), None, None),
        ((words(1, 12), None, None), "question shorter than the threshold", "12 of 13 tokens"),
        ((words(1, 7), None, None), "question too short", "7 of 8 tokens"),
        (("?!", words(1, 30), None), "empty question", None),
    ],
}


@pytest.mark.parametrize("detector", REASONS)
def test_a_reason_is_given_where_a_rule_sees_nothing(bench, detector):
    items = {f"b{n:02}": item for n, (item, _, _) in enumerate(REASONS[detector])}
    bench.policy = Policy(tokenizer_str="words", eval_min_token_length=20, detectors=(detector,))
    versions = bench.prepare({name: [item] for name, item in items.items()} | {"other": FILLER})
    table = visibility_table(bench.store, versions, bench.policy).to_pylist()
    rows = {row["benchmark"]: row for row in table}
    for name, (_, reason, detail) in zip(items, REASONS[detector], strict=True):
        row = rows[name]
        assert (row["reason"], row["detail"]) == (reason, detail)
        assert row["is_visible"] == (reason is None)


def test_a_question_of_hot_ngrams_alone_is_not_visible(bench):
    items = [(TEMPLATE, words(n, 12), None) for n in range(30)]
    rows = rows_of(bench, items, "decon", hot_ngram_records=10)
    assert {row["reason"] for row in rows.values()} == {"only very common n-grams"}
    rows = rows_of(bench, items, "decon", hot_ngram_records=30)
    assert {row["reason"] for row in rows.values()} == {None}


@pytest.mark.parametrize("answers", [(None,), ("one", "two", "three")])
@pytest.mark.parametrize("detector", ["decon", "exact"])
def test_a_single_item_is_found(bench, detector, answers):
    """Each n-gram of its question is in every record, so idf says nothing: all weigh the same."""
    bench.policy = replace(bench.policy, detectors=(detector,))
    question = words("q", 30)
    versions = bench.prepare({"b": [(question, answer, None) for answer in answers]})
    table = visibility_table(bench.store, versions, bench.policy)
    assert {*table["is_visible"].to_pylist()} == {True}
    holder = f"{words('before', 40)} {question} {answers[-1] or ''}"
    pack = bench.pack({"a.jsonl": [holder, words("other", 90)]})
    scan_packs(bench.store, [pack], versions, bench.policy)
    reader = MatchReader(bench.store, tuple(versions), bench.policy, bench.scan)
    (shard,) = pack.shards
    entries = reader.entries(shard, versions, source="web").to_pylist()
    assert {entry["row"] for entry in entries if entry["is_contaminated"]} == {0}


def test_a_phrase_of_many_questions_is_not_telling_by_itself(bench):
    items = [(TEMPLATE, None, words(n, 20)) for n in range(30)]
    rows = rows_of(bench, [*items, (words("q", 12), None, None)], "exact")
    assert rows[0, "exact"]["reason"] == "not informative enough"
    assert rows[30, "exact"]["is_visible"]


def test_a_repeat_is_as_visible_as_what_it_repeats(bench):
    seen, unseen = (words("q", 30), None, None), ("   ", words("a", 30), None)
    rows = rows_of(bench, [seen, unseen, seen, unseen], "decon")
    told = [(row["is_visible"], row["reason"], row["detail"]) for row in rows.values()]
    assert told == [
        (True, None, None),
        (False, "empty question", None),
        (True, None, "exact repeat of test 0"),
        (False, "empty question", "exact repeat of test 1"),
    ]


def test_a_question_is_seen_if_each_of_its_right_answers_is(bench):
    """A document may hold any of them. Decon needs ten tokens of question and answer together."""

    def record(number, answer, is_correct):
        question = words(f"q{number}", 8)
        return {
            "benchmark": "b", "config": "c", "split": "test", "instance_index": number,
            "question": question, "answer": answer, "is_correct": is_correct,
            "fingerprint": fingerprint_of(None, question, answer),
        }  # fmt: skip

    short, long = words("s", 1), words("l", 9)
    rows = [
        record(0, short, True),
        record(0, long, True),
        record(1, short, False),
        record(1, long, True),
        record(2, short, True),
        record(2, long, False),
        record(3, short, None),
        record(3, long, None),
        record(4, short, False),
        record(4, long, False),
        record(5, long, None),
    ]
    bench.policy = Policy(tokenizer_str="words", eval_min_token_length=10)
    version = save_records(bench.store, "b", pa.Table.from_pylist(rows, schema=RECORDS))
    bench.index([version], freeze(bench.store, [version], bench.policy))
    table = visibility_table(bench.store, [version], bench.policy)
    assert table["is_visible"].to_pylist() == [False, True, False, False, False, True]
    assert checkable_by_others(bench.store, [version], bench.policy)["b"]["exact"] == 4


def test_what_is_visible_is_computed_once_for_a_policy_and_again_when_its_file_is_damaged(
    bench, monkeypatch
):
    versions = bench.prepare({"b": mixed_items(), "b2": FILLER})
    first = visibility_table(bench.store, versions, bench.policy)
    others = checkable_by_others(bench.store, versions, bench.policy)
    with monkeypatch.context() as patched:
        patched.setattr(visibility, "_visible", lambda *_: pytest.fail("computed again"))
        assert visibility_table(bench.store, versions[::-1], bench.policy).equals(first)
        assert checkable_by_others(bench.store, versions, bench.policy) == others
        stricter = replace(bench.policy, aligned_threshold=0.9)
        for others_or_stricter in ((versions[:1], bench.policy), (versions, stricter)):
            with pytest.raises(pytest.fail.Exception, match="computed again"):
                visibility_table(bench.store, *others_or_stricter)
    for path in bench.store.root.glob("search/*/visible-*"):
        path.write_bytes(path.read_bytes()[:-9] + b"damaged??")
    assert visibility_table(bench.store, versions, bench.policy).equals(first)


def test_visibility_is_the_same_before_and_after_the_indexes_of_a_scan_are_built(bench):
    bench.policy = Policy(tokenizer_str="words", detectors=("aligned",), hot_ngram_records=10)
    versions = bench.prepare({"b": mixed_items(), "b2": FILLER})
    before = visibility_table(bench.store, versions, bench.policy)
    index, scan = (of(bench.store, bench.policy) for of in (index_fingerprint, scan_fingerprint))
    build_search_files(bench.store, sort_versions(versions), bench.policy, index=index, scan=scan)
    (kept,) = bench.store.root.rglob("visible-*")
    kept.unlink()
    assert visibility_table(bench.store, versions, bench.policy).equals(before)
    assert {*before["is_visible"].to_pylist()} == {True, False}


def test_visibility_is_computed_in_a_store_that_may_only_be_read(bench, monkeypatch):
    def refuse(*_):
        raise OSError(errno.EROFS, "read-only file system")

    versions = bench.prepare({"b": mixed_items(), "b2": FILLER})
    with monkeypatch.context() as patched:
        patched.setattr(visibility, "write_arrow", refuse)
        first = visibility_table(bench.store, versions, bench.policy)
    assert visibility_table(bench.store, versions, bench.policy).equals(first)
    monkeypatch.setattr(visibility, "mark_used", refuse)
    assert visibility_table(bench.store, versions, bench.policy).equals(first)


def test_an_item_that_only_a_detector_without_proof_finds_is_blind(bench):
    bench.policy = Policy(
        tokenizer_str="words", detectors=("decon", "reworded"), eval_min_token_length=20
    )
    short = "Which rocky planet orbits the dwarf star Proxima Centauri closest of all?"
    versions = bench.prepare({"b": [(short, None, None), (words("q", 30), None, None)]})
    table = visibility_table(bench.store, versions, bench.policy)
    seen = {
        (row["instance_index"], row["detector"]): row["is_visible"] for row in table.to_pylist()
    }
    assert (seen[0, "decon"], seen[0, "reworded"]) == (False, True)
    assert blind_items(table, bench.policy) == {"b": {("test", 0)}}
    proven = {"leak": ("reworded",), "review": ()}
    of_benchmark = replace(bench.policy, benchmark={"b": proven})
    assert blind_items(table, of_benchmark) == {}
    assert blind_items(table, replace(bench.policy, benchmark={"other": proven})) == {
        "b": {("test", 0)}
    }
    of_others = {"b": {"leak": ("verbatim",), "review": ("reworded",)}}
    assert blind_items(table, replace(bench.policy, **proven, benchmark=of_others)) == {
        "b": {("test", 0)}
    }


def test_an_item_is_as_visible_as_the_best_of_its_questions(bench):
    def record(number, sub, question, answer):
        return {
            "benchmark": "b", "config": "c", "split": "test", "instance_index": number,
            "sub_index": sub, "question": question, "answer": answer,
            "fingerprint": fingerprint_of(None, question, answer),
        }  # fmt: skip

    bench.policy = Policy(tokenizer_str="words", detectors=("ngram_any", "longest_match"))
    rows = [
        record(4, 0, words("few", 4), None),
        record(4, 1, words("more", 12), None),
        record(9, 0, words("some", 5), words("x", 3)),
        record(9, 1, words("many", 20), words("y", 3)),
        record(9, 2, words("none", 2), words("z", 3)),
    ]
    version = save_records(bench.store, "b", pa.Table.from_pylist(rows, schema=RECORDS))
    bench.index([version], freeze(bench.store, [version], bench.policy))
    found = visibility_table(bench.store, [version], bench.policy).to_pylist()
    assert [
        (row["instance_index"], row["detector"], row["n_records"], row["reason"]) for row in found
    ] == [
        (4, "ngram_any", 2, "question shorter than the threshold"),
        (9, "ngram_any", 3, None),
        (4, "longest_match", 2, None),
        (9, "longest_match", 3, None),
    ]
    assert {row["config"] for row in found} == {"c"}


# Counts -------------------------------------------------------------------------------------------


def test_counts_are_those_of_the_table(bench):
    bench.policy = ALL
    items = mixed_items()
    versions = bench.prepare({"b": items, "a": items[:20]})
    rows = visibility_table(bench.store, versions, ALL).to_pylist()
    every = visibilities(bench.store, versions, ALL)
    counts = {(one.benchmark, one.detector): one.n_visible for one in every}
    assert list(counts) == [(name, detector) for name in ("a", "b") for detector in BUILT_IN]
    for (name, detector), n in counts.items():
        own = [row for row in rows if (row["benchmark"], row["detector"]) == (name, detector)]
        assert n == sum(row["is_visible"] for row in own)
    for one in every:
        assert one.n_visible + sum(one.why_not.values()) == one.n_items
        assert [*one.why_not.values()] == sorted(one.why_not.values(), reverse=True)


def test_a_benchmark_without_records_is_seen_by_no_rule(bench):
    bench.policy = ALL
    versions = bench.prepare({"b": [], "b2": FILLER})
    every = visibilities(bench.store, versions, ALL)
    assert {one.n_visible for one in every if one.benchmark == "b"} == {0}
    assert every[0].share == 0.0
    assert visibility_table(bench.store, versions[:1], ALL).num_rows == 0
    assert visibility_table(bench.store, [], ALL).num_rows == 0


# Report -------------------------------------------------------------------------------------------


@pytest.fixture
def reported(bench):
    """One document holds items 0 and 2 whole, another half of item 0, a third item 1."""
    items = [(words("q", 30), words("a", 8), None), (words("r", 14), None, None)]
    items += [(words("s", 6), None, None), (words("t", 3), None, None)]
    bench.policy = Policy(
        tokenizer_str="words", detectors=("decon", "ngram_any", "exact"), eval_min_token_length=20
    )
    versions = bench.prepare({"b": items, "b2": FILLER})
    half = " ".join(items[0][0].split()[:16])
    texts = (f"{items[0][0]} {items[0][1]} or {items[2][0]}", half, items[1][0])
    pack = bench.pack({"a.jsonl": [f"{words(n, 30)} {text} ." for n, text in enumerate(texts)]})
    scan_packs(bench.store, [pack], versions, bench.policy)
    summary = report_of(bench.store, [pack], versions, bench.policy)
    with duckdb.connect(str(bench.store.report), read_only=True) as connection:
        yield summary, lambda query: connection.execute(query).fetchall()


def test_an_item_has_leaked_when_any_rule_says_so(reported):
    summary, rows = reported
    assert rows("SELECT status, n_documents, found_by FROM item_status WHERE benchmark = 'b'") == [
        ("leaked", 2, "decon, exact, ngram_any"),
        ("leaked", 1, "exact, ngram_any"),
        ("leaked", 1, "exact"),
        ("cannot be checked", 0, None),
    ]
    headline = "SELECT n_items, n_leaked, n_checkable, leak_rate, n_leaks FROM by_benchmark"
    assert rows(f"{headline} WHERE benchmark = 'b'") == [(4, 3, 3, 1.0, 4)]
    bounds = "SELECT at_least, at_most FROM by_benchmark WHERE benchmark = 'b'"
    assert rows(bounds) == [(0.75, 1.0)]
    columns = "source, n_documents, n_unreadable, n_contaminated_documents, n_leaked_items"
    assert rows(f"SELECT {columns} FROM by_source") == [("web", 3, 0, 3, 3)]
    by_both = "SELECT benchmark, source, n_leaked, n_documents FROM by_benchmark_and_source"
    assert rows(by_both) == [("b", "web", 3, 3)]
    names = "leaked_items", "leaks", "contaminated_documents"
    assert [summary.counts[name] for name in names] == [3, 4, 3]


def test_the_report_says_what_each_rule_found_and_what_only_it_did(reported):
    _, rows = reported
    assert rows("FROM by_detector WHERE benchmark = 'b'") == [
        ("b", "decon", 1, 1, 0, 0, 0),
        ("b", "exact", 3, 2, 1, 0, 0),
        ("b", "ngram_any", 2, 3, 0, 0, 0),
    ]
    query = (
        "SELECT detector, status, n_documents, reason FROM items_by_detector WHERE benchmark = 'b' "
    )
    assert rows(f"{query} AND instance_index = 1 ORDER BY detector") == [
        ("decon", "cannot be checked", 0, "too few tokens"),
        ("exact", "leaked", 1, None),
        ("ngram_any", "leaked", 1, None),
    ]
    assert rows(
        "SELECT DISTINCT n_leaked, n_documents FROM by_detector WHERE benchmark = 'b2'"
    ) == [(0, 0)]


def test_the_report_says_how_much_each_rule_can_see(reported):
    _, rows = reported
    assert rows("FROM visibility_by_detector WHERE benchmark = 'b'") == [
        ("b", "decon", 4, 1, 0.25, "too few tokens"),
        ("b", "exact", 4, 3, 0.75, "not informative enough"),
        ("b", "ngram_any", 4, 2, 0.5, "question too short"),
    ]
    query = "SELECT is_indexed, why_not_indexed FROM items WHERE benchmark = 'b'"
    assert rows(query) == [(True, None)] * 3 + [(False, "too few tokens")]


def test_an_item_that_decon_cannot_see_is_no_longer_lost_when_another_rule_can(bench):
    items = [(words("q", 14), None, None)]
    for detectors, expected in ((("decon",), "cannot be checked"), (("decon", "exact"), "clean")):
        bench.policy = Policy(tokenizer_str="words", detectors=detectors, eval_min_token_length=20)
        versions = bench.prepare({"b": items, "b2": FILLER})
        pack = bench.pack({"a.jsonl": [words("other", 40)]})
        scan_packs(bench.store, [pack], versions, bench.policy)
        report_of(bench.store, [pack], versions, bench.policy)
        with duckdb.connect(str(bench.store.report), read_only=True) as connection:
            status = connection.execute("SELECT status FROM item_status WHERE benchmark = 'b'")
            assert status.fetchall() == [(expected,)]


@given(st.lists(st.tuples(st.booleans(), st.booleans(), st.booleans()), max_size=5))
def test_details_name_the_flags_that_are_set(rows):
    names = ("question", "answer", "continuation")
    flags = {name: np.array([row[at] for row in rows], np.bool_) for at, name in enumerate(names)}
    expected = [", ".join(compress(names, row)) or None for row in rows]
    assert joined_names(flags).tolist() == expected


@given(st.lists(st.sampled_from("abc"), max_size=6))
def test_alike_records_are_known_by_the_first_of_them(fingerprints):
    records = pa.table({"fingerprint": pa.array(fingerprints, pa.string())})
    alike = RecordTexts(records, None, {}, None).alike
    assert alike.tolist() == [fingerprints.index(fingerprint) for fingerprint in fingerprints]
