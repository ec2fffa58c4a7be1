"""Every form in which a row may hold its answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from decon_core.benchmarks.normalize import normalize_rows
from decon_core.benchmarks.recipe import ChoicesAnswer, FieldText, LocalSource, Prompts, Recipe
from decon_core.errors import RecordError
from tests.core.benchmarks.conftest import answers_of

Records = Callable[..., list[dict[str, Any]]]

CHOICES = """
prompt: q
answers:
- expand_choices: {field: c, correct_index: k}
"""


def test_a_field_is_one_record_without_a_choice_index(records_of: Records) -> None:
    records = records_of("prompt: q\nanswers: [a]", {"q": "Why?", "a": "So."})
    assert answers_of(records) == [("So.", None)]
    assert records[0]["choice_index"] is None


@pytest.mark.parametrize("key", ["answer: a", "answers: a", "answers: [a]", "solution: a"])
def test_answer_answers_and_solution_mean_the_same(records_of: Records, key: str) -> None:
    assert answers_of(records_of(f"prompt: q\n{key}", {"q": "Q", "a": "A"})) == [("A", None)]


def test_a_list_of_accepted_answers_is_one_record_each_equal_ones_once(records_of: Records) -> None:
    records = records_of("prompt: q\nanswers: [a]", {"q": "Q", "a": ["x", "y", "x"]})
    assert [(r["answer"], r["choice_index"]) for r in records] == [("x", 0), ("y", 1)]


def test_every_entry_that_yields_an_answer_makes_a_record(records_of: Records) -> None:
    lines = "prompt: q\nanswers: [answer.spans.0, answer.number, answer.date]"
    date = {"day": "", "month": "", "year": ""}
    row = {"q": "Q", "answer": {"spans": [], "number": "7", "date": date}}
    assert answers_of(records_of(lines, row)) == [("7", None)]
    row["answer"] = {"spans": ["Ulm", "Bonn"], "number": "7", "date": date}
    assert answers_of(records_of(lines, row)) == [("Ulm", None), ("7", None)]


def test_a_date_in_parts_becomes_month_day_year(records_of: Records) -> None:
    lines = "prompt: q\nanswers: [d]"
    row = {"q": "Q", "d": {"day": "9", "month": "May", "year": "1612"}}
    assert answers_of(records_of(lines, row)) == [("May 9 1612", None)]
    row["d"] = {"day": "", "month": "", "year": "1612"}
    assert answers_of(records_of(lines, row)) == [("1612", None)]


@pytest.mark.parametrize(
    ("value", "text"),
    [(5, "5"), (5.0, "5.0"), (True, "true"), (False, "false"), ("  x ", "  x "), ("5", "5")],
)
def test_numbers_and_booleans_become_text_plainly(
    records_of: Records, value: object, text: str
) -> None:
    assert answers_of(records_of("prompt: q\nanswers: [a]", {"q": "Q", "a": value})) == [
        (text, None)
    ]


@pytest.mark.parametrize("value", [None, "", "  \n", [], [None, ""], float("nan")])
def test_an_answer_that_is_there_but_empty_leaves_one_record_without_answer(
    records_of: Records, value: object
) -> None:
    records = records_of("prompt: q\nanswers: [a]", {"q": "Q", "a": value})
    assert [(r["answer"], r["choice_index"], r["is_correct"]) for r in records] == [
        (None, None, None)
    ]


def test_is_correct_may_be_said_for_a_field(records_of: Records) -> None:
    lines = """
    prompt: q
    answers:
    - {field: good, is_correct: true}
    - {field: bad, is_correct: false}
    """
    records = records_of(lines, {"q": "Q", "good": "g", "bad": ["b", "g"]})
    assert answers_of(records) == [("g", True), ("b", False)]


@pytest.mark.parametrize(
    ("choices", "label"),
    [
        (["x", "y", "z"], 1),
        (["x", "y", "z"], 1.0),
        (["x", "y", "z"], "1"),
        (["x", "y", "z"], "B"),
        (["x", "y", "z"], " b "),
        ({"text": ["x", "y", "z"], "label": ["A", "B", "C"]}, "B"),
        ({"text": ["x", "y", "z"], "label": ["1", "2", "3"]}, "2"),
        ({"text": ["x", "y", "z"], "label": ["1", "2", "3"]}, 2),
        ({"text": ["x", "y", "z"]}, "B"),
        ({"A": "x", "B": "y", "C": "z"}, "B"),
        ({"A": "x", "B": "y", "C": "z"}, "b"),
        ({"A": "x", "B": "y", "C": "z"}, 1),
        ([{"text": t, "label": n} for t, n in zip("xyz", "ABC", strict=True)], "B"),
        ([{"value": t, "key": n} for t, n in zip("xyz", "ABC", strict=True)], "B"),
        ([{"text": t} for t in "xyz"], 1),
    ],
)
def test_all_shapes_of_choices_and_labels_give_the_same_records(
    records_of: Records, choices: object, label: object
) -> None:
    records = records_of(CHOICES, {"q": "Q", "c": choices, "k": label})
    assert answers_of(records) == [("x", False), ("y", True), ("z", False)]
    assert [r["choice_index"] for r in records] == [0, 1, 2]


@pytest.mark.parametrize(
    "choices",
    [
        {"text": ["x", "y"], "label": ["1", "2"]},
        [{"text": "x", "label": "1"}, {"text": "y", "label": "2"}],
    ],
)
def test_labels_beside_the_named_texts_are_used(records_of: Records, choices: object) -> None:
    """Without them the "1" of some rows would be taken for the second choice."""
    lines = "prompt: q\nanswers:\n- expand_choices: {field: c.text, correct_index: k}"
    records = records_of(lines, {"q": "Q", "c": choices, "k": "1"})
    assert answers_of(records) == [("x", True), ("y", False)]


@pytest.mark.parametrize("label", [None, "", -1, "-1"])
def test_a_hidden_label_leaves_open_which_choice_is_right(
    records_of: Records, label: object
) -> None:
    records = records_of(CHOICES, {"q": "Q", "c": ["x", "y"], "k": label})
    assert answers_of(records) == [("x", None), ("y", None)]


def test_correct_index_null_leaves_open_which_choice_is_right(records_of: Records) -> None:
    lines = "prompt: q\nanswers:\n- ideal\n- expand_choices: {field: c, correct_index: null}"
    records = records_of(lines, {"q": "Q", "ideal": "i", "c": ["x", "i"]})
    assert answers_of(records) == [("i", None), ("x", None)]


def test_a_text_may_say_which_choice_is_right(records_of: Records) -> None:
    lines = "prompt: q\nanswers:\n- expand_choices: {fields: [r, w 1, w 2], correct_text: r}"
    records = records_of(lines, {"q": "Q", "r": "x", "w 1": "y", "w 2": "z"})
    assert answers_of(records) == [("x", True), ("y", False), ("z", False)]


def test_flags_may_say_which_choice_is_right(records_of: Records) -> None:
    lines = "prompt: q\nanswers:\n- expand_choices: {field: c.choices, correct_flags: c.labels}"
    records = records_of(lines, {"q": "Q", "c": {"choices": ["x", "y"], "labels": [0, 1]}})
    assert answers_of(records) == [("x", False), ("y", True)]


def test_fields_that_are_choices_go_by_their_names(records_of: Records) -> None:
    lines = "prompt: q\nanswers:\n- expand_choices: {fields: [A, B], correct_index: k}"
    assert answers_of(records_of(lines, {"q": "Q", "A": "x", "B": "y", "k": "B"})) == [
        ("x", False),
        ("y", True),
    ]


def test_choices_written_as_text_can_be_parsed_first(records_of: Records) -> None:
    lines = """
    prompt: q
    answers:
    - expand_choices: {field: c, transform: parse_python, correct_index: k}
    """
    assert answers_of(records_of(lines, {"q": "Q", "c": "['x', 'y']", "k": 1})) == [
        ("x", False),
        ("y", True),
    ]


def test_empty_choices_are_left_out(records_of: Records) -> None:
    records = records_of(CHOICES, {"q": "Q", "c": {"A": "x", "B": None, "C": "z"}, "k": "C"})
    assert answers_of(records) == [("x", False), ("z", True)]


@pytest.mark.parametrize(
    ("lines", "row"),
    [
        (
            "{prefix: answer, suffix_match_field: k, label_transform: numbers_to_letters}",
            {"answerA": "x", "answerB": "y", "k": "2", "answer": "no", "answer_info": {}},
        ),
        (
            "{prefix: sol, suffix_match_field: k, label_transform: add_one}",
            {"sol2": "y", "sol1": "x", "k": 1, "solution": "no"},
        ),
        (
            "{prefix: op, suffix_match_field: k, label_transform: index_to_letter}",
            {"opa": "x", "opb": "y", "k": 1, "option": "no"},
        ),
        ("{prefix: option, suffix_match_field: k}", {"option1": "x", "option2": "y", "k": "2"}),
        ("{prefix: option_, suffix_match_field: k}", {"option_a": "x", "option_b": "y", "k": "B"}),
    ],
)
def test_fields_with_a_prefix_are_choices(
    records_of: Records, lines: str, row: dict[str, object]
) -> None:
    records = records_of(f"prompt: q\nanswers:\n- expand_prefix: {lines}", {"q": "Q"} | row)
    assert answers_of(records) == [("x", False), ("y", True)]


def test_ten_fields_with_a_prefix_are_counted_not_spelled(records_of: Records) -> None:
    row = {"q": "Q"} | {f"o{n}": f"text {n}" for n in (10, 9, 2, 1)}
    records = records_of("prompt: q\nanswers:\n- expand_prefix: {prefix: o}", row)
    assert [r["answer"] for r in records] == ["text 1", "text 2", "text 9", "text 10"]


def test_a_number_beside_numbered_fields_is_never_taken_for_a_position(records_of: Records) -> None:
    """Without `label_transform: add_one` half of the rows would be wrong without a word."""
    lines = "prompt: q\nanswers:\n- expand_prefix: {prefix: sol, suffix_match_field: k}"
    with pytest.raises(RecordError, match=r"found the number 0; expected the label of one of"):
        records_of(lines, {"q": "Q", "sol1": "x", "sol2": "y", "k": 0})


@pytest.mark.parametrize(
    ("lines", "row"),
    [
        ("{prefix: sol, key_field: k}", {"sol1": "x", "sol2": "y", "k": 2}),
        (
            "{prefix: sol, key_field: k, label_transform: add_one}",
            {"sol1": "x", "sol2": "y", "k": 1},
        ),
        ("{field: options, key_field: k}", {"options": ["x", "y"], "k": 1}),
        ("{field: options, key_field: k}", {"options": {"A": "x", "B": "y"}, "k": "B"}),
        (
            "{field: options, key_field: k, label_transform: subtract_one}",
            {"options": ["x", "y"], "k": 2},
        ),
    ],
)
def test_one_answer_is_found_by_its_label(
    records_of: Records, lines: str, row: dict[str, object]
) -> None:
    records = records_of(f"prompt: q\nanswers:\n- indexed: {lines}", {"q": "Q"} | row)
    assert answers_of(records) == [("y", None)]


def test_the_older_way_to_write_indexed_still_works(records_of: Records) -> None:
    lines = "prompt: q\nanswers:\n- {field: options, key_field: k}"
    assert answers_of(records_of(lines, {"q": "Q", "options": ["x", "y"], "k": 1})) == [("y", None)]


def test_parallel_arrays_are_one_question_per_place(records_of: Records) -> None:
    lines = "prompts: {array: qs.text}\nanswers:\n- array: as.text\npassage: p"
    row = {"p": "P", "qs": {"text": ["one?", "two?"]}, "as": {"text": ["1", ["2", "zwei"]]}}
    records = records_of(lines, row)
    found = [(r["question"], r["sub_index"], r["choice_index"], r["answer"]) for r in records]
    assert found == [
        ("one?", 0, None, "1"),
        ("two?", 1, 0, "2"),
        ("two?", 1, 1, "zwei"),
    ]
    assert {r["passage"] for r in records} == {"P"}


def test_a_list_of_objects_and_an_object_of_lists_are_the_same_column(records_of: Records) -> None:
    lines = "prompts: {array: qs.text}\nanswers:\n- array: as.text"
    lists = {"qs": {"text": ["a", "b"]}, "as": {"text": ["1", "2"]}}
    objects = {name: [{"text": t} for t in column["text"]] for name, column in lists.items()}
    assert records_of(lines, lists) == records_of(lines, objects)


def test_arrays_of_unequal_length_are_refused(records_of: Records) -> None:
    with pytest.raises(RecordError, match="found a list of 1; expected one element for each"):
        records_of("prompts: {array: q}\nanswers:\n- array: a", {"q": ["x", "y"], "a": ["1"]})


def test_choices_in_a_list_for_each_question_are_named_by_letters(records_of: Records) -> None:
    lines = "prompts: {array: q}\nanswers:\n- {array: a, choices: c}"
    row = {"q": ["one?", "two?"], "a": ["B", "A"], "c": [["1", "eins"], ["2", "zwei"]]}
    found = [(r["question"], r["answer"], r["is_correct"]) for r in records_of(lines, row)]
    assert found == [
        ("one?", "1", False),
        ("one?", "eins", True),
        ("two?", "2", True),
        ("two?", "zwei", False),
    ]
    with pytest.raises(RecordError, match="'c': found a list of 1; expected one element for each"):
        records_of(lines, row | {"c": [["1", "eins"]]})
    with pytest.raises(RecordError, match="'a': found 'C'; expected the label of one of"):
        records_of(lines, row | {"a": ["B", "C"]})


@pytest.mark.parametrize("label", ["AC", "A, C", "A C", ["A", "C"], [0, 2]])
def test_several_choices_may_be_correct(records_of: Records, label: object) -> None:
    lines = "prompt: q\nanswers:\n- expand_choices: {field: c, correct_index: k}"
    records = records_of(lines, {"q": "Q", "c": ["x", "y", "z"], "k": label})
    assert answers_of(records) == [("x", True), ("y", False), ("z", True)]


@pytest.mark.parametrize("label", ["BAD", "CA", "AA", "D, A", ["A", None], [0, -1], ["A", "BAD"]])
def test_a_label_that_is_no_list_of_choices_is_refused(records_of: Records, label: object) -> None:
    lines = "prompt: q\nanswers:\n- expand_choices: {field: c, correct_index: k}"
    with pytest.raises(RecordError, match=r"field 'k': found .*; expected "):
        records_of(lines, {"q": "Q", "c": ["w", "x", "y", "z"], "k": label})


def test_a_split_without_answers_shows_its_choices_and_reads_no_answer_field(
    recipe_of: Callable[..., Recipe],
) -> None:
    lines = """
    prompt: q
    no_answer_splits: [test]
    answers:
    - value
    - expand_choices: {field: c, correct_index: k}
    """
    recipe = recipe_of(lines, splits="[train, test]")
    row = {"q": "Q", "value": "<unk>", "c": ["x", "y"], "k": 0}
    table = normalize_rows(recipe, [row], split="test", origin="rows")
    assert answers_of(table.to_pylist()) == [("x", None), ("y", None)]
    table = normalize_rows(recipe, [{"q": "Q"}], split="test", origin="rows")
    assert answers_of(table.to_pylist()) == [(None, None)]


@pytest.mark.parametrize(
    ("lines", "row", "message"),
    [
        ("answers: [a]", {"b": "x"}, "field 'a': no 'a' among 'q', 'b'; expected the field"),
        ("answers: [answer]", {"anwser": "x"}, "Did you mean 'anwser'?"),
        ("answers: [a]", {"a": {"text": "x"}}, "found an object with 'text'; expected text"),
        ("answers: [a]", {"a": [["x"]]}, "found a list of 1; expected text, a number"),
        ("answers: [a.b]", {"a": "x"}, "found 'x'; expected an object or a list with 'b'"),
        (
            "answers: [{expand_choices: {field: c, correct_index: k}}]",
            {"c": ["x", "y"], "k": 2},
            "field 'k': found the number 2; expected the label of one of the 2 choices in 'c'",
        ),
        (
            "answers: [{expand_choices: {field: c, correct_index: k}}]",
            {"c": {"A": "x", "B": "y"}, "k": "E"},
            r"found 'E'; expected the label of one of the 2 choices in 'c' \(A, B\)",
        ),
        (
            "answers: [{expand_choices: {field: c, correct_index: k}}]",
            {"c": {"A": "x", "B": ""}, "k": "B"},
            "found 'B'; expected the label of one of the 2 choices",
        ),
        (
            "answers: [{expand_choices: {field: c, correct_index: k}}]",
            {"c": ["x"], "k": {"a": 0}},
            "found an object with 'a'; expected a number, a letter or a label",
        ),
        (
            "answers: [{expand_choices: {field: c, correct_index: k}}]",
            {"c": "x, y", "k": 0},
            "found 'x, y'; expected choices",
        ),
        (
            "answers: [{expand_choices: {field: c, correct_index: k}}]",
            {"c": [{"text": "x"}, {"txt": "y"}], "k": 0},
            "found an object with 'txt'; expected a choice with text and label",
        ),
        (
            "answers: [{expand_choices: {field: c, correct_text: k}}]",
            {"c": ["x"], "k": "y"},
            "found 'y'; expected the text of a choice in 'c'",
        ),
        (
            "answers: [{expand_choices: {field: c, correct_flags: k}}]",
            {"c": ["x"], "k": [0, 1]},
            "found a list of 2; expected a list of 1 flags",
        ),
        (
            "answers: [{expand_prefix: {prefix: o}}]",
            {"x": 1},
            "no field named 'o' plus a letter or a number",
        ),
        (
            "answers: [{indexed: {prefix: o, key_field: k}}]",
            {"o1": "x", "k": 2},
            "field 'o2': no 'o2'",
        ),
        (
            "answers:\n- indexed: {prefix: o, key_field: k, label_transform: add_one}",
            {"o1": "x", "k": "A"},
            "found 'A'; expected a label that add_one accepts",
        ),
        (
            "prompts: {array: q}\nanswers: [{array: a}]",
            {"q": ["x"], "a": "y"},
            "found 'y'; expected a list, one per question",
        ),
    ],
)
def test_a_row_that_does_not_fit_is_refused_with_its_place(
    records_of: Records, lines: str, row: dict[str, object], message: str
) -> None:
    lines = lines if lines.startswith("prompts") else f"prompt: q\n{lines}"
    with pytest.raises(RecordError, match=message) as error:
        records_of(lines, {"q": "Q"} | row)
    assert str(error.value).startswith("rows.jsonl row 1, field '")


LETTERS = "ABCDEFGH"


@given(
    texts=st.lists(st.text("xyz", min_size=1, max_size=3), min_size=1, max_size=8),
    data=st.data(),
)
def test_prop_choices_expand_as_a_person_would_do_it(texts: list[str], data: st.DataObject) -> None:
    right = data.draw(st.integers(0, len(texts) - 1))
    labels = list(LETTERS[: len(texts)])
    shape = data.draw(
        st.sampled_from(
            [
                texts,
                {"text": texts, "label": labels},
                dict(zip(labels, texts, strict=True)),
                [{"text": t, "label": n} for t, n in zip(texts, labels, strict=True)],
            ]
        )
    )
    label = data.draw(st.sampled_from([right, labels[right], labels[right].lower()]))
    expected: list[tuple[str, bool]] = []
    for text in texts:  # equal choices once, right if any of them is
        if all(text != known for known, _ in expected):
            expected.append((text, text == texts[right]))

    recipe = Recipe(
        name="bench",
        source=LocalSource(patterns=("x.jsonl",)),
        splits=("test",),
        questions=Prompts(texts=(FieldText(field="q"),)),
        answers=(ChoicesAnswer(field="c", correct_index="k"),),
    )
    row = {"q": "Q", "c": shape, "k": label}
    table = normalize_rows(recipe, [row], split="test", origin="rows")
    assert answers_of(table.to_pylist()) == expected


def test_choices_in_numbered_fields_are_named_with_the_key_that_reads_them(
    recipe_of: Callable[[str], Recipe],
) -> None:
    lines = "prompt: q\nanswers: [{expand_choices: {field: choices, correct_index: label}}]"
    row = {"q": "Which?", "choice0": "a lamp", "choice1": "a boat", "label": 1}
    with pytest.raises(RecordError) as error:
        normalize_rows(recipe_of(lines), [row] * 1_140, split="test", origin="x")
    (problem,) = error.value.problems
    assert problem.found.endswith("also in 1,139 later rows")
    assert "`expand_prefix: {prefix: 'choice', suffix_match_field: label}`" in problem.remedy


def test_an_array_of_answers_that_is_optional_may_be_absent(records_of: Records) -> None:
    lines = "prompts: {array: turns}\nanswers: [{array: reference, optional: true}]"
    turns = ["Name a boat.", "And a lamp?"]
    rows = {"turns": turns}, {"turns": turns, "reference": ["Ann", "None"]}
    answers = [record["answer"] for record in records_of(lines, *rows)]
    assert answers == [None, None, "Ann", "None"]
    with pytest.raises(RecordError, match="no 'reference'"):
        records_of(lines.replace(", optional: true", ""), *rows)
