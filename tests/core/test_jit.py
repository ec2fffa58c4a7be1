"""Whether a kernel was compiled or loaded, and where there is no compiling at all."""

import os
import subprocess
import sys

PROGRAM = """
import numpy as np
from decon_core.kernels import json_lines
from decon_core.kernels.jit import is_new, is_ready

def told():
    return is_ready(json_lines.count_characters), is_new(json_lines.count_characters)

before = told()
places = np.array([0]), np.array([1]), np.zeros(1, np.int64)
json_lines.count_characters(np.zeros(1, np.uint8), *places)
print(before, told())
"""


def told(**environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def test_a_kernel_is_new_to_the_process_that_compiled_it_and_to_no_later_one(tmp_path):
    place = {"NUMBA_CACHE_DIR": str(tmp_path), "NUMBA_DISABLE_JIT": "0"}
    assert told(**place) == "(False, False) (True, True)"
    assert told(**place) == "(False, False) (True, False)"


def test_plain_python_is_never_compiled():
    assert told(NUMBA_DISABLE_JIT="1") == "(False, False) (False, False)"
