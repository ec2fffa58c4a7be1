"""The report's views of `exact` and `longest_match`, against rows counted by hand."""

from contextlib import contextmanager
from dataclasses import replace

import duckdb
import pyarrow as pa
import pytest

from decon_core.benchmarks.normalized import fingerprint_of
from decon_core.benchmarks.records import save_records
from decon_core.config.policy import Policy
from decon_core.corpus.packs import Pack, find_shards
from decon_core.index.term_weights import freeze
from decon_core.scan.scanner import scan_packs
from decon_core.schemas import RECORDS
from tests.core.places import report_of

ASKED_BY_ALL = "Which of the following statements is true of all of them?"
SUBSETS = {"law": (0, 1), "maths": (2, 3, 4)}


@pytest.fixture
def reported(bench, make_words):
    """Scan these documents, by source, for these records; gives the queries of the report."""

    def records(benchmark, items, subsets):
        subset_of = {number: name for name, numbers in subsets.items() for number in numbers}
        rows = [
            {
                "benchmark": benchmark,
                "config": subset_of.get(number),
                "split": "test",
                "instance_index": number,
                "question": question,
                "answer": answer,
                "fingerprint": fingerprint_of(None, question, answer),
            }
            for number, (question, answer) in enumerate(items)
        ]
        return save_records(bench.store, benchmark, pa.Table.from_pylist(rows, schema=RECORDS))

    def pack_of(name, texts):
        web = bench.pack({f"{name}.jsonl": texts}).source
        source = replace(web, name=name, path=f"{name}.jsonl")
        shards = find_shards(source, folder=bench.folder / "shards", known={})
        return Pack(name=f"{name}-0000", source=source, shards=tuple(shards))

    @contextmanager
    def report(items, sources, policy, *, subsets=None):
        bench.policy = policy
        # Never found. Without them a single item's n-grams would say nothing.
        others = [(make_words(("other", n), 30), None) for n in range(3)]
        benchmarks = {"quiz": items, "other": others}
        versions = [records(name, own, subsets or {}) for name, own in benchmarks.items()]
        bench.index(versions, freeze(bench.store, versions, policy))
        packs = [pack_of(name, texts) for name, texts in sources.items()]
        scan_packs(bench.store, packs, versions, policy)
        report_of(bench.store, packs, versions, policy)
        with duckdb.connect(str(bench.store.report), read_only=True) as connection:
            yield lambda query: connection.execute(query).fetchall()

    return report


# exact --------------------------------------------------------------------------------------------


@pytest.fixture
def counted(reported, make_words):
    """Item 0 stands in two sources, items 1 to 3 in one each; item 4 asks what others ask."""
    questions = [make_words(("q", n), 12) for n in range(4)]
    answers = [make_words(("a", n), 3) for n in range(5)]
    items = [*zip(questions, answers, strict=False), (ASKED_BY_ALL, answers[4])]
    items += [(ASKED_BY_ALL, f"x{n}") for n in range(5)]
    noise = [make_words(("noise", n), 10) for n in range(4)]
    whole = f"{questions[0]} {answers[0]}"
    sources = {
        "books": [
            f"{noise[0]} {whole} {noise[1]} {whole} {noise[2]} {questions[0]} {noise[3]}",
            f"{noise[0]} {questions[0]} {noise[1]}",
            f"{ASKED_BY_ALL} {noise[0]} {ASKED_BY_ALL}",
            f"{noise[1]} {' '.join([questions[3]] * 7)} {noise[2]}",
            f"{questions[1]} {noise[3]} {questions[1]}",
        ],
        "web": [
            f"{noise[2]} {whole} {noise[3]}",
            f"{noise[1]} {questions[2]} {noise[2]}",
            noise[0],
        ],
        "wiki": [noise[1]],
    }
    policy = Policy(detectors=("decon", "exact"))
    subsets = {**SUBSETS, "others": range(5, 10)}
    with reported(items, sources, policy, subsets=subsets) as rows:
        yield rows


def test_an_item_is_counted_by_source_and_by_the_text_that_stands_there(counted):
    assert counted("FROM exact_by_item") == [
        # How often, in how many documents; the question, with its answer, as a continuation.
        ("quiz", "law", "test", 0, "books", 3 + 1, 2, 3 + 1, 2 + 0, 0),
        ("quiz", "law", "test", 0, "web", 1, 1, 1, 1, 0),
        ("quiz", "law", "test", 1, "books", 2, 1, 2, 0, 0),
        ("quiz", "maths", "test", 2, "web", 1, 1, 1, 0, 0),
        ("quiz", "maths", "test", 3, "books", 7, 1, 7, 0, 0),
    ]


def test_the_text_that_stands_there_most_often_counts_for_a_document(reported, make_words):
    """A last sentence with its answer twice; once with the question that it ends."""
    first, last, answer = (make_words(name, 8) for name in ("first", "last", "answer"))
    question = f"{first}. {last}?"
    document = f"{question} {answer} {make_words('noise', 10)} {last}? {answer} ."
    policy = Policy(detectors=("exact",))
    with reported([(question, answer)], {"web": [document]}, policy) as rows:
        assert rows("FROM exact_by_item") == [("quiz", None, "test", 0, "web", 2, 1, 1, 1, 2)]


# longest_match ------------------------------------------------------------------------------------


@pytest.fixture
def measured(reported, make_words):
    """Fields of ten words, and documents that hold so many of them in a row."""
    items = [(make_words(("q", n), 10), make_words(("a", n), 10)) for n in range(6)]
    items += [(make_words("q6", 10), "too short"), ("too", "short"), ("too short", items[3][1])]

    def part(text, n):
        return " ".join(text.split()[:n])

    def noise(n):
        return make_words(("noise", n), 12)

    texts = [
        f"{noise(0)} {part(items[0][0], 8)} {noise(1)}",  # source only
        f"{noise(2)} {part(items[1][1], 9)} {noise(3)}",  # target only
        f"{noise(4)} {items[2][0]} {noise(5)}",  # both, in two documents
        f"{noise(6)} {part(items[2][1], 8)} {noise(7)}",
        f"{noise(8)} {part(items[3][0], 6)} {part(items[3][1], 7)} {noise(9)}",  # at the threshold
        f"{noise(10)} {items[6][0]} {noise(11)}",
    ]
    policy = Policy(
        detectors=("longest_match",),
        tokenizer_str="words",
        shared_ngram_size=5,
        longest_match_threshold=0.7,
    )
    with reported(items, {"web": texts}, policy) as rows:
        yield rows


def test_every_item_has_both_scores_and_says_which_field_leaked(measured):
    both = "question, answer"
    query = "SELECT * EXCLUDE (benchmark, config, split) FROM longest_match_by_item "
    assert measured(f"{query} WHERE benchmark = 'quiz'") == [
        (0, "source only", 0.8, 0.0, 1, both),
        (1, "target only", 0.0, 0.9, 1, both),
        (2, "both", 1.0, 0.8, 2, both),
        (3, "clean", 0.6, 0.7, 1, both),  # found, and does not pass the threshold
        (4, "clean", None, None, 0, both),  # nothing found down to the floor
        (5, "clean", None, None, 0, both),
        (6, "source only", 1.0, None, 1, "question"),
        (7, "not searchable", None, None, 0, None),
        (8, "clean", None, 0.7, 1, "answer"),
    ]


def test_a_field_passes_the_threshold_of_the_policy(reported, make_words):
    question = make_words("q", 10)
    text = f"{make_words(1, 20)} {' '.join(question.split()[:8])} {make_words(2, 20)}"
    for threshold, status in ((0.8, "clean"), (0.75, "source only")):
        policy = Policy(
            detectors=("longest_match",),
            tokenizer_str="words",
            longest_match_threshold=threshold,
        )
        with reported([(question, None)], {"web": [text]}, policy) as rows:
            query = "SELECT status, source_score FROM longest_match_by_item "
            assert rows(f"{query} WHERE benchmark = 'quiz'") == [(status, 0.8)]


def test_rules_that_were_not_chosen_say_nothing(reported, make_words):
    question = make_words("q", 30)
    with reported([(question, None)], {"web": [question]}, Policy(tokenizer_str="words")) as rows:
        for view in ("exact_by_item", "longest_match_by_item"):
            assert rows(f"FROM {view}") == []
