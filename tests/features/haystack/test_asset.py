"""The `haystack` asset: off by default, made by a run, up to date until an input changes."""

import json
import re

from decon_assets.cli.main import main
from decon_core.corpus.packs import FILES, hashes_below
from decon_core.features.haystack.product import RESULT, faults_of_haystack, haystack_folder
from decon_core.features.haystack.settings import BUILT_IN
from decon_core.quality.integrity import remove_damaged, verify_store
from decon_core.storage.files import write_json
from decon_core.storage.store import Store
from tests.finished_world import DATA, copy_finished_world

TABLE = "[haystack]\nitems = 2\ndocuments = 20\n"


def result(world):
    return json.loads((haystack_folder(world.store) / "haystack.json").read_text())


def test_a_run_makes_it_if_it_is_configured_and_again_if_its_settings_change(world, capsys):
    world.start()
    assert not haystack_folder(world.store).exists()
    world.mixtures = TABLE
    world.run(until="haystack")
    assert result(world)["n_planted"] == 4
    assert [one["scorer"] for one in result(world)["scorers"]] == [
        "instruction_like",
        "educational",
        "short",
    ]
    assert not [one for one in verify_store(world.store) if one]
    world.run(until="haystack")
    assert "haystack: up to date" in world.said
    table = haystack_folder(world.store) / "haystack.csv"
    table.write_text(table.read_text() + "more\n")
    found = [one for one in verify_store(world.store) if one]
    assert [one.where for one in found] == [str(table)]
    remove_damaged(world.store, found)
    world.run(until="haystack")
    assert "more" not in table.read_text()
    world.mixtures = TABLE.replace("items = 2", "items = 3")
    world.write_config()
    assert main(["status", "--config", str(world.config_path)]) == 1
    assert capsys.readouterr().out.count("haystack: missing or outdated") == 1
    world.run(until="haystack")
    assert result(world)["n_planted"] == 6


def test_the_docs_show_the_tables_of_the_sample_world(tmp_path):
    made = haystack_folder(Store(copy_finished_world(tmp_path).parent / ".decon")) / "haystack.md"
    lines = made.read_text().splitlines()
    rows = {tuple(cell.strip() for cell in line.strip("|").split("|")) for line in lines}
    page = (DATA.parent / "docs/studies/haystack.md").read_text().splitlines()
    shown = [tuple(re.split(r"\s{2,}", line.strip())) for line in page if line.startswith("    ")]
    tables = [row for row in shown if row[0] in BUILT_IN]
    assert len(tables) > 20
    assert {*tables} <= rows


def test_a_changed_or_missing_file_of_a_haystack_is_named(tmp_path):
    assert [*faults_of_haystack(tmp_path)] == []
    (tmp_path / "haystack.csv").write_text("scorer,item\na,1\na,2\n")
    (tmp_path / "planted.jsonl").write_text("{}\n")
    write_json(tmp_path / RESULT, {"n_planted": 2, FILES: hashes_below(tmp_path)})
    assert [*faults_of_haystack(tmp_path)] == []
    (tmp_path / "haystack.csv").write_text("scorer,item\na,1\na,2\na,2\n")
    (tmp_path / "planted.jsonl").unlink()
    assert [fault.found for fault in faults_of_haystack(tmp_path)] == [
        "its content changed since it was written",
        "the file is missing",
    ]
