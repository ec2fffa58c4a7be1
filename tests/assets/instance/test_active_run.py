"""Commands that read, typed beside the first run: they say that it is at work and how far it is."""

import fcntl
import re
import shutil

import pytest
from dagster import DagsterRunStatus

from decon_assets.cli.main import main
from decon_assets.definitions import build_definitions
from decon_assets.instance.active_run import _may_have_started_runs, active_run
from decon_assets.instance.home import (
    IN_PROCESS_TAG,
    LOCK,
    ensure_home,
    home_for,
    open_instance,
)
from decon_assets.runner.pipeline import Pipeline
from decon_assets.runner.stage_lines import StageLines
from tests.conftest import graph_until

SINCE = r"since \d{4}-\d\d-\d\d \d\d:\d\d:\d\d"


@pytest.fixture
def at_home(at_home_on_disk):
    """Other processes open the history."""
    return at_home_on_disk


@pytest.fixture
def beside(at_home):
    """Calls a function within the first run, `until` a stage, when it says such a beginning."""

    def run(beginning, call, *, until):
        told = []

        def echo(line):
            if line.strip().startswith(beginning) and not told:
                told.append(None)
                told[0] = call()

        with open_instance(home_for(at_home.config_path)) as instance:
            lines = StageLines(echo, is_verbose=True)  # a line for each part, while it is made
            graph = graph_until(until)
            Pipeline(at_home.config_path, instance, echo, lines=lines, graph=graph).run()
        return told[0]

    return run


COMMANDS = (
    ["status"],
    ["report"],
    ["review", "status"],
    ["review", "--list"],
    ["mixture", "verify"],
    ["blend", "verify"],
    ["check", "--max-rate", "0.1"],
    ["card"],
    ["why", "s1-3"],
)


def test_beside_a_first_run_every_reading_command_says_so_and_ends_with_1(beside, capsys):
    def call():
        told = []
        for command in COMMANDS:
            code = main(command)
            told.append((command, code, "".join(capsys.readouterr())))
        return told

    # While records are made there is no snapshot, index, scan result, mixture or report yet.
    for command, code, said in beside("harbor: 5 items", call, until="records"):
        assert code == 1, (command, said)
        run = rf"a run is active: `records` {SINCE}; 0 of 6 partitions scanned"
        assert re.search(run, said), (command, said)
        assert "materialize" not in said, command
        assert "decon-assets run" not in said, command


def test_beside_a_later_stage_the_partitions_that_are_done_are_counted(beside, capsys):
    def call():
        codes = [main(["status"]), main(["report"])]
        return codes, "".join(capsys.readouterr())

    codes, said = beside("decontaminated", call, until="mixture")
    assert codes == [1, 1]
    told = rf"a run is active: `mixture` {SINCE}; 6 of 6 partitions scanned"
    assert len(re.findall(told, said)) == 2


def test_before_a_run_there_is_none(at_home, capsys):
    assert active_run(at_home.config_path) is None
    assert main(["report"]) == 1
    assert "`decon-assets run` builds it" in capsys.readouterr().err


def test_a_history_that_is_being_created_is_not_opened(at_home, monkeypatch):
    """A reader that opened it would create tables beside the run that does."""
    home = ensure_home(home_for(at_home.config_path))
    shutil.rmtree(home / "history")
    (home / "history").mkdir()
    (home / "history" / "runs.db").touch()
    monkeypatch.setattr(
        "dagster.DagsterInstance.from_config", lambda *_: pytest.fail("it was opened")
    )
    with (home / LOCK).open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert str(active_run(at_home.config_path)).startswith("a run is active: preparing;")


@pytest.mark.parametrize(
    ("settings", "has_runs"),
    [
        ("# postgres: not yet\ntelemetry:\n  enabled: false\n", False),
        ("storage:\n  postgres:\n    postgres_db: {}\n", True),
        ("- no mapping", False),
        ("storage: [", False),
    ],
)
def test_a_storage_of_its_own_is_found_in_the_settings_not_in_a_comment(
    settings, has_runs, tmp_path
):
    (tmp_path / "dagster.yaml").write_text(settings)
    assert _may_have_started_runs(tmp_path) is has_runs


def test_a_run_whose_process_died_is_not_at_work(at_home):
    path = at_home.config_path
    job = build_definitions(config_path=str(path)).resolve_implicit_global_asset_job_def()
    with open_instance(home_for(path)) as instance:
        tags = {IN_PROCESS_TAG: "true"}
        instance.create_run_for_job(job, tags=tags, status=DagsterRunStatus.STARTED)
        assert active_run(path) is not None
    assert active_run(path) is None


def test_a_run_of_the_ui_is_found_without_the_lock(at_home):
    path = at_home.config_path
    job = build_definitions(config_path=str(path)).resolve_implicit_global_asset_job_def()
    with open_instance(home_for(path)) as instance:
        instance.create_run_for_job(job, status=DagsterRunStatus.STARTED)
    assert active_run(path) is not None
