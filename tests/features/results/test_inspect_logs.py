"""Logs of Inspect, in both of its formats, with scores that were averaged by hand."""

import json
from functools import partial

import pytest

from decon_core.errors import InputError
from decon_core.features.results.aggregate import read_aggregates
from decon_core.features.results.find import find_results
from decon_core.features.results.inspect_logs import is_log, zipfile


def header(*, status="success", task="inspect_evals/quiz", n_samples=2, **about):
    return {
        "version": 2,
        "status": status,
        "eval": {
            "created": "2025-06-01T10:00:00+00:00",
            "task": task,
            "task_args": {"split": "test"},
            "dataset": {"name": "quiz", "samples": 2},
            "model": "org/gull",
            **about,
        },
        "results": {"total_samples": n_samples, "scores": [{"name": "match", "scorer": "match"}]},
    }


def sample(number, values, *, epoch=1, **more):
    """A sample with a value for each scorer."""
    return {
        "id": number,
        "epoch": epoch,
        "input": f"Who wrote book {number}?",
        "target": "Ada",
        "messages": [],
        "output": {"choices": [{"message": {"role": "assistant", "content": "Ada, I think"}}]},
        "scores": {scorer: {"value": value, "answer": "x"} for scorer, value in values.items()},
        **more,
    }


def json_log(path, samples, **about):
    about = {"n_samples": len(samples), **about}
    path.write_text(json.dumps({**header(**about), "samples": samples}, indent=2))
    return path


def zip_log(path, samples, *, compression=zipfile.ZIP_ZSTANDARD, **about):
    about = {"n_samples": len(samples), **about}
    with zipfile.ZipFile(path, "w", compression) as log:
        log.writestr("_journal/start.json", json.dumps({"eval": header()["eval"]}))
        for row in samples:
            name = f"samples/{row['id']}_epoch_{row['epoch']}.json"
            log.writestr(name, json.dumps(row))
        log.writestr("summaries.json", json.dumps([{"id": 1, "epoch": 1, "scores": None}]))
        log.writestr("header.json", json.dumps(header(**about)))
    return path


@pytest.mark.parametrize(
    ("write", "name", "place"),
    [
        (zip_log, "a.eval", "samples/1_epoch_1.json"),
        (partial(zip_log, compression=zipfile.ZIP_DEFLATED), "a.eval", "samples/1_epoch_1.json"),
        (json_log, "a.json", "sample 1"),
    ],
)
def test_an_item_has_the_mean_of_its_epochs(tmp_path, write, name, place):
    samples = [
        sample(1, {"match": "C", "judge": {"style": 4, "is_true": True}}),
        sample(2, {"match": "I", "judge": {"style": 1.5, "is_true": False}}),
        sample(1, {"match": "P", "judge": {"style": 2, "is_true": False}}, epoch=2),
    ]
    path = write(tmp_path / name, samples)
    read = find_results([tmp_path])  # not named: in a folder
    assert (read.problems, read.others) == ([], [])
    (results,) = read.results
    assert (results.model, results.task, results.split) == ("org/gull", "quiz", "test")
    assert results.run == "2025-06-01T10:00:00+00:00"
    first, second = results.samples
    assert first.scores == {"match": 0.75, "judge_style": 3, "judge_is_true": 0.5}
    assert second.scores == {"match": 0, "judge_style": 1.5, "judge_is_true": 0}
    assert (first.place, first.index) == (f"{path} {place}", 0)
    assert first.doc["question"] == ["Who wrote book 1?"]
    assert first.texts == ("Ada, I think", ("Ada",))


def test_values_are_letters_words_and_numbers(tmp_path):
    values = {"C": 1, "P": 0.5, "I": 0, "N": 0, "yes": 1, "False": 0, "0.25": 0.25, "c": None}
    samples = [sample(f"s{n}", {"m": value, "all": 1}) for n, value in enumerate(values)]
    samples.append(sample("list", {"m": [1, 0], "all": 1}))
    samples.append(sample("nan", {"m": float("nan"), "all": 1}))
    (results,) = find_results([json_log(tmp_path / "a.json", samples)]).results
    scores = [row.scores.get("m") for row in results.samples]
    assert scores == [*values.values(), None, None]
    (problem,) = results.problems
    assert "metric 'm': no number in 3 rows" in str(problem)


def test_the_question_is_what_the_user_said_last(tmp_path):
    asked = [
        {"role": "system", "content": "Answer briefly."},
        {"role": "user", "content": "Who wrote book 8?"},
        {"role": "assistant", "content": "Eve"},
        {"role": "user", "content": [{"type": "image", "image": "x"}, {"text": "And book 9?"}]},
    ]
    path = zip_log(tmp_path / "a.eval", [sample("b9", {"m": 1}, input=asked, choices=["A", "B"])])
    (results,) = find_results([path]).results
    (row,) = results.samples
    assert row.doc["question"] == ["And book 9?", "Who wrote book 8?"]
    assert row.doc["choices"] == ["A", "B"]
    assert row.index is None


def test_samples_with_an_error_do_not_count(tmp_path):
    samples = [
        sample(1, {"m": "C"}),
        sample(1, {"m": "I"}, epoch=2, error={"message": "timed out"}),
        sample(2, {"m": "C"}, error={"message": "no answer"}),
        sample(3, {"m": "C"}, invalidation={"reason": "wrong prompt"}),
        sample(4, {}, target=""),
    ]
    (results,) = find_results([zip_log(tmp_path / "a.eval", samples)]).results
    assert [(row.doc["id"], row.scores) for row in results.samples] == [(1, {"m": 1})]
    told = [str(problem) for problem in results.problems]
    assert len(told) == 4
    assert "samples/1_epoch_2.json: the sample failed (timed out)" in told[0]
    assert "samples/2_epoch_1.json: the sample failed (no answer)" in told[1]
    assert "samples/3_epoch_1.json: the sample was invalidated" in told[2]
    assert "samples/4_epoch_1.json: no score" in told[3]


@pytest.mark.parametrize(("write", "name"), [(zip_log, "a.eval"), (json_log, "a.json")])
def test_samples_that_a_log_lacks_are_told(tmp_path, write, name):
    (results,) = find_results(
        [write(tmp_path / name, [sample(1, {"m": "C"})], n_samples=5)]
    ).results
    (problem,) = results.problems
    assert problem.found == "the log should have 5 samples, but has only 1"
    assert len(results.samples) == 1


def test_a_log_whose_run_failed_does_not_count(tmp_path):
    zip_log(tmp_path / "failed.eval", [sample(1, {"m": "I"})], status="error")
    with pytest.raises(InputError, match="the status 'error'"):
        find_results([tmp_path])
    good = json_log(tmp_path / "good.json", [sample(1, {"m": "C"})])
    json_log(tmp_path / "stopped.json", [sample(1, {"m": "I"})], status="cancelled")
    zip_log(tmp_path / "empty.eval", [], task="other")
    with zipfile.ZipFile(tmp_path / "running.eval", "w") as log:
        log.writestr("_journal/start.json", "{}")
    (tmp_path / "cut.eval").write_bytes((tmp_path / "failed.eval").read_bytes()[:-40])
    read = find_results([tmp_path])
    assert [results.path for results in read.results if results.samples] == [good]
    problems = [*read.problems, *(one for results in read.results for one in results.problems)]
    told = {str(problem).partition(": ")[0]: str(problem) for problem in problems}
    for name, said in (
        ("failed.eval", "the status 'error'"),
        ("stopped.json", "the status 'cancelled'"),
        ("running.eval", "no header.json"),
        ("cut.eval", "cannot be read"),
        ("empty.eval", "no samples"),
    ):
        assert said in told[str(tmp_path / name)]
    assert len(told) == 5


def test_of_two_runs_with_the_same_arguments_the_later_counts(tmp_path):
    early = zip_log(tmp_path / "a.eval", [sample(1, {"m": 0})])
    json_log(tmp_path / "b.json", [sample(1, {"m": 1})], created="2025-06-02T10:00:00+00:00")
    law = {"split": "test", "subject": "law"}
    zip_log(tmp_path / "c.eval", [sample(1, {"m": 0.5})], task_args_passed=law)
    read = find_results([tmp_path])
    scores = {results.task: results.samples[0].scores for results in read.results}
    assert scores == {"quiz": {"m": 1}, "quiz subject=law": {"m": 0.5}}
    assert read.earlier == [str(early)]


def test_other_json_is_no_log(tmp_path):
    log = json_log(tmp_path / "log.json", [sample(1, {"m": 1})])
    other = tmp_path / "results.json"
    other.write_text('{"version": 2, "results": {"quiz": {"acc": 0.5}}}')
    assert [is_log(path) for path in (log, other)] == [True, False]
    assert read_aggregates(log) is None
    assert len(read_aggregates(other)) == 1
    assert find_results([tmp_path]).others == [str(other)]
    with pytest.raises(InputError, match="Inspect logs"):
        find_results([other])
