"""A full disk, too few open files, or a project that may only be read: one line, no traceback."""

import os
import resource
import sqlite3
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from sqlalchemy import event
from sqlalchemy.engine import Engine

from decon_assets.cli.main import main
from decon_assets.instance.history_errors import plain_error
from tests.first_runs import run_command

_PROGRAM = "import sys; from decon_assets.cli.program import program; sys.exit(program())"


@pytest.fixture
def at_home(at_home_on_disk):
    """The history is in files."""
    return at_home_on_disk


@pytest.fixture
def unopenable(at_home):
    """A project after a run, whose history SQLite cannot open, as on a read-only disk."""
    run_command(at_home.folder, "run")
    log = Path(os.environ["DAGSTER_HOME"], "history", "runs.db-wal")
    log.unlink(missing_ok=True)
    log.mkdir()
    yield at_home
    log.rmdir()


def test_whoever_may_only_read_is_told_all_but_the_runs(unopenable, capsys):
    assert main(["status"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "complete"
    assert main(["why", "web-0:0"]) in (0, 1)
    (note, *_) = capsys.readouterr().err.splitlines()
    assert note.startswith("note: runs are not shown: PermissionError: ")
    assert os.environ["DAGSTER_HOME"] in note


@pytest.mark.parametrize("n_pages", [1, 60])
def test_a_history_on_a_full_disk_ends_a_run_in_one_line(at_home, capsys, n_pages):
    def limit(connection, _):
        connection.execute(f"PRAGMA max_page_count = {n_pages}")

    event.listen(Engine, "connect", limit)
    try:
        assert main(["run"]) == 1
    finally:
        event.remove(Engine, "connect", limit)
    last = capsys.readouterr().err.splitlines()[-1]
    assert "database or disk is full" in last
    assert os.environ["DAGSTER_HOME"] in last
    assert last.endswith(". Free some disk space and run the command again")


def test_too_few_open_files_end_a_run_in_one_line(at_home):
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, "run"],
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (20, 20)),
    )
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.endswith(". Raise the limit on open files (ulimit -n)\n")


def test_the_first_error_of_a_chain_is_the_reason_and_bugs_are_not_hidden(tmp_path):
    def chain(*errors):
        for first, then in pairwise(errors):
            then.__context__ = first
        return plain_error(errors[-1], tmp_path)

    disk, bug = OSError(28, "full", "file"), ValueError("a bug")
    assert chain(disk, RuntimeError("step"), sqlite3.OperationalError("disk I/O error")) is disk
    assert chain(bug, RuntimeError("step")) is None
    assert chain(sqlite3.ProgrammingError("a bug")) is None
