"""Duplicates hold the same task: the same words, other names, programs that pass their tests."""

import ast
import json
import re
from collections import Counter
from itertools import permutations
from random import Random
from typing import get_args

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bench import duplicates
from decon_core.features.blends.settings import Form
from decon_core.features.rewriting.clues import clue_spans
from decon_core.features.rewriting.item_texts import ItemTexts, listed
from decon_core.features.rewriting.names import persons_in
from decon_core.features.rewriting.rewritings import OTHER_ITEM, REWRITINGS
from decon_core.text.code_form import fingerprints
from decon_core.text.numbers import numbers_in
from decon_core.text.python_flow import features
from decon_core.text.segments import canonical_words, words

SEEDS = range(12)
KNOWN, NEW = listed("names", "known"), listed("names", "new")
SUM = ItemTexts(
    question="Laura has 3 eggs and Omar has 5. If Laura sells two, how many eggs are left?",
    answer="Laura and Omar have 8 - 2 = 6.",
)
QUEUE = ItemTexts(
    passage="Four vans, A, B, C and D, are loaded one after the other, from first to fourth. The "
    "order meets the following conditions: A is earlier than B. C is not first. D is third.",
    question="Which van is loaded first?",
    choices=("A", "B", "C", "D"),
)


def rewrite(name, item, seed=0):
    rng = Random(seed)
    return REWRITINGS[name](item, lambda n: rng.sample(range(n), n))


def all_words(item):
    return Counter(word for text in item for word in canonical_words(text))


def test_blends_know_every_rewriting():
    assert [*REWRITINGS] == [*get_args(Form)][5:-1]


@pytest.mark.parametrize("name", REWRITINGS)
def test_a_rewriting_depends_on_the_choices_alone(name):
    for item in (SUM, QUEUE, *(item for item, _ in PROGRAMS)):
        assert rewrite(name, item, 3) == rewrite(name, item, 3)
        applies = {rewrite(name, item, seed) is not None for seed in SEEDS}
        assert len(applies) == 1
        assert all(rewrite(name, item, seed) != item for seed in SEEDS)


# Names and numbers --------------------------------------------------------------------------------


@st.composite
def stories(draw):
    rng = Random(draw(st.integers(0, 9999)))
    persons = rng.sample([*KNOWN], draw(st.integers(1, 6)))
    text = ["Then it rained."]
    for _ in range(draw(st.integers(1, 6))):
        one, other = rng.choice(persons), rng.choice(persons)
        text.append(f"{one} gave {rng.randint(2, 99)} plums to {other}'s dog. Why did {one} leave?")
    used = [name for name in persons if name in " ".join(text)]
    return ItemTexts(question=" ".join(text), answer=f"{used[0]} was hungry."), used


@given(stories(), st.integers(0, 99))
def test_prop_every_name_is_replaced_everywhere_by_one_other_name(story, seed):
    item, names = story
    made = rewrite("names_replaced", item, seed)
    new = {}
    for old, text in zip(item, made, strict=True):
        for before, after in zip(words(old), words(text), strict=True):
            if (name := before.removesuffix("'s")) in names:
                assert new.setdefault(name, after.removesuffix("'s")) == after.removesuffix("'s")
            else:
                assert before == after
    assert {*new} == {*names}
    assert len({*new.values()}) == len(names)
    assert not {*new.values()} & {word for text in item for word in words(text)}
    assert not {*names} & {word for text in made for word in re.split(r"\W", text)}


def test_only_names_of_persons_are_replaced():
    made = rewrite("names_replaced", ItemTexts(question="On Monday Zubin and Laura fly to Paris."))
    found = re.fullmatch(r"On Monday (\w+) and (\w+) fly to Paris\.", made.question)
    assert {*found.groups()} <= {*NEW}
    assert persons_in(["Mr. Smith and his sister Quorra left. QUORRA!"]) == ["Smith", "Quorra"]
    assert (
        "QUORRA"
        not in rewrite("names_replaced", ItemTexts(question="His sister Quorra? QUORRA!")).question
    )


@pytest.mark.parametrize(
    "question",
    [
        "When did Albert Einstein move?",
        "Who followed Queen Elizabeth?",
        "Who painted in Paris?",
        "Did Michael Lewis go?",
        "Where is San Felipe?",
    ],
)
def test_an_item_about_a_person_of_the_world_is_not_changed(question):
    assert rewrite("names_replaced", ItemTexts(question=question)) is None


@given(stories(), st.integers(0, 99))
@example(
    (
        ItemTexts(
            question="Then it rained. Kelly gave 58 plums to Mohammed's dog. Why did Kelly leave? "
            "Stuart gave 26 plums to Emma's dog. Why did Stuart leave? "
            "Stuart gave 77 plums to Cameron's dog. Why did Stuart leave?",
            answer="Emma was hungry.",
        ),
        ["Emma", "Mohammed", "Kelly", "Cameron", "Stuart"],
    ),
    82,
)
def test_prop_with_other_numbers_it_is_another_item_without_an_answer(story, seed):
    item, names = story
    made = rewrite(OTHER_ITEM, item, seed)
    assert not made.answer
    assert not made.choices
    before, after = numbers_in(item.question), numbers_in(made.question)
    assert len(before) == len(after)
    assert all(old.value != new.value for old, new in zip(before, after, strict=True))
    assert not {*names} & {*re.split(r"\W", made.question)}
    assert rewrite(OTHER_ITEM, ItemTexts(question="Why did Laura leave?"), seed) is None
    assert rewrite(OTHER_ITEM, ItemTexts(passage="A long text.", question="Why 3?"), seed) is None


# Order --------------------------------------------------------------------------------------------

_CLAUSES = (
    ("If Omar sells two, how many has he left?", None),  # "he" comes after the name
    ("If he sells two, how many are left?", "How many are left if he sells two?"),
    ("If Omar sells two, how many are left?", "How many are left if Omar sells two?"),
    ("How many are left after the market closes?", "After the market closes, how many are left?"),
    ("Laura smiled when Omar arrived.", "When Omar arrived, Laura smiled."),
    ("When the girls met the boys in their yard, they smiled.", None),  # who?
    ("If she sells two, how many has she left?", "How many has she left if she sells two?"),
    ("Laura asked if Omar sold two.", None),
    ("In 1990, 1991, and 1992, it rained.", None),
    ("Three days before the fair, it rained.", None),
    ("It rained three days before the fair.", None),
    ("If it rains, then the fair ends.", None),
)


@pytest.mark.parametrize(("before", "after"), _CLAUSES)
def test_clauses_move_where_nothing_needs_their_order(before, after):
    made = rewrite("clauses_reordered", ItemTexts(question=before))
    assert (made and made.question) == after


def test_a_question_that_refers_to_the_facts_stays_behind_them():
    item = ItemTexts(question="A cup weighs 3 grams. What is the weight of the cup above?")
    assert rewrite("clauses_reordered", item) is None


def test_the_question_may_come_before_the_facts():
    item = ItemTexts(question="Laura has 3 eggs. She eats one. How many eggs are left?")
    made = rewrite("clauses_reordered", item)
    assert made.question == "How many eggs are left? Laura has 3 eggs. She eats one."


_PARTS = (
    "Omar sells two",
    "the market closes",
    "he rests",
    "it rains",
    "they leave",
    "she eats 3.5",
)


@given(
    st.lists(st.tuples(*[st.sampled_from(_PARTS)] * 2, st.sampled_from(["if", "when", "after"])),
             min_size=1, max_size=5),
    st.integers(0, 9),
)  # fmt: skip
def test_prop_reordered_clauses_hold_the_same_words(parts, seed):
    sentences = [f"{link.capitalize()} {one}, {other}." for one, other, link in parts]
    item = ItemTexts(passage=sentences[0], question=" ".join(sentences), answer="7")
    made = rewrite("clauses_reordered", item, seed)
    if made is not None:
        assert all_words(made) == all_words(item)
        assert made.answer == item.answer
        assert made != item


def orders(passage):
    """All orders of the vans that the three forms of clues in QUEUE allow."""
    clues = [passage[start:stop] for start, stop in clue_spans(passage)]
    assert len(clues) == 3

    def holds(clue, order):
        places = {van: place for place, van in enumerate(order)}
        if found := re.fullmatch(r"(\w) is earlier than (\w)", clue):
            return places[found[1]] < places[found[2]]
        van, no, place = re.fullmatch(r"(\w) is (not )?(first|third)", clue).groups()
        return (places[van] == {"first": 0, "third": 2}[place]) != bool(no)

    return {order for order in permutations("ABCD") if all(holds(one, order) for one in clues)}


def test_shuffled_clues_have_the_same_solutions():
    solutions = orders(QUEUE.passage)
    assert solutions == {tuple("ABDC"), tuple("ACDB")}
    written = {rewrite("clues_shuffled", QUEUE, seed).passage for seed in SEEDS}
    assert len(written) > 2
    for passage in written:
        assert passage != QUEUE.passage
        assert passage.endswith(".")
        assert orders(passage) == solutions


def test_numbered_clues_are_shuffled_and_numbers_and_signs_stay():
    clues = "Each must hold? (1) A is red; (2) B is blue; (3) C is green."
    item = ItemTexts(
        passage=f"Three balls meet the following conditions? {clues[16:]}", question="?"
    )
    made = rewrite("clues_shuffled", item).passage
    assert re.search(r"\? \(1\) .+; \(2\) .+; \(3\) .+\.$", made)
    assert sorted(canonical_words(made)) == sorted(canonical_words(item.passage))


@pytest.mark.parametrize(
    "clue", ["It is third.", "They are red.", "The condition (1) is off.", "If so, B is first."]
)
def test_a_clue_that_needs_another_one_stays_where_it_is(clue):
    passage = f"The order meets the following conditions: A is earlier than B. {clue} C is first."
    assert rewrite("clues_shuffled", ItemTexts(passage=passage, question="?")) is None


# Programs -----------------------------------------------------------------------------------------

PROGRAMS = [
    (
        ItemTexts(
            question='def rolling(numbers, start=0):\n    """ Largest so far.\n    >>> '
            'rolling([1, 3, 2])\n    [1, 3, 3]\n    """\n',
            answer="    best = None  # nothing yet\n    result = []\n    for n in numbers:\n"
            "        best = n if best is None else max(best, n)\n        result.append(best)\n"
            "    return result\n",
        ),
        "assert rolling([1, 3, 2]) == [1, 3, 3]\nassert rolling([]) == []",
    ),
    (
        ItemTexts(
            question="Count the words of a text and its lines.",
            answer="import re\r\n\r\ndef words(text):\r\n"
            "    return re.findall(r'\\w+', text)\r\n\r\n"
            "def lines(text):\r\n    return text.split('\\n')\r\n\r\ndef both(text):\r\n"
            "    n, m = len(words(text)), 0\r\n    # the lines\r\n    k = len(lines(text))\r\n"
            "    return {'words': n, 'lines': k, 'label': f'{m}'}\r\n",
        ),
        "assert both('a b\\nc') == {'words': 3, 'lines': 2, 'label': '0'}",
    ),
    (
        ItemTexts(
            question="Swap and sum up, please:",
            answer="def f(a, b):\n    total = 0\n    low = a[0]\n    high = a[1]\n    é = 1\n"
            "    pair = (low, high)\n    try:\n        one = b[0]\n        two = 1\n"
            "    except IndexError:\n        two = 2\n    for x in [y for y in pair]:\n"
            "        total += x\n    def inner():\n        return total * two + é\n"
            "    return inner()\n",
        ),
        "assert f([1, 2], []) == 7\nassert f([1, 2], [5]) == 4",
    ),
]


def program_in(item):
    return item.question + item.answer if "def " in item.question else item.answer


@pytest.mark.parametrize(("item", "tests"), PROGRAMS)
def test_a_changed_program_passes_its_tests(item, tests):
    before = program_in(item)
    made = {rewrite("identifiers_renamed", item, seed) for seed in SEEDS}
    assert made
    for one in made:
        program = program_in(one)
        assert program != before
        exec(compile(f"{program}\n{tests}", "program", "exec"), {})
        assert fingerprints(program, 5)[0].tolist() == fingerprints(before, 5)[0].tolist()
        assert features(program) == features(before)


def test_what_a_caller_may_use_keeps_its_name():
    item = PROGRAMS[0][0]
    made = rewrite("identifiers_renamed", item)
    assert "def rolling(" in made.question
    assert "rolling([1, 3, 2])" in made.question
    assert not re.search(r"\b(numbers|best|n)\b", made.answer.replace("# nothing yet", ""))
    tree = ast.parse(program_in(made))
    assert "start" not in {one.arg for one in ast.walk(tree) if isinstance(one, ast.arg)}


@pytest.mark.parametrize(
    "answer",
    [
        "def f():\n    return 1\n",  # no name
        "def f(a):\n    return eval('a')\n",
        "def f(a):\n    global b\n    return b\n\ndef g(b, a):\n    return f(a=b)\n",
        "def f(a):\n    return f'{a}'\n",
        "def f(a):\n    'f(a=1)'\n    return a\n",
        "not a program",
    ],
)
def test_names_that_something_else_may_use_stay(answer):
    assert rewrite("identifiers_renamed", ItemTexts(question="f", answer=answer)) is None


def test_the_measurement_runs_programs_before_and_after(tmp_path, capsys):
    programs = [program_in(item) for item, _ in PROGRAMS]
    rows = [{"task": n, "code": one} for n, one in enumerate(programs)]
    (tmp_path / "programs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert duplicates.main([str(tmp_path / "programs.jsonl")]) == 0
    out = capsys.readouterr().out
    assert "| programs.jsonl | `identifiers_renamed` | 3 | 3 | 1 | 1 |" in out
    assert duplicates.main([str(tmp_path / "none.jsonl")]) == 2
