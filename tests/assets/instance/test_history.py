"""A kill while Dagster's history is created leaves a home that the next command uses or mends."""

import subprocess
import sys

import pytest

from tests.long_runs import IS_LONG

pytestmark = pytest.mark.kills

# Forks a process for each point, so that Dagster is imported once. The killed process dies at the
# nth statement that SQLite is given, wherever that is; a second one then uses the home.
PROGRAM = """
import os, signal, sys
from pathlib import Path
from dagster import AssetMaterialization
from sqlalchemy import event
from sqlalchemy.engine import Engine
from decon_assets.instance.home import open_instance

folder, points = Path(sys.argv[1]), [int(n) for n in sys.argv[2:]]

def in_child(act, *arguments):
    child = os.fork()
    if not child:
        try:
            act(*arguments)
            code = 0
        except BaseException as error:
            print(type(error).__name__, error, file=sys.stderr)
            code = 1
        os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

def create(home, point):
    n_statements = 0
    def count(*_):
        nonlocal n_statements
        n_statements += 1
        if n_statements == point:
            os.kill(os.getpid(), signal.SIGKILL)
    event.listen(Engine, "before_cursor_execute", count)
    with open_instance(home):
        pass

def use(home):
    for _ in range(2):
        with open_instance(home) as instance:
            instance.add_dynamic_partitions("packs", ["web-0000"])
            assert instance.get_dynamic_partitions("packs") == ["web-0000"]
            instance.report_runless_asset_event(AssetMaterialization("inventory"))
            assert not instance.get_runs()
            assert not instance.all_instigator_state()
    assert not [*home.glob(".*.tmp")]

for point in points:
    home = folder / str(point)
    killed = in_child(create, home, point)
    print(point, killed, in_child(use, home))
"""


def test_a_kill_at_any_statement_while_the_history_is_created_leaves_a_usable_home(tmp_path):
    points = [1, 47, 75, 90, 145] if IS_LONG else [47, 90, 145]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path), *map(str, points)],
        capture_output=True,
        text=True,
        check=True,
    )
    told = [[int(number) for number in line.split()] for line in done.stdout.splitlines()]
    assert [point for point, _, _ in told] == points
    assert sum(killed == -9 for _, killed, _ in told) >= 3  # of 170 to 190 statements in all
    assert [used for _, _, used in told] == [0] * len(points), done.stderr


def test_settings_that_a_kill_left_empty_are_written_again(tmp_path):
    from decon_assets.instance.home import ensure_home

    (tmp_path / "dagster.yaml").touch()
    assert "max_concurrent_runs: 1" in (ensure_home(tmp_path) / "dagster.yaml").read_text()
