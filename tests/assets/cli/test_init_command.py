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

from decon_assets.cli.main import main
from decon_assets.runner.pipeline import Pipeline
from decon_core.benchmarks.configured import benchmarks_of
from decon_core.config.load import load_config
from decon_core.corpus.packs import find_shards
from decon_core.corpus.registration import skipped_in
from decon_core.storage.store import Store

DATA = Path(__file__).parents[3] / "data"


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
    assert {one.id for one in found.corpus.sources} == {one.id for one in by_hand.corpus.sources}
    assert not any(one.paths or one.layout for one in found.corpus.sources)  # every text is read


def test_a_folder_is_not_both_corpus_and_benchmarks(tmp_path, capsys):
    (tmp_path / "a.jsonl").write_text('{"question": "a b c", "answer": "d"}\n')
    folder = str(tmp_path)
    assert main(["init", "--corpus", folder, "--evals", f"{folder}/../{tmp_path.name}"]) == 2
    assert "given as the corpus and as benchmarks" in capsys.readouterr().err
    assert main(["scan", f"{folder}/a.jsonl", "--evals", f"{folder}/a.jsonl"]) == 2
    assert "given as the corpus and as benchmarks" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["a.jsonl"]


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
    assert main(["init", "--corpus", "corpus", "--evals", "benchmarks"]) == 4
    said = capsys.readouterr().out
    assert f"left out: {odd / 'notes.txt'}: no format of shards" in said
    assert "benchmarks: harbor, ledger" in said
    made = Path("decon.toml").read_text()
    drop = 'unreadable = "drop"'
    assert f"\n# {drop}" in made
    made = made.replace(f"\n# {drop}", f'\ntokenizer_str = "words"\n{drop}')
    Path("decon.toml").write_text(made)
    Pipeline(Path("decon.toml"), instance, lambda _: None).run()
    with duckdb.connect(str(world.store.report), read_only=True) as report:
        rows = report.execute(
            "SELECT DISTINCT shard_name FROM findings WHERE instance_index = 4 "
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
    assert load_config(Path("decon.toml")).corpus.sources


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


def test_sets_and_names_of_the_catalog_are_written_beside_recipes(bare, capsys):
    Path("quiz.jsonl").write_text(QUIZ)
    assert main(["init", "--corpus", "shards", "--evals", "@code", "mmlu,gsm8k", "quiz.jsonl"]) == 0
    assert "quiz" in capsys.readouterr().out
    config = load_config(Path("decon.toml"))
    assert config.evals.catalog == ("@code", "mmlu", "gsm8k")
    assert {"quiz", "humaneval", "mmlu", "gsm8k"} < {*benchmarks_of(config)}
    assert main(["init", "--corpus", "shards", "--evals", "gsm8k", "--force"]) == 0
    assert list(benchmarks_of(load_config(Path("decon.toml")))) == ["gsm8k"]
    assert main(["init", "--corpus", "shards", "--evals", "@mat", "--force"]) == 2
    assert "Did you mean '@math'?" in capsys.readouterr().err
    assert main(["init", "--corpus", "shards", "--evals", "gsm8", "--force"]) == 2
    assert "Did you mean 'gsm8k'?" in capsys.readouterr().err


def test_a_name_that_two_folders_give_is_refused_before_anything_is_written(bare, capsys):
    for name in ("b", "b2"):
        Path(name).mkdir()
        Path(f"{name}/quiz.jsonl").write_text(QUIZ)
    before = sorted(bare.rglob("*"))
    assert main(["init", "--corpus", "shards", "--evals", "b", "b2"]) == 2
    told = capsys.readouterr().err
    assert f"{bare / 'b2' / 'evals.yaml'}: evals.quiz: found a duplicate name" in told
    assert sorted(bare.rglob("*")) == before


def test_files_beside_recipes_that_are_given_do_not_replace_them(bare, capsys):
    Path("b").mkdir()
    for name in ("quiz", "other"):
        Path(f"b/{name}.jsonl").write_text(QUIZ)
    recipe = {"local_path": "quiz.jsonl", "splits": ["test"], "prompt": "question"}
    Path("b/evals.yaml").write_text("evals:\n  quiz: " + json.dumps(recipe))
    given = ["--evals", "b/evals.yaml", "b/other.jsonl", "--force"]
    assert main(["init", "--corpus", "shards", *given]) == 2
    assert "recipes for only some of the files" in capsys.readouterr().err
    assert "quiz" in Path("b/evals.yaml").read_text()
    assert not Path("decon.toml").exists()


@pytest.mark.parametrize("out", ["decon.toml", "my place/decon.toml"])
def test_paths_start_at_the_folder_of_the_file_where_they_can(world, monkeypatch, out):
    monkeypatch.chdir(world.folder)
    assert main(["init", "--corpus", "corpus/*.gz", "--evals", ".", "--out", out]) == 0
    found = load_config(Path(out))
    assert found.recipes == (world.folder / "evals.yaml",)
    is_beside = out == "decon.toml"
    assert found.corpus.sources[0].path.startswith("corpus/" if is_beside else str(world.folder))


@pytest.mark.parametrize(
    "command",
    [
        ["init", "--corpus", "corpus", "--evals", "evals.yaml", "--out", "made.toml"],
        ["register"],
        ["scan", "corpus", "--evals", "evals.yaml", "--out", "found"],
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


def test_what_cannot_be_read_or_decided_is_a_line_and_ends_with_exit_code_4(bare, capsys):
    for name in ("good", "odd", "cut"):
        Path(name).mkdir()
    Path("good/quiz.jsonl").write_text(QUIZ)
    rows = [{"alpha": f"A poem of the mill {n}", "beta": f"A lamp of the cat {n}"} for n in "abc"]
    write_rows(Path("odd/riddles.jsonl"), rows)
    Path("cut/quiz.jsonl.gz").write_bytes(gzip.compress(QUIZ.encode())[:-9])
    assert main(["init", "--corpus", "shards", "--evals", "good", "odd", "cut", "neither"]) == 4
    said = capsys.readouterr().out
    assert (
        f"riddles: choose its question field in {bare / 'odd' / 'evals.yaml'}: alpha, beta" in said
    )
    assert "left out: neither: no such file or folder" in said
    assert f"left out: {bare / 'cut' / 'quiz.jsonl.gz'}: found a file that ends too early" in said
    assert "benchmarks: quiz\n" in said
    found = load_config(Path("decon.toml"))
    assert found.recipes == (bare / "good" / "evals.yaml", bare / "odd" / "evals.yaml")


def test_a_doubtful_choice_is_marked_in_the_terminal_and_in_the_file(bare, capsys):
    Path("b").mkdir()
    Path("b/quiz.jsonl").write_text(json.dumps({"vraag": "Hoe ver is het naar de molen?"}) + "\n")
    assert main(["init", "--corpus", "shards", "--evals", "b"]) == 0
    doubt = "check this: vraag is not a typical name for a question"
    assert f"  quiz: {doubt}" in capsys.readouterr().out
    assert f"# {doubt}" in Path("b/evals.yaml").read_text()


# Records, fields that are left out, names that are set aside --------------------------------------


def records(key, n=6):
    """Multiple choice as the reference tool bundles it: four records of each item."""
    return [
        {
            "eval_key": key,
            "eval_instance_index": number,
            "split": "test",
            "question": f"What is asked in {key} under number {number}, and why is that so?",
            "answer": f"({letter}) for the reason {letter * 3}",
            "is_correct": letter == "B",
            "fingerprint": None,
        }
        for number in range(n)
        for letter in "ABCD"
    ]


def write_rows(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def test_records_get_a_recipe_that_reads_them_as_they_are(tmp_path, monkeypatch, capsys):
    """They got `prompt: question`, which made an item of every answer."""
    monkeypatch.chdir(tmp_path)
    write_rows(Path("corpus/s.jsonl"), [{"text": "some words", "id": "0"}])
    write_rows(Path("evals/quiz_test-1.jsonl"), records("quiz"))
    write_rows(Path("evals/bundle.jsonl"), [*records("left"), *records("right")])
    write_rows(Path("evals/raw.jsonl"), [{"question": "What is raw?", "answer": "This."}])
    assert main(["init", "--corpus", "corpus", "--evals", "evals"]) == 0
    said = capsys.readouterr().out
    assert "left, right, quiz: normalized records, read unchanged" in said
    assert "recipes for raw; comments give the reasons" in said
    assert main(["normalize", "evals/evals.yaml", "--show", "0"]) == 0
    said = capsys.readouterr().out
    for name in ("quiz", "left", "right"):
        assert f"{name}: 6 items, 24 records" in said
    assert "raw: 1 item, 1 record" in said


def test_a_recipe_for_raw_rows_refuses_records(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write_rows(Path("quiz.jsonl"), records("quiz"))
    lines = ["local_path: quiz.jsonl", "splits: [test]", "prompt: question", "answers: [answer]"]
    Path("evals.yaml").write_text("evals:\n  quiz:\n" + "".join(f"    {one}\n" for one in lines))
    write_rows(Path("corpus/s.jsonl"), [{"text": "some words"}])
    scan = ["scan", "--evals", "evals.yaml", "corpus", "--out", "found"]
    for command in (["normalize", "evals.yaml"], scan):
        assert main(command) == 2
        said = capsys.readouterr().err
        assert "quiz.jsonl row 1: found a normalized record" in said
        assert "Remove prompt, passage and answers from the recipe" in said


def test_a_corpus_that_is_partly_unreadable_is_a_line_and_ends_with_exit_code_4(bare, capsys):
    Path("quiz.jsonl").write_text(QUIZ)
    write_rows(Path("odd/a.jsonl"), [{"n": 5}])
    for number in range(9):
        Path(f"shards/notes-{number}.docx").touch()
    command = ["init", "--corpus", "shards", "odd", "nowhere", "--evals", "quiz.jsonl"]
    assert main(command) == 4
    said = capsys.readouterr().out
    for number in range(9):
        assert f"left out: {bare}/shards/notes-{number}.docx: no format of shards" in said
    odd = f"left out: {bare}/odd/a.jsonl"
    assert f"{odd}: rows without text, but with the fields n (number)" in said
    assert "not read: nowhere: no such file or folder" in said
    config = load_config(Path("decon.toml"))
    assert [source.path for source in config.corpus.sources] == ["shards/*.jsonl"]
    assert config.corpus.left_out == (
        "odd/a.jsonl",
        *(f"shards/notes-{number}.docx" for number in range(9)),
    )


def test_what_init_left_out_counts_as_not_read_until_its_line_is_deleted(bare, capsys):
    Path("quiz.jsonl").write_text(QUIZ)
    write_rows(Path("shards/b.jsonl"), [{"text": "a text"}])
    Path("shards/empty.jsonl").touch()
    Path("shards/book [1].txt").touch()
    assert main(["init", "--corpus", "shards", "--evals", "quiz.jsonl"]) == 4
    assert f"not read: {bare}/shards/empty.jsonl: no rows" in capsys.readouterr().out
    assert main(["register"]) == 4
    book = f"{bare}/shards/book [1].txt: "
    assert f"not read: {book}listed under left_out" in capsys.readouterr().out
    store = Store(bare / ".decon")
    assert [file.path for file in skipped_in(store, bare)] == ["shards/book [1].txt"]
    written = Path("decon.toml").read_text().splitlines()
    kept = [line for line in written if "book" not in line]
    Path("decon.toml").write_text("\n".join(kept))
    assert main(["register"]) == 0
    assert f"on purpose: {book}not matched" in capsys.readouterr().out
    assert skipped_in(store, bare) == ()


def test_many_files_that_are_left_out_are_listed_as_patterns(bare):
    Path("quiz.jsonl").write_text(QUIZ)
    for number in range(30):
        Path(f"shards/notes-{number}.docx").touch()
    assert main(["init", "--corpus", "shards", "--evals", "quiz.jsonl"]) == 4
    assert load_config(Path("decon.toml")).corpus.left_out == ("shards/*.docx",)


def test_layouts_and_what_a_person_should_check_are_said_for_each_source(bare, capsys):
    Path("quiz.jsonl").write_text(QUIZ)
    text = "the mill at the river stands still since the flood"
    turns = [{"role": "user", "content": text}]
    write_rows(Path("rl/s.jsonl"), [{"messages": turns}, {"odd": {"body": text}, "grade": "B"}])
    assert main(["init", "--corpus", "rl", "--evals", "quiz.jsonl"]) == 0
    said, written = capsys.readouterr().out, Path("decon.toml").read_text()
    assert "bytes: openai_chat (1 row), unknown (1 row, all text is read)\n" in said
    doubt = "check this: 1 row matches no known layout and contains texts (`odd.body`)"
    assert f"  {doubt}" in said
    assert f"# {doubt}".lower() in written.lower()


def test_what_a_mixture_s_folder_holds_beside_shards_becomes_no_source(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    write_rows(Path("mixture/s-0.jsonl"), [{"text": "some words", "id": "0"}])
    Path("mixture/_manifest.json").write_text('{"mixture": "clean"}')
    pq.write_table(pa.table({"shard": ["s"], "detail": ["x" * 50]}), "mixture/_removed.parquet")
    write_rows(Path("mixture/_old/s-1.jsonl"), [{"text": "some words", "id": "0"}])
    write_rows(Path("quiz.jsonl"), [{"question": "What is raw?", "answer": "This."}])
    assert main(["init", "--corpus", "mixture", "--evals", "quiz.jsonl"]) == 0
    (source,) = load_config(Path("decon.toml")).corpus.sources
    (shard,) = find_shards(source, folder=tmp_path, known={})
    assert shard.name == "s-0.jsonl"


def test_a_folder_of_nothing_but_set_aside_files_says_so(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write_rows(Path("mixture/_old/s-1.jsonl"), [{"text": "some words", "id": "0"}])
    write_rows(Path("quiz.jsonl"), [{"question": "What is raw?", "answer": "This."}])
    assert main(["init", "--corpus", "mixture", "--evals", "quiz.jsonl"]) == 2
    assert "/_old/ (its name begins with _ or .)" in capsys.readouterr().err
