"""Normalized records in a folder: which benchmarks and splits they are, and what is refused."""

import json

import pytest

from decon_core.benchmarks import benchmark
from decon_core.benchmarks.folder import records_in, saved_records
from decon_core.errors import DeconError
from decon_core.storage.store import Store


def row(key: str, split: str, number: int, **more) -> dict:
    texts = {"question": f"question {key} {split} {number}", "answer": "an answer"}
    return {"eval_key": key, "eval_instance_index": number, "split": split, **texts, **more}


def write(path, *rows: dict):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def questions(table) -> list[str]:
    return table["question"].to_pylist()


def test_rows_say_themselves_to_which_benchmark_and_split_they_belong(tmp_path):
    write(tmp_path / "a.jsonl", row("quiz", "test", 0), row("riddle", "dev", 0))
    write(tmp_path / "deep" / "b.jsonl", row("quiz", "train", 0), row("quiz", "test", 1))
    found = records_in(tmp_path)
    assert list(found) == ["quiz", "riddle"]
    splits = zip(found["quiz"]["split"].to_pylist(), questions(found["quiz"]), strict=True)
    assert list(splits) == [
        ("test", "question quiz test 0"),
        ("test", "question quiz test 1"),
        ("train", "question quiz train 0"),
    ]


def test_part_2_comes_before_part_10_and_items_are_numbered_through(tmp_path):
    for part in (10, 2, 1):
        write(tmp_path / f"quiz_test-{part}.jsonl", row("quiz", "test", part))
    table = records_in(tmp_path)["quiz"]
    assert questions(table) == [f"question quiz test {part}" for part in (1, 2, 10)]
    assert table["instance_index"].to_pylist() == [0, 1, 2]
    numbers = [json.loads(extras)["eval_instance_index"] for extras in table["extras"].to_pylist()]
    assert numbers == [1, 2, 10]


@pytest.mark.parametrize("index", [0, 1, 3])
def test_an_item_whose_records_are_in_two_files_is_one(tmp_path, index):
    """MMLU of AI2's decon: files end after a number of records, in the middle of an item."""
    rows = [row("quiz", "test", at, answer=a) for at in (index, index + 1) for a in "ABCD"]
    write(tmp_path / "quiz_test-1.jsonl", *rows[:2], row("quiz", "dev", 0))
    write(tmp_path / "quiz_test-2.jsonl", rows[2])
    write(tmp_path / "quiz_test-3.jsonl", *rows[3:])
    table = records_in(tmp_path)["quiz"]
    of_test = [one for one in table.to_pylist() if one["split"] == "test"]
    assert [(one["instance_index"], one["answer"]) for one in of_test] == [
        (at, answer) for at in (0, 1) for answer in "ABCD"
    ]
    numbers = [json.loads(one["extras"] or "{}").get("eval_instance_index") for one in of_test]
    assert numbers == [
        at if at != n else None for n, at in ((0, index), (1, index + 1)) for _ in "ABCD"
    ]


def test_questions_of_one_item_may_be_in_two_files(tmp_path):
    rows = [row("quiz", "test", 0, sub_index=at, question=f"part {at}") for at in range(3)]
    write(tmp_path / "quiz-1.jsonl", *rows[:2])
    write(tmp_path / "quiz-2.jsonl", *rows[2:])
    assert records_in(tmp_path)["quiz"]["instance_index"].to_pylist() == [0, 0, 0]


@pytest.mark.parametrize("index", [0, 1])
def test_files_that_count_anew_have_items_of_their_own(tmp_path, index):
    for file in "ab":
        write(tmp_path / f"{file}.jsonl", row("quiz", "test", index, question=f"question {file}"))
    assert records_in(tmp_path)["quiz"]["instance_index"].to_pylist() == [0, 1]


def test_the_choices_of_an_item_stay_together(tmp_path):
    rows = [row("quiz", "test", 3, answer=letter) for letter in "ABC"]
    table = records_in(write(tmp_path / "a.jsonl", *rows, row("quiz", "test", 4)))["quiz"]
    assert table["instance_index"].to_pylist() == [0, 0, 0, 1]


def test_other_files_and_hidden_folders_are_passed_over(tmp_path):
    write(tmp_path / "a.jsonl", row("quiz", "test", 0))
    write(tmp_path / ".cache" / "b.jsonl", row("riddle", "test", 0))
    (tmp_path / "README.md").write_text("hello")
    assert list(records_in(tmp_path)) == ["quiz"]


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([{"question": "raw", "answer": "row"}], "no 'eval_key'"),
        ([{"eval_key": "quiz", "question": "q", "answer": "a"}], "no 'split'"),
        ([row("quiz", "test", 0, question={"a": 1})], "question"),
        ([row("a|b", "test", 0)], "a|b"),
    ],
)
def test_rows_that_are_no_records_are_refused_with_their_place(tmp_path, rows, said):
    path = write(tmp_path / "a.jsonl", *rows)
    with pytest.raises(DeconError) as raised:
        records_in(path)
    assert said in str(raised.value)


def test_raw_rows_of_a_file_are_one_problem_that_names_the_recipe_beside_it(tmp_path):
    write(tmp_path / "a.jsonl", *[{"question": "raw"}] * 3)
    with pytest.raises(DeconError) as raised:
        records_in(tmp_path)
    (problem,) = raised.value.problems
    assert "row 1: no 'eval_key', also in 2 later rows" in str(problem)
    assert "write a recipe" in problem.remedy
    (tmp_path / "evals.yaml").write_text("evals: {}\n")
    (tmp_path / "other.yaml").write_text("key: value\n")
    with pytest.raises(DeconError) as raised:
        records_in(tmp_path)
    (problem,) = raised.value.problems
    assert problem.remedy.endswith(f"the recipe file itself: {tmp_path / 'evals.yaml'}")


def test_records_of_a_recipe_are_normalized_again_only_if_it_or_a_file_changed(
    tmp_path, monkeypatch
):
    store, recipes, rows = Store(tmp_path / "store"), tmp_path / "r.yaml", tmp_path / "a.jsonl"
    recipe = "evals:\n  quiz:\n    local_path: a.jsonl\n    splits: [test]\n    prompt: {}\n"
    recipes.write_text(recipe.format("q"))
    write(rows, {"q": "What is the first?", "p": "What is the second?"})
    (first,) = saved_records(store, recipes)
    with monkeypatch.context() as patched:
        patched.setattr(benchmark, "normalize", lambda *_, **__: pytest.fail("normalized again"))
        assert saved_records(store, recipes) == (first,)
    recipes.write_text(recipe.format("p"))
    (second,) = saved_records(store, recipes)
    write(rows, {"p": "What is the third?"})
    (third,) = saved_records(store, recipes)
    assert len({each.fingerprint for each in (first, second, third)}) == 3
    store.records("quiz", third.fingerprint).unlink()
    assert saved_records(store, recipes) == (third,)


def test_nothing_to_read_is_no_empty_benchmark(tmp_path):
    for path in (tmp_path, tmp_path / "nowhere", tmp_path / "nowhere.yaml"):
        with pytest.raises(DeconError, match="recipe file"):
            records_in(path)
