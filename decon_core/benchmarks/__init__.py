"""Benchmark rows -> normalized records: recipes, readers, and the catalog of public benchmarks.

    recipes = load_recipes(Path("evals.yaml"))
    records = normalize(recipes["gsm8k"], base=Path("."))

The way of a row: `recipe` (what to take; `parse` reads it from YAML), `files`, `readers` and `hub`
(where rows come from), `fields` (a value in one), `prompts` and `answers` (its texts), `normalize`
(the records of all rows). Rows that are records already go through `normalized`.
"""

from decon_core.benchmarks.catalog import CATALOG_PATH, catalog
from decon_core.benchmarks.files import files_by_split, local_paths
from decon_core.benchmarks.normalize import normalize, normalize_rows
from decon_core.benchmarks.parse import load_recipes
from decon_core.benchmarks.recipe import HubSource, LocalSource, Recipe
from decon_core.benchmarks.record_table import fingerprint_of

__all__ = [
    "CATALOG_PATH",
    "HubSource",
    "LocalSource",
    "Recipe",
    "catalog",
    "files_by_split",
    "fingerprint_of",
    "load_recipes",
    "local_paths",
    "normalize",
    "normalize_rows",
]
