"""`aligned` from end to end: a small benchmark, texts, and what is said of each."""

import textwrap
import tracemalloc
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import decon_core as dc
from decon_core.alignment.answer_places import place_of_answer, places_of
from decon_core.alignment.nominations import (
    Item,
    Nomination,
    most_likely,
    sizes_of_own_answers,
)
from decon_core.config.policy import Policy
from decon_core.decisions.judging import missing
from decon_core.decisions.match_reader import MatchReader
from decon_core.library import index as library_index
from decon_core.library.texts import blocks_of
from decon_core.scan.coverage import scan_fingerprint
from decon_core.scan.scanner import scan_packs
from decon_core.text.markup import stripped

POLICY = {"detectors": ["aligned"]}

TRAIN = (
    "A train has 12 cars with 48 seats each, and in every car 5 of the seats are broken. How many "
    "passengers of the train can sit?"
)
RIVER = "Which river of Siberia flows past the city of Krasnoyarsk and ends in the Kara Sea?"
SHORT = "Who discovered the satellite Amalthea?"
ANIMALS = ["lynx", "otter", "heron", "newt", "crane", "adder"]
FAMILY = [
    f"Which of these four statements about the {animal} of the northern forests is true according "
    f"to the field report?"
    for animal in ANIMALS
]
PASSAGE = (
    "The keeper of the lighthouse wrote down each ship that passed between dusk and dawn, with its "
    "flag, its course and the state of the sea, for thirty-one years without a single gap."
)
ITEMS = {
    TRAIN: "516 passengers, as 43 seats of each car are whole",
    RIVER: "the Yenisei, the longest of the three great streams",
    SHORT: "Edward Emerson Barnard, in 1892 at the Lick Observatory",
    "A baker sells muffins for 3 dollars and loaves for 4 dollars. On Monday she sold twice as "
    "many muffins as loaves and took 80 dollars. How many loaves did she sell?": "8 loaves",
    "Explain why the pressure of a gas in a closed vessel rises when its temperature rises.": (
        "its molecules hit the walls faster and more often"
    ),
    "Anna gave Bob half of her stamps, and Bob gave Clara a third of what he then had. Who has "
    "most of the stamps now?": "Anna still has the most",
    "In which century did the glass makers of Murano move to their island?": (
        "in the thirteenth, for fear of fires in Venice"
    ),
    "What is the area of a triangle whose sides are 13, 14 and 15 centimetres long?": (
        "84 square centimetres, by Heron's formula"
    ),
    "Name the enzyme that unwinds the double helix during replication of bacteria.": (
        "helicase, also called DnaB"
    ),
    "如果一个正方形的周长是二十厘米， 四条边都相等， 那么它的面积， 也就是边长的平方， 是多少？": (
        "二十五平方厘米"
    ),
    "What kept the lighthouse keeper awake?": "the ships that passed by in the night",
    **{
        question: f"the {animal} sleeps by day"
        for question, animal in zip(FAMILY, ANIMALS, strict=False)
    },
}
QUESTIONS = [*ITEMS]
FILLER = "Later the committee heard a long report on drains and on the state of the roofs. "


def row(question):
    passage = PASSAGE if "lighthouse" in question else None
    return {"question": question, "answer": ITEMS[question], "passage": passage}


@pytest.fixture(scope="module")
def index():
    return dc.build_index([row(question) for question in QUESTIONS], policy=POLICY)


def told(index, text):
    """What is said of each item of which more than a template was found."""
    found = []
    for one in index.check(text):
        if one.kind == "template":
            assert not (one.is_leak)
            assert not (one.is_no_answer)
            assert not (one.needs_review)
            continue
        decision = "leak" if one.is_leak else "no answer" if one.is_no_answer else None
        decision = decision or ("review" if one.needs_review else "no leak")
        found.append((QUESTIONS.index(index.record(one)["question"]), one.kind, decision))
    return found


def document(text):
    return f"{FILLER * 3}{text} {FILLER * 3}"


def with_answer(question, text=None):
    return document(f"{text or question} {ITEMS[question]}.")


@pytest.mark.parametrize("question", QUESTIONS)
def test_an_item_with_its_answer_is_a_leak_and_alone_is_no_answer(index, question):
    number = QUESTIONS.index(question)
    leak, no_answer = [(number, "verbatim", "leak")], [(number, "verbatim", "no answer")]
    has_passage = PASSAGE in (row(question)["passage"] or "")
    if has_passage:
        question = f"{PASSAGE} {question}"
    assert told(index, document(f"{question} {ITEMS[QUESTIONS[number]]}.")) == leak
    if len(QUESTIONS[number].split()) >= 8 or not question.isascii() or has_passage:
        assert told(index, document(question)) == no_answer
    else:
        assert told(index, document(question)) == [(number, "verbatim", "no leak")]


@pytest.mark.parametrize("question", [TRAIN, RIVER])
@pytest.mark.parametrize(
    ("form", "kind", "decision"),
    [
        (str.upper, "verbatim", "leak"),
        (lambda text: text.replace(" ", "\n"), "verbatim", "leak"),
        (lambda text: f"<p>{text.replace(' of ', ' <i>of</i> ')}</p>", "verbatim", "leak"),
        (lambda text: text.replace(" of ", " with "), "edited", "leak"),
        (lambda text: text.replace(" and ", " and then "), "edited", "leak"),
        (lambda text: text.replace(" and", ""), "edited", "leak"),
    ],
)
def test_a_copy_and_an_edited_copy_are_leaks(index, question, form, kind, decision):
    number = QUESTIONS.index(question)
    assert told(index, with_answer(question, form(question))) == [(number, kind, decision)]


@pytest.mark.parametrize("reset", ["\x1b[0m", "\x1b[m\x1b[K", "\\u001b[0m", "^[[0m"])
@pytest.mark.parametrize("question", [TRAIN, RIVER])
def test_colors_of_a_terminal_hide_no_item_and_no_number_of_it(index, question, reset):
    color = reset.replace("[0m", "[38;5;231m").replace("[m", "[01;31m")

    def colored(text):
        words = (f"{color}{word[:2]}{reset}{color}{word[2:]}{reset}" for word in text.split())
        return " ".join(words)

    text = document(colored(f"{question} {ITEMS[question]}."))
    (one,) = index.check(text)
    assert (one.kind, one.is_leak) == ("verbatim", True)
    assert stripped(text[slice(*one.question_span)]) == question[:-1]
    assert stripped(text[slice(*one.answer_span)]) == ITEMS[question]


def test_an_answer_far_away_is_not_its_answer(index):
    far = document(f"{TRAIN} {FILLER * 25} {ITEMS[TRAIN]}.")
    assert told(index, far) == [(0, "verbatim", "no answer")]


@pytest.mark.parametrize(
    ("stated", "is_leak"),
    [
        ("#### 516", True),
        ("Thus $\\boxed{516}$.", True),
        ("**Answer:** 516 passengers", True),
        ("The answer is therefore 516.", True),
        ("Die Antwort ist 516.", True),
        ("so 12 * 43 = 516 passengers", True),
        ("The ferry carried 516 goats.", False),
        ("The answer is 5160.", False),
        ("The answer is 516.5.", False),
        ("The answer is 516/7.", False),
        ("The answer is not 516.", False),
        ("516 + 9 = 525, and x != 516, x >= 516", False),
        ("x = 516 + 9", False),
        ("The answer is 43.", False),
        ("**Answer: 516** because they are broken", True),
        ("Answer: -516", False),
        ("The answer is 516√3.", False),
        ("答案：516", True),
        ("答案是516人。", True),
        ("【答案】５１６", True),
        ("答：这列火车可以坐516人。", True),
        ("答案不是516。", False),
        ("从600人中选516人。", False),
        ("答案是5160。", False),
        ("정답은 516", True),
        ("Ответ: 516", True),
        ("Đáp án: 516", True),
        ("12＊43＝516", True),
        ("정답은 516입니다.", True),
        ("정답은 516만", False),
        ("Answer: 43\nNext question: how many?\nAnswer: 516", False),
        ("#### 43\nNext question: how many?\n#### 516", False),
        ("The answer is 43 seats. Next question: ... The answer is 516.", False),
        ("The answer needs 3 steps: ... Answer: 516.00. So the answer is 516.", True),
        ("Answer: 12 cars with 43 seats. The answer is 516.", True),
        ("The answer cannot be 516.", False),
        ("The answer isn't 516.", False),
        ("The answer is never 516.", False),
        ("The wrong answer is 516.", False),
        ("Answer 516 is wrong.", False),
        ("The answer 516 is not correct.", False),
        ("The answer is 516 not 7.", True),
        ("Answer: 516\nIncorrect answers were 7 and 9.", True),
        ("答案：516\n错误的是7", True),
        ("Die Antwort 516 ist falsch.", False),
        ("La réponse 516 n'est pas bonne.", False),
        ("La respuesta 516 no es correcta.", False),
        ("答案516是错误的。", False),
        ("答えは516ではない。", False),
        ("답은 516이 아닙니다.", False),
        ("उत्तर 516 नहीं है", False),
        ("उत्तर 516 है", True),
        ("width=516", False),
        ('<img width="516">', False),
        ("x=516 and AB=516", True),
    ],
)
def test_a_short_answer_behind_a_solution_counts_if_it_is_stated(stated, is_leak):
    index = dc.build_index([{"question": TRAIN, "answer": "516"}], policy=POLICY)
    text = document(f"{TRAIN} {FILLER * 9} {stated}")
    (one,) = index.check(text)
    assert (one.is_leak, one.is_no_answer) == (is_leak, not is_leak)
    shown = one.answer_span and text[slice(*one.answer_span)]
    assert shown in (("516", "516.00", "５１６") if is_leak else (None,))
    assert not index.check(document(f"{FILLER * 9} {stated}"))


@pytest.mark.parametrize(
    ("answers", "stated", "is_leak"),
    [
        (["(B) 3,516"], "Answer: 3516", True),
        (
            ["each car has 43 whole seats, so the train has 12 * 43", "$\\frac{1}{2}$"],
            "= \\frac12",
            False,
        ),
        (
            ["each car has 43 whole seats, so the train has 12 * 43", "$\\frac{1}{2}$"],
            "= \\frac{1}{2}",
            True,
        ),
        (["C"], "正确答案：C", True),
        (["C"], "故选C。", True),
        (["(C)"], "Answer: C", True),
        (["A"], "The answer is a riddle.", False),
        (["B"], "Answer: C\n\nWhat is the highest hill?\nAnswer: B", False),
        (["C"], "Answer choices:\nA. oak\nB. elm\nC. ash\nD. fir\nAnswer: C", True),
        (["A"], "Answer choices:\nA. oak\nB. elm\nC. ash\nD. fir\nAnswer: C", False),
        (["C"], "Select the best answer:\nC. ash", False),
        (["C"], "Select the best answer: A) oak B) elm C) ash", False),
        (["C"], "Answer: C. Lake Baikal", True),
        (["C"], "thus x = C", False),
        (["J"], "Answer: J", True),
        (["I"], "My answer is: I think so.", False),
        (["A"], "Answer: A train is longer.", False),
        (["Lake Baikal"], "Answer: Lake Ladoga\nNext question\nAnswer: Lake Baikal", False),
        (["Lake Baikal"], "Answer: Let's think.\nThe answer is Lake Baikal.", True),
        (["东京"], "答案是东京。", True),
        (["东京"], "答案是东京塔。", False),
        (["Lake Baikal"], "Answer: Lake Baikal", True),
        (["Lake Baikal"], "Answer: Lake Baikals", False),
    ],
)
def test_each_right_answer_of_an_item_may_be_the_stated_one(answers, stated, is_leak):
    rows = [
        {"eval_key": "b", "eval_instance_index": 0, "question": TRAIN, "answer": answer}
        for answer in answers
    ]
    index = dc.build_index(rows, policy=POLICY)
    (one,) = index.check(document(f"{TRAIN} {FILLER * 9} {stated}"))
    assert (one.is_leak, one.is_no_answer) == (is_leak, not is_leak)


@pytest.mark.parametrize(
    ("stated", "is_leak"),
    [
        *((f"{statement} {{}}.", True) for statement in ("Answer:", "So the answer is", "Ans: C.")),
        *((f"Answers\n11. None\n12. {letter}{{}}\n13. 43", True) for letter in ("", "(C) ")),
        *((f"{before}{{}}.", False) for before in ("", "The answer is not ", "Answers\n13. ")),
        ("Answer: {} is wrong.", False),
        (f"Answer: {ITEMS[TRAIN].replace('43', '41')}", False),
    ],
)
def test_a_longer_answer_far_from_its_question_counts_if_it_is_stated(index, stated, is_leak):
    text = document(f"\n12. {TRAIN}\n{FILLER * 9}\n{stated.format(ITEMS[TRAIN])}")
    assert told(index, text) == [(0, "verbatim", "leak" if is_leak else "no answer")]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (TRAIN.replace("12", "9").replace("48", "52").replace("5 of", "7 of"), "variant"),
        (RIVER.replace("Siberia", "Lapland").replace("Krasnoyarsk", "Kemi"), "variant"),
        (TRAIN[: TRAIN.index(" of the seats")], "part"),
    ],
)
def test_other_numbers_or_names_and_parts_are_candidates_even_with_the_answer(index, text, kind):
    number = 0 if "train" in text else 1
    assert told(index, document(text)) == [(number, kind, "review")]
    assert told(index, with_answer(QUESTIONS[number], text)) == [(number, kind, "review")]


def test_beside_its_own_long_answer_a_question_with_another_number_is_an_edited_copy():
    asked = "The postman changed his route after the swans had attacked him three times in a week."
    told = (
        "Der Postbote nahm einen anderen Weg, nachdem ihn die Schwäne in einer Woche dreimal "
        "angegriffen hatten"
    )
    index = dc.build_index([{"question": asked, "answer": told}], policy=POLICY)
    changed = asked.replace("three", "four")
    (alone,) = index.check(document(changed))
    (beside,) = index.check(document(f"{changed} {told}."))
    assert (alone.kind, alone.needs_review) == ("variant", True)
    assert (beside.kind, beside.is_leak) == ("edited", True)


ROUTE = "Why did the postman change his route after the swans had attacked him in the spring?"
REASON = (
    "Because the water had risen so far that the only dry path to the last three houses led past "
    "the reeds in which they were breeding"
)


@pytest.mark.parametrize(
    ("answer", "passage", "counts"),
    [
        (REASON, None, True),
        ("the swans were breeding", None, False),  # too short to be no coincidence
        (REASON, f"{PASSAGE} {REASON}.", False),  # it may be that of the passage
    ],
    ids=["long", "short", "with a passage"],
)
def test_only_a_long_answer_also_counts_before_its_question(answer, passage, counts):
    row = {"question": ROUTE, "answer": answer, "passage": passage}
    text = document(f"{answer}. {ROUTE}")
    (one,) = dc.build_index([row], policy=POLICY).check(text)
    assert (one.is_leak, one.is_no_answer) == (counts, not counts)
    if counts:
        assert text[slice(*one.answer_span)] == answer


def test_a_passage_in_numbered_lines_is_the_passage_of_its_question(index):
    lines = textwrap.wrap(PASSAGE, 60)
    numbered = "\n".join(f"L{number}: {line}" for number, line in enumerate(lines, 17))
    question = "What kept the lighthouse keeper awake?"
    found = [(QUESTIONS.index(question), "verbatim", "no answer")]
    assert told(index, document(f"{numbered}\n{question}")) == found


@given(words=st.lists(st.sampled_from(REASON.split()), max_size=40), n=st.integers(0, 28))
def test_as_much_of_an_answer_is_found_before_a_question_as_after_it(index_of_route, words, n):
    part = " ".join([*REASON.split()[n:], *words])
    (before,) = index_of_route.check(f"{FILLER}{part}. {ROUTE}")
    (after,) = index_of_route.check(f"{ROUTE} {part}. {FILLER}")
    assert before.answer_overlap == after.answer_overlap


@pytest.fixture(scope="module")
def index_of_route():
    return dc.build_index([{"question": ROUTE, "answer": REASON}], policy=POLICY)


def test_of_a_family_the_planted_one_is_found_and_the_others_are_named_a_template(index):
    kinds = {index.record(one)["question"]: one.kind for one in index.check(document(FAMILY[2]))}
    assert kinds == {one: "verbatim" if one == FAMILY[2] else "template" for one in FAMILY}
    assert told(index, document(FAMILY[0].replace("lynx", "beetle"))) == []


@pytest.mark.parametrize(
    "text",
    [
        FILLER * 9,
        "The train has cars with seats, and some seats are broken. The passengers can sit.",
        "The Yenisei is a river of Siberia. It flows to the north, past several cities.",
        f"It is known to be {ITEMS[TRAIN]}.",
        PASSAGE,
        "",
    ],
)
def test_natural_text_answers_and_passages_alone_are_nothing(index, text):
    assert told(index, text) == []


def test_places_are_those_of_the_text(index):
    text = with_answer(TRAIN)
    (one,) = index.check(text)
    assert text[slice(*one.question_span)] == TRAIN[:-1]
    assert text[slice(*one.answer_span)] == ITEMS[TRAIN]
    twice = f"{text} {FILLER * 9} {document(RIVER)} {text}"
    spans = [twice[slice(*one.question_span)] for one in index.check(twice)]
    assert sorted(spans) == sorted([TRAIN[:-1], TRAIN[:-1], RIVER[:-1]])


def test_the_place_of_an_answer_ends_with_it_however_far_its_numbers_occur_again():
    asked = "How many eggs does the shop sell in a week if each of its clerks sells a dozen a day?"
    answer = "There are 2 clerks, so they sell 2 * 12 = 24 eggs a day and 24 * 7 = 168.\n#### 168"
    index = dc.build_index([{"question": asked, "answer": answer}], policy=POLICY)
    notes = "Release notes: the libraries of version 2.95 or 2 * 12 are no longer needed by anyone."
    for text in (f"{asked}\n{answer}\n\n{notes}", f"{answer}\n{asked}\n{answer} {notes} {answer}"):
        (one,) = index.check(document(text))
        assert document(text)[slice(*one.answer_span)] == answer


@given(
    before=st.lists(st.sampled_from([0, 1, 2, 3, 99]), max_size=12),
    behind=st.lists(st.sampled_from([0, 1, 2, 10, 11, 12, 99]), max_size=12),
    far=st.lists(st.sampled_from([3, 4, 5, 6, 99]), max_size=20),
)
def test_a_whole_answer_is_found_wherever_parts_of_it_occur_as_well(before, behind, far):
    answer = np.array([*range(13), *range(4)])
    noise = [99] * 3
    tokens = [*before, *noise, *answer.tolist(), *noise, *behind, *noise, *far]
    start = len(before) + len(noise)
    assert place_of_answer(answer, np.array(tokens), 3) == (start, start + answer.size)


def test_of_an_edited_answer_what_was_inserted_belongs_to_its_place():
    answer = np.arange(20)
    text = np.array([*range(8), 50, 51, *range(8, 20), *[60] * 30, 3, 4, 5])
    assert place_of_answer(answer, text, 3) == (0, 22)


def test_a_long_answer_is_searched_for_in_little_memory():
    answer = np.arange(12_000)
    edited = np.where(np.arange(12_300) % 5 == 4, 20_000, np.resize(answer, 12_300))
    assert place_of_answer(answer, edited, 3)[0] == 0
    tracemalloc.start()
    assert places_of(answer, np.concatenate([answer, answer])) == [0, 12_000]
    assert places_of(answer[:2], answer[:1]) == []
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 4_000_000


def test_a_number_of_the_question_is_no_answer_behind_it():
    words = [f"{a}{b}" for a in ("ka", "mo", "ti", "lu", "re", "so") for b in ("dan", "vel", "rin")]
    asked = f"{' '.join(words * 2)}, if n = 57 what is the value of n now?"
    edited = f"{' '.join(words)} {' '.join(reversed(words))}, if n = 57 what is the value of n now?"
    index = dc.build_index([{"question": asked, "answer": "57"}], policy=POLICY)
    for text in (asked, edited):
        assert not any(one.is_leak for one in index.check(document(text)))


CHOICES = [
    f"the {word} fell from the tower into the moat" for word in ("bell", "vane", "clock", "flag")
]


@pytest.mark.parametrize(("n_choices", "is_leak"), [(4, True), (1, False)])
def test_the_other_choices_may_stand_between_a_question_and_its_answer(n_choices, is_leak):
    rows = [{"q": TRAIN, "choices": CHOICES[-n_choices:], "answer": n_choices - 1}]
    choices = {"field": "choices", "correct_index": "answer"}
    recipe = {"prompt": "q", "answers": [{"expand_choices": choices}]}
    index = dc.build_index(rows, recipe=recipe, policy=POLICY)
    (found,) = index.check(document(f"{TRAIN} {FILLER * 7} {CHOICES[-1]}."))
    assert (found.is_leak, found.is_no_answer) == (is_leak, not is_leak)


@pytest.mark.parametrize("n_choices", [1, 2])
def test_a_template_is_counted_in_items(n_choices):
    """Of 110 items a template is found as such, however many choices each has."""
    asked = "Which of the following towns lies nearest to the {} lighthouse on the northern coast?"
    rows = [
        {
            "q": asked.format(f"lamp{n}"),
            "choices": [f"town {n}", f"village {n}"][:n_choices],
            "answer": 0,
        }
        for n in range(110)
    ]
    rows += [
        {
            "q": f"How many of the {n} barrels of herring were sold on the market in May?",
            "choices": ["no", "yes"][:n_choices],
            "answer": 0,
        }
        for n in range(300)
    ]
    choices = {"field": "choices", "correct_index": "answer"}
    recipe = {"prompt": "q", "answers": [{"expand_choices": choices}]}
    index = dc.build_index(rows, recipe=recipe, policy=POLICY)
    assert not index.check(document(asked.format("old")))


MILL = (
    "The mill at Arden stood on six oak posts above the weir. Its owner, a deaf widow, ground rye "
    "for nine villages and took one sack in twenty. When the flood of the red autumn tore the "
    "wheel away, the villages carried a new one up the valley on their shoulders and asked for "
    "nothing. After the flood the widow ground their rye for a year without taking a sack."
)
OF_MILL = {
    "What did the owner of the mill at Arden take from the villages?": "one sack in twenty",
    "What is the text mainly about?": "help that was given and returned",
    "Which of the following is true?": "the villages made a new wheel",
    "If the flood had left the wheel where it was, which of the following is true?": (
        "the widow would have gone on taking her share"
    ),
    "After which flood did the widow grind their rye for a year without any pay?": "the second",
}
BOAT = (
    "Two sisters of Loomis sold their father's boat to a circus, which painted it green and sailed "
    "it through the streets on a cart. At every show a tame pelican stood in the bow and caught "
    "the fish that children threw, until one spring it flew off to the marshes with a wild one."
)
OF_BOAT = {"What is the text mainly about?": "a boat that ended on a cart"}


@pytest.fixture(scope="module")
def reading():
    rows = [
        {"question": question, "answer": answer, "passage": passage}
        for passage, asked in ((MILL, OF_MILL), (BOAT, OF_BOAT))
        for question, answer in asked.items()
    ]
    return dc.build_index(rows, policy=POLICY)


def told_of(index, text):
    """What is said of each item, by its passage and the number of its question."""
    passages = {MILL: [*OF_MILL], BOAT: [*OF_BOAT]}
    found = set()
    for one in index.check(text):
        record = index.record(one)
        number = passages[record["passage"]].index(record["question"])
        decision = "leak" if one.is_leak else "no answer" if one.is_no_answer else "review"
        if one.kind != "template":
            found.add(("mill" if record["passage"] == MILL else "boat", number, decision))
    return sorted(found)


def page(passage, asked, numbers):
    several = [*asked.items()]
    tasks = [f"{several[at][0]}\nAnswer: {several[at][1]}." for at in numbers]
    return "\n\n".join([passage, *(f"{at}. {task}" for at, task in enumerate(tasks, 1))])


@pytest.mark.parametrize("numbers", [[0, 1, 2], [1, 2], [2], [3], [0, 3, 1], [4, 2]])
def test_all_questions_of_a_page_are_about_its_passage(reading, numbers):
    """Other questions on it, which have words of it, may be between it and a question."""
    expected = [("mill", number, "leak") for number in sorted(numbers)]
    assert told_of(reading, document(page(MILL, OF_MILL, numbers))) == expected


@pytest.mark.parametrize("order", ["{0} {1}", "{1} {0}"])
def test_a_passage_far_from_a_question_counts_beside_the_answer(reading, order):
    question, answer = [*OF_MILL.items()][2]
    parts = MILL, f"{FILLER * 150} {question} Answer: {answer}. {FILLER * 150}"
    assert told_of(reading, order.format(*parts)) == [("mill", 2, "leak")]
    parts = MILL, f"{FILLER * 150} {question} {FILLER * 150}"
    assert told_of(reading, order.format(*parts)) == []
    parts = MILL, f"{FILLER * 20} {question} {FILLER * 20}"
    assert told_of(reading, order.format(*parts)) == [("mill", 2, "no answer")]


def test_of_two_passages_with_the_same_question_it_is_about_the_nearest(reading):
    mill, boat = page(MILL, OF_MILL, [0]), page(BOAT, OF_BOAT, [0])
    expected = [("boat", 0, "leak"), ("mill", 0, "leak")]
    assert told_of(reading, document(f"{mill}\n\n{boat}")) == expected
    assert told_of(reading, document(f"{boat}\n\n{mill}")) == expected


def test_a_whole_question_without_its_passage_is_compared_before_weak_ones_with_theirs():
    def nomination(number, score, passage):
        items = [Item(number, False, True, 0.0, number)]
        return Nomination(0, 0, number, 0, 0, 20, items, score, passage, (0, 9), False)

    weak = [nomination(number, 0.13, 1.0) for number in range(8)]
    whole = [nomination(number, 1.0, 0.0) for number in range(8, 17)]
    both = nomination(17, 0.9, 1.0)
    kept = most_likely([*weak, whole[0]])
    assert {one.question for one in kept} == {8, *range(7)}
    assert both in most_likely([*whole, both])


@pytest.mark.parametrize("text", [MILL, f"{FILLER}\n{MILL}\n\n{MILL}", MILL.replace("rye", "oats")])
def test_words_of_a_passage_are_none_of_its_questions(reading, text):
    assert told_of(reading, document(text)) == []


@pytest.mark.parametrize("question", ["What was in the chest?", "What did he do then?"])
def test_a_short_question_behind_its_passage_is_no_answer_without_the_answer(question):
    """As of reading comprehension: the question alone says too little."""
    index = dc.build_index(
        [{"question": question, "answer": "wool", "passage": PASSAGE}], policy=POLICY
    )
    (found,) = index.check(text := document(f"This is what we read there: {PASSAGE}\n\n{question}"))
    assert (found.kind, found.is_leak, found.is_no_answer) == ("verbatim", False, True)
    assert found.passage_overlap > 0.9
    # The token before the question is not compared, as in the published rule.
    assert text[slice(*found.passage_span)] == PASSAGE.removesuffix(" gap.")
    for alone in (document(question), document(f"{PASSAGE[: len(PASSAGE) // 3]} {question}")):
        assert not any(one.is_no_answer or one.passage_span for one in index.check(alone))


def test_the_id_of_a_matched_text_does_not_depend_on_its_passage():
    index = dc.build_index(
        [{"question": TRAIN, "answer": "576", "passage": PASSAGE}], policy=POLICY
    )
    texts = [document(f"{before} {TRAIN} 576.") for before in ("", PASSAGE)]
    assert len({one.text_id for text in texts for one in index.check(text)}) == 1


def test_what_cannot_be_found_is_named():
    frequent = "such as this and that and all of those that there are in them, and so on and so on"
    items = [
        (TRAIN, None),
        ("What is it for and what is it to be?", frequent),
        ("Why?", None),
        ("Who discovered the satellite Amalthea?", "Edward Emerson Barnard"),
        ("Who discovered the satellite Amalthea?", None),
    ]
    rows = [{"question": question, "answer": answer} for question, answer in items]
    policy = {**POLICY, "eval_min_token_length": 4}
    with pytest.warns(UserWarning, match="no detector can find 2 of 5 items"):
        index = dc.build_index(rows, policy=policy)
    reasons = {one["instance_index"]: one["reason"] for one in index.invisible().to_pylist()}
    assert reasons == {4: "too little evidence", 2: "too few tokens"}
    said = items[1][0]
    assert [one.is_leak for one in index.check(document(f"{said} {frequent}"))] == [True]
    assert not [*index.check(document(said))]


def test_a_wrong_choice_beside_the_question_is_not_its_answer():
    item = {"q": RIVER, "right": ITEMS[RIVER], "wrong": "the Lena, far to the east of the lake"}
    answers = [{"field": name, "is_correct": name == "right"} for name in ("right", "wrong")]
    recipe = {"prompt": "q", "answers": answers}
    other = {"q": TRAIN, "right": ITEMS[TRAIN], "wrong": "no more than twelve of them"}
    index = dc.build_index([item, other], policy=POLICY, recipe=recipe)
    right, wrong = (
        [*index.check(document(f"{RIVER} {item[name]}."))] for name in ("right", "wrong")
    )
    assert [(one.is_leak, one.is_no_answer) for one in right] == [(True, False)]
    assert [(one.is_leak, one.is_no_answer) for one in wrong] == [(False, True)]


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("$f(x)=(x-a)(x-b)$", "$f(x)=(x+a)(x+b)$"),
        ("(a-b)(a+c)", "(a+b)(a-c)"),
        ("(B)III only", "(A)I and III only"),
        (
            "the roots of $x^2 + 5x - 6 = 0$ and of no other equation",
            "the roots of $x^2 - 5x + 6 = 0$ and of no other equation",
        ),
        (
            "the Yenisei, the longest of the three great streams of the country",
            "the Lena, the longest of the three great streams of the country",
        ),
    ],
)
def test_a_wrong_choice_with_most_words_of_the_right_one_is_not_its_answer(right, wrong):
    rows = [
        {
            "eval_key": "b",
            "eval_instance_index": 0,
            "question": RIVER,
            "answer": answer,
            "is_correct": answer == right,
        }
        for answer in (right, wrong)
    ]
    index = dc.build_index([*rows, {"question": TRAIN, "answer": "516"}], policy=POLICY)
    listed = f"{RIVER}\nA. {wrong[3 * (wrong[0] == '(' and wrong[2] == ')') :]}\nB. {right}\n"
    texts = (f"{RIVER}\n{right}", f"{RIVER}\n{wrong}", f"{listed}Answer: B", f"{listed}Answer: A")
    outcomes = [one.outcome for text in texts for one in index.check(document(text))]
    assert outcomes == ["leak", "no answer", "leak", "no answer"]


def test_an_answer_that_repeats_its_question_is_the_same_place():
    asked = "What happens to you if you eat watermelon seeds on a hot summer day in the garden?"
    answer = "Nothing happens to you if you eat watermelon seeds on a hot summer day in the garden"
    rows = [{"question": asked, "answer": answer}, {"question": TRAIN, "answer": "516"}]
    found = [*dc.build_index(rows, policy=POLICY).check(document(f"{asked}\nAnswer: {answer}"))]
    assert [(one.kind, one.is_leak) for one in found] == [("verbatim", True)]


@pytest.mark.parametrize("n_copies", [2, 3, 5])
@pytest.mark.parametrize("between", [" ", "\nHere is the solution:\n"])
def test_the_answer_may_be_behind_the_last_of_several_copies(n_copies, between):
    question = " ".join(f"{one}{other}" for one in "bdfghjklmnprst" for other in "aeiouyax")
    answers = ["nine ferries leave the northern harbour whenever the weather permits it", "4711"]
    for answer in answers:
        index = dc.build_index([{"question": question, "answer": answer}], policy=POLICY)
        copies = between.join([question] * n_copies)
        assert [one.outcome for one in index.check(document(copies))] == ["no answer"]
        text = document(f"{copies} {answer}.")
        (found,) = index.check(text)
        assert (found.outcome, found.kind) == ("leak", "verbatim")
        assert text[slice(*found.answer_span)].startswith(answer)
        assert found.question_span[0] >= text.rindex(question)


@pytest.mark.parametrize("n_words", [0, 12, 30, 60, 200])
def test_a_whole_question_with_text_inserted_in_it_is_a_copy_beside_its_answer(index, n_words):
    """Without its answer it needs review if much was inserted."""
    inserted = " ".join((FILLER * 20).split()[:n_words])
    text = TRAIN.replace(" and in every", f" {inserted} and in every")
    kind = "edited" if n_words else "verbatim"
    assert told(index, with_answer(TRAIN, text)) == [(0, kind, "leak")]
    alone = [(0, "part", "review")] if n_words else [(0, kind, "no answer")]
    assert told(index, document(text)) == alone


def test_pieces_far_from_each_other_are_parts(index):
    text = TRAIN.replace(" and in every", f" {FILLER * 40} and in every")
    found = told(index, with_answer(TRAIN, text))
    assert found
    assert {decision for _, _, decision in found} == {"review"}


def test_items_with_the_same_question_are_told_apart_by_their_answers():
    rows = [{"question": TRAIN, "answer": ITEMS[question]} for question in (TRAIN, RIVER)]
    index = dc.build_index(rows, policy=POLICY)
    found = index.check(with_answer(TRAIN))
    assert [(one.instance_index, one.is_leak, one.is_no_answer) for one in found] == [
        (0, True, False),
        (1, False, True),
    ]


WEAKENS = "Which of the following, if true, would most seriously weaken the argument above?"
ARGUED = {
    MILL: [
        (
            "The villages had already ordered a wheel of iron from the smith, who took no money "
            "for it before the widow had seen it turn in the weir"
        ),
        "the rye was wet",
        "the widow sold it",
    ],
    BOAT: [
        (
            "Another tame pelican of the same age, which no child ever fed, also flew off to the "
            "marshes in that spring"
        ),
        "the cart was slow and narrow",
        "no child was there that spring",
    ],
    REASON: ["it is known"],
}


@pytest.fixture(scope="module")
def arguments():
    """Items with one question; the choices of the last one are those of others, too."""
    rows = [
        {"q": WEAKENS, "text": passage, "choices": choices, "answer": 0}
        for passage, choices in ARGUED.items()
    ]
    rows.append({"q": RIVER, "text": MILL, "choices": ["the rye was wet", "it is known"]})
    rows[-1]["answer"] = 0
    answers = [{"expand_choices": {"field": "choices", "correct_index": "answer"}}]
    recipe = {"prompt": "q", "passage": "text", "answers": answers}
    return dc.build_index(rows, policy=POLICY, recipe=recipe)


@pytest.mark.parametrize(
    ("behind", "said"),
    [
        ("Think about it and write down your own opinion.", {}),
        ("Answer: it is known.", {}),
        (f"Answer: {ARGUED[MILL][0]}.", {0: "leak"}),
        (f"Answer: {ARGUED[BOAT][0]}.", {1: "leak"}),
        (f"A. {ARGUED[MILL][0]} B. the rye was wet C. the widow sold it", {0: "leak"}),
        (f"A. {ARGUED[BOAT][1]} B. {ARGUED[BOAT][2]} Answer: B", {1: "review"}),
    ],
)
def test_without_its_passage_the_answers_of_a_shared_question_tell_the_item(
    arguments, behind, said
):
    found = arguments.check(document(f"{WEAKENS} {behind}"))
    outcomes = {one.instance_index: one.outcome for one in found if one.outcome != "no leak"}
    assert outcomes == said


def test_an_answer_that_tells_its_passage_counts_no_more_beside_the_passage():
    def support(passage, told):
        items = [Item(0, False, True, 0.0, 0)]
        of = Nomination(0, 0, 0, 0, 0, 20, items, 1.0, passage, (0, 9), is_answered=True)
        return of._replace(told=told).support

    assert support(0.0, 0.9) == 0
    assert support(0.0, 1.2) == support(1.0, 0.0) == support(1.0, 1.2) > support(0.6, 0.0) > 0


@given(st.lists(st.tuples(*[st.integers(0, 3)] * 3), max_size=12))
def test_an_answer_is_its_own_if_no_other_passage_of_the_benchmark_has_it(entries):
    entries = sorted(entries)  # benchmark, answer, passage; answer 3 and passage 0: none
    parts, answers, passages = np.array(entries, np.int64).reshape(-1, 3).T
    sizes = np.array([5, 6, 7, 0])
    grams = SimpleNamespace(entry_answer=answers, entry_passage=passages)
    own = [
        0 if {of[2] for of in entries if of[:2] == (part, answer)} != {passage} else sizes[answer]
        for part, answer, passage in entries
    ]
    assert sizes_of_own_answers(grams, parts, sizes).tolist() == own


def test_an_item_whose_n_grams_are_parted_is_found_once_at_its_place(index):
    parted = TRAIN.replace("each, and in", "each, with much else besides, and much else again, in")
    alone, answered = document(parted), with_answer(TRAIN, parted)
    assert told(index, f"{alone} {alone}") == [(0, "edited", "no answer")] * 2
    assert told(index, answered) == [(0, "edited", "leak")]


@pytest.mark.parametrize("n_between", [0, 40, 60])
def test_of_parted_n_grams_the_part_near_the_right_answer_counts(n_between):
    parted = TRAIN.replace("each, and in", "each, with much else besides, and much else again, in")
    item = {"q": TRAIN, "right": ITEMS[TRAIN], "wrong": "no more than twelve of them"}
    other = {"q": RIVER, "right": ITEMS[RIVER], "wrong": "the Lena, far to the east of the lake"}
    answers = [{"field": name, "is_correct": name == "right"} for name in ("right", "wrong")]
    recipe = {"prompt": "q", "answers": answers}
    index = dc.build_index([item, other], policy=POLICY, recipe=recipe)
    between = " ".join(["besides"] * n_between)
    for question in (TRAIN, parted):
        found = index.check(document(f"{question} {item['wrong']}. {between} {item['right']}."))
        assert [one.is_leak for one in found] == [True]


def test_a_text_without_spaces_is_read_no_further_than_needed(index):
    beside = "x" * 100_000
    assert told(index, f"{beside} {TRAIN} {ITEMS[TRAIN]}{beside}") == [(0, "verbatim", "leak")]


def test_an_item_without_an_answer_is_a_leak_by_its_question():
    others = [row(question) for question in QUESTIONS if question != TRAIN]
    for beside in ([{"question": RIVER}], others):
        (one,) = dc.build_index([{"question": TRAIN}, *beside], policy=POLICY).check(
            document(TRAIN)
        )
        assert one.is_leak


def test_a_benchmark_of_one_item_is_found():
    index = dc.build_index([{"question": TRAIN}], policy=POLICY)
    assert [one.is_leak for one in index.check(document(TRAIN.replace("cars", "coaches")))] == [
        True
    ]


@pytest.mark.parametrize("block_bytes", [1, 400, 1 << 20])
def test_the_result_depends_neither_on_batches_nor_on_blocks(index, monkeypatch, block_bytes):
    texts = [with_answer(TRAIN), FILLER, document(FAMILY[1]), document(RIVER), "", document(TRAIN)]
    alone = [[*index.check(text)] for text in texts]
    monkeypatch.setattr(library_index, "blocks_of", partial(blocks_of, block_bytes=block_bytes))
    for threads in (1, 2):
        assert [[*found] for found in index.check_all(texts, threads=threads)] == alone


def test_benchmarks_do_not_influence_each_other():
    """Of what is said of an item; all benchmarks share the frequencies of n-grams."""
    rows = [
        *({**row(one), "benchmark": "a"} for one in QUESTIONS[:4]),
        *({**row(one), "benchmark": "b"} for one in (TRAIN, *FAMILY)),
    ]
    index = dc.build_index(rows, policy=POLICY)
    found = [(one.benchmark, one.kind, one.is_leak) for one in index.check(with_answer(TRAIN))]
    assert sorted(found) == [("a", "verbatim", True), ("b", "verbatim", True)]


def test_thresholds_of_a_benchmark_apply_without_another_scan(bench):
    edited = TRAIN.replace("broken", "missing").replace("can sit", "may travel")
    bench.policy = Policy(detectors=("aligned",))
    item = TRAIN, ITEMS[TRAIN], None
    versions = bench.prepare({"strict": [item], "usual": [item]})
    pack = bench.pack({"a.jsonl": [with_answer(TRAIN, edited)]})
    scan_packs(bench.store, [pack], versions, bench.policy)
    (shard,) = pack.shards
    strict = replace(bench.policy, benchmark={"strict": {"aligned_threshold": 0.99}})
    assert scan_fingerprint(bench.store, strict) == bench.scan

    def leaks(policy):
        reader = MatchReader(bench.store, tuple(versions), policy, bench.scan)
        entries = reader.entries(shard, versions, source="web").to_pylist()
        assert {one["kind"] for one in entries} == {"edited"}
        return {one["benchmark"] for one in entries if one["is_contaminated"]}

    assert leaks(bench.policy) == {"strict", "usual"}
    assert leaks(strict) == {"usual"}


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ({}, "review"),
        ({"leak": ("verbatim", "edited", "variant"), "review": ()}, "leak"),
        ({"review": ()}, "no leak"),
        ({"benchmark": {"quiz": {"leak": ("variant",), "review": ("edited",)}}}, "leak"),
    ],
)
def test_the_policy_says_what_a_kind_is_without_another_scan(bench, rule, said):
    changed = TRAIN.replace("12", "19").replace("48", "75").replace("5 of", "8 of")
    bench.policy = Policy(detectors=("aligned",))
    versions = bench.prepare({"quiz": [(TRAIN, ITEMS[TRAIN], None)]})
    pack = bench.pack({"a.jsonl": [document(f"{changed} {ITEMS[RIVER]}")]})
    scan_packs(bench.store, [pack], versions, bench.policy)
    policy = replace(bench.policy, **rule)
    assert scan_fingerprint(bench.store, policy) == bench.scan
    reader = MatchReader(bench.store, tuple(versions), policy, bench.scan)
    (entry,) = reader.entries(pack.shards[0], versions, source="web").to_pylist()
    decisions = {"leak": "is_contaminated", "review": "needs_review"}
    decided = [name for name, column in decisions.items() if entry[column]]
    assert (entry["kind"], decided) == ("variant", [said] if said in decisions else [])
    (why,) = missing(entry, Policy(), {"answer": None})
    assert why == "numbers, names or operators in the question were replaced"


def test_a_wrong_choice_is_named_as_what_a_copy_lacks():
    entry = {"detector": "aligned", "kind": "verbatim", "is_by_score": False}
    entry |= {"score": 1.0, "base_score": 1.0, "question_tokens": 20, "answer_overlap": 1.0}
    record = {"answer": "the Lena"}
    assert [*missing({**entry, "is_correct": False}, Policy(), record)] == [
        "the answer that was found is a wrong choice"
    ]
    assert [*missing({**entry, "is_correct": True, "answer_overlap": 0.0}, Policy(), record)] == [
        "answer not found"
    ]


def test_a_plant_of_a_template_names_one_item_and_a_question_that_is_all_template_none():
    asked = "Which of the following sentences about the matter that was described is true?"
    filled = [
        f"{asked} It weighs {number} pounds in {number + 900} vessels." for number in range(150)
    ]
    rows = [
        *({"question": one, "answer": f"answer {at}"} for at, one in enumerate(filled)),
        {"question": asked, "answer": "none of these sentences, all of which are plainly wrong"},
    ]
    with pytest.warns(UserWarning, match="only very common n-grams: 1"):
        index = dc.build_index(rows, policy=POLICY)
    found = [
        index.record(one)["question"] for one in index.check(document(f"{filled[70]} answer 70"))
    ]
    assert found == [filled[70]]
    alone = f"{asked} none of these sentences, all of which are plainly wrong"
    assert not [*index.check(document(alone))]


def test_an_answer_that_most_items_share_is_an_answer():
    words = [f"{stem}{end}" for stem in ("bor", "cal", "dru", "fen") for end in range(40)]
    rows = [
        {
            "question": f"Does the {word} of Tessaly weigh more than a {word[::-1]} of its age "
            f"that was fed on {word}ine and barley for a year?",
            "answer": "yes, by far" if at % 4 else "no, far less",
        }
        for at, word in enumerate(words)
    ]
    index = dc.build_index(rows, policy=POLICY)
    said = f"{rows[70]['question']} {rows[70]['answer']}"
    found = [index.record(one)["question"] for one in index.check(document(said)) if one.is_leak]
    assert found == [rows[70]["question"]]


def test_room_for_choices_is_that_of_the_item_itself():
    """Items that ask the same about other passages have their choices elsewhere."""
    question = "Which one of the following would the keeper of the old lighthouse most likely say?"
    rows = [
        {
            "eval_key": "b",
            "eval_instance_index": number,
            "question": question,
            "passage": f"{PASSAGE} Keeper number {number}.",
            "answer": f"a{number} {choice}",
            "is_correct": not choice,
        }
        for number in range(9)
        for choice in range(4)
    ]
    index = dc.build_index(rows, policy=POLICY)
    passage = rows[0]["passage"]
    for n_between, is_leak in ((2, True), (12, False)):
        text = f"{passage} {question} {FILLER * n_between}a0 0."
        records = {index.record(one)["instance_index"]: one for one in index.check(text)}
        assert records[0].is_leak == is_leak


CLOZE = (
    "The brass sextant was kept away from the lantern so that the _ would not be scratched by it."
)
TRAM = (
    "A tram leaves Hemmel at noon and covers 36 km of track in 45 minutes; what is its mean speed?"
)
GOLF = "What's a country where most people love playing golf?"
NO_GOLF = "There's no country where most people love playing golf"
WATER = "在标准大气压下纯净的水加热到多少摄氏度会沸腾并变成水蒸气"


@pytest.mark.parametrize(
    ("question", "answer", "text", "shown"),
    [
        (CLOZE, "sextant", CLOZE.replace("_", "sextant"), "sextant"),
        (CLOZE, "sextant", CLOZE.replace("_", "lantern"), None),
        (TRAM, "48 km/h", f"{TRAM} Forty-eight kilometres per hour.", "Forty-eight"),
        (TRAM, "48 km/h", f"{TRAM} So 48.", "48"),
        (TRAM, "48 km/h", f"{TRAM} So 48 miles.", None),
        (TRAM, "48 km/h", f"{TRAM} {FILLER * 9} It was 48.", None),
        (GOLF, NO_GOLF, f"{GOLF.replace('where most', 'most where')} {NO_GOLF}.", NO_GOLF),
        (GOLF, NO_GOLF, f"Sports. {NO_GOLF}.", None),
    ],
)
def test_an_answer_may_stand_in_other_words(question, answer, text, shown):
    rows = [{"question": question, "answer": answer}, {"question": ROUTE, "answer": "12 days"}]
    index = dc.build_index(rows, policy=POLICY)
    text = document(text)
    found = [one.answer_span and text[slice(*one.answer_span)] for one in index.check(text)]
    assert [place for place in found if place] == ([shown] if shown else [])
    assert any(one.is_leak for one in index.check(text)) == bool(shown)


@pytest.mark.parametrize(("n", "is_leak"), [(5, True), (8, False)])
def test_a_number_is_searched_for_behind_the_end_of_the_question_whatever_was_edited(n, is_leak):
    question = (
        f"{TRAM[:-1]}, if none of the drivers of other trams lets it wait at a crossing and no one "
        "enters or leaves it on the way to Sorvik?"
    )
    rows = [{"question": question, "answer": "48 km/h"}, {"question": ROUTE, "answer": "12 days"}]
    index = dc.build_index(rows, policy=POLICY)
    words = question.split()
    parted = [word if at % 3 else f"then {word}" for at, word in enumerate(words[20:])]
    edited = " ".join([*words[:20], *parted])
    for asked in (question, edited):
        (one,) = index.check(document(f"{asked} {'It was not at noon but late. ' * n} So 48."))
        assert one.is_leak == is_leak


def test_only_its_own_answer_of_several_questions_of_a_row_is_stated():
    asked = {TRAIN: "516", TRAM: "48"}
    rows = [
        {
            "eval_key": "b",
            "eval_instance_index": 0,
            "sub_index": number,
            "question": question,
            "answer": answer,
        }
        for number, (question, answer) in enumerate(asked.items())
    ]
    index = dc.build_index(rows, policy=POLICY)
    for question, own in asked.items():
        for answer in asked.values():
            (one,) = index.check(document(f"{question} {FILLER * 9} Answer: {answer}."))
            assert one.is_leak == (answer == own)


def test_an_answer_in_the_middle_of_its_question_does_not_cut_it_short():
    before = (
        "The clerk of the harbour at Osk who was blamed by all of the town for the great fire was "
    )
    answer = "Tilde Morven"
    rows = [
        {"question": f"{before}--, as the ferrymen still tell.", "answer": answer},
        {"question": ROUTE, "answer": "12 days"},
    ]
    filled = f"{before}{answer}, as the ferrymen still tell"
    (one,) = dc.build_index(rows, policy=POLICY).check(text := document(f"{filled}."))
    assert (one.kind, one.score, one.is_leak) == ("edited", 1.0, True)
    assert text[slice(*one.question_span)] == filled
    assert text[slice(*one.answer_span)] == answer


def test_questions_without_spaces_are_found_in_running_text():
    rows = [{"question": WATER, "answer": "一百摄氏度"}, {"question": ROUTE, "answer": "12 days"}]
    index = dc.build_index(rows, policy=POLICY)
    assert index.invisible().num_rows == 0
    asked = f"第三题。{WATER}？"
    for text, outcome in (
        (f"{asked}答：一百摄氏度。", "leak"),
        (f"{asked}正确的答案是一百摄氏度", "leak"),
        (f"{asked.replace('纯净', '清澈')}答：一百摄氏度。", "leak"),
        (f"{asked}答：九十摄氏度。", "no answer"),
        (asked, "no answer"),
    ):
        assert [one.outcome for one in index.check(document(text))] == [outcome]
    assert not index.check(document(f"{WATER[:12]}？"))
