"""Ctrl-C, as a terminal sends it: to every process of the group. One line, and nothing is left."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest
from dagster import DagsterInstance, DagsterRunStatus

from decon_assets.cli.main import main
from tests.assets.ui_requests import require_own_pages_only
from tests.long_runs import IS_LONG, only_in_long_runs

pytestmark = pytest.mark.kills

# As `decon-assets` is, but with workers for shards as small as these.
_PROGRAM = """
import sys, decon_core.execution.jobs
decon_core.execution.jobs._BYTES_PER_WORKER = 1
from decon_assets.cli.main import main
sys.exit(main())
"""
_STOPPED = "stopped; finished work is kept: run the command again to continue"


@pytest.fixture
def at_home(at_home_on_disk):
    """Other processes open the history."""
    return at_home_on_disk


def interrupted(
    *arguments: str, after: str, meanwhile: Callable[[], None] | None = None
) -> tuple[int, str, list[str]]:
    """Exit code, output, and the processes that are left of those that the command started."""
    ours = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have it ignored
    try:
        process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
    finally:
        signal.signal(signal.SIGINT, ours)
    said = []
    with process:
        for line in process.stdout:
            said.append(line)
            if after in line:
                break
        try:
            if meanwhile:
                meanwhile()
        finally:
            os.killpg(process.pid, signal.SIGINT)
        said += process.stdout
    return process.returncode, "".join(said), of_this_home()


def of_this_home() -> list[str]:
    """Command lines of other processes that have this test's home in their environment."""
    home = f"DAGSTER_HOME={os.environ['DAGSTER_HOME']}".encode()
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended
            is_ours = home in (process / "environ").read_bytes().split(b"\0")
            parent = int((process / "stat").read_text().rpartition(")")[2].split()[1])
            # Not what earlier tests started in this process: its tracker of shared resources stays.
            if is_ours and os.getpid() not in (int(process.name), parent):
                found.append((process / "cmdline").read_text().replace("\0", " "))
    return found


@pytest.fixture
def many_shards(at_home):
    for number in range(6):
        at_home.add_shard(f"t{number}", n_documents=30)
    return at_home


@pytest.mark.parametrize("after", ["index:", "records:"][: 2 if IS_LONG else 1])
def test_a_run_that_is_stopped_says_so_in_one_line_and_leaves_no_lock_behind(many_shards, after):
    code, said, left = interrupted("run", after=after)
    assert said.splitlines()[-1] == _STOPPED
    assert "Traceback" not in said
    assert (code, left) == (130, [])
    # No lock is held. `runner/test_kill_between_steps.py` goes on with a run.
    assert main(["run" if IS_LONG else "register"]) == 0
    with DagsterInstance.from_config(os.environ["DAGSTER_HOME"]) as instance:
        ended = {run.status for run in instance.get_runs()}
    assert ended <= {
        DagsterRunStatus.SUCCESS, DagsterRunStatus.FAILURE, DagsterRunStatus.CANCELED
    }  # fmt: skip


@only_in_long_runs("with other tests beside it, the scan may end before the signal arrives")
def test_a_scan_whose_workers_are_starting_is_stopped_without_tracebacks_of_theirs(many_shards):
    scan = ["scan", "--evals", "evals.yaml", "corpus", "--out", "found"]
    code, said, left = interrupted(*scan, "--workers", "2", after="shards to scan")
    assert said.splitlines()[-1] == _STOPPED
    assert "Traceback" not in said
    assert (code, left) == (130, [])


@pytest.mark.parametrize(
    ("after", "meanwhile"),
    [("Launching Dagster services", None), ("Serving dagster-webserver", require_own_pages_only)],
)
def test_the_ui_answers_only_its_own_pages_and_is_stopped_with_all_its_processes_in_one_line(
    at_home, unused_port, monkeypatch, after, meanwhile
):
    monkeypatch.setenv("DECON_UI_HOSTS", "x.example, decon.example.org")
    asks = meanwhile and partial(meanwhile, unused_port)
    dev = ["dev", "--port", str(unused_port)]
    code, said, left = interrupted(*dev, after=after, meanwhile=asks)
    _, _, end = said.partition(after)
    lines = end.splitlines()[1:]  # the first is the rest of the line itself
    # A sensor may have said before it that it had nothing to do.
    assert [line for line in lines if "Sensor fail_stage_runs skipped" not in line] == [_STOPPED]
    assert "WARNING" not in said
    assert "Warning" not in said
    assert "Traceback" not in said
    assert (code, left) == (130, [])
