"""Texts with plain letters: the words of canonical text, but with case and signs."""

from hypothesis import given
from hypothesis import strategies as st

from decon_core.text.canonical import normalized_words
from decon_core.text.plain_letters import with_plain_letters

_LETTERS = [
    *"aéSñ𝗯ﬁавМёЁйىةøŁıάΈ\u064e\u0640\u05b8\u00ad\u200b\x01\u0301\u0303한ﺩक٣4Ａ",
    "\u1112\u1161\u11ab",
    "कि",
]
_UNSPACED = ["カ", "カ\u3099", "ｶﾞ", "語", "語\u200b"]  # words of canonical text, each of them
_WORDS = st.one_of(
    st.lists(st.sampled_from(letters), min_size=1, max_size=8).map("".join)
    for letters in (_LETTERS, _UNSPACED)
)


@given(_WORDS)
def test_words_are_those_of_canonical_text(word):
    words = normalized_words(word.lower(), punctuation="")
    assert with_plain_letters(word).text.lower() == "".join(words)


@given(st.lists(_WORDS | st.sampled_from([" ", ".", "-", "²", "½", "①"])).map("".join))
def test_each_letter_has_its_place(text):
    plain = with_plain_letters(text)
    assert len(plain.text) == len(plain.starts) == len(plain.stops)
    assert [*plain.starts] == sorted(plain.starts)
    for letter, start, stop in zip(*plain, strict=True):
        assert 0 <= start < stop <= len(text)
        assert letter.isalnum() or letter in text[start:stop] or stop - start > 1


def test_signs_and_superscripts_stay():
    text = "x² ≤ 2ⁿ, ½ of «São» ①"
    assert with_plain_letters(text).text == text.replace("ã", "a")
