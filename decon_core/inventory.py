"""What a configuration currently names: its benchmarks, and its corpus as packs."""

from __future__ import annotations

import json
import os
from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from decon_core.benchmarks.files import files_by_split, local_paths
from decon_core.benchmarks.normalize import normalize
from decon_core.benchmarks.parse import load_recipes
from decon_core.benchmarks.recipe import Recipe
from decon_core.benchmarks.records import Version, current_version, recorded_origin
from decon_core.config.load import Config
from decon_core.config.mixtures import unknown_names
from decon_core.config.policy import unknown_benchmarks
from decon_core.config.validation import did_you_mean
from decon_core.corpus.packs import (
    Pack,
    Shard,
    hash_file,
    list_source,
    plan_packs,
    shards_in,
    stamps_of,
)
from decon_core.decisions.candidates import NO_EVIDENCE, Evidence
from decon_core.decisions.unread import UnreadRule
from decon_core.decisions.verdicts import Verdicts, read_verdicts
from decon_core.errors import (
    ConfigError,
    CorpusError,
    MissingError,
    Problem,
    RecipeError,
    StaleError,
)
from decon_core.feature import feature_hooks
from decon_core.index.idf import require_counted_under, require_frozen_from
from decon_core.index.parts import has_part, index_fingerprint
from decon_core.mixtures.builder import Builder
from decon_core.storage.drafts import remove
from decon_core.storage.files import read_json, write_json
from decon_core.storage.listing import Listing, Skipped
from decon_core.storage.paths import (
    RemotePath,
    Stamp,
    is_same_system,
    parse_path,
    scheme_of,
    stamp_of,
    stamp_or_none,
)
from decon_core.storage.store import Store
from decon_core.text.tokenizers import load_tokenizer
from decon_core.wording import counted

# Upper limit of the time for one cell's Dagster events on the machine of docs/benchmarks-grid.md,
# in SQLite or in batches in Postgres; one by one, Postgres takes more than three times as long.
CELL_SECONDS = 0.013
MANY_CELLS = 10_000  # a grid of this size takes two minutes to fill for the first time


@dataclass(frozen=True)
class Benchmark:
    """A recipe and the folder that its local paths are relative to."""

    recipe: Recipe
    base: Path

    def origin(self) -> str:
        """Return a fingerprint of recipe and files; data on a hub is covered by the recipe only."""
        files = files_by_split(self.recipe, base=self.base)
        content = [[split, *map(_content, paths)] for split, paths in files.items()]
        return sha256(json.dumps([self.recipe.fingerprint, content]).encode()).hexdigest()[:16]

    def normalized(self, *, limit: int | None = None) -> pa.Table:
        return normalize(self.recipe, base=self.base, limit=limit)


def _content(path: Path) -> str:
    """Return the hash of a file; a remote file is read again only when its stamp changes."""
    return _content_at(path, stamp_of(path)) if isinstance(path, RemotePath) else hash_file(path)


@lru_cache(maxsize=10_000)
def _content_at(path: Path, stamp: Stamp) -> str:  # noqa: ARG001 - part of the cache key
    return hash_file(path)


def benchmarks_of(config: Config) -> dict[str, Benchmark]:
    """Return the benchmarks that the configuration selects, by name, in the order of the files.

    Raises ConfigError for duplicate names, and for settings that name unknown benchmarks or
    storage options without a path.
    """
    declared: dict[str, Benchmark] = {}
    problems: list[Problem] = []
    for path in config.recipes:
        for name, recipe in load_recipes(path).items():
            if name in declared:
                where = f"{path}: evals.{name}"
                problems.append(Problem(where, "a duplicate name", "a name used once"))
            declared[name] = Benchmark(recipe, path.parent)
    selected = tuple(declared) if config.benchmarks is None else config.benchmarks
    references = {"idf.benchmarks": config.snapshot or (), "evals.required": config.required}
    for table, settings in config.tables.items():
        references[f"{table}.benchmarks"] = tuple(settings.named_benchmarks)
    problems += _unknown("evals.benchmarks", selected, tuple(declared))
    for setting, names in references.items():
        problems += _unknown(setting, names, selected)
    recipes = {name: declared[name].recipe for name in selected if name in declared}
    splits = {name: recipe.splits for name, recipe in recipes.items()}
    problems += unknown_names(config.mixtures, splits)
    problems += unknown_benchmarks(config.policy, splits)
    for settings in config.tables.values():
        problems += settings.problems_with(recipes)
    problems += _unused_options(config, declared.values())
    if problems:
        raise ConfigError(problems)
    return {name: declared[name] for name in selected}


def _unknown(setting: str, names: Iterable[str], known: Sequence[str]) -> list[Problem]:
    expected = f"one of {', '.join(known)}"
    return [
        Problem(setting, repr(name), expected, did_you_mean(name, known))
        for name in names
        if name not in known
    ]


def _unused_options(config: Config, benchmarks: Iterable[Benchmark]) -> list[Problem]:
    """Return storage options of file systems that no path of the configuration or recipes uses."""
    if not config.storage:
        return []
    paths = [source.path for source in config.sources] + [str(path) for path in config.recipes]
    paths += [str(config.kept or "")]
    paths += [path for one in benchmarks for path in local_paths(one.recipe)]
    used = sorted({scheme_of(path) for path in paths} - {""})
    return [
        Problem(
            f"storage.{scheme}",
            "options of a file system that no path uses",
            f"a scheme of a path: {', '.join(used)}" if used else "no options: no path is a URL",
            did_you_mean(scheme.lower(), used),
        )
        for scheme in config.storage
        if not any(is_same_system(scheme, other) for other in used)
    ]


def benchmark_of(config: Config, name: str) -> Benchmark:
    """Return a benchmark by name; raise ConfigError if unknown, as for a mistyped partition key."""
    known = benchmarks_of(config)
    if name not in known:
        where, found = f"benchmark {name!r}", "no recipe of that name in the configuration"
        remedy = "add it to the recipes, or delete the partition"
        raise ConfigError(Problem(where, found, f"one of {', '.join(known)}", remedy))
    return known[name]


def stale_benchmarks(config: Config, store: Store) -> list[str]:
    """Return benchmarks never normalized, or whose recipe or files changed since then."""
    return [
        name
        for name, benchmark in benchmarks_of(config).items()
        if recorded_origin(store, name) != benchmark.origin()
    ]


def current_versions(config: Config, store: Store) -> list[Version]:
    """Return the versions of all benchmarks; raise StaleError if a recipe or file has changed."""
    versions = [current_version(store, name) for name in benchmarks_of(config)]
    if store.current_snapshot.is_file():
        require_counted_under(store, config.policy)
        require_frozen_from(store, config.snapshot)
    stale = stale_benchmarks(config, store)
    if stale:
        found = "a recipe or file that changed since it was normalized"
        expected = "records of the current recipe and files"
        remedy = "materialize `records`, `index` and `scan` for it: `decon-assets run`"
        where = (f"benchmark {name!r}" for name in stale)
        raise StaleError(Problem(one, found, expected, remedy) for one in where)
    return versions


def known_versions(config: Config, store: Store) -> list[Version]:
    """Return the versions of the benchmarks that have records, even if files changed since."""
    names = (name for name in benchmarks_of(config) if store.current_records(name).is_file())
    return [current_version(store, name) for name in names]


def indexed_versions(config: Config, store: Store) -> list[Version]:
    """Return the versions of the benchmarks that have an index."""
    index = index_fingerprint(store, config.policy)
    return [one for one in known_versions(config, store) if has_part(store, one, index)]


def sketch_fingerprint(config: Config) -> str:
    """Return the fingerprint of the sketches that the configuration asks for; empty without any."""
    if config.sketch is None:
        return ""
    tokenizer = load_tokenizer(config.policy.tokenizer_str).fingerprint
    return config.sketch.fingerprint(config.policy, tokenizer=tokenizer)


def builder_of(config: Config, store: Store, versions: Iterable[Version] | None = None) -> Builder:
    """Return the builder of mixtures for the current packs; by default of the current versions."""
    packs = tuple(list_packs(store))
    versions = tuple(current_versions(config, store) if versions is None else versions)
    return Builder(
        *(store, packs, versions, config.policy, config.mixtures),
        verdicts=verdicts_of(config),
        evidence=evidence_of(config),
        unread=unread_rule(config),
    )


def unread_rule(config: Config) -> UnreadRule:
    """Return which text a configuration allows to stay unread."""
    ignore = tuple((one.name, one.ignore) for one in config.sources)
    return UnreadRule(ignore, is_blocking=config.unread == "block")


def verdicts_of(config: Config) -> Verdicts:
    """Read the verdicts file of a configuration; it may be missing."""
    return read_verdicts(config.verdicts, clears=config.clears)


def evidence_of(config: Config) -> Evidence:
    """Return what is said of pairs beside verdicts."""
    return next((hook(config) for hook in feature_hooks("evidence")), NO_EVIDENCE)


class InputFile(NamedTuple):
    """An input file, with a version that changes when its content does."""

    path: str
    n_bytes: int
    version: str  # modification time, or the tag of a remote store for the content


def input_files(config: Config) -> list[InputFile]:
    """List all files that a configuration reads, from itself to its shards.

    Fast enough to be called several times a minute: only recipes are opened, once per change.
    Missing files, and the files of a recipe that cannot be read, are left out; reading them later
    raises the error.
    """
    paths = _files_without_shards(config)
    stamps = {str(path): stamp for path in paths if (stamp := stamp_or_none(path))}
    for source in config.sources:
        stamps.update(stamps_of(source, folder=config.folder))
    return sorted(
        InputFile(path, n_bytes, tag or str(modified_ns))
        for path, (n_bytes, modified_ns, tag) in stamps.items()
    )


def _files_without_shards(config: Config) -> set[Path]:
    """Return all files that a configuration reads, but its shards."""
    of_features = (path for hook in feature_hooks("files") for path in hook(config))
    named = (config.path, config.verdicts, *of_features, *config.recipes)
    return {*named, *_benchmark_files(config)}


def _benchmark_files(config: Config) -> Iterator[Path]:
    for path in config.recipes:
        stamp = stamp_or_none(path)
        for recipe in _recipes_at(path, stamp) if stamp else ():
            with suppress(RecipeError):
                for files in files_by_split(recipe, base=path.parent).values():
                    yield from files


@lru_cache(maxsize=1_000)
def _recipes_at(path: Path, stamp: Stamp) -> tuple[Recipe, ...]:  # noqa: ARG001 - as above
    """Return the recipes of a file; none if the file is invalid."""
    try:
        return tuple(load_recipes(path).values())
    except RecipeError:
        return ()


def list_packs(store: Store) -> list[Pack]:
    """Return the registered packs, sorted by name."""
    return [Pack.from_json(read_json(path)) for path in _manifests(store.pack("any").parent)]


def _manifests(folder: Path) -> list[Path]:
    """Return the pack manifests of a folder, without other files that a system may create there."""
    paths = (path for path in folder.glob("*.json") if not path.name.startswith("."))
    return sorted(path for path in paths if path.stem.rpartition("-")[2].isdigit())


def packs_of(store: Store, names: Iterable[str]) -> list[Pack]:
    """Return registered packs by name; raise MissingError for unknown ones, as mistyped keys."""
    known = {pack.name: pack for pack in list_packs(store)}
    found = {name: known.get(name) for name in names}
    remedy = "create packs from the corpus with `decon-assets register`; do not add keys by hand"
    problems = [
        Problem(f"pack {name!r}", "not registered", "a registered pack", remedy)
        for name, pack in found.items()
        if pack is None
    ]
    if problems:
        raise MissingError(problems)
    return [pack for pack in found.values() if pack is not None]


@dataclass(frozen=True)
class RegistrationPlan:
    """The packs as they should be registered, and the differences from the present state."""

    current: list[Pack]
    retired: list[Pack]  # registered packs to be removed
    gone: list[str]  # paths of registered shards that are missing or changed
    new: list[str]  # paths of shards that are new or changed
    renamed: list[tuple[str, str]]  # old and new paths of shards with the same content
    skipped: list[Skipped]  # beside the shards: what no source reads
    without_pack: list[Path] = field(default_factory=list)  # mixtures to be removed


def plan_registration(config: Config, store: Store) -> RegistrationPlan:
    """Compare the registered packs with the corpus on disk; changes nothing."""
    before = list_packs(store)
    known = {shard.path: shard for pack in before for shard in pack.shards}
    numbers = _next_numbers(store, before)
    current: list[Pack] = []
    retired = [pack for pack in before if pack.source.name not in {s.name for s in config.sources}]
    listings = [list_source(source, folder=config.folder) for source in config.sources]
    for source, listing in zip(config.sources, listings, strict=True):
        kept, removed = plan_packs(
            source,
            shards_in(listing, source, known=known),
            existing=[pack for pack in before if pack.source.name == source.name],
            packing=config.packing[source.name],
            first_number=numbers.get(source.name, 0),
        )
        current += kept
        retired += removed
    renamed = _renamed(before, current)
    present = {(s.source, s.name, s.content) for pack in current for s in pack.shards}
    present |= {(old.source, old.name, old.content) for old, _ in renamed}
    registered = [shard for pack in before for shard in pack.shards]
    gone = [s.path for s in registered if (s.source, s.name, s.content) not in present]
    known_shards = {(s.source, s.name, s.fingerprint) for s in registered}
    known_shards |= {(new.source, new.name, new.fingerprint) for _, new in renamed}
    new = [
        shard.path
        for pack in current
        for shard in pack.shards
        if (shard.source, shard.name, shard.fingerprint) not in known_shards
    ]
    names = [(old.path, new.path) for old, new in renamed]
    skipped = _skipped(config, listings)
    return RegistrationPlan(current, retired, sorted(gone), sorted(new), sorted(names), skipped)


def _skipped(config: Config, listings: Iterable[Listing]) -> list[Skipped]:
    """Return what lies beside the shards, and is neither read nor listed by another source."""
    listings = [*listings]
    read = {path for listing in listings for path, _ in listing.files}
    read |= {str(path) for path in _files_without_shards(config)}
    entered = {os.path.dirname(path) for path in read}  # noqa: PTH120 - 100,000 paths as strings
    entered |= {str(folder) for path in map(Path, entered) for folder in path.parents}
    store = f"{config.store}"
    skipped: dict[str, Skipped] = {}
    for one in (one for listing in listings for one in listing.skipped):
        path = one.path.rstrip("/")
        if path in read or path in entered or path == store:
            continue
        if path not in skipped or not one.is_on_purpose:
            skipped[path] = one
    return sorted(skipped.values())


def _renamed(before: Iterable[Pack], current: Iterable[Pack]) -> list[tuple[Shard, Shard]]:
    """Return the renamed shards of packs that are kept: the old and the new shard."""
    known = {pack.name: pack for pack in before}
    return [
        (old, new)
        for pack in current
        if pack.name in known
        for old, new in zip(known[pack.name].shards, pack.shards, strict=True)
        if old.name != new.name
    ]


def grid_warning(config: Config, packs: Sequence[Pack]) -> str | None:
    """Return a warning if the grid is so large that Dagster's events take minutes, else None."""
    n_benchmarks = len(benchmarks_of(config))
    n_cells = len(packs) * n_benchmarks
    if n_cells <= MANY_CELLS:
        return None
    minutes = round(n_cells * CELL_SECONDS / 60)
    per_pack = _shards_per_pack(packs, most_packs=MANY_CELLS // n_benchmarks)
    remedy = (
        f"corpus.pack_shards = {per_pack} would make them {MANY_CELLS:,} or fewer"
        if per_pack
        else "fewer sources would make fewer packs"
    )
    n_packs, of_benchmarks = counted(len(packs), "pack"), counted(n_benchmarks, "benchmark")
    return (
        f"{n_packs} by {of_benchmarks} are {counted(n_cells, 'cell')}: Dagster needs about "
        f"{minutes} minutes to write the events of a first run to SQLite. {remedy}; existing packs "
        "do not change, so this takes effect in a new store or for a source with a new name"
    )


def _shards_per_pack(packs: Iterable[Pack], *, most_packs: int) -> int | None:
    """Return the smallest pack size that needs at most `most_packs` packs; None if impossible."""
    n_shards = Counter[str]()
    for pack in packs:
        n_shards[pack.source.name] += len(pack.shards)
    if len(n_shards) > most_packs:
        return None
    sizes = range(1, max(n_shards.values()) + 1)

    def is_enough(size: int) -> bool:
        return sum(-(-n // size) for n in n_shards.values()) <= most_packs

    return sizes[bisect_left(sizes, True, key=is_enough)]


def _next_numbers(store: Store, packs: Iterable[Pack]) -> dict[str, int]:
    """Return for each source the first pack number that was never used."""
    numbers: dict[str, int] = {}
    retired = (path.stem for path in _manifests(store.retired_packs))
    for name in (*(pack.name for pack in packs), *retired):
        source, _, number = name.rpartition("-")
        numbers[source] = max(numbers.get(source, 0), int(number) + 1)
    return numbers


def register_packs(config: Config, store: Store, *, may_retire: bool = False) -> RegistrationPlan:
    """Update the registered packs to match the corpus.

    The mixtures of retired and of unknown packs are removed, or their documents would remain in the
    clean corpus.
    Raises CorpusError if most of the corpus is gone and not `may_retire`: more likely a mount is
    missing.
    """
    plan = plan_registration(config, store)
    if not may_retire:
        require_most_there(plan, store)
    write_json(store.skipped, {"skipped": [asdict(one) for one in plan.skipped]})
    for pack in plan.current:
        for path in (store.pack_copy(pack.name), store.pack(pack.name)):
            write_json(path, pack.to_json())
    for pack in plan.retired:
        write_json(store.retired_packs / f"{pack.name}.json", pack.to_json())
        for folder in store.mixtures_of(pack.name):
            remove(folder)
        for path in (store.pack(pack.name), store.pack_copy(pack.name)):
            remove(path)
    # Their documents are those of other packs, too, and no later benchmark would clean them.
    without_pack = store.without_pack(store.pack_names)
    for folder in without_pack:
        remove(folder)
    return replace(plan, without_pack=without_pack)


def changed_shards(packs: Iterable[Pack]) -> Iterator[Problem | None]:
    """Read all local shards; yield for each a problem, or None if it is as it was registered."""
    for shard in (shard for pack in packs for shard in pack.shards):
        path = parse_path(shard.path)
        if isinstance(path, RemotePath) or not path.is_file():
            continue  # registering compares its tag, or tells that it is gone
        is_same = hash_file(path) == shard.content
        found, expected = "a file with other content", "the file that was registered"
        remedy = "`decon-assets run` scans it again"
        yield None if is_same else Problem(shard.path, found, expected, remedy)


def forget_stamps(store: Store, paths: Collection[str]) -> None:
    """Let the next registration hash these shards, whatever their size and date."""
    for pack in list_packs(store):
        if any(shard.path in paths for shard in pack.shards):
            shards = (replace(one, tag="") if one.path in paths else one for one in pack.shards)
            write_json(store.pack(pack.name), replace(pack, shards=tuple(shards)).to_json())


def require_most_there(plan: RegistrationPlan, store: Store) -> None:
    """Raise CorpusError if more than half of the registered shards are gone or changed."""
    n_registered = sum(len(pack.shards) for pack in list_packs(store))
    if len(plan.gone) > max(1, n_registered // 2):
        where = f"{len(plan.gone)} of {n_registered} registered shards"
        found, expected = f"gone or changed, for example {plan.gone[0]}", "most of them unchanged"
        remedy = (
            "check that the corpus is mounted; to remove the packs and mixtures of these shards, "
            "use --retire"
        )
        raise CorpusError(Problem(where, found, expected, remedy))
