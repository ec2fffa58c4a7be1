"""Forms of texts, and the way back from them to what a person reads."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from decon_core.config.policy import Normalize, Policy
from decon_core.text.canonical import clean, formed, original_places
from decon_core.text.characters import Form
from tests.uncompiled import fewer

PIECES = st.sampled_from(
    [*"aB9 \n\t.,?“”éΣςİß字😀", "\r\n", "\u00a0", "\u2028", "\x00", "\x1c", "e\u0301", "word "]
)
TEXTS = st.lists(PIECES, max_size=30).map("".join)


def policy(normalize: Normalize) -> Policy:
    return Policy(
        normalize_unicode=False, strip_markup=False, detectors=("exact",), normalize=normalize
    )


def form_of(policy: Policy) -> tuple[str, Form]:
    return policy.normalize, policy.form


def test_nothing_is_made_of_a_text_unless_it_is_asked_for():
    assert formed(" A\r\n b.", *form_of(policy("none"))) == " A\r\n b."


def test_white_space_is_evened_out_to_single_spaces_and_none_at_the_edges():
    assert formed("\n A\r\n\tb.\u00a0c ", *form_of(policy("whitespace"))) == "A b. c"


def test_what_joins_words_in_canonical_text_joins_them_in_any_form():
    """U+001C is white space to Python, and none to Unicode."""
    assert formed("a\x1cb", *form_of(policy("whitespace"))) == "a\x1cb"


def test_canonical_text_stands_behind_a_space_as_the_tokenizer_is_given_it():
    assert formed("“Who, me?”", *form_of(policy("decon"))) == " who me"
    assert formed(" ?! ", *form_of(policy("decon"))) == ""


@pytest.mark.parametrize("normalize", ["whitespace", "decon"])
def test_a_space_stands_for_all_that_was_between_two_words(normalize):
    text = "one ,\n two"
    form = formed(text, *form_of(policy(normalize)))
    at = form.index(" ", 1)
    ((start, stop),) = original_places(text, [(at, at + 1)], *form_of(policy(normalize)))
    assert text[start:stop] in (" ,\n ", " ", "\n ")
    assert stop == text.index("two") or normalize == "whitespace"


@settings(derandomize=True, max_examples=fewer(150))
@given(TEXTS, st.data(), st.sampled_from(["none", "whitespace", "decon"]))
def test_what_is_cut_out_of_a_text_has_the_form_that_was_found(text, data, normalize):
    chosen = policy(normalize)
    form = formed(text, *form_of(chosen))
    # Lower case of these depends on what stands around them, or is longer.
    if not form or (normalize == "decon" and {*text} & {*"Σİ"}):
        return
    start = data.draw(st.integers(0, len(form) - 1))
    stop = data.draw(st.integers(start + 1, len(form)))
    ((first, last),) = original_places(text, [(start, stop)], *form_of(chosen))
    assert 0 <= first < last <= len(text)
    found = form[start:stop]
    if found.strip():
        assert formed(text[first:last], *form_of(chosen)).strip() == found.strip()


@settings(derandomize=True, max_examples=fewer(150))
@given(TEXTS, st.sampled_from(["none", "whitespace", "decon"]))
def test_a_text_has_the_same_canonical_words_in_every_form(text, normalize):
    chosen = policy(normalize)
    marks = chosen.punctuation_chars
    assert clean(formed(text, *form_of(chosen)), punctuation=marks) == clean(
        text, punctuation=marks
    )


def test_the_canonical_form_is_normalized_and_leads_back_to_the_original():
    chosen = Policy(normalize="decon")
    text = "So W<b>h</b>at&nbsp;is \uff49t\u200b?"
    assert formed(text, *form_of(chosen)) == " so what is it"
    start = formed(text, *form_of(chosen)).index(" what")
    ((first, last),) = original_places(text, [(start, start + 8)], *form_of(chosen))
    assert text[first:last].strip() == "W<b>h</b>at&nbsp;is"
