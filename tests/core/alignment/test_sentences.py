"""An edited copy has each heavy sentence of a question, and asks what the question asks."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import decon_core as dc
from decon_core.alignment.questions import index_of
from decon_core.alignment.sentences import Sentences, sentences_of
from decon_core.alignment.units import units_of
from tests.core.alignment.aligning import FORM, compared, table_of
from tests.oracle import alignment as oracle
from tests.uncompiled import fewer

TREATY = "Which treaty ended the Great Northern War between Sweden and Russia in 1721?"
BAT = "What is the only mammal that is capable of true sustained flight?"
CAKES = (
    "Suzanne sold 80 cookies for $1 each and 60 cupcakes for $4 each. She gave her two sisters "
    "$10 each for helping her. How much money does she have left?"
)
LETTER = (
    "Write an angry letter to a landlord about a leaking radiator. Your entire response should be "
    "in all lowercase letters, must contain at least 4 placeholders in square brackets such as "
    "[name], and may not contain any commas."
)


def is_copy(question, text, answer=""):
    index = dc.build_index([{"question": question, "answer": answer}])
    kinds = {found.kind for found in index.check(f"He wrote this down:\n\n{text}\n\nSo he did.")}
    return bool(kinds & {"verbatim", "edited"})


@pytest.mark.parametrize(
    ("question", "answer", "text"),
    [
        pytest.param(
            TREATY,
            "Treaty of Nystad",
            "The Great Northern War between Sweden and Russia ended in 1721 with the Treaty of "
            "Nystad.",
            id="a fact",
        ),
        pytest.param(
            BAT,
            "Bat",
            "The only mammal that is capable of true sustained flight is the bat.",
            id="a definition",
        ),
        pytest.param(
            "Who was the captain of the ship Endurance, which was crushed by ice in 1915?",
            "Frank Worsley",
            "The captain of the ship Endurance, which was crushed by ice in 1915, was Worsley.",
            id="a relative clause",
        ),
        pytest.param(
            "If the ten sailors who rowed to the wreck share 90 coins, how many does each get?",
            "9",
            "If the ten sailors who rowed to the wreck share 90 coins, each does get 18.",
            id="a relative pronoun before the word that asks",
        ),
        pytest.param(
            "What was the reaction of the village to Mrs. Robinson's sudden decision?",
            "Anger",
            "The reaction of the village to Mrs. Robinson's sudden decision was not known.",
            id="an abbreviation",
        ),
        pytest.param(
            "The walls of a room are papered with strips 50 cm wide for 260 rupees, and the doors "
            "take up 15 square metres. The height of the tall room is",
            "4",
            "The walls of a room are papered with strips 50 cm wide for 260 rupees, and the doors "
            "take up 15 square metres. Name the largest of these numbers. 4",
            id="another end of a sentence without a question mark",
        ),
        pytest.param(
            "Which one of the four sentences most precisely explains the trick that Harriet used "
            "to fool Ambassador Lindqvist?",
            "",
            "Which of the four people was told about the trick that Harriet used to fool "
            "Ambassador Lindqvist?",
            id="the second half of another question",
        ),
        pytest.param(
            CAKES,
            "300",
            "Suzanne sold 80 cookies for $1 each and 60 cupcakes. She gave her two sisters $10 "
            "each for helping her. If she has $300 left, how much does a cupcake cost? Answer: 4",
            id="another question",
        ),
        pytest.param(
            LETTER,
            "",
            LETTER.replace(
                "an angry letter to a landlord about a leaking radiator",
                "a polite note to a teacher about a lost pencil case",
            ),
            id="another task",
        ),
    ],
)
def test_a_text_that_does_not_ask_what_the_question_asks_is_no_copy(question, answer, text):
    assert is_copy(question, f"{question}\n{answer}", answer)
    assert not is_copy(question, text, answer)


@pytest.mark.parametrize(
    "text",
    [
        TREATY.replace("Which", "What"),
        TREATY.replace("Which ", "").replace("1721", "the year 1721"),
        TREATY.replace("?", "").replace("between", "of"),
        f"So I asked him {TREATY[0].lower()}{TREATY[1:-1]}, to which he said nothing.",
    ],
)
def test_an_edited_question_still_asks(text):
    assert is_copy(TREATY, text)


def test_a_light_sentence_may_be_missing():
    question = f"Read this. {LETTER}"
    assert is_copy(question, LETTER)


TEXTS = st.lists(
    st.sampled_from(
        [
            *("the baker", "Anna ran", "why", "12", "U.S.", "(no.)", "“So?”", "3.5", "。", "？"),
            *("?", ".", "!", "\n", "*bold.*", "后来", "?!", "...", "؟"),
        ]
    ),
    max_size=14,
).map(" ".join)


@settings(max_examples=fewer(100))
@given(st.lists(TEXTS, max_size=4))
def test_sentences_of_texts(texts):
    plain = [text.replace("*", "") for text in texts]
    units = units_of(plain, FORM)
    found = sentences_of(plain, units)
    expected, flags, counts = [], [], []
    for text, first, last in zip(plain, units.edges[:-1], units.edges[1:], strict=True):
        starts = units.starts[first:last].tolist()
        edges = [0]
        n = 0
        for stop, asks in oracle.sentences(text):
            behind = sum(start < stop for start in starts)
            if behind > edges[-1]:
                expected.append(behind - edges[-1])
                flags.append(asks)
                edges.append(behind)
                n += 1
        counts.append(n)
    assert found["sentence_sizes"].tolist() == expected
    assert found["is_question"].tolist() == flags
    assert found["n_sentences"].tolist() == counts


QUESTION = "The baker sold twelve muffins. Anna ate three of them on Monday. Are any muffins left?"


@settings(max_examples=fewer(100))
@given(st.data())
def test_which_sentences_are_there(data):
    words = QUESTION.split()
    kept = data.draw(st.lists(st.booleans(), min_size=len(words), max_size=len(words)))
    text = " ".join(word if keep else "zeppelin" for word, keep in zip(words, kept, strict=True))
    one = compared(QUESTION, text)
    if one is None:
        return
    row = {"question": QUESTION, "passage": None, "split": "test", "instance_index": 0}
    arrays = index_of([table_of([row | {"is_correct": None}])], FORM)
    found = np.isin(np.arange(one.n_units), one.found_at[:, 0]).tolist()
    sentence_of = [0] * 5 + [1] * 7 + [2] * 4
    expected = oracle.has_sentences(found, arrays["weights"].tolist(), sentence_of, 2)
    # No word of it asks by itself, so a question mark is not needed.
    assert Sentences(arrays, FORM).are_in(text, 0, one) == expected
