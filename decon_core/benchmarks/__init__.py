"""Turn benchmark rows into normalized records: recipes, readers, a catalog of public benchmarks.

    recipes = load_recipes(Path("evals.yaml"))
    records = normalize(recipes["gsm8k"], base=Path("."))

`recipe` defines which fields to use (`parse` reads it from YAML); `files`, `readers` and `hub` read
rows; `fields` looks up a value; `prompts` and `answers` build the texts; `normalize` builds the
records of all rows. `normalized` reads rows that are already records; `folder` finds such rows.
"""

from decon_core.benchmarks.files import files_by_split, local_paths
from decon_core.benchmarks.normalize import normalize, normalize_rows
from decon_core.benchmarks.normalized import fingerprint_of
from decon_core.benchmarks.parse import CATALOG_PATH, catalog, load_recipes
from decon_core.benchmarks.recipe import HubSource, LocalSource, Recipe

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
