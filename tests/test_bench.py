"""What is measured on, and what comes out: the mixed corpus, and the page of measurements."""

import gzip
import json
import os
import random
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bench import command, layouts, library, peers, stages
from bench.__main__ import main
from bench.corpus import SHARD, make_corpus, truth_file
from bench.mixtures import VARIANTS
from decon_core.storage.compression import open_bytes
from tests.long_runs import only_in_long_runs

pytestmark = pytest.mark.release


@pytest.fixture
def sources(tmp_path):
    """An archive of prose, a loose text in Latin-1, and benchmark records to hide."""
    rng = random.Random(5)
    lexicon = ["".join(rng.choices("abdeghilmnoprstuvé", k=rng.randint(2, 9))) for _ in range(3000)]

    def prose(n: int) -> str:
        sentences = (" ".join(rng.choices(lexicon, k=rng.randint(5, 20))) for _ in range(n))
        return " ".join(f"{sentence.capitalize()}." for sentence in sentences)

    texts = tmp_path / "texts"
    texts.mkdir()
    with zipfile.ZipFile(texts / "news.zip", "w") as archive:
        archive.writestr("news/one.txt", prose(400))
        archive.writestr("news/two.txt", prose(300))
        archive.writestr("news/README", "not a text")
    (texts / "old.txt").write_bytes(prose(300).encode("latin-1"))
    evals = tmp_path / "evals"
    evals.mkdir()
    rows = [
        {
            "eval_key": "quiz",
            "eval_instance_index": number,
            "split": "test",
            "question": prose(4),
            "answer": prose(1),
        }
        for number in range(60)
    ]
    with gzip.open(evals / "quiz_test-1.jsonl.gz", "wt") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
    return texts, evals, rows


def make(sources, folder: Path, **options):
    texts, evals, _ = sources
    settings = {"mb": 0.4, "n_shards": 2, "n_hidden": 24, **options}
    return make_corpus(folder, texts=texts, evals=evals, **settings)


def rows_of(path: Path) -> list[dict]:
    with open_bytes(path) as file:
        return [json.loads(line) for line in file]


def test_a_corpus_has_the_size_that_was_asked_for_and_no_text_twice(sources, tmp_path):
    made = make(sources, tmp_path / "mixed")
    shards = [rows_of(tmp_path / "mixed" / SHARD.format(number)) for number in range(2)]
    texts = [row["text"] for shard in shards for row in shard]
    assert made.n_text_bytes == sum(len(text.encode()) for text in texts)
    assert 0.4e6 <= made.n_text_bytes < 0.6e6
    assert made.n_documents == len(texts) == len(set(texts))


def test_what_is_hidden_stands_where_the_truth_says(sources, tmp_path):
    made = make(sources, tmp_path / "mixed")
    items = {row["eval_instance_index"]: row for row in sources[2]}
    truth = rows_of(truth_file(tmp_path / "mixed"))
    assert len(truth) == made.n_hidden == 24
    assert len({line["instance_index"] for line in truth}) == 24
    for line in truth:
        text = rows_of(tmp_path / "mixed" / line["shard"])[line["row"]]["text"]
        item = items[line["instance_index"]]
        whole = f"{item['question']}\n{item['answer']}"
        if line["phenomenon"] == "verbatim":
            assert whole in text
        if line["phenomenon"] == "no_answer":
            assert item["question"] in text
            assert item["answer"] not in text
        if line["expected"]:
            words = re.findall(r"\w+", whole.lower())
            assert " ".join(words) in " ".join(re.findall(r"\w+", text.lower()))


def test_the_same_seed_gives_the_same_bytes_and_another_gives_others(sources, tmp_path):
    for name, seed in (("one", 1), ("same", 1), ("other", 2)):
        make(sources, tmp_path / name, seed=seed)
    shards = {
        name: (tmp_path / name / SHARD.format(0)).read_bytes() for name in ("one", "same", "other")
    }
    assert shards["one"] == shards["same"] != shards["other"]


def test_a_scan_of_the_corpus_finds_what_it_must(sources, tmp_path, capsys):
    from decon_assets.cli.main import main

    make(sources, tmp_path / "mixed")
    (tmp_path / "policy.toml").write_text('tokenizer_str = "words"\n')
    command = ["scan", "--evals", sources[1], tmp_path / "mixed"]
    command += ["--out", tmp_path / "found", "--policy", tmp_path / "policy.toml"]
    assert main([str(part) for part in command]) == 0
    matches = pq.read_table(tmp_path / "found" / "matches.parquet").to_pylist()
    leaks = {(m["file"], m["row"], m["instance_index"]) for m in matches if m["is_contaminated"]}
    truth = rows_of(truth_file(tmp_path / "mixed"))
    places = {(line["shard"], line["row"], line["instance_index"]) for line in truth}
    wanted = {
        (line["shard"], line["row"], line["instance_index"]) for line in truth if line["expected"]
    }
    assert len(wanted) == 12
    assert wanted <= leaks <= places


def test_a_folder_without_text_is_refused(sources, tmp_path, capsys):
    (tmp_path / "empty").mkdir()
    command = ["--evals", sources[1], "--texts", tmp_path / "empty"]
    assert main([str(part) for part in command]) == 2
    assert "enough text" in capsys.readouterr().err
    assert main(["--evals", "nowhere.yaml"]) == 2
    assert "nowhere.yaml" in capsys.readouterr().err


def test_a_peer_that_is_not_installed_is_said_to_be_missing(tmp_path):
    (tmp_path / "lines.jsonl").write_text('"a text"\n')
    job = {"peer": "overlapy", "tokenizer": "", "most_items": None, "seconds": 1}
    job |= {"documents": str(tmp_path / "lines.jsonl"), "items": str(tmp_path / "lines.jsonl")}
    # -S: an interpreter that has no packages at all
    command = [sys.executable, "-S", peers.__file__, json.dumps(job)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    assert "overlapy" in json.loads(done.stdout)["missing"]


@only_in_long_runs("it measures every stage")
def test_the_page_names_every_stage_the_machine_and_what_is_missing(sources, tmp_path):
    texts, evals, _ = sources
    page = tmp_path / "benchmarks.md"
    command = [
        sys.executable, "-m", "bench",
        "--evals", evals, "--texts", texts, "--mb", "0.5", "--rounds", "1",
        "--peers", "--peer-seconds", "0.5", "--out", page,
    ]  # fmt: skip
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    written = page.read_text()
    assert written in done.stdout
    for name in (
        "read shards",
        "words converted to tokens",
        "search",
        "1 worker",
        "1 worker, 2 cores",
        "2 workers",
        "index built",
    ):
        assert name in written
    assert re.search(r"\d{4}-\d\d-\d\d; .* cores, \d+ GB; Python 3", written)
    for name in ("overlapy, all items", "datatrove, split at whitespace"):
        (line,) = [line for line in written.splitlines() if line.startswith(f"| {name}")]
        assert re.search(r"\| [\d.]+ \|", line) or "pip install -e '.[peers]'" in line


def test_mixtures_are_measured_over_a_plain_copy_of_the_same_shards(sources, tmp_path, capsys):
    texts, evals, _ = sources
    page = tmp_path / "mixtures.md"
    command = ["--mixtures", "--evals", evals, "--texts", texts, "--mb", "0.5"]
    assert main([str(part) for part in [*command, "--rounds", "1", "--out", page]]) == 0
    written = page.read_text()
    assert written in capsys.readouterr().out
    for name in VARIANTS:
        (line,) = [line for line in written.splitlines() if line.startswith(f"| {name} ")]
        assert re.search(r"\| [\d.]+ \|", line)
        assert re.search(rf"- {name}, relative to a plain copy: [\d.]+x", written)
    assert "| a plain copy | " in written


def test_the_variants_that_are_measured_do_what_they_are_called(sources, tmp_path):
    make(sources, tmp_path / "mixed")
    job = {"store": str(tmp_path / "store"), "corpus": str(tmp_path / "mixed"), "workers": 1}
    job |= {"evals": str(sources[1]), "cores": 1}
    job["benchmarks"] = stages.index(job)["benchmarks"]
    stages.scan(job)
    job["rounds"] = 1
    assert all(one["ratio"] > 0 for one in stages.mixtures(job)["variants"].values())
    manifests = {
        path.parent.parent.name: json.loads(path.read_text())
        for path in (tmp_path / "store" / "manifests" / "mixtures").glob("*/*/manifest.json")
    }
    totals = {name: manifest["totals"] for name, manifest in manifests.items()}
    removed = totals["clean"]["n_documents_in"] - totals["clean"]["n_documents_out"]
    assert removed == totals["control"]["removed"]["control"] >= 12
    assert totals["cut"]["n_cut"] > 0
    assert totals["licensed"]["removed"]["license"] * 4 >= totals["licensed"]["n_documents_in"] - 8


@only_in_long_runs("it opens a page of a large report in a browser")
def test_a_report_of_a_large_scan_is_measured(tmp_path, monkeypatch):
    small = {"n_matches": 400, "n_items": 40, "n_shards": 9}
    monkeypatch.setattr(command, "_LARGE", small)
    out = tmp_path / "page.md"
    nothing = ["--evals", str(tmp_path / "nowhere")]  # it needs none
    assert main(["--report", "--rounds", "1", "--out", str(out), *nothing]) == 0
    page = out.read_text()
    assert "400 matches, 40 items and 9 shards" in page
    assert re.search(r"\| the database \|  \| [\d.]+ \| \d+ \| .* MB on disk \|", page)
    (leaked,) = re.search(r"(\d+) leaked items", page).groups()
    assert 0 < int(leaked) <= 40
    assert page.count("| view `") > 15


@pytest.mark.skipif(
    os.environ.get("DECON_WHOLE_SESSION") != "1",
    reason="takes two minutes, most of them waiting for processes: set DECON_WHOLE_SESSION=1",
)
def test_a_grid_is_filled_and_told_partition_by_partition(tmp_path):
    page = tmp_path / "grid.md"
    command = [sys.executable, "-m", "bench", "--grid"]
    sizes = ["--benchmarks", "2", "--packs", "2", "--shards", "1"]
    subprocess.run([*command, *sizes, "--out", page], stdout=subprocess.DEVNULL, check=True)
    written = page.read_text()
    assert "2 benchmarks x 2 packs x 1 shards: 4 partitions, 2 shards" in written
    lines = {
        line.split("|")[1].strip(): line.split("|") for line in written.splitlines() if "|" in line
    }
    n_runs, n_partitions, _, n_read = (int(value) for value in lines["first backfill"][8:12])
    assert (n_runs, n_read) == (4, 2)
    assert n_partitions == 9  # records, snapshot and indexes are 5 of them
    assert [int(value) for value in lines["one more benchmark"][9:10]] == [4]
    assert int(lines["one more benchmark"][11]) == 2
    assert int(lines["nothing to do: `backfill`"][8]) == 0
    assert all(float(lines[name][6]) > 0 for name in ("then mixtures and report", "`status`"))


def test_a_grid_of_nothing_is_refused(capsys):
    assert main(["--grid", "--packs", "0"]) == 2
    assert "n_packs" in capsys.readouterr().err


def test_the_library_finds_what_a_scan_finds_and_is_measured_beside_it(sources, capsys):
    texts, evals, _ = sources
    given = ["--evals", str(evals), "--texts", str(texts), "--mb", "0.4", "--rounds", "1"]
    library.main(given)  # fails if the two find other leaks
    said = capsys.readouterr().out
    assert re.search(r"\| scan \| \d+ \| 1\.00 \|", said)
    for way in (library.STRINGS, library.ARROW, library.ONE_BY_ONE):
        assert re.search(rf"\| {way} \| \d+ \| \d+\.\d\d \|", said)


def test_layouts_are_measured_by_what_a_scan_reads_of_them(tmp_path, capsys):
    folder = tmp_path / "given"
    folder.mkdir()
    texts = {name: f"{name} " + " ".join(f"word{n}" for n in range(9)) for name in ("seen", "kept")}
    (folder / "rows.jsonl").write_text(json.dumps({"text": texts["seen"]}) + "\n")
    (folder / "rows.other").write_text(texts["kept"])
    slot = {"row": 0, "slot": "text", "visible": True, "role": None}
    lines = [
        {"file": "rows.jsonl", "text": texts["seen"]},
        {"file": "rows.other", "text": texts["kept"]},
    ]
    (folder / "slots.jsonl").write_text("".join(json.dumps(slot | line) + "\n" for line in lines))
    layouts.main(["--layouts", "trl_text", "--unknown", "1", "--folder", str(folder)])
    said = capsys.readouterr().out
    assert (
        "| layout | visible | visible read | hidden | hidden read | named | refused | missed"
        in said
    )
    assert "| trl_text (jsonl) | 3 | 3 | 0 | 0 | 0 | 0 | 0 | 0 |" in said
    assert "| rows.jsonl | 1 | 1 | 0 | 0 | 0 | 0 | 0 | 0 |" in said
    assert "| rows.other | 1 | 0 | 0 | 0 | 0 | 1 | 0 | 0 |" in said
    assert f"| **{folder}** | 2 | 1 | 0 | 0 | 0 | 1 | 0 | 0 |" in said
    assert "| **unknown layouts** | " in said


def test_a_sentence_is_named_by_its_path_or_one_above_it_and_else_missed(tmp_path):
    summary = {"unread": [{"path": "meta[].note", "n_bytes": 9}, {"path": "calls (JSON)[].*"}]}
    (tmp_path / "summary.json").write_text(json.dumps(summary))
    named = layouts.named_paths(tmp_path)
    places = {
        "meta[3].note": True,
        "meta[3].note.more[0]": True,
        "meta[3].notes": False,
        "meta": False,
        "calls (JSON) [0].query": True,
    }
    for place, is_named in places.items():
        assert any(one.fullmatch(layouts.plain_path(place)) for one in named) == is_named, place


def test_rows_count_as_refused_if_the_ledger_or_the_summary_names_them(tmp_path):
    (tmp_path / "summary.json").write_text(json.dumps({"not_looked_at": ["b/rows.xyz"]}))
    shards = [
        {"file": "a/1.jsonl", "is_read": True, "n_documents": 2, "unreadable": [{"row": 1}]},
        {"file": "c/1.jsonl", "is_read": False},
        {"file": "d/1.json", "is_read": True, "n_documents": 0, "unreadable": [{"row": 0}]},
    ]
    (tmp_path / "ledger.jsonl").write_text("".join(json.dumps(one) + "\n" for one in shards))
    refused = layouts.refused_rows(tmp_path, ["a", "b", "c", "d", "e"])
    rows = {place: [is_refused(row) for row in (0, 1)] for place, is_refused in refused.items()}
    nowhere = [False, False]  # a file that is named nowhere is silently missed
    whole = [True, True]
    assert rows == {"a": [False, True], "b": whole, "c": whole, "d": whole, "e": nowhere}


def test_a_sentence_that_is_found_only_in_hidden_text_is_marked_as_such(tmp_path):
    matches = [
        {"file": "a/1.jsonl", "instance_index": 0, "slot_kind": "hidden"},
        {"file": "a/1.jsonl", "instance_index": 1, "slot_kind": "hidden"},
        {"file": "a/1.jsonl", "instance_index": 1, "slot_kind": "text"},
    ]
    pq.write_table(pa.Table.from_pylist(matches), tmp_path / "matches.parquet")
    assert layouts.read_items(tmp_path) == {("a", 0): False, ("a", 1): True}
