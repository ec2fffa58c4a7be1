"""The study in the store: its inputs as decon.toml declares them, and whether it was built of them.

Nothing here parses results: `status` and the code location ask this often.
"""

from __future__ import annotations

import fnmatch
import glob
import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from pkgutil import resolve_name

from decon_core.benchmarks.catalog import catalog
from decon_core.benchmarks.parse import load_recipes
from decon_core.benchmarks.recipe import Recipe
from decon_core.config.load import Config
from decon_core.errors import Problem
from decon_core.features.blends.product import blender_of
from decon_core.features.blends.schemas import ITEMS_FILE, blend_manifest
from decon_core.features.blends.settings import Blend, declared_blends
from decon_core.features.study.settings import STEP, Study, TrainingRun
from decon_core.mixtures.manifest import fingerprint_of_json, read_manifest
from decon_core.planner import Plan
from decon_core.report.page_additions import Addition
from decon_core.storage.checksums import hash_file
from decon_core.storage.files import files_below
from decon_core.storage.store import Store

SUMMARY, DATABASE = "study.json", "study.duckdb"

_SECTION = "decon_core.features.study.page:section_of"  # imported only to draw it
_FORMAT = 3  # changes whenever the same inputs would give other tables


@dataclass(frozen=True)
class Inputs:
    """A declared study, and where its inputs are."""

    study: Study
    folder: Path  # folder of decon.toml: results are relative to it
    store: Store
    blends: Sequence[Blend]
    recipe_files: Sequence[Path]
    is_built: Callable[[Blend], bool]  # whether a blend exists, made from the current inputs

    @cached_property
    def recipes(self) -> Mapping[str, Recipe]:
        """The recipes that read the raw rows that harnesses keep in their results, by name."""
        recipes = dict(catalog())
        for path in self.recipe_files:
            recipes |= load_recipes(path)
        return recipes


def study_inputs(config: Config, store: Store) -> Inputs | None:
    """Return the inputs of the study that a configuration declares; None if there is none."""
    settings = config.table(Study)
    if settings is None:
        return None

    def is_built(blend: Blend) -> bool:
        return blender_of(config, Plan(config, store).builder).is_current(blend)

    return Inputs(settings, config.folder, store, declared_blends(config), config.recipes, is_built)


def study_folder(store: Store) -> Path:
    return store.root / "study"


def is_missing(plan: Plan) -> bool:
    """Return whether a study is declared, and was not built from the results as they are."""
    inputs = study_inputs(plan.config, plan.store)
    return inputs is not None and plan.store.report.is_file() and not is_current(inputs)


def is_current(inputs: Inputs) -> bool:
    """Return whether the study of these inputs was built."""
    key = study_key(inputs.store)
    return bool(key) and key == fingerprint_of(inputs)


def study_key(store: Store) -> str:
    """Return the key of the study that was built; empty if there is none."""
    return str((read_manifest(study_folder(store) / SUMMARY) or {}).get("key", ""))


def fingerprint_of(inputs: Inputs) -> str:
    """Return a digest of the settings, the report's state, and the content of all files."""
    from decon_core.report.open import state_of

    files: list[Path] = []
    for run in inputs.study.training_run:
        for path, _ in find_paths(run, inputs.folder)[0]:
            files += files_below(path) if path.is_dir() else [path]
        files.append(blend_manifest(inputs.store, run.of or "").with_name(ITEMS_FILE))
    contents = [
        (os.path.relpath(file, inputs.folder), _content_at(file, stat.st_size, stat.st_mtime_ns))
        for file in files
        if file.is_file() and (stat := file.stat())
    ]
    blends = [blend.to_json() for blend in inputs.blends]
    # A report without a state is made again before the study.
    state = state_of(inputs.store.report) or ""
    values = [_FORMAT, asdict(inputs.study), blends, state, contents]
    return fingerprint_of_json(json.dumps(values, default=str))


@lru_cache(maxsize=10_000)
def _content_at(path: Path, _size: int, _modified: int) -> str:
    return hash_file(path)


def find_paths(
    run: TrainingRun, folder: Path
) -> tuple[list[tuple[Path, float | None]], list[Problem]]:
    """Return the files and folders of a training run's results, each with the step in its path.

    Also returns problems: for results that are missing, and paths without a number as their step.
    """
    paths: dict[Path, float | None] = {}
    problems = []
    where = f"study.training_run {run.name!r}"
    for pattern in run.results:
        path = folder / pattern
        matching = [path] if path.exists() else []
        whole = str(path).replace(STEP, "*")
        if not matching and glob.has_magic(whole):
            matching = sorted(map(Path, glob.glob(whole, recursive=True)))  # noqa: PTH207 - takes whole patterns
        if not matching:
            problems.append(Problem(where, f"no file {path}", "results of its model"))
        for file in matching:
            step = _step_in(file, str(path)) if STEP in pattern else None
            if STEP in pattern and step is None:
                expected = f"a number in place of {STEP} in {pattern}"
                problems.append(Problem(where, str(file), expected))
            paths.setdefault(file, step)
    return [*paths.items()], problems


def _step_in(file: Path, pattern: str) -> float | None:
    """Return the number that a path has where its pattern has {step}."""
    before, after = (re.sub(r"\\[zZ]$", "", fnmatch.translate(p)) for p in pattern.split(STEP))
    found = re.fullmatch(rf"{before}(?<!\d)(\d+(?:\.\d+)?)(?!\d){after}", str(file))
    return float(found[1]) if found else None


def study_on_page(config: Config, store: Store) -> Addition | None:
    """Return the section of the study that was built; None if there is none."""
    key = study_key(store) if config.table(Study) else ""
    database = study_folder(store) / DATABASE
    return Addition(key, lambda: resolve_name(_SECTION)(database)) if key else None
