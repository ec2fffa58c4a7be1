"""The haystack in the store: its folder, whether it is missing, and its faults."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from pkgutil import resolve_name

from decon_core.config.load import Config
from decon_core.corpus.packs import FILES, changed_files
from decon_core.errors import InputError, Problem
from decon_core.features.haystack.files import RESULT, has_haystack, haystack_key, key_of
from decon_core.features.haystack.settings import Haystack
from decon_core.planner import Plan
from decon_core.report.page_additions import Addition
from decon_core.storage.files import read_json
from decon_core.storage.store import Store

_SECTION = "decon_core.features.haystack.on_page:section_of"  # imported only to draw it


def haystack_folder(store: Store) -> Path:
    return store.root / "haystack"


def is_missing(plan: Plan) -> bool:
    """Return whether a haystack is wanted, and missing or outdated."""
    settings = plan.config.table(Haystack)
    if settings is None:
        return False
    try:
        key = haystack_key(plan.packs, plan.versions, settings)
    except InputError:  # the file of a scorer cannot be found, which the study then says
        return True
    return not has_haystack(haystack_folder(plan.store), key)


def haystack_on_page(config: Config, store: Store) -> Addition | None:
    """Return the section of the haystack that was made; None if there is none."""
    folder = haystack_folder(store)
    key = key_of(folder) if config.table(Haystack) else ""
    return Addition(key, lambda: resolve_name(_SECTION)(folder)) if key else None


def faults_of_haystack(folder: Path) -> Iterator[Problem]:
    """Yield the files that were changed or removed."""
    if (folder / RESULT).is_file():
        yield from changed_files(folder, read_json(folder / RESULT)[FILES])
