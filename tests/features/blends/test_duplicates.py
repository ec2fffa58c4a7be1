"""Blends with duplicates: whose they are, on which side, and what is left out."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from decon_core.benchmarks.normalized import fingerprint_of
from decon_core.benchmarks.records import save_records
from decon_core.config.policy import Policy
from decon_core.errors import ConfigError
from decon_core.features.blends.build import Blender, blend_faults
from decon_core.features.blends.items import choose_items, item_text, rewritten
from decon_core.features.blends.schemas import ITEMS_FILE, TEXTS_FILE
from decon_core.features.blends.settings import Blend, Contamination
from decon_core.features.blends.verify import verify_blend
from decon_core.features.rewriting.names import persons_in
from decon_core.features.rewriting.rewritings import OTHER_ITEM
from decon_core.index.term_weights import freeze
from decon_core.schemas import RECORDS
from decon_core.storage.compression import open_bytes
from decon_core.storage.files import read_json
from tests.core.places import CLEAN, Place, build_mixture, manifest_of

NAMES = ("Laura", "Omar", "Emily", "Brian", "Julia", "Kevin", "Nora", "Peter", "Tanya", "Walter")


def row(n, question, answer, **more):
    fingerprint = fingerprint_of(None, question, answer)
    names = {"benchmark": "sums", "split": "test", "instance_index": n}
    return {**names, "question": question, "answer": answer, "fingerprint": fingerprint, **more}


@pytest.fixture
def place(bench, make_words):
    """Ten sums about persons, two without a name, and one without an answer; pages to hide in."""
    bench.policy = Policy(tokenizer_str="words")
    rows = [
        row(
            n,
            f"If {name} buys {n + 12} {make_words(n, 9)}, how many has {name}'s dog?",
            f"{name} says {n + 12}.",
        )
        for n, name in enumerate(NAMES)
    ]
    rows += [row(n, f"Sum up {n} and {make_words(n, 12)}?", f"{2 * n}") for n in (10, 11)]
    rows.append(row(12, f"Where is Laura with {make_words(12, 9)}?", None))
    version = save_records(bench.store, "sums", pa.Table.from_pylist(rows, schema=RECORDS))
    bench.index([version], freeze(bench.store, [version], bench.policy))
    found = Place(bench, [version])
    pages = [{"id": f"p{n}", "text": make_words(("p", n), 30), "source": "x"} for n in range(200)]
    found.put({"s0.jsonl": pages})
    return found.scan()


def contamination(form, **more):
    settings = {"copies": 3, "seen": 0.5, "window": (0.0, 1.0), "most_per_batch": 0.5, **more}
    return Contamination(benchmarks=("sums",), form=form, **settings)


def chosen(place, form, **more):
    return choose_items(place.bench.store, place.versions, contamination(form, **more), 0)


def test_a_duplicate_and_its_original_are_on_one_side(place):
    sides = [
        {item.name: item in items.seen for item in (*items.seen, *items.unseen)}
        for items in (chosen(place, form) for form in ("full", "names_replaced", OTHER_ITEM))
    ]
    for one in sides:
        for other in sides:
            assert all(one[name] == other[name] for name in one.keys() & other.keys())
    assert any(sides[1].values())
    assert not all(sides[1].values())


def test_every_inserted_duplicate_names_its_original_which_is_seen(place):
    blend = Blend(name="b", of="clean", contamination=(contamination("names_replaced"),))
    builder = place.builder(CLEAN)
    build_mixture(builder, CLEAN, builder.packs[0])
    blender = Blender(builder, (blend,))
    folder = blender.build(blend).folder
    manifest = read_json(manifest_of(folder))
    (account,) = manifest["contamination"]
    assert account["declared"]["form"] == "names_replaced"
    assert (account["n_items_without_answer"], account["n_items_not_rewritten"]) == (1, 2)
    items = {
        one["instance_index"]: one["is_seen"]
        for one in pq.read_table(manifest_of(folder).with_name(ITEMS_FILE)).to_pylist()
    }
    rows = []
    for part in manifest["parts"]:
        with open_bytes(folder / part["file"]) as file:
            rows += map(json.loads, file.read().splitlines())
    inserted = set()
    for told, written in zip(
        pq.read_table(manifest_of(folder).with_name(TEXTS_FILE)).to_pylist(), rows, strict=True
    ):
        if told["shard"] is not None:
            continue
        n, copy = told["instance_index"], told["copy"]
        assert told["form"] == "names_replaced"
        assert items[n]
        assert written["id"] == f"test-item:sums/test/{n}:names_replaced:0:{copy}"
        assert f"buys {n + 12} " in written["text"]
        assert NAMES[n] not in written["text"]
        (new,) = persons_in([written["text"]])
        assert f"Answer: {new} says" in written["text"]
        inserted.add(written["text"])
    assert len(inserted) > sum(items.values())  # copies differ
    assert blend_faults(manifest_of(folder), folder) == []
    result = verify_blend(blender, blend)
    assert result.problems == []
    assert result.n_given_away == 0


def test_every_copy_is_another_duplicate_and_the_same_again(place):
    item = chosen(place, "names_replaced").seen[0]
    copies = [rewritten(item, "names_replaced", str(copy)) for copy in range(8)]
    assert len({one.question for one in copies}) > 4
    assert copies == [rewritten(item, "names_replaced", str(copy)) for copy in range(8)]
    assert all(one.name == item.name for one in copies)


def test_with_other_numbers_the_answer_is_left_out(place):
    settings = contamination(OTHER_ITEM)
    items = choose_items(place.bench.store, place.versions, settings, 0)
    assert items.n_without_answer == 0
    for item in items.seen:
        text = item_text(item, OTHER_ITEM, settings, "0")
        assert "Answer" not in text.text
        assert not text.answered
        assert not any(name in text.text for name in NAMES)


def test_choices_are_rewritten_with_the_question_and_the_letter_stays(bench):
    rows = [
        row(0, "Laura met Omar. Who was met?", name, choice_index=at, is_correct=name == "Omar")
        for at, name in enumerate(("Laura", "Omar", "Emily"))
    ]
    version = save_records(bench.store, "sums", pa.Table.from_pylist(rows, schema=RECORDS))
    settings = contamination("names_replaced", seen=1.0)
    (item,) = choose_items(bench.store, [version], settings, 0).seen
    lines = item_text(item, "names_replaced", settings, "0").text.split("\n")
    met = lines[0].split()[2].removesuffix(".")
    assert lines[2] == f"B. {met}"
    assert lines[-1] == f"Answer: B. {met}"
    assert met != "Omar"


def test_a_form_that_changes_no_item_is_refused(place):
    with pytest.raises(ConfigError, match="can change none of its 12 items"):
        chosen(place, "identifiers_renamed")
