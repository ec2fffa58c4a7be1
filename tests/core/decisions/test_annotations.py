"""The file of annotations: what a line must have, what counts, and what a killed program leaves."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from decon_core.decisions.annotations import (
    KINDS,
    Annotation,
    Annotations,
    append_annotations,
    labels_of,
    line_of,
    new_annotations,
    read_annotations,
)
from decon_core.decisions.verdicts import Verdict, Verdicts, append_verdicts, read_verdicts
from decon_core.errors import InputError

PAIR, PRINT = "0" * 16, "f" * 16


def said(pair=PAIR, *, is_sd=True, match_type=None, **others):
    match_type = match_type or ("equivalent" if is_sd else "unrelated")
    if is_sd is None:
        match_type = ""
    return Annotation(pair=pair, fingerprint=PRINT, is_sd=is_sd, match_type=match_type, **others)


def failed(pair=PAIR, **others):
    return said(pair, is_sd=None, unjudged="HTTP 500", kind="model", **others)


def test_what_is_appended_is_read(tmp_path):
    path = tmp_path / "annotations.jsonl"
    assert not read_annotations(path)
    first = said(kind="model", by="m", request="r", confidence=0.0, reasoning="größer \ud83d")
    append_annotations(path, [first])
    append_annotations(path, [failed(), said(is_sd=False)])
    read = replace(first, reasoning="größer \N{REPLACEMENT CHARACTER}")
    assert read_annotations(path).lines == (read, failed(), said(is_sd=False))


def test_a_line_that_a_killed_program_left_is_dropped_and_nothing_else(tmp_path):
    path = tmp_path / "annotations.jsonl"
    append_annotations(path, [said(reasoning="x" * 9000)])
    whole = path.read_bytes()
    path.write_bytes(whole + whole[: len(whole) - 5])
    assert read_annotations(path).lines == (said(reasoning="x" * 9000),)
    append_annotations(path, [said(is_sd=False)])
    assert path.read_bytes().startswith(whole)
    assert len(read_annotations(path).lines) == 2
    path.write_bytes(b'{"pair": "0')
    append_annotations(path, [said()])
    assert read_annotations(path).lines == (said(),)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"pair": "x"}, "pair: found 'x'; expected 16 hex digits"),
        ({"is_sd": None}, "is_sd: missing; expected true or false"),
        ({"is_sd": "yes"}, "is_sd: found 'yes'"),
        ({"match_type": "equvalent"}, "Did you mean 'equivalent'"),
        ({"match_type": "unrelated"}, "found 'unrelated' with is_sd = true"),
        ({"is_sd": False, "match_type": "exact"}, "found 'exact' with is_sd = false"),
        ({"confidence": 1.5}, "confidence: found 1.5; expected a number from 0 to 1"),
        ({"reasoning": 3}, "reasoning: found 3; expected a string"),
        ({"kind": "person"}, "kind: found 'person'; expected one of file, model"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_what_is_wrong_with_a_line_is_said_with_its_place(tmp_path, change, message):
    path = tmp_path / "annotations.jsonl"
    path.write_text(json.dumps({**line_of(said()), **change}) + "\n")
    with pytest.raises(InputError) as error:
        read_annotations(path)
    assert f"{path}: line 1" in str(error.value)
    assert message in str(error.value)


def test_the_last_line_of_a_kind_counts_but_a_failure_does_not_hide_an_answer():
    model = {"kind": "model", "by": "m"}
    lines = (said(**model), said(**model, is_sd=False), failed(by="m"), said("1" * 16, kind="file"))
    found = Annotations((*lines, failed("2" * 16))).by_pair("model")
    assert found == {PAIR: lines[1], "2" * 16: failed("2" * 16)}


def test_a_person_counts_before_a_file_and_a_file_before_a_model():
    pairs = [f"{number:016x}" for number in range(5)]
    annotations = Annotations(
        (
            *(said(pair, kind="model", by="m") for pair in pairs[:3]),
            *(said(pair, is_sd=False, kind="file", by="f") for pair in pairs[:2]),
            failed(pairs[3]),
        )
    )
    people = Verdicts(
        {pairs[0]: Verdict(pair=pairs[0], fingerprint=PRINT, verdict="unsure", by="ada")}
    )
    labels = labels_of(people.labels, annotations)
    assert [(one.is_sd, one.kind) for one in labels.values()] == [
        (None, "person"),
        (False, "file"),
        (True, "model"),
        (None, "model"),
    ]
    assert labels[pairs[0]].unjudged == "a person is unsure"


@given(st.lists(st.tuples(st.sampled_from(KINDS), st.integers(0, 3), st.booleans()), max_size=12))
def test_no_order_of_kinds_changes_what_counts(lines):
    every = [said(f"{pair:016x}", is_sd=is_sd, kind=kind) for kind, pair, is_sd in lines]
    by_kind = [one for kind in KINDS for one in every if one.kind == kind]
    assert labels_of({}, Annotations(tuple(every))) == labels_of({}, Annotations(tuple(by_kind)))


def test_a_verdict_is_an_annotation_too(tmp_path):
    path = tmp_path / "verdicts.jsonl"
    named = {"pair": PAIR, "fingerprint": PRINT}
    append_verdicts(path, [{**named, "verdict": "leak", "match_type": "subset", "confidence": 0.8}])
    label = read_verdicts(path).labels[PAIR]
    person = Annotation(**named, kind="person")
    assert label == replace(person, is_sd=True, match_type="subset", confidence=0.8)
    append_verdicts(path, [{**named, "verdict": "template", "note": "a form"}])
    label = read_verdicts(path).labels[PAIR]
    assert label == replace(person, is_sd=False, reasoning="a form")
    with pytest.raises(InputError, match="found 'unrelated' with the verdict leak"):
        append_verdicts(path, [{**named, "verdict": "leak", "match_type": "unrelated"}])
    with pytest.raises(InputError, match="confidence: found 2"):
        append_verdicts(path, [{**named, "verdict": "unsure", "confidence": 2}])
    append_verdicts(path, [{**named, "verdict": "unsure", "match_type": "unrelated"}])


def test_a_file_that_is_imported_again_adds_nothing():
    lines = [said(by="f"), said(is_sd=False, by="f"), said(by="f")]
    new = new_annotations(lines, Annotations())
    assert new == lines[:2]
    assert new_annotations(lines, Annotations(tuple(new))) == []
