"""An index in processes that are forked or spawned: it works or says why not, and never waits."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.long_runs import only_in_long_runs

PROGRAM = """
import multiprocessing
import sys

import decon_core as dc
from decon_core.errors import InputError
from tests.core.library.samples import CLEAN, ITEMS, VERBATIM


def is_leaked(index, text):
    return index.check(text).is_leaked


if __name__ == "__main__":
    method, first = sys.argv[1:]
    index = dc.build_index(ITEMS)
    index.check(VERBATIM if first == "leak" else CLEAN)
    with multiprocessing.get_context(method).Pool(1) as pool:
        work = pool.starmap_async(is_leaked, [(index, CLEAN), (index, VERBATIM)])
        try:
            print(work.get(timeout=300))
        except InputError as error:
            print(error)
"""


@pytest.mark.parametrize(
    ("method", "first", "said"),
    [
        ("fork", "clean", "[False, True]"),
        ("fork", "leak", 'multiprocess.set_start_method("spawn")'),
        pytest.param(
            *("forkserver", "leak", "[False, True]"),
            marks=only_in_long_runs("a spawned process begins as empty as that of a server"),
        ),
        ("spawn", "leak", "[False, True]"),
    ],
)
def test_an_index_in_other_processes_works_or_says_why_not(tmp_path, method, first, said):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    command = [sys.executable, str(program), method, first]
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=env)
    assert said in done.stdout
