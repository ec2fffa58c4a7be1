"""The folder of an index: what a scan keeps in its store, and what was indexed.

    <folder>/index.json                       policy, benchmark versions and fingerprints
    <folder>/{records,idf,index,search}/      the store; a scan of the same benchmarks has the same

A folder is written whole or not at all, and replaced as a whole.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa

from decon_core.benchmarks.records import Version, fingerprint_of_records, save_records
from decon_core.config.policy import Policy, unknown_benchmarks
from decon_core.errors import ConfigError, DamagedError, InputError, Problem, StaleError
from decon_core.index.parts import index_alone, index_fingerprint
from decon_core.scan.blocks import Scanner
from decon_core.scan.coverage import scan_fingerprint
from decon_core.storage.drafts import sweep_beside
from decon_core.storage.files import atomic_path, read_json, write_json
from decon_core.storage.store import Store

_MANIFEST = "index.json"
_TEMPORARY = "decon-index-"
_LAYOUT = 1
_BUILD = "build it again with `build_index`"


@dataclass(frozen=True)
class IndexFolder:
    """An index on disk: the benchmark versions in it, and the names of its files."""

    path: Path
    versions: tuple[Version, ...]
    policy: Policy
    index: str  # fingerprint of the index parts
    scan: str  # fingerprint of the union of index parts
    fingerprint: str  # of all that decides what is found

    @property
    def store(self) -> Store:
        return Store(self.path)

    def require(self, fingerprint: str) -> None:
        """Raise `StaleError` if the folder holds another index than the one of a fingerprint."""
        if self.fingerprint != fingerprint:
            found = f"an index with fingerprint {self.fingerprint}"
            raise StaleError(Problem(str(self.path), found, f"{fingerprint}", _BUILD))

    def new_scanner(self) -> Scanner:
        return Scanner(self.store, self.versions, self.policy, self.index, self.scan)


def write_folder(path: Path | None, tables: Mapping[str, pa.Table], policy: Policy) -> IndexFolder:
    """Write an index of these records, or open the folder if it has the same.

    None: a temporary folder, alone in its parent, which the caller removes.
    """
    _check_policy(policy, tables)
    if path is None:
        root = Path(tempfile.mkdtemp(prefix=_TEMPORARY))
        try:
            return _written(root / "index", tables, policy)
        except BaseException:
            shutil.rmtree(root)
            raise
    if path.exists():
        _require_replaceable(path)
        if (found := _same(path, tables, policy)) is not None:
            return found
    sweep_beside(path.parent)
    return _written(path, tables, policy)


def _written(path: Path, tables: Mapping[str, pa.Table], policy: Policy) -> IndexFolder:
    with atomic_path(path) as draft:
        draft.mkdir()
        store = Store(draft)
        versions = [save_records(store, name, table) for name, table in tables.items()]
        index_alone(store, versions, policy)
        index, scan = index_fingerprint(store, policy), scan_fingerprint(store, policy)
        Scanner(store, versions, policy, index, scan)  # writes what it will map
        manifest = {
            "layout": _LAYOUT,
            "policy": _as_json(policy),
            "versions": [asdict(version) for version in versions],
            "index": index,
            "scan": scan,
        }
        write_json(draft / _MANIFEST, manifest)
    return open_folder(path)


def open_folder(path: Path, policy: Policy | None = None) -> IndexFolder:
    """Open the folder of an index; a policy may differ from its own where no scan depends on it."""
    path = path.absolute()  # processes that open it again may run in another folder
    file = path / _MANIFEST
    if not file.is_file():
        raise InputError(Problem(str(path), f"no {_MANIFEST}", "a folder that `build_index` wrote"))
    manifest: dict[str, Any] = read_json(file)
    if manifest["layout"] != _LAYOUT:
        found = f"an index of layout {manifest['layout']}"
        raise StaleError(Problem(str(file), found, f"layout {_LAYOUT}", _BUILD))
    versions = tuple(Version(**version) for version in manifest["versions"])
    chosen = policy or Policy.from_mapping(manifest["policy"], where=str(file))
    _check_policy(chosen, [version.benchmark for version in versions])
    store = Store(path)
    index, scan = index_fingerprint(store, chosen), scan_fingerprint(store, chosen)
    if (index, scan) != (manifest["index"], manifest["scan"]):
        found = "an index that was built under other settings, or with another tokenizer"
        raise StaleError(Problem(str(file), found, "one built under this policy", _BUILD))
    content = {"policy": _as_json(chosen), "versions": manifest["versions"], "scan": scan}
    fingerprint = sha256(orjson.dumps(content, option=orjson.OPT_SORT_KEYS)).hexdigest()[:16]
    return IndexFolder(path, versions, chosen, index, scan, fingerprint)


def _check_policy(policy: Policy, benchmarks: Mapping[str, Any] | list[str]) -> None:
    problems = [*unknown_benchmarks(policy, [*benchmarks])]
    if policy.leave_out_common:
        remedy = "Scan the corpus: `decon-assets scan`."
        expected = "false: how common an n-gram is depends on a whole corpus"
        problems.append(Problem("policy.leave_out_common", "true", expected, remedy))
    if problems:
        raise ConfigError(problems)


def _require_replaceable(path: Path) -> None:
    """Raise `InputError` if a folder holds anything but an index."""
    if not path.is_dir():
        raise InputError(Problem(str(path), "a file", "a folder for the index, which may be new"))
    if not (path / _MANIFEST).is_file() and any(path.iterdir()):
        found = "a folder with other files"
        remedy = "Name another folder: this one would be replaced."
        raise InputError(Problem(str(path), found, "an index, or a new or empty folder", remedy))


def _same(path: Path, tables: Mapping[str, pa.Table], policy: Policy) -> IndexFolder | None:
    """Return the folder if it is an intact index of these records under this policy."""
    try:
        found = open_folder(path, policy)
        found.new_scanner()
    except (InputError, StaleError, DamagedError):
        return None
    versions = {version.benchmark: version.fingerprint for version in found.versions}
    given = {name: fingerprint_of_records(table) for name, table in tables.items()}
    is_same = [*versions.items()] == [*given.items()]
    return found if is_same and _as_json(policy) == read_json(path / _MANIFEST)["policy"] else None


def _as_json(policy: Policy) -> dict[str, Any]:
    """Return the settings, with a tokenizer's file by its whole path."""
    values: dict[str, Any] = orjson.loads(orjson.dumps(asdict(policy)))
    if str(values["tokenizer_str"]).endswith(".json"):
        values["tokenizer_str"] = str(Path(values["tokenizer_str"]).absolute())
    return values
