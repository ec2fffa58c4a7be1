"""A real Slurm and a real Ray cluster, and a corpus that takes them some seconds."""

import json
import os
import random
from dataclasses import replace
from importlib.util import find_spec

import pytest

from decon_core.config.mixtures import Mixture
from decon_core.config.sources import Source
from decon_core.corpus.packs import Pack, find_shards
from decon_core.features.clusters import slurm as slurm_engine
from decon_core.features.clusters.settings import Slurm
from decon_core.features.clusters.slurm import SlurmEngine
from decon_core.mixtures.build import build_shares
from decon_core.mixtures.builder import Builder
from decon_core.mixtures.verify import verify
from decon_core.scan.scanner import scan_packs
from tests.core.conftest import Bench, words
from tests.features.clusters.slurm_cluster import INSTALL, missing_programs, slurm_cluster
from tests.waiting import wait_until

N_SHARDS, N_PACKS, N_DOCUMENTS = 24, 4, 900
MIXTURES = (Mixture(name="clean"), Mixture(name="control", take="control", control_of="clean"))

NO_SLURM = f"no Slurm on this machine: `{INSTALL}` (Debian), then test again"
NO_RAY = "no Ray in this environment: `pip install 'decon-assets[ray]'`, then test again"


def require(is_there, reason):
    """Leave a test out without its cluster, unless CI demands it."""
    if not is_there and os.environ.get("DECON_REQUIRE_CLUSTERS"):
        pytest.fail(f"DECON_REQUIRE_CLUSTERS is set, but {reason}", pytrace=False)
    if not is_there:
        pytest.skip(reason)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """A running Slurm of three nodes."""
    require(not missing_programs(), NO_SLURM)
    with slurm_cluster(tmp_path_factory.mktemp("slurm") / "cluster") as running:
        yield running


@pytest.fixture
def slurm(cluster, tmp_path, monkeypatch):
    """Make an engine on the cluster, with these settings."""
    for name, value in cluster.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(slurm_engine, "_SECONDS_BETWEEN_READS", 0.2)
    monkeypatch.setattr(slurm_engine, "_SECONDS_BETWEEN_LOOKS", 1.0)

    def make(**settings):
        drafts = tmp_path / "drafts"
        return SlurmEngine(Slurm(memory="500M", **settings), drafts, tmp_path / "logs")

    return make


@pytest.fixture(scope="module")
def ray_nodes():
    """A running Ray cluster: a head without CPUs, and two nodes with one each."""
    require(find_spec("ray"), NO_RAY)
    from tests.features.clusters.ray_nodes import ray_cluster

    with ray_cluster() as running:
        yield running


def make_shards(items, n_shards, n_documents, added=None):
    """The contents of shards: one document in a hundred has an item of a random benchmark.

    `added`: more text, by shard and row.
    """
    texts = [words(n, 150) for n in range(200)]
    rng = random.Random("corpus")
    for number in range(n_shards):
        lines = []
        for row in range(n_documents):
            text = f"{rng.choice(texts)} {number} {row} {rng.choice(texts)}"
            if row % 100 == 7:
                question, answer, _ = rng.choice(items[rng.choice([*items])])
                text += f" {question}\nAnswer: {answer} and so on"
            text += (added or {}).get((number, row), "")
            lines.append(json.dumps({"id": f"{number}-{row}", "text": text}))
        yield "\n".join(lines).encode() + b"\n"


def packs_of(source, shards, n_packs):
    size = len(shards) // n_packs
    return [
        Pack(name=f"web-{n:04}", source=source, shards=tuple(shards[n * size : (n + 1) * size]))
        for n in range(n_packs)
    ]


class Corpus:
    """24 shards in four packs, and the stores that were made of them."""

    def __init__(self, folder):
        self.folder = folder
        (folder / "shards").mkdir()
        self.items = {
            name: [
                (words(f"{name}{n}", 60), words(f"{name} answer {n}", 12), None) for n in range(40)
            ]
            for name in ("harbor", "ledger")
        }
        for number, content in enumerate(make_shards(self.items, N_SHARDS, N_DOCUMENTS)):
            (folder / f"shards/s{number:02}.jsonl").write_bytes(content)
        source = Source(name="web", path="*.jsonl", text="text", id="id")
        shards = find_shards(source, folder=folder / "shards", known={})
        self.packs = packs_of(source, shards, N_PACKS)

    def make(self, name, **options):
        """Scan, build and verify mixtures in a new store; return its files."""
        bench = Bench(self.folder / name)
        bench.folder.mkdir()
        versions = bench.prepare(self.items)
        of_scan = {name: options.pop(name, None) for name in ("on_progress", "costs")}
        scan_packs(
            bench.store,
            self.packs,
            versions,
            bench.policy,
            **of_scan,
            **options,
        )
        builder = Builder(bench.store, tuple(self.packs), tuple(versions), bench.policy, MIXTURES)
        wanted = [(one, pack) for one in MIXTURES for pack in self.packs]
        for _, _, future in build_shares(builder, wanted, **options):
            future.result()
        assert verify(replace(builder), MIXTURES[0], **options).problems == []
        return files_of(bench.store.root)


@pytest.fixture(scope="session")
def corpus(tmp_path_factory):
    return Corpus(tmp_path_factory.mktemp("corpus"))


@pytest.fixture(scope="session")
def local_files(corpus):
    """The files of a store that this machine made."""
    return corpus.make("local")


def files_of(root):
    """All files of a store but drafts and logs, by path. A killed worker leaves a draft."""
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file() and path.relative_to(root).parts[0] not in ("drafts", "logs")
        if not path.name.startswith(".")
    }


def wait_for(is_met):
    assert wait_until(is_met), "waited in vain"
