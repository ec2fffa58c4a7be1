"""What `make setup` says while it installs, and when it cannot."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
PIP = Path(sys.executable).with_name("pip")


def install(lock: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "deploy" / "install.py"), str(PIP), str(lock)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def locked(*names: str) -> str:
    """Packages that are installed already, as the lock file has them."""
    text = (ROOT / "requirements.lock").read_text()
    return "".join(re.search(rf"(?m)^{name}==(?:.*\\\n)*.*\n", text)[0] for name in names)


def test_the_installation_counts_packages_and_says_how_long_it_took(tmp_path):
    lock = tmp_path / "two.lock"
    lock.write_text(locked("iniconfig", "pluggy"))
    done = install(lock)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[:3] == ["installing 2 packages into .venv", "1 of 2: iniconfig", "2 of 2: pluggy"]
    assert re.fullmatch(r"installed in \d+ s", lines[-1])


def test_an_installation_that_fails_ends_with_what_pip_said(tmp_path):
    lock = tmp_path / "none.lock"
    lock.write_text("iniconfig==0.0.0 --hash=sha256:" + "0" * 64 + "\n")
    done = install(lock)
    assert done.returncode == 1
    assert "iniconfig==0.0.0" in done.stderr
