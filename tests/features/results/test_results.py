"""Results of every harness against a report, with numbers that were counted by hand.

The quiz has two parts, law (items 0 to 5) and maths (6 to 11). Items 0, 1 and 6 leaked with their
answers, 2 and 7 as questions alone, 5 asks what nobody can look for. 3 and 9 ask the same.
"""

import csv
import json
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from decon_core.benchmarks.normalized import fingerprint_of
from decon_core.benchmarks.recipe import FieldText, LocalSource, PlainAnswer, Prompts, Recipe
from decon_core.benchmarks.records import save_records
from decon_core.config.policy import Policy
from decon_core.corpus.packs import find_shards
from decon_core.errors import InputError, MissingError, StaleError
from decon_core.features.gap.account import score_gap
from decon_core.features.gap.page import HEADS, as_markdown, line, write
from decon_core.index.term_weights import freeze
from decon_core.scan.scanner import scan_packs
from decon_core.schemas import RECORDS
from tests.core.conftest import Bench, words
from tests.core.places import report_of
from tests.core.report.reports import write_report

POLICY = Policy(tokenizer_str="words", detectors=("exact",))
RIGHT = [1, 1, 1, 0, 1, 0, 1, 0, 0, 1, 0, 0]  # scores of the twelve items
N = len(RIGHT)


def answer(number):
    return words(("a", number), 3)


QUESTIONS = [f"{words(('q', number), 12)}, Straße №{number}?" for number in range(N)]
QUESTIONS[5] = "Who?"
QUESTIONS[9] = QUESTIONS[3]


def record(split, number, asked, answered, config):
    return {
        "benchmark": "quiz",
        "config": config,
        "split": split,
        "instance_index": number,
        "question": asked,
        "answer": answered,
        "fingerprint": fingerprint_of(None, asked, answered),
    }


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """A report on the quiz, whose questions and answers stand in five documents."""
    bench = Bench(tmp_path_factory.mktemp("bench"), POLICY)
    rows = [
        record("test", number, QUESTIONS[number], answer(number), "law" if number < 6 else "maths")
        for number in range(N)
    ]
    rows += [record("dev", number, words(("dev", number), 12), None, None) for number in range(3)]
    version = save_records(bench.store, "quiz", pa.Table.from_pylist(rows, schema=RECORDS))
    bench.index([version], freeze(bench.store, [version], POLICY))
    noise = [words(("noise", number), 10) for number in range(2)]
    texts = [f"{noise[0]} {QUESTIONS[n]} {answer(n)} {noise[1]}" for n in (0, 1, 6)]
    texts += [f"{noise[0]} {QUESTIONS[n]} {noise[1]}" for n in (2, 7)]
    pack = bench.pack({"web.jsonl": texts})
    assert find_shards(pack.source, folder=bench.folder / "shards", known={})
    scan_packs(bench.store, [pack], [version], POLICY)
    report_of(bench.store, [pack], [version], POLICY)
    return bench.store.report


def write_lines(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    return path


def only(account, **wanted):
    """The one line of these names."""
    (gap,) = [
        one
        for one in account.gaps
        if all(getattr(one, key, getattr(one.name, key, None)) == wanted[key] for key in wanted)
    ]
    return gap


def check_by_hand(gap):
    """Of RIGHT: the whole quiz, as every format has to tell it.

    clean: 3, 4, 8, 9, 10, 11 with 0 1 0 1 0 0; leaked: 0, 1, 2, 6, 7 with 1 1 1 1 0, of them
    with their answer 0, 1, 6 with 1 1 1; cannot be checked: 5 with 0.
    """
    assert (gap.all.n, gap.all.score) == (12, pytest.approx(6 / 12))
    assert (gap.clean.n, gap.clean.score) == (6, pytest.approx(2 / 6))
    assert (gap.leaked.n, gap.leaked.score) == (5, pytest.approx(4 / 5))
    assert (gap.with_answer.n, gap.with_answer.score) == (3, 1.0)
    assert (gap.no_answer.n, gap.no_answer.score) == (0, None)
    assert (gap.not_checkable.n, gap.not_checkable.score) == (1, 0.0)
    assert (gap.not_joined.n, gap.not_joined.score) == (0, None)
    assert gap.gap == pytest.approx(4 / 5 - 2 / 6)
    assert gap.decontaminated == pytest.approx(2 / 7)
    assert gap.moved == pytest.approx(2 / 7 - 6 / 12)
    assert dict(zip(HEADS, line(gap), strict=True))["without these"] == "0.286 (1 unknown)"
    assert (gap.low, gap.high, gap.p) == (None, None, None)
    assert gap.remark == "too few items: 5 leaked and 6 clean"


# lm-evaluation-harness ----------------------------------------------------------------------------


def harness_row(number, score, *, named="none", metric="acc", **more):
    return {
        "doc_id": number,
        "doc": {"id": f"x{number}", "question": QUESTIONS[number], "solution": answer(number)},
        "target": "7",
        "arguments": {"gen_args_0": {"arg_0": "shot? 1. " + QUESTIONS[number], "arg_1": {}}},
        "resps": [["so 7"]],
        "filtered_resps": ["7"],
        "filter": named,
        "metrics": [metric],
        "doc_hash": f"h{number}",
        "prompt_hash": "p",
        "target_hash": "t",
        metric: score,
        **more,
    }


def harness_file(folder, rows, *, task="quiz", run="2025-03-01T10-00-00.5"):
    return write_lines(folder / "org__gull" / f"samples_{task}_{run}.jsonl", rows)


ORDER = [7, 3, 11, 0, 5, 9, 1, 10, 2, 8, 6, 4]


def test_harness_samples_in_any_order(report, tmp_path):
    path = harness_file(tmp_path, [harness_row(n, float(RIGHT[n])) for n in ORDER])
    (path.parent / "results_2025-03-01T10-00-00.5.json").write_text(
        '{"model_name": "org/gull", "configs": {"quiz": {"test_split": "test"}}}'
    )
    account = score_gap([tmp_path], report)
    gap = only(account, subset=None)
    check_by_hand(gap)
    assert gap.name.model == "org/gull"
    assert (gap.name.split, gap.name.filter, gap.name.metric) == ("test", "", "acc")
    assert account.problems == []
    (count,) = account.joins
    # 5 has a question of one word, which is still its text; 3 and 9 are told apart by number.
    assert count.ways == {"text": 10, "text and index": 2}
    law, maths = only(account, subset="law"), only(account, subset="maths")
    assert (law.all.n, maths.all.n) == (6, 6)
    assert (law.leaked.n, law.leaked.score) == (3, 1.0)
    assert (maths.leaked.n, maths.leaked.score) == (2, 0.5)


def test_two_filters_are_two_lines(report, tmp_path):
    rows = [harness_row(n, RIGHT[n], named="strict-match", metric="exact_match") for n in ORDER]
    rows += [harness_row(n, 1, named="flexible-extract", metric="exact_match") for n in range(N)]
    account = score_gap([harness_file(tmp_path, rows)], report, tasks=["quiz=quiz:test"])
    check_by_hand(only(account, subset=None, filter="strict-match"))
    flexible = only(account, subset=None, filter="flexible-extract")
    assert (flexible.all.n, flexible.all.score, flexible.gap) == (12, 1.0, 0.0)
    assert [count.n_repeated for count in account.joins] == [0]


def test_rows_without_metrics_and_filter(report, tmp_path):
    rows = [{**harness_row(n, RIGHT[n]), "acc_norm": 0.0} for n in range(N)]
    for row in rows:
        del row["filter"], row["metrics"]
    account = score_gap([harness_file(tmp_path, rows)], report, tasks=["quiz=quiz:test"])
    check_by_hand(only(account, subset=None, metric="acc"))
    assert only(account, subset=None, metric="acc_norm").name.model == "org__gull"


def test_a_list_of_rows_is_no_line(report, tmp_path):
    path = tmp_path / "quiz.jsonl"
    path.write_text(json.dumps([harness_row(n, RIGHT[n]) for n in range(N)]))
    with pytest.raises(InputError, match="found a list of 12; expected one JSON object"):
        score_gap([path], report)


def test_what_is_no_number_is_told_and_no_score(report, tmp_path):
    rows = [harness_row(n, RIGHT[n], named="f") for n in range(N)]
    rows[4]["acc"] = float("nan")
    for row in rows:
        row["metrics"] = ["acc", "bleu"]
        row["bleu"] = ["a", "b"]
    account = score_gap([harness_file(tmp_path, rows)], report, tasks=["quiz=quiz:test"])
    gap = only(account, subset=None)
    assert (gap.all.n, gap.not_joined.n) == (9, 2)  # without all rows, 3 and 9 are the same
    told = [str(problem) for problem in account.problems]
    assert any("row 5: no score" in line for line in told)
    assert any("metric 'bleu': no number in 12 rows" in line for line in told)


def test_an_item_that_stands_twice_counts_once(report, tmp_path):
    rows = [harness_row(n, RIGHT[n]) for n in [*range(N), 2]]
    rows[-1]["acc"] = 0
    account = score_gap([harness_file(tmp_path, rows)], report, tasks=["quiz=quiz:test"])
    check_by_hand(only(account, subset=None))
    assert account.joins[0].n_repeated == 1
    (problem,) = account.problems
    assert "row 13: found quiz test 2 again (first: " in str(problem)
    assert "row 3); expected each item once" in str(problem)


def test_of_two_runs_the_later_counts(report, tmp_path):
    early = harness_file(tmp_path, [harness_row(n, 0) for n in range(N)])
    late = "2025-04-01T10-00-00.5"
    harness_file(tmp_path, [harness_row(n, RIGHT[n]) for n in range(N)], run=late)
    account = score_gap([tmp_path], report, tasks=["quiz=quiz:test"])
    check_by_hand(only(account, subset=None))
    assert (account.earlier, account.problems) == ([str(early)], [])
    later = "2025-05-01T10-00-00.5"
    harness_file(tmp_path, [harness_row(n, RIGHT[n]) for n in range(3)], run=later)
    account = score_gap([tmp_path], report, tasks=["quiz=quiz:test"])
    assert only(account, subset=None).all.n == 3
    told = [str(problem) for problem in account.problems]
    assert len(told) == 2
    assert f"{early}: the latest run lacks 9 items" in told[0]


def test_parts_of_a_benchmark_are_tasks_of_their_own(report, tmp_path):
    """Every part counts its items from 0, and without texts the numbers are all there is."""
    for task, start in (("quiz_law", 0), ("quiz_maths", 6)):
        rows = [harness_row(start + n, RIGHT[start + n]) for n in range(6)]
        rows = [{**row, "doc_id": n, "doc": {}} for n, row in enumerate(rows)]
        harness_file(tmp_path, rows, task=task)
    account = score_gap([tmp_path], report, tasks=["quiz_*=quiz:test"])
    check_by_hand(only(account, subset=None))
    assert [count.ways for count in account.joins] == [{"index": 6}, {"index": 6}]


def test_parts_on_two_scales_are_not_one_line(report, tmp_path):
    def write_parts(*, law, maths):
        for task, start, most in (("quiz_law", 0, law), ("quiz_maths", 6, maths)):
            rows = [harness_row(start + n, RIGHT[start + n] * most) for n in range(6)]
            harness_file(tmp_path, rows, task=task)

    tasks = ["quiz_*=quiz:test"]
    write_parts(law=1, maths=100)
    with pytest.raises(InputError) as raised:
        score_gap([tmp_path], report, tasks=tasks)
    (problem,) = raised.value.problems
    assert problem.where == "gap, acc of quiz by org__gull"
    beyond, _, others = problem.found.partition(" and scores of 1 or less ")
    assert "acc of quiz_maths, up to 100, in " in beyond
    assert "acc of quiz_law, up to 1, in " in others
    assert "samples_quiz_law_" in others
    assert "--beyond-one" in problem.remedy
    write_parts(law=100, maths=100)
    assert only(score_gap([tmp_path], report, tasks=tasks), subset=None).all.score == 50
    write_parts(law=1, maths=10)  # 1 of 10 for each item of one part
    account = score_gap([tmp_path], report, tasks=tasks, beyond_one=["quiz_law"])
    assert only(account, subset=None).all.score == pytest.approx((4 + 2 * 10) / 12)


def test_missing_items_are_noted(report, tmp_path):
    path = harness_file(tmp_path, [harness_row(n, RIGHT[n]) for n in range(N // 2)])
    account = score_gap([path], report)
    # 3 is not joined: without its index, it is also the question of 9.
    assert account.notes == ["org__gull, quiz, test: results for 5 of 12 items of the report."]
    harness_file(tmp_path, [harness_row(n, RIGHT[n]) for n in range(N // 2)], task="quiz_law")
    path.unlink()
    assert score_gap([tmp_path], report).notes == []  # all items of this part


def test_texts_find_the_split_when_nobody_says_it(report, tmp_path):
    path = harness_file(tmp_path, [harness_row(n, RIGHT[n]) for n in range(N)])
    account = score_gap([path], report)
    assert account.joins[0].split == "test"
    check_by_hand(only(account, subset=None))


# by index, and not --------------------------------------------------------------------------------


def without_texts(rows):
    return [{**row, "doc": {"label": 3}} for row in rows]


def test_without_texts_the_index_counts_where_all_was_asked(report, tmp_path):
    rows = without_texts(harness_row(n, RIGHT[n]) for n in ORDER)
    account = score_gap([harness_file(tmp_path, rows)], report, tasks=["quiz=quiz:test"])
    check_by_hand(only(account, subset=None))
    assert account.joins[0].ways == {"index": 12}


def test_of_a_part_that_was_asked_the_index_says_nothing(report, tmp_path):
    rows = without_texts(harness_row(n, RIGHT[n]) for n in range(8))
    account = score_gap([harness_file(tmp_path, rows)], report, tasks=["quiz=quiz:test"])
    gap = only(account, subset=None)
    assert (gap.not_joined.n, gap.leaked.n, gap.gap, gap.decontaminated) == (8, 0, None, None)
    assert account.joins[0].n_not_joined == len(account.problems) == 8
    assert "8 different indexes, but the report has 12 items" in str(account.problems[0])


def test_numbers_of_a_split_that_the_report_does_not_have_say_nothing(report, tmp_path):
    rows = [harness_row(n, RIGHT[n]) for n in range(N)]
    rows[4]["doc"] = {}
    path = harness_file(tmp_path, rows)
    (path.parent / "results_2025-03-01T10-00-00.5.json").write_text(
        '{"configs": {"quiz": {"test_split": "train"}}}'
    )
    account = score_gap([path], report)
    # The texts stand for themselves; without numbers, 3 and 9 are the same question.
    assert (account.joins[0].ways, account.joins[0].n_not_joined) == ({"text": 9}, 3)
    problems = "\n".join(map(str, account.problems))
    assert "the split 'train' in the file (the report has dev, test" in problems
    account = score_gap([path], report, tasks=["quiz=quiz:test"])
    check_by_hand(only(account, subset=None))


def test_an_index_that_contradicts_texts_is_not_used(report, tmp_path):
    """The numbers are shifted by one: rows with texts go by these, the others nowhere."""
    rows = [{**harness_row(n, RIGHT[n]), "doc_id": (n + 1) % N} for n in range(N)]
    rows[7]["doc"] = {}
    account = score_gap([harness_file(tmp_path, rows)], report, tasks=["quiz=quiz:test"])
    gap = only(account, subset=None)
    # 3 and 9 ask the same and fared alike, but are of two parts: nobody can say which is which.
    assert (gap.leaked.n, gap.not_joined.n) == (4, 3)
    told = "\n".join(map(str, account.problems))
    assert "index 1 (test 1) has the text of test 0; 12 such rows" in told
    assert "an index that contradicts the texts of other rows" in told


def test_prompts_of_other_items_contradict_an_index(report, tmp_path):
    """A shuffled run whose rows have no text but the prompt."""
    rows = [{**row, "doc_id": n} for n, row in enumerate(harness_row(n, RIGHT[n]) for n in ORDER)]
    path = harness_file(tmp_path, without_texts(rows))
    account = score_gap([path], report, tasks=["quiz=quiz:test"])
    assert account.joins[0].n_not_joined == N
    told = [str(problem) for problem in account.problems]
    assert "index 0 (test 0) has the text of test 7; " in told[0]
    assert "an index that contradicts the texts of other rows" in told[1]
    # An example of the same split before the question contradicts nothing.
    rows = [harness_row(n, RIGHT[n]) for n in range(N)]
    for row in rows:
        row["arguments"]["gen_args_0"]["arg_0"] += f" 6. {QUESTIONS[8]} {row['doc']['question']}"
    path = harness_file(tmp_path, without_texts(rows))
    account = score_gap([path], report, tasks=["quiz=quiz:test"])
    check_by_hand(only(account, subset=None))


def test_an_index_whose_item_has_other_words_is_not_used(report, tmp_path):
    rows = [harness_row(n, RIGHT[n]) for n in range(N)]
    rows[4]["doc"] = {"question": "Something else is asked here, of which the report knows nothing"}
    account = score_gap([harness_file(tmp_path, rows)], report, tasks=["quiz=quiz:test"])
    assert only(account, subset=None).not_joined.n == 1
    (problem,) = account.problems
    assert "row 5: found a text that shares few words with item 4" in str(problem)


def test_a_question_in_other_words_of_its_own_goes_by_index(report, tmp_path):
    rows = [harness_row(n, RIGHT[n]) for n in range(N)]
    first, *rest = QUESTIONS[4].split()
    rows[4]["doc"] = {"question": " ".join(["Fill in:", *rest, "…", first])}
    account = score_gap([harness_file(tmp_path, rows)], report, tasks=["quiz=quiz:test"])
    check_by_hand(only(account, subset=None))
    assert account.joins[0].ways["index"] == 1


def test_of_two_questions_in_one_text_the_index_says_which(report, tmp_path):
    """What a prompt has around a question may make another question of it."""
    rows = [harness_row(n, RIGHT[n]) for n in range(N)]
    rows[4]["doc"] = {"query": f"Q: {QUESTIONS[0]} {QUESTIONS[4]}\nA:"}
    account = score_gap([harness_file(tmp_path, rows)], report, tasks=["quiz=quiz:test"])
    check_by_hand(only(account, subset=None))
    assert account.problems == []


def test_a_recipe_tells_equal_questions_apart_by_their_answers(report, tmp_path):
    rows = [{**harness_row(n, RIGHT[n]), "doc_id": n + 100} for n in range(N)]
    path = harness_file(tmp_path, rows)
    said = ["quiz=quiz:test"]
    without = only(score_gap([path], report, tasks=said), subset=None)
    assert without.not_joined.n == 2
    recipe = Recipe(
        name="quiz",
        source=LocalSource(),
        splits=("test",),
        questions=Prompts(texts=(FieldText(field="question"),)),
        answers=(PlainAnswer(text=FieldText(field="solution")),),
        dataset_name_field="topic",  # which a harness drops
    )
    account = score_gap([path], report, tasks=said, recipes={"quiz": recipe})
    check_by_hand(only(account, subset=None))
    assert account.joins[0].ways == {"fingerprint": 12}


def test_a_task_that_the_report_does_not_know_is_told(report, tmp_path):
    path = harness_file(tmp_path, [harness_row(0, 1)], task="other_quiz")
    account = score_gap([path], report)
    assert account.gaps == []
    assert [(one.task, one.n_not_joined) for one in account.joins] == [(None, 1)]


# OLMES --------------------------------------------------------------------------------------------


def olmes_files(folder, *, with_requests=True, numbers=range(N)):
    start = "task-003-quiz:mc-"
    rows = [
        {
            "doc_id": n,
            "native_id": f"n{n}",
            "metrics": {"predicted_index_raw": 2, "correct_choice": 1, "acc_raw": RIGHT[n]},
            "model_output": [{"sum_logits": -1.5}],
            "label": 1,
        }
        for n in numbers
    ]
    write_lines(folder / f"{start}predictions.jsonl", rows)
    asked = [
        {"request_type": "loglikelihood", "doc": {"query": f"Question: {QUESTIONS[n]}\nAnswer:"},
         "request": {"context": "…"}, "idx": idx, "doc_id": n, "native_id": f"n{n}", "label": 1}
        for n in numbers for idx in range(2)
    ]  # fmt: skip
    if with_requests:
        write_lines(folder / f"{start}requests.jsonl", asked)
    beside = {"task_name": "quiz:mc", "model_config": {"model": "gull-7b"}}
    (folder / f"{start}metrics.json").write_text(
        json.dumps({**beside, "task_config": {"split": "test"}})
    )


def test_olmes_predictions_with_what_was_asked(report, tmp_path):
    olmes_files(tmp_path)
    account = score_gap([tmp_path], report)
    gap = only(account, subset=None)
    check_by_hand(gap)
    assert (gap.name.model, gap.name.setting, gap.name.metric) == ("gull-7b", "quiz:mc", "acc_raw")
    assert {one.name.metric for one in account.gaps} == {"acc_raw"}
    assert account.joins[0].ways == {
        "text inside a longer one": 9,
        "text and index": 2,
        "index": 1,
    }
    assert account.others == []  # requests and metrics were read


def test_olmes_predictions_alone_go_by_index(report, tmp_path):
    olmes_files(tmp_path, with_requests=False)
    account = score_gap([tmp_path / "task-003-quiz:mc-predictions.jsonl"], report)
    check_by_hand(only(account, subset=None))
    assert account.joins[0].ways == {"index": 12}


# lighteval ----------------------------------------------------------------------------------------


def details_file(folder, rows):
    run = "2025-06-01T09-30-00.123456"
    path = folder / "details" / "org" / "gull" / run / f"details_suite|quiz|5_{run}.parquet"
    path.parent.mkdir(parents=True)
    pq.write_table(pa.Table.from_pylist(rows), path)
    return path


def test_lighteval_details_of_today(report, tmp_path):
    rows = [
        {
            "doc": {
                "query": f"Question: {QUESTIONS[n]}\nA. x\nB. y\nAnswer:",
                "choices": [" A", " B"],
                "gold_index": 0,
                "id": str(n),
                "task_name": "suite|quiz|5",
            },
            "metric": {"acc": float(RIGHT[n]), "extractive_match": None},
            "model_response": {"text": ["A"], "logprobs": [0.0]},
        }
        for n in ORDER
    ]
    details_file(tmp_path, rows)
    account = score_gap([tmp_path], report)
    gap = only(account, subset=None)
    check_by_hand(gap)
    assert (gap.name.model, gap.name.metric) == ("org/gull", "acc")
    assert account.joins[0].results.task == "suite|quiz|5"


@pytest.mark.parametrize("is_printed", [False, True])
def test_lighteval_details_of_before(report, tmp_path, is_printed):
    """Without an id: rows are shuffled, so texts decide, and two questions cannot be told apart."""
    rows = [
        {
            "example": f"Q: {QUESTIONS[n]}\nA:",
            "full_prompt": f"Q: {QUESTIONS[0]}\nA: 1\n\nQ: {QUESTIONS[n]}\nA:",
            "gold": [answer(n)],
            "predictions": ["1"],
            "metrics": str({"em": RIGHT[n]}) if is_printed else {"em": RIGHT[n]},
            "specifics": None,
        }
        for n in ORDER
    ]
    account = score_gap([details_file(tmp_path, rows)], report)
    gap = only(account, subset=None)
    # Not joined: 3 and 9, which ask the same, and 5, whose question is too short to be looked for.
    assert (gap.all.n, gap.not_joined.n, gap.not_checkable.n) == (9, 3, 0)
    assert (gap.clean.n, gap.clean.score) == (4, 1 / 4)
    assert (gap.leaked.n, gap.leaked.score) == (5, 4 / 5)
    assert "the question of 2 items (test 3, test 9)" in "\n".join(map(str, account.problems))


# Inspect ------------------------------------------------------------------------------------------


def test_inspect_logs_go_by_their_inputs(report, tmp_path):
    samples = [
        {
            "id": n + 1,
            "epoch": 1,
            "input": [{"role": "user", "content": f"Question: {QUESTIONS[n]}\nAnswer:"}],
            "target": answer(n),
            "scores": {"match": {"value": "C" if RIGHT[n] else "I"}},
        }
        for n in ORDER
    ]
    about = {"task": "pack/quiz", "model": "org/gull"}
    log = {"version": 2, "status": "success", "eval": about, "samples": samples}
    (tmp_path / "log.json").write_text(json.dumps(log))
    account = score_gap([tmp_path], report)
    gap = only(account, subset=None)
    check_by_hand(gap)
    assert (gap.name.model, gap.name.metric) == ("org/gull", "match")
    assert account.problems == []
    (count,) = account.joins
    assert (count.results.format, count.split) == ("Inspect logs", "test")
    assert count.ways == {"text inside a longer one": 9, "text and index": 2, "index": 1}


# tables -------------------------------------------------------------------------------------------


def test_a_table_by_index_of_two_models(report, tmp_path):
    lines = ["Model,Benchmark,Split,Index,Metric,Score"]
    lines += [f"gull,quiz,test,{n},em,{RIGHT[n]}" for n in ORDER]
    lines += [f"heron,quiz,test,{n},em,{'true' if n in (0, 3) else 'False'}" for n in (0, 3, 4)]
    path = tmp_path / "scores.csv"
    path.write_text("\n".join(lines))
    account = score_gap([path], report)
    check_by_hand(only(account, model="gull", subset=None))
    heron = only(account, model="heron", subset=None)
    # A person's index is the report's, whatever else was asked.
    assert (heron.clean.n, heron.clean.score, heron.leaked.score) == (2, 0.5, 1.0)
    assert heron.gap == 0.5


def test_a_table_that_counts_from_1_is_not_joined_by_index(report, tmp_path):
    rows = [{"benchmark": "quiz", "split": "test", "index": n + 1, "score": 1} for n in range(N)]
    path = tmp_path / "scores.jsonl"
    write_lines(path, rows)
    account = score_gap([path], report)
    assert account.joins[0].n_not_joined == N
    (problem,) = (one for one in account.problems if one.where == str(path))
    assert problem.found == "index 12 and no index 0, as if the indexes counted from 1"
    rows[3]["question"] = QUESTIONS[4]  # which agrees
    write_lines(path, rows)
    account = score_gap([path], report)
    assert account.joins[0].n_not_joined == 1  # there is no item 12


def test_a_table_of_another_number_of_items_is_in_doubt(report, tmp_path):
    path = tmp_path / "scores.csv"
    for n_items, is_in_doubt in ((N, False), (N - 1, True)):
        lines = [f"quiz,test,{n},1" for n in range(n_items)]
        path.write_text("\n".join(["benchmark,split,index,score", *lines]))
        notes = [note for note in score_gap([path], report).notes if "joined by index" in note]
        expected = f"although the file has {n_items} different indexes, and the report {N} items"
        assert [expected in note for note in notes] == [True] * is_in_doubt


def test_rows_of_no_item_are_in_no_score(report, tmp_path):
    """Five more rows than items, all right: they must not move the score without leaks."""
    path = tmp_path / "scores.csv"
    rows = [f"quiz,test,{n},{right}" for n, right in enumerate([*RIGHT, 1, 1, 1, 1, 1])]
    path.write_text("\n".join(["benchmark,split,index,score", *rows]))
    gap = only(score_gap([path], report), subset=None)
    assert (gap.all.n, gap.all.score, gap.not_joined.n) == (12, 0.5, 5)
    assert gap.moved == pytest.approx(gap.decontaminated - gap.all.score)


def test_each_checkpoint_counts_as_a_model(report, tmp_path):
    lines = ["model,step,benchmark,split,index,score"]
    lines += [
        f"gull,{step},quiz,test,{n},{int(n < most)}"
        for step, most in ((1000, 0), (2e12, N))
        for n in range(N)
    ]
    path = tmp_path / "scores.csv"
    path.write_text("\n".join(lines))
    account = score_gap([path], report)
    scores = {gap.name.model: gap.all.score for gap in account.gaps if gap.subset is None}
    assert scores == {"gull at step 1,000": 0.0, "gull at step 2,000,000,000,000": 1.0}
    assert not account.earlier


def test_a_table_by_question_and_by_fingerprint(report, tmp_path):
    rows = [("task\tquestion\tid\tscore")]
    for n in range(N):
        fingerprint = fingerprint_of(None, QUESTIONS[n], answer(n))
        asked = QUESTIONS[n].title() if n not in (3, 9) else ""
        rows.append(f"quiz\t{asked}\t{'0' * 16 if asked else fingerprint}\t{RIGHT[n]}")
    path = tmp_path / "scores.tsv"
    path.write_text("\n".join(rows))
    account = score_gap([path], report)
    check_by_hand(only(account, subset=None))
    assert account.joins[0].ways == {"fingerprint": 2, "text": 10}


def test_rows_that_say_nothing_are_told(report, tmp_path):
    path = tmp_path / "scores.csv"
    path.write_text(
        "benchmark,split,index,score\nquiz,test,0,1\nquiz,test,1,good\nquiz,test,x,1\n"
        "quiz,test,99,1\n,test,2,1\nquiz,test,3\nquiz,test,,1\nquiz,test,4,nan\n"
    )
    account = score_gap([path], report)
    gap = only(account, subset=None)
    assert (gap.all.n, gap.not_joined.n) == (1, 2)
    told = "\n".join(map(str, account.problems))
    for said in (
        "row 2: found the score 'good'",
        "row 3: found the index 'x'",
        "no such index",
        "row 5: no benchmark",
        "3 cells",
        "and no index",
        "row 8: found the score 'nan'",
    ):
        assert said in told


def test_an_index_of_no_split_is_told(report, tmp_path):
    path = tmp_path / "scores.csv"
    path.write_text("benchmark,index,score\nquiz,0,1\n")
    account = score_gap([path], report)
    expected = "no split in the file (the report has dev, test; set it with --task quiz="
    assert expected in str(account.problems[0])
    account = score_gap([path], report, tasks=["quiz=quiz:test"])
    assert only(account, subset=None).leaked.n == 1


# wrong inputs -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("empty.jsonl", "", "no rows at all"),
        ("broken.jsonl", "{", "not JSON"),
        ("other.jsonl", '{"text": "a document"}\n', "rows with the fields 'text'"),
        ("other.csv", "name,score\nx,1\n", "rows with the fields 'name', 'score'"),
        ("notes.txt", "hello", "another kind of file"),
        ("asked-requests.jsonl", '{"request_type": "x", "doc_id": 0}\n', "OLMES requests"),
    ],
)
def test_a_file_that_holds_no_results_is_refused(report, tmp_path, name, content, said):
    path = tmp_path / name
    path.write_text(content)
    with pytest.raises(InputError, match="expected") as refused:
        score_gap([path], report)
    assert said in str(refused.value)
    assert str(path) in str(refused.value)


def test_in_a_folder_other_files_are_listed(report, tmp_path):
    (tmp_path / "notes.txt").write_text("hello")
    (tmp_path / "empty.jsonl").write_text("")
    with pytest.raises(InputError, match="no per-item results"):
        score_gap([tmp_path], report)
    harness_file(tmp_path, [harness_row(n, RIGHT[n]) for n in range(N)])
    account = score_gap([tmp_path, tmp_path], report)
    check_by_hand(only(account, subset=None))
    assert [Path(one).name for one in account.others] == ["notes.txt"]
    assert "no rows at all" in str(account.problems[0])


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16"])
def test_a_table_of_another_encoding_is_not_read_and_told(report, tmp_path, encoding):
    (tmp_path / "good.csv").write_text("benchmark,split,index,score\nquiz,test,0,1\n")
    bad = tmp_path / "bad.csv"
    bad.write_text("benchmark,split,model,index,score\nquiz,test,Ä,0,1\n", encoding=encoding)
    account = score_gap([tmp_path], report)
    (problem,) = account.problems
    assert problem.where.startswith(str(bad))
    assert "codec" in problem.found
    assert account.others == []


def test_missing_paths_and_damaged_reports_are_refused(report, tmp_path):
    path = harness_file(tmp_path, [harness_row(0, 1)])
    with pytest.raises(InputError, match="no such file or folder"):
        score_gap([tmp_path / "nowhere"], report)
    with pytest.raises(MissingError, match="decon-assets run"):
        score_gap([path], tmp_path / "nowhere.duckdb")
    broken = tmp_path / "broken.duckdb"
    broken.write_bytes(b"nothing")
    with pytest.raises(StaleError, match="not a database"):
        score_gap([path], broken)


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        ("quiz", "found 'quiz'"),
        ("quiz=other", "no benchmark 'other'"),
        ("quiz=quiz:train", "no split 'train'"),
    ],
)
def test_a_task_that_is_said_wrongly_is_refused(report, tmp_path, said, problem):
    path = harness_file(tmp_path, [harness_row(0, 1)])
    with pytest.raises(InputError, match=problem):
        score_gap([path], report, tasks=[said])


# pages --------------------------------------------------------------------------------------------


def test_pages_are_the_same_each_time_and_hold_no_markup_of_others(report, tmp_path):
    rows = [harness_row(n, RIGHT[n], named="a|b<script>") for n in range(N)]
    path = harness_file(tmp_path / "in", rows)
    for out in ("one", "two"):
        write(score_gap([path], report), tmp_path / out)
    for name in ("gap.json", "gap.csv", "gap.md"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
    page = (tmp_path / "one" / "gap.md").read_text()
    assert "a\\|b&lt;script>" in page
    assert "correlation" in page
    assert "NaN" not in (tmp_path / "one" / "gap.json").read_text()
    whole = json.loads((tmp_path / "one" / "gap.json").read_text())["gaps"][0]
    assert (whole["n_leaked"], whole["score_leaked"], whole["low"]) == (5, 0.8, None)


def test_a_page_of_nothing_is_a_page(report, tmp_path):
    path = harness_file(tmp_path, [harness_row(0, 1)], task="other")
    assert "Nothing." in as_markdown(score_gap([path], report))


# the report ---------------------------------------------------------------------------------------


def test_the_report_says_of_which_leaks_the_answer_was_found(report):
    with duckdb.connect(str(report), read_only=True) as connection:
        rows = connection.execute(
            "SELECT instance_index, what_leaked FROM item_status WHERE status = 'leaked' ORDER BY 1"
        ).fetchall()
        (about,) = connection.execute(
            "SELECT comment FROM duckdb_columns() "
            "WHERE (table_name, column_name) = ('item_status', 'what_leaked')"
        ).fetchone()
    with_answer, without = "with its answer", "without its answer"
    expected = [(0, with_answer), (1, with_answer), (2, without), (6, with_answer), (7, without)]
    assert rows == expected
    assert "0.5" in about


def test_a_leak_is_with_its_answer_from_half_of_it_on_and_not_from_a_single_common_ngram(tmp_path):
    cases = [  # overlap, is_correct, searched_text, has_answer
        (0.0, None, None, True, "without its answer"),
        (None, None, None, True, "without its answer"),
        (0.006, None, None, True, "with part of its answer"),
        (0.49, None, None, True, "with part of its answer"),
        (0.5, None, None, True, "with its answer"),
        (1.0, True, None, True, "with its answer"),
        (1.0, False, None, True, "without its answer"),  # a wrong choice
        (None, None, "question", True, "without its answer"),
        (None, None, "continuation", True, "with its answer"),
        (None, None, None, False, "has no answer"),
    ]
    items, matches = [], []
    for number, (overlap, is_correct, searched_text, has_answer, _) in enumerate(cases):
        item = {"benchmark": "quiz", "split": "test", "instance_index": number}
        found = {"answer_overlap": overlap, "is_correct": is_correct}
        called = {"score": 1.0, "is_by_score": True, "is_contaminated": True}
        items.append({**item, "has_answer": has_answer, "is_indexed": True})
        matches.append({**item, **found, "searched_text": searched_text, **called, "row": number})
    made = write_report(tmp_path / "report.duckdb", items=items, matches=matches)
    with duckdb.connect(str(made), read_only=True) as connection:
        rows = connection.execute(
            "SELECT is_no_answer, what_leaked FROM item_status ORDER BY instance_index"
        ).fetchall()
        of_documents = connection.execute(
            "SELECT answer_found, answer_overlap IS NULL FROM findings ORDER BY instance_index"
        ).fetchall()
    assert rows == [(False, expected) for *_, expected in cases]
    assert of_documents == [(expected, not has_answer) for *_, has_answer, expected in cases]


def test_no_answer_items_are_neither_among_the_leaked_nor_among_the_clean(tmp_path):
    item = {"benchmark": "quiz", "split": "test", "is_indexed": True, "has_answer": True}
    leak = {"score": 1.0, "is_contaminated": True, "answer_overlap": 0.006}
    question = {"score": 0.7, "is_contaminated": False, "is_no_answer": True}
    made = write_report(
        tmp_path / "report.duckdb",
        runs=[{"policy": "{}"}],
        benchmarks=[{"benchmark": "quiz", "n_items": 3}],
        items=[
            {**item, "instance_index": n, "question": QUESTIONS[n], "fingerprints": [f"f{n}"]}
            for n in range(3)
        ],
        matches=[
            {"benchmark": "quiz", "split": "test", "instance_index": 0, "row": 0, **leak},
            {"benchmark": "quiz", "split": "test", "instance_index": 1, "row": 1, **question},
        ],
    )
    scores = tmp_path / "scores.csv"
    scores.write_text("benchmark,index,score\nquiz,0,1\nquiz,1,0.75\nquiz,2,0.25\n")
    (gap,) = score_gap([scores], made).gaps
    groups = {
        name: (getattr(gap, name).n, getattr(gap, name).score)
        for name in ("leaked", "with_answer", "no_answer", "clean")
    }
    assert groups == {
        "leaked": (1, 1.0),
        "with_answer": (0, None),
        "no_answer": (1, 0.75),
        "clean": (1, 0.25),
    }
    assert (gap.no_answer_gap, gap.decontaminated) == (0.5, 0.25)


def test_all_questions_of_a_row_are_joined_and_a_second_one_is_no_repetition(tmp_path):
    item = {"benchmark": "quiz", "split": "test", "is_indexed": True, "has_answer": True}
    made = write_report(
        tmp_path / "report.duckdb",
        runs=[{"policy": "{}"}],
        benchmarks=[{"benchmark": "quiz", "n_items": 1}],
        items=[
            {
                **item,
                "instance_index": 0,
                "question": QUESTIONS[0],
                "other_questions": [QUESTIONS[1], QUESTIONS[2]],
                "fingerprints": ["f0", "f1", "f2"],
            }
        ],
        matches=[],
    )
    scores = tmp_path / "scores.csv"
    with scores.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["benchmark", "index", "question", "score"])
        rows.writerows(["quiz", 0, question, n] for n, question in enumerate(QUESTIONS[:3]))
        rows.writerow(["quiz", 0, QUESTIONS[2], 9])
    gaps = score_gap([scores], made)
    (gap,), (join,) = gaps.gaps, gaps.joins
    assert (gap.clean.n, gap.clean.score) == (3, 1.0)
    assert (join.n_not_joined, join.n_repeated) == (0, 1)
