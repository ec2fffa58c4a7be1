"""The hub, tried on datasets in local folders: same code, no network."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from decon_core.benchmarks.normalize import normalize
from decon_core.benchmarks.recipe import Recipe
from decon_core.errors import RecipeError
from tests.core.benchmarks.conftest import write_lines

RecipeOf = Callable[..., Recipe]


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("datasets")
    import datasets.config

    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    base = tmp_path / "set"
    for config in ("easy", "hard"):
        for split in ("train", "test"):
            rows = [{"q": f"{config} {split} {n}", "a": ["x", "y"]} for n in range(3)]
            write_lines(base / config / f"{split}.jsonl", rows)
    (base / "README.md").write_text(
        "---\nconfigs:\n"
        + "".join(
            f"- config_name: {config}\n  data_files:\n"
            f"  - {{split: train, path: {config}/train.jsonl}}\n"
            f"  - {{split: test, path: {config}/test.jsonl}}\n"
            for config in ("easy", "hard")
        )
        + "---\n"
    )
    return base


@pytest.mark.usefixtures("offline")
def test_rows_are_streamed_by_split_and_config(folder: Path, recipe_of: RecipeOf) -> None:
    source = f"hf_path: {folder}\n  hf_config: [hard, easy]"
    recipe = recipe_of("prompt: q\nanswers: [a.0]", source=source, splits="[test, train]")
    rows = normalize(recipe, base=folder, limit=4).to_pylist()
    found = [(r["split"], r["config"], r["instance_index"], r["question"]) for r in rows]
    assert found == [
        (split, config, index, f"{config} {split} {n}")
        for split in ("test", "train")
        for index, (config, n) in enumerate([("hard", 0), ("hard", 1), ("hard", 2), ("easy", 0)])
    ]
    assert {r["answer"] for r in rows} == {"x"}


@pytest.mark.usefixtures("offline")
@pytest.mark.parametrize(
    ("config", "splits"),
    [("nope", "[test]"), ("easy", "[nope]"), ("easy\n  hf_revision: x", "[t]")],
)
def test_a_config_or_split_that_is_absent_is_refused(
    folder: Path, recipe_of: RecipeOf, config: str, splits: str
) -> None:
    recipe = recipe_of(
        "prompt: q", source=f"hf_path: {folder}\n  hf_config: {config}", splits=splits
    )
    with pytest.raises(RecipeError, match="nothing to read on the hub") as error:
        normalize(recipe, base=folder)
    assert "Look up the names on the dataset's page: https://huggingface.co/" in str(error.value)


@pytest.mark.usefixtures("offline")
def test_a_data_set_that_is_absent_is_refused(tmp_path: Path, recipe_of: RecipeOf) -> None:
    recipe = recipe_of("prompt: q", source=f"hf_path: {tmp_path}/nope")
    with pytest.raises(RecipeError, match="bench: nothing to read on the hub"):
        normalize(recipe, base=tmp_path)


def test_without_the_package_the_error_says_how_to_get_it(
    tmp_path: Path, recipe_of: RecipeOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(RecipeError, match=r"pip install 'decon-assets\[hub\]'") as error:
        normalize(recipe_of("prompt: q"), base=tmp_path)
    assert str(error.value).startswith("bench.hf_path: reading")
