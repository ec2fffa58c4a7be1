"""Compile all kernels before the first test, once for all processes of a test run.

Without this each process compiles what its tests call, at the same time as the others: two minutes
of processor time for each of them.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.finished_world import make_finished_world

_DATA = Path(__file__).parents[1] / "data"
# Beside the run of the sample world, which compiles what `decon` needs: each has hardly a kernel
# that the others have.
_SCANS = (
    ["--detectors", "ratcliff,longest_match,exact,ngram_any,reworded"],
    ["--preset", "reference"],
)


def compile_kernels() -> None:
    """Run the sample world, and scan shards of both formats with other settings.

    What fails here fails in a test as well, which shows why.
    """
    with ThreadPoolExecutor(max_workers=2) as pool:
        world = pool.submit(make_finished_world)
        list(pool.map(_scan, _SCANS))
        world.exception()


def _scan(settings: list[str]) -> None:
    """Scan in a process of its own."""
    program = str(Path(sys.executable).with_name("decon-assets"))
    command = [program, "scan", "--evals", str(_DATA / "evals.yaml")]
    command += ["--corpus", str(_DATA / "corpus" / "shelf-000[03]*"), *settings]
    with tempfile.TemporaryDirectory() as folder:
        command += ["--out", str(Path(folder) / "found")]
        subprocess.run(command, stdout=subprocess.DEVNULL, check=False)
