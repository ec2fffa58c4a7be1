"""Neighbours from shards to tables: the sample, what is kept after a kill, and the same results."""

import json
import random
from dataclasses import replace

import polars as pl
import pyarrow as pa
import pytest

from decon_core.benchmarks.records import save_records
from decon_core.config.sources import Source
from decon_core.corpus.packs import Pack, find_shards
from decon_core.errors import CorpusError
from decon_core.features.neighbours import vectors
from decon_core.features.neighbours.build import Results, build_neighbours, neighbours_key
from decon_core.features.neighbours.sample import Workers, draw_sample
from decon_core.features.neighbours.settings import Neighbours, Sample
from decon_core.schemas import MATCHES, RECORDS
from decon_core.storage.store import Store

LETTERS = "abcdefgh"


def some_text(rng, n):
    return " ".join(rng.choices(LETTERS, k=n))


class Place:
    """A store, two sources of some shards, and one benchmark."""

    def __init__(self, folder):
        self.folder, self.rng = folder, random.Random(4)
        self.store = Store(folder / ".decon")
        self.settings = Neighbours(size=20, min_tokens=4, max_tokens=12, top=3)
        self.documents = {}
        for source, n_shards in (("web", 3), ("books", 1)):
            for number in range(n_shards):
                self.write(source, number, [some_text(self.rng, 40) for _ in range(25)])
        rows = [
            {
                **dict.fromkeys(RECORDS.names),
                "benchmark": "quiz",
                "split": "test",
                "instance_index": number,
                "question": some_text(self.rng, 8),
                "answer": some_text(random.Random(number), 8) if number else None,
                "fingerprint": f"{number:016x}",
            }
            for number in range(6)
        ]
        self.questions = [row["question"] for row in rows]
        self.version = save_records(self.store, "quiz", pa.Table.from_pylist(rows, schema=RECORDS))

    def write(self, source, number, texts):
        path = self.folder / source / f"{number}.jsonl"
        path.parent.mkdir(exist_ok=True)
        rows = [{"id": f"{source}-{number}-{at}", "text": one} for at, one in enumerate(texts)]
        path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))

    def packs(self):
        sources = [
            Source(name=one, path=f"{one}/*.jsonl", text="text", id="id")
            for one in ("web", "books")
        ]
        return [
            Pack(
                name=source.name,
                source=source,
                shards=tuple(find_shards(source, folder=self.folder, known={})),
            )
            for source in sources
        ]

    def build(self, settings=None, *, store=None, packs=None, **workers):
        results, *_ = build_neighbours(
            store or self.store,
            packs or self.packs(),
            [self.version],
            settings or self.settings,
            tokenizer="cl100k",
            workers=Workers(**workers),
        )
        return {name: pl.DataFrame(table) for name, table in results.tables().items()}

    def sample(self, settings):
        shards, strata = draw_sample(
            self.store, self.packs(), settings, tokenizer="cl100k", workers=Workers()
        )
        merged = {}
        for one in shards:
            merged.setdefault(one.source, set()).update(pl.DataFrame(one.paragraphs())["doc_id"])
        return merged, {one.source: one for one in strata}


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path)


def test_a_size_is_drawn_exactly_from_each_source(place):
    ids, strata = place.sample(place.settings)
    assert {name: len(found) for name, found in ids.items()} == {"web": 20, "books": 20}
    assert strata["web"].n_documents == 75
    assert strata["web"].weight == 75 / 20
    assert strata["books"].weight == 25 / 20


def test_a_larger_sample_contains_a_smaller_one(place):
    small, _ = place.sample(replace(place.settings, size=5))
    large, _ = place.sample(replace(place.settings, size=15))
    assert small["web"] < large["web"]


def test_another_seed_draws_another_sample(place):
    one, _ = place.sample(place.settings)
    other, _ = place.sample(replace(place.settings, seed=1))
    assert one["web"] != other["web"]


def test_a_share_is_drawn_from_each_source_or_one_of_its_own(place):
    settings = replace(place.settings, size=None, share=0.5, source={"books": Sample(size=3)})
    ids, strata = place.sample(settings)
    assert 20 < len(ids["web"]) < 55
    assert len(ids["books"]) == 3
    assert strata["books"].n_sampled == 3


def test_a_size_above_all_documents_takes_all(place):
    ids, strata = place.sample(replace(place.settings, size=1000))
    assert (len(ids["web"]), strata["web"].weight) == (75, 1.0)


def test_rows_and_documents_without_a_paragraph_are_counted(place):
    place.write("books", 0, ["a b", "", some_text(place.rng, 40)])
    path = place.folder / "books/0.jsonl"
    path.write_text(path.read_text() + '{"id": "x"}\n')
    _, strata = place.sample(place.settings)
    books = strata["books"]
    assert (books.n_documents, books.n_sampled) == (3, 3)
    assert (books.n_without_paragraph, books.n_unreadable) == (2, 1)


def test_the_text_of_an_item_is_its_nearest_neighbour(place):
    place.write("books", 0, [place.questions[2], some_text(place.rng, 30)])
    found = place.build()["neighbours"]
    first = found.filter(instance_index=2, rank=1).row(0, named=True)
    assert first["similarity"] == pytest.approx(1, abs=1e-4)  # of rounded vectors
    assert (first["source"], first["row"], first["text"]) == ("books", 0, place.questions[2])
    assert found.group_by("instance_index").len()["len"].to_list() == [3] * 6


def test_an_answer_or_both_texts_may_be_embedded(place):
    answer = some_text(random.Random(2), 8)
    both = f"{place.questions[2]}\n\n{answer}"
    place.write("books", 0, [answer, both.replace("\n\n", " "), some_text(place.rng, 30)])
    settings = replace(place.settings, item="answer", max_tokens=20)
    found = place.build(settings)["neighbours"]
    first = found.filter(instance_index=2, rank=1).row(0, named=True)
    assert (first["row"], first["text"]) == (0, answer)
    assert 0 not in found["instance_index"]  # it has no answer
    found = place.build(replace(settings, item="both"))["neighbours"]
    first = found.filter(instance_index=2, rank=1).row(0, named=True)
    assert (first["row"], first["similarity"] > 0.95) == (1, True)
    assert 0 in found["instance_index"]


def test_neighbours_may_be_drawn_from_the_nearest(place):
    settings = replace(place.settings, draw_from=0.2)
    found = place.build(settings)["neighbours"]
    n_near = found["stands_for"].to_list()[0] * 3
    assert n_near > 3
    assert found["rank"].max() > 3
    assert found.group_by("instance_index").len()["len"].to_list() == [3] * 6
    assert found["stands_for"].sum() == pytest.approx(6 * n_near)


def test_nominations_are_rows_like_matches_with_the_place_of_the_paragraph(place):
    neighbours = place.build()["neighbours"]
    key = neighbours_key(place.packs(), [place.version], place.settings, "cl100k")
    nominations = Results(place.store, key).nominations(place.settings)
    shards = {shard.fingerprint for pack in place.packs() for shard in pack.shards}
    rows = nominations.matches(shards, place.version.fingerprint)
    assert rows.schema.equals(MATCHES)
    assert {*rows["text_id"].to_pylist()} == {*neighbours["pair"]}
    assert rows.num_rows == neighbours.height
    one = neighbours.row(0, named=True)
    (match,) = [row for row in rows.to_pylist() if row["text_id"] == one["pair"]]
    assert (match["shard"], match["row"]) == (one["shard"], one["row"])
    assert (match["question_char_start"], match["question_char_stop"]) == (
        one["start"],
        one["stop"],
    )
    assert match["fingerprint"] == f"{one['instance_index']:016x}"
    assert nominations.matches({one["shard"]}, place.version.fingerprint).num_rows < rows.num_rows


def test_the_table_of_similarities_adds_up(place):
    tables = place.build()
    by_source = tables["neighbour_similarity"].partition_by("source")
    for rows in by_source:
        assert rows["n_items"].sum() == 6
        assert rows["n_documents"].is_sorted(descending=True)
        assert (rows["low"] <= rows["share"]).all()
        assert (rows["share"] <= rows["high"]).all()
        total = 75 if rows["source"][0] == "web" else 25
        assert rows["n_estimated"].to_list() == pytest.approx((rows["share"] * total).to_list())


def written(store):
    return {
        str(path.relative_to(store.root)): path.read_bytes()
        for path in (store.root / "neighbours").rglob("*")
        if path.is_file()
    }


def test_the_files_are_the_same_with_workers_and_in_another_order_of_packs(place, tmp_path):
    first = place.build()
    other = Store(tmp_path / "other")
    for path in (place.store.root / "records").rglob("*.*"):
        target = other.root / path.relative_to(place.store.root)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(path.read_bytes())
    again = place.build(store=other, n=2, packs=place.packs()[::-1])
    assert written(other) == written(place.store)
    assert all(first[name].equals(again[name]) for name in first)


def test_a_killed_build_goes_on_where_it_was(place, monkeypatch):
    n_embedded = 0
    embed = vectors._embed

    def until_killed(job):
        nonlocal n_embedded
        if n_embedded == 2:
            raise KeyboardInterrupt
        n_embedded += 1
        embed(job)

    monkeypatch.setattr(vectors, "_embed", until_killed)
    with pytest.raises(KeyboardInterrupt):
        place.build()
    before = written(place.store)
    monkeypatch.setattr(vectors, "_embed", embed)
    done = []
    place.build(on_progress=lambda what, n, _: done.append((what, n)))
    embedded = [n for what, n in done if what == "paragraphs embedded"]
    assert 0 < embedded[-1] < sum(len(one) for one in place.sample(place.settings)[0].values()) * 10
    assert not any(what.startswith("bytes") for what, _ in done)
    assert written(place.store).items() >= before.items()


def test_a_damaged_block_is_embedded_again(place):
    place.build()
    before = written(place.store)
    (block, *_) = (place.store.root / "neighbours/vectors").rglob("*.arrow")
    block.write_bytes(block.read_bytes()[:-3])
    place.build()
    assert written(place.store) == before


def test_a_shard_that_cannot_be_read_fails_after_the_others_are_done(place):
    packs = place.packs()
    (place.folder / "web/1.jsonl").unlink()
    with pytest.raises(CorpusError, match=r"web/1\.jsonl"):
        place.build(packs=packs)
    key = neighbours_key(packs, [place.version], place.settings, "cl100k")
    assert not Results(place.store, key).is_complete


def test_results_are_named_by_their_settings(place):
    packs = place.packs()
    changes = [
        {},
        {"seed": 1},
        {"size": 19},
        {"top": 2},
        {"max_tokens": 11},
        {"item": "both"},
        {"draw_from": 0.1},
    ]
    keys = {
        neighbours_key(packs, [place.version], replace(place.settings, **change), "cl100k")
        for change in changes
    }
    assert len(keys) == len(changes)
