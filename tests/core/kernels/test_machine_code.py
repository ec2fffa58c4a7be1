"""In which folder machine code is, who can use it, and when it is outdated."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from decon_core.kernels import machine_code

PROGRAM = """
import numpy as np
from decon_core.kernels import machine_code, string_kinds
from decon_core.kernels.jit import is_new

places = np.array([0]), np.array([1]), np.zeros(1, np.int64)
string_kinds.count_characters(np.zeros(1, np.uint8), *places)
print(is_new(string_kinds.count_characters), machine_code.prepare())
"""


# Code for this one is shipped with no package.
PLAINEST = {"NUMBA_CPU_NAME": "x86-64", "NUMBA_CPU_FEATURES": "", "NUMBA_DISABLE_JIT": "0"}


def compiled_in(folder: Path) -> tuple[bool, Path]:
    """Whether another process compiled a kernel, and in which folder it is."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, **PLAINEST, "NUMBA_CACHE_DIR": str(folder)},
        capture_output=True,
        text=True,
        check=True,
    )
    is_new, place = done.stdout.split()
    return is_new == "True", Path(place)


def config_of(folder: Path, **settings: str) -> SimpleNamespace:
    """Numba's settings."""
    given = {"CACHE_DIR": str(folder), "CPU_NAME": "one", "CPU_FEATURES": ""}
    return SimpleNamespace(**given | settings)


def test_machine_code_is_of_use_wherever_it_lies(tmp_path):
    built, elsewhere = tmp_path / "built", tmp_path / "elsewhere"
    is_new, place = compiled_in(built)
    assert is_new
    shutil.move(built, elsewhere)
    assert compiled_in(elsewhere) == (False, elsewhere / place.name)


def test_functions_of_others_stay_where_numba_puts_them(tmp_path):
    (tmp_path / "theirs.py").write_text(
        "import numba\n@numba.njit(cache=True)\ndef f(x):\n    return x\n"
    )
    program = (
        "from decon_core.kernels import machine_code\n"
        "print(machine_code.prepare())\n"
        "import theirs\n"
        "theirs.f(1)\n"
        "print(theirs.f.stats.cache_path)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env={**os.environ, "NUMBA_DISABLE_JIT": "0", "NUMBA_CACHE_DIR": ""},
        capture_output=True,
        text=True,
        check=True,
    )
    ours, theirs = map(Path, done.stdout.split())
    assert ours != theirs == tmp_path / "__pycache__"


@pytest.mark.parametrize("place", ["image", "package"])
def test_code_that_was_shipped_is_copied_to_a_folder_that_can_be_written(
    tmp_path, monkeypatch, place
):
    image, package, user = (tmp_path / name for name in ("image", "package", "user"))
    config = config_of(image if place == "image" else user)
    name = f"kernels-{machine_code._digest(config)}"
    shipped = tmp_path / place / name / "code" / "a.nbc"
    shipped.parent.mkdir(parents=True)
    shipped.write_bytes(b"code")
    user.mkdir()
    can_write = machine_code._can_write
    monkeypatch.setattr(machine_code, "SHIPPED", package)
    monkeypatch.setattr(machine_code, "_can_write", lambda path: path != image and can_write(path))
    monkeypatch.setattr(machine_code.tempfile, "gettempdir", lambda: str(user))
    copied = machine_code._find_folder(config)
    assert copied.is_relative_to(user)
    assert (copied / "code" / "a.nbc").read_bytes() == b"code"
    assert [path.name for path in copied.parent.iterdir()] == [copied.name]


def test_an_edit_in_any_file_of_kernels_makes_code_of_before_unused(tmp_path, monkeypatch):
    """Numba itself looks only at the file of the kernel that is called."""
    sources, cache = tmp_path / "kernels", tmp_path / "cache"
    sources.mkdir()
    cache.mkdir()
    (sources / "one.py").write_text("1")
    monkeypatch.setattr(machine_code, "_HERE", sources)
    places = set()
    for content in ("2", "3", "2"):
        (sources / "two.py").write_text(content)
        places.add(machine_code._find_folder(config_of(cache)))
    places.add(machine_code._find_folder(config_of(cache, CPU_NAME="another")))
    assert len(places) == 3
    assert {path.parent for path in places} == {cache}


def test_code_that_was_not_used_for_a_month_is_removed(tmp_path):
    used, unused, own = (tmp_path / f"kernels-{name}" for name in ("used", "unused", "own"))
    for folder in (used, unused, own, tmp_path / "other"):
        folder.mkdir()
        os.utime(folder, (0, 0) if folder != used else None)
    machine_code._remove_unused(tmp_path, keep=own)
    assert {path.name for path in tmp_path.iterdir()} == {"kernels-used", "kernels-own", "other"}
