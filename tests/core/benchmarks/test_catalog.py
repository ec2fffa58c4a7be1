"""Every shipped recipe against a made-up row of the published shape."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from decon_core.benchmarks.normalize import normalize_rows
from decon_core.benchmarks.normalized import fingerprint_of
from decon_core.benchmarks.parse import catalog
from decon_core.benchmarks.recipe import HubSource
from decon_core.schemas import RECORDS

CASES: dict[str, dict[str, Any]] = yaml.load(
    Path(__file__).with_name("catalog_rows.yaml").read_text(encoding="utf-8"), yaml.CSafeLoader
)


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
    assert set(catalog()) == set(CASES)


def test_the_catalog_covers_what_the_readme_promises() -> None:
    assert len(catalog()) >= 70


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
    local = [name for name, r in catalog().items() if not isinstance(r.source, HubSource)]
    assert local == ["truthful_qa_csv", "true_detective", "mt_bench_questions", "arena_hard"]


def test_no_two_recipes_of_the_catalog_share_a_fingerprint() -> None:
    fingerprints = [recipe.fingerprint for recipe in catalog().values()]
    assert len(set(fingerprints)) == len(fingerprints)


def test_changing_the_returned_catalog_does_not_change_the_shipped_one() -> None:
    catalog().clear()
    assert catalog()
