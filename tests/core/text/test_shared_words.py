"""What two texts share whose words are in another order."""

from hypothesis import given
from hypothesis import strategies as st

from decon_core.config.policy import Policy
from decon_core.text.shared_words import agreement_of

FORM = Policy().form


def test_words_and_numbers_of_both_are_told_and_those_of_one():
    document = "Three of Janet's 20 ducks are baking twelve muffins."
    item = "Janet bakes 12 muffins for 3 fresh ducks with 16 eggs."
    found = agreement_of(document, item, FORM)
    assert [document[start:stop] for start, stop in found.in_document] == [
        *("Three", "Janet", "ducks", "baking", "twelve", "muffins")
    ]
    assert [item[start:stop] for start, stop in found.in_item] == [
        *("Janet", "bakes", "12", "muffins", "3", "ducks")
    ]
    assert found.summary == (
        "words in both: Janet, bakes, muffins, ducks; numbers in both: 3, 12; "
        "words only in the item: fresh, eggs; numbers only in the item: 16; "
        "numbers only in the document: 20"
    )


def test_texts_without_anything_in_common():
    found = agreement_of("A stone.", "Of the river", FORM)
    assert found == ([], [], "words only in the item: river")


@given(st.text(alphabet="abc 12.,", max_size=40), st.text(alphabet="abc 12.,", max_size=40))
def test_the_numbers_that_agree_are_as_many_in_both(document, item):
    there, back = agreement_of(document, item, FORM), agreement_of(item, document, FORM)
    assert there.in_document == back.in_item
    assert there.in_item == back.in_document
