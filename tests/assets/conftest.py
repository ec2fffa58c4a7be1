"""Worlds in which commands are typed."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from dagster import DagsterInstance

from tests.first_runs import home_with_history, run_command


@pytest.fixture
def at_home_on_disk(world, tmp_path_factory, monkeypatch):
    """The world, with a Dagster home of its own, as the current folder."""
    home = home_with_history(tmp_path_factory.getbasetemp() / "home")
    monkeypatch.setenv("DAGSTER_HOME", str(home))
    monkeypatch.chdir(world.folder)
    world.write_config()
    return world


@pytest.fixture
def at_home(at_home_on_disk, tmp_path_factory, monkeypatch):
    """The same with the history in memory, which takes half the time of SQLite's files.

    A file of tests that starts processes, or looks into the files, overrides this fixture.
    """
    home = str(tmp_path_factory.getbasetemp() / "home")
    open_files = DagsterInstance.from_config

    @contextmanager
    def in_memory() -> Iterator[DagsterInstance]:
        yield at_home_on_disk.instance

    def from_config(folder, *settings):
        return in_memory() if folder == home else open_files(folder, *settings)

    monkeypatch.setattr(DagsterInstance, "from_config", from_config)
    return at_home_on_disk


@pytest.fixture
def reported(at_home):
    """The same after a run, so with a report."""
    run_command(at_home.folder, "run")
    return at_home
