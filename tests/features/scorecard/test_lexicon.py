"""Words in the place of others, and made-up text that copies nothing."""

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from decon_core.features.scorecard.items import Item, ItemKey
from decon_core.features.scorecard.lexicon import Lexicon, filler, lexicon_of
from decon_core.text.segments import canonical_words


def lexicon_with(*texts):
    return Lexicon(ranked=(), names=(), template=frozenset(), texts=tuple(map(tuple, texts)))


@given(st.lists(st.sampled_from("abc"), max_size=60), st.lists(st.sampled_from("abc"), max_size=20))
def test_prop_a_copy_is_a_run_of_eight_words_or_of_all(text, made):
    n = min(8, len(made))
    runs = {tuple(text[at : at + n]) for at in range(len(text) - n + 1)}
    expected = n > 4 and any(tuple(made[at : at + n]) in runs for at in range(len(made) - n + 1))
    assert lexicon_with(text).has_copy_of(made) == expected


def test_made_up_text_copies_no_eight_words(items):
    own = [item for item in items if item.key.benchmark == "almanac_rc"]
    lexicon = lexicon_of(own, Random(1))
    text = " ".join(word for text in lexicon.texts for word in text).casefold()
    for seed in range(20):
        made = lexicon.made_up(60, Random(seed))
        found = canonical_words(made)
        assert len(found) == 60
        assert not any(" ".join(found[at : at + 8]) in text for at in range(53))


def test_names_are_what_has_a_capital_within_a_sentence():
    question = "Yesterday the ship of Orla met that of Bram's aunt. When did Orla land?"
    item = Item(key=ItemKey("b", "test", 0), question=question)
    assert set(lexicon_of([item], Random(1)).names) == {"Orla", "Bram"}


def test_a_benchmark_of_few_words_makes_nothing_up():
    assert lexicon_with(("one", "two")).made_up(30, Random(1)) is None
    assert filler(lexicon_with(("one", "two")), 30, Random(1)) is None
