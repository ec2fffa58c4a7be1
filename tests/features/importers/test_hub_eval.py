"""Benchmarks that datasets of the hub declare in eval.yaml."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from decon_core.features.importers.imported import import_recipes

FILES: list[dict[str, Any]] = yaml.safe_load(
    Path(__file__).with_name("eval_files.yaml").read_text(encoding="utf-8")
)


def mirror(folder: Path, entry: dict[str, Any]) -> Path:
    """A folder like the dataset's repository; its card names columns if the entry does."""
    repository = folder / entry["data_set"]
    repository.mkdir(parents=True)
    (repository / "eval.yaml").write_text(entry["file"], encoding="utf-8")
    if columns := entry.get("columns"):
        info = {
            "features": [{"name": column, "dtype": "string"} for column in columns],
            "splits": [{"name": split} for split in entry["splits"]],
        }
        head = yaml.safe_dump({"dataset_info": info})
        (repository / "README.md").write_text(f"---\n{head}---\nA dataset.\n", encoding="utf-8")
    return folder


@pytest.mark.parametrize("entry", FILES, ids=lambda entry: entry["data_set"])
def test_each_task_of_the_file_becomes_a_recipe_or_is_refused_with_its_reason(
    tmp_path: Path, entry: dict[str, Any]
) -> None:
    benchmarks = import_recipes(mirror(tmp_path, entry))
    described: dict[str, object] = {}
    for benchmark in benchmarks:
        recipe = dict(benchmark.recipe or {})
        if benchmark.recipe is not None:
            assert recipe.pop("hf_path") == benchmark.data_set == entry["data_set"]
        described[benchmark.name] = recipe or benchmark.why
    assert described == entry["benchmarks"]
    proposed = [benchmark.reason for benchmark in benchmarks if benchmark.status == "proposed"]
    assert proposed == ([entry["reason"]] if "reason" in entry else [])


def test_the_cache_of_the_hub_names_data_set_and_revision(tmp_path: Path) -> None:
    snapshot = tmp_path / "datasets--you--quiz/snapshots/0a1b2c"
    snapshot.mkdir(parents=True)
    text = "tasks: [{id: quiz, field_spec: {input: q, target: a}}]"
    (snapshot / "eval.yaml").write_text(text, encoding="utf-8")
    (benchmark,) = import_recipes(snapshot / "eval.yaml")
    assert benchmark.recipe == {
        "hf_path": "you/quiz",
        "hf_revision": "0a1b2c",
        "splits": ["test"],
        "prompt": "q",
        "answers": ["a"],
    }
