"""What a decon.toml names today: its benchmarks, and its corpus in packs."""

from __future__ import annotations

import json
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from decon_core.benchmarks import Recipe, files_by_split, load_recipes, local_paths, normalize
from decon_core.benchmarks.records import Version, current_version, recorded_origin
from decon_core.blends.build import Blender
from decon_core.config.blends import unknown_in_blends
from decon_core.config.load import Config
from decon_core.config.mixtures import unknown_names
from decon_core.config.policy import unknown_benchmarks
from decon_core.config.settings import did_you_mean
from decon_core.corpus.packs import Pack, Shard, find_shards, hash_file, plan_packs, stamps_of
from decon_core.decisions.verdicts import Verdicts, read_verdicts
from decon_core.errors import (
    ConfigError,
    CorpusError,
    MissingError,
    Problem,
    RecipeError,
    StaleError,
)
from decon_core.index.idf import require_counted_under, require_frozen_from
from decon_core.mixtures.build import Builder
from decon_core.storage.paths import RemotePath, Stamp, is_same_system, scheme_of, stamp_of
from decon_core.storage.store import Store, read_json, remove, write_json
from decon_core.wording import counted

# What one cell's events cost at most, on the machine of docs/benchmarks-grid.md: in SQLite, or in
# Postgres in batches. One by one they take more than three times that there.
CELL_SECONDS = 0.013
MANY_CELLS = 10_000  # of a grid; a first fill of so many takes two minutes


@dataclass(frozen=True)
class Benchmark:
    """A recipe, and the folder that its local paths start from."""

    recipe: Recipe
    base: Path

    def origin(self) -> str:
        """Fingerprint of recipe and files. What lies on a hub cannot be told without reading it."""
        files = files_by_split(self.recipe, base=self.base)
        content = [[split, *map(_content, paths)] for split, paths in files.items()]
        return sha256(json.dumps([self.recipe.fingerprint, content]).encode()).hexdigest()[:16]

    def normalized(self, *, limit: int | None = None) -> pa.Table:
        return normalize(self.recipe, base=self.base, limit=limit)


def _content(path: Path) -> str:
    """The hash of a file; a remote one is read once for as long as its store calls it the same."""
    return _content_at(path, stamp_of(path)) if isinstance(path, RemotePath) else hash_file(path)


@lru_cache(maxsize=10_000)
def _content_at(path: Path, stamp: Stamp) -> str:  # noqa: ARG001 - it is what makes it another
    return hash_file(path)


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
    named = {"idf.snapshot": config.snapshot or (), "evals.required": config.required}
    problems += _unknown("evals.benchmarks", wanted, tuple(found))
    for setting, names in named.items():
        problems += _unknown(setting, names, wanted)
    splits = {name: found[name].recipe.splits for name in wanted if name in found}
    problems += unknown_names(config.mixtures, splits)
    problems += unknown_benchmarks(config.policy, splits)
    problems += unknown_in_blends(config.blends, splits)
    problems += _unused_options(config, found.values())
    if problems:
        raise ConfigError(problems)
    return {name: found[name] for name in wanted}


def _unknown(setting: str, names: Iterable[str], known: Sequence[str]) -> list[Problem]:
    expected = f"one of {', '.join(known)}"
    return [
        Problem(setting, repr(name), expected, did_you_mean(name, known))
        for name in names
        if name not in known
    ]


def _unused_options(config: Config, benchmarks: Iterable[Benchmark]) -> list[Problem]:
    """Options of file systems that nothing lies on. What recipes name counts, too."""
    if not config.storage:
        return []
    paths = [source.path for source in config.sources] + [str(path) for path in config.recipes]
    paths += [str(config.kept or "")]
    paths += [path for one in benchmarks for path in local_paths(one.recipe)]
    used = sorted({scheme_of(path) for path in paths} - {""})
    return [
        Problem(
            f"storage.{scheme}",
            "options of a file system that no path is on",
            f"a scheme of a path: {', '.join(used)}" if used else "no options: no path is a URL",
            did_you_mean(scheme.lower(), used),
        )
        for scheme in config.storage
        if not any(is_same_system(scheme, other) for other in used)
    ]


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


def stale_benchmarks(config: Config, store: Store) -> list[str]:
    """Benchmarks whose recipe or files changed since they were normalized, or that never were."""
    return [
        name
        for name, benchmark in benchmarks_of(config).items()
        if recorded_origin(store, name) != benchmark.origin()
    ]


def current_versions(config: Config, store: Store) -> list[Version]:
    """The versions of all benchmarks. Refuses those that their files have moved away from."""
    versions = [current_version(store, name) for name in benchmarks_of(config)]
    if store.current_snapshot.is_file():
        require_counted_under(store, config.policy)
        require_frozen_from(store, config.snapshot)
    stale = stale_benchmarks(config, store)
    if stale:
        raise StaleError(
            Problem(
                f"benchmark {name!r}",
                "a recipe or file that changed since it was normalized",
                "records made from today's",
                "materialize `records`, `index` and `scan` for it: `decon-assets run`",
            )
            for name in stale
        )
    return versions


def builder_of(config: Config, store: Store) -> Builder:
    """What builds the mixtures of a configuration, of today's packs and benchmark versions."""
    return Builder(
        store,
        tuple(list_packs(store)),
        tuple(current_versions(config, store)),
        config.policy,
        config.mixtures,
        verdicts=verdicts_of(config),
    )


def verdicts_of(config: Config) -> Verdicts:
    """What people said so far; nobody has to have said anything."""
    return read_verdicts(config.verdicts, clears=config.clears)


def blender_of(config: Config, store: Store) -> Blender:
    """What builds the blends of a configuration."""
    return Blender(builder_of(config, store), config.blends)


class InputFile(NamedTuple):
    """A file that somebody supplied, and what changes when its content does."""

    path: str
    n_bytes: int
    version: str  # the time of its last change, or what its store calls the content


def input_files(config: Config) -> list[InputFile]:
    """All files that a configuration reads today, by path: itself, recipes, benchmarks, shards.

    Made to be asked several times a minute: nothing but recipes is opened, and those once. What is
    not there is not in it, and a recipe that cannot be read has no files: that is said by whoever
    reads them.
    """
    paths = {config.path, config.verdicts, *config.recipes, *_benchmark_files(config)}
    found = {str(path): stamp for path in paths if (stamp := _stamp_if_there(path))}
    for source in config.sources:
        found.update(stamps_of(source, folder=config.folder))
    return sorted(
        InputFile(path, n_bytes, tag or str(modified_ns))
        for path, (n_bytes, modified_ns, tag) in found.items()
    )


def _stamp_if_there(path: Path) -> Stamp | None:
    try:
        return stamp_of(path)
    except (FileNotFoundError, NotADirectoryError):
        return None


def _benchmark_files(config: Config) -> Iterator[Path]:
    for path in config.recipes:
        stamp = _stamp_if_there(path)
        for recipe in _recipes_at(path, stamp) if stamp else ():
            with suppress(RecipeError):
                for files in files_by_split(recipe, base=path.parent).values():
                    yield from files


@lru_cache(maxsize=1_000)
def _recipes_at(path: Path, stamp: Stamp) -> tuple[Recipe, ...]:  # noqa: ARG001 - as above
    """The recipes of a file as it is now; none of one that is wrong."""
    try:
        return tuple(load_recipes(path).values())
    except RecipeError:
        return ()


def list_packs(store: Store) -> list[Pack]:
    """The packs that are registered, by name."""
    folder = store.pack("any").parent
    return [Pack.from_json(read_json(path)) for path in _manifests(folder)]


def _manifests(folder: Path) -> list[Path]:
    """Files that are pack manifests by their name; systems leave others beside them."""
    found = (path for path in folder.glob("*.json") if not path.name.startswith("."))
    return sorted(path for path in found if path.stem.rpartition("-")[2].isdigit())


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


@dataclass(frozen=True)
class RegistrationPlan:
    """What the packs should be today, and which of the registered ones have to go."""

    current: list[Pack]
    retired: list[Pack]
    gone: list[str]  # shards that were registered, and are not there any more as they were
    new: list[str]  # shards that are there, and are not registered as they are
    renamed: list[tuple[str, str]]  # shards under another name than they were registered with


def plan_registration(config: Config, store: Store) -> RegistrationPlan:
    """Compare the registered packs with the corpus as it lies on disk. Changes nothing."""
    before = list_packs(store)
    known = {shard.path: shard for pack in before for shard in pack.shards}
    numbers = _next_numbers(store, before)
    current: list[Pack] = []
    retired = [pack for pack in before if pack.source.name not in {s.name for s in config.sources}]
    for source in config.sources:
        kept, went = plan_packs(
            source,
            find_shards(source, folder=config.folder, known=known),
            existing=[pack for pack in before if pack.source.name == source.name],
            packing=config.packing[source.name],
            first_number=numbers.get(source.name, 0),
        )
        current += kept
        retired += went
    renamed = _renamed(before, current)
    today = {(s.source, s.name, s.content) for pack in current for s in pack.shards}
    today |= {(old.source, old.name, old.content) for old, _ in renamed}
    registered = [shard for pack in before for shard in pack.shards]
    gone = [s.path for s in registered if (s.source, s.name, s.content) not in today]
    held = {(s.source, s.name, s.fingerprint) for s in registered}
    held |= {(new.source, new.name, new.fingerprint) for _, new in renamed}
    new = [
        shard.path
        for pack in current
        for shard in pack.shards
        if (shard.source, shard.name, shard.fingerprint) not in held
    ]
    names = [(old.path, new.path) for old, new in renamed]
    return RegistrationPlan(current, retired, sorted(gone), sorted(new), sorted(names))


def _renamed(before: Iterable[Pack], current: Iterable[Pack]) -> list[tuple[Shard, Shard]]:
    """Members of packs that stay, as they were and as they are, where the name is another."""
    known = {pack.name: pack for pack in before}
    return [
        (old, new)
        for pack in current
        if pack.name in known
        for old, new in zip(known[pack.name].shards, pack.shards, strict=True)
        if old.name != new.name
    ]


def grid_warning(config: Config, packs: Sequence[Pack]) -> str | None:
    """What to say of a grid so large that Dagster's book-keeping takes longer than some scans."""
    n_benchmarks = len(benchmarks_of(config))
    n_cells = len(packs) * n_benchmarks
    if n_cells <= MANY_CELLS:
        return None
    minutes = round(n_cells * CELL_SECONDS / 60)
    per_pack = _shards_per_pack(packs, most_packs=MANY_CELLS // n_benchmarks)
    remedy = (
        f"corpus.pack_shards = {per_pack} would make them {MANY_CELLS:,} or fewer"
        if per_pack
        else "packs by fewer sources would be fewer"
    )
    return (
        f"{counted(len(packs), 'pack')} by {counted(n_benchmarks, 'benchmark')} are "
        f"{counted(n_cells, 'cell')}: about {minutes} "
        f"minutes of events in SQLite for a first fill. {remedy}; packs that exist stay as they "
        "are, so that holds for a new store, or for a source under a new name"
    )


def _shards_per_pack(packs: Iterable[Pack], *, most_packs: int) -> int | None:
    """The smallest number that packs all shards of all sources into so many packs, if any does."""
    n_shards = Counter[str]()
    for pack in packs:
        n_shards[pack.source.name] += len(pack.shards)
    if len(n_shards) > most_packs:
        return None
    sizes = range(1, max(n_shards.values()) + 1)
    at = bisect_left(sizes, True, key=lambda size: _n_packs(n_shards, size) <= most_packs)
    return sizes[at]


def _n_packs(n_shards: Mapping[str, int], size: int) -> int:
    return sum(-(-n // size) for n in n_shards.values())


def _next_numbers(store: Store, packs: Iterable[Pack]) -> dict[str, int]:
    """Per source, the first pack number that was never used."""
    used = [pack.name for pack in packs]
    used += [path.stem for path in _manifests(store.retired_packs)]
    numbers: dict[str, int] = {}
    for name in used:
        source, _, number = name.rpartition("-")
        numbers[source] = max(numbers.get(source, 0), int(number) + 1)
    return numbers


def register_packs(config: Config, store: Store, *, may_retire: bool = False) -> RegistrationPlan:
    """Bring the packs in line with the corpus.

    A pack that goes takes its mixtures along, or its documents would stay among the clean ones.
    When most of the corpus is gone that is more likely a mount that is missing, and needs a word.
    """
    found = plan_registration(config, store)
    if not may_retire:
        require_most_there(found, store)
    for pack in found.current:
        write_json(store.pack(pack.name), pack.to_json())
    for pack in found.retired:
        write_json(store.retired_packs / f"{pack.name}.json", pack.to_json())
        for folder in store.mixtures_of(pack.name):
            remove(folder)
        remove(store.pack(pack.name))
    return found


def require_most_there(found: RegistrationPlan, store: Store) -> None:
    """Raise where most registered shards are gone."""
    n_registered = sum(len(pack.shards) for pack in list_packs(store))
    if len(found.gone) > max(1, n_registered // 2):
        raise CorpusError(
            Problem(
                f"{len(found.gone)} of {n_registered} registered shards",
                f"gone or changed, {found.gone[0]} among them",
                "most of them as they were",
                "if that is meant, say --retire: their packs and mixtures are then removed",
            )
        )
