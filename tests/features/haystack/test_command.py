"""`decon-assets haystack`: --set overrides [haystack], and the exit code says what is wrong."""

import csv
import json

import pytest

from decon_assets.cli.main import main


@pytest.fixture
def command(world, capsys):
    world.start()
    world.mixtures = '[haystack]\nitems = 2\ndocuments = 20\nscorers = ["educational"]\n'
    world.write_config()

    def run(*arguments):
        code = main(["haystack", *arguments, "--config", str(world.config_path)])
        return code, capsys.readouterr()

    return run


def test_the_tables_are_printed_and_the_files_written(command, tmp_path):
    code, told = command("--out", str(tmp_path), "--set", "cuts=[0.2, 0.5]", "--set", "items=3")
    assert code == 0
    assert "6 items planted among 20 documents" in told.out
    assert "instruction_like" not in told.out
    assert told.out.rstrip().endswith(str(tmp_path / "haystack.md"))
    with (tmp_path / "amplification.csv").open() as file:
        assert [row["cut"] for row in csv.DictReader(file)][:2] == ["0.2", "0.5"]


def test_planted_items_are_written_for_another_classifier_and_read_back(command, tmp_path, world):
    path = tmp_path / "planted.jsonl"
    assert command("--planted", str(path))[0] == 0
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert len(rows) == 4
    path.write_text("".join(json.dumps({"item": r["item"], "score": 1}) + "\n" for r in rows))
    code, told = command("--set", f'scorers=["column:license={path}"]')
    assert code == 2
    assert "no number in the field 'license'" in told.err


def test_wrong_settings_are_named_together(command):
    wrong = ('scorers=["fastext:q"]', 'sources=["wep"]', "cuts=[2]")
    code, told = command(*(part for setting in wrong for part in ("--set", setting)))
    assert code == 2
    assert told.err.count("--set: haystack.") == 3
    code, told = command("--set", "scorers=short")
    assert code == 2
    assert "settings as in TOML" in told.err


def test_a_missing_file_is_named_before_the_corpus_is_read(command):
    code, told = command("--set", 'scorers=["sklearn:nowhere.joblib"]')
    assert code == 2
    assert "no such file" in told.err
    assert "runs the code in it" in told.err
