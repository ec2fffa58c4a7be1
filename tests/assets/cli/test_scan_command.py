"""`decon-assets scan`, as typed: what lies in the output folder, and how it ends."""

import bz2
import gzip
import io
import json
import logging
import os
import random
import re
import signal
import subprocess
import sys
import time
from base64 import b64encode
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from decon_assets.cli.main import main
from decon_assets.terminal.progress import ShardProgress
from decon_core.library.page import report_in
from decon_core.report.blind_spots import QUESTIONS_LEFT_OUT
from decon_core.wording import percent
from tests.core.report.pages import data_of

_SYLLABLES = tuple(consonant + vowel for consonant in "bdfgklmnprstvz" for vowel in "aeiou")


def invented(seed: object, n: int) -> str:
    rng = random.Random(str(seed))
    return " ".join("".join(rng.choices(_SYLLABLES, k=3)) for _ in range(n))


_URDU = "تمام انسان آزاد اور حقوق و عزت کے اعتبار سے برابر پیدا ہوئے ہیں"


@dataclass
class Place:
    """Benchmarks in the reference tool's form, shards in two folders, a policy file."""

    folder: Path

    @property
    def out(self) -> Path:
        return self.folder / "found"

    def item(self, benchmark: str, number: int) -> dict:
        return {
            "eval_key": benchmark,
            "eval_instance_index": number,
            "split": "test",
            "question": invented((benchmark, number, "q"), 40),
            "answer": invented((benchmark, number, "a"), 8),
        }

    def leak(self, benchmark: str, number: int) -> str:
        item = self.item(benchmark, number)
        return f"{item['question']}\n{item['answer']}"

    def write_evals(self, *benchmarks: str) -> None:
        folder = self.folder / "evals"
        folder.mkdir(exist_ok=True)
        for name in benchmarks:
            rows = [self.item(name, number) for number in range(6)]
            with gzip.open(folder / f"{name}_test-1.jsonl.gz", "wt") as file:
                file.writelines(json.dumps(row) + "\n" for row in rows)

    def empty_evals(self) -> None:
        for path in (self.folder / "evals").iterdir():
            path.unlink()
        (self.folder / "evals" / "x.jsonl").write_text("")

    def write_shard(self, name: str, *leaks: tuple[str, int], extra: bytes = b"") -> Path:
        """A shard whose row k+1 holds leak k."""
        rows = [{"id": f"{name}-{row}", "text": invented((name, row), 60)} for row in range(8)]
        for row, leak in enumerate(leaks, start=1):
            rows[row]["text"] += f"\n{self.leak(*leak)}\n"
        path = self.folder / "corpus" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        content = b"".join(json.dumps(row).encode() + b"\n" for row in rows) + extra
        path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
        return path

    def scan(self, *arguments: object, corpus: object = None, has_page: bool = False) -> int:
        return main(self.arguments(*arguments, corpus=corpus, has_page=has_page)[1:])

    def arguments(
        self, *arguments: object, corpus: object = None, has_page: bool = False
    ) -> list[str]:
        """By default without the page, which takes seconds."""
        return [
            str(Path(sys.executable).with_name("decon-assets")), "scan",
            "--evals", str(self.folder / "evals"),
            str(self.folder / "corpus" if corpus is None else corpus),
            "--out", str(self.out),
            "--policy", str(self.folder / "policy.toml"),
            *map(str, arguments),
            *([] if has_page else ["--no-page"]),
        ]  # fmt: skip

    def write_prompts(self, name: str, *items: tuple[str, int]) -> None:
        """Documents with a question of a benchmark, and no answer."""
        rows = [
            {
                "id": f"{name}-{row}",
                "text": f"{invented((name, row), 30)} {self.item(*item)['question']}",
            }
            for row, item in enumerate(items)
        ]
        path = self.folder / "corpus" / name
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))

    def write_policy(self, **settings: object) -> None:
        settings = {"tokenizer_str": "words"} | settings
        lines = [f"{name} = {json.dumps(value)}" for name, value in settings.items()]
        (self.folder / "policy.toml").write_text("\n".join(lines))

    def leaks(self) -> set[tuple]:
        rows = pq.read_table(self.out / "matches.parquet").to_pylist()
        return {
            (row["file"], row["row"], row["benchmark"], row["instance_index"])
            for row in rows
            if row["is_contaminated"]
        }

    def ledger(self) -> dict[str, dict]:
        lines = (self.out / "ledger.jsonl").read_text().splitlines()
        return {line["file"]: line for line in map(json.loads, lines)}

    def summary(self) -> dict:
        return json.loads((self.out / "summary.json").read_text())

    def written(self) -> dict[str, bytes]:
        """All that a person gets."""
        return {
            str(path.relative_to(self.out)): path.read_bytes()
            for path in sorted(self.out.rglob("*"))
            if path.is_file() and ".store" not in path.parts
        }


@pytest.fixture
def place(tmp_path):
    place = Place(tmp_path)
    place.write_evals("harbor", "ledger")
    place.write_policy()
    place.write_shard("a/s.jsonl", ("harbor", 0), ("ledger", 1))
    place.write_shard("b/s.jsonl.gz", ("harbor", 2))
    place.write_shard("b/clean.jsonl")
    return place


EXPECTED = {
    ("a/s.jsonl", 1, "harbor", 0),
    ("a/s.jsonl", 2, "ledger", 1),
    ("b/s.jsonl.gz", 1, "harbor", 2),
}


def test_every_leak_is_found_in_whichever_folder_below_it_lies(place, capsys):
    assert place.scan() == 0
    assert place.leaks() == EXPECTED
    said = capsys.readouterr()
    assert "3 of 24 documents contain a leak" in said.out
    assert str(place.out / "matches.parquet") in said.out
    assert "3 of 3 shards" in said.err
    ledger = place.ledger()
    assert ledger["a/s.jsonl"]["n_documents"] == 8
    assert ledger["a/s.jsonl"]["n_contaminated_documents"] == 2
    assert ledger["b/clean.jsonl"]["n_matches"] == 0
    summary = place.summary()
    assert summary["benchmarks"]["harbor"]["n_leaked_items"] == 2
    assert summary["n_contaminated_documents"] == 3


def test_output_is_not_written_into_the_corpus_nor_where_no_folder_can_be_made(place, capsys):
    before = {path: path.stat().st_mtime_ns for path in place.folder.rglob("*")}
    assert place.scan("--out", place.folder / "corpus" / "b" / "..") == 2
    assert "the output folder is also the corpus" in capsys.readouterr().err
    assert {path: path.stat().st_mtime_ns for path in place.folder.rglob("*")} == before
    assert place.scan("--out", "/proc/nothing/here") == 2
    assert "a folder that can be created" in capsys.readouterr().err
    (place.folder / "empty.yaml").touch()
    assert place.scan("--evals", place.folder / "empty.yaml") == 2
    assert "empty.yaml: no benchmark; expected recipes" in capsys.readouterr().err


def test_questions_without_their_answers_are_counted_beside_leaks_and_not_as_clean(place, capsys):
    """Prompts for reinforcement learning: one item leaked elsewhere, and is not counted twice."""
    place.write_prompts("prompts.jsonl", ("harbor", 3), ("harbor", 4), ("harbor", 0))
    assert place.scan("--compat", "--detectors", "decon", "--fail-on-leak", has_page=True) == 3
    said = capsys.readouterr().out
    assert "3 of 27 documents contain a leak" in said
    assert "3 more contain a question without its answer: neither a leak nor clean" in said
    assert "no answer" in said.splitlines()[0]
    summary = place.summary()
    assert (summary["n_no_answer"], summary["n_no_answer_documents"]) == (3, 3)
    harbor = summary["benchmarks"]["harbor"]
    assert (harbor["n_leaked_items"], harbor["n_no_answer_items"]) == (2, 2)
    assert harbor["n_no_answer_documents"] == 3
    line = place.ledger()["prompts.jsonl"]
    counts = ("n_leaks", "n_no_answer", "n_no_answer_documents")
    assert [line[name] for name in counts] == [0, 3, 3]
    # The reference implementation's form stays as it was published: leaks alone.
    files = [*(place.out / "compat").rglob("*.jsonl")]
    lines = [line for path in files for line in path.read_text().splitlines()]
    assert lines
    assert not any("prompts.jsonl" in json.loads(line)["training_file"] for line in lines)
    # What reads a scanned folder counts the same.
    assert main(["check", "--report", str(place.out), "--max-rate", "1"]) == 0
    assert "33.3 %" in capsys.readouterr().out
    held = ["--max-no-answer-rate", "0.1"]
    assert main(["check", "--report", str(place.out), *held]) == 1
    assert "2 of 6 items are found without the answer" in capsys.readouterr().out


def test_an_item_twice_in_a_document_is_one_leak_in_all_files(place):
    leak, between = place.leak("harbor", 5), invented("between", 900)
    row = {"id": "twice", "text": f"{invented('a', 30)}\n{leak}\n{between}\n{leak}\n"}
    (place.folder / "corpus" / "twice.jsonl").write_text(json.dumps(row) + "\n")
    assert place.scan() == 0
    ledger, summary = place.ledger(), place.summary()
    assert ledger["twice.jsonl"]["n_matches"] == 2
    assert ledger["twice.jsonl"]["n_leaks"] == 1
    assert sum(line["n_leaks"] for line in ledger.values()) == summary["n_leaks"] == 4


def test_a_preset_that_looks_for_fewer_questions_says_so(place, capsys):
    place.write_prompts("prompts.jsonl", ("harbor", 3))
    assert place.scan("--preset", "reference", has_page=True) == 0
    assert QUESTIONS_LEFT_OUT in capsys.readouterr().out
    assert main(["check", "--report", str(place.out), "--max-no-answer-rate", "1"]) == 1
    assert QUESTIONS_LEFT_OUT in capsys.readouterr().out


def test_a_scan_writes_a_page_once_and_names_what_to_do_next(place, capsys):
    assert place.scan(has_page=True) == 0
    page = place.out / "report.html"
    assert f"next: open {page} in a browser" in capsys.readouterr().out
    first = page.read_bytes()
    assert place.scan(has_page=True) == 0
    assert page.read_bytes() == first
    assert place.scan() == 0
    assert not page.exists()  # rather none than that of another scan
    assert place.scan("--sample", "50%", has_page=True) == 0
    assert "Not everything was scanned" in data_of(page, "overview")["opening"]["verdict"]


def test_rows_without_a_recipe_get_one_in_the_output_folder(place, capsys):
    file = place.folder / "raw.jsonl"
    words = " ".join(f"word{n}" for n in range(30))
    file.write_text(json.dumps({"question": f"Why {words}?", "answer": "so"}) + "\n")
    (place.folder / "corpus" / "raw.jsonl").write_text(json.dumps({"text": f"Why {words}? so"}))
    out = ["--out", str(place.out), "--no-page"]
    assert main(["scan", "--evals", str(file), str(place.folder / "corpus"), *out]) == 0
    assert "recipes for raw; comments give the reasons" in capsys.readouterr().out
    assert place.leaks() == {("raw.jsonl", 0, "raw", 0)}
    recipes = str(place.out / "evals.yaml")
    again = ["scan", "--evals", recipes, str(place.folder / "corpus"), *out]
    assert main(again) == 0
    assert place.leaks() == {("raw.jsonl", 0, "raw", 0)}


def test_a_folder_of_rows_may_have_their_recipes(place, capsys):
    """As `init` writes them; but no row may be without a recipe."""
    words = " ".join(f"word{n}" for n in range(30))
    raw = place.folder / "raw"
    raw.mkdir()
    (raw / "a.jsonl").write_text(json.dumps({"question": f"Why {words}?", "answer": "so"}) + "\n")
    (place.folder / "corpus" / "raw.jsonl").write_text(json.dumps({"text": f"Why {words}? so"}))
    command = ["scan", "--evals", str(raw), str(place.folder / "corpus"), "--no-page"]
    assert main([*command, "--out", str(place.out)]) == 0
    text = (place.out / "evals.yaml").read_text()
    (raw / "evals.yaml").write_text(text)
    assert main([*command, "--out", str(place.out)]) == 0
    assert place.leaks() == {("raw.jsonl", 0, "a", 0)}
    (raw / "b.jsonl").write_text(json.dumps({"question": "Why?", "answer": "so"}) + "\n")
    assert main([*command, "--out", str(place.out)]) == 2
    assert "give the recipe file itself" in capsys.readouterr().err


def test_nothing_is_written_if_there_is_no_corpus(place, capsys):
    file = place.folder / "raw.jsonl"
    file.write_text(json.dumps({"question": "Why is that?", "answer": "so"}) + "\n")
    nowhere = str(place.folder / "nowhere")
    assert main(["scan", nowhere, "--evals", str(file), "--out", str(place.out)]) == 2
    assert "no such file or folder" in capsys.readouterr().err
    assert not place.out.exists()


def test_a_benchmark_file_that_cannot_be_read_or_chosen_from_stops_the_scan(place, capsys):
    raw = place.folder / "raw"
    raw.mkdir()
    words = " ".join(f"word{n}" for n in range(30))
    (raw / "a.jsonl").write_text(json.dumps({"question": f"Why {words}?", "answer": "so"}) + "\n")
    (raw / "b.jsonl").write_text("not JSON\n")
    command = ["scan", "--evals", str(raw), str(place.folder / "corpus")]
    assert main([*command, "--out", str(place.out), "--no-page"]) == 2
    assert "b.jsonl" in capsys.readouterr().err
    assert not (place.out / "summary.json").exists()


def test_scanning_again_reads_nothing_and_writes_the_same(place, capsys):
    place.scan("--compat", "--detectors", "decon")
    first = place.written()
    capsys.readouterr()
    assert place.scan("--compat", "--detectors", "decon") == 0
    assert place.written() == first
    said = capsys.readouterr().err
    assert "0 shards to scan" in said
    assert "0 built, 2 reused" in said


def test_a_new_shard_is_all_that_is_scanned(place, capsys):
    place.scan()
    place.write_shard("c/late.jsonl", ("ledger", 5))
    capsys.readouterr()
    assert place.scan() == 0
    assert place.leaks() == EXPECTED | {("c/late.jsonl", 1, "ledger", 5)}
    assert "1 shard to scan" in capsys.readouterr().err


def test_another_benchmark_means_other_idf_and_so_another_scan(place):
    place.scan()
    place.write_evals("orchard")
    place.write_shard("c/late.jsonl", ("orchard", 3))
    assert place.scan() == 0
    assert ("c/late.jsonl", 1, "orchard", 3) in place.leaks()
    assert place.leaks() >= EXPECTED


def test_with_a_sketch_other_benchmarks_are_looked_up_first(place, capsys):
    assert place.scan("--sketch") == 0
    first = place.written()
    place.write_evals("orchard")
    capsys.readouterr()
    assert place.scan("--sketch") == 0
    assert "no match is possible in 1 of 3 blocks, which were not read" in capsys.readouterr().err
    with_sketch = pq.read_table(place.out / "matches.parquet")
    place.out.rename(place.folder / "with")
    assert place.scan() == 0
    assert pq.read_table(place.out / "matches.parquet").equals(with_sketch)
    assert place.leaks() == EXPECTED
    place.write_evals("harbor", "ledger")
    (place.folder / "evals" / "orchard_test-1.jsonl.gz").unlink()
    assert place.scan() == 0
    assert place.written() == first


def test_a_new_shard_is_added_to_the_sketch_of_a_folder(place, capsys):
    place.scan("--sketch")
    place.write_shard("c/late.jsonl", ("ledger", 5))
    place.scan("--sketch")
    place.write_evals("orchard")
    capsys.readouterr()
    assert place.scan("--sketch") == 0
    assert "no match is possible in 1 of 4 blocks" in capsys.readouterr().err
    assert place.leaks() == EXPECTED | {("c/late.jsonl", 1, "ledger", 5)}


def test_a_higher_threshold_changes_the_call_without_another_scan(place, capsys):
    shard = place.folder / "corpus" / "a" / "s.jsonl"
    rows = [json.loads(line) for line in shard.read_text().splitlines()]
    rows[1]["text"] = rows[1]["text"].replace(place.item("harbor", 0)["answer"], "")
    shard.write_text("".join(json.dumps(row) + "\n" for row in rows))
    place.write_policy(detectors=["decon"], contamination_score_threshold=0.7)
    place.scan()
    assert place.leaks() == EXPECTED
    place.write_policy(detectors=["decon"], contamination_score_threshold=0.9)
    capsys.readouterr()
    place.scan()
    assert place.leaks() == EXPECTED - {("a/s.jsonl", 1, "harbor", 0)}
    assert "0 shards to scan" in capsys.readouterr().err


def test_a_threshold_of_a_detector_that_is_not_chosen_is_told(place, capsys):
    place.write_policy(contamination_score_threshold=0.7, aligned_threshold=0.7)
    place.scan()
    told = "policy.contamination_score_threshold: found 0.7, which has no effect on aligned"
    said = capsys.readouterr().err
    assert f"{told}; expected decon among the detectors" in said
    assert "policy.aligned_threshold" not in said


def test_one_file_or_a_glob_is_a_corpus_as_well(place):
    assert place.scan(corpus=place.folder / "corpus" / "a" / "s.jsonl") == 0
    assert {file for file, *_ in place.leaks()} == {"s.jsonl"}
    assert place.scan(corpus=place.folder / "corpus" / "**" / "s.*") == 0
    assert place.leaks() == EXPECTED


def test_an_answer_below_the_corpus_is_no_part_of_it(place):
    place.folder = place.folder / "corpus" / ".." / "corpus"
    evals, policy = place.folder.parent / "evals", place.folder.parent / "policy.toml"
    out = place.folder / "found"
    command = ["scan", "--evals", evals, place.folder, "--out", out, "--policy", policy]
    for _ in range(2):
        assert main([str(part) for part in command]) == 0
        assert json.loads((out / "summary.json").read_text())["n_shards"] == 3


def skipped_in(place):
    lines = (place.out / "skipped.jsonl").read_text().splitlines()
    return {one["path"]: (one["why"], one["is_on_purpose"]) for one in map(json.loads, lines)}


def test_what_is_no_shard_is_named_and_changes_the_exit_code(place, capsys):
    corpus = place.folder / "corpus"
    outside = place.folder / "outside"
    corpus.rename(outside)
    corpus.mkdir()
    (corpus / "linked").symlink_to(outside)  # all shards are behind a link
    (corpus / "linked" / "up").symlink_to(corpus)
    (corpus / "README.md").write_text("hello")
    (corpus / "_SUCCESS").write_text("")
    (corpus / ".cache").mkdir()
    assert place.scan() == 0
    assert place.leaks() == {(f"linked/{file}", *rest) for file, *rest in EXPECTED}
    assert skipped_in(place) == {
        ".cache/": ("its name begins with _ or .", True),
        "README.md": ("metadata of a dataset", True),
        "_SUCCESS": ("its name begins with _ or .", True),
        "linked/up/": (f"the same folder as {corpus}", True),
    }
    assert place.summary()["not_looked_at"] == []
    assert len(place.summary()["set_aside"]) == 4
    names = [f"notes-{n}.docx" for n in range(20)]
    for name in names:
        (corpus / name).write_text("words")
    (corpus / "gone.jsonl").symlink_to("nowhere")
    os.mkfifo(corpus / "pipe.jsonl")
    (corpus / "x.jsonl").mkdir()
    (corpus / "x.jsonl" / "part-0").write_text("words")
    capsys.readouterr()
    assert place.scan(has_page=True) == 4
    assert "NOT scanned: 23 files or folders: `gone.jsonl` (a broken link)" in last_line(capsys)
    expected = dict.fromkeys([*names, "x.jsonl/part-0"], ("no format of shards", False))
    expected["gone.jsonl"] = "a broken link", False
    expected["pipe.jsonl"] = "a fifo", False
    assert {path: why for path, why in skipped_in(place).items() if not why[1]} == expected
    assert place.summary()["not_looked_at"] == sorted(expected)
    assert main(["check", "--report", str(place.out), "--max-rate", "1"]) == 4
    told = "23 files or folders were not read: `gone.jsonl` (a broken link), "
    assert told in capsys.readouterr().out
    assert place.scan("--allow-skipped") == 0


def coverage_in(out):
    """The line on what was scanned: the last one before the next steps."""
    return out.partition("\nnext: ")[0].rstrip("\n").splitlines()[-1]


def last_line(capsys):
    return coverage_in(capsys.readouterr().out)


def test_a_row_over_the_limit_refuses_its_file_and_no_other(place, capsys):
    long = json.dumps({"id": "long", "text": "word " * 10_000}).encode() + b"\n"
    path = place.write_shard("long.jsonl.gz", extra=long)
    assert place.scan("--max-row-bytes", "20 kB") == 1
    said = capsys.readouterr().err
    assert f"{path}: row 8, byte " in said
    assert "a row of more than 20" in said
    assert place.leaks() == EXPECTED
    assert place.scan() == 0
    assert place.scan("--max-row-bytes", "much") == 2


def test_a_scan_that_could_read_no_row_is_no_clean_one(place, capsys):
    assert place.scan("--text", "body", "--clean-evals") == 1
    said = capsys.readouterr()
    assert 'rows, none readable with text = "body" (the first: field' in said.err
    assert "the file has the fields id (" in said.err
    assert '. Leave out text = "body" (--text) to read every text of a row' in said.err
    assert "NOT scanned: 3 shards" in coverage_in(said.out)
    assert "not written" in said.out
    assert not (place.out / "clean").exists()
    assert place.summary()["n_unreadable"] == 24
    place.write_shard("c/s.jsonl", extra=b"no json\n")
    assert place.scan() == 4


@pytest.mark.parametrize("name", ["CORPUS", "--evals", "--out"])
def test_an_empty_place_is_not_the_current_folder(place, capsys, monkeypatch, name):
    monkeypatch.chdir(place.folder)
    code = place.scan(corpus="") if name == "CORPUS" else place.scan(name, "")
    assert code == 2
    assert re.search(f"{name}'.*empty", capsys.readouterr().err)
    assert not place.out.exists()


def test_unreadable_rows_are_counted_and_named_and_the_rest_is_scanned(place, capsys):
    place.write_shard("b/s.jsonl.gz", ("harbor", 2), extra=b'{broken\n{"id": 1}\n{"text": 5}\n')
    assert place.scan("--text", "text") == 4
    assert place.leaks() == EXPECTED
    said = capsys.readouterr().out
    assert "3 rows could not be read" in said
    assert "NOT scanned: 3 rows" in coverage_in(said)
    assert place.scan("--text", "text", "--allow-unreadable") == 0
    assert place.scan("--text", "text", "--fail-on-leak") == 3
    unreadable = place.ledger()["b/s.jsonl.gz"]["unreadable"]
    assert [(row["line"], row["reason"]) for row in unreadable] == [
        (9, "not JSON"),
        (10, "field missing"),
        (11, "field is not text"),
    ]


def test_a_shard_that_breaks_off_is_named_and_the_others_are_scanned(place, capsys):
    path = place.write_shard("b/s.jsonl.gz", ("harbor", 2))
    path.write_bytes(path.read_bytes()[:-30])
    assert place.scan("--compat", "--detectors", "decon") == 1
    assert place.leaks() == {leak for leak in EXPECTED if leak[0] == "a/s.jsonl"}
    said = capsys.readouterr()
    assert "the data is damaged or truncated" in said.err
    assert "1 of 3 shards could not be read" in said.out
    line = place.ledger()["b/s.jsonl.gz"]
    assert line["is_read"] is False
    assert "damaged" in line["problems"][0]
    assert not list((place.out / "compat" / "b").glob("s.jsonl*"))
    place.write_shard("b/s.jsonl.gz", ("harbor", 2))
    assert place.scan("--compat", "--detectors", "decon") == 0
    assert place.leaks() == EXPECTED


def test_what_a_shard_that_breaks_off_held_leaves_no_trace(place):
    rows = [json.dumps({"id": n, "text": place.leak("harbor", 0) + f" {n}"}) for n in range(4000)]
    path = place.write_shard("a.jsonl.gz", extra="\n".join(rows).encode())
    path.write_bytes(path.read_bytes()[:-30])
    assert place.scan() == 1
    path.unlink()
    assert place.scan() == 0
    again = place.written()
    subprocess.run(["rm", "-r", place.out], check=True)
    assert place.scan() == 0
    assert place.written() == again


def test_no_benchmark_is_called_clean_while_a_shard_could_not_be_read(place, capsys):
    assert place.scan("--clean-evals") == 0
    manifest = json.loads((place.out / "clean" / "manifest.json").read_text())
    assert manifest["n_unreadable_rows"] == 0
    assert manifest["n_invisible_items"] == {"aligned": 0}
    path = place.write_shard("b/s.jsonl.gz", ("harbor", 2))
    path.write_bytes(path.read_bytes()[:-30])
    assert place.scan("--clean-evals") == 1
    assert not (place.out / "clean").exists()
    capsys.readouterr()
    (path.parent / "notes.docx").write_text("words")
    assert place.scan("--clean-evals") == 1
    said = capsys.readouterr().out
    assert "clean benchmarks: not written" in said
    (told,) = (line for line in said.splitlines() if line.startswith("clean benchmarks"))
    assert "`b/s.jsonl.gz`" in told
    assert "--allow" not in told  # no option accepts the shard


def test_no_benchmark_is_called_clean_if_no_document_was_searched(place, capsys):
    path = place.folder / "tokens"
    path.mkdir()
    (path / "a.jsonl").write_text('{"input_ids": [1, 2, 3, 4, 5, 6, 7, 8, 9]}\n' * 9)
    for options in ((), ("--allow-unread",), ("--ignore", "input_ids"), ("--ignore", "*")):
        assert place.scan("--clean-evals", *options, corpus=path) == 4
        said = capsys.readouterr().out
        assert "clean benchmarks: not written, because no document was searched" in said
        assert "to write them anyway" not in said
        assert not (place.out / "clean").exists()


def test_no_benchmark_is_called_clean_while_rows_or_files_were_not_read(place, capsys):
    path = place.write_shard("d/s.jsonl", extra=b"no json\n")
    (path.parent / "notes.docx").write_text("words")
    options = "--allow-unreadable", "--allow-skipped"
    for given in ((), options[:1], options[1:]):
        assert place.scan("--clean-evals", *given) == 4
        left = " ".join(option for option in options if option not in given)
        assert f"(to write them anyway: {left})" in capsys.readouterr().out
        assert not (place.out / "clean").exists()
    assert place.scan("--clean-evals", *options) == 0
    manifest = json.loads((place.out / "clean" / "manifest.json").read_text())
    assert manifest["n_unreadable_rows"] == 1


def test_leaks_end_with_3_only_when_that_was_asked_for(place):
    assert place.scan("--fail-on-leak") == 3
    clean = place.folder / "corpus" / "b" / "clean.jsonl"
    assert place.scan("--fail-on-leak", corpus=clean) == 0


def test_compat_keeps_shards_of_one_name_apart(place):
    assert place.scan("--compat", "--detectors", "decon") == 0
    folder = place.out / "compat"
    names = {str(path.relative_to(folder)) for path in folder.rglob("*.jsonl")}
    assert names == {
        "a/s.jsonl-simple-0.80.jsonl",
        "b/s.jsonl.gz-simple-0.80.jsonl",
        "b/clean.jsonl-simple-0.80.jsonl",
    }
    lines = (folder / "a/s.jsonl-simple-0.80.jsonl").read_text().splitlines()
    found = {(line["training_line"], line["eval_key"]) for line in map(json.loads, lines)}
    assert found == {(1, "harbor"), (2, "ledger")}


def test_conversations_and_nested_fields_are_read_where_they_are_said_to_be(place):
    path = place.folder / "corpus" / "chat.jsonl"
    leak = place.leak("ledger", 4)
    turns = [{"role": "user", "content": leak}, {"role": "assistant", "content": "well"}]
    path.write_text(json.dumps({"messages": turns, "meta": {"text": leak}}) + "\n")
    expected = {("chat.jsonl", 0, "ledger", 4)}
    assert place.scan("--messages", "messages", corpus=path) == 4  # the other text is not read
    assert place.leaks() == expected
    assert place.scan("--text", "meta.text", "--ignore", "messages", corpus=path) == 0
    assert place.leaks() == expected
    assert place.scan(corpus=path) == 0
    assert place.leaks() == expected


def test_only_chosen_turns_are_read_and_the_match_says_in_which_it_begins(place):
    path = place.folder / "corpus" / "chat.jsonl"
    turns = [
        {"role": "user", "content": f"Hello there. {invented('hello', 30)}"},
        {"role": "assistant", "content": place.leak("ledger", 4)},
    ]
    path.write_text(json.dumps({"messages": turns}) + "\n")
    assert place.scan("--messages", "messages", "--role", "user", corpus=path) == 4
    assert place.summary()["unread"][0]["path"] == "messages[][role=assistant].content"
    assert place.leaks() == set()
    ignored = "messages[][role=user]"
    options = ("--messages", "messages", "--role", "assistant", "--ignore", ignored)
    assert place.scan(*options, corpus=path) == 0
    assert place.leaks() == {("chat.jsonl", 0, "ledger", 4)}
    parts = pq.read_table(place.out / "matches.parquet")["question_part"].to_pylist()
    assert set(parts) == {"messages[1].content"}
    assert place.scan("--role", "user", corpus=path) == 2


def test_rows_that_say_they_are_of_a_benchmark_are_reported(place, capsys):
    names = [("openai/gsm8k", "test")] * 3 + [("openai/gsm8k", "train"), ("mine", "test")]
    rows = [
        {"text": invented(number, 60), "data_source": name, "extra_info": {"split": split}}
        for number, (name, split) in enumerate(names)
    ]
    path = place.folder / "corpus" / "verl.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert place.scan(corpus=path, has_page=True) == 0
    said = "3 rows of verl.jsonl say that they are openai/gsm8k, split test (benchmark gsm8k)"
    assert said in capsys.readouterr().out.splitlines()
    (found,) = place.summary()["origins"]
    assert (found["field"], found["n_rows"]) == ("data_source", 3)
    with duckdb.connect(str(report_in(place.out)), read_only=True) as connection:
        query = "SELECT value, split, benchmark, is_held_out, n_rows FROM row_origins ORDER BY ALL"
        assert connection.sql(query).fetchall() == [
            ("mine", "test", None, True, 1),
            ("openai/gsm8k", "test", "gsm8k", True, 3),
            ("openai/gsm8k", "train", "gsm8k", False, 1),
        ]


def test_preference_pairs_are_one_document_of_several_fields(place):
    path = place.folder / "corpus" / "pairs.jsonl"
    row = {"prompt": "Say it.", "chosen": "No.", "rejected": place.leak("ledger", 4)}
    path.write_text(json.dumps(row) + "\n")
    fields = [part for name in row for part in ("--text", name)]
    assert place.scan(*fields, corpus=path) == 0
    assert place.leaks() == {("pairs.jsonl", 0, "ledger", 4)}
    parts = pq.read_table(place.out / "matches.parquet")["question_part"].to_pylist()
    assert set(parts) == {"rejected"}


def test_a_recipe_file_says_what_the_benchmarks_are(place):
    recipes = {"evals": {"harbor": {"local_path": "evals/harbor_", "splits": ["test"]}}}
    (place.folder / "evals.yaml").write_text(json.dumps(recipes))
    assert place.scan("--evals", place.folder / "evals.yaml") == 0
    assert place.leaks() == {leak for leak in EXPECTED if leak[2] == "harbor"}


def test_the_reference_sampling_is_a_setting_of_the_policy(place):
    place.write_policy(sampling="reference")
    assert place.scan() == 0
    assert place.leaks() == EXPECTED
    assert place.summary()["policy"]["sampling"] == "reference"


def test_a_script_that_the_tokenizer_splits_into_letters_is_named_with_the_remedy(place, capsys):
    rows = [{**place.item("urdu", n), "question": f"{n} {_URDU}"} for n in range(3)]
    (place.folder / "evals" / "urdu.jsonl").write_text(
        "".join(json.dumps(one) + "\n" for one in rows)
    )
    place.write_policy(tokenizer_str="cl100k", detectors=["ratcliff"])
    assert place.scan() == 0
    said = capsys.readouterr().err
    assert re.search(r"urdu: cl100k needs 3\.\d times as many tokens as o200k", said)
    assert said.count("times as many tokens") == 1
    assert 'tokenizer_str = "o200k" in [policy]' in said


def test_how_many_workers_leaves_no_trace(place):
    for number in range(3):
        path = place.write_shard(f"big/{number}.jsonl", ("harbor", number))
        path.write_bytes(path.read_bytes() * 40)
    place.scan()
    alone = place.written()
    subprocess.run(["rm", "-r", place.out], check=True)
    place.scan("--workers", 2)
    assert place.written() == alone


def test_a_scan_that_was_killed_leaves_no_answer_and_goes_on(place):
    for number in range(6):
        path = place.write_shard(f"big/{number}.jsonl", ("harbor", number))
        path.write_bytes(path.read_bytes() * 60)
    process = subprocess.Popen(place.arguments(), stdout=subprocess.DEVNULL)
    unjoined = place.out / ".store" / "unjoined"
    while process.poll() is None and not list(unjoined.glob("*/*/ledger.json")):
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    process.wait()
    if process.returncode == -signal.SIGKILL:
        assert list(unjoined.glob("*/*/ledger.json"))
        assert not (place.out / "summary.json").exists()
    assert place.scan() == 0
    assert place.leaks() >= EXPECTED
    resumed = place.written()
    subprocess.run(["rm", "-r", place.out], check=True)
    place.scan()
    assert place.written() == resumed


@pytest.mark.parametrize(
    ("break_it", "said"),
    [
        (lambda place: place.write_policy(no_such_setting=1), "no_such_setting"),
        (lambda place: (place.folder / "policy.toml").write_text("= 1"), "valid TOML"),
        (lambda place: (place.folder / "policy.toml").unlink(), "no such file"),
        (lambda place: (place.folder / "evals" / "x.jsonl").write_text("{}\n"), "no 'eval_key'"),
        (lambda place: (place.folder / "evals" / "x.jsonl").write_text("{\n"), "not JSON"),
        (lambda place: (place.folder / "evals").rename(place.folder / "e"), "no such file"),
        (lambda place: place.empty_evals(), "no row"),
        (lambda place: place.out.write_text(""), "not a folder; expected an output folder"),
        (lambda place: place.write_policy(detectors=[["decon"]]), "one of decon"),
        (lambda place: place.write_policy(longest_match_threshold=1.0), "below 1"),
        (lambda place: (place.folder / "corpus").rename(place.folder / "c"), "no such file"),
    ],
)
def test_a_wrong_input_ends_with_2_and_says_which(place, capsys, break_it, said):
    break_it(place)
    assert place.scan() == 2
    assert said in capsys.readouterr().err


def test_a_misspelt_table_in_the_file_of_an_engine_is_refused_before_the_scan(place, capsys):
    path = place.folder / "cluster.toml"
    path.write_text('[executon]\nengine = "slurm"\n')
    assert place.scan("--execution", str(path)) == 2
    said = capsys.readouterr()
    assert f"{path}: executon: found unknown key 'executon'" in said.err
    assert "Did you mean 'execution'?" in said.err
    assert not place.out.exists()


def test_progress_says_rate_and_time_left():
    stream = io.StringIO()
    progress = ShardProgress(stream)
    progress.update(0, 4, 0, 400_000_000, 0.0)
    assert "left" not in stream.getvalue()
    progress = ShardProgress(stream)
    progress.update(1, 4, 100_000_000, 400_000_000, 2.0)
    assert "1 of 4 shards, 100.0 MB at 50.0 MB/s, 6 s left" in stream.getvalue()
    progress.update(2, 4, 200_000_000, 400_000_000, 4.0)
    assert "2 of 4" not in stream.getvalue()  # a file is not a terminal: a line now and then
    progress.update(4, 4, 400_000_000, 400_000_000, 8.0)
    assert stream.getvalue().endswith("4 of 4 shards, 400.0 MB at 50.0 MB/s in 8 s\n")


def test_what_the_core_has_to_say_is_shown_among_the_progress():
    stream = io.StringIO()
    with ShardProgress(stream):
        logging.getLogger("decon_core.anything").info("compiling, %s", "once")
    logging.getLogger("decon_core.anything").info("not shown any more")
    assert stream.getvalue() == "compiling, once\n"


def test_help_shows_how_it_is_used_and_how_it_ends(capsys):
    assert main(["scan", "--help"]) == 0
    out = capsys.readouterr().out
    assert "Examples:" in out
    assert "Exit codes" in out


# Shards of several shapes -------------------------------------------------------------------------


def test_every_file_is_read_by_the_fields_that_it_has(place, capsys):
    corpus = place.folder / "corpus"
    chat = [{"role": "user", "content": place.leak("harbor", 3)}]
    (corpus / "chat.jsonl").write_text(json.dumps({"messages": chat, "id": "c0"}) + "\n")
    (corpus / "web.jsonl").write_text(json.dumps({"content": place.leak("harbor", 4)}) + "\n")
    table = pa.table({"body": [place.leak("harbor", 5)], "uid": ["u0"]})
    pq.write_table(table, corpus / "t.parquet")
    assert place.scan() == 0
    said = capsys.readouterr()
    assert "skipped" not in said.err
    new = {("chat.jsonl", "harbor", 3), ("web.jsonl", "harbor", 4), ("t.parquet", "harbor", 5)}
    found = place.leaks()
    assert {(file, benchmark, item) for file, _, benchmark, item in found} >= new
    assert found >= EXPECTED
    assert coverage_in(said.out) == "scanned 27 documents in 6 of 6 shards: complete"
    before = place.written()
    assert place.scan() == 0  # what was scanned stays scanned
    assert "0 shards to scan" in capsys.readouterr().err
    assert place.written() == before


@pytest.mark.parametrize(
    ("asked", "told", "more"),
    [
        ("query", "response", {}),
        ("input", "target", {}),
        ("inputs", "targets", {}),
        ("user", "assistant", {}),
        ("source", "target", {}),
        ("problem", "solution", {"text": "algebra"}),
    ],
)
def test_questions_and_answers_are_both_read_whatever_their_fields_are_called(
    place, capsys, asked, told, more
):
    item = place.item("harbor", 3)
    rows = [{**more, told: item["answer"], asked: item["question"]}] * 2
    path = place.folder / "pairs.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert place.scan(corpus=path) == 0
    assert {item for *_, item in place.leaks()} == {3}
    said = capsys.readouterr()
    assert "2 of 2 documents contain a leak" in said.out
    assert coverage_in(said.out).endswith(": complete")


def test_a_shard_without_text_is_named_and_not_clean_and_one_of_short_texts_is(place, capsys):
    folder = place.folder / "ids"
    folder.mkdir()

    def write(name, *rows):
        (folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows))

    write("text.jsonl", {"text": invented("text", 30)}, {"text": None, "times": [1, 2]})
    write("short.jsonl", {"text": "yes", "times": [1, 2]}, {"text": "no"})
    write("empty.jsonl", {"text": "", "n": 1})
    assert place.scan(corpus=folder) == 0
    write("ids.jsonl", *[{"id": "x", "lang": "en", "input_ids": [7, 8], "mask": [1]}] * 9)
    pq.write_table(pa.table({"text": [""], "ids": [[[7] * 8] * 8], "n": [1]}), folder / "b.parquet")
    assert place.scan(corpus=folder, has_page=True) == 4
    said = capsys.readouterr().out
    fields = r"`ids` \(.*\), `input_ids` \(.*\), `mask` \(.*\)"
    assert re.search(rf"no text in 10 of 10 rows in 2 shards of .*, only {fields}\n", said)
    assert coverage_in(said).endswith("NOT scanned: 10 of 10 rows without text")
    assert place.summary()["without_text"] == ["b.parquet", "ids.jsonl"]
    check = ["check", "--report", str(place.out), "--max-rate", "1"]
    assert main(check) == 4
    words = "in 2 shards of source `corpus` (`b.parquet`, `ids.jsonl`), only `"
    assert f"coverage: no text in 10 of 10 rows {words}" in capsys.readouterr().out
    ignored = "--ignore", "ids", "--ignore", "input_ids", "--ignore", "mask"
    assert place.scan(*ignored, corpus=folder, has_page=True) == 0
    assert main(check) == 0


def json_lines(*rows: object) -> bytes:
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def parquet(**columns: object) -> bytes:
    file = io.BytesIO()
    pq.write_table(pa.table(columns), file)
    return file.getvalue()


OTHER = {"text": invented("other", 60)}
# Places in which a text could count as clean without having been read.
HIDING = {
    "json.jsonl": lambda leak: json_lines(OTHER, {"data": json.dumps({"a": {"b": [leak]}})}),
    "twice.jsonl": lambda leak: json_lines({"text": json.dumps(json.dumps({"q": leak}))}),
    "messages.jsonl": lambda leak: json_lines(OTHER, {"turnz": [{"wer": "x", "was": leak}]}),
    "column.jsonl": lambda leak: json_lines({**OTHER, "other": leak}),
    "gzip.parquet": lambda leak: parquet(id=["a"], blob=[gzip.compress(leak.encode())]),
    "beside.parquet": lambda leak: parquet(
        text=[OTHER["text"], ""], blob=[b"", gzip.compress(leak.encode())]
    ),
    "utf16.parquet": lambda leak: parquet(text=[leak.encode("utf-16")]),
    "struct.parquet": lambda leak: parquet(s=[{"a": {"b": {"c": leak}}}]),
    "map.parquet": lambda leak: parquet(
        m=pa.array([[("k", leak)]], pa.map_(pa.string(), pa.string()))
    ),
    "nul.jsonl": lambda leak: json_lines({"text": "\0" * 3000 + leak}),
    "utf16.jsonl": lambda leak: json.dumps({"text": leak}).encode("utf-16"),
    "key.jsonl": lambda leak: json_lines(OTHER)[:-2] + b"," + json_lines({"text": leak})[1:],
    "bare.jsonl": lambda leak: json_lines(OTHER, leak, [leak]),
    "tools.jsonl": lambda leak: json_lines(
        {"messages": [{"role": "user", "content": "Go."}], "calls": [json.dumps({"q": leak})]}
    ),
    "long.jsonl": lambda leak: json_lines({"text": invented("long", 50_000) + leak}),
    "members.jsonl.gz": lambda leak: (
        gzip.compress(json_lines(OTHER)) + gzip.compress(json_lines({"text": leak}))
    ),
    "archive.zip": lambda leak: b"PK" + leak.encode(),
    "rows.jsonl.bz2": lambda leak: bz2.compress(json_lines({"text": leak})),
    "base64.jsonl": lambda leak: json_lines(OTHER, {"text": b64encode(leak.encode()).decode()}),
    "beside.jsonl": lambda leak: json_lines(OTHER | {"file": b64encode(leak.encode()).decode()}),
    "uri_beside.jsonl": lambda leak: json_lines(
        OTHER | {"url": f"data:text/plain;base64,{b64encode(leak.encode()).decode()}"}
    ),
    "uri.jsonl": lambda leak: json_lines(
        {"text": f"data:text/plain;base64,{b64encode(leak.encode()).decode()}"}
    ),
    "hex.jsonl": lambda leak: json_lines(OTHER, {"text": leak.encode().hex()}),
    "points.jsonl": lambda leak: json_lines(OTHER, {"codes": [*map(ord, leak)]}),
    "words.jsonl": lambda leak: json_lines({"tokens": leak.split()}),
    "returns.jsonl": lambda leak: json_lines(OTHER, {"text": leak}).replace(b"\n", b"\r"),
}


def test_text_in_any_place_is_found_or_named_as_not_read(place):
    folder = place.folder / "hiding"
    folder.mkdir()
    for name, hide in HIDING.items():
        (folder / name).write_bytes(hide(place.leak("harbor", 0)))
    (place.folder / "elsewhere").mkdir()
    (place.folder / "elsewhere" / "a.jsonl").write_bytes(
        json_lines({"text": place.leak("harbor", 0)})
    )
    (folder / "link").symlink_to(place.folder / "elsewhere")
    assert place.scan(corpus=folder, has_page=True) == 1
    with duckdb.connect(str(report_in(place.out)), read_only=True) as report:
        named = {name for (name,) in report.sql("SELECT place FROM not_read").fetchall()}
    found = {name for name, *_ in place.leaks()}
    assert {*HIDING, "link/a.jsonl"} - named == found - named
    assert {"uri.jsonl", "beside.jsonl", "uri_beside.jsonl"} <= named
    assert {"json.jsonl", "struct.parquet", "map.parquet", "link/a.jsonl"} <= found


def test_one_text_row_among_rows_of_token_ids_does_not_hide_them(place, capsys):
    rows = [{"id": "x", "input_ids": [7, 8]}] * 3 + [{"text": invented("text", 30)}]
    path = place.folder / "mixed.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert place.scan(corpus=path) == 4
    said = capsys.readouterr().out
    assert "no text in 3 of 4 rows in 1 shard of the documents (`mixed.jsonl`), only `input" in said
    assert coverage_in(said).endswith("NOT scanned: 3 of 4 rows without text")
    assert "\n0 of 1 document contain a leak\n" in said
    assert (place.summary()["n_documents"], place.summary()["n_without_text"]) == (1, 3)
    assert place.scan("--ignore", "input_ids", corpus=path) == 0


def test_rows_without_text_are_no_documents_of_a_sample(place, capsys):
    rows = [{"text": invented(f"row {n}", 20)} for n in range(120)]
    rows += [{"text": "", "input_ids": [*range(n, n + 20)]} for n in range(120)]
    path = place.folder / "mixed.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    options = "--text", "text", "--sample", "10%"
    assert place.scan(*options, corpus=path) == 4
    said = capsys.readouterr().out
    assert "no text in 120 of 240 rows" in said
    assert place.scan(*options, "--ignore", "*", corpus=path) == 0
    assert "estimates for all 120 documents" in capsys.readouterr().out
    assert place.scan(*options, "--ignore", "input_ids", corpus=path) == 0
    assert "estimates for all 120 documents" in capsys.readouterr().out
    summary = place.summary()
    n_sampled, n_left = summary["n_documents"], summary["sample"]["n_documents_not_sampled"]
    assert 0 < n_sampled < 30
    assert n_sampled + n_left == 120
    assert n_sampled + summary["n_without_text"] == 24


def test_pictures_beside_text_are_listed_and_hold_nothing_back(place):
    picture = b64encode(bytes(range(256))).decode()
    path = place.folder / "pictures.jsonl"
    path.write_bytes(
        json_lines(OTHER | {"a": [picture], "url": f"data:image/png;base64,{picture}"})
    )
    assert place.scan("--clean-evals", corpus=path) == 0
    rows = map(json.loads, (place.out / "not_read.jsonl").read_text().splitlines())
    assert {(row["path"], row["n"], row["accepted_by"]) for row in rows} == {
        ("a[].<data>", 1, "no text"),
        ("url.<data>", 1, "no text"),
    }
    assert (place.out / "clean").is_dir()


def test_keys_that_are_data_are_listed_as_one_field(place, capsys):
    notes = {f"user_{n:02}": {"a": invented(f"note {n}", 20)} for n in range(30)}
    notes["user_07"] = {"a": b64encode(bytes(range(256))).decode()}
    path = place.folder / "keys.jsonl"
    path.write_bytes(json_lines({"text": invented("text", 40), "m": notes, "n": notes["user_01"]}))
    assert place.scan("--text", "text", corpus=path) == 4
    said = capsys.readouterr().out
    assert "`m.*`" in said
    assert "--ignore m --ignore n.a\n" in said
    assert "user_" not in said
    rows = [*map(json.loads, (place.out / "not_read.jsonl").read_text().splitlines())]
    assert {row["path"]: row["n"] for row in rows} == {"m.*": 29, "n.a": 1, "m.*.<data>": 1}
    n_bytes = sum(len(note["a"]) for key, note in notes.items() if key != "user_07")
    assert place.summary()["unread"][0] == {"path": "m.*", "n_bytes": n_bytes}


def test_text_that_is_ignored_is_said_to_be_left_out(place, capsys):
    row = {"text": invented("text", 40), "a": invented("a", 40), "b": invented("b", 80)}
    path = place.folder / "ignored.jsonl"
    path.write_bytes(json_lines(row))
    options = "--text", "text", "--ignore"
    assert place.scan(*options, "a", "--ignore", "b", corpus=path) == 0
    share = percent(sum(map(len, (row["a"], row["b"]))) / sum(map(len, row.values())))
    expected = f"complete; ignored on purpose: {share} of the text, listed in not_read.jsonl"
    assert expected in capsys.readouterr().out
    assert place.scan(*options, "*", corpus=path) == 0
    expected = "ignored on purpose: text that was not counted, listed in not_read.jsonl"
    assert expected in capsys.readouterr().out
    (found,) = map(json.loads, (place.out / "not_read.jsonl").read_text().splitlines())
    assert (found["path"], found["accepted_by"]) == ("*", "ignore")


def test_a_corpus_without_a_document_is_not_clean(place, capsys):
    path = place.folder / "empty.jsonl"
    path.write_text("")
    assert place.scan(corpus=path) == 4
    assert "0 documents in 1 of 1 shard: nothing" in capsys.readouterr().out


def test_a_field_that_may_hold_a_question_and_is_not_read_is_named(place, capsys):
    text, hint = invented("text", 30), place.item("harbor", 3)["question"]
    row = {
        "id": "x",
        "text": text,
        "hint": hint,
        "url": "https://example.org/how/far/is/it",
        "date": "Mon, 01 Jan 2024 10:00:00 GMT",
        "copy": text[:60],
    }
    path = place.folder / "hints.jsonl"
    path.write_text(f"{json.dumps(row)}\n" * 3)
    assert place.scan("--text", "text", corpus=path) == 4
    *before, last = capsys.readouterr().out.partition("\n\nnext: ")[0].splitlines()
    assert "NOT scanned: " in last
    unread, _, options = before[-4:-1]
    assert "was not read: `hint` (" in unread
    assert "url" not in unread
    assert options == "--ignore hint --ignore copy"
    assert "hint" in {one["path"] for one in place.summary()["unread"]}
    assert place.scan("--text", "text", "--clean-evals", corpus=path) == 4
    assert not (place.out / "clean").exists()
    assert place.scan("--text", "text", "--clean-evals", "--allow-unread", corpus=path) == 0
    assert (place.out / "clean").is_dir()
    capsys.readouterr()
    for options in ((), ("--text", "text", "--text", "hint", "--ignore", "copy")):
        assert place.scan(*options, corpus=path) == 0
        coverage = coverage_in(capsys.readouterr().out)
        assert (": complete; ignored on purpose: 1" if options else ": complete") in coverage


def test_an_answer_or_a_conversation_that_is_not_read_is_named(place, capsys):
    row = {"prompt": invented("p", 30), "answer": "7", "label": "en"}
    turns = [{"role": "user", "content": "How far is it from the church to the mill?"}]
    path = place.folder / "mixed.jsonl"
    path.write_text(f"{json.dumps({**row, 'turns': turns})}\n")
    assert place.scan("--text", "prompt", corpus=path) == 4
    said = capsys.readouterr().out
    assert "was not read: `turns[].content` (42 bytes)\n" in said  # a label holds no question
    assert "\n--ignore 'turns[].content'\n" in said


def test_rows_with_other_fields_in_one_file_are_all_read(place, capsys):
    item = place.item("harbor", 3)
    row = {"query": item["question"], "response": item["answer"]}
    rows = [{"text": invented("t", 30)}, *([row] * 4)]
    path = place.folder / "some.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert place.scan(corpus=path) == 0
    said = capsys.readouterr().out
    assert "4 of 5 documents contain a leak" in said
    assert coverage_in(said).endswith("complete")


def test_one_file_of_which_no_row_can_be_read_is_an_error_that_names_its_fields(place, capsys):
    place.write_shard("web.jsonl", extra=b'{"content": "some words of a page", "n": 1}\n' * 3)
    path = place.folder / "corpus" / "web.jsonl"
    path.write_text("".join(line + "\n" for line in path.read_text().splitlines()[-3:]))
    assert place.scan("--text", "text", "--clean-evals", has_page=True) == 1
    said = capsys.readouterr()
    assert "web.jsonl: found 3 rows, none readable with" in said.err
    assert "content (text, 20 characters), n (number)" in said.err
    assert '. Leave out text = "text" (--text)' in said.err
    assert "NOT scanned: 1 shard (132 bytes, 3 rows)" in coverage_in(said.out)
    assert "\n1 of 4 shards could not be read\n" in said.out
    assert "not written" in said.out
    assert place.leaks() == EXPECTED
    assert place.summary()["n_shards_without_a_readable_row"] == 1
    with duckdb.connect(str(report_in(place.out)), read_only=True) as report:
        ((name, reason),) = report.sql("SELECT shard_name, reason FROM not_scanned").fetchall()
        statuses = report.sql("SELECT DISTINCT status FROM item_status").fetchall()
    assert (name, reason) == ("web.jsonl", "no readable row (field missing)")
    assert ("clean",) not in statuses
    assert main(["check", "--report", str(place.out), "--max-rate", "1"]) == 1
    assert "web.jsonl was not scanned against" in capsys.readouterr().out


@pytest.mark.parametrize("corpus", ["corpus", "corpus/**/*"])
def test_names_that_begin_with_an_underscore_or_a_dot_are_no_shards(place, capsys, corpus):
    for name in ("_manifest.json", "_removed.parquet", "_old/s.jsonl", ".cache/s.jsonl"):
        path = place.folder / "corpus" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("no shard")
    assert place.scan(corpus=place.folder / corpus) == 0
    assert place.leaks() == EXPECTED
    assert place.summary()["n_shards"] == 3
    assert ": complete; 4 ignored on purpose, listed in skipped.jsonl" in last_line(capsys)
    own = place.folder / "corpus" / "_mine.jsonl"
    own.write_text(json.dumps({"text": place.leak("harbor", 3)}) + "\n")
    assert place.scan(corpus=own) == 0  # a file that is named itself is a shard
    assert place.summary()["n_shards"] == 1


def test_documents_that_are_not_utf8_are_counted_and_named(place, capsys):
    line = json.dumps({"text": place.leak("harbor", 3) + " @"}).encode().replace(b"@", b"caf\xe9")
    place.write_shard("latin.jsonl", extra=line + b"\n")
    assert place.scan() == 0
    assert "1 document has invalid UTF-8 bytes" in capsys.readouterr().out
    (row,) = place.ledger()["latin.jsonl"]["invalid_utf8"]
    content = (place.folder / "corpus" / "latin.jsonl").read_bytes()
    assert content[row["offset"]] == 0xE9
    assert row["line"] == content.count(b"\n")
    assert place.summary()["n_invalid_utf8"] == 1


def test_a_sample_says_that_it_is_one_and_what_it_says_of_the_whole_corpus(place, capsys):
    assert place.scan("--sample", "25%", "--sample-seed", 3, "--fail-on-leak", has_page=True) in (
        0,
        3,
    )
    out = capsys.readouterr().out
    assert out.startswith("found in a sample of 25 %, seed 3, not in the entire corpus")
    assert "estimates for all 24 documents, from a sample of 25 %, seed 3" in out
    last = "sample of 25 %, seed 3: scanned 6 documents in 3 of 3 shards; NOT scanned: 18 documents"
    assert coverage_in(out) == f"{last} not in the sample"
    assert place.leaks() <= EXPECTED
    assert place.summary()["sample"]["share"] == 0.25
    assert (place.out / "sample.csv").is_file()
    main(["check", "--report", str(place.out), "--max-rate", "1"])
    assert "unknown: 3 of 3 shards were not scanned in full" in capsys.readouterr().out
    assert place.scan("--fail-on-leak") == 3
    assert coverage_in(capsys.readouterr().out).endswith("complete")
    assert place.leaks() == EXPECTED


def test_a_sample_without_a_leak_is_no_proof_that_there_is_none(place, capsys):
    for path in (place.folder / "corpus").rglob("s.*"):
        path.unlink()
    assert place.scan("--sample", "0.5", "--fail-on-leak") == 0
    told = "no leak in the sample, but up to 4 documents may contain one"
    assert told in capsys.readouterr().out.splitlines()
    place.write_shard("c/late.jsonl")
    assert place.scan("--sample", "1 shard", "--fail-on-leak") == 0
    out = capsys.readouterr().out
    assert "no leak in the sample, but up to 1 shard may contain one" in out.splitlines()
    assert out.startswith("found in a sample of 1 shard, seed 0, not in the entire corpus")


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--sample", "100%"], "Omit it to scan everything"),
        (["--sample", "1/3"], "a share of documents (1% or 0.01) or a number of shards (20shards)"),
        (["--sample", "a few shards"], "or a number of shards (20shards)"),
        (["--sample", "0 shards"], "or a number of shards (20shards)"),
        (["--sample", "3 shards"], "only 3 shards; expected more than the 3 to be drawn"),
        (["--sample-seed", "1"], "no --sample"),
        (["--sample", "1%", "--clean-evals"], "an item may have leaked into documents outside"),
        (["--sample", "1%", "--compat"], "the format of AI2's decon cannot mark a sample"),
    ],
)
def test_a_sample_that_cannot_be_drawn_or_that_is_not_enough_is_refused(
    place, capsys, options, told
):
    assert place.scan(*options) == 2
    assert told in capsys.readouterr().err
    assert not (place.out / "summary.json").exists()
