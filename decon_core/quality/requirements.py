"""Check `[evals] required`: each detector must see enough items of the required benchmarks."""

from __future__ import annotations

from collections.abc import Iterable

from decon_core.benchmarks.records import current_version
from decon_core.config.comparison import reaches
from decon_core.config.load import Config
from decon_core.errors import Problem
from decon_core.index.parts import has_part, index_fingerprint
from decon_core.quality.visibility import Visibility, visibilities
from decon_core.storage.store import Store
from decon_core.wording import counted


def required_shortfalls(config: Config, store: Store) -> list[Problem]:
    """Return the required benchmarks of which a detector sees too few items."""
    return shortfalls(config, visibilities_of(config, store, config.required))


def shortfalls(config: Config, seen: Iterable[Visibility]) -> list[Problem]:
    return [
        Problem(
            f"{one.benchmark}, {one.detector}",
            f"{one.n_visible} of {counted(one.n_items, 'item')} visible",
            f"a share of at least {config.least_indexable_share}",
        )
        for one in seen
        if not reaches(one.share, config.least_indexable_share)
    ]


def visibilities_of(config: Config, store: Store, names: Iterable[str]) -> list[Visibility]:
    """Return what each detector sees of those benchmarks that have an index."""
    index = index_fingerprint(store, config.policy)
    versions = [
        current_version(store, name) for name in names if store.current_records(name).is_file()
    ]
    with_index = [version for version in versions if has_part(store, version, index)]
    return visibilities(store, with_index, config.policy)
