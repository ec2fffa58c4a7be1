"""Look-alike spellings become one: engine and oracle agree, and places cut out the original."""

import gzip
import json
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from unicodedata import combining, decomposition, normalize

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from decon_core.config.policy import PUNCTUATION, Policy
from decon_core.text.canonical import (
    canonical,
    canonical_with_offsets,
    normalized_words,
    word_spans,
)
from decon_core.text.characters import IGNORABLE, Form
from decon_core.text.look_alikes import (
    _PAGE,
    _TABLED,
    _all_characters,
    _may_change_alone,
    _points,
    by_character,
    may_change,
    normalize_batch,
)
from decon_core.text.tokenizers import load_tokenizer
from decon_core.text.word_cache import Encoder, GrowingVocabulary, edges_of
from tests.core.text.test_words import ODD, encoder, expected, ids_of, joining, packed
from tests.oracle import decon as reference
from tests.uncompiled import fewer

PROPERTY = settings(derandomize=True, max_examples=fewer(120))
NORMALIZED = Policy(normalize_unicode=True, strip_markup=False)

# Ignorable characters, full-width and styled letters, ligatures, letters of other scripts, signs
# that NFKC makes separators of, marks that it composes.
TRICKS = "\u200b\u200d\u00ad\ufeff\u2060\u3164Ｗｈａｔ，！ﬁﬂ𝐰𝔥ⓐ㎏™½²…´¨аеоαοս‐–−‘«»\u0301\u0307Σİ"
TRICKS += "\x00\x1f\x7f\x81\x92\x97éñởїйё\u0336\u20d7\u05b4"
TRICKS += "\u0640\u0651\u0654\u0670أىکةوﻻשıøάيิि"
WORDS = st.text(st.sampled_from(TRICKS + ODD + "whatis"), max_size=10)
TEXTS = st.lists(
    st.one_of(WORDS, WORDS, st.text(st.sampled_from(" ,.\u00a0\u3000\n"), max_size=2)), max_size=25
).map("".join)


@pytest.mark.parametrize(
    "given_text",
    [
        "con\u200bta\u00admi\u2060na\ufefftion",
        "ｃｏｎｔａｍｉｎａｔｉｏｎ",
        "𝐜𝐨𝐧𝐭𝐚𝐦𝐢𝐧𝐚𝐭𝐢𝐨𝐧",
        "cоntаminаtiоn",  # Cyrillic о and а
        "cοntamination",  # Greek omicron
        "Соntamination",  # Cyrillic С and о
        "\u200bcontamination\u200b",
        "– contamination −",
        "con\x01tami\x1fna\x7ft\x81ion\x08",
        "contámínàtiön",
        "c\u0327o\u0301nt\u0336a\u20d7mination",
        "contam\u0456\u0301nation",  # Cyrillic і
    ],
)
def test_tricks_with_characters_leave_the_word(given_text):
    assert canonical(given_text, NORMALIZED.form) == "contamination"


@pytest.mark.parametrize(
    "given_text",
    [
        "москва",
        "сора",
        "αβγ",
        "мой",
        "ї",
        "नमस्ते",
        "हिन्दी",
        "ภ า ษ า ไ ท ย",
        "日 本 话",
        "한국어",
        "ガ",
        "مؤمن",
    ],
)
def test_words_of_other_scripts_stay(given_text):
    assert canonical(given_text, NORMALIZED.form) == given_text


@pytest.mark.parametrize(
    ("given_text", "left"),
    [
        ("مُحَمَّدٌ", "محمد"),
        ("الرحمـــن", "الرحمن"),
        ("الرَّحْمٰنِ", "الرحمن"),
        ("ﻛﺘﺎﺏ ﻻ", "كتاب لا"),
        ("کتابی", "كتابي"),
        ("أحمد إلى آخر مدرسة", "احمد الي اخر مدرسه"),
        ("שָׁלוֹם", "שלום"),
        ("за\u0301мок е\u0300", "замок е"),
        ("ёж", "еж"),
        ("ΛΌΓΟΣ λόγος ΛΟΓΟΣ", "λογος λογος λογος"),
        ("IŞIK ışık İzmir izmir", "isik isik izmir izmir"),
        ("Đà Nẵng", "da nang"),
        ("Łódź", "lodz"),
        ("\u0301 \u0640", ""),
    ],
)
def test_marks_and_variants_of_letters_are_dropped_in_every_script(given_text, left):
    assert canonical(given_text, NORMALIZED.form) == left


@pytest.mark.parametrize(
    ("given_text", "words"),
    [
        ("wait…what", ["wait", "what"]),
        ("1½", ["11", "2"]),
        ("donʼt", ["don", "t"]),
        ("don´t", ["don", "t"]),
        ("ｙｅｓ！ｎｏ", ["yes", "no"]),
        ("\u200b\u00ad", []),
        ("–", []),
        ("™", ["tm"]),
        ("e\u200b\u0301", ["e"]),
        ("\u00e9", ["e"]),
        ("\u0435\u0301", ["\u0435"]),
        ("don\x92t", ["don", "t"]),
        ("one\x97two", ["one", "two"]),
        ("\x8akoda", ["skoda"]),
        ("\x00", []),
        ("one\x00two", ["one", "two"]),
        ("one\x00two\x00a\x00", ["one", "two", "a"]),
        ("\x00s\x00i\x00x\x00", ["six"]),
        ("a\x00b", ["ab"]),
    ],
)
def test_what_becomes_a_separator_cuts_the_word(given_text, words):
    assert normalized_words(given_text.lower(), punctuation=PUNCTUATION) == words


def test_without_normalization_the_text_is_that_of_the_published_rule():
    text = "con\u200btamination – ｆｉｎｅ"
    assert canonical(text, Policy.from_mapping({"preset": "reference"}).form) == (
        reference.clean(text, PUNCTUATION)
    )


@PROPERTY
@given(TEXTS, st.sampled_from([PUNCTUATION, "", "a,", "é½"]))
def test_canonical_text_is_that_of_the_oracle(text, punctuation):
    policy = Policy(normalize_unicode=True, strip_markup=False, punctuation_chars=punctuation)
    assert canonical(text, policy.form) == reference.canonical(text, policy)
    assert canonical_with_offsets(text, policy.form).text == canonical(text, policy.form)


@PROPERTY
@given(TEXTS)
def test_canonical_text_stays_as_it_is(text):
    once = canonical(text, NORMALIZED.form)
    assert canonical(once, NORMALIZED.form) == once


@PROPERTY
@given(st.lists(TEXTS, max_size=4), st.sampled_from(["words", "cl100k", "joining"]))
def test_tokens_are_those_of_the_normalized_text(texts, name):
    name = joining() if name == "joining" else name
    vocabulary = GrowingVocabulary()
    found = encoder(name, vocabulary=vocabulary, normalize_unicode=True).encode(*packed(texts))
    assert ids_of(found, vocabulary) == expected(texts, name, normalize_unicode=True)


@settings(PROPERTY, max_examples=fewer(40))
@given(st.lists(TEXTS, max_size=5), st.lists(TEXTS, max_size=5))
def test_neither_what_came_before_nor_the_cut_into_batches_changes_tokens(before, texts):
    vocabulary = GrowingVocabulary()
    one = encoder("cl100k", vocabulary=vocabulary, normalize_unicode=True)
    one.encode(*packed(before))
    together = ids_of(one.encode(*packed(texts)), vocabulary)
    apart = [ids_of(one.encode(*packed([text])), vocabulary)[0] for text in texts]
    assert together == apart == expected(texts, "cl100k", normalize_unicode=True)


@PROPERTY
@given(TEXTS, st.sampled_from(["words", "cl100k", "joining"]), st.data())
def test_places_are_those_of_the_words_in_the_original(text, name, data):
    name = joining() if name == "joining" else name
    one = encoder(name, normalize_unicode=True)
    n = one.encode(*packed([text])).lengths[0]
    places = one.places(0, text)
    assert places.first_word.size == places.last_word.size == n
    if not n:
        return
    start = data.draw(st.integers(0, n - 1))
    stop = data.draw(st.integers(start + 1, n))
    first, last = places.characters(start, stop)
    assert 0 <= first < last <= len(text)
    inside = expected([text], name, normalize_unicode=True)[0][start:stop]
    around = expected([text[first:last]], name, normalize_unicode=True)[0]
    if "Σ" not in text and name != joining():  # a cut changes the letter, or where tokens begin
        assert any(around[at : at + len(inside)] == inside for at in range(len(around)))


@PROPERTY
@given(TEXTS, st.data())
def test_offsets_cut_out_text_with_the_same_words(text, data):
    made = canonical_with_offsets(text, NORMALIZED.form)
    assert len(made.starts) == len(made.stops) == len(made.text)
    if not made.text or "Σ" in text:
        return
    words = made.text.split(" ")
    first = data.draw(st.integers(0, len(words) - 1))
    last = data.draw(st.integers(first, len(words) - 1))
    start = len(" ".join(words[:first])) + (first > 0)
    stop = len(" ".join(words[: last + 1]))
    cut_from, cut_to = made.original(start, stop)
    assert 0 <= cut_from < cut_to <= len(text)
    again = canonical(text[cut_from:cut_to], NORMALIZED.form).split(" ")
    wanted = words[first : last + 1]
    assert any(again[at : at + len(wanted)] == wanted for at in range(len(again)))


def test_words_without_tokens_at_the_edge_are_not_covered():
    one = encoder(normalize_unicode=True)
    text = "\u200b \u00ad what is\u200b \u200b"
    one.encode(*packed([text]))
    assert text[slice(*one.places(0, text).characters(0, 2))] == "what is\u200b"


def test_the_same_words_are_tokenized_once(monkeypatch):
    calls = []
    monkeypatch.setattr(
        "decon_core.text.look_alikes.normalized_words",
        lambda word, *, punctuation: (
            calls.append(word) or normalized_words(word, punctuation=punctuation)
        ),
    )
    one = encoder(normalize_unicode=True)
    found = one.encode(*packed(["con\u200btamination plain " * 50, "con\u200btamination"]))
    assert calls == ["con\u200btamination"]
    assert np.unique(found.values).size == 2


def words_with_each_character(before):
    points = [point for point in range(0x110000) if not 0xD800 <= point < 0xE000]
    if before:
        points = [one for one in points if one % 61 == 0 or one < 0x3000 or combining(chr(one))]
    else:
        points = [one for one in points if one % 61 == 0 or one < _TABLED or one in IGNORABLE]
    chars = [char for char in map(chr, points) if char == char.lower() and not char.isspace()]
    return [before + char for char in chars if words_of([before + char]) == [before + char]]


def words_of(texts, punctuation=PUNCTUATION):
    """Return the lower-case words of texts, before they are normalized."""
    text = " ".join(texts).lower()
    form = Form(punctuation=punctuation, normalize_unicode=True)
    return [text[start:stop] for start, stop in word_spans(text, form)]


BEFORE = ("e", "\u00e6", "\u093c", "\u1100", "\uac00", "\u09c7", "\u0627", "\u0648", "\u0430")


@pytest.mark.parametrize("before", ["", *BEFORE])
def test_a_word_that_is_said_to_stay_stays(before):
    """Characters by themselves: those of the table, a part of the others, and ignorable ones.

    Behind letters and marks all marks, and a part of the others.
    """
    words = words_with_each_character(before)
    changing = may_change(_points("".join(f" {word}" for word in words).encode()))
    assert changing.mean() < 0.3  # or it would say so of all
    staying = [word for word, changes in zip(words, changing, strict=True) if not changes]
    kept = [normalized_words(word, punctuation=PUNCTUATION) for word in staying]
    assert kept == [[word] for word in staying]


@PROPERTY
@given(st.lists(st.one_of(WORDS, st.text(max_size=6)), min_size=1))
def test_words_that_are_said_to_stay_do_so_beside_others(texts):
    words = words_of([*texts, "x"])
    changing = may_change(_points("".join(f" {word}" for word in words).encode()))
    for word, changes in zip(words, changing, strict=True):
        assert changes or normalized_words(word, punctuation=PUNCTUATION) == [word]


def normalized_together(words, punctuation):
    text = "".join(f" {word}" for word in words).encode()
    edges = edges_of([len(word.encode()) + 1 for word in words])
    text, edges, n_words = normalize_batch(text, edges, punctuation=punctuation)
    made = [text[start + 1 : stop].decode() for start, stop in pairwise(edges.tolist())]
    ends = np.cumsum(n_words).tolist()
    return [made[stop - n : stop] for n, stop in zip(n_words.tolist(), ends, strict=True)]


@pytest.mark.parametrize("before", ["", *BEFORE, "ä"])
def test_words_of_each_character_become_the_same_together_and_alone(before):
    words = words_with_each_character(before)
    alone = [normalized_words(word, punctuation=PUNCTUATION) for word in words]
    assert normalized_together(words, PUNCTUATION) == alone
    together = "".join(f" {word}" for word in words).encode()
    is_done = ~by_character(together, punctuation=PUNCTUATION).may_change
    assert is_done.mean() > 0.3  # or all would be normalized one by one


@PROPERTY
@given(
    st.lists(st.one_of(WORDS, WORDS, st.text(max_size=6)), min_size=1),
    st.sampled_from([PUNCTUATION, "", "a,", "é½"]),
)
def test_words_become_the_same_together_and_alone(texts, punctuation):
    words = words_of([*texts, "x"], punctuation)
    alone = [normalized_words(word, punctuation=punctuation) for word in words]
    assert normalized_together(words, punctuation) == alone


def test_form_is_that_of_the_policy():
    assert Policy(punctuation_chars="-", strip_markup=False).form == Form(
        punctuation="-", normalize_unicode=True, strip_markup=False
    )


def test_the_reference_preset_gives_tokens_and_places_of_before():
    """The digest was made of the sample world by the code that had no other form."""
    form = Policy.from_mapping({"preset": "reference"}).form
    vocabulary = GrowingVocabulary()
    one = Encoder(load_tokenizer("cl100k"), vocabulary, form=form, table_mb=16)
    digest = sha256()
    for path in sorted((Path(__file__).parents[3] / "data" / "corpus").glob("*.jsonl.gz")):
        for line in gzip.decompress(path.read_bytes()).splitlines():
            text = json.loads(line)["text"]
            found = one.encode(*packed([text])).row(0)
            places = one.places(0, text)
            ids = np.append(0, vocabulary.ids)[found]
            starts, stops = places.starts[places.first_word], places.stops[places.last_word]
            for numbers in (ids, starts, stops):
                digest.update(numbers.astype(np.int64).tobytes())
    assert digest.hexdigest()[:16] == "b1b1f88aa481a5fa"


def test_pages_without_changes_are_left_out_of_the_table_and_no_others():
    for start in range(0, _TABLED, _PAGE):
        page = _all_characters()[start : start + _PAGE]
        assert len(page) == _PAGE
        alone = any(
            normalize("NFKC", char).lower() != char or is_canonically_composed(char)
            for char in page
        )
        assert _may_change_alone(page) or not alone


def is_canonically_composed(char):
    parts = decomposition(char)
    return bool(parts) and not parts.startswith("<")
