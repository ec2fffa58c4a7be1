"""Scans on Ray nodes that share no folder: corpus and store are behind a URL that speaks S3."""

import os
import subprocess
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from importlib.util import find_spec

import fsspec
import pytest

from decon_assets.instance.home import ensure_home
from decon_core.config.sources import Sketch, Source
from decon_core.corpus.packs import find_shards
from decon_core.corpus.sketch.pack_sketch import build_pack_sketch
from decon_core.execution.local import run_here
from decon_core.execution.progress import JobCounts
from decon_core.features.clusters.ray_cluster import RayEngine
from decon_core.features.clusters.settings import Ray
from decon_core.index.term_weights import current_snapshot
from decon_core.scan import node_store
from decon_core.scan.blocks import kept_scanners
from decon_core.scan.node_store import folder_name
from decon_core.scan.scanner import scan_packs
from decon_core.storage.mirror import Mirror
from decon_core.storage.paths import RemotePath, list_files, parse_path, use_options
from tests.assets.test_remote import contents, run, settings_for
from tests.core.conftest import Bench, words
from tests.features.clusters.conftest import NO_RAY, files_of, make_shards, packs_of, require
from tests.features.clusters.test_pipeline import MIXTURES, command
from tests.long_runs import only_in_long_runs

# Ray leaves sockets and files to the garbage collector.
pytestmark = [
    pytest.mark.clusters,
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning"),
]

N_SHARDS, N_PACKS, N_DOCUMENTS = 8, 2, 150
SKETCH = Sketch()
_KEYS = {
    "AWS_ACCESS_KEY_ID": "testing",
    "AWS_SECRET_ACCESS_KEY": "testing",
    "AWS_DEFAULT_REGION": "us-east-1",
}
_SECONDS = 0.8  # that a node waits for a shard, so that both have something to do
_SHARDS_BEFORE = 5  # are begun before a node is lost
_MOST_SECONDS = 120  # to wait for the other node, which a busy machine starts late
# Only this machine has it.
_OF_MACHINE = (".mirror.json", ".mirror.lock")


@pytest.fixture(scope="module")
def nodes(tmp_path_factory):
    """Two nodes, each with a folder of its own for temporary files. They know no endpoint of S3."""
    require(find_spec("ray"), NO_RAY)
    from tests.features.clusters.ray_nodes import ray_cluster

    def environments():
        while True:
            yield {**_KEYS, "TMPDIR": str(tmp_path_factory.mktemp("node"))}

    with ray_cluster(environments=environments()) as running:
        yield running


@pytest.fixture(scope="module")
def server(nodes):
    # Here, not in each process that looks for tests: it takes a second.
    from moto.server import ThreadedMotoServer

    running = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    running.start()
    with pytest.MonkeyPatch.context() as patch:
        for name, value in _KEYS.items():
            patch.setenv(name, value)
        patch.setenv("FSSPEC_S3", "{}")  # so that what is set is taken back
        host, port = running.get_host_and_port()
        endpoint = f"http://{host}:{port}"
        use_options({"s3": {"endpoint_url": endpoint}})
        yield endpoint
        fsspec.config.conf.pop("s3")
    running.stop()


@pytest.fixture
def s3(server):
    """An empty bucket."""
    files = fsspec.filesystem("s3", use_listings_cache=False)
    files.mkdir("mill")
    yield files
    files.rm("mill", recursive=True)


@pytest.fixture
def url(tmp_path):
    """A store that no node knows from another test."""
    return parse_path(f"s3://mill/{tmp_path.name}")


@pytest.fixture
def requests(url, shards, monkeypatch):
    """The requests for files of the store, by method and name."""
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication

    counts = Counter()
    call = DomainDispatcherApplication.__call__

    def counting(self, environ, start_response):
        path = environ["PATH_INFO"]
        if path.startswith(f"/{url.key}/"):
            counts[environ["REQUEST_METHOD"], path.removeprefix(f"/{url.key}/")] += 1
        elif environ["REQUEST_METHOD"] == "GET" and path.startswith("/mill/in/"):
            shards.wait_for_turn(path)
        return call(self, environ, start_response)

    monkeypatch.setattr(DomainDispatcherApplication, "__call__", counting)
    return counts


class ShardsAtWork:
    """The shards that nodes are fetching, each in a thread of the server."""

    def __init__(self):
        self._both, self._begun, self._fetched_now = threading.Condition(), set(), set()
        self.on_both_nodes = None  # called once, while two nodes wait for a shard each
        self.seconds = 0.0  # before each answer

    def wait_for_turn(self, path):
        """Answer late; the fifth shard waits until the other node fetches one, however late."""
        time.sleep(self.seconds)
        with self._both:
            self._fetched_now.add(path)
            self._both.notify_all()
            if self.on_both_nodes:
                self._begun.add(path)
            if len(self._begun) >= _SHARDS_BEFORE:
                self._both.wait_for(self._is_enough, timeout=_MOST_SECONDS)
            if self.on_both_nodes and len(self._begun) >= _SHARDS_BEFORE and self._is_enough():
                call, self.on_both_nodes = self.on_both_nodes, None
                call()
            self._fetched_now.discard(path)

    def _is_enough(self):
        return not self.on_both_nodes or len(self._fetched_now) > 1


@pytest.fixture
def shards():
    return ShardsAtWork()


@pytest.fixture
def engine(nodes, url, s3, monkeypatch):
    monkeypatch.setattr("decon_core.execution.jobs._BYTES_PER_WORKER", 1)
    return RayEngine(Ray(address=nodes.address), url)


ITEMS = {
    name: [(words(f"{name}{n}", 60), words(f"{name} answer {n}", 12), None) for n in range(40)]
    for name in ("harbor", "ledger", "orchard")
}
FIRST = {name: ITEMS[name] for name in ("harbor", "ledger")}


@pytest.fixture
def packs(s3, tmp_path):
    """Eight shards at the URL, in two packs. Few of them have items of the last benchmark."""
    added = {(number, 100): f" {ITEMS['orchard'][number][0]}" for number in (2, 7)}
    for number, content in enumerate(make_shards(FIRST, N_SHARDS, N_DOCUMENTS, added)):
        s3.pipe_file(f"mill/in/s{number:02}.jsonl", content)
    source = Source(name="web", path="s3://mill/in/*.jsonl", text="text", id="id")
    shards = find_shards(source, folder=tmp_path, known={})
    return packs_of(source, shards, N_PACKS)


class World:
    """A store, and what the pipeline does with it."""

    def __init__(self, folder, packs, *, engine=None):
        folder.mkdir()
        self.bench, self.packs = Bench(folder), packs
        self.mirror = Mirror(self.bench.store.root, engine.store_url) if engine else None
        self.options = {"engine": engine} if engine else {}

    def synchronize(self):
        if self.mirror:
            self.mirror.push()
            self.mirror.pull()

    def prepare(self, items=FIRST):
        self.versions = self.bench.prepare(items, frozen=[*FIRST])
        self.synchronize()

    def add_benchmark(self):
        version = self.bench.save("orchard", ITEMS["orchard"])
        self.bench.index([version], current_snapshot(self.bench.store, self.bench.policy))
        self.versions.append(version)
        self.synchronize()

    def scan(self, *, sketch=SKETCH, **options):
        try:
            return scan_packs(
                self.bench.store,
                self.packs,
                self.versions,
                self.bench.policy,
                sketch=sketch,
                **self.options,
                **options,
            )
        finally:
            self.synchronize()

    def join_sketches(self):
        (folder,) = (self.bench.store.root / "sketch").iterdir()
        for pack in self.packs:
            build_pack_sketch(self.bench.store, folder.name, pack)
        self.synchronize()

    @property
    def files(self):
        found = files_of(self.bench.store.root)
        return {name: content for name, content in found.items() if name not in _OF_MACHINE}


@pytest.fixture
def worlds(engine, packs, tmp_path):
    """The same store twice: `here` on this machine, `there` at the URL."""
    here = World(tmp_path / "here", packs)
    there = World(tmp_path / "there", packs, engine=engine)
    for world in (here, there):
        world.prepare()
    return here, there


def same_as_at_url(world, folder):
    """Whether another machine would fetch the same files."""
    Mirror(folder, world.mirror.kept).pull()
    theirs = {name: one for name, one in files_of(folder).items() if name not in _OF_MACHINE}
    ours = {name: one for name, one in world.files.items() if not name.startswith("search/")}
    return theirs == ours


def folders_of_nodes(tmp_path_factory, url):
    """The folders of the nodes that jobs ran on."""
    name = folder_name(url)
    return [*tmp_path_factory.getbasetemp().glob(f"node*/{name}")]


def unjoined_at(url):
    return sorted(list_files(url / "unjoined"))


def assert_same(world, expected):
    assert world.files.keys() == expected.files.keys()
    assert [name for name in world.files if world.files[name] != expected.files[name]] == []


@only_in_long_runs("a lost node and the pipeline fetch and send the same files")
def test_later_benchmarks_read_blocks_and_each_node_fetches_an_index_once(
    engine, worlds, tmp_path, tmp_path_factory, requests, shards
):
    here, there = worlds
    for world, shards.seconds in zip(worlds, (0, _SECONDS), strict=True):
        assert world.scan().n_shards_read == N_SHARDS
        world.join_sketches()
        assert not any(name.endswith(".filters") for name in world.files)
        world.add_benchmark()
        requests.clear()
        world.scan()
    fetched = {name: n for (kind, name), n in requests.items() if kind == "GET"}
    (union,) = (name for name in fetched if name.startswith("search/"))
    assert fetched[union] <= 2
    (records,) = (
        name
        for name in fetched
        if name.startswith("records/orchard/") and name.endswith(".parquet")
    )
    assert fetched[records] <= 2
    assert any(name.endswith(".answered.parquet") for name in there.files)
    folders = folders_of_nodes(tmp_path_factory, engine.store_url)
    assert len(folders) >= 2
    for folder in folders:  # with only what all jobs read
        kept = {path.relative_to(folder).parts[0] for path in folder.rglob("*") if path.is_file()}
        assert kept == {"records", "search"}
    assert_same(there, here)
    assert same_as_at_url(there, tmp_path / "other")
    assert unjoined_at(engine.store_url) == []


@dataclass
class OneNode:
    """A cluster of one node, which is this process."""

    store_url: RemotePath
    counts: JobCounts = field(default_factory=JobCounts)
    is_remote: bool = True

    def most_workers(self, workers):
        return 1

    def run(self, work, *, workers):
        work.prepare(work.jobs[0])
        yield from run_here(work)


def test_damaged_files_of_a_node_are_fetched_again(server, s3, packs, url, tmp_path, monkeypatch):
    monkeypatch.setattr("decon_core.execution.jobs._BYTES_PER_WORKER", 1)
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))
    here, there = World(tmp_path / "here", packs), World(tmp_path / "t", packs, engine=OneNode(url))
    for world in (here, there):
        world.prepare()
    here.scan()
    cut, fetch = [], node_store.fetch

    def fetch_and_cut(url, folder, names):
        """Lose the second half of files, the first time."""
        fetch(url, folder, names)
        for name in names:
            is_kept = name.startswith(("search/", "records/")) and folder.name == folder_name(url)
            if is_kept and name not in cut:
                cut.append(name)
                os.truncate(folder / name, (folder / name).stat().st_size // 2)

    monkeypatch.setattr(node_store, "fetch", fetch_and_cut)
    kept_scanners.cache_clear()
    there.scan()
    assert {name.partition("/")[0] for name in cut} == {"search", "records"}
    assert_same(there, here)


@only_in_long_runs("a lost node and the pipeline fetch and send the same files")
def test_a_scan_goes_on_on_another_machine_with_what_workers_had_sent(
    engine, packs, worlds, requests, shards, tmp_path
):
    here, there = worlds
    here.scan()
    shards.seconds = _SECONDS

    def interrupt(n_done, *_):
        if n_done == 3:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        there.scan(on_progress=interrupt)
    assert unjoined_at(engine.store_url)
    other = World(tmp_path / "other", packs, engine=engine)
    other.mirror.pull()
    other.versions = there.versions
    assert 0 < other.scan().n_shards_read <= N_SHARDS - 3
    assert_same(other, here)
    assert unjoined_at(engine.store_url) == []


def test_the_pipeline_makes_the_same_files_with_nodes_that_share_no_folder(
    nodes, server, s3, world, tmp_path, tmp_path_factory
):
    world.write_config()
    with world.config_path.open("a") as file:
        file.write(f"[sketch]\n{MIXTURES}")
    for path in world.folder.glob("corpus/*"):
        s3.put_file(str(path), f"mill/in/corpus/{path.name}")
    for path in (world.folder / "evals.yaml", *world.folder.glob("*.jsonl")):
        s3.put_file(str(path), f"mill/in/recipes/{path.name}")
    store = f"s3://mill/{tmp_path.name}"
    for name in ("machine", "alone"):
        (tmp_path / name).mkdir()
    config = settings_for(tmp_path / "machine", world, server, store=store)
    alone = settings_for(tmp_path / "alone", world, server, store=f"{store}-alone")
    with config.open("a") as file:
        file.write('[execution]\nengine = "ray"\nshared_store = false\n')
        file.write(f'ray = {{ address = "{nodes.address}" }}\n')
    done = subprocess.run(
        command(config, "run", "--verbose"),
        env={**os.environ, "DAGSTER_HOME": str(ensure_home(tmp_path / "home"))},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert folders_of_nodes(tmp_path_factory, parse_path(store))
    assert "this step runs on this machine" in done.stdout
    run(alone, until=("blend", "clean_benchmark"))
    made = (
        "records/",
        "idf/",
        "index/",
        "scan_results/",
        "sketch/",
        "clean/",
        "mixtures/",
        "blends/",
    )
    found, expected = (contents(one.parent / ".decon", *made) for one in (config, alone))
    assert found.keys() == expected.keys()
    assert [name for name in found if found[name] != expected[name]] == []
    assert {*found} <= {*list_files(parse_path(store))}
    assert unjoined_at(parse_path(store)) == []


# Last, as no other test has the node that is lost.
def test_a_store_is_the_same_byte_for_byte_when_a_node_is_lost(
    nodes, engine, worlds, tmp_path, requests, shards, caplog
):
    here, there = worlds
    here.scan()
    shards.on_both_nodes, shards.seconds = nodes.kill_node, _SECONDS
    requests.clear()
    there.scan()
    assert not shards.on_both_nodes
    assert any("its node was lost" in one for one in caplog.messages), caplog.messages
    fetched = {name: n for (kind, name), n in requests.items() if kind == "GET"}
    unions = [n for name, n in fetched.items() if name.startswith("search/")]
    assert unions == [2, 2]  # each node once: n-grams and questions
    assert_same(there, here)
    assert same_as_at_url(there, tmp_path / "other")
    assert unjoined_at(engine.store_url) == []
