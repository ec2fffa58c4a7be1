"""Questions, passages, translation pairs, chats and code tasks."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

from decon_core.errors import RecordError

Records = Callable[..., list[dict[str, Any]]]


def questions_of(records: list[dict[str, Any]]) -> list[tuple[object, object]]:
    return [(record["question"], record["sub_index"]) for record in records]


def test_a_prompt_is_one_question(records_of: Records) -> None:
    assert questions_of(records_of("prompt: q", {"q": "Why?"})) == [("Why?", None)]


@pytest.mark.parametrize(
    ("path", "row"),
    [
        ("messages.0.content", {"messages": [{"content": "Why?"}, {"content": "So."}]}),
        ("conv.0.user", {"conv": [{"user": "Why?"}]}),
        ("Description of Expertise", {"Description of Expertise": "Why?"}),
        ("a.b", {"a.b": "Why?"}),
        ("a.b", {"a.b": "no, an object comes first", "a": {"b": "Why?"}}),
        ("a.b c.d", {"a": {"b c.d": "Why?"}}),
        ("a.0", {"a": {"0": "Why?"}}),
    ],
)
def test_a_path_finds_nested_values_and_odd_keys(
    records_of: Records, path: str, row: dict[str, object]
) -> None:
    assert questions_of(records_of(f"prompt: {path}", row)) == [("Why?", None)]


@pytest.mark.parametrize("value", [None, "", "   "])
def test_an_empty_question_keeps_its_record(records_of: Records, value: object) -> None:
    records = records_of("prompt: q\nanswers: [a]", {"q": value, "a": "A"})
    assert [(r["question"], r["answer"]) for r in records] == [("", "A")]


def test_a_path_into_an_empty_list_is_an_empty_question(records_of: Records) -> None:
    assert questions_of(records_of("prompt: m.0.content", {"m": []})) == [("", None)]


def test_several_prompts_are_several_questions_with_the_same_answers(records_of: Records) -> None:
    records = records_of("prompts: [p, q]\nanswers: [a]", {"p": "P", "q": "Q", "a": "A"})
    assert questions_of(records) == [("P", 0), ("Q", 1)]
    assert [r["answer"] for r in records] == ["A", "A"]
    assert {r["instance_index"] for r in records} == {0}


def test_fields_can_be_joined_into_one_question(records_of: Records) -> None:
    lines = 'prompt: {fields: [body, q, none], separator: " "}'
    row = {"body": "It rains.", "q": "Why?", "none": None}
    assert questions_of(records_of(lines, row)) == [("It rains. Why?", None)]


def test_messages_are_concatenated_and_a_field_appended(records_of: Records) -> None:
    lines = """
    prompt:
      concat_messages: {field: messages, content_field: content}
      append_field: instruction
    """
    row = {"messages": [{"content": "one"}, {"content": "two"}], "instruction": "three"}
    assert questions_of(records_of(lines, row)) == [("one\ntwo\nthree", None)]


@pytest.mark.parametrize(
    "chat",
    [
        [{"role": "user", "content": "one"}, {"role": "assistant", "content": "two"}],
        [{"from": "human", "value": "one"}, {"from": "gpt", "value": "two"}],
        [
            {"role": "user", "content": [{"type": "text", "text": "one"}, {"type": "image"}]},
            {"role": "assistant", "content": [{"type": "text", "text": "two"}]},
        ],
    ],
)
def test_chats_are_read_in_every_shape_and_filtered_by_role(
    records_of: Records, chat: object
) -> None:
    row = {"chat": chat}
    assert questions_of(records_of("prompt: {messages: chat}", row)) == [("one\ntwo", None)]
    lines = "prompt: {messages: chat, roles: [user]}"
    assert questions_of(records_of(lines, row)) == [("one", None)]
    lines = "prompt: {messages: chat, roles: [gpt]}"
    assert questions_of(records_of(lines, row)) == [("two", None)]


def test_the_last_paragraph_that_is_long_enough_is_the_passage(records_of: Records) -> None:
    lines = "prompt: q\npassage: {last_paragraph: full.paragraphs, min_words: 3}"
    row = {"q": "Q", "full": {"paragraphs": [["a b c d"], ["one two three", "short", None]]}}
    assert records_of(lines, row)[0]["passage"] == "one two three"
    row = {"q": "Q", "full": {"paragraphs": "one two three\n\nshort"}}
    assert records_of(lines, row)[0]["passage"] == "one two three"
    row = {"q": "Q", "full": {"paragraphs": []}}
    assert records_of(lines, row)[0]["passage"] is None


def test_a_passage_may_be_missing_where_it_is_optional(records_of: Records) -> None:
    lines = "prompt: q\npassage: {field: p, optional: true}"
    records = records_of(lines, {"q": "Q"}, {"q": "Q", "p": "P"})
    assert [r["passage"] for r in records] == [None, "P"]


def test_a_translation_pair_is_one_question_or_one_in_each_direction(records_of: Records) -> None:
    row = {"translation": {"de": "Mühle", "en": "mill"}}
    lines = "source: translation.de\ntarget: translation.en"
    records = records_of(lines, row)
    assert [(r["question"], r["answer"], r["sub_index"]) for r in records] == [
        ("Mühle", "mill", None)
    ]
    records = records_of(lines + "\nboth_directions: true", row)
    assert [(r["question"], r["answer"], r["sub_index"]) for r in records] == [
        ("Mühle", "mill", 0),
        ("mill", "Mühle", 1),
    ]


@pytest.mark.parametrize(
    ("fields", "more", "languages"),
    [
        (("translation.de", "translation.en"), "", ["German", "English"]),
        (("sentence_deu_Latn", "sentence_zho_Hans"), "", ["German", "Chinese"]),
        (("src", "en"), "", None),
        (("en", "eng_Latn"), "", None),  # one language
        (
            ("src", "tgt"),
            "\nsource_language: Upper Sorbian\ntarget_language: German",
            ["Upper Sorbian", "German"],
        ),
        (
            ("de", "en"),
            "\nsource_language: Deutsch\ntarget_language: Englisch",
            ["Deutsch", "Englisch"],
        ),
    ],
)
def test_both_directions_of_a_translation_name_their_languages(
    records_of: Records, fields: tuple[str, str], more: str, languages: list[str] | None
) -> None:
    row = {name: name for name in fields}
    lines = f"source: {fields[0]}\ntarget: {fields[1]}\nboth_directions: true{more}"
    records = records_of(lines, row)
    named = [json.loads(record["extras"] or "{}") for record in records]
    keys = ("source_language", "target_language")
    one = dict(zip(keys, languages, strict=True)) if languages else {}
    other = dict(zip(keys, languages[::-1], strict=True)) if languages else {}
    assert named == [one, other]


def test_one_direction_of_a_translation_names_its_languages_if_the_recipe_does(
    records_of: Records,
) -> None:
    lines, row = "source: de\ntarget: en", {"de": "Mühle", "en": "mill"}
    assert records_of(lines, row)[0]["extras"] is None
    (record,) = records_of(f"{lines}\nsource_language: A\ntarget_language: B", row)
    assert json.loads(record["extras"]) == {"source_language": "A", "target_language": "B"}


def test_a_code_task_has_its_solution_as_answer_and_keeps_its_tests(records_of: Records) -> None:
    lines = "prompt: p\nsolution: s\ntests: [t, checks.all]\nextra_fields: [id, t]"
    row = {"p": "def f():", "s": "  pass", "t": ["f()"], "checks": {"all": "f"}, "id": 3}
    record = records_of(lines, row)[0]
    assert (record["question"], record["answer"]) == ("def f():", "  pass")
    assert json.loads(record["extras"]) == {"id": 3, "t": ["f()"], "checks.all": "f"}
    assert record["extras"].index("checks") < record["extras"].index("id")


def test_extra_fields_keep_their_types_and_odd_ones_become_text(records_of: Records) -> None:
    lines = "prompt: q\nextra_fields: [n, day, price, nan, nested, absent]"
    row = {"q": "Q", "n": 1, "day": dt.date(2024, 5, 9), "price": Decimal("1.50")}
    row |= {"nan": float("nan"), "nested": {"b": [True, None]}}
    records = records_of(lines, row, {"q": "Q", "absent": "not here"})
    assert json.loads(records[0]["extras"]) == {
        "n": 1,
        "day": "2024-05-09",
        "price": "1.50",
        "nan": None,
        "nested": {"b": [True, None]},
    }


def test_the_data_set_name_becomes_the_config(records_of: Records) -> None:
    lines = "hf_config: all\nprompt: q\ndataset_name_field: subject"
    records = records_of(lines, {"q": "Q", "subject": "botany"}, {"q": "Q", "subject": None})
    assert [r["config"] for r in records] == ["botany", "all"]
    assert {r["benchmark"] for r in records} == {"bench"}


def test_a_part_of_a_field_can_be_the_config(records_of: Records) -> None:
    lines = 'prompt: q\ndataset_name_field: {field: id, transform: {before_marker: "~"}}'
    records = records_of(lines, {"q": "Q", "id": "wikihow~15"}, {"q": "Q", "id": "alone"})
    assert [r["config"] for r in records] == ["wikihow", "alone"]


@pytest.mark.parametrize(
    ("transform", "value", "text"),
    [
        ("strip", "  x ", "x"),
        ("first_line", "\none\ntwo", "one"),
        ("last_line", "one\ntwo\n", "two"),
        ("after_marker", "work\n#### 12", "12"),
        ("after_marker", "no marker", "no marker"),
        ("boxed", r"so \boxed{1}, no, $\boxed{ \frac{1}{2} }$.", r"\frac{1}{2}"),
        ("boxed", r"$\boxed{1}$, so $\boxed 5 \text{ cm}$ or $2$", r"5 \text{ cm}"),
        ("boxed", r"The answer is \boxed 3.5.", "3.5"),
        ("boxed", r"$\boxed{1}$, so $\fbox{6}$", "6"),
        ("boxed", r"$\boxed {7}$", "7"),
        ("{after_marker: 'A:'}", "Q: x A: y", "y"),
        ("{before_marker: '['}", "text [1]", "text"),
        ("join", ["a", None, "b"], "a\nb"),
        ("{join: ' | '}", ["a", 5], "a | 5"),
        ("first", ["", "x", "y"], "x"),
        ("[parse_json, first]", '["x", "y"]', "x"),
        ("[parse_python, {join: ', '}]", "['x', 'y']", "x, y"),
        ("[split, first]", "x, y", "x"),
        ("to_json", {"b": [1, "é"]}, '{"b": [1, "é"]}'),
        ("binary_to_bool", 1, "true"),
        ("binary_to_bool", "0", "false"),
    ],
)
def test_transforms_change_a_value_before_it_is_text(
    records_of: Records, transform: str, value: object, text: str
) -> None:
    lines = f"prompt: {{field: q, transform: {transform}}}"
    assert questions_of(records_of(lines, {"q": value})) == [(text, None)]


def test_transforms_of_a_list_of_answers_work_on_each(records_of: Records) -> None:
    lines = "prompt: q\nanswers:\n- {field: a, transform: strip}"
    records = records_of(lines, {"q": "Q", "a": [" x ", None, "y"]})
    assert [r["answer"] for r in records] == ["x", "y"]


def test_a_hidden_binary_label_is_no_answer(records_of: Records) -> None:
    lines = "prompt: q\nanswers:\n- {field: a, transform: binary_to_bool}"
    assert records_of(lines, {"q": "Q", "a": -1})[0]["answer"] is None


@pytest.mark.parametrize(
    ("lines", "row", "message"),
    [
        ("prompt: q", {"p": "P"}, "field 'q': no 'q' among 'p'; expected the field 'q'"),
        ("prompt: q", {}, "no 'q' among no fields at all"),
        ("prompt: q", {"q": ["x"]}, r"found a list of 1; .* Name one element \(q.0\)"),
        ("prompt: q", {"q": {"text": "x"}}, r"Name a field inside it \(q.text\)"),
        ("prompt: q", {"q": b"x"}, "found a value of type bytes; expected text"),
        ("prompt: q\npassage: p", {"q": "x"}, "field 'p': no 'p' among 'q'"),
        ("prompts: {array: q}", {"q": "x"}, "found 'x'; expected a list of questions"),
        ("prompt: {messages: q}", {"q": "x"}, "found 'x'; expected a list of messages"),
        ("prompt: {messages: q}", {"q": ["x"]}, "field 'q.0': found 'x'; expected a message"),
        ("prompt: {messages: q}", {"q": [{"role": "user"}]}, "a message with content or value"),
        (
            "prompt: {messages: q, roles: [user]}",
            {"q": [{"content": "x"}]},
            "expected a message with a role",
        ),
        ("source: s\ntarget: t", {"s": "x"}, "field 't': no 't'"),
        ("prompt: q\ndataset_name_field: n", {"q": "x"}, "field 'n': no 'n'"),
        ("prompt: q\ndataset_name_field: {field: n}", {"q": "x"}, "field 'n': no 'n'"),
        ("prompt: q\nextra_fields: [e]", {"q": "x", "e": b"x"}, "a value that JSON supports"),
        ("prompt: {field: q, transform: join}", {"q": "x"}, "found 'x'; expected a list to join"),
        ("prompt: {field: q, transform: first}", {"q": "x"}, "found 'x'; expected a list"),
        ("prompt: {field: q, transform: parse_json}", {"q": "{"}, "expected text that is JSON"),
        ("prompt: {field: q, transform: parse_python}", {"q": "("}, "text that is a Python lit"),
        ("prompt: {field: q, transform: binary_to_bool}", {"q": 2}, "number 2; expected 0 or 1"),
    ],
)
def test_a_row_that_does_not_fit_is_refused_with_its_place(
    records_of: Records, lines: str, row: dict[str, object], message: str
) -> None:
    with pytest.raises(RecordError, match=message) as error:
        records_of(lines, row)
    assert str(error.value).startswith("rows.jsonl row 1, field '")


def test_an_extra_field_that_no_row_has_is_refused(records_of: Records) -> None:
    with pytest.raises(RecordError, match="extra field 'subjct': no row has this field"):
        records_of("prompt: q\nextra_fields: [subjct]", {"q": "x"}, {"q": "y"})


def test_everything_that_is_wrong_with_a_row_is_said_at_once(records_of: Records) -> None:
    with pytest.raises(RecordError) as error:
        records_of("prompt: q\npassage: p\ndataset_name_field: d", {"x": 1}, {"q": "Q"})
    places = [problem.where for problem in error.value.problems]
    assert places == [
        "rows.jsonl row 1, field 'q'",
        "rows.jsonl row 1, field 'p'",
        "rows.jsonl row 1, field 'd'",
        "rows.jsonl row 2, field 'p'",
        "rows.jsonl row 2, field 'd'",
    ]
