"""Whether a kernel was compiled or loaded, and where there is no compiling at all."""

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

from decon_core.kernels import jit

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
