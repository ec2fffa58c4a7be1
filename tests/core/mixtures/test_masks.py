"""Loss masks: what `cut` would remove is masked, nothing else, and verification sees faults."""

import json
import random
from collections import Counter
from copy import deepcopy
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from decon_core.config.load import load_config
from decon_core.config.mixtures import Leaks, Mixture
from decon_core.config.policy import Policy
from decon_core.config.sources import Source
from decon_core.corpus.documents import document_of
from decon_core.errors import ConfigError
from decon_core.mixtures import masks as masks_module
from decon_core.mixtures.excise import CutRow, MaskedRow
from decon_core.mixtures.layouts import Row
from decon_core.mixtures.masks import MaskedText
from decon_core.mixtures.verify import verify
from decon_core.storage.checksums import hash_file
from decon_core.storage.files import read_json, write_json
from decon_core.text.trainer_tokens import load_trainer_tokenizer
from tests.core.places import Place, faults_in, manifest_of, removed_in
from tests.core.trainer_tokenizers import byte_level

CHATS = Source(name="chats", path="chats/*.jsonl", messages="messages", id="id")
PAIRS = Source(name="pairs", path="pairs/*.jsonl", text=("prompt", "chosen", "rejected"), id="id")


@pytest.fixture(scope="module")
def tokenizer_file(tmp_path_factory):
    return byte_level(tmp_path_factory.mktemp("tokenizer") / "tokenizer.json")


@pytest.fixture
def tokenizer(tokenizer_file):
    return load_trainer_tokenizer(tokenizer_file, add_special_tokens=False, where="here")


@pytest.fixture
def masked(tokenizer_file):
    return Mixture(name="masked", cut="spans", write="mask", tokenizer=tokenizer_file)


@pytest.fixture
def leaky(bench, make_words):
    """Three items; a way to put any rows into shards, and to scan them."""
    bench.policy = Policy(tokenizer_str="words")
    items = [(make_words(n, 30), make_words((n, "!"), 8), None) for n in range(3)]
    versions = bench.prepare({"quiz": items})
    return Place(bench, versions), [f"{question} {answer}" for question, answer, _ in items]


def table(folder, shard="s"):
    return pq.read_table(Path(folder) / f"{shard}.parquet").to_pylist()


def decoded(row, tokenizer, *, loss):
    """The text of the tokens with this value of the mask, run by run."""
    runs, before = [], None
    for token, value in zip(row["input_ids"], row["loss_mask"], strict=True):
        if value == loss:
            if before != loss:
                runs.append([])
            runs[-1].append(token)
        before = value
    return [tokenizer.decode(run) for run in runs]


# What is masked -----------------------------------------------------------------------------------


def test_the_masked_tokens_decode_to_the_leaks_and_at_most_a_token_more_at_the_edges(
    leaky, masked, tokenizer, make_words
):
    place, leaks = leaky
    quiet = [make_words(("quiet", n), 40) for n in range(3)]
    texts = {
        "clean": quiet[0],
        "start": f"{leaks[0]} naïve 東京 {quiet[0]}",
        "end": f"😀 {quiet[1]}\n\n({leaks[1]})",
        "two": f"{quiet[0]} 東\n{leaks[2]}! 京 {quiet[1]} é ({leaks[0]})é {quiet[2]}",
        "twice": f"{quiet[0]} {leaks[1]} {make_words('far', 400)} {leaks[1]} {quiet[2]}",
    }
    found = {"clean": [], "start": [0], "end": [1], "two": [2, 0], "twice": [1, 1]}
    place.put({"s.jsonl": [{"id": id_, "text": text} for id_, text in texts.items()]})
    place.scan()
    folder = place.build(masked).folder
    rows = {row["id"]: row for row in table(folder)}
    assert [*rows] == [*texts]  # whole, in order
    for id_, row in rows.items():
        text = texts[id_]
        assert tokenizer.decode(row["input_ids"]) == text
        assert row["source"] == "web"
        assert row["labels"] == [
            token if value else -100
            for token, value in zip(row["input_ids"], row["loss_mask"], strict=True)
        ]
        spans = [text[one["start"] : one["stop"]] for one in row["masked"]]
        assert len(spans) == len(found[id_])
        runs = decoded(row, tokenizer, loss=0)
        for span, run, number in zip(spans, runs, found[id_], strict=True):
            assert leaks[number] in span
            assert span in run  # every leaked character is masked
            start = run.index(span)
            for edge in (run[:start], run[start + len(span) :]):
                assert (
                    len(tokenizer.encode(edge).pieces.ids) <= 2
                )  # what one token may hold besides
    assert rows["clean"]["loss_mask"] == [1] * len(rows["clean"]["input_ids"])
    assert rows["clean"]["masked"] == []
    (part,) = rows["clean"]["parts"]
    assert part == {"path": "text", "start": 0, "stop": len(rows["clean"]["input_ids"])}


def test_a_mixture_of_masks_has_the_rows_and_counts_of_one_that_is_cut(leaky, masked, make_words):
    place, leaks = leaky
    rng = random.Random(1)
    rows = [
        " ".join(
            rng.choice(
                (make_words(rng.random(), 12), make_words(rng.random(), 9), rng.choice(leaks))
            )
            for _ in range(rng.randrange(1, 5))
        )
        for _ in range(30)
    ]
    place.put({"s.jsonl": [*rows, leaks[0], {"id": "x", "text": f"… {leaks[1]} !"}]})
    place.scan()
    cut = Mixture(name="cut", cut="spans")
    left = place.rows(cut)
    assert 10 < len(left) < 31  # a document that is nothing but leaks is left out
    folder = place.build(masked).folder
    assert faults_in(folder) == []
    assert place.removed(masked) == place.removed(cut)
    totals, of_cut = place.manifest(masked)["totals"], place.manifest(cut)["totals"]
    tokens = {name: totals.pop(name) for name in ("n_input_tokens", "n_masked_tokens")}
    assert {**totals, "n_bytes": 0} == {**of_cut, "n_bytes": 0}
    texts = {row["id"]: row["text"] for row in (json.loads(line) for line in shard_lines(place))}
    written = table(folder)
    for row, one in zip(written, left, strict=True):
        spans = [(each["start"], each["stop"]) for each in row["masked"]]
        document = document_of({"text": texts[row["id"]]}, 0, place.packs[0].source)
        assert MaskedText.of(document, spans).remainder.text == one["text"]
        assert row["id"] == one["id"]
    counts = Counter(value for row in written for value in row["loss_mask"])
    assert tokens == {"n_input_tokens": counts.total(), "n_masked_tokens": counts[0]}
    found = verify(place.builder(masked), masked)
    assert found.problems == []
    assert (found.n_documents, found.n_leaks) == (len(left), 0)
    assert found.n_tokens == totals["n_tokens_out"]
    assert (found.n_input_tokens, found.n_masked_tokens) == (counts.total(), counts[0])


def shard_lines(place):
    return (place.bench.folder / "web" / "s.jsonl").read_bytes().splitlines()


TURNS = st.lists(st.text("ab .\n", max_size=6), min_size=1, max_size=4).filter(any)


@given(turns=TURNS, data=st.data(), cut=st.sampled_from(["spans", "turns"]))
def test_prop_what_masks_leave_of_a_document_is_what_cutting_leaves(turns, data, cut):
    """Also if the remainder is masked or cut again."""
    mixture = Mixture(name="m", cut=cut)
    value = {"messages": [{"role": "user", "content": turn} for turn in turns]}
    document = document_of(value, 0, CHATS)
    masked = MaskedRow(value, MaskedText.of(document), replace(mixture, write="mask"))
    row = CutRow(value, document, CHATS, mixture)
    for _ in range(3):
        length = len(row.document.text)
        edges = sorted(data.draw(st.lists(st.integers(0, length), min_size=2, max_size=2)))
        entry = {
            f"{text}_char_{edge}": None
            for text in ("answer", "passage")
            for edge in ("start", "stop")
        }
        entry |= {"question_char_start": edges[0], "question_char_stop": edges[1]}
        row, masked = row.without([entry]), masked.without([entry])
        if isinstance(row, str):
            assert masked == row
            return
        assert masked.document.text == row.document.text
        assert masked.value == value
        flags = np.ones(len(document.text), np.bool_)
        for start, stop in masked.masked:
            flags[start:stop] = False
        separators = len(document.text) - sum(part.stop - part.start for part in document.parts)
        left = sum(part.stop - part.start for part in row.document.parts)
        assert flags.sum() == left + separators


# Conversations and fields -------------------------------------------------------------------------


def test_turns_and_fields_are_encoded_one_by_one_and_their_tokens_are_named(
    leaky, masked, tokenizer, make_words
):
    place, leaks = leaky
    quiet = make_words("quiet", 30)
    turns = [f"Hello 東京 {quiet}", leaks[0], "", f"{quiet} 😀"]
    pair = {"id": "p", "prompt": f"{quiet}?", "chosen": f"{leaks[1]} {quiet}", "rejected": "no"}
    messages = [{"role": "user", "content": turn} for turn in turns]
    place.put({"s.jsonl": [{"id": "c", "messages": messages}]}, source=CHATS, name="chats")
    place.put({"s.jsonl": [pair]}, source=PAIRS, name="pairs")
    place.scan()
    wanted = {
        "chats": {f"messages[{at}].content": turn for at, turn in enumerate(turns) if turn},
        "pairs": {name: pair[name] for name in ("prompt", "chosen", "rejected")},
    }
    for mixture in (masked, replace(masked, name="turns", cut="turns")):
        for pack in place.packs:
            rows = table(place.build(mixture, pack).folder)
            if pack.source is PAIRS and mixture.cut == "turns":
                assert rows == []  # a field is no turn
                continue
            (row,) = rows
            ids = {
                one["path"]: row["input_ids"][one["start"] : one["stop"]] for one in row["parts"]
            }
            texts = wanted[pack.source.name]
            assert ids == {
                path: tokenizer.encode(text).pieces.ids.tolist() for path, text in texts.items()
            }
            leaked = "messages[1].content" if pack.source is CHATS else "chosen"
            for one in row["parts"]:
                value = row["loss_mask"][one["start"] : one["stop"]]
                if one["path"] != leaked:
                    assert {*value} == {1}
            (run,) = decoded(row, tokenizer, loss=0)
            assert run.strip() == leaks[pack.source is PAIRS]
        assert verify(place.builder(mixture), mixture).problems == []


def test_special_tokens_are_put_around_a_document_if_asked_for_and_never_masked(
    leaky, masked, tokenizer, make_words
):
    place, leaks = leaky
    place.put({"s.jsonl": [f"{leaks[0]} {make_words('quiet', 9)}"]})
    place.scan()
    (plain,) = table(place.build(masked).folder)
    around = replace(masked, add_special_tokens=True)
    (row,) = table(place.build(around).folder)
    assert row["input_ids"] == [0, *plain["input_ids"], 1]
    assert row["loss_mask"] == [1, *plain["loss_mask"], 1]
    assert verify(place.builder(around), around).problems == []


def test_tables_and_lines_give_the_same_rows_in_groups_of_any_size(
    leaky, masked, make_words, monkeypatch
):
    place, leaks = leaky
    rows = [{"id": f"{n}", "text": f"{make_words(n, 9)} {leaks[0]}", "n": n} for n in range(5)]
    place.put({"s.jsonl": rows})
    source = Source(name="tables", path="tables/*.parquet", text="text", id="id")
    (place.bench.folder / "tables").mkdir()
    pq.write_table(pa.Table.from_pylist(rows), place.bench.folder / "tables" / "s.parquet")
    place.put({}, source=source, name="tables")
    place.scan()
    of_lines = table(place.build(masked).folder)
    monkeypatch.setattr(masks_module, "_GROUP_TOKENS", 100)
    folder = place.build(masked, place.packs[1]).folder
    assert pq.ParquetFile(folder / "s.parquet").num_row_groups > 1
    assert [{**row, "source": "web"} for row in table(folder)] == of_lines
    assert verify(place.builder(masked), masked).problems == []


def test_numbers_and_times_of_a_table_do_not_shift_its_masks(
    leaky, masked, make_words, tokenizer, monkeypatch
):
    place, leaks = leaky
    source = Source(name="tables", path="tables/*.parquet", id="id")
    (place.bench.folder / "tables").mkdir()
    rows = {
        "price": pa.array([1, 2], pa.decimal128(12, 4)),
        "seen": pa.array([0, 1], pa.timestamp("us", "UTC")),
        "text": [f"{make_words(9, 9)} {leaks[0]} {make_words(8, 9)}", make_words(7, 9)],
    }
    pq.write_table(pa.table({"id": ["a", "b"], **rows}), place.bench.folder / "tables/s.parquet")
    place.put({}, source=source, name="tables")
    place.scan()
    first, second = table(place.build(masked).folder)
    assert decoded(second, tokenizer, loss=True) == [rows["text"][1]]
    assert leaks[0] in "".join(decoded(first, tokenizer, loss=False))
    assert verify(place.builder(masked), masked).problems == []
    shifted = property(lambda row: {**row.value, "text": f"Monday {row.value['text']}"})
    monkeypatch.setattr(Row, "scanned", shifted)
    found = [problem.found for problem in verify(place.builder(masked), masked).problems]
    assert any("no text of quiz" in one for one in found)


# Verification -------------------------------------------------------------------------------------


def _unmask(row):
    row["loss_mask"] = [1] * len(row["loss_mask"])


def _unmask_all(row):
    row |= {"masked": [], "labels": row["input_ids"], "loss_mask": [1] * len(row["input_ids"])}


def _mask_one_more(row):
    row["loss_mask"][-1] = 0
    row["labels"][-1] = -100


def _change_token(row):
    row["input_ids"][-1] += 1


def _rename(row):
    row["id"] = "other"


def test_verification_finds_what_is_wrong_with_a_mask(leaky, masked, make_words):
    place, leaks = leaky
    quiet = make_words("quiet", 9)
    place.put({"s.jsonl": [f"{quiet} {leaks[0]} {quiet}", f"{leaks[1]} {quiet}"]})
    place.scan()
    folder = place.build(masked).folder
    assert verify(place.builder(masked), masked).problems == []
    rows = table(folder)
    for damage, found in (
        (_unmask, "different loss_mask"),
        (_unmask_all, "characters of a leak of quiz that are not masked"),
        (_mask_one_more, "different labels"),
        (_change_token, "different input_ids"),
        (_rename, "another id"),
    ):
        damaged = deepcopy(rows)
        damage(damaged[0])
        assert found in faults_of(place, masked, folder, damaged)
    assert "1" in faults_of(place, masked, folder, rows[:1])  # a row less than the manifest says


def faults_of(place, mixture, folder, rows):
    put_back(folder, rows)
    return [problem.found for problem in verify(place.builder(mixture), mixture).problems]


def put_back(folder, rows):
    """Write other rows into a mixture as if they had been built."""
    path = folder / "s.parquet"
    pq.write_table(pa.Table.from_pylist(rows, masks_module.MASKS), path)
    manifest = read_json(manifest_of(folder))
    manifest["shards"][0] |= {"output": hash_file(path), "n_bytes": path.stat().st_size}
    write_json(manifest_of(folder), manifest)


def test_hidden_text_is_neither_written_nor_verified(leaky, masked, make_words):
    place, leaks = leaky
    rows = [
        {"prompt": make_words(n, 9), "reward_model": {"ground_truth": truth}}
        for n, truth in enumerate([make_words("truth", 9), leaks[0]])
    ]
    rows.append(rows[0] | {"prompt": f"{leaks[1]} {make_words('beside', 9)}"})
    place.put({"s.jsonl": rows}, source=Source(name="web", path="web/*.jsonl"))
    place.scan()
    folder = place.build(masked).folder
    assert [row["id"] for row in table(folder)] == ["s.jsonl:0", "s.jsonl:2"]
    assert verify(place.builder(masked), masked).problems == []


def test_questions_that_a_mixture_keeps_are_counted_beside_the_mask(leaky, masked, make_words):
    place, leaks = leaky
    question = " ".join(leaks[2].split()[:30])
    place.put({"s.jsonl": [f"{make_words('quiet', 9)} {question}", leaks[0] + " tail end"]})
    place.scan()
    kept = replace(masked, leaks=Leaks(no_answer="keep"))
    place.build(kept)
    found = verify(place.builder(kept), kept)
    assert (found.problems, found.n_leaks, found.n_no_answer) == ([], 0, 1)
    place.build(masked)
    found = verify(place.builder(masked), masked)
    assert (found.problems, found.n_leaks, found.n_no_answer) == ([], 0, 0)


def test_another_tokenizer_under_the_same_name_makes_another_mixture(leaky, masked, tmp_path):
    place, leaks = leaky
    place.put({"s.jsonl": [f"naïve {leaks[0]}"]})
    place.scan()
    files = []
    for folder, n in (("a", 340), ("b", 300), ("c", 340)):
        (tmp_path / folder).mkdir()
        files.append(byte_level(tmp_path / folder / "tokenizer.json", n=n))
    first, other, same = (replace(masked, tokenizer=file) for file in files)
    place.build(first)
    (pack,) = place.packs
    assert [place.builder(one).is_current(one, pack) for one in (first, other, same)] == [
        *(True, False, True)
    ]
    assert place.manifest(first)["declared"]["tokenizer"] == "tokenizer.json"


def test_a_data_set_of_masks_loads_with_its_card(leaky, masked, make_words, monkeypatch, tmp_path):
    datasets = pytest.importorskip("datasets")
    monkeypatch.setattr("datasets.config.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("datasets.config.HF_DATASETS_OFFLINE", True)
    place, leaks = leaky
    place.put({"s.jsonl": [make_words("quiet", 9), f"naïve {leaks[0]}"]})
    place.scan()
    folder = place.build(masked).folder.parent
    loaded = datasets.load_dataset(str(folder), cache_dir=str(tmp_path / "cache"))["train"]
    assert loaded.column_names == masks_module.MASKS.names
    assert [sum(mask) == len(mask) for mask in loaded["loss_mask"]] == [True, False]
    card = (folder / "README.md").read_text()
    totals = place.manifest(masked)["totals"]
    counts = f"{totals['n_masked_tokens']} of {totals['n_input_tokens']} tokens are masked"
    assert f"{counts}, in 1 document." in card
    assert "from the tokenizer `tokenizer.json` (`file-" in card
    assert removed_in(place.build(masked).folder)["what"].to_pylist() == ["spans"]


# Settings -----------------------------------------------------------------------------------------

CONFIG = """
[evals]
recipes = ["evals.yaml"]
[[corpus.source]]
name = "chat"
path = "*.jsonl"
messages = "messages"
roles = ["user"]
[[mixture]]
name = "masked"
cut = "spans"
write = "mask"
tokenizer = "absent.json"
"""


def test_a_tokenizer_is_found_beside_decon_toml_and_roles_are_refused(tmp_path):
    path = tmp_path / "decon.toml"
    (tmp_path / "evals.yaml").write_text("")
    path.write_text(CONFIG)
    with pytest.raises(ConfigError) as caught:
        load_config(path)
    places = [problem.where.removeprefix(f"{path}: ") for problem in caught.value.problems]
    assert places == ["mixture[0].tokenizer", "mixture 'masked': write"]
    (tmp_path / "absent.json").write_text("{}")
    path.write_text(CONFIG.replace('roles = ["user"]', ""))
    (mixture,) = load_config(path).mixtures
    assert mixture.tokenizer == str(tmp_path / "absent.json")
    assert mixture.to_json()["tokenizer"] == "absent.json"


def test_attributes_need_an_id_in_each_source_that_they_are_of(tmp_path):
    (tmp_path / "decon.toml").write_text("""
[evals]
recipes = ["evals.yaml"]
[[corpus.source]]
name = "named"
path = "a/*.jsonl"
id = "id"
[[corpus.source]]
name = "nameless"
path = "b/*.jsonl"
[[mixture]]
name = "tags"
write = "attributes"
""")
    with pytest.raises(ConfigError) as raised:
        load_config(tmp_path / "decon.toml")
    (problem,) = raised.value.problems
    assert problem.found == "\"attributes\" with source 'nameless', which has no `id`"
    text = (tmp_path / "decon.toml").read_text()
    (tmp_path / "decon.toml").write_text(f'{text}sources = ["named"]\n')
    load_config(tmp_path / "decon.toml")
