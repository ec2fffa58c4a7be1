"""Without a feature, and those that require it, the rest works."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import grimp
import pytest

import decon_core
from decon_core.feature import Feature, all_features
from tests.test_sample_world import copy_of_data

pytestmark = pytest.mark.release
PACKAGES = Path(decon_core.__file__).parents[1]
FEATURES = {one.name: one for one in all_features()}
_LINE = re.compile(r"^FEATURES = \(.*?\)$", re.MULTILINE | re.DOTALL)

PROGRAM = ("-c", "from decon_assets.cli.program import program; program()")
LINTER = ("-c", "from importlinter.cli import lint_imports_command; lint_imports_command()")
CONTRACTS = (*LINTER, "--no-cache", "--config", str(PACKAGES / "pyproject.toml"))
# Everything is imported, and nothing that was left names a feature that is gone.
IMPORT_ALL = """
import pkgutil, sys
import decon_assets, decon_assets.definitions, decon_core
for package in (decon_core, decon_assets):
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        __import__(module.name)
"""
# The asset graph is imported, and the commands are listed.
LOAD_ALL = """
import decon_core, decon_assets.definitions
from decon_assets.cli.program import program

print(decon_core.__file__, flush=True)
program()
"""


def requiring(name: str) -> set[str]:
    """A feature and those that require it."""
    found = {name}
    while more := {one.name for one in FEATURES.values() if found & {*one.requires}} - found:
        found |= more
    return found


def copy_without(folder: Path, names: set[str]) -> dict[str, str]:
    """Copy the packages without some features; return the environment that runs the copy.

    With what Python and Numba compiled of them, but for files that another process just writes.
    """
    unfinished = shutil.ignore_patterns("*.tmp.*", "*.pyc.*")
    for package in ("decon_core", "decon_assets"):
        source = PACKAGES / package
        shutil.copytree(source, folder / package, ignore=unfinished)
        for name in names:
            shutil.rmtree(folder / package / "features" / name, ignore_errors=True)
            (folder / package / "features" / f"{name}.py").unlink(missing_ok=True)
    path = folder / "decon_core/features/__init__.py"
    left = [name for name in FEATURES if name not in names]
    text, n = _LINE.subn(f"FEATURES: tuple[str, ...] = {tuple(left)!r}", path.read_text())
    assert n == 1
    path.write_text(text)
    return {**os.environ, "PYTHONPATH": str(folder), "DAGSTER_HOME": str(folder / "home")}


def run(folder: Path, environment: dict[str, str], *arguments: str, code: int = 0) -> str:
    """Run Python in a folder; return what it says, its errors only if its code is not 0."""
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stderr if code else done.stdout


def without_tables(config: Path, features: list[Feature]) -> None:
    """Remove the tables of features from a decon.toml."""
    tables = "|".join(table for one in features for table in one.tables)
    kept = [
        part
        for part in re.split(r"(?m)^(?=\[)", config.read_text())
        if not re.match(rf"\[\[?({tables})[].]", part)
    ]
    config.write_text("".join(kept))


def feature_of(module: str) -> str | None:
    """The feature that a module belongs to."""
    _, *below = module.split(".")
    return below[1] if len(below) > 1 and below[0] == "features" else None


def test_features_import_only_those_that_they_require():
    graph = grimp.build_graph("decon_core", "decon_assets", cache_dir=None)
    for module in graph.modules:
        if name := feature_of(module):
            imported = {*map(feature_of, graph.find_modules_directly_imported_by(module))}
            assert imported <= {None, name, *FEATURES[name].requires}, module


@pytest.mark.parametrize("name", FEATURES)
def test_a_feature_is_deleted_with_its_folder_its_file_and_its_line(tmp_path, name):
    """That no other module imports one of it is said by the tests before and after."""
    gone = requiring(name)
    environment = copy_without(tmp_path, gone)
    where, _, told = run(tmp_path, environment, "-c", LOAD_ALL, "--help").partition("\n")
    assert where == str(tmp_path / "decon_core/__init__.py")
    assert "  status " in told
    for command in FEATURES[name].commands:
        assert not re.search(rf"^  {command} ", told, re.MULTILINE)
    scan = (*PROGRAM, "scan", "--evals", "evals", "corpus", "--out", "out")
    for engine in FEATURES[name].engines:
        told = run(tmp_path, environment, *scan, "--engine", engine, code=2)
        assert f"--engine: found {engine!r}; expected one of local" in told
        told = run(tmp_path, environment, *scan, "--execution", "cluster.toml", code=2)
        assert "cluster.toml: the file configures an engine, but no feature provides one" in told
    if FEATURES[name].registry:
        told = run(tmp_path, environment, *PROGRAM, "catalog", "--from", "tasks", code=2)
        assert told == "--from: no feature reads registries of benchmarks\n"
    if os.environ.get("DECON_WHOLE_SESSION"):
        run_sample_world(tmp_path, environment, gone)


def test_the_core_alone_runs_the_sample_world(tmp_path):
    environment = copy_without(tmp_path, {*FEATURES})
    run(tmp_path, environment, "-c", IMPORT_ALL)
    run(tmp_path, environment, *CONTRACTS)
    run_sample_world(tmp_path, environment, {*FEATURES})


def run_sample_world(folder: Path, environment: dict[str, str], gone: set[str]) -> None:
    config = copy_of_data(folder / "data")
    without_tables(config, [FEATURES[name] for name in gone])
    (folder / "home").mkdir()
    told = run(folder, environment, *PROGRAM, "demo", "--config", str(config), "--workers", "1")
    assert "false alarms" in told
