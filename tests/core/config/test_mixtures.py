"""What a mixture is to be: read from TOML, all that is wrong told at once."""

import pytest

from decon_core.config.mixtures import (
    DEFAULT,
    Leaks,
    Licenses,
    Mixture,
    mixture_named,
    read_mixtures,
    unknown_names,
)
from decon_core.errors import ConfigError


def read(*entries, sources=("web", "chat")):
    return read_mixtures([*entries], where="decon.toml", sources=sources)


def told(*entries):
    _, problems = read(*entries)
    return [(problem.where.removeprefix("decon.toml: "), problem.found) for problem in problems]


def test_without_any_there_is_the_corpus_without_its_leaks():
    assert read_mixtures(None, where="decon.toml", sources=["web"]) == ((DEFAULT,), [])
    assert Mixture(name="decontaminated", take="clean", cut="documents") == DEFAULT


def test_everything_that_can_be_said_is_read():
    found, problems = read(
        {
            "name": "open",
            "sources": ["web"],
            "cut": "spans",
            "mask": "[...]",
            "leaks": {"detectors": ["decon"], "splits": ["test"], "least_score": 0.9},
            "licenses": {"field": "license", "allow": ["MIT"], "unknown": "keep"},
        },
        {"name": "clean"},
        {"name": "fewer", "take": "control", "control_of": "clean", "seed": 7},
    )
    assert problems == []
    assert found[0] == Mixture(
        name="open",
        sources=("web",),
        cut="spans",
        mask="[...]",
        leaks=Leaks(detectors=("decon",), splits=("test",), least_score=0.9),
        licenses=Licenses(fields=("license",), allow=("MIT",), unknown="keep"),
    )
    assert (found[2].control_of, found[2].seed) == ("clean", 7)


def test_all_that_is_wrong_is_told_at_once():
    assert told(
        {"name": "a", "take": "claen"},
        {"name": "b", "sources": ["books"], "leeks": {}},
        {"name": "c", "licenses": {"field": 3}},
        {"name": "n", "licenses": {"field": "license"}},
        {"name": "d", "leaks": {"detectors": ["docon"], "least_score": "high"}},
        {"name": "q", "leaks": {"no_answer": "drop"}},
        {"take": "clean"},
        "text",
    ) == [
        ("mixture[0].take", "'claen'"),
        ("mixture[1].sources[0]", "'books'"),
        ("mixture[1].leeks", "unknown key 'leeks'"),
        ("mixture[2].licenses.field", "3"),
        ("mixture[3].licenses", "neither 'allow' nor 'deny'"),
        ("mixture[4].leaks.detectors[0]", "'docon'"),
        ("mixture[4].leaks.least_score", "'high'"),
        ("mixture[5].leaks.no_answer", "'drop'"),
        ("mixture[6].name", "missing"),
        ("mixture[7]", "'text'"),
    ]


@pytest.mark.parametrize(
    ("control", "found"),
    [
        ({"control_of": "nobody"}, "nobody"),
        ({}, "missing"),
        ({"control_of": "spans"}, "'spans'"),
        ({"control_of": "clean", "sources": ["web"]}, "sources, leaks or licenses"),
    ],
)
def test_a_control_is_one_of_a_treatment_and_differs_in_nothing_else(control, found):
    others = [{"name": "clean"}, {"name": "spans", "cut": "spans"}]
    entry = {"name": "control", "take": "control", **control}
    assert told(*others, entry) == [("mixture 'control': control_of", found)]


MASKS = {"cut": "spans", "write": "mask", "tokenizer": "olmo2"}


@pytest.mark.parametrize(
    ("key", "entry"),
    [
        ("mask", {"mask": "-"}),
        ("mask", {"cut": "turns", "mask": "-"}),
        ("cut", {"take": "leaks", "cut": "spans"}),
        ("cut", {"take": "everything", "cut": "turns"}),
        ("leaks", {"take": "everything", "leaks": {"splits": ["test"]}}),
        ("seed", {"seed": 1}),
        ("control_of", {"control_of": "other"}),
        ("cut", {"take": "control", "control_of": "other", "cut": "turns"}),
        ("mask", {"take": "control", "control_of": "other", "mask": "-"}),
        ("licenses.allow", {"licenses": {"field": "l", "allow": ["mit"], "deny": ["GPL", "MIT"]}}),
        ("tokenizer", {"tokenizer": "olmo2"}),
        ("add_special_tokens", {"cut": "spans", "add_special_tokens": True}),
        ("mask", {**MASKS, "mask": "-"}),
        ("cut", {**MASKS, "cut": "documents"}),  # nothing would be masked
        ("take", {**MASKS, "cut": "documents", "take": "everything"}),
        ("tokenizer", {"cut": "spans", "write": "mask"}),
    ],
)
def test_a_key_that_would_do_nothing_is_refused(key, entry):
    ((where, _),) = told({"name": "other"}, {"name": "m", **entry})
    assert where == f"mixture[1].{key}"


def test_a_default_may_be_said_wherever_it_holds():
    assert told({"name": "m", "take": "leaks", "cut": "documents", "mask": "", "seed": 0}) == []


def test_names_that_some_file_systems_take_for_one_are_refused():
    ((where, found),) = told({"name": "Clean"}, {"name": "clean"}, {"name": "open"})
    assert (where, found) == ("mixture", "'Clean' and 'clean', which differ only in case")


@pytest.mark.parametrize(
    ("leaks", "wrong"),
    [
        (Leaks(splits=("test",)), []),
        (Leaks(benchmarks=("b",), splits=("test",)), ["'test'"]),
        (Leaks(splits=("tset", "train")), ["'tset'"]),
        (Leaks(benchmarks=("c",), splits=("test",)), ["'c'"]),
    ],
)
def test_benchmarks_and_splits_that_nobody_has_are_told(leaks, wrong):
    known = {"a": ("train", "test"), "b": ("train",)}
    found = unknown_names([Mixture(name="m", leaks=leaks)], known)
    assert [problem.found for problem in found] == wrong


def test_names_are_partition_keys_and_each_is_used_once():
    (first, second) = told({"name": "a|b"}, {"name": "c"}, {"name": "c"})
    assert first == ("mixture", "'c' more than once")
    assert second[1] == "'a|b'"


def test_a_name_that_nobody_declared_is_said_to_be_unknown():
    with pytest.raises(
        ConfigError, match=r"'x': no such name in decon\.toml; expected one of decontaminated"
    ):
        mixture_named([DEFAULT], "x")


def test_settings_of_masks_change_no_fingerprint_of_other_mixtures():
    assert not {"tokenizer", "add_special_tokens"} & DEFAULT.to_json().keys()
    (masks,), problems = read({"name": "m", **MASKS, "tokenizer": "/here/or/there.json"})
    assert problems == []
    assert masks.to_json()["tokenizer"] == "there.json"
