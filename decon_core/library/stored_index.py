"""Benchmarks indexed in a store: what texts in memory and shards are compared with.

A scan keeps its index in the store of its output folder. An index of `build_index` is a folder:

    <folder>/index.json                       policy, benchmark versions and fingerprints
    <folder>/{records,idf,index,search}/      the store; a scan of the same benchmarks has the same

A folder is written whole or not at all, and replaced as a whole.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from decon_core.benchmarks.records import (
    Version,
    fingerprint_of_records,
    load_records,
    save_records,
)
from decon_core.config.policy import Policy, unknown_benchmarks
from decon_core.decisions.match_reader import MatchReader
from decon_core.decisions.verdicts import NO_VERDICTS, Verdicts
from decon_core.decisions.visibility import visibility_table
from decon_core.errors import ConfigError, DamagedError, InputError, Problem, StaleError
from decon_core.index.parts import index_alone, index_fingerprint
from decon_core.scan.blocks import Scanner
from decon_core.scan.coverage import scan_fingerprint
from decon_core.storage.drafts import sweep_beside
from decon_core.storage.files import atomic_path, read_json, write_json
from decon_core.storage.store import Store
from decon_core.wording import counted

_MANIFEST = "index.json"
_TEMPORARY = "decon-index-"
_LAYOUT = 3
_BUILD = "build it again with `build_index`"

OnStep = Callable[[str], None]


def no_step(_: str) -> None:
    """Report no step."""


@dataclass(frozen=True)
class StoredIndex:
    """Benchmarks indexed in a store under a policy."""

    store: Store
    versions: tuple[Version, ...]
    policy: Policy
    index: str  # fingerprint of the index parts
    scan: str  # fingerprint of the union of index parts, and of scan results
    _records: dict[str, pa.Table] = field(default_factory=dict, compare=False, repr=False)

    @property
    def n_items(self) -> int:
        return sum(version.n_items for version in self.versions)

    @cached_property
    def fingerprint(self) -> str:
        """The fingerprint of all that decides what is found."""
        versions = [asdict(version) for version in self.versions]
        content = {"policy": _as_json(self.policy), "versions": versions, "scan": self.scan}
        return sha256(orjson.dumps(content, option=orjson.OPT_SORT_KEYS)).hexdigest()[:16]

    @cached_property
    def visibility(self) -> pa.Table:
        """One row per item and detector: whether the detector can find it, and why not."""
        return visibility_table(self.store, self.versions, self.policy)

    @property
    def invisible(self) -> pa.Table:
        """The rows of `visibility` of items that the detector cannot find."""
        return self.visibility.filter(pc.invert(self.visibility["is_visible"]))

    def records(self, benchmark: str) -> pa.Table:
        """Return the records of a benchmark, loaded once."""
        if benchmark not in self._records:
            (version,) = (version for version in self.versions if version.benchmark == benchmark)
            self._records[benchmark] = load_records(self.store, version)
        return self._records[benchmark]

    def scanner(self) -> Scanner:
        return Scanner(self.store, self.versions, self.policy, self.index, self.scan)

    def reader(self, verdicts: Verdicts = NO_VERDICTS) -> MatchReader:
        """Return what decides which matches are leaks."""
        return MatchReader(self.store, self.versions, self.policy, self.scan, verdicts)


def index_records(
    store: Store, versions: tuple[Version, ...], policy: Policy, on_step: OnStep = no_step
) -> StoredIndex:
    """Index the saved records of benchmarks; what the store has already is not built."""
    n_items = counted(sum(version.n_items for version in versions), "item")
    n_records = counted(sum(version.n_records for version in versions), "record")
    on_step(f"{counted(len(versions), 'benchmark')}: {n_items}, {n_records}")
    ConfigError.raise_for(unknown_benchmarks(policy, [version.benchmark for version in versions]))
    n_built = index_alone(store, versions, policy)
    on_step(f"index: {n_built} built, {len(versions) - n_built} reused")
    pa.default_memory_pool().release_unused()  # the memory that reading benchmarks took
    return _indexed(store, versions, policy)


def _indexed(store: Store, versions: tuple[Version, ...], policy: Policy) -> StoredIndex:
    index, scan = index_fingerprint(store, policy), scan_fingerprint(store, policy)
    return StoredIndex(store, versions, policy, index, scan)


def write_folder(path: Path | None, tables: Mapping[str, pa.Table], policy: Policy) -> StoredIndex:
    """Write an index of these records, or open the folder if it has the same.

    None: a temporary folder, alone in its parent, which the caller removes.
    """
    if path is None:
        root = Path(tempfile.mkdtemp(prefix=_TEMPORARY))
        try:
            return _written(root / "index", tables, policy)
        except BaseException:
            shutil.rmtree(root)
            raise
    if path.exists():
        _require_replaceable(path)
        if (same := _same(path, tables, policy)) is not None:
            return same
    sweep_beside(path.parent)
    return _written(path, tables, policy)


def _written(path: Path, tables: Mapping[str, pa.Table], policy: Policy) -> StoredIndex:
    with atomic_path(path) as draft:
        draft.mkdir()
        store = Store(draft)
        versions = tuple(save_records(store, name, table) for name, table in tables.items())
        index = index_records(store, versions, policy)
        index.scanner()  # writes what it will map
        manifest = {
            "layout": _LAYOUT,
            "policy": _as_json(policy),
            "versions": [asdict(version) for version in index.versions],
            "index": index.index,
            "scan": index.scan,
        }
        write_json(draft / _MANIFEST, manifest)
    return open_folder(path)


def open_folder(
    path: Path, policy: Policy | None = None, *, fingerprint: str | None = None
) -> StoredIndex:
    """Open the folder of an index; a policy may differ from its own where no scan depends on it.

    Raises `StaleError` if the index is another one than that of the fingerprint.
    """
    path = path.absolute()  # processes that open it again may run in another folder
    file = path / _MANIFEST
    if not file.is_file():
        raise InputError(Problem(str(path), f"no {_MANIFEST}", "a folder that `build_index` wrote"))
    manifest: dict[str, Any] = read_json(file)
    if manifest["layout"] != _LAYOUT:
        found = f"an index with layout {manifest['layout']}"
        raise StaleError(Problem(str(file), found, f"layout {_LAYOUT}", _BUILD))
    versions = tuple(Version(**version) for version in manifest["versions"])
    chosen = policy or Policy.from_mapping(manifest["policy"], where=str(file))
    ConfigError.raise_for(unknown_benchmarks(chosen, [version.benchmark for version in versions]))
    opened = _indexed(Store(path), versions, chosen)
    if (opened.index, opened.scan) != (manifest["index"], manifest["scan"]):
        found = "an index built with other settings or another tokenizer"
        raise StaleError(Problem(str(file), found, "one built with this policy", _BUILD))
    if fingerprint not in (None, opened.fingerprint):
        found = f"an index with fingerprint {opened.fingerprint}"
        raise StaleError(Problem(str(path), found, f"{fingerprint}", _BUILD))
    return opened


def _require_replaceable(path: Path) -> None:
    """Raise `InputError` if a folder holds anything but an index."""
    if not path.is_dir():
        raise InputError(Problem(str(path), "a file", "a folder for the index, new or existing"))
    if not (path / _MANIFEST).is_file() and any(path.iterdir()):
        found = "a folder with other files"
        remedy = "Name another folder: this one would be replaced."
        raise InputError(Problem(str(path), found, "an index, or a new or empty folder", remedy))


def _same(path: Path, tables: Mapping[str, pa.Table], policy: Policy) -> StoredIndex | None:
    """Return the folder if it is an intact index of these records under this policy."""
    try:
        opened = open_folder(path, policy)
        opened.scanner()
    except (InputError, StaleError, DamagedError):
        return None
    versions = [(version.benchmark, version.fingerprint) for version in opened.versions]
    given = [(name, fingerprint_of_records(table)) for name, table in tables.items()]
    is_same = versions == given and _as_json(policy) == read_json(path / _MANIFEST)["policy"]
    return opened if is_same else None


def _as_json(policy: Policy) -> dict[str, Any]:
    """Return the settings, with a tokenizer's file by its whole path."""
    values: dict[str, Any] = orjson.loads(orjson.dumps(asdict(policy)))
    if str(values["tokenizer_str"]).endswith(".json"):
        values["tokenizer_str"] = str(Path(values["tokenizer_str"]).absolute())
    return values
