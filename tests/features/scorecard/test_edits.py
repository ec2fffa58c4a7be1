"""Every transformation changes what it says, and nothing else."""

import re
from html.parser import HTMLParser
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from decon_core.config.policy import Policy
from decon_core.features.scorecard.edits import TRANSFORMATIONS
from decon_core.features.scorecard.edits.content import name_spans
from decon_core.features.scorecard.edits.edit import Material, Turn
from decon_core.features.scorecard.items import (
    Choice,
    Item,
    ItemKey,
    answer_line,
    as_text,
    body,
    ending,
)
from decon_core.features.scorecard.lexicon import Lexicon, lexicon_of
from decon_core.text.canonical import canonical
from decon_core.text.segments import (
    canonical_words,
    formulas,
    numbers,
    plain_words,
    sentences,
    words,
)

WAYS = {way.name: way for way in TRANSFORMATIONS}
RATES = (5, 10, 20, 40)

WORDS = [a + b + c for a in ("ba", "ke", "mo") for b in ("lu", "ti", "sa") for c in ("n", "r", "x")]
ITEM = ItemKey("b", "test", 0)


def as_words(written):
    if isinstance(written, str):
        return canonical_words(written)
    return [word for turn in written for word in canonical_words(turn.content)]


@st.composite
def materials_of_words(draw):
    """A question of some sentences with numbers and names, and perhaps all that may go with it."""
    rng = Random(draw(st.integers(0, 9999)))

    def sentence(n):
        made = [rng.choice(WORDS) for _ in range(n)]
        if n > 4:
            made[rng.randrange(1, n)] = str(rng.randrange(10, 999))
            made[rng.randrange(1, n)] = rng.choice(("Quorra", "Zembla", "Vestri"))
        return " ".join(made).capitalize().replace("quorra", "Quorra").replace("zembla", "Zembla")

    n_sentences = draw(st.integers(1, 5))
    question = ". ".join(sentence(draw(st.integers(2, 14))) for _ in range(n_sentences)) + "?"
    n_choices = draw(st.sampled_from((0, 0, 2, 4)))
    choices = tuple(Choice(f"{'ABCD'[at]}. ", sentence(3)) for at in range(n_choices))
    item = Item(
        key=ITEM,
        question=question,
        passage=draw(st.sampled_from((None, f"{sentence(9)}. {sentence(7)}."))),
        answer=None if choices else draw(st.sampled_from((None, sentence(4)))),
        choices=choices,
        correct=draw(st.integers(0, n_choices - 1)) if n_choices else None,
    )
    others = [
        Item(key=ITEM, question=f"{sentence(8)} Quorra Zembla Vestri {sentence(9)}?")
        for _ in range(12)
    ]
    return Material(item, lexicon_of([item, *others], Random(1)), rng, others[0])


@given(materials_of_words(), st.sampled_from(TRANSFORMATIONS))
def test_prop_what_is_planted_is_changed_or_nothing_is_planted(material, way):
    written = way.apply(material)
    if written is None:
        return
    if isinstance(written, tuple):
        assert len(written) > 1
        assert all(turn.content for turn in written)
        assert written != as_text(material.item)
    else:
        assert written.strip()
        assert (written == as_text(material.item)) == (way.name == "verbatim")


@pytest.mark.parametrize("way", TRANSFORMATIONS, ids=lambda way: way.name)
def test_items_of_the_sample_world_are_changed_or_not_applicable(materials, way):
    for material in materials:
        written = way.apply(material)
        if way.name == "verbatim":
            assert written == as_text(material.item)
        else:
            assert written is None or written != as_text(material.item)


def test_each_transformation_but_those_of_formulas_puzzles_and_programs_applies(materials):
    applied = {
        name for name, way in WAYS.items() if any(way.apply(material) for material in materials)
    }
    formulas = {name for name in WAYS if name.startswith("instruction translated")}
    assert {name for name in WAYS if name not in applied} == formulas | {
        "duplicate: clues shuffled",
        "duplicate: identifiers renamed",
    }


# The surface --------------------------------------------------------------------------------------


@given(materials_of_words())
def test_prop_case_is_all_that_changes(material):
    text = as_text(material.item)
    assert WAYS["case and punctuation: upper case"].apply(material) == text.upper()
    assert WAYS["case and punctuation: lower case"].apply(material) == text.lower()


@given(materials_of_words(), st.sampled_from(("no punctuation", "typeset")))
def test_prop_other_punctuation_keeps_the_words(material, grade):
    written = WAYS[f"case and punctuation: {grade}"].apply(material)
    if written is not None:
        assert as_words(written) == as_words(as_text(material.item))


def test_punctuation_within_numbers_stays(make_material):
    written = WAYS["case and punctuation: no punctuation"].apply(
        make_material("It's 3.5 m, or 1,200 mm: how far (in all)?")
    )
    assert written == "It s 3.5 m or 1,200 mm how far in all"


@given(materials_of_words(), st.sampled_from((72, 40)))
def test_prop_wrapped_lines_are_short_and_keep_the_words(material, width):
    written = WAYS[f"lines: {width} columns"].apply(material)
    if written is not None:
        assert max(map(len, written.split("\n"))) <= width
        assert written.split() == as_text(material.item).split()


def test_hyphens_part_words_at_the_ends_of_lines(materials):
    for material in materials:
        written = WAYS["lines: hyphens"].apply(material)
        if written is not None:
            assert re.search(r"\w-\n\w", written)
            healed = re.sub(r"(?<=[^\W\d_])-\n(?=[^\W\d_])", "", written)
            assert healed.split() == as_text(material.item).split()


def test_hyphens_stay_within_words_where_line_breaks_were_lost(materials):
    for material in materials:
        written = WAYS["lines: hyphens and spaces"].apply(material)
        if written is not None:
            assert "\n" not in written
            assert re.search(r"\w- \w", written)
            assert written == WAYS["lines: hyphens"].apply(material).replace("\n", " ")


class _Bare(HTMLParser):
    def __init__(self):
        super().__init__()
        self.pieces = []

    def handle_data(self, data):
        self.pieces.append(data)


def test_a_browser_shows_the_words_of_the_item(materials):
    for material in materials:
        parser = _Bare()
        parser.feed(WAYS["mark-up: HTML"].apply(material))
        shown = canonical_words(" ".join("".join(parser.pieces).split()))
        kept = [word for word in shown if word != "answer"]
        assert kept == [word for word in as_words(as_text(material.item)) if word != "answer"]


def test_marks_stand_around_words_and_leave_formulas_alone(make_material):
    material = make_material("For $a_1 + b_1 = 5$ find the value of 5% of $a_1 \\cdot b_1$ & more.")
    latex = WAYS["mark-up: LaTeX"].apply(material)
    assert "$a_1 + b_1 = 5$" in latex
    assert r"5\%" in latex
    assert r"\&" in latex
    assert "$a_1 + b_1 = 5$" in WAYS["mark-up: Markdown"].apply(material)


# Words --------------------------------------------------------------------------------------------


@given(materials_of_words(), st.sampled_from(RATES))
def test_prop_so_many_words_are_others(material, rate):
    written = WAYS[f"words replaced: {rate} %"].apply(material)
    n = round(rate / 100 * len(plain_words(material.item.question)))
    if written is None:
        assert n == 0
        return
    before, after = as_words(as_text(material.item)), as_words(written)
    assert len(before) == len(after)
    n_passage = round(rate / 100 * len(plain_words(material.item.passage or "")))
    assert sum(old != new for old, new in zip(before, after, strict=True)) == n + n_passage
    assert written.endswith(ending(material.item))


@given(materials_of_words(), st.sampled_from(RATES), st.sampled_from(("deleted", "inserted")))
def test_prop_so_many_words_are_gone_or_more(material, rate, way):
    written = WAYS[f"words {way}: {rate} %"].apply(material)
    n = round(rate / 100 * len(plain_words(material.item.question)))
    if written is None:
        assert n == 0
        return
    n += round(rate / 100 * len(plain_words(material.item.passage or "")))
    few, many = as_words(written), as_words(as_text(material.item))
    if way == "inserted":
        few, many = many, few
    assert len(many) - len(few) == n
    left = iter(many)
    assert all(word in left for word in few)  # in the same order


def test_a_question_too_short_for_one_edit_is_not_applicable(make_material):
    material = make_material("Who came first?")
    assert WAYS["words replaced: 5 %"].apply(material) is None
    assert WAYS["words deleted: 5 %"].apply(material) is None
    assert WAYS["words replaced: 40 %"].apply(material) is not None


def test_formulas_are_not_edited(make_material):
    formula = r"$\frac{alpha}{beta} + gamma = delta$"
    for way in ("replaced", "deleted", "inserted"):
        written = WAYS[f"words {way}: 40 %"].apply(
            make_material(f"Find all that can be said of {formula} here")
        )
        assert formula in written


# Less of it ---------------------------------------------------------------------------------------


@given(materials_of_words(), st.sampled_from((75, 50, 25)))
def test_prop_the_beginning_of_the_question_is_kept(material, percent):
    written = WAYS[f"truncated: {percent} % kept"].apply(material)
    if written is not None:
        all_words = words(body(material.item))
        n_question = len(words(material.item.question))
        n_passage = len(all_words) - n_question
        assert words(written) == all_words[: n_passage + round(percent / 100 * n_question)]
        assert body(material.item).startswith(written)


def test_a_question_without_an_answer_has_none_to_lose(make_material):
    assert WAYS["question only"].apply(make_material("Who came first?")) is None
    material = make_material("Who came first?", answer="The hen.")
    assert WAYS["question only"].apply(material) == "Who came first?"


def test_the_answer_is_as_far_away_as_the_grade_says(materials):
    for material in materials[::9]:
        for n_words in (30, 400):
            written = WAYS[f"answer apart: {n_words} words"].apply(material)
            assert written.startswith(body(material.item))
            assert written.endswith(ending(material.item))
            between = written[len(body(material.item)) : -len(ending(material.item))]
            assert 0.7 * n_words <= len(words(between)) <= n_words + 20


# Choices ------------------------------------------------------------------------------------------


def lines_of_choices(written, item):
    lines = written.split("\n")
    return lines[-len(item.choices) - 1 : -1], lines[-1]


def test_shuffled_choices_have_their_labels_in_order_and_the_answer_with_them(materials):
    for material in materials:
        item, written = material.item, WAYS["choices shuffled"].apply(material)
        if not item.choices:
            assert written is None
            continue
        choices, answer = lines_of_choices(written, item)
        labels = [choice.label for choice in item.choices]
        texts = [line[len(label) :] for line, label in zip(choices, labels, strict=True)]
        assert [line[: len(label)] for line, label in zip(choices, labels, strict=True)] == labels
        assert texts != [choice.text for choice in item.choices]
        assert sorted(texts) == sorted(choice.text for choice in item.choices)
        right = item.choices[item.correct].text
        assert answer == f"Answer: {labels[texts.index(right)]}{right}"


def test_other_labels_stand_before_the_same_choices(materials):
    for material in materials:
        item, written = material.item, WAYS["choices relabelled: 1. 2. 3."].apply(material)
        if item.choices:
            choices, answer = lines_of_choices(written, item)
            assert choices == [f"{n}. {choice.text}" for n, choice in enumerate(item.choices, 1)]
            assert answer == f"Answer: {choices[item.correct]}"


# Other content ------------------------------------------------------------------------------------


@given(materials_of_words())
def test_prop_all_numbers_are_others_and_nothing_else(material):
    written = WAYS["numbers changed: all"].apply(material)
    before = as_words(as_text(material.item))
    if written is None:
        assert not numbers(material.item.question)
        return
    for old, new in zip(before, as_words(written), strict=True):
        assert (old == new) != old.isdigit()
        assert len(old) == len(new) or not old.isdigit()


def test_one_number_changes_wherever_it_stands(make_material):
    material = make_material("Of 12 eggs 5 broke, and of 12 hens?", answer="12 - 5 = 7")
    written = WAYS["numbers changed: one"].apply(material)
    assert ("12" in written) != (" 5 " in written)
    assert "7" in written


def test_number_words_are_numbers(make_material):
    written = WAYS["numbers changed: all"].apply(make_material("Seven hens lay twenty eggs. Why?"))
    assert re.fullmatch(r"[A-Z][a-z]+ hens lay [a-z]+ eggs. Why\?", written)
    assert "Seven" not in written
    assert "twenty" not in written


def test_a_name_is_the_same_other_name_everywhere(make_material):
    material = make_material(
        "Odile met Bram at the quay. When did Odile's ship leave?", answer="Odile left at two."
    )
    written = WAYS["names substituted"].apply(material)
    found = re.fullmatch(
        r"(\w+) met (\w+) at the quay. When did (\w+)'s ship leave\?\n(\w+) left at two.", written
    )
    first, second, again, last = found.groups()
    assert first == again == last != second
    assert not {first, second} & {"Odile", "Bram"}


def test_no_name_of_a_question_is_left_in_it(materials):
    for material in materials:
        written = WAYS["names substituted"].apply(material)
        text = material.item.question
        names = {text[slice(*span)] for span in name_spans(text, material.lexicon)}
        assert bool(names) == (written is not None)
        if written:
            changed = set(words(written)) - set(words(as_text(material.item)))
            assert changed or names <= set(material.lexicon.names)


# Another order ------------------------------------------------------------------------------------


@given(materials_of_words())
def test_prop_clues_change_places_and_the_last_sentence_stays(material):
    written = WAYS["clues shuffled"].apply(material)
    before = sentences(material.item.question)
    clues = before[:-1]
    if written is None:
        assert len(set(clues)) < 2
        return
    assert sorted(as_words(written)) == sorted(as_words(as_text(material.item)))
    assert before[-1] in written


def test_the_sentences_of_two_items_take_turns(make_material):
    material = make_material(
        "One. Two. Three?", answer="First.", partner="Four. Five?", partner_answer="Second."
    )
    assert WAYS["two interleaved"].apply(material) == (
        "One. Four. Two. Five? Three?\nFirst.\nSecond."
    )
    assert WAYS["two interleaved"].apply(make_material("Only one?", partner="A. B?")) is None


# Another language, conversations ------------------------------------------------------------------


@pytest.mark.parametrize("language", ["Urdu", "Chinese"])
def test_formulas_keep_their_order_and_no_english_word_is_left(make_material, language):
    material = make_material(
        r"Let $x^2 + 3x = 10$ for a positive number. If $y = 2x - 1$, find y.", answer="$3$"
    )
    written = WAYS[f"instruction translated: {language}"].apply(material)
    assert [written[slice(*span)] for span in formulas(written)] == [
        "$x^2 + 3x = 10$",
        "$y = 2x - 1$",
        "$3$",
    ]
    outside = re.sub(r"\$.*?\$", "", written)
    assert not re.search("[A-Za-z]", outside)


def test_prices_are_no_formula(make_material):
    material = make_material("A pen costs $2 and a book costs $15. What do both cost at once?")
    assert WAYS["instruction translated: Urdu"].apply(material) is None


def test_a_question_is_asked_in_one_turn_and_answered_in_the_next(make_material):
    material = make_material("Who came first?", answer="The hen.")
    assert WAYS["chat turns: at the answer"].apply(material) == (
        Turn("user", "Who came first?"),
        Turn("assistant", "The hen."),
    )
    assert WAYS["chat turns: at the answer"].apply(make_material("Who?")) is None


@given(materials_of_words())
def test_prop_both_halves_of_a_question_are_asked(material):
    turns = WAYS["chat turns: in the question"].apply(material)
    if turns is None:
        return
    asked = [turn.content for turn in turns if turn.role == "user"]
    assert len(asked) == 2
    choices = "\n".join(map(str, material.item.choices))
    assert as_words("\n".join(asked)) == as_words(f"{body(material.item)}\n{choices}")
    assert min(map(len, asked)) > 0
    if answer_line(material.item):
        assert turns[-1] == Turn("assistant", answer_line(material.item))


# Other characters for the same text -------------------------------------------------------------

OBFUSCATED = [name for name in WAYS if name.startswith("obfuscated")]


@given(materials_of_words(), st.sampled_from(OBFUSCATED))
def test_prop_what_is_obfuscated_is_the_same_canonical_text(material, name):
    written = WAYS[name].apply(material)
    if written is not None:
        text = as_text(material.item)
        assert canonical(written, Policy().form) == canonical(text, Policy().form)


@pytest.mark.parametrize("name", OBFUSCATED)
def test_what_is_obfuscated_is_another_text_to_the_published_rule(make_material, name):
    text = "The first efficient official affiliate office of the staff floated a final offer."
    written = WAYS[name].apply(make_material(text))
    published = Policy.from_mapping({"preset": "reference"}).form
    is_same = canonical(written, published) == canonical(text, published)
    assert is_same == (name == "obfuscated: other spaces")


# The table ----------------------------------------------------------------------------------------


def test_names_are_unique_and_families_stand_together():
    assert len({way.name for way in TRANSFORMATIONS}) == len(TRANSFORMATIONS)
    groups = [way.group for way in TRANSFORMATIONS]
    seen = list(dict.fromkeys(groups))
    assert groups == sorted(groups, key=seen.index)
    assert all(way.meaning for way in TRANSFORMATIONS)


@pytest.fixture
def make_material():
    lexicon = Lexicon(
        ranked=tuple(WORDS), names=(), template=frozenset(), texts=(("bald", "talk"),) * 9
    )

    def make(question, *, answer=None, partner=None, partner_answer=None):
        other = partner and Item(key=ITEM, question=partner, answer=partner_answer)
        item = Item(key=ITEM, question=question, answer=answer)
        return Material(item, lexicon, Random(3), other)

    return make
