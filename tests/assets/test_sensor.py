"""What the sensor asks for, tick after tick, with the runs executed on an ephemeral instance."""

import json
import time

import pytest
from dagster import AssetKey, DagsterRunStatus

from decon_assets.assets.registration import record_inventory, register
from decon_assets.definitions import definitions
from decon_assets.sensors import Cursor, state_of_files
from decon_core.config.load import load_config
from decon_core.report.open import coverage_of
from tests.assets.ticks import ALL_DONE, Daemon

AFTER_THE_SCAN = ["common_ngrams", "mixture", "clean_benchmark", "report", "report_page"]


def cut_off_scan(world, daemon):
    """A new shard, and the process of the scan that is asked for dies."""
    world.add_shard("s9", leaks=[world.benchmarks["harbor"][4]])
    daemon.tick()
    assert daemon.tick() == ["inventory"]
    assert daemon.tick(end=world.instance.report_run_failed) == ["scan"]


@pytest.fixture
def daemon(world):
    return Daemon(world)


def test_everything_is_made_from_nothing_stage_by_stage(world, daemon):
    assert daemon.tick() == "files changed; waiting one tick in case more changes follow"
    assert daemon.settle() == [
        "inventory", "records", "term_weights", "index", "scan", "common_ngrams", "mixture",
        "clean_benchmark", "report", "report_page",
    ]  # fmt: skip
    assert world.store.report_page.is_file()


def test_a_tick_without_a_change_asks_for_nothing_and_opens_no_file(world, daemon, monkeypatch):
    daemon.settle()
    monkeypatch.setattr("decon_assets.sensors._load_plan", None)  # what would look into the store
    assert daemon.tick() == ALL_DONE


def test_a_new_benchmark_is_the_only_column_that_is_scanned(world, daemon):
    daemon.settle()
    before = world.scan_results()
    world.add_benchmark("orchard")
    assert daemon.settle(until="scan") == ["inventory", "records", "index", "scan"]
    after = world.scan_results()
    assert {path: after[path] for path in before} == before
    known = world.instance.get_materialized_partitions(AssetKey("scan"))
    assert {key.split("|")[0] for key in known} == {"harbor", "ledger", "orchard"}
    assert len(known) == 9


def test_a_new_shard_is_the_only_row_that_is_scanned(world, daemon):
    daemon.settle()
    before = world.scan_results()
    world.add_shard("s9", leaks=[world.benchmarks["harbor"][4]])
    asked = daemon.settle(until="mixture")
    assert asked == ["inventory", "scan", "common_ngrams", "mixture"]
    assert {path: world.scan_results()[path] for path in before} == before


def test_files_that_still_change_are_waited_for(world, daemon):
    daemon.settle()
    for number in range(3):
        world.add_shard("growing", n_documents=12 + number)
        assert daemon.tick() == "files changed; waiting one tick in case more changes follow"
    assert daemon.tick() == ["inventory"]


def test_a_benchmark_that_cannot_be_read_is_refused_once_and_nothing_else_is_touched(world, daemon):
    daemon.settle()
    before = world.scan_results()
    good = (world.folder / "harbor.jsonl").read_text()
    (world.folder / "harbor.jsonl").write_text("no line of JSON\n")
    daemon.tick()
    assert daemon.tick() == ["inventory"]
    for _ in range(2):
        assert daemon.tick().startswith("`inventory` failed on these files; its last run shows why")
    assert world.scan_results() == before
    (world.folder / "harbor.jsonl").write_text(good)
    assert daemon.settle()[0] == "inventory"


@pytest.fixture
def refused(world, daemon):
    """Most shards are gone, and `inventory` wants to be told that this is meant."""
    daemon.settle()
    for name in ("s0", "s1"):
        (world.folder / "corpus" / f"{name}.jsonl.gz").unlink()
    daemon.tick()
    assert daemon.tick() == ["inventory"]
    assert daemon.tick().startswith("`inventory` failed on these files")
    return daemon


# The card of a mixture lists the packs that there are.
AFTER_RETIRING = ["common_ngrams", "mixture"]


def test_an_inventory_that_is_told_by_hand_to_retire_packs_counts(refused):
    refused.press("inventory", retire=True)
    assert refused.settle(until="mixture") == AFTER_RETIRING


def register_in_terminal(world, **options):
    registered = register(world.config_path, world.instance, echo=world.said.append, **options)
    record_inventory(registered, world.instance)


def test_packs_that_are_retired_in_a_terminal_count(world, refused):
    register_in_terminal(world, may_retire=True)
    assert refused.settle(until="mixture") == AFTER_RETIRING


def test_an_inventory_that_was_cancelled_is_said_to_be_and_waited_for(world, daemon):
    daemon.settle()
    world.add_benchmark("late")
    daemon.tick()
    assert daemon.tick(end=world.instance.report_run_canceled) == ["inventory"]
    for _ in range(2):
        assert daemon.tick() == (
            "`inventory` was cancelled for these files; materialize it to continue"
        )
    daemon.press("inventory")
    assert daemon.settle(until="scan") == ["records", "index", "scan"]


def test_a_terminal_that_registers_nothing_new_counts_after_a_cancelled_inventory(world, daemon):
    daemon.settle()
    (world.folder / "verdicts.jsonl").write_text("")
    daemon.tick()
    assert daemon.tick(end=world.instance.report_run_canceled) == ["inventory"]
    register_in_terminal(world)
    assert daemon.tick() == ALL_DONE


def test_a_shard_that_is_damaged_is_asked_for_once_and_does_not_keep_the_others(world, daemon):
    daemon.settle()
    whole = world.add_shard("s9").read_bytes()
    (world.folder / "corpus" / "s9.jsonl.gz").write_bytes(whole[: len(whole) // 2])
    asked = daemon.settle()
    assert asked.count("scan") == 1
    assert asked.count("report") == 1  # of the other shards, marked as incomplete
    assert not coverage_of(world.store.report).is_complete
    assert daemon.tick().startswith("requested but still missing: `scan`, `mixture`")


def test_what_was_asked_for_too_early_is_asked_for_again_when_a_second_try_scanned(world, daemon):
    daemon.settle()
    cut_off_scan(world, daemon)
    assert daemon.tick() == ["mixture"]  # before Dagster's daemon tries again; it is refused
    daemon.press("scan")
    assert daemon.settle() == AFTER_THE_SCAN
    assert daemon.tick() == ALL_DONE


def test_what_somebody_mends_by_hand_after_all_was_tried_is_gone_on_from(world, daemon):
    daemon.settle()
    cut_off_scan(world, daemon)
    daemon.settle()
    assert daemon.tick().startswith("requested but still missing: `scan`")
    daemon.press("term_weights")  # a run that changes nothing
    assert daemon.tick().startswith("requested but still missing: `scan`")
    daemon.press("scan")
    assert daemon.settle(until="mixture") == AFTER_THE_SCAN[:2]


def test_a_configuration_that_cannot_be_read_is_told_of_by_the_tick(world, daemon):
    daemon.settle()
    before = daemon.cursor
    world.config_path.write_text("[evals\n")
    for _ in range(2):
        assert str(world.config_path) in daemon.tick()
    assert daemon.cursor == before
    world.policy["n_gram"] = 4
    world.write_config()
    assert "n_gram" in daemon.tick()
    del world.policy["n_gram"]
    world.write_config()
    assert daemon.settle() == ["inventory"]


def test_no_report_is_asked_for_where_nothing_could_be_read(world, daemon):
    for damaged in (world.folder / "corpus").glob("*.jsonl.gz"):
        damaged.write_bytes(damaged.read_bytes()[:100])
    asked = daemon.settle()
    assert "scan" in asked
    assert world.store.report.is_file() is False
    assert "report_page" not in asked


def test_an_idf_snapshot_of_another_policy_is_told_of_until_somebody_freezes_it_anew(world, daemon):
    daemon.settle()
    world.policy["ngram_size"] = 4
    world.write_config()
    daemon.tick()
    assert daemon.tick() == ["inventory"]
    for _ in range(2):
        assert "the term weights were counted with other policy settings" in daemon.tick()
    daemon.press("term_weights", refreeze=True)
    assert daemon.settle(until="scan") == ["index", "scan"]


def test_a_verdict_makes_a_new_report(world, daemon):
    daemon.settle()
    (world.folder / "verdicts.jsonl").write_text("")
    assert daemon.settle()[0] == "inventory"


def test_runs_at_work_are_waited_for(world, daemon):
    daemon.settle()
    world.add_shard("s9")
    daemon.tick()
    run = world.instance.create_run_for_job(
        daemon.jobs.get_job("stage_scan"), status=DagsterRunStatus.STARTED
    )
    assert daemon.tick() == "waiting for 1 unfinished run"
    world.instance.report_run_failed(run)
    assert daemon.tick() == ["inventory"]


@pytest.mark.parametrize(
    "text", [None, "", "no json", "[]", '{"other": 1}', '"text"', '{"asked": ["scan x y"]}']
)
def test_a_cursor_that_nobody_can_read_is_begun_anew(text):
    assert Cursor.from_json(text) == Cursor()


def test_a_cursor_is_read_as_it_was_written():
    cursor = Cursor(seen="a", registered="b", asked={"scan x y": "c"}, settled="d")
    assert Cursor.from_json(cursor.to_json()) == cursor
    assert json.loads(cursor.to_json())["asked"] == {"scan x y": "c"}


def test_the_state_of_a_hundred_thousand_files_takes_seconds_of_a_processor(world):
    world.write_config()
    for number in range(5_000):
        (world.folder / "corpus" / f"many-{number:06}.jsonl.gz").touch()
    config = load_config(world.config_path)
    started = time.process_time()
    state = state_of_files(config)
    assert time.process_time() - started < 5  # a twentieth of that many: some 0.08 s
    (world.folder / "corpus" / "many-000007.jsonl.gz").write_bytes(b"more")
    assert state_of_files(config) != state


def test_the_sensor_is_off_until_somebody_switches_it_on():
    keep_up = definitions.get_repository_def().get_sensor_def("keep_up")
    assert keep_up.default_status.value == "STOPPED"
