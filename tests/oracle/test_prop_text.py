"""Cleaning twice over, offsets back to the original, and spans of tokens."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from decon_core.config.policy import PUNCTUATION
from decon_core.text.canonical import WHITE_SPACE, Canonical, clean, clean_with_offsets
from decon_core.text.tokenizers import load_tokenizer
from tests.oracle import decon as reference
from tests.uncompiled import fewer

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
    canonical = clean_with_offsets(text, punctuation=punctuation)
    assert canonical.text == clean(text, punctuation=punctuation)
    assert len(canonical.starts) == len(canonical.stops) == len(canonical.text)


@SLOW
@given(TEXTS)
def test_offsets_never_run_backwards_or_out_of_the_text(text: str) -> None:
    canonical = clean_with_offsets(text, punctuation=PUNCTUATION)
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
    canonical = clean_with_offsets(text, punctuation=PUNCTUATION)
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
    canonical = clean_with_offsets("“İz — Σ”", punctuation=PUNCTUATION)
    assert canonical.text == "i\u0307z σ"
    # “ 0, İ 1, z 2, space 3, — 4, space 5, Σ 6
    assert list(canonical.starts) == [1, 1, 2, 3, 6]
    assert list(canonical.stops) == [2, 2, 3, 6, 7]
    assert canonical.original(0, 1) == (1, 2)
    assert canonical.original(0, len(canonical.text)) == (1, 7)


@pytest.mark.parametrize("name", ["words", "cl100k"])
@SLOW
@given(text=TEXTS)
def test_the_spans_of_tokens_cover_a_canonical_text(name: str, text: str) -> None:
    tokenizer = load_tokenizer(name)
    spaced = " " + clean(text, punctuation=PUNCTUATION)
    spans = tokenizer.spans(spaced)
    assert len(spans) == len(tokenizer.encode([spaced])[0])
    assert spans == sorted(spans)
    assert [stop for _, stop in spans] == sorted(stop for _, stop in spans)
    assert all(0 <= start < stop <= len(spaced) for start, stop in spans)
    covered = {at for start, stop in spans for at in range(start, stop)}
    # `words` leaves the spaces between words to nobody
    assert {at for at, char in enumerate(spaced) if at not in covered and char != " "} == set()
    if name == "cl100k":
        assert covered == set(range(len(spaced)))


@SLOW
@given(TEXTS)
def test_a_word_token_spans_its_word(text: str) -> None:
    tokenizer = load_tokenizer("words")
    spaced = " " + clean(text, punctuation=PUNCTUATION)
    words = [spaced[start:stop] for start, stop in tokenizer.spans(spaced)]
    assert words == [word for word in spaced.split(" ") if word]


@SLOW
@given(st.lists(TEXTS, max_size=4))
@pytest.mark.parametrize("name", ["words", "cl100k"])
def test_texts_are_encoded_one_by_one_as_together(name: str, texts: list[str]) -> None:
    tokenizer = load_tokenizer(name)
    assert tokenizer.encode(texts) == [tokenizer.encode([text])[0] for text in texts]
