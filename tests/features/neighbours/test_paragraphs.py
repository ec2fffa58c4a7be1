"""Paragraphs: where a document is cut, and that only a short end is left out."""

import re
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from decon_core.features.neighbours.paragraphs import paragraphs

TEXTS = st.text(st.sampled_from("ab é東.\n "), max_size=200)


def cut(text, *, least, most):
    """Cut with a word as a token; return the texts, and how many words are left out."""
    starts = [word.start() for word in re.finditer(r"\S+", text)]
    found = paragraphs(text, starts, least=least, most=most)
    assert [one.n_tokens for one in found] == [
        len(text[one.start : one.stop].split()) for one in found
    ]
    n_left_out = len(starts) - sum(one.n_tokens for one in found)
    return [text[one.start : one.stop] for one in found], n_left_out


def test_a_paragraph_ends_at_a_blank_line():
    assert cut("a b c\nd\n\ne f g\n \nh i j", least=3, most=9) == (
        ["a b c\nd", "e f g", "h i j"],
        0,
    )


def test_a_short_paragraph_is_joined_with_the_next():
    assert cut("Title\n\na b c\n\nd e f", least=3, most=9)[0] == ["Title\n\na b c", "d e f"]


def test_a_short_end_is_joined_with_the_paragraph_before():
    assert cut("a b c\n\nd e f\n\ng", least=3, most=9) == (["a b c", "d e f\n\ng"], 0)


def test_a_short_end_without_room_is_left_out():
    assert cut("a b c d\n\ne", least=3, most=4) == (["a b c d"], 1)


def test_a_short_document_has_no_paragraph():
    assert cut("a b", least=3, most=9) == ([], 2)
    assert cut("", least=3, most=9) == ([], 0)


def test_a_long_paragraph_is_divided_at_the_end_of_a_sentence():
    text = "A b c d. E f g h. I j k l. M n"
    assert cut(text, least=3, most=9)[0] == ["A b c d. E f g h.", "I j k l. M n"]


def test_without_a_sentence_it_is_divided_at_a_space():
    assert cut("a b c d e f g h", least=2, most=5)[0] == ["a b c d e", "f g h"]


def test_without_a_space_it_is_divided_after_the_greatest_number_of_tokens():
    text = "x" * 10
    found = paragraphs(text, [*range(10)], least=2, most=4)
    assert [(one.start, one.stop) for one in found] == [(0, 4), (4, 8), (8, 10)]


@given(TEXTS, st.integers(1, 5), st.integers(0, 20))
def test_every_token_is_in_one_paragraph_but_those_of_a_short_end(text, least, more):
    starts = [at for at, character in enumerate(text) if character.strip()]
    found = paragraphs(text, starts, least=least, most=2 * least + more)
    assert 0 <= len(starts) - sum(one.n_tokens for one in found) < least
    for one in found:
        assert least <= one.n_tokens <= 2 * least + more
        assert one.n_tokens == len([at for at in starts if one.start <= at < one.stop])
    assert [one.start for one in found] == sorted(one.start for one in found)
    assert all(before.stop <= after.start for before, after in pairwise(found))
