"""Worlds in which commands are typed."""

import pytest

from decon_assets.cli import main


@pytest.fixture
def at_home(world, tmp_path_factory, monkeypatch):
    """The world, with a Dagster home of its own, as the current folder."""
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path_factory.mktemp("home")))
    monkeypatch.chdir(world.folder)
    world.write_config()
    return world


@pytest.fixture
def reported(at_home):
    """The same after a run, so with a report."""
    assert main(["run"]) == 0
    return at_home
