"""Whether a kernel was compiled or loaded, and where there is no compiling at all."""

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

from decon_core.kernels import jit
from decon_core.kernels.jit import is_worth_compiling

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
    place = {"NUMBA_CACHE_DIR": str(tmp_path), "NUMBA_DISABLE_JIT": "0"}
    assert told(**place) == "(False, False) (True, True)"
    assert told(**place) == "(False, False) (True, False)"


LITTLE_AND_MUCH = """
import numpy as np
from decon_core.kernels import grams
from decon_core.kernels.jit import compiled_at_once, is_ready

def sum_of(n):
    totals = np.zeros(1)
    grams.sum_in_order(np.array([0.1, 0.7]), np.ones(n, np.uint32), np.array([0, n]), totals)
    return totals[0], is_ready(grams.sum_in_order)

little, again = sum_of(50), sum_of(50)
with compiled_at_once():
    compiled = sum_of(50)
print(little[1], again[1], compiled[1], little[0] == again[0] == compiled[0], sum_of(10**6)[1])
"""


def test_a_kernel_runs_as_plain_python_until_compiling_pays_or_the_cache_has_it(tmp_path):
    place = {"NUMBA_CACHE_DIR": str(tmp_path), "NUMBA_DISABLE_JIT": "0"}
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


def test_machine_code_in_a_folder_that_cannot_be_written_is_copied(tmp_path, monkeypatch):
    image, user = tmp_path / "image", tmp_path / "user"
    shipped = image / f"kernels-{jit._digest_of_sources()}" / "kernels_0" / "a.nbc"
    shipped.parent.mkdir(parents=True)
    shipped.write_bytes(b"code")
    user.mkdir()
    can_write = jit._can_write
    monkeypatch.setattr(jit, "_can_write", lambda path: path != image and can_write(path))
    monkeypatch.setattr(jit.tempfile, "gettempdir", lambda: str(user))
    config = SimpleNamespace(CACHE_DIR=str(image))
    assert jit._find_cache_folder(config)
    copied = Path(config.CACHE_DIR)
    assert copied.is_relative_to(user)
    assert (copied / "kernels_0" / "a.nbc").read_bytes() == b"code"
    assert [path.name for path in copied.parent.iterdir()] == [copied.name]


def test_an_edit_in_any_file_of_kernels_makes_code_of_before_unused(tmp_path, monkeypatch):
    """Numba itself looks only at the file of the kernel that is called."""
    sources, cache = tmp_path / "kernels", tmp_path / "cache"
    sources.mkdir()
    cache.mkdir()
    (sources / "one.py").write_text("1")
    monkeypatch.setattr(jit, "_HERE", sources)
    places = set()
    for content in ("2", "3", "2"):
        (sources / "two.py").write_text(content)
        config = SimpleNamespace(CACHE_DIR=str(cache))
        assert jit._find_cache_folder(config)
        places.add(config.CACHE_DIR)
    assert len(places) == 2
    assert {path.parent for path in map(Path, places)} == {cache}


def test_code_that_was_not_used_for_a_month_is_removed(tmp_path):
    used, unused, own = (tmp_path / f"kernels-{name}" for name in ("used", "unused", "own"))
    for folder in (used, unused, own, tmp_path / "other"):
        folder.mkdir()
        os.utime(folder, (0, 0) if folder != used else None)
    jit._remove_unused(tmp_path, keep=own)
    assert {path.name for path in tmp_path.iterdir()} == {"kernels-used", "kernels-own", "other"}


def test_plain_python_is_never_compiled():
    assert told(NUMBA_DISABLE_JIT="1") == "(False, False) (False, False)"
