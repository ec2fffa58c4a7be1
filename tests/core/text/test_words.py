"""Tokens without tokenizing: equal to cleaning and tokenizing every text by itself."""

import logging
from functools import lru_cache
from itertools import chain
from pathlib import Path
from tempfile import mkdtemp

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import ByteLevel
from tokenizers.trainers import BpeTrainer

from decon_core.config.policy import PUNCTUATION, Policy
from decon_core.kernels.hashing import numbered_digests
from decon_core.kernels.word_table import (
    _GROUP,
    _NEAR_BITS,
    FAR,
    MANY,
    NOT_KEPT,
    NUMBERS,
    PENDING,
    SPARE,
    Arena,
    expand,
    settle,
    tokens_of_words,
)
from decon_core.text import word_cache as words
from decon_core.text import word_table
from decon_core.text.canonical import WHITE_SPACE
from decon_core.text.characters import Form
from decon_core.text.tokenizers import load_tokenizer
from decon_core.text.word_cache import (
    Encoder,
    FixedVocabulary,
    GrowingVocabulary,
    keeps_words_apart,
)
from decon_core.text.word_table import WordTable
from tests.oracle.decon import canonical, clean, tokens_of
from tests.uncompiled import fewer

PROPERTY = settings(derandomize=True, max_examples=fewer(120))

# What can go wrong: length-changing and context-dependent lower case, characters whose lower case
# has another number of bytes, marks, joiners, all kinds of white space, control characters.
ODD = (
    "İΣςσΑαIıKÅẞßȺⱥǅéé\u0307\u0345\u200b\u200d\ufeff\u00ad\x00\x1c\x1f\x7f\u180e"
    "日本か\u3099ｶ語。ไ한नम😀𝔘𐐀𞤀"
)
LETTERS = st.text(st.sampled_from(ODD + "abcABCxyz019"), max_size=12)
GAPS = st.text(st.sampled_from(WHITE_SPACE + PUNCTUATION + " ,"), min_size=1, max_size=3)
LONG = st.builds(lambda part, n: part * n, st.text(min_size=1, max_size=9), st.integers(5, 40))
TEXTS = st.one_of(
    st.lists(st.one_of(LETTERS, GAPS, LONG, st.text(max_size=20)), max_size=30).map("".join),
    st.lists(st.one_of(LETTERS, st.sampled_from(["the", "of", "question"])), max_size=40).map(
        " ".join
    ),
)


@lru_cache(maxsize=1)
def joining() -> str:
    """A tokenizer that takes several words together, as no word-by-word look-up can."""
    tokenizer = Tokenizer(BPE())
    trainer = BpeTrainer(vocab_size=300, show_progress=False)
    tokenizer.train_from_iterator(["a b c the of question x y z 0 1 9"] * 50, trainer)
    path = Path(mkdtemp()) / "tokenizer.json"
    tokenizer.save(str(path))
    return str(path)


def encoder(
    name="words",
    *,
    punctuation=PUNCTUATION,
    table_mb=1,
    vocabulary=None,
    normalize_unicode=False,
    strip_markup=False,
):
    return Encoder(
        load_tokenizer(name),
        vocabulary or GrowingVocabulary(),
        form=Form(
            punctuation=punctuation,
            normalize_unicode=normalize_unicode,
            strip_markup=strip_markup,
        ),
        table_mb=table_mb,
    )


def packed(texts):
    data = [text.encode() for text in texts]
    stops = np.cumsum([len(one) for one in data], dtype=np.int64)
    starts = stops - np.array([len(one) for one in data], np.int64)
    return np.frombuffer(b"".join(data), np.uint8), starts, stops


def ids_of(found, vocabulary):
    ids = np.append(0, vocabulary.ids)
    return [ids[found.row(at)].tolist() for at in range(len(found))]


def expected(texts, name, punctuation=PUNCTUATION, **form):
    tokenizer = load_tokenizer(name)
    chosen = {"normalize_unicode": False, "strip_markup": False, **form}
    policy = Policy(punctuation_chars=punctuation, **chosen)
    cleaned = [canonical(text, policy) for text in texts]
    if not keeps_words_apart(tokenizer):
        return [tokenizer.encode([f" {text}"])[0] if text else [] for text in cleaned]
    return [[*tokens_of(text, policy, tokenizer)] for text in cleaned]


@PROPERTY
@given(st.lists(TEXTS, max_size=4), st.sampled_from(["words", "cl100k"]))
def test_tokens_are_those_of_the_cleaned_text(texts, name):
    vocabulary = GrowingVocabulary()
    found = encoder(name, vocabulary=vocabulary).encode(*packed(texts))
    assert ids_of(found, vocabulary) == expected(texts, name)


@PROPERTY
@given(st.lists(TEXTS, max_size=4), st.sampled_from(["words", "cl100k"]))
def test_first_tokens_are_those_of_the_words(texts, name):
    vocabulary = GrowingVocabulary()
    one = encoder(name, vocabulary=vocabulary)
    firsts = one.first_tokens_of_latest(one.encode(*packed(texts)))
    words_of = [filter(None, clean(text, PUNCTUATION).split(" ")) for text in texts]
    tokenizer = load_tokenizer(name)
    expected_firsts = [[tokenizer.encode([f" {word}"])[0][0] for word in row] for row in words_of]
    assert ids_of(firsts, vocabulary) == expected_firsts


@PROPERTY
@given(st.lists(TEXTS, max_size=4), st.sampled_from(["words", "cl100k"]))
def test_a_text_has_at_least_as_many_words_as_different_first_tokens(texts, name):
    one = encoder(name, normalize_unicode=True)
    firsts = one.first_tokens_of_latest(one.encode(*packed(texts))).distinct()
    cleaned = [
        canonical(text, Policy(normalize_unicode=True, strip_markup=False)) for text in texts
    ]
    n_words = [len({*text.split()}) for text in cleaned]
    assert all(least <= n for least, n in zip(firsts.lengths.tolist(), n_words, strict=True))


@settings(PROPERTY, max_examples=fewer(30))
@given(st.lists(st.lists(st.integers(0, 5), max_size=6), max_size=5))
def test_values_are_counted_once_for_each_row_that_has_them(rows):
    ragged = words.Ragged(
        np.array([*chain.from_iterable(rows)], np.uint32),
        words.edges_of([len(row) for row in rows]),
    )
    distinct = [[*dict.fromkeys(row)] for row in rows]
    found = ragged.distinct()
    assert [found.row(at).tolist() for at in range(len(rows))] == distinct
    times = np.arange(1, len(rows) + 1)
    expected_counts = [
        sum(n for n, row in zip(times, rows, strict=True) if at in row) for at in range(6)
    ]
    assert found.count(times, 6).tolist() == expected_counts
    chosen = np.arange(0, len(rows), 2)
    assert [found.take(chosen).row(at).tolist() for at in range(chosen.size)] == distinct[::2]
    assert [found.between(1, 3).row(at).tolist() for at in range(len(rows[1:3]))] == distinct[1:3]


@settings(PROPERTY, max_examples=fewer(30))
@given(st.lists(st.one_of(st.integers(0, 3), st.integers(0, 2**64 - 1))))
def test_digests_are_numbered_in_order_of_first_occurrence(digests):
    numbers, first = numbered_digests(np.array(digests, np.uint64))
    different = [*dict.fromkeys(digests)]
    assert numbers.tolist() == [different.index(digest) for digest in digests]
    assert first.tolist() == [digests.index(digest) for digest in different]


@settings(PROPERTY, max_examples=fewer(30))
@given(st.lists(TEXTS, max_size=3))
def test_a_tokenizer_that_joins_words_is_given_whole_texts(texts):
    vocabulary = GrowingVocabulary()
    found = encoder(joining(), vocabulary=vocabulary).encode(*packed(texts))
    assert ids_of(found, vocabulary) == expected(texts, joining())


@settings(PROPERTY, max_examples=fewer(40))
@given(
    st.lists(TEXTS, min_size=1, max_size=3),
    st.sampled_from(["", "a", "σ", "i\u0307", "É日😀", "AΣİ", "\x00-"]),
)
def test_any_set_of_characters_can_be_punctuation(texts, punctuation):
    vocabulary = GrowingVocabulary()
    found = encoder(punctuation=punctuation, vocabulary=vocabulary).encode(*packed(texts))
    assert ids_of(found, vocabulary) == expected(texts, "words", punctuation)


@settings(PROPERTY, max_examples=fewer(40))
@given(st.lists(TEXTS, max_size=5), st.lists(TEXTS, max_size=5))
def test_neither_what_came_before_nor_the_cut_into_batches_changes_tokens(before, texts):
    vocabulary = GrowingVocabulary()
    one = encoder(vocabulary=vocabulary)
    one.encode(*packed(before))
    together = ids_of(one.encode(*packed(texts)), vocabulary)
    apart = [ids_of(one.encode(*packed([text])), vocabulary)[0] for text in texts]
    assert together == apart == expected(texts, "words")


@pytest.mark.parametrize("one", ["1\u30002\u3000", "1—2—", "a", "Ⱥ ", "\u3000", ""])
def test_stretches_of_many_short_words_and_texts_stay_within_their_room(monkeypatch, one):
    # A stretch holds several texts, and separators beyond ASCII leave no byte in it.
    monkeypatch.setattr(words, "_STRETCH_BYTES", 64)
    vocabulary = GrowingVocabulary()
    encoder_of_short = encoder(vocabulary=vocabulary)
    for repeats in (1, 7, 40):
        texts = [one * repeats] * 200
        offsets = np.zeros(201, np.int64)
        found = encoder_of_short.encode(*packed(texts))
        assert ids_of(found, vocabulary) == expected(texts, "words")
        # The last edge of a stretch, and the one that is written behind it in vain.
        data, starts, stops = packed(texts)
        at = 0
        while at < 200:
            following = encoder_of_short._split(data, starts, stops, at, offsets)
            assert 2 * (offsets[following] - offsets[at]) < encoder_of_short._edges.size
            at = following


@pytest.mark.parametrize("name", ["words", "cl100k"])
def test_a_full_table_changes_no_token(monkeypatch, name):
    for limit in ("_ROUND_WORDS", "_ROUND_BYTES", "_ROUND_PATCHES", "_FIRST_SLOTS"):
        monkeypatch.setattr(word_table, limit, 16)
    monkeypatch.setattr(word_table, "_FEWEST_SLOTS", 64)
    texts = [" ".join(f"word{n * k} w{n} {'long' * 30}{k}" for n in range(60)) for k in range(5)]
    vocabulary = GrowingVocabulary()
    small = encoder(name, table_mb=0, vocabulary=vocabulary)
    for _ in range(2):
        assert ids_of(small.encode(*packed(texts)), vocabulary) == expected(texts, name)
    assert small._table.words.table.size // NUMBERS <= 64


def test_the_table_grows_only_to_its_bound():
    small = encoder(table_mb=1)
    text = " ".join(f"w{n}" for n in range(20_000))
    found = small.encode(*packed([text]))
    assert len(found.row(0)) == 20_000
    table = small._table
    kept = table.words.table, table.words.kept, table.tokens.kept
    assert sum(array.nbytes for array in kept) <= 1_000_000


@settings(PROPERTY, max_examples=fewer(40))
@given(
    st.lists(st.lists(st.integers(1, MANY - FAR + 3), max_size=3 * _GROUP), max_size=3),
    st.integers(1, 2**_NEAR_BITS),
)
def test_words_of_any_number_of_tokens_are_expanded_in_order(sizes, least):
    """Few and many tokens per word, and some that are too large to be part of a value."""
    ends = words.edges_of([size for document in sizes for size in document])
    tokens = np.arange(least, least + ends[-1], dtype=np.uint32)
    n = ends.size - 1
    # As if every word were new: kept ones and others in turn.
    slots = np.where(np.arange(n) % 2, np.arange(n), NOT_KEPT)
    values = np.arange(n, dtype=np.uint64) | np.uint64(PENDING << 56)
    waiting = WordTable(1_000_000).words._replace(
        counts=np.array([n, 0, n, 0, 0]), pending_slots=slots, patches=np.arange(n)
    )
    arena = Arena(*np.empty((2, 2 * tokens.size + 1), np.uint32), np.zeros(2, np.int64))
    settle(tokens, ends, waiting, values, arena, np.empty(n, np.uint64))
    offsets = words.edges_of([*map(len, sizes)])
    token_offsets, out = np.zeros_like(offsets), np.empty(tokens.size + SPARE, np.uint32)
    assert not expand(values, offsets, arena, out[: tokens.size], token_offsets) or not n
    assert expand(values, offsets, arena, out, token_offsets)
    assert out[: tokens.size].tolist() == tokens.tolist()
    assert token_offsets.tolist() == ends[offsets].tolist()
    counts = np.empty(n, np.int64)
    tokens_of_words(values, arena, counts)
    assert counts.tolist() == np.diff(ends).tolist()


def test_ids_that_the_index_lacks_are_one_unknown_token():
    tokenizer = load_tokenizer("words")
    known = np.sort(np.array(tokenizer.encode([" b d"])[0]))
    one = encoder(vocabulary=FixedVocabulary(known))
    tokens = one.encode(*packed(["a b c d b"])).row(0)
    assert [known[token - 1] if token else None for token in tokens] == [
        None,
        *tokenizer.encode([" b"])[0],
        None,
        *tokenizer.encode([" d b"])[0],
    ]


def test_numbers_of_a_very_large_index_keep_all_their_bits():
    tokenizer = load_tokenizer("words")
    words_of_it = np.array(tokenizer.encode([" a b c d"])[0])
    ids = np.sort(np.concatenate([np.arange(400_000), words_of_it]))
    found = encoder(vocabulary=FixedVocabulary(ids)).encode(*packed(["d c", "b a e"]))
    expected_ids = [tokenizer.encode([text])[0] for text in (" d c", " b a")]
    assert ids[found.row(0).astype(int) - 1].tolist() == expected_ids[0]
    assert ids[found.row(1)[:2].astype(int) - 1].tolist() == expected_ids[1]
    assert found.row(1)[2] == 0
    assert found.row(0).min() > 1 << 18


def test_a_word_of_a_megabyte_is_one_word():
    vocabulary = GrowingVocabulary()
    text = "É" * fewer(1_500_000) + " end"
    found = encoder(vocabulary=vocabulary).encode(*packed([text]))
    assert ids_of(found, vocabulary) == expected([text], "words")


@PROPERTY
@given(TEXTS, st.sampled_from(["words", "cl100k", "joining"]), st.data())
def test_places_cut_out_exactly_the_words_behind_the_tokens(text, name, data):
    name = joining() if name == "joining" else name
    one = encoder(name)
    n = one.encode(*packed([text])).lengths[0]
    places = one.places(0, text)
    assert places.first_word.size == n
    cut = [clean(text[a:b], PUNCTUATION) for a, b in zip(places.starts, places.stops, strict=True)]
    if "Σ" not in text:  # at the end of what is cut out it would be another letter
        assert cut == [word for word in clean(text, PUNCTUATION).split(" ") if word]
    if n:
        start = data.draw(st.integers(0, n - 1))
        stop = data.draw(st.integers(start + 1, n))
        first, last = places.characters(start, stop)
        inside = expected([text], name)[0][start:stop]
        around = expected([text[first:last]], name)[0]
        # Whole words: the range may begin and end inside of one. A joining tokenizer begins
        # elsewhere when the text before is gone.
        if "Σ" not in text and name != joining():
            assert any(around[at : at + len(inside)] == inside for at in range(len(around)))
        assert all(clean(char, PUNCTUATION) for char in (text[first], text[last - 1]))


@pytest.mark.parametrize("name", ["words", "cl100k", "o200k", "llama3", "olmo2"])
def test_the_known_vocabularies_keep_words_apart(name):
    assert keeps_words_apart(load_tokenizer(name))


def test_a_single_token_of_two_words_is_noticed(tmp_path):
    vocabulary = {letter: n for n, letter in enumerate("abcdefghijklmnopqrstuvwxyz\u0120")}
    merges = [("\u0120", "o"), ("\u0120o", "f"), ("\u0120of", "\u0120")]
    for pair in merges:
        vocabulary["".join(pair)] = len(vocabulary)
    tokenizer = Tokenizer(BPE(vocabulary, merges))
    tokenizer.pre_tokenizer = ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    assert not keeps_words_apart(load_tokenizer(str(tmp_path / "tokenizer.json")))


def test_one_that_does_not_is_noticed_and_said(caplog):
    keeps_words_apart.cache_clear()
    with caplog.at_level(logging.WARNING):
        assert not keeps_words_apart(load_tokenizer(joining()))
    assert "joins words" in caplog.text
