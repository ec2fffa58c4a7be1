"""What `make setup` says while it installs, and when it cannot.

All packages are installed already, so nothing is downloaded.
"""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
PROGRAM = ROOT / "deploy" / "install.py"


def install(lock: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(PROGRAM), sys.executable, str(lock)]
    # What is installed in this environment beside is no matter here, and takes pip long to read.
    variables = os.environ | {"PIP_NO_WARN_CONFLICTS": "no"} | variables
    return subprocess.run(command, capture_output=True, text=True, check=False, env=variables)


def locked(*names: str) -> str:
    """Packages as the lock file has them."""
    text = (ROOT / "requirements.lock").read_text()
    return "".join(re.search(rf"(?m)^{name}==(?:.*\\\n)*.*\n", text)[0] for name in names)


def test_packages_are_counted_and_the_time_is_said(tmp_path):
    lock = tmp_path / "three.lock"
    lock.write_text(locked("iniconfig", "pluggy", "uv"))
    done = install(lock)
    assert done.returncode == 0, done.stderr
    first, last = done.stdout.splitlines()
    assert re.fullmatch(r"installing 3 packages into .*\.venv", first)
    assert re.fullmatch(r"installed in \d+ s", last)


def test_pip_installs_where_uv_fails(tmp_path):
    lock = tmp_path / "two.lock"
    lock.write_text(locked("iniconfig", "uv"))
    done = install(lock, UV_LINK_MODE="no mode of linking")
    assert done.returncode == 0, done.stderr
    assert "uv failed: pip installs them, which takes longer" in done.stdout
    assert "Requirement already satisfied: iniconfig" in done.stdout  # the words of pip


def test_an_installation_that_fails_ends_with_what_pip_said(tmp_path):
    lock = tmp_path / "none.lock"
    lock.write_text(locked("uv") + "nopackage==0.0.0 --hash=sha256:" + "0" * 64 + "\n")
    done = install(lock, UV_OFFLINE="1", PIP_NO_INDEX="1")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].endswith(
        "No matching distribution found for nopackage==0.0.0"
    )


def test_uv_looks_where_pip_is_configured_to_look(monkeypatch):
    for name in ("UV_DEFAULT_INDEX", "UV_INDEX"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_INDEX_URL", "https://mirror.example/simple")
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", "https://one.example https://two.example")
    spec = importlib.util.spec_from_file_location("install", PROGRAM)
    program = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(program)
    settings = program._settings_of_pip([sys.executable, "-m", "pip"])
    assert settings["UV_DEFAULT_INDEX"] == "https://mirror.example/simple"
    assert settings["UV_INDEX"] == "https://one.example https://two.example"
