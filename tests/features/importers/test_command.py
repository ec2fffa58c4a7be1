"""`decon-assets catalog --from` prints what a registry declares."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from decon_assets.cli.main import main
from decon_core.benchmarks.parse import parse_recipes

TASKS = {
    "sums": "dataset_path: you/sums\ntest_split: test\ndoc_to_text: problem\ndoc_to_target: answer",
    "sums_by_heart": """
dataset_path: you/heart
test_split: test
doc_to_text: "{% if hard %}{{long}}{% else %}{{short}}{% endif %}"
doc_to_target: answer
""",
    "made": "custom_dataset: !function made.rows\ntest_split: test\ndoc_to_text: text",
}


@pytest.fixture
def registry(tmp_path: Path) -> str:
    for name, task in TASKS.items():
        (tmp_path / f"{name}.yaml").write_text(f"task: {name}\n{task}", encoding="utf-8")
    return str(tmp_path)


def test_the_table_counts_recipes_and_names_the_reasons(
    registry: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["catalog", "--from", registry]) == 0
    printed = capsys.readouterr().out
    rows = [line.split() for line in printed.splitlines()]
    assert ["derived", "1", "1", "1"] in rows
    assert "proposed, because" in printed
    assert "the question is computed" in printed
    assert "Python code creates the rows" in printed


def test_names_print_recipes_that_load_and_a_comment_on_what_is_unconfirmed(
    registry: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["catalog", "--from", registry, "sums*"]) == 0
    printed, warned = capsys.readouterr()
    assert "1 recipe unconfirmed: `decon-assets normalize FILE --show 3`" in warned
    assert [*parse_recipes(printed, where="stdout")] == ["sums", "sums_by_heart"]
    assert "  # unconfirmed: the question is computed: an {% if %}\n  sums_by_heart:" in printed


def test_a_refused_benchmark_has_no_recipe_but_a_reason(
    registry: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["catalog", "--from", registry, "made"]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("made: refused: Python code creates the rows")
    assert main(["catalog", "--from", registry, "absent"]) == 2


def test_json_has_every_benchmark_with_its_origin(
    registry: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["catalog", "--from", registry, "--json"]) == 0
    benchmarks = {entry["name"]: entry for entry in json.loads(capsys.readouterr().out)}
    assert benchmarks["made"] == {
        "name": "made",
        "status": "refused",
        "origin": {"registry": "lm-evaluation-harness", "file": "made.yaml", "tasks": ["made"]},
        "data_set": "",
        "recipe": None,
        "reason": "Python code creates the rows",
        "detail": "custom_dataset: made.rows",
    }
    assert benchmarks["sums"]["recipe"]["hf_path"] == "you/sums"


def test_the_hub_is_read_through_its_file_system(
    capsys: pytest.CaptureFixture[str],
) -> None:
    import fsspec

    text = b"tasks: [{id: quiz, field_spec: {input: q, target: a}}]"
    fsspec.filesystem("memory").pipe("/datasets/you/quiz/eval.yaml", text)
    assert main(["catalog", "--from", "memory://datasets/you/quiz", "quiz"]) == 0
    assert "hf_path: you/quiz" in capsys.readouterr().out
