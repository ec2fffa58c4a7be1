"""The kernels of four more detectors say what the oracle says, block by block and run by run."""

from difflib import SequenceMatcher
from itertools import groupby, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from decon_core.detectors.shared_runs import LongestRuns
from decon_core.index.record_texts import texts_of
from decon_core.kernels import grams, token_runs
from decon_core.text.word_cache import Ragged
from tests.oracle.other_detectors import Run, longest_run, ratcliff, shared_grams
from tests.uncompiled import IS_COMPILED, fewer

SLOW = settings(derandomize=True, max_examples=fewer(50))
LESS = settings(derandomize=True, max_examples=fewer(50))

Tokens = list[int]
UNKNOWN = 0  # what a document may hold and no text does


def array(tokens: Tokens) -> np.ndarray:
    return np.array(tokens, np.uint32)


def ragged(rows: list[Tokens]) -> Ragged:
    offsets = np.cumsum([0, *map(len, rows)], dtype=np.int64)
    return Ragged(array([token for row in rows for token in row]), offsets)


def blocks_of(document: Tokens, text: Tokens, least: int) -> list[Run]:
    blocks = np.empty((min(len(document), len(text)) // least, 3), np.int64)
    n = token_runs.matching_blocks(array(document), array(text), least, blocks)
    return [Run(*block) for block in blocks[:n].tolist()]


def covered(document: Tokens, texts: list[Tokens], size: int) -> list[list[int]]:
    known, numbers = texts_of(ragged(texts), size), np.arange(len(texts))
    kept, edges = np.empty(known.tokens.size, np.uint32), np.empty(len(texts) + 1, np.int64)
    token_runs.covered(array(document), size, known, numbers, kept, edges)
    return [kept[start:stop].tolist() for start, stop in pairwise(edges.tolist())]


def opens(at: int) -> bool:
    """Whether the n-gram from a token of all texts opens a comparison."""
    return at % 3 == 0


class Scratch:
    """What a search for the longest runs writes to."""

    def __init__(self, texts: list[Tokens], size: int) -> None:
        self.texts = texts_of(ragged(texts), size)
        self.size = size
        self.opens = np.array([opens(at) for at in range(self.texts.tokens.size)], np.uint8)
        self.longest = token_runs.longest_of(len(texts))
        self.opened: set[int] = set()

    def longest_runs(self, document: Tokens, start: int = 0) -> dict[int, Run]:
        n = token_runs.longest_runs(
            array(document), start, len(document), self.texts, self.opens, self.size, self.longest
        )
        return self.taken(n)

    def sent_through(self, document: Tokens) -> dict[int, Run]:
        """The way that is taken where hits are too many."""
        if len(document) < self.size:
            return {}
        n = token_runs._follow_texts(
            array(document),
            len(document),
            0,
            len(document) - self.size + 1,
            self.texts,
            self.opens,
            self.size,
            self.longest,
            0,
        )
        return self.taken(n)

    def taken(self, n: int) -> dict[int, Run]:
        touched = sorted(self.longest.touched[:n].tolist())
        assert len(set(touched)) == n
        found = {text: Run(*self.longest.runs[text].tolist()) for text in touched}
        self.opened = set(np.flatnonzero(self.longest.are_opened).tolist())
        lengths, opened = self.longest.runs[:, token_runs.LENGTH], self.longest.are_opened
        lengths[touched], opened[touched] = 0, 0
        assert not lengths.any()
        assert not opened.any()
        return found


def tokens(least: int, letters: int, most: int) -> st.SearchStrategy[Tokens]:
    return st.lists(st.integers(least, letters), max_size=most)


@st.composite
def pairs(draw: st.DrawFn) -> tuple[Tokens, Tokens]:
    """A document and a text of a small or a larger alphabet, pieces of the text in the document."""
    letters = draw(st.sampled_from([1, 2, 3, 6, 30]))
    text = draw(tokens(1, letters, 40))
    document = draw(tokens(UNKNOWN, letters, 20))
    for _ in range(draw(st.integers(0, 3))):
        start = draw(st.integers(0, len(text)))
        document += text[start : draw(st.integers(start, len(text)))]
        document += draw(tokens(UNKNOWN, letters, 6))
    return document, text


@st.composite
def worlds(draw: st.DrawFn) -> tuple[Tokens, list[Tokens]]:
    """A document, and texts that share pieces with it and with one another."""
    document, text = draw(pairs())
    letters = max([1, *document, *text])
    texts = [text]
    for _ in range(draw(st.integers(0, 5))):
        start = draw(st.integers(0, len(text)))
        piece = text[start : draw(st.integers(start, len(text)))]
        texts.append(draw(tokens(1, letters, 12)) + piece + draw(tokens(1, letters, 3)))
    return document, texts


@SLOW
@given(pairs(), st.integers(1, 6))
def test_blocks_are_those_of_difflib(pair: tuple[Tokens, Tokens], least: int) -> None:
    document, text = pair
    matcher = SequenceMatcher(None, document, text, autojunk=False)
    expected = [Run(*block) for block in matcher.get_matching_blocks() if block.size >= least]
    assert blocks_of(document, text, least) == expected


@LESS
@given(pairs())
def test_an_alignment_is_that_of_the_oracle(pair: tuple[Tokens, Tokens]) -> None:
    alignment = ratcliff(*pair, ngram_size=4, least_block=3)
    if alignment is not None:
        assert blocks_of(*pair, 3) == list(alignment.blocks)


@SLOW
@given(pairs(), st.integers(1, 6))
def test_coverage_is_the_tokens_that_lie_in_shared_ngrams(
    pair: tuple[Tokens, Tokens], size: int
) -> None:
    document, text = pair
    shared = set(shared_grams(document, text, size))
    lying = {
        at + step
        for at in range(len(text) - size + 1)
        for step in range(size)
        if tuple(text[at : at + size]) in shared
    }
    stretches = groupby(range(len(text)), key=lying.__contains__)
    kept = [[text[at] for at in stretch] for is_lying, stretch in stretches if is_lying]
    joined = [token for stretch in kept for token in (*stretch, int(token_runs.GAP))][:-1]
    assert covered(document, [text, document, text], size)[::2] == [joined, joined]


@SLOW
@given(pairs(), st.integers(1, 6))
def test_the_coverage_has_the_blocks_of_the_text(pair: tuple[Tokens, Tokens], least: int) -> None:
    """At the same places of the document: texts of the same coverage are aligned once."""
    document, text = pair
    (kept,) = covered(document, [text], least)
    of_text, of_kept = (blocks_of(document, one, least) for one in (text, kept))
    assert [(one.document, one.length) for one in of_kept] == [
        (one.document, one.length) for one in of_text
    ]


@LESS
@given(pairs(), st.integers(1, 6))
def test_no_alignment_covers_more_than_the_coverage(
    pair: tuple[Tokens, Tokens], least: int
) -> None:
    document, text = pair
    (kept,) = covered(document, [text], least)
    n_covered = len(kept) - kept.count(int(token_runs.GAP))
    assert sum(block.length for block in blocks_of(*pair, least)) <= n_covered


def naively(document: Tokens, texts: list[Tokens], size: int) -> dict[int, Run]:
    found = ((number, longest_run(document, text, size)) for number, text in enumerate(texts))
    return {number: run for number, run in found if run is not None}


def naively_opened(document: Tokens, texts: list[Tokens], size: int) -> set[int]:
    of_document = {tuple(document[at : at + size]) for at in range(len(document) - size + 1)}
    places = [(number, at) for number, text in enumerate(texts) for at in range(len(text))]
    return {
        number
        for place, (number, at) in enumerate(places)
        if opens(place) and tuple(texts[number][at : at + size]) in of_document
    }


@SLOW
@given(worlds(), st.integers(1, 6))
def test_longest_runs_are_those_of_the_oracle(
    world: tuple[Tokens, list[Tokens]], size: int
) -> None:
    document, texts = world
    scratch = Scratch(texts, size)
    assert scratch.longest_runs(document) == naively(document, texts, size)
    assert scratch.opened == naively_opened(document, texts, size)


@SLOW
@given(worlds(), st.integers(1, 6))
def test_sending_texts_through_all_substrings_finds_the_same_runs(
    world: tuple[Tokens, list[Tokens]], size: int
) -> None:
    document, texts = world
    scratch = Scratch(texts, size)
    assert scratch.sent_through(document) == naively(document, texts, size)
    assert scratch.opened == naively_opened(document, texts, size)


@SLOW
@given(worlds(), worlds(), st.integers(1, 6))
def test_runs_of_several_documents_are_those_of_each(
    world: tuple[Tokens, list[Tokens]], other: tuple[Tokens, list[Tokens]], size: int
) -> None:
    document, texts = world
    documents = [document, *other[1], document[1:], other[0]]
    scratch = Scratch(texts, size)
    found = LongestRuns(scratch.texts, scratch.opens, size)
    found._found = found._found[:1]  # grows
    taken = np.arange(0, len(documents), 2)
    rows = found.of(ragged(documents), taken).tolist()
    assert rows == [
        [number, text, run.document, run.length]
        for number in taken.tolist()
        for text, run in scratch.longest_runs(documents[number]).items()
        if text in scratch.opened
    ]


@LESS
@given(worlds(), tokens(UNKNOWN, 3, 10))
def test_what_stands_before_the_stretch_is_not_looked_at(
    world: tuple[Tokens, list[Tokens]], before: Tokens
) -> None:
    document, texts = world
    scratch = Scratch(texts, 3)
    alone = scratch.longest_runs(document)
    shifted = {
        text: Run(run.document + len(before), run.text, run.length) for text, run in alone.items()
    }
    assert scratch.longest_runs(before + document, len(before)) == shifted


@LESS
@given(worlds(), st.integers(1, 6))
def test_texts_name_every_place_of_every_ngram(
    world: tuple[Tokens, list[Tokens]], size: int
) -> None:
    _, rows = world
    texts = texts_of(ragged(rows), size)
    flat = texts.tokens.tolist()
    listed = []
    for number, first in enumerate(texts.gram_at.tolist()):
        of_gram = slice(*texts.posting_offsets[number : number + 2])
        places = texts.postings[of_gram].tolist()
        assert places == sorted(places)
        assert places[0] == first
        assert len({tuple(flat[at : at + size]) for at in places}) == 1
        listed += zip(places, texts.posting_texts[of_gram].tolist(), strict=True)
    assert sorted(listed) == [
        (texts.offsets[number] + at, number)
        for number, row in enumerate(rows)
        for at in range(len(row) - size + 1)
    ]


def test_a_run_across_two_windows_is_whole_whichever_way_it_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if not IS_COMPILED:  # 32,768 tokens take seconds then
        monkeypatch.setattr(token_runs, "_WINDOW", 1 << 11)
    text = list(range(10, 60))
    edge = token_runs._WINDOW
    document = [UNKNOWN] * (edge - 20) + text + text
    assert Scratch([text], 8).longest_runs(document) == {0: Run(edge - 20, 0, 50)}
    # A document and texts that repeat themselves: in the first window hits are given up.
    texts = [[1] * 90, text, [1] * 30 + text[:10]]
    document = [1] * (edge - 20) + text + [1] * 40
    assert Scratch(texts, 8).longest_runs(document) == {
        0: Run(0, 0, 90),
        1: Run(edge - 20, 0, 50),
        2: Run(edge - 50, 0, 40),
    }


@SLOW
@given(worlds(), worlds(), st.integers(2, 6))
def test_documents_that_share_an_ngram_are_marked(
    world: tuple[Tokens, list[Tokens]], other: tuple[Tokens, list[Tokens]], size: int
) -> None:
    document, rows = world
    documents, texts = ragged([document, other[0], *other[1], document[1:]]), ragged(rows)
    pairs, in_filter = np.zeros((2, 1 << 8), np.uint64)
    grams.enter_runs(texts.values, texts.offsets, size, pairs, in_filter)
    shares = np.zeros(len(documents), np.uint8)
    grams.screen_runs(documents.values, documents.offsets, size, pairs, in_filter, shares)
    assert shares.tolist() == [
        any(shared_grams(documents.row(number).tolist(), text, size) for text in rows)
        for number in range(len(documents))
    ]


def test_texts_too_short_for_an_ngram_are_never_found() -> None:
    assert Scratch([[1, 2, 3], []], 8).longest_runs([1, 2, 3] * 20) == {}
