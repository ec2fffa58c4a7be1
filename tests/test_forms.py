"""Which planted texts are copies, and that a group is predicted from other groups only."""

from random import Random

import pytest

from bench.form_probabilities import Place, curves_of, is_copy_of, left_out
from bench.forms import Item, Plant
from bench.plants import FORMS, NEIGHBOURS

ITEM = Item("quiz", "test", 1, "passage", "question", "answer", ())


@pytest.mark.parametrize("form", [*FORMS, *NEIGHBOURS])
def test_every_form_of_the_question_is_a_copy_and_nothing_else(form):
    plant = Plant(ITEM, form, "planted", "text", ())
    is_none = form in ("answer alone", "passage alone", *NEIGHBOURS)
    assert is_copy_of(plant, "question", "passage") is not is_none
    assert is_copy_of(plant, "another", "passage") is False
    assert is_copy_of(plant, "question", "another") is None


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
