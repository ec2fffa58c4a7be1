"""What a decon.toml names today: its benchmarks, and its corpus in packs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from decon_core.config import Config
from decon_core.corpus import Pack, Shard, find_shards, plan_packs
from decon_core.errors import ConfigError, MissingError, Problem
from decon_core.evals import Recipe, load_recipes, normalize
from decon_core.mixture import DECONTAMINATED
from decon_core.store import Store, read_json, remove, write_json


@dataclass(frozen=True)
class Benchmark:
    """A recipe, and the folder that its local paths start from."""

    recipe: Recipe
    base: Path

    def normalized(self, *, limit: int | None = None) -> pa.Table:
        return normalize(self.recipe, base=self.base, limit=limit)


def benchmarks_of(config: Config) -> dict[str, Benchmark]:
    """Every benchmark that the configuration asks for, by name, in the order of the files."""
    found: dict[str, Benchmark] = {}
    problems: list[Problem] = []
    for path in config.recipes:
        for name, recipe in load_recipes(path).items():
            if name in found:
                where = f"{path}: evals.{name}"
                problems.append(Problem(where, "the name a second time", "a name used once"))
            found[name] = Benchmark(recipe, path.parent)
    wanted = tuple(found) if config.benchmarks is None else config.benchmarks
    for setting, names in (("evals.benchmarks", wanted), ("idf.snapshot", config.snapshot or ())):
        known = found if setting == "evals.benchmarks" else wanted
        problems += [
            Problem(setting, repr(name), f"one of {', '.join(known)}")
            for name in names
            if name not in known
        ]
    if problems:
        raise ConfigError(problems)
    return {name: found[name] for name in wanted}


def benchmark_of(config: Config, name: str) -> Benchmark:
    """One of them; a partition key may have been typed by hand."""
    known = benchmarks_of(config)
    if name not in known:
        raise ConfigError(
            Problem(
                f"benchmark {name!r}",
                "no recipe of that name in the configuration",
                f"one of {', '.join(known)}",
                "add it to the recipes, or delete the partition",
            )
        )
    return known[name]


def list_packs(store: Store) -> list[Pack]:
    """The packs that are registered, by name."""
    folder = store.pack("any").parent
    return [Pack.from_json(read_json(path)) for path in sorted(folder.glob("*.json"))]


def packs_of(store: Store, names: Iterable[str]) -> list[Pack]:
    """Registered packs by name; a partition key may have been typed by hand."""
    known = {pack.name: pack for pack in list_packs(store)}
    wanted = list(names)
    problems = [
        Problem(
            f"pack {name!r}",
            "not registered",
            "a registered pack",
            "`decon-assets register` makes packs from the corpus; do not add them by hand",
        )
        for name in wanted
        if name not in known
    ]
    if problems:
        raise MissingError(problems)
    return [known[name] for name in wanted]


def register_packs(config: Config, store: Store) -> tuple[list[Pack], list[Pack]]:
    """Bring the packs in line with the corpus: those that count from now on, and those that went.

    A pack that went takes its mixture along, or its documents would stay among the clean ones.
    """
    before = list_packs(store)
    current: list[Pack] = []
    retired = [pack for pack in before if pack.source.name not in {s.name for s in config.sources}]
    for source in config.sources:
        existing = [pack for pack in before if pack.source.name == source.name]
        known: dict[str, Shard] = {shard.path: shard for pack in existing for shard in pack.shards}
        shards = find_shards(source, folder=config.folder, known=known)
        kept, gone = plan_packs(source, shards, existing=existing, pack_shards=config.pack_shards)
        current += kept
        retired += gone
    for pack in current:
        write_json(store.pack(pack.name), pack.to_json())
    for pack in retired:
        remove(store.mixture(DECONTAMINATED, pack.name))
        remove(store.pack(pack.name))
    return current, retired
