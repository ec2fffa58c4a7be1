"""The recipes that come with this package."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from decon_core.benchmarks.parse import load_recipes
from decon_core.benchmarks.recipe import Recipe

CATALOG_PATH = Path(__file__).with_name("catalog.yaml")


def catalog() -> dict[str, Recipe]:
    """Public benchmarks by name, written from their published field names."""
    return dict(_shipped())


@cache
def _shipped() -> dict[str, Recipe]:
    return load_recipes(CATALOG_PATH)
