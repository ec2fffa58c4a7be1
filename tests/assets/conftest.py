"""Worlds in which commands are typed."""

import socket

import pytest

from tests.first_runs import home_with_history, run_command


@pytest.fixture
def at_home(world, tmp_path_factory, monkeypatch):
    """The world, with a Dagster home of its own, as the current folder."""
    home = home_with_history(tmp_path_factory.getbasetemp() / "home")
    monkeypatch.setenv("DAGSTER_HOME", str(home))
    monkeypatch.chdir(world.folder)
    world.write_config()
    return world


@pytest.fixture
def reported(at_home):
    """The same after a run, so with a report."""
    run_command(at_home.folder)
    return at_home


@pytest.fixture
def unused_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
