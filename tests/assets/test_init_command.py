"""`init` from the outside: what it writes is run as it is."""

import gzip
import json
import os
import shutil
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from decon_assets.cli import main
from decon_assets.pipeline import Pipeline
from decon_core.config import load_config
from decon_core.registry import benchmarks_of

DATA = Path(__file__).parents[2] / "data"


def test_a_file_for_the_sample_world_reads_what_the_one_by_hand_reads(
    tmp_path, monkeypatch, capsys
):
    for name in ("corpus", "benchmarks", "evals.yaml"):
        copy = shutil.copytree if (DATA / name).is_dir() else shutil.copy
        copy(DATA / name, tmp_path / name)
    monkeypatch.chdir(tmp_path)
    assert main(["init", "--corpus", "corpus", "--evals", "evals.yaml"]) == 0
    assert "decon-assets run" in capsys.readouterr().out
    found, by_hand = load_config(Path("decon.toml")), load_config(DATA / "decon.toml")
    assert [path.name for path in found.recipes] == ["evals.yaml"]
    assert found.policy == by_hand.policy
    readings = {(one.text, one.messages, one.id) for one in found.sources}
    assert readings == {(one.text, one.messages, one.id) for one in by_hand.sources}


def test_awkward_folders_give_a_file_that_runs(world, instance, monkeypatch, capsys):
    """Mixed formats, a folder with spaces, an empty file, a broken line; no recipes."""
    monkeypatch.chdir(world.folder)
    (world.folder / "evals.yaml").unlink()
    (world.folder / "benchmarks").mkdir()
    for name in world.benchmarks:
        (world.folder / f"{name}.jsonl").rename(world.folder / "benchmarks" / f"{name}_test.jsonl")
    odd = world.folder / "corpus" / "odd things"
    odd.mkdir()
    leak = world.benchmarks["harbor"][4]
    text = f"Before. {leak['question']} Answer: {leak['answer']} and so on."
    pq.write_table(pa.table({"body": [text, "nothing of interest here"]}), odd / "t-0.parquet")
    turns = [{"role": "user", "content": "What is there?"}, {"role": "assistant", "content": text}]
    (odd / "chat.jsonl").write_text(json.dumps({"turns": turns}) + "\nno json\n")
    (odd / "empty.jsonl").touch()
    with gzip.open(odd / "pairs.jsonl.gz", "wt") as file:
        file.write(json.dumps({"prompt": "a?", "chosen": text, "rejected": "never"}) + "\n")
    (odd / "notes.txt").touch()
    assert main(["init", "--corpus", "corpus", "--evals", "benchmarks"]) == 0
    said = capsys.readouterr().out
    assert "left out, 1 file that" in said
    assert "benchmarks: harbor, ledger" in said
    made = Path("decon.toml").read_text()
    Path("decon.toml").write_text(
        made.replace('# tokenizer_str = "cl100k"', 'tokenizer_str = "words"')
    )
    Pipeline(Path("decon.toml"), instance, lambda _: None).run()
    with duckdb.connect(str(world.store.report), read_only=True) as report:
        rows = report.execute(
            "SELECT DISTINCT shard_name FROM decisions WHERE instance_index = 4 "
            "AND benchmark = 'harbor' AND is_contaminated"
        ).fetchall()
        (n_unreadable,) = report.execute("SELECT count(*) FROM unreadable").fetchone()
    assert {name for (name,) in rows} == {"chat.jsonl", "pairs.jsonl.gz", "t-0.parquet"}
    assert n_unreadable == 1


def test_nothing_is_written_over_without_force_and_nothing_at_all_with_a_problem(
    world, monkeypatch, capsys
):
    monkeypatch.chdir(world.folder)
    Path("decon.toml").write_text("mine")
    assert main(["init", "--corpus", "corpus", "--evals", "evals.yaml"]) == 2
    assert "--force" in capsys.readouterr().err
    assert Path("decon.toml").read_text() == "mine"
    assert main(["init", "--corpus", "nowhere", "--evals", "neither", "--force"]) == 2
    told = capsys.readouterr().err
    assert "nowhere" in told
    assert "neither" in told
    assert Path("decon.toml").read_text() == "mine"
    assert main(["init", "--corpus", "corpus", "--evals", "evals.yaml", "--force"]) == 0
    assert load_config(Path("decon.toml")).sources


QUIZ = json.dumps({"question": "How far is it to the mill?", "answer": "7 miles"}) + "\n"


@pytest.fixture
def bare(tmp_path, monkeypatch):
    """A shard and no benchmark, in the current folder."""
    monkeypatch.chdir(tmp_path)
    Path("shards").mkdir()
    Path("shards/a.jsonl").write_text(json.dumps({"id": "a", "text": "some text"}) + "\n")
    return tmp_path


def test_files_of_one_folder_share_a_recipe_file(bare, capsys):
    Path("b3").mkdir()
    for name in ("one", "two"):
        Path(f"b3/{name}.jsonl").write_text(QUIZ)
    assert main(["init", "--corpus", "shards", "--evals", "b3/one.jsonl", "b3/two.jsonl"]) == 0
    said = capsys.readouterr().out
    assert "source shards: 1 shard, " in said or "source a: 1 shard, " in said
    found = load_config(Path("decon.toml"))
    assert found.recipes == (bare / "b3" / "evals.yaml",)
    assert list(benchmarks_of(found)) == ["one", "two"]


def test_a_name_that_two_folders_give_is_refused_before_anything_is_written(bare, capsys):
    for name in ("b", "b2"):
        Path(name).mkdir()
        Path(f"{name}/quiz.jsonl").write_text(QUIZ)
    before = sorted(bare.rglob("*"))
    assert main(["init", "--corpus", "shards", "--evals", "b", "b2"]) == 2
    told = capsys.readouterr().err
    assert f"{bare / 'b2' / 'evals.yaml'}: evals.quiz: found the name a second time" in told
    assert sorted(bare.rglob("*")) == before


def test_files_beside_recipes_that_are_given_do_not_replace_them(bare, capsys):
    Path("b").mkdir()
    for name in ("quiz", "other"):
        Path(f"b/{name}.jsonl").write_text(QUIZ)
    recipe = {"local_path": "quiz.jsonl", "splits": ["test"], "prompt": "question"}
    Path("b/evals.yaml").write_text("evals:\n  quiz: " + json.dumps(recipe))
    given = ["--evals", "b/evals.yaml", "b/other.jsonl", "--force"]
    assert main(["init", "--corpus", "shards", *given]) == 2
    assert "recipes that are given" in capsys.readouterr().err
    assert "quiz" in Path("b/evals.yaml").read_text()
    assert not Path("decon.toml").exists()


@pytest.mark.parametrize("out", ["decon.toml", "my place/decon.toml"])
def test_paths_start_at_the_folder_of_the_file_where_they_can(world, monkeypatch, out):
    monkeypatch.chdir(world.folder)
    assert main(["init", "--corpus", "corpus/*.gz", "--evals", ".", "--out", out]) == 0
    found = load_config(Path(out))
    assert found.recipes == (world.folder / "evals.yaml",)
    is_beside = out == "decon.toml"
    assert found.sources[0].path.startswith("corpus/" if is_beside else str(world.folder))


@pytest.mark.parametrize(
    "command",
    [
        ["init", "--corpus", "corpus", "--evals", "evals.yaml", "--out", "made.toml"],
        ["register"],
        ["scan", "--corpus", "corpus", "--evals", "evals.yaml", "--out", "found"],
    ],
    ids=lambda command: command[0],
)
@pytest.mark.parametrize("name", [b"bad\xff-1.jsonl.gz", b"f\xfe/1.jsonl.gz"])
def test_a_file_whose_name_is_no_utf_8_is_named_wherever_shards_are_looked_for(
    at_home, capsys, command, name
):
    text = at_home.config_path.read_text().replace('"corpus/*.jsonl.gz"', '"corpus/**/*.gz"')
    at_home.config_path.write_text(text)
    path = at_home.folder / "corpus" / os.fsdecode(name)
    path.parent.mkdir(exist_ok=True)
    shutil.copy(at_home.folder / "corpus" / "s0.jsonl.gz", path)
    assert main(command) == 2
    shown = name.decode("utf-8", "backslashreplace")
    assert f"corpus/{shown}: found a name that is not UTF-8" in capsys.readouterr().err
    assert not (at_home.folder / "made.toml").exists()
