"""Section 1: text to tokens."""

from collections.abc import Sequence
from typing import get_args

import pytest

from decon_core.config.policy import PUNCTUATION, Policy, Sampling
from decon_core.text import canonical as text
from decon_core.text.tokenizers import load_tokenizer
from tests.oracle.decon import clean, detect, tokenize
from tests.oracle.worlds import EXHAUSTIVE, WordNumbers, entry, noise, run, world

CLEANED = {
    "upper_case": ("What Year WAS it", "what year was it"),
    # İ (one character) lower-cases to i and a combining dot above (two).
    "dotted_capital_i": ("İstanbul", "i\u0307stanbul"),
    "sharp_s_stays": ("STRAßE ẞ", "straße ß"),
    "sigma_at_the_end_of_a_word": ("ΟΔΟΣ ΣΟΦΟΣ", "οδος σοφος"),
    # Lower-casing comes first: between letters, behind an apostrophe, Σ is not final.
    "sigma_before_an_apostrophe_and_a_letter": ("ΟΔΟΣ’Α", "οδοσ α"),
    "sigma_before_punctuation_at_the_end": ("ΟΔΟΣ.", "οδος"),
    "ascii_punctuation": ("a!b\"c#d$e%f&g'h(i)j*k+l,m-n.o/p", "a b c d e f g h i j k l m n o p"),
    "more_ascii_punctuation": (
        "a:b;c<d=e>f?g@h[i\\j]k^l_m`n{o|p}q~r",
        " ".join("abcdefghijklmnopqr"),
    ),
    "curly_quotes_and_em_dash": ("“don’t”—‘he’ said", "don t he said"),
    "en_dash_is_no_punctuation_here": ("1–2 «a» …", "1–2 «a» …"),
    "white_space_runs": ("  a \t\r\n b\x0b\x0cc  ", "a b c"),
    "unicode_white_space": (
        "a\x85b\xa0c\u1680d\u2000e\u200af\u2028g\u2029h\u202fi\u205fj\u3000k",
        "a b c d e f g h i j k",
    ),
    # Not White_Space in Unicode, though Python's str.split thinks so of the first four.
    "information_separators_stay": ("a\x1cb\x1dc\x1ed\x1fe", "a\x1cb\x1dc\x1ed\x1fe"),
    "zero_width_space_stays": ("a\u200bb\ufeffc", "a\u200bb\ufeffc"),
    "punctuation_between_white_space": ("a - . - b", "a b"),
    "nothing_but_punctuation": ("?! — …".replace("…", ""), ""),
    "empty": ("", ""),
}


@pytest.mark.parametrize(("given", "expected"), CLEANED.values(), ids=CLEANED.keys())
def test_cleaning_follows_the_rule(given: str, expected: str) -> None:
    assert clean(given, PUNCTUATION) == expected
    assert text.clean(given, punctuation=PUNCTUATION) == expected


def test_the_default_punctuation_is_the_reference_s_list() -> None:
    assert sorted(PUNCTUATION) == sorted("!’\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~”“‘—")
    assert Policy().punctuation_chars == PUNCTUATION


def test_only_the_given_punctuation_is_removed() -> None:
    # "]", "^", "-" and "\" mean something inside a regular expression's brackets.
    for clean_with in (clean, lambda t, p: text.clean(t, punctuation=p)):
        assert clean_with("a]b^c-d\\e.f", "]^-\\") == "a b c d e.f"
        assert clean_with("a-b z", "") == "a-b z"
        assert clean_with("a-b m z", "a-z") == "b m"  # a list of characters, not a range


def test_a_text_is_tokenized_behind_one_leading_space() -> None:
    class Recorder(WordNumbers):
        def __init__(self) -> None:
            super().__init__()
            self.seen: list[str] = []

        def encode(self, texts: Sequence[str]) -> list[list[int]]:
            self.seen.extend(texts)
            return super().encode(texts)

    encoder = Recorder()
    tokenize("  What, YEAR? ", EXHAUSTIVE, encoder)
    assert encoder.seen == [" what year"]


def test_a_match_at_the_start_of_a_text_has_the_tokens_of_one_in_the_middle() -> None:
    encoder = load_tokenizer("cl100k")
    question = tokenize("What year was the Eiffel Tower constructed?", EXHAUSTIVE, encoder)
    document = tokenize(
        "1000facts: WHAT year was the “Eiffel Tower” constructed — 1889", EXHAUSTIVE, encoder
    )
    # what, year, was, the, e + iff + el, tower, constructed: each with its space in front
    assert question == (1148, 1060, 574, 279, 384, 3168, 301, 21970, 20968)
    at = document.index(1148)
    assert at > 0
    assert document[at : at + 9] == question


def test_special_tokens_are_plain_text() -> None:
    encoder = load_tokenizer("cl100k")
    policy = Policy(punctuation_chars="!")  # leaves <, |, > in place
    tokens = tokenize("a <|endoftext|> b", policy, encoder)
    assert 100257 not in tokens  # cl100k_base's <|endoftext|>
    assert len(tokens) > 3


def test_nothing_is_tokenized_when_nothing_is_left() -> None:
    for nothing in (None, "", " \t", "?!"):
        assert tokenize(nothing, EXHAUSTIVE, WordNumbers()) == ()


@pytest.mark.parametrize(("n_tokens", "is_scanned"), [(9, False), (10, True)])
@pytest.mark.parametrize("sampling", get_args(Sampling))
def test_a_document_below_two_ngrams_is_skipped(
    sampling: Sampling, n_tokens: int, is_scanned: bool
) -> None:
    policy = Policy(sampling=sampling)
    five_token_question = entry(run(100, 5))
    document = run(100, 5) + noise(n_tokens - 5)
    # 2 * ngram_size = 10
    assert bool(detect(document, world(five_token_question, policy=policy))) is is_scanned
