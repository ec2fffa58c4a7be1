"""Corpora behind `hf://` and other URLs, and what is said when nothing answers there.

The hub is stood in for by a folder under the same scheme: all that is ours runs as it does there.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from fsspec.implementations.dirfs import DirFileSystem
from fsspec.implementations.local import LocalFileSystem
from fsspec.registry import _registry

from decon_assets.cli.main import main
from decon_assets.runner.pipeline import Pipeline
from decon_core.config.sources import Source
from decon_core.corpus.packs import find_shards
from decon_core.storage.paths import UnreachableError, naming_unreachable, parse_path

SHARDS = "hf://datasets/mill/web"
NOWHERE = "http://127.0.0.1:1"  # a port that refuses


class FolderAsHub(DirFileSystem):
    """A folder under the hub's scheme, with the names and the file details that the hub gives."""

    protocol = "hf"
    cachable = False
    root = ""

    def __init__(self, **options):
        super().__init__(path=self.root, fs=LocalFileSystem(), **options)

    def _as_hub(self, info):
        kept = {name: info[name] for name in ("name", "size", "type")}
        return {**kept, "blob_id": f"{info['mtime']}"}

    def info(self, path, **options):
        return self._as_hub(super().info(path, **options))

    def glob(self, path, **options):
        return {name: self._as_hub(info) for name, info in super().glob(path, **options).items()}


@pytest.fixture
def hub(tmp_path_factory, monkeypatch):
    monkeypatch.setattr(FolderAsHub, "root", str(tmp_path_factory.mktemp("hub")))
    monkeypatch.setitem(_registry, "hf", FolderAsHub)
    return Path(FolderAsHub.root)


def test_a_corpus_on_the_hub_is_scanned_and_mixed_as_a_folder_is(world, hub, instance):
    world.write_config()
    target = hub / "datasets" / "mill" / "web"
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


def test_scan_reads_a_folder_and_a_glob_on_the_hub(tmp_path, hub, capsys):
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
    (tmp_path / "quiz.jsonl").write_text("".join(json.dumps(item) + "\n" for item in items))
    (tmp_path / "policy.toml").write_text('tokenizer_str = "words"')
    target = hub / "datasets" / "mill" / "web" / "deep"
    target.mkdir(parents=True)
    text = f"{items[0]['question']} {items[0]['answer']}"
    (target / "s.jsonl").write_text(json.dumps({"content": text}) + "\n")
    (target / "_removed.jsonl").write_text("{}\n")
    for corpus in (SHARDS, f"{SHARDS}/**/*.jsonl", f"{SHARDS}/deep/s.jsonl"):
        command = ["scan", "--evals", "quiz.jsonl", corpus, "--out", "found"]
        paths = {name: str(tmp_path / name) for name in ("quiz.jsonl", "found")}
        command = [paths.get(part, part) for part in command]
        assert main([*command, "--policy", str(tmp_path / "policy.toml")]) == 0
        said = capsys.readouterr().out
        assert "1 of 1 document holds a leak" in said, corpus


def test_a_shard_on_the_hub_that_changed_is_known_by_its_blob(hub):
    path = hub / "datasets" / "mill" / "web" / "s.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text('{"text": "one"}\n')
    os.utime(path, (1, 1))
    source = Source(name="web", path=f"{SHARDS}/*.jsonl", text="text")
    (first,) = find_shards(source, folder=hub, known={})
    path.write_text('{"text": "two"}\n')  # as many bytes
    (second,) = find_shards(source, folder=hub, known={first.path: first})
    assert first.content != second.content


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
