"""Turn benchmark rows into normalized records: recipes, readers, a catalog of public benchmarks.

`recipe` defines which fields to use, `texts` finds prompts and answers in a row, `normalize`
the records of all rows; `normalized` and `folder` read rows that are already records.
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
