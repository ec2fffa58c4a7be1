"""The built-in recipes."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from decon_core.benchmarks.parse import load_recipes
from decon_core.benchmarks.recipe import Recipe

CATALOG_PATH = Path(__file__).with_name("catalog.yaml")


def catalog() -> dict[str, Recipe]:
    """Return the built-in recipes of public benchmarks by name."""
    return dict(_load_catalog())


@cache
def _load_catalog() -> dict[str, Recipe]:
    return load_recipes(CATALOG_PATH)
