"""One daemon at a time; what the last one left behind when it was killed."""

import fcntl

import pytest
from dagster import (
    DagsterInstance,
    DagsterRunStatus,
    DefaultSensorStatus,
    build_run_status_sensor_context,
)

from decon_assets.cli.main import main
from decon_assets.definitions import build_definitions, definitions
from decon_assets.everything_job import SENSOR, STARTED_BY_TAG
from decon_assets.instance.home import IN_PROCESS_TAG
from decon_assets.runner.daemon import fail_orphaned_runs

LAUNCHED = {".dagster/grpc_info": '{"socket": "/tmp/nowhere", "host": "localhost"}'}


def begun(instance: DagsterInstance, status: DagsterRunStatus, tags: dict[str, str]) -> str:
    job = build_definitions().resolve_implicit_global_asset_job_def()
    return instance.create_run_for_job(job, status=status, tags=tags).run_id


def test_what_a_dead_daemon_left_is_called_failed_or_canceled_as_was_wished(instance):
    started = begun(instance, DagsterRunStatus.STARTED, LAUNCHED)
    canceling = begun(instance, DagsterRunStatus.CANCELING, LAUNCHED)
    assert set(fail_orphaned_runs(instance)) == {started, canceling}
    assert instance.get_run_by_id(started).status is DagsterRunStatus.FAILURE
    assert instance.get_run_by_id(canceling).status is DagsterRunStatus.CANCELED
    assert fail_orphaned_runs(instance) == []


def test_what_waits_what_is_done_and_what_a_command_line_runs_is_left_alone(instance):
    alive = {
        begun(instance, DagsterRunStatus.NOT_STARTED, {}): DagsterRunStatus.NOT_STARTED,
        begun(instance, DagsterRunStatus.SUCCESS, LAUNCHED): DagsterRunStatus.SUCCESS,
        begun(instance, DagsterRunStatus.STARTED, {IN_PROCESS_TAG: "true"}): (
            DagsterRunStatus.STARTED
        ),
    }
    assert fail_orphaned_runs(instance) == []
    assert {run: instance.get_run_by_id(run).status for run in alive} == alive


def test_the_stages_of_a_job_whose_process_was_killed_are_called_failed(instance):
    outer = begun(instance, DagsterRunStatus.FAILURE, LAUNCHED)
    stage = begun(instance, DagsterRunStatus.STARTED, {STARTED_BY_TAG: outer})
    other = begun(instance, DagsterRunStatus.STARTED, {STARTED_BY_TAG: "another run"})
    run = instance.get_run_by_id(outer)
    event = instance.report_run_failed(run, "the worker died")
    context = build_run_status_sensor_context(
        sensor_name=SENSOR, dagster_event=event, dagster_instance=instance, dagster_run=run
    )
    sensor = definitions.get_repository_def().get_sensor_def(SENSOR)
    assert sensor.default_status is DefaultSensorStatus.RUNNING
    sensor(context.for_run_failure())
    assert instance.get_run_by_id(stage).status is DagsterRunStatus.FAILURE
    assert instance.get_run_by_id(other).status is DagsterRunStatus.STARTED


@pytest.mark.parametrize("command", ["daemon", "dev"])
def test_a_second_daemon_of_a_home_is_refused(
    at_home_on_disk, command, tmp_path, monkeypatch, capsys
):
    home = tmp_path / "a home"
    home.mkdir()
    monkeypatch.setenv("DAGSTER_HOME", str(home))
    with (home / "decon-daemon.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert main([command]) == 2
    said = capsys.readouterr().err
    assert "a home" in said
    assert "another daemon" in said
