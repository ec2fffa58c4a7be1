"""Which items are planted, held out and pretended, whatever order the records come in."""

from collections import Counter
from random import Random

import pyarrow as pa
import pytest

from decon_core.benchmarks.normalized import fingerprint_of
from decon_core.errors import ConfigError
from decon_core.features.scorecard.edits import TRANSFORMATIONS
from decon_core.features.scorecard.items import as_text, items_of
from decon_core.features.scorecard.negatives import HARD_NEGATIVES
from decon_core.features.scorecard.plan import indexed_records, plan
from decon_core.schemas import RECORDS
from decon_core.text.segments import canonical_words


@pytest.fixture(scope="module")
def planned(records):
    return plan(records, per_transformation=8, seed=3)


def table(rows):
    filled = [
        {
            "benchmark": "quiz",
            "split": "test",
            "instance_index": at,
            "fingerprint": fingerprint_of(None, row["question"], None),
            **row,
        }
        for at, row in enumerate(rows)
    ]
    return pa.Table.from_pylist(filled, schema=RECORDS)


def test_the_order_of_records_changes_nothing(records, planned):
    order = Random(5).sample(range(records.num_rows), records.num_rows)
    assert plan(records.take(order), per_transformation=8, seed=3) == planned
    assert plan(records, per_transformation=8, seed=4) != planned


def test_more_plantings_keep_those_that_there_were(records, planned):
    more = plan(records, per_transformation=9, seed=3)
    few = {p.id: p for p in planned.plantings if p.transformation == "words replaced"}
    many = {p.id: p for p in more.plantings if p.transformation == "words replaced"}
    changed = [name for name in few if few[name] != many.get(name)]
    assert len(changed) <= 4  # one more item of each grade is held out


def test_benchmarks_give_in_turn(planned):
    verbatim = Counter(
        p.items[0].benchmark for p in planned.plantings if p.transformation == "verbatim"
    )
    assert set(verbatim.values()) == {2}
    assert len(verbatim) == 4


def test_every_grade_is_planted_as_often_as_was_asked_or_as_it_applies(planned):
    for way in TRANSFORMATIONS:
        own = [t for t in planned.tallies if (t.transformation, t.grade) == (way.group, way.grade)]
        n_planted = sum(tally.n_planted for tally in own)
        assert n_planted == 8 or all(t.n_planted + t.n_not_applicable >= 40 for t in own)


def test_what_is_not_applicable_is_counted(planned):
    by_benchmark = {
        t.benchmark: t for t in planned.tallies if t.transformation == "choices shuffled"
    }
    assert by_benchmark["ledger_math"].n_planted == 0
    assert by_benchmark["ledger_math"].n_not_applicable > 50
    assert by_benchmark["harbor_mc"].n_planted == 8


def test_the_same_items_go_through_all_grades(planned):
    items = {
        grade: {
            p.items
            for p in planned.plantings
            if (p.transformation, p.grade) == ("words replaced", grade)
        }
        for grade in ("20 %", "40 %")
    }
    assert len(items["20 %"] & items["40 %"]) >= 7


def test_held_out_items_are_not_indexed_and_not_planted(records, planned):
    indexed = indexed_records(records, planned)
    left = {item.key for item in items_of(indexed)}
    assert planned.held_out
    assert left == {item.key for item in items_of(records)} - planned.held_out
    assert indexed.schema == records.schema
    neighbours = [p for p in planned.plantings if p.transformation == "neighbouring item"]
    assert {p.items[0] for p in neighbours} == planned.held_out
    others = [p for p in planned.plantings if p.transformation != "neighbouring item"]
    assert not {key for p in others for key in p.items} & planned.held_out


def test_an_item_with_a_twin_is_not_held_out():
    words = [f"{a}{b}" for a in ("arc", "bow", "elm", "fir") for b in ("an", "il", "ot", "us", "y")]
    rng = Random(2)
    alone = [" ".join(rng.sample(words, 12)) + "?" for _ in range(5)]
    twins = [" ".join(rng.sample(words, 12)) for _ in range(20)]
    rows = [{"question": text} for text in alone]
    rows += [{"question": f"{text}?"} for text in twins]
    rows += [{"question": f"So, {text.upper()}, is it?"} for text in twins]
    held_out = plan(table(rows), per_transformation=9, seed=1).held_out
    assert held_out
    assert {key.instance_index for key in held_out} <= set(range(5))


def test_a_shared_passage_is_taken_off_a_neighbour():
    shared = "The mill stood still. Nobody knew why."
    rng = Random(2)
    rows = [
        {"question": " ".join(rng.choices("abcdefghijklmnop", k=12)), "passage": shared}
        for _ in range(30)
    ]
    planned = plan(table(rows), per_transformation=3, seed=1)
    neighbours = [p for p in planned.plantings if p.transformation == "neighbouring item"]
    assert len(neighbours) == 3
    assert not any("mill" in p.written for p in neighbours)


def test_a_hard_negative_holds_no_question(records, planned):
    questions = [
        f" {' '.join(canonical_words(item.question))} "
        for item in items_of(indexed_records(records, planned))
    ]
    negatives = [p for p in planned.plantings if p.kind == "hard_negative"]
    assert Counter(p.transformation for p in negatives) == {way.name: 8 for way in HARD_NEGATIVES}
    for negative in negatives:
        text = f" {' '.join(canonical_words(negative.written))} "
        assert not any(question in text for question in questions)


def test_a_template_keeps_what_many_questions_share():
    names = ["Olaf", "Greta", "Ingrid", "Jonas", "Katrin", "Lukas", "Marta", "Nils"]
    fruits = ["apples", "pears", "plums", "figs", "limes", "dates", "quinces"]
    rng = Random(1)
    rows = [
        {
            "question": f"In town, {rng.choice(names)} has {rng.randrange(10, 99)} "
            f"{rng.choice(fruits)} "
            f"and {word} {rng.randrange(10, 99)} more. How many {word} are left?"
        }
        for word in (
            f"{a}{b}" for a in ("bak", "sel", "row", "tan") for b in ("es", "lo", "ing", "ur")
        )
    ]
    planned = plan(table(rows), per_transformation=5, seed=1)
    for p in planned.plantings:
        if p.transformation == "same template":
            assert "How many" in p.written
            assert "more." in p.written
            assert p.written not in {row["question"] for row in rows}


def test_two_items_are_planted_where_they_are_interleaved(planned):
    mixed = [p for p in planned.plantings if p.transformation == "two interleaved"]
    assert mixed
    assert all(len(set(p.items)) == 2 for p in mixed)


def test_no_plantings_at_all_are_refused(records):
    with pytest.raises(ConfigError, match="at least 1"):
        plan(records, per_transformation=0, seed=1)


# Records to items ---------------------------------------------------------------------------------


def test_records_of_choices_are_one_item():
    rows = [
        {"question": "Who?", "answer": "(B)he", "is_correct": True, "instance_index": 0},
        {"question": "Who?", "answer": "(A)she", "is_correct": False, "instance_index": 0},
        {"question": "Who?", "answer": "For it was he.", "instance_index": 0},
    ]
    (item,) = items_of(table(rows))
    assert [str(choice) for choice in item.choices] == ["(A)she", "(B)he"]
    assert item.correct == 1
    assert as_text(item) == "Who?\n(A)she\n(B)he\nAnswer: (B)he"


def test_a_choice_that_stands_twice_counts_once():
    rows = [
        {"question": "Who?", "answer": answer, "is_correct": is_correct, "instance_index": 0}
        | {"choice_index": at}
        for at, (answer, is_correct) in enumerate([("he", False), ("she", False), ("he", True)])
    ]
    (item,) = items_of(table(rows))
    assert sorted(choice.text for choice in item.choices) == ["he", "she"]
    assert item.choices[item.correct].text == "he"


def test_several_accepted_answers_are_no_choices():
    rows = [
        {"question": "Who?", "answer": answer, "instance_index": 0, "choice_index": at}
        for at, answer in enumerate(["he", "the man"])
    ]
    (item,) = items_of(table(rows))
    assert item.choices == ()
    assert item.answer == "he"


def test_labelled_answers_without_a_key_are_choices():
    rows = [
        {"question": "Who?", "answer": answer, "instance_index": 0} for answer in ("(A)he", "(B)it")
    ]
    (item,) = items_of(table(rows))
    assert item.correct is None
    assert as_text(item) == "Who?\n(A)he\n(B)it"
