"""Stages without Dagster: a store with benchmarks and a pack, ready to be scanned."""

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest

from decon_core.benchmarks.normalized import fingerprint_of
from decon_core.benchmarks.records import Version, save_records
from decon_core.config.policy import Policy
from decon_core.config.sources import Source
from decon_core.corpus.packs import Pack, find_shards
from decon_core.index.parts import build_part
from decon_core.index.term_weights import Snapshot, freeze
from decon_core.scan.coverage import scan_fingerprint
from decon_core.scan.scan_results import ScanResults
from decon_core.schemas import RECORDS
from decon_core.storage.store import Store

SOURCE = Source(name="web", path="*.jsonl", text="text", id="id")
WORDS = Policy(tokenizer_str="words")
DECON = Policy(tokenizer_str="words", detectors=("decon",))

# question, answer, passage
Item = tuple[str, str | None, str | None]


def records_table(benchmark: str, items: Sequence[Item]) -> pa.Table:
    return pa.Table.from_pylist(
        [
            {
                "benchmark": benchmark,
                "split": "test",
                "instance_index": number,
                "question": question,
                "answer": answer,
                "passage": passage,
                "fingerprint": fingerprint_of(passage, question, answer),
            }
            for number, (question, answer, passage) in enumerate(items)
        ],
        schema=RECORDS,
    )


@dataclass
class Bench:
    """A store and a folder of shards."""

    folder: Path
    policy: Policy = WORDS

    @property
    def store(self) -> Store:
        return Store(self.folder / "store")

    @property
    def scan(self) -> str:
        return scan_fingerprint(self.store, self.policy)

    @property
    def results(self) -> ScanResults:
        """The scan results that exist now."""
        return ScanResults(self.store, self.scan)

    def save(self, benchmark: str, items: Sequence[Item]) -> Version:
        return save_records(self.store, benchmark, records_table(benchmark, items))

    def prepare(
        self, benchmarks: Mapping[str, Sequence[Item]], *, frozen: Sequence[str] | None = None
    ) -> list[Version]:
        """Save, freeze and index benchmarks."""
        versions = [self.save(name, items) for name, items in benchmarks.items()]
        inside = [v for v in versions if frozen is None or v.benchmark in frozen]
        self.index(versions, freeze(self.store, inside, self.policy))
        return versions

    def index(self, versions: Sequence[Version], snapshot: Snapshot) -> None:
        for version in versions:
            build_part(self.store, version, snapshot, self.policy)

    def pack(self, shards: Mapping[str, Sequence[object]]) -> Pack:
        """Shards of these rows; a text stands for a whole document."""
        folder = self.folder / "shards"
        folder.mkdir(exist_ok=True)
        for name, rows in shards.items():
            lines = [
                row if isinstance(row, bytes) else json.dumps(_row(name, number, row)).encode()
                for number, row in enumerate(rows)
            ]
            (folder / name).write_bytes(b"".join(line + b"\n" for line in lines))
        found = find_shards(SOURCE, folder=folder, known={})
        return Pack(name="web-0000", source=SOURCE, shards=tuple(found))


def _row(name: str, number: int, row: object) -> object:
    return {"id": f"{name}-{number}", "text": row} if isinstance(row, str) else row


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def words(seed: object, n: int, *, vocabulary: int = 10_000) -> str:
    rng = random.Random(str(seed))
    return " ".join(f"w{rng.randrange(vocabulary)}" for _ in range(n))


@pytest.fixture
def make_words():
    return words
