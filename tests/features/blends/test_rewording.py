"""What is accepted as the same item in other words, and what is kept."""

import json
from dataclasses import replace

import pytest

from decon_core.errors import InputError
from decon_core.features.blends.rewording_requests import (
    RewordingPlan,
    faults_of,
    load_rewording_prompt,
    plan_rewordings,
)
from decon_core.features.blends.rewordings import (
    NO_REWORDINGS,
    ItemWords,
    Rewording,
    Rewordings,
    append_rewording,
    read_rewordings,
)
from decon_core.features.endpoints.requests import Request, UnusableAnswerError

ITEM = ItemWords("", "Laura has 3 eggs and eats one half. How many are left?")
SETTINGS = Rewording(model="m", variants=2)


def planned(known=NO_REWORDINGS, settings=SETTINGS, items=(ITEM, ITEM)):
    prompt = load_rewording_prompt(None)
    return plan_rewordings(items, prompt, settings, known, count_tokens=len)


@pytest.mark.parametrize(
    ("question", "faults"),
    [
        ("Of her three eggs Laura eats a half. What remains?", []),
        ("Of 3 eggs Laura eats a third. What remains?", ["other numbers"]),
        ("laura has 3 eggs and eats one half; how many are left?", ["too similar to the item"]),
        (f"In other words: {ITEM.question}", ["too similar to the item"]),
        (f"{ITEM.question} Explain your answer.", ["too similar to the item"]),
        ("Laura has 3 eggs, and eats one half. What remains?", ["too similar to the item"]),
        ("Of 4 eggs Laura eats one half. What remains?", ["other numbers"]),
        ("", ["a passage or question that is missing or was added", "other numbers"]),
        (7, ["a field that is not text"]),
    ],
)
def test_other_words_and_the_same_numbers_are_wanted(question, faults):
    assert faults_of(ITEM, {"passage": "", "question": question}) == faults


def test_a_copied_passage_or_question_is_no_rewording_but_a_short_question_may_stay():
    item = ItemWords(
        "The mill of the town stood by the river for years.", "Where did the mill stand?"
    )
    said = {"passage": "Beside a stream, for long, people ground corn.", "question": item.question}
    assert faults_of(item, said) == ["too similar to the item"]
    said = {"passage": item.passage, "question": "At which place was it?"}
    assert faults_of(item, said) == ["too similar to the item"]
    item = ItemWords(item.passage, "Is it?")
    said = {"passage": "Beside a stream, for long, people ground corn.", "question": "Is it?"}
    assert faults_of(item, said) == []
    assert faults_of(ItemWords("", "Is it?"), {"passage": "", "question": "is it"}) == [
        "too similar to the item"
    ]


def test_an_answer_that_is_another_variant_again_is_refused_and_asked_for_again():
    plan = planned()
    texts = [
        json.dumps({"passage": "", "question": question})
        for question in ("Of 3 eggs Laura eats one half. What remains?", "A half of 3 is left?")
    ]
    said = plan.task.read(plan.requests[0], texts[0])
    assert plan.task.read(plan.requests[0], texts[0]) == said  # the same variant, once more
    with pytest.raises(UnusableAnswerError, match="too similar to another variant"):
        plan.task.read(plan.requests[1], texts[0])
    line = plan.line_of(plan.requests[0], SETTINGS, at="now", said=said)
    later = planned(Rewordings((line,)))
    assert later.requests == plan.requests[1:]
    with pytest.raises(UnusableAnswerError, match="too similar to another variant"):
        later.task.read(plan.requests[1], texts[0])
    assert later.task.read(plan.requests[1], texts[1])["question"].startswith("A half")


def test_each_variant_is_asked_for_once():
    plan = planned()
    assert (plan.n_items, len(plan.requests), plan.n_answered) == (1, 2, 0)
    assert len({one.digest for one in plan.requests}) == 2
    said = {"passage": "", "question": "Of 3 eggs Laura eats one half. What remains?"}
    lines = tuple(plan.line_of(one, SETTINGS, at="now", said=said) for one in plan.requests)
    assert planned(Rewordings(lines)).requests == []
    assert len(Rewordings(lines).by_variant(ITEM)) == 2
    failed = plan.line_of(plan.requests[0], SETTINGS, at="now", said={"failed": "HTTP 500"})
    assert len(planned(Rewordings((failed,))).requests) == 2
    assert Rewordings((*lines, failed)).by_variant(ITEM) == Rewordings(lines).by_variant(ITEM)
    assert Rewordings((*lines, failed)).digest == Rewordings(lines).digest
    other_model = replace(SETTINGS, model="another")
    assert len(planned(Rewordings(lines), other_model).requests) == 2


def test_an_answer_is_read_out_of_what_is_around_it():
    plan = planned()
    good = '{"passage": "", "question": "Of 3 eggs Laura eats one half. What remains?"}'
    read = plan.task.read(plan.requests[0], f"Sure: ```json\n{good}\n``` {{}}")
    assert read["question"].startswith("Of 3 eggs")
    with pytest.raises(UnusableAnswerError, match="no question"):
        plan.task.read(plan.requests[0], '{"passage": ""}')
    with pytest.raises(KeyError):
        RewordingPlan().task.read(Request("unknown", "", 1), good)


def test_a_file_is_appended_to_and_read_again(tmp_path):
    path = tmp_path / "rewordings.jsonl"
    assert read_rewordings(path) == Rewordings()
    plan = planned()
    line = plan.line_of(
        plan.requests[1], SETTINGS, at="now", said={"passage": "p", "question": "q\ud800"}
    )
    append_rewording(path, line)
    assert read_rewordings(path).by_variant(ITEM) == {
        1: ItemWords("p", "q\N{REPLACEMENT CHARACTER}")
    }
    with path.open("a") as file:
        file.write('{"item": "torn')  # a killed command
    assert len(read_rewordings(path).lines) == 1
    path.write_text('{"item": 3, "variant": "one", "request": "r", "question": "q"}\n')
    with pytest.raises(InputError) as raised:
        read_rewordings(path)
    assert len(raised.value.problems) == 3


def test_a_template_has_to_show_the_question(tmp_path):
    path = tmp_path / "prompt.j2"
    path.write_text("Reword {{ passage }}")
    with pytest.raises(InputError, match=r"without \{\{ question"):
        load_rewording_prompt(path)
    path.write_text("Reword {{ question }} {{ item }}")
    with pytest.raises(InputError, match=r"rewording\.prompt"):
        load_rewording_prompt(path)
    path.write_text("Reword {{ question }}, no. {{ variant }}")
    assert load_rewording_prompt(path).digest != load_rewording_prompt(None).digest
