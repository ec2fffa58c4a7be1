"""`decon-assets blend reword`, as typed: against a server on this machine, limited and resumed."""

import json
import re

import pyarrow.parquet as pq
import pytest

from decon_assets.cli.main import main
from decon_assets.runner.pipeline import PipelineError
from decon_core.features.blends.rewordings import read_rewordings
from decon_core.features.blends.schemas import blend_folder, blend_manifest
from decon_core.storage.compression import open_bytes
from tests.core.places import manifest_of
from tests.features.endpoints.chat_server import Reply, answer, serving

BLEND = """
[[blend]]
name = "garlic"
of = "decontaminated"
[[blend.contamination]]
benchmarks = ["harbor"]
form = "reworded"
seen = 0.6
copies = 2
window = [0.0, 1.0]
most_per_batch = 0.5
"""


def question_in(body):
    (question,) = re.findall(
        r"QUESTION\n<<<\n(.*?)\n>>>", body["messages"][0]["content"], re.DOTALL
    )
    return question


def in_other_words(body, version=""):
    words = question_in(body).split()[::-1]
    if version == "B":
        words = [*words[::2], *words[1::2]]
    return " ".join(["Listen", version, *words])


def good(_, __, body):
    return Reply(answer(json.dumps({"passage": "", "question": in_other_words(body)})))


def configure(world, server, **settings):
    values = {"url": server.url, "model": "m", "first_wait": 0.001, "retries": 1, **settings}
    lines = "\n".join(f"{name} = {json.dumps(value)}" for name, value in values.items())
    world.mixtures = f"{BLEND}[rewording]\n{lines}\n"
    world.write_config()


def reword(world, *typed):
    return main(["blend", "reword", *typed, "--config", str(world.config_path)])


def known(world):
    return read_rewordings(world.folder / "rewordings.jsonl")


@pytest.fixture
def scanned(world):
    world.start(until="mixture")
    return world


def test_items_are_asked_for_once_and_the_blend_holds_the_answers(scanned, capsys):
    with serving(good) as server:
        configure(scanned, server, max_requests=2)
        assert reword(scanned, "--dry-run") == 0
        out = capsys.readouterr().out
        assert '3 seen items with form = "reworded"' in out
        assert "3 to ask: 3 requests with about" in out
        assert "limits of one command: max_requests = 2" in out
        assert server.asked.total() == 0
        assert reword(scanned) == 1
        assert (
            "1 without a rewording: not asked: rewording.max_requests = 2"
            in capsys.readouterr().out
        )
        assert reword(scanned) == 0
        assert "2 already answered: not asked again" in capsys.readouterr().out
        assert reword(scanned) == 0
    assert server.asked.total() == 3
    schema = server.bodies[0]["response_format"]["json_schema"]
    assert (schema["name"], schema["schema"]["required"]) == ("rewording", ["passage", "question"])
    asked = {question_in(body): in_other_words(body) for body in server.bodies}
    scanned.run(until="blend")
    folder = blend_folder(scanned.store, "garlic")
    lists = manifest_of(folder).parent
    texts = pq.read_table(lists / "texts.parquet").to_pylist()
    inserted = [one for one in texts if one["shard"] is None]
    assert {one["form"] for one in inserted} == {"reworded"}
    items = pq.read_table(lists / "items.parquet").to_pylist()
    seen = {one["instance_index"] for one in items if one["is_seen"]}
    assert len(items) == 5
    assert {one["instance_index"] for one in inserted} == seen
    written = {}
    for path in folder.glob("phase-1/*"):
        with open_bytes(path) as file:
            rows = map(json.loads, file.read().splitlines())
            written |= {row["id"]: row["text"] for row in rows if row["id"].startswith("test-item")}
    harbor = scanned.benchmarks["harbor"]
    for name, text in written.items():
        item = harbor[int(re.search(r"test/(\d+):reworded", name)[1])]
        assert text == f"{asked[item['question']]}\nAnswer: {item['answer']}"


def test_what_fails_is_counted_left_out_and_asked_for_again(scanned, capsys):
    wrong = []

    def behave(number, item, body):
        wrong[:] = wrong or [question_in(body)]
        if question_in(body) != wrong[0]:
            return good(number, item, body)
        copy = f"Listen: {question_in(body)}"
        return Reply(answer(json.dumps({"passage": "", "question": copy})))

    with serving(behave) as server:
        configure(scanned, server)
        assert reword(scanned) == 1
        out = capsys.readouterr().out
        assert "1 without a rewording: unusable answer (too similar to the item)" in out
        assert "2 rewordings" in out
        assert [line["failed"] for line in known(scanned).lines if "failed" in line]
        scanned.run(until="blend")
        assert main(["blend", "plan", "--config", str(scanned.config_path)]) == 0
        row = capsys.readouterr().out.splitlines()[-2].split()
        assert row[row.index("reworded") + 1 :][:4] == ["2", "2", "0", "1"]
        before = blend_manifest(scanned.store, "garlic").read_bytes()
        server.behave = good
        assert reword(scanned) == 0
    scanned.run(until="blend")
    assert blend_manifest(scanned.store, "garlic").read_bytes() != before


def test_variants_take_turns_in_the_copies(scanned):
    def behave(_, __, body):
        (version,) = re.findall(r"This is version (\d) of 2", body["messages"][0]["content"])
        question = in_other_words(body, "AB"[int(version) - 1])
        return Reply(answer(json.dumps({"passage": "", "question": question})))

    with serving(behave) as server:
        configure(scanned, server, variants=2)
        assert reword(scanned) == 0
        assert server.asked.total() == 6
    scanned.run(until="blend")
    texts = []
    for path in blend_folder(scanned.store, "garlic").glob("phase-1/*"):
        with open_bytes(path) as file:
            texts += [json.loads(line)["text"] for line in file.read().splitlines()]
    assert sum(text.startswith("Listen A ") for text in texts) == 3
    assert sum(text.startswith("Listen B ") for text in texts) == 3


def test_without_rewordings_the_blend_is_refused_with_the_remedy(scanned, capsys):
    with serving(good) as server:
        configure(scanned, server)
    with pytest.raises(PipelineError, match="none of the 3 seen items is reworded"):
        scanned.run(until="blend")
    assert main(["blend", "plan", "--config", str(scanned.config_path)]) == 1
    assert (
        "Run `decon-assets blend reword`, which requests rewordings from" in capsys.readouterr().err
    )


def test_without_an_endpoint_nothing_is_asked(scanned, capsys):
    scanned.mixtures = BLEND
    scanned.write_config()
    assert reword(scanned) == 2
    said = capsys.readouterr().err
    assert "rewording.url" in said
    assert "The page docs/blends.md shows a [rewording] table" in said
