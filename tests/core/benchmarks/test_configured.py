"""Benchmarks of the catalog in decon.toml."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from decon_core.benchmarks.configured import benchmarks_of, refused_of
from decon_core.config.load import Config, config_from
from decon_core.errors import ConfigError


def config(folder: Path, **evals: Any) -> Config:
    source = {"name": "web", "path": "shards/*.jsonl"}
    return config_from({"evals": evals, "corpus": {"source": [source]}}, folder / "decon.toml")


def test_sets_of_the_catalog_and_own_ones_select_benchmarks(tmp_path: Path) -> None:
    own = {"mine": ["aime_2026", "frontier_math"]}
    configured = config(tmp_path, catalog=["@mine", "gsm8k"], sets=own)
    assert [*benchmarks_of(configured)] == ["aime_2026", "gsm8k"]
    assert refused_of(configured) == (("frontier_math", "private", True),)


def test_a_benchmark_of_the_catalog_with_a_recipe_of_its_own_is_a_duplicate(tmp_path: Path) -> None:
    recipe = "evals:\n  gsm8k: {local_path: a.jsonl, splits: [test], prompt: q}\n"
    (tmp_path / "evals.yaml").write_text(recipe)
    with pytest.raises(ConfigError, match=r"evals\.catalog: gsm8k: found a duplicate name"):
        benchmarks_of(config(tmp_path, recipes=["evals.yaml"], catalog=["gsm8k"]))


def test_an_unknown_set_is_an_error_of_its_setting(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"evals.catalog: found '@mth'.*Did you mean '@math'"):
        benchmarks_of(config(tmp_path, catalog=["@mth"]))
