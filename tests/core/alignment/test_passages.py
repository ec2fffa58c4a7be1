"""The passage of an item in a document, as the oracle says it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from decon_core.alignment.passages import longest_run
from decon_core.kernels import passages
from tests.oracle import alignment as oracle
from tests.uncompiled import fewer

SIZE = 4
TOKENS = st.integers(1, 6)
PASSAGE = st.lists(TOKENS, max_size=40)


@st.composite
def documents(draw, of):
    """Draw a document with pieces of passages, and other words."""
    pieces = [st.lists(st.integers(1, 9), max_size=25)]
    for passage in of:
        edges = st.tuples(st.integers(0, len(passage)), st.integers(0, len(passage)))
        pieces += [st.just(passage), edges.map(lambda at, one=passage: one[min(at) : max(at)])]
    drawn = draw(st.lists(st.one_of(pieces), max_size=6))
    return [token for piece in drawn for token in piece]


def tokens_of(rows):
    values = np.array([token for row in rows for token in row], np.uint32)
    return values, np.append(0, np.cumsum([len(row) for row in rows], dtype=np.int64))


def different(passage):
    return [*dict.fromkeys(oracle.grams(passage, SIZE))]


def indexed(of):
    """Return passages with a weight for each of their n-grams."""
    grams = {gram for passage in of for gram in oracle.grams(passage, SIZE)}
    number_of = {gram: number for number, gram in enumerate(sorted(grams))}
    weights = np.array([1.0 + number % 5 for number in range(len(number_of))])
    weight_of = tokens_of([[number_of[gram] for gram in different(passage)] for passage in of])
    by_gram = {gram: weights[number] for gram, number in number_of.items()}
    return passages.Passages(*tokens_of(of), *weight_of, weights), by_gram


@settings(max_examples=fewer(80))
@given(st.data(), st.lists(PASSAGE, min_size=1, max_size=3), st.sampled_from([0.1, 0.5, 1.0]))
def test_passages_are_found_where_the_oracle_finds_them(data, of, least):
    drawn = data.draw(st.lists(documents(of), min_size=1, max_size=3))
    index, weight_of = indexed(of)
    wanted = [(document, number) for document in range(len(drawn)) for number in range(len(of))]
    shares, places, edges = passages.find_in_documents(
        *tokens_of(drawn), np.array(wanted, np.int64), index, SIZE, least
    )
    for row, (document, number) in enumerate(wanted):
        expected = oracle.passage_in(drawn[document], of[number], weight_of, SIZE, least)
        within = np.sort(places[edges[row] : edges[row + 1]])
        if expected is None:
            assert not shares[row]
            assert not within.size
            continue
        share, start, stop = expected
        first, last = longest_run(within)
        assert (shares[row], first, last + SIZE) == (pytest.approx(share), start, stop)


@settings(max_examples=fewer(80))
@given(st.data(), PASSAGE)
def test_words_of_a_passage_at_the_ends_of_a_place_are_those_of_the_oracle(data, passage):
    drawn = data.draw(documents([passage]))
    first, stop = sorted(data.draw(st.tuples(*[st.integers(0, len(drawn))] * 2)))
    text, of = (np.array(tokens, np.uint32) for tokens in (drawn, passage))
    rest = passages.without_passage(text, of, first, stop, SIZE)
    assert rest == oracle.beside_passage(drawn, passage, first, stop, SIZE)
