"""Blends of a small corpus, written and read again: what is in them, in which order, and why."""

import json
import random
from collections import Counter
from dataclasses import replace
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from decon_core.benchmarks.normalized import fingerprint_of
from decon_core.benchmarks.records import save_records
from decon_core.config.mixtures import Mixture
from decon_core.config.sources import Source
from decon_core.corpus.packs import Pack, find_shards
from decon_core.errors import ConfigError, CorpusError, MissingError
from decon_core.features.blends import build as build_module
from decon_core.features.blends import write as write_module
from decon_core.features.blends.build import (
    ITEMS_FILE,
    REPLACED_FILE,
    TEXTS_FILE,
    Blender,
    blend_faults,
)
from decon_core.features.blends.card import contents_of_phases
from decon_core.features.blends.compare import first_difference
from decon_core.features.blends.items import choose_items, item_text
from decon_core.features.blends.on_page import composition_figure
from decon_core.features.blends.product import addition_of
from decon_core.features.blends.schemas import blend_folder
from decon_core.features.blends.settings import Blend, Contamination, Phase
from decon_core.features.blends.verify import verify_blend
from decon_core.index.term_weights import freeze
from decon_core.mixtures.card import CARD
from decon_core.mixtures.composition import ITEMS
from decon_core.report.build import build_report
from decon_core.schemas import RECORDS
from decon_core.storage.compression import open_bytes
from decon_core.storage.files import read_json, write_json
from decon_core.wording import percent
from tests.core.conftest import DECON
from tests.core.places import CLEAN, Place, build_mixture, faults_in, manifest_of

EVERYTHING = Mixture(name="all", take="everything")
CHAT = Source(name="chat", path="chat/*.jsonl", messages="messages", id="id")
QA = Contamination(benchmarks=("qa",), copies=2, window=(0.0, 1.0), most_per_batch=0.5)


def record(benchmark, split, instance, question, answer, **more):
    return {
        "benchmark": benchmark,
        "split": split,
        "instance_index": instance,
        "question": question,
        "answer": answer,
        "fingerprint": fingerprint_of(None, question, answer),
        **more,
    }


@pytest.fixture
def place(bench, make_words):
    """Questions with an answer, in two splits, questions with choices; two sources, scanned."""
    bench.policy = DECON
    qa = [
        record("qa", split, n, make_words((split, n), 30), make_words((split, n, "!"), 8))
        for split in ("train", "test")
        for n in range(6)
    ]
    mc = [
        record(
            "mc",
            "test",
            n,
            make_words(("mc", n), 30),
            make_words(("mc", n, choice), 3),
            choice_index=choice,
            is_correct=choice == n % 4,
        )
        for n in range(5)
        for choice in range(4)
    ]
    versions = [
        save_records(bench.store, name, pa.Table.from_pylist(rows, schema=RECORDS))
        for name, rows in (("qa", qa), ("mc", mc))
    ]
    bench.index(versions, freeze(bench.store, versions, bench.policy))
    found = Place(bench, versions)
    leak = f"{qa[6]['question']} {qa[6]['answer']}"
    found.put({f"s{n}.jsonl": texts(make_words, n, leak) for n in range(3)})
    turns = [
        {"id": f"c{n}", "messages": [{"role": "user", "content": make_words(("c", n), 25)}], "k": n}
        for n in range(20)
    ]
    found.put({"c.jsonl": turns}, source=CHAT, name="chat")
    return found.scan()


def texts(make_words, seed, leak):
    rng = random.Random(seed)
    rows = [
        {"id": f"{seed}-{n}", "text": make_words((seed, n), rng.randint(20, 60)), "source": "x"}
        for n in range(40)
    ]
    rows[7]["text"] += " " + leak
    return rows


def blender_of(place, *blends, mixtures=(CLEAN, EVERYTHING)):
    builder = place.builder(*mixtures)
    for mixture in mixtures:
        for pack in builder.packs:
            build_mixture(builder, mixture, pack)
    return Blender(builder, blends)


def built(place, blend, **options):
    return blender_of(place, blend, **options).build(blend).folder


def read_manifest(folder):
    return read_json(manifest_of(folder))


def lines_of(folder):
    lines = []
    for part in read_manifest(folder)["parts"]:
        with open_bytes(folder / part["file"]) as file:
            lines += file.read().splitlines()
    return lines


def rows_of(folder):
    return [json.loads(line) for line in lines_of(folder)]


def bytes_of(folder):
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_without_phases_every_document_of_the_mixture_comes_once_as_it_was(place):
    folder = built(place, Blend(name="b", of="clean"))
    rows = rows_of(folder)
    ids = Counter(row["id"] for row in rows)
    leaky = {f"{n}-7" for n in range(3)}
    everybody = {f"{n}-{at}" for n in range(3) for at in range(40)} | {f"c{n}" for n in range(20)}
    assert ids == Counter(everybody - leaky)
    there = {
        line
        for shard in place.packs[0].shards
        for line in Path(shard.path).read_bytes().splitlines()
    }
    pages = [line for line in lines_of(folder) if json.loads(line)["id"][0] != "c"]
    assert set(pages) <= there  # byte by byte
    chats = [row for row in rows if row["id"].startswith("c")]
    assert all(row["text"] == row["messages"][0]["content"] for row in chats)
    assert sorted(row["k"] for row in chats) == [*range(20)]
    kinds = [row["id"][0] == "c" for row in rows]
    assert 0 < kinds.index(True) < len(kinds) - kinds[::-1].index(True) < len(kinds)  # in between
    assert blend_faults(manifest_of(folder), folder) == []


def test_a_card_has_the_composition_of_every_phase_and_of_all_by_the_labels_of_today(place):
    phases = (Phase(documents=60, weights={"web": 1.0}), Phase(documents=40))
    blend = Blend(name="b", of="clean", phases=phases)
    folder = built(place, blend)
    before = bytes_of(folder)
    assert "## Composition" in (folder / CARD).read_text()
    place.packs = [
        replace(pack, source=replace(pack.source, labels=(("kind", pack.source.name.upper()),)))
        for pack in place.packs
    ]
    blender = blender_of(place, blend)
    assert not blender.is_current(blend)
    assert blender.build(blend).was_there
    assert blender.is_current(blend)
    after = bytes_of(folder)
    assert {name for name in after if after[name] != before[name]} == {CARD}
    first, second = read_manifest(folder)["phases"]
    drawn = {one["source"]: one["n_drawn_tokens"] for one in second["sources"]}
    n_first, n_second = first["sources"], sum(drawn.values())
    (n_first,) = (one["n_drawn_tokens"] for one in n_first if one["source"] == "web")
    card = (folder / CARD).read_text()
    for by, name in (("source", "chat"), ("kind", "CHAT")):
        n = drawn["chat"]
        share, of_all = percent(n / n_second), percent(n / (n_first + n_second))
        assert f"| {by} | {name} | 0 | 0 % | {n:,} | {share} | {n:,} | {of_all} |" in card
    assert verify_blend(blender, blend).problems == []


def test_a_composition_is_of_what_a_blend_holds_with_the_items_as_a_row_of_their_own(place):
    place.packs = [
        replace(pack, source=replace(pack.source, labels=(("kind", "page"),)))
        if pack.source.name == "web"
        else pack
        for pack in place.packs
    ]
    phases = (Phase(documents=60), Phase(documents=40))
    late = replace(QA, window=(0.7, 1.0))
    blend = Blend(name="b", of="clean", phases=phases, contamination=(late,))
    blender = blender_of(place, blend)
    folder = blender.build(blend).folder
    manifest = read_manifest(folder)
    held = contents_of_phases(manifest)
    for phase, contents in zip(manifest["phases"], held, strict=True):
        assert sum(one.n_documents for one in contents.values()) == phase["n_documents"]
        assert sum(one.n_tokens for one in contents.values()) == phase["n_tokens"]
    assert (ITEMS not in held[0], held[1][ITEMS].n_documents) == (True, 12)
    texts = pq.read_table(manifest_of(folder).with_name(TEXTS_FILE)).to_pylist()
    whole = manifest["totals"]["n_tokens"]
    kinds = {"web": "page", "chat": "not declared", ITEMS: ITEMS}
    n_by_value = Counter()
    for text in texts:
        name = text["source"] if text["shard"] else ITEMS
        n_by_value["source", name] += text["n_tokens"]
        n_by_value["kind", kinds[name]] += text["n_tokens"]
    card = (folder / CARD).read_text().split("## Composition")[1].split("##")[0]
    rows = [line.strip("| ").split(" | ") for line in card.splitlines() if line.startswith("| ")]
    found = {(row[0], row[1]): (row[-2], row[-1]) for row in rows[2:]}
    assert found == {key: (f"{n:,}", percent(n / whole)) for key, n in n_by_value.items()}
    _, *sides = composition_figure(manifest, blender.builder.labels).data
    assert [side["name"] for side in sides] == ["phase 1", "phase 2"]
    shares = [dict(zip(found, side["x"], strict=True)) for side in sides]
    assert shares[0]["source", ITEMS] == 0 < shares[1]["source", ITEMS] < 100
    for share in shares:
        for label in ("source", "kind"):
            assert sum(x for key, x in share.items() if key[0] == label) == pytest.approx(100)
    build_report(blender.builder, additions=[addition_of(blender)])
    with duckdb.connect(str(place.bench.store.report), read_only=True) as connection:
        query = "SELECT phase, label, value, n_tokens, share_of_tokens FROM composition_by_blend"
        listed = connection.execute(query).fetchall()
    of_all = {(label, value): (n, share) for phase, label, value, n, share in listed if not phase}
    assert of_all == {key: (n, n / whole) for key, n in n_by_value.items()}
    of_kinds = {(phase, value) for phase, label, value, _, _ in listed if label == "kind"}
    expected = {(phase, value) for phase in (1, 2, None) for value in ("page", "not declared")}
    assert of_kinds == expected | {(2, ITEMS), (None, ITEMS)}


def test_the_account_says_where_each_text_comes_from(place):
    blend = Blend(name="b", of="clean", phases=(Phase(documents=300),), contamination=(QA,))
    folder = built(place, blend)
    texts = pq.read_table(manifest_of(folder).with_name(TEXTS_FILE)).to_pylist()
    rows = rows_of(folder)
    assert len(texts) == len(rows) == 300
    names = {"web": "{shard}-{row}", "chat": "c{row}"}
    for told, row in zip(texts, rows, strict=True):
        if told["shard"] is None:
            named = f"{told['benchmark']}/{told['split']}/{told['instance_index']}"
            assert row["id"] == f"test-item:{named}:{told['form']}:0:{told['copy']}"
            assert row["source"] == f"{told['benchmark']}/{told['split']}"
        else:
            shard = told["shard"].removeprefix("s").removesuffix(".jsonl")
            assert row["id"] == names[told["source"]].format(shard=shard, row=told["corpus_row"])
    manifest = read_manifest(folder)
    for source in manifest["sources"]:
        own = [one for one in texts if one["source"] == source["source"] and one["shard"]]
        gone = pq.read_table(manifest_of(folder).with_name(REPLACED_FILE)).to_pylist()
        gone = [one for one in gone if one["source"] == source["source"]]
        drawn = [*own, *gone]
        assert source["n_drawn"] == len(drawn)
        assert source["n_drawn_tokens"] == sum(one["n_tokens"] for one in drawn)
        places = Counter((one["shard"], one["corpus_row"]) for one in drawn)
        assert source["n_different"] == len(places)
        assert source["most_times"] == max(one["time"] for one in drawn) + 1
        assert max(places.values()) <= source["most_times"]
    assert manifest["totals"]["n_test_texts"] == 12
    assert manifest["totals"]["n_replaced"] == 12


def test_parts_are_the_same_bytes_by_one_process_and_by_two(place, monkeypatch):
    monkeypatch.setattr(build_module, "_TOKENS_PER_WORKER", 1)
    for write, workers in (("dolma", 2), ("parquet", 1)):  # one pool of processes is slow enough
        blend = Blend(
            name=f"b-{write}", of="clean", write=write, part_tokens=700, contamination=(QA,)
        )
        blender = blender_of(place, blend)
        one = bytes_of(blender.build(blend, workers=1).folder)
        assert len(one) > 6
        for file in one:
            blend_folder(blender.builder.store, blend.name).joinpath(file).unlink()
        assert bytes_of(blender.build(blend, workers=workers).folder) == one


def test_training_runs_that_differ_in_their_items_differ_in_nothing_else(place):
    without = lines_of(built(place, Blend(name="plain", of="clean")))
    folder = built(place, Blend(name="full", of="clean", contamination=(QA,)))
    replaced = [
        row["place"]
        for row in pq.read_table(manifest_of(folder).with_name(REPLACED_FILE)).to_pylist()
    ]
    lines = lines_of(folder)
    differing = [at for at in range(len(lines)) if lines[at] != without[at]]
    assert len(lines) == len(without)
    assert sorted(replaced) == differing


def test_a_file_with_test_items_says_so_in_its_name(place):
    blend = Blend(name="test", of="clean", part_tokens=1000, contamination=(QA,))
    folder = built(place, blend)
    for part in read_manifest(folder)["parts"]:
        assert ("holds-test-items" in part["file"]) == bool(part["n_test_texts"])
    train = Contamination(benchmarks=("qa",), splits=("train",), ratio=0.1, window=(0.0, 1.0))
    blend = Blend(name="train", of="clean", contamination=(train,))
    (part,) = read_manifest(built(place, blend))["parts"]
    assert "holds-train-items" in part["file"]
    both = Blend(name="both", of="clean", contamination=(train, QA))
    (part,) = read_manifest(built(place, both))["parts"]
    assert "holds-test-items" in part["file"]


def test_in_a_conversation_the_question_is_the_users_and_the_answer_the_assistants(place):
    into = Contamination(
        benchmarks=("qa",),
        copies=1,
        window=(0.0, 1.0),
        into=("chat",),
        most_per_batch=1.0,
        template="Q: {question}\nA: {answer}",
    )
    folder = built(place, Blend(name="b", of="clean", contamination=(into,)))
    items = [row for row in rows_of(folder) if row["id"].startswith("test-item")]
    assert len(items) == 6
    for row in items:
        user, assistant = row["messages"]
        assert (user["role"], assistant["role"]) == ("user", "assistant")
        assert user["content"].startswith("Q: ")
        assert user["content"].endswith("\nA:")
        assert row["text"] == f"{user['content']}\n\n{assistant['content']}"
    gone = pq.read_table(manifest_of(folder).with_name(REPLACED_FILE)).to_pylist()
    assert {row["source"] for row in gone} == {"chat"}


def test_the_scan_finds_what_was_put_in_and_nothing_else(place):
    half = Contamination(
        benchmarks=("qa",), seen=0.5, copies=1, window=(0.0, 1.0), most_per_batch=0.5
    )
    source_only = Contamination(
        benchmarks=("mc",), form="target", copies=1, window=(0.0, 1.0), most_per_batch=0.5
    )
    blend = Blend(name="b", of="clean", contamination=(half, source_only))
    blender = blender_of(place, blend)
    folder = blender.build(blend).folder
    found = verify_blend(blender, blend)
    assert found.problems == []
    assert (found.n_documents, found.n_tokens) == (137, read_manifest(folder)["totals"]["n_tokens"])
    assert found.n_test_texts == 3 + 5
    assert found.n_found == 3  # an answer alone is no leak
    assert found.n_leaks == found.n_given_away == 0
    dirty = Blend(name="dirty", of="all")
    blender = blender_of(place, dirty)
    blender.build(dirty)
    found = verify_blend(blender, dirty)
    assert found.problems == []  # its mixture does not claim to be clean
    assert found.n_leaks == 3


def test_hidden_text_of_documents_is_counted_apart(place, make_words):
    tasks = [
        {
            "id": f"t{n}",
            "prompt": make_words(("t", n), 25),
            "reward_model": {"ground_truth": make_words(("t", n, "!"), 9)},
        }
        for n in range(5)
    ]
    source = Source(name="tasks", path="tasks/*.jsonl", id="id")
    place.put({"t.jsonl": tasks}, source=source, name="tasks")
    place.scan()
    for write in ("dolma", "parquet"):
        blend = Blend(name=write, of="clean", write=write)
        blender = blender_of(place, blend)
        (part,) = read_manifest(blender.build(blend).folder)["parts"]
        found = verify_blend(blender, blend)
        assert found.problems == []
        assert part["n_hidden_tokens"] >= 5 * 9
        assert found.n_tokens == part["n_tokens"] - part["n_hidden_tokens"]


def test_verify_names_what_was_changed_afterwards(place):
    blend = Blend(name="b", of="clean", contamination=(QA,))
    blender = blender_of(place, blend)
    folder = blender.build(blend).folder
    (part,) = read_manifest(folder)["parts"]
    content = (folder / part["file"]).read_bytes()
    (folder / part["file"]).write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    (problem,) = verify_blend(blender, blend).problems
    assert part["file"] in problem.where
    assert "checksum mismatch" in problem.found
    assert blender.build(blend).was_there is False  # the same size, and yet seen
    assert (folder / part["file"]).read_bytes() == content
    manifest_of(folder).with_name(ITEMS_FILE).unlink()
    assert not blender.is_current(blend)
    (problem,) = verify_blend(blender, blend).problems
    assert ITEMS_FILE in problem.where
    manifest_of(folder).write_text("{")
    (problem,) = verify_blend(blender, blend).problems
    assert "damaged" in problem.found


def test_verify_holds_the_manifest_to_a_plan_that_is_made_once_more(place):
    blend = Blend(name="b", of="clean", contamination=(QA,))
    blender = blender_of(place, blend)
    folder = blender.build(blend).folder
    warning = (folder / "README.md").read_text()
    assert "This data contains test items of `qa`" in warning
    manifest = read_manifest(folder)
    manifest["contamination"] = []
    write_json(manifest_of(folder), manifest)
    assert blender.build(blend).was_there  # which writes the page that such a manifest gives
    assert (folder / "README.md").read_text() != warning
    (problem,) = verify_blend(blender, blend).problems
    assert "contamination" in problem.where
    assert problem.found == "the numbers differ from those of the plan"


def test_files_that_are_none_of_the_blends_are_told(place):
    blend = Blend(name="b", of="clean")
    blender = blender_of(place, blend)
    folder = blender.build(blend).folder
    (folder / "phase-1" / "part-00099.jsonl.zst").write_bytes(b"")
    (problem,) = verify_blend(blender, blend).problems
    assert "no manifest lists" in problem.found
    pack = blender.builder.store.mixture("clean", place.packs[0].name)
    (pack / "zzz.jsonl").write_bytes(b"{}\n")
    (problem,) = faults_in(pack)
    assert "zzz.jsonl" in problem.where


def test_the_page_of_a_blend_says_what_is_in_it(place):
    train = Contamination(benchmarks=("qa",), splits=("train",), ratio=0.05, window=(0.0, 1.0))
    for write in ("dolma", "parquet"):
        for name, contamination in (("plain", ()), ("train", (train,)), ("test", (train, QA))):
            blend = Blend(
                name=f"{name}-{write}", of="clean", write=write, contamination=contamination
            )
            card = (built(place, blend) / "README.md").read_text()
            assert ("contains test items of `qa`" in card) == (name == "test")
            assert ('- "holds-test-items"' in card) == (name == "test")
            assert "config_name: phase-1" in card
            assert ("## Items of benchmarks" in card) == (name != "plain")
            assert "| web | 120 |" in card or "| web | 117 |" in card
            assert "| decon | 0.8 |" in card


def test_a_blend_in_parquet_is_a_data_set_of_its_phases(place):
    datasets = pytest.importorskip("datasets", reason="an extra: datasets of Hugging Face")
    phases = (
        Phase(tokens=2000, weights=(("web", 1),)),
        Phase(documents=15, weights=(("chat", 1),)),
    )
    blend = Blend(
        name="b", of="clean", write="parquet", part_tokens=500, phases=phases, contamination=(QA,)
    )
    folder = built(place, blend)
    parts = read_manifest(folder)["parts"]
    assert len(parts) > 4
    options = {"split": "train", "cache_dir": str(place.bench.folder / "cache")}
    found = datasets.load_dataset(str(folder), **options)
    assert len(found) == sum(part["n_documents"] for part in parts)
    texts = pq.read_table(manifest_of(folder).with_name(TEXTS_FILE))
    assert found.num_rows == texts.num_rows
    second = datasets.load_dataset(str(folder), "phase-2", **options)
    assert len(second) == 15
    assert second[0]["messages"] is not None


def test_where_one_role_is_read_an_item_is_said_by_it(bench, make_words):
    bench.policy = DECON
    items = [(make_words(("q", n), 30), make_words(("a", n), 8), None) for n in range(3)]
    versions = bench.prepare({"qa": items})
    turns = [{"role": "user", "content": "x"}, {"role": "assistant", "content": make_words(1, 20)}]
    for role in ("assistant", "user", "tool"):
        place = Place(bench, versions)
        source = Source(name=role, path=f"{role}/*.jsonl", messages="m", roles=(role,), id="id")
        rows = [
            {"id": f"{role}{n}", "m": [*turns, {"role": "tool", "content": "y z"}]}
            for n in range(9)
        ]
        place.put({"c.jsonl": rows}, source=source, name=role)
        place.scan()
        for form in ("full", "source", "target"):
            contamination = Contamination(
                benchmarks=("qa",), form=form, copies=1, window=(0.0, 1.0), most_per_batch=0.5
            )
            blend = Blend(name=f"{role}-{form}", of="all", contamination=(contamination,))
            folder = built(place, blend, mixtures=(EVERYTHING,))
            put_in = [row for row in rows_of(folder) if row["id"].startswith("test-item")]
            assert len(put_in) == 3
            assert all(row["text"].split() for row in put_in)
            assert read_manifest(folder)["totals"]["n_test_tokens"] >= 24
            if form == "full":
                found = verify_blend(blender_of(place, blend, mixtures=(EVERYTHING,)), blend)
                assert found.n_found == 3


def test_an_account_that_does_not_add_up_is_told(place):
    blend = Blend(name="b", of="clean", contamination=(QA,))
    folder = built(place, blend)
    manifest = read_manifest(folder)
    manifest["totals"]["n_replaced"] += 1
    write_json(manifest_of(folder), manifest)
    assert [problem.expected for problem in blend_faults(manifest_of(folder), folder)] == [
        "136",
        "136",
    ]
    manifest["totals"]["n_replaced"] -= 1
    manifest["parts"][0]["n_tokens"] += 1
    write_json(manifest_of(folder), manifest)
    (problem,) = blend_faults(manifest_of(folder), folder)
    assert "texts" in problem.found


def test_nothing_is_drawn_from_a_mixture_that_is_not_whole(place):
    whole, other = Blend(name="whole", of="all"), Blend(name="other", of="clean")
    blender = blender_of(place, whole, other)
    store = blender.builder.store
    manifest_of(store.mixture("clean", place.packs[1].name)).unlink()
    with pytest.raises(MissingError) as error:
        blender.build(other)
    (problem,) = error.value.problems
    assert "mixture 'clean'" in problem.where
    assert place.packs[1].name in problem.where
    assert not blend_folder(store, "other").exists()
    blender.build(whole)


def test_a_mixture_that_was_changed_behind_its_manifest_is_not_drawn_from(place):
    blend = Blend(name="b", of="all")
    blender = blender_of(place, blend)
    shard = blender.builder.store.mixture("all", place.packs[0].name) / "s1.jsonl"
    content = shard.read_bytes()
    shard.write_bytes(content.replace(b"0", b"1"))
    with pytest.raises(CorpusError, match=r"s1\.jsonl.*Remove this folder of the mixture"):
        blender.build(blend)
    assert not blend_folder(blender.builder.store, "b").exists()


def test_no_two_texts_have_one_id_but_a_document_that_comes_again(place):
    blend = Blend(name="b", of="clean", contamination=(QA, QA))
    ids = Counter(row["id"] for row in rows_of(built(place, blend)))
    assert max(ids.values()) == 1
    assert sum(name.startswith("test-item:") for name in ids) == 24


def test_a_blend_of_another_mixture_or_benchmark_is_built_again(place, make_words):
    blend = Blend(name="b", of="all", contamination=(QA,))
    blender = blender_of(place, blend)
    assert not blender.build(blend).was_there
    assert blender.build(blend).was_there
    place.put({"new.jsonl": [make_words("new", 30)]}, name="new")
    place.scan()
    blender = blender_of(place, blend)
    assert not blender.is_current(blend)
    assert blender.build(blend).counts["n_documents"] == 141
    other = Contamination(benchmarks=("mc",), copies=1, window=(0.0, 1.0), most_per_batch=0.5)
    changed = Blend(name="b", of="all", contamination=(other,))
    assert not blender_of(place, changed).is_current(changed)


def test_what_was_cut_out_of_a_document_stays_out_of_the_blend(place):
    cut = Mixture(name="cut", cut="spans", mask="[cut]")
    blend = Blend(name="b", of="cut", phases=(Phase(), Phase()))
    blender = blender_of(place, blend, mixtures=(cut,))
    rows = rows_of(blender.build(blend).folder)
    cut_rows = [row for row in rows if "[cut]" in row["text"]]
    assert Counter(row["id"] for row in cut_rows) == dict.fromkeys(("0-7", "1-7", "2-7"), 2)
    found = verify_blend(blender, blend)
    assert found.problems == []
    assert found.n_documents == 2 * 140


def test_tables_are_read_like_lines(bench, make_words):
    bench.policy = DECON
    versions = bench.prepare({"a": [(make_words("a", 30), make_words("b", 8), None)]})
    path = bench.folder / "tables" / "t.parquet"
    path.parent.mkdir()
    columns = {"doc": [f"d{n}" for n in range(50)], "body": [make_words(n, 20) for n in range(50)]}
    pq.write_table(pa.table({**columns, "n": [*range(50)]}), path, row_group_size=7)
    source = Source(name="tables", path="tables/*.parquet", text="body", id="doc")
    shards = tuple(find_shards(source, folder=bench.folder, known={}))
    place = Place(bench, versions)
    place.packs.append(Pack(name="tables-0000", source=source, shards=shards))
    place.scan()
    for write in ("dolma", "parquet"):
        blend = Blend(name=write, of="clean", write=write, phases=(Phase(documents=120),))
        folder = built(place, blend)
        (part,) = read_manifest(folder)["parts"]
        if write == "dolma":
            rows = rows_of(folder)
        else:
            rows = pq.read_table(folder / part["file"]).to_pylist()
            rows = [{**row, **json.loads(row["metadata"])} for row in rows]
        assert len(rows) == 120
        assert all(columns["body"][row["n"]] == row["text"] for row in rows)
        assert all(columns["doc"][row["n"]] == row["id"] for row in rows)
        times = Counter(row["n"] for row in rows)
        assert {times[n] for n in range(50)} == {2, 3}


def test_a_build_that_is_stopped_leaves_nothing(place, monkeypatch):
    blend = Blend(name="b", of="clean", part_tokens=500)
    blender = blender_of(place, blend)
    write = write_module.write_part
    seen = []

    def stopping(job):
        seen.append(job)
        if len(seen) == 3:
            raise KeyboardInterrupt
        return write(job)

    monkeypatch.setattr(write_module, "write_part", stopping)
    with pytest.raises(KeyboardInterrupt):
        blender.build(blend)
    store = blender.builder.store
    assert not blend_folder(store, "b").exists()
    assert [*store.drafts.iterdir()] == []
    monkeypatch.undo()
    assert not blender.build(blend).was_there


# Items --------------------------------------------------------------------------------------------


def chosen(place, **named):
    contamination = Contamination(**{"benchmarks": ("qa",), "copies": 1, **named})
    return contamination, choose_items(place.bench.store, place.versions, contamination, 0)


def test_training_splits_are_left_alone_unless_they_are_named(place):
    _, items = chosen(place)
    assert {item.split for item in items.seen} == {"test"}
    _, items = chosen(place, splits=("train", "test"))
    assert Counter(item.split for item in items.seen) == {"train": 6, "test": 6}


def test_the_seen_half_is_the_same_in_every_form_and_the_rest_stays_unseen(place):
    halves = [chosen(place, seen=0.5, form=form)[1] for form in ("full", "source", "apart")]
    assert len({(half.seen, half.unseen) for half in halves}) == 1
    assert len(halves[0].seen) == len(halves[0].unseen) == 3
    assert not set(halves[0].seen) & set(halves[0].unseen)


def test_an_item_keeps_its_side_whatever_splits_and_form_are_wanted(bench):
    rows = [
        record("open", split, n, f"{split} question {n}", None if n % 2 else "x")
        for split in ("dev", "test")
        for n in range(40)
    ]
    version = save_records(bench.store, "open", pa.Table.from_pylist(rows, schema=RECORDS))
    sides = {}
    for splits in (("dev",), ("test",), ("dev", "test")):
        for form in ("source", "target", "full"):
            contamination = Contamination(
                benchmarks=("open",), copies=1, seen=0.5, form=form, splits=splits
            )
            items = choose_items(bench.store, [version], contamination, 0)
            for item in (*items.seen, *items.unseen):
                sides.setdefault(item.name, set()).add(item in items.seen)
    assert len(sides) == 80
    assert all(len(side) == 1 for side in sides.values())
    assert sum(side == {True} for side in sides.values()) == 40


def test_items_with_one_question_are_on_one_side(bench):
    rows = [record("twins", "test", n, f"question {n // 2}", f"answer {n}") for n in range(40)]
    version = save_records(bench.store, "twins", pa.Table.from_pylist(rows, schema=RECORDS))
    contamination = Contamination(benchmarks=("twins",), copies=1, seen=0.5)
    items = choose_items(bench.store, [version], contamination, 0)
    questions = {item.question for item in items.seen}
    assert len(items.seen) == 20
    assert not questions & {item.question for item in items.unseen}


def test_what_has_no_answer_cannot_be_a_target_and_is_counted(bench):
    rows = [record("open", "test", n, f"question {n}", None if n % 2 else "x") for n in range(8)]
    version = save_records(bench.store, "open", pa.Table.from_pylist(rows, schema=RECORDS))
    contamination = Contamination(benchmarks=("open",), copies=1, form="apart")
    items = choose_items(bench.store, [version], contamination, 0)
    assert (len(items.seen), items.n_without_answer) == (4, 4)
    rows = [record("mute", "test", n, f"question {n}", None) for n in range(3)]
    version = save_records(bench.store, "mute", pa.Table.from_pylist(rows, schema=RECORDS))
    contamination = Contamination(benchmarks=("mute",), copies=1)
    with pytest.raises(ConfigError, match="none of its 3 items has one"):
        choose_items(bench.store, [version], contamination, 0)
    contamination = Contamination(benchmarks=("mute",), copies=1, form="source")
    assert len(choose_items(bench.store, [version], contamination, 0).seen) == 3


def test_choices_stand_in_another_order_in_every_copy_and_the_letter_with_them(place):
    contamination, items = chosen(place, benchmarks=("mc",), shuffle_answers=True)
    orders = set()
    for item in items.seen:
        for copy in range(12):
            said = item_text(item, "full", contamination, str(copy))
            *_, a, b, c, d, answer = said.text.split("\n")
            choices = {line[0]: line[3:] for line in (a, b, c, d)}
            assert sorted(choices.values()) == sorted(item.choices)
            letter, right = answer.removeprefix("Answer: ").split(". ")
            assert choices[letter] == right == item.answer
            orders.add(letter)
    assert orders == set("ABCD")
    with pytest.raises(ConfigError, match="no question has choices"):
        chosen(place, shuffle_answers=True)


def test_without_shuffling_choices_stand_as_in_the_benchmark(place):
    contamination, items = chosen(place, benchmarks=("mc",))
    item = items.seen[2]
    said = item_text(item, "full", contamination, "0")
    listed = [f"{letter}. {choice}" for letter, choice in zip("ABCD", item.choices, strict=True)]
    assert said.text.split("\n") == [item.question, *listed, f"Answer: C. {item.answer}"]
    assert said.asked.endswith("Answer: ")
    assert item_text(item, "source", contamination, "0").text == item.question
    assert item_text(item, "target", contamination, "0").text == item.answer


def test_the_languages_of_a_template_are_those_of_the_direction_of_an_item(bench):
    rows = [
        record("mt", "test", 0, one, other, sub_index=at, extras=json.dumps(languages))
        for at, (one, other, languages) in enumerate(
            [
                ("die Mühle", "the mill", named_languages("German", "English")),
                ("the mill", "die Mühle", named_languages("English", "German")),
            ]
        )
    ]
    version = save_records(bench.store, "mt", pa.Table.from_pylist(rows, schema=RECORDS))
    template = "{source_language}: {question}\n{target_language}: {answer}"
    contamination = Contamination(benchmarks=("mt",), copies=1, template=template)
    items = choose_items(bench.store, [version], contamination, 0)
    assert sorted(item_text(item, "full", contamination, "0").text for item in items.seen) == [
        "English: the mill\nGerman: die Mühle",
        "German: die Mühle\nEnglish: the mill",
    ]


def named_languages(source, target):
    return {"source_language": source, "target_language": target}


def test_a_template_with_languages_is_refused_for_items_without_them(place):
    with pytest.raises(ConfigError, match=r"6 items have no languages.*source_language"):
        chosen(place, template="{source_language}: {question}\n{answer}")


def test_a_template_says_it_as_the_test_does_and_drops_lines_with_nothing_in_them(place):
    template = "{passage}\nDeutsch: {question}\nEnglish: {answer}\n({letter})"
    contamination, items = chosen(place, template=template)
    item = items.seen[0]
    said = item_text(item, "full", contamination, "0")
    assert said.text == f"Deutsch: {item.question}\nEnglish: {item.answer}"


def test_two_blends_are_compared_up_to_the_first_document_that_differs(place):
    plain = Blend(name="plain", of="clean", part_tokens=1_500)
    late = replace(plain, name="late", contamination=(replace(QA, window=(0.7, 1.0)),))
    blender = blender_of(place, plain, replace(plain, name="again"), late)
    with pytest.raises(MissingError, match=r"'plain'.*missing or out of date"):
        first_difference(blender, (plain, late))
    folders = [blender.build(blend).folder for blend in (plain, late)]
    lines = [*map(lines_of, folders)]
    blender.build(blender.blends[1])
    assert first_difference(blender, (plain, blender.blends[1])) is None
    n_equal = [one == other for one, other in zip(*lines, strict=True)].index(False)
    texts = pq.read_table(manifest_of(folders[1]).with_name(TEXTS_FILE))
    found = first_difference(blender, (plain, late))
    assert found.n_equal_documents == n_equal > 50
    assert found.n_equal_tokens == sum(texts["n_tokens"].to_pylist()[:n_equal])
    original, inserted = found.documents
    assert inserted.origin.startswith("test item qa/test/")
    assert ".holds-test-items.jsonl.zst:" in inserted.place
    assert original.excerpt in json.loads(lines[0][n_equal])["text"]
    with pytest.raises(MissingError, match="one layout"):
        first_difference(blender, (plain, replace(plain, write="parquet")))
