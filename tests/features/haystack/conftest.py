"""A store with two benchmarks and two sources, for the study."""

import json
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest

from decon_core.benchmarks.normalized import fingerprint_of
from decon_core.benchmarks.records import save_records
from decon_core.config.sources import Source
from decon_core.corpus.packs import Pack, find_shards
from decon_core.features.haystack.run import run_haystack
from decon_core.features.haystack.settings import Haystack
from decon_core.schemas import RECORDS
from decon_core.storage.store import Store
from tests.core.conftest import words

PAGES = Source(name="pages", path="pages*.jsonl", text="text", id="id")
CHATS = Source(name="chats", path="chats*.jsonl", messages="messages")


def record(benchmark, split, number, *, answer="forty two", subject=None):
    question = f"What is the number of {words(f'{benchmark} {split} {number}', 12)}?"
    return {
        "benchmark": benchmark,
        "config": subject,
        "split": split,
        "instance_index": number,
        "question": question,
        "answer": answer,
        "fingerprint": fingerprint_of(None, question, answer),
    }


@dataclass
class Place:
    """The store, its shards and its benchmarks."""

    folder: Path
    n_pages: int = 120
    n_chats: int = 30

    @property
    def store(self):
        return Store(self.folder / "store")

    def save(self, benchmark, rows):
        return save_records(self.store, benchmark, pa.Table.from_pylist(rows, schema=RECORDS))

    def versions(self):
        return [
            self.save("quiz", [record("quiz", "test", n) for n in range(8)]),
            self.save(
                "sums",
                [record("sums", "train", n) for n in range(4)]
                + [record("sums", "test", n) for n in range(5)]
                + [record("sums", "test", 5, answer=None)],
            ),
        ]

    def page(self, number):
        return {
            "id": f"p{number}",
            "text": f"On the road to {words(f'page {number}', 40)}.",
            "metadata": {"quality": number / 10},
        }

    def write(self):
        """Write the shards: pages in three files, conversations in one."""
        self.folder.mkdir(exist_ok=True)
        pages = [self.page(number) for number in range(self.n_pages)]
        for shard in range(3):
            self.write_shard(f"pages-{shard}.jsonl", pages[shard::3])
        chats = [
            [
                {"role": "user", "content": f"Tell me about {words(f'ask {n}', 8)}?"},
                {"role": "assistant", "content": f"The answer is {words(f'say {n}', 8)}."},
            ]
            for n in range(self.n_chats)
        ]
        self.write_shard("chats-0.jsonl", [{"messages": one} for one in chats])

    def write_shard(self, name, rows):
        lines = (one if isinstance(one, str) else json.dumps(one) for one in rows)
        (self.folder / name).write_text("".join(f"{line}\n" for line in lines))

    def packs(self, *, sources=(PAGES, CHATS)):
        return [
            Pack(
                name=f"{source.name}-0000",
                source=source,
                shards=tuple(find_shards(source, folder=self.folder, known={})),
            )
            for source in sources
        ]

    def run(self, **settings):
        settings = Haystack(**{"items": 4, "documents": 60, **settings})
        return run_haystack(self.store, self.packs(), self.versions(), settings)


@pytest.fixture
def place(tmp_path):
    place = Place(tmp_path / "corpus")
    place.write()
    return place
