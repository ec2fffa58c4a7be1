"""What four more detectors find in a document, phenomenon by phenomenon."""

import pytest

from decon_core.text.tokenizers import load_tokenizer
from tests.oracle.other_detectors import (
    Continuations,
    Run,
    continuations,
    last_sentence,
    longest_match,
    longest_run,
    ngram_any,
    occurrences,
    ratcliff,
    shared_grams,
    whole_prompt,
)
from tests.oracle.worlds import noise, run

PROMPT = run(100, 40)


# What is shared


def test_a_text_of_eight_tokens_has_one_eight_gram() -> None:
    assert shared_grams((1, *run(10, 8), 2), run(10, 8), 8) == [run(10, 8)]


def test_the_last_ngram_of_a_document_counts() -> None:
    assert shared_grams(run(0, 20), (*run(90, 5), *run(12, 8)), 8) == [run(12, 8)]


def test_of_equally_long_runs_the_first_in_the_document_is_told() -> None:
    assert longest_run((5, 6, 9, 1, 2, 9, 5, 6), (1, 2, 0, 5, 6), 2) == Run(0, 3, 2)


def test_a_run_that_stands_in_the_text_twice_is_told_where_it_first_begins() -> None:
    assert longest_run((1, 2, 3), (1, 2, 7, 1, 2), 2) == Run(0, 0, 2)


def test_a_run_shorter_than_the_least_is_none() -> None:
    assert longest_run((1, 2, 3), (1, 2, 4), 3) is None


# ratcliff


def ratio(document: tuple[int, ...], prompt: tuple[int, ...] = PROMPT) -> float | None:
    alignment = ratcliff(document, prompt)
    return alignment and alignment.ratio


def test_a_verbatim_prompt_in_a_long_document_is_all_of_it() -> None:
    alignment = ratcliff((*noise(300), *PROMPT, *noise(300)), PROMPT)
    assert alignment is not None
    assert alignment.blocks == (Run(300, 0, 40),)
    assert alignment.ratio == 1.0


def test_one_changed_token_leaves_two_blocks() -> None:
    alignment = ratcliff((*PROMPT[:15], 7, *PROMPT[16:]), PROMPT)
    assert alignment is not None
    assert alignment.blocks == (Run(0, 0, 15), Run(16, 16, 24))
    assert alignment.ratio == 39 / 40


def test_blocks_of_four_tokens_are_dropped_and_blocks_of_five_are_kept() -> None:
    document = (*PROMPT[:20], 7, *PROMPT[21:25], 7, *PROMPT[26:31])
    assert ratio(document) == (20 + 5) / 40


def test_many_blocks_of_seven_tokens_are_not_looked_at() -> None:
    document = tuple(7 if place % 8 == 7 else token for place, token in enumerate(PROMPT))
    assert ratcliff(document, PROMPT) is None


def test_a_block_of_eight_tokens_opens_the_door_for_the_shorter_ones() -> None:
    document = (*PROMPT[:8], 7, *PROMPT[9:16], 7, *PROMPT[17:24])
    assert ratio(document) == (8 + 7 + 7) / 40


def test_of_two_halves_that_changed_places_only_the_longer_one_counts() -> None:
    assert ratio((*PROMPT[18:], *PROMPT[:18])) == 22 / 40


def test_blocks_may_lie_far_apart() -> None:
    assert ratio((*PROMPT[:20], *noise(500), *PROMPT[20:])) == 1.0


def test_what_repeats_in_the_document_counts_once() -> None:
    assert ratio(PROMPT[:16] * 5) == 16 / 40


def test_a_prompt_shorter_than_an_ngram_is_not_looked_at() -> None:
    assert ratcliff(run(100, 20), run(100, 7)) is None


def test_a_whole_prompt_has_a_line_for_passage_question_and_each_choice() -> None:
    assert whole_prompt("P.", "Q?", ["x", None]) == "P.\nQ?\nA. x\nB. "
    assert whole_prompt(None, "Q?", []) == "Q?"


# Table 9 of the study: the same formula behind an instruction in another language, "ratio 0.62".
FORMULA = " 4 / (sqrt(108) + 2*sqrt(12) + 2*sqrt(27))."
ENGLISH = "Simplify the fraction by rationalizing the denominator:" + FORMULA
URDU = "مخرج کو ناطق بنا کر کسر کو آسان کریں:" + FORMULA


@pytest.mark.parametrize(
    ("tokenizer", "expected", "is_found"),
    [
        ("llama3", 25 / 40, True),
        ("o200k", 25 / 38, True),
        # These cut the nine Urdu words into 30 tokens instead of 14 to 16, and the share of the
        # formula falls with it: at 0.5 they miss what the study's own, multilingual one finds.
        ("cl100k", 25 / 54, False),
        ("olmo2", 25 / 54, False),
    ],
)
def test_a_translated_instruction_leaves_the_formula_to_be_found(
    tokenizer: str, expected: float, is_found: bool
) -> None:
    document, prompt = load_tokenizer(tokenizer).encode([ENGLISH, URDU])
    alignment = ratcliff(document, prompt)
    assert alignment is not None
    assert [block.length for block in alignment.blocks] == [25]  # the formula and the colon
    assert alignment.ratio == expected
    assert (alignment.ratio >= 0.5) is is_found


def test_a_formula_of_seven_words_is_too_short_for_whole_words() -> None:
    document, prompt = load_tokenizer("words").encode([ENGLISH, URDU])
    assert ratcliff(document, prompt) is None


# longest_match


def test_a_verbatim_field_scores_one() -> None:
    assert longest_match((*noise(30), *PROMPT, *noise(30)), PROMPT) == 1.0


def test_one_changed_token_leaves_the_longer_side() -> None:
    assert longest_match((*PROMPT[:15], 7, *PROMPT[16:]), PROMPT) == 24 / 40


def test_two_long_runs_do_not_add_up() -> None:
    assert longest_match((*PROMPT[:20], 7, *PROMPT[20:]), PROMPT) == 20 / 40


def test_a_field_that_shares_seven_tokens_scores_nothing() -> None:
    assert longest_match((*noise(10), *PROMPT[:7], *noise(10)), PROMPT) == 0.0


def test_a_field_of_seven_tokens_is_not_searchable_even_where_it_stands() -> None:
    assert longest_match(run(0, 30), run(5, 7)) is None
    assert longest_match(run(0, 30), run(5, 8)) == 1.0


# ngram_any


@pytest.mark.parametrize(("shared", "found"), [(12, 0), (13, 13), (20, 20)])
def test_thirteen_tokens_in_a_row_are_a_hit(shared: int, found: int) -> None:
    assert ngram_any((*noise(9), *PROMPT[5 : 5 + shared], *noise(9)), PROMPT) == found


# exact


def test_occurrences_within_one_another_count() -> None:
    assert occurrences("a banana, bananana", "ana") == [3, 5, 11, 13, 15]


@pytest.mark.parametrize("text", ["Ana", "ana ", "anna", ""])
def test_only_the_very_same_text_occurs(text: str) -> None:
    assert occurrences("banana", text) == []


def test_a_text_may_be_all_of_a_document() -> None:
    assert occurrences("banana", "banana") == [0]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("One sentence only", "One sentence only"),
        ("One sentence only.  ", "One sentence only.  "),
        ("First. Second? Third", "Third"),
        ("First. Second. ", "Second. "),
        ("What?! Really… Yes", "Yes"),
        ("Take 3.14 of it", "Take 3.14 of it"),
        ("He said: “Stop.” Then he", "Then he"),
        ("(So it was.) Now", "Now"),
        ("[title] How to boil\nFill a pot", "Fill a pot"),
        ("First.\r\n\r\n  Second\n", "Second\n"),
        ("天冷了。他回家", "他回家"),
        ("“天冷了。”他回家。", "他回家。"),
        ("Ask Dr. Smith", "Smith"),  # an abbreviation ends a sentence as well
        ("  Behind spaces", "Behind spaces"),
        ("", ""),
        ("...", "..."),
    ],
)
def test_the_last_sentence_begins_behind_the_last_end_that_text_follows(
    text: str, sentence: str
) -> None:
    assert last_sentence(text) == sentence


def test_an_item_is_looked_for_as_question_with_its_answer_and_continued() -> None:
    assert continuations("A man sits. He opens a", "door.") == Continuations(
        question="A man sits. He opens a",
        answered="A man sits. He opens a door.",
        continuation="He opens a door.",
    )


def test_a_single_sentence_has_no_continuation_of_its_own() -> None:
    assert continuations("Who was it?", "Ada") == Continuations(
        "Who was it?", "Who was it? Ada", None
    )


def test_without_an_answer_only_the_question_is_looked_for() -> None:
    assert continuations("Here. There?", None) == Continuations("Here. There?", None, None)
    assert continuations("Here. There?", "") == Continuations("Here. There?", None, None)


@pytest.mark.parametrize(
    ("question", "answer"), [("Q:\n", "A"), ("Q: ", "A"), ("Q:", " A"), ("Q:", "A")]
)
def test_white_space_between_question_and_answer_is_not_doubled(question: str, answer: str) -> None:
    expected = question + answer if (question + answer) != "Q:A" else "Q: A"
    assert continuations(question, answer).answered == expected
