"""`reworded` finds what its oracle finds."""

import re
from itertools import combinations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from decon_core.config.policy import Policy
from decon_core.corpus.batches import Batch
from decon_core.detectors.batch_texts import BatchTexts
from decon_core.detectors.detector import Indexes, detector
from decon_core.detectors.reworded.evidence import REWORDED as SAME_ITEM
from decon_core.schemas import RECORDS
from decon_core.text.canonical import canonical
from decon_core.text.tokenizers import load_tokenizer
from decon_core.text.word_cache import Encoder, GrowingVocabulary
from tests.oracle.reworded import attributed, best_window, template_of
from tests.uncompiled import fewer

FORM = Policy().form


def search(questions, policy):
    reworded = detector("reworded")
    parts = [[row(number, question) for number, question in enumerate(part)] for part in questions]
    own = {"reworded": reworded.own_index(map(table_of, parts), policy)}
    return reworded.search(Indexes(None, None, policy, own))


def row(item, question, answer=None, choice=None):
    number = {"instance_index": item, "sub_index": None, "choice_index": choice}
    return {"split": "test", "question": question, "answer": answer} | number


def table_of(rows):
    columns = detector("reworded").own_columns
    return pa.Table.from_pylist(rows, pa.schema([RECORDS.field(name) for name in columns]))


def find(questions, documents, policy, at_work=None):
    at_work = at_work or search(questions, policy)
    return at_work.findings(Batch.of_texts(documents))


_WORDS = """
    muffins puppet theatre drake baker marble people time house market year day sells buys selling
    houses the of and he Toulouse Janet's 3 three 12 1,200 15% 1/2 half 30mph 7
"""
_OTHERS = "zeppelin quorum the a nothing 5 19 two hundred river stone"
WORDS, OTHERS = st.sampled_from(_WORDS.split()), st.sampled_from(_OTHERS.split())
QUESTIONS = st.lists(WORDS, min_size=4, max_size=24).map(" ".join)


@st.composite
def documents(draw, question):
    """Draw a document with pieces of a question in any order, some of them twice."""
    words = question.split()
    pieces = st.one_of(
        st.permutations(words),
        st.lists(st.sampled_from(words), max_size=12),
        st.lists(OTHERS, max_size=30),
        st.lists(WORDS, max_size=10),
    )
    return " ".join(word for piece in draw(st.lists(pieces, max_size=5)) for word in piece)


def places_of(text):
    """Return the characters of each canonical word: here words are apart by one space."""
    places = []
    for start, word in ((m.start(), m[0]) for m in re.finditer(r"\S+", text)):
        at = start
        for piece in re.findall(r"[^,%/']+|[,%/']", word):
            if piece not in ",%/'":
                places.append((at, at + len(piece)))
            at += len(piece)
    return places


def expected_in(text, questions, policy):
    """What the oracle finds: by question its characters, its score, and whether it is the same."""
    places, floor = places_of(text), policy.reworded_lowest_recorded
    template = template_of([[question] for question in questions], FORM)
    windows = {
        question: best
        for question in questions
        if (best := best_window(text, places, question, FORM, floor, template))
    }
    return {
        questions.index(question): (
            (places[best.start][0], places[best.stop - 1][1]),
            best.score,
            best.is_same_item,
        )
        for question, best in attributed(windows).items()
    }


@settings(derandomize=True, max_examples=fewer(40))
@given(st.data(), st.lists(QUESTIONS, min_size=1, max_size=4, unique=True))
def test_the_engine_finds_what_the_oracle_finds(data, questions):
    policy = Policy(
        detectors=("reworded",),
        reworded_lowest_recorded=data.draw(st.sampled_from([0.02, 0.2])),
    )
    texts = [
        data.draw(documents(data.draw(st.sampled_from(questions))))
        for _ in range(data.draw(st.integers(1, 3)))
    ]
    found = {
        (one.document, one.record): (
            one.question_place,
            one.score,
            one.kind == SAME_ITEM,
        )
        for one in find([questions], texts, policy)
    }
    expected = {
        (number, record): found
        for number, text in enumerate(texts)
        for record, found in expected_in(text, questions, policy).items()
    }
    assert found == expected


@settings(derandomize=True, max_examples=fewer(4))
@given(st.data(), st.lists(QUESTIONS, min_size=12, max_size=16, unique=True))
def test_words_of_many_items_are_found_as_by_the_oracle(data, questions):
    policy = Policy(detectors=("reworded",), reworded_lowest_recorded=0.2)
    text = data.draw(documents(questions[0]))
    found = {
        one.record: (one.question_place, one.score, one.kind == SAME_ITEM)
        for one in find([questions], [text], policy)
    }
    expected = expected_in(text, questions, policy)
    assert found.keys() <= expected.keys()  # at most eight at a place
    assert all(expected[record] == match for record, match in found.items())
    assert len(found) >= min(len(expected), 1)


@settings(derandomize=True, max_examples=fewer(8))
@given(st.data(), st.lists(QUESTIONS, min_size=2, max_size=4, unique=True))
def test_benchmarks_and_documents_do_not_influence_each_other(data, questions):
    policy = Policy(detectors=("reworded",), reworded_lowest_recorded=0.05)
    texts = [data.draw(documents(question)) for question in questions]
    together = find([[question] for question in questions], texts, policy)
    alone = [
        (number, part, one.question_place, one.score, one.kind)
        for number, text in enumerate(texts)
        for part, question in enumerate(questions)
        for one in find([[question]], [text], policy)
    ]
    assert sorted(alone) == sorted(
        (one.document, one.part, one.question_place, one.score, one.kind) for one in together
    )


@settings(derandomize=True, max_examples=fewer(5))
@given(st.data(), st.lists(QUESTIONS, min_size=1, max_size=3, unique=True))
def test_what_stands_far_apart_in_a_long_document_is_found_as_by_the_oracle(data, questions):
    policy = Policy(
        detectors=("reworded",),
        reworded_lowest_recorded=data.draw(st.sampled_from([0.02, 0.2])),
    )
    pieces = [
        piece
        for n in data.draw(st.lists(st.integers(0, 1100), min_size=1, max_size=3))
        for piece in ("river stone " * (n // 2), data.draw(documents(questions[0])))
    ]
    text = " ".join(" ".join(pieces).split())
    found = {
        one.record: (one.question_place, one.score, one.kind == SAME_ITEM)
        for one in find([questions], [text], policy)
    }
    expected = expected_in(text, questions, policy)
    assert found == expected


_WRITTEN = st.text(st.sampled_from("aeot 3½’'“”-.,—…\u200b\u0301ﬁé日本語、\n<b>&amp;"), max_size=40)


@settings(derandomize=True, max_examples=fewer(20))
@given(st.lists(_WRITTEN, min_size=1, max_size=4), st.integers(1, 30))
def test_the_encoder_of_a_scan_gives_the_same_findings(texts, n_times):
    """Words that are normalized to several or none, and long ones, which are not stored."""
    policy = Policy(detectors=("reworded",), reworded_lowest_recorded=0.02)
    at_work = search([[ITEM, "sold breakfast market friends"]], policy)
    batch = Batch.of_texts([f"{REWORDED} {text * n_times} {REWORDED}" for text in texts])
    encoder = Encoder(
        load_tokenizer("cl100k"), GrowingVocabulary(), form=FORM, table_mb=1, terms=at_work.terms
    )
    tokens = encoder.encode(batch.text, batch.starts, batch.stops)
    numbers = at_work.terms.encode([canonical(text, FORM) for text in batch_texts(batch)])
    terms = encoder.terms_of_latest()
    assert [terms.row(at).tolist() for at in range(len(terms))] == numbers
    shared, own = (
        at_work.nominate(BatchTexts(batch, tokens, None, one)) for one in (encoder, None)
    )
    assert columns(shared) == columns(own)


def columns(nominations):
    return {name: np.asarray(values).tolist() for name, values in vars(nominations).items()}


def batch_texts(batch):
    return [
        batch.text[start:stop].tobytes().decode()
        for start, stop in zip(batch.starts, batch.stops, strict=True)
    ]


ITEM = (
    "Janet's ducks lay 16 eggs per day. She eats three for breakfast every morning and bakes "
    "muffins for her friends every day with four. She sells the remainder at the farmers' market "
    "daily for $2 per fresh duck egg. How much in dollars does she make every day?"
)
REWORDED = (
    "Each day the ducks that Janet keeps produce 16 eggs. Three of them are her breakfast, and "
    "four go into muffins that she bakes for friends. Whatever remains is sold at the farmers' "
    "market, at $2 an egg. What does she earn there daily?"
)
NOISE = "The committee met on the first Monday of the month and heard a report on drains. " * 20


@pytest.mark.parametrize("before", ["", NOISE])
def test_a_reworded_question_is_the_same_item_wherever_it_stands(before):
    (found,) = find([[ITEM]], [before + REWORDED + NOISE], Policy(detectors=("reworded",)))
    assert found.kind == SAME_ITEM
    assert found.score > Policy().reworded_threshold
    start, stop = found.question_place
    assert (before + REWORDED + NOISE)[start:stop] == REWORDED[5:-1]


@pytest.mark.parametrize(
    ("changed", "kind"),
    [
        (ITEM, "reworded"),
        (ITEM.replace("16", "20").replace("three", "five"), "other numbers"),
        (ITEM.replace("three", "3").replace("four", "4.0"), "reworded"),
        (REWORDED.replace("16", "90").replace("four", "12").replace("$2", "$7"), "other numbers"),
    ],
)
def test_other_numbers_make_it_another_item(changed, kind):
    (found,) = find([[ITEM]], [changed], Policy(detectors=("reworded",)))
    assert found.kind == kind


def test_a_question_without_numbers_is_found_by_its_words():
    question = (
        "Which sociologist described the routinization of charisma in religious movements, and "
        "what does the concept say about the succession of prophets?"
    )
    other = (
        "The concept that charisma undergoes routinization when a prophet dies and the succession "
        "in a religious movement has to be settled was described by this sociologist."
    )
    (found,) = find([[question]], [other], Policy(detectors=("reworded",)))
    assert found.kind == SAME_ITEM


def test_a_text_on_the_same_topic_is_not_found():
    topic = (
        "Janet keeps ducks and sells eggs at the market. Her friends come for breakfast, and on "
        "Sundays there is cake. She has been a farmer for thirty years and likes her work."
    )
    found = find([[ITEM]], [topic], Policy(detectors=("reworded",)))
    assert not [one for one in found if one.score >= Policy().reworded_threshold]


def test_many_windows_are_found_although_the_first_room_is_small():
    at_work = search([[ITEM]], Policy(detectors=("reworded",)))
    at_work._found = at_work._found[:1]
    document = (REWORDED + NOISE) * 30
    (found,) = find([[ITEM]], [document], Policy(detectors=("reworded",)), at_work)
    assert document[slice(*found.question_place)].startswith("day the ducks")


TEMPLATE = (
    "Two people describe what happened in their neighbourhood last winter, and a committee decides "
    "whether either of them behaved unreasonably: {} and {}. What should the committee say?"
)
SCENES = [
    "a baker gave stale muffins to hungry pigeons beside the fountain",
    "a drummer rehearsed above the sleeping twins until midnight",
    "a sailor painted his neighbour's gate purple during the holidays",
    "a chemist poured vinegar over the tulips behind the chapel",
    "a jockey borrowed the ladder and left it in the orchard",
    "a librarian whispered gossip about the mayor's cousin",
]


def test_one_plant_of_a_templated_item_is_one_item():
    siblings = [TEMPLATE.format(*scenes) for scenes in combinations(SCENES, 2)]
    (found,) = find([siblings], [NOISE + siblings[7] + NOISE], Policy(detectors=("reworded",)))
    assert found.record == 7


def test_a_template_alone_is_no_item():
    siblings = [TEMPLATE.format(*scenes) for scenes in combinations(SCENES, 2)]
    other = TEMPLATE.format("an old man sang in the rain", "a boy ran to the station")
    assert not find([siblings], [NOISE + other], Policy(detectors=("reworded",)))


CHOICES = [
    "merchants financed caravans across the desert",
    "peasants abandoned their villages after the plague",
    "bishops crowned rival emperors",
    "shipwrights improved the rudder",
]
PASSAGE = "Excerpt from a chronicle: " + "The abbot counted barrels of salted herring again. " * 20


def test_a_rewording_without_the_passage_is_found_by_end_and_choices():
    question = PASSAGE + "\nWhich development best explains the growth of trade described above?"
    rows = [row(0, question, answer, number) for number, answer in enumerate(CHOICES)]
    policy = Policy(detectors=("reworded",))
    reworded = detector("reworded")
    at_work = reworded.search(
        Indexes(None, None, policy, {"reworded": reworded.own_index([table_of(rows)], policy)})
    )
    document = (
        "What development explains best why trade grew? Merchants were financing caravans across "
        "deserts; peasants had abandoned villages because of plague; bishops had crowned two "
        "emperors; or shipwrights had improved rudders."
    )
    found = find([], [NOISE + document + NOISE], policy, at_work)
    assert [one.record for one in found] == [0, 1, 2, 3]
    assert min(one.score for one in found) > policy.reworded_threshold
