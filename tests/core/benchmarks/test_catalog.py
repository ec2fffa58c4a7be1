"""Every shipped recipe against a made-up row of the published shape."""

from __future__ import annotations

import json
from typing import Any

import pytest

from decon_core.benchmarks.catalog import catalog, entries, entries_by_key, refused, select, sets
from decon_core.benchmarks.download import is_remote
from decon_core.benchmarks.normalize import normalize_rows
from decon_core.benchmarks.normalized import fingerprint_of
from decon_core.benchmarks.parse import expanded
from decon_core.benchmarks.recipe import HubSource
from decon_core.errors import InputError
from decon_core.schemas import RECORDS
from tests.core.benchmarks.catalog_cases import catalog_cases

CASES = catalog_cases()


def expected_records(name: str, case: dict[str, Any]) -> list[tuple[object, ...]]:
    """(config, sub index, choice index, passage, question, answer, is correct), written out."""
    records: list[tuple[object, ...]] = []
    several = "questions" in case
    for sub_index, item in enumerate(case["questions"] if several else [case]):
        answers = item.get("answers") or [[None, None]]
        for choice_index, (answer, is_correct) in enumerate(answers):
            records.append(
                (
                    case.get("config"),
                    sub_index if several else None,
                    choice_index if len(answers) > 1 else None,
                    case.get("passage"),
                    item["question"],
                    answer,
                    is_correct,
                )
            )
    return records


def test_every_recipe_of_the_catalog_has_a_row_and_every_row_a_recipe() -> None:
    """The recipes of a family differ only in their config, so one of them has a row."""
    key_of = {name: key for name, key, _ in expanded(entries_by_key())}
    assert {key_of[name] for name in CASES} == {*entries_by_key()}


@pytest.mark.parametrize("name", sorted(CASES))
def test_the_made_up_row_becomes_the_expected_records(name: str) -> None:
    case, recipe = CASES[name], catalog()[name]
    split = case.get("split", recipe.splits[0])
    table = normalize_rows(recipe, [case["row"]], split=split, origin=name)
    assert table.schema == RECORDS
    columns = ["config", "sub_index", "choice_index", "passage", "question", "answer", "is_correct"]
    records = table.to_pylist()
    assert [tuple(r[column] for column in columns) for r in records] == expected_records(name, case)
    assert {r["benchmark"] for r in records} == {name}
    assert {(r["split"], r["instance_index"]) for r in records} == {(split, 0)}
    for r in records:
        assert r["fingerprint"] == fingerprint_of(r["passage"], r["question"], r["answer"])
    if "extras" in case:
        assert json.loads(records[0]["extras"]) == case["extras"]


def test_recipes_of_the_catalog_read_from_the_hub_what_is_published_there() -> None:
    local = {
        name
        for name, recipe in catalog().items()
        if not isinstance(recipe.source, HubSource) and "://" not in str(recipe.source)
    }
    files = {"truthful_qa_csv", "true_detective", "mt_bench_questions", "arena_hard"}
    assert local == files | {"aider_polyglot", "story_cloze"}


def test_no_two_recipes_of_the_catalog_share_a_fingerprint() -> None:
    fingerprints = [recipe.fingerprint for recipe in catalog().values()]
    assert len(set(fingerprints)) == len(fingerprints)


def test_changing_the_returned_catalog_does_not_change_the_shipped_one() -> None:
    catalog().clear()
    assert catalog()


def test_an_entry_derives_from_another_and_no_name_is_used_twice() -> None:
    names = {*catalog(), *refused()}
    assert {e["derived_from"] for e in entries().values() if "derived_from" in e} < names
    assert not {*catalog()} & {*refused()}


def test_a_set_names_recipes_of_the_catalog_and_what_cannot_be_had() -> None:
    for name in sets():
        chosen = select([f"@{name}"]).names
        assert chosen
        assert all(is_remote(catalog()[one]) for one in chosen)  # no file has to be put anywhere
    frontier = select(["@frontier"])
    assert {"hmmt_feb_2026", "swe_bench_verified", "gpqa_diamond"} <= {*frontier.names}
    assert frontier.refused["frontier_math"] == "private"
    own = {"mine": ["@both"], "both": ["mmlu", "gsm8k"]}
    by_name = select(["@mine", "gsm8k", "include_fr*"], own=own)
    assert by_name.names == ("mmlu", "gsm8k", "include_french")


def test_an_unknown_name_and_a_set_in_itself_are_errors() -> None:
    with pytest.raises(InputError, match="Did you mean '@math'"):
        select(["@mth"])
    with pytest.raises(InputError, match="`decon-assets catalog` lists all"):
        select(["nope"])  # not much like "nq_open"
    with pytest.raises(InputError, match="contains itself"):
        select(["@a"], own={"a": ["@b"], "b": ["@a"]})
