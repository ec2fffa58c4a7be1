"""Compile all kernels before the first test, once for all processes of a test run.

Without this each process compiles what its tests call, at the same time as the others: two minutes
of processor time for each of them.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

_DATA = Path(__file__).parents[1] / "data"
# Two processes, for two cores. The detectors of one have hardly a kernel that the other's have.
_DETECTORS = ("decon", "ratcliff,longest_match,exact,ngram_any")


def compile_kernels() -> None:
    """Scan a shard of JSON lines and one of Parquet with every detector."""
    with tempfile.TemporaryDirectory() as folder:
        command = [str(Path(sys.executable).with_name("decon-assets")), "scan"]
        command += ["--evals", str(_DATA / "evals.yaml")]
        command += ["--corpus", str(_DATA / "corpus" / "shelf-000[03]*")]
        scans = [
            subprocess.Popen(
                [*command, "--detectors", names, "--out", str(Path(folder) / names)],
                stdout=subprocess.DEVNULL,
            )
            for names in _DETECTORS
        ]
        # A scan that fails fails in a test as well, which shows why.
        for scan in scans:
            scan.wait()
