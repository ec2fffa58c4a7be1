"""The study in the store: its inputs, and whether it is missing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from decon_core.benchmarks.parse import catalog, load_recipes
from decon_core.config.load import Config
from decon_core.features.blends.product import blender_of
from decon_core.features.blends.settings import Blend, declared_blends
from decon_core.features.study.inputs import Inputs, is_current, study_folder
from decon_core.features.study.settings import Study
from decon_core.planner import Plan
from decon_core.storage.store import Store


def study_inputs(config: Config, store: Store) -> Inputs | None:
    """Return the inputs of the study that a configuration declares; None without one."""
    settings = config.table(Study)
    if settings is None:
        return None
    recipes = dict(catalog())
    for path in config.recipes:
        recipes |= load_recipes(path)

    def is_built(blend: Blend) -> bool:
        return blender_of(config, Plan(config, store).builder).is_current(blend)

    return Inputs(settings, config.folder, store, declared_blends(config), recipes, is_built)


def is_missing(plan: Plan) -> bool:
    """Return whether a study is declared, and was not built from the results as they are."""
    inputs = study_inputs(plan.config, plan.store)
    return inputs is not None and plan.store.report.is_file() and not is_current(inputs)


def demonstrate(store: Store, program: str, config: Path) -> Iterator[str]:
    folder = study_folder(store)
    if folder.is_dir():
        yield f"study: {folder}  (print its tables: {program} study --config {config})"
