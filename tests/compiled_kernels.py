"""Compile all kernels before the first test, once for all processes of a test run.

Without this each process compiles what its tests call, at the same time as the others: two minutes
of processor time for each of them.
"""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.finished_world import make_finished_world


def compile_kernels() -> None:
    """Compile all kernels; meanwhile import all tests, and run the sample world.

    What fails here fails in a test as well, which shows why.
    """
    with ThreadPoolExecutor(max_workers=1) as pool:
        pool.submit(rewrite_assertions)
        world = pool.submit(make_finished_world)
        program = str(Path(sys.executable).with_name("decon-assets"))
        subprocess.run([program, "warm"], stdout=subprocess.DEVNULL, check=False)
        world.exception()


def rewrite_assertions() -> None:
    """Import all tests: pytest keeps their byte code, which each process would write for itself."""
    subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "--quiet"],
        cwd=Path(__file__).parents[1],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},  # a few tests call kernels at import
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=False,
    )
