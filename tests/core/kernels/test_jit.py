"""Whether a kernel was compiled or loaded, and where there is no compiling at all."""

import os
import subprocess
import sys

from decon_core.kernels import jit
from decon_core.kernels.jit import is_worth_compiling

# The machine code that `make setup` left is not for every x86 processor.
NOT_SHIPPED = {"NUMBA_CPU_NAME": "x86-64", "NUMBA_CPU_FEATURES": ""}

PROGRAM = """
import numpy as np
from decon_core.kernels import string_kinds
from decon_core.kernels.jit import is_new, is_ready

def told():
    return is_ready(string_kinds.count_characters), is_new(string_kinds.count_characters)

before = told()
places = np.array([0]), np.array([1]), np.zeros(1, np.int64)
string_kinds.count_characters(np.zeros(1, np.uint8), *places)
print(before, told())
"""


def told(program: str = PROGRAM, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def test_a_kernel_is_new_to_the_process_that_compiled_it_and_to_no_later_one(tmp_path):
    place = {"NUMBA_CACHE_DIR": str(tmp_path), "NUMBA_DISABLE_JIT": "0"} | NOT_SHIPPED
    assert told(**place) == "(False, False) (True, True)"
    assert told(**place) == "(False, False) (True, False)"


LITTLE_AND_MUCH = """
import numpy as np
from decon_core.kernels import grams
from decon_core.kernels.jit import compiled_at_once, is_ready

def inverted(n):
    edges, fill, postings = np.array([0, n]), np.zeros(1, np.int64), np.ones(n, np.uint32)
    grams.invert(np.zeros(n, np.uint32), edges, fill, postings)
    return fill[0], is_ready(grams.invert)

little, again = inverted(50), inverted(50)
with compiled_at_once():
    compiled = inverted(50)
print(little[1], again[1], compiled[1], little[0] == again[0] == compiled[0], inverted(10**6)[1])
"""


def test_a_kernel_runs_as_plain_python_until_compiling_pays_or_the_cache_has_it(tmp_path):
    place = {"NUMBA_CACHE_DIR": str(tmp_path), "NUMBA_DISABLE_JIT": "0"} | NOT_SHIPPED
    assert told(LITTLE_AND_MUCH, **place) == "False False True True True"
    assert told(LITTLE_AND_MUCH, **place) == "True True True True True"


def test_much_input_and_much_time_are_worth_compiling():
    def f(n):
        return n

    def worth(entry, n):
        return is_worth_compiling(entry, n, seconds_per_byte=1e-3)

    first, second = (jit.entry(compile_seconds=1.0, steps=lambda n: n)(f) for _ in range(2))
    for one in (first, second):
        one._is_cached = False
    before, jit._Entry.are_at_once = jit._Entry.are_at_once, False
    try:
        assert worth(first, 2_000)
        assert [worth(second, 400) for _ in range(4)] == [False, False, True, True]
    finally:
        jit._Entry.are_at_once = before


def test_plain_python_is_never_compiled():
    assert told(NUMBA_DISABLE_JIT="1") == "(False, False) (False, False)"


def test_a_kernel_is_compiled_with_one_that_was_loaded(tmp_path):
    place = {"NUMBA_CACHE_DIR": str(tmp_path), "NUMBA_DISABLE_JIT": "0"} | NOT_SHIPPED
    told(**place)
    for path in tmp_path.rglob("string_kinds.count_characters-*"):
        path.unlink()
    assert [*tmp_path.rglob("string_kinds._n_characters-*.nbc")]
    assert told(**place) == "(False, False) (True, True)"
