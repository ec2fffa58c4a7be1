"""Names are split into words in any spelling, and values are told apart by what they are."""

import pytest

from decon_core.discovery.columns import columns_of, words_of


@pytest.mark.parametrize(
    "name", ["correctAnswers2", "correct_answer_2", "Correct Answers 2", "CORRECT-ANSWER.2"]
)
def test_a_name_has_the_same_words_in_every_spelling(name):
    assert words_of(name) == ("correct", "answer", "2")


@pytest.mark.parametrize("name", ["hypothesis", "class", "status"])
def test_a_final_s_that_is_no_plural_is_kept(name):
    assert words_of(name) == (name,)


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["a"], "text"),
        ([1, 2.5], "number"),
        ([["a"], ["b", None]], "list of text"),
        ([[{"role": "user", "content": "a"}]], "chat"),
        ([[[{"role": "user", "content": "a"}]]], "list of chat"),
        ([{"text": ["a"]}], "object"),
        (["a", 1], "mixed"),
    ],
)
def test_the_kind_is_that_of_all_values(values, kind):
    assert columns_of([{"x": value} for value in values])[0].kind == kind


def test_fields_of_objects_and_of_lists_of_objects_have_paths():
    rows = [{"a": {"text": ["x"]}, "turns": [{"input": "p", "output": "q"}]}]
    columns = {one.name: one.values for one in columns_of(rows)}
    assert columns["a.text"] == (["x"],)
    assert columns["turns.output"] == (["q"],)


def test_lists_that_are_published_as_text_name_their_transform():
    rows = [{"json": '["a", "b"]', "python": "['a', 'b']", "text": "[a]"}] * 2
    parsers = {one.name: one.parser for one in columns_of(rows)}
    assert parsers == {"json": "parse_json", "python": "parse_python", "text": None}
