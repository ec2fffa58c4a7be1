"""Recipes as people write them, and what they are told when they write them wrong."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from decon_core.benchmarks.parse import load_recipes
from decon_core.benchmarks.recipe import (
    ArrayAnswer,
    ChoicesAnswer,
    FieldText,
    HubSource,
    IndexedAnswer,
    LastParagraph,
    LocalSource,
    MessagesText,
    PlainAnswer,
    PrefixAnswer,
    PromptArray,
    Prompts,
    Recipe,
)
from decon_core.errors import RecipeError

Load = Callable[[str], dict[str, Recipe]]


def plain(field: str) -> PlainAnswer:
    return PlainAnswer(text=FieldText(field=field))


def test_every_form_of_the_reference_tools_file_loads(load: Load) -> None:
    recipes = load(
        """
        ready:
          local_path: bundled_evals/ready_
          splits:
          - train
        choices:
          hf_path: owner/choices
          hf_config: Hard
          splits: [train, test]
          no_answer_splits:
          - test
          prompt: question
          dataset_name_field: subject
          extra_fields:
          - subject
          answers:
          - expand_choices:
              field: choices.text
              correct_index: answerKey
        unknown-right:
          hf_path: owner/unknown
          splits: [train]
          prompt: question
          answers:
          - ideal
          - expand_choices:
              field: distractors
              correct_index: null
        prefix:
          hf_path: prefix
          splits: [train]
          prompt: goal
          answers:
            - expand_prefix:
                prefix: sol
                suffix_match_field: label
                label_transform: add_one
        chat:
          hf_path: owner/chat
          splits: [eval]
          prompt:
            concat_messages:
              field: messages
              content_field: content
            append_field: instruction
          answers: [output]
        paper:
          hf_path: owner/paper
          splits: [train]
          prompt: Description of Expertise
          passage:
            last_paragraph: full_text.paragraphs
            min_words: 10
          answers: [answers.text.0, answer.date]
        arrays:
          hf_path: owner/arrays
          splits: [train]
          passage: story
          answers:
          - array: answers.input_text
          prompts:
            array: questions.input_text
        indexed:
          hf_path: owner/indexed
          splits: [train]
          prompt: q
          answers:
          - indexed: {prefix: sol, key_field: label}
          - indexed: {field: options, key_field: idx}
          - {field: options, key_field: idx}
        no-answers:
          hf_path: owner/none
          splits: [v0.1.4]
          prompt: file_contents
        """
    )
    assert list(recipes) == [
        "ready",
        "choices",
        "unknown-right",
        "prefix",
        "chat",
        "paper",
        "arrays",
        "indexed",
        "no-answers",
    ]
    assert recipes["ready"] == Recipe(
        name="ready", source=LocalSource(patterns=("bundled_evals/ready_",)), splits=("train",)
    )
    assert recipes["choices"] == Recipe(
        name="choices",
        source=HubSource(path="owner/choices", configs=("Hard",)),
        splits=("train", "test"),
        questions=Prompts(texts=(FieldText(field="question"),)),
        answers=(ChoicesAnswer(field="choices.text", correct_index="answerKey"),),
        no_answer_splits=("test",),
        extra_fields=("subject",),
        dataset_name_field="subject",
    )
    assert recipes["unknown-right"].answers == (plain("ideal"), ChoicesAnswer(field="distractors"))
    assert recipes["prefix"].answers == (
        PrefixAnswer(prefix="sol", suffix_match_field="label", label_transform="add_one"),
    )
    message = MessagesText(field="messages", content_field="content", append_field="instruction")
    assert recipes["chat"].questions == Prompts(texts=(message,))
    assert recipes["paper"].passage == LastParagraph(field="full_text.paragraphs", min_words=10)
    assert recipes["paper"].answers == (plain("answers.text.0"), plain("answer.date"))
    assert recipes["arrays"].questions == PromptArray(array="questions.input_text")
    assert recipes["arrays"].answers == (ArrayAnswer(array="answers.input_text"),)
    by_array = IndexedAnswer(field="options", key_field="idx")
    assert recipes["indexed"].answers == (
        IndexedAnswer(prefix="sol", key_field="label"),
        by_array,
        by_array,
    )
    assert recipes["no-answers"].answers == ()


def test_anchors_and_merges_work(load: Load) -> None:
    recipes = load(
        """
        one: &one
          hf_path: owner/one
          splits: [test]
          prompt: q
        two:
          <<: *one
          hf_path: owner/two
        """
    )
    assert recipes["two"].splits == ("test",)
    assert recipes["two"].source == HubSource(path="owner/two")


def test_other_top_level_keys_are_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "evals.yaml"
    path.write_text("notes: mine\nevals:\n  a: {hf_path: x, splits: test, prompt: q}\n")
    assert list(load_recipes(path)) == ["a"]


def test_names_that_yaml_reads_as_something_else_stay_names(load: Load) -> None:
    recipes = load(
        """
        no: {hf_path: x, splits: [test], prompt: q}
        2024: {hf_path: x, splits: [test], prompt: q}
        """
    )
    assert list(recipes) == ["no", "2024"]


BASE = "a:\n  hf_path: x\n  splits: [test]\n  prompt: q\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 5", ":2: a: found the number 5; expected an object"),
        ("a|b: {hf_path: x, splits: [t], prompt: q}", ":2: a|b: found 'a|b'; expected letters"),
        (
            BASE + "  promt: q",
            "a.promt: found unknown key 'promt'; expected a known key. Did you mean",
        ),
        (BASE + "  promt: q", "Did you mean 'prompt'?"),
        (BASE + "  local_path: y", "a: found both hf_path and local_path; expected exactly one"),
        ("a: {splits: [t], prompt: q}", "a: neither hf_path nor local_path"),
        ("a: {hf_path: x, prompt: q}", "a.splits: missing; expected a list of splits"),
        ("a: {hf_path: x, splits: [], prompt: q}", "a.splits: found a list of 0; expected a list"),
        ("a: {hf_path: x, splits: [t, 5], prompt: q}", "a.splits.1: found the number 5; expected"),
        (
            "a: {hf_path: x, splits: [yes], prompt: q}",
            "a.splits.0: found true; expected text (in",
        ),
        (
            "a: {hf_path: x, splits: [t, t], prompt: q}",
            "a.splits: found 't' more than once; expec",
        ),
        ("a: {hf_path: 5, splits: [t], prompt: q}", "a.hf_path: found the number 5; expected te"),
        ("a: {hf_path: , splits: [t], prompt: q}", "a: neither hf_path nor local_path"),
        ("a: {hf_path: x, splits: [t]}", "found hf_path without a prompt; expected the field"),
        (BASE + "  prompts: [q]", "a: found prompt and prompts; expected one of prompt, prompts,"),
        (BASE + "  source: s\n  target: t", "found prompt and source/target; expected one of"),
        (BASE + "  hf_revision: 3", "a.hf_revision: found the number 3; expected text"),
        (BASE + "  no_answer_splits: [tset]", "a.no_answer_splits: found 'tset'; expected one of"),
        (BASE + "  passage: 5", "a.passage: found the number 5; expected a field name, or an obj"),
        (BASE + "  passage: {fild: x}", "a.passage: found an object with 'fild'; expected a field"),
        (BASE + "  passage: {field: x, trans: y}", "a.passage.trans: found unknown key"),
        (BASE + "  passage: {field: x, optional: 1}", "found the number 1; expected true or false"),
        (BASE + "  passage: {last_paragraph: x, min_words: -1}", "a whole number of 0 or more"),
        (BASE + "  passage: {last_paragraph: x, min_words: many}", "'many'; expected a whole numb"),
        (BASE + "  passage: {fields: []}", "a.passage.fields: found a list of 0; expected a list"),
        (BASE + "  passage: {fields: [x], separator: 5}", "separator: found the number 5"),
        (BASE + "  passage: {field: x, transform: stripp}", "found the unknown transform 'stripp'"),
        (BASE + "  passage: {field: x, transform: stripp}", "Did you mean 'strip'?"),
        (BASE + "  passage: {field: x, transform: 5}", "the name of a transform, or `name: text`"),
        (BASE + "  passage: {field: x, transform: {strip: y}}", "found strip with an argument"),
        (BASE + "  passage: {field: x, transform: {join: 5}}", "expected text after `join:`"),
        (BASE + "  answers: []", "a.answers: found a list of 0; expected at least one entry"),
        (BASE + "  answers: [5]", "a.answers.0: found the number 5; expected a field name"),
        (BASE + "  answers: [x]\n  answer: x", "a: found answers and answer; expected one of"),
        (BASE + "  answers: [{array: x}]", "a.answers.0: found an array; expected `prompts:"),
        (BASE + "  answers: [{expand_choices: x}]", "a.answers.0: found 'x'; expected an object"),
        (BASE + "  answers: [{expand_choices: {field: x}}]", "none of correct_index, corr"),
        (
            BASE + "  answers: [{expand_choices: {field: x, correct_index: k, correct_text: k}}]",
            "found correct_index and correct_text; expected exactly one of them",
        ),
        (
            BASE + "  answers: [{expand_choices: {correct_index: null}}]",
            "none of field, fields; expected exactly one of them",
        ),
        (
            BASE + "  answers: [{expand_choices: {field: x, correct_idx: k}}]",
            "expand_choices.correct_idx: found unknown key 'correct_idx'; expected one of correct",
        ),
        (
            BASE + "  answers: [{expand_prefix: {prefix: x, label_transform: plus_one}}]",
            "label_transform: found the unknown transform 'plus_one'; expected one of numbers_to",
        ),
        (
            BASE + "  answers: [{expand_prefix: {}}]",
            "expand_prefix.prefix: missing; exp",
        ),
        (BASE + "  answers: [{indexed: {key_field: k}}]", "none of prefix, field"),
        (BASE + "  answers: [{indexed: {field: x}}]", "indexed.key_field: missing; exp"),
        (
            "a: {hf_path: x, splits: [t], source: s, target: t, source_language: English}",
            "a: found one of source_language and target_language; expected both or none",
        ),
        (
            "a: {hf_path: x, splits: [t], prompt: s, target_language: English}",
            "a.target_language: found 'English'; expected source and target, too. Remove it.",
        ),
        (
            "a: {hf_path: x, splits: [t], source: s}",
            "a: no 'target'; expected both source and target",
        ),
        (
            "a: {hf_path: x, splits: [t], source: s, target: t, answers: [x]}",
            "a: found answers with source/target; expected no answers: the target is the answer",
        ),
        (
            "a: {local_path: x, splits: [t], prompt: q, hf_revision: main}",
            "a.hf_revision: found 'main'; expected no hf_revision with local_path. Remove it.",
        ),
        (
            "a: {local_path: x, splits: [t], prompt: q, hf_config: [m, n]}",
            "a.hf_config: found a list of 2; expected a single name with local_path",
        ),
        ("a: {local_path: [], splits: [t], prompt: q}", "a.local_path: found a list of 0; expect"),
        (
            "a: {local_path: {train: x}, splits: [t], prompt: q}",
            "a.local_path: no files for the split 't'; expected t: file",
        ),
        (
            "a: {local_path: {t: x, s: y}, splits: [t], prompt: q}",
            "a.local_path.s: found unknown split 's'; expected one of t",
        ),
        (
            "a: {local_path: x, splits: [t], answers: [y]}",
            "a: found answers without a prompt; expected the field with the question",
        ),
    ],
)
def test_a_wrong_recipe_is_refused_with_what_to_do(load: Load, text: str, message: str) -> None:
    with pytest.raises(RecipeError) as error:
        load(text)
    assert message in str(error.value)
    assert "evals.yaml:" in str(error.value)


def test_all_problems_of_a_file_are_reported_together_with_their_lines(load: Load) -> None:
    with pytest.raises(RecipeError) as error:
        load(
            """
            first:
              hf_path: x
              splits: [test]
              promt: q
            second:
              hf_path: x
              splits: [test]
              prompt: q
              prompt: r
            third:
              hf_path: x
              splits: [test]
              prompt: q
              answers:
              - field: a
                transform: stripp
            """
        )
    places = [problem.where.split("evals.yaml:")[1] for problem in error.value.problems]
    assert places == [
        "11: second.prompt",
        "6: first.promt",
        "18: third.answers.0.transform",
    ]
    assert "found a repeated key (first on line 10)" in str(error.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("evals: [", "found text that is not YAML"),
        ("", "found an empty file; expected an object"),
        ("- a", "found a list of 1; expected an object"),
        ("eval: {}", "no recipes; expected a top-level `evals:`"),
        ("evals: [a]", "found a list of 1; expected an object"),
        ("evals: {a: !!python/object:os.system x}", "found text that is not YAML"),
    ],
)
def test_a_file_that_holds_no_recipes_is_refused(
    tmp_path: Path, content: str, message: str
) -> None:
    path = tmp_path / "evals.yaml"
    path.write_text(content)
    with pytest.raises(RecipeError, match=r"evals\.yaml") as error:
        load_recipes(path)
    assert message in str(error.value)


def test_a_file_that_is_absent_or_not_utf8_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match=r"no\.yaml: no such file"):
        load_recipes(tmp_path / "no.yaml")
    path = tmp_path / "latin.yaml"
    path.write_bytes("evals: {ä: 1}".encode("latin-1"))
    with pytest.raises(RecipeError, match="found text that is not YAML"):
        load_recipes(path)


def test_the_fingerprint_depends_on_what_a_recipe_says_not_on_how(load: Load) -> None:
    recipes = load(
        """
        a:
          hf_path: x
          splits: test
          prompt: q
          answer: y
        """
    )
    same = load("a: {answers: [y], prompts: [{field: q}], splits: [test], hf_path: x}")
    other = load("a: {answers: [z], prompts: [q], splits: [test], hf_path: x}")
    assert recipes["a"].fingerprint == same["a"].fingerprint
    assert recipes["a"].fingerprint != other["a"].fingerprint
    assert len(recipes["a"].fingerprint) == 16


def test_a_field_and_an_array_of_one_name_have_different_fingerprints(load: Load) -> None:
    one = load("a: {hf_path: x, splits: [test], prompts: {array: q}}")["a"]
    two = load("a: {hf_path: x, splits: [test], prompts: [q]}")["a"]
    assert one.fingerprint != two.fingerprint
