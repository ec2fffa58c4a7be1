"""Thresholds of single benchmarks: what they decide, and what is made anew when they change."""

import json
import tomllib
from dataclasses import replace

import duckdb
import pyarrow as pa
import pytest

from decon_core.config.detector_registry import BUILT_IN, kinds
from decon_core.config.load import load_policy
from decon_core.config.mixtures import Leaks, Mixture
from decon_core.config.policy import Policy, without_effect
from decon_core.config.sources import Source
from decon_core.decisions.judging import highest_thresholds, judge, may_need_review
from decon_core.errors import ConfigError
from decon_core.library.scan import Request, scan_folder
from decon_core.mixtures.clean_evals import build_clean_benchmarks, has_clean_benchmark
from decon_core.report.build import is_current
from decon_core.schemas import MATCHES
from tests.core.places import CLEAN, Place, report_of


def policy_of(text, **more):
    return Policy.from_mapping({**tomllib.loads(text), **more})


def problems(text):
    with pytest.raises(ConfigError) as error:
        policy_of(text)
    return [(one.where, one.found, one.expected, one.remedy) for one in error.value.problems]


# The settings -------------------------------------------------------------------------------------


def test_a_benchmark_has_its_own_thresholds_and_the_others_of_all():
    policy = policy_of("""
        ratcliff_threshold = 0.6
        [benchmark.gsm8k]
        contamination_score_threshold = 0.7
        ngram_any_size = 20
    """)
    own = policy.for_benchmark("gsm8k")
    assert (own.contamination_score_threshold, own.ngram_any_size) == (0.7, 20)
    assert (own.ratcliff_threshold, own.benchmark) == (0.6, {})
    assert policy.for_benchmark("mmlu").contamination_score_threshold == 0.8
    assert policy.at_floor.for_benchmark("gsm8k").contamination_score_threshold == 0.6


def test_all_that_is_wrong_with_them_is_told_at_once():
    found = problems("""
        [benchmark]
        arc = 0.7
        [benchmark.gsm8k]
        contamination_treshold = 0.7
        exact_threshold = "high"
        ngram_any_size = 9.5
    """)
    assert [one[:2] for one in found] == [
        ("policy.benchmark.arc", "0.7"),
        ("policy.benchmark.gsm8k.exact_threshold", "'high'"),
        ("policy.benchmark.gsm8k.ngram_any_size", "9.5"),
        ("policy.benchmark.gsm8k.contamination_treshold", "unknown key 'contamination_treshold'"),
    ]
    assert found[3][3] == "did you mean 'contamination_score_threshold'?"


def test_none_may_lie_below_the_floor_that_matches_are_kept_down_to():
    found = problems("""
        [benchmark.gsm8k]
        contamination_score_threshold = 0.59
        [benchmark.mmlu]
        ratcliff_threshold = 0.2
        ngram_any_size = 7
    """)
    assert [one[:3] for one in found] == [
        (
            "policy.benchmark.gsm8k.contamination_score_threshold",
            "0.59",
            "lowest_recorded_score (0.6) or more",
        ),
        (
            "policy.benchmark.mmlu.ratcliff_threshold",
            "0.2",
            "ratcliff_lowest_recorded (0.3) or more",
        ),
        ("policy.benchmark.mmlu.ngram_any_size", "7", "ngram_any_lowest_recorded (8) or more"),
    ]


def test_a_threshold_out_of_range_is_refused():
    found = problems("""
        [benchmark.gsm8k]
        longest_match_threshold = 1
        [benchmark.mmlu]
        exact_threshold = 1.2
    """)
    assert [one[:3] for one in found] == [
        (
            "policy.benchmark.gsm8k.longest_match_threshold",
            "1",
            "a number above 0 and below 1",
        ),
        ("policy.benchmark.mmlu.exact_threshold", "1.2", "a number above 0 and up to 1"),
    ]


def test_a_kind_is_a_leak_or_waits_for_review():
    found = problems("""
        leak = ["verbatim", "part"]
        [benchmark.mmlu]
        leak = ["verbatim"]
        [benchmark.gsm8k]
        review = ["verbatim", "variants"]
    """)
    assert [one[:2] for one in found] == [("policy.benchmark.gsm8k.review[1]", "'variants'")]
    assert found[0][2:] == (f"one of {', '.join(kinds())}", "did you mean 'variant'?")
    found = problems("""
        leak = ["verbatim", "part"]
        [benchmark.mmlu]
        leak = ["verbatim"]
    """)
    assert [one[:2] for one in found] == [("policy.review", "['part']")]


def test_kinds_have_no_effect_without_the_detector_that_names_them():
    policy = Policy(detectors=("decon",), leak=("verbatim",))
    assert [one.where for one in without_effect(policy)] == ["policy.leak"]
    assert [*without_effect(replace(policy, detectors=("aligned", "decon")))] == []


def test_no_scan_result_depends_on_them():
    plain, own = Policy(), policy_of("[benchmark.gsm8k]\ncontamination_score_threshold = 0.7")
    names = [one.scan_fingerprint(tokenizer="t", snapshot="s") for one in (plain, own)]
    assert names[0] == names[1]
    assert plain.decision_settings(["gsm8k"]) != own.decision_settings(["gsm8k"])
    assert plain.decision_settings(["mmlu"]) == own.decision_settings(["mmlu"])


def test_a_file_of_settings_adds_its_tables_to_those_that_are_there(tmp_path):
    like = policy_of("[benchmark.a]\nexact_threshold = 0.6\n[benchmark.b]\nexact_threshold = 0.7")
    file = tmp_path / "stricter.toml"
    file.write_text("ngram_any_size = 15\n[benchmark.b]\nexact_threshold = 0.9\n")
    policy = load_policy(file, like=like)
    assert policy.benchmark == {"a": {"exact_threshold": 0.6}, "b": {"exact_threshold": 0.9}}


# What they decide ---------------------------------------------------------------------------------


def matches(*rows):
    filler = {"string": "x", "int64": 0, "double": 0.0}
    row = {field.name: None if field.nullable else filler[str(field.type)] for field in MATCHES}
    row |= {"question_overlap": 1.0, "question_tokens": 60, "total_tokens": 60, "n_grams": 50}
    return pa.Table.from_pylist([row | values for values in rows], schema=MATCHES)


@pytest.mark.parametrize(
    ("detector", "kind", "values"),
    [
        ("aligned", "edited", {"answer_overlap": 1.0}),
        ("aligned", "part", {}),
        ("reworded", "reworded", {}),
        ("reworded", "other numbers", {}),
        ("code", "names", {}),
        ("neighbours", "near in meaning", {"base_score": 0.1}),
    ],
)
def test_the_policy_says_what_a_kind_of_any_detector_is(detector, kind, values):
    found = matches({"detector": detector, "kind": kind, "base_score": 0.9, **values})
    for leak, review, said in ((kind, "variant", "leak"), ("variant", kind, "review")):
        judged = judge(found, Policy(leak=(leak,), review=(review,)))
        assert (judged.is_leak[0], judged.needs_review[0]) == (said == "leak", said != "leak")
    recorded = judge(found, Policy(leak=("verbatim",), review=("variant",)))
    assert not any(values[0] for values in recorded[1:])
    assert may_need_review(found, Policy(leak=(), review=(kind,))).to_pylist() == [True]


@pytest.mark.parametrize(
    ("detector", "setting", "threshold", "values"),
    [
        ("decon", "contamination_score_threshold", 0.7, {"base_score": 0.75}),
        ("ratcliff", "ratcliff_threshold", 0.4, {"base_score": 0.45}),
        ("longest_match", "longest_match_threshold", 0.5, {"base_score": 0.6}),
        ("exact", "exact_threshold", 0.3, {"base_score": 0.4}),
        ("ngram_any", "ngram_any_size", 10, {"base_score": 0.5, "n_matched": 11}),
    ],
)
def test_every_rule_s_matches_are_decided_by_the_threshold_of_their_benchmark(
    detector, setting, threshold, values
):
    policy = Policy(detectors=BUILT_IN, benchmark={"b": {setting: threshold}})
    found = matches(
        *({"detector": detector, "benchmark": name, **values} for name in ("a", "b", "c"))
    )
    judged = judge(found, policy)
    assert judged.is_leak.tolist() == [False, True, False]
    highest = highest_thresholds(found, policy)
    assert highest[1] >= threshold
    apart = [
        highest_thresholds(found.slice(n, 1), policy.for_benchmark(name))
        for n, name in enumerate("abc")
    ]
    assert json.dumps(highest.tolist()) == json.dumps([one[0] for one in apart])


def test_no_answer_goes_by_the_threshold_of_the_benchmark_too():
    row = {"detector": "decon", "answer_overlap": 0.0, "base_score": 0.6, "question_overlap": 0.85}
    policy = Policy(benchmark={"b": {"contamination_score_threshold": 0.9}})
    judged = judge(matches(*({**row, "benchmark": name} for name in ("a", "b"))), policy)
    assert judged.is_no_answer.tolist() == [True, False]


# What is made anew --------------------------------------------------------------------------------


@pytest.fixture
def place(bench, make_words):
    """Documents that hold a question each, of two benchmarks, in half."""
    bench.policy = Policy(tokenizer_str="words", detectors=("decon", "ratcliff"))
    items = {name: [(make_words(name, 60), None, None)] for name in ("a", "b")}
    found = Place(bench, bench.prepare(items))
    halves = [" ".join(of_one[0][0].split()[:35]) for of_one in items.values()]
    found.put({"s.jsonl": [f"{half} {make_words(('rest', half), 40)}" for half in halves]})
    return found.scan()


OWN = {"a": {"ratcliff_threshold": 0.7}}


def with_own(place):
    place.bench.policy = Policy(
        tokenizer_str="words", detectors=("decon", "ratcliff"), benchmark=OWN
    )


def test_mixtures_and_clean_benchmarks_of_a_benchmark_are_built_anew_and_no_others(place):
    of_b = Mixture(name="of_b", leaks=Leaks(benchmarks=("b",)))
    assert [row["id"] for row in place.rows(CLEAN)] == []
    place.build(of_b)
    builder = place.builder(CLEAN, of_b)
    a, b = builder.versions
    assert [one.counts["n_items_left"] for one in build_clean_benchmarks(builder, [a, b])] == [0, 0]
    scan = builder.reader.scan
    assert place.bench.store.scan_results(scan).is_dir()
    with_own(place)
    builder = place.builder(CLEAN, of_b)
    assert builder.reader.scan == scan
    (pack,) = place.packs
    assert not builder.is_current(CLEAN, pack)
    assert builder.is_current(of_b, pack)
    assert [has_clean_benchmark(builder, one) for one in (a, b)] == [False, True]
    assert [row["id"] for row in place.rows(CLEAN)] == ["s.jsonl-0"]
    assert [one.counts["n_items_left"] for one in build_clean_benchmarks(builder, [a, b])] == [1, 0]


def test_a_report_shows_which_thresholds_applied_and_is_stale_when_they_change(place):

    def is_todays():
        return is_current(place.builder(CLEAN))

    store, versions = place.bench.store, place.versions
    report_of(store, place.packs, versions, place.bench.policy, (CLEAN,))
    assert is_todays()
    with_own(place)
    assert not is_todays()
    report_of(store, place.packs, versions, place.bench.policy, (CLEAN,))
    assert is_todays()
    with duckdb.connect(str(store.report), read_only=True) as connection:
        rows = connection.execute("SELECT benchmark, thresholds FROM benchmarks").fetchall()
        leaked = connection.execute("SELECT benchmark FROM findings WHERE is_contaminated")
        assert leaked.fetchall() == [("b",)]
    told = {name: json.loads(thresholds) for name, thresholds in rows}
    assert told == {
        "a": {"decon": 0.8, "ratcliff": 0.7},
        "b": {"decon": 0.8, "ratcliff": 0.5},
    }


def test_a_table_for_a_benchmark_that_is_not_there_is_reported(tmp_path, make_words):
    evals, corpus = tmp_path / "quiz.jsonl", tmp_path / "a.jsonl"
    row = {"question": make_words("q", 30), "answer": make_words("a", 8)}
    row |= {"eval_key": "quiz", "split": "test"}
    evals.write_text(json.dumps(row) + "\n")
    corpus.write_text(json.dumps({"text": make_words("t", 30)}) + "\n")
    policy = Policy(tokenizer_str="words", benchmark={"quizz": {"exact_threshold": 0.9}})
    request = Request(
        evals=evals,
        source=Source(name="corpus", path=str(corpus), id="id"),
        out=tmp_path / "out",
        policy=policy,
    )
    with pytest.raises(ConfigError, match=r"policy\.benchmark\.quizz") as error:
        scan_folder(request)
    assert "'quiz'" in str(error.value)
