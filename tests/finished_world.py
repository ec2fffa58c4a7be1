"""The sample world after `decon-assets run`: made once for all processes of a test run, copied."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from decon_assets.instance.home import ensure_home

DATA = Path(__file__).parents[1] / "data"
_PLACE = "DECON_FINISHED_WORLD"  # in the environment, for the other processes: the folder it is in
_made: list[Path] = []  # by this process, which removes it


def make_finished_world() -> None:
    """Make it, and tell the processes of the test run where it is."""
    folder = Path(tempfile.mkdtemp(prefix="finished-world-"))
    shutil.copytree(DATA, folder / "data", ignore=shutil.ignore_patterns(".d*", "__pycache__"))
    program = str(Path(sys.executable).with_name("decon-assets"))
    done = subprocess.run(
        [program, "run", "--config", str(folder / "data" / "decon.toml")],
        env={**os.environ, "DAGSTER_HOME": str(ensure_home(folder / "home"))},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    os.environ[_PLACE] = str(folder)
    _made.append(folder)


def remove_finished_world() -> None:
    while _made:
        shutil.rmtree(_made.pop(), ignore_errors=True)


def copy_finished_world(folder: Path) -> Path:
    """Copy the world to `data/` and its Dagster home to `home/`; return its configuration."""
    if _PLACE not in os.environ:
        make_finished_world()
    for name in ("data", "home"):
        shutil.copytree(Path(os.environ[_PLACE]) / name, folder / name)
    return folder / "data" / "decon.toml"


def keep_one_mixture(config: Path) -> None:
    """Leave one mixture of the variants, and no feature."""
    before, variants, _ = config.read_text().partition("# Variants of the corpus")
    assert variants
    config.write_text(f'{before}[[mixture]]\nname = "decontaminated"\n')
