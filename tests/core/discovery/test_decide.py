"""Rows of every benchmark in the catalog are read as its recipe does, or the choice is marked."""

import pytest

from decon_core.benchmarks.catalog import catalog
from decon_core.benchmarks.normalize import normalize_rows
from decon_core.discovery.decide import reading_of
from decon_core.discovery.evidence import read_by_evidence
from decon_core.discovery.reading import OpenChoice, records_of
from tests.core.benchmarks.catalog_cases import catalog_cases

CASES = {name: case for name, case in catalog_cases().items() if catalog()[name].is_verified}


def read(records):
    """Questions, passages, and answers that are not wrong; those of hidden labels are unknown."""
    texts = {(one["question"], one["passage"]) for one in records}
    return texts, {one["answer"] for one in records if one["is_correct"] is not False}


@pytest.mark.parametrize("name", CASES)
def test_a_row_of_the_catalog_is_recognized(name):
    row, recipe = CASES[name]["row"], catalog()[name]
    split = CASES[name].get("split", recipe.splits[0])
    by_recipe = normalize_rows(recipe, [row], split=split, origin=name).to_pylist()
    reading = reading_of([row])
    assert read(records_of(reading.keys, [row])) == read(by_recipe) or reading.doubts


# Without its recipe, a chat that was published as the text of a JSON list is read as it is.
@pytest.mark.parametrize("name", sorted(CASES.keys() - {"mrcr"}))
def test_without_the_catalog_the_question_is_found_or_the_choice_is_marked_or_asked(name):
    row, recipe = CASES[name]["row"], catalog()[name]
    by_recipe = normalize_rows(recipe, [row], split=recipe.splits[0], origin=name).to_pylist()
    reading = read_by_evidence([row])
    if isinstance(reading, OpenChoice) or reading.doubts:
        return
    found = {one["question"] for one in records_of(reading.keys, [row])}
    asked = {one["question"] for one in by_recipe}
    assert any(one in question for one in found for question in asked)


def test_why_a_recipe_was_chosen_names_the_fields_and_what_is_not_read():
    row = {"id": "a", "question": "How far is it?", "answer": "7 miles"}
    why = " ".join(reading_of([row]).why)
    assert "the fields answer, question are read as in the catalog's recipe" in why
    assert "not read: id" in why
    of_name = " ".join(reading_of([row], benchmark="gsm8k").why)
    assert "recipe gsm8k, hle" in of_name


def test_a_letter_is_no_answer_without_its_choices():
    rows = [{"question": f"Is {n} a lamp?", "answer": letter} for n, letter in enumerate("ABCD")]
    reading = reading_of(rows)
    assert "answers" not in reading.keys
    assert "no field looks like an answer by name and values" in reading.doubts


def test_rows_that_hold_conversations_ask_and_answer_in_turn():
    turns = [{"input": "What is the tide at noon?", "output": "It is low at noon."}]
    rows = [{"source": "a", "conversation": turns}] * 3
    keys = reading_of(rows).keys
    assert keys["prompts"] == {"array": "conversation.input"}
    assert keys["answers"] == [{"array": "conversation.output"}]


@pytest.mark.parametrize(("letters", "is_found"), [("BAB", True), ("B B", False)])
def test_choices_in_lists_need_a_correct_one_for_each_question(letters, is_found):
    asked = [f"How many {what} does the keeper have?" for what in ("lamps", "steps", "boats")]
    options = [["two of them", "three of them"], ["ten of them", "nine of them"]] * 2
    row = {"article": "The keeper has much. " * 9, "questions": asked}
    row |= {"options": options[:3], "answers": [letter.strip() for letter in letters]}
    reading = reading_of([row] * 3)
    choices = {"array": "answers", "choices": "options"}
    assert (choices in reading.keys.get("answers", [])) == is_found
    assert any("for every question" in why for why in reading.why) == is_found


def test_what_an_assistant_says_is_the_answer_of_a_conversation():
    turns = [("user", "What is the tide at noon?"), ("assistant", "It is low at noon.")]
    rows = [{"messages": [{"role": role, "content": text} for role, text in turns]}] * 3
    records = records_of(reading_of(rows).keys, rows)
    assert {(one["question"], one["answer"]) for one in records} == {
        ("What is the tide at noon?", "It is low at noon.")
    }


def test_one_field_of_many_that_a_recipe_explains_is_a_doubt():
    rows = [{"text": f"The mill of lamp {n} stands.", "added": "x", "source": "y"} for n in "abcd"]
    assert "only one of several fields is read" in reading_of(rows).doubts
    assert reading_of([{"text": row["text"]} for row in rows]).doubts == ()
