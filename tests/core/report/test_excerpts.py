"""What both sides of a pair share, in the characters of each."""

from hypothesis import given
from hypothesis import strategies as st

from decon_core.config.policy import PUNCTUATION
from decon_core.report.excerpts import MOST_OF_PART, agree_of, make_excerpt, mark_shared
from decon_core.text.canonical import clean, words_with_places
from decon_core.text.characters import Form

FORM = Form(punctuation=PUNCTUATION)

RECORD = {
    "question": "How many eggs does the third hen lay?",
    "answer": "nine eggs",
    "passage": None,
}

texts = st.text(st.sampled_from("aAbcdé .,!?'\n漢字"), max_size=60)


def cut(text, marks):
    return [text[mark.start : mark.stop] for mark in marks]


def look(text, spans, record=RECORD, context=300):
    return make_excerpt(text, spans, record, context=context, form=FORM)


def test_runs_that_stand_on_both_sides_are_marked_and_a_changed_word_is_not():
    first = "How many EGGS does the second hen lay?"
    there, here = mark_shared(first, RECORD["question"], "question", form=FORM)
    assert cut(first, there) == ["How many EGGS does the"]
    assert cut(RECORD["question"], here) == ["How many eggs does the"]


def test_a_text_of_two_words_is_shared_as_a_whole_or_not_at_all():
    there, _ = mark_shared("Nine, eggs.", "nine eggs", "answer", form=FORM)
    assert cut("Nine, eggs.", there) == ["Nine, eggs"]
    assert mark_shared("ten eggs", "nine eggs", "answer", form=FORM) == ([], [])


def test_scripts_without_spaces_are_marked_by_their_letters():
    there, _ = mark_shared("他说今天天气很好。", "今天天气不好", "question", form=FORM)
    assert cut("他说今天天气很好。", there) == ["今天天气"]


@given(texts, texts)
def test_a_mark_cuts_out_whole_words_of_which_each_is_in_a_run_of_both(first, second):
    size = min(3, *(len(words_with_places(t, form=FORM)) for t in (first, second)))
    for own, other, marks in zip(
        (first, second),
        (second, first),
        mark_shared(first, second, "question", form=FORM),
        strict=True,
    ):
        words, others = plain(own), plain(other)
        runs = {tuple(others[at : at + size]) for at in range(len(others) - size + 1)}
        expected = [
            any(
                tuple(words[at : at + size]) in runs
                for at in range(max(0, n - size + 1), min(n, len(words) - size) + 1)
            )
            for n in range(len(words))
        ]
        places = words_with_places(own, form=FORM)
        is_marked = [
            any(mark.start <= start and stop <= mark.stop for mark in marks)
            for _, start, stop in places
        ]
        assert is_marked == (expected if size else [False] * len(words))
        assert all(text == text.strip() for text in cut(own, marks))


def plain(text):
    return [word for word, _, _ in words_with_places(text, form=FORM)]


@given(st.text(max_size=40))
def test_shown_words_are_those_that_are_compared_but_for_scripts_without_spaces(text):
    joined = clean(text, punctuation=PUNCTUATION).replace(" ", "")
    assert "".join(plain(text)).replace("ς", "σ") == joined.replace("ς", "σ")


def test_the_document_is_shown_with_a_little_around_the_place():
    question = "How many eggs does the third hen lay?"
    text = f"{'before ' * 100}{question}{' after' * 100}"
    start = text.index(question)
    piece = look(text, {"question": (start, start + len(question))}, context=20)
    assert piece.text == f"before before {question} after after after a"
    assert text[piece.start :].startswith(piece.text)
    assert cut(piece.text, piece.text_marks) == [question.rstrip("?")]


def test_parts_far_apart_are_shown_with_what_is_between_them_left_out():
    text = f"How many eggs does the third hen lay? {'x ' * 2000}It is nine eggs, as you know."
    at = text.index("nine")
    piece = look(text, {"question": (0, 37), "answer": (at, at + 9)}, context=10)
    assert (
        piece.text
        == "How many eggs does the third hen lay? x x x x x […] x x It is nine eggs, as you k"
    )
    assert [
        (text, mark.part)
        for text, mark in zip(cut(piece.text, piece.text_marks), piece.text_marks, strict=True)
    ] == [("How many eggs does the third hen lay", "question"), ("nine eggs", "answer")]


def test_of_a_very_long_part_the_beginning_is_shown():
    record = {"question": None, "answer": None, "passage": "word " * 50_000}
    piece = look(record["passage"], {"passage": (0, 250_000)}, record, context=10)
    assert MOST_OF_PART < len(piece.text) <= MOST_OF_PART + 10
    assert [(mark.start, mark.stop) for mark in piece.text_marks] == [(0, MOST_OF_PART - 1)]


def test_words_and_numbers_in_any_order_are_marked_for_detectors_that_compare_so():
    text = "Before. It took three days to shear 215 sheep. After."
    record = {"question": "A flock of 215 sheep is shorn in 3 days.", "answer": "7"}
    spans = {"question": (8, 45)}
    agree = agree_of("reworded")
    excerpt = make_excerpt(text, spans, record, context=20, form=FORM, agree=agree)
    assert [excerpt.text[mark.start : mark.stop] for mark in excerpt.text_marks] == [
        *("three", "days", "215", "sheep")
    ]
    assert [
        record["question"][mark.start : mark.stop] for mark in excerpt.record_marks["question"]
    ] == ["215", "sheep", "3", "days"]
    assert excerpt.agreement == (
        "words in both: sheep, days; numbers in both: 3, 215; words only in the item: flock, shorn"
    )
    assert agree_of("decon") is None
