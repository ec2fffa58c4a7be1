"""The reference implementation's report form: its fields, its counting, its marks."""

import json

import pytest

from decon_core.benchmarks.records import load_records
from decon_core.config.policy import Policy
from decon_core.decisions.match_reader import MatchReader
from decon_core.features.decon_reports.decon_jsonl import overlap_text, report_name, write_report
from decon_core.scan.scanner import scan_packs
from tests.core.conftest import DECON

FIELDS = {
    "training_file", "training_line", "eval_dataset", "eval_key", "eval_line",
    "eval_instance_index", "split", "ngram_match_cnt", "eval_unique_ngrams",
    "contamination_score", "length_adjusted_question_threshold", "method", "idf_overlap",
    "question_start_idx", "question_end_idx", "training_overlap_text", "eval_question_text",
    "eval_answer_text", "answer_overlap_ratio", "answer_idf_overlap", "answer_start_idx",
    "answer_end_idx", "cluster_token_length", "eval_token_length", "token_length_delta",
    "fingerprint", "reference_file",
}  # fmt: skip


@pytest.fixture
def report(bench, make_words, tmp_path):
    """The lines of a shard whose row 2 holds an item, and one with a passage in row 3."""
    question, answer = make_words("q", 30), make_words("a", 6)
    passage, asked, told = make_words("p", 30), make_words("r", 30), make_words("s", 6)
    bench.policy = DECON
    versions = bench.prepare(
        {
            "quiz": [(make_words("x", 30), make_words("y", 6), None), (question, answer, None)],
            "reader": [(asked, told, passage)],
        }
    )
    texts = [make_words(row, 50) for row in range(4)]
    texts[2] = f"Before that, {texts[2]}: {question.upper()}! {answer}. {make_words('tail', 90)}"
    texts[3] = f"{passage}. {asked}? {told}"
    pack = bench.pack({"shard.jsonl": texts})
    scan_packs(bench.store, [pack], versions, bench.policy)
    (shard,) = pack.shards
    records = {version.benchmark: load_records(bench.store, version) for version in versions}
    reader = MatchReader(bench.store, tuple(versions), bench.policy, bench.scan)
    entries = reader.entries(shard, versions, source="web")
    write_report(tmp_path / "compat", shard, pack.source, entries, records, bench.policy)
    path = tmp_path / "compat" / report_name(shard.name, bench.policy)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return {line["eval_key"]: line for line in lines}, texts, (question, answer)


def test_every_field_that_readers_parse_is_there(report):
    lines, _, _ = report
    assert set(lines["quiz"]) >= FIELDS
    passages = {"eval_passage_text", "passage_overlap_ratio", "passage_idf_overlap"}
    assert set(lines["reader"]) >= FIELDS | passages


def test_lines_count_from_0_and_token_ranges_hold_their_last_token(report):
    lines, _, (question, answer) = report
    quiz = lines["quiz"]
    assert (quiz["training_line"], quiz["eval_line"], quiz["eval_instance_index"]) == (2, 1, 1)
    n_question, n_answer = len(question.split()), len(answer.split())
    assert quiz["question_end_idx"] - quiz["question_start_idx"] + 1 == n_question
    assert quiz["answer_end_idx"] - quiz["answer_start_idx"] + 1 == n_answer
    assert quiz["answer_start_idx"] == quiz["question_end_idx"] + 1
    assert quiz["cluster_token_length"] == quiz["eval_token_length"] == n_question
    assert quiz["token_length_delta"] == 0
    assert quiz["eval_unique_ngrams"] == quiz["ngram_match_cnt"] == n_question - 4
    assert quiz["contamination_score"] == 1.0


def test_the_overlap_is_the_original_text_with_its_parts_marked(report):
    lines, texts, (question, answer) = report
    told = lines["quiz"]["training_overlap_text"]
    assert f"【{question.upper()}】! ⟦{answer}⟧. " in told
    assert told.startswith("... ")
    assert told.endswith(" ...")
    plain = told.removeprefix("... ").removesuffix(" ...")
    for mark in "【】⟦⟧⟨⟩":
        plain = plain.replace(mark, "")
    assert plain in texts[2]
    before, _, rest = plain.partition(question.upper())
    assert len(before.split()) == 30
    assert len(rest.partition(answer)[2].split()) == 60


def test_a_passage_is_marked_in_front_of_its_question(report):
    lines, texts, _ = report
    told = lines["reader"]["training_overlap_text"]
    assert told.startswith("⟨")
    assert told.index("⟩") < told.index("【") < told.index("】") < told.index("⟦")
    assert lines["reader"]["eval_passage_text"] in texts[3]


def test_benchmark_texts_are_canonical(report):
    lines, _, (question, _) = report
    assert lines["quiz"]["eval_question_text"] == question
    assert lines["quiz"]["eval_overlap_text"] == question


def test_a_number_that_the_reference_gave_is_kept():
    from decon_core.features.decon_reports.decon_jsonl import _original_instance

    assert _original_instance({"extras": '{"eval_instance_index": 7}', "instance_index": 2}) == 7
    assert _original_instance({"extras": None, "instance_index": 2}) == 2


def test_parts_that_overlap_are_shown_once():
    entry = {
        "question_char_start": 4, "question_char_stop": 13,
        "answer_char_start": 8, "answer_char_stop": 18,
        "passage_char_start": None, "passage_char_stop": None,
    }  # fmt: skip
    text = "one two three four five"
    assert overlap_text(text, entry) == "one 【two three】⟦ four⟧ five"


def test_the_name_of_a_report_keeps_the_shards_folder():
    policy = Policy(contamination_score_threshold=0.75)
    assert report_name("web/a.jsonl.gz", policy) == "web/a.jsonl.gz-simple-0.75.jsonl"
