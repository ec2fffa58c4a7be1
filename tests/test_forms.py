"""Which planted texts are copies, which only look alike, and what predicts a group's places."""

import re
from random import Random

import pytest

from bench.form_probabilities import Place, curves_of, is_copy_of, left_out
from bench.forms import Item, Plant
from bench.lookalikes import NOT_LEAKED, statement_of
from bench.plants import FORMS, NEIGHBOURS, Planted

ITEM = Item("quiz", "test", 1, "passage", "question", "answer", ())


@pytest.mark.parametrize("form", [*FORMS, *NEIGHBOURS])
def test_every_form_of_the_question_is_a_copy_and_nothing_else(form):
    plant = Plant(ITEM, form, "planted", "text", ())
    is_none = form in ("answer alone", "passage alone", *NEIGHBOURS)
    assert is_copy_of(plant, "question", "passage") is not is_none
    assert is_copy_of(plant, "another", "passage") is False
    assert is_copy_of(plant, "question", "another") is None


def planted(question="", passage="", answer="18"):
    other = (
        "A kite rose 40 meters above the roof of the mill. How high is the roof if the kite fell?"
    )
    others = [("How many geese are there?", "18"), (other, "7 meters")]
    return Planted(passage, question, answer, (), others, ("word",), "far", Random(1))


@pytest.mark.parametrize(
    ("asking", "stated"),
    [
        ("What is the name of the ship?", "The name of the ship is 7 meters."),
        ("If it rains, then what is the sum of x?", "If it rains, then the sum of x is 7 meters."),
        ("What happens if you swallow gum?", "Nothing happens if you swallow gum."),
        ("Where was the first mill?", "The first mill was in another country."),
        ("Why do cats purr at night?", "Cats purr at night."),
        ("How many geese are there in all?", "There are \\d\\d geese in all."),
        ("How many eggs does she have left?", "She does have \\d\\d eggs left."),
        ("How much money did Bob spend?", "Bob did spend some money."),
        ("Which one of the following must be true?", "Each of the following must be true."),
        ("Can you see a ghost?", "You can see a ghost."),
        ("Who wrote the letter to the king?", "[A-Z][a-z]+ wrote the letter to the king."),
    ],
)
def test_a_question_turned_into_a_statement(asking, stated):
    assert re.fullmatch(stated, statement_of(asking, planted(asking)))


@pytest.mark.parametrize(
    "asking",
    [
        "What is the mill used for?",
        "How many eggs would she have eaten?",
        "How many feet does the old bridge sink?",
        "Find the sum of x.",
        "Is it true?",
    ],
)
def test_no_statement_that_may_be_ungrammatical(asking):
    assert statement_of(asking, planted(asking)) is None


@pytest.mark.parametrize("form", NOT_LEAKED)
def test_a_text_that_looks_alike_lacks_the_question_or_its_answer(form):
    question = "In April, Dora picked 12 pears from the tree. How many pears did she sell?"
    if form == "question as a statement":
        question = question.partition(". ")[2]
    text = NOT_LEAKED[form](planted(question, passage="All about fruit."))
    assert question not in text
    has_answer = text.endswith("\n18")
    assert has_answer == (form in ("another task", "key words in a paragraph"))


def test_halves_of_nearly_equal_questions_are_not_joined():
    question = "A kite rose 40 meters above the roof of the mill. How high is the roof if it fell?"
    for form in ("first half, then another's", "another's half, then second half"):
        assert NOT_LEAKED[form](planted(question)) is None


def test_nothing_in_natural_text_is_a_copy():
    assert is_copy_of(None, "question", "passage") is False


def test_a_group_is_predicted_from_the_places_of_others():
    rng = Random(1)
    shares = {"a one": 0.9, "a two": 0.5, "b": 0.1}
    places = [
        Place(group, "edited", rng.random(), rng.random() < share)
        for group, share in shares.items()
        for _ in range(300)
    ]
    for part, others in (
        ("group", {"a one": ("a two", "b"), "a two": ("a one", "b"), "b": ("a one", "a two")}),
        ("benchmark", {"a one": ("b",), "a two": ("b",), "b": ("a one", "a two")}),
    ):
        said = left_out(places, part)
        assert sorted(one.place for one in said) == sorted(places)
        for one in said:
            known = [place for place in places if place.group in others[one.place.group]]
            (curve,) = curves_of(known).values()
            step = curve.step_at(one.place.score) or curve.steps[0]
            assert one.by_curve == step.probability
            assert one.by_all == one.by_kind == sum(place.is_copy for place in known) / len(known)
