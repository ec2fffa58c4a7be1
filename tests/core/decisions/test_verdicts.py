"""What people said of single findings: the file, the key, and what they change."""

import json
import subprocess
import sys

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from decon_core.config.policy import Policy
from decon_core.decisions.annotations import Annotation, Annotations
from decon_core.decisions.decide import decide
from decon_core.decisions.verdicts import (
    VERDICTS,
    Verdict,
    Verdicts,
    append_verdicts,
    read_lines,
    read_verdicts,
)
from decon_core.errors import InputError
from decon_core.schemas import MATCHES

WORDS = Policy(tokenizer_str="words")
TEXT_IDS = [f"{number:016x}" for number in range(6)]


def line(text_id=0, verdict="leak", **others):
    return {"pair": TEXT_IDS[text_id], "fingerprint": "f" * 16, "verdict": verdict, **others}


def saying(said, **settings):
    """Verdicts by number of matched text."""
    by_text = {
        TEXT_IDS[text_id]: Verdict(pair=TEXT_IDS[text_id], fingerprint="f" * 16, verdict=verdict)
        for text_id, verdict in said.items()
    }
    return Verdicts(by_text, **settings)


def problems(error):
    return [str(problem) for problem in error.value.problems]


# The file -----------------------------------------------------------------------------------------


def test_without_a_file_nobody_said_anything(tmp_path):
    assert not read_verdicts(tmp_path / "verdicts.jsonl")


def test_of_several_lines_about_a_text_the_last_one_counts_and_none_takes_back(tmp_path):
    path = tmp_path / "verdicts.jsonl"
    append_verdicts(path, [line(0, "leak"), line(1, "unsure", note="?")])
    append_verdicts(path, [line(0, "template", note="a form"), line(2), line(2, "none")])
    append_verdicts(path, [line(1, "none"), line(1, "leak")])
    found = read_verdicts(path)
    assert {text_id: (one.verdict, one.note) for text_id, one in found.by_text.items()} == {
        TEXT_IDS[0]: ("template", "a form"),
        TEXT_IDS[1]: ("leak", ""),
    }
    assert len(read_lines(path)) == 7


def test_what_is_in_the_file_keeps_its_bytes_when_lines_are_put_behind_it(tmp_path):
    path = tmp_path / "verdicts.jsonl"
    before = b'{"verdict":"leak",  "pair":"%s","fingerprint":"%s", "mood": {"a": 1}}\n\n' % (
        TEXT_IDS[0].encode(),
        b"f" * 16,
    )
    path.write_bytes(before)
    append_verdicts(path, [line(1, note="größer \ud83d", place={"row": 3})])
    content = path.read_bytes()
    assert content.startswith(before)
    assert content.endswith(b"\n")
    assert [one["pair"] for one in read_lines(path)] == TEXT_IDS[:2]
    assert read_lines(path)[0]["mood"] == {"a": 1}
    assert read_lines(path)[1]["place"] == {"row": 3}


def test_everything_that_is_wrong_with_a_file_is_said_at_once(tmp_path):
    path = tmp_path / "verdicts.jsonl"
    wrong = [
        "<<<<<<< HEAD",
        json.dumps(line(0)),
        "=======",
        json.dumps(line(0, "tempalte")),
        ">>>>>>> theirs",
        '{"pair": "0", "verdict": null}',
        "[1]",
        json.dumps(line(1))[:-3],
    ]
    path.write_text("\n".join(wrong))
    with pytest.raises(InputError) as error:
        read_verdicts(path)
    said = "\n".join(problems(error))
    for number, part in (
        (1, "a merge conflict marker"),
        (3, "Git could not merge"),
        (4, "Did you mean 'template'"),
        (5, "keep the lines of both sides"),
        (6, "verdict: missing; expected one of leak, template"),
        (6, "expected 16 hex digits"),
        (7, "a JSON object"),
        (8, "no newline at its end"),
    ):
        assert any(f"line {number}" in told and part in told for told in said.splitlines()), part
    assert "line 2" not in said


def test_half_a_character_in_a_note_is_replaced(tmp_path):
    path = tmp_path / "verdicts.jsonl"
    append_verdicts(path, [line(0, "leak", note="😀 \ud83d, \\ud83d")])
    assert read_verdicts(path).by_text[TEXT_IDS[0]].note == "😀 \ufffd, \\ud83d"


def test_a_mark_that_editors_put_first_is_no_part_of_the_first_line(tmp_path):
    path = tmp_path / "verdicts.jsonl"
    path.write_text(json.dumps(line(0)) + "\n", encoding="utf-8-sig")
    assert [*read_verdicts(path).by_text] == [line(0)["pair"]]


def test_a_folder_in_the_place_of_the_file_is_refused(tmp_path):
    with pytest.raises(InputError, match="directory"):
        read_verdicts(tmp_path)


def test_nothing_is_put_behind_a_line_that_is_cut_off(tmp_path):
    path = tmp_path / "verdicts.jsonl"
    path.write_text(json.dumps(line(0)))
    before = path.read_bytes()
    with pytest.raises(InputError, match="add a newline if the line is complete"):
        append_verdicts(path, [line(1)])
    assert path.read_bytes() == before


def test_of_lines_one_of_which_is_wrong_none_is_written(tmp_path):
    path = tmp_path / "verdicts.jsonl"
    with pytest.raises(InputError, match="one of leak"):
        append_verdicts(path, [line(0), line(1, "maybe")])
    assert not path.exists()


APPEND = """
import json, sys
from pathlib import Path
from decon_core.decisions.verdicts import append_verdicts
for number in range(50):
    append_verdicts(Path(sys.argv[1]), [json.loads(sys.argv[2]) | {"number": number}])
"""


def test_several_who_append_at_once_lose_nothing(tmp_path):
    path = tmp_path / "verdicts.jsonl"
    started = [
        subprocess.Popen(
            [sys.executable, "-c", APPEND, str(path), json.dumps(line(text_id, note="x" * 500))]
        )
        for text_id in range(3)
    ]
    assert [process.wait() for process in started] == [0, 0, 0]
    numbers = [(one["pair"], one["number"]) for one in read_lines(path)]
    assert sorted(numbers) == [(TEXT_IDS[text_id], n) for text_id in range(3) for n in range(50)]


def test_the_digest_of_texts_tells_what_decides_and_nothing_else():
    before = saying({0: "leak", 1: "unsure"})
    assert before.digest_of(TEXT_IDS[:2]) == saying({0: "leak"}).digest_of(TEXT_IDS[:1])
    assert before.digest_of(TEXT_IDS[:2]) != saying({0: "template"}).digest_of(TEXT_IDS[:2])
    assert before.digest_of(TEXT_IDS[1:]) is None
    assert saying({0: "template"}, clears=()).digest_of(TEXT_IDS) is None
    assert before.digest != saying({0: "leak"}).digest


def test_a_judgement_is_of_texts_about_which_no_person_is_sure():
    said = saying({0: "leak", 1: "unsure", 2: "template"})
    lines = [Annotation(pair=text_id, fingerprint="f" * 16, is_sd=True) for text_id in TEXT_IDS[:4]]
    lines += [Annotation(pair=TEXT_IDS[4], fingerprint="f" * 16, unjudged="HTTP 500")]
    judged = said.with_judgements(Annotations(tuple(lines)), "leak")
    assert judged.judged == dict.fromkeys((TEXT_IDS[1], TEXT_IDS[3]), True)
    assert judged.digest_of(TEXT_IDS[:1]) == said.digest_of(TEXT_IDS[:1])
    assert judged.digest_of(TEXT_IDS[3:]) != said.digest_of(TEXT_IDS[3:])
    waiting = said.with_judgements(Annotations(tuple(lines)), "review")
    assert waiting.digest_of(TEXT_IDS[3:]) != judged.digest_of(TEXT_IDS[3:])


def test_a_judgement_clears_what_is_no_leak_by_its_score_and_nothing_else():
    other = saying({}, judged={TEXT_IDS[0]: False})
    (found,) = entries([match(text_id=TEXT_IDS[0], base_score=1.0)], other)
    assert found["is_contaminated"]
    kind = {"detector": "reworded", "text_id": TEXT_IDS[0], "base_score": 0.9, "kind": "reworded"}
    (found,) = entries([match(**kind)], saying({}))
    assert found["needs_review"]
    (found,) = entries([match(**kind)], other)
    assert (found["needs_review"], found["is_contaminated"]) == (False, False)
    (found,) = entries([match(**kind)], saying({}, judged={TEXT_IDS[0]: True}))
    assert (found["needs_review"], found["is_contaminated"]) == (False, True)


# What verdicts change -----------------------------------------------------------------------------


def match(**values):
    """A row of a scan result; what decides it is given."""
    filler = {"string": "x", "int64": 0, "double": 0.0}
    row = {field.name: None if field.nullable else filler[str(field.type)] for field in MATCHES}
    # Short texts would have to be found whole.
    lengths = {"n_grams": 5, "question_tokens": 100, "total_tokens": 100, "n_matched": 5}
    row |= {"detector": "decon", "question_overlap": 1.0, "question_start": 0, **lengths}
    return row | values


def entries(matches, verdicts, policy=WORDS):
    return decide(pa.Table.from_pylist(matches, schema=MATCHES), policy, verdicts).to_pylist()


def test_what_a_person_said_comes_before_the_score():
    matches = [
        match(row=n, text_id=TEXT_IDS[n], base_score=0.9 if n < 4 else 0.7) for n in range(6)
    ]
    said = {0: "template", 1: "common source", 2: "unsure", 4: "leak", 5: "unsure"}
    found = entries(matches, saying(said))
    assert [one["verdict"] for one in found] == [said.get(n) for n in range(6)]
    assert [one["is_by_score"] for one in found] == [True] * 4 + [False] * 2
    assert [one["is_contaminated"] for one in found] == [False, False, True, True, True, False]


def test_a_date_that_is_none_is_refused(tmp_path):
    path = tmp_path / "verdicts.jsonl"
    line = {"pair": "a" * 16, "fingerprint": "b" * 16, "verdict": "leak"}
    for at in ("2026-11-22", "2026-11-22T04:38:21Z", ""):
        append_verdicts(path, [{**line, "at": at}])
    for at in ("yesterday", 7):
        with pytest.raises(InputError, match="expected a date and time"):
            append_verdicts(path, [{**line, "at": at}])


def test_the_settings_say_which_verdicts_clear():
    matches = [match(row=n, text_id=TEXT_IDS[n], base_score=0.9) for n in range(2)]
    said = {0: "template", 1: "common source"}
    called = {
        clears: [one["is_contaminated"] for one in entries(matches, saying(said, clears=clears))]
        for clears in ((), ("template",), ("common source",))
    }
    assert called == {
        (): [True, True],
        ("template",): [False, True],
        ("common source",): [True, False],
    }


def test_a_record_that_was_cleared_hides_no_other_of_its_item():
    cleared = match(record=0, text_id=TEXT_IDS[0], base_score=1.0, is_correct=True)
    leaked = match(record=1, text_id=TEXT_IDS[1], base_score=0.85, answer_start=40, answer_stop=44)
    (one,) = entries([cleared, leaked], saying({0: "template"}))
    assert (one["record"], one["is_contaminated"]) == (1, True)


def test_the_other_choices_that_the_very_same_words_found_are_cleared_with_the_best():
    choices = [
        match(record=n, text_id=TEXT_IDS[n], base_score=score, question_stop=80)
        for n, score in enumerate((0.85, 0.9, 0.9))
    ]
    (one,) = entries(choices, saying({1: "template"}))
    assert (one["record"], one["verdict"]) == (1, "template")
    assert (one["is_by_score"], one["is_contaminated"]) == (True, False)
    # Of a better one nobody has said anything, nor of the same words elsewhere in the document.
    (one,) = entries(choices, saying({0: "template"}))
    assert (one["record"], one["is_contaminated"]) == (1, True)
    elsewhere = match(
        record=0, text_id=TEXT_IDS[0], base_score=0.85, question_start=7, question_stop=87
    )
    called = entries([*choices, elsewhere], saying({1: "template"}))
    assert [one["is_contaminated"] for one in called] == [False, True]


def test_what_counts_by_score_is_the_same_whatever_people_said():
    better = match(record=0, text_id=TEXT_IDS[0], base_score=1.0)
    confirmed = match(record=1, text_id=TEXT_IDS[1], base_score=0.7)
    for said in ({}, {0: "template"}, {1: "leak"}, {0: "template", 1: "leak"}):
        (one,) = entries([better, confirmed], saying(said))
        assert one["is_by_score"]


def test_a_record_that_was_confirmed_is_hidden_by_no_other_of_its_item():
    better = match(record=0, text_id=TEXT_IDS[0], base_score=1.0)
    confirmed = match(record=1, text_id=TEXT_IDS[1], base_score=0.7)
    (one,) = entries([better, confirmed], saying({1: "leak"}))
    assert (one["record"], one["verdict"]) == (1, "leak")


def plain(matches, verdicts):
    """One entry per item and place, chosen by going through them."""
    clearing = [one for one in matches if _said(one, verdicts) in verdicts.clears]
    places, by_score = {}, set()
    for one in matches:
        is_decon = one["detector"] == "decon"
        is_by_score = one["base_score"] >= (0.8 if is_decon else 0.5)
        said = _said(one, verdicts)
        is_leak = is_by_score
        if said == "leak":
            is_leak = True
        elif said in verdicts.clears or (
            said is None
            and any(
                _is_same(one, other) and one["base_score"] <= other["base_score"]
                for other in clearing
            )
        ):
            is_leak = False
        elif verdicts.judged.get(one["text_id"]):
            is_leak = True
        place = one["row"], one["detector"], one["question_start"] if is_decon else None
        rank = (
            *(is_leak, is_leak and said == "leak", is_by_score, one["base_score"]),
            *(said is not None, one["is_correct"] is True, -one["record"]),
        )
        if is_by_score:
            by_score.add(place)
        if place not in places or rank > places[place][0]:
            places[place] = rank, one["record"], said, is_leak
    return {
        place: (record, place in by_score, said, is_leak)
        for place, (_, record, said, is_leak) in places.items()
    }


def _said(one, verdicts):
    return verdicts.by_text[one["text_id"]].verdict if one["text_id"] in verdicts.by_text else None


def _is_same(one, other):
    names = ("row", "detector", "question_start", "question_stop")
    return all(one[name] == other[name] for name in names)


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["decon", "exact"]),
            st.integers(0, 1),
            st.integers(0, 1),
            st.sampled_from(TEXT_IDS),
            st.sampled_from([0.4, 0.6, 0.8, 0.9, 1.0]),
            st.sampled_from([None, False, True]),
            st.integers(50, 51),
        ),
        max_size=12,
    ),
    st.dictionaries(st.integers(0, 5), st.sampled_from(VERDICTS)),
    st.sampled_from([(), ("template",), ("template", "common source")]),
    st.dictionaries(st.sampled_from(TEXT_IDS), st.booleans()),
)
def test_prop_findings_with_verdicts_are_those_of_a_plain_reading(rows, said, clears, judged):
    names = (
        *("detector", "row", "question_start", "text_id", "base_score", "is_correct"),
        "question_stop",
    )
    matches = [match(record=n, **dict(zip(names, row, strict=True))) for n, row in enumerate(rows)]
    judged = {
        text_id: is_sd for text_id, is_sd in judged.items() if TEXT_IDS.index(text_id) not in said
    }
    verdicts = saying(said, clears=clears, judged=judged)
    policy = Policy(tokenizer_str="words", detectors=("decon", "exact"))
    found = entries(matches, verdicts, policy)
    expected = plain(matches, verdicts)
    assert len(found) == len(expected)
    for one in found:
        is_decon = one["detector"] == "decon"
        place = one["row"], one["detector"], one["question_start"] if is_decon else None
        told = one["record"], one["is_by_score"], one["verdict"], one["is_contaminated"]
        assert told == expected[place]
    leaks = {m["row"] for m in matches if verdicts.decisive.get(m["text_id"])}
    assert leaks <= {one["row"] for one in found if one["verdict"] == "leak"}
