"""A short answer behind its question: whole, with its signs, and by what surrounds it."""

from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from decon_core.alignment.short_answers import (
    Window,
    has_formula,
    is_whole,
    is_wrong_choice,
    short_answer,
)
from tests.oracle import alignment as oracle

ASKED = "How many crates of pears does the depot hold, and how long does a lorry walk in minutes?"


def found(answer, behind):
    place = short_answer([answer], Window(ASKED + behind, len(ASKED), len(ASKED + behind), ASKED))
    return place and (ASKED + behind)[slice(*place)]


@pytest.mark.parametrize(
    ("answer", "behind"),
    [
        ("240", "\n240\n"),
        ("240", " Answer: 240."),
        ("240", " So it holds 240 crates of them."),
        ("240", " It holds two hundred and forty crates."),
        ("240", " 240 Then it rained."),
        ("240", " (B) 240 Then it rained."),
        ("240", " A. 230 B. 240 C. 250. Answer: B"),
        ("240", " a) 230\nb) 240\nc) 250\nAnswer: b"),
        ("240", " It takes 240 min in all."),
        ("25", " 25 %"),
        ("25%", " Answer: 25"),
        ("-5", " Answer: −5"),
        ("0.25 kg", " Answer: 0,25 kg"),
        ("620", " (1) 750 (2) 620 (3) 600\nAnswer: (2)"),
        ("1/4", " It is 0.25."),
        ("$1,200", " Answer: 1200.00"),
        (r"$\frac{\pi}{4}$", r" Answer: $\frac{\pi}{4}$"),
        ("12 May 1926", " It was on 12 May 1926 in Hemmel."),
        ("3:45 pm", "\n3:45 PM\n"),
        ("x=2", " x = 2, as before"),
        ("The Treaty of Nystad", " the treaty\nof Nystad ended it"),
        ("Treaty of Nystad", " <b>Treaty</b> of Nystad ended it"),
        ("no", "\nNo"),
        ("no", " <|im_start|>assistant\nNo, it may not."),
        ("no", " A. Yes B. No Answer: B"),
        ("False", " Answer: False"),
        ("C", "\nC"),
        ("C", "\nA. oak B. elm C. ash\nAnswer: C"),
        ("L", " A. F B. L C. G Answer: B"),
        ("1000", " (A) 850 (B) 900 (C) 1000 Ans. C"),
        ("no", "\n3. Name a bird.\n\nAnswers\n1. Danube\n2. no\n3. Ostrich"),
        ("The bats leave within a week", "\n// The bats leave\n// within a week.\n"),
        ("The bats leave within a week", "\n> The bats leave\n> within a week.\n"),
        ("The bats leave within a week", "\n# The bats leave\n# within a week.\n"),
        ("Rigor", "\nRigor\n\nAnswer: Vigor\n"),
        ("Nystad", "\n-Nystad\n-Orlen\n"),
        ("JR", " Answer: JR是铁路"),
        ("It has two strings", " Answer: (A)It has two strings.\nWhat else?\nAnswer: (B)A kite."),
        ("well-known", " It is well known."),
        *(("18", f"\nAnswer: 18\n{line}") for line in ("- 3 points", "125. Next?", "+ 7", "* 2")),
        ("苹果", "\nA．梨子 B．苹果 C．桃子\n答案：B"),
        ("y", "\nA．$x$ B．y\n答案：B"),
        ("18", " Answer: 18 (don't forget the crates in the yard)"),
        ("西游记", "《西游记》是小说"),
        ("西游记", " 西游记是小说"),
        ("A", " The answer is A because it is the heaviest of them."),
        *(("C", behind) for behind in (" (C)", "\nC.\n", "\n(C)\n\n2. Next?", " $C$")),
        ("C", "\nA. oak B. elm C. ash\n\nC."),
        ("Lake Baikal", f" Answer: It is {'very ' * 9} deep.\nThe answer is Lake Baikal."),
        # Cells of a table
        *(("48", f",{row}\n") for row in ("48", "12,48,7,9,B", "48,0.92", "12,480,48,9", "48,7")),
        *(("48", row) for row in ("\t48\t0.9\n", "|48|0.9|\n", ";48;B\n", ',"48",7\n')),
        *(
            ("48", f",{row}\n")
            for row in ("742,48,653,B", "2021-03-04,48,653", ",48,653", "a,9,48")
        ),
        *((number, f",{number},3\n") for number in ("0.25", "-5", "45%", "$18")),
        # The same in other words
        *(("392 Euro", f" Answer: {price}") for price in ("392 €", "€392", "EUR 392")),
        *((price, " It costs $18.") for price in ("18 dollars", "USD 18", "$18")),
        *(("true", f" Answer: {word}") for word in ("yes", "True")),
        ("no", " Answer: False"),
    ],
)
def test_a_whole_answer_counts(answer, behind):
    assert found(answer, behind)


@pytest.mark.parametrize(
    ("answer", "behind"),
    [
        *(("240", f" Answer: {other}") for other in ("2400", "2401", "240.5", "1,240", "240,000")),
        *(("240", f" Answer: {other}") for other in ("-240", "240/7", "240 000", "24", "24 0")),
        *(("3", f" Answer: {other}") for other in ("1/3", "3.5", "2^3=8", "x^3", "13")),
        *(("$1,200", f" Answer: {other}") for other in ("$1,999", "$1,20", "$1,201", "$200")),
        *(("1/4", f" Answer: {other}") for other in ("1/40", "3 1/4", "11/4", "4")),
        (r"$\frac{\pi}{4}$", r" Answer: $\frac{\pi}{6}$"),
        (r"$\frac{\pi}{4}$", r" Answer: $-\frac{\pi}{4}$"),
        (r"$\frac{\pi}{4}$", r" Answer: $\frac{3\pi}{4}$"),
        ("12 May 1926", " Answer: 12 May 1927"),
        ("3:45 pm", " Answer: 3:45 am"),
        ("x=2", " Answer: x=-2"),
        ("-5", " Answer: 5"),
        ("(a-b)(a+c)", " Answer: (a+b)(a-c)"),
        ("Treaty of Nystad", " Answer: Peace of Nystad"),
        ("25 percent", " Answer: 25 kg"),
        *(("18", f" Answer: {other}") for other in ("3*18", "18*x", "18 * 3", "x18", "#18")),
        (".5", " Answer: 5"),
        ("25 kg", " Answer: 25%"),
        *(("48", f" Answer: {other}") for other in ("48,5", "12,48", "3,48 €", "(3,48)", "3,48,9")),
        *(("48", f",{row}\n") for row in ("1,480", "3,7,9", "2048,5", "-48,5", "2021-48-04,5")),
        *(("392 Euro", f" Answer: {other}") for other in ("$392", "USD 392", "391 €")),
        *(("true", f" Answer: {word}") for word in ("no", "False")),
    ],
)
def test_a_part_of_it_or_another_sign_is_another_answer(answer, behind):
    assert found(answer, behind) is None


@pytest.mark.parametrize(
    ("answer", "behind"),
    [
        ("51", " No clue.\n\nPosted by kim, 51 replies, 312 views"),
        ("18", " Answer: 17\n\nQuestion 18: What is a pear?"),
        ("18", " Answer: 17. Posted on 18 March."),
        ("18", " The answer is 17 (see page 18)."),
        ("18", " Answer: not 18 but 17"),
        ("18", " Answer: 17\n\n18. What is a pear?"),
        ("18", "\n\n18 Things to Do in Hemmel"),
        ("18", " Is it 18? No, the answer is 17."),
        ("18", " A. 16 B. 17 C. 18 D. 19. Answer: B"),
        ("3", " 1. Five 2. Six 3. Seven. Correct: 1"),
        ("18", " The answer 18 isn't right."),
        ("1", " I asked everybody, but no one."),
        ("no", " Yes / No / Don't know"),
        ("no", " A. Yes B. No\nWhat else?"),
        ("no", "\nNo record of it was found."),
        ("no", " Yes. No other state allows it."),
        ("no", " There is no record of it."),
        ("no", " Yes, no doubt."),
        ("no", " Answer: yes\n\nIs the sky green? Answer: no"),
        ("False", " True or false?"),
        ("False", " Answer: True. Explanation: false claims are common."),
        ("Akhenaten", " A. Ramesses B. Akhenaten C. Thutmose\nAnswer: A"),
        ("Akhenaten", " A. Ramesses B. Akhenaten C. Thutmose\nAnswer: A. Ramesses"),
        ("Akhenaten", " a) Ramesses b) Akhenaten c) Thutmose\nAnswer: a"),
        ("Akhenaten", " [A] Ramesses [B] Akhenaten [C] Thutmose\nAnswer: A"),
        ("Akhenaten", " (A) Akhenaten (B) false\nAnswer: B"),
        ("C", " Answer: D\nWhat else?\nAnswer: C"),
        ("-5", " Answer: 1,200\nWhat else?\nAnswer: -5"),
        ("C", "\n(A)\noak\n(B)\nelm\n(C)\nash\n"),
        ("C", "\nC. Columbus sailed on."),
        ("苹果", "\nA．梨子 B．苹果 C．桃子\n答案：A"),
        ("L", " A. F or M B. L or N C. G or L Answer: D"),
        ("C", " vitamin C is healthy"),
        ("C", "\nA. oak B. elm C. ash\nAnswer: B"),
        ("Lake Baikal", " Answer: Lake Ladoga\nSome swam in Lake Baikal as well."),
    ],
)
def test_what_stands_by_chance_behind_another_answer_does_not_count(answer, behind):
    assert found(answer, behind) is None


_CHOICES = "\nA. Ramesses\nB. Akhenaten\nC. Thutmose\n"
_OF_LABEL = [
    *("The answer is {}.", "The correct option is {}.", "So the correct answer is **({})**."),
    *(
        "Choose {}.",
        "正确答案是{}",
        "答えは{}です",
        "คำตอบคือ {}",
        "الجواب الصحيح هو {}",
        "답은 {}입니다",
    ),
    *("Die richtige Antwort ist {}", "Đáp án đúng là {}", "Answer:\n{}. as before"),
    *("Output: {}\n", "Key = {}", "Key - {}.", "-> {}", "({})", "{}.", "It's {}.", "- Option {}"),
    *(
        "ground_truth: {}",
        '{{"expected": "{}", "n": 5}}',
        "\n{} is right.",
        "({}) is the best one.",
    ),
    *("Key: {}", '"gold": "{}"', "Option {} is correct.", "So choice ({}) is the right one."),
    *("The answer is I think ({}).", "The answer is a matter of dates: {}."),
]


@pytest.mark.parametrize("stated", _OF_LABEL)
def test_of_choices_the_one_whose_label_a_text_states_counts(stated):
    assert found("Akhenaten", _CHOICES + stated.format("B"))
    assert found("Akhenaten", _CHOICES + stated.format("C")) is None


@pytest.mark.parametrize(
    "stated",
    [
        *("Answer: {}", "The correct answer is {}.", "答案是{}", "故选《{}》。"),
        *("ตอบ {}", "Chọn {}.", "Richtig ist {}."),
    ],
)
def test_of_choices_the_one_that_a_sentence_states_in_full_counts(stated):
    assert found("Akhenaten", _CHOICES + stated.format("Akhenaten"))
    assert found("Akhenaten", _CHOICES + stated.format("Thutmose")) is None
    behind = _CHOICES.replace("Thutmose", "III") + stated.format("III")
    assert is_wrong_choice(behind, behind.index("Akh"), behind.index("Akh") + 9)
    assert not is_wrong_choice(behind, behind.rindex("III"), len(behind))


@pytest.mark.parametrize(
    "stated",
    [
        *("The answer is a matter of taste.", "The answer is I think unknown."),
        *("It was Kim and I.", "Grade: D", "- C vitamins", "They are C, D.", "It is vitamin C."),
        *("The answer is C vitamins.", "The answer is C. S. Lewis.", "Choose a pharaoh."),
    ],
)
def test_a_word_is_not_the_label_of_a_choice(stated):
    assert found("Akhenaten", _CHOICES + stated)


@pytest.mark.parametrize(
    "labels",
    [
        *("ABCD", "abcd", "1234", "①②③④", "ⒶⒷⒸⒹ", "甲乙丙丁", "一二三四", "アイウエ", "가나다라"),
        *("ㄱㄴㄷㄹ", "กขคง", "АБВГ", "أبجد", "कखगघ", "ΑΒΓΔ", "אבגד", "ⅠⅡⅢⅣ", "१२३४"),
    ],
)
@pytest.mark.parametrize("stated", ["Answer: {}", "答案：{}。", "คำตอบ: {}", "정답: {}입니다"])
def test_labels_of_all_alphabets(labels, stated):
    names = ("Ramesses", "Akhenaten", "Thutmose", "Tiye")
    choices = "".join(f"\n{label}. {name}" for label, name in zip(labels, names, strict=True))
    for label in labels:
        behind = f"{choices}\n{stated.format(label)}"
        assert (found("Akhenaten", behind) is not None) == (label == labels[1])


@pytest.mark.parametrize(
    ("asked", "behind"),
    [
        ("कितने रुपये का लाभ हुआ?", "390 रुपये"),
        ("उसने कितने किलोमीटर की दूरी तय की?", "390 किलोमीटर"),
        ("รวมระยะทางทั้งหมดกี่ กิโลเมตร", "390 กิโลเมตร"),
        ("1冊120円のノートを買いました。", "390円です。"),
        ("수민이는 책을 35쪽씩 읽었습니다.", "390쪽"),
        ("사과는 모두 몇 개입니까?", "모두 390개입니다."),
        ("梨树有48棵，一共有多少棵树？", "一共390棵。"),
        ("一共有多少棵树？", "390棵"),
    ],
)
def test_a_number_with_a_unit_of_the_question(asked, behind):
    for text, is_answer in ((behind, True), (behind.replace("390", "1390"), False)):
        whole = f"{asked}\n{text}"
        window = Window(whole, len(asked), len(whole), asked)
        assert (short_answer(["390"], window) is not None) == is_answer
    assert not short_answer(["390"], Window(f"{asked}\n390日", len(asked), len(asked) + 5, asked))


@pytest.mark.parametrize(
    ("answer", "behind"),
    [
        ("São Tomé", "Sa\u0303o Tome\u0301"),
        ("São Tomé", "Sao Tome"),
        ("Nystad Treaty", "Nys\u200btad Trea\u00adty"),
        ("Nystad Treaty", "\u200eNystad\u200e\x00Tre\x01aty"),
        ("Nystad Treaty", "𝗡𝘆𝘀𝘁𝗮𝗱 𝗧𝗿𝗲𝗮𝘁𝘆"),
        ("Nystad Treaty", "Nystаd Тreaty"),
        ("1200 ducats", "1\u200b200 ducats"),
        ("한양", "\u1112\u1161\u11ab\u110b\u1163\u11bc"),
        ("ガラス", "カ\u3099ラス"),
        ("دمشق", "ﺩﻣﺸﻖ"),
    ],
)
@pytest.mark.parametrize("stated", ["\n{}.\n", " Answer: {}.", "\nIt was {} there."])
def test_the_same_letters_count_however_they_are_written(answer, behind, stated):
    assert found(answer, stated.format(behind)) == behind.strip("\u200e")


@pytest.mark.parametrize("behind", ["2n", "x2", "2\u2044", "1½"])
def test_superscripts_and_parts_are_no_plain_letters(behind):
    assert found("2ⁿ", f" Answer: {behind}") is None
    assert found("x²", f" Answer: {behind}") is None


def test_labels_in_lines_of_their_own_are_those_of_a_list():
    choices = "\nA.\nRamesses\nB.\nAkhenaten\nC.\nThutmose\nD.\nTiye\n"
    assert found("Akhenaten", choices)
    assert found("Akhenaten", f"{choices}B.\n")
    assert found("Akhenaten", f"{choices}C.\n") is None


def test_a_letter_of_an_alphabet_is_no_label_within_a_word():
    choices = "\nก. Ramesses\nข. Akhenaten"
    assert found("Akhenaten", f"{choices}\nคำตอบคือกาแฟ")
    assert found("Akhenaten", "\nА. Ramesses\nБ. Akhenaten\nОтвет был дан А в начале")
    assert found("세종대왕", " 정답은 세종대왕입니다.")


def test_only_what_begins_within_the_window_counts():
    text = f"{ASKED} It was late. Nystad."
    assert short_answer(["Nystad"], Window(text, len(ASKED), len(text), ASKED))
    assert not short_answer(["Nystad"], Window(text, len(ASKED), len(ASKED) + 9, ASKED))
    beyond = f"{ASKED} 51 replies"  # what is behind the window shows that it is no answer
    assert not short_answer(["51"], Window(beyond, len(ASKED), len(ASKED) + 3, ASKED))
    stated = f"{ASKED} Answer: late spring"
    others = [(len(ASKED) + 9, len(stated))]  # a wrong choice
    assert not short_answer(["late"], Window(stated, len(ASKED), len(stated), ASKED, others))
    others = [(len(ASKED) + 4, text.index("."))]
    assert short_answer(["late"], Window(text, len(ASKED), len(text), ASKED))
    assert not short_answer(["late"], Window(text, len(ASKED), len(text), ASKED, others))


def test_the_label_of_the_next_list_is_no_answer_to_this_one():
    behind = " A. oak B. elm C. ash\nWhat else?\nA. fir B. yew C. box\nAnswer: A"
    assert found("elm", behind) == "elm"
    assert not is_wrong_choice(behind, behind.index("elm"), behind.index("elm") + 3)
    assert is_wrong_choice("A. oak B. elm. Answer: A", 10, 13)
    assert not is_wrong_choice("(1) 125 (2) 150. So 25 + 100 = 125", 12, 15)  # "=" names none
    assert is_wrong_choice("**A.** oak **B.** elm. Answer: A", 18, 21)
    assert not is_wrong_choice("Answer: J. B. Rhine", 14, 19)  # "B." is an initial


_OTHERS = "\n\n3. What else is long? " + "It has many words. " * 50


@pytest.mark.parametrize(
    ("before", "answer", "listed", "is_found"),
    [
        ("1. ", "151", "Answers\n1. 151\n2. 387\n", True),
        ("What?\nQ2) ", "387", "**Answer key:** 1) 151 2) 387 3) 4", True),
        ("Question 3: ", "4.5", "Solutions: 1. 151; 2. 387; 3. 4.5", True),
        ("12. ", "B", "KEY\n11. A 12. B 13. C", True),
        ("01. ", "151", "Answers\n01. 151\n02. 387\n", True),
        ("2、", "12", "参考答案\n1、33\n2、12\n", True),
        ("第2题：", "12", "参考答案\n第1题：33\n第2题：12人\n", True),
        ("2. ", "387", "Answers: 1. 151 ducats 2. 387 ducats 3. 4 ducats", True),
        ("2. ", "387", "Answers\n1. 151\n2. 387 ducats are 43 for each.\n", False),
        ("２．", "12", "参考答案\n１．33\n２．12\n", True),
        ("2. Mr. Nystad asks: ", "387", "Answers\n1. 151\n2. 387", True),
        ("Q1. ", "151", "Answers\n\nA1. 151\nA2. 387", True),
        ("2) ", "387", "Answers\n\n| No. | Answer |\n|---|---|\n| 1 | 151 |\n| 2 | 387 |", True),
        ("12. ", "387", "Answers\n11\t151\n12\t387\n", True),
        ("12. ", "387", "Answers\n11 12 387\n12 151", False),
        ("2. ", "151", "The answers are many.\n2. 151", False),
        ("1. ", "151", "Answers\n2. 151\n1. 387\n", False),
        ("1. ", "151", "Answers\n11. 151\n1. 387\n", False),
        ("1. ", "B", "Answers\n1. A 2. B", False),
        ("1. ", "5", "Answers\n1. 5.5\n2. 5", False),
        ("In 1. ", "151", "Solutions\n1. 1515", False),
        ("", "151", "Answers\n1. 151\n", False),
    ],
)
def test_a_list_of_answers_has_the_number_of_the_question(before, answer, listed, is_found):
    text, first = f"{before}{ASKED}{_OTHERS}\n\n{listed}", len(before) + len(ASKED)
    place = short_answer([answer], Window(text, first, first + 40, ASKED))
    assert (place and text[slice(*place)]) == (answer if is_found else None)


def test_a_longer_formula_has_its_signs_in_order():
    formula = "the roots of x^2 + 5x - 6 = 0 are those of (x + 6)(x - 1) = 0"
    assert has_formula([formula, "6"], f"It says that {formula}, as before.")
    assert not has_formula([formula], formula.replace("5x - 6", "5x + 6"))
    assert has_formula(["6"], "no formula")


def test_an_answer_is_whole_in_a_text_with_the_same_signs():
    assert is_whole(["(a-b)(a+c)"], "it is (a - b)(a + c)")
    assert not is_whole(["(a-b)(a+c)"], "it is (a + b)(a - c)")


_TOKENS = st.sampled_from(["Nystad", "treaty", "the", "240", "2400", "1,240", "240.0", "240.5"])


@given(st.lists(_TOKENS, min_size=1, max_size=3), st.lists(_TOKENS, max_size=9))
def test_whole_answers_are_those_of_the_oracle(answer, text):
    expected = oracle.is_whole_answer(answer, text)
    assert is_whole([" ".join(answer)], " ".join(text)) == expected


@pytest.mark.parametrize("behind", [" answer is{}x", "{}x yes", " 18{}x", " C{}(C)"])
@pytest.mark.parametrize("sign", [" ", "\n", "(", '"', "\\"])
@pytest.mark.parametrize("answer", ["18", "yes", "C"])
def test_a_long_run_of_signs_takes_little_time(answer, behind, sign):
    start = process_time()
    found(answer, behind.format(sign * 50_000))
    assert process_time() - start < 3
