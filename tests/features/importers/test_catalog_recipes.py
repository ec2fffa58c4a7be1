"""Recipes derived from task files are those that the catalog has, written by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from decon_core.benchmarks.catalog import catalog
from decon_core.benchmarks.normalize import normalize_rows
from decon_core.benchmarks.parse import parse_recipes
from decon_core.benchmarks.recipe import HubSource, Recipe
from decon_core.features.importers.benchmark import Status
from decon_core.features.importers.imported import import_recipes, recipe_file

HERE = Path(__file__)
TASKS: dict[str, Any] = {
    entry["catalog"]: entry
    for entry in yaml.safe_load(HERE.with_name("harness_tasks.yaml").read_text(encoding="utf-8"))
}
ROWS: dict[str, Any] = yaml.safe_load(
    (HERE.parents[2] / "core/benchmarks/catalog_rows.yaml").read_text(encoding="utf-8")
)
COLUMNS = ["sub_index", "choice_index", "passage", "question", "answer", "is_correct"]


@pytest.fixture(scope="module")
def derived(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Recipe]:
    """The recipe of each task, imported from a folder of its own: benchmarks are not merged."""
    recipes = {}
    for name, entry in TASKS.items():
        folder = tmp_path_factory.mktemp(name)
        text = yaml.safe_dump({"task": name, **entry["task"]})
        (folder / f"{name}.yaml").write_text(text, encoding="utf-8")
        (benchmark,) = import_recipes(folder)
        assert benchmark.status is Status.DERIVED, benchmark.why
        recipes |= parse_recipes(recipe_file([benchmark]), where=name)
    return recipes


def facts(recipe: Recipe) -> dict[str, object]:
    """What a registry may declare of a recipe."""
    assert isinstance(recipe.source, HubSource)
    return {
        "hf_path": recipe.source.path,
        "hf_config": {*recipe.source.configs} - {"default"},
        "splits": {*recipe.splits},
        "questions": recipe.questions,
        "passage": recipe.passage,
        "answers": recipe.answers,
        "no_answer_splits": recipe.no_answer_splits,
    }


def test_there_are_more_than_thirty() -> None:
    assert len(TASKS) > 30


@pytest.mark.parametrize("name", TASKS)
def test_the_derived_recipe_is_the_one_of_the_catalog_but_for_named_differences(
    name: str, derived: dict[str, Recipe]
) -> None:
    by_hand, imported = facts(catalog()[name]), facts(derived[name])
    different = {key for key in by_hand if by_hand[key] != imported[key]}
    assert different == {*TASKS[name].get("differs", {})}


@pytest.mark.parametrize("name", TASKS)
def test_the_derived_recipe_gives_the_same_records(name: str, derived: dict[str, Recipe]) -> None:
    by_hand, imported = catalog()[name], derived[name]
    split = min({*by_hand.splits} & {*imported.splits})
    expected, actual = (
        normalize_rows(recipe, [ROWS[name]["row"]], split=split, origin=name).select(COLUMNS)
        for recipe in (by_hand, imported)
    )
    assert actual.to_pylist() == expected.to_pylist()
