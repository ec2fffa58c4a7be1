"""Cleaning twice over, offsets back to the original, and tokens of canonical text."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from decon_core.config.policy import PUNCTUATION
from decon_core.text.canonical import WHITE_SPACE, Canonical, canonical_with_offsets, clean
from decon_core.text.characters import Form
from decon_core.text.tokenizers import load_tokenizer
from tests.oracle import decon as reference
from tests.uncompiled import fewer

PLAIN = Form(punctuation=PUNCTUATION)
SLOW = settings(derandomize=True, max_examples=fewer(150))

# What cleaning is about, far more often than chance would bring it up.
TRICKY = (
    "İIıΣσςßẞǅŉﬁaA1東🚀 \t\n\x0b\x0c\r\x1c\x1f\x85\xa0"
    "\u1680\u180e\u200a\u200b\u2028\u3000\ufeff\u0307\u0301"
)
TEXTS = st.one_of(
    st.text(max_size=60),
    st.text(st.sampled_from(TRICKY + PUNCTUATION), max_size=60),
)


@SLOW
@given(TEXTS, st.one_of(st.just(PUNCTUATION), st.text(max_size=8)))
@example("ΟΔΟΣ’Α ΟΔΟΣ", PUNCTUATION)
@example("a-b", "a-z")
@example("a]b^c", "]^")
@example("a\\b", "\\")
def test_the_fast_cleaning_is_the_plain_one(text: str, punctuation: str) -> None:
    assert clean(text, punctuation=punctuation) == reference.clean(text, punctuation)


@SLOW
@given(TEXTS)
def test_cleaned_text_is_clean(text: str) -> None:
    cleaned = clean(text, punctuation=PUNCTUATION)
    assert not set(cleaned) & set(PUNCTUATION)
    assert not set(cleaned) & (set(WHITE_SPACE) - {" "})
    assert "  " not in cleaned
    assert cleaned == cleaned.strip(" ")


@SLOW
@given(TEXTS, st.one_of(st.just(PUNCTUATION), st.text(max_size=8)))
def test_cleaning_with_offsets_gives_the_same_text(text: str, punctuation: str) -> None:
    canonical = canonical_with_offsets(text, Form(punctuation=punctuation))
    assert canonical.text == clean(text, punctuation=punctuation)
    assert len(canonical.starts) == len(canonical.stops) == len(canonical.text)


@SLOW
@given(TEXTS)
def test_offsets_never_run_backwards_or_out_of_the_text(text: str) -> None:
    canonical = canonical_with_offsets(text, PLAIN)
    for at in range(len(canonical.text)):
        start, stop = canonical.original(at, at + 1)
        assert 0 <= start < stop <= len(text)
    assert list(canonical.starts) == sorted(canonical.starts)
    assert list(canonical.stops) == sorted(canonical.stops)


def words_between(canonical: Canonical, first: int, last: int) -> tuple[int, int]:
    """The canonical range of the words `first` to `last`, both included."""
    words = canonical.text.split(" ")
    start = len(" ".join(words[:first])) + (first > 0)
    return start, len(" ".join(words[: last + 1]))


def sigma_apart(text: str) -> str:
    """Whether a sigma is final depends on what stands around a cut."""
    return text.replace("ς", "σ")


@SLOW
@given(TEXTS, st.data())
def test_offsets_cut_out_text_that_cleans_to_the_same_words(text: str, data: st.DataObject) -> None:
    canonical = canonical_with_offsets(text, PLAIN)
    if not canonical.text:
        return
    n_words = canonical.text.count(" ") + 1
    first = data.draw(st.integers(0, n_words - 1))
    last = data.draw(st.integers(first, n_words - 1))
    start, stop = words_between(canonical, first, last)
    cut_from, cut_to = canonical.original(start, stop)
    cut = clean(text[cut_from:cut_to], punctuation=PUNCTUATION)
    assert sigma_apart(cut) == sigma_apart(canonical.text[start:stop])


def test_a_character_that_lower_cases_to_two_comes_from_one() -> None:
    canonical = canonical_with_offsets("“İz — Σ”", PLAIN)
    assert canonical.text == "i\u0307z σ"
    # “ 0, İ 1, z 2, space 3, — 4, space 5, Σ 6
    assert list(canonical.starts) == [1, 1, 2, 3, 6]
    assert list(canonical.stops) == [2, 2, 3, 6, 7]
    assert canonical.original(0, 1) == (1, 2)
    assert canonical.original(0, len(canonical.text)) == (1, 7)


@SLOW
@given(TEXTS)
def test_the_pieces_of_a_canonical_text_follow_each_other(text: str) -> None:
    tokenizer = load_tokenizer("cl100k")
    spaced = " " + clean(text, punctuation=PUNCTUATION)
    pieces = tokenizer.pieces(spaced)
    assert pieces.ids.tolist() == tokenizer.encode([spaced])[0]
    assert [0, *pieces.stops.tolist()] == [*pieces.starts.tolist(), len(spaced.encode())]


@SLOW
@given(st.lists(TEXTS, max_size=4))
@pytest.mark.parametrize("name", ["words", "cl100k"])
def test_texts_are_encoded_one_by_one_as_together(name: str, texts: list[str]) -> None:
    tokenizer = load_tokenizer(name)
    assert tokenizer.encode(texts) == [tokenizer.encode([text])[0] for text in texts]
