"""Equal units in order around a span, with the properties that the oracle states."""

import itertools

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.core.alignment.aligning import (
    FORM,
    QUESTIONS,
    aligned,
    blocks_of,
    documents,
    read,
    spelled,
)
from tests.oracle import alignment as oracle
from tests.uncompiled import fewer

TRAIN = "A train has 12 cars with 48 seats each. How many seats does the train have?"
FILLER = "the committee met on monday and heard a report on drains"


def test_a_copy_is_one_block():
    assert blocks_of(TRAIN, TRAIN) == [(0, 0, 16)]


def test_a_changed_word_parts_two_blocks():
    assert blocks_of(TRAIN, TRAIN.replace("cars", "wagons")) == [(0, 0, 4), (5, 5, 11)]


def test_a_word_far_away_is_not_taken():
    without = TRAIN.replace("train has", "lorry has")
    blocks = blocks_of(TRAIN, f"train {FILLER} {FILLER} {without} {FILLER} {FILLER} train")
    assert sum(block.size for block in blocks) == 15
    assert blocks[0].document == 1 + 2 * len(read(FILLER))


@pytest.mark.parametrize("before", ["A", "What is the", "A train", "How many seats does the train"])
@pytest.mark.parametrize("after", ["", "the train have", "Have", "seats each"])
def test_a_word_beside_a_copy_is_not_taken_for_one_of_it(before, after):
    n = len(read(before))
    document = f"{before} {TRAIN} {after}"
    assert blocks_of(TRAIN, document, (n, n + 16)) == [(0, n, 16)]


@pytest.mark.parametrize("n_between", [0, 1, 4, 20])
def test_of_two_copies_the_nominated_one_is_taken(n_between):
    between = " ".join(["zeppelin"] * n_between)
    edited = TRAIN.replace("cars", "wagons")
    second = 16 + n_between
    two = f"{TRAIN} {between} {TRAIN}"
    assert blocks_of(TRAIN, two, (0, 16)) == [(0, 0, 16)]
    assert blocks_of(TRAIN, two, (second, second + 16)) == [(0, second, 16)]
    for_edited = blocks_of(TRAIN, f"{edited} {between} {TRAIN}", (0, 16))
    assert for_edited == [(0, 0, 4), (5, 5, 11)]


def test_part_of_a_copy_is_enough_to_find_it_all():
    assert blocks_of(TRAIN, f"{FILLER} {TRAIN} {FILLER}", (20, 23)) == [(0, 11, 16)]


@pytest.mark.parametrize("span", [(0, 11), (27, 38)])
def test_what_does_not_overlap_the_span_is_not_found(span):
    assert blocks_of(TRAIN, f"{'zeppelin ' * 11} {TRAIN} {'zeppelin ' * 11}", span) == []


def test_nothing_in_common():
    assert blocks_of(TRAIN, "zeppelin quorum river") == []


@settings(max_examples=fewer(60))
@given(
    st.lists(st.integers(0, 30), min_size=8, max_size=20),
    st.lists(st.integers(0, 40), max_size=14),
    st.lists(st.integers(0, 40), max_size=14),
)
def test_a_copy_is_one_block_in_any_surroundings(item, before, after):
    question, start, stop = (
        " ".join(f"word{'abcdefghij'[n // 10]}{'abcdefghij'[n % 10]}" for n in numbers)
        for numbers in (item, before, after)
    )
    assume(len({*item}) > 4)
    n = len(item)
    blocks = blocks_of(question, f"{start} {question} {stop}", (len(before), len(before) + n))
    assert blocks == [(0, len(before), n)]


@settings(max_examples=fewer(60))
@given(st.data(), QUESTIONS)
def test_what_is_found_has_the_properties_of_the_oracle(data, question):
    text = data.draw(documents(question))
    item, document = spelled(question), spelled(text)
    start = data.draw(st.integers(0, len(document) - 1))
    span = start, data.draw(st.integers(start + 1, len(document)))
    blocks = blocks_of(question, text, span)
    for block in blocks:
        in_document = document[block.document : block.document + block.size]
        assert item[block.item : block.item + block.size] == in_document
    for before, after in itertools.pairwise(blocks):
        assert before.item + before.size <= after.item
        assert before.document + before.size <= after.document
        assert (before.item + before.size, before.document + before.size) != after[:2]
    shared = {*item} & {*document[span[0] : span[1]]}
    assert bool(shared) == bool(blocks)
    if blocks:
        assert blocks[-1].document + blocks[-1].size > span[0]
        assert blocks[0].document < span[1]


@settings(max_examples=fewer(60))
@given(st.data(), QUESTIONS)
def test_an_alignment_is_worth_as_much_as_the_best_of_the_oracle(data, question):
    text = data.draw(documents(question))
    units, of_document = oracle.units(question, FORM), oracle.units(text, FORM)
    start = data.draw(st.integers(0, len(of_document) - 1))
    span = start, data.draw(st.integers(start + 1, len(of_document)))
    blocks = aligned(question, text, span)
    best = oracle.worth_of_best(units, of_document, span)
    assert (oracle.worth(units, blocks) if blocks else 0) == best


@settings(max_examples=fewer(60))
@given(st.data(), QUESTIONS, st.integers(2, 6))
def test_a_band_is_as_good_where_no_word_leaves_it(data, question, half):
    """A few words left out and put in move the others by at most as many.

    A word that is repeated may stand for another place of it, outside of the band.
    """
    question = " ".join(dict.fromkeys(question.split()))
    words = question.split()
    for _ in range(half - 1):
        at = data.draw(st.integers(0, len(words)))
        words[at:at] = [data.draw(st.sampled_from(["zeppelin", "quorum"]))]
    text = " ".join(words)
    whole = aligned(question, text)
    in_band = aligned(question, text, width=2 * half + 1)
    units = oracle.units(question, FORM)
    assert oracle.worth(units, in_band) == oracle.worth(units, whole)


def test_a_band_follows_the_words_that_were_put_in():
    """One in ten moves the others by more than the band is wide."""
    words = [f"word{'abcdefghij'[at // 10]}{'abcdefghij'[at % 10]}" for at in range(100)]
    text = " ".join(word if at % 10 else f"{word} zeppelin" for at, word in enumerate(words))
    blocks = aligned(" ".join(words), text, width=7)
    assert sum(block.size for block in blocks) == 100


def test_a_long_question_is_compared_within_a_band():
    n = fewer(3_000)
    words = [
        f"word{'abcdefghij'[at % 10]}{'abcdefghij'[at // 10 % 10]}{'kl'[at // 100 % 2]}"
        for at in range(n)
    ]
    edited = [*words[: n // 4], "zeppelin", *words[n // 4 : n // 2], *words[n // 2 + 2 :]]
    blocks = blocks_of(" ".join(words), f"{FILLER} {' '.join(edited)} {FILLER}", (n // 6, n // 3))
    assert sum(block.size for block in blocks) == n - 2
