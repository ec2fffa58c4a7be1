"""Corpora behind `hf://` and other URLs, and what is said when nothing answers there.

A server on this machine stands in for the hub, so `huggingface_hub` runs as it does for a user.
"""

import json
import os
import random
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from decon_assets.cli.main import main
from decon_assets.runner.pipeline import Pipeline
from decon_core.config.sources import Source
from decon_core.corpus.packs import find_shards
from decon_core.corpus.shards import open_shard, read_shard
from decon_core.errors import CorpusError
from decon_core.storage.compression import create
from decon_core.storage.paths import UnreachableError, naming_unreachable, parse_path
from decon_core.wording import size
from tests.hub_server import NOWHERE, hub_for

SHARDS = "hf://datasets/mill/web"


@pytest.fixture
def hub(tmp_path_factory, monkeypatch):
    with hub_for(monkeypatch, tmp_path_factory.mktemp("hub")) as server:
        yield server


def test_a_corpus_on_the_hub_is_scanned_and_mixed_as_a_folder_is(world, hub, instance):
    world.write_config()
    target = hub.folder / "mill" / "web"
    target.mkdir(parents=True)
    for path in (world.folder / "corpus").iterdir():
        path.rename(target / path.name)
    (target / "_manifest.json").write_text("{}")
    text = world.config_path.read_text().replace('"corpus/*.jsonl.gz"', f'"{SHARDS}/**/*"')
    world.config_path.write_text(text)
    Pipeline(world.config_path, instance, lambda _: None).run()
    assert list((world.store.root / "mixtures").rglob("*.jsonl.gz"))
    (leaks,) = [one for one in [world.store.report] if one.is_file()]
    assert leaks.stat().st_size


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty folder as the current one, with a benchmark of six items."""
    monkeypatch.chdir(tmp_path)
    items = [
        {
            "eval_key": "quiz",
            "eval_instance_index": item,
            "split": "test",
            "question": " ".join(f"asked{item}x{number}" for number in range(40)),
            "answer": " ".join(f"told{item}x{number}" for number in range(8)),
        }
        for item in range(6)
    ]
    Path("quiz.jsonl").write_text("".join(json.dumps(item) + "\n" for item in items))
    Path("policy.toml").write_text('tokenizer_str = "words"')
    return [f"{item['question']} {item['answer']}" for item in items]


def scan(corpus, *arguments):
    return ["scan", corpus, "--evals", "quiz.jsonl", "--policy", "policy.toml", *arguments]


def test_scan_reads_a_data_set_a_revision_a_glob_and_a_file(here, hub, capsys):
    hub.put("mill/web/deep/s.jsonl", json.dumps({"content": here[0]}) + "\n")
    for name in ("deep/_removed.jsonl", "README.md", ".gitattributes", "assets/fig.PNG"):
        hub.put(f"mill/web/{name}", "{}\n")
    for corpus in (
        f"{SHARDS}@v1",
        f"{SHARDS}@main/**/*.jsonl",
        f"{SHARDS}/deep/s.jsonl",
        f"{SHARDS}/",
    ):
        assert main(scan(corpus, "--no-page", "--out", "found")) == 0
        assert "1 of 1 document contains a leak" in capsys.readouterr().out, corpus
    set_aside = [json.loads(line) for line in Path("found/skipped.jsonl").read_text().splitlines()]
    assert {row["path"]: row["why"] for row in set_aside} == {
        "README.md": "metadata of a dataset",
        "assets/fig.PNG": "a picture",
        "deep/_removed.jsonl": "its name begins with _ or .",
    }


def test_the_output_folder_has_the_name_of_the_data_set_with_a_page_and_a_card(here, hub, capsys):
    hub.put("mill/web/s.jsonl", json.dumps({"content": here[0]}) + "\n")
    assert main(scan(SHARDS)) == 0
    assert {"report.html", "card.md", "summary.json"} <= {
        p.name for p in Path("web-scan").iterdir()
    }
    card = Path("web-scan/card.md").read_text()
    assert "quiz" in card
    assert here[0][:40] not in card
    assert "decon-assets init" not in capsys.readouterr().out  # it reads only local files
    hub.put("mint/web/s.jsonl", json.dumps({"content": here[1]}) + "\n")
    assert main(scan("hf://datasets/mint/web")) == 2
    assert f"web-scan: contains the scan of {SHARDS}" in capsys.readouterr().err
    assert main(scan(SHARDS, "--sample", "50%")) == 4  # no document was drawn
    assert "sample" in Path("web-scan/card.md").read_text()


@pytest.mark.parametrize(
    ("corpus", "code", "told"),
    [
        ("hf://datasets/mill/gated", 1, "Accept its terms at {url}/datasets/mill/gated"),
        ("hf://datasets/mill/gone", 2, "repository not found. Correct the address; if it is priv"),
        ("hf://datasets/mill/private", 2, "if it is private, run `hf auth login` or set HF_TOKEN"),
        (f"{SHARDS}@v9", 2, "revision not found"),
        ("hf://datasets/mill/films", 2, "no shard, only hf://datasets/mill/films/README.md"),
    ],
)
def test_what_the_hub_refuses_is_one_line_with_its_remedy(here, hub, capsys, corpus, code, told):
    for name in ("web/s.jsonl", "gated/s.jsonl", "private/s.jsonl", "films/README.md"):
        hub.put(f"mill/{name}", "{}\n")
    hub.gated.add("mill/gated")
    hub.private.add("mill/private")
    assert main(scan(corpus)) == code
    *steps, line = capsys.readouterr().err.strip().splitlines()
    assert steps == []  # the benchmarks were not read yet
    assert corpus in line
    assert told.format(url=hub.url) in line


def test_rate_limits_and_cut_connections_do_not_change_what_is_found(here, hub, capsys):
    rows = "".join(json.dumps({"content": text}) + "\n" for text in here)
    hub.put("mill/web/s.jsonl", rows)
    hub.faults += ["429", "cut", "429"]
    assert main(scan(SHARDS, "--no-page")) == 0
    assert "6 of 6 documents contain a leak" in capsys.readouterr().out
    assert not hub.faults


def test_a_killed_scan_continues_with_the_shards_that_it_had_not_finished(here, hub, capsys):
    for name, text in zip("abc", here, strict=False):
        hub.put(f"mill/web/{name}.jsonl", json.dumps({"content": text}) + "\n")
    hub.held["b.jsonl"] = 1
    program = str(Path(sys.executable).with_name("decon-assets"))
    with subprocess.Popen([program, *scan(SHARDS, "--no-page")], stderr=subprocess.PIPE) as killed:
        assert hub.is_holding.wait(60)
        killed.kill()
    hub.released.set()
    assert hub.n_requests == {"a.jsonl": 1, "b.jsonl": 1}
    assert main(scan(SHARDS, "--no-page")) == 0
    assert "3 of 3 documents contain a leak" in capsys.readouterr().out
    assert hub.n_requests == {"a.jsonl": 1, "b.jsonl": 2, "c.jsonl": 1}
    assert main(scan(SHARDS, "--no-page")) == 0
    assert hub.n_requests.total() == 4


def test_a_shard_on_the_hub_that_changed_is_known_by_its_blob(hub):
    path = hub.put("mill/web/s.jsonl", '{"text": "one"}\n')
    source = Source(name="web", path=f"{SHARDS}/*.jsonl", text="text")
    (first,) = find_shards(source, folder=path.parent, known={})
    path.write_text('{"text": "two"}\n')  # as many bytes
    (second,) = find_shards(source, folder=path.parent, known={first.path: first})
    assert first.content != second.content


@pytest.fixture
def shards(hub, monkeypatch):
    """Shards of several formats on the hub, each of several range requests."""
    monkeypatch.setattr("decon_core.storage.paths._BLOCK", 1 << 14)
    rows = [
        {"content": " ".join(random.Random(at).randbytes(200).hex(" ", 4).split()), "n": at}
        for at in range(400)
    ]
    lines = "".join(json.dumps(row) + "\n" for row in rows).encode()
    for compression in ("", ".gz", ".zst"):
        path = hub.put(f"mill/web/s.jsonl{compression}", b"")
        with create(path, compression) as file:
            file.write(lines)
    pq.write_table(pa.Table.from_pylist(rows), path.with_name("s.parquet"), row_group_size=100)
    source = Source(name="web", path=f"{SHARDS}/*", text="content")
    return source, find_shards(source, folder=path.parent, known={})


def test_a_scan_downloads_every_file_once(here, hub, shards, capsys):
    assert main(scan(SHARDS, "--no-page")) == 0
    assert "scanned 1,600 documents in 4 of 4 shards: complete" in capsys.readouterr().out
    sizes = {path.name: path.stat().st_size for path in (hub.folder / "mill/web").iterdir()}
    assert hub.n_bytes == sizes
    assert min(hub.n_requests.values()) > 1
    hub.n_bytes.clear()
    assert main(scan(f"{hub.url}/datasets/mill/web/resolve/main/s.parquet", "--no-page")) == 0
    assert hub.n_bytes == {"s.parquet": sizes["s.parquet"]}


def test_of_a_sample_of_shards_only_the_drawn_files_are_downloaded(here, hub, capsys):
    for number in range(6):
        row = json.dumps({"content": f"{here[number]} {'rest ' * number}"})
        hub.put(f"mill/web/{number}.jsonl", f"{row}\n")
    sizes = {path.name: path.stat().st_size for path in (hub.folder / "mill/web").iterdir()}
    assert main(scan(SHARDS, "--no-page", "--sample", "2shards")) == 0
    drawn = dict(hub.n_bytes)
    assert len(drawn) == 2
    assert drawn.items() < sizes.items()
    n_drawn, n_all = sum(drawn.values()), sum(sizes.values())
    out, err = capsys.readouterr()
    assert f"sample: 2 of 6 shards, {size(n_drawn)} of {size(n_all)}" in err
    assert (
        f"2 of 6 shards; NOT scanned: 4 shards ({size(n_all - n_drawn)}) not in the sample" in out
    )
    assert "unknown: an interval needs at least 20 shards" in out
    hub.n_bytes.clear()
    assert main(scan(SHARDS, "--no-page")) == 0
    assert hub.n_bytes == {name: n for name, n in sizes.items() if name not in drawn}
    assert "6 of 6 documents contain a leak" in capsys.readouterr().out
    assert main(scan(SHARDS, "--no-page", "--sample", "6shards")) == 2
    assert "sample: found only 6 shards; expected more than the 6" in capsys.readouterr().err


@pytest.mark.parametrize("fault", ["cut", "short"])
def test_every_format_survives_a_cut_connection_and_names_a_body_that_ends_early(
    hub, shards, fault
):
    source, found = shards
    for shard in found:
        hub.faults += [fault] * (1 if fault == "cut" else 100)
        is_damage = shard.name == "s.jsonl.gz" or shard.name == "s.jsonl.zst"
        told = "truncated" if is_damage else r"received only [\d,]+ of [\d,]+ bytes"
        with nullcontext() if fault == "cut" else pytest.raises(CorpusError, match=told) as error:
            assert len(list(read_shard(shard, source))) == 400
        assert error is None or shard.name in str(error.value)
        hub.faults.clear()


def test_a_shard_that_changes_while_it_is_read_is_named(hub, shards):
    source, found = shards
    for shard in found:
        path = hub.folder / "mill" / "web" / shard.name
        with open_shard(shard, source):
            path.write_bytes(path.read_bytes())
        with (
            pytest.raises(CorpusError, match=f"{shard.name}.*changed since it was registered"),
            open_shard(shard, source),
        ):
            path.write_bytes(path.read_bytes()[::-1])


# What does not answer -----------------------------------------------------------------------------


def said_by(*arguments, folder, **variables):
    """The exit code and the lines on stderr of a command, in a process without a hub."""
    program = str(Path(sys.executable).with_name("decon-assets"))
    environment = {**os.environ, "HF_ENDPOINT": NOWHERE, "HF_HUB_OFFLINE": "0", **variables}
    done = subprocess.run(
        [program, *map(str, arguments)],
        env=environment,
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stderr.strip().splitlines()


@pytest.fixture
def quiz(tmp_path):
    (tmp_path / "quiz.jsonl").write_text(json.dumps({"question": "What is it?", "answer": "It"}))
    recipe = "local_path: quiz.jsonl\n    splits: [test]\n    prompt: question\n"
    (tmp_path / "evals.yaml").write_text(f"evals:\n  quiz:\n    {recipe}")
    hub = recipe.replace("local_path: quiz.jsonl", "hf_path: mill/quiz")
    (tmp_path / "hub.yaml").write_text(f"evals:\n  quiz:\n    {hub}")
    return tmp_path


@pytest.mark.parametrize(
    ("command", "corpus"),
    [
        ("run", f"{SHARDS}/*.jsonl"),
        ("scan", f"{SHARDS}/*.jsonl"),
        ("scan", f"{NOWHERE}/s.jsonl"),
        ("init", f"{SHARDS}/*.jsonl"),
    ],
)
def test_a_corpus_that_does_not_answer_is_one_line_with_cause_and_remedy(quiz, command, corpus):
    settings = '[evals]\nrecipes = ["evals.yaml"]\n[[corpus.source]]\nname = "web"\n'
    (quiz / "decon.toml").write_text(f'{settings}path = "{corpus}"\ntext = "text"\n')
    arguments = {
        "run": ["run"],
        "scan": ["scan", "--evals", "evals.yaml", corpus, "--out", "found"],
        "init": ["init", "--evals", "evals.yaml", "--corpus", corpus, "--out", "made.toml"],
    }[command]
    code, lines = said_by(*arguments, folder=quiz)
    assert code == (2 if command == "init" else 1)
    assert len(lines) == 1
    assert corpus in lines[0]
    remedy = "downloaded files" if command == "init" else "Check the network"
    assert remedy in lines[0]


@pytest.mark.parametrize("command", ["normalize", "scan"])
def test_benchmarks_on_a_hub_that_does_not_answer_are_one_line(quiz, command):
    (quiz / "s.jsonl").write_text('{"text": "some words"}\n')
    arguments = {
        "normalize": ["normalize", "hub.yaml"],
        "scan": ["scan", "--evals", "hub.yaml", "s.jsonl", "--out", "found"],
    }[command]
    code, lines = said_by(*arguments, folder=quiz, HF_HUB_OFFLINE="1")
    assert (code, len(lines)) == (1, 1)
    assert "quiz.hf_path 'mill/quiz': found " in lines[0]
    assert "Unset HF_HUB_OFFLINE, or use a local copy of the files" in lines[0]


def test_benchmarks_on_the_hub_name_the_group_to_install(quiz, hub, capsys, monkeypatch):
    hub.put("mill/quiz/test.jsonl", "{}\n")
    monkeypatch.setitem(sys.modules, "datasets", None)
    assert main(["normalize", str(quiz / "hub.yaml")]) != 0
    assert "Run `pip install 'decon-assets[hub]'`" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (PermissionError("403 Forbidden: Cannot access gated repo"), "Log in or request access"),
        (ConnectionError("Connection refused"), "Check the network"),
        (TimeoutError(), "Check the network"),
    ],
)
def test_each_kind_of_refusal_has_its_remedy(error, told):
    with (
        pytest.raises(UnreachableError, match=told) as caught,
        naming_unreachable(parse_path(SHARDS)),
    ):
        raise error
    assert str(caught.value).startswith(f"{SHARDS}: found {type(error).__name__}")
    assert "\n" not in str(caught.value)
