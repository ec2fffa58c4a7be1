"""Records of the sample world, and items that are made up word by word."""

from pathlib import Path
from random import Random

import pyarrow as pa
import pytest

from decon_core.benchmarks.normalize import normalize
from decon_core.benchmarks.parse import load_recipes
from decon_core.features.scorecard.edits.edit import Material
from decon_core.features.scorecard.items import items_of
from decon_core.features.scorecard.lexicon import lexicon_of

DATA = Path(__file__).parents[3] / "data"


@pytest.fixture(scope="session")
def records() -> pa.Table:
    """Choices, sums, reading and translation: every benchmark of the sample world."""
    recipes = load_recipes(DATA / "evals.yaml")
    return pa.concat_tables(normalize(recipe, base=DATA) for recipe in recipes.values())


@pytest.fixture(scope="session")
def items(records):
    return items_of(records)


@pytest.fixture(scope="session")
def materials(items):
    """Every item with the words of its benchmark."""
    made = []
    for name in sorted({item.key.benchmark for item in items}):
        own = [item for item in items if item.key.benchmark == name]
        lexicon = lexicon_of(own, Random(1))
        made += [Material(item, lexicon, Random(at), own[at - 1]) for at, item in enumerate(own)]
    return made
