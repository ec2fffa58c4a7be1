"""A small world to run the pipeline on, which each test bends as it likes."""

import gc
import gzip
import json
import os
import random
import socket
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from dagster import DagsterInstance
from dagster._core.storage.event_log.in_memory import InMemoryEventLogStorage
from dagster._core.storage.runs.in_memory import InMemoryRunStorage
from hypothesis import HealthCheck, settings

from decon_assets.assets.registration import Registration
from decon_assets.graph import GRAPH, Graph
from decon_assets.runner.pipeline import Pipeline, PipelineError
from decon_core.benchmarks.records import Version
from decon_core.config.load import load_config
from decon_core.corpus.packs import Shard
from decon_core.decisions.match_reader import MatchReader
from decon_core.kernels.jit import compiled_at_once
from decon_core.storage.store import Store
from tests.compiled_kernels import compile_kernels
from tests.finished_world import remove_finished_world
from tests.first_runs import empty, held_connection, run_or_copy

# A property holds however long an example takes: the first one compiles kernels for half a minute,
# and other processes may hold all cores. Both checks below measure the wall clock.
HYPOTHESIS_PROFILE = "any machine"
# Examples of a property that does not say how many. The whole suite has to end in 20 minutes on two
# cores; a change of one room is worth more: DECON_EXAMPLES=1000 pytest tests/core/scan
N_EXAMPLES = int(os.environ.get("DECON_EXAMPLES") or 25)
# CI gives a commit the same answer each time; other runs try new examples.
settings.register_profile(
    HYPOTHESIS_PROFILE,
    deadline=None,
    derandomize=bool(os.environ.get("DECON_FIXED_EXAMPLES")),
    max_examples=N_EXAMPLES,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile(HYPOTHESIS_PROFILE)


def pytest_configure(config: pytest.Config) -> None:
    """Test compiled kernels, with however little input; commands decide for themselves.

    Waiting for the disk takes up to half of the time, and no test cuts the power.
    """
    stack = ExitStack()
    stack.enter_context(compiled_at_once())
    stack.enter_context(pytest.MonkeyPatch.context()).setattr(os, "fsync", os.fstat)
    config.add_cleanup(stack.close)


def pytest_sessionstart(session: pytest.Session) -> None:
    """Compile the kernels before the processes of a parallel test run start."""
    if getattr(session.config.option, "numprocesses", None) and not (
        hasattr(session.config, "workerinput") or os.environ.get("NUMBA_DISABLE_JIT")
    ):
        compile_kernels()


def pytest_collection_finish() -> None:
    """Look for garbage less often, and not among modules and tests: a sixth of the time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


def pytest_sessionfinish() -> None:
    gc.unfreeze()
    remove_finished_world()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put files that take minutes first: begun last, they would leave the other cores idle.

    They are mixed, in the order of a hash: those of a cluster wait while others compute.
    """

    def order(item: pytest.Item) -> tuple[bool, str]:
        folders = {"ui", "assets", "features"}.intersection(item.path.parent.parts)
        is_long = bool(folders) or item.path.parent.name == "tests"
        return not is_long, sha256(item.path.name.encode()).hexdigest() if is_long else ""

    items.sort(key=order)


_SYLLABLES = tuple(consonant + vowel for consonant in "bdfgklmnprstvz" for vowel in "aeiou")


def invented_words(rng: random.Random, n: int) -> str:
    """Text that no other text shares an n-gram with, but by the wildest chance."""
    return " ".join("".join(rng.choices(_SYLLABLES, k=3)) for _ in range(n))


@dataclass
class World:
    """A folder with recipes, benchmarks, shards and a decon.toml, and an instance to run it on."""

    folder: Path
    instance: DagsterInstance
    benchmarks: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    policy: dict[str, Any] = field(default_factory=dict)
    mixtures: str = ""  # [[mixture]] tables; none: the default
    snapshot: list[str] | None = None
    said: list[str] = field(default_factory=list)

    @property
    def config_path(self) -> Path:
        return self.folder / "decon.toml"

    @property
    def store(self) -> Store:
        return Store(self.folder / ".decon")

    def add_benchmark(self, name: str, *, n_items: int = 5) -> list[dict[str, Any]]:
        rng = random.Random(name)
        self.benchmarks[name] = [
            {"question": invented_words(rng, 55), "answer": invented_words(rng, 10)}
            for _ in range(n_items)
        ]
        self.write_benchmarks()
        return self.benchmarks[name]

    def write_benchmarks(self) -> None:
        recipes = {}
        for name, items in self.benchmarks.items():
            _write_lines(self.folder / f"{name}.jsonl", items)
            recipes[name] = {
                "local_path": f"{name}.jsonl",
                "splits": ["test"],
                "prompt": "question",
                "answers": ["answer"],
            }
        (self.folder / "evals.yaml").write_text(json.dumps({"evals": recipes}))

    def add_shard(
        self, name: str, *, leaks: Sequence[dict[str, Any]] = (), n_documents: int = 12
    ) -> Path:
        """A shard whose document number k+1 holds leak number k."""
        rng = random.Random(name)
        documents = [
            {"id": f"{name}-{row}", "text": invented_words(rng, 60), "license": "CC0-1.0"}
            for row in range(n_documents)
        ]
        for row, item in enumerate(leaks, start=1):
            documents[row]["text"] += f" {item['question']}\nAnswer: {item['answer']} and so on"
        path = self.folder / "corpus" / f"{name}.jsonl.gz"
        path.parent.mkdir(exist_ok=True)
        lines = "".join(json.dumps(document) + "\n" for document in documents)
        path.write_bytes(gzip.compress(lines.encode(), mtime=0))  # the same bytes at any time
        return path

    def write_config(self) -> None:
        policy = {"tokenizer_str": "words"} | self.policy
        lines = ["[evals]", 'recipes = ["evals.yaml"]']
        if self.snapshot:
            lines += ["[term_weights]", f"benchmarks = {json.dumps(self.snapshot)}"]
        lines += [
            "[corpus]",
            "pack_shards = 1",
            "[[corpus.source]]",
            'name = "web"',
            'path = "corpus/*.jsonl.gz"',
            'text = "text"',
            'id = "id"',
            "[policy]",
            *(f"{name} = {json.dumps(value)}" for name, value in policy.items()),
            self.mixtures,
        ]
        self.config_path.write_text("\n".join(lines) + "\n")

    def run(
        self, *, until: str = "", refreeze: bool = False, may_retire: bool = False
    ) -> Registration:
        """Run; `until` some stages, for a test of what comes no later, in less of the time."""
        self.write_config()
        self.said.clear()
        graph = graph_until(*until.split()) if until else GRAPH
        pipeline = Pipeline(self.config_path, self.instance, self.said.append, graph=graph)
        return pipeline.run(refreeze=refreeze, may_retire=may_retire)

    def start(self, *, until: str = "") -> Registration:
        """Run for the first time, or copy what the same world's first run left in another test.

        A run that fails does so in the copy, too.
        """
        return self.go_on(until=until)

    def go_on(self, *, until: str = "") -> Registration:
        """Run again, or copy what the same run left in a test that came to it the same way."""
        self.write_config()
        result, self.said[:] = run_or_copy(self._kept_run, [self.folder], self.instance, until)
        if isinstance(result, PipelineError):
            raise result
        return result

    def _kept_run(self, until: str) -> tuple[Registration | PipelineError, list[str]]:
        try:
            result: Registration | PipelineError = self.run(until=until)
        except PipelineError as error:
            result = error
        return result, [*self.said]

    def policy_in_force(self) -> Any:
        return load_config(self.config_path).policy

    def scan_results(self) -> dict[str, bytes]:
        """Every scan result and ledger, by path below the store."""
        root = self.store.root / "scan_results"
        return {
            str(path.relative_to(root)): path.read_bytes()
            for path in sorted(root.rglob("*"))
            if path.is_file()
        }


@cache
def graph_until(*stages: str) -> Graph:
    """These stages, all assets that they depend on, and the checks of them."""
    wanted = {name for stage in stages for name in (*GRAPH.upstream[stage], stage)}
    return Graph(
        [one for one in GRAPH.assets if one.key.to_user_string() in wanted],
        [
            one
            for one in GRAPH.checks
            if {spec.asset_key.to_user_string() for spec in one.check_specs} <= wanted
        ],
    )


class FindsNothing(MatchReader):
    """Reads scan results as they would be if nothing was found."""

    def entries(self, shard: Shard, versions: Sequence[Version], *, source: str) -> pa.Table:
        return super().entries(shard, versions, source=source).slice(0, 0)


def _write_lines(path: Path, rows: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.fixture
def instance(monkeypatch: pytest.MonkeyPatch) -> Iterator[DagsterInstance]:
    monkeypatch.setattr(InMemoryEventLogStorage, "_connect", held_connection)
    monkeypatch.setattr(InMemoryEventLogStorage, "has_table", lambda *_: True)  # asked 200 times
    monkeypatch.setattr(InMemoryRunStorage, "connect", held_connection)
    with DagsterInstance.ephemeral() as ephemeral:
        yield ephemeral


@pytest.fixture
def empty_world(tmp_path_factory: pytest.TempPathFactory, instance: DagsterInstance) -> World:
    """Always in the same folder, so that a run in it can be copied (`first_runs.py`)."""
    return World(empty(tmp_path_factory.getbasetemp() / "world"), instance)


@pytest.fixture
def world(empty_world: World) -> World:
    """Two benchmarks, three shards; each shard holds one leak of each benchmark."""
    harbor = empty_world.add_benchmark("harbor")
    ledger = empty_world.add_benchmark("ledger")
    for number in range(3):
        empty_world.add_shard(f"s{number}", leaks=[harbor[number], ledger[number]])
    empty_world.snapshot = ["harbor", "ledger"]
    return empty_world


@pytest.fixture
def unused_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
