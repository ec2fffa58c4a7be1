"""Scans shards on nodes that share no folder: they read and write the store at its URL.

Each node has a store of its own, in a folder for temporary files. It keeps what all jobs read, the
index and the records, and fetches it once. The other files of a job are removed when it has ended.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, Self, TypeVar

from decon_core.benchmarks.records import Version
from decon_core.config.policy import Policy
from decon_core.corpus.sketch.shard_sketch import remove_filters
from decon_core.errors import DamagedError, EngineError, MissingError, Problem
from decon_core.execution.engine import Engine
from decon_core.execution.jobs import Cost, run_jobs
from decon_core.execution.progress import Advance
from decon_core.index.joined_index import search_name
from decon_core.scan.blocks import ShardJob, compile_kernels
from decon_core.scan.coverage import without_scan_result
from decon_core.scan.plan import build_search_files
from decon_core.scan.scan_results import ScanResults
from decon_core.scan.shard_results import scan_shard
from decon_core.storage.drafts import locked, remove
from decon_core.storage.files import files_below, names_in
from decon_core.storage.mirror import Mirror, delete, fetch, in_order, is_unchanging, send
from decon_core.storage.paths import RemotePath, list_files, options_in_use, use_options
from decon_core.storage.store import Store

T = TypeVar("T")

# Unions at the URL are kept this long. No scan takes longer.
_NS_KEPT = 30 * 86_400 * 10**9
_NO_ROOT = Path(os.devnull)  # nothing can be read or written below it
_UNJOINED = "unjoined"


# The node -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class NodeJob:
    """A shard to scan, and what a node needs for that. File names are those within the store."""

    job: ShardJob  # without a store
    url: RemotePath
    options: Mapping[str, Mapping[str, Any]]  # options of file systems
    search: tuple[str, ...]  # files of the union of the versions
    sketch: tuple[str, ...]  # files of the shard's sketch


def folder_name(url: RemotePath) -> str:
    return f"decon-{os.getuid()}-{sha256(str(url).encode()).hexdigest()[:16]}"


def node_folder(url: RemotePath) -> Path:
    """Return the folder of the store of this node; make it if there is none."""
    folder = Path(tempfile.gettempdir()) / folder_name(url)
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.lstat().st_uid != os.getuid():  # nor a link of theirs
        found = "the folder belongs to another user"
        raise EngineError(Problem(str(folder), found, remedy="set $TMPDIR to a folder of yours"))
    (folder / "drafts").mkdir(exist_ok=True)
    return folder


def prepare_node(node_job: NodeJob) -> None:
    """Fetch what all such jobs read, and compile the kernels."""

    def prepare(job: ShardJob) -> None:
        Store(job.root).sweep_drafts()
        compile_kernels(job)

    _with_intact_files(node_job, prepare)


def scan_on_node(node_job: NodeJob) -> tuple[Cost | None, list[str]]:
    """Scan a shard in the store of this node and send what was written to the URL.

    Returns the result of `scan_shard`, and the names of the files that were sent.
    """

    def scan(job: ShardJob) -> tuple[Cost | None, list[str]]:
        shard = job.shard.fingerprint
        with locked(job.root / f"drafts/.node-{job.scan}-{shard}.lock"):
            _remove_files(job)  # files of a worker that died
            try:
                _fetch_missing(job.root, node_job.url, node_job.sketch)
                cost = scan_shard(job)
                names = _written(job, node_job.sketch)
                for step in _in_steps(names):
                    send(job.root, node_job.url, step)
            finally:
                _remove_files(job)
        return cost, names

    return _with_intact_files(node_job, scan)


def _with_intact_files(node_job: NodeJob, do: Callable[[ShardJob], T]) -> T:
    """Call a function with the job in the store of this node, which has the union and the records.

    A node that lost power may have kept damaged files: they are fetched again, once.
    """
    use_options(node_job.options)
    root = node_folder(node_job.url)
    job = replace(node_job.job, root=root)
    names = [*node_job.search, *_records(job.versions)]
    _fetch_missing(root, node_job.url, names)
    try:
        return do(job)
    except (DamagedError, MissingError):  # missing: a part of the index, to build the union anew
        for name in names:
            remove(root / name)
        _fetch_missing(root, node_job.url, names)
        return do(job)


def _fetch_missing(root: Path, url: RemotePath, names: Sequence[str]) -> None:
    """Fetch files that this node does not have; other processes of the node wait for them."""

    def missing() -> list[str]:
        return [name for name in names if not (root / name).is_file()]

    if not missing():
        return
    digest = sha256("\n".join(names).encode()).hexdigest()[:16]
    with locked(root / f"drafts/.fetch-{digest}.lock"):
        try:
            fetch(url, root, missing())
        except FileNotFoundError as error:
            remedy = "run the command again: it sends the files that nodes need"
            raise MissingError(Problem(str(url), str(error), "this file", remedy)) from None


def _written(job: ShardJob, fetched: Iterable[str]) -> list[str]:
    """Return the names of the files that a job wrote."""
    below = files_below(_unjoined_folder(job))
    names = {path.relative_to(job.root).as_posix() for path in (*below, *_sketch_files(job))}
    return sorted(names.difference(fetched))


def _remove_files(job: ShardJob) -> None:
    for path in (_unjoined_folder(job), *_sketch_files(job)):
        remove(path)


def _unjoined_folder(job: ShardJob) -> Path:
    return Store(job.root).unjoined(job.scan) / job.shard.fingerprint


def _sketch_files(job: ShardJob) -> list[Path]:
    """Return the files of the sketch of a shard that exist."""
    if of := job.new_sketch:
        name = of.fingerprint
    elif job.some:
        name = job.some.sketch
    else:
        return []
    store, shard = Store(job.root), job.shard.fingerprint
    kinds = store.sketch_blocks, store.sketch_ledger, store.sketch_documents
    paths = (kind(name, shard) for kind in (*kinds, store.sketch_filters))
    return [path for path in paths if path.is_file()]


def _records(versions: Iterable[Version]) -> list[str]:
    return [f"records/{version.benchmark}/{version.fingerprint}.parquet" for version in versions]


def _in_steps(names: Iterable[str]) -> Iterator[list[str]]:
    """Yield names in the order of transfers. Scan results are last: they complete a shard."""
    listed = [*names]
    unjoined = [name for name in listed if name.startswith(f"{_UNJOINED}/")]
    yield from in_order(name for name in listed if not name.startswith(f"{_UNJOINED}/"))
    yield from in_order(unjoined)


# The machine that submits jobs --------------------------------------------------------------------


@dataclass
class UrlStore:
    """The store at a URL, through which the process that submits jobs and the nodes exchange files.

    Everything is also in the folder of this process, which is synchronized with the URL.
    """

    store: Store
    url: RemotePath
    scan: str  # fingerprint
    index: str  # likewise
    policy: Policy
    _unjoined: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    _changing: set[str] = field(default_factory=set)

    def fetch_unjoined(self, shards: Iterable[str]) -> None:
        """Fetch scan results that were not joined, because an earlier scan was interrupted."""
        of_scan = {*shards}
        folder = f"{_UNJOINED}/{self.scan}"
        for name in list_files(self.url / folder):
            shard = name.partition("/")[0]
            if shard in of_scan:
                self._unjoined[shard].add(f"{folder}/{name}")
        root = self.store.root
        names = [name for of_shard in self._unjoined.values() for name in sorted(of_shard)]
        for step in in_order(name for name in names if not (root / name).is_file()):
            fetch(self.url, root, step)

    def scan_shards(
        self, jobs: Sequence[ShardJob], *, workers: int, engine: Engine, on_advance: Advance
    ) -> Iterator[tuple[ShardJob, Future[Cost | None]]]:
        """Yield each job with its future when it has ended and its files were fetched."""
        search = {versions: self._search_files(versions) for versions in {j.versions for j in jobs}}
        self._send_missing({name for names in search.values() for name in names}, "search")
        versions = {version for job in jobs for version in job.versions}
        self._send_missing({*_records(versions)}, "records")
        results = ScanResults(self.store, self.scan)
        by_shard = {job.shard.fingerprint: job for job in jobs}
        done = run_jobs(
            scan_on_node,
            [self._for_node(job, search[job.versions], results) for job in jobs],
            workers=workers,
            engine=engine,
            on_advance=on_advance,
            prepare=prepare_node,
            name_of=lambda node_job: node_job.job.shard.path,
        )
        for node_job, future in done:
            job = by_shard[node_job.job.shard.fingerprint]
            yield job, self._received(job, future)

    def publish(self, folders: Iterable[str], shards: Iterable[str]) -> None:
        """Send folders of joined scan results, then remove what they were joined from."""
        for name in folders:
            folder = self.store.joined(self.scan, name)
            within = folder.relative_to(self.store.root).as_posix()
            there = list_files(self.url / within)
            names = [
                f"{within}/{file.name}" for file in files_below(folder) if file.name not in there
            ]
            for step in in_order(names):
                send(self.store.root, self.url, step)
        for shard in shards:
            for name in sorted(self._unjoined.pop(shard, ())):
                if not (self.store.root / name).is_file():
                    delete(self.url, name)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Let the next synchronization know what is the same here and at the URL."""
        if self._changing:
            Mirror(self.store.root, self.url).note_fetched(sorted(self._changing))
            self._changing.clear()

    def _search_files(self, versions: tuple[Version, ...]) -> tuple[str, ...]:
        """Return the files of the union of some versions, which are built if they are gone."""
        names = {"index": self.index, "scan": self.scan}
        build_search_files(self.store, versions, self.policy, **names)
        union, folder = search_name(versions), self.store.search(self.scan, "").parent
        within = folder.relative_to(self.store.root).as_posix()
        return tuple(
            f"{within}/{name}" for name in sorted(names_in(folder)) if name.startswith(union)
        )

    def _send_missing(self, names: Collection[str], folder: str) -> None:
        """Send files of a folder that the URL does not have; remove old unions there."""
        there = list_files(self.url / folder)
        missing = [name for name in names if name.removeprefix(f"{folder}/") not in there]
        for step in in_order(missing):
            send(self.store.root, self.url, step)
        if folder == "search":
            oldest = time.time_ns() - _NS_KEPT
            for name, stamp in there.items():
                if stamp.modified_ns < oldest and f"{folder}/{name}" not in names:
                    delete(self.url, f"{folder}/{name}")

    def _for_node(self, job: ShardJob, search: tuple[str, ...], results: ScanResults) -> NodeJob:
        versions = {version.fingerprint for version in job.versions}
        lacking = without_scan_result(
            results, job.shard, job.versions, needs_counts=self.policy.leave_out_common
        )
        joined = versions.difference(version.fingerprint for version in lacking)
        sketch = () if job.new_sketch else _sketch_files(job)
        return NodeJob(
            job=replace(job, root=_NO_ROOT, joined=frozenset(joined)),
            url=self.url,
            options=options_in_use(),
            search=search,
            sketch=tuple(path.relative_to(job.root).as_posix() for path in sketch),
        )

    def _received(
        self, job: ShardJob, future: Future[tuple[Cost | None, list[str]]]
    ) -> Future[Cost | None]:
        """Fetch what a job wrote, and return a future with the result of `scan_shard`."""
        received: Future[Cost | None] = Future()
        if error := future.exception():
            received.set_exception(error)
            return received
        cost, names = future.result()
        shard = job.shard.fingerprint
        try:
            for step in _in_steps(names):
                fetch(self.url, self.store.root, step)
        except FileNotFoundError as error:
            remedy = "wait for any other process that scans the same shards, then run this again"
            expected = "what a node has sent"
            raise MissingError(Problem(str(self.url), str(error), expected, remedy)) from None
        remove(self.store.refusal(shard))
        if job.new_sketch and job.new_sketch.is_joined:
            remove_filters(self.store, job.new_sketch.fingerprint, shard)
        for name in names:
            if name.startswith(f"{_UNJOINED}/"):
                self._unjoined[shard].add(name)
            elif not is_unchanging(name):
                self._changing.add(name)
        received.set_result(cost)
        return received
