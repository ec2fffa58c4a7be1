"""n-grams that many documents hold: counted by the scan, frozen, and left out of what is found."""

import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from decon_core.benchmarks.normalized import fingerprint_of
from decon_core.benchmarks.records import save_records
from decon_core.config.policy import Policy
from decon_core.config.sources import Source
from decon_core.decisions.common_ngrams import (
    current_common,
    freeze_common,
    places_of,
    without_common,
)
from decon_core.decisions.decide import decide
from decon_core.errors import MissingError
from decon_core.index.parts import build_part, index_fingerprint
from decon_core.index.term_weights import freeze
from decon_core.library.scan import pack_of
from decon_core.scan.coverage import scan_fingerprint
from decon_core.scan.scan_results import ScanResults
from decon_core.scan.scanner import scan_packs
from decon_core.schemas import GRAM_COUNTS, RECORDS
from decon_core.storage.store import Store
from tests.scan_result_files import counts_path

TEMPLATE = "please read the following passage carefully and then answer the question below it"
ITEMS = [
    f"{TEMPLATE} why did the {colour} {animal} leave {place} before the harvest was brought home"
    for colour, animal, place in (
        ("amber", "heron", "Dunmore"),
        ("violet", "badger", "Ostrava"),
        ("crimson", "otter", "Valdivia"),
        ("ochre", "lynx", "Tampere"),
    )
]
POLICY = Policy(
    tokenizer_str="words", detectors=("decon",), common_share=0.2, common_least_documents=2
)


def records(name: str, questions: list[str]) -> pa.Table:
    rows = [
        {
            "benchmark": name,
            "split": "test",
            "instance_index": number,
            "question": question,
            "fingerprint": fingerprint_of(None, question, None),
        }
        for number, question in enumerate(questions)
    ]
    return pa.Table.from_pylist(rows, schema=RECORDS)


class World:
    """Benchmarks in a store, and a corpus that was scanned for them."""

    def __init__(self, folder, documents, policy=POLICY, n_shards=2, benchmarks=None):
        self.store, self.policy = Store(folder / "store"), policy
        tables = benchmarks or {"quiz": ITEMS}
        self.versions = [
            save_records(self.store, name, records(name, questions))
            for name, questions in tables.items()
        ]
        snapshot = freeze(self.store, self.versions, policy)
        for version in self.versions:
            build_part(self.store, version, snapshot, policy)
        corpus = folder / "corpus"
        corpus.mkdir()
        for number in range(n_shards):
            lines = [json.dumps({"text": text}) for text in documents[number::n_shards]]
            (corpus / f"{number}.jsonl").write_text("\n".join(lines) + "\n")
        source = Source(name="web", path=str(corpus), text="text", id=None)
        self.pack, _ = pack_of(source, out=folder / "store", known={})
        scan_packs(self.store, [self.pack], self.versions, policy)
        self.index = index_fingerprint(self.store, policy)
        self.scan = scan_fingerprint(self.store, policy)

    def counts(self, version) -> dict[int, int]:
        total: dict[int, int] = {}
        for shard in self.pack.shards:
            path = counts_path(self.store, self.scan, shard.fingerprint, version.fingerprint)
            number = (
                ScanResults(self.store, self.scan)
                .folder(shard.fingerprint, version.fingerprint)
                .positions[shard.fingerprint]
            )
            for row in pq.read_table(path, schema=GRAM_COUNTS).to_pylist():
                if (row["version"], row["shard"]) == (version.fingerprint, number):
                    total[row["place"]] = total.get(row["place"], 0) + row["n_documents"]
        return total

    def freeze(self):
        return freeze_common(
            self.store,
            [self.pack],
            self.versions,
            self.policy,
            index=self.index,
            scan=self.scan,
            missing={},
        )

    def matches(self):
        (version, *_) = self.versions
        shards = [shard.fingerprint for shard in self.pack.shards]
        return ScanResults(self.store, self.scan).matches(shards, version.fingerprint)

    def without(self, places):
        return without_common(
            self.matches(),
            np.array(places, np.int64),
            self.store,
            self.versions[0],
            self.policy,
            index=self.index,
        )


def filler(number: int) -> str:
    return " ".join(f"w{number}x{at}" for at in range(30))


DOCUMENTS = [
    *(f"{filler(number)} {TEMPLATE} {filler(number + 100)}" for number in range(12)),
    *(filler(number) for number in range(200, 220)),
    f"{filler(300)} {ITEMS[0]} {filler(301)}",
    f"{ITEMS[1]} {filler(302)} {ITEMS[1]}",
]


def n_holding(gram: list[str]) -> int:
    wanted = f" {' '.join(gram).lower()} "
    return sum(wanted in f" {text.lower()} " for text in DOCUMENTS)


def test_every_indexed_ngram_is_counted_once_for_each_document_that_holds_it(tmp_path):
    world = World(tmp_path, DOCUMENTS)
    expected = {}
    seen = set()
    base = 0
    for item in ITEMS:
        tokens = item.split()
        for at in range(len(tokens) - 4):
            gram = tuple(tokens[at : at + 5])
            n = n_holding(list(gram))
            if gram not in seen and n:
                expected[base + at] = n
            seen.add(gram)
        base += len(tokens)
    assert world.counts(world.versions[0]) == expected


def test_counts_do_not_depend_on_threads_shards_or_company(tmp_path):
    for name in ("a", "b", "c"):
        (tmp_path / name).mkdir()
    alone = World(tmp_path / "a", DOCUMENTS)
    more = {"all": [f"{item} and again" for item in ITEMS], "quiz": ITEMS}
    together = World(tmp_path / "b", DOCUMENTS, benchmarks=more)
    one_shard = World(tmp_path / "c", DOCUMENTS, n_shards=1)
    assert alone.counts(alone.versions[0]) == one_shard.counts(one_shard.versions[0])
    assert alone.counts(alone.versions[0]) == together.counts(together.versions[1])


def test_what_is_common_is_frozen_with_the_text_that_it_stands_for(tmp_path):
    world = World(tmp_path, DOCUMENTS)
    table = world.freeze()
    texts = table["text"].to_pylist()
    assert "please read the following passage" in texts
    assert all(text in TEMPLATE for text in texts)
    assert set(table["n_questions"].to_pylist()) == {4}
    assert set(table["n_documents"].to_pylist()) == {14}
    assert table["share"][0].as_py() == pytest.approx(14 / len(DOCUMENTS))
    assert current_common(world.store, world.scan, world.policy)[1].equals(table)


def test_without_a_common_ngram_every_score_is_what_it_was_to_the_last_bit(tmp_path):
    world = World(tmp_path, DOCUMENTS)
    before = world.matches()
    held = world.counts(world.versions[0])
    unheld = [place for place in range(5) if place not in held]
    assert before.num_rows == 3
    assert world.without([]).equals(before)
    if unheld:
        assert world.without(unheld).equals(before)


def test_a_match_of_boilerplate_alone_is_none_when_boilerplate_is_left_out(tmp_path):
    # Nearly all of this question is template: the template alone reaches the threshold.
    others = [f"what has {filler(number)} to do with it" for number in range(4)]
    text = " ".join(TEMPLATE.replace("read", verb) for verb in ("read", "study", "skim", "scan"))
    questions = [f"{text} heron", *others]
    documents = [*(f"{filler(n)} {text} {filler(n + 50)}" for n in range(10)), filler(999)]
    world = World(tmp_path, documents, benchmarks={"quiz": questions})
    assert decide(world.matches(), world.policy)["is_contaminated"].to_pylist().count(True) == 10
    common = places_of(world.freeze(), "web")["quiz"]
    left = decide(world.without(common), world.policy)
    assert left["is_contaminated"].to_pylist().count(True) == 0


def test_a_real_leak_stays_one_when_boilerplate_is_left_out(tmp_path):
    world = World(tmp_path, DOCUMENTS)
    common = places_of(world.freeze(), "web")["quiz"]
    assert common.size
    left = decide(world.without(common), world.policy)
    assert left["is_contaminated"].to_pylist() == [True, True, True]
    assert left["question_overlap"].to_pylist() == [1.0, 1.0, 1.0]


def test_a_list_of_another_share_is_refused(tmp_path):
    world = World(tmp_path, DOCUMENTS)
    with pytest.raises(MissingError, match="no list"):
        current_common(world.store, world.scan, world.policy)
    world.freeze()
    with pytest.raises(MissingError, match="another scan or share"):
        current_common(world.store, world.scan, replace(world.policy, common_share=0.3))
