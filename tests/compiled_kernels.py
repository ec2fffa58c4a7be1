"""Compile kernels and tests before the first test, once for all processes of a test run.

Without this each process compiles what its tests call, at the same time as the others: two minutes
of processor time for each of them.
"""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from _pytest.assertion import rewrite

from tests.finished_world import make_finished_world

TESTS = Path(__file__).parent


def compile_once(config: pytest.Config) -> None:
    """Compile all kernels; run the sample world and rewrite the assertions of tests meanwhile.

    What fails here fails in a test as well, which shows why.
    """
    with ThreadPoolExecutor(max_workers=1) as pool:
        world = pool.submit(make_finished_world)
        program = str(Path(sys.executable).with_name("decon-assets"))
        with subprocess.Popen([program, "warm"], stdout=subprocess.DEVNULL):
            rewrite_assertions(config)
        world.exception()


def rewrite_assertions(config: pytest.Config) -> None:
    """Do what pytest does when it first imports a file of tests: half of the time of importing."""
    state = config.stash[rewrite.assertstate_key]
    for pattern in ("test_*.py", "conftest.py") if not sys.dont_write_bytecode else ():
        for path in TESTS.rglob(pattern):
            cached = rewrite.get_cache_dir(path) / f"{path.stem}{rewrite.PYC_TAIL}"
            if rewrite.try_makedirs(cached.parent) and not rewrite._read_pyc(path, cached):
                status, code = rewrite._rewrite_test(path, config)
                rewrite._write_pyc(state, code, status, cached)
