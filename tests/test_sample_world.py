"""The world in data/, run whole: the truth table, a benchmark that joins later, a killed run."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import duckdb
import pytest
from dagster import DagsterInstance

from decon_assets.pipeline import Pipeline
from decon_assets.tables import truth_tables
from decon_core.truth import compare

DATA = Path(__file__).parents[1] / "data"
INSIDE = {"harbor_mc", "ledger_math", "almanac_rc", "strait_mt"}
MUST_BE_FOUND = {"verbatim", "at_start", "at_end", "punctuation_and_case", "single_edit"}


def copy_of_data(folder: Path, *, with_later: bool = False) -> Path:
    """A copy to run in; its configuration."""
    shutil.copytree(DATA, folder, ignore=shutil.ignore_patterns(".d*", "__pycache__"))
    if with_later:
        add_later(folder)
    return folder / "decon.toml"


def add_later(folder: Path) -> None:
    """What the README says to do when a benchmark joins."""
    path = folder / "decon.toml"
    before = path.read_text()
    after = before.replace('["evals.yaml"]', '["evals.yaml", "later/evals.yaml"]')
    assert after != before
    path.write_text(after)


def run(config: Path, instance: DagsterInstance) -> list[str]:
    said: list[str] = []
    Pipeline(config, instance, said.append).run()
    return said


def tiles(config: Path) -> dict[str, bytes]:
    root = config.parent / ".decon" / "tiles"
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in root.rglob("*")
        if path.is_file() and not path.name.startswith(".")
    }


def score(config: Path):
    report = config.parent / ".decon" / "report" / "contamination.duckdb"
    return compare(report, config.parent / "truth.jsonl")


def n_shards_read(said: list[str]) -> int:
    return sum(int(n) for line in said for n in re.findall(r"read (\d+) shards, wrote", line))


@pytest.fixture(scope="module")
def four_report(tmp_path_factory):
    """Where the report of the four benchmarks is kept when the fifth joins."""
    return tmp_path_factory.mktemp("report") / "four.duckdb"


@pytest.fixture(scope="module")
def finished(tmp_path_factory, four_report):
    """The four benchmarks, run once; then the fifth joins. Both states are kept."""
    folder = tmp_path_factory.mktemp("sample") / "data"
    config = copy_of_data(folder)
    with DagsterInstance.ephemeral() as instance:
        first = run(config, instance)
        four = (tiles(config), score(config), first)
        shutil.copy2(folder / ".decon" / "report" / "contamination.duckdb", four_report)
        add_later(folder)
        second = run(config, instance)
        five = (tiles(config), score(config), second)
    return four, five


def test_every_plant_that_must_be_found_is_found_and_no_hard_negative_is_flagged(finished, capsys):
    (_, (benchmarks, phenomena), _), _ = finished
    with capsys.disabled():  # the truth table is for people, in a run that passes as well
        print(truth_tables(benchmarks, phenomena))
    by_name = {found.phenomenon: found for found in phenomena}
    assert set(by_name) >= MUST_BE_FOUND
    for name in MUST_BE_FOUND:
        assert by_name[name].n_flagged == by_name[name].n == by_name[name].n_expected >= 2
    for found in phenomena:
        assert found.n_wrong == 0, found
        if found.kind == "hard_negative":
            assert found.n_flagged == 0
            assert found.n >= 3
    assert {found.benchmark for found in benchmarks} == INSIDE
    assert all(found.n_items >= 60 for found in benchmarks)
    assert all(found.n_false_alarms == 0 for found in benchmarks)


def test_the_verdict_on_the_readme_s_first_screen_is_the_report_s(finished, four_report):
    with duckdb.connect(str(four_report), read_only=True) as connection:
        row = connection.execute(
            "SELECT n_matched, n_grams, round(question_overlap, 2), answer_overlap, "
            "round(score, 2) FROM matches WHERE shard_name = 'shelf-0001.jsonl.gz' AND row = 393 "
            "AND (benchmark, split, instance_index) = ('ledger_math', 'train', 16)"
        ).fetchone()
    assert row == (42, 47, 0.89, 1.0, 0.92)
    readme = " ".join((DATA.parent / "README.md").read_text().replace(">", "").split())
    assert "42 of 47 question 5-grams (0.89 by idf) and the whole answer" in readme
    assert "score 0.92 where 0.8 is a leak" in readme


def test_a_fifth_benchmark_fills_only_its_column_and_finds_its_leaks(finished):
    (before, _, _), (after, (benchmarks, _), said) = finished
    assert {path: after[path] for path in before} == before
    assert len(set(after) - set(before)) == 16  # a tile for each shard, and its counts
    assert n_shards_read(said) == 8  # every shard once
    (orchard,) = [found for found in benchmarks if found.benchmark == "orchard_code"]
    assert orchard.n_found == orchard.n_planted >= 4
    assert orchard.n_false_alarms == 0


def test_five_from_scratch_equal_four_and_one_byte_for_byte(finished, tmp_path):
    _, (grown, _, _) = finished
    config = copy_of_data(tmp_path / "data", with_later=True)
    with DagsterInstance.ephemeral() as instance:
        said = run(config, instance)
    assert tiles(config) == grown
    assert n_shards_read(said) == 8


def test_a_run_killed_in_the_middle_of_the_scan_goes_on_where_it_was(finished, tmp_path):
    (undisturbed, _, _), _ = finished
    config = copy_of_data(tmp_path / "data")
    environment = {**os.environ, "DAGSTER_HOME": str(tmp_path / "home")}
    command = [Path(sys.executable).with_name("decon-assets"), "run", "--config", config]
    killed = subprocess.Popen(
        command, env=environment, stdout=subprocess.DEVNULL, start_new_session=True
    )
    try:
        deadline = time.monotonic() + 120
        while not tiles(config) and time.monotonic() < deadline and killed.poll() is None:
            time.sleep(0.01)
    finally:
        os.killpg(killed.pid, signal.SIGKILL)
        killed.wait()
    n_before = len(tiles(config))
    assert 0 < n_before < len(undisturbed)

    again = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert again.returncode == 0, again.stderr
    assert tiles(config) == undisturbed
