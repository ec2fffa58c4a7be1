"""What is counted of a question at a place, as the oracle counts it."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.core.alignment.aligning import FORM, QUESTIONS, blocks_of, compared, documents, read
from tests.oracle import alignment as oracle
from tests.uncompiled import fewer

TRAIN = "A train has 12 cars with 48 seats each. How many seats does the train have?"


@pytest.mark.parametrize(
    ("changes", "counts"),
    [
        ({}, {"n_found": 16, "longest": 16, "extent": 16, "n_numbers_found": 2}),
        ({"cars": "wagons"}, {"n_found": 15, "n_inserted": 0, "longest": 11}),
        ({"cars": "new cars"}, {"n_found": 16, "n_inserted": 1}),
        ({"cars": ""}, {"n_found": 15, "n_inserted": 0}),
        ({"cars": "new long wagons"}, {"n_found": 15, "n_inserted": 2}),
        ({"12": "9", "48": "ten"}, {"n_numbers_changed": 2, "n_numbers_found": 0}),
        ({"12": "twelve"}, {"n_found": 16, "n_numbers_changed": 0}),
        ({"A train has": ""}, {"n_found": 13, "extent": 13}),
    ],
)
def test_changes_are_counted(changes, counts):
    text = TRAIN
    for old, new in changes.items():
        text = text.replace(old, new)
    one = compared(TRAIN, text)._asdict()
    assert {name: one[name] for name in counts} == counts


def test_a_name_counts_as_changed_if_it_is_the_same_other_one_each_time():
    question = "First Anna meets Bob in Rome, then Anna visits Bob in Rome, and now Anna sleeps."
    same = question.replace("Anna", "Carla").replace("Bob", "Dora")
    assert compared(question, same).n_names_changed == 5
    other = "First Carla meets Bob in Rome, then Dora visits Bob in Rome, and now Carla sleeps."
    assert compared(question, other).n_names_changed == 2


@pytest.mark.parametrize(
    ("question", "text", "n_changed"),
    [
        # Beside what was found, as within it.
        ("Some 12 bakers sell muffins at 7", "Some 9 bakers sell muffins at 8", (2, 0)),
        ("In Rome bakers sell muffins to Anna", "In Oslo bakers sell muffins to Carla", (0, 2)),
        # What stands there must be in the place of it.
        ("Bakers sell muffins to Anna", "Bakers sell muffins to them. Carla saw it", (0, 0)),
        ("Bakers sell muffins at 7", "Bakers sell muffins", (0, 0)),
        # The number of a question in a list is no number of the question.
        ("31. Which bakers sell muffins", "12. Which bakers sell muffins", (0, 0)),
        ("31. Which 5 bakers sell muffins", "12. Which 6 bakers sell muffins", (1, 0)),
    ],
)
def test_numbers_and_names_at_the_ends_are_counted(question, text, n_changed):
    one = compared(question, text)
    assert (one.n_numbers_changed, one.n_names_changed) == n_changed


def test_a_place_is_that_of_the_words():
    before = "The committee met. "
    one = compared(TRAIN, f"{before}{TRAIN} Nobody knew.")
    assert (one.start, one.stop) == (len(before), len(before) + len(TRAIN) - 1)
    assert one.is_whole
    assert not compared(TRAIN, TRAIN.replace("12", "12 long")).is_whole
    assert not compared(TRAIN, TRAIN.replace("12", "13")).is_whole


def test_nothing_is_compared_with_other_words():
    assert compared(TRAIN, "zeppelin quorum river") is None


@settings(max_examples=fewer(60))
@given(st.data(), st.lists(QUESTIONS, min_size=1, max_size=3, unique=True))
def test_counts_are_those_of_the_oracle_for_the_same_words(data, texts):
    text = data.draw(documents(texts[0]))
    n_units = len(read(text))
    start = data.draw(st.integers(0, n_units - 1))
    span = start, data.draw(st.integers(start + 1, n_units))
    one = compared(texts[0], text, *texts[1:], span=span)
    if one is None:
        return
    units = [oracle.units(each, FORM) for each in texts]
    keys = [[unit.key for unit in each] for each in units]
    (own, *_) = oracle.own_units(keys, [1] * len(texts))
    runs = blocks_of(texts[0], text, span)
    expected = oracle.counted(units[0], own, oracle.units(text, FORM), runs)
    found = one._asdict()
    assert {name: found[name] for name in expected} == expected
    assert one.n_family == own.n_family
    left = {name: n for name, n in found.items() if name not in expected}
    of_item, arrays = {"n_family", "units_per_word"}, {"places", "weights", "found_at"}
    assert not any(left[name] for name in left.keys() - of_item - arrays)
    assert one.places.tolist() == [run.document + at for run in runs for at in range(run.size)]
    assert sum(one.weights.tolist()) == one.weight_found
    pairs = [(run.item + at, run.document + at) for run in runs for at in range(run.size)]
    words = oracle.units(text, FORM)
    expected_at = [[item, words[at].start, words[at].stop] for item, at in pairs]
    assert one.found_at.tolist() == expected_at
