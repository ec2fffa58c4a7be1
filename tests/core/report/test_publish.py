"""What is published of a report, against numbers counted by hand, and what a build is told."""

import json
import tomllib
from dataclasses import asdict
from xml.etree import ElementTree as ET

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from decon_core.config.policy import Policy
from decon_core.decisions.not_read import NotRead
from decon_core.errors import InputError, MissingError, StaleError
from decon_core.report.blind_spots import QUESTIONS_LEFT_OUT, blind_spots
from decon_core.report.publish.limits import COVERAGE, DOCUMENTS, Case, Limits, cases_of, junit_of
from decon_core.report.publish.summary import SCHEMA, card_from, format_headline, summary_of
from tests.core.report.reports import write_report

ITEM = {"benchmark": "quiz", "split": "test", "is_indexed": True, "has_answer": True}
MATCH = {
    "source": "web",
    "shard_name": "a.jsonl",
    "detector": "decon",
    "benchmark": "quiz",
    "split": "test",
    "score": 0.9,
    "is_contaminated": True,
    "is_by_score": True,
}
SHARD = {"n_rows": 50, "n_documents": 40, "n_characters": 900, "n_too_short": 3, "n_unreadable": 0}
RUN = {
    "state": "s1",
    "scan_fingerprint": "f1",
    "term_weights": "i1",
    "threshold": 0.85,
    "thresholds": '{"decon": 0.85}',
    "made_by": "decon-assets 0.1.0",
    "policy": json.dumps(
        {"contamination_score_threshold": 0.85, "tokenizer_str": "/home/me/t.json"}
    ),
}


def card_of(report):
    return card_from(summary_of(report))


def tables(**changed):
    """Ten items of a quiz, two of which leaked, into three documents; 80 documents in all."""
    given = {
        "runs": [RUN],
        "benchmarks": [{"benchmark": "quiz", "version": "v1", "n_items": 10, "n_records": 10}],
        "items": [
            {**ITEM, "instance_index": n, "is_indexed": n < 8, "why_not_indexed": WHY.get(n)}
            for n in range(10)
        ],
        "shards": [
            {"source": "web", "pack": "w", "shard_name": "a.jsonl", **SHARD},
            {"source": "books", "pack": "b", "shard_name": "a.jsonl", **SHARD},
        ],
        "matches": [
            {**MATCH, "instance_index": 0, "row": 1, "answer_overlap": 1.0},
            {**MATCH, "instance_index": 0, "row": 2},
            {**MATCH, "instance_index": 1, "row": 2},
            {**MATCH, "instance_index": 1, "row": 1, "source": "books"},
            {**MATCH, "instance_index": 2, "row": 9, "score": 0.5, "is_contaminated": False},
        ],
    }
    return given | changed


WHY = {8: "too short", 9: "too short"}


def unreadable(reason, n=1):
    return NotRead("row", "web", "a.jsonl", None, reason, n, 50, 0)._asdict()


def test_rows_of_a_held_out_split_of_a_benchmark_are_named_in_headline_and_card(report):
    row = {"source": "web", "field": "dataset", "value": "me/quiz", "is_held_out": True}
    row |= {"benchmark": "quiz", "split": "test"}
    rows = [
        {**row, "shard_name": "a.jsonl", "n_rows": 1200},
        {**row, "shard_name": "b.jsonl", "n_rows": 34},
        {**row, "shard_name": "b.jsonl", "n_rows": 5, "split": "train", "is_held_out": False},
        {**row, "shard_name": "b.jsonl", "n_rows": 6, "value": "other", "benchmark": None},
    ]
    path = report(row_origins=rows)
    said = "1,234 rows of 2 shards say that they are me/quiz, split test (benchmark quiz)"
    assert said in format_headline(path).splitlines()
    (found,) = summary_of(path)["origins"]
    assert (found["n_rows"], found["n_shards"], found["shard"]) == (1234, 2, "a.jsonl")
    assert card_of(path).count(" say that they are ") == 1
    assert said in card_of(path)


@pytest.fixture
def report(tmp_path):
    """Writes a report of these tables."""
    return lambda **changed: write_report(tmp_path / "r.duckdb", **tables(**changed))


# Summary ------------------------------------------------------------------------------------------


def test_a_summary_counts_items_and_documents(report):
    summary = summary_of(report())
    assert summary["schema"] == SCHEMA
    (quiz,) = summary["benchmarks"]
    counts = ("n_items", "n_leaked", "n_with_answer", "n_without_answer", "n_no_answer")
    assert [quiz[name] for name in counts] == [10, 2, 1, 1, 0]
    assert (quiz["n_not_checkable"], quiz["n_documents"]) == (2, 3)
    checkable = ("n_checkable", "n_leaked_checkable", "n_unknown", "leak_rate")
    assert [quiz[name] for name in checkable] == [8, 2, 2, 0.25]
    assert 0.07 < quiz["low"] < 0.08  # Wilson, 2 of 8: 0.0715 to 0.5907
    assert 0.59 < quiz["high"] < 0.6
    assert (quiz["at_least"], quiz["at_most"]) == (0.2, 0.4)
    assert quiz["splits"][0] | {"low": 0, "high": 0} == {
        "split": "test",
        "n_items": 10,
        "n_checkable": 8,
        "n_leaked": 2,
        "n_leaked_checkable": 2,
        "n_no_answer": 0,
        "leak_rate": 0.25,
        "low": 0,
        "high": 0,
        "at_least": 0.2,
        "at_most": 0.4,
    }
    assert quiz["detectors"] == [{"detector": "decon", "n_leaked": 2}]
    assert quiz["not_checkable"] == [{"reason": "too short", "n_items": 2}]


QUESTION = {**MATCH, "is_contaminated": False, "is_by_score": False, "is_no_answer": True}


def test_no_answer_is_counted_beside_leaks_and_never_as_clean(report):
    """A document with a leak is no no-answer one, nor is an item that leaked elsewhere."""
    matches = [
        *tables()["matches"],
        {**QUESTION, "instance_index": 3, "row": 20, "score": 0.7},
        {**QUESTION, "instance_index": 3, "row": 21, "score": 0.7},
        {**QUESTION, "instance_index": 3, "row": 1, "score": 0.7},  # beside a leak
        {**QUESTION, "instance_index": 0, "row": 22, "score": 0.7},  # which leaked elsewhere
    ]
    path = report(matches=matches)
    summary = summary_of(path)
    (quiz,) = summary["benchmarks"]
    assert (quiz["n_leaked"], quiz["n_no_answer"], quiz["no_answer_rate"]) == (2, 1, 0.1)
    assert quiz["n_no_answer_documents"] == 3
    assert quiz["splits"][0]["n_no_answer"] == 1
    corpus = summary["corpus"]
    assert (corpus["n_contaminated_documents"], corpus["n_no_answer_documents"]) == (3, 3)
    assert corpus["no_answer_rate"] == 0.0375
    card = card_of(path)
    assert "3 documents (3.8 % of all) contain no leak, but the question of an item" in card
    assert "| 1 | 0 | 3 | 1 | 3 |" in card
    with duckdb.connect(str(path), read_only=True) as connection:
        asked = connection.execute(
            "SELECT status, count(*) FROM item_status GROUP BY status ORDER BY status"
        ).fetchall()
        documents = connection.execute(
            "SELECT row, is_contaminated, is_no_answer, n_no_answer_items FROM documents "
            "WHERE row IN (1, 20, 22) AND source = 'web' ORDER BY row"
        ).fetchall()
        sources = connection.execute(
            "SELECT source, n_no_answer_documents, no_answer_share FROM by_source"
        ).fetchall()
    expected = [("cannot be checked", 2), ("clean", 5), ("leaked", 2), ("no answer", 1)]
    assert asked == expected
    assert documents == [(1, True, False, 1), (20, False, True, 1), (22, False, True, 1)]
    assert sources == [("books", 0, 0.0), ("web", 3, 0.075)]


def test_a_card_says_that_a_result_needs_verdicts_and_annotations(report):
    said = [{"text_id": "a", "verdict": "leak", "is_found": True}]
    judged = [{"pair": who, "judge": who} for who in ("person", "file", "model")]
    card = card_of(report(runs=[{**RUN, "verdicts": "d1"}], verdicts=said, judged_pairs=judged))
    needed = "the file of verdicts (digest `d1`), the annotations of 2 pairs and the benchmark"
    assert f"With these settings in `decon.toml`, {needed}" in card
    assert card.count("reworded") == 1
    assert "With these settings in `decon.toml` and the benchmark versions above" in card_of(
        report()
    )


def test_candidates_are_in_the_headline_the_summary_and_the_card(report):
    candidate = {**MATCH, "is_contaminated": False, "is_by_score": False, "needs_review": True}
    matches = [
        *tables()["matches"],
        {**candidate, "instance_index": 3, "row": 20, "detector": "reworded"},
        {**candidate, "instance_index": 3, "row": 1, "detector": "reworded"},  # beside a leak
    ]
    path = report(matches=matches)
    assert (
        "\n1 more document contains only similar text that nobody has reviewed yet"
        in format_headline(path)
    )
    summary = summary_of(path)
    assert summary["corpus"]["n_review_documents"] == 1
    assert [one["n_review_documents"] for one in summary["sources"]] == [0, 1]
    assert [one["n_review"] for one in summary["benchmarks"]] == [1]
    card = card_of(path)
    assert "1 document contains only similar text that nobody has reviewed yet" in card
    assert "Items that need review, neither leaked nor clean: 1 of `quiz`." in card
    assert "review" not in format_headline(report())
    assert "andidate" not in card_of(report())


def test_no_answer_has_a_limit_of_its_own_and_leaks_have_theirs(report):
    matches = [{**QUESTION, "instance_index": n, "row": n} for n in range(3)]
    summary = summary_of(report(matches=matches))
    passed, coverage = cases_of(summary, Limits(max_rate=0.2))
    assert (passed.is_passed, coverage.is_passed) == (True, True)
    assert (passed.n_leaked, passed.n_no_answer, passed.no_answer_rate) == (0, 3, 0.3)
    held = Limits(max_no_answer_rate=0.3, assumed_clean=("quiz",))
    assert all(case.is_passed for case in cases_of(summary, held))
    assert cases_of(summary, Limits(max_no_answer_rate=0.3))[0].is_undecided
    assert cases_of(summary, Limits(max_no_answer_rate=0.5))[0].is_passed
    rounded = Limits(max_no_answer_rate=0.3 - 1e-12, assumed_clean=("q*",))
    assert all(case.is_passed for case in cases_of(summary, rounded))
    (failed, _) = cases_of(summary, Limits(max_no_answer_rate=0.2))
    assert failed.wrong == (
        "3 of 10 items are found without the answer (at least 30.0 %), more than 20.0 %",
    )
    assert not failed.is_undecided
    (failed, _) = cases_of(summary, Limits(max_no_answer_rate=0.4, by="upper"))
    assert "which may be more than 40.0 %" in failed.wrong[0]
    told = junit_of(cases_of(summary, Limits(max_no_answer_rate=0.2)))
    assert "3 of 10 found without the answer: 30.0 %; limit: 20.0 %" in told
    with pytest.raises(InputError, match="max-no-answer-rate"):
        Limits(max_no_answer_rate=1.5)


@pytest.mark.parametrize(
    ("overlap", "expected"), [(0.006, (0, 1, 0)), (0.5, (1, 0, 0)), (None, (0, 0, 1))]
)
def test_a_leak_with_a_trace_of_its_answer_is_not_one_with_its_answer(report, overlap, expected):
    (quiz,) = summary_of(
        report(matches=[{**MATCH, "instance_index": 0, "answer_overlap": overlap}])
    )["benchmarks"]
    names = ("n_with_answer", "n_with_part_of_answer", "n_without_answer")
    assert tuple(quiz[name] for name in names) == expected


def test_leaked_items_without_an_answer_are_counted_apart(report):
    items = [{**item, "has_answer": False} for item in tables()["items"]]
    path = report(items=items)
    (quiz,) = summary_of(path)["benchmarks"]
    names = ("n_leaked", "n_without_answer", "n_leaked_without_having_one")
    assert [quiz[name] for name in names] == [2, 0, 2]
    assert "These leaked items have no answer to look for: 2 of `quiz`." in card_of(path)


def test_two_shards_of_one_name_are_two_documents_of_one_row(report):
    summary = summary_of(report())
    corpus = summary["corpus"]
    assert (corpus["n_documents"], corpus["n_contaminated_documents"]) == (80, 3)
    assert corpus["document_rate"] == 0.0375
    assert corpus["n_leaked_items"] == 2
    of_sources = {one["source"]: one for one in summary["sources"]}
    assert of_sources["web"]["n_contaminated_documents"] == 2
    assert of_sources["books"]["document_rate"] == 0.025


def test_a_source_without_a_leak_has_a_rate_of_zero_and_not_none(report):
    rows = [one for one in tables()["matches"] if one["source"] == "web"]
    books = summary_of(report(matches=rows))["sources"][0]
    assert (books["source"], books["document_rate"], books["low"]) == ("books", 0.0, 0.0)


def test_what_nobody_counted_is_null_and_never_zero(report):
    summary = summary_of(
        report(
            benchmarks=[{"benchmark": "quiz"}],
            items=[{**ITEM, "instance_index": n} for n in range(2)],
            shards=[{"source": "web", "shard_name": "a.jsonl"}],
        )
    )
    (quiz,) = summary["benchmarks"]
    assert quiz["n_leaked"] == 2
    unknown = ("n_items", "n_checkable", "leak_rate", "low", "high", "at_least", "at_most")
    for name in (*unknown, "n_not_checkable", "no_answer_rate"):
        assert quiz[name] is None
    assert quiz["splits"][0]["leak_rate"] is None
    for name in ("n_documents", "n_unreadable", "document_rate"):
        assert summary["corpus"][name] is None
    assert summary["corpus"]["n_contaminated_documents"] == 3
    card = card_from(summary)
    assert "This dataset (1 file) was searched for the items of 1 benchmark. 2 items" in card
    assert "2 items leaked into 3 documents, before" in card
    assert "- Number of items of `quiz`: unknown." in card
    assert "- Number of unreadable rows: unknown." in card


def test_one_shard_that_nobody_counted_makes_the_sum_unknown(report):
    shards = [*tables()["shards"], {"source": "web", "shard_name": "b.jsonl"}]
    summary = summary_of(report(shards=shards))
    documents = {one["source"]: one["n_documents"] for one in summary["sources"]}
    assert documents == {"books": 40, "web": None}
    assert summary["corpus"]["n_documents"] is None


def test_mixtures_say_what_they_lack_and_why(report):
    account = {"n_documents_in": 40, "n_documents_out": 38, "n_tokens_in": 9, "n_tokens_out": 8}
    gone = {"mixture": "m", "source": "web", "shard_name": "a.jsonl", "what": "document"}
    summary = summary_of(
        report(
            mixtures=[
                {"mixture": "m", "source": "web", "shard_name": f"{n}", "is_current": n < 2}
                | account
                for n in range(3)
            ],
            removed=[{**gone, "row": n, "why": "leak"} for n in (1, 1, 2)],
        )
    )
    (mixture,) = summary["mixtures"]
    assert mixture["is_current"] is False  # one of its shards is not
    assert (mixture["n_documents_in"], mixture["n_documents_out"]) == (120, 114)
    assert mixture["removed"] == [{"what": "document", "why": "leak", "n_documents": 2}]
    assert "Not counted, because they were built from inputs that differ" in card_from(summary)
    mixture["is_current"] = True
    assert "| `m` | 120 | 114 | 27 | 24 | leak (document) 2 |" in card_from(summary)


def test_a_card_says_how_reasons_add_up_if_a_document_has_several(report):
    gone = {"mixture": "m", "source": "web", "shard_name": "a.jsonl", "what": "document"}
    mixture = {"mixture": "m", "source": "web", "shard_name": "a.jsonl", "is_current": True}
    reasons = [(1, "leak"), (2, "leak"), (2, "no answer")]
    removed = [{**gone, "row": row, "why": why} for row, why in reasons]
    card = card_of(report(mixtures=[mixture], removed=removed))
    told = "leak (document) 2; no answer (document) 1; together 2 documents"
    assert f"{told}, as some have several reasons |" in card


def test_a_summary_says_nothing_of_somebodys_disk_and_is_the_same_every_time(report):
    path = report()
    assert summary_of(path) == summary_of(path)
    text = json.dumps(summary_of(path))
    assert "/home/me" not in text
    assert "t.json" in text


def test_a_file_that_is_no_report_is_named(tmp_path):
    with pytest.raises(MissingError, match=r"nowhere\.duckdb: no such file"):
        summary_of(tmp_path / "nowhere.duckdb")
    other = tmp_path / "other.duckdb"
    other.write_bytes(b"not a database at all, however it ends")
    with pytest.raises(StaleError, match="not a database"):
        summary_of(other)


# Card ---------------------------------------------------------------------------------------------


def test_a_card_says_what_was_looked_for_found_and_not_seen(report):
    card = card_of(report(not_read=[unreadable("not JSON")]))
    for told in (
        "2 items leaked into 3 documents (3.8 % of all)",
        "| `quiz` | `test` | `v1` | 10 | 8 |",
        "| `decon` | idf-weighted overlap of question, answer and passage n-grams | 0.85 |",
        "| `quiz` | 2 | 2 of 8 | 25.0 % | 7.1 % to 59.1 % | 20.0 % to 40.0 % | 1 | 0 | 3 | 0 | 0 |",
        "| `web` | 40 | 2 | 5.0 % |",
        "- 2 items of `quiz` cannot be found: too short.",
        "- 1 row of source `web` could not be read: 1 not JSON.",
        "- 6 documents are too short to contain an item.",
        "scan settings `f1`, term weights `i1`",
        'tokenizer_str = "t.json"',
    ):
        assert told in card


@pytest.mark.parametrize(
    ("n", "told"), [(1, "1 document has bytes"), (2, "2 documents have bytes")]
)
def test_documents_that_are_not_utf8_are_in_the_headline_the_summary_and_the_card(report, n, told):
    shard = {"source": "web", "pack": "w", "shard_name": "a.jsonl", **SHARD, "n_invalid_utf8": n}
    path = report(shards=[shard])
    assert f"{told} that are not UTF-8 (scanned as U+FFFD): decon-assets" in format_headline(path)
    summary = summary_of(path)
    assert summary["corpus"]["n_invalid_utf8"] == n
    assert summary["sources"][0]["n_invalid_utf8"] == n
    assert f"{n} document{'s' * (n > 1)} with bytes that are not UTF-8" in card_of(path)


def test_no_answer_items_that_a_scan_left_out_are_not_passed_over(report):
    run = {**RUN, "policy": json.dumps({"keep_no_answer": False})}
    path = report(runs=[run])
    assert QUESTIONS_LEFT_OUT in format_headline(path)
    assert QUESTIONS_LEFT_OUT in card_of(path)
    summary = summary_of(path)
    (*_, coverage) = cases_of(summary, Limits(max_no_answer_rate=1.0))
    assert coverage.wrong == (f"not all no-answer items are known: {QUESTIONS_LEFT_OUT}",)
    assert all(case.is_passed for case in cases_of(summary, Limits(max_rate=1.0)))
    assert QUESTIONS_LEFT_OUT not in format_headline(report()) + card_of(report())


def test_what_a_card_does_not_cover_begins_with_what_no_scan_finds(report):
    (head, lines) = card_of(report()).split("### What this does not cover\n\n")
    assert lines.startswith("- The limits named in the first paragraph, items of benchmarks that ")
    assert "Not covered: items that were reworded, translated or given other numbers; " in head


@pytest.mark.parametrize(
    ("detectors", "parts"),
    [
        (["aligned"], "answers, solutions or tests alone; code with all names changed"),
        (["aligned", "code"], "answers or tests alone"),
        (["aligned", "exact"], "tests alone; code with all names changed"),
    ],
)
def test_what_is_not_covered_depends_on_the_detectors(detectors, parts):
    sentence = f"Not covered: items that were reworded or translated; {parts}"
    assert blind_spots(detectors, 0) == f"{sentence}."
    assert blind_spots(detectors, 1) == f"{sentence}; 1 item that no chosen detector can find."


def test_the_settings_of_a_card_are_those_of_a_policy_file(report):
    policy = {
        "contamination_score_threshold": 0.9,
        "detectors": ["decon", "exact"],
        "ngram_size": 6,
    }
    card = card_of(report(runs=[{**RUN, "policy": json.dumps(policy)}]))
    settings = tomllib.loads(card.partition("```toml\n")[2].partition("```")[0])
    assert Policy.from_mapping(settings["policy"]).ngram_size == 6
    assert settings["policy"] == policy


def test_the_settings_of_a_card_with_thresholds_of_single_benchmarks_give_the_same_policy(report):
    """Tables [policy.benchmark.NAME] are not part of the table [policy] of scalars."""
    policy = Policy(
        detectors=("decon", "longest_match"),
        punctuation_chars='."\\\x7f“',
        strip_markup=False,
        common_share=0.00001,
        benchmark={
            "gsm8k": {"contamination_score_threshold": 0.62, "longest_match_threshold": 0.9},
            'MMLU "pro" 1.1': {"contamination_score_threshold": 1},
        },
    )
    card = card_of(report(runs=[{**RUN, "policy": json.dumps(asdict(policy))}]))
    block = card.partition("```toml\n")[2].partition("```")[0]
    assert "[policy.benchmark.gsm8k]\ncontamination_score_threshold = 0.62" in block
    assert Policy.from_mapping(tomllib.loads(block)["policy"]) == policy


def test_thresholds_of_single_benchmarks_are_in_summary_and_card(report):
    benchmarks = [
        {"benchmark": "quiz", "n_items": 10, "thresholds": '{"decon": 0.85}'},
        {"benchmark": "gsm8k", "n_items": 0, "thresholds": '{"decon": 0.62}'},
        {"benchmark": "mmlu", "n_items": 0},
    ]
    path = report(benchmarks=benchmarks)
    detectors = [{"detector": "decon", "threshold": 0.85, "of_benchmarks": {"gsm8k": 0.62}}]
    assert summary_of(path)["detectors"] == detectors
    assert "| 0.85; `gsm8k`: 0.62 |" in card_of(path)


def test_names_that_would_change_the_page_do_not(report):
    name = "a|b`<img src=x onerror=alert(1)>\n# T"
    shown = "a\\|b'<img src=x onerror=alert(1)> # T"
    card = card_of(report(benchmarks=[{"benchmark": name, "n_items": 1}], items=[]))
    lines = [line for line in card.splitlines() if "onerror" in line]
    assert len(lines) == 2
    for line in lines:
        assert f"`{shown}`" in line  # code: shown as it is, by any reader of Markdown
    card = card_of(report(not_read=[unreadable("<b>[x](y)|")]))
    assert "&lt;b>\\[x](y)\\|" in card


def test_a_card_of_an_empty_report_says_that_nothing_was_looked_for(tmp_path):
    card = card_of(write_report(tmp_path / "empty.duckdb"))
    assert "**Nothing was searched:**" in card


def test_no_text_of_a_question_is_in_a_card_or_summary(report):
    items = [{**ITEM, "instance_index": 0, "question": "a secret question"}]
    path = report(items=items)
    assert "secret" not in card_of(path) + json.dumps(summary_of(path))


# Limits -------------------------------------------------------------------------------------------


def failures(summary, *, is_todays=True, **limits):
    """What is wrong, by case."""
    cases = cases_of(summary, Limits(**limits), is_todays=is_todays)
    return {case.name: case.wrong for case in cases if not case.is_passed}


def test_a_report_within_its_limits_passes(report):
    summary = summary_of(report())
    assert failures(summary, max_rate=0.4, required=("quiz",), max_document_rate=0.0375) == {}
    assert failures(summary, max_rate=0.0, of_benchmark={"quiz": 0.4}) == {}
    assert failures(summary, max_rate=0.6, by="upper") == {}


def test_a_benchmark_over_its_limit_fails(report):
    summary = summary_of(report())
    wrong = ("2 of 10 items leaked (at least 20.0 %), more than 19.9 %",)
    assert failures(summary, max_rate=0.199) == {"quiz": wrong}
    assert failures(summary, max_rate=0.5, of_benchmark={"quiz": 0.199}) == {"quiz": wrong}
    assert failures(summary, max_document_rate=0.03) == {
        DOCUMENTS: ("3 of 80 documents with a leak (3.8 %), more than 3.0 %",)
    }


def test_the_upper_end_of_the_interval_may_be_held_to_the_limit(report):
    (wrong,) = failures(summary_of(report()), max_rate=0.5, by="upper")["quiz"]
    told = "2 of 10 items leaked (at least 20.0 %; interval up to 59.1 %)"
    assert wrong == f"{told}, which may be more than 50.0 %"


def test_a_required_benchmark_that_is_not_there_fails(report):
    summary = summary_of(report())
    assert failures(summary, required=("q*", "mmlu")) == {
        COVERAGE: ("mmlu is not in the report",),
    }
    # Nor does a limit for it pass because nobody looked.
    assert failures(summary, of_benchmark={"q*": 1.0}) == {COVERAGE: ("q* is not in the report",)}
    assert failures(summary, max_rate=1.0, assumed_clean=("q*", "quizz", "n*")) == {
        COVERAGE: (
            "quizz is not in the report; did you mean 'quiz'?",
            "n* is not in the report",
        ),
    }


def test_items_that_no_detector_can_find_do_not_pass_for_clean(report):
    """Whether the limit holds depends on them: the check cannot tell, unless they are assumed."""
    path = report(checkable_by_others=[{"benchmark": "quiz", "detector": "exact", "n_items": 2}])
    summary = summary_of(path)
    (undecided, _) = cases_of(summary, Limits(max_rate=0.39))
    assert (undecided.is_passed, undecided.is_undecided) == (False, True)
    (wrong,) = undecided.wrong
    assert wrong == (
        "cannot tell: 2 of 10 items were not found, and no chosen detector can find them: 20.0 % "
        "to 40.0 % leaked, the limit is 39.0 %; add the detector exact, which can find 2 more, "
        "or use --assume-clean quiz to pass"
    )
    kind = ET.fromstring(junit_of([undecided]).encode()).find(".//failure").get("type")
    assert kind == "incomplete"
    assert failures(summary, max_rate=0.4) == {}
    assert failures(summary, max_rate=0.39, assumed_clean=("q*",)) == {}
    (failed, _) = cases_of(summary, Limits(max_rate=0.1, assumed_clean=("quiz",)))
    assert (failed.is_passed, failed.is_undecided) == (False, False)
    assert "- With the detector `exact`, 2 more items of `quiz` could be found." in card_of(path)


def test_a_benchmark_of_which_nothing_can_be_found_is_unknown(report):
    blind = [{**ITEM, "instance_index": n, "is_indexed": False} for n in range(10)]
    path = report(items=blind, matches=[])
    summary = summary_of(path)
    (quiz,) = summary["benchmarks"]
    rates = ("leak_rate", "low", "high", "no_answer_rate")
    assert [quiz[name] for name in rates] == [None] * 4
    assert (quiz["n_checkable"], quiz["at_least"], quiz["at_most"]) == (0, 0.0, 1.0)
    (undecided, _) = cases_of(summary, Limits(required=("quiz",)))
    assert undecided.is_undecided
    assert undecided.wrong[0].startswith("cannot tell: no chosen detector can find any of 10 items")
    assert failures(summary, required=("quiz",), assumed_clean=("quiz",)) == {}
    assert "| `quiz` | 0 | 0 of 0 | unknown | – | 0 % to 100.0 % |" in card_of(path)


def test_what_leaked_in_another_form_than_can_be_found_counts_against_a_limit(report):
    blind = [{**ITEM, "instance_index": n, "is_indexed": n >= 5} for n in range(10)]
    found = [{**MATCH, "instance_index": n, "row": n} for n in range(3)]
    summary = summary_of(report(items=blind, matches=found))
    for by in ("point", "upper"):
        (failed, _) = cases_of(summary, Limits(max_rate=0.2, by=by))
        assert failed.wrong == ("3 of 10 items leaked (at least 30.0 %), more than 20.0 %",)


def test_an_item_that_leaked_in_another_form_than_can_be_found_is_in_no_rate_but_in_the_bounds(
    report,
):
    """Else the rate would be of all that can be found, and of the others only what was found."""
    found = [{**MATCH, "instance_index": n, "row": n} for n in (0, 8)]
    (quiz,) = summary_of(report(matches=found))["benchmarks"]
    assert (quiz["n_leaked"], quiz["n_leaked_checkable"], quiz["n_unknown"]) == (2, 1, 1)
    assert (quiz["leak_rate"], quiz["at_least"], quiz["at_most"]) == (1 / 8, 0.2, 0.3)


def test_rows_that_could_not_be_read_fail_unless_they_may(report):
    summary = summary_of(report(not_read=[unreadable("not JSON", 3), unreadable("too long")]))
    (told,) = failures(summary, max_rate=1.0)[COVERAGE]
    assert told.startswith("4 rows of source `web` could not be read: 3 not JSON, 1 too long (use ")
    assert failures(summary, max_rate=1.0, may_be_unreadable=True) == {}


def test_what_is_not_known_fails(report):
    summary = summary_of(
        report(benchmarks=[{"benchmark": "quiz"}], shards=[{"source": "web", "shard_name": "a"}])
    )
    unknown = failures(summary, max_rate=1.0, max_document_rate=1.0)
    assert set(unknown) == {"quiz", DOCUMENTS, COVERAGE}
    assert "their number is unknown" in unknown["quiz"][0]
    assert "the number of unreadable rows is unknown" in unknown[COVERAGE][0]
    assert failures(summary, required=("quiz",), may_be_unreadable=True) == {
        "quiz": ("no items, or their number is unknown",)
    }


def test_an_empty_report_fails_whatever_is_asked(tmp_path):
    summary = summary_of(write_report(tmp_path / "empty.duckdb"))
    for limits in ({"max_rate": 1.0}, {"max_document_rate": 1.0}, {"required": ("*",)}):
        told = failures(summary, may_be_unreadable=True, **limits)[COVERAGE]
        assert "the report has no benchmarks" in told
        assert "the report has no shards" in told


def test_a_corpus_without_a_document_fails(report):
    shards = [{**one, "n_documents": 0} for one in tables()["shards"]]
    told = failures(summary_of(report(shards=shards, matches=[])), max_rate=1.0)
    assert told == {COVERAGE: ("no document was scanned",)}


def test_a_shard_without_text_or_a_source_of_short_texts_fails_and_the_card_names_it(report):
    ids = NotRead("no text", "web", "a.jsonl", "input_ids", "no text", 3, 4, 90)._asdict()
    summary = summary_of(report(not_read=[ids, {**ids, "place": "b", "accepted_by": "ignore"}]))
    (told,) = failures(summary, max_rate=1.0)[COVERAGE]
    words = "no text in 3 of 4 rows in 1 shard of source `web` (`a.jsonl`), only `input_ids`"
    assert told.startswith(words)
    assert f"- {words} (90 bytes)." in card_from(summary)
    assert not failures(summary, max_rate=1.0, may_be_unread=True)
    short = NotRead("short", "books", "", None, "too short", 40, 40, 90)._asdict()
    told = failures(summary_of(report(not_read=[short])), max_rate=1.0)[COVERAGE]
    assert told == ("all 40 documents of source `books` are too short to be searched",)


def test_files_that_were_not_read_fail_and_the_card_names_the_first(report):
    names = [f"{n}.txt" for n in range(5)]
    why = "no format of shards"
    skipped = [NotRead("file", None, name, None, why, 1, 1, 9)._asdict() for name in names]
    summary = summary_of(report(not_read=skipped))
    (told,) = failures(summary, max_rate=1.0)[COVERAGE]
    first = "5 files or folders were not read: `0.txt` (no format of shards), `1.txt` ("
    assert told.startswith(first)
    assert told.endswith(") and 2 more (use --allow-skipped to pass)")
    assert not failures(summary, max_rate=1.0, may_be_skipped=True)
    assert f"- {first}" in card_from(summary)


def test_a_report_of_other_inputs_fails(report):
    (told,) = failures(summary_of(report()), max_rate=1.0, is_todays=False)[COVERAGE]
    assert "changed since the report was built" in told


@pytest.mark.parametrize(
    "wrong", [{}, {"max_rate": 1.5}, {"max_rate": -0.1}, {"of_benchmark": {"quiz": 2}}]
)
def test_limits_that_are_none_are_refused(wrong):
    with pytest.raises(InputError):
        Limits(**wrong)


@given(n=st.integers(1, 3000), data=st.data())
def test_a_benchmark_passes_just_when_no_more_of_it_leaked_than_may(n, data):
    n_leaked = data.draw(st.integers(0, n))
    n_may = data.draw(st.integers(0, n))
    benchmark = {
        "benchmark": "b",
        "n_items": n,
        "n_leaked": n_leaked,
        "n_checkable": n,
        "n_leaked_checkable": n_leaked,
        "n_unknown": 0,
        "n_not_checkable": 0,
        "checkable_by_others": [],
        "n_shards_not_scanned": 0,
        "leak_rate": round(n_leaked / n, 9),
        "low": 0.0,
        "high": 1.0,
        "at_least": round(n_leaked / n, 9),
        "at_most": round(n_leaked / n, 9),
        "n_no_answer": 0,
        "no_answer_rate": 0.0,
        "no_answer_high": 1.0,
    }
    corpus = {"n_shards": 1, "n_documents": 1, "n_unreadable": 0}
    scanned = {"n_shards_in_corpus": 1, "not_scanned": [], "not_covered": []}
    summary = {"benchmarks": [benchmark], "corpus": corpus, "not_read": [], "sources": []}
    summary |= scanned
    found = failures(summary, max_rate=n_may / n)
    assert (not found) == (n_leaked <= n_may)


def test_a_benchmark_that_lacks_shards_is_unknown_below_its_limit_and_fails_above_it(report):
    lacking = {"n_shards_not_scanned": 1}
    path = report(
        benchmarks=[{**tables()["benchmarks"][0], **lacking}],
        not_scanned=[
            {
                "source": "web",
                "pack": "w",
                "shard_name": "b.jsonl",
                "benchmarks": ["quiz"],
                "reason": "cut off",
            }
        ],
    )
    for limit, is_unknown in ((0.5, True), (0.1, False)):
        (case, coverage) = cases_of(summary_of(path), Limits(max_rate=limit))
        assert (case.is_passed, case.is_unknown, coverage.is_passed) == (False, is_unknown, False)
        assert "1 of 3 shards was not scanned" in case.wrong[-1]
        kind = ET.fromstring(junit_of([case]).encode()).find(".//failure").get("type")
        assert kind == ("incomplete" if is_unknown else "contamination")
    assert "Incomplete: 1 of 3 shards was not scanned" in card_of(path)


# JUnit --------------------------------------------------------------------------------------------


def test_junit_has_a_case_for_each_with_what_is_wrong():
    cases = [
        Case("quiz", n=10, n_leaked=2, rate=0.2, limit=0.01, wrong=("too much", "and more")),
        Case("maths", n=5, n_leaked=0, n_checkable=3, n_leaked_checkable=0, rate=0.0),
        Case(COVERAGE),
    ]
    root = ET.fromstring(junit_of(cases).encode())
    assert root.tag == "testsuites"
    (suite,) = root
    assert suite.tag == "testsuite"
    assert {name: suite.get(name) for name in ("tests", "failures", "errors", "skipped")} == {
        "tests": "3",
        "failures": "1",
        "errors": "0",
        "skipped": "0",
    }
    assert [one.get("name") for one in suite.findall("testcase")] == ["quiz", "maths", COVERAGE]
    assert {one.get("classname") for one in suite} == {"decon-assets.check"}
    (failed,) = suite.findall("testcase/failure")
    assert failed.get("message") == "too much; and more"
    assert failed.text == "too much\nand more"
    assert suite[0].findtext("system-out") == "2 of 10 leaked: 20.0 %; limit: 1.0 %"
    told = "0 of 5 leaked; 0 of the 3 that can be found: 0 %; limit: none"
    assert suite[1].findtext("system-out") == told
    assert suite[1].find("failure") is None


@given(st.text(), st.text(min_size=1))
def test_any_name_makes_xml_that_can_be_read(name, wrong):
    root = ET.fromstring(junit_of([Case(name, wrong=(wrong,))]).encode("utf-8", "strict"))
    assert len(root.findall("testsuite/testcase/failure")) == 1
