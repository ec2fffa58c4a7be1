"""The sensor, tick after tick on an ephemeral instance, with the runs that it asks for."""

import json
import time

import pytest
from dagster import AssetKey, DagsterRunStatus, build_sensor_context

from decon_assets.definitions import build_definitions
from decon_assets.resources import Decon
from decon_assets.sensors import Cursor, keep_up, state_of_files
from decon_core.config import load_config


class Daemon:
    """Ticks the sensor, and executes what it asks for, as Dagster's daemon does."""

    def __init__(self, world):
        world.write_config()
        self.world = world
        definitions = build_definitions(config_path=str(world.config_path))
        self.jobs = definitions.get_repository_def()
        self.cursor = None
        self.asked = []

    def tick(self):
        """One tick; the assets that were asked for, or the reason for none."""
        context = build_sensor_context(
            instance=self.world.instance,
            cursor=self.cursor,
            resources={"decon": Decon(config_path=str(self.world.config_path))},
        )
        with context:
            result = keep_up(context)
        self.cursor = result.cursor
        if result.skip_reason:
            return result.skip_reason.skip_message
        for request in result.run_requests:
            self.jobs.get_job(request.job_name).execute_in_process(
                instance=self.world.instance, tags=request.tags, raise_on_error=False
            )
        names = [one.job_name.removeprefix("keep_up_") for one in result.run_requests]
        self.asked += names
        return names

    def settle(self):
        """Ticks until there is nothing to do any more; what was asked for."""
        self.asked = []
        for _ in range(40):
            if self.tick() in ("nothing is left to ask for", "no file changed since all was done"):
                return self.asked
        raise AssertionError(f"no end: {self.asked}")


@pytest.fixture
def daemon(world):
    return Daemon(world)


def test_everything_is_made_from_nothing_stage_by_stage(world, daemon):
    assert daemon.tick() == "files changed; waiting for a tick"
    assert daemon.settle() == [
        "inventory", "records", "idf_snapshot", "index", "scan", "common_ngrams", "mixture",
        "clean_benchmark", "report", "report_page",
    ]  # fmt: skip
    assert world.store.report_page.is_file()


def test_a_tick_without_a_change_asks_for_nothing_and_opens_no_file(world, daemon, monkeypatch):
    daemon.settle()
    monkeypatch.setattr("decon_assets.sensors._today", None)  # what would look into the store
    assert daemon.tick() == "no file changed since all was done"


def test_a_new_benchmark_is_the_only_column_that_is_scanned(world, daemon):
    daemon.settle()
    before = world.tiles()
    world.add_benchmark("orchard")
    assert daemon.settle()[:4] == ["inventory", "records", "index", "scan"]
    after = world.tiles()
    assert {path: after[path] for path in before} == before
    known = world.instance.get_materialized_partitions(AssetKey("scan"))
    assert {key.split("|")[0] for key in known} == {"harbor", "ledger", "orchard"}
    assert len(known) == 9


def test_a_new_shard_is_the_only_row_that_is_scanned(world, daemon):
    daemon.settle()
    before = world.tiles()
    world.add_shard("s9", leaks=[world.benchmarks["harbor"][4]])
    asked = daemon.settle()
    assert asked[:2] == ["inventory", "scan"]
    assert "report" in asked
    assert {path: world.tiles()[path] for path in before} == before


def test_files_that_still_change_are_waited_for(world, daemon):
    daemon.settle()
    for number in range(3):
        world.add_shard("growing", n_documents=12 + number)
        assert daemon.tick() == "files changed; waiting for a tick"
    assert daemon.tick() == ["inventory"]


def test_a_benchmark_that_cannot_be_read_is_refused_once_and_nothing_else_is_touched(world, daemon):
    daemon.settle()
    before = world.tiles()
    good = (world.folder / "harbor.jsonl").read_text()
    (world.folder / "harbor.jsonl").write_text("no line of JSON\n")
    daemon.tick()
    assert daemon.tick() == ["inventory"]
    for _ in range(2):
        assert daemon.tick() == "`inventory` refused these files; its last run says why"
    assert world.tiles() == before
    (world.folder / "harbor.jsonl").write_text(good)
    assert daemon.settle()[0] == "inventory"


def test_a_shard_that_is_damaged_is_asked_for_once_and_does_not_keep_the_others(world, daemon):
    daemon.settle()
    whole = world.add_shard("s9").read_bytes()
    (world.folder / "corpus" / "s9.jsonl.gz").write_bytes(whole[: len(whole) // 2])
    asked = daemon.settle()
    assert asked.count("scan") == 1
    assert "report" not in asked  # it would say of unscanned shards that they are clean
    assert daemon.tick() == "no file changed since all was done"


def test_a_verdict_makes_a_new_report(world, daemon):
    daemon.settle()
    (world.folder / "verdicts.jsonl").write_text("")
    assert daemon.settle()[0] == "inventory"


def test_runs_at_work_are_waited_for(world, daemon):
    daemon.settle()
    world.add_shard("s9")
    daemon.tick()
    run = world.instance.create_run_for_job(
        daemon.jobs.get_job("keep_up_scan"), status=DagsterRunStatus.STARTED
    )
    assert daemon.tick() == "1 runs are at work or waiting"
    world.instance.report_run_failed(run)
    assert daemon.tick() == ["inventory"]


@pytest.mark.parametrize("text", [None, "", "no json", "[]", '{"other": 1}', '"text"'])
def test_a_cursor_that_nobody_can_read_is_begun_anew(text):
    assert Cursor.read(text) == Cursor()


def test_a_cursor_is_read_as_it_was_written():
    cursor = Cursor(seen="a", registered="b", asked=("scan x y",), is_settled=True)
    assert Cursor.read(cursor.written()) == cursor
    assert json.loads(cursor.written())["asked"] == ["scan x y"]


def test_the_state_of_a_hundred_thousand_files_is_known_within_seconds(world):
    world.write_config()
    for number in range(20_000):
        (world.folder / "corpus" / f"many-{number:06}.jsonl.gz").touch()
    config = load_config(world.config_path)
    started = time.perf_counter()
    state = state_of_files(config)
    assert time.perf_counter() - started < 10  # a fifth of that many: some 0.3 s
    (world.folder / "corpus" / "many-000007.jsonl.gz").write_bytes(b"more")
    assert state_of_files(config) != state


def test_the_sensor_is_off_until_somebody_switches_it_on():
    assert keep_up.default_status.value == "STOPPED"
