"""The examples and the page, run as a user runs them."""

import ast
import doctest
import gzip
import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.core.library.samples import CLEAN, ITEMS, NO_ANSWER, VERBATIM

ROOT = Path(__file__).parents[3]


@pytest.fixture
def world(tmp_path):
    """A recipe, its rows, and a shard; two of four texts hold an item."""
    rows = "".join(f"{json.dumps(item)}\n" for item in ITEMS)
    (tmp_path / "quiz.jsonl").write_text(rows)
    recipe = {"local_path": "quiz.jsonl", "splits": ["test"], "prompt": "question"}
    evals = {"evals": {"quiz": {**recipe, "answers": ["answer"]}}}
    (tmp_path / "evals.yaml").write_text(json.dumps(evals))
    shards = tmp_path / "shards"
    shards.mkdir()
    texts = [CLEAN, VERBATIM, NO_ANSWER, "A note."]
    lines = "".join(json.dumps({"id": f"{n}", "text": one}) + "\n" for n, one in enumerate(texts))
    (shards / "texts.jsonl.gz").write_bytes(gzip.compress(lines.encode()))
    (tmp_path / "texts.jsonl").write_text(lines)
    return tmp_path


def run(world: Path, name: str, *arguments: str) -> str:
    """Run an example in a folder of its own."""
    command = [sys.executable, str(ROOT / "examples" / name), *arguments]
    env = {"HF_HOME": str(world / "hf"), "HF_HUB_OFFLINE": "1", "PATH": "", "HOME": str(world)}
    env["PYTHONPATH"] = str(ROOT)  # this checkout, whichever is installed
    done = subprocess.run(command, capture_output=True, text=True, cwd=world, env=env, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def rows_of(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_hugging_face_data_set_is_filtered_and_labelled(world):
    said = run(world, "huggingface_filter.py", "evals.yaml", "texts.jsonl", "clean.jsonl")
    assert said == "2 of 4 rows kept\n"
    kept = rows_of(world / "clean.jsonl")
    assert [row["text"] for row in kept] == [CLEAN, "A note."]
    assert [row["weak_matches"] for row in kept] == [0, 0]


def test_a_hugging_face_data_set_of_conversations_is_filtered(world):
    call = {"name": "note", "arguments": json.dumps({"text": VERBATIM})}
    chats = [
        {"messages": [{"role": "user", "content": CLEAN, "call": None}], "kind": "a"},
        {"messages": [{"role": "assistant", "content": None, "call": call}], "kind": "b"},
        {"messages": [{"role": "user", "content": "A note.", "call": None}], "kind": "c"},
    ]
    (world / "chats.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in chats))
    said = run(world, "huggingface_filter.py", "evals.yaml", "chats.jsonl", "clean.jsonl")
    assert said == "2 of 3 rows kept\n"
    assert [row["kind"] for row in rows_of(world / "clean.jsonl")] == ["a", "c"]


def test_a_datatrove_pipeline_drops_leaks_and_says_why(world):
    run(world, "datatrove_block.py", "evals.yaml", "shards", "clean")
    (kept,) = (world / "clean" / "kept").iterdir()
    assert [row["text"] for row in rows_of(kept)] == [CLEAN, "A note."]
    (removed,) = (world / "clean" / "removed").iterdir()
    assert [(row["id"], row["metadata"]["filter_reason"]) for row in rows_of(removed)] == [
        ("1", "leak: quiz test"),
        ("2", "no answer: quiz test"),
    ]


def test_the_notebook_shows_what_it_says_in_ten_lines():
    notebook = json.loads((ROOT / "examples" / "notebook.ipynb").read_text())
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    lines = ["".join(cell["source"]) for cell in cells]
    assert len("\n".join(lines).splitlines()) <= 10
    *body, last = ast.parse("\n".join(lines)).body
    names: dict = {}
    exec(compile(ast.Module(body, []), "notebook", "exec"), names)
    shown = eval(compile(ast.Expression(last.value), "notebook", "eval"), names)
    (output,) = cells[-1]["outputs"]
    assert "".join(output["data"]["text/html"]) == shown._repr_html_()
    assert output["data"]["text/plain"] == [repr(shown)]
    assert shown.is_leaked


def test_the_page_says_what_happens(monkeypatch, world):
    monkeypatch.chdir(world)
    options = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    page = str(ROOT / "docs" / "library.md")
    done = doctest.testfile(page, module_relative=False, optionflags=options)
    assert done.attempted > 20
    assert done.failed == 0
