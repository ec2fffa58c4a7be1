"""Section 2: which records are kept, and how often an n-gram occurs among them."""

import hashlib
import math

import pytest

from decon_core.benchmarks.normalized import fingerprint_of
from decon_core.config.policy import Policy
from decon_core.text.tokenizers import load_tokenizer
from tests.oracle.decon import (
    Frequencies,
    Record,
    answer_grams,
    build_index,
    count,
    index_records,
    passage_grams,
    question_grams,
    share_of_idf,
    tokenize,
    why_dropped,
)
from tests.oracle.worlds import STRANGER, SpacesCount, WordNumbers, entry, run

POLICY = Policy(eval_min_token_length=20)
LN2 = math.log(2)


def words(n: int, stem: str = "w") -> str:
    return " ".join(f"{stem}{i}" for i in range(n))


def record(
    question: str,
    answer: str | None = None,
    passage: str | None = None,
    *,
    benchmark: str = "bench",
    fingerprint: str = "",
) -> Record:
    return Record(
        benchmark, "test", 0, question, answer, passage, fingerprint=fingerprint or question
    )


def reason(
    one: Record, policy: Policy = POLICY, seen: set[tuple[str, str]] | None = None
) -> str | None:
    return why_dropped(one, policy, WordNumbers(), set() if seen is None else seen)


def test_twenty_tokens_are_enough_and_nineteen_are_not() -> None:
    assert reason(record(words(20))) is None
    assert reason(record(words(19))) == "too few tokens"


def test_passage_question_and_answer_are_counted_together() -> None:
    # 8 + 7 + 5 = 20
    assert reason(record(words(7), words(5, "a"), words(8, "p"))) is None
    assert reason(record(words(7), words(4, "a"), words(8, "p"))) == "too few tokens"
    assert reason(record(words(7), None, words(8, "p"))) == "too few tokens"


def test_words_are_counted_after_cleaning() -> None:
    # 19 words and a lone dash; "w0-w1" is two words
    assert reason(record(words(19) + " —")) == "too few tokens"
    assert reason(record("w0-w1 " + words(18, "v"))) is None


def test_components_are_counted_although_they_are_not_indexed() -> None:
    policy = Policy(index_answers=False, index_passages=False)
    assert reason(record(words(7), words(5, "a"), words(8, "p")), policy) is None


def test_white_space_tokens_do_not_count() -> None:
    # SpacesCount makes 2 * 19 = 38 tokens of 19 words, 19 of them white space
    assert why_dropped(record(words(19)), POLICY, SpacesCount(), set()) == "too few tokens"
    assert why_dropped(record(words(20)), POLICY, SpacesCount(), set()) is None


def test_cl100k_counts_pieces_of_words_and_not_words() -> None:
    encoder = load_tokenizer("cl100k")
    text = "antidisestablishmentarianism floccinaucinihilipilification " * 2 + "or so"
    n = len(tokenize(text, POLICY, encoder))
    assert n >= 20  # though there are six words, four of them different
    assert why_dropped(record(text), POLICY, encoder, set()) is None
    too_long = Policy(eval_min_token_length=n + 1)
    assert why_dropped(record(text), too_long, encoder, set()) == "too few tokens"


def test_four_different_words_are_enough_and_three_are_not() -> None:
    assert reason(record("a b c d " * 5)) is None
    assert reason(record("a b c " * 7)) == "too few different words"
    # case and punctuation make no word different
    assert reason(record("a A c! C b, B. (c) " * 3)) == "too few different words"
    # the fourth word may come from the answer
    assert reason(record("a b c " * 7, "d")) is None


def test_characters_of_scripts_without_spaces_are_parts_of_words() -> None:
    water = "在标准大气压下水的沸点是多少"
    assert reason(record(water * 2), Policy(eval_min_token_length=1)) is None
    published = Policy.from_mapping({"preset": "reference", "eval_min_token_length": 1})
    assert reason(record(water * 2), published) == "too few different words"
    # seven different characters are four words, and six are three
    assert reason(record("水的沸点是多少"), Policy(eval_min_token_length=1)) is None
    few = reason(record("水的沸点多少"), Policy(eval_min_token_length=1))
    assert few == "too few different words"
    # four of Thai are one
    assert reason(record("กขคงจฉชซฌญฎฏฐ"), Policy(eval_min_token_length=1)) is None
    few = reason(record("กขคงจฉชซฌญฎฏ"), Policy(eval_min_token_length=1))
    assert few == "too few different words"


def test_an_exact_repeat_is_dropped_within_a_benchmark_only() -> None:
    seen: set[tuple[str, str]] = set()
    one, other = (record(words(20), benchmark=b, fingerprint="f") for b in ("one", "other"))
    assert reason(one, seen=seen) is None
    assert reason(other, seen=seen) is None
    assert reason(one, seen=seen) == "exact repeat"


def test_the_fingerprint_decides_what_a_repeat_is() -> None:
    seen: set[tuple[str, str]] = set()
    assert reason(record(words(20), fingerprint="f"), seen=seen) is None
    assert reason(record(words(20), fingerprint="g"), seen=seen) is None


def test_the_fingerprint_is_of_passage_question_and_answer_run_together() -> None:
    assert fingerprint_of("p", "q", "a") == hashlib.sha256(b"pqa").hexdigest()[:16]
    assert fingerprint_of("p", "q", "a") == fingerprint_of(None, "pq", "a")
    assert fingerprint_of("p", "q", "a") != fingerprint_of("P", "q", "a")  # not cleaned
    assert len(fingerprint_of(None, "é", None)) == 16


def test_repeats_stay_when_asked_for() -> None:
    policy = Policy(eval_dedup=False)
    one = record(words(20))
    assert len(index_records([one, one], policy, WordNumbers())) == 2
    assert len(index_records([one, one], POLICY, WordNumbers())) == 1


@pytest.mark.parametrize("question", ["", "  ", "?!", "—"])
def test_a_record_without_a_question_is_dropped(question: str) -> None:
    assert reason(record(question, words(20), fingerprint="f")) == "empty question"


def test_the_rules_apply_in_their_order() -> None:
    # 3 tokens, 1 different word, no question: the first detector names it
    assert reason(record("", "a a a", fingerprint="f")) == "too few tokens"
    # 20 tokens, 1 different word, no question: the second
    assert reason(record("", "a " * 20, fingerprint="f")) == "too few different words"
    # a repeat without a question: first the fourth detector, then the third
    seen: set[tuple[str, str]] = set()
    nameless = record("", words(20), fingerprint="f")
    assert reason(nameless, seen=seen) == "empty question"
    assert reason(nameless, seen=seen) == "exact repeat"


def test_a_record_dropped_as_too_short_makes_no_later_record_a_repeat() -> None:
    seen: set[tuple[str, str]] = set()
    assert reason(record(words(3), fingerprint="f"), seen=seen) == "too few tokens"
    assert reason(record(words(20), fingerprint="f"), seen=seen) is None


def test_kept_records_keep_their_order_and_their_components() -> None:
    encoder = WordNumbers()
    entries = index_records(
        [
            record(words(10), words(5, "a"), words(6, "p")),
            record(words(3, "short")),
            record(words(20, "z"), "?", ""),
        ],
        POLICY,
        encoder,
    )
    assert [len(one.question) for one in entries] == [10, 20]
    assert [len(one.answer) for one in entries] == [5, 0]  # "?" is empty after cleaning
    assert [len(one.passage) for one in entries] == [6, 0]
    assert entries[0].question == tuple(encoder.numbers[f"w{i}"] for i in range(10))


def test_answers_and_passages_are_left_out_when_asked_for() -> None:
    policy = Policy(index_answers=False, index_passages=False)
    one = record(words(10), words(5, "a"), words(6, "p"))
    (kept,) = index_records([one], policy, WordNumbers())
    assert kept.answer == kept.passage == ()


def test_question_ngrams_are_unique_and_in_order() -> None:
    # 1 2 1 2 1 2 1: positions 0 1 2 hold 12121, 21212, 12121
    assert question_grams(entry((1, 2, 1, 2, 1, 2, 1)), POLICY) == [
        (1, 2, 1, 2, 1),
        (2, 1, 2, 1, 2),
    ]


def test_a_question_shorter_than_an_ngram_has_one_of_all_its_tokens() -> None:
    assert question_grams(entry((1, 2, 3, 4)), POLICY) == [(1, 2, 3, 4)]
    assert question_grams(entry((1, 2, 3, 4, 5)), POLICY) == [(1, 2, 3, 4, 5)]
    short = [entry((1, 2)), entry((1, 2)), entry((1, 2, 3))]
    assert count(short, POLICY).question == {(1, 2): 2, (1, 2, 3): 1}


def test_answers_above_three_tokens_have_trigrams_and_others_none() -> None:
    assert answer_grams(entry(run(0, 9), (1, 2, 3)), POLICY) == []
    assert answer_grams(entry(run(0, 9), (1, 2, 3, 4)), POLICY) == [(1, 2, 3), (2, 3, 4)]
    assert answer_grams(entry(run(0, 9), (1, 1, 1, 1)), POLICY) == [(1, 1, 1)]


def test_passages_have_fourgrams() -> None:
    assert passage_grams(entry(run(0, 9), (), (1, 2, 3, 4, 5)), POLICY) == [
        (1, 2, 3, 4),
        (2, 3, 4, 5),
    ]
    assert passage_grams(entry(run(0, 9), (), (1, 2, 3)), POLICY) == []


def test_document_frequency_counts_records_and_not_occurrences() -> None:
    entries = [
        entry((1, 2, 1, 2, 1, 2, 1), (7, 7, 7, 7), (8, 8, 8, 8, 8)),
        entry((1, 2, 1, 2, 1), (7, 7, 7, 9), (8, 8, 8, 8)),
        entry((5, 6, 7, 8, 9)),
    ]
    frequencies = count(entries, POLICY)
    assert frequencies.n_records == 3
    assert frequencies.question == {
        (1, 2, 1, 2, 1): 2,  # twice in the first, once in the second: two records
        (2, 1, 2, 1, 2): 1,
        (5, 6, 7, 8, 9): 1,
    }
    assert frequencies.answer == {(7, 7, 7): 2, (7, 7, 9): 1}
    assert frequencies.passage == {(8, 8, 8, 8): 2}
    assert frequencies.idf(2) == math.log(3 / 2)


def test_token_frequency_counts_fields() -> None:
    entries = [
        entry((1, 1, 2, 3, 4), (1, 9), (1, 1, 1, 1)),  # 1 in three fields
        entry((1, 5, 6, 7, 8), (9,)),  # 1 in one, 9 in one
    ]
    token = count(entries, POLICY).token
    assert token[1] == 4
    assert token[9] == 2
    assert token[2] == token[8] == 1


def test_a_short_answer_does_not_enter_the_answer_ngrams() -> None:
    frequencies = count([entry(run(0, 5), (1, 2, 3)), entry(run(10, 5), (1, 2, 3, 4))], POLICY)
    assert frequencies.answer == {(1, 2, 3): 1, (2, 3, 4): 1}


def test_question_idf_is_the_sum_over_unique_ngrams() -> None:
    # N = 4. Of (1,2,1,2,1,2,1): 12121 in 2 records, 21212 in 1.
    entries = [
        entry((1, 2, 1, 2, 1, 2, 1)),
        entry((1, 2, 1, 2, 1)),
        entry(run(10, 5)),
        entry(run(20, 5)),
    ]
    frequencies = count(entries, POLICY)
    wanted = question_grams(entries[0], POLICY)
    # Q_idf = ln(4/2) + ln(4/1) = ln 2 + 2 ln 2 = 3 ln 2
    only_common = share_of_idf(wanted, [(1, 2, 1, 2, 1)], frequencies.question, frequencies)
    only_rare = share_of_idf(wanted, [(2, 1, 2, 1, 2)], frequencies.question, frequencies)
    assert only_common == pytest.approx(LN2 / (3 * LN2))
    assert only_rare == pytest.approx(2 * LN2 / (3 * LN2))
    assert share_of_idf(wanted, wanted, frequencies.question, frequencies) == 1.0


def test_an_overlap_without_weight_is_zero() -> None:
    # N = 1: idf = ln(1/1) = 0 for every n-gram
    alone = [entry(run(0, 6))]
    frequencies = count(alone, POLICY)
    wanted = question_grams(alone[0], POLICY)
    assert share_of_idf(wanted, wanted, frequencies.question, frequencies) == 0.0


def test_frequencies_of_two_sets_add_up() -> None:
    one = [entry((1, 2, 3, 4, 5, 6), (1, 2, 3, 4), (1, 2, 3, 4))]
    two = [entry((2, 3, 4, 5, 6), (2, 3, 4, 5)), STRANGER]
    assert count(one, POLICY) + count(two, POLICY) == count(one + two, POLICY)
    assert Frequencies() + count(one, POLICY) == count(one, POLICY)


def test_an_ngram_is_hot_above_the_limit_only() -> None:
    # N = 8: 2 * floor(sqrt(8)) = 2 * 2 = 4
    shared = run(0, 5)
    for n_holders, hot_ngram_records, is_hot in [
        (4, 1, False),  # 4 > max(1, 4) is false
        (5, 1, True),  # 5 > max(1, 4)
        (5, 5, False),  # 5 > max(5, 4) is false
        (6, 5, True),
        (8, 2000, False),
    ]:
        holders = [entry((*shared, 100 + i)) for i in range(n_holders)]
        others = [entry(run(1000 * (i + 1), 6)) for i in range(8 - n_holders)]
        index = build_index(holders + others, Policy(hot_ngram_records=hot_ngram_records))
        assert index.frequencies.n_records == 8
        assert index.is_hot(shared) is is_hot


def test_hotness_comes_from_the_frequencies_and_not_from_the_records_present() -> None:
    shared = run(0, 5)
    holders = [entry((*shared, 100 + i)) for i in range(5)]
    others = [entry(run(1000 * (i + 1), 6)) for i in range(3)]
    policy = Policy(hot_ngram_records=1)
    frozen = count(holders + others, policy)
    assert build_index(holders[:1], policy, frozen).is_hot(shared)
